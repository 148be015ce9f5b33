use super::*;
use proptest::prelude::*;

const ALL: PageRequest = PageRequest {
    offset: 1,
    limit: usize::MAX,
    max_chars: usize::MAX,
    numbering: Numbering::Gutter,
};

fn shown(text: &str, request: PageRequest) -> Page {
    page(text.as_bytes(), "f", &request).unwrap()
}

#[test]
fn lines_are_numbered_in_six_columns_and_a_tab() {
    let table = [
        (
            "line1\nline2\nline3\n",
            "     1\tline1\n     2\tline2\n     3\tline3",
            3,
        ),
        ("x", "     1\tx", 1),
        (
            "\tif x\n\t\ty\n1\tvalue\n",
            "     1\t\tif x\n     2\t\t\ty\n     3\t1\tvalue",
            3,
        ),
        ("a\r\nb\r\n", "     1\ta\n     2\tb\n[line endings: CRLF]", 2),
        (
            "a\r\nb\n",
            "     1\ta\n     2\tb\n[line endings: mixed, 1 CRLF and 1 LF]",
            2,
        ),
        ("abc\rdef", "     1\tabc\rdef", 1),
        ("a\n\x0c\nb\n", "     1\ta\n     2\t\x0c\n     3\tb", 3),
        ("\n\n", "     1\t\n     2\t", 2),
        ("", "[empty file]", 0),
    ];
    for (text, expected, total) in table {
        let page = shown(text, ALL);
        assert_eq!(page.text, expected, "{text:?}");
        assert_eq!(
            (page.total_lines, page.truncated, page.next_offset),
            (total, false, None),
            "{text:?}"
        );
    }
}

#[test]
fn a_number_of_more_than_six_digits_pushes_the_line_right() {
    let text = "\n".repeat(1_000_000);
    let page = shown(
        &text,
        PageRequest {
            offset: 999_999,
            limit: 2,
            ..ALL
        },
    );
    assert_eq!(page.text, "999999\t\n1000000\t");
}

#[test]
fn a_page_that_leaves_lines_out_says_which_and_where_to_go_on() {
    let page = shown("x1\nx2\nx3", PageRequest { limit: 2, ..ALL });
    assert_eq!(
        page.text,
        "     1\tx1\n     2\tx2\n[lines 1-2 of 3 shown; continue with offset 3]"
    );
    assert_eq!(
        (page.truncated, page.next_offset, page.last_line, page.total_lines),
        (true, Some(3), 2, 3)
    );
    let rest = shown(
        "x1\nx2\nx3",
        PageRequest {
            offset: 3,
            limit: 2,
            ..ALL
        },
    );
    assert_eq!(rest.text, "     3\tx3");
    assert_eq!((rest.truncated, rest.next_offset), (false, None));
    let exact = shown("x1\nx2\n", PageRequest { limit: 2, ..ALL });
    assert!(!exact.truncated);
}

#[test]
fn an_offset_past_the_end_is_refused_with_the_line_count() {
    for (text, offset, words) in [
        ("1\n2\n3\n", 4, "has 3 lines"),
        ("1", 2, "has 1 line"),
        ("", 2, "is empty"),
    ] {
        let error = page(text.as_bytes(), "f", &PageRequest { offset, ..ALL }).unwrap_err();
        assert_eq!(error.code, ErrorCode::OffsetPastEnd);
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(
        shown("1\n2\n3\n", PageRequest { offset: 3, ..ALL }).text,
        "     3\t3"
    );
}

#[test]
fn offset_and_limit_of_zero_are_argument_errors() {
    for request in [PageRequest { offset: 0, ..ALL }, PageRequest { limit: 0, ..ALL }] {
        assert_eq!(
            page(b"a", "f", &request).unwrap_err().code,
            ErrorCode::InvalidArgument
        );
    }
}

#[test]
fn a_line_longer_than_the_budget_is_cut_inside_and_says_how_long_it_is() {
    let text = format!("{}\nnext\n", "var a=1;".repeat(250_000));
    let page = shown(
        &text,
        PageRequest {
            max_chars: 50_000,
            ..ALL
        },
    );
    assert_eq!(page.cut_line_chars, Some(2_000_000));
    assert!(
        page.text.len() <= 50_000 && page.text.len() > 49_900,
        "{}",
        page.text.len()
    );
    let notes: Vec<_> = page.text.lines().skip(1).collect();
    assert!(
        notes[0].starts_with("[line 1 is 2000000 characters long, the first 49"),
        "{notes:?}"
    );
    assert_eq!(notes[1], "[line 1 of 2 shown; continue with offset 2]");
    assert_eq!(
        (page.truncated, page.next_offset, page.total_lines),
        (true, Some(2), 2)
    );
}

#[test]
fn the_full_length_of_a_cut_line_counts_utf16_units_and_no_ending() {
    for (line, length) in [("\u{1f4c1}".repeat(5000), 10_000), ("\u{e9}".repeat(5000), 5000)] {
        for ending in ["", "\n", "\r\n"] {
            let text = format!("{line}{ending}");
            let page = shown(
                &text,
                PageRequest {
                    max_chars: 200,
                    ..ALL
                },
            );
            assert_eq!(page.cut_line_chars, Some(length), "{ending:?}");
            assert!(page.text.encode_utf16().count() <= 200);
            assert_eq!(page.next_offset, None);
        }
    }
}

#[test]
fn a_utf16_file_is_shown_decoded_and_a_byte_order_mark_is_not_text() {
    let request = PageRequest { limit: 1, ..ALL };
    let page = super::page(b"\xff\xfeh\0i\0\n\0x\0", "f", &request).unwrap();
    assert_eq!(
        page.text,
        "     1\thi\n[encoding: UTF-16LE with a byte order mark]\n[line 1 of 2 shown; continue with offset 2]"
    );
    assert_eq!(
        super::page(b"\xef\xbb\xbf# t\nbody\n", "f", &ALL).unwrap().text,
        "     1\t# t\n     2\tbody"
    );
    assert_eq!(
        super::page(b"\xef\xbb\xbf", "f", &ALL).unwrap().text,
        "[empty file]"
    );
}

#[test]
fn bad_bytes_far_behind_the_page_still_refuse_it() {
    let head = "text line\n".repeat(20_000);
    let request = PageRequest { limit: 2, ..ALL };
    for (tail, code) in [
        (&b"needle\0\n"[..], ErrorCode::BinaryFile),
        (b"caf\xe9 x\n", ErrorCode::UnsupportedEncoding),
        (b"cut \xe2\x82", ErrorCode::UnsupportedEncoding),
    ] {
        let file = [head.as_bytes(), tail].concat();
        assert_eq!(super::page(&file, "f", &request).unwrap_err().code, code);
    }
    let error = super::page(&[head.as_bytes(), b"caf\xe9 x\n"].concat(), "f", &request).unwrap_err();
    assert!(
        error.message.contains("byte 0xE9 at offset 200003 (line 20001)"),
        "{error}"
    );
}

#[test]
fn a_character_across_any_chunk_boundary_is_text() {
    for size in [512usize, 1000, 1024, 4096, 8192, 65_536] {
        for shift in 0..3 {
            let text = format!("{}{}", "a".repeat(shift), "\u{81ea}".repeat(size / 3 + 20));
            let page = shown(&text, PageRequest { limit: 1, ..ALL });
            assert_eq!(page.text.len(), text.len() + 7);
        }
    }
}

#[test]
fn hash_lines_carry_the_hash_of_the_line_without_its_ending() {
    let numbering = Numbering::HashLines { hash_length: 8 };
    let page = shown("a\r\nb", PageRequest { numbering, ..ALL });
    assert_eq!(page.text, "L1:ca978112:a\nL2:3e23e816:b\n[line endings: CRLF]");
    let cut = shown(
        &"x".repeat(1000),
        PageRequest {
            numbering,
            max_chars: 200,
            ..ALL
        },
    );
    assert!(
        cut.text.starts_with("L1::xxx"),
        "a line that was not shown whole has no anchor: {}",
        cut.text
    );
    let numbering = Numbering::HashLines { hash_length: 7 };
    let error = super::page(b"a", "f", &PageRequest { numbering, ..ALL }).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "bc",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "\u{e9}",
        "\u{81ea}",
        "\u{1f4c1}",
    ]);
    prop::collection::vec(piece, 0..200).prop_map(|pieces| pieces.concat())
}

/// Page by page, the lines of `text` as a reader would collect them.
fn read_through(text: &str, limit: usize, max_chars: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut offset = 1;
    loop {
        let page = shown(
            text,
            PageRequest {
                offset,
                limit,
                max_chars,
                numbering: Numbering::Gutter,
            },
        );
        assert!(page.cut_line_chars.is_none() && page.text.encode_utf16().count() <= max_chars);
        let count = page.last_line + 1 - page.first_line.max(1);
        lines.extend(
            page.text
                .split('\n')
                .take(count)
                .map(|line| line.split_once('\t').unwrap().1.to_string()),
        );
        match page.next_offset {
            Some(next) => offset = next,
            None => return lines,
        }
    }
}

proptest! {
    #[test]
    fn the_pages_of_a_file_hold_all_its_lines(text in any_text(), limit in 1usize..40, max_chars in 700usize..2000) {
        let expected: Vec<String> = crate::text::lines::lines(text.as_bytes())
            .map(|line| String::from_utf8(line.text.to_vec()).unwrap())
            .collect();
        prop_assert_eq!(read_through(&text, limit, max_chars), expected);
    }

    #[test]
    fn chunks_of_any_size_give_the_page_of_the_whole(
        text in any_text(),
        bom in prop::sample::select(vec!["", "\u{feff}"]),
        size in 1usize..50,
        offset in 1usize..5,
        max_chars in prop::sample::select(vec![120usize, 300, usize::MAX]),
    ) {
        let bytes = format!("{bom}{text}").into_bytes();
        let request = PageRequest { offset, limit: 5, max_chars, numbering: Numbering::Gutter };
        let mut reader = PageReader::new("f", bytes.len() as u64, request).unwrap();
        bytes.chunks(size).try_for_each(|chunk| reader.push(chunk)).unwrap();
        prop_assert_eq!(reader.finish(), page(&bytes, "f", &request));
    }

    #[test]
    fn a_page_stays_within_its_budget(text in any_text(), max_chars in 150usize..600, limit in 1usize..60) {
        let page = shown(&text, PageRequest { offset: 1, limit, max_chars, numbering: Numbering::Gutter });
        prop_assert!(page.text.encode_utf16().count() <= max_chars);
    }

    #[test]
    fn chunks_of_broken_text_are_refused_as_the_whole_is(
        bytes in prop::collection::vec(prop::sample::select(b"a\n\xe8\x87\xaa\xf0\x9f".to_vec()), 0..40),
        size in 1usize..6,
    ) {
        let mut reader = PageReader::new("f", bytes.len() as u64, ALL).unwrap();
        let pushed = bytes.chunks(size).try_for_each(|chunk| reader.push(chunk));
        let streamed = pushed.and_then(|()| reader.finish().map(|page| page.text));
        let expected = crate::text::encoding::decode(&bytes, "f").map(|_| page(&bytes, "f", &ALL).unwrap().text);
        prop_assert_eq!(streamed, expected);
    }
}
