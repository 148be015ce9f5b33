//! Exact edits: find a text byte for byte, replace it literally, leave every other byte as it was. There is no
//! fuzzy matching, because a fuzzy edit in the wrong place is silent; what nearly matched goes into the error.

mod find;
mod hint;
mod surroundings;

use super::encoding::{self, Encoding};
use super::ending::Endings;
use super::lines;
use super::sniff::size_text;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::MAX_EDIT_GROWTH_BYTES;
use find::Haystack;
use std::borrow::Cow;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub replace_all: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEndings {
    /// An LF in `old` also matches a CRLF, and the new text takes the endings of the place it lands in.
    #[default]
    Preserve,
    /// Bytes only.
    Strict,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// `None`: nothing changed, nothing to write.
    pub bytes: Option<Vec<u8>>,
    /// One for each edit.
    pub applied: Vec<Applied>,
    /// What the caller should be told beside the counts.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    pub replacements: usize,
    /// The first line that changed, as numbered after this edit; `None` without a change.
    pub first_line: Option<usize>,
}

/// One exact edit of a file's bytes. `EDIT_NO_MATCH`, `EDIT_AMBIGUOUS`, `INVALID_ARGUMENT` (empty `old`), and
/// the refusals of [`encoding::decode`].
pub fn edit(bytes: &[u8], path: &str, edit: &Edit<'_>, line_endings: LineEndings) -> Result<Edited> {
    edit_many(bytes, path, std::slice::from_ref(edit), line_endings)
}

/// The lines of `text` closest to `old`, which does not occur in it, for a message; `None` without a resemblance.
pub(super) fn closest_lines(text: &str, old: &str) -> Option<String> {
    hint::closest::region(text, old)
}

/// Edits in order, each on what the one before left; all or none.
pub fn edit_many(bytes: &[u8], path: &str, edits: &[Edit<'_>], line_endings: LineEndings) -> Result<Edited> {
    if edits.is_empty() {
        let message = "edits is empty: give at least one edit";
        return Err(Error::new(ErrorCode::InvalidArgument, message).at(path));
    }
    let decoded = encoding::decode(bytes, path)?;
    let mut current = Current {
        text: &decoded.text,
        buffers: Default::default(),
        is_changed: false,
    };
    let mut applied = Vec::with_capacity(edits.len());
    let mut notes = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let done = current.apply(edit, line_endings, &mut notes).map_err(|refused| {
            let which = if edits.len() == 1 {
                String::new()
            } else {
                format!("edit {} of {}: ", index + 1, edits.len())
            };
            let nothing = if edits.len() == 1 {
                ""
            } else {
                "\nNo edit was applied."
            };
            let message = format!(
                "{which}{}{nothing}",
                refused.message(current.text(), path, edit, line_endings)
            );
            Error::new(refused.code(), message).at(path)
        })?;
        applied.push(done);
    }
    notes.dedup();
    if current.is_changed
        && let Some(note) = mixed_note(&decoded.text, current.text())
    {
        notes.push(note);
    }
    let bytes = current.is_changed.then(|| current.into_bytes(decoded.encoding));
    Ok(Edited {
        bytes,
        applied,
        notes,
    })
}

/// An edit that was asked to write other endings than the file has does so, but says it.
fn mixed_note(before: &str, after: &str) -> Option<String> {
    let after = Endings::of(after.as_bytes());
    if !after.is_mixed() || Endings::of(before.as_bytes()).is_mixed() {
        return None;
    }
    Some(format!(
        "the file now has mixed line endings: {} CRLF and {} LF",
        after.crlf, after.lf
    ))
}

/// The text between two edits. Two buffers take turns, so that many edits of a large file allocate twice.
struct Current<'t> {
    text: &'t str,
    buffers: [String; 2],
    is_changed: bool,
}

impl Current<'_> {
    fn text(&self) -> &str {
        if self.is_changed {
            &self.buffers[0]
        } else {
            self.text
        }
    }

    fn into_bytes(self, encoding: Encoding) -> Vec<u8> {
        let [text, _] = self.buffers;
        match encoding {
            Encoding::Utf8 => text.into_bytes(),
            with_bom => encoding::encode(&text, with_bom),
        }
    }

    fn apply(
        &mut self,
        edit: &Edit<'_>,
        mode: LineEndings,
        notes: &mut Vec<String>,
    ) -> std::result::Result<Applied, Refused> {
        if edit.old.is_empty() {
            return Err(Refused::EmptyOld);
        }
        if edit.old == edit.new {
            return Ok(Applied {
                replacements: 0,
                first_line: None,
            });
        }
        let mut out = std::mem::take(&mut self.buffers[1]);
        out.clear();
        // A short `old` and a long `new` multiply: `a` to 10 MB in a file of a million `a`.
        let max_bytes = self.text.len().saturating_add(MAX_EDIT_GROWTH_BYTES);
        let (text, applied) = replaced(self.text(), edit, mode, (out, max_bytes), notes)?;
        self.buffers[1] = text;
        self.buffers.swap(0, 1);
        self.is_changed = true;
        Ok(applied)
    }
}

/// `text` after the edit, built in `out`.
fn replaced(
    text: &str,
    edit: &Edit<'_>,
    mode: LineEndings,
    (mut out, max_bytes): (String, usize),
    notes: &mut Vec<String>,
) -> std::result::Result<(String, Applied), Refused> {
    let haystack = Haystack::new(text, edit.old, mode);
    let only = if edit.replace_all {
        None
    } else {
        Some(haystack.unique()?)
    };
    out.reserve(text.len() + edit.new.len().saturating_sub(edit.old.len()));
    let mut writer = Writer {
        text,
        edit,
        mode,
        out,
        max_bytes,
        copied: 0,
        replacements: 0,
        first_change: None,
        converted: false,
    };
    match only {
        Some(range) => writer.replace(range)?,
        None => haystack.ranges().try_for_each(|range| writer.replace(range))?,
    }
    if writer.replacements == 0 {
        return Err(Refused::NoMatch);
    }
    if writer.converted {
        notes.push("line endings: the new text took the CRLF of the lines around it".into());
    }
    Ok(writer.finish())
}

struct Writer<'a> {
    text: &'a str,
    edit: &'a Edit<'a>,
    mode: LineEndings,
    out: String,
    max_bytes: usize,
    /// How much of `text` is in `out`.
    copied: usize,
    replacements: usize,
    /// Byte offset in `out` of the first difference.
    first_change: Option<usize>,
    converted: bool,
}

impl Writer<'_> {
    fn replace(&mut self, range: Range<usize>) -> std::result::Result<(), Refused> {
        self.out.push_str(&self.text[self.copied..range.start]);
        let start = self.out.len();
        let new = match self.mode {
            LineEndings::Strict => Cow::Borrowed(self.edit.new),
            LineEndings::Preserve => surroundings::fit(self.text, &range, self.edit.old, self.edit.new),
        };
        self.converted |= matches!(new, Cow::Owned(_));
        self.out.push_str(&new);
        if self.first_change.is_none() {
            let same = self.text[range.clone()]
                .bytes()
                .zip(new.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            self.first_change = Some(start + same);
        }
        self.copied = range.end;
        self.replacements += 1;
        if self.out.len() > self.max_bytes {
            Err(Refused::TooLarge)
        } else {
            Ok(())
        }
    }

    fn finish(mut self) -> (String, Applied) {
        self.out.push_str(&self.text[self.copied..]);
        let first_line = self
            .first_change
            .map(|at| lines::number_at(self.out.as_bytes(), at));
        (
            self.out,
            Applied {
                replacements: self.replacements,
                first_line,
            },
        )
    }
}

/// Why an edit was not made.
enum Refused {
    EmptyOld,
    NoMatch,
    TooLarge,
    Ambiguous {
        places: usize,
        lines: Vec<usize>,
        overlapping: bool,
    },
}

impl Refused {
    fn code(&self) -> ErrorCode {
        match self {
            Self::EmptyOld => ErrorCode::InvalidArgument,
            Self::NoMatch => ErrorCode::EditNoMatch,
            Self::TooLarge => ErrorCode::TooLarge,
            Self::Ambiguous { .. } => ErrorCode::EditAmbiguous,
        }
    }

    fn message(&self, text: &str, path: &str, edit: &Edit<'_>, mode: LineEndings) -> String {
        match self {
            Self::EmptyOld => format!(
                "old_string is empty: to insert text into {path:?}, give the text beside the place and repeat it in new_string"
            ),
            Self::TooLarge => format!(
                "the edit makes {path:?} larger by more than {}: replace less at a time",
                size_text(MAX_EDIT_GROWTH_BYTES as u64)
            ),
            Self::NoMatch => {
                format!(
                    "old_string does not occur in {path:?}. {}",
                    hint::explain(text, edit.old, mode)
                )
            }
            Self::Ambiguous {
                places,
                lines,
                overlapping,
            } => {
                let mut named: Vec<_> = lines.iter().map(usize::to_string).collect();
                if lines.len() < *places {
                    named.push("...".into());
                }
                let (named, how) = (named.join(", "), if *overlapping { ", overlapping" } else { "" });
                format!(
                    "old_string occurs {places} times in {path:?}{how} (lines {named}): add context to make it unique, or set replace_all"
                )
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
