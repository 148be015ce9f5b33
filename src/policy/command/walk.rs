//! From the grammar's tree to the list of what runs, in the order of the line, with the strict check of every
//! node on the way.

use super::grammar::{self, LISTS, WORDS};
use super::scan::{self, Scan, Substitutions};
use super::word::{Piece, Word};
use super::{Doubt, Folders, MAX_COMMANDS, MAX_LINE_BYTES, MAX_SCRIPT_DEPTH, Reading};
use crate::policy::place::Ground;
use tree_sitter::Node;

/// Deeper nesting is not followed: the stack of the caller's thread is not ours to use up.
pub(super) const MAX_TREE_DEPTH: usize = 200;

/// What one line and all scripts inside it may use up together.
pub(super) struct Budget {
    pub bytes: usize,
    pub commands: usize,
}

pub fn read(line: &str, folders: Folders, ground: &Ground) -> Reading {
    with_walker(folders, ground, |walker| walker.script(line, 0))
}

pub fn read_arguments(words: &[String], folders: Folders, ground: &Ground) -> Reading {
    let words = words.iter().map(|word| Word::quoted(word)).collect();
    with_walker(folders, ground, |walker| walker.simple(words, false, 0, 0))
}

fn with_walker(folders: Folders, ground: &Ground, run: impl FnOnce(&mut Walker<'_>)) -> Reading {
    let mut walker = Walker {
        ground,
        folders,
        before_cd: None,
        last_operator: "",
        budget: Budget {
            bytes: 2 * MAX_LINE_BYTES,
            commands: MAX_COMMANDS,
        },
        reading: Reading::default(),
    };
    run(&mut walker);
    walker.reading
}

/// The text of one script and what the grammar found in it.
pub(super) struct Source<'t> {
    pub text: &'t str,
    pub found: Substitutions,
    pub script_depth: usize,
}

pub(super) struct Walker<'g> {
    pub ground: &'g Ground,
    pub folders: Folders,
    /// Where we were before a `cd` that may have failed; settled by the operator that follows.
    pub before_cd: Option<Folders>,
    pub last_operator: &'static str,
    pub budget: Budget,
    pub reading: Reading,
}

impl Walker<'_> {
    pub(super) fn doubt(&mut self, Doubt(text): Doubt) {
        let doubt = Doubt(text);
        if !self.reading.doubts.contains(&doubt) {
            self.reading.doubts.push(doubt);
        }
    }

    pub(super) fn check(&mut self, outcome: Scan<()>) {
        if let Err(doubt) = outcome {
            self.doubt(doubt);
        }
    }

    pub(super) fn note(&mut self, text: &str) {
        self.doubt(Doubt(text.to_owned()));
    }

    /// Reads the text of a script that runs here.
    pub(super) fn script(&mut self, text: &str, script_depth: usize) {
        if script_depth > MAX_SCRIPT_DEPTH {
            return self.note("nests scripts in scripts too deeply");
        }
        match self.budget.bytes.checked_sub(text.len()) {
            Some(left) => self.budget.bytes = left,
            None => return self.note("holds more script text than can be judged"),
        }
        if text.contains('\0') {
            return self.note("holds a NUL character");
        }
        let Some(tree) = grammar::parse(text) else {
            return self.note("is too complex to be read");
        };
        let root = tree.root_node();
        let source = Source {
            text,
            found: grammar::substitutions(root),
            script_depth,
        };
        if root.has_error() {
            self.note("is not complete shell syntax");
        }
        self.check(scan::gap_in_list(&text[..root.start_byte()]));
        self.check(scan::gap_in_list(&text[root.end_byte()..]));
        self.last_operator = "";
        self.list(root, &source, 0);
    }

    pub(super) fn list(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) {
        if depth > MAX_TREE_DEPTH {
            return self.note("is nested too deeply");
        }
        self.tile(node, source, scan::gap_in_list);
        if matches!(node.kind(), "compound_statement" | "subshell" | "do_group") && is_empty(node) {
            self.note("holds a group without a command");
        }
        let before = self.folders.clone();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.list_member(node, child, source, depth);
        }
        self.leave(node.kind(), before);
    }

    pub(super) fn list_member(
        &mut self,
        parent: Node<'_>,
        child: Node<'_>,
        source: &Source<'_>,
        depth: usize,
    ) {
        let kind = child.kind();
        if !child.is_named() {
            match kind {
                "&&" => self.last_operator = "&&",
                "||" | ";" | "&" | "|" | "|&" | "\n" => self.last_operator = ";",
                ";;" if parent.kind() == "case_item" => self.last_operator = ";",
                ";;" => self.note("ends a case where there is none"),
                // In dash `((` opens two subshells and `function f` runs a program of that name.
                "((" | "))" => self.note("uses ((...)), which sh and bash read differently"),
                "function" | "select" => self.note("uses a keyword of bash that sh does not know"),
                ";&" | ";;&" => self.note("uses a case ending that sh does not know"),
                _ => {}
            }
            return;
        }
        if kind == "negated_command" && parent.kind() == "pipeline" && parent.child(0) != Some(child) {
            self.note("negates a command inside a pipeline");
        }
        if LISTS.contains(&kind) && !WORDS.contains(&kind) {
            return self.list(child, source, depth + 1);
        }
        match kind {
            "command" => self.command(child, &[], source, depth),
            "redirected_statement" => self.redirected(child, source, depth + 1),
            "declaration_command" | "unset_command" | "test_command" => {
                self.plain_words(child, source, depth)
            }
            "variable_assignment" => self.assignment(child, source, depth),
            "variable_assignments" => {
                self.tile(child, source, scan::gap_in_command);
                let mut cursor = child.walk();
                for assignment in child.children(&mut cursor) {
                    self.assignment(assignment, source, depth);
                }
            }
            "comment" => {}
            "file_redirect" => drop(self.redirect(child, source, depth)),
            // Words of `for`, `case` and the name of a function. An empty answer means that it was doubted.
            word if WORDS.contains(&word) => drop(self.word(child, source, depth)),
            _ => {
                self.note("uses a construct that is not read here");
                if !child.is_error() || parent.child_count() > 0 {
                    self.descend(child, source, depth + 1);
                }
            }
        }
    }

    /// Commands inside what is not understood still count, for denials.
    pub(super) fn descend(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) {
        if depth > MAX_TREE_DEPTH {
            return self.note("is nested too deeply");
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if child.is_named() {
                self.list_member(node, child, source, depth);
            }
        }
    }

    /// The children of a node and blanks between them make up its text.
    pub(super) fn tile(&mut self, node: Node<'_>, source: &Source<'_>, gap_rule: fn(&str) -> Scan<()>) {
        let mut at = node.start_byte();
        let mut last: Option<Node<'_>> = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            let gap = source.text.get(at..child.start_byte()).unwrap_or("\0");
            self.check(gap_rule(gap));
            if gap.is_empty() && last.is_some_and(|last| grammar::is_solid(last) && grammar::is_solid(child))
            {
                self.note("joins words that the grammar took apart");
            }
            if child.kind() == "comment" {
                self.check(grammar::comment(source.text, child));
            }
            if child.is_missing() {
                self.note("is not complete shell syntax");
            }
            at = child.end_byte();
            last = Some(child);
        }
        if let Some(rest) = source.text.get(at..node.end_byte()) {
            self.check(gap_rule(rest));
        }
    }

    /// One word node; what runs inside it goes first.
    pub(super) fn word(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) -> Word {
        self.nested(node, source, depth);
        match scan::word(source.text, node.start_byte(), node.end_byte(), &source.found) {
            Ok((word, end)) if end == node.end_byte() => {
                let digits = source.text[node.byte_range()]
                    .bytes()
                    .all(|byte| byte.is_ascii_digit());
                if digits && matches!(source.text.as_bytes().get(end), Some(b'<' | b'>')) {
                    self.note("has a number that the shell takes for the next redirection's");
                }
                word
            }
            Ok(_) => {
                self.note("holds an operator where the grammar saw a word");
                unknown()
            }
            Err(doubt) => {
                self.doubt(doubt);
                unknown()
            }
        }
    }

    /// Substitutions below `node`, and itself if it is one.
    pub(super) fn nested(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) {
        if depth > MAX_TREE_DEPTH {
            return self.note("is nested too deeply");
        }
        match node.kind() {
            "command_substitution" | "process_substitution" => return self.list(node, source, depth + 1),
            "expansion" => self.check(scan::parameter(
                source.text,
                node.start_byte(),
                node.end_byte(),
                &source.found,
            )),
            "arithmetic_expansion" => self.check(scan::arithmetic(&source.text[node.byte_range()])),
            "ERROR" => self.note("is not complete shell syntax"),
            "extglob_pattern" if source.text[node.byte_range()].contains('(') => {
                self.note("uses a pattern that sh does not know");
            }
            _ => {}
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.nested(child, source, depth + 1);
        }
    }

    pub(super) fn command(&mut self, node: Node<'_>, more: &[Word], source: &Source<'_>, depth: usize) {
        self.settle_cd(true);
        self.tile(node, source, scan::gap_in_command);
        let mut words = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_assignment" => self.assignment(child, source, depth),
                "file_redirect" => words.extend(self.redirect(child, source, depth)),
                "herestring_redirect" => self.here_string(child, source, depth),
                "comment" => {}
                _ => words.push(self.word(child, source, depth)),
            }
        }
        words.extend_from_slice(more);
        self.simple(words, false, source.script_depth, 0);
    }

    /// `NAME=value`.
    pub(super) fn assignment(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) {
        if node.kind() != "variable_assignment" {
            return self.note("uses a construct that is not read here");
        }
        self.settle_cd(true);
        self.nested(node, source, depth);
        let text = source.text;
        let start = node.start_byte();
        let length = scan::name_length(&text[start..node.end_byte()]);
        let name = text[start..start + length].to_owned();
        let mut at = start + length;
        at += usize::from(text.as_bytes().get(at) == Some(&b'+'));
        // A subscript or a list: bash only, and a subscript is evaluated.
        if length == 0 || text.as_bytes().get(at) != Some(&b'=') {
            return self.note("assigns to part of an array");
        }
        let value = match scan::word(text, at + 1, node.end_byte(), &source.found) {
            Ok((value, end)) if end == node.end_byte() => value,
            Ok(_) => {
                self.note("assigns a list");
                unknown()
            }
            Err(doubt) => {
                self.doubt(doubt);
                unknown()
            }
        };
        self.assigned(name, value);
    }

    /// `export A=b`, `unset a`, `[ -f x ]`: the grammar gives them parts, the shell words.
    pub(super) fn plain_words(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) {
        self.settle_cd(true);
        self.nested(node, source, depth);
        let (text, end) = (source.text, node.end_byte());
        let mut words: Vec<Word> = Vec::new();
        let mut at = node.start_byte();
        while at < end {
            match scan::word(text, at, end, &source.found) {
                // An operator: `[ a && b ]` are two commands, `[[ a < b ]]` reads from b in dash.
                Ok((_, stop)) if stop == at => {
                    self.note("holds an operator inside a test or a declaration");
                    break;
                }
                Ok((word, stop)) => {
                    words.push(word);
                    at = stop;
                }
                Err(doubt) => {
                    self.doubt(doubt);
                    break;
                }
            }
            let blanks = text[at..end]
                .bytes()
                .take_while(|byte| matches!(byte, b' ' | b'\t'))
                .count();
            at += blanks;
        }
        if matches!(node.kind(), "declaration_command") {
            for word in words.clone().iter().skip(1) {
                let start = word.fixed_start();
                if let Some((name, _)) = start.split_once('=') {
                    let value = word.without_start(name.chars().count() + 1);
                    self.assigned(name.to_owned(), value.unwrap_or_else(|| Word::quoted("")));
                }
            }
        }
        self.simple(words, false, source.script_depth, 0);
    }
}

fn is_empty(group: Node<'_>) -> bool {
    let mut cursor = group.walk();
    group
        .named_children(&mut cursor)
        .all(|child| child.kind() == "comment")
}

pub(super) fn unknown() -> Word {
    Word {
        pieces: vec![Piece::Unknown],
    }
}
