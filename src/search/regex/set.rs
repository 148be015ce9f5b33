//! A set of characters as JavaScript sees them without the `u` flag, except that a character is a whole code
//! point: text is UTF-8 here, and half a surrogate pair is not in it.

use std::sync::OnceLock;

/// Sorted ranges of code points (both ends included) that neither touch nor overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CharSet(Vec<(u32, u32)>);

const LAST: u32 = 0x10_FFFF;
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

impl CharSet {
    pub(super) fn new(ranges: &[(u32, u32)]) -> Self {
        let mut ranges = ranges.to_vec();
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged)
    }

    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// `\d`
    pub(super) fn digits() -> Self {
        Self::new(&[(0x30, 0x39)])
    }

    /// `\w`
    pub(super) fn words() -> Self {
        Self::new(&[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
    }

    /// `\s`: ECMAScript's WhiteSpace and LineTerminator (with U+FEFF, without U+0085).
    pub(super) fn spaces() -> Self {
        Self::new(&[
            (0x09, 0x0D),
            (0x20, 0x20),
            (0xA0, 0xA0),
            (0x1680, 0x1680),
            (0x2000, 0x200A),
            (0x2028, 0x2029),
            (0x202F, 0x202F),
            (0x205F, 0x205F),
            (0x3000, 0x3000),
            (0xFEFF, 0xFEFF),
        ])
    }

    /// What `.` leaves out.
    pub(super) fn line_ends() -> Self {
        Self::new(&[(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
    }

    pub(super) fn negate(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(low, high) in &self.0 {
            if low > next {
                ranges.push((next, low - 1));
            }
            next = high + 1;
        }
        if next <= LAST {
            ranges.push((next, LAST));
        }
        Self(ranges)
    }

    pub(super) fn without(&self, other: &CharSet) -> Self {
        // a - b = not (not a or b)
        let mut ranges = self.negate().0;
        ranges.extend_from_slice(&other.0);
        Self::new(&ranges).negate()
    }

    /// A class that holds every surrogate (`[\u0080-\uFFFF]`) takes any character beyond U+FFFF by its halves:
    /// the whole characters belong to it. Holding only some of them has no meaning on whole characters.
    pub(super) fn with_whole_characters(&self) -> Option<Self> {
        let touches = |&&(low, high): &&(u32, u32)| low <= SURROGATES.1 && high >= SURROGATES.0;
        let Some(&(low, high)) = self.0.iter().find(touches) else {
            return Some(self.clone());
        };
        if low > SURROGATES.0 || high < SURROGATES.1 {
            return None;
        }
        let mut ranges = self.0.clone();
        ranges.push((0x1_0000, LAST));
        Some(Self::new(&ranges))
    }

    /// Adds every character that the `i` flag makes equal to one of these (ECMAScript Canonicalize without `u`).
    pub(super) fn ignore_case(&self) -> Self {
        let mut ranges = self.0.clone();
        let contains = |c: u32| self.0.iter().any(|&(low, high)| low <= c && c <= high);
        for lower in 0x61..=0x7A {
            let upper = lower - 0x20;
            if contains(lower) || contains(upper) {
                ranges.extend([(lower, lower), (upper, upper)]);
            }
        }
        if self.0.last().is_some_and(|&(_, high)| high >= 0x80) {
            for group in case_groups() {
                if group.iter().any(|&c| contains(c)) {
                    ranges.extend(group.iter().map(|&c| (c, c)));
                }
            }
        }
        Self::new(&ranges)
    }
}

/// The sets of characters outside ASCII that canonicalize to the same one.
fn case_groups() -> &'static [Vec<u32>] {
    static GROUPS: OnceLock<Vec<Vec<u32>>> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let mut by_canonical = std::collections::BTreeMap::<u32, Vec<u32>>::new();
        for c in (0x80..=0xFFFF).filter_map(char::from_u32) {
            let canonical = canonicalize(c);
            if canonical != u32::from(c) {
                by_canonical
                    .entry(canonical)
                    .or_insert_with(|| vec![canonical])
                    .push(u32::from(c));
            }
        }
        by_canonical.into_values().collect()
    })
}

/// ECMAScript's Canonicalize for a character outside ASCII: toUppercase, unless that takes several characters or
/// leads into ASCII.
fn canonicalize(c: char) -> u32 {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) if !single.is_ascii() && u32::from(single) <= 0xFFFF => u32::from(single),
        _ => u32::from(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negation_and_difference_are_exact() {
        let set = CharSet::new(&[(5, 9), (0, 3), (10, 12)]);
        assert_eq!(set.ranges(), [(0, 3), (5, 12)]);
        assert_eq!(set.negate().ranges(), [(4, 4), (13, LAST)]);
        assert_eq!(set.negate().negate(), set);
        assert_eq!(
            set.without(&CharSet::new(&[(6, 7), (12, 20)])).ranges(),
            [(0, 3), (5, 5), (8, 11)]
        );
        assert_eq!(CharSet::default().negate().ranges(), [(0, LAST)]);
    }

    #[test]
    fn case_follows_ecmascript() {
        let closed = |c: char| CharSet::new(&[(u32::from(c), u32::from(c))]).ignore_case();
        assert_eq!(
            closed('k').ranges(),
            [(0x4B, 0x4B), (0x6B, 0x6B)],
            "no Kelvin sign"
        );
        assert_eq!(closed('s').ranges(), [(0x53, 0x53), (0x73, 0x73)], "no long s");
        assert_eq!(closed('ß').ranges(), [(0xDF, 0xDF)], "SS is two characters");
        assert_eq!(closed('é').ranges(), [(0xC9, 0xC9), (0xE9, 0xE9)]);
        assert_eq!(closed('ς').ranges(), [(0x3A3, 0x3A3), (0x3C2, 0x3C3)]);
    }
}
