//! Glob and recursive listing: which paths there are.

use super::budget::{Cancel, Clock, Stop};
use super::glob::Glob;
use super::walk::{Found, Output, Skipped, Visitor, WalkOptions, Walkable, walk};
use crate::error::{Error, ErrorCode, Result};
use crate::limits;
use crate::tree::{FileType, WalkStart};

#[derive(Clone)]
pub struct GlobRequest {
    pub pattern: String,
    /// The directory the pattern is relative to.
    pub path: String,
    pub max_results: usize,
    pub walk: WalkOptions,
}

impl GlobRequest {
    pub fn new(pattern: impl Into<String>) -> Self {
        Self {
            pattern: pattern.into(),
            path: ".".to_owned(),
            max_results: limits::MAX_RESULTS,
            walk: WalkOptions::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobResult {
    /// From the root, in byte order.
    pub paths: Vec<String>,
    pub stop: Option<Stop>,
    pub files_scanned: usize,
    pub skipped: Skipped,
}

impl GlobResult {
    /// There is more than `paths`.
    pub fn truncated(&self) -> bool {
        self.stop.is_some()
    }
}

/// The regular files below `request.path` that match.
pub fn glob(
    tree: &(impl Walkable + ?Sized),
    request: &GlobRequest,
    cancel: &dyn Cancel,
) -> Result<GlobResult> {
    let glob = Glob::new(&request.pattern)?;
    let start = directory(tree, &request.path)?;
    let out = walk(
        start,
        &request.walk,
        Some(&glob),
        &Paths,
        request.max_results,
        cancel,
    )?;
    Ok(GlobResult {
        paths: out.hits,
        stop: out.stop,
        files_scanned: out.files,
        skipped: out.skipped,
    })
}

#[derive(Clone)]
pub struct ListRequest {
    pub path: String,
    pub max_results: usize,
    pub walk: WalkOptions,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListResult {
    /// From the root, in byte order; each directory before what is in it.
    pub entries: Vec<ListEntry>,
    pub stop: Option<Stop>,
    pub files_scanned: usize,
    pub skipped: Skipped,
}

impl ListResult {
    pub fn truncated(&self) -> bool {
        self.stop.is_some()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    pub path: String,
    /// The entry itself; a link is not followed.
    pub file_type: FileType,
}

/// Everything below `request.path`.
pub fn list(
    tree: &(impl Walkable + ?Sized),
    request: &ListRequest,
    cancel: &dyn Cancel,
) -> Result<ListResult> {
    let start = directory(tree, &request.path)?;
    let out = walk(start, &request.walk, None, &Entries, request.max_results, cancel)?;
    Ok(ListResult {
        entries: out.hits,
        stop: out.stop,
        files_scanned: out.files,
        skipped: out.skipped,
    })
}

fn directory(tree: &(impl Walkable + ?Sized), path: &str) -> Result<WalkStart> {
    match tree.start_walk(path)? {
        WalkStart::File { path, .. } => {
            let message = format!("{path:?} is a file: give the directory to search in as path");
            Err(Error::new(ErrorCode::NotDirectory, message).at(path))
        }
        start => Ok(start),
    }
}

struct Paths;

impl Visitor for Paths {
    type Hit = String;
    type Scratch = ();

    fn visit(&self, found: &Found<'_>, _: &Clock<'_>, (): &mut (), out: &mut Output<String>) -> Result<()> {
        out.push(found.path.to_owned(), 1);
        Ok(())
    }

    fn cut(_: &mut String, _: usize) {}
}

struct Entries;

impl Visitor for Entries {
    type Hit = ListEntry;
    type Scratch = ();

    fn wants_everything(&self) -> bool {
        true
    }

    fn visit(
        &self,
        found: &Found<'_>,
        _: &Clock<'_>,
        (): &mut (),
        out: &mut Output<ListEntry>,
    ) -> Result<()> {
        out.push(
            ListEntry {
                path: found.path.to_owned(),
                file_type: found.file_type,
            },
            1,
        );
        Ok(())
    }

    fn cut(_: &mut ListEntry, _: usize) {}
}
