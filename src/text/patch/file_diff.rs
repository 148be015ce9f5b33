//! One file and its hunks: which way of comparing fits, the new content, and the message when none does.

use super::hunk::{Hunk, HunkLine, Side};
use super::image::{Compare, Image};
use super::place::{self, Misfit};
use super::v4a::{self, Chunk};
use super::{PlacedHunk, invalid};
use crate::error::{Error, ErrorCode, Result};
use crate::text::encoding::{self, Encoding};
use crate::text::{clip, edit};
use std::borrow::Cow;

pub(super) struct Patched {
    pub bytes: Vec<u8>,
    pub hunks: Vec<PlacedHunk>,
}

const BOM: char = '\u{feff}';
/// Lines of a hunk and of the file that a message shows.
const SHOWN_LINES: usize = 6;
const SHOWN_CHARS: usize = 160;

/// Applies the hunks of a unified diff.
pub(super) fn update(bytes: &[u8], path: &str, hunks: &[Hunk<'_>], fuzz: u8) -> Result<Patched> {
    let decoded = encoding::decode(bytes, path)?;
    // `git diff` has a byte order mark in its first line, a patch written by hand from what was read has not.
    let says_bom =
        decoded.encoding == Encoding::Utf8Bom && all_lines(hunks).any(|line| line.text.starts_with(BOM));
    let (text, encoding) = match says_bom {
        true => (Cow::Owned(format!("{BOM}{}", decoded.text)), Encoding::Utf8),
        false => (decoded.text, decoded.encoding),
    };
    let mut image = Image::new(&text, Compare::Exact);
    let misfit = match place::place_all(&mut image, hunks, fuzz) {
        Ok((mut placed, reports)) => {
            return Ok(Patched {
                bytes: encode(image.rebuild(&mut placed), encoding),
                hunks: reports,
            });
        }
        Err(misfit) => misfit,
    };
    let misfit = match differ_in_cr_alone(&text, hunks) {
        false => misfit,
        true => {
            let mut image = Image::new(&text, Compare::IgnoreCr);
            match place::place_all(&mut image, hunks, fuzz) {
                Ok((mut placed, reports)) => {
                    return Ok(Patched {
                        bytes: encode(image.rebuild(&mut placed), encoding),
                        hunks: reports,
                    });
                }
                Err(misfit) => misfit,
            }
        }
    };
    Err(explain(&text, path, hunks, &misfit))
}

fn encode(text: String, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.into_bytes(),
        with_bom => encoding::encode(&text, with_bom),
    }
}

fn all_lines<'h, 'p>(hunks: &'h [Hunk<'p>]) -> impl Iterator<Item = &'h HunkLine<'p>> {
    hunks.iter().flat_map(|hunk| &hunk.lines)
}

/// A patch whose lines all end alike may be meant for a file whose lines end the other way. One that mixes
/// endings means them.
fn differ_in_cr_alone(text: &str, hunks: &[Hunk<'_>]) -> bool {
    let mut crs = all_lines(hunks).map(|line| line.text.ends_with('\r'));
    let Some(first) = crs.next() else { return false };
    crs.all(|cr| cr == first) && (first || text.contains("\r\n"))
}

fn explain(text: &str, path: &str, hunks: &[Hunk<'_>], misfit: &Misfit) -> Error {
    let total = hunks.len();
    let conflict = |message: String| Error::new(ErrorCode::PatchConflict, message).at(path);
    match misfit {
        Misfit::Several { hunk, places } => {
            let patch_line = hunks[hunk - 1].patch_line;
            conflict(format!(
                "hunk {hunk} of {total} (line {patch_line} of the patch) fits {path:?} at several places (lines {}): correct its line numbers or add context",
                v4a::line_list(places)
            ))
        }
        Misfit::Nowhere { hunk, expected } => {
            if place::is_applied(&mut Image::new(text, Compare::IgnoreCr), hunks) {
                return conflict(format!(
                    "the patch is in {path:?} already: its new lines are there, its old lines are not"
                ));
            }
            let (number, hunk) = (*hunk, &hunks[hunk - 1]);
            let image = Image::new(text, Compare::IgnoreCr);
            let first = image.first_difference(&hunk.lines, *expected).unwrap_or(0);
            let from = first.saturating_sub(2);
            let olds: Vec<&HunkLine<'_>> = hunk.lines.iter().filter(|line| line.is_old()).collect();
            let wanted = shown(
                olds.iter()
                    .skip(from)
                    .map(|line| (line.side == Side::Old, line.text.trim_end_matches('\r'))),
            );
            let in_file = (expected + from..image.len()).take(olds.len() - from.min(olds.len()));
            let found = shown(in_file.filter_map(|at| image.text(at)).map(|text| (false, text)));
            conflict(format!(
                "hunk {number} of {total} (line {} of the patch) does not fit {path:?} at line {}.\nExpected:{wanted}\nFound:{found}\n{}",
                hunk.patch_line,
                expected + 1,
                reason(&image, text, hunk, *expected),
            ))
        }
    }
}

fn shown<'s>(lines: impl Iterator<Item = (bool, &'s str)>) -> String {
    let mut out = String::new();
    for (is_removed, line) in lines.take(SHOWN_LINES) {
        out.push_str(if is_removed { "\n-" } else { "\n " });
        out.push_str(clip::head(line, SHOWN_CHARS));
    }
    if out.is_empty() {
        "\n (nothing: the file ends before)".into()
    } else {
        out
    }
}

/// The likeliest reason why a hunk is not at its place.
fn reason(image: &Image<'_>, text: &str, hunk: &Hunk<'_>, expected: usize) -> String {
    let first = image.first_difference(&hunk.lines, expected);
    let old: String = hunk
        .lines
        .iter()
        .filter(|line| line.is_old())
        .map(|line| format!("{}\n", line.text))
        .collect();
    let elsewhere: Vec<usize> = image.places(&hunk.lines, 0).take(6).collect();
    if !elsewhere.is_empty() {
        let (_, trailing) = hunk.context();
        let rule = match (hunk.old.start <= 1, trailing == 0) {
            (true, _) => {
                "a hunk that names line 1 must fit the beginning of the file: correct its line numbers"
            }
            (false, true) => {
                "a hunk without context after its last change must fit the end of the file: add context"
            }
            (false, false) => "correct its line numbers",
        };
        return format!("Its lines are at line {}; {rule}.", v4a::line_list(&elsewhere));
    }
    if old.is_empty() {
        return "The hunk has no context, so its place is not certain: make the diff with context lines."
            .into();
    }
    let ends_differ = first.is_some_and(|at| {
        let line = hunk.lines.iter().filter(|line| line.is_old()).nth(at);
        line.is_some_and(|line| image.text(expected + at) == Some(line.text.trim_end_matches('\r')))
    });
    if ends_differ {
        return "The text is the same, but only one of the two has a newline at the end of the file: check \"\\ No newline at end of file\".".into();
    }
    edit::closest_lines(text, &old)
        .unwrap_or_else(|| "No line of the file resembles it: read the file again.".into())
}

/// Applies V4A chunks. `appends`: added lines without any context go to the end of the file.
pub(super) fn update_v4a(bytes: &[u8], path: &str, chunks: &[Chunk<'_>], appends: bool) -> Result<Patched> {
    if chunks.is_empty() {
        return Err(invalid(format!("the patch of {path:?} has no lines: nothing to apply")).at(path));
    }
    let decoded = encoding::decode(bytes, path)?;
    let mut image = Image::new(&decoded.text, Compare::Text);
    let mut cursor = 0;
    let (mut placed, mut reports) = (Vec::new(), Vec::new());
    for (index, chunk) in chunks.iter().enumerate() {
        let found = v4a::place(&image, chunk, cursor, appends).map_err(|misfit| {
            let olds = chunk.lines.iter().filter(|line| line.is_old());
            let old: String = olds.map(|line| format!("{}\n", line.text)).collect();
            let what = misfit.words(|| edit::closest_lines(&decoded.text, &old));
            let (number, total, line) = (index + 1, chunks.len(), chunk.patch_line);
            let message = format!("chunk {number} of {total} (line {line} of the patch) of {path:?} {what}");
            Error::new(ErrorCode::PatchConflict, message).at(path)
        })?;
        image.occupy(found.lines, found.start);
        cursor = found.start + found.lines.iter().filter(|line| line.is_old()).count();
        reports.push(PlacedHunk {
            hunk: index + 1,
            line: found.start + 1,
            offset: 0,
            fuzz: 0,
        });
        placed.push(found);
    }
    Ok(Patched {
        bytes: encode(image.rebuild(&mut placed), decoded.encoding),
        hunks: reports,
    })
}
