//! A word of a shell line: what is known of it before the shell runs.

use crate::policy::glob::{self, Set, Token};
use crate::policy::reason;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Quoted or escaped: means itself.
    Quoted(String),
    /// Unquoted: wildcards, braces and `~` are active.
    Bare(String),
    /// `$NAME` or `${NAME}`.
    Variable(String),
    /// A substitution or an expansion with operators.
    Unknown,
}

impl Piece {
    /// The text, if it does not depend on the shell's state.
    fn fixed(&self) -> Option<&str> {
        match self {
            Piece::Quoted(text) | Piece::Bare(text) => Some(text),
            Piece::Variable(_) | Piece::Unknown => None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub pieces: Vec<Piece>,
}

impl Word {
    pub fn quoted(text: &str) -> Self {
        Self {
            pieces: vec![Piece::Quoted(text.to_owned())],
        }
    }

    pub fn push_quoted(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Quoted(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Quoted(text.to_owned())),
        }
    }

    pub fn push_bare(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Bare(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Bare(text.to_owned())),
        }
    }

    /// The text after quote removal if nothing in it depends on a variable or a substitution. Wildcards are as
    /// written.
    pub fn fixed(&self) -> Option<String> {
        self.pieces.iter().map(Piece::fixed).collect()
    }

    /// As `fixed`, and the shell passes exactly this on: no wildcard, brace list or `~` is active.
    pub fn literal(&self) -> Option<String> {
        let expands = self.has_wildcard() || self.has_brace_list() || self.starts_with_tilde();
        if expands { None } else { self.fixed() }
    }

    /// The text up to the first part that only the shell knows.
    pub fn fixed_start(&self) -> String {
        self.pieces.iter().map_while(Piece::fixed).collect()
    }

    pub fn starts_with_tilde(&self) -> bool {
        matches!(self.pieces.first(), Some(Piece::Bare(text)) if text.starts_with('~'))
    }

    /// A `[` counts only with its `]`: `[` alone is the name of a command.
    pub fn has_wildcard(&self) -> bool {
        let bare = self.bare_text();
        bare.contains(['*', '?']) || bare.find('[').is_some_and(|at| bare[at + 1..].contains(']'))
    }

    /// `{a,b}` or `{1..3}`; `{}` and `{` are themselves.
    fn has_brace_list(&self) -> bool {
        let bare = self.bare_text();
        let inner = bare
            .find('{')
            .and_then(|at| bare[at..].rfind('}').map(|end| &bare[at..at + end]));
        inner.is_some_and(|inner| inner.contains(',') || inner.contains(".."))
    }

    fn bare_text(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Bare(text) => text.as_str(),
                Piece::Quoted(_) | Piece::Variable(_) | Piece::Unknown => "",
            })
            .collect()
    }

    /// As written, for messages: variables by name, other unknown parts as `...`.
    pub fn shown(&self) -> String {
        let text: String = self
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Quoted(text) | Piece::Bare(text) => text.clone(),
                Piece::Variable(name) => format!("${name}"),
                Piece::Unknown => "...".to_owned(),
            })
            .collect();
        reason::clipped(&text)
    }

    /// Takes `count` characters off the front, if that much is fixed: `-f` of `-f.env`.
    pub fn without_start(&self, count: usize) -> Option<Word> {
        let mut left = count;
        let mut pieces = Vec::new();
        for piece in &self.pieces {
            if left == 0 {
                pieces.push(piece.clone());
                continue;
            }
            let text = piece.fixed()?;
            let taken = text.chars().take(left).count();
            left -= taken;
            let rest: String = text.chars().skip(taken).collect();
            if !rest.is_empty() {
                pieces.push(match piece {
                    Piece::Bare(_) => Piece::Bare(rest),
                    _ => Piece::Quoted(rest),
                });
            }
        }
        (left == 0 && !pieces.is_empty()).then_some(Word { pieces })
    }

    /// The words that a brace list stands for (`{.env,a}`). bash expands it, dash passes it on as it is, so the
    /// word itself is always among the answers. About 64 at most.
    pub fn brace_choices(&self) -> Vec<Word> {
        let mut done = vec![self.clone()];
        if !self.has_brace_list() {
            return done;
        }
        let mut open = vec![self.clone()];
        while let Some(word) = open.pop() {
            match split_first_brace(&word) {
                None => done.push(word),
                Some(choices) => open.extend(choices),
            }
            if done.len() + open.len() > 64 {
                done.append(&mut open);
            }
        }
        done
    }

    /// The word as a wildcard pattern; unknown parts match anything.
    pub fn pattern(&self) -> Vec<Token> {
        let mut tokens = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Quoted(text) => tokens.extend(text.chars().map(Token::Char)),
                Piece::Bare(text) => {
                    let chars: Vec<char> = text.chars().collect();
                    let mut at = 0;
                    while at < chars.len() {
                        at = glob::push_wild(&chars, at, true, &mut tokens);
                    }
                }
                Piece::Variable(_) | Piece::Unknown => tokens.push(Token::Many(Set::Any)),
            }
        }
        tokens
    }
}

/// Unquoted text one character at a time, so that a brace list may hold quoted parts.
fn split_first_brace(word: &Word) -> Option<Vec<Word>> {
    let units: Vec<Piece> = word
        .pieces
        .iter()
        .flat_map(|piece| match piece {
            Piece::Bare(text) => text.chars().map(|c| Piece::Bare(c.to_string())).collect(),
            other => vec![other.clone()],
        })
        .collect();
    let is = |at: usize, c: &str| matches!(&units[at], Piece::Bare(text) if text == c);
    (0..units.len())
        .filter(|&at| is(at, "{"))
        .find_map(|open| {
            let mut depth = 0;
            let mut cuts = vec![open];
            for at in open + 1..units.len() {
                if is(at, "{") {
                    depth += 1;
                } else if is(at, "}") && depth > 0 {
                    depth -= 1;
                } else if is(at, ",") && depth == 0 {
                    cuts.push(at);
                } else if is(at, "}") {
                    cuts.push(at);
                    return (cuts.len() > 2).then_some((open, cuts, at));
                }
            }
            None
        })
        .map(|(open, cuts, close)| {
            cuts.windows(2)
                .map(|cut| {
                    let middle = &units[cut[0] + 1..cut[1]];
                    joined(units[..open].iter().chain(middle).chain(&units[close + 1..]))
                })
                .collect()
        })
}

fn joined<'a>(pieces: impl Iterator<Item = &'a Piece>) -> Word {
    let mut word = Word::default();
    for piece in pieces {
        match piece {
            Piece::Bare(text) => word.push_bare(text),
            Piece::Quoted(text) => word.push_quoted(text),
            other => word.pieces.push(other.clone()),
        }
    }
    word
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn bare(text: &str) -> Word {
        Word {
            pieces: vec![Piece::Bare(text.to_owned())],
        }
    }

    #[test]
    fn a_brace_list_stands_for_each_of_its_words_and_for_itself() {
        let choices = |text: &str| -> Vec<String> {
            let mut all: Vec<String> = bare(text)
                .brace_choices()
                .iter()
                .filter_map(Word::fixed)
                .collect();
            all.sort();
            all.dedup();
            all
        };
        assert_eq!(choices("{.env,a}"), [".env", "a", "{.env,a}"]);
        assert_eq!(choices("x{a,b{c,d}}y"), ["xay", "xbcy", "xbdy", "x{a,b{c,d}}y"]);
        assert_eq!(choices("{}"), ["{}"]);
        assert_eq!(choices("{a}"), ["{a}"]);
        assert_eq!(choices("a,b"), ["a,b"]);
        assert!(choices(&"{a,b}".repeat(30)).len() <= 128);
    }

    #[test]
    fn a_word_is_literal_only_without_anything_the_shell_expands() {
        assert_eq!(bare("rm").literal().as_deref(), Some("rm"));
        for text in ["[", "[[", "{", "}", "{}", "a[", "{a}"] {
            assert_eq!(bare(text).literal().as_deref(), Some(text), "{text}");
        }
        for text in ["r*", "r?", "[r]m", "{rm,x}", "{1..3}", "~/rm"] {
            assert_eq!(bare(text).literal(), None, "{text}");
        }
        assert_eq!(Word::quoted("*{~").literal().as_deref(), Some("*{~"));
        let unknown = Word {
            pieces: vec![Piece::Unknown],
        };
        assert_eq!(unknown.fixed(), None);
    }

    #[test]
    fn the_front_of_a_word_comes_off_only_where_it_is_fixed() {
        assert_eq!(
            bare("-f.env").without_start(2).unwrap().fixed().as_deref(),
            Some(".env")
        );
        assert_eq!(bare("-f").without_start(2), None);
        let variable = Word {
            pieces: vec![Piece::Bare("-".to_owned()), Piece::Variable("x".to_owned())],
        };
        assert_eq!(variable.without_start(2), None);
        assert!(variable.without_start(1).is_some());
    }
}
