//! Path patterns in their three forms, and the rules made of them. Which rule wins is left to `decide`.

use super::glob::{self, Token};
use super::place::{Ground, Place, below, is_absolute};
use super::verdict::Action;
use crate::error::{Error, ErrorCode, Result};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOp {
    Read,
    Write,
}

impl PathOp {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "read" => Some(PathOp::Read),
            "write" => Some(PathOp::Write),
            _ => None,
        }
    }
}

/// One pattern. It covers what it names and everything below.
#[derive(Clone, Debug)]
pub struct PathPattern {
    source: String,
    form: Form,
    /// As written; for absolute patterns also with the links of the part before the first wildcard resolved.
    spellings: Vec<Spelling>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Starts with `/` or `~`: compared with the absolute path, inside or outside.
    Absolute,
    /// Holds a `/`: compared with the path below the root, so it never reaches outside.
    Anchored,
    /// A name: compared with every segment, inside or outside.
    Bare,
}

#[derive(Clone, Debug)]
struct Spelling {
    text: String,
    tokens: Vec<Token>,
    literal: bool,
}

impl Spelling {
    fn new(text: &str) -> Self {
        let text = fold(text).into_owned();
        let tokens = glob::parse(&text);
        let literal = glob::is_literal(&tokens);
        Self {
            text,
            tokens,
            literal,
        }
    }

    fn is(&self, text: &str) -> bool {
        if self.literal {
            self.text == text
        } else {
            glob::matches(&self.tokens, text)
        }
    }

    /// The path itself or a directory above it.
    fn covers(&self, path: &str) -> bool {
        if self.literal {
            return below(path, &self.text).is_some();
        }
        self.is(path)
            || path
                .match_indices('/')
                .any(|(at, _)| at > 0 && self.is(&path[..at]))
    }
}

/// Names that a file system treats as equal are equal here: macOS and Windows ignore case.
pub fn fold(text: &str) -> Cow<'_, str> {
    if cfg!(any(windows, target_os = "macos")) {
        use unicode_normalization::UnicodeNormalization;
        text.nfc().collect::<String>().to_lowercase().into()
    } else {
        text.into()
    }
}

/// Resolves the links of an absolute path that exists; the only question about the disk, answered by the caller.
pub type Canonicalize<'a> = &'a dyn Fn(&str) -> Option<String>;

impl PathPattern {
    pub fn parse(
        pattern: &str,
        option: &str,
        ground: &Ground,
        canonicalize: Canonicalize<'_>,
    ) -> Result<Self> {
        let refuse = |rule: &str| {
            Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("{option}: the pattern {pattern:?} {rule}"),
            ))
        };
        let text = if cfg!(windows) {
            pattern.replace('\\', "/")
        } else {
            pattern.to_owned()
        };
        if text.trim().is_empty() {
            return refuse("is empty: name a path, a folder or a file name");
        }
        if text.contains('\0') {
            return refuse("holds a NUL character: remove it");
        }
        if text.split('/').any(|part| part == "..") {
            return refuse("holds '..': write the absolute path instead");
        }
        let trimmed = match text.trim_end_matches('/') {
            "" => "/",
            trimmed => trimmed,
        };
        let (form, spellings) = if let Some(rest) = trimmed.strip_prefix('~') {
            if !(rest.is_empty() || rest.starts_with('/')) {
                return refuse("names another user's home: write the absolute path instead");
            }
            let Some(home) = ground.home() else {
                return refuse(
                    "starts with '~' but there is no home directory: write the absolute path instead",
                );
            };
            (
                Form::Absolute,
                absolute_spellings(&format!("{home}{rest}"), canonicalize),
            )
        } else if is_absolute(trimmed) {
            (Form::Absolute, absolute_spellings(trimmed, canonicalize))
        } else if trimmed.contains('/') {
            let names: Vec<&str> = trimmed
                .split('/')
                .filter(|name| !matches!(*name, "" | "."))
                .collect();
            match names.as_slice() {
                [] => return refuse("names nothing: use \".\" only as part of a longer path"),
                names => (Form::Anchored, vec![Spelling::new(&names.join("/"))]),
            }
        } else if trimmed == "." {
            return refuse("is the whole workspace: name what is in it, or use its absolute path");
        } else {
            (Form::Bare, vec![Spelling::new(trimmed)])
        };
        Ok(Self {
            source: pattern.to_owned(),
            form,
            spellings,
        })
    }

    /// As the user wrote it.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn matches(&self, place: &Place, ground: &Ground) -> bool {
        match (self.form, place) {
            (Form::Absolute, _) => {
                let absolute = ground.absolute(place);
                let absolute = fold(&absolute);
                self.spellings.iter().any(|spelling| spelling.covers(&absolute))
            }
            (Form::Anchored, Place::Inside(path)) => {
                let path = fold(path);
                self.spellings.iter().any(|spelling| spelling.covers(&path))
            }
            (Form::Anchored, Place::Outside(_)) => false,
            (Form::Bare, Place::Inside(path) | Place::Outside(path)) => {
                let path = fold(path);
                path.split('/')
                    .filter(|segment| !segment.is_empty())
                    .any(|segment| self.spellings.iter().any(|spelling| spelling.is(segment)))
            }
        }
    }

    /// Whether a shell word with wildcards may expand to something this covers. `word` is relative to the root
    /// (`inside`) or absolute, already without `.` and `..`.
    pub fn meets(&self, word: &[Token], inside: bool, ground: &Ground) -> bool {
        match self.form {
            Form::Absolute => {
                let absolute: Vec<Token>;
                let word = if inside {
                    let prefix = format!("{}/", ground.root());
                    absolute = prefix
                        .chars()
                        .map(Token::Char)
                        .chain(word.iter().cloned())
                        .collect();
                    &absolute
                } else {
                    word
                };
                self.spellings
                    .iter()
                    .any(|spelling| glob::intersect(word, &spelling.tokens, true))
            }
            Form::Anchored => {
                inside
                    && self
                        .spellings
                        .iter()
                        .any(|spelling| glob::intersect(word, &spelling.tokens, true))
            }
            Form::Bare => word
                .split(|token| *token == Token::Char('/'))
                .filter(|segment| !segment.is_empty())
                .any(|segment| {
                    self.spellings
                        .iter()
                        .any(|spelling| glob::intersect(segment, &spelling.tokens, false))
                }),
        }
    }

    /// The absolute folder or file that a grant opens, when it names one without wildcards.
    pub fn literal_absolute(&self) -> Option<&str> {
        (self.form == Form::Absolute)
            .then(|| self.spellings.last())
            .flatten()
            .filter(|spelling| spelling.literal)
            .map(|spelling| spelling.text.as_str())
    }

    /// A pattern with wildcards that may lead outside: it can be judged, but not opened as a root.
    pub fn is_absolute(&self) -> bool {
        self.form == Form::Absolute
    }
}

fn absolute_spellings(text: &str, canonicalize: Canonicalize<'_>) -> Vec<Spelling> {
    // `/` stands for everything; its prefix is empty.
    let text = if text == "/" { "" } else { text };
    let mut spellings = vec![Spelling::new(text)];
    let fixed = match text.find(['*', '?', '[']) {
        Some(wild) => text[..wild].rfind('/').map_or("", |slash| &text[..slash]),
        None => text,
    };
    // The longest part that exists: a rule may name what is not there yet.
    let mut existing = fixed;
    while !existing.is_empty() {
        if let Some(real) = canonicalize(existing) {
            if real != existing {
                let real = if real == "/" { "" } else { &real };
                spellings.push(Spelling::new(&format!("{real}{}", &text[existing.len()..])));
            }
            break;
        }
        existing = existing.rfind('/').map_or("", |slash| &existing[..slash]);
    }
    spellings
}

#[derive(Clone, Debug)]
pub struct PathRule {
    pub pattern: PathPattern,
    pub action: Action,
    pub reads: bool,
    pub writes: bool,
}

impl PathRule {
    pub fn applies_to(&self, op: PathOp) -> bool {
        match op {
            PathOp::Read => self.reads,
            PathOp::Write => self.writes,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn ground() -> Ground {
        Ground::new("/w", None, Some("/home/u"))
    }

    fn pattern(text: &str) -> PathPattern {
        PathPattern::parse(text, "deniedPaths", &ground(), &|_| None).unwrap()
    }

    #[test]
    fn each_form_covers_what_it_names_and_everything_below() {
        for (text, path, expected) in [
            // bare: any segment, inside or outside
            (".env*", ".env", true),
            (".env*", "sub/.env.local", true),
            (".env*", "sub/.envs/x", true),
            (".env*", "/etc/.env", true),
            (".env*", "env", false),
            ("secrets", "secrets/k", true),
            ("secrets/", "a/secrets", true),
            ("secrets", "/etc/secrets/k", true),
            ("secrets", "secrets2", false),
            // anchored at the root
            ("build/out", "build/out/z", true),
            ("build/out", "build/out", true),
            ("build/out", "sub/build/out", false),
            ("build/out", "build/output", false),
            ("build/out", "/build/out", false),
            ("./src", "src/a", true),
            ("**/*.py", "a.py", false),
            ("**/*.py", "x/a.py", true),
            ("src/**", "src", false),
            ("src/**", "src/a", true),
            ("src/a?c", "src/a/c", true),
            ("conf/*.d", "conf/x.d/y", true),
            // absolute, and ~
            ("/etc", "/etc/passwd", true),
            ("/etc", "/etcetera", false),
            ("/w/x", "x/y", true),
            ("~/.ssh", "/home/u/.ssh/id", true),
            ("~", "/home/u/a", true),
            ("/", "/anything", true),
            ("/", "inside", true),
            ("/var/*/log", "/var/a/b/log/c", true),
        ] {
            let place = ground().locate(path, &Place::root());
            assert_eq!(
                pattern(text).matches(&place, &ground()),
                expected,
                "{text} on {path}"
            );
        }
    }

    #[test]
    fn an_absolute_pattern_follows_the_links_of_the_part_that_exists() {
        let canonicalize = |path: &str| (path == "/tmp").then(|| "/private/tmp".to_owned());
        let pattern = PathPattern::parse("/tmp/x/*.key", "deniedPaths", &ground(), &canonicalize).unwrap();
        for path in ["/tmp/x/a.key", "/private/tmp/x/a.key"] {
            assert!(
                pattern.matches(&Place::Outside(path.to_owned()), &ground()),
                "{path}"
            );
        }
        assert!(!pattern.matches(&Place::Outside("/tmp/x/a.pem".to_owned()), &ground()));
    }

    #[test]
    fn a_pattern_that_cannot_mean_anything_is_refused() {
        for text in ["", " ", "../x", "a/../b", "~bob/x", "a\0b", "./", "."] {
            let error = PathPattern::parse(text, "deniedPaths", &ground(), &|_| None).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{text:?}");
            assert!(error.message.starts_with("deniedPaths"), "{}", error.message);
        }
        let homeless = Ground::new("/w", None, None);
        assert!(PathPattern::parse("~/x", "readable", &homeless, &|_| None).is_err());
    }
}
