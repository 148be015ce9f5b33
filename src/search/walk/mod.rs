//! The one walk behind glob, grep and recursive listing: depth first in byte order of the path, through held
//! directories only. It never follows a link, never looks above the root, and reads no ignore file that is not a
//! small regular file. What is done with a file is the visitor's; what the caller may not see, the tree does not show.

mod descend;
mod output;
mod rules;
mod share;

use super::budget::{Cancel, Clock, Tick};
use super::glob::Glob;
use crate::error::{Error, ErrorCode, Result};
use crate::limits;
use crate::tree::{FileType, Folder, Tree, WalkStart};
pub use output::Skipped;
pub(super) use output::{Output, Skip, Walked};

#[derive(Clone)]
pub struct WalkOptions {
    /// Names of directories that are skipped at any depth. `.git` always is.
    pub skip_names: Vec<String>,
    /// Honour `.gitignore` and `.git/info/exclude`.
    pub gitignore: bool,
    pub max_files_scanned: usize,
    pub timeout_ms: Option<u64>,
    /// Threads, the calling one included; `None` for as many as the machine has, up to a limit. More than one
    /// are used only once a tree has turned out to be big.
    pub threads: Option<usize>,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self {
            skip_names: limits::SKIP_NAMES.iter().map(|&name| name.to_owned()).collect(),
            gitignore: true,
            max_files_scanned: limits::MAX_FILES_SCANNED,
            timeout_ms: Some(limits::SEARCH_TIMEOUT_MS),
            threads: None,
        }
    }
}

/// What a search can start in.
pub trait Walkable {
    fn start_walk(&self, path: &str) -> Result<WalkStart>;
}

impl<T: Tree + ?Sized> Walkable for T {
    fn start_walk(&self, path: &str) -> Result<WalkStart> {
        self.open_walk(path)
    }
}

/// A file (or, for a visitor that wants them, a directory or link) that the walk came by.
pub(super) struct Found<'a> {
    pub folder: &'a dyn Folder,
    pub name: &'a [u8],
    /// From the root of the tree.
    pub path: &'a str,
    pub file_type: FileType,
}

pub(super) trait Visitor: Sync {
    /// What is found; counted against the cap by `weight`.
    type Hit: Send;
    /// What a thread keeps from file to file.
    type Scratch: Default + Send;

    /// Directories and links too, not only regular files; then nothing is filtered by a glob.
    fn wants_everything(&self) -> bool {
        false
    }

    /// Entries that one thread looks at before others are called: a small tree should be done before a thread
    /// has started.
    fn entries_alone(&self) -> usize {
        512
    }

    fn visit(
        &self,
        found: &Found<'_>,
        clock: &Clock<'_>,
        scratch: &mut Self::Scratch,
        out: &mut Output<Self::Hit>,
    ) -> Result<()>;

    /// Keeps the first `weight` results of a hit that holds more.
    fn cut(hit: &mut Self::Hit, weight: usize);
}

/// A walk's settings, shared by its threads.
struct Walk<'a, V: Visitor> {
    options: &'a WalkOptions,
    glob: Option<&'a Glob>,
    visitor: &'a V,
    clock: Clock<'a>,
    max_results: usize,
}

/// Runs a walk from `start` with everything a search needs.
pub(super) fn walk<V: Visitor>(
    start: WalkStart,
    options: &WalkOptions,
    glob: Option<&Glob>,
    visitor: &V,
    max_results: usize,
    cancel: &dyn Cancel,
) -> Result<Walked<V::Hit>> {
    let clock = Clock::new(cancel, options.timeout_ms);
    if clock.tick() == Tick::Cancelled {
        return Err(aborted());
    }
    let walk = Walk {
        options,
        glob,
        visitor,
        clock,
        max_results,
    };
    let outputs = match start {
        WalkStart::File { parent, name, path } => vec![walk.single_file(&*parent, &name, &path)?],
        WalkStart::Folder { folder, path, above } => walk.folder(folder, &path, &above)?,
    };
    Ok(output::join(
        outputs,
        max_results,
        options.max_files_scanned,
        V::cut,
    ))
}

impl<V: Visitor> Walk<'_, V> {
    /// A file that is named is looked at even if it is ignored.
    fn single_file(&self, folder: &dyn Folder, name: &[u8], path: &str) -> Result<Output<V::Hit>> {
        let mut out = Output::default();
        out.count_file();
        let found = Found {
            folder,
            name,
            path,
            file_type: FileType::File,
        };
        self.visitor
            .visit(&found, &self.clock, &mut V::Scratch::default(), &mut out)?;
        Ok(out)
    }

    fn folder(
        &self,
        folder: Box<dyn Folder>,
        path: &str,
        above: &[(String, Box<dyn Folder>)],
    ) -> Result<Vec<Output<V::Hit>>> {
        let prefix = if path == "." {
            String::new()
        } else {
            path.to_owned() + "/"
        };
        let ignore = if self.options.gitignore {
            rules::above(path, above)
        } else {
            rules::none()
        };
        let alive = self.glob.map(Glob::start);
        match self.open(folder, prefix, &ignore, alive)? {
            Some(directory) => share::run(self, directory),
            None => {
                let message =
                    format!("the directory {path:?} cannot be listed: the operating system refused");
                Err(Error::new(ErrorCode::AccessDenied, message).at(path))
            }
        }
    }
}

pub(super) fn aborted() -> Error {
    Error::new(ErrorCode::Aborted, "the search was aborted")
}
