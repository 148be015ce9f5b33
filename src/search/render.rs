//! Results as the text a model reads: one line each, every note a line of its own in square brackets.

use std::fmt::Write;

use super::budget::Stop;
use super::find::{GlobResult, ListResult};
use super::grep::{FileMatches, GrepResult};
use super::walk::Skipped;
use crate::error::{Error, ErrorCode};
use crate::tree::FileType;

/// Of the matches that a failure carries.
const MAX_ERROR_CHARS: usize = 4000;

/// One path per line.
pub fn glob_text(result: &GlobResult, max_chars: usize) -> String {
    let mut text = Text::new(max_chars);
    for path in &result.paths {
        text.line(|line| push_name(line, path));
    }
    if result.paths.is_empty() {
        text.note(&format!(
            "no files match; {} looked at",
            count(result.files_scanned, "file", "files")
        ));
    }
    text.finish(
        result.paths.len(),
        ["path", "paths"],
        result.stop.as_ref(),
        result.files_scanned,
        &result.skipped,
    )
}

/// One path per line; directories end with `/`, links with `@`.
pub fn list_text(result: &ListResult, max_chars: usize) -> String {
    let mut text = Text::new(max_chars);
    for entry in &result.entries {
        text.line(|line| {
            push_name(line, &entry.path);
            match entry.file_type {
                FileType::Directory => line.push('/'),
                FileType::Symlink => line.push('@'),
                FileType::File | FileType::Other => {}
            }
        });
    }
    if result.entries.is_empty() {
        text.note("empty directory");
    }
    text.finish(
        result.entries.len(),
        ["entry", "entries"],
        result.stop.as_ref(),
        result.files_scanned,
        &result.skipped,
    )
}

/// `path:line: text` for each match, `path-line- text` for each line of context.
pub fn grep_text(result: &GrepResult, max_chars: usize) -> String {
    let mut text = Text::new(max_chars);
    for file in &result.files {
        grep_file(file, &mut text);
    }
    if result.files.is_empty() {
        text.note(&format!(
            "no matches; {} searched",
            count(result.files_scanned, "file", "files")
        ));
    }
    text.finish(
        result.matches,
        ["match", "matches"],
        result.stop.as_ref(),
        result.files_scanned,
        &result.skipped,
    )
}

/// The failure of a search that hit the step limit, with what it had found.
pub fn step_limit_error(result: &GrepResult) -> Option<Error> {
    let Some(Stop::StepLimit { path, line }) = &result.stop else {
        return None;
    };
    let mut message = String::from("the pattern took too many steps at ");
    push_name(&mut message, path);
    let _ = write!(
        message,
        " line {line}: simplify its look-around, back-references or nested repetitions, or search other files. "
    );
    if result.files.is_empty() {
        message.push_str("Nothing was found before that");
    } else {
        let mut text = Text::new(MAX_ERROR_CHARS);
        result.files.iter().for_each(|file| grep_file(file, &mut text));
        let found = count(result.matches, "match", "matches");
        let _ = write!(
            message,
            "Found before that: {found}\n{}",
            text.out.trim_end_matches('\n')
        );
    }
    Some(Error::new(ErrorCode::SearchLimit, message).at(path.clone()))
}

fn grep_file(file: &FileMatches, text: &mut Text) {
    let mut name = String::new();
    push_name(&mut name, &file.path);
    for line in &file.lines {
        let mark = if line.column.is_some() { ':' } else { '-' };
        text.line(|out| {
            let _ = write!(out, "{name}{mark}{}{mark} ", line.line);
            push_shown(out, &line.text);
        });
    }
}

/// A path on one line: what could break the line or fool the reader's terminal is escaped.
pub fn push_name(out: &mut String, name: &str) {
    for c in name.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// Text of a file: as it is, except for what a lone CR would do to the line it is shown on.
fn push_shown(out: &mut String, text: &str) {
    if text.contains('\r') {
        out.push_str(&text.replace('\r', "\\r"));
    } else {
        out.push_str(text);
    }
}

struct Text {
    out: String,
    /// UTF-16 code units, as JavaScript counts.
    chars: usize,
    max_chars: usize,
    /// Lines that found no room.
    left_out: usize,
    notes: Vec<String>,
}

impl Text {
    fn new(max_chars: usize) -> Self {
        Self {
            out: String::new(),
            chars: 0,
            max_chars,
            left_out: 0,
            notes: Vec::new(),
        }
    }

    fn line(&mut self, write: impl FnOnce(&mut String)) {
        if self.left_out > 0 {
            self.left_out += 1;
            return;
        }
        let start = self.out.len();
        write(&mut self.out);
        self.out.push('\n');
        let added = self.out[start..].encode_utf16().count();
        if self.chars + added > self.max_chars {
            self.out.truncate(start);
            self.left_out = 1;
        } else {
            self.chars += added;
        }
    }

    fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    fn finish(
        mut self,
        results: usize,
        [singular, plural]: [&str; 2],
        stop: Option<&Stop>,
        files_scanned: usize,
        skipped: &Skipped,
    ) -> String {
        if self.left_out > 0 {
            let lines = count(self.left_out, "line", "lines");
            let limit = self.max_chars;
            self.note(&format!("{lines} left out, the answer is limited to {limit} characters: search a narrower path or pattern"));
        }
        if let Some(stop) = stop {
            self.notes
                .push(stop_note(stop, &count(results, singular, plural), files_scanned));
        }
        if let Some(note) = skipped_note(skipped) {
            self.notes.push(note);
        }
        for note in &self.notes {
            let _ = writeln!(self.out, "[{note}]");
        }
        self.out.truncate(self.out.trim_end_matches('\n').len());
        self.out
    }
}

fn stop_note(stop: &Stop, shown: &str, files_scanned: usize) -> String {
    match stop {
        Stop::MaxResults => format!("stopped after {shown}, there are more: use a narrower path or pattern"),
        Stop::MaxFiles => format!(
            "stopped after looking at {}, there are more: search a narrower path",
            count(files_scanned, "file", "files")
        ),
        Stop::Deadline => format!("stopped at the time limit with {shown}: search a narrower path"),
        Stop::StepLimit { path, line } => {
            let mut name = String::new();
            push_name(&mut name, path);
            format!(
                "SEARCH_LIMIT: stopped at {name} line {line}, where the pattern took too many steps; simplify its look-around or back-references"
            )
        }
    }
}

fn skipped_note(skipped: &Skipped) -> Option<String> {
    let counts = [
        (skipped.binary_files, "binary file", "binary files"),
        (
            skipped.large_files,
            "file over the size limit",
            "files over the size limit",
        ),
        (skipped.unreadable_files, "unreadable file", "unreadable files"),
        (
            skipped.unreadable_directories,
            "unreadable directory",
            "unreadable directories",
        ),
        (
            skipped.unaddressable_names,
            "name that no path can spell",
            "names that no path can spell",
        ),
        (
            skipped.long_lines,
            "line too long for this pattern",
            "lines too long for this pattern",
        ),
    ];
    let seen = counts.iter().filter(|(n, ..)| *n > 0);
    let parts: Vec<String> = seen
        .map(|&(n, singular, plural)| count(n, singular, plural))
        .collect();
    (!parts.is_empty()).then(|| format!("skipped: {}", parts.join(", ")))
}

fn count(n: usize, singular: &str, plural: &str) -> String {
    format!("{n} {}", if n == 1 { singular } else { plural })
}
