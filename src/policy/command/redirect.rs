//! Redirections and here-documents, and the arguments that the grammar mistakes for parts of them.

use super::grammar::{OPERATORS, WORDS};
use super::heredoc;
use super::scan;
use super::walk::{MAX_TREE_DEPTH, Source, Walker};
use super::word::Word;
use super::{Item, Redirect};
use tree_sitter::Node;

impl Walker<'_> {
    /// `a >f b`: the grammar gives `b` to the redirection, the shell to `a`.
    pub(super) fn redirected(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) {
        if depth > MAX_TREE_DEPTH {
            return self.note("is nested too deeply");
        }
        self.tile(node, source, scan::gap_in_command);
        self.settle_cd(true);
        let mut cursor = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
        let body = children
            .iter()
            .find(|child| !child.kind().ends_with("_redirect") && child.kind() != "comment");
        // The grammar hangs the redirection of `a && b >f` on the list; it is b's, and opened where b runs.
        let of_last_command =
            body.is_some_and(|body| matches!(body.kind(), "list" | "pipeline" | "negated_command"));
        if let (Some(body), true) = (body, of_last_command) {
            self.list_member(node, *body, source, depth);
            self.settle_cd(true);
        }
        let folders = self.folders.clone();
        let mut more = Vec::new();
        let mut after = Vec::new();
        for child in &children {
            match child.kind() {
                "file_redirect" => more.extend(self.redirect(*child, source, depth)),
                "herestring_redirect" => self.here_string(*child, source, depth),
                "heredoc_redirect" => more.extend(self.here_document(*child, source, depth, &mut after)),
                _ => {}
            }
        }
        match body {
            Some(body) if body.kind() == "command" => self.command(*body, &more, source, depth),
            Some(body) => {
                if !more.is_empty() {
                    self.note("has words after a redirection that belong to nothing");
                }
                if !of_last_command {
                    self.list_member(node, *body, source, depth);
                }
            }
            None if more.is_empty() => {}
            // `>f touch M` with the command after the target.
            None => self.simple(more, false, source.script_depth, 0),
        }
        // What follows on the line of a here-document: `cat <<E | sh`.
        if !after.is_empty() && after.iter().any(|child: &Node<'_>| child.kind() == "pipeline") {
            self.folders = folders;
        }
        for child in after {
            self.list_member(node, child, source, depth);
        }
    }

    /// Pushes the redirection; returns the words after its target, which are arguments of the command.
    pub(super) fn redirect(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) -> Vec<Word> {
        self.settle_cd(true);
        self.tile(node, source, scan::gap_in_command);
        let mut operator = "";
        let mut words = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_descriptor" => {
                    let next = child.next_sibling().map(|next| next.start_byte());
                    if next != Some(child.end_byte()) {
                        self.note("has a number beside a redirection that is a word of its own");
                    }
                }
                "comment" => {}
                kind if !child.is_named() && OPERATORS.contains(&kind) && operator.is_empty() => {
                    operator = kind
                }
                _ => words.push(self.word(child, source, depth)),
            }
        }
        let closes = operator.ends_with('-');
        if words.is_empty() || closes {
            return words;
        }
        let target = words.remove(0);
        if operator.starts_with('&') && !words.is_empty() {
            // In dash `a &>f b` is `a &` and then `>f b`.
            self.note("uses &> in a way that sh and bash read differently");
        }
        let duplicates = matches!(operator, ">&" | "<&")
            && target.fixed().is_some_and(|text| {
                text == "-"
                    || text
                        .trim_end_matches('-')
                        .bytes()
                        .all(|byte| byte.is_ascii_digit())
            });
        if matches!(operator, ">&" | "<&") && !duplicates {
            // dash refuses it, and bash expands the word twice: `>&'$(cmd)'` runs cmd in spite of the quotes.
            self.note("duplicates a descriptor that is not a number");
        }
        if !duplicates {
            self.reading.items.push(Item::Redirect(Redirect {
                target,
                writes: operator.contains('>'),
                reads: operator.starts_with('<'),
                folders: self.folders.clone(),
            }));
        }
        words
    }

    pub(super) fn here_string(&mut self, node: Node<'_>, source: &Source<'_>, depth: usize) {
        self.tile(node, source, scan::gap_in_command);
        let mut cursor = node.walk();
        for child in node.children(&mut cursor).filter(Node::is_named) {
            drop(self.word(child, source, depth));
        }
    }

    /// Returns further arguments; what follows on the same line is left in `after`.
    pub(super) fn here_document<'t>(
        &mut self,
        node: Node<'t>,
        source: &Source<'_>,
        depth: usize,
        after: &mut Vec<Node<'t>>,
    ) -> Vec<Word> {
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        let range_of = |kind: &str| {
            children
                .iter()
                .find(|child| child.kind() == kind)
                .map(Node::byte_range)
        };
        let (delimiter, body, end) = (
            range_of("heredoc_start"),
            range_of("heredoc_body"),
            range_of("heredoc_end"),
        );
        let mut more = Vec::new();
        let mut at = node.start_byte();
        for child in &children {
            match child.kind() {
                // The text of the document is not made of words; `heredoc::check` reads it as the shell does.
                "heredoc_body" => {
                    self.nested(*child, source, depth);
                    break;
                }
                _ => {
                    let gap = source.text.get(at..child.start_byte()).unwrap_or("\0");
                    self.check(if gap.is_empty() {
                        Ok(())
                    } else {
                        scan::gap_in_command(gap)
                    });
                    at = child.end_byte();
                }
            }
            match child.kind() {
                "file_redirect" => more.extend(self.redirect(*child, source, depth)),
                "herestring_redirect" => self.here_string(*child, source, depth),
                "heredoc_start" | "file_descriptor" | "comment" => {}
                kind if !child.is_named() => {
                    if !matches!(kind, "<<" | "<<-" | "&&" | "||" | "|" | "|&") {
                        self.note("has an operator in a here-document that is not read here");
                    }
                }
                kind if WORDS.contains(&kind) => more.push(self.word(*child, source, depth)),
                _ => after.push(*child),
            }
        }
        match (delimiter, end) {
            (Some(delimiter), Some(end)) => {
                let body = body.unwrap_or(end.start..end.start);
                let strips_tabs = children.iter().any(|child| child.kind() == "<<-");
                let found = heredoc::Found {
                    strips_tabs,
                    delimiter,
                    body,
                    end,
                };
                self.check(heredoc::check(source.text, &found, &source.found));
            }
            _ => self.note("has a here-document without its end"),
        }
        more
    }
}
