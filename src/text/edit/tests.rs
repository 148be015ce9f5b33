use super::*;
use proptest::prelude::*;

const fn one<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
    Edit {
        old,
        new,
        replace_all: false,
    }
}

const fn all<'a>(old: &'a str, new: &'a str) -> Edit<'a> {
    Edit {
        old,
        new,
        replace_all: true,
    }
}

fn run(text: &str, wanted: Edit<'_>) -> Result<Edited> {
    edit(text.as_bytes(), "f", &wanted, LineEndings::Preserve)
}

fn text_after(text: &str, wanted: Edit<'_>) -> String {
    String::from_utf8(run(text, wanted).unwrap().bytes.unwrap()).unwrap()
}

fn refusal(text: &str, wanted: Edit<'_>) -> Error {
    run(text, wanted).unwrap_err()
}

#[test]
fn the_replacement_is_literal_and_the_match_is_exact() {
    let table = [
        (
            "log(\"done\");\n",
            one("log(\"done\");", "log(\"$& $1 $$ $` $'\");"),
            "log(\"$& $1 $$ $` $'\");\n",
        ),
        ("x = oldtext;\n", all("oldtext", "$$"), "x = $$;\n"),
        ("Abcd Efgh Abcd\n", all("Abcd", "Abcde"), "Abcde Efgh Abcde\n"),
        (
            "foo(.*)[a-z]+$^\nfooXXb\n",
            one("foo(.*)[a-z]+$^", "ok"),
            "ok\nfooXXb\n",
        ),
        ("1\tfoo\n2\tbar\n", one("1\tfoo", "1\tFOO"), "1\tFOO\n2\tbar\n"),
        ("12#VK:keep\n", one("12#VK:keep", "12#VK:kept"), "12#VK:kept\n"),
        (
            "print(\"a\")\n",
            one("print(\"a\")", "print(\"H\\nw\")"),
            "print(\"H\\nw\")\n",
        ),
        (
            "const a = '\\u00e9'; // \u{e9}\n",
            one("\\u00e9", "E"),
            "const a = 'E'; // \u{e9}\n",
        ),
        ("abc\rdef\rghi", one("def", "xyz"), "abc\rxyz\rghi"),
        ("a\nb\n", one("b", "c"), "a\nc\n"),
        ("aaaa", all("aa", "b"), "bb"),
        ("a\nb", one("a\nb", ""), ""),
    ];
    for (text, wanted, expected) in table {
        assert_eq!(text_after(text, wanted), expected, "{text:?}");
    }
}

#[test]
fn several_matches_are_refused_with_their_lines_and_one_is_not() {
    let error = refusal("a\nb\na\n", one("a", "c"));
    assert_eq!(error.code, ErrorCode::EditAmbiguous);
    assert_eq!(
        error.message,
        "old_string occurs 2 times in \"f\" (lines 1, 3): add context to make it unique, or set replace_all"
    );
    let many = refusal(&"x\n".repeat(900), one("x", "y"));
    assert!(
        many.message
            .contains("occurs 900 times in \"f\" (lines 1, 2, 3, 4, 5, ...)"),
        "{many}"
    );
    assert_eq!(text_after("a\nb\na\n", one("b\na", "c")), "a\nc\n");
}

#[test]
fn an_overlapping_second_match_is_ambiguous() {
    let error = refusal("aaa\n", one("aa", "b"));
    assert_eq!(error.code, ErrorCode::EditAmbiguous);
    assert!(error.message.contains("overlapping (lines 1, 1)"), "{error}");
    assert_eq!(
        refusal("}\r\n}\r\n}\r\n", one("}\n}", "")).code,
        ErrorCode::EditAmbiguous
    );
    assert_eq!(text_after("aa\n", one("aa", "b")), "b\n");
}

#[test]
fn an_empty_old_is_an_argument_error_and_an_equal_new_is_no_change() {
    for wanted in [one("", "y"), all("", "y")] {
        assert_eq!(refusal("x\n", wanted).code, ErrorCode::InvalidArgument);
    }
    for wanted in [one("FOO", "FOO"), all("FOO", "FOO")] {
        let edited = run("FOO\n", wanted).unwrap();
        assert_eq!((edited.bytes, edited.applied[0].replacements), (None, 0));
    }
}

#[test]
fn an_lf_edit_takes_the_endings_of_the_place_and_other_lines_keep_theirs() {
    let table = [
        (
            "one\r\ntwo\r\nthree\r\n",
            one("one\ntwo", "ONE\nTWO"),
            "ONE\r\nTWO\r\nthree\r\n",
        ),
        ("a\r\nb\r\nc\r\n", one("b", "b1\nb2"), "a\r\nb1\r\nb2\r\nc\r\n"),
        ("a\r\nb", one("b", "b1\nb2"), "a\r\nb1\r\nb2"),
        ("a\r\nb\nc\r\nd\n", one("b", "B"), "a\r\nB\nc\r\nd\n"),
        ("a\r\nb\nc\r\nd\n", one("b", "B\nB"), "a\r\nB\nB\nc\r\nd\n"),
        ("a\r\nb\nc\r\nd\n", one("c", "C\nC"), "a\r\nb\nC\r\nC\r\nd\n"),
        // Mixed inside the match: the lines in common keep their own.
        ("a\r\nb\nc\r\n", one("a\nb\nc\n", "a\nB\nc\n"), "a\r\nB\nc\r\n"),
        (
            "a\nb\r\nc\n",
            one("a\nb\nc\n", "a\nB1\nB2\nc\n"),
            "a\nB1\r\nB2\r\nc\n",
        ),
        ("a\r\nb\n", one("a\nb", "a\nx\nb"), "a\r\nx\r\nb\n"),
        // A break is taken whole.
        ("a\r\nfoo\r\n", one("\nfoo", ""), "a\r\n"),
        ("a\r\nfoo\r\n", one("a\n", ""), "foo\r\n"),
        ("\r\nfoo\r\n", one("\nfoo\n", "x"), "x"),
        ("a\r\nb\r\n", all("\n", "\n\n"), "a\r\n\r\nb\r\n\r\n"),
        // Whoever writes a CR has chosen.
        ("a\r\nb\r\n", one("a\r\nb", "a\nb"), "a\nb\r\n"),
        ("a\nb\n", one("a", "a\r\nx"), "a\r\nx\nb\n"),
    ];
    for (text, wanted, expected) in table {
        assert_eq!(text_after(text, wanted), expected, "{text:?} {wanted:?}");
    }
}

#[test]
fn endings_that_were_converted_or_became_mixed_are_noted() {
    let notes = |text, wanted| run(text, wanted).unwrap().notes;
    assert_eq!(
        notes("a\r\nb\r\n", one("b", "c\nd")),
        ["line endings: the new text took the CRLF of the lines around it"]
    );
    assert_eq!(
        notes("a\nb\n", one("a", "a\r\nx")),
        ["the file now has mixed line endings: 1 CRLF and 2 LF"]
    );
    assert!(notes("a\r\nb\r\n", one("b", "c")).is_empty());
    assert!(
        notes("a\r\nb\nc\n", one("c", "d")).is_empty(),
        "a file that was mixed before needs no note"
    );
}

#[test]
fn strict_means_bytes_and_an_lf_never_stands_for_half_a_crlf() {
    let strict = |text: &str, wanted| edit(text.as_bytes(), "f", &wanted, LineEndings::Strict);
    for wanted in [one("one\ntwo", "x"), one("\ntwo", "x")] {
        let error = strict("one\r\ntwo\r\n", wanted).unwrap_err();
        assert_eq!(error.code, ErrorCode::EditNoMatch);
        assert!(error.message.contains("CRLF line endings there"), "{error}");
    }
    let edited = strict("one\r\ntwo\r\n", one("one\r\ntwo", "1\n2")).unwrap();
    assert_eq!(edited.bytes.unwrap(), b"1\n2\r\n");
    assert_eq!(
        edited.notes,
        ["the file now has mixed line endings: 1 CRLF and 1 LF"]
    );
}

#[test]
fn byte_order_marks_and_utf16_survive() {
    let table: &[(&[u8], Edit<'_>, &[u8])] = &[
        (
            b"\xef\xbb\xbf# t\nbody\n",
            one("# t", "# u"),
            b"\xef\xbb\xbf# u\nbody\n",
        ),
        (b"# t\nbody\n", one("# t", "# u"), b"# u\nbody\n"),
        (
            b"\xff\xfeh\0e\0l\0l\0o\0\n\0",
            one("hello", "world"),
            b"\xff\xfew\0o\0r\0l\0d\0\n\0",
        ),
    ];
    for (bytes, wanted, expected) in table {
        let edited = edit(bytes, "f", wanted, LineEndings::Preserve).unwrap();
        assert_eq!(edited.bytes.as_deref(), Some(*expected));
    }
    for bytes in [&b"header\nmark\x99 ok\n"[..], b"foo\0header\n"] {
        assert!(edit(bytes, "f", &one("header", "x"), LineEndings::Preserve).is_err());
    }
}

#[test]
fn the_first_changed_line_is_where_old_and_new_part() {
    let edited = run("a\nb\nc\nd\n", one("b\nc\n", "b\nC\n")).unwrap();
    assert_eq!(
        edited.applied,
        [Applied {
            replacements: 1,
            first_line: Some(3)
        }]
    );
}

#[test]
fn a_list_of_edits_works_on_what_the_one_before_left_and_is_all_or_nothing() {
    let edits = [one("a", "b1"), one("b1\nb", "c"), all("x", "y")];
    let edited = edit_many(b"a\nb\nx x\n", "f", &edits, LineEndings::Preserve).unwrap();
    assert_eq!(edited.bytes.unwrap(), b"c\ny y\n");
    assert_eq!(
        edited.applied.iter().map(|a| a.replacements).collect::<Vec<_>>(),
        [1, 1, 2]
    );
    let error = edit_many(
        b"a\nb\n",
        "f",
        &[one("a", "A"), one("zzz", "Z")],
        LineEndings::Preserve,
    )
    .unwrap_err();
    assert_eq!(error.code, ErrorCode::EditNoMatch);
    assert!(
        error
            .message
            .starts_with("edit 2 of 2: old_string does not occur"),
        "{error}"
    );
    assert!(error.message.ends_with("No edit was applied."), "{error}");
    let error = edit_many(b"a", "f", &[], LineEndings::Preserve).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArgument);
    let undone = edit_many(
        b"a\n",
        "f",
        &[one("a", "a"), one("a", "a")],
        LineEndings::Preserve,
    )
    .unwrap();
    assert_eq!(undone.bytes, None);
}

#[test]
fn an_edit_that_multiplies_is_refused_before_it_fills_the_memory() {
    let (text, new) = ("a".repeat(1 << 20), "b".repeat(1 << 20));
    let error = refusal(&text, all("a", &new));
    assert_eq!(error.code, ErrorCode::TooLarge);
    assert!(error.message.contains("64.0 MB"), "{error}");
    assert_eq!(text_after(&text, all("a", "bb")).len(), 2 << 20);
}

#[test]
fn a_miss_names_its_cause() {
    let go = "func a() {\n\tx := 1\n\ty := 2\n\tz := 3\n\treturn\n}\n";
    let table = [
        ("", "x", "The file is empty"),
        ("a\nb\n", "a\r\nb", "With LF instead of CRLF it occurs at line 1"),
        (
            go,
            "     2\t\tx := 1\n     3\t\ty := 2",
            "Without the line numbers in front it occurs at line 2",
        ),
        (
            go,
            "L2:0123456789ab:\tx := 1",
            "Without the line numbers in front it occurs at line 2",
        ),
        (go, "x := 1\\n\\ty := 2", "With its backslash escapes"),
        (
            "if a < b && c {\n",
            "a &lt; b &amp;&amp; c",
            "With its HTML entities",
        ),
        (
            go,
            "    x := 1\n    y := 2",
            "the file indents with tabs, old_string with spaces",
        ),
        (
            "    x\n",
            "\tx\n",
            "the file indents with spaces, old_string with tabs",
        ),
        ("  if x:\n", "    if x:", "(indentation)"),
        (
            "a  \nb\n",
            "a\nb",
            "(white space at the end): the file has \"a  \", old_string has \"a\"",
        ),
        ("caf\u{e9}\n", "cafe\u{301}", "Unicode normalisation"),
        (
            "\u{201c}quoted\u{201d}\n",
            "\"quoted\"",
            "the file has curly quotes",
        ),
        ("'it'\n", "\u{2018}it\u{2019}", "old_string has curly quotes"),
        ("a\u{a0}b\n", "a b", "the file has \"a\\u{a0}b\""),
        (
            go,
            "func a() {\n\tx := 1\n\ty := 99\n\tz := 3\n}",
            "Line 3 differs: the file has \"\\ty := 2\", old_string has \"\\ty := 99\"",
        ),
        (
            "let total = price * count;\n",
            "let total = price * amount;",
            "closest place in the file is at line 1",
        ),
        ("a\nb\n", "qqqq wwww eeee", "No line of the file resembles it"),
        ("x = 1\n", "x = 1\ny = 2", "There the file ends"),
        ("a\nb", "b\n", "The file ends with it, but without a newline"),
        (
            "a\nb\nc\n",
            "\n\nb\n\n",
            "Without the line breaks around it, it occurs at line 2",
        ),
        ("a\nb\n", "\n\n\n", "No line of the file resembles it"),
    ];
    for (text, old, words) in table {
        let error = refusal(text, one(old, "new"));
        assert_eq!(error.code, ErrorCode::EditNoMatch, "{old:?}");
        assert!(error.message.contains(words), "{old:?}: {error}");
    }
}

#[test]
fn a_miss_in_a_large_file_shows_a_few_lines_only() {
    let mut text: String = (0..20_000).map(|n| format!("line number {n}\n")).collect();
    text.push_str(&"x".repeat(100_000));
    let old: String = (500..900)
        .map(|n| format!("line number {}\n", if n == 700 { 7 } else { n }))
        .collect();
    let error = refusal(&text, one(&old, ""));
    assert!(error.message.contains("Line 701 differs"), "{error}");
    assert!(error.message.len() < 2000);
    let error = refusal(&text, one(&format!("{}y", "x".repeat(99_999)), ""));
    assert!(error.message.len() < 2000, "{error}");
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "ab",
        "\n",
        "\r\n",
        "\r",
        "\u{e9}",
        "\u{1f4c1}",
        " ",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn bytes_outside_the_replaced_span_never_change(
        before in any_text(), old in any_text(), after in any_text(), new in any_text(), strict in any::<bool>(),
    ) {
        // There the planted place is no match: strict takes no half of a CRLF.
        prop_assume!(!(strict && old.starts_with('\n') && before.ends_with('\r')));
        let text = format!("{before}{old}{after}");
        let mode = if strict { LineEndings::Strict } else { LineEndings::Preserve };
        if let Ok(Edited { bytes: Some(bytes), .. }) = edit(text.as_bytes(), "f", &one(&old, &new), mode) {
            // A match that begins with LF may have taken the CR before it as part of the same break.
            let kept = if old.starts_with('\n') { before.strip_suffix('\r').unwrap_or(&before) } else { &before };
            prop_assert!(bytes.starts_with(kept.as_bytes()), "{:?}", String::from_utf8_lossy(&bytes));
            prop_assert!(bytes.ends_with(after.as_bytes()));
        }
    }

    #[test]
    fn strict_is_the_plain_replacement(parts in prop::collection::vec(any_text(), 2..5), old in any_text(), new in any_text()) {
        let old = format!("b{old}");
        prop_assume!(old != new);
        let text = parts.join(&old);
        let edited = edit(text.as_bytes(), "f", &all(&old, &new), LineEndings::Strict).unwrap();
        prop_assert_eq!(String::from_utf8(edited.bytes.unwrap()).unwrap(), text.replace(&old, &new));
        prop_assert_eq!(edited.applied[0].replacements, text.matches(&old).count());
    }

    #[test]
    fn in_a_crlf_file_an_lf_edit_is_the_same_edit_with_crlf(lines in any_text(), old in any_text(), new in any_text()) {
        let lf = |text: String| text.replace('\r', "");
        let (text, old, new) = (lf(lines), lf(old), lf(new));
        prop_assume!(!old.is_empty() && old != new);
        let expected = edit(text.as_bytes(), "f", &one(&old, &new), LineEndings::Preserve);
        let crlf = text.replace('\n', "\r\n");
        let found = edit(crlf.as_bytes(), "f", &one(&old, &new), LineEndings::Preserve);
        match (expected, found) {
            (Ok(expected), Ok(found)) => {
                let expected = String::from_utf8(expected.bytes.unwrap()).unwrap();
                if text.contains('\n') {
                    prop_assert_eq!(String::from_utf8(found.bytes.unwrap()).unwrap(), expected.replace('\n', "\r\n"));
                }
            }
            (Err(expected), Err(found)) => prop_assert_eq!(expected.code, found.code),
            (expected, found) => prop_assert!(false, "{:?} {:?}", expected, found),
        }
    }

    #[test]
    fn a_miss_is_explained_whatever_the_text(text in any_text(), old in any_text()) {
        prop_assume!(!old.is_empty() && !text.contains(&old));
        if let Err(error) = run(&text, one(&old, "new")) {
            prop_assert!(error.code == ErrorCode::EditNoMatch || error.code == ErrorCode::EditAmbiguous);
        }
    }
}
