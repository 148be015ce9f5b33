use super::*;
use crate::text::hash_line::hash_line;
use proptest::prelude::*;

fn anchored<'a>(line: usize, hash: &'a str, op: Op, content: Option<&'a str>) -> HashEdit<'a> {
    HashEdit {
        line,
        hash,
        end_line: None,
        hashes: &[],
        op,
        content,
    }
}

fn hash(text: &str) -> String {
    hash_line(text.as_bytes())
}

fn text_after(file: &str, edits: &[HashEdit<'_>]) -> String {
    String::from_utf8(
        edit_at_hashes(file.as_bytes(), "f", edits, 64)
            .unwrap()
            .bytes
            .unwrap(),
    )
    .unwrap()
}

fn refusal(file: &str, edits: &[HashEdit<'_>]) -> Error {
    edit_at_hashes(file.as_bytes(), "f", edits, 64).unwrap_err()
}

#[test]
fn one_line_is_replaced_by_one_or_several_or_deleted_and_the_ending_is_kept() {
    let table = [
        ("a\nb\nc\n", 2, Some("B"), "a\nB\nc\n"),
        ("a\nb\nc\n", 2, Some("B\n"), "a\nB\nc\n"),
        ("a\nb\nc\n", 2, Some("B1\nB2"), "a\nB1\nB2\nc\n"),
        ("a\nb\nc\n", 2, Some(""), "a\n\nc\n"),
        ("a\nb\nc\n", 2, None, "a\nc\n"),
        ("a\r\nb\r\n", 2, Some("B"), "a\r\nB\r\n"),
        ("a\r\nb\n", 1, Some("A1\nA2"), "A1\r\nA2\r\nb\n"),
        ("a\r\nb", 2, Some("B1\nB2"), "a\r\nB1\r\nB2"),
        ("a\r\nb\r\n", 1, Some("A1\r\nA2"), "A1\r\nA2\r\nb\r\n"),
        ("a\nb", 2, None, "a\n"),
        ("b", 1, None, ""),
        ("a\n", 1, Some("L\u{e9}"), "L\u{e9}\n"),
    ];
    for (file, line, content, expected) in table {
        let old = lines::lines(file.as_bytes()).nth(line - 1).unwrap();
        let edited = edit_at_hash(file.as_bytes(), "f", (line, &hash_line(old.text)), content, 64).unwrap();
        assert_eq!(
            edited.bytes.as_deref(),
            Some(expected.as_bytes()),
            "{file:?} {content:?}"
        );
        assert_eq!((edited.first_line, edited.lines_removed), (Some(line), 1));
    }
}

#[test]
fn among_equal_lines_the_number_decides() {
    let file = "alpha one\n  }\nbeta two\n  }\ngamma three\n  }\n";
    let brace = hash("  }");
    let edits = [anchored(4, &brace, Op::Replace, Some("  ]"))];
    assert_eq!(
        text_after(file, &edits),
        "alpha one\n  }\nbeta two\n  ]\ngamma three\n  }\n"
    );
}

#[test]
fn a_stale_anchor_is_refused_with_fresh_ones_and_never_slides() {
    let error = refusal(
        "zero\none\ntwo\nthree\n",
        &[anchored(2, &hash("two"), Op::Replace, Some("TWO"))],
    );
    assert_eq!(error.code, ErrorCode::AnchorMismatch);
    assert!(
        error
            .message
            .contains("the only line with that hash is now line 3"),
        "{error}"
    );
    for (number, text) in [(1, "zero"), (2, "one"), (3, "two"), (4, "three")] {
        assert!(
            error
                .message
                .contains(&format!("\nL{number}:{}:{text}\n", hash(text))),
            "{error}"
        );
    }
}

#[test]
fn many_edits_use_the_numbers_of_the_file_as_it_was_read() {
    let (a, c, d) = (hash("a"), hash("c"), hash("d"));
    let edits = [
        anchored(1, &a, Op::InsertAfter, Some("a1\na2")),
        anchored(3, &c, Op::Replace, Some("C")),
        anchored(4, &d, Op::Delete, None),
    ];
    assert_eq!(text_after("a\nb\nc\nd\n", &edits), "a\na1\na2\nb\nC\n");
    let reversed: Vec<_> = edits.iter().rev().cloned().collect();
    assert_eq!(text_after("a\nb\nc\nd\n", &reversed), "a\na1\na2\nb\nC\n");
    let b = hash("b");
    let edits = [
        anchored(2, &b, Op::InsertBefore, Some("y")),
        anchored(1, &a, Op::InsertAfter, Some("x1")),
        anchored(1, &a, Op::InsertAfter, Some("x2")),
        anchored(1, &a, Op::InsertBefore, Some("w")),
    ];
    assert_eq!(text_after("a\nb\n", &edits), "w\na\nx1\nx2\ny\nb\n");
}

#[test]
fn lines_beside_the_last_one_keep_a_missing_final_newline_missing() {
    let b = hash("b");
    let table: [(&str, &[HashEdit<'_>], &str); 5] = [
        ("a\nb", &[anchored(2, &b, Op::InsertAfter, Some("c"))], "a\nb\nc"),
        (
            "a\r\nb",
            &[anchored(2, &b, Op::InsertAfter, Some("c\nd"))],
            "a\r\nb\r\nc\r\nd",
        ),
        ("a\nb", &[anchored(2, &b, Op::InsertBefore, Some("c"))], "a\nc\nb"),
        ("b", &[anchored(1, &b, Op::InsertBefore, Some("c"))], "c\nb"),
        (
            "a\nb",
            &[
                anchored(2, &b, Op::Replace, Some("B")),
                anchored(2, &b, Op::InsertAfter, Some("c")),
            ],
            "a\nB\nc",
        ),
    ];
    for (file, edits, expected) in table {
        assert_eq!(text_after(file, edits), expected, "{file:?} {edits:?}");
    }
}

#[test]
fn a_range_needs_the_hash_of_every_line_in_it() {
    let (a, b, c) = (hash("a"), hash("b"), hash("c"));
    let range = |hashes| HashEdit {
        end_line: Some(3),
        hashes,
        ..anchored(1, &a, Op::Replace, Some("X"))
    };
    let all: &[&str] = &[&a, &b, &c];
    assert_eq!(text_after("a\nb\nc\nd\n", &[range(all)]), "X\nd\n");
    assert_eq!(text_after("a\nb\nc\nd\n", &[range(&all[1..])]), "X\nd\n");
    let wrong: &[&[&str]] = &[&[], &[&a], &[&a, &c, &b], &[&b, &b, &c], &[&a, &b, &c, &c]];
    for hashes in wrong {
        assert_eq!(
            refusal("a\nb\nc\nd\n", &[range(hashes)]).code,
            ErrorCode::AnchorMismatch,
            "{hashes:?}"
        );
    }
}

#[test]
fn overlaps_and_one_bad_edit_refuse_the_whole_list() {
    let (a, b, c) = (hash("a"), hash("b"), hash("c"));
    let rest: &[&str] = &[&b, &c];
    let range = HashEdit {
        end_line: Some(3),
        hashes: rest,
        ..anchored(1, &a, Op::Replace, Some("X"))
    };
    let inside = [
        anchored(2, &b, Op::Replace, Some("Y")),
        anchored(2, &b, Op::InsertBefore, Some("Y")),
        anchored(1, &a, Op::InsertAfter, Some("Y")),
        anchored(3, &c, Op::Delete, None),
    ];
    for edit in inside {
        for list in [[range.clone(), edit.clone()], [edit.clone(), range.clone()]] {
            let error = refusal("a\nb\nc\nd\n", &list);
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert!(error.message.contains("edits 1 and 2 overlap"), "{error}");
        }
    }
    let beside = [
        range.clone(),
        anchored(1, &a, Op::InsertBefore, Some("Y")),
        anchored(3, &c, Op::InsertAfter, Some("Z")),
    ];
    assert_eq!(text_after("a\nb\nc\nd\n", &beside), "Y\nX\nZ\nd\n");
    let bad = [
        anchored(1, &a, Op::Replace, Some("A")),
        anchored(2, &c, Op::Replace, Some("B")),
    ];
    let error = refusal("a\nb\nc\nd\n", &bad);
    assert_eq!(error.code, ErrorCode::AnchorMismatch);
    assert!(
        error
            .message
            .starts_with("edit 2 of 2: line 2 of \"f\" does not have the hash"),
        "{error}"
    );
    assert!(error.message.ends_with("Nothing was changed"), "{error}");
}

#[test]
fn anchors_that_cannot_hold_are_refused_and_case_does_not_matter() {
    let a = hash("a");
    let longer = format!("{a}0");
    let table = [
        (0, a.as_str(), ErrorCode::InvalidArgument, "numbered from 1"),
        (3, &a, ErrorCode::AnchorMismatch, "has 2 lines"),
        (1, "", ErrorCode::AnchorMismatch, "must be 64 hex digits"),
        (1, &a[..63], ErrorCode::AnchorMismatch, "must be 64 hex digits"),
        (1, &longer, ErrorCode::AnchorMismatch, "must be 64 hex digits"),
        (1, "zz", ErrorCode::AnchorMismatch, "must be 64 hex digits"),
    ];
    for (line, hash, code, words) in table {
        let error = refusal("a\nb\n", &[anchored(line, hash, Op::Replace, Some("x"))]);
        assert_eq!(error.code, code, "{line} {hash:?}: {error}");
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(
        text_after(
            "a\nb\n",
            &[anchored(1, &a.to_uppercase(), Op::Replace, Some("A"))]
        ),
        "A\nb\n"
    );
    assert_eq!(
        refusal("", &[anchored(1, &a, Op::Delete, None)]).code,
        ErrorCode::AnchorMismatch
    );
}

#[test]
fn a_shortened_hash_that_two_different_lines_share_is_refused() {
    // SHA-256 of both begins with 46f79b; at the least display of 8 digits they differ.
    let file = "let x62 = 62;\nlet x2879 = 2879;\n";
    let (first, second) = (hash("let x62 = 62;"), hash("let x2879 = 2879;"));
    assert_eq!(first[..6], second[..6]);
    let run = |hash: &str| edit_at_hash(file.as_bytes(), "f", (1, hash), Some("WRONG"), 8);
    assert_eq!(run(&second[..8]).unwrap_err().code, ErrorCode::AnchorMismatch);
    assert_eq!(run(&first[..7]).unwrap_err().code, ErrorCode::AnchorMismatch);
    assert!(run(&first[..8]).is_ok());
    let same = "let x62 = 62;\nlet x62 = 62;\n";
    assert!(
        edit_at_hash(same.as_bytes(), "f", (1, &first[..8]), Some("x"), 8).is_ok(),
        "equal lines are no clash"
    );
    let lines: Vec<Line<'_>> = lines::lines(file.as_bytes()).collect();
    let anchors = Anchors::new(&lines, "f", 6);
    let error = anchors
        .check(&anchored(1, &first[..6], Op::Delete, None))
        .unwrap_err();
    assert!(
        error.message.contains("also begins the hash of a different line"),
        "{error}"
    );
}

#[test]
fn content_with_a_pasted_anchor_is_refused_and_text_that_only_looks_alike_is_not() {
    let a = hash("a");
    for content in [format!("L1:{a}:x"), format!("ok\nL12:{}:x", &a[..8])] {
        let error = refusal("a\n", &[anchored(1, &a, Op::Replace, Some(&content))]);
        assert_eq!(error.code, ErrorCode::InvalidArgument);
        assert!(error.message.contains("begins with an anchor"), "{error}");
    }
    for content in ["L1:abc:x", "L:12345678:x", " L1:12345678:x", "L1:1234567g:x"] {
        assert!(
            edit_at_hash(b"a\n", "f", (1, &a), Some(content), 64).is_ok(),
            "{content:?}"
        );
    }
}

#[test]
fn arguments_that_contradict_each_other_are_refused() {
    let a = hash("a");
    let wrong = [
        anchored(1, &a, Op::Delete, Some("x")),
        anchored(1, &a, Op::Replace, None),
        HashEdit {
            end_line: Some(2),
            ..anchored(1, &a, Op::InsertAfter, Some("x"))
        },
        HashEdit {
            end_line: Some(1),
            ..anchored(2, &a, Op::Delete, None)
        },
    ];
    for edit in wrong {
        assert_eq!(
            refusal("a\nb\n", std::slice::from_ref(&edit)).code,
            ErrorCode::InvalidArgument,
            "{edit:?}"
        );
    }
    assert_eq!(refusal("a\n", &[]).code, ErrorCode::InvalidArgument);
}

#[test]
fn byte_order_marks_and_utf16_survive_and_an_equal_line_is_no_change() {
    let hi = hash("hi");
    let edited = edit_at_hash(b"\xff\xfeh\0i\0\r\0\n\0", "f", (1, &hi), Some("\u{e9}"), 64).unwrap();
    assert_eq!(edited.bytes.unwrap(), b"\xff\xfe\xe9\0\r\0\n\0");
    let edited = edit_at_hash(b"\xef\xbb\xbfhi\n", "f", (1, &hi), Some("ho"), 64).unwrap();
    assert_eq!(edited.bytes.unwrap(), b"\xef\xbb\xbfho\n");
    let edited = edit_at_hash(b"hi\n", "f", (1, &hi), Some("hi"), 64).unwrap();
    assert_eq!((edited.bytes, edited.first_line), (None, None));
}

proptest! {
    #[test]
    fn lines_that_were_not_named_keep_their_bytes(
        pieces in prop::collection::vec(("[ab ]{0,3}", prop::sample::select(vec!["\n", "\r\n"])), 1..12),
        final_newline in any::<bool>(),
        chosen in any::<prop::sample::Index>(),
        content in prop::option::of("[xy\n]{0,4}"),
    ) {
        let mut file: String = pieces.iter().map(|(text, ending)| format!("{text}{ending}")).collect();
        if !final_newline {
            file.truncate(file.trim_end_matches(['\r', '\n']).len());
        }
        let old: Vec<_> = lines::pieces(file.as_bytes()).collect();
        prop_assume!(!old.is_empty());
        let at = chosen.index(old.len());
        let hash = hash_line(Line::of(old[at]).text);
        let edited = edit_at_hash(file.as_bytes(), "f", (at + 1, &hash), content.as_deref(), 64).unwrap();
        let bytes = edited.bytes.unwrap_or(file.clone().into_bytes());
        prop_assert!(bytes.starts_with(&old[..at].concat()));
        prop_assert!(bytes.ends_with(&old[at + 1..].concat()));
        let count = lines::count(file.as_bytes()) + edited.lines_added - edited.lines_removed;
        // A last line that is empty and has no ending is no line.
        prop_assert!(lines::count(&bytes) == count || bytes.last() == Some(&b'\n') && lines::count(&bytes) + 1 == count || bytes.is_empty());
    }
}
