//! Edits of lines named by number and hash. An anchor that does not hold is refused with fresh ones; nothing
//! ever slides to a neighbour in silence, and a list of edits is made whole or not at all.

mod anchors;
mod build;

use super::encoding::{self, Decoded};
use super::hash_line::{anchor_len, check_hash_length};
use super::lines::{self, Line};
use crate::error::{Error, ErrorCode, Result};
use anchors::Anchors;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Replace,
    InsertBefore,
    InsertAfter,
    Delete,
}

/// One edit, numbered as the file was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashEdit<'a> {
    /// 1-based.
    pub line: usize,
    /// Hash of that line: hex, of either case, at least `hash_length` digits.
    pub hash: &'a str,
    /// Last line of a range, for `Replace` and `Delete`.
    pub end_line: Option<usize>,
    /// For a range, the hash of every line in it; the first may be left out, because `hash` has it.
    pub hashes: &'a [&'a str],
    pub op: Op,
    /// One or more lines. A final LF ends the last of them; "" is one empty line.
    pub content: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashEdited {
    /// `None`: nothing changed, nothing to write.
    pub bytes: Option<Vec<u8>>,
    /// The first line that changed, as numbered afterwards.
    pub first_line: Option<usize>,
    pub lines_added: usize,
    pub lines_removed: usize,
}

/// Replaces one line by one or more, or deletes it (`None`). `ANCHOR_MISMATCH`, `INVALID_ARGUMENT`, and the
/// refusals of [`encoding::decode`].
pub fn edit_at_hash(
    bytes: &[u8],
    path: &str,
    (line, hash): (usize, &str),
    new_content: Option<&str>,
    hash_length: usize,
) -> Result<HashEdited> {
    let op = if new_content.is_some() {
        Op::Replace
    } else {
        Op::Delete
    };
    let edit = HashEdit {
        line,
        hash,
        end_line: None,
        hashes: &[],
        op,
        content: new_content,
    };
    edit_at_hashes(bytes, path, &[edit], hash_length)
}

/// Many edits, all or none; overlapping ones are refused. Insertions at one place keep the order of the list.
pub fn edit_at_hashes(
    bytes: &[u8],
    path: &str,
    edits: &[HashEdit<'_>],
    hash_length: usize,
) -> Result<HashEdited> {
    check_hash_length(hash_length)?;
    if edits.is_empty() {
        let message = "edits is empty: give at least one edit";
        return Err(Error::new(ErrorCode::InvalidArgument, message).at(path));
    }
    let Decoded { text, encoding } = encoding::decode(bytes, path)?;
    let file: Vec<Line<'_>> = lines::lines(text.as_bytes()).collect();
    let anchors = Anchors::new(&file, path, hash_length);
    let mut changes = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let change = change_of(edit).and_then(|change| anchors.check(edit).map(|()| change));
        changes.push(change.map_err(|error| {
            let which = if edits.len() == 1 {
                String::new()
            } else {
                format!("edit {} of {}: ", index + 1, edits.len())
            };
            Error::new(
                error.code,
                format!("{which}{}. Nothing was changed", error.message),
            )
            .at(path)
        })?);
    }
    check_overlaps(&changes).map_err(|error| error.at(path))?;
    let (out, done) = build::build(&file, &changes);
    let is_changed = out != text.as_bytes();
    let bytes = is_changed.then(|| [encoding.bom(), &out].concat());
    let bytes = match bytes {
        // The lines were those of the decoded text.
        Some(_) if encoding.is_utf16() => Some(encoding::encode(&String::from_utf8_lossy(&out), encoding)),
        bytes => bytes,
    };
    Ok(HashEdited {
        bytes,
        first_line: done.first_line.filter(|_| is_changed),
        ..done
    })
}

/// A checked edit: lines `first..end` (0-based) become `new`. An insertion has `first == end`.
struct Change<'a> {
    first: usize,
    end: usize,
    new: Vec<&'a [u8]>,
    /// An insertion after a line takes that line's ending, one before a line that of the line below.
    is_after: bool,
}

fn change_of<'a>(edit: &HashEdit<'a>) -> Result<Change<'a>> {
    let wrong = |message: String| Err(Error::new(ErrorCode::InvalidArgument, message));
    let HashEdit {
        line,
        end_line,
        op,
        content,
        ..
    } = *edit;
    if line == 0 {
        return wrong("line is 0, but lines are numbered from 1".into());
    }
    let end = end_line.unwrap_or(line);
    if end < line {
        return wrong(format!("end_line {end} is before line {line}"));
    }
    let new = match (op, content) {
        (Op::Delete, None) => Vec::new(),
        (Op::Delete, Some(_)) => {
            return wrong("delete takes no content: use replace to put lines in its place".into());
        }
        (_, None) => return wrong("content is missing: give the new lines, or use delete".into()),
        (_, Some(content)) => content_lines(content)?,
    };
    let (first, end) = match op {
        Op::Replace | Op::Delete => (line - 1, end),
        Op::InsertBefore | Op::InsertAfter if end_line.is_some() => {
            return wrong("end_line has no meaning for an insertion: name one line".into());
        }
        Op::InsertBefore => (line - 1, line - 1),
        Op::InsertAfter => (line, line),
    };
    Ok(Change {
        first,
        end,
        new,
        is_after: op == Op::InsertAfter,
    })
}

fn content_lines(content: &str) -> Result<Vec<&[u8]>> {
    let new: Vec<_> = match content {
        "" => vec![&b""[..]],
        content => lines::lines(content.as_bytes()).map(|line| line.text).collect(),
    };
    let pasted = new.iter().position(|line| anchor_len(line).is_some());
    match pasted {
        None => Ok(new),
        Some(at) => {
            let anchor = &new[at][..anchor_len(new[at]).unwrap_or(0).min(24)];
            let message = format!(
                "content line {} begins with an anchor ({}...): give the text of the line only",
                at + 1,
                String::from_utf8_lossy(anchor),
            );
            Err(Error::new(ErrorCode::InvalidArgument, message))
        }
    }
}

fn check_overlaps(changes: &[Change<'_>]) -> Result<()> {
    let mut order: Vec<usize> = (0..changes.len()).collect();
    order.sort_by_key(|&at| (changes[at].first, changes[at].end));
    let mut widest: Option<usize> = None;
    for &at in &order {
        let change = &changes[at];
        if let Some(before) = widest.filter(|&before| change.first < changes[before].end) {
            let (a, b) = (before.min(at) + 1, before.max(at) + 1);
            let message = format!(
                "edits {a} and {b} overlap at line {}: make them one edit. Nothing was changed",
                change.first + 1
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        if change.end > change.first {
            widest = Some(at);
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
