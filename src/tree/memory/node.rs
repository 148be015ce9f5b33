//! The nodes of the tree in memory and how a path finds them; what the operations do is left to `memory`.
//!
//! Directories are shared until they change (copy on write), so that a walk or a snapshot sees one state of
//! the tree and holds no lock. A file of 1 KB takes about 1.2 KiB.

use super::super::refusal::Target;
use crate::error::Result;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file as it was at one moment.
#[derive(Debug)]
pub struct MemoryFile {
    pub(super) content: Box<[u8]>,
    pub(super) mtime_ms: f64,
    pub(super) mode: u32,
}

impl MemoryFile {
    pub fn content(&self) -> &[u8] {
        &self.content
    }
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Arc<MemoryFile>),
    Directory(Arc<Directory>),
}

#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) children: BTreeMap<Box<str>, Node>,
    pub(super) mtime_ms: f64,
}

impl Directory {
    pub(super) fn empty() -> Self {
        Self {
            children: BTreeMap::new(),
            mtime_ms: now_ms(),
        }
    }

    /// The directory at `names`, made or unshared on the way. `None` when a file is in the way.
    pub(super) fn make_at(self: &mut Arc<Self>, names: &[&str]) -> Option<&mut Directory> {
        let mut directory = Arc::make_mut(self);
        for &name in names {
            if !directory.children.contains_key(name) {
                directory.mtime_ms = now_ms();
                directory
                    .children
                    .insert(name.into(), Node::Directory(Arc::new(Directory::empty())));
            }
            match directory.children.get_mut(name) {
                Some(Node::Directory(child)) => directory = Arc::make_mut(child),
                Some(Node::File(_)) | None => return None,
            }
        }
        Some(directory)
    }

    pub(super) fn insert(&mut self, name: &str, node: Node) {
        self.mtime_ms = now_ms();
        self.children.insert(name.into(), node);
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Node> {
        self.mtime_ms = now_ms();
        self.children.remove(name)
    }
}

/// Where a path leads: the names from the root, and what is there.
pub(super) struct Place<'t, 'p> {
    pub(super) names: Vec<&'p str>,
    pub(super) found: Found<'t>,
}

pub(super) enum Found<'t> {
    Root(&'t Arc<Directory>),
    File(&'t Arc<MemoryFile>),
    Directory(&'t Arc<Directory>),
    /// The parent is there, the last name is not.
    Nothing {
        parent: &'t Directory,
    },
    /// Not even the parent is there.
    NoParent,
}

impl<'t> Found<'t> {
    fn of(node: &'t Node) -> Self {
        match node {
            Node::File(file) => Found::File(file),
            Node::Directory(directory) => Found::Directory(directory),
        }
    }
}

/// Follows a path as a file system does: each step needs the one before to be there and to be a directory, so
/// `nope/../g` is not found.
pub(super) fn find<'t, 'p>(root: &'t Arc<Directory>, target: &Target<'p>) -> Result<Place<'t, 'p>> {
    let mut names: Vec<&'p str> = Vec::new();
    let mut above: Vec<Found<'t>> = Vec::new();
    let mut found = Found::Root(root);
    for &component in &target.parsed.components {
        let directory = match found {
            Found::Root(directory) | Found::Directory(directory) => directory,
            Found::File(_) => return Err(target.not_directory()),
            Found::Nothing { .. } | Found::NoParent if component == ".." => return Err(target.not_found()),
            Found::Nothing { .. } | Found::NoParent => {
                names.push(component);
                found = Found::NoParent;
                continue;
            }
        };
        if component == ".." {
            names.pop();
            found = above.pop().unwrap_or(Found::Root(root));
            continue;
        }
        above.push(found);
        names.push(component);
        found = directory
            .children
            .get(component)
            .map_or(Found::Nothing { parent: directory }, Found::of);
    }
    if target.parsed.must_be_directory && matches!(found, Found::File(_)) {
        return Err(target.not_directory());
    }
    Ok(Place { names, found })
}

pub(super) fn now_ms() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}
