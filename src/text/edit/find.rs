//! Where `old` occurs: byte for byte, or with each of its LFs standing for whatever line break the file has.

use super::{LineEndings, Refused};
use crate::text::lines;
use memchr::memmem::{self, Finder};
use std::ops::Range;

/// Line numbers an ambiguity names.
const LINES_NAMED: usize = 5;

pub(super) struct Haystack<'t> {
    text: &'t str,
    /// The text with every CRLF made LF, when that is what `old` is compared with.
    lf_text: Option<Vec<u8>>,
    finder: Finder<'t>,
    old: &'t str,
}

impl<'t> Haystack<'t> {
    pub fn new(text: &'t str, old: &'t str, mode: LineEndings) -> Self {
        // An `old` with a CR of its own says exactly which breaks it means.
        let breaks_are_open = mode == LineEndings::Preserve && old.contains('\n') && !old.contains('\r');
        let lf_text = if breaks_are_open {
            without_crlf(text.as_bytes())
        } else {
            None
        };
        Self {
            text,
            lf_text,
            finder: Finder::new(old),
            old,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.lf_text.as_deref().unwrap_or(self.text.as_bytes())
    }

    /// Non-overlapping occurrences from left to right, as byte ranges of the text.
    pub fn ranges(&self) -> Box<dyn Iterator<Item = Range<usize>> + '_> {
        let length = self.old.len();
        let found = self
            .finder
            .find_iter(self.bytes())
            .map(move |start| start..start + length);
        match self.lf_text {
            None => Box::new(found.filter(|range| !self.splits_crlf(range.start))),
            Some(_) => {
                let mut origin = Origin::new(self.text.as_bytes());
                Box::new(found.map(move |range| {
                    let start = origin.of(range.start);
                    start..origin.of(range.end)
                }))
            }
        }
    }

    /// An LF at the start of `old` is a line break, not the second half of a CRLF: replacing only that half
    /// would leave a stray CR.
    fn splits_crlf(&self, start: usize) -> bool {
        self.old.starts_with('\n') && start > 0 && self.text.as_bytes()[start - 1] == b'\r'
    }

    /// The only occurrence.
    pub fn unique(&self) -> Result<Range<usize>, Refused> {
        let mut ranges = self.ranges();
        let Some(first) = ranges.next() else {
            return Err(Refused::NoMatch);
        };
        let mut found: Vec<_> = std::iter::once(first.start)
            .chain(ranges.by_ref().take(LINES_NAMED - 1).map(|range| range.start))
            .collect();
        let places = found.len() + ranges.count();
        if places > 1 {
            let lines = self.line_numbers(&found);
            return Err(Refused::Ambiguous {
                places,
                lines,
                overlapping: false,
            });
        }
        match self.overlapping(&first) {
            Some(second) => {
                found.push(second);
                let lines = self.line_numbers(&found);
                Err(Refused::Ambiguous {
                    places: 2,
                    lines,
                    overlapping: true,
                })
            }
            None => Ok(first),
        }
    }

    /// Where a second occurrence begins inside the only one: "aa" in "aaa".
    fn overlapping(&self, first: &Range<usize>) -> Option<usize> {
        // A line break is one step, and so is a character.
        let step = match &self.text[first.start..] {
            rest if rest.starts_with("\r\n") => 2,
            rest => rest.chars().next().map_or(1, char::len_utf8),
        };
        let start = first.start + step;
        // As many bytes behind the first as a second can reach, were each of its LFs a CRLF.
        let reach = (first.end + 2 * self.old.len()).min(self.text.len());
        let end = (reach..=self.text.len()).find(|&at| self.text.is_char_boundary(at))?;
        let part = Self {
            text: &self.text[start..end],
            lf_text: None,
            finder: self.finder.clone(),
            old: self.old,
        };
        let lf_text = self
            .lf_text
            .as_ref()
            .and_then(|_| without_crlf(part.text.as_bytes()));
        let second = Self { lf_text, ..part }.ranges().next()?;
        Some(start + second.start)
    }

    fn line_numbers(&self, starts: &[usize]) -> Vec<usize> {
        starts
            .iter()
            .map(|&start| lines::number_at(self.text.as_bytes(), start))
            .collect()
    }
}

/// `None` when there is no CRLF, and so nothing to compare differently.
pub(super) fn without_crlf(bytes: &[u8]) -> Option<Vec<u8>> {
    memmem::find(bytes, b"\r\n")?;
    let mut out = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    for at in memmem::find_iter(bytes, b"\r\n") {
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
    }
    out.extend_from_slice(&bytes[copied..]);
    Some(out)
}

/// Maps offsets of the LF text back to the text, in ascending order. The offset of a line break maps to its CR:
/// a range takes a break whole or not at all.
struct Origin<'t> {
    crlfs: std::iter::Peekable<memmem::FindIter<'t, 'static>>,
    removed: usize,
}

impl<'t> Origin<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self {
            crlfs: memmem::find_iter(text, b"\r\n").peekable(),
            removed: 0,
        }
    }

    fn of(&mut self, lf_offset: usize) -> usize {
        while self.crlfs.next_if(|&cr| cr - self.removed < lf_offset).is_some() {
            self.removed += 1;
        }
        lf_offset + self.removed
    }
}
