//! What to say when `old` does not occur: the usual reasons, each verified against the file, else the closest
//! lines. All the tolerance an edit does not have is here. Every step is linear in the file and in `old`.

use super::LineEndings;
use super::find::{Haystack, without_crlf};
use crate::text::lines::number_at;
use std::borrow::Cow;

pub(super) mod closest;
mod fold;

/// Sentences for the model, to follow "old_string does not occur in ...".
pub(super) fn explain(text: &str, old: &str, mode: LineEndings) -> String {
    if text.is_empty() {
        return "The file is empty.".into();
    }
    line_endings(text, old, mode)
        .or_else(|| final_newline(text, old))
        .or_else(|| rewritten(text, old))
        .or_else(|| closest::region(text, old))
        .unwrap_or_else(|| "No line of the file resembles it: read the file again.".into())
}

fn line_endings(text: &str, old: &str, mode: LineEndings) -> Option<String> {
    if mode == LineEndings::Strict
        && let Some(line) = first_line_of(text, old)
    {
        return Some(format!(
            "With CRLF instead of LF it occurs at line {line}: the file has CRLF line endings there; write \\r\\n in old_string and new_string"
        ));
    }
    let lf_old = without_crlf(old.as_bytes())?;
    let line = first_line_of(text, std::str::from_utf8(&lf_old).ok()?)?;
    Some(format!(
        "With LF instead of CRLF it occurs at line {line}: use plain LF in old_string and new_string"
    ))
}

fn final_newline(text: &str, old: &str) -> Option<String> {
    let bare = old.strip_suffix('\n')?;
    let is_last = !bare.is_empty() && text.ends_with(bare);
    is_last.then(|| {
        "The file ends with it, but without a newline: leave out the last newline of old_string and new_string".into()
    })
}

type Rewrite = fn(&str) -> Option<String>;

/// Ways in which models spoil text on the way from a tool's answer to its argument.
const REWRITES: &[(Rewrite, &str)] = &[
    (
        without_gutter,
        "Without the line numbers in front it occurs at line {}: leave out what read_file prints before the text",
    ),
    (
        without_escapes,
        "With its backslash escapes (\\n, \\t, \\\") undone it occurs at line {}: send the characters themselves",
    ),
    (
        without_entities,
        "With its HTML entities (&lt; &gt; &amp; &quot;) undone it occurs at line {}: send the characters themselves",
    ),
    (
        without_blank_lines_around,
        "Without the line breaks around it, it occurs at line {}: leave them out, or copy them exactly",
    ),
];

fn rewritten(text: &str, old: &str) -> Option<String> {
    REWRITES.iter().find_map(|(rewrite, words)| {
        let candidate = rewrite(old).filter(|candidate| !candidate.trim().is_empty())?;
        first_line_of(text, &candidate).map(|line| words.replace("{}", &line.to_string()))
    })
}

/// The line where `old` occurs, its LFs standing for any line break.
fn first_line_of(text: &str, old: &str) -> Option<usize> {
    let range = Haystack::new(text, old, LineEndings::Preserve).ranges().next()?;
    Some(number_at(text.as_bytes(), range.start))
}

fn without_gutter(old: &str) -> Option<String> {
    strip_each_line(old, |line| {
        let rest = line.trim_start_matches(' ');
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            rest[digits..].strip_prefix('\t')
        } else {
            None
        }
    })
    .or_else(|| {
        strip_each_line(old, |line| {
            crate::text::hash_line::anchor_len(line.as_bytes()).map(|length| &line[length..])
        })
    })
}

fn strip_each_line(old: &str, strip: impl Fn(&str) -> Option<&str>) -> Option<String> {
    old.split_inclusive('\n')
        .map(|line| {
            if line.trim().is_empty() {
                Some(line)
            } else {
                strip(line)
            }
        })
        .collect()
}

fn without_escapes(old: &str) -> Option<String> {
    old.contains('\\').then(|| {
        old.replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace("\\\"", "\"")
    })
}

fn without_blank_lines_around(old: &str) -> Option<String> {
    let trimmed = old.trim_matches(['\r', '\n']);
    (trimmed.len() < old.len()).then(|| trimmed.to_owned())
}

fn without_entities(old: &str) -> Option<String> {
    let decode = |text: &str| {
        let text = text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"");
        text.replace("&#39;", "'").replace("&amp;", "&")
    };
    old.contains('&').then(|| decode(old))
}

/// Text in double quotes with everything visible that the eye would miss: controls, odd spaces, combining
/// marks, typographic quotes and dashes.
fn visible(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '"' => out.push_str("\\\""),
            ' '..='~' => out.push(character),
            _ if character.is_alphanumeric() && !is_combining(character) => out.push(character),
            _ => out.extend(character.escape_unicode()),
        }
    }
    out.push('"');
    out
}

fn is_combining(character: char) -> bool {
    unicode_normalization::char::canonical_combining_class(character) != 0
}

/// At most `max_chars` characters.
fn clipped(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => Cow::Owned(format!("{}...", &text[..at])),
        None => Cow::Borrowed(text),
    }
}
