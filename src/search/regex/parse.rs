//! JavaScript regular expression syntax (ECMAScript with Annex B, no `u` or `v` flag) into a tree.
//! Whether a pattern is valid is the running V8's decision and was made before; what is refused here is what has
//! no meaning on UTF-8 lines.

use super::set::CharSet;
use crate::error::{Error, ErrorCode, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Empty,
    /// One character of the set.
    Set(CharSet),
    LineStart,
    LineEnd,
    WordBoundary {
        negated: bool,
    },
    Capture {
        index: u32,
        node: Box<Node>,
    },
    Look {
        behind: bool,
        negated: bool,
        node: Box<Node>,
    },
    /// The text of a group; `ignore_case` as in force where it stands.
    Back {
        group: u32,
        ignore_case: bool,
    },
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
        lazy: bool,
    },
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
}

/// Deepest nesting of groups: the translation recurses.
const MAX_DEPTH: u32 = 100;

pub(super) fn parse(pattern: &str, ignore_case: bool) -> Result<Node> {
    let chars: Vec<char> = pattern.chars().collect();
    let groups = scan_groups(&chars);
    let mut parser = Parser {
        pattern,
        chars: &chars,
        at: 0,
        groups,
        captures: 0,
        depth: 0,
        ignore_case,
        dot_all: false,
    };
    let node = parser.disjunction()?;
    if parser.at < chars.len() {
        return Err(parser.invalid("a closing parenthesis without its opening one"));
    }
    Ok(node)
}

/// The names of the capturing groups, in order. `\1` and `\k` depend on groups further on.
fn scan_groups(chars: &[char]) -> Vec<Option<String>> {
    let mut groups = Vec::new();
    let mut in_class = false;
    let mut at = 0;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => match &chars[at + 1..] {
                ['?', '<', next, ..] if !matches!(next, '=' | '!') => {
                    let name = chars[at + 3..].iter().take_while(|&&c| c != '>').collect();
                    groups.push(Some(name));
                }
                ['?', ..] => {}
                _ => groups.push(None),
            },
            _ => {}
        }
        at += 1;
    }
    groups
}

struct Parser<'a> {
    pattern: &'a str,
    chars: &'a [char],
    at: usize,
    groups: Vec<Option<String>>,
    captures: u32,
    depth: u32,
    ignore_case: bool,
    dot_all: bool,
}

/// An escape: one character (where a class may build a range) or a set.
enum Escaped {
    Char(u32),
    Set(CharSet),
}

impl Parser<'_> {
    fn invalid(&self, reason: &str) -> Error {
        let message = format!("Invalid regular expression: /{}/: {reason}", self.pattern);
        Error::new(ErrorCode::InvalidRegex, message)
    }

    fn unsupported(&self, what: &str) -> Error {
        let message = format!(
            "the pattern /{}/ uses {what}, which this search cannot translate exactly",
            self.pattern
        );
        Error::new(ErrorCode::UnsupportedRegex, message)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, text: &str) -> bool {
        let matches = text
            .chars()
            .enumerate()
            .all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if matches {
            self.at += text.chars().count();
        }
        matches
    }

    fn disjunction(&mut self) -> Result<Node> {
        let mut alternatives = vec![self.alternative()?];
        while self.eat("|") {
            alternatives.push(self.alternative()?);
        }
        Ok(match alternatives.pop() {
            Some(only) if alternatives.is_empty() => only,
            last => Node::Alternate(alternatives.into_iter().chain(last).collect()),
        })
    }

    fn alternative(&mut self) -> Result<Node> {
        let mut terms = Vec::new();
        while let Some(c) = self.peek() {
            if matches!(c, '|' | ')') {
                break;
            }
            let (atom, repeatable) = self.term(c)?;
            terms.push(self.quantified(atom, repeatable)?);
        }
        Ok(match terms.pop() {
            None => Node::Empty,
            Some(only) if terms.is_empty() => only,
            last => Node::Concat(terms.into_iter().chain(last).collect()),
        })
    }

    /// One atom or assertion, and whether a quantifier may follow it.
    fn term(&mut self, c: char) -> Result<(Node, bool)> {
        self.at += 1;
        match c {
            '^' => Ok((Node::LineStart, false)),
            '$' => Ok((Node::LineEnd, false)),
            '(' => self.group(),
            '.' if self.dot_all => Ok((Node::Set(CharSet::default().negate()), true)),
            '.' => Ok((Node::Set(CharSet::line_ends().negate()), true)),
            '[' => Ok((self.class()?, true)),
            '\\' => self.atom_escape(),
            '*' | '+' | '?' => Err(self.invalid("Nothing to repeat")),
            '{' if self.braces(self.at - 1).is_some() => Err(self.invalid("Nothing to repeat")),
            _ => Ok((self.literal(u32::from(c)), true)),
        }
    }

    fn literal(&self, c: u32) -> Node {
        self.set(CharSet::new(&[(c, c)]))
    }

    fn set(&self, set: CharSet) -> Node {
        Node::Set(if self.ignore_case { set.ignore_case() } else { set })
    }

    fn quantified(&mut self, atom: Node, repeatable: bool) -> Result<Node> {
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.braces(self.at) {
                Some((min, max, end)) => {
                    self.at = end - 1;
                    (min, max)
                }
                None => return Ok(atom),
            },
            _ => return Ok(atom),
        };
        if !repeatable {
            return Err(self.invalid("Nothing to repeat"));
        }
        if max.is_some_and(|max| max < min) {
            return Err(self.invalid("numbers out of order in {} quantifier"));
        }
        self.at += 1;
        let lazy = self.eat("?");
        Ok(Node::Repeat {
            node: Box::new(atom),
            min,
            max,
            lazy,
        })
    }

    /// `{2}`, `{2,}`, `{2,3}` at `start`: the bounds and the index behind. Anything else is plain text.
    fn braces(&self, start: usize) -> Option<(u32, Option<u32>, usize)> {
        let mut at = start + 1;
        let number = |at: &mut usize| {
            let digits: String = self.chars[*at..]
                .iter()
                .take_while(|c| c.is_ascii_digit())
                .collect();
            *at += digits.len();
            (!digits.is_empty()).then(|| digits.parse().unwrap_or(u32::MAX))
        };
        let min = number(&mut at)?;
        let max = if self.chars.get(at) == Some(&',') {
            at += 1;
            number(&mut at)
        } else {
            Some(min)
        };
        (self.chars.get(at) == Some(&'}')).then_some((min, max, at + 1))
    }

    fn group(&mut self) -> Result<(Node, bool)> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.unsupported("groups nested more than 100 deep"));
        }
        let flags = (self.ignore_case, self.dot_all);
        let mut look = None;
        let mut capture = None;
        if self.eat("?=") {
            look = Some((false, false));
        } else if self.eat("?!") {
            look = Some((false, true));
        } else if self.eat("?<=") {
            look = Some((true, false));
        } else if self.eat("?<!") {
            look = Some((true, true));
        } else if self.eat("?:") {
        } else if self.eat("?<") {
            while self.peek().is_some_and(|c| c != '>') {
                self.at += 1;
            }
            self.at += 1;
            self.captures += 1;
            capture = Some(self.captures);
        } else if self.eat("?") {
            self.modifiers()?;
        } else {
            self.captures += 1;
            capture = Some(self.captures);
        }
        let inner = self.disjunction()?;
        if !self.eat(")") {
            return Err(self.invalid("Unterminated group"));
        }
        self.depth -= 1;
        (self.ignore_case, self.dot_all) = flags;
        let node = match (look, capture) {
            // Annex B: a look-ahead may be repeated, a look-behind may not.
            (Some((behind, negated)), _) => {
                return Ok((
                    Node::Look {
                        behind,
                        negated,
                        node: Box::new(inner),
                    },
                    !behind,
                ));
            }
            (None, Some(index)) => Node::Capture {
                index,
                node: Box::new(inner),
            },
            (None, None) => inner,
        };
        Ok((node, true))
    }

    /// `(?i:`, `(?s-i:` behind its `?`; only newer V8s accept them.
    fn modifiers(&mut self) -> Result<()> {
        let mut on = true;
        loop {
            let Some(c) = self.peek() else {
                return Err(self.invalid("Invalid group"));
            };
            self.at += 1;
            match c {
                ':' => return Ok(()),
                '-' if on => on = false,
                'i' => self.ignore_case = on,
                's' => self.dot_all = on,
                'm' => return Err(self.unsupported("the modifier m")),
                _ => return Err(self.invalid("Invalid group")),
            }
        }
    }

    fn atom_escape(&mut self) -> Result<(Node, bool)> {
        let Some(c) = self.peek() else {
            return Err(self.invalid("\\ at end of pattern"));
        };
        match c {
            'b' | 'B' => {
                self.at += 1;
                return Ok((Node::WordBoundary { negated: c == 'B' }, false));
            }
            '1'..='9' => {
                if let Some(group) = self.back_reference() {
                    return Ok((
                        Node::Back {
                            group,
                            ignore_case: self.ignore_case,
                        },
                        true,
                    ));
                }
            }
            'k' if self.groups.iter().any(Option::is_some) => {
                self.at += 1;
                return Ok((self.named_reference()?, true));
            }
            _ => {}
        }
        Ok((
            match self.escape(false)? {
                Escaped::Char(c) => {
                    self.whole(c)?;
                    self.literal(c)
                }
                Escaped::Set(set) => self.set(set),
            },
            true,
        ))
    }

    /// `\12` is group 12 if there are so many, else octal or plain digits.
    fn back_reference(&mut self) -> Option<u32> {
        let digits: String = self.chars[self.at..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .collect();
        let group: u32 = digits.parse().ok()?;
        if group as usize > self.groups.len() {
            return None;
        }
        self.at += digits.len();
        Some(group)
    }

    fn named_reference(&mut self) -> Result<Node> {
        if !self.eat("<") {
            return Err(self.invalid("Invalid named reference"));
        }
        let name: String = self.chars[self.at..].iter().take_while(|&&c| c != '>').collect();
        self.at += name.chars().count() + 1;
        let mut named = (1..)
            .zip(&self.groups)
            .filter(|(_, group)| group.as_deref() == Some(name.as_str()));
        match (named.next(), named.next()) {
            (Some((group, _)), None) => Ok(Node::Back {
                group,
                ignore_case: self.ignore_case,
            }),
            (Some(_), Some(_)) => Err(self.unsupported("a reference to a name that several groups have")),
            (None, _) if name.contains('\\') => Err(self.unsupported("an escape in a group name")),
            (None, _) => Err(self.invalid("Invalid named capture referenced")),
        }
    }

    /// Behind a backslash; what atoms and classes share.
    fn escape(&mut self, in_class: bool) -> Result<Escaped> {
        let Some(c) = self.peek() else {
            return Err(self.invalid("\\ at end of pattern"));
        };
        self.at += 1;
        Ok(match c {
            'd' => Escaped::Set(CharSet::digits()),
            'D' => Escaped::Set(CharSet::digits().negate()),
            'w' => Escaped::Set(CharSet::words()),
            'W' => Escaped::Set(CharSet::words().negate()),
            's' => Escaped::Set(CharSet::spaces()),
            'S' => Escaped::Set(CharSet::spaces().negate()),
            'b' if in_class => Escaped::Char(0x08),
            't' => Escaped::Char(0x09),
            'n' => Escaped::Char(0x0A),
            'v' => Escaped::Char(0x0B),
            'f' => Escaped::Char(0x0C),
            'r' => Escaped::Char(0x0D),
            'c' => Escaped::Char(self.control(in_class)),
            'x' => Escaped::Char(self.hex(2).unwrap_or(u32::from('x'))),
            'u' => Escaped::Char(self.unicode()),
            '0'..='7' => Escaped::Char(self.octal(c)),
            _ => Escaped::Char(u32::from(c)),
        })
    }

    /// `\cA`; without a letter the backslash is text and the `c` is read again.
    fn control(&mut self, in_class: bool) -> u32 {
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || (in_class && (c.is_ascii_digit() || c == '_')) => {
                self.at += 1;
                u32::from(c) % 32
            }
            _ => {
                self.at -= 1;
                u32::from('\\')
            }
        }
    }

    fn hex(&mut self, length: usize) -> Option<u32> {
        let digits = self.chars.get(self.at..self.at + length)?;
        let value = digits
            .iter()
            .try_fold(0, |value, c| Some(value * 16 + c.to_digit(16)?))?;
        self.at += length;
        Some(value)
    }

    fn unicode(&mut self) -> u32 {
        let Some(first) = self.hex(4) else {
            return u32::from('u');
        };
        let before = self.at;
        if (0xD800..=0xDBFF).contains(&first)
            && self.eat("\\u")
            && let Some(second @ 0xDC00..=0xDFFF) = self.hex(4)
        {
            return 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        }
        self.at = before;
        first
    }

    /// Annex B: up to three octal digits, at most 0o377.
    fn octal(&mut self, first: char) -> u32 {
        let mut value = first.to_digit(8).unwrap_or(0);
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) {
            if value * 8 + digit > 0o377 {
                break;
            }
            value = value * 8 + digit;
            self.at += 1;
        }
        value
    }

    fn whole(&self, c: u32) -> Result<()> {
        if (0xD800..=0xDFFF).contains(&c) {
            return Err(self.unsupported(&format!("half a character (\\u{c:04X})")));
        }
        Ok(())
    }

    /// Behind the `[`.
    fn class(&mut self) -> Result<Node> {
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.invalid("Unterminated character class")),
                Some(']') => break,
                Some(_) => self.class_item(&mut ranges)?,
            }
        }
        self.at += 1;
        let set = CharSet::new(&ranges);
        let Some(mut set) = set.with_whole_characters() else {
            return Err(self.unsupported("half a character in a class"));
        };
        if self.ignore_case {
            set = set.ignore_case();
        }
        Ok(Node::Set(if negated { set.negate() } else { set }))
    }

    fn class_item(&mut self, ranges: &mut Vec<(u32, u32)>) -> Result<()> {
        let low = self.class_atom()?;
        let dash = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|&c| c != ']');
        if !dash {
            add(ranges, low);
            return Ok(());
        }
        self.at += 1;
        let high = self.class_atom()?;
        match (low, high) {
            (Escaped::Char(low), Escaped::Char(high)) if low > high => {
                return Err(self.invalid("Range out of order in character class"));
            }
            (Escaped::Char(low), Escaped::Char(high)) => ranges.push((low, high)),
            // Annex B: `[\w-x]` is the set, a dash and an x.
            (low, high) => {
                add(ranges, low);
                add(ranges, Escaped::Char(u32::from('-')));
                add(ranges, high);
            }
        }
        Ok(())
    }

    fn class_atom(&mut self) -> Result<Escaped> {
        let Some(c) = self.peek() else {
            return Err(self.invalid("Unterminated character class"));
        };
        self.at += 1;
        if c == '\\' {
            self.escape(true)
        } else {
            Ok(Escaped::Char(u32::from(c)))
        }
    }
}

fn add(ranges: &mut Vec<(u32, u32)>, item: Escaped) {
    match item {
        Escaped::Char(c) => ranges.push((c, c)),
        Escaped::Set(set) => ranges.extend_from_slice(set.ranges()),
    }
}
