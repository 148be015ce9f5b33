//! Prints a parsed JavaScript pattern for the engine that runs it, with the same meaning.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::parse::Node;
use super::set::CharSet;
use crate::error::{Error, ErrorCode, Result};

/// Whether the linear-time engine cannot hold the meaning.
pub(super) fn needs_backtracking(node: &Node) -> bool {
    match node {
        Node::Look { .. } | Node::Back { .. } | Node::WordBoundary { negated: true } => true,
        Node::Capture { node, .. } | Node::Repeat { node, .. } => needs_backtracking(node),
        Node::Concat(nodes) | Node::Alternate(nodes) => nodes.iter().any(needs_backtracking),
        Node::Empty
        | Node::Set(_)
        | Node::LineStart
        | Node::LineEnd
        | Node::WordBoundary { negated: false } => false,
    }
}

/// For `regex`, over a whole buffer of lines. No set holds LF, so that a match stays in its line; look-around,
/// `\B` and back-references are left open, which finds every line that can match and some that do not.
pub(super) fn linear(node: &Node) -> String {
    let mut printer = Printer {
        out: String::new(),
        exact: false,
        captures: BTreeMap::new(),
        opened: 0,
    };
    printer.print(node);
    printer.out
}

/// For `fancy-regex`, over the text of one line.
pub(super) fn backtracking(node: &Node, pattern: &str) -> Result<String> {
    if let Some(what) = untranslatable(node) {
        let message =
            format!("the pattern /{pattern}/ uses {what}, which this search cannot translate exactly");
        return Err(Error::new(ErrorCode::UnsupportedRegex, message));
    }
    let mut printer = Printer {
        out: String::new(),
        exact: true,
        captures: BTreeMap::new(),
        opened: 0,
    };
    printer.print(node);
    Ok(printer.out)
}

struct Printer {
    out: String,
    /// For the backtracking engine.
    exact: bool,
    /// JavaScript's group numbers to the printed ones; a group is added when it closes, since a reference that
    /// stands before or inside its group is always empty.
    captures: BTreeMap<u32, u32>,
    opened: u32,
}

impl Printer {
    fn print(&mut self, node: &Node) {
        match node {
            Node::Empty => {}
            Node::Set(set) => self.set(set),
            Node::LineStart => self.out.push_str(if self.exact { "\\A" } else { "(?m:^)" }),
            Node::LineEnd => self.out.push_str(if self.exact { "\\z" } else { "(?m:$)" }),
            Node::WordBoundary { negated } => self.boundary(*negated),
            Node::Capture { index, node } => self.capture(*index, node),
            Node::Look {
                behind,
                negated,
                node,
            } => self.look(*behind, *negated, node),
            Node::Back { group, .. } => self.back(*group),
            Node::Repeat { node, min, max, lazy } => self.repeat(node, *min, *max, *lazy),
            Node::Concat(nodes) => nodes.iter().for_each(|node| self.atom(node)),
            Node::Alternate(nodes) => {
                for (index, node) in nodes.iter().enumerate() {
                    if index > 0 {
                        self.out.push('|');
                    }
                    self.print(node);
                }
            }
        }
    }

    /// As part of a sequence.
    fn atom(&mut self, node: &Node) {
        if matches!(node, Node::Alternate(_)) {
            self.grouped(node)
        } else {
            self.print(node)
        }
    }

    fn grouped(&mut self, node: &Node) {
        self.out.push_str("(?:");
        self.print(node);
        self.out.push(')');
    }

    fn set(&mut self, set: &CharSet) {
        let set = set.without(&CharSet::new(&[(0x0A, 0x0A), (0xD800, 0xDFFF)]));
        let ranges = set.ranges();
        match ranges {
            [] => self.out.push_str("[^\\u{0}-\\u{10ffff}]"),
            [(low, high)] if low == high => self.code_point(*low),
            _ => {
                self.out.push('[');
                for &(low, high) in ranges {
                    self.code_point(low);
                    if high > low {
                        self.out.push('-');
                        self.code_point(high);
                    }
                }
                self.out.push(']');
            }
        }
    }

    /// Spelled as a number, so that no character can become syntax of the other engine.
    fn code_point(&mut self, c: u32) {
        let _ = write!(self.out, "\\u{{{c:x}}}");
    }

    fn boundary(&mut self, negated: bool) {
        const WORD: &str = "[0-9A-Za-z_]";
        match (self.exact, negated) {
            (false, false) => self.out.push_str("(?-u:\\b)"),
            (false, true) => {}
            (true, false) => {
                let _ = write!(self.out, "(?:(?<={WORD})(?!{WORD})|(?<!{WORD})(?={WORD}))");
            }
            (true, true) => {
                let _ = write!(self.out, "(?:(?<={WORD})(?={WORD})|(?<!{WORD})(?!{WORD}))");
            }
        }
    }

    fn capture(&mut self, index: u32, node: &Node) {
        if !self.exact {
            return self.grouped(node);
        }
        self.opened += 1;
        let printed = self.opened;
        self.out.push('(');
        self.print(node);
        self.out.push(')');
        self.captures.insert(index, printed);
    }

    fn look(&mut self, behind: bool, negated: bool, node: &Node) {
        if !self.exact {
            return;
        }
        self.out.push_str(match (behind, negated) {
            (false, false) => "(?=",
            (false, true) => "(?!",
            (true, false) => "(?<=",
            (true, true) => "(?<!",
        });
        self.print(node);
        self.out.push(')');
    }

    fn back(&mut self, group: u32) {
        if !self.exact {
            self.out.push_str("(?:[^\\n]*)");
        } else if let Some(printed) = self.captures.get(&group) {
            // A group that took no part matches nothing, and a reference to it the empty text.
            let _ = write!(self.out, "(?({printed})\\{printed}|)");
        }
    }

    /// Whether it can only match the empty text.
    fn is_zero_width(&self, node: &Node) -> bool {
        match node {
            Node::Empty | Node::LineStart | Node::LineEnd | Node::WordBoundary { .. } | Node::Look { .. } => {
                true
            }
            Node::Set(_) => false,
            Node::Back { group, .. } => self.exact && !self.captures.contains_key(group),
            Node::Capture { node, .. } => self.is_zero_width(node),
            Node::Repeat { node, max, .. } => *max == Some(0) || self.is_zero_width(node),
            Node::Concat(nodes) | Node::Alternate(nodes) => nodes.iter().all(|node| self.is_zero_width(node)),
        }
    }

    fn repeat(&mut self, node: &Node, min: u32, max: Option<u32>, lazy: bool) {
        if max == Some(0) {
            return;
        }
        if self.is_zero_width(node) {
            // An empty round is never taken beyond the least number, so an assertion that is repeated counts
            // once or not at all.
            if min > 0 {
                self.atom(node);
            }
            return;
        }
        self.grouped(node);
        let _ = match (min, max) {
            (0, None) => write!(self.out, "*"),
            (1, None) => write!(self.out, "+"),
            (0, Some(1)) => write!(self.out, "?"),
            (min, None) => write!(self.out, "{{{min},}}"),
            (min, Some(max)) if min == max => write!(self.out, "{{{min}}}"),
            (min, Some(max)) => write!(self.out, "{{{min},{max}}}"),
        };
        if lazy {
            self.out.push('?');
        }
    }
}

/// A group, as a reference to it sees it.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Inside a look-behind, which JavaScript reads from right to left.
    behind: bool,
    /// Inside a repetition that may skip it in a later round: JavaScript forgets it then, the engine does not.
    forgettable: bool,
    /// Inside a negated look-around, after which it is forgotten.
    negated: bool,
}

/// The name of what has another meaning in the engine.
fn untranslatable(node: &Node) -> Option<&'static str> {
    let mut groups = BTreeMap::new();
    let mut found = None;
    inspect(node, Scope::default(), &mut groups, &mut found);
    found
}

#[derive(Clone, Copy, Default)]
struct Scope {
    place: Place,
    in_loop: bool,
}

fn inspect(node: &Node, scope: Scope, groups: &mut BTreeMap<u32, Place>, found: &mut Option<&'static str>) {
    match node {
        Node::Back { group, ignore_case } => {
            let known = groups.get(group);
            if scope.place.behind || known.is_some_and(|group| group.behind) {
                *found = Some("a back-reference and a look-behind together");
            } else if known.is_some_and(|group| group.forgettable) {
                *found = Some("a back-reference to a group that a repetition may reset");
            } else if known.is_some_and(|group| group.negated) {
                *found = Some("a back-reference to a group in a negative look-around");
            } else if *ignore_case && known.is_some() {
                *found = Some("a back-reference where case is ignored");
            }
        }
        Node::Capture { index, node } => {
            inspect(node, scope, groups, found);
            groups.insert(*index, scope.place);
        }
        Node::Look {
            behind,
            negated,
            node,
        } => {
            let mut inner = scope;
            inner.place.behind |= behind;
            inner.place.negated |= negated;
            inspect(node, inner, groups, found);
        }
        Node::Repeat { node, min, max, .. } => {
            let mut inner = scope;
            inner.place.forgettable |= scope.in_loop && *min == 0;
            inner.in_loop |= max.is_none_or(|max| max > 1);
            inspect(node, inner, groups, found);
        }
        Node::Concat(nodes) => nodes.iter().for_each(|node| inspect(node, scope, groups, found)),
        Node::Alternate(nodes) => {
            let mut inner = scope;
            inner.place.forgettable |= scope.in_loop;
            nodes.iter().for_each(|node| inspect(node, inner, groups, found));
        }
        Node::Empty | Node::Set(_) | Node::LineStart | Node::LineEnd | Node::WordBoundary { .. } => {}
    }
}
