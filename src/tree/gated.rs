//! A tree behind a gate: every call is judged by the path as it was written, and listings leave out what the gate
//! hides, by the names as written and by the names that links lead to. What is opened is judged once more inside
//! the tree on disk, by the very names it resolved; memory has no links.

use super::gate::{Access, SharedGate};
use super::{
    Change, Entry, EntryList, FileRead, FileType, Folder, OpenFile, RemoveOptions, Stat, Tree, UpdateOptions,
    WalkStart, WriteOptions,
};
use crate::error::{Error, ErrorCode, Result};
use crate::path::quoted;
use std::sync::Arc;

pub struct GatedTree {
    inner: Arc<dyn Tree>,
    gate: SharedGate,
}

impl GatedTree {
    pub fn new(inner: Arc<dyn Tree>, gate: SharedGate) -> Self {
        Self { inner, gate }
    }

    /// A directory is removed or moved with all that is in it, so nothing in it may be off limits.
    fn check_below(&self, path: &str) -> Result<()> {
        if !self.gate.hides_something() || !self.is_directory(path) {
            return Ok(());
        }
        let WalkStart::Folder {
            folder, path: start, ..
        } = self.inner.open_walk(path)?
        else {
            return Ok(());
        };
        let mut open = vec![(folder, prefix_of(&start))];
        while let Some((folder, prefix)) = open.pop() {
            let mut entries = EntryList::default();
            folder.entries(&mut entries)?;
            for (name, file_type) in entries.iter() {
                let below = format!("{prefix}{}", String::from_utf8_lossy(name));
                if self.gate.hides(&below) {
                    let rule = "holds something that is off limits, so it is not moved or removed as a whole";
                    let message = format!("{} {rule}", quoted(path));
                    return Err(Error::new(ErrorCode::PolicyDenied, message).at(path));
                }
                if file_type == FileType::Directory {
                    open.push((folder.open_folder(name)?, format!("{below}/")));
                }
            }
        }
        Ok(())
    }

    fn is_directory(&self, path: &str) -> bool {
        matches!(self.inner.stat(path), Ok(Some(stat)) if stat.file_type == FileType::Directory)
    }

    /// A hint at a name that looks alike could name what is hidden.
    fn without_hint<T>(&self, path: &str, answer: Result<T>) -> Result<T> {
        answer.map_err(|error| {
            if error.code != ErrorCode::NotFound || !self.gate.hides_something() {
                return error;
            }
            let message = format!(
                "{} was not found: list its directory to see what is there",
                quoted(path)
            );
            Error { message, ..error }
        })
    }

    /// A walk through a link shows the names of another folder; both are asked about.
    fn gated_folder(&self, folder: Box<dyn Folder>, path: &str) -> Box<dyn Folder> {
        if !self.gate.hides_something() {
            return folder;
        }
        let resolved = self.inner.resolved(path).unwrap_or_else(|_| path.to_owned());
        Box::new(GatedFolder {
            inner: folder,
            sight: Sight {
                tree: self.inner.clone(),
                gate: self.gate.clone(),
                written: prefix_of(path),
                resolved: prefix_of(&resolved),
            },
        })
    }
}

fn prefix_of(path: &str) -> String {
    if path == "." {
        String::new()
    } else {
        format!("{path}/")
    }
}

impl Tree for GatedTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>> {
        self.gate.check(Access::Read, path)?;
        self.without_hint(path, self.inner.read(path, max_bytes))
    }

    fn read_now(&self, path: &str, max_bytes: u64) -> Option<Result<Vec<u8>>> {
        match self.gate.check(Access::Read, path) {
            Ok(()) => Some(self.without_hint(path, self.inner.read_now(path, max_bytes)?)),
            Err(error) => Some(Err(error)),
        }
    }

    fn write(&self, path: &str, content: &[u8], options: &WriteOptions) -> Result<()> {
        self.gate.check(Access::Write, path)?;
        self.without_hint(path, self.inner.write(path, content, options))
    }

    fn update(&self, path: &str, options: &UpdateOptions, change: &mut Change<'_>) -> Result<bool> {
        self.gate.check(Access::Read, path)?;
        self.gate.check(Access::Write, path)?;
        self.without_hint(path, self.inner.update(path, options, change))
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn OpenFile>> {
        self.gate.check(Access::Read, path)?;
        self.without_hint(path, self.inner.open_file(path))
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.gate.check(Access::Read, path)?;
        self.inner.stat(path)
    }

    fn stat_now(&self, path: &str) -> Option<Result<Option<Stat>>> {
        match self.gate.check(Access::Read, path) {
            Ok(()) => self.inner.stat_now(path),
            Err(error) => Some(Err(error)),
        }
    }

    fn read_dir(&self, path: &str, sizes: bool) -> Result<Vec<Entry>> {
        self.gate.check(Access::Read, path)?;
        let mut entries = self.without_hint(path, self.inner.read_dir(path, sizes))?;
        if self.gate.hides_something() {
            let resolved = self.inner.resolved(path)?;
            let sight = Sight {
                tree: self.inner.clone(),
                gate: self.gate.clone(),
                written: prefix_of(path.trim_end_matches('/')),
                resolved: prefix_of(&resolved),
            };
            entries.retain(|entry| sight.shows(&entry.name, entry.file_type));
        }
        Ok(entries)
    }

    fn make_dir(&self, path: &str) -> Result<()> {
        self.gate.check(Access::Write, path)?;
        self.inner.make_dir(path)
    }

    fn set_mode(&self, path: &str, mode: u32) -> Result<()> {
        self.gate.check(Access::Write, path)?;
        self.without_hint(path, self.inner.set_mode(path, mode))
    }

    fn remove(&self, path: &str, options: &RemoveOptions) -> Result<()> {
        self.gate.check(Access::Write, path)?;
        if options.recursive {
            self.check_below(path)?;
        }
        self.without_hint(path, self.inner.remove(path, options))
    }

    fn rename(&self, from: &str, to: &str, overwrite: bool) -> Result<()> {
        // Under its new name it can be read, and under its old one it is gone.
        self.gate.check(Access::Read, from)?;
        self.gate.check(Access::Write, from)?;
        self.gate.check(Access::Write, to)?;
        self.check_below(from)?;
        self.without_hint(from, self.inner.rename(from, to, overwrite))
    }

    fn open_walk(&self, path: &str) -> Result<WalkStart> {
        self.gate.check(Access::Read, path)?;
        let start = self.without_hint(path, self.inner.open_walk(path))?;
        Ok(match start {
            WalkStart::Folder { folder, path, above } => {
                let above = above.into_iter().map(|(path, folder)| {
                    let gated = self.gated_folder(folder, &path);
                    (path, gated)
                });
                WalkStart::Folder {
                    folder: self.gated_folder(folder, &path),
                    above: above.collect(),
                    path,
                }
            }
            file @ WalkStart::File { .. } => file,
        })
    }

    fn resolved(&self, path: &str) -> Result<String> {
        self.gate.check(Access::Read, path)?;
        self.inner.resolved(path)
    }
}

/// What may be seen in one folder.
#[derive(Clone)]
struct Sight {
    tree: Arc<dyn Tree>,
    gate: SharedGate,
    /// The folder as it was asked for and as it is, each with a final slash; empty for the root.
    written: String,
    resolved: String,
}

impl Sight {
    fn shows(&self, name: &str, file_type: FileType) -> bool {
        let written = format!("{}{name}", self.written);
        if self.gate.hides(&written) || self.gate.hides(&format!("{}{name}", self.resolved)) {
            return false;
        }
        // A link to something hidden is hidden as well; the tree judges what it leads to.
        file_type != FileType::Symlink
            || !matches!(self.tree.stat(&written), Err(error) if error.code == ErrorCode::PolicyDenied)
    }

    fn below(&self, name: &str) -> Self {
        Self {
            written: format!("{}{name}/", self.written),
            resolved: format!("{}{name}/", self.resolved),
            ..self.clone()
        }
    }
}

/// A folder without the entries that the gate hides.
struct GatedFolder {
    inner: Box<dyn Folder>,
    sight: Sight,
}

impl GatedFolder {
    fn refuse_hidden(&self, name: &[u8]) -> Result<()> {
        let name = String::from_utf8_lossy(name);
        if self.sight.shows(&name, FileType::File) {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::NotFound,
            format!("{} was not found", quoted(&name)),
        ))
    }
}

impl Folder for GatedFolder {
    fn entries(&self, out: &mut EntryList) -> Result<()> {
        let mut all = EntryList::default();
        self.inner.entries(&mut all)?;
        for (name, file_type) in all.iter() {
            if self.sight.shows(&String::from_utf8_lossy(name), file_type) {
                out.push(name, file_type);
            }
        }
        Ok(())
    }

    fn open_folder(&self, name: &[u8]) -> Result<Box<dyn Folder>> {
        self.refuse_hidden(name)?;
        Ok(Box::new(GatedFolder {
            inner: self.inner.open_folder(name)?,
            sight: self.sight.below(&String::from_utf8_lossy(name)),
        }))
    }

    fn read_file(&self, name: &[u8], max_bytes: u64, buffer: &mut Vec<u8>) -> Result<FileRead> {
        self.refuse_hidden(name)?;
        self.inner.read_file(name, max_bytes, buffer)
    }

    fn identity(&self) -> Result<(u64, u64)> {
        self.inner.identity()
    }
}
