//! A file as lines that hunks are compared with, and the file that comes out of placed hunks. Lines already
//! touched by a hunk cannot be matched by another.

use super::hunk::{HunkLine, Newline, Side};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

/// How a line of the patch is compared with a line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    /// Byte for byte, and with or without a final newline as the patch says.
    Exact,
    /// As `Exact`, but a CR before the newline does not count.
    IgnoreCr,
    /// The text alone: V4A says nothing of newlines.
    Text,
}

pub(super) struct Image<'t> {
    lines: Vec<&'t str>,
    compare: Compare,
    /// Sorted and apart.
    occupied: Vec<Range<usize>>,
    /// Made when a hunk is not where it is expected.
    numbered: OnceCell<Numbered<'t>>,
    /// The places of each line, by its text without white space at the ends: for anchors.
    by_text: OnceCell<HashMap<&'t str, Vec<usize>>>,
}

/// Each different line as a number, and where it is: a block of lines is looked for at the places of its rarest
/// line only, so that a thousand hunks that moved do not read the file a thousand times.
struct Numbered<'t> {
    numbers: HashMap<(&'t str, bool), u32>,
    /// The number of each line.
    file: Vec<u32>,
    /// Where each number is, ascending: those of number `n` are `places[ends[n - 1]..ends[n]]`.
    places: Vec<u32>,
    ends: Vec<u32>,
}

/// A hunk that found its place.
pub(super) struct Placed<'h, 'p> {
    /// 0-based first line.
    pub start: usize,
    pub lines: &'h [HunkLine<'p>],
}

impl<'t> Image<'t> {
    pub fn new(text: &'t str, compare: Compare) -> Self {
        let lines = text.split_inclusive('\n').collect();
        Self {
            lines,
            compare,
            occupied: Vec::new(),
            numbered: OnceCell::new(),
            by_text: OnceCell::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True of an empty file.
    pub fn ends_with_newline(&self) -> bool {
        self.lines.last().is_none_or(|line| line.ends_with('\n'))
    }

    /// A line without its ending, for messages.
    pub fn text(&self, at: usize) -> Option<&'t str> {
        self.lines.get(at).map(|line| key(line, Compare::Text).0)
    }

    /// Lines with exactly this text; without one, those that differ in white space at the ends only.
    pub fn lines_like(&self, text: &str) -> Vec<usize> {
        let by_text = self.by_text.get_or_init(|| {
            let mut by_text: HashMap<&'t str, Vec<usize>> = HashMap::new();
            for (at, line) in self.lines.iter().enumerate() {
                by_text.entry(line.trim()).or_default().push(at);
            }
            by_text
        });
        let alike = by_text.get(text.trim()).map_or(&[][..], Vec::as_slice);
        let exact: Vec<usize> = alike
            .iter()
            .copied()
            .filter(|&at| self.text(at) == Some(text))
            .collect();
        if exact.is_empty() { alike.to_vec() } else { exact }
    }

    /// Whether the old lines of a hunk are at `start`, and free.
    pub fn fits(&self, hunk: &[HunkLine<'_>], start: usize) -> bool {
        let mut at = start;
        for line in hunk.iter().filter(|line| line.is_old()) {
            match self.lines.get(at) {
                Some(in_file) if self.is_same(in_file, line) => at += 1,
                _ => return false,
            }
        }
        at <= self.lines.len() && self.is_free(&(start..at))
    }

    /// The first of the file's lines in `range` that differs from the hunk's old lines, counted from its start.
    pub fn first_difference(&self, hunk: &[HunkLine<'_>], start: usize) -> Option<usize> {
        let olds = hunk.iter().filter(|line| line.is_old());
        olds.enumerate().position(|(index, line)| {
            self.lines
                .get(start + index)
                .is_none_or(|in_file| !self.is_same(in_file, line))
        })
    }

    fn is_same(&self, in_file: &str, line: &HunkLine<'_>) -> bool {
        key(in_file, self.compare) == wanted(line, self.compare)
    }

    fn is_free(&self, range: &Range<usize>) -> bool {
        // Sorted and apart, so only the last that begins before the range's end can reach into it.
        let before = self.occupied.partition_point(|taken| taken.start < range.end);
        before
            .checked_sub(1)
            .is_none_or(|at| self.occupied[at].end <= range.start)
    }

    /// Whether a hunk has put lines directly at `at` without touching a line: then what was the file's beginning
    /// or end there no longer is.
    pub fn has_insertion(&self, at: usize) -> bool {
        self.occupied
            .iter()
            .any(|taken| taken.is_empty() && taken.start == at)
    }

    pub fn occupy(&mut self, hunk: &[HunkLine<'_>], start: usize) {
        let count = hunk.iter().filter(|line| line.is_old()).count();
        let at = self
            .occupied
            .partition_point(|taken| (taken.start, taken.end) <= (start, start + count));
        self.occupied.insert(at, start..start + count);
    }

    /// Every free place of the hunk's old lines from `from` on, ascending.
    pub fn places<'s>(
        &'s self,
        hunk: &'s [HunkLine<'_>],
        from: usize,
    ) -> Box<dyn Iterator<Item = usize> + 's> {
        let numbered = self
            .numbered
            .get_or_init(|| Numbered::new(&self.lines, self.compare));
        let mut block = Vec::new();
        for line in hunk.iter().filter(|line| line.is_old()) {
            match numbered.numbers.get(&wanted(line, self.compare)) {
                Some(&number) => block.push(number),
                None => return Box::new(std::iter::empty()),
            }
        }
        let rarest = (0..block.len()).min_by_key(|&at| numbered.places_of(block[at]).len());
        let Some(rarest) = rarest else {
            return Box::new(std::iter::empty());
        };
        let starts = numbered.places_of(block[rarest]).iter();
        let starts = starts.filter_map(move |&place| (place as usize).checked_sub(rarest));
        Box::new(starts.filter(move |&start| {
            let end = start + block.len();
            start >= from && numbered.file.get(start..end) == Some(&block[..]) && self.is_free(&(start..end))
        }))
    }

    /// The file after all hunks: context lines keep the file's own bytes.
    pub fn rebuild(&self, placed: &mut [Placed<'_, '_>]) -> String {
        // An insertion at a line goes before a hunk that begins with it.
        placed.sort_by_key(|hunk| (hunk.start, hunk.lines.iter().any(HunkLine::is_old)));
        let mut out = Output {
            text: String::new(),
            compare: self.compare,
            owes_newline: false,
        };
        out.text
            .reserve(self.lines.iter().map(|line| line.len()).sum::<usize>());
        let mut next = 0;
        for hunk in placed.iter() {
            self.lines[next..hunk.start]
                .iter()
                .for_each(|line| out.keep(line));
            next = hunk.start;
            for line in hunk.lines {
                match line.side {
                    Side::Both => out.keep(self.lines[next]),
                    Side::Old => {}
                    Side::New => out.add(line, self.ending_near(next)),
                }
                next += usize::from(line.is_old());
            }
        }
        self.lines[next..].iter().for_each(|line| out.keep(line));
        out.finish(self.ends_with_newline())
    }

    /// The ending of the nearest line before `at`, else of the first line.
    fn ending_near(&self, at: usize) -> &'static str {
        let before = self.lines[..at].iter().rev().chain(&self.lines);
        match before.take(at + 1).find(|line| line.ends_with('\n')) {
            Some(line) if line.ends_with("\r\n") => "\r\n",
            _ => "\n",
        }
    }
}

impl<'t> Numbered<'t> {
    fn new(lines: &[&'t str], compare: Compare) -> Self {
        let mut numbers = HashMap::new();
        let mut file = Vec::with_capacity(lines.len());
        for line in lines {
            let next = numbers.len() as u32;
            file.push(*numbers.entry(key(line, compare)).or_insert(next));
        }
        // A counting sort: how many there are of each, where each begins, and each to its place.
        let mut ends = vec![0_u32; numbers.len()];
        for &number in &file {
            ends[number as usize] += 1;
        }
        let mut begin = 0;
        for end in &mut ends {
            (*end, begin) = (begin, begin + *end);
        }
        let mut places = vec![0_u32; file.len()];
        for (at, &number) in file.iter().enumerate() {
            let end = &mut ends[number as usize];
            places[*end as usize] = at as u32;
            *end += 1;
        }
        Self {
            numbers,
            file,
            places,
            ends,
        }
    }

    fn places_of(&self, number: u32) -> &[u32] {
        let number = number as usize;
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[begin as usize..self.ends[number] as usize]
    }
}

/// What of a file's line counts: its text, and whether it ends with a newline.
fn key(line: &str, compare: Compare) -> (&str, bool) {
    let (text, ended) = match line.strip_suffix('\n') {
        Some(text) => (text, true),
        None => (line, false),
    };
    match compare {
        Compare::Exact => (text, ended),
        Compare::IgnoreCr if ended => (text.strip_suffix('\r').unwrap_or(text), true),
        Compare::IgnoreCr => (text, false),
        Compare::Text => (
            if ended {
                text.strip_suffix('\r').unwrap_or(text)
            } else {
                text
            },
            true,
        ),
    }
}

fn wanted<'p>(line: &HunkLine<'p>, compare: Compare) -> (&'p str, bool) {
    let text = match compare {
        Compare::Exact => line.text,
        Compare::IgnoreCr | Compare::Text => line.text.strip_suffix('\r').unwrap_or(line.text),
    };
    (text, line.newline != Newline::No)
}

struct Output {
    text: String,
    compare: Compare,
    /// The last line has no ending yet, and gets one if another follows.
    owes_newline: bool,
}

impl Output {
    fn keep(&mut self, line: &str) {
        self.settle("\n");
        self.text.push_str(line);
        self.owes_newline = !line.ends_with('\n');
    }

    fn add(&mut self, line: &HunkLine<'_>, ending: &str) {
        self.settle(ending);
        self.text.push_str(match self.compare {
            Compare::Exact => line.text,
            Compare::IgnoreCr | Compare::Text => line.text.strip_suffix('\r').unwrap_or(line.text),
        });
        match line.newline {
            Newline::Yes | Newline::Any => self.text.push_str(if self.compare == Compare::Exact {
                "\n"
            } else {
                ending
            }),
            Newline::No => self.owes_newline = true,
        }
    }

    fn settle(&mut self, ending: &str) {
        if std::mem::take(&mut self.owes_newline) {
            self.text.push_str(ending);
        }
    }

    fn finish(mut self, had_final_newline: bool) -> String {
        // A V4A patch cannot say that the final newline goes or comes: it stays as it was.
        if self.compare == Compare::Text && !had_final_newline {
            let end = self
                .text
                .strip_suffix("\r\n")
                .or(self.text.strip_suffix('\n'))
                .map(str::len);
            self.text.truncate(end.unwrap_or(self.text.len()));
        }
        self.text
    }
}
