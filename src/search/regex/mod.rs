//! JavaScript regular expressions over lines of UTF-8: translated, never passed through.
//!
//! Two tiers. A pattern without look-around, `\B` or back-references runs on `regex`, in linear time, over a
//! whole buffer of lines at once. Any other runs on `fancy-regex`, one line at a time with a limit of steps, and
//! only on the lines that a looser linear pattern lets through.

mod parse;
mod set;
mod translate;

use crate::error::{Error, ErrorCode, Result};

/// Longest pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 4096;
/// The backtracking engine is not let loose on longer lines: its step limit does not bound the time there.
pub const MAX_BACKTRACK_LINE_BYTES: usize = 4096;
const MAX_BACKTRACK_STEPS: usize = 1_000_000;
/// The time of a pattern that overflows the lazy DFA grows with its compiled size.
const MAX_COMPILED_BYTES: usize = 8 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub struct Matcher {
    lines: regex::bytes::Regex,
    exact: Option<fancy_regex::Regex>,
}

/// What one line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineMatch {
    /// The first match, in bytes.
    At {
        start: usize,
        end: usize,
    },
    No,
    /// Over `MAX_BACKTRACK_LINE_BYTES`: not searched.
    TooLong,
    /// Over the step limit: not decided.
    TooHard,
}

impl Matcher {
    /// A pattern that JavaScript accepts.
    pub fn javascript(pattern: &str, ignore_case: bool) -> Result<Self> {
        check_length(pattern)?;
        let node = parse::parse(pattern, ignore_case)?;
        let lines = regex::bytes::RegexBuilder::new(&translate::linear(&node))
            .size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|_| too_large(pattern))?;
        let exact = if translate::needs_backtracking(&node) {
            let source = translate::backtracking(&node, pattern)?;
            let regex = fancy_regex::RegexBuilder::new(&source)
                .backtrack_limit(MAX_BACKTRACK_STEPS)
                .delegate_size_limit(MAX_COMPILED_BYTES)
                .build()
                .map_err(|error| refused_by_engine(pattern, &error))?;
            Some(regex)
        } else {
            None
        };
        Ok(Self { lines, exact })
    }

    /// Plain text.
    pub fn literal(text: &str, ignore_case: bool) -> Result<Self> {
        let mut escaped = String::with_capacity(text.len() + 8);
        for c in text.chars() {
            if "\\^$.*+?()[]{}|/-".contains(c) {
                escaped.push('\\');
            }
            escaped.push(c);
        }
        check_length(text)?;
        Self::javascript_unbounded(&escaped, ignore_case, text)
    }

    fn javascript_unbounded(escaped: &str, ignore_case: bool, shown: &str) -> Result<Self> {
        let node = parse::parse(escaped, ignore_case)?;
        let lines = regex::bytes::RegexBuilder::new(&translate::linear(&node))
            .size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|_| too_large(shown))?;
        Ok(Self { lines, exact: None })
    }

    /// The first place at or after `from` in a buffer of lines (LF between them) that may match; exactly where
    /// it does, unless `is_exact` says otherwise.
    pub fn find_in_lines(&self, buffer: &[u8], from: usize) -> Option<(usize, usize)> {
        self.lines
            .find_at(buffer, from)
            .map(|found| (found.start(), found.end()))
    }

    /// Whether `find_in_lines` alone decides.
    pub fn is_exact(&self) -> bool {
        self.exact.is_none()
    }

    /// Decides one line (without its ending).
    pub fn match_line(&self, line: &str) -> LineMatch {
        let Some(exact) = &self.exact else {
            return match self.lines.find(line.as_bytes()) {
                Some(found) => LineMatch::At {
                    start: found.start(),
                    end: found.end(),
                },
                None => LineMatch::No,
            };
        };
        if line.len() > MAX_BACKTRACK_LINE_BYTES {
            return LineMatch::TooLong;
        }
        match exact.find(line) {
            Ok(Some(found)) => LineMatch::At {
                start: found.start(),
                end: found.end(),
            },
            Ok(None) => LineMatch::No,
            Err(_) => LineMatch::TooHard,
        }
    }
}

fn check_length(pattern: &str) -> Result<()> {
    if pattern.len() > MAX_PATTERN_BYTES {
        let message = format!(
            "the pattern is {} bytes long, at most {MAX_PATTERN_BYTES}",
            pattern.len()
        );
        return Err(Error::new(ErrorCode::InvalidRegex, message));
    }
    Ok(())
}

fn too_large(pattern: &str) -> Error {
    let message = format!(
        "the pattern /{pattern}/ is too large when compiled: use smaller repetition counts or split it"
    );
    Error::new(ErrorCode::UnsupportedRegex, message)
}

fn refused_by_engine(pattern: &str, error: &fancy_regex::Error) -> Error {
    use fancy_regex::{CompileError, Error as Refusal};
    let what = match error {
        Refusal::CompileError(inner) if matches!(**inner, CompileError::DfaBuildError(..)) => {
            "a look-behind of a form"
        }
        Refusal::CompileError(inner) if matches!(**inner, CompileError::InnerError(_)) => {
            return too_large(pattern);
        }
        _ => "look-around or back-references in a form",
    };
    let message = format!("the pattern /{pattern}/ uses {what}, which this search cannot translate exactly");
    Error::new(ErrorCode::UnsupportedRegex, message)
}

#[cfg(test)]
mod tests;
