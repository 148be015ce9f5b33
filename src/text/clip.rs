//! Long text cut to a budget: its head and its tail stay, and a line between them says how much was left out.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clipped {
    pub text: String,
    /// UTF-16 code units left out; 0 when `text` is the whole.
    pub omitted_chars: usize,
}

/// `text` within `max_chars` UTF-16 code units, marker included. Characters stay whole. A budget too small for
/// the marker keeps the head alone.
pub fn clip(text: &str, max_chars: usize) -> Clipped {
    // A UTF-16 code unit is at least one byte, so most texts need no counting.
    if text.len() <= max_chars {
        return Clipped {
            text: text.into(),
            omitted_chars: 0,
        };
    }
    let total = utf16_len(text);
    if total <= max_chars {
        return Clipped {
            text: text.into(),
            omitted_chars: 0,
        };
    }
    let widest_marker = marker(total).len();
    let Some(budget) = max_chars.checked_sub(widest_marker) else {
        let head = head(text, max_chars);
        return Clipped {
            text: head.into(),
            omitted_chars: total - utf16_len(head),
        };
    };
    // The end of an output (the error, the summary) is worth as much as its beginning.
    let head = head(text, budget / 2);
    let tail = tail(&text[head.len()..], budget - utf16_len(head));
    let omitted_chars = total - utf16_len(head) - utf16_len(tail);
    Clipped {
        text: format!("{head}{}{tail}", marker(omitted_chars)),
        omitted_chars,
    }
}

fn marker(omitted_chars: usize) -> String {
    format!("\n[{omitted_chars} characters left out]\n")
}

/// Length in UTF-16 code units, as JavaScript counts.
pub fn utf16_len(text: &str) -> usize {
    utf16_len_of_bytes(text.as_bytes())
}

/// The same of UTF-8 bytes, wherever they are cut: each character counts at its first byte.
pub(super) fn utf16_len_of_bytes(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .map(|&byte| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0))
        .sum()
}

/// The longest beginning of `text` within `max_chars` UTF-16 code units that splits no character.
pub(super) fn head(text: &str, max_chars: usize) -> &str {
    let mut chars = 0;
    for (at, character) in text.char_indices() {
        chars += character.len_utf16();
        if chars > max_chars {
            return &text[..at];
        }
    }
    text
}

fn tail(text: &str, max_chars: usize) -> &str {
    let mut chars = 0;
    for (at, character) in text.char_indices().rev() {
        chars += character.len_utf16();
        if chars > max_chars {
            return &text[at + character.len_utf8()..];
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn head_and_tail_stay_and_the_marker_says_how_much_is_missing() {
        let text = format!("{}MIDDLE{}", "a".repeat(500), "z".repeat(500));
        let clipped = clip(&text, 100);
        assert!(
            clipped.text.starts_with("aaaa") && clipped.text.ends_with("zzzz"),
            "{}",
            clipped.text
        );
        assert!(
            clipped
                .text
                .contains(&format!("\n[{} characters left out]\n", clipped.omitted_chars))
        );
        assert!((95..=100).contains(&clipped.text.len()));
    }

    #[test]
    fn a_text_within_its_budget_is_returned_whole() {
        for text in ["", "abc", "\u{1f4c1}\u{1f4c1}", "\u{81ea}\u{81ea}\u{81ea}"] {
            let max_chars = text.encode_utf16().count();
            assert_eq!(
                clip(text, max_chars),
                Clipped {
                    text: text.into(),
                    omitted_chars: 0
                }
            );
        }
    }

    #[test]
    fn a_budget_without_room_for_the_marker_keeps_the_head() {
        assert_eq!(
            clip("abcdef", 3),
            Clipped {
                text: "abc".into(),
                omitted_chars: 3
            }
        );
        assert_eq!(
            clip("a\u{1f4c1}bcd", 2),
            Clipped {
                text: "a".into(),
                omitted_chars: 5
            }
        );
    }

    proptest! {
        #[test]
        fn a_clip_stays_within_its_budget_and_counts_what_it_left_out(
            pieces in prop::collection::vec(prop::sample::select(vec!["a", "\u{e9}", "\u{81ea}", "\u{1f4c1}", "\n"]), 0..300),
            max_chars in 0usize..200,
        ) {
            let text = pieces.concat();
            let clipped = clip(&text, max_chars);
            prop_assert!(utf16_len(&clipped.text) <= max_chars);
            let marker_len = match clipped.text.contains(&marker(clipped.omitted_chars)) {
                true => marker(clipped.omitted_chars).len(),
                false => 0,
            };
            prop_assert_eq!(utf16_len(&clipped.text) - marker_len + clipped.omitted_chars, text.encode_utf16().count());
        }
    }
}
