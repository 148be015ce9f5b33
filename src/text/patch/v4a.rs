//! The V4A format: `*** Begin Patch`, a section for each file, chunks placed by `@@` anchors and context instead
//! of line numbers. A chunk without a unique place is refused.

use super::hunk::{HunkLine, Newline, Side};
use super::image::{Image, Placed};
use super::{invalid, name};
use crate::error::Result;

/// Places that an ambiguity names.
const PLACES_NAMED: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section<'p> {
    /// Normalised.
    pub path: String,
    pub change: Change<'p>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change<'p> {
    Add {
        content: String,
    },
    Delete,
    Update {
        move_to: Option<String>,
        chunks: Vec<Chunk<'p>>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk<'p> {
    /// 1-based, in the patch.
    pub patch_line: usize,
    /// Lines to pass before the place, outermost first.
    pub anchors: Vec<&'p str>,
    pub lines: Vec<HunkLine<'p>>,
    /// Its old lines are the last of the file.
    pub at_end: bool,
    /// Lines at the end that were quite empty: blank context, or only the patch's layout.
    pub loose_blanks: usize,
}

/// A line with its 1-based number in the patch.
type Numbered<'p> = (usize, &'p str);

/// The lines between `*** Begin Patch` and `*** End Patch`, if the patch is of this format.
pub(super) fn envelope(patch: &str) -> Option<Envelope<'_>> {
    let mut lines: Vec<Numbered<'_>> = numbered(patch).collect();
    let begin = lines
        .iter()
        .position(|(_, line)| line.trim() == "*** Begin Patch")?;
    // A unified diff may well change a file that speaks of V4A.
    let is_unified = |line: &str| line.starts_with("diff --git ") || line.starts_with("+++ ");
    if lines[..begin].iter().any(|(_, line)| is_unified(line)) {
        return None;
    }
    lines.drain(..=begin);
    let end = lines.iter().rposition(|(_, line)| line.trim() == "*** End Patch");
    if let Some(end) = end {
        lines.truncate(end);
    }
    Some(Envelope {
        lines,
        is_closed: end.is_some(),
    })
}

pub(super) struct Envelope<'p> {
    lines: Vec<Numbered<'p>>,
    is_closed: bool,
}

fn numbered(patch: &str) -> impl Iterator<Item = Numbered<'_>> {
    let lines = patch
        .split_inclusive('\n')
        .map(|line| line.strip_suffix('\n').unwrap_or(line));
    lines
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

pub(super) fn parse(envelope: Envelope<'_>) -> Result<Vec<Section<'_>>> {
    if !envelope.is_closed {
        return Err(invalid(
            "the patch has no \"*** End Patch\" line: it may have been cut off, send it whole",
        ));
    }
    let mut lines = envelope.lines.as_slice();
    let mut sections = Vec::new();
    while let Some(((number, line), rest)) = lines.split_first() {
        let header = line.trim();
        if header.is_empty() {
            lines = rest;
            continue;
        }
        let body_len = rest
            .iter()
            .position(|(_, line)| is_section_header(line))
            .unwrap_or(rest.len());
        let (body, after) = rest.split_at(body_len);
        lines = after;
        sections.push(section(*number, header, body)?);
    }
    if sections.is_empty() {
        return Err(invalid(
            "the patch has no \"*** Add File:\", \"*** Update File:\" or \"*** Delete File:\" line: nothing to apply",
        ));
    }
    Ok(sections)
}

fn is_section_header(line: &str) -> bool {
    ["*** Add File:", "*** Update File:", "*** Delete File:"]
        .iter()
        .any(|header| line.starts_with(header))
}

fn section<'p>(number: usize, header: &str, body: &[Numbered<'p>]) -> Result<Section<'p>> {
    let named = |prefix| {
        header
            .strip_prefix(prefix)
            .map(|name: &str| name::check(name.trim()))
    };
    if let Some(path) = named("*** Add File:") {
        let path = path?;
        let content = added_lines(body)?
            .iter()
            .map(|line| format!("{line}\n"))
            .collect();
        Ok(Section {
            path,
            change: Change::Add { content },
        })
    } else if let Some(path) = named("*** Delete File:") {
        if let Some((line, _)) = body.iter().find(|(_, line)| !line.trim().is_empty()) {
            return Err(invalid(format!(
                "line {line} of the patch: a \"*** Delete File:\" section has no lines"
            )));
        }
        Ok(Section {
            path: path?,
            change: Change::Delete,
        })
    } else if let Some(path) = named("*** Update File:") {
        let moved = body
            .first()
            .and_then(|(_, line)| line.trim().strip_prefix("*** Move to:"));
        let move_to = moved.map(|name| name::check(name.trim())).transpose()?;
        let chunks = chunks(&body[usize::from(moved.is_some())..])?;
        if chunks.is_empty() && move_to.is_none() {
            return Err(invalid(format!(
                "the section at line {number} of the patch has no changes: nothing to apply"
            )));
        }
        Ok(Section {
            path: path?,
            change: Change::Update { move_to, chunks },
        })
    } else {
        Err(invalid(format!(
            "line {number} of the patch is {:?}, where \"*** Add File: path\", \"*** Update File: path\" or \"*** Delete File: path\" must be",
            crate::text::clip::head(header, 80)
        )))
    }
}

fn added_lines<'p>(body: &[Numbered<'p>]) -> Result<Vec<&'p str>> {
    // Blank lines at the end are the patch's layout.
    let end = body
        .iter()
        .rposition(|(_, line)| !line.is_empty())
        .map_or(0, |last| last + 1);
    let added = |(number, line): &Numbered<'p>| {
        line.strip_prefix('+').ok_or_else(|| {
            invalid(format!(
                "line {number} of the patch: every line of an added file begins with \"+\""
            ))
        })
    };
    body[..end].iter().map(added).collect()
}

/// The content of a created file from a headerless diff. Its last line has a newline only if an empty `+` line
/// follows it: so the SDK writes and reads them.
pub(super) fn created(diff: &str) -> Result<String> {
    let lines: Vec<Numbered<'_>> = numbered(diff).collect();
    Ok(added_lines(&lines)?.join("\n"))
}

pub(super) fn parse_chunks(diff: &str) -> Result<Vec<Chunk<'_>>> {
    chunks(&numbered(diff).collect::<Vec<_>>())
}

fn chunks<'p>(body: &[Numbered<'p>]) -> Result<Vec<Chunk<'p>>> {
    let mut chunks: Vec<Chunk<'p>> = Vec::new();
    let mut current = Chunk::default();
    let newline = Newline::Any;
    for &(number, line) in body {
        if current.patch_line == 0 {
            current.patch_line = number;
        }
        if let Some(anchor) = line.strip_prefix("@@") {
            // An anchor after lines begins a chunk; anchors in a row narrow the place down.
            if !current.lines.is_empty() || current.at_end {
                chunks.push(std::mem::take(&mut current));
                current.patch_line = number;
            }
            current.anchors.extend(anchor_text(anchor));
            continue;
        }
        if line.trim_end() == "*** End of File" {
            current.at_end = true;
            continue;
        }
        if current.at_end && !line.trim().is_empty() {
            return Err(invalid(format!(
                "line {number} of the patch follows \"*** End of File\": begin a new chunk with \"@@\""
            )));
        }
        let (side, text) = match line.as_bytes() {
            _ if current.at_end => continue,
            [] => (Side::Both, line),
            [b' ', ..] => (Side::Both, &line[1..]),
            [b'-', ..] => (Side::Old, &line[1..]),
            [b'+', ..] => (Side::New, &line[1..]),
            _ => {
                return Err(invalid(format!(
                    "line {number} of the patch begins with {:?}: lines of a chunk begin with a space, \"-\" or \"+\"",
                    line.chars().next().unwrap_or_default()
                )));
            }
        };
        current.loose_blanks = if line.is_empty() {
            current.loose_blanks + 1
        } else {
            0
        };
        current.lines.push(HunkLine { side, text, newline });
    }
    chunks.push(current);
    // What is left of chunks that were only blank lines between sections.
    chunks.retain(|chunk| chunk.lines.len() > chunk.loose_blanks || !chunk.anchors.is_empty());
    for chunk in &chunks {
        if chunk.lines.iter().all(|line| line.side == Side::Both) {
            return Err(invalid(format!(
                "the chunk at line {} of the patch changes nothing",
                chunk.patch_line
            )));
        }
    }
    Ok(chunks)
}

/// What follows `@@`. Line numbers, from the other format, say nothing here.
fn anchor_text(rest: &str) -> Option<&str> {
    let text = rest.strip_prefix(' ').unwrap_or(rest);
    let text = match text.split_once(" @@") {
        Some((numbers, after)) if is_line_numbers(numbers) => after.trim_start(),
        _ => text,
    };
    (!text.trim().is_empty()).then_some(text)
}

fn is_line_numbers(text: &str) -> bool {
    text.starts_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-+, ".contains(&byte))
}

pub(super) enum Misfit {
    NoAnchor(String),
    Nowhere,
    Several(Vec<usize>),
    NoContext,
}

impl Misfit {
    pub fn words(&self, closest: impl FnOnce() -> Option<String>) -> String {
        match self {
            Self::NoAnchor(anchor) => format!("has the anchor {anchor:?}, which is no line of the file"),
            Self::Nowhere => format!(
                "does not fit: its context and removed lines are not in the file, or only before the chunk ahead of it. {}",
                closest().unwrap_or_default()
            ),
            Self::Several(places) => format!(
                "fits at several places (lines {}): add context, or an \"@@\" line with the enclosing class or function",
                line_list(places)
            ),
            Self::NoContext => {
                "only adds lines and does not say where: add context lines or an \"@@\" anchor".into()
            }
        }
    }
}

/// 1-based line numbers of 0-based places, the first five.
pub(super) fn line_list(places: &[usize]) -> String {
    let mut named: Vec<String> = places
        .iter()
        .take(PLACES_NAMED)
        .map(|place| (place + 1).to_string())
        .collect();
    if places.len() > PLACES_NAMED {
        named.push("...".into());
    }
    named.join(", ")
}

/// The only place of a chunk at or behind `cursor`.
pub(super) fn place<'h, 'p>(
    image: &Image<'_>,
    chunk: &'h Chunk<'p>,
    cursor: usize,
    appends: bool,
) -> std::result::Result<Placed<'h, 'p>, Misfit> {
    let whole = chunk.lines.as_slice();
    let without_blanks = &whole[..whole.len() - chunk.loose_blanks];
    let first = position(image, chunk, whole, cursor, appends);
    match first {
        Ok(start) => Ok(Placed { start, lines: whole }),
        Err(Misfit::Nowhere) if chunk.loose_blanks > 0 => {
            let start = position(image, chunk, without_blanks, cursor, appends)?;
            Ok(Placed {
                start,
                lines: without_blanks,
            })
        }
        Err(misfit) => Err(misfit),
    }
}

fn position(
    image: &Image<'_>,
    chunk: &Chunk<'_>,
    lines: &[HunkLine<'_>],
    cursor: usize,
    appends: bool,
) -> std::result::Result<usize, Misfit> {
    let olds = lines.iter().filter(|line| line.is_old()).count();
    let anchored = anchor_lines(image, chunk)?;
    if olds == 0 {
        return match anchored.as_deref() {
            _ if chunk.at_end || image.len() == 0 => Ok(image.len()),
            None if appends => Ok(image.len()),
            None => Err(Misfit::NoContext),
            Some([only]) => Ok((only + 1).max(cursor)),
            Some(several) => Err(Misfit::Several(several.to_vec())),
        };
    }
    if chunk.at_end {
        let start = image
            .len()
            .checked_sub(olds)
            .filter(|&start| start >= cursor && image.fits(lines, start));
        return start.ok_or(Misfit::Nowhere);
    }
    let places: Vec<usize> = match anchored {
        None => image.places(lines, cursor).take(PLACES_NAMED + 1).collect(),
        Some(anchors) => first_behind_each(image, lines, &anchors, cursor),
    };
    match places.as_slice() {
        [] => Err(Misfit::Nowhere),
        [only] => Ok(*only),
        _ => Err(Misfit::Several(places)),
    }
}

/// The first fit behind each line that could be the anchor (which may be repeated as context). The anchors
/// ascend, so a search goes on where the one before it ended.
fn first_behind_each(
    image: &Image<'_>,
    lines: &[HunkLine<'_>],
    anchors: &[usize],
    cursor: usize,
) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    for &anchor in anchors {
        let from = anchor.max(cursor);
        if places.last().is_some_and(|&place| place >= from) {
            continue;
        }
        match image.places(lines, from).next() {
            Some(place) if places.len() <= PLACES_NAMED => places.push(place),
            Some(_) | None => break,
        }
    }
    places
}

/// The lines that the innermost anchor can be, ascending; `None` without anchors. An anchor only points, so
/// that its white space is taken loosely changes no bytes.
fn anchor_lines(image: &Image<'_>, chunk: &Chunk<'_>) -> std::result::Result<Option<Vec<usize>>, Misfit> {
    let Some((outer, inner)) = chunk.anchors.split_first() else {
        return Ok(None);
    };
    // Those before the cursor too: other readers take such a line for the anchor and stay where they are, so a
    // chunk that also fits between there and the next such line is refused.
    let mut candidates = image.lines_like(outer);
    if candidates.is_empty() {
        return Err(Misfit::NoAnchor((*outer).into()));
    }
    for anchor in inner {
        let all = image.lines_like(anchor);
        let behind = |at: &usize| all.get(all.partition_point(|line| line <= at)).copied();
        let mut next: Vec<usize> = candidates.iter().filter_map(behind).collect();
        next.dedup();
        if next.is_empty() {
            return Err(Misfit::NoAnchor((*anchor).into()));
        }
        candidates = next;
    }
    Ok(Some(candidates))
}
