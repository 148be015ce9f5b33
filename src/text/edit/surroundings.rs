//! How new text takes the line endings of the place it lands in. Lines that `old` and `new` have in common keep
//! their bytes; the lines between take the ending of what they replace, else of the line they follow.

use crate::text::ending::{self, Ending};
use std::borrow::Cow;
use std::ops::Range;

/// `new` as it is to be written over `range` of `text`, which `old` matched. Owned when endings were converted.
pub(super) fn fit<'n>(text: &str, range: &Range<usize>, old: &str, new: &'n str) -> Cow<'n, str> {
    // Whoever writes a CR has chosen the endings.
    if !new.contains('\n') || new.contains('\r') || old.contains('\r') {
        return Cow::Borrowed(new);
    }
    let region = &text[range.clone()];
    let around = || {
        let (before, after) = (&text.as_bytes()[..range.start], &text.as_bytes()[range.end..]);
        Ending::first_in(after)
            .or_else(|| Ending::last_in(before))
            .unwrap_or(Ending::Lf)
    };
    if !region.contains('\r') && (region.contains('\n') || around() == Ending::Lf) {
        return Cow::Borrowed(new);
    }
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let region_lines: Vec<&str> = region.split_inclusive('\n').collect();
    let shorter = old_lines.len().min(new_lines.len());
    let head = old_lines
        .iter()
        .zip(&new_lines)
        .take_while(|(a, b)| a == b)
        .count();
    let same_tail = old_lines
        .iter()
        .rev()
        .zip(new_lines.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let tail = same_tail.min(shorter - head);
    let replaced = &region_lines[head..region_lines.len() - tail];
    let kept_before = &region_lines[..head];
    let kept_after = &region_lines[region_lines.len() - tail..];
    let ending = first_ending(replaced)
        .or_else(|| first_ending(&kept_before[head.saturating_sub(1)..]))
        .or_else(|| first_ending(kept_after))
        .unwrap_or_else(around);
    let mut out = kept_before.concat();
    for line in &new_lines[head..new_lines.len() - tail] {
        out.push_str(&ending::take_over(line, ending));
    }
    out.extend(kept_after.iter().copied());
    if out == new {
        Cow::Borrowed(new)
    } else {
        Cow::Owned(out)
    }
}

fn first_ending(lines: &[&str]) -> Option<Ending> {
    lines.iter().find_map(|line| Ending::first_in(line.as_bytes()))
}
