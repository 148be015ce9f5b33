//! Lines named by number and content hash: `L12:<sha-256>:text`, and edits that are refused when either differs.

use crate::error::{Error, ErrorCode, Result};
use sha2::{Digest, Sha256};

/// Hex digits of a whole SHA-256.
pub const FULL_HASH_LENGTH: usize = 64;
/// A shorter display collides too soon: 8 digits already do at about 77,000 different lines.
pub const MIN_HASH_LENGTH: usize = 8;

/// Lower-case SHA-256 hex of a line's bytes without its ending.
pub fn hash_line(line: &[u8]) -> String {
    let mut out = String::with_capacity(FULL_HASH_LENGTH);
    push_hash(&mut out, super::lines::Line::of(line).text, FULL_HASH_LENGTH);
    out
}

/// `L{number}:{hash}:{text}`, the hash shortened to `hash_length` digits.
pub fn format_hash_line(number: usize, line: &[u8], hash_length: usize) -> Result<String> {
    check_hash_length(hash_length)?;
    let text = super::lines::Line::of(line).text;
    let mut out = String::new();
    push_anchor(&mut out, number, text, hash_length);
    out.push_str(&String::from_utf8_lossy(text));
    Ok(out)
}

pub fn check_hash_length(hash_length: usize) -> Result<()> {
    if (MIN_HASH_LENGTH..=FULL_HASH_LENGTH).contains(&hash_length) {
        return Ok(());
    }
    let message =
        format!("hashLength is {hash_length}: use {MIN_HASH_LENGTH} to {FULL_HASH_LENGTH} hex digits");
    Err(Error::new(ErrorCode::InvalidArgument, message))
}

pub(super) fn push_anchor(out: &mut String, number: usize, text: &[u8], hash_length: usize) {
    out.push('L');
    out.push_str(&number.to_string());
    out.push(':');
    push_hash(out, text, hash_length);
    out.push(':');
}

fn push_hash(out: &mut String, text: &[u8], digits: usize) {
    let digest = Sha256::digest(text);
    let nibbles = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    out.extend(
        nibbles
            .take(digits)
            .map(|nibble| char::from(b"0123456789abcdef"[usize::from(nibble)])),
    );
}

/// Length of the anchor (`L12:<at least 8 hex digits>:`) that `line` begins with.
pub(super) fn anchor_len(line: &[u8]) -> Option<usize> {
    let rest = line.strip_prefix(b"L")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = rest.get(digits..).filter(|_| digits > 0)?.strip_prefix(b":")?;
    let hex = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let ends = rest.get(hex) == Some(&b':') && (MIN_HASH_LENGTH..=FULL_HASH_LENGTH).contains(&hex);
    ends.then_some(1 + digits + 1 + hex + 1)
}
