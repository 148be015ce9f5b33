//! From patched files to operations: which files are read, what a later part of the patch sees of an earlier
//! one, and in which order the operations are safe.

use super::file_diff;
use super::unified::FilePatch;
use super::v4a::{Change, Section};
use super::{Lookup, PlacedHunk};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::MAX_PATCH_BYTES;
use crate::text::sniff::size_text;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Create,
    Update,
    Delete,
    Rename,
    Copy,
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Rename => "rename",
            Self::Copy => "copy",
        }
    }
}

/// What the patch did to one file, for the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchedFile {
    pub action: Action,
    pub path: String,
    /// Where a renamed or copied file came from.
    pub from: Option<String>,
    pub hunks: Vec<PlacedHunk>,
    pub executable: Option<bool>,
}

/// One step of carrying a plan out. `before` is what the look-up gave: a file that no longer holds it is stale.
/// In the order of the list they do not get in each other's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates (`before: None`) or replaces a file. `executable` changes the x bits; else a new file has the mode
    /// of `mode_from`, or the default.
    Write {
        path: String,
        before: Option<Vec<u8>>,
        content: Vec<u8>,
        executable: Option<bool>,
        mode_from: Option<String>,
    },
    /// Nothing is at `to`. `content` is the new content, if it changes.
    Rename {
        from: String,
        to: String,
        before: Vec<u8>,
        content: Option<Vec<u8>>,
        executable: Option<bool>,
    },
    Remove {
        path: String,
        before: Vec<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub files: Vec<PatchedFile>,
    pub operations: Vec<Operation>,
}

pub(super) fn plan_unified(files: &[FilePatch<'_>], fuzz: u8, lookup: &mut Lookup<'_>) -> Result<Plan> {
    let leaving = files.iter().filter(|file| file.old != file.new && !file.is_copy);
    let mut state = State::new(lookup, leaving.filter_map(|file| file.old.clone()).collect());
    let mut done = Vec::with_capacity(files.len());
    for file in files {
        done.push(state.apply(file, fuzz)?);
    }
    Ok(Plan {
        files: done,
        operations: state.operations(),
    })
}

pub(super) fn plan_v4a(sections: &[Section<'_>], lookup: &mut Lookup<'_>) -> Result<Plan> {
    let leaves = |section: &&Section<'_>| match &section.change {
        Change::Add { .. } => false,
        Change::Delete => true,
        Change::Update { move_to, .. } => move_to.as_ref().is_some_and(|to| *to != section.path),
    };
    let mut state = State::new(
        lookup,
        sections
            .iter()
            .filter(leaves)
            .map(|section| section.path.clone())
            .collect(),
    );
    let mut done = Vec::with_capacity(sections.len());
    for section in sections {
        done.push(state.apply_section(section)?);
    }
    Ok(Plan {
        files: done,
        operations: state.operations(),
    })
}

struct Entry {
    path: String,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    executable: Option<bool>,
    mode_from: Option<String>,
    /// Created here, or renamed or copied to here, by this patch.
    has_arrived: bool,
}

struct State<'s, 'l> {
    lookup: &'s mut Lookup<'l>,
    entries: Vec<Entry>,
    index: HashMap<String, usize>,
    /// Files that some part of the patch removes or renames: others may take their places, in any order.
    leaving: HashSet<String>,
    /// Bytes that the entries hold, present and new.
    held_bytes: usize,
}

impl<'s, 'l> State<'s, 'l> {
    fn new(lookup: &'s mut Lookup<'l>, leaving: HashSet<String>) -> Self {
        Self {
            lookup,
            entries: Vec::new(),
            index: HashMap::new(),
            leaving,
            held_bytes: 0,
        }
    }

    /// Ten lines of a patch can copy a large file ten times.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        if self.held_bytes <= MAX_PATCH_BYTES {
            return Ok(());
        }
        let limit = size_text(MAX_PATCH_BYTES as u64);
        let message = format!(
            "the files that the patch reads and makes are larger than {limit} together: split the patch"
        );
        Err(Error::new(ErrorCode::TooLarge, message))
    }

    fn entry(&mut self, path: &str) -> Result<&mut Entry> {
        let at = match self.index.get(path) {
            Some(&at) => at,
            None => {
                let before = (self.lookup)(path)?;
                // Twice: as it was, and as it will be.
                self.hold(before.as_ref().map_or(0, |before| 2 * before.len()))?;
                let (path, after) = (path.to_owned(), before.clone());
                self.index.insert(path.clone(), self.entries.len());

                self.entries.push(Entry {
                    path,
                    before,
                    after,
                    executable: None,
                    mode_from: None,
                    has_arrived: false,
                });
                self.entries.len() - 1
            }
        };
        Ok(&mut self.entries[at])
    }

    fn apply(&mut self, file: &FilePatch<'_>, fuzz: u8) -> Result<PatchedFile> {
        let executable = file.executable;
        let report = |action, path: &str, from: Option<&str>, hunks| PatchedFile {
            action,
            path: path.to_owned(),
            from: from.map(str::to_owned),
            hunks,
            executable,
        };
        match (&file.old, &file.new) {
            (None, Some(path)) => self
                .create(path, file)
                .map(|hunks| report(Action::Create, path, None, hunks)),
            (Some(path), None) => {
                let before = self.present(path)?;
                let patched = match file.hunks.as_slice() {
                    [] => file_diff::Patched {
                        bytes: Vec::new(),
                        hunks: Vec::new(),
                    },
                    hunks => file_diff::update(&before, path, hunks, fuzz)?,
                };
                if !patched.bytes.is_empty() || file.hunks.is_empty() && !before.is_empty() {
                    let message = format!(
                        "the patch deletes {path:?}, but does not remove all of its lines: read the file again"
                    );
                    return Err(Error::new(ErrorCode::PatchConflict, message).at(path));
                }
                self.delete(path)?;
                Ok(report(Action::Delete, path, None, patched.hunks))
            }
            (Some(path), Some(new)) if path == new && !file.is_copy => {
                if file.may_create && self.entry(path)?.after.is_none() {
                    return self
                        .create(path, file)
                        .map(|hunks| report(Action::Create, path, None, hunks));
                }
                let before = self.present(path)?;
                let patched = file_diff::update(&before, path, &file.hunks, fuzz)?;
                self.put(path, patched.bytes, executable)?;
                Ok(report(Action::Update, path, None, patched.hunks))
            }
            (Some(from), Some(to)) => {
                // Renames and copies mean the files as they were, whatever else the patch does to them.
                let Some(before) = self.entry(from)?.before.clone() else {
                    return Err(missing(from));
                };
                let patched = match file.hunks.as_slice() {
                    [] => file_diff::Patched {
                        bytes: before,
                        hunks: Vec::new(),
                    },
                    hunks => file_diff::update(&before, from, hunks, fuzz)?,
                };
                self.check_free(to)?;
                let action = if file.is_copy {
                    Action::Copy
                } else {
                    Action::Rename
                };
                if action == Action::Rename {
                    self.leave(from)?;
                }
                self.arrive(to, patched.bytes, executable, Some(from))?;
                Ok(report(action, to, Some(from), patched.hunks))
            }
            (None, None) => Err(super::invalid("a file header of the patch names no file")),
        }
    }

    fn create(&mut self, path: &str, file: &FilePatch<'_>) -> Result<Vec<PlacedHunk>> {
        self.check_free(path)?;
        let patched = match file.hunks.as_slice() {
            [] => file_diff::Patched {
                bytes: Vec::new(),
                hunks: Vec::new(),
            },
            hunks => file_diff::update(b"", path, hunks, 0)?,
        };
        self.arrive(path, patched.bytes, file.executable, None)?;
        Ok(patched.hunks)
    }

    fn apply_section(&mut self, section: &Section<'_>) -> Result<PatchedFile> {
        let path = &section.path;
        let report = |action, path: &str, from: Option<&str>, hunks| PatchedFile {
            action,
            path: path.to_owned(),
            from: from.map(str::to_owned),
            hunks,
            executable: None,
        };
        match &section.change {
            Change::Add { content } => {
                self.check_free(path)?;
                self.arrive(path, content.clone().into_bytes(), None, None)?;
                Ok(report(Action::Create, path, None, Vec::new()))
            }
            Change::Delete => {
                self.present(path)?;
                self.delete(path)?;
                Ok(report(Action::Delete, path, None, Vec::new()))
            }
            Change::Update { move_to, chunks } => {
                let before = self.present(path)?;
                let patched = match chunks.as_slice() {
                    [] => file_diff::Patched {
                        bytes: before,
                        hunks: Vec::new(),
                    },
                    chunks => file_diff::update_v4a(&before, path, chunks, true)?,
                };
                let Some(to) = move_to.as_ref().filter(|to| *to != path) else {
                    self.put(path, patched.bytes, None)?;
                    return Ok(report(Action::Update, path, None, patched.hunks));
                };
                self.check_free(to)?;
                self.leave(path)?;
                self.arrive(to, patched.bytes, None, Some(path))?;
                Ok(report(Action::Rename, to, Some(path), patched.hunks))
            }
        }
    }

    /// The content that an update changes.
    fn present(&mut self, path: &str) -> Result<Vec<u8>> {
        self.entry(path)?.after.clone().ok_or_else(|| missing(path))
    }

    fn check_free(&mut self, path: &str) -> Result<()> {
        let leaves = self.leaving.contains(path);
        let entry = self.entry(path)?;
        if entry.has_arrived || entry.after.is_some() && !leaves {
            let message = format!("{path:?} already exists: patch it as a change of an existing file");
            return Err(Error::new(ErrorCode::AlreadyExists, message).at(path));
        }
        Ok(())
    }

    fn put(&mut self, path: &str, content: Vec<u8>, executable: Option<bool>) -> Result<()> {
        self.hold(content.len())?;
        let entry = self.entry(path)?;
        entry.after = Some(content);
        entry.executable = executable.or(entry.executable);
        Ok(())
    }

    fn arrive(
        &mut self,
        path: &str,
        content: Vec<u8>,
        executable: Option<bool>,
        from: Option<&str>,
    ) -> Result<()> {
        self.put(path, content, executable)?;
        let entry = self.entry(path)?;
        entry.has_arrived = true;
        entry.mode_from = from.map(str::to_owned);
        Ok(())
    }

    /// Takes the old file away from its name; what another part of the patch has brought there stays.
    fn leave(&mut self, path: &str) -> Result<()> {
        let entry = self.entry(path)?;
        if !entry.has_arrived {
            entry.after = None;
        }
        Ok(())
    }

    fn delete(&mut self, path: &str) -> Result<()> {
        let entry = self.entry(path)?;
        entry.after = None;
        entry.has_arrived = false;
        Ok(())
    }

    fn operations(self) -> Vec<Operation> {
        let gone: HashSet<String> = self
            .entries
            .iter()
            .filter(|e| e.before.is_some() && e.after.is_none())
            .map(|e| e.path.clone())
            .collect();
        let mut befores: HashMap<String, Vec<u8>> = HashMap::new();
        let mut renamed: HashSet<String> = HashSet::new();
        let (mut removes, mut writes) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            if let Some(before) = entry.before.as_ref().filter(|_| gone.contains(&entry.path)) {
                befores.insert(entry.path.clone(), before.clone());
            }
        }
        for entry in self.entries {
            let Entry {
                path,
                before,
                after: Some(content),
                executable,
                mode_from,
                ..
            } = entry
            else {
                continue;
            };
            if before.as_ref() == Some(&content) && executable.is_none() {
                continue;
            }
            // A file takes its identity along once; a path below the old name would need that to be gone first.
            let source = mode_from.as_ref().filter(|from| {
                before.is_none() && gone.contains(*from) && !is_below(&path, from) && !is_below(from, &path)
            });
            match source.filter(|from| renamed.insert((*from).clone())) {
                Some(from) => {
                    let before = befores.remove(from).unwrap_or_default();
                    let content = (before != content).then_some(content);
                    writes.push(Operation::Rename {
                        from: from.clone(),
                        to: path,
                        before,
                        content,
                        executable,
                    });
                }
                None => writes.push(Operation::Write {
                    path,
                    before,
                    content,
                    executable,
                    mode_from,
                }),
            }
        }
        let mut last = Vec::new();
        let mut paths: Vec<String> = befores.keys().cloned().collect();
        paths.sort();
        for path in paths {
            // A file that a directory (or the other way round) of the new tree needs away goes first; the rest
            // goes last, so that a failure before that has lost nothing.
            let is_in_the_way = writes.iter().any(|operation| match operation {
                Operation::Write { path: to, .. } | Operation::Rename { to, .. } => {
                    is_below(to, &path) || is_below(&path, to)
                }
                Operation::Remove { .. } => false,
            });
            let before = befores.remove(&path).unwrap_or_default();
            let list = if is_in_the_way { &mut removes } else { &mut last };
            list.push(Operation::Remove { path, before });
        }
        removes.append(&mut writes);
        removes.append(&mut last);
        removes
    }
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

fn missing(path: &str) -> Error {
    let message = format!(
        "{path:?} does not exist, so there is nothing to patch: to create it, patch it as a new file"
    );
    Error::new(ErrorCode::NotFound, message).at(path)
}
