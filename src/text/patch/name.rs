//! File names in patch headers: quotes, time stamps, prefixes, and which names a patch may not touch.

use super::invalid;
use crate::error::{Error, ErrorCode, Result};
use crate::path::{self, Platform, ProtectedNames};

/// A name as a `---` or `+++` line gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// `/dev/null`, or a time stamp of the epoch: there is no file on this side.
    Nothing,
    File(String),
}

/// Reads the text after `--- ` or `+++ `.
pub(super) fn parse(text: &str) -> Result<Name> {
    let text = text.strip_suffix('\r').unwrap_or(text);
    let (name, rest) = match text.starts_with('"') {
        true => unquote(text)?,
        // A TAB ends a name: git puts one after names with spaces, diff before a time stamp.
        false => match text.split_once('\t') {
            Some((name, stamp)) => (name.to_owned(), stamp),
            None => (text.trim_end().to_owned(), ""),
        },
    };
    let is_epoch = ["1970-01-01 00:00:00", "1969-12-31 "]
        .iter()
        .any(|epoch| rest.trim_start().starts_with(epoch));
    if name == "/dev/null" || is_epoch {
        Ok(Name::Nothing)
    } else {
        Ok(Name::File(name))
    }
}

/// A whole header value: quoted, or to the end of the line.
pub(super) fn whole(text: &str) -> Result<String> {
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.starts_with('"') {
        unquote(text).map(|(name, _)| name)
    } else {
        Ok(text.to_owned())
    }
}

/// The two names of a `diff --git` line, without prefixes. Unquoted they are only told apart when they are the
/// same; otherwise other header lines must name the files.
pub(super) fn git_pair(text: &str) -> Result<Option<String>> {
    let text = text.strip_suffix('\r').unwrap_or(text);
    let (old, new) = if text.starts_with('"') {
        let (old, rest) = unquote(text)?;
        (old, whole(rest.trim_start())?)
    } else if let Some((old, rest)) = text.split_once(" \"") {
        (old.to_owned(), unquote(&format!("\"{rest}"))?.0)
    } else {
        let middle = text.len() / 2;
        match (
            text.get(..middle),
            text.get(middle..).and_then(|rest| rest.strip_prefix(' ')),
        ) {
            (Some(old), Some(new)) => (old.to_owned(), new.to_owned()),
            _ => return Ok(None),
        }
    };
    Ok(same_file(&old, &new))
}

/// Prefix pairs that `git diff` writes (`diff.mnemonicPrefix` included).
const PREFIXES: &[(&str, &str)] = &[
    ("a/", "b/"),
    ("i/", "w/"),
    ("c/", "i/"),
    ("c/", "w/"),
    ("o/", "w/"),
    ("1/", "2/"),
];

/// The file that both names mean, if they mean one: less their prefixes, or as they are.
pub(super) fn same_file(old: &str, new: &str) -> Option<String> {
    let stripped = PREFIXES.iter().find_map(|(a, b)| {
        let (old, new) = (old.strip_prefix(a)?, new.strip_prefix(b)?);
        (old == new).then(|| new.to_owned())
    });
    stripped.or_else(|| (old == new || old.strip_suffix(".orig") == Some(new)).then(|| new.to_owned()))
}

/// A name whose other side is nothing.
pub(super) fn lone_file(name: &str, is_old: bool) -> String {
    let prefix = if is_old { "a/" } else { "b/" };
    name.strip_prefix(prefix).unwrap_or(name).to_owned()
}

/// The normalised path, or why a patch may not touch it.
pub(super) fn check(name: &str) -> Result<String> {
    if name.split(['/', '\\']).any(|part| part == "..") {
        let message = format!("{name:?} in the patch contains \"..\": name the file from the workspace root");
        return Err(Error::new(ErrorCode::OutsideWorkspace, message).at(name));
    }
    let path = path::normalize(name, Platform::HOST)?;
    if path == "." {
        return Err(invalid(format!("{name:?} in the patch is no file name")).at(name));
    }
    if path.split('/').any(|part| ProtectedNames::default().covers(part)) {
        let message =
            format!("{name:?} in the patch is inside .git, which file tools do not change: use git");
        return Err(Error::new(ErrorCode::ProtectedPath, message).at(name));
    }
    Ok(path)
}

/// A name in C quotes as git writes it, and what follows.
fn unquote(text: &str) -> Result<(String, &str)> {
    let bad = || invalid(format!("the quoted name {text} in the patch is malformed"));
    let bytes = text.as_bytes();
    let mut name = Vec::new();
    let mut at = 1;
    loop {
        match bytes.get(at).ok_or_else(bad)? {
            b'"' => {
                let name = String::from_utf8(name)
                    .map_err(|_| invalid(format!("the name {text} in the patch is not UTF-8")))?;
                return Ok((name, &text[at + 1..]));
            }
            b'\\' => {
                let escape = bytes.get(at + 1).ok_or_else(bad)?;
                at += 2;
                name.push(match escape {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escape,
                    b'0'..=b'3' => {
                        let octal = bytes
                            .get(at - 1..at + 2)
                            .and_then(|digits| std::str::from_utf8(digits).ok());
                        at += 2;
                        octal
                            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
                            .ok_or_else(bad)?
                    }
                    _ => return Err(bad()),
                });
            }
            byte => {
                name.push(*byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_git_and_diff_write_them() {
        let table = [
            ("a/f", "a/f"),
            ("a/f\r", "a/f"),
            ("a/x y\t", "a/x y"),
            ("f\t2002-02-21 23:30:39.942229878 -0800", "f"),
            ("\"a/caf\\303\\251.txt\"", "a/caf\u{e9}.txt"),
            ("\"a/t\\ta\\\"b\\\\n\"", "a/t\ta\"b\\n"),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).unwrap(), Name::File(expected.into()), "{text:?}");
        }
        for text in [
            "/dev/null",
            "f\t1970-01-01 00:00:00.000000000 +0000",
            "f\t1969-12-31 16:00:00 -0800",
        ] {
            assert_eq!(parse(text).unwrap(), Name::Nothing, "{text:?}");
        }
        for text in ["\"a/f", "\"a/\\q\"", "\"a/\\303\"", "\"a/\\30"] {
            assert_eq!(parse(text).unwrap_err().code, ErrorCode::PatchInvalid, "{text:?}");
        }
    }

    #[test]
    fn the_names_of_a_git_header_are_told_apart_when_they_are_the_same() {
        let table = [
            ("a/f b/f", Some("f")),
            ("a/x y b/x y", Some("x y")),
            ("f f", Some("f")),
            ("\"a/\\303\\251\" \"b/\\303\\251\"", Some("\u{e9}")),
            ("a/old b/new", None),
            ("a/old b/newer", None),
        ];
        for (text, expected) in table {
            assert_eq!(git_pair(text).unwrap().as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn names_that_leave_or_enter_git_are_refused() {
        let table = [
            ("../x", ErrorCode::OutsideWorkspace),
            ("a/../b", ErrorCode::OutsideWorkspace),
            ("a\\..\\b", ErrorCode::OutsideWorkspace),
            ("/etc/passwd", ErrorCode::OutsideWorkspace),
            (".git/config", ErrorCode::ProtectedPath),
            ("sub/.GIT/hooks/x", ErrorCode::ProtectedPath),
            (".", ErrorCode::PatchInvalid),
        ];
        for (name, code) in table {
            assert_eq!(check(name).unwrap_err().code, code, "{name:?}");
        }
        for (name, path) in [("d/..f", "d/..f"), ("./f", "f"), (".gitignore", ".gitignore")] {
            assert_eq!(check(name).unwrap(), path);
        }
    }
}
