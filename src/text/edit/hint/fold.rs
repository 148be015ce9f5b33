//! A loose form of text, for comparing only: white space runs are one space, typographic quotes, dashes and
//! spaces are ASCII, Unicode is composed, invisible characters are gone.

use unicode_normalization::UnicodeNormalization;

/// Folds one line into `out` (replacing what it held), without white space at either end.
pub(super) fn fold_line(line: &str, out: &mut String) {
    out.clear();
    if line.is_ascii() {
        fold_chars(line.chars(), out);
    } else {
        fold_chars(line.nfc(), out);
    }
    if out.ends_with(' ') {
        out.pop();
    }
}

fn fold_chars(chars: impl Iterator<Item = char>, out: &mut String) {
    for character in chars {
        match plain(character) {
            Some(' ') if out.is_empty() || out.ends_with(' ') => {}
            Some(plain) => out.push(plain),
            None => {}
        }
    }
}

fn plain(character: char) -> Option<char> {
    match character {
        '!'..='~' => Some(character),
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' => Some('\''),
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' => Some('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => None,
        other if other.is_whitespace() => Some(' '),
        other => Some(other),
    }
}

/// A cheap hash of a folded line (FNV-1a): collisions only make a hint worse.
pub(super) fn hash(folded: &str) -> u64 {
    folded.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
