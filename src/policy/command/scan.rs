//! The shell's own rules for the bytes of a word: where it ends, what is quoted, and that every substitution the
//! shell would see is one the grammar saw at the same place.

use super::Doubt;
use super::word::{Piece, Word};
use std::collections::HashMap;

/// Substitutions by the byte at which they start.
pub type Substitutions = HashMap<usize, Substitution>;

#[derive(Clone, Copy, Debug)]
pub struct Substitution {
    pub end: usize,
    pub kind: SubstitutionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubstitutionKind {
    /// `$( )` or backticks.
    Command,
    /// `<( )` or `>( )`.
    Process,
    /// `${ }`.
    Parameter,
    /// `$(( ))`.
    Arithmetic,
}

pub type Scan<T> = Result<T, Doubt>;

pub fn doubt<T>(text: impl Into<String>) -> Scan<T> {
    Err(Doubt(text.into()))
}

/// Reads one word at `start` and returns it with its end. It stops at an unquoted blank or operator.
pub fn word(text: &str, start: usize, limit: usize, found: &Substitutions) -> Scan<(Word, usize)> {
    let bytes = text.as_bytes();
    let mut word = Word::default();
    let mut at = start;
    while at < limit {
        match bytes[at] {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' => break,
            b'<' | b'>' => match found.get(&at) {
                Some(inner) if inner.kind == SubstitutionKind::Process && inner.end <= limit => {
                    word.pieces.push(Piece::Unknown);
                    at = inner.end;
                }
                _ => break,
            },
            b'#' if at == start => return doubt("holds a comment where the grammar saw a word"),
            b'\\' => match text[at + 1..limit].chars().next() {
                None => return doubt("ends in a backslash"),
                Some('\n') => return doubt("continues a word on the next line"),
                Some(c) => {
                    word.push_quoted(c.encode_utf8(&mut [0; 4]));
                    at += 1 + c.len_utf8();
                }
            },
            b'\'' => {
                let Some(length) = text[at + 1..limit].find('\'') else {
                    return doubt("has an unclosed quote");
                };
                word.push_quoted(&text[at + 1..at + 1 + length]);
                at += length + 2;
            }
            b'"' => at = double_quoted(text, at, limit, found, &mut word)?,
            b'$' if at + 1 < limit && matches!(bytes[at + 1], b'\'' | b'"') => {
                return doubt("uses $'...' or $\"...\", which sh and bash read differently");
            }
            b'$' | b'`' => at = dollar(text, at, limit, found, &mut word, false)?,
            _ => {
                let length = text[at..limit].chars().next().map_or(1, char::len_utf8);
                word.push_bare(&text[at..at + length]);
                at += length;
            }
        }
    }
    Ok((word, at))
}

/// From the opening quote; returns the byte after the closing one.
fn double_quoted(
    text: &str,
    open: usize,
    limit: usize,
    found: &Substitutions,
    word: &mut Word,
) -> Scan<usize> {
    let bytes = text.as_bytes();
    // An empty pair still makes a word.
    word.push_quoted("");
    let mut at = open + 1;
    while at < limit {
        match bytes[at] {
            b'"' => return Ok(at + 1),
            b'\\' => match bytes.get(at + 1) {
                Some(b'\n') => at += 2,
                Some(&c @ (b'$' | b'`' | b'"' | b'\\')) => {
                    word.push_quoted(char::from(c).encode_utf8(&mut [0; 4]));
                    at += 2;
                }
                _ => {
                    word.push_quoted("\\");
                    at += 1;
                }
            },
            b'$' | b'`' => at = dollar(text, at, limit, found, word, true)?,
            _ => {
                let length = text[at..limit].chars().next().map_or(1, char::len_utf8);
                word.push_quoted(&text[at..at + length]);
                at += length;
            }
        }
    }
    doubt("has an unclosed quote")
}

/// At a `$` or a backtick; returns the byte after what it stands for.
fn dollar(
    text: &str,
    at: usize,
    limit: usize,
    found: &Substitutions,
    word: &mut Word,
    quoted: bool,
) -> Scan<usize> {
    let bytes = text.as_bytes();
    let next = if at + 1 < limit { bytes[at + 1] } else { b' ' };
    if bytes[at] == b'`' || matches!(next, b'(' | b'{') {
        let inner = substitution_at(at, limit, found)?;
        let source = &text[at..inner.end];
        if bytes[at] == b'`' {
            backticks(source, quoted)?;
        }
        word.pieces.push(match simple_parameter(source) {
            Some(name) => Piece::Variable(name.to_owned()),
            None => Piece::Unknown,
        });
        return Ok(inner.end);
    }
    match next {
        b'[' => doubt("uses $[...], which sh and bash read differently"),
        b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
            let length = name_length(&text[at + 1..limit]);
            let name = &text[at + 1..at + 1 + length];
            word.pieces.push(Piece::Variable(name.to_owned()));
            Ok(at + 1 + length)
        }
        b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => {
            word.pieces.push(Piece::Unknown);
            Ok(at + 2)
        }
        _ => {
            word.push_quoted("$");
            Ok(at + 1)
        }
    }
}

pub fn substitution_at(at: usize, limit: usize, found: &Substitutions) -> Scan<Substitution> {
    match found.get(&at) {
        Some(inner) if inner.end <= limit => Ok(*inner),
        _ => doubt("holds a substitution that the grammar did not find"),
    }
}

/// Backslashes and quotes inside backticks go through two rounds of reading; only the plain form is certain.
pub fn backticks(text: &str, quoted: bool) -> Scan<()> {
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    if !text.ends_with('`') || inner.contains(['\\', '`']) || (quoted && inner.contains('"')) {
        return doubt("has quotes or escapes inside backticks (write $(...) instead)");
    }
    Ok(())
}

pub fn name_length(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .count()
}

/// `NAME` of `${NAME}`.
fn simple_parameter(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("${")?.strip_suffix('}')?;
    let is_name = !inner.is_empty() && name_length(inner) == inner.len();
    (is_name && !inner.starts_with(|c: char| c.is_ascii_digit())).then_some(inner)
}

/// Checks `${...}`: operators whose operand is plain text or a substitution the grammar found.
pub fn parameter(text: &str, start: usize, end: usize, found: &Substitutions) -> Scan<()> {
    let refuse = |rule: &str| doubt(format!("uses a form of ${{...}} that {rule}"));
    let bytes = text.as_bytes();
    if end < start + 4 || bytes[end - 1] != b'}' {
        return refuse("is empty or not closed");
    }
    let (mut at, close) = (start + 2, end - 1);
    if matches!(bytes[at], b'!' | b'#') && at + 1 < close {
        at += 1;
    }
    let name = name_length(&text[at..close]);
    at += name.max(text[at..close].chars().next().map_or(0, char::len_utf8));
    if at >= close {
        return Ok(());
    }
    match bytes[at] {
        // ${x@P} runs the substitutions in the value.
        b'@' => return refuse("transforms the value"),
        // A subscript is arithmetic, and arithmetic runs what a variable holds: x='a[$(cmd)]'.
        b'[' => return refuse("has a subscript"),
        b':' if !matches!(bytes[at + 1], b'-' | b'=' | b'?' | b'+') => {
            let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b':' | b' ' | b'-');
            return if text[at..close].bytes().all(plain) {
                Ok(())
            } else {
                refuse("computes a position")
            };
        }
        _ => {}
    }
    while at < close {
        match bytes[at] {
            b'$' if matches!(bytes[at + 1], b'(' | b'{') => at = substitution_at(at, close, found)?.end,
            b'$' if bytes[at + 1] == b'[' => return refuse("holds arithmetic"),
            b'`' | b'\'' | b'"' | b'\\' | b'{' | b'}' | b'(' | b')' | b'\n' | b'<' | b'>' => {
                return refuse("holds quotes or brackets");
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Checks `$((...))`: numbers and operators only. Names are out because bash evaluates what they hold, and
/// `$((a) | (b))` may be a substitution with two subshells.
pub fn arithmetic(text: &str) -> Scan<()> {
    let unbalanced = || doubt("has arithmetic whose brackets do not match");
    let Some(inner) = text.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))")) else {
        return doubt("uses arithmetic in a form that sh and bash read differently");
    };
    let mut depth = 0_i32;
    for byte in inner.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b'0'..=b'9' | b' ' | b'\t' => {}
            b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'!' | b'^' | b'~' | b'?' | b':' | b',' => {}
            _ => return doubt("computes with names, and bash runs what those may hold"),
        }
        if depth < 0 {
            return unbalanced();
        }
    }
    if depth == 0 { Ok(()) } else { unbalanced() }
}

/// Between two nodes of one command: blanks, or a line continued after a blank.
pub fn gap_in_command(gap: &str) -> Scan<()> {
    let rest = gap.replace("\\\n", "");
    if !rest.bytes().all(|byte| matches!(byte, b' ' | b'\t')) {
        return doubt("holds characters between words that the grammar skipped");
    }
    if rest.is_empty() && !gap.is_empty() {
        return doubt("continues a word on the next line");
    }
    Ok(())
}

/// Between two nodes of a list: also line ends. `&\<newline>&` would join into `&&`.
pub fn gap_in_list(gap: &str) -> Scan<()> {
    let rest = gap.replace("\\\n", "");
    if !rest.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n')) {
        return doubt("holds characters between commands that the grammar skipped");
    }
    if rest.is_empty() && !gap.is_empty() {
        return doubt("continues an operator on the next line");
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_are_removed_as_the_shell_does() {
        for (text, expected, end) in [
            ("to''uch M", "touch", 7),
            (r#"t"ou"ch M"#, "touch", 7),
            (r"\t\o\u\c\h M", "touch", 10),
            (r#""a\"b\$c\d""#, r#"a"b$c\d"#, 11),
            ("a$ b", "a$", 2),
            ("''", "", 2),
            ("a#b", "a#b", 3),
            ("é;x", "é", 2),
        ] {
            let (word, at) = word(text, 0, text.len(), &Substitutions::new()).unwrap();
            assert_eq!((word.fixed().unwrap().as_str(), at), (expected, end), "{text}");
        }
    }

    #[test]
    fn what_sh_and_bash_read_differently_is_a_doubt() {
        for text in [
            "$'a'", "$\"a\"", "$[1]", "a\\\nb", "'a", "\"a", "a\\", "#a", "$(a)", "`a`", "${a}",
        ] {
            let scanned = word(text, 0, text.len(), &Substitutions::new());
            assert!(scanned.is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_plain_parameter_forms_pass() {
        let none = Substitutions::new();
        let check = |text: &str| parameter(text, 0, text.len(), &none).is_ok();
        for text in [
            "${a}", "${#a}", "${a:-b}", "${a%.*}", "${a##*/}", "${1}", "${@}", "${a:1:2}", "${a/b/c}",
            "${!a}", "${a:=$b}",
        ] {
            assert!(check(text), "{text}");
        }
        for text in [
            "${a@P}",
            "${a[1]}",
            "${a:b}",
            "${a:-`b`}",
            "${a:-'b'}",
            "${a:-$(b)}",
            "${a:-\\}}",
            "${}",
            "${é:",
        ] {
            assert!(!check(text), "{text}");
        }
    }

    #[test]
    fn arithmetic_of_numbers_passes_and_of_names_does_not() {
        for (text, expected) in [
            ("$((1+2))", true),
            ("$(( (1+2) * 3 ))", true),
            ("$((x+1))", false),
            ("$((1)|(2))", false),
            ("$((1)+(2))", false),
            ("$(( (1)+(2) ))", true),
            ("$((1))+((2))", false),
        ] {
            assert_eq!(arithmetic(text).is_ok(), expected, "{text}");
        }
    }
}
