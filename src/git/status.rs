//! Reads `git status --porcelain=v2 -z --branch` (pure). With `-z` names come as they are, whatever they hold.

use crate::error::{Error, ErrorCode, Result};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `None` when HEAD is detached.
    pub branch: Option<String>,
    /// Workspace-relative, in git's order.
    pub staged: Vec<String>,
    pub unstaged: Vec<String>,
    /// A directory that is a repository of its own ends with `/`.
    pub untracked: Vec<String>,
    pub conflicted: Vec<String>,
}

impl Status {
    /// `output` that was cut must end with a whole record.
    pub fn parse(output: &str) -> Result<Self> {
        let mut status = Status::default();
        let mut records = output.split_terminator('\0');
        while let Some(record) = records.next() {
            let (kind, rest) = record.split_once(' ').ok_or_else(|| unexpected(record))?;
            match kind {
                "#" => status.header(rest),
                "1" => status.changed(rest, 6).ok_or_else(|| unexpected(record))?,
                "2" => {
                    status.changed(rest, 7).ok_or_else(|| unexpected(record))?;
                    // The name before, which `--no-renames` never gives.
                    records.next();
                }
                "u" => {
                    let path = field(rest, 9).ok_or_else(|| unexpected(record))?;
                    status.conflicted.push(path.to_owned());
                }
                "?" => status.untracked.push(rest.to_owned()),
                "!" => {}
                _ => return Err(unexpected(record)),
            }
        }
        Ok(status)
    }

    fn header(&mut self, header: &str) {
        if let Some(name) = header.strip_prefix("branch.head ") {
            self.branch = (name != "(detached)").then(|| name.to_owned());
        }
    }

    /// `XY` and `before` more fields in front of the path.
    fn changed(&mut self, rest: &str, before: usize) -> Option<()> {
        let path = field(rest, before + 1)?;
        let mut states = rest.chars();
        if states.next()? != '.' {
            self.staged.push(path.to_owned());
        }
        if states.next()? != '.' {
            self.unstaged.push(path.to_owned());
        }
        Some(())
    }

    /// Every path that differs from HEAD and is `path` or lies below it.
    pub fn below<'s>(&'s self, path: &'s str) -> impl Iterator<Item = &'s str> {
        [&self.staged, &self.unstaged, &self.untracked, &self.conflicted]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .filter(move |one| is_below(one, path))
    }
}

pub(super) fn is_below(one: &str, path: &str) -> bool {
    path == "."
        || one
            .strip_prefix(path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What follows after `count` fields; it may hold spaces.
fn field(rest: &str, count: usize) -> Option<&str> {
    rest.splitn(count + 1, ' ').nth(count)
}

fn unexpected(record: &str) -> Error {
    let start: String = record.chars().take(40).collect();
    let message = format!("git status said {start:?}, which this version of croft does not know");
    Error::new(ErrorCode::GitFailed, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_record_goes_into_its_list_with_its_whole_name() {
        let output = "# branch.oid (initial)\0# branch.head main\0\
            1 M. N... 100644 100644 100644 aa bb staged file\0\
            1 .M N... 100644 100644 100644 aa bb un\nstaged\0\
            1 MM N... 100644 100644 100644 aa bb \"both\"\0\
            2 R. N... 100644 100644 100644 aa bb R100 new name\0old name\0\
            u UU N... 100644 100644 100644 100644 aa bb cc conf lict\0\
            ? \u{e9} \u{6587}.txt\0? nested/\0! ignored\0";
        let status = Status::parse(output).unwrap();
        let expected = Status {
            branch: Some("main".into()),
            staged: vec!["staged file".into(), "\"both\"".into(), "new name".into()],
            unstaged: vec!["un\nstaged".into(), "\"both\"".into()],
            untracked: vec!["\u{e9} \u{6587}.txt".into(), "nested/".into()],
            conflicted: vec!["conf lict".into()],
        };
        assert_eq!(status, expected);
    }

    #[test]
    fn a_detached_head_has_no_branch_and_one_called_so_has() {
        let detached = Status::parse("# branch.head (detached)\0").unwrap();
        assert_eq!(detached.branch, None);
        assert_eq!(Status::parse("").unwrap(), Status::default());
    }

    #[test]
    fn what_is_not_porcelain_is_refused() {
        for output in ["1 M.\0", "x y\0", "fatal\0"] {
            assert_eq!(
                Status::parse(output).unwrap_err().code,
                ErrorCode::GitFailed,
                "{output:?}"
            );
        }
    }

    #[test]
    fn below_means_whole_names() {
        let table = [
            ("a/b", "a", true),
            ("a", "a", true),
            ("ab", "a", false),
            ("x", ".", true),
        ];
        for (one, path, expected) in table {
            assert_eq!(is_below(one, path), expected, "{one} {path}");
        }
    }
}
