//! The file after checked line changes: every line that was not named keeps its bytes, new lines take the
//! endings of the lines they replace or stand beside, and a missing final newline stays missing.

use super::{Change, HashEdited};
use crate::text::lines::Line;

pub(super) fn build(file: &[Line<'_>], changes: &[Change<'_>]) -> (Vec<u8>, HashEdited) {
    let mut order: Vec<&Change<'_>> = changes.iter().collect();
    // Stable: insertions at one place stay in the order of the list, after before-insertions' natural place.
    order.sort_by_key(|change| (change.first, !change.is_after, change.end));
    let mut out: Vec<Line<'_>> = Vec::with_capacity(file.len());
    let mut done = HashEdited {
        bytes: None,
        first_line: None,
        lines_added: 0,
        lines_removed: 0,
    };
    let mut next = 0;
    for change in order {
        out.extend_from_slice(&file[next..change.first]);
        done.first_line = done.first_line.or(Some(out.len() + 1));
        done.lines_added += change.new.len();
        done.lines_removed += change.end - change.first;
        next = change.end;
        for (index, text) in change.new.iter().enumerate() {
            let is_last = index + 1 == change.new.len();
            out.push(Line {
                text,
                ending: ending_of(file, change, index, is_last),
            });
        }
    }
    out.extend_from_slice(&file[next..]);
    (join(&out), done)
}

fn ending_of<'f>(file: &[Line<'f>], change: &Change<'_>, index: usize, is_last: bool) -> &'f [u8] {
    let replaced = &file[change.first..change.end];
    let own = match (replaced, change.is_after) {
        ([.., last], _) if is_last => Some(last),
        ([.., last], _) => Some(replaced.get(index).unwrap_or(last)),
        ([], true) => change.first.checked_sub(1).and_then(|above| file.get(above)),
        ([], false) => file.get(change.first),
    };
    match own.map_or(&b""[..], |line| line.ending) {
        // The new last line of a file without a final newline has none either; `join` ends the one before it.
        b"" if is_last && (change.is_after || !replaced.is_empty()) => b"",
        b"" => near_ending(file, change.first),
        ending => ending,
    }
}

/// The ending of the nearest line above that has one.
fn near_ending<'f>(file: &[Line<'f>], below: usize) -> &'f [u8] {
    file[..below]
        .iter()
        .rev()
        .map(|line| line.ending)
        .find(|ending| !ending.is_empty())
        .unwrap_or(b"\n")
}

fn join(out: &[Line<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(out.iter().map(|line| line.text.len() + 2).sum());
    let mut latest: &[u8] = b"\n";
    for (index, line) in out.iter().enumerate() {
        bytes.extend_from_slice(line.text);
        // Only the last line may go without: another was the last one before something came after it.
        let ending = if line.ending.is_empty() && index + 1 < out.len() {
            latest
        } else {
            line.ending
        };
        bytes.extend_from_slice(ending);
        if !line.ending.is_empty() {
            latest = line.ending;
        }
    }
    bytes
}
