//! What a whole-file write puts into the place of an existing file: the text as given, in the encoding the
//! file has, and notes on what that changed.

use super::encoding::{self, Decoded, Encoding};
use super::ending;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overwrite {
    pub bytes: Vec<u8>,
    pub notes: Vec<String>,
}

/// `old` is the file's present content, if it has one. A byte order mark and UTF-16 are kept, because the text
/// that was read of such a file has neither; line endings are written as given, and noted when they change.
pub fn overwrite(old: Option<&[u8]>, text: &str) -> Overwrite {
    let Some(Decoded {
        text: old_text,
        encoding,
    }) = old.and_then(|old| encoding::decode(old, "").ok())
    else {
        return Overwrite {
            bytes: text.as_bytes().to_vec(),
            notes: Vec::new(),
        };
    };
    let mut notes: Vec<String> = ending::change_note(old_text.as_bytes(), text.as_bytes())
        .into_iter()
        .collect();
    if encoding != Encoding::Utf8 {
        notes.push(format!("encoding kept: {}", encoding.name()));
    }
    let text = if encoding == Encoding::Utf8 {
        text
    } else {
        text.strip_prefix('\u{feff}').unwrap_or(text)
    };
    Overwrite {
        bytes: encoding::encode(text, encoding),
        notes,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_write_keeps_the_encoding_and_notes_changed_endings() {
        type Row = (
            Option<&'static [u8]>,
            &'static str,
            &'static [u8],
            &'static [&'static str],
        );
        let table: &[Row] = &[
            (None, "a\r\n", b"a\r\n", &[]),
            (Some(b"x\n"), "a\n", b"a\n", &[]),
            (
                Some(b"x\r\n"),
                "a\n",
                b"a\n",
                &["line endings changed from CRLF to LF: write \\r\\n for CRLF"],
            ),
            (Some(b"\0\x01"), "a\n", b"a\n", &[]),
            (
                Some(b"\xef\xbb\xbfx\n"),
                "a\n",
                b"\xef\xbb\xbfa\n",
                &["encoding kept: UTF-8 with a byte order mark"],
            ),
            (
                Some(b"\xef\xbb\xbfx\n"),
                "\u{feff}a\n",
                b"\xef\xbb\xbfa\n",
                &["encoding kept: UTF-8 with a byte order mark"],
            ),
            (Some(b"x\n"), "\u{feff}a\n", b"\xef\xbb\xbfa\n", &[]),
            (
                Some(b"\xff\xfex\0"),
                "a",
                b"\xff\xfea\0",
                &["encoding kept: UTF-16LE with a byte order mark"],
            ),
            (
                Some(b"\xff\xfex\0\r\0\n\0"),
                "a\n",
                b"\xff\xfea\0\n\0",
                &[
                    "line endings changed from CRLF to LF: write \\r\\n for CRLF",
                    "encoding kept: UTF-16LE with a byte order mark",
                ],
            ),
        ];
        for (old, text, bytes, notes) in table {
            let expected = Overwrite {
                bytes: bytes.to_vec(),
                notes: notes.iter().map(|n| n.to_string()).collect(),
            };
            assert_eq!(overwrite(*old, text), expected, "{old:?}");
        }
    }
}
