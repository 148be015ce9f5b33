//! Text of which only the newest part is kept between two reads, with an exact count of what was dropped.
//! Filling and reading it is left to `background`.

/// Characters are UTF-16 code units, as JavaScript counts them.
pub struct Newest {
    text: String,
    chars: usize,
    max_chars: usize,
    dropped_chars: u64,
}

/// What has come since the last read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    pub text: String,
    pub dropped_chars: u64,
}

impl Newest {
    pub fn new(max_chars: usize) -> Self {
        Newest {
            text: String::new(),
            chars: 0,
            max_chars,
            dropped_chars: 0,
        }
    }

    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.chars += utf16_length(text);
        let mut excess = self.chars.saturating_sub(self.max_chars);
        let mut end = 0;
        for character in self.text.chars() {
            if excess == 0 {
                break;
            }
            // A pair of surrogates is dropped whole.
            excess = excess.saturating_sub(character.len_utf16());
            end += character.len_utf8();
        }
        let dropped = utf16_length(self.text.get(..end).unwrap_or_default());
        self.text.drain(..end);
        self.chars -= dropped;
        self.dropped_chars += dropped as u64;
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.dropped_chars == 0
    }

    pub fn take(&mut self) -> Unread {
        self.chars = 0;
        Unread {
            text: std::mem::take(&mut self.text),
            dropped_chars: std::mem::take(&mut self.dropped_chars),
        }
    }
}

fn utf16_length(text: &str) -> usize {
    // ASCII is the rule, and there the lengths agree.
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_characters_stay_and_the_rest_is_counted() {
        let mut newest = Newest::new(4);
        newest.push("abc");
        newest.push("de");
        assert_eq!(
            newest.take(),
            Unread {
                text: "bcde".into(),
                dropped_chars: 1
            }
        );
        assert_eq!(newest.take(), Unread::default());
        newest.push("0123456789");
        assert_eq!(
            newest.take(),
            Unread {
                text: "6789".into(),
                dropped_chars: 6
            }
        );
    }

    #[test]
    fn no_character_is_torn() {
        let mut newest = Newest::new(3);
        newest.push("a€😀");
        newest.push("😀");
        assert_eq!(
            newest.take(),
            Unread {
                text: "😀".into(),
                dropped_chars: 4
            }
        );
    }

    #[test]
    fn a_buffer_that_keeps_nothing_still_counts() {
        let mut newest = Newest::new(0);
        newest.push("ab");
        assert!(!newest.is_empty());
        assert_eq!(
            newest.take(),
            Unread {
                text: String::new(),
                dropped_chars: 2
            }
        );
    }
}
