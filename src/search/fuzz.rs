//! Generated inputs for the glob compiler, the regex translator and the ignore parser. `PROPTEST_CASES` sets how many;
//! the ignored tests at the end are the long runs, of `CROFT_FUZZ_SECONDS` each:
//! `cargo test --no-default-features --lib search::fuzz -- --ignored --test-threads 1 --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::budget::{Clock, NeverCancelled};
use super::glob::Glob;
use super::ignore::IgnoreStack;
use super::lines::{LineOptions, search_buffer};
use super::regex::{LineMatch, Matcher};
use super::wildmatch::{Scope, wildmatch};

/// Text that is likely to be syntax.
fn syntax(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    let piece = prop_oneof![4 => prop::sample::select(pieces).prop_map(str::to_owned), 1 => "\\PC"];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

const GLOB: &[&str] = &[
    "*",
    "**",
    "?",
    "[",
    "]",
    "!",
    "^",
    "-",
    "{",
    "}",
    ",",
    "/",
    "\\",
    "a",
    "b",
    "é",
    ".",
    "..",
    "[:alpha:]",
    "**/",
    "/**",
];
const REGEX: &[&str] = &[
    "(", ")", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<n>", "|", "*", "+", "?", "{2}", "{1,}", "{", "}", "[",
    "[^", "]", "-", "^", "$", ".", "\\b", "\\B", "\\d", "\\W", "\\s", "\\1", "\\2", "\\k<n>", "\\u0061",
    "\\x", "\\c", "a", "b", "é", "\\",
];
const IGNORE: &[&str] = &[
    "*",
    "**",
    "?",
    "[",
    "]",
    "!",
    "/",
    "\\",
    " ",
    "\n",
    "\r",
    "#",
    "a",
    "b",
    "[:alpha:]",
    "[!",
    "-",
    "\u{feff}",
];

/// What `wildmatch` means, without its short cuts: every split of the text is tried.
fn naive(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|at| naive(rest, &text[at..])),
        [b'?', rest @ ..] => !text.is_empty() && naive(rest, &text[1..]),
        [byte, rest @ ..] => text.first() == Some(byte) && naive(rest, &text[1..]),
    }
}

proptest! {
    #[test]
    fn a_glob_compiles_or_is_refused_and_matches_its_own_spelling(pattern in syntax(GLOB), path in "[ab./é]{0,8}") {
        if let Ok(glob) = Glob::new(&pattern) {
            glob.matches(&path);
            let spelled: Vec<&str> = pattern.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
            prop_assert!(glob.matches(&spelled.join("/")), "{:?}", glob);
        }
    }

    #[test]
    fn a_directory_above_a_match_is_always_entered(pattern in syntax(GLOB), path in "[ab]{1,2}(/[ab]{1,2}){0,3}") {
        if let Ok(glob) = Glob::new(&pattern) {
            let mut names: Vec<&str> = path.split('/').collect();
            let file = names.pop().unwrap();
            let alive = names.iter().try_fold(glob.start(), |alive, name| glob.enter(&alive, name));
            let walked = alive.is_some_and(|alive| glob.matches_name(&alive, file));
            prop_assert_eq!(walked, glob.matches(&path));
        }
    }

    #[test]
    fn a_pattern_is_translated_or_refused_and_lines_agree_with_the_buffer(
        pattern in syntax(REGEX), ignore_case: bool, lines in prop::collection::vec("[abé1 _]{0,6}", 1..5)
    ) {
        let Ok(matcher) = Matcher::javascript(&pattern, ignore_case) else { return Ok(()) };
        let text = lines.join("\n") + "\n";
        let options = LineOptions { context: 0, max_line_chars: 500, max_matches: 100 };
        let clock = Clock::new(&NeverCancelled, None);
        let found = search_buffer(&matcher, &mut text.into_bytes(), &options, &clock);
        let numbers: Vec<usize> = found.lines.iter().map(|line| line.line).collect();
        let expected: Vec<usize> = (1..).zip(&lines)
            .filter(|(_, line)| matches!(matcher.match_line(line), LineMatch::At { .. }))
            .map(|(number, _)| number)
            .collect();
        prop_assert_eq!(numbers, expected, "{:?}", matcher);
    }

    #[test]
    fn a_literal_finds_exactly_its_text(text in "\\PC{1,6}", line in "\\PC{0,12}") {
        let matcher = Matcher::literal(&text, false).unwrap();
        let found = matches!(matcher.match_line(&line), LineMatch::At { .. });
        prop_assert_eq!(found, line.contains(&text));
    }

    #[test]
    fn ignore_rules_of_any_bytes_are_read(content in syntax(IGNORE), bytes in prop::collection::vec(any::<u8>(), 0..40), path in "[ab]{1,2}(/[ab.]{1,2}){0,3}") {
        for content in [content.as_bytes(), &bytes] {
            let stack = IgnoreStack::none().with_file(content, "");
            stack.excludes(path.as_bytes(), false);
            stack.excludes(path.as_bytes(), true);
        }
    }

    #[test]
    fn stars_match_as_if_every_split_were_tried(pattern in "[ab?*]{0,8}", text in "[ab]{0,10}") {
        let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
        prop_assert_eq!(wildmatch(pattern, text, Scope::Name), naive(pattern, text));
        let one_star = pattern.windows(2).all(|pair| pair != b"**");
        if one_star {
            prop_assert_eq!(wildmatch(pattern, text, Scope::Path), naive(pattern, text));
        }
    }
}

const DEFAULT_FUZZ_SECONDS: u64 = 600;

/// Runs the properties in turn, each time from a fresh seed, until the time is over.
fn for_a_while(target: &str, properties: &[fn()]) {
    let seconds = std::env::var("CROFT_FUZZ_SECONDS").ok();
    let seconds = seconds.map_or(DEFAULT_FUZZ_SECONDS, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0_u64;
    while Instant::now() < end {
        for property in properties {
            property();
        }
        rounds += 1;
    }
    eprintln!("{target}: clean after {rounds} rounds in {seconds} s");
}

#[test]
#[ignore = "ten minutes; run by hand before a release"]
fn the_glob_compiler_stays_clean() {
    for_a_while(
        "glob compiler",
        &[
            a_glob_compiles_or_is_refused_and_matches_its_own_spelling,
            a_directory_above_a_match_is_always_entered,
        ],
    );
}

#[test]
#[ignore = "ten minutes; run by hand before a release"]
fn the_regex_translator_stays_clean() {
    for_a_while(
        "regex translator",
        &[
            a_pattern_is_translated_or_refused_and_lines_agree_with_the_buffer,
            a_literal_finds_exactly_its_text,
        ],
    );
}

#[test]
#[ignore = "ten minutes; run by hand before a release"]
fn the_ignore_parser_stays_clean() {
    for_a_while(
        "ignore parser",
        &[
            ignore_rules_of_any_bytes_are_read,
            stars_match_as_if_every_split_were_tried,
        ],
    );
}
