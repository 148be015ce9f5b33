//! The tree in memory: the same meaning and the same error codes as a directory on disk, answered at once.
//! It has files and directories; there is no way to make a link in it.

mod folder;
mod node;

pub use node::MemoryFile;

use super::refusal::Target;
use super::{
    Change, Entry, FileType, OpenFile, RemoveOptions, Stat, Tree, UpdateOptions, WalkStart, WriteOptions,
};
use crate::error::{ErrorCode, Result};
use crate::path::ProtectedNames;
use folder::{MemoryFolder, MemoryOpenFile};
use node::{Directory, Found, Node, find, now_ms};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const NEW_FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

pub struct MemoryTree {
    root: RwLock<Arc<Directory>>,
    protected: ProtectedNames,
}

impl Default for MemoryTree {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl MemoryTree {
    /// An empty tree. `protect`: names protected beside `.git`.
    pub fn new(protect: &[String]) -> Self {
        Self {
            root: RwLock::new(Arc::new(Directory::empty())),
            protected: ProtectedNames::new(protect),
        }
    }

    /// Puts a file there with its parents, as the owner of the tree: protected names are allowed.
    pub fn insert(&self, path: &str, content: Vec<u8>) -> Result<()> {
        let target = Target::parse(path)?;
        self.place(&target, content, &WriteOptions::default())
    }

    /// Every file with its path, sorted by path (bytes). Later changes do not show in it.
    pub fn snapshot(&self) -> Vec<(String, Arc<MemoryFile>)> {
        let root = Arc::clone(&self.read_root());
        let mut files = Vec::new();
        let mut open: Vec<(String, Arc<Directory>)> = vec![(String::new(), root)];
        while let Some((prefix, directory)) = open.pop() {
            for (name, node) in &directory.children {
                let path = format!("{prefix}{name}");
                match node {
                    Node::File(file) => files.push((path, Arc::clone(file))),
                    Node::Directory(child) => open.push((format!("{path}/"), Arc::clone(child))),
                }
            }
        }
        files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        files
    }

    // A panic of a thread that held the lock leaves the tree whole: each change is one insertion or removal.
    fn read_root(&self) -> RwLockReadGuard<'_, Arc<Directory>> {
        self.root.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_root(&self) -> RwLockWriteGuard<'_, Arc<Directory>> {
        self.root.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, target: &Target<'_>) -> Result<Arc<MemoryFile>> {
        let root = self.read_root();
        match find(&root, target)?.found {
            Found::File(file) => Ok(Arc::clone(file)),
            Found::Root(_) | Found::Directory(_) => Err(target.is_directory()),
            Found::Nothing { parent } => {
                Err(target.not_found_among(parent.children.keys().map(AsRef::as_ref)))
            }
            Found::NoParent => Err(target.not_found()),
        }
    }

    fn directory(&self, target: &Target<'_>) -> Result<Arc<Directory>> {
        let root = self.read_root();
        match find(&root, target)?.found {
            Found::Root(directory) | Found::Directory(directory) => Ok(Arc::clone(directory)),
            Found::File(_) => Err(target.not_directory()),
            Found::Nothing { parent } => {
                Err(target.not_found_among(parent.children.keys().map(AsRef::as_ref)))
            }
            Found::NoParent => Err(target.not_found()),
        }
    }

    fn place(&self, target: &Target<'_>, content: Vec<u8>, options: &WriteOptions) -> Result<()> {
        let mut root = self.write_root();
        let place = find(&root, target)?;
        let mode = match place.found {
            Found::Root(_) | Found::Directory(_) => return Err(target.is_directory()),
            Found::File(_) if options.create_only => return Err(target.exists()),
            Found::File(file) => file.mode,
            Found::NoParent if !options.create_parents || target.parsed.must_be_directory => {
                return Err(target.not_found());
            }
            Found::Nothing { .. } if target.parsed.must_be_directory => return Err(target.is_directory()),
            Found::Nothing { .. } | Found::NoParent => NEW_FILE_MODE,
        };
        target.check_cancel(options.cancel.as_ref())?;
        let Some((name, parents)) = place.names.split_last() else {
            return Err(target.is_directory());
        };
        let file = MemoryFile {
            content: content.into_boxed_slice(),
            mtime_ms: now_ms(),
            mode,
        };
        let parent = root.make_at(parents).ok_or_else(|| target.not_directory())?;
        parent.insert(name, Node::File(Arc::new(file)));
        Ok(())
    }
}

impl Tree for MemoryTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>> {
        let target = Target::parse(path)?;
        let file = self.file(&target)?;
        if file.content.len() as u64 > max_bytes {
            return Err(target.too_large(file.content.len() as u64, max_bytes));
        }
        Ok(file.content.to_vec())
    }

    fn read_now(&self, path: &str, max_bytes: u64) -> Option<Result<Vec<u8>>> {
        Some(self.read(path, max_bytes))
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn OpenFile>> {
        let target = Target::parse(path)?;
        Ok(Box::new(MemoryOpenFile(self.file(&target)?)))
    }

    fn write(&self, path: &str, content: &[u8], options: &WriteOptions) -> Result<()> {
        let target = Target::parse_for_change(path, &self.protected)?;
        self.place(&target, content.to_vec(), options)
    }

    /// `change` runs without the lock: it may take long. When another writer got in between, it runs again on
    /// the new bytes, so that writers of one process take turns as they do under the lock on disk.
    fn update(&self, path: &str, options: &UpdateOptions, change: &mut Change<'_>) -> Result<bool> {
        let target = Target::parse_for_change(path, &self.protected)?;
        loop {
            let before = self.file(&target)?;
            let size = before.content.len() as u64;
            if size > options.max_bytes {
                return Err(target.too_large(size, options.max_bytes));
            }
            let Some(content) = change(&before.content)? else {
                return Ok(false);
            };
            target.check_cancel(options.cancel.as_ref())?;
            let mut root = self.write_root();
            let place = find(&root, &target)?;
            if !matches!(place.found, Found::File(now) if Arc::ptr_eq(now, &before)) {
                continue;
            }
            let Some((name, parents)) = place.names.split_last() else {
                return Err(target.is_directory());
            };
            let file = MemoryFile {
                content: content.into_boxed_slice(),
                mtime_ms: now_ms(),
                mode: before.mode,
            };
            let parent = root.make_at(parents).ok_or_else(|| target.not_directory())?;
            parent.insert(name, Node::File(Arc::new(file)));
            return Ok(true);
        }
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let target = Target::parse(path)?;
        let root = self.read_root();
        Ok(match find(&root, &target) {
            Ok(place) => match place.found {
                Found::Root(directory) | Found::Directory(directory) => Some(Stat {
                    file_type: FileType::Directory,
                    size: 0,
                    mtime_ms: directory.mtime_ms,
                    mode: DIRECTORY_MODE,
                }),
                Found::File(file) => Some(Stat {
                    file_type: FileType::File,
                    size: file.content.len() as u64,
                    mtime_ms: file.mtime_ms,
                    mode: file.mode,
                }),
                Found::Nothing { .. } | Found::NoParent => None,
            },
            Err(error) if matches!(error.code, ErrorCode::NotFound | ErrorCode::NotDirectory) => None,
            Err(error) => return Err(error),
        })
    }

    fn stat_now(&self, path: &str) -> Option<Result<Option<Stat>>> {
        Some(self.stat(path))
    }

    fn read_dir(&self, path: &str, sizes: bool) -> Result<Vec<Entry>> {
        let target = Target::parse(path)?;
        let directory = self.directory(&target)?;
        let mut entries = Vec::with_capacity(directory.children.len());
        for (name, node) in &directory.children {
            let (file_type, size) = match node {
                Node::File(file) => (FileType::File, sizes.then_some(file.content.len() as u64)),
                Node::Directory(_) => (FileType::Directory, None),
            };
            let name = name.to_string();
            entries.push(Entry {
                name,
                addressable: true,
                file_type,
                link_target: None,
                size,
            });
        }
        Ok(entries)
    }

    fn make_dir(&self, path: &str) -> Result<()> {
        let mut target = Target::parse_for_change(path, &self.protected)?;
        // A directory is what is asked for either way.
        target.parsed.must_be_directory = false;
        let mut root = self.write_root();
        let place = find(&root, &target)?;
        match place.found {
            Found::Root(_) | Found::Directory(_) => Ok(()),
            Found::File(_) => Err(target.exists()),
            Found::Nothing { .. } | Found::NoParent => {
                let names = place.names;
                root.make_at(&names)
                    .map(|_| ())
                    .ok_or_else(|| target.not_directory())
            }
        }
    }

    fn remove(&self, path: &str, options: &RemoveOptions) -> Result<()> {
        let target = Target::parse_for_change(path, &self.protected)?;
        let mut root = self.write_root();
        let place = find(&root, &target)?;
        match place.found {
            Found::Root(_) => return Err(target.is_root("removed")),
            Found::Nothing { parent } => {
                return Err(target.not_found_among(parent.children.keys().map(AsRef::as_ref)));
            }
            Found::NoParent => return Err(target.not_found()),
            Found::Directory(directory) if !options.recursive && !directory.children.is_empty() => {
                return Err(target.not_empty());
            }
            Found::Directory(directory) if holds_protected(directory, &self.protected) => {
                return Err(target.holds_protected());
            }
            Found::Directory(_) | Found::File(_) => {}
        }
        target.check_cancel(options.cancel.as_ref())?;
        let names = place.names;
        take(&mut root, &names)
            .map(|_| ())
            .ok_or_else(|| target.not_found())
    }

    fn rename(&self, from: &str, to: &str, overwrite: bool) -> Result<()> {
        let source = Target::parse_for_change(from, &self.protected)?;
        let mut target = Target::parse_for_change(to, &self.protected)?;
        // Looked at below: that something exists is said first.
        let slash = std::mem::take(&mut target.parsed.must_be_directory);
        let mut root = self.write_root();
        let from_place = find(&root, &source)?;
        let moves_directory = match from_place.found {
            Found::Root(_) => return Err(source.is_root("renamed")),
            Found::Nothing { parent } => {
                return Err(source.not_found_among(parent.children.keys().map(AsRef::as_ref)));
            }
            Found::NoParent => return Err(source.not_found()),
            Found::File(_) => false,
            Found::Directory(_) => true,
        };
        let to_place = find(&root, &target)?;
        let (from_names, to_names) = (&from_place.names, &to_place.names);
        // In the order in which the kernel decides, so that each case has one code on both trees.
        match to_place.found {
            Found::Root(_) => return Err(target.is_root("replaced")),
            Found::File(_) | Found::Directory(_) if !overwrite => return Err(target.exists()),
            // A file cannot become `x/`.
            Found::NoParent if slash && !moves_directory => return Err(target.not_found()),
            _ if slash && !moves_directory => return Err(target.not_directory()),
            _ if from_names == to_names => return Ok(()),
            _ if moves_directory && to_names.starts_with(from_names) => {
                return Err(source.moved_into_itself());
            }
            Found::Directory(_) if from_names.starts_with(to_names) => return Err(target.not_empty()),
            Found::File(_) if moves_directory => return Err(target.replaces_file()),
            Found::Directory(_) if !moves_directory => return Err(target.replaces_directory()),
            Found::Directory(directory) if !directory.children.is_empty() => return Err(target.not_empty()),
            Found::File(_) | Found::Directory(_) | Found::Nothing { .. } | Found::NoParent => {}
        }
        let (from_names, to_names) = (from_place.names, to_place.names);
        let Some((name, parents)) = to_names.split_last() else {
            return Err(target.is_root("replaced"));
        };
        let node = take(&mut root, &from_names).ok_or_else(|| source.not_found())?;
        let parent = root.make_at(parents).ok_or_else(|| target.not_directory())?;
        parent.insert(name, node);
        Ok(())
    }

    fn set_mode(&self, path: &str, mode: u32) -> Result<()> {
        let target = Target::parse_for_change(path, &self.protected)?;
        let mut root = self.write_root();
        let place = find(&root, &target)?;
        let old = match place.found {
            Found::File(file) => Arc::clone(file),
            Found::Root(_) | Found::Directory(_) => return Err(target.is_directory()),
            Found::Nothing { .. } | Found::NoParent => return Err(target.not_found()),
        };
        let names = place.names;
        let Some((name, parents)) = names.split_last() else {
            return Err(target.is_directory());
        };
        let file = MemoryFile {
            content: old.content.clone(),
            mtime_ms: old.mtime_ms,
            mode: mode & 0o777,
        };
        let parent = root.make_at(parents).ok_or_else(|| target.not_directory())?;
        parent.insert(name, Node::File(Arc::new(file)));
        Ok(())
    }

    fn open_walk(&self, path: &str) -> Result<WalkStart> {
        let target = Target::parse(path)?;
        let root = Arc::clone(&self.read_root());
        let place = find(&root, &target)?;
        let names = &place.names;
        let mut above: Vec<(String, Box<dyn super::Folder>)> = Vec::new();
        let mut directory = &root;
        for (depth, name) in names.iter().enumerate() {
            let path = if depth == 0 {
                ".".to_owned()
            } else {
                names[..depth].join("/")
            };
            above.push((path, Box::new(MemoryFolder(Arc::clone(directory)))));
            match directory.children.get(*name) {
                Some(Node::Directory(child)) => directory = child,
                Some(Node::File(_)) | None => break,
            }
        }
        let path = target.parsed.normalized();
        match place.found {
            Found::Root(directory) | Found::Directory(directory) => Ok(WalkStart::Folder {
                folder: Box::new(MemoryFolder(Arc::clone(directory))),
                path,
                above,
            }),
            Found::File(_) => {
                let name = names
                    .last()
                    .map(|name| name.as_bytes().to_vec())
                    .unwrap_or_default();
                let parent = above.pop().ok_or_else(|| target.not_found())?.1;
                Ok(WalkStart::File { parent, name, path })
            }
            Found::Nothing { parent } => {
                Err(target.not_found_among(parent.children.keys().map(AsRef::as_ref)))
            }
            Found::NoParent => Err(target.not_found()),
        }
    }
}

fn take(root: &mut Arc<Directory>, names: &[&str]) -> Option<Node> {
    let (name, parents) = names.split_last()?;
    root.make_at(parents)?.take(name)
}

fn holds_protected(directory: &Arc<Directory>, protected: &ProtectedNames) -> bool {
    let mut open = vec![directory];
    while let Some(directory) = open.pop() {
        for (name, node) in &directory.children {
            if protected.covers(name) {
                return true;
            }
            if let Node::Directory(child) = node {
                open.push(child);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests;
