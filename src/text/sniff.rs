//! What bytes look like, by their magic numbers: for messages that refuse a file, and for the media type of an
//! image. Names and extensions are never asked.

/// (offset, magic, what it is)
const MAGIC: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF87a", "a GIF image"),
    (0, b"GIF89a", "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (8, b"WAVE", "a WAV sound"),
    (0, b"\0\0\x01\0", "an icon"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (0, b"BM", "a BMP image"),
    (0, b"%PDF-", "a PDF document"),
    (0, b"PK\x03\x04", "a ZIP archive (or a jar, docx, xlsx, ...)"),
    (0, b"PK\x05\x06", "an empty ZIP archive"),
    (0, b"\x1f\x8b", "gzip data"),
    (0, b"BZh", "bzip2 data"),
    (0, b"\xfd7zXZ\0", "xz data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\x7fELF", "an ELF executable"),
    (0, b"MZ", "a Windows executable"),
    (0, b"\xcf\xfa\xed\xfe", "a Mach-O executable"),
    (0, b"\xca\xfe\xba\xbe", "a Mach-O executable or Java class"),
    (0, b"\0asm", "a WebAssembly module"),
    (0, b"SQLite format 3\0", "a SQLite database"),
    (0, b"PAR1", "a Parquet file"),
    (0, b"wOFF", "a web font"),
    (0, b"wOF2", "a web font"),
    (0, b"\0\x01\0\0", "a TrueType font"),
    (0, b"OTTO", "an OpenType font"),
    (0, b"OggS", "an Ogg stream"),
    (0, b"ID3", "an MP3 sound"),
    (4, b"ftyp", "an MP4 or HEIF file"),
];

/// What the first bytes of a file (512 suffice) say it is.
pub fn looks_like(head: &[u8]) -> Option<&'static str> {
    // Before UTF-16: the byte order mark of UTF-32LE begins with that of UTF-16LE.
    if head.starts_with(b"\xff\xfe\0\0") || head.starts_with(b"\0\0\xfe\xff") {
        return Some("UTF-32 text");
    }
    MAGIC
        .iter()
        .find(|(at, magic, _)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic)))
        .filter(|(at, _, _)| *at != 8 || head.starts_with(b"RIFF"))
        .map(|(_, _, name)| *name)
}

/// Bytes without a NUL that are not UTF-8: an old 8-bit encoding, or no text at all?
pub(super) fn looks_like_legacy_text(head: &[u8]) -> bool {
    let controls = head
        .iter()
        .filter(|&&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
        .count();
    controls * 100 <= head.len()
}

/// `512 bytes`, `1.5 KB`, `2.0 MB`.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".into(),
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    pub media_type: &'static str,
    /// The file ends the way its format ends; a cut download does not.
    pub is_complete: bool,
}

/// The image formats a model can be shown.
pub fn image(bytes: &[u8]) -> Option<Image> {
    let found = |media_type, is_complete| {
        Some(Image {
            media_type,
            is_complete,
        })
    };
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => {
            found("image/png", bytes.ends_with(b"IEND\xae\x42\x60\x82"))
        }
        // Cameras append data after the end mark, so it is looked for near the end, not at it.
        [0xff, 0xd8, 0xff, ..] => found("image/jpeg", memchr::memmem::rfind(bytes, b"\xff\xd9").is_some()),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => found("image/gif", bytes.ends_with(b";")),
        [b'R', b'I', b'F', b'F', a, b, c, d, b'W', b'E', b'B', b'P', ..] => {
            let declared = u64::from(u32::from_le_bytes([*a, *b, *c, *d])) + 8;
            found("image/webp", bytes.len() as u64 >= declared)
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn magic_numbers_are_named_and_text_is_not() {
        let table: &[(&[u8], Option<&str>)] = &[
            (b"\x89PNG\r\n\x1a\n\0\0", Some("a PNG image")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some("a WebP image")),
            (b"xxxx\x10\0\0\0WEBP", None),
            (b"\xff\xfe\0\0h\0\0\0", Some("UTF-32 text")),
            (b"\x7fELF\x02", Some("an ELF executable")),
            (b"hello\n", None),
            (b"", None),
        ];
        for (head, expected) in table {
            assert_eq!(looks_like(head), *expected, "{head:?}");
        }
    }

    #[test]
    fn the_media_type_comes_from_the_bytes_and_a_cut_image_is_incomplete() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\0IEND\xae\x42\x60\x82";
        assert_eq!(
            image(png),
            Some(Image {
                media_type: "image/png",
                is_complete: true
            })
        );
        assert_eq!(
            image(&png[..12]),
            Some(Image {
                media_type: "image/png",
                is_complete: false
            })
        );
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\xff\xd9";
        assert_eq!(
            image(jpeg),
            Some(Image {
                media_type: "image/jpeg",
                is_complete: true
            })
        );
        assert_eq!(image(&jpeg[..10]).map(|i| i.is_complete), Some(false));
        assert_eq!(image(b"{\"meta\":1}"), None);
    }

    #[test]
    fn sizes_read_well() {
        let shown: Vec<_> = [0, 1, 1023, 1536, 9 << 20].map(size_text).into();
        assert_eq!(shown, ["0 bytes", "1 byte", "1023 bytes", "1.5 KB", "9.0 MB"]);
    }
}
