//! Which line endings a text uses, and how new text takes over the endings of its surroundings.

use super::lines;
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Lf,
    CrLf,
}

impl Ending {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Lf => "LF",
            Self::CrLf => "CRLF",
        }
    }

    /// The ending of the first line of `bytes`, if it has one.
    pub fn first_in(bytes: &[u8]) -> Option<Self> {
        memchr::memchr(b'\n', bytes).map(|at| Self::at(bytes, at))
    }

    /// The ending of the last ended line of `bytes`.
    pub fn last_in(bytes: &[u8]) -> Option<Self> {
        memchr::memrchr(b'\n', bytes).map(|at| Self::at(bytes, at))
    }

    fn at(bytes: &[u8], newline: usize) -> Self {
        if newline > 0 && bytes[newline - 1] == b'\r' {
            Self::CrLf
        } else {
            Self::Lf
        }
    }
}

/// How many lines of a text end each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endings {
    pub lf: usize,
    pub crlf: usize,
}

impl Endings {
    pub fn of(bytes: &[u8]) -> Self {
        let tally = lines::tally(bytes, 0);
        Self {
            lf: tally.newlines - tally.crlf,
            crlf: tally.crlf,
        }
    }

    pub fn is_mixed(self) -> bool {
        self.lf > 0 && self.crlf > 0
    }

    /// `none`, `lf`, `crlf` or `mixed`: the form the JavaScript side shows.
    pub fn as_str(self) -> &'static str {
        match (self.lf > 0, self.crlf > 0) {
            (false, false) => "none",
            (true, false) => "lf",
            (false, true) => "crlf",
            (true, true) => "mixed",
        }
    }

    /// For notes; LF alone is what everybody expects and has none.
    pub fn note(self) -> Option<String> {
        match self {
            Self { crlf: 0, .. } => None,
            Self { lf: 0, .. } => Some("line endings: CRLF".into()),
            Self { lf, crlf } => Some(format!("line endings: mixed, {crlf} CRLF and {lf} LF")),
        }
    }

    fn name(self) -> &'static str {
        match (self.lf > 0, self.crlf > 0) {
            (false, false) => "none",
            (true, false) => "LF",
            (false, true) => "CRLF",
            (true, true) => "mixed",
        }
    }
}

/// `text` with every bare LF made `ending`. Text that already holds a CRLF has chosen its endings and stays.
pub fn take_over(text: &str, ending: Ending) -> Cow<'_, str> {
    if ending == Ending::Lf || !text.contains('\n') || text.contains("\r\n") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\n', "\r\n"))
}

/// What to tell the writer whose new text changes the endings of the file it replaces.
pub fn change_note(old: &[u8], new: &[u8]) -> Option<String> {
    let (before, after) = (Endings::of(old), Endings::of(new));
    let comparable = before.as_str() != "none" && after.as_str() != "none";
    let way_out = if before.crlf > 0 {
        ": write \\r\\n for CRLF"
    } else {
        ""
    };
    (comparable && before.as_str() != after.as_str()).then(|| {
        format!(
            "line endings changed from {} to {}{way_out}",
            before.name(),
            after.name()
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_counted_and_named() {
        let table = [
            ("", "none", None),
            ("a\rb", "none", None),
            ("a\nb\n", "lf", None),
            ("a\r\nb", "crlf", Some("line endings: CRLF")),
            (
                "a\r\nb\nc\n",
                "mixed",
                Some("line endings: mixed, 1 CRLF and 2 LF"),
            ),
        ];
        for (text, name, note) in table {
            let endings = Endings::of(text.as_bytes());
            assert_eq!(endings.as_str(), name, "{text:?}");
            assert_eq!(endings.note().as_deref(), note, "{text:?}");
        }
    }

    #[test]
    fn only_bare_lf_takes_over_an_ending_and_a_text_with_crlf_has_chosen_already() {
        assert_eq!(take_over("a\nb", Ending::CrLf), "a\r\nb");
        assert_eq!(take_over("a\nb", Ending::Lf), "a\nb");
        assert_eq!(take_over("a\r\nb\nc", Ending::CrLf), "a\r\nb\nc");
    }

    #[test]
    fn a_write_that_changes_the_endings_says_so_and_one_that_keeps_them_does_not() {
        let table = [
            (
                "a\r\nb\r\n",
                "a\nB\n",
                Some("line endings changed from CRLF to LF: write \\r\\n for CRLF"),
            ),
            ("a\n", "a\r\n", Some("line endings changed from LF to CRLF")),
            (
                "a\r\nb\n",
                "a\n",
                Some("line endings changed from mixed to LF: write \\r\\n for CRLF"),
            ),
            ("a\n", "b\nc\n", None),
            ("a\r\n", "b\r\n", None),
            ("", "b\r\n", None),
            ("a\r\n", "b", None),
        ];
        for (old, new, note) in table {
            assert_eq!(
                change_note(old.as_bytes(), new.as_bytes()).as_deref(),
                note,
                "{old:?} -> {new:?}"
            );
        }
    }
}
