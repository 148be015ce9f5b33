//! Reads unified diffs: file headers (git's extended ones too) and hunks with their counts. What the hunks are
//! applied to is left to `place`.

use super::hunk::{Hunk, HunkLine, Newline, Side, Span};
use super::invalid;
use super::name::{self, Name};
use crate::error::{Error, Result};

/// One file of a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FilePatch<'p> {
    /// Normalised; `None`: there is no file on this side.
    pub old: Option<String>,
    pub new: Option<String>,
    /// Says that there is a file on neither side until the patch made one: `--- f` with only added lines.
    pub may_create: bool,
    pub is_copy: bool,
    pub executable: Option<bool>,
    pub hunks: Vec<Hunk<'p>>,
}

pub(super) fn parse(patch: &str) -> Result<Vec<FilePatch<'_>>> {
    let mut parser = Parser {
        lines: patch.split_inclusive('\n').collect(),
        at: 0,
    };
    let mut files = Vec::new();
    while let Some(line) = parser.line() {
        if line.starts_with("diff --git ") {
            files.push(parser.git_file()?);
        } else if line.starts_with("--- ") && parser.ahead(1).is_some_and(|next| next.starts_with("+++ ")) {
            files.push(parser.plain_file()?);
        } else if line.starts_with("@@ -") {
            return Err(parser.headless());
        } else {
            parser.at += 1;
        }
    }
    if files.is_empty() {
        return Err(invalid(
            "no file header (\"--- a/path\" and \"+++ b/path\", or \"diff --git\") in the patch: nothing to apply",
        ));
    }
    Ok(files)
}

struct Parser<'p> {
    lines: Vec<&'p str>,
    at: usize,
}

/// What git's extended header lines say.
#[derive(Default)]
struct Extended {
    from: Option<String>,
    to: Option<String>,
    is_copy: bool,
    is_new: bool,
    is_deleted: bool,
    executable: Option<bool>,
    is_binary: bool,
}

impl<'p> Parser<'p> {
    fn ahead(&self, by: usize) -> Option<&'p str> {
        self.lines
            .get(self.at + by)
            .map(|line| line.strip_suffix('\n').unwrap_or(line))
    }

    fn line(&self) -> Option<&'p str> {
        self.ahead(0)
    }

    fn headless(&self) -> Error {
        invalid(format!(
            "the hunk at line {} of the patch has no file header: put \"--- a/path\" and \"+++ b/path\" before it",
            self.at + 1
        ))
    }

    fn git_file(&mut self) -> Result<FilePatch<'p>> {
        let start = self.at + 1;
        let header = self
            .line()
            .and_then(|line| line.strip_prefix("diff --git "))
            .unwrap_or_default();
        let common = name::git_pair(header)?;
        self.at += 1;
        let mut says = Extended::default();
        while let Some(line) = self.line() {
            if !says.read(line.strip_suffix('\r').unwrap_or(line))? {
                break;
            }
            self.at += 1;
        }
        if says.is_binary {
            return Err(invalid(format!(
                "the patch of {} is binary: only text can be patched, write the file as a whole",
                common.as_deref().unwrap_or(header)
            )));
        }
        let (old_name, new_name) = self.name_lines()?;
        let (old, new) = says
            .names(common, old_name, new_name)
            .map_err(|what| invalid(format!("the file header at line {start} of the patch {what}")))?;
        if self.at == start && self.line().is_some_and(|line| line.starts_with("@@")) {
            return Err(self.headless());
        }
        let hunks = self.hunks()?;
        let is_rename_or_copy = says.from.is_some();
        let changes = !hunks.is_empty()
            || is_rename_or_copy
            || says.executable.is_some()
            || old.is_none()
            || new.is_none();
        if !changes {
            let message = format!(
                "the file header at line {start} of the patch is followed by no change: nothing to apply"
            );
            return Err(invalid(message));
        }
        finish(FilePatch {
            old,
            new,
            may_create: false,
            is_copy: says.is_copy,
            executable: says.executable,
            hunks,
        })
    }

    fn plain_file(&mut self) -> Result<FilePatch<'p>> {
        let start = self.at + 1;
        let (old, new) = match self.name_lines()? {
            (Some(Name::Nothing), Some(Name::File(new))) => (None, Some(name::lone_file(&new, false))),
            (Some(Name::File(old)), Some(Name::Nothing)) => (Some(name::lone_file(&old, true)), None),
            (Some(Name::File(old)), Some(Name::File(new))) => {
                let file = name::same_file(&old, &new).ok_or_else(|| {
                    invalid(format!(
                        "line {start} of the patch names two files, {old:?} and {new:?}: to rename, use git's \"rename from\" and \"rename to\""
                    ))
                })?;
                (Some(file.clone()), Some(file))
            }
            _ => {
                return Err(invalid(format!(
                    "the file header at line {start} of the patch names no file"
                )));
            }
        };
        let hunks = self.hunks()?;
        if hunks.is_empty() {
            return Err(invalid(format!(
                "the file header at line {start} of the patch is followed by no hunk: nothing to apply"
            )));
        }
        let may_create = hunks.len() == 1 && hunks[0].old.count == 0 && old.is_some();
        finish(FilePatch {
            old,
            new,
            may_create,
            is_copy: false,
            executable: None,
            hunks,
        })
    }

    fn name_lines(&mut self) -> Result<(Option<Name>, Option<Name>)> {
        let (Some(old), Some(new)) = (self.line(), self.ahead(1)) else {
            return Ok((None, None));
        };
        let (Some(old), Some(new)) = (old.strip_prefix("--- "), new.strip_prefix("+++ ")) else {
            return Ok((None, None));
        };
        let names = (Some(name::parse(old)?), Some(name::parse(new)?));
        self.at += 2;
        Ok(names)
    }

    fn hunks(&mut self) -> Result<Vec<Hunk<'p>>> {
        let mut hunks = Vec::new();
        while let Some(line) = self.line() {
            if line.starts_with("@@ -") {
                hunks.push(self.hunk()?);
            } else if line.starts_with("@@") {
                return Err(invalid(format!(
                    "the hunk header {line:?} at line {} of the patch has no line numbers: write \"@@ -start,count +start,count @@\", or use the \"*** Begin Patch\" format",
                    self.at + 1
                )));
            } else {
                break;
            }
        }
        Ok(hunks)
    }

    fn hunk(&mut self) -> Result<Hunk<'p>> {
        let patch_line = self.at + 1;
        let header = self.line().unwrap_or_default();
        let (old, new) = spans(header).ok_or_else(|| {
            invalid(format!("the hunk header {header:?} at line {patch_line} of the patch is malformed: write \"@@ -start,count +start,count @@\""))
        })?;
        self.at += 1;
        let mut lines: Vec<HunkLine<'p>> = Vec::new();
        let (mut olds, mut news) = (0, 0);
        loop {
            let line = self.line();
            if let (Some(marker), Some(last)) = (line, lines.last_mut())
                && marker.starts_with("\\ ")
            {
                last.newline = Newline::No;
                self.at += 1;
                continue;
            }
            let is_full = olds >= old.count && news >= new.count;
            let Some(parsed) = line.and_then(|line| self.hunk_line(line, is_full)) else {
                break;
            };
            olds += usize::from(parsed.is_old());
            news += usize::from(parsed.is_new());
            lines.push(parsed);
            self.at += 1;
        }
        if (olds, news) != (old.count, new.count) {
            return Err(invalid(format!(
                "the hunk at line {patch_line} of the patch says {} old and {} new lines, but has {olds} and {news}",
                old.count, new.count
            )));
        }
        check_newlines(&lines, patch_line)?;
        if !lines.iter().any(|line| line.side != Side::Both) {
            return Err(invalid(format!(
                "the hunk at line {patch_line} of the patch changes nothing"
            )));
        }
        Ok(Hunk {
            patch_line,
            old,
            new,
            lines,
        })
    }

    /// A line of a hunk; `None` when the hunk ends before it. Once the counts are full, only what cannot be
    /// anything else is still a line of it, so that wrong counts are noticed.
    fn hunk_line(&self, line: &'p str, is_full: bool) -> Option<HunkLine<'p>> {
        let newline = Newline::Yes;
        let with = |side, text| Some(HunkLine { side, text, newline });
        if is_full {
            let starts_file =
                line.starts_with("--- ") && self.ahead(1).is_some_and(|next| next.starts_with("+++ "));
            let is_signature = matches!(line.trim_end(), "--");
            if starts_file || is_signature {
                return None;
            }
        }
        match line.as_bytes() {
            [b' ', ..] => with(Side::Both, &line[1..]),
            [b'-', ..] => with(Side::Old, &line[1..]),
            [b'+', ..] => with(Side::New, &line[1..]),
            // A blank context line that lost its space on the way.
            [] | [b'\r'] if !is_full => with(Side::Both, line),
            _ => None,
        }
    }
}

impl Extended {
    /// Whether `line` belongs to the extended header.
    fn read(&mut self, line: &str) -> Result<bool> {
        let mode = |text: &str| match text.trim() {
            "100644" | "100664" | "100600" => Ok(Some(false)),
            "100755" | "100775" | "100700" => Ok(Some(true)),
            "120000" => Err(invalid(
                "the patch makes or changes a symbolic link (mode 120000): patches make no links",
            )),
            "160000" => Err(invalid("the patch changes a submodule (mode 160000): use git")),
            other => Err(invalid(format!(
                "the patch has the file mode {other:?}: use 100644 or 100755"
            ))),
        };
        if line.strip_prefix("old mode ").map(mode).transpose()?.is_some() {
        } else if let Some(text) = line.strip_prefix("new mode ") {
            self.executable = mode(text)?;
        } else if let Some(text) = line.strip_prefix("new file mode ") {
            self.executable = mode(text)?;
            self.is_new = true;
        } else if let Some(text) = line.strip_prefix("deleted file mode ") {
            mode(text)?;
            self.is_deleted = true;
        } else if let Some(text) = line
            .strip_prefix("rename from ")
            .or(line.strip_prefix("rename old "))
        {
            self.from = Some(name::whole(text)?);
        } else if let Some(text) = line
            .strip_prefix("rename to ")
            .or(line.strip_prefix("rename new "))
        {
            self.to = Some(name::whole(text)?);
        } else if let Some(text) = line.strip_prefix("copy from ") {
            self.from = Some(name::whole(text)?);
            self.is_copy = true;
        } else if let Some(text) = line.strip_prefix("copy to ") {
            self.to = Some(name::whole(text)?);
            self.is_copy = true;
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            self.is_binary = true;
            return Ok(false);
        } else if let Some(text) = line.strip_prefix("index ") {
            if let Some((_, text)) = text.split_once(' ') {
                mode(text)?;
            }
        } else {
            return Ok(line.starts_with("similarity index ") || line.starts_with("dissimilarity index "));
        }
        Ok(true)
    }

    /// The old and the new name, or how the header contradicts itself.
    fn names(
        &self,
        common: Option<String>,
        old_line: Option<Name>,
        new_line: Option<Name>,
    ) -> std::result::Result<(Option<String>, Option<String>), String> {
        if let (Some(from), Some(to)) = (&self.from, &self.to) {
            return Ok((Some(from.clone()), Some(to.clone())));
        }
        if self.from.is_some() || self.to.is_some() {
            return Err("has only one of \"from\" and \"to\"".into());
        }
        let file = match (old_line, new_line) {
            (None, None) => common,
            (Some(Name::File(old)), Some(Name::File(new))) if !self.is_new && !self.is_deleted => {
                name::same_file(&old, &new)
            }
            (Some(Name::Nothing), Some(Name::File(new))) if self.is_new => Some(name::lone_file(&new, false)),
            (Some(Name::File(old)), Some(Name::Nothing)) if self.is_deleted => {
                Some(name::lone_file(&old, true))
            }
            _ => {
                return Err(
                    "contradicts its \"---\" and \"+++\" lines about whether the file is new or deleted"
                        .into(),
                );
            }
        };
        let Some(file) = file else {
            return Err("does not say which file it is".into());
        };
        match (self.is_new, self.is_deleted) {
            (true, true) => Err("says both new and deleted".into()),
            (true, false) => Ok((None, Some(file))),
            (false, true) => Ok((Some(file), None)),
            (false, false) => Ok((Some(file.clone()), Some(file))),
        }
    }
}

/// Checks the names and what a new or a deleted file may say about the other side.
fn finish(mut file: FilePatch<'_>) -> Result<FilePatch<'_>> {
    file.old = file.old.as_deref().map(name::check).transpose()?;
    file.new = file.new.as_deref().map(name::check).transpose()?;
    let olds: usize = file.hunks.iter().map(|hunk| hunk.old.count).sum();
    let news: usize = file.hunks.iter().map(|hunk| hunk.new.count).sum();
    if let (None, Some(name)) = (&file.old, &file.new)
        && (olds > 0 || file.hunks.len() > 1)
    {
        return Err(invalid(format!(
            "the patch makes {name:?} new, but has lines of an old file in it"
        ))
        .at(name));
    }
    if let (Some(name), None) = (&file.old, &file.new)
        && (news > 0 || file.hunks.len() > 1)
    {
        return Err(invalid(format!("the patch deletes {name:?}, but leaves lines in it")).at(name));
    }
    Ok(file)
}

/// `@@ -3,4 +3,5 @@ anything`.
fn spans(header: &str) -> Option<(Span, Span)> {
    let rest = header.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    Some((span(old)?, span(new)?))
}

fn span(text: &str) -> Option<Span> {
    let number = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    let (start, count) = match text.split_once(',') {
        Some((start, count)) => (number(start)?, number(count)?),
        None => (number(text)?, 1),
    };
    Some(Span {
        start: start as usize,
        count: count as usize,
    })
}

/// Only the last line of a side can lack its newline.
fn check_newlines(lines: &[HunkLine<'_>], patch_line: usize) -> Result<()> {
    for is_of_side in [HunkLine::is_old, HunkLine::is_new] {
        let mut side = lines.iter().filter(|line| is_of_side(line)).rev().skip(1);
        if side.any(|line| line.newline == Newline::No) {
            return Err(invalid(format!(
                "the hunk at line {patch_line} of the patch says \"No newline at end of file\" before other lines"
            )));
        }
    }
    Ok(())
}
