//! The lines of a file that are closest to a text which does not occur, and where the two first differ.

use super::fold::{fold_line, hash};
use super::{clipped, visible};
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;

/// Lines of the region that are printed.
const SHOWN_LINES: usize = 10;
const SHOWN_CHARS: usize = 200;
/// A line of `old` that occurs at more places than this tells nothing about the place.
const MAX_PLACES: usize = 8;
/// Bytes of a line that its resemblance is judged by.
const JUDGED_BYTES: usize = 2048;
/// Resemblance (1.0: the same) below which nothing is shown.
const MIN_RESEMBLANCE: f64 = 0.6;

pub(in crate::text::edit) fn region(text: &str, old: &str) -> Option<String> {
    let old_lines: Vec<&str> = old.lines().collect();
    let is_text = |line: &&str| !line.trim().is_empty();
    let first = old_lines.iter().position(is_text)?;
    let last = old_lines.iter().rposition(is_text)?;
    let old_lines = &old_lines[first..=last];
    // At LF only, as numbers are counted; a CR at the end is white space to the folding.
    let file_lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    let start = same_when_folded(&file_lines, old_lines)
        .or_else(|| most_lines_in_common(&file_lines, old_lines))
        .or_else(|| most_alike(&file_lines, old_lines))?;
    Some(describe(&file_lines, old_lines, start))
}

/// The 0-based line where `old` begins if white space, quotes and the like are not looked at. `old` may begin
/// and end inside a line.
fn same_when_folded(file_lines: &[&str], old_lines: &[&str]) -> Option<usize> {
    let needle = folded(old_lines);
    if needle.trim().is_empty() {
        return None;
    }
    let haystack = folded(file_lines);
    let at = memchr::memmem::find(haystack.as_bytes(), needle.as_bytes())?;
    Some(memchr::memchr_iter(b'\n', &haystack.as_bytes()[..at]).count())
}

fn folded(lines: &[&str]) -> String {
    let mut all = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    let mut line_folded = String::new();
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            all.push('\n');
        }
        fold_line(line, &mut line_folded);
        all.push_str(&line_folded);
    }
    all
}

/// Each line the two have in common votes for the place where `old` would begin; rare and long lines count more.
fn most_lines_in_common(file_lines: &[&str], old_lines: &[&str]) -> Option<usize> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut line_folded = String::new();
    for (index, line) in old_lines.iter().enumerate() {
        fold_line(line, &mut line_folded);
        if !line_folded.is_empty() {
            places.entry(hash(&line_folded)).or_default().push(index);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (index, line) in file_lines.iter().enumerate() {
        fold_line(line, &mut line_folded);
        let Some(in_old) = places
            .get(&hash(&line_folded))
            .filter(|in_old| in_old.len() <= MAX_PLACES)
        else {
            continue;
        };
        for old_index in in_old.iter().filter(|&&old_index| old_index <= index) {
            *votes.entry(index - old_index).or_default() += line_folded.len().min(80);
        }
    }
    // The first of equals, so that the answer does not depend on the map's order.
    votes
        .into_iter()
        .max_by_key(|&(start, votes)| (votes, std::cmp::Reverse(start)))
        .map(|(start, _)| start)
}

/// The line most like the longest line of `old`, by the pairs of bytes they share.
fn most_alike(file_lines: &[&str], old_lines: &[&str]) -> Option<usize> {
    let (index, longest) = old_lines
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let longest = judged(longest);
    let mut pairs = [0u64; 1024];
    longest
        .windows(2)
        .for_each(|pair| pairs[slot(pair) / 64] |= 1 << (slot(pair) % 64));
    let mut best: Option<(f64, usize)> = None;
    for (at, line) in file_lines.iter().enumerate() {
        let line = judged(line);
        if line.len() < 2 {
            continue;
        }
        let shared = line
            .windows(2)
            .filter(|pair| pairs[slot(pair) / 64] >> (slot(pair) % 64) & 1 == 1)
            .count();
        let resemblance = 2.0 * shared as f64 / (line.len() + longest.len() - 2) as f64;
        if resemblance >= MIN_RESEMBLANCE && best.is_none_or(|(most, _)| resemblance > most) {
            best = Some((resemblance, at));
        }
    }
    best.map(|(_, at)| at.saturating_sub(index))
}

fn judged(line: &str) -> &[u8] {
    let line = line.trim().as_bytes();
    &line[..line.len().min(JUDGED_BYTES)]
}

fn slot(pair: &[u8]) -> usize {
    usize::from(pair[0]) << 8 | usize::from(pair[1])
}

fn describe(file_lines: &[&str], old_lines: &[&str], start: usize) -> String {
    let end = (start + old_lines.len()).min(file_lines.len());
    let region = &file_lines[start..end];
    let differing = region.iter().zip(old_lines).position(|(in_file, in_old)| {
        let in_file = in_file.trim_end_matches('\r');
        // `old` may begin and end inside a line.
        !(in_file == *in_old || old_lines.len() == 1 && in_file.contains(in_old))
    });
    let focus = differing.unwrap_or(0);
    let first = focus
        .saturating_sub(SHOWN_LINES / 2)
        .min(region.len().saturating_sub(SHOWN_LINES));
    let mut out = format!("The closest place in the file is at line {}:", start + 1);
    for (index, line) in region.iter().enumerate().skip(first).take(SHOWN_LINES) {
        let line = line.trim_end_matches('\r');
        out.push_str(&format!(
            "\n{:6}\t{}",
            start + index + 1,
            clipped(line, SHOWN_CHARS)
        ));
    }
    match differing {
        Some(at) => {
            let (in_file, in_old) = (region[at].trim_end_matches('\r'), old_lines[at]);
            let (shown_file, shown_old) = around_difference(in_file, in_old);
            out.push_str(&format!(
                "\nLine {} differs{}: the file has {shown_file}, old_string has {shown_old}",
                start + at + 1,
                kind(in_file, in_old),
            ));
        }
        None if region.len() < old_lines.len() => {
            out.push_str("\nThere the file ends, and old_string goes on")
        }
        None => {}
    }
    out
}

/// Both lines from a little before their first difference.
fn around_difference(in_file: &str, in_old: &str) -> (String, String) {
    let same: usize = in_file
        .chars()
        .zip(in_old.chars())
        .take_while(|(a, b)| a == b)
        .map(|(character, _)| character.len_utf8())
        .sum();
    let before = in_file[..same]
        .char_indices()
        .rev()
        .nth(40)
        .map_or(0, |(at, _)| at);
    let lead = if before > 0 { "..." } else { "" };
    let show = |line: &str| format!("{lead}{}", visible(&clipped(&line[before..], SHOWN_CHARS)));
    (show(in_file), show(in_old))
}

/// What sort of difference it is, when it is one the eye misses.
fn kind(in_file: &str, in_old: &str) -> &'static str {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (file_indent, old_indent) = (&in_file[..indent(in_file)], &in_old[..indent(in_old)]);
    if in_file.nfc().eq(in_old.nfc()) {
        return " (Unicode normalisation: composed against decomposed characters)";
    }
    if in_file.trim() == in_old.trim() {
        return match (
            file_indent == old_indent,
            file_indent.contains('\t'),
            old_indent.contains('\t'),
        ) {
            (true, _, _) => " (white space at the end)",
            (false, true, false) => " (the file indents with tabs, old_string with spaces)",
            (false, false, true) => " (the file indents with spaces, old_string with tabs)",
            (false, _, _) => " (indentation)",
        };
    }
    let (mut a, mut b) = (String::new(), String::new());
    fold_line(in_file, &mut a);
    fold_line(in_old, &mut b);
    if a != b && !a.contains(&b) {
        return "";
    }
    let odd_in = |line: &str| {
        line.chars()
            .any(|character| "\u{2018}\u{2019}\u{201c}\u{201d}".contains(character))
    };
    match (odd_in(in_file), odd_in(in_old)) {
        (true, false) => " (the file has curly quotes)",
        (false, true) => " (old_string has curly quotes)",
        _ => " (white space, or characters that look alike)",
    }
}
