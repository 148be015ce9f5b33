//! Which encoding a text file has, and the exact way there and back: UTF-8, or UTF-16 with a byte order mark.
//! Everything else is refused with what it looks like; nothing is ever decoded with loss, nothing is guessed.

use super::{lines, sniff};
use crate::error::{Error, ErrorCode, Result};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    /// By the byte order mark; without one it is UTF-8 or refused later.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0xef, 0xbb, 0xbf, ..] => Self::Utf8Bom,
            [0xff, 0xfe, ..] => Self::Utf16Le,
            [0xfe, 0xff, ..] => Self::Utf16Be,
            _ => Self::Utf8,
        }
    }

    pub fn bom(self) -> &'static [u8] {
        match self {
            Self::Utf8 => b"",
            Self::Utf8Bom => b"\xef\xbb\xbf",
            Self::Utf16Le => b"\xff\xfe",
            Self::Utf16Be => b"\xfe\xff",
        }
    }

    pub fn is_utf16(self) -> bool {
        matches!(self, Self::Utf16Le | Self::Utf16Be)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8Bom => "UTF-8 with a byte order mark",
            Self::Utf16Le => "UTF-16LE with a byte order mark",
            Self::Utf16Be => "UTF-16BE with a byte order mark",
        }
    }
}

/// A file's text without its byte order mark, and how to get back to bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    pub text: Cow<'a, str>,
    pub encoding: Encoding,
}

/// The exact text of a file, or `BINARY_FILE` / `UNSUPPORTED_ENCODING`. `encode(decode(b))` is `b`.
pub fn decode<'a>(bytes: &'a [u8], path: &str) -> Result<Decoded<'a>> {
    let encoding = Encoding::of(bytes);
    let body = &bytes[encoding.bom().len()..];
    let text = match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => Cow::Borrowed(decode_utf8(body, bytes, path)?),
        Encoding::Utf16Le => Cow::Owned(decode_utf16(body, u16::from_le_bytes, bytes, path)?),
        Encoding::Utf16Be => Cow::Owned(decode_utf16(body, u16::from_be_bytes, bytes, path)?),
    };
    Ok(Decoded { text, encoding })
}

fn decode_utf8<'a>(body: &'a [u8], file: &[u8], path: &str) -> Result<&'a str> {
    let size = file.len() as u64;
    if memchr::memchr(0, body).is_some() {
        return Err(binary(path, file, size));
    }
    simdutf8::compat::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        let place = Place {
            offset: (file.len() - body.len() + at) as u64,
            line: lines::number_at(body, at),
        };
        not_utf8(path, file, size, body[at], place)
    })
}

fn decode_utf16(body: &[u8], unit: fn([u8; 2]) -> u16, file: &[u8], path: &str) -> Result<String> {
    let size = file.len() as u64;
    if sniff::looks_like(file) == Some("UTF-32 text") {
        return Err(refusal(path, "looks like UTF-32 text", size));
    }
    let (units, rest) = body.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(refusal(
            path,
            "begins like UTF-16 text but has an odd number of bytes",
            size,
        ));
    }
    let text: std::result::Result<String, _> =
        char::decode_utf16(units.iter().map(|&pair| unit(pair))).collect();
    match text {
        Ok(text) if text.contains('\0') => Err(binary(path, file, size)),
        Ok(text) => Ok(text),
        Err(_) => Err(refusal(
            path,
            "begins like UTF-16 text but holds a lone surrogate",
            size,
        )),
    }
}

/// The bytes of a file that holds `text`.
pub fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoding.bom().len() + text.len());
    bytes.extend_from_slice(encoding.bom());
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => bytes.extend_from_slice(text.as_bytes()),
        Encoding::Utf16Le => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
        Encoding::Utf16Be => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
    }
    bytes
}

/// Where in a file something is: a byte offset and a 1-based line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub offset: u64,
    pub line: usize,
}

/// `head` is the file, or at least its first 512 bytes.
pub(super) fn binary(path: &str, head: &[u8], size: u64) -> Error {
    let looks = sniff::looks_like(head).map_or(String::new(), |what| format!(", looks like {what}"));
    let size = sniff::size_text(size);
    let message = format!(
        "{path:?} is a binary file ({size}{looks}): it holds NUL bytes, so it cannot be used as text"
    );
    Error::new(ErrorCode::BinaryFile, message).at(path)
}

pub(super) fn not_utf8(path: &str, head: &[u8], size: u64, byte: u8, place: Place) -> Error {
    let looks = match sniff::looks_like(head) {
        Some(what) => format!("looks like {what}"),
        None if sniff::looks_like_legacy_text(head) => {
            "looks like Latin-1, Windows-1252 or another 8-bit encoding".into()
        }
        None => "looks like binary data".into(),
    };
    let Place { offset, line } = place;
    refusal(
        path,
        &format!("is not UTF-8 text: byte 0x{byte:02X} at offset {offset} (line {line}); it {looks}"),
        size,
    )
}

fn refusal(path: &str, what: &str, size: u64) -> Error {
    let size = sniff::size_text(size);
    let message = format!(
        "{path:?} {what} ({size}). Only UTF-8, and UTF-16 with a byte order mark, can be read and edited exactly: convert the file first (iconv)"
    );
    Error::new(ErrorCode::UnsupportedEncoding, message).at(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_encoding_makes_the_way_there_and_back() {
        let table: &[(&[u8], &str, Encoding)] = &[
            (b"", "", Encoding::Utf8),
            (b"a\xc3\xa9\n", "a\u{e9}\n", Encoding::Utf8),
            (b"\xef\xbb\xbf# t\n", "# t\n", Encoding::Utf8Bom),
            (b"\xef\xbb\xbf\xef\xbb\xbfx", "\u{feff}x", Encoding::Utf8Bom),
            (b"\xff\xfeh\0i\0\n\0", "hi\n", Encoding::Utf16Le),
            (b"\xfe\xff\0h\xd8\x3d\xdc\xc1", "h\u{1f4c1}", Encoding::Utf16Be),
            (b"\xff\xfe", "", Encoding::Utf16Le),
        ];
        for (bytes, text, encoding) in table {
            let decoded = decode(bytes, "f").unwrap();
            assert_eq!(
                (decoded.text.as_ref(), decoded.encoding),
                (*text, *encoding),
                "{bytes:?}"
            );
            assert_eq!(encode(&decoded.text, decoded.encoding), *bytes);
        }
    }

    #[test]
    fn what_cannot_be_decoded_exactly_is_refused_with_what_it_looks_like() {
        let table: &[(&[u8], ErrorCode, &str)] = &[
            (b"foo\0bar", ErrorCode::BinaryFile, "7 bytes"),
            (
                b"\x7fELF\x02\x01\x01\0\0",
                ErrorCode::BinaryFile,
                "an ELF executable",
            ),
            (
                b"header\nmark\x99 ok\n",
                ErrorCode::UnsupportedEncoding,
                "byte 0x99 at offset 11 (line 2)",
            ),
            (
                b"header\nmark\x99 ok\n",
                ErrorCode::UnsupportedEncoding,
                "Windows-1252",
            ),
            (
                b"\xff\xd8\xff\xe0\x10JFIF",
                ErrorCode::UnsupportedEncoding,
                "a JPEG image",
            ),
            (
                b"cut \xe2\x82",
                ErrorCode::UnsupportedEncoding,
                "byte 0xE2 at offset 4",
            ),
            (
                b"\xff\xfea",
                ErrorCode::UnsupportedEncoding,
                "odd number of bytes",
            ),
            (
                b"\xff\xfe\x3d\xd8a\0",
                ErrorCode::UnsupportedEncoding,
                "lone surrogate",
            ),
            (b"\xff\xfe\0\0h\0\0\0", ErrorCode::UnsupportedEncoding, "UTF-32"),
            (b"\xff\xfea\0\0\0", ErrorCode::BinaryFile, "NUL"),
        ];
        for (bytes, code, words) in table {
            let error = decode(bytes, "d/f.txt").unwrap_err();
            assert_eq!(error.code, *code, "{bytes:?}: {error}");
            assert!(error.message.contains(words), "{error}");
            assert!(error.message.contains("\"d/f.txt\""), "{error}");
        }
    }

    proptest! {
        #[test]
        fn whatever_decodes_encodes_to_the_same_bytes(
            bom in prop::sample::select(vec![&b""[..], b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]),
            body in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let bytes = [bom, &body].concat();
            if let Ok(decoded) = decode(&bytes, "f") {
                prop_assert_eq!(encode(&decoded.text, decoded.encoding), bytes);
            }
        }

        #[test]
        fn every_text_without_nul_round_trips_in_every_encoding(text in "[^\0\u{feff}][^\0]*") {
            for encoding in [Encoding::Utf8, Encoding::Utf8Bom, Encoding::Utf16Le, Encoding::Utf16Be] {
                let bytes = encode(&text, encoding);
                prop_assert_eq!(decode(&bytes, "f").unwrap(), Decoded { text: Cow::Borrowed(&text), encoding });
            }
        }
    }
}
