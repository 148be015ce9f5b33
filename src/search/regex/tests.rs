#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

/// (pattern, ignore case, line, matches). Expectations are V8's.
const TABLE: &[(&str, bool, &str, bool)] = &[
    ("foo(?=bar)", false, "foobar", true),
    ("foo(?=bar)", false, "foobaz", false),
    ("organisation_(?!id)", false, "organisation_name", true),
    ("organisation_(?!id)", false, "organisation_id", false),
    ("(?<!#)foobar", false, "x foobar", true),
    ("(?<!#)foobar", false, "#foobar", false),
    ("(?<=a+)b", false, "aaab", true),
    ("(a|b)\\1", false, "xbb", true),
    ("(a|b)\\1", false, "ab", false),
    ("interface\\s*{", false, "interface {", true),
    ("]", false, "x]", true),
    ("}", false, "x}", true),
    ("^\\d+$", false, "٣", false),
    ("^\\w+$", false, "café", false),
    ("caf\\b", false, "café", true),
    ("^[a&&b]$", false, "&", true),
    ("^[a~~b]$", false, "~", true),
    ("^[[:alpha:]]$", false, "a", false),
    ("^[[:alpha:]]$", false, ":]", true),
    ("^\\u0041\\x42$", false, "AB", true),
    ("(?<y>\\d{4})-\\k<y>", false, "2024-2024", true),
    ("(?<y>\\d{4})-\\k<y>", false, "2024-2025", false),
    ("\\k<y>", false, "k<y>", true),
    ("^k$", true, "\u{212a}", false),
    ("^s$", true, "ſ", false),
    ("^K$", true, "k", true),
    ("^É$", true, "é", true),
    ("^[à-þ]$", true, "É", true),
    ("^[^k]$", true, "K", false),
    ("x*", false, "abc", true),
    ("(?<n>a){0}b", false, "b", true),
    ("a{,2}", false, "a{,2}", true),
    ("a{2", false, "a{2", true),
    ("^a{2,}$", false, "aaa", true),
    ("^.$", false, "📁", true),
    ("^.$", false, "\u{2028}", false),
    ("^[^]$", false, "\u{2028}", true),
    ("[]", false, "a", false),
    ("^\\s$", false, "\u{feff}", true),
    ("^\\s$", false, "\u{85}", false),
    ("\\cA", false, "\u{1}", true),
    ("\\c", false, "\\c", true),
    ("^\\_\\-\\A\\z$", false, "_-Az", true),
    ("\\u00", false, "u00", true),
    ("\\x4", false, "x4", true),
    ("\\07", false, "\u{7}", true),
    ("\\8", false, "8", true),
    ("(a)\\2", false, "a\u{2}", true),
    ("\\1(a)", false, "a", true),
    ("(a)?\\1b", false, "b", true),
    ("(?:(?=a)){3}a", false, "a", true),
    ("(?:a|ab)(?:c|bcd)", false, "abcd", true),
    ("a|*", false, "", false),
    ("\\Ba", false, "ba", true),
    ("\\Ba", false, "a", false),
    ("\\B", false, "aéa", false),
    ("^$", false, "", true),
    ("[\\w-x]", false, "-", true),
    ("[\\b]", false, "\u{8}", true),
    ("[^\\x00-\\x7F]", false, "日", true),
    ("^[\\u0080-\\uFFFF]+$", false, "é📁", true),
    ("\\ud83d\\udcc1", false, "📁", true),
    ("[.]", false, "a", false),
    ("a.c", false, "a\rc", false),
    ("(x+x+)+y", false, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", false),
];

fn matches(matcher: &Matcher, line: &str) -> bool {
    let one = matcher.match_line(line);
    let in_lines = matcher.find_in_lines(line.as_bytes(), 0).is_some();
    assert!(!matcher.is_exact() || in_lines == matches!(one, LineMatch::At { .. }));
    assert!(in_lines || one == LineMatch::No, "the looser pattern lost a line");
    matches!(one, LineMatch::At { .. })
}

#[test]
fn the_table_of_patterns_holds() {
    for &(pattern, ignore_case, line, expected) in TABLE {
        match Matcher::javascript(pattern, ignore_case) {
            Ok(matcher) => {
                assert_eq!(
                    matches(&matcher, line),
                    expected,
                    "{pattern:?} on {line:?}: {matcher:?}"
                );
            }
            Err(error) => {
                assert_eq!(
                    (error.code, expected),
                    (ErrorCode::InvalidRegex, false),
                    "{pattern:?}: {error}"
                );
            }
        }
    }
}

#[test]
fn what_has_no_exact_translation_is_refused_by_name_and_its_neighbour_is_not() {
    let pairs = [
        ("\\ud83d", "\\ud83d\\udcc1"),
        ("[\\ud800-\\udbff]", "[\\ud7ff]"),
        ("(?:(a)|b)*\\1", "(?:(a)b)*\\1"),
        ("(?<=(a)\\1)b", "(?<=(a)a)b"),
    ];
    for (refused, allowed) in pairs {
        let error = Matcher::javascript(refused, false).unwrap_err();
        assert_eq!(error.code, ErrorCode::UnsupportedRegex, "{refused}");
        assert!(Matcher::javascript(allowed, false).is_ok(), "{allowed}");
    }
}

#[test]
fn a_pattern_too_big_or_too_deep_is_refused() {
    let code = |pattern: &str| Matcher::javascript(pattern, false).unwrap_err().code;
    assert_eq!(code(&"a".repeat(4097)), ErrorCode::InvalidRegex);
    assert_eq!(code("(?:[^a]{1000}){1000}"), ErrorCode::UnsupportedRegex);
    assert_eq!(
        code(&("(".repeat(1500) + &")".repeat(1500))),
        ErrorCode::UnsupportedRegex
    );
    assert!(Matcher::javascript(&("(".repeat(100) + &")".repeat(100)), false).is_ok());
}

#[test]
fn a_literal_means_its_own_text() {
    let text = "a.b*(c)[d]{1}\\w^$|/-é";
    let matcher = Matcher::literal(text, false).unwrap();
    assert!(matches(&matcher, &format!("x{text}y")));
    assert!(!matches(&matcher, "axb"));
    assert!(matches(&Matcher::literal("ÀB.", true).unwrap(), "àb."));
}

#[test]
fn a_match_never_reaches_over_a_line_end() {
    for pattern in ["foo\\s+bar", "foo[^x]bar", "foo\\nbar", "o\\Wb", "foo$[^]^bar"] {
        let matcher = Matcher::javascript(pattern, false).unwrap();
        assert_eq!(matcher.find_in_lines(b"foo\nbar", 0), None, "{pattern}");
    }
    let matcher = Matcher::javascript("^b.r$", false).unwrap();
    assert_eq!(matcher.find_in_lines(b"foo\nbar\nb", 0), Some((4, 7)));
}

#[test]
fn a_hard_pattern_ends_with_its_step_limit() {
    let matcher = Matcher::javascript("(?=(a+)+$)\\1b", false).unwrap();
    let line = "a".repeat(40) + "!";
    assert!(matches!(
        matcher.match_line(&line),
        LineMatch::TooHard | LineMatch::No
    ));
    assert_eq!(matcher.match_line(&("ab".repeat(3000))), LineMatch::TooLong);
}
