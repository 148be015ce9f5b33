//! Whether the anchors of an edit hold: each line's own hash, long enough, and no prefix of another line's.

use super::HashEdit;
use crate::error::{Error, ErrorCode, Result};
use crate::text::clip;
use crate::text::hash_line::{FULL_HASH_LENGTH, push_anchor};
use crate::text::lines::Line;
use sha2::{Digest, Sha256};
use std::cell::OnceCell;

/// Lines of fresh anchors shown on each side.
const AROUND: usize = 2;
const SHOWN_CHARS: usize = 200;

type Hash = [u8; 32];

pub(super) struct Anchors<'a> {
    file: &'a [Line<'a>],
    path: &'a str,
    hash_length: usize,
    /// The different hashes of the file, sorted; made when the first shortened anchor asks for them.
    sorted: OnceCell<Vec<Hash>>,
}

impl<'a> Anchors<'a> {
    pub fn new(file: &'a [Line<'a>], path: &'a str, hash_length: usize) -> Self {
        Self {
            file,
            path,
            hash_length,
            sorted: OnceCell::new(),
        }
    }

    /// Every line of the edit's range has the hash that the edit says.
    pub fn check(&self, edit: &HashEdit<'_>) -> Result<()> {
        let count = edit.end_line.unwrap_or(edit.line) + 1 - edit.line;
        let rest = match edit.hashes.len() {
            n if n == count && n > 0 => {
                if !edit.hashes[0].eq_ignore_ascii_case(edit.hash) {
                    return self.refuse(edit.line, "hash and the first of hashes differ".into());
                }
                &edit.hashes[1..]
            }
            n if n + 1 == count => edit.hashes,
            n => {
                let (first, last) = (edit.line, edit.line + count - 1);
                return self.refuse(
                    first,
                    format!(
                        "lines {first}-{last} need the hash of each of the {count} lines, but hashes has {n}"
                    ),
                );
            }
        };
        self.check_line(edit.line, edit.hash)?;
        rest.iter()
            .enumerate()
            .try_for_each(|(index, hash)| self.check_line(edit.line + 1 + index, hash))
    }

    fn check_line(&self, number: usize, hash: &str) -> Result<()> {
        let Some(line) = self.file.get(number - 1) else {
            let lines = self.file.len();
            return self.refuse(
                number,
                format!("line {number} does not exist: {:?} has {lines} lines", self.path),
            );
        };
        let prefix = match Prefix::parse(hash) {
            Some(prefix) if hash.len() >= self.hash_length => prefix,
            Some(_) | None => {
                let shown = clip::head(hash, 70);
                let length = match self.hash_length {
                    FULL_HASH_LENGTH => FULL_HASH_LENGTH.to_string(),
                    least => format!("{least} to {FULL_HASH_LENGTH}"),
                };
                return self.refuse(
                    number,
                    format!("hash {shown:?} of line {number} must be {length} hex digits"),
                );
            }
        };
        if !prefix.matches(&hash_of(line)) {
            return self.refuse(number, self.what_changed(number, &prefix));
        }
        if hash.len() < FULL_HASH_LENGTH && self.distinct_matches(&prefix) > 1 {
            return self.refuse(
                number,
                format!(
                    "hash {hash:?} of line {number} also begins the hash of a different line: use more digits"
                ),
            );
        }
        Ok(())
    }

    fn what_changed(&self, number: usize, prefix: &Prefix) -> String {
        let mut elsewhere = self
            .file
            .iter()
            .enumerate()
            .filter(|(_, line)| prefix.matches(&hash_of(line)));
        let hint = match (elsewhere.next(), elsewhere.next()) {
            (Some((at, _)), None) => format!("; the only line with that hash is now line {}", at + 1),
            (Some(_), Some(_)) => "; several other lines have that hash".into(),
            (None, _) => {
                "; no line has it: the file changed since it was read, or the anchor is wrong".into()
            }
        };
        format!(
            "line {number} of {:?} does not have the hash of the anchor{hint}",
            self.path
        )
    }

    fn distinct_matches(&self, prefix: &Prefix) -> usize {
        let sorted = self.sorted.get_or_init(|| {
            let mut hashes: Vec<Hash> = self.file.iter().map(hash_of).collect();
            hashes.sort_unstable();
            hashes.dedup();
            hashes
        });
        let from = sorted.partition_point(|hash| *hash < prefix.lowest);
        sorted[from..]
            .iter()
            .take(2)
            .filter(|hash| prefix.matches(hash))
            .count()
    }

    fn refuse(&self, number: usize, what: String) -> Result<()> {
        let fresh = self.fresh(number);
        let message = if fresh.is_empty() {
            what
        } else {
            format!("{what}. Fresh anchors:{fresh}\n")
        };
        Err(Error::new(ErrorCode::AnchorMismatch, message))
    }

    /// The anchors around a line, or at the end of the file when the line is past it.
    fn fresh(&self, number: usize) -> String {
        let middle = number.clamp(1, self.file.len().max(1));
        let shown = middle.saturating_sub(AROUND + 1)..(middle + AROUND).min(self.file.len());
        let mut out = String::new();
        for at in shown {
            out.push('\n');
            push_anchor(&mut out, at + 1, self.file[at].text, self.hash_length);
            let text = String::from_utf8_lossy(self.file[at].text);
            let head = clip::head(&text, SHOWN_CHARS);
            out.push_str(head);
            if head.len() < text.len() {
                out.push_str("...");
            }
        }
        out
    }
}

fn hash_of(line: &Line<'_>) -> Hash {
    Sha256::digest(line.text).into()
}

/// The leading hex digits of a hash.
struct Prefix {
    /// The smallest hash that begins with the digits.
    lowest: Hash,
    digits: usize,
}

impl Prefix {
    /// Hex of either case, not empty, at most a whole hash.
    fn parse(hex: &str) -> Option<Self> {
        let digits = hex.len();
        if digits == 0 || digits > FULL_HASH_LENGTH {
            return None;
        }
        let mut lowest = [0; 32];
        for (at, digit) in hex.chars().enumerate() {
            let value = digit.to_digit(16)? as u8;
            lowest[at / 2] |= if at.is_multiple_of(2) { value << 4 } else { value };
        }
        Some(Self { lowest, digits })
    }

    fn matches(&self, hash: &Hash) -> bool {
        let whole = self.digits / 2;
        let half_matches = self.digits.is_multiple_of(2) || hash[whole] & 0xf0 == self.lowest[whole];
        hash[..whole] == self.lowest[..whole] && half_matches
    }
}
