//! Terminal output as a model should read it: escape sequences are gone, and a progress line that was redrawn
//! with carriage returns is its last frame. The raw bytes are the caller's to keep.

/// Removes ANSI escape sequences (CSI, OSC, DCS and the like, two-character escapes, private modes) and control
/// characters other than TAB, LF and FF; collapses carriage-return frames and backspaces. Never longer than
/// `text`; CRLF becomes LF and erases nothing.
pub fn strip_ansi(text: &str) -> String {
    let is_control = |byte: u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n') || byte == 0x7f;
    if !text.bytes().any(|byte| is_control(byte) || byte == 0xc2) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut line = Line::default();
    let mut rest = text;
    let mut strings_end = true;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        rest = match character {
            '\x1b' => after_escape(after, &mut strings_end),
            '\u{9b}' => after_csi(after),
            '\u{9d}' => after_string(after, true, &mut strings_end),
            '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => after_string(after, false, &mut strings_end),
            '\n' => {
                line.end(&mut out);
                out.push('\n');
                after
            }
            other => {
                line.put(other);
                after
            }
        };
    }
    line.end(&mut out);
    out
}

/// The line being drawn.
#[derive(Default)]
struct Line {
    text: String,
    /// A CR came: the next character begins a new frame. CRs before LF draw nothing, and so erase nothing.
    returned: bool,
}

impl Line {
    fn put(&mut self, character: char) {
        match character {
            '\r' => self.returned = true,
            '\x08' => {
                self.text.pop();
            }
            '\t' | '\x0c' => self.draw(character),
            control if control.is_control() => {}
            other => self.draw(other),
        }
    }

    fn draw(&mut self, character: char) {
        if std::mem::take(&mut self.returned) {
            self.text.clear();
        }
        self.text.push(character);
    }

    fn end(&mut self, out: &mut String) {
        out.push_str(&self.text);
        self.text.clear();
        self.returned = false;
    }
}

/// `text` after the escape sequence whose ESC was just passed.
fn after_escape<'t>(text: &'t str, strings_end: &mut bool) -> &'t str {
    let Some(&introducer) = text.as_bytes().first() else {
        return text;
    };
    match introducer {
        b'[' => after_csi(&text[1..]),
        b']' => after_string(&text[1..], true, strings_end),
        b'P' | b'X' | b'^' | b'_' => after_string(&text[1..], false, strings_end),
        _ => {
            // Intermediates and a final byte: `ESC ( B`, `ESC =`, `ESC # 8`.
            let intermediates = text
                .bytes()
                .take_while(|byte| (0x20..=0x2f).contains(byte))
                .count();
            match text.as_bytes().get(intermediates) {
                Some(0x30..=0x7e) => &text[intermediates + 1..],
                _ => &text[intermediates..],
            }
        }
    }
}

/// Parameters, intermediates, one final byte. A malformed sequence ends before the byte that breaks it.
fn after_csi(text: &str) -> &str {
    let body = text
        .bytes()
        .take_while(|byte| (0x20..=0x3f).contains(byte))
        .count();
    match text.as_bytes().get(body) {
        Some(0x40..=0x7e) => &text[body + 1..],
        _ => &text[body..],
    }
}

/// A control string (a window title, a hyperlink, an image) up to its terminator. One that has none, because the
/// output was cut there, must not swallow what follows: an OSC ends with its line, others lose the introducer.
fn after_string<'t>(text: &'t str, is_osc: bool, strings_end: &mut bool) -> &'t str {
    if is_osc {
        let end = text.find(['\x07', '\x1b', '\u{9c}', '\n']).unwrap_or(text.len());
        return after_terminator(&text[end..]);
    }
    // Looked for only while one may be there, or a text of introducers would take quadratic time.
    let end = if *strings_end {
        text.find("\x1b\\").or_else(|| text.find('\u{9c}'))
    } else {
        None
    };
    *strings_end = end.is_some();
    end.map_or(text, |end| after_terminator(&text[end..]))
}

fn after_terminator(text: &str) -> &str {
    ["\x07", "\x1b\\", "\u{9c}"]
        .iter()
        .find_map(|end| text.strip_prefix(end))
        .unwrap_or(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_would_show_at_last_is_what_is_left() {
        let table = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("first\rsecond\nthird\n", "second\nthird\n"),
            ("\x1b[?25la\r\nb\r\n\x1b[?25h\x1b[31mred\x1b[0m\n", "a\nb\nred\n"),
            ("10%\r50%\r100%\r\n", "100%\n"),
            ("50%\r100%\r\r\ndone", "100%\ndone"),
            ("progress 100%\r\x1b[K\nok", "progress 100%\nok"),
            ("\x1b[38;2;1;2;3mx\x1b[m", "x"),
            ("\x1b[38:2::1:2:3mx", "x"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;https://x.example/\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]0;cut title\nnext", "\nnext"),
            ("\x1bPq#0;2\x1b\\after", "after"),
            ("\x1bPnever ended\nnext", "never ended\nnext"),
            ("\x1b(Bx\x1b=y\x1b#8z\x1b7", "xyz"),
            ("\u{9b}31mred\u{9d}0;t\u{9c}!", "red!"),
            ("N\x08NA\x08A", "NA"),
            ("\x07bell\0", "bell"),
            ("a\x1b[", "a"),
            ("a\x1b", "a"),
            ("a\x1b[31\u{e9}", "a\u{e9}"),
            ("caf\u{e9} \u{81ea} \u{1f4c1}", "caf\u{e9} \u{81ea} \u{1f4c1}"),
        ];
        for (text, expected) in table {
            assert_eq!(strip_ansi(text), expected, "{text:?}");
        }
    }

    #[test]
    fn frames_drawn_with_cursor_movements_lose_the_movements_and_keep_the_last_frame() {
        let frame = |n| format!("\x1b[2K\x1b[0A\x1b[0E\nGet: {n}%");
        let text = format!("{}{}{}\n", frame(1), frame(2), frame(3));
        let stripped = strip_ansi(&text);
        assert!(
            stripped.ends_with("Get: 3%\n") && !stripped.contains('\x1b'),
            "{stripped:?}"
        );
    }

    #[test]
    fn a_long_text_of_introducers_takes_linear_time() {
        for introducer in ["\x1bP", "\x1b]", "\x1b[", "\u{90}", "\x1b"] {
            let text = introducer.repeat(300_000);
            assert!(strip_ansi(&text).len() <= text.len());
        }
    }

    proptest! {
        #[test]
        fn no_escape_survives_and_nothing_grows(
            pieces in prop::collection::vec(
                prop::sample::select(vec!["\x1b", "[", "]", "31", "m", "\x07", "\\", "\r", "\n", "\x08", "P", "\u{9b}", "x", "\u{e9}"]),
                0..60,
            ),
        ) {
            let text = pieces.concat();
            let stripped = strip_ansi(&text);
            prop_assert!(stripped.len() <= text.len());
            let controls = ['\x1b', '\r', '\x07', '\u{9b}'];
            prop_assert!(!stripped.contains(controls), "{:?}", stripped);
            prop_assert_eq!(strip_ansi(&stripped), stripped);
        }
    }
}
