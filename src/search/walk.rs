//! The one walk behind glob, grep and recursive listing: depth first in byte order of the path, through held
//! directories only. It never follows a link, never looks above the root, and reads no ignore file that is not a
//! small regular file. What is done with a file is the visitor's.

use std::sync::Arc;

use super::budget::{Cancel, Clock, Stop, Tick};
use super::glob::{Alive, Glob};
use super::ignore::{IgnoreStack, MAX_IGNORE_FILE_BYTES};
use crate::error::{Error, ErrorCode, Result};
use crate::limits;
use crate::tree::{EntryList, FileRead, FileType, Folder, WalkStart};

/// Says of a path below the root (no trailing slash) that the caller may not know of it.
pub type Hidden = Arc<dyn Fn(&str) -> bool + Send + Sync>;

#[derive(Clone)]
pub struct WalkOptions {
    /// Names that are skipped at any depth. `.git` always is.
    pub skip_names: Vec<String>,
    /// Honour `.gitignore` and `.git/info/exclude`.
    pub gitignore: bool,
    pub max_files_scanned: usize,
    pub timeout_ms: Option<u64>,
    pub hidden: Option<Hidden>,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self {
            skip_names: limits::SKIP_NAMES.iter().map(|&name| name.to_owned()).collect(),
            gitignore: true,
            max_files_scanned: limits::MAX_FILES_SCANNED,
            timeout_ms: Some(limits::SEARCH_TIMEOUT_MS),
            hidden: None,
        }
    }
}

/// What a walk left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    pub binary_files: usize,
    /// Over the size that grep reads.
    pub large_files: usize,
    /// Could not be opened, or turned out to be no regular file.
    pub unreadable_files: usize,
    pub unreadable_directories: usize,
    /// Names that no path can spell (not UTF-8, or with a backslash).
    pub unaddressable_names: usize,
    /// Lines too long for a pattern with look-around or back-references.
    pub long_lines: usize,
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

    fn visit(
        &self,
        found: &Found<'_>,
        clock: &Clock<'_>,
        scratch: &mut Self::Scratch,
        out: &mut Output<Self::Hit>,
    ) -> Result<()>;

    fn weight(hit: &Self::Hit) -> usize;

    /// Keeps the first `weight` of it.
    fn cut(hit: &mut Self::Hit, weight: usize);
}

/// What came out of a stretch of the walk, in order.
pub(super) struct Output<H> {
    pub hits: Vec<H>,
    pub weight: usize,
    pub files: usize,
    pub skipped: Skipped,
    pub stop: Option<Stop>,
}

impl<H> Default for Output<H> {
    fn default() -> Self {
        Self {
            hits: Vec::new(),
            weight: 0,
            files: 0,
            skipped: Skipped::default(),
            stop: None,
        }
    }
}

/// A directory under way.
struct Frame {
    folder: Box<dyn Folder>,
    /// From the root of the tree, with a final slash; empty for the root.
    prefix: String,
    entries: EntryList,
    next: usize,
    ignore: IgnoreStack,
    alive: Option<Alive>,
}

pub(super) struct Walk<'a, V: Visitor> {
    pub options: &'a WalkOptions,
    pub glob: Option<&'a Glob>,
    pub visitor: &'a V,
    pub clock: Clock<'a>,
    pub max_results: usize,
}

/// How many entries are looked at between two looks at the clock.
const ENTRIES_PER_TICK: usize = 64;

impl<V: Visitor> Walk<'_, V> {
    pub(super) fn run(&self, start: WalkStart) -> Result<Output<V::Hit>> {
        let mut out = Output::default();
        let mut scratch = V::Scratch::default();
        match start {
            WalkStart::File { parent, name, path } => {
                out.files = 1;
                let found = Found {
                    folder: &*parent,
                    name: &name,
                    path: &path,
                    file_type: FileType::File,
                };
                if !self.is_hidden(&path) {
                    self.visitor.visit(&found, &self.clock, &mut scratch, &mut out)?;
                }
            }
            WalkStart::Folder { folder, path, above } => {
                let prefix = if path == "." {
                    String::new()
                } else {
                    path.clone() + "/"
                };
                let ignore = self.rules_above(&path, &above)?;
                let alive = self.glob.map(Glob::start);
                if let Some(frame) = self.open(folder, prefix, &ignore, alive)? {
                    self.descend(frame, &mut scratch, &mut out)?;
                } else {
                    return Err(unreadable(&path));
                }
            }
        }
        self.cut(&mut out);
        Ok(out)
    }

    fn descend(&self, first: Frame, scratch: &mut V::Scratch, out: &mut Output<V::Hit>) -> Result<()> {
        let mut frames = vec![first];
        let mut path = String::new();
        let mut since_tick = 0;
        while let Some(frame) = frames.last_mut() {
            if frame.next == frame.entries.len() {
                frames.pop();
                continue;
            }
            since_tick += 1;
            if since_tick == ENTRIES_PER_TICK {
                since_tick = 0;
                if self.tick(out)? {
                    return Ok(());
                }
            }
            let index = frame.next;
            frame.next += 1;
            if let Some(child) = self.entry(frame, index, &mut path, scratch, out)? {
                frames.push(child);
            }
            if out.stop.is_some() || out.weight > self.max_results {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Looks at one entry; a directory that is to be entered comes back as a frame.
    fn entry(
        &self,
        frame: &Frame,
        index: usize,
        path: &mut String,
        scratch: &mut V::Scratch,
        out: &mut Output<V::Hit>,
    ) -> Result<Option<Frame>> {
        let (name, file_type) = frame.entries.get(index);
        let everything = self.visitor.wants_everything();
        if self.is_skipped(name, file_type) {
            return Ok(None);
        }
        if !everything && matches!(file_type, FileType::Symlink | FileType::Other) {
            return Ok(None);
        }
        let Some(text) = std::str::from_utf8(name).ok().filter(|name| !name.contains('\\')) else {
            out.skipped.unaddressable_names += 1;
            return Ok(None);
        };
        let is_directory = file_type == FileType::Directory;
        let mut alive = None;
        if let (Some(glob), Some(above), true) = (self.glob, &frame.alive, is_directory) {
            alive = glob.enter(above, text);
            if alive.is_none() {
                return Ok(None);
            }
        }
        path.clear();
        path.push_str(&frame.prefix);
        path.push_str(text);
        if frame.ignore.excludes(path.as_bytes(), is_directory) || self.is_hidden(path) {
            return Ok(None);
        }
        let found = Found {
            folder: &*frame.folder,
            name,
            path,
            file_type,
        };
        if is_directory {
            if everything {
                self.visitor.visit(&found, &self.clock, scratch, out)?;
            }
            let folder = match frame.folder.open_folder(name) {
                Ok(folder) => folder,
                Err(error) => return self.cannot_open(error, out).map(|()| None),
            };
            path.push('/');
            return match self.open(folder, path.clone(), &frame.ignore, alive) {
                Ok(Some(frame)) => Ok(Some(frame)),
                Ok(None) => {
                    out.skipped.unreadable_directories += 1;
                    Ok(None)
                }
                Err(error) => Err(error),
            };
        }
        out.files += 1;
        if out.files > self.options.max_files_scanned {
            out.files -= 1;
            out.stop = Some(Stop::MaxFiles);
            return Ok(None);
        }
        if let (Some(glob), Some(above)) = (self.glob, &frame.alive)
            && !glob.matches_name(above, text)
        {
            return Ok(None);
        }
        self.visitor.visit(&found, &self.clock, scratch, out)?;
        Ok(None)
    }

    fn is_skipped(&self, name: &[u8], file_type: FileType) -> bool {
        let named = || self.options.skip_names.iter().any(|skip| skip.as_bytes() == name);
        name == b".git" || (file_type == FileType::Directory && named())
    }

    /// Lists a directory and adds its ignore rules. `None` when it cannot be listed.
    fn open(
        &self,
        folder: Box<dyn Folder>,
        prefix: String,
        above: &IgnoreStack,
        alive: Option<Alive>,
    ) -> Result<Option<Frame>> {
        let mut entries = EntryList::default();
        if let Err(error) = folder.entries(&mut entries) {
            return out_of_descriptors(error).map(|()| None);
        }
        entries.sort_for_walk();
        let mut ignore = above.clone();
        if self.options.gitignore {
            let mut rules = None;
            for (name, file_type) in entries.iter() {
                match (name, file_type) {
                    // A repository of its own: the rules of the outer one end here.
                    (b".git", FileType::Directory | FileType::File) => {
                        ignore = exclude_file(&*folder, &prefix);
                    }
                    (b".gitignore", FileType::File) => rules = read_rules(&*folder, b".gitignore"),
                    _ => {}
                }
            }
            if let Some(rules) = rules {
                ignore = ignore.with_file(&rules, &prefix);
            }
        }
        Ok(Some(Frame {
            folder,
            prefix,
            entries,
            next: 0,
            ignore,
            alive,
        }))
    }

    /// The rules that the directories above the start lay on it. A start that they exclude was named by the
    /// caller all the same, and then they do not count.
    fn rules_above(&self, start: &str, above: &[(String, Box<dyn Folder>)]) -> Result<IgnoreStack> {
        let mut ignore = IgnoreStack::none();
        if !self.options.gitignore || start == "." {
            return Ok(ignore);
        }
        for (index, (path, folder)) in above.iter().enumerate() {
            let prefix = if path == "." {
                String::new()
            } else {
                path.clone() + "/"
            };
            if folder.open_folder(b".git").is_ok() || read_rules(&**folder, b".git").is_some() {
                ignore = exclude_file(&**folder, &prefix);
            }
            if let Some(rules) = read_rules(&**folder, b".gitignore") {
                ignore = ignore.with_file(&rules, &prefix);
            }
            let child = above.get(index + 1).map_or(start, |(path, _)| path);
            if ignore.excludes(child.as_bytes(), true) {
                return Ok(IgnoreStack::none());
            }
        }
        Ok(ignore)
    }

    fn is_hidden(&self, path: &str) -> bool {
        self.options.hidden.as_ref().is_some_and(|hidden| hidden(path))
    }

    fn cannot_open(&self, error: Error, out: &mut Output<V::Hit>) -> Result<()> {
        out_of_descriptors(error)?;
        out.skipped.unreadable_directories += 1;
        Ok(())
    }

    /// True when the walk must end here.
    fn tick(&self, out: &mut Output<V::Hit>) -> Result<bool> {
        match self.clock.tick() {
            Tick::GoOn => Ok(false),
            Tick::DeadlinePassed => {
                out.stop = Some(Stop::Deadline);
                Ok(true)
            }
            Tick::Cancelled => Err(aborted()),
        }
    }

    /// Exactly `max_results`, and the note that there was more.
    fn cut(&self, out: &mut Output<V::Hit>) {
        if out.weight <= self.max_results {
            return;
        }
        out.stop = Some(Stop::MaxResults);
        let mut left = self.max_results;
        let mut keep = 0;
        for hit in &mut out.hits {
            if left == 0 {
                break;
            }
            V::cut(hit, left);
            left -= V::weight(hit);
            keep += 1;
        }
        out.hits.truncate(keep);
        out.weight = self.max_results;
    }
}

pub(super) fn aborted() -> Error {
    Error::new(ErrorCode::Aborted, "the search was aborted")
}

fn unreadable(path: &str) -> Error {
    let message = format!("the directory {path:?} cannot be listed: the operating system refused");
    Error::new(ErrorCode::AccessDenied, message).at(path)
}

/// A directory that is gone or shut is no reason to fail; running out of descriptors is, because the result
/// would be cut without a word about the cause.
fn out_of_descriptors(error: Error) -> Result<()> {
    if error.code == ErrorCode::TooManyOpenFiles {
        Err(error)
    } else {
        Ok(())
    }
}

/// A regular file of modest size, or nothing: a FIFO or link in its place is as good as absent.
fn read_rules(folder: &dyn Folder, name: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    match folder.read_file(name, MAX_IGNORE_FILE_BYTES, &mut content) {
        Ok(FileRead::Whole) => Some(content),
        Ok(FileRead::TooLarge | FileRead::NotRegular) | Err(_) => None,
    }
}

/// The rules of `.git/info/exclude`, which hold less than any `.gitignore` of the repository.
fn exclude_file(folder: &dyn Folder, prefix: &str) -> IgnoreStack {
    let rules = folder
        .open_folder(b".git")
        .and_then(|git| git.open_folder(b"info"))
        .ok()
        .and_then(|info| read_rules(&*info, b"exclude"));
    match rules {
        Some(rules) => IgnoreStack::none().with_file(&rules, prefix),
        None => IgnoreStack::none(),
    }
}

/// Runs a walk from `start` with everything a search needs.
pub(super) fn walk<V: Visitor>(
    start: WalkStart,
    options: &WalkOptions,
    glob: Option<&Glob>,
    visitor: &V,
    max_results: usize,
    cancel: &dyn Cancel,
) -> Result<Output<V::Hit>> {
    let clock = Clock::new(cancel, options.timeout_ms);
    if clock.tick() == Tick::Cancelled {
        return Err(aborted());
    }
    Walk {
        options,
        glob,
        visitor,
        clock,
        max_results,
    }
    .run(start)
}
