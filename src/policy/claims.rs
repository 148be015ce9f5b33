//! Path claims: the words of a command that name a path are judged as reads, redirection targets and written
//! operands as writes. Claims only tighten, and they see letters, not files: a glance, not a wall.

use super::Policy;
use super::command::{Folders, Piece, Redirect, Simple, Word, written_operands};
use super::decide::{denied, through_link};
use super::glob::{self, Token};
use super::path_rules::PathOp;
use super::place::{Place, is_absolute};
use super::verdict::{Action, Verdict};
use crate::limits::MAX_PATH_BYTES;

fn nothing() -> Verdict {
    Verdict::new(Action::Allow, "")
}

/// Names that reach no file.
fn is_pseudo_device(path: &str) -> bool {
    matches!(
        path,
        "/dev/null"
            | "/dev/zero"
            | "/dev/full"
            | "/dev/stdin"
            | "/dev/stdout"
            | "/dev/stderr"
            | "/dev/tty"
            | "/dev/random"
            | "/dev/urandom"
    ) || path.starts_with("/dev/fd/")
}

impl Policy {
    pub(super) fn claims_of(&self, command: &Simple) -> Verdict {
        // What a transparent wrapper passes on is judged where it runs.
        if command.transparent {
            return nothing();
        }
        let mut verdict = nothing();
        let removes = matches!(
            command.words[0].fixed().as_deref(),
            Some("rm" | "/bin/rm" | "mv" | "/bin/mv" | "shred")
        );
        for (index, word) in command.words.iter().enumerate() {
            verdict = verdict.stricter(if index == 0 {
                self.claim_of_program(word, &command.folders)
            } else {
                self.claims_of_argument(word, &command.folders)
            });
        }
        for operand in written_operands(&command.words) {
            verdict = verdict.stricter(self.claim(&operand, PathOp::Write, &command.folders));
            if removes {
                verdict = verdict.stricter(self.claim_of_contents(&operand, &command.folders));
            }
        }
        verdict
    }

    pub(super) fn claims_of_redirect(&self, redirect: &Redirect) -> Verdict {
        let mut verdict = nothing();
        if redirect.writes {
            verdict = verdict.stricter(self.claim(&redirect.target, PathOp::Write, &redirect.folders));
        }
        if redirect.reads {
            verdict = verdict.stricter(self.claim(&redirect.target, PathOp::Read, &redirect.folders));
        }
        verdict
    }

    /// `NAME=/etc/x cmd`: only what looks like a path is taken for one.
    pub(super) fn claim_of_value(&self, value: &Word, folders: &Folders) -> Verdict {
        let start = value.fixed_start();
        if start.starts_with(['/', '.', '~']) || value.starts_with_tilde() {
            return self.claim(value, PathOp::Read, folders);
        }
        self.claim_denied(value, folders)
    }

    /// Starting a program is not reading it, so only what is said about this very path counts.
    fn claim_of_program(&self, word: &Word, folders: &Folders) -> Verdict {
        if word.fixed_start().contains('/') {
            self.claim_denied(word, folders)
        } else {
            nothing()
        }
    }

    fn claims_of_argument(&self, word: &Word, folders: &Folders) -> Verdict {
        let start = word.fixed_start();
        if start.starts_with('-') && start.len() > 1 {
            if let Some(at) = start.find('=') {
                let value = word.without_start(start[..=at].chars().count());
                return value.map_or_else(nothing, |value| self.claim(&value, PathOp::Read, folders));
            }
            // `-fpath`; `--path` cannot have a value attached without `=`.
            let value = if start.starts_with("--") {
                None
            } else {
                word.without_start(2)
            };
            return value.map_or_else(nothing, |value| self.claim(&value, PathOp::Read, folders));
        }
        if let Some(at) = start.find("://") {
            let local = start[..at].eq_ignore_ascii_case("file");
            let path = local
                .then(|| word.without_start(start[..at].chars().count() + 3))
                .flatten();
            return path.map_or_else(nothing, |path| self.claim(&path, PathOp::Read, folders));
        }
        let whole = self.claim(word, PathOp::Read, folders);
        match start.split_once('=') {
            // `if=/etc/x`, `path=.env`
            Some((key, _)) if !key.contains('/') => match word.without_start(key.chars().count() + 1) {
                Some(value) => whole.stricter(self.claim(&value, PathOp::Read, folders)),
                None => whole,
            },
            _ => whole,
        }
    }

    /// One word as one path, in every spelling a brace list gives it and every folder it may be in.
    fn claim(&self, word: &Word, op: PathOp, folders: &Folders) -> Verdict {
        let mut verdict = nothing();
        for choice in word.brace_choices() {
            for folder in folders.iter() {
                let mut found = match self.reading_of(&choice, folder.place.as_ref()) {
                    Spot::None => nothing(),
                    Spot::At(place) => self.judge_with_links(op, &place),
                    Spot::Pattern { tokens, place } => self.judge_pattern_with_links(op, &tokens, &place),
                    Spot::Somewhere(place) => {
                        let named = self.judge_explicit(op, &place).unwrap_or_else(nothing);
                        named.stricter(self.judge_unknown(op, &choice))
                    }
                    Spot::Unknown => self.judge_unknown(op, &choice),
                };
                if !folder.likely && self.is_only_default(&found) {
                    found = found.at_most(Action::Ask);
                }
                verdict = verdict.stricter(found);
            }
        }
        verdict
    }

    /// What the letters say in a branch that is unlikely should not deny; what a denial names should.
    fn is_only_default(&self, verdict: &Verdict) -> bool {
        verdict.action == Action::Deny && !verdict.reason.contains("off limits")
    }

    fn claim_denied(&self, word: &Word, folders: &Folders) -> Verdict {
        let mut verdict = nothing();
        for choice in word.brace_choices() {
            for folder in folders.iter() {
                let found = match self.reading_of(&choice, folder.place.as_ref()) {
                    Spot::At(place) => self.judge_explicit_with_links(PathOp::Read, &place),
                    Spot::Somewhere(place) => self.judge_explicit(PathOp::Read, &place),
                    Spot::Pattern { tokens, place } => self.met_by(PathOp::Read, &tokens, place.is_inside()),
                    Spot::Unknown | Spot::None => None,
                };
                verdict = verdict.stricter(found.unwrap_or_else(nothing));
            }
        }
        verdict
    }

    /// `rm -r build` when `build/out` is denied.
    fn claim_of_contents(&self, word: &Word, folders: &Folders) -> Verdict {
        for folder in folders.iter() {
            let Spot::At(place) = self.reading_of(word, folder.place.as_ref()) else {
                continue;
            };
            // Anything below: the path followed by `/` and more.
            let mut tokens: Vec<Token> = match &place {
                Place::Inside(path) if path == "." => Vec::new(),
                Place::Inside(path) | Place::Outside(path) => {
                    path.chars().chain(['/']).map(Token::Char).collect()
                }
            };
            tokens.push(Token::Many(glob::Set::Any));
            let inside = place.is_inside();
            let found = self
                .denied
                .iter()
                .filter(|pattern| pattern.source().trim_end_matches('/').contains('/'))
                .find(|pattern| pattern.meets(&tokens, inside, &self.ground));
            if let Some(pattern) = found {
                return denied(place.shown(), pattern.source());
            }
        }
        nothing()
    }

    /// Words of an uncertain line: denied paths only.
    pub(super) fn denied_words(&self, command: &Simple, folder: &Place) -> Verdict {
        let mut verdict = nothing();
        for word in &command.words {
            let text = word.fixed().unwrap_or_default();
            for part in text
                .split(['<', '>', '=', ','])
                .filter(|part| !part.is_empty() && part.len() <= MAX_PATH_BYTES)
            {
                let place = self.ground.locate(part, folder);
                if let Some(target) = self.target_of(&place).filter(|target| self.is_off_limits(target)) {
                    verdict = verdict.stricter(self.judge_target(PathOp::Read, &place, &target));
                }
                if let Some(pattern) = self
                    .denied
                    .iter()
                    .find(|pattern| pattern.matches(&place, &self.ground))
                {
                    verdict = verdict.stricter(denied(place.shown(), pattern.source()));
                }
            }
        }
        verdict
    }

    /// Where a word points, before the shell runs.
    fn reading_of(&self, word: &Word, folder: Option<&Place>) -> Spot {
        let Some(text) = self.text_of(word) else {
            return self.partly_known(word, folder);
        };
        if text.is_empty() || text == "-" || text.len() > MAX_PATH_BYTES || is_pseudo_device(&text) {
            return Spot::None;
        }
        let relative = !is_absolute(&text) && !text.starts_with('~');
        let place = match folder {
            Some(folder) => self.ground.locate(&text, folder),
            None if relative => return Spot::Somewhere(Place::Inside(text)),
            None => self.ground.locate(&text, &Place::root()),
        };
        if !word.has_wildcard() {
            return Spot::At(place);
        }
        Spot::Pattern {
            tokens: wildcards_of(&place),
            place,
        }
    }

    /// The text with `~`, `$HOME` and `$PWD` of the start filled in; wildcards as written.
    fn text_of(&self, word: &Word) -> Option<String> {
        let mut text = String::new();
        for (index, piece) in word.pieces.iter().enumerate() {
            match piece {
                // An escaped tilde is a name; the rest of the code must not expand it.
                Piece::Quoted(quoted) if index == 0 && quoted.starts_with('~') => {
                    text.push_str("./");
                    text.push_str(quoted);
                }
                Piece::Quoted(fixed) | Piece::Bare(fixed) => text.push_str(fixed),
                Piece::Variable(name) if name == "HOME" && index == 0 => text.push_str(self.ground.home()?),
                Piece::Variable(name) if name == "PWD" && index == 0 => text.push('.'),
                Piece::Variable(_) | Piece::Unknown => return None,
            }
        }
        Some(text)
    }

    /// `/etc/$x` is outside whatever x is; `.en$x` may be a denied name.
    fn partly_known(&self, word: &Word, folder: Option<&Place>) -> Spot {
        let start = word.fixed_start();
        if start.is_empty() || start.len() > MAX_PATH_BYTES {
            return Spot::Unknown;
        }
        let known = start.rfind('/').map_or("", |at| &start[..=at]);
        if is_absolute(known) || known.starts_with("..") || known.starts_with('~') {
            let Some(folder) = folder else {
                return Spot::Unknown;
            };
            let place = self.ground.locate(known, folder);
            if !place.is_inside() {
                return Spot::At(place);
            }
        }
        Spot::Unknown
    }

    /// The folder before the first wildcard may be a link. A name that only the wildcard meets is not looked up.
    fn judge_pattern_with_links(&self, op: PathOp, tokens: &[Token], place: &Place) -> Verdict {
        let verdict = self.judge_pattern(op, tokens, place);
        let shown = place.shown();
        let first = shown.find(['*', '?', '[']).unwrap_or(shown.len());
        let Some(at) = shown[..first].rfind('/').filter(|at| *at > 0) else {
            return verdict;
        };
        let folder = self.ground.locate(&shown[..at], &Place::root());
        let Some(target) = self.target_of(&folder) else {
            return verdict;
        };
        let led = self
            .ground
            .locate(&format!("{}{}", target.shown(), &shown[at..]), &Place::root());
        let found = self.judge_pattern(op, &wildcards_of(&led), &led);
        verdict.stricter(through_link(&found, op, folder.shown()))
    }

    fn judge_pattern(&self, op: PathOp, tokens: &[Token], place: &Place) -> Verdict {
        let default = self.judge_default(op, place);
        match self.met_by(op, tokens, place.is_inside()) {
            Some(found) => default.stricter(found),
            // A grant covers what it names as long as the wildcards stay below it.
            None => self.judge_explicit(op, place).unwrap_or(default),
        }
    }

    /// The strictest of what the wildcards may expand to.
    fn met_by(&self, op: PathOp, tokens: &[Token], inside: bool) -> Option<Verdict> {
        let path: String = tokens_shown(tokens);
        if let Some(pattern) = self
            .denied
            .iter()
            .find(|pattern| pattern.meets(tokens, inside, &self.ground))
        {
            return Some(denied(&path, pattern.source()));
        }
        self.path_rules
            .iter()
            .filter(|rule| rule.applies_to(op) && rule.action > Action::Allow)
            .filter(|rule| rule.pattern.meets(tokens, inside, &self.ground))
            .map(|rule| {
                Verdict::new(
                    rule.action,
                    format!(
                        "{path:?} may reach what the path rule {:?} is about",
                        rule.pattern.source()
                    ),
                )
            })
            .reduce(Verdict::stricter)
    }

    /// A path that only the shell knows. Reads of it pass, as everything a program reads on its own does; a write
    /// is as if it were outside, at most asked about. A known beginning may already meet a denied name.
    fn judge_unknown(&self, op: PathOp, word: &Word) -> Verdict {
        let start = word.fixed_start();
        let name_start = start.rsplit('/').next().unwrap_or_default();
        if !name_start.is_empty() {
            let tokens = word.pattern();
            if let Some(met) = self.met_by(op, &tokens, true) {
                return met.at_most(Action::Ask);
            }
        }
        let unknown_write = op == PathOp::Write && self.defaults.write_outside > Action::Allow;
        if unknown_write {
            let reason = format!("where {:?} leads is known at run time only", word.shown());
            return Verdict::new(Action::Ask, reason);
        }
        nothing()
    }
}

enum Spot {
    /// Not a path.
    None,
    At(Place),
    /// Relative to a folder that is not known: its names count, its position does not.
    Somewhere(Place),
    Pattern {
        tokens: Vec<Token>,
        place: Place,
    },
    Unknown,
}

/// `..` is taken by its letters; a quoted wildcard counts as one, which only widens the pattern.
fn wildcards_of(place: &Place) -> Vec<Token> {
    let chars: Vec<char> = place.shown().chars().collect();
    let mut tokens = Vec::with_capacity(chars.len());
    let mut at = 0;
    while at < chars.len() {
        at = glob::push_wild(&chars, at, true, &mut tokens);
    }
    tokens
}

fn tokens_shown(tokens: &[Token]) -> String {
    tokens
        .iter()
        .map(|token| match token {
            Token::Char(c) => *c,
            Token::One(_) => '?',
            Token::Many(_) => '*',
        })
        .collect()
}
