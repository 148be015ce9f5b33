//! Here-documents: that the body is where the shell would take it from, and that an unquoted body holds no
//! substitution the grammar missed. Only one document for each line is certain.

use super::scan::{Scan, Substitutions, doubt, substitution_at};
use std::ops::Range;

/// What the grammar says about one here-document.
pub struct Found {
    /// `<<-` strips leading tabs.
    pub strips_tabs: bool,
    /// The word after the operator, as written.
    pub delimiter: Range<usize>,
    pub body: Range<usize>,
    /// The line that ends it.
    pub end: Range<usize>,
}

/// Compares `found` with the shell's rule: the body starts on the line after the operator and ends before the
/// first line that is the delimiter.
pub fn check(text: &str, found: &Found, substitutions: &Substitutions) -> Scan<()> {
    let Some((delimiter, quoted)) = unquoted(&text[found.delimiter.clone()]) else {
        return doubt("has a here-document whose delimiter is quoted in parts");
    };
    let Some(line_end) = text[found.delimiter.end..].find('\n') else {
        return doubt("has a here-document without a body");
    };
    let rest_of_line = &text[found.delimiter.end..found.delimiter.end + line_end];
    if rest_of_line.contains("<<") {
        return doubt("has more than one here-document on a line");
    }
    // A quote or a bracket that is still open would move the start of the body.
    if rest_of_line.contains(['\'', '"', '\\', '`', '#', '(', ')', '{', '}']) {
        return doubt("has quotes or brackets after a here-document's delimiter");
    }
    let body_start = found.delimiter.end + line_end + 1;
    let mut at = body_start;
    loop {
        if at >= text.len() {
            return doubt("has a here-document without its end");
        }
        let line_end = text[at..].find('\n').map_or(text.len(), |length| at + length);
        let line = &text[at..line_end];
        let content = if found.strips_tabs {
            line.trim_start_matches('\t')
        } else {
            line
        };
        if content == delimiter {
            break;
        }
        at = line_end + 1;
    }
    let body = body_start..at;
    let end_text = text[found.end.clone()].trim_matches(['\n', '\t']);
    let end_matches = found.end.start >= at.saturating_sub(1)
        && end_text == delimiter
        && found.end.start <= at + line_tabs(text, at);
    if !end_matches || found.body.start < body.start || found.body.end > body.end {
        return doubt("has a here-document that the grammar cut elsewhere");
    }
    if quoted {
        Ok(())
    } else {
        expanded(text, body, substitutions)
    }
}

fn line_tabs(text: &str, at: usize) -> usize {
    text[at..].bytes().take_while(|byte| *byte == b'\t').count()
}

/// The delimiter after quote removal, and whether any of it was quoted.
fn unquoted(word: &str) -> Option<(String, bool)> {
    let plain = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    };
    if plain(word) {
        return Some((word.to_owned(), false));
    }
    for quote in ['\'', '"'] {
        if let Some(inner) = word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return plain(inner).then(|| (inner.to_owned(), true));
        }
    }
    word.strip_prefix('\\')
        .filter(|rest| plain(rest))
        .map(|rest| (rest.to_owned(), true))
}

/// An unquoted body is read like a double-quoted string without the quotes.
fn expanded(text: &str, body: Range<usize>, substitutions: &Substitutions) -> Scan<()> {
    let bytes = text.as_bytes();
    let mut at = body.start;
    while at < body.end {
        match bytes[at] {
            b'\\' if bytes.get(at + 1) == Some(&b'\n') => {
                return doubt("continues a line inside a here-document");
            }
            b'\\' => at += 2,
            b'`' => {
                let inner = substitution_at(at, body.end, substitutions)?;
                super::scan::backticks(&text[at..inner.end], true)?;
                at = inner.end;
            }
            b'$' if matches!(bytes.get(at + 1), Some(b'(' | b'{')) => {
                at = substitution_at(at, body.end, substitutions)?.end
            }
            b'$' if bytes.get(at + 1) == Some(&b'[') => {
                return doubt("uses $[...], which sh and bash read differently");
            }
            _ => at += 1,
        }
    }
    Ok(())
}
