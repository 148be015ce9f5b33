//! Grep: which lines of which files match.

use super::budget::{Cancel, Clock, Stop};
use super::glob::Glob;
use super::lines::{End, LineOptions, ShownLine, search_buffer};
use super::regex::Matcher;
use super::walk::{Found, Output, Skip, Skipped, Visitor, WalkOptions, Walkable, aborted, walk};
use crate::error::{ErrorCode, Result};
use crate::limits;
use crate::tree::FileRead;

#[derive(Clone)]
pub struct GrepRequest {
    /// A JavaScript regular expression that JavaScript accepts, or plain text.
    pub pattern: String,
    pub literal: bool,
    pub ignore_case: bool,
    /// A directory, or one file (which is then searched even if it is ignored).
    pub path: String,
    /// Which files of a directory to search: by name at any depth, or with a `/` by path.
    pub glob: Option<String>,
    /// Lines shown before and after each match.
    pub context: usize,
    /// Matching lines.
    pub max_results: usize,
    pub max_file_bytes: u64,
    pub max_line_chars: usize,
    pub walk: WalkOptions,
}

impl GrepRequest {
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            literal: false,
            ignore_case: false,
            path: ".".to_owned(),
            glob: None,
            context: 0,
            max_results: limits::MAX_RESULTS,
            max_file_bytes: limits::MAX_GREP_FILE_BYTES,
            max_line_chars: limits::MAX_GREP_LINE_CHARS,
            walk: WalkOptions::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrepResult {
    /// In byte order of the path.
    pub files: Vec<FileMatches>,
    /// Matching lines in all.
    pub matches: usize,
    pub stop: Option<Stop>,
    pub files_scanned: usize,
    pub skipped: Skipped,
}

impl GrepResult {
    /// There may be more than is given.
    pub fn truncated(&self) -> bool {
        self.stop.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMatches {
    pub path: String,
    /// Matching lines, and context lines between them.
    pub lines: Vec<ShownLine>,
    pub matches: usize,
}

pub fn grep(
    tree: &(impl Walkable + ?Sized),
    request: &GrepRequest,
    cancel: &dyn Cancel,
) -> Result<GrepResult> {
    let matcher = if request.literal {
        Matcher::literal(&request.pattern, request.ignore_case)?
    } else {
        Matcher::javascript(&request.pattern, request.ignore_case)?
    };
    let glob = request.glob.as_deref().map(Glob::filter).transpose()?;
    let start = tree.start_walk(&request.path)?;
    let visitor = Files { matcher, request };
    let out = walk(
        start,
        &request.walk,
        glob.as_ref(),
        &visitor,
        request.max_results,
        cancel,
    )?;
    Ok(GrepResult {
        files: out.hits,
        matches: out.weight,
        stop: out.stop,
        files_scanned: out.files,
        skipped: out.skipped,
    })
}

struct Files<'a> {
    matcher: Matcher,
    request: &'a GrepRequest,
}

impl Visitor for Files<'_> {
    type Hit = FileMatches;
    /// The bytes of the file at hand.
    type Scratch = Vec<u8>;

    /// Reading a file takes many times longer than listing it.
    fn entries_alone(&self) -> usize {
        64
    }

    fn visit(
        &self,
        found: &Found<'_>,
        clock: &Clock<'_>,
        buffer: &mut Vec<u8>,
        out: &mut Output<FileMatches>,
    ) -> Result<()> {
        match found
            .folder
            .read_file(found.name, self.request.max_file_bytes, buffer)
        {
            Ok(FileRead::Whole) => {}
            Ok(FileRead::TooLarge) => {
                out.skip(Skip::LargeFile);
                return Ok(());
            }
            Err(error) if error.code == ErrorCode::TooManyOpenFiles => return Err(error),
            Ok(FileRead::NotRegular) | Err(_) => {
                out.skip(Skip::UnreadableFile);
                return Ok(());
            }
        }
        let options = LineOptions {
            context: self.request.context,
            max_line_chars: self.request.max_line_chars,
            max_matches: self.request.max_results.saturating_sub(out.weight()),
        };
        let inside = search_buffer(&self.matcher, buffer, &options, clock);
        if inside.long_lines > 0 {
            out.skip(Skip::LongLines(inside.long_lines));
        }
        if inside.matches > 0 {
            let path = found.path.to_owned();
            let matches = inside.matches;
            out.push(
                FileMatches {
                    path,
                    lines: inside.lines,
                    matches,
                },
                matches,
            );
        }
        match inside.end {
            End::Complete => {}
            End::Binary => out.skip(Skip::BinaryFile),
            End::Cancelled => return Err(aborted()),
            End::Deadline => out.stop = Some(Stop::Deadline),
            End::StepLimit(line) => {
                out.stop = Some(Stop::StepLimit {
                    path: found.path.to_owned(),
                    line,
                });
            }
        }
        Ok(())
    }

    /// The context behind the last match that is kept goes with what followed it.
    fn cut(hit: &mut FileMatches, weight: usize) {
        if hit.matches <= weight {
            return;
        }
        let mut matches = hit
            .lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.column.is_some());
        let end = matches
            .nth(weight.saturating_sub(1))
            .map_or(0, |(index, _)| index + 1);
        hit.lines.truncate(end);
        hit.matches = weight;
    }
}
