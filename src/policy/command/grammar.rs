//! The grammar: tree-sitter-bash, with a bound on its work, and what its node kinds mean here.

use super::scan::{Scan, Substitution, SubstitutionKind, Substitutions, doubt};
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

/// The parser reports its progress about every 100 operations; error recovery on hostile text can need many.
const MAX_PROGRESS_REPORTS: usize = 20_000;

/// Kinds whose children are commands, lists or keywords.
pub(super) const LISTS: &[&str] = &[
    "program",
    "list",
    "pipeline",
    "subshell",
    "compound_statement",
    "if_statement",
    "elif_clause",
    "else_clause",
    "while_statement",
    "do_group",
    "for_statement",
    "case_statement",
    "case_item",
    "negated_command",
    "function_definition",
    "command_substitution",
    "process_substitution",
];

/// Kinds that are one word of the shell, or part of one.
pub(super) const WORDS: &[&str] = &[
    "word",
    "number",
    "string",
    "raw_string",
    "ansi_c_string",
    "translated_string",
    "concatenation",
    "simple_expansion",
    "expansion",
    "command_substitution",
    "process_substitution",
    "arithmetic_expansion",
    "brace_expression",
    "extglob_pattern",
    "regex",
    "variable_name",
    "special_variable_name",
    "test_operator",
];

/// A `command` of this name is a construct that the grammar misread.
pub(super) const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in",
    "select", "{", "}", "!", "[[", "]]", "function", "((", "))",
];

/// Tokens that separate words without a blank beside them.
pub(super) const OPERATORS: &[&str] = &[
    ";", ";;", "&", "&&", "|", "||", "|&", "\n", "(", ")", "<", ">", ">>", "<<", "<<-", "<<<", "&>", "&>>",
    ">&", "<&", ">|", "<>", ">&-", "<&-", "$(", "`", "<(", ">(",
];

thread_local! {
    /// One for each thread: building it costs more than reading a short line.
    static PARSER: std::cell::RefCell<Option<Parser>> = const { std::cell::RefCell::new(None) };
}

pub(super) fn parse(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *slot = Some(parser);
        }
        let parser = slot.as_mut()?;
        let mut reports = 0;
        let mut progress = |_: &ParseState| {
            reports += 1;
            if reports > MAX_PROGRESS_REPORTS {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let bytes = text.as_bytes();
        let tree = parser.parse_with_options(
            &mut |at, _| bytes.get(at..).unwrap_or_default(),
            None,
            Some(options),
        );
        // After a stop the parser would continue the old text with the next one.
        parser.reset();
        tree
    })
}

#[cfg(test)]
pub fn parses(text: &str) -> bool {
    parse(text).is_some_and(|tree| !tree.root_node().has_error())
}

/// Every substitution of the text. Without recursion: the tree may be as deep as the text is long.
pub(super) fn substitutions(root: Node<'_>) -> Substitutions {
    let mut found = Substitutions::new();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        let kind = match node.kind() {
            "command_substitution" => Some(SubstitutionKind::Command),
            "process_substitution" => Some(SubstitutionKind::Process),
            "expansion" => Some(SubstitutionKind::Parameter),
            "arithmetic_expansion" => Some(SubstitutionKind::Arithmetic),
            _ => None,
        };
        if let Some(kind) = kind {
            let end = node.end_byte();
            found.insert(node.start_byte(), Substitution { end, kind });
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}

/// Not an operator: needs a blank between itself and another such node.
pub(super) fn is_solid(node: Node<'_>) -> bool {
    node.is_named()
        && !node.kind().ends_with("_redirect")
        && node.kind() != "comment"
        && !starts_or_ends_in_bracket(node)
        || (!node.is_named() && !OPERATORS.contains(&node.kind()))
}

/// `(a)` and `$(a)` separate themselves; `{ a; }` does not.
fn starts_or_ends_in_bracket(node: Node<'_>) -> bool {
    node.kind() == "subshell"
}

pub(super) fn comment(text: &str, node: Node<'_>) -> Scan<()> {
    let bytes = text.as_bytes();
    let start = node.start_byte();
    let begins = start == 0
        || matches!(
            bytes[start - 1],
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')'
        );
    let ends = matches!(bytes.get(node.end_byte()), None | Some(b'\n'));
    let source = &text[node.byte_range()];
    if begins && ends && source.starts_with('#') && !source.contains('\n') {
        Ok(())
    } else {
        doubt("holds a # that the grammar took for a comment")
    }
}
