//! A directory on disk as a tree: opened once, and every operation resolved from that descriptor and done on the
//! descriptor it got. One file for each operation; the differences of operating systems are in `sys`.
//!
//! No path string is ever checked and then used: between the two another process can put a link in its place.

mod errno;
mod folder;
mod list;
mod lock;
mod make_dir;
mod metadata;
mod now;
mod read;
mod remove;
mod rename;
mod resolve;
mod root;
mod stat;
mod sys;
mod temp;
mod walk;
mod write;

use super::gate::SharedGate;
use super::refusal::Target;
use super::{
    Change, Entry, FileType, Flush, OpenFile, RemoveOptions, Stat, Symlinks, Tree, UpdateOptions, WalkStart,
    WriteOptions,
};
use crate::error::Result;
use crate::path::ProtectedNames;
use rustix::fs::AtFlags;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

pub use root::Resolver;

pub struct DiskTree {
    root: OwnedFd,
    /// What absolute links are compared with, and what the user is told; never opened again.
    real_path: PathBuf,
    /// As the user wrote it, made absolute: an absolute link may have been made by that name.
    given_path: PathBuf,
    /// `st_dev` of the root.
    device: u64,
    symlinks: Symlinks,
    protected: ProtectedNames,
    flush: Flush,
    resolver: Resolver,
    /// Judges what paths resolve to. With one, links are followed by the walk only, which names what it resolves.
    gate: Option<SharedGate>,
}

impl DiskTree {
    /// The root's path when it was opened. The tree stays with that directory if it is renamed.
    pub fn real_path(&self) -> &Path {
        &self.real_path
    }

    pub fn set_gate(&mut self, gate: SharedGate) {
        self.gate = Some(gate);
    }

    /// What resolves paths at this moment: a filter may be laid over the process at any time.
    pub fn resolver_in_force(&self) -> Resolver {
        let beneath = sys::Beneath::default();
        match sys::open_beneath(self.root.as_fd(), ".", sys::DIRECTORY, beneath) {
            Err(sys::BeneathError::Unavailable) => Resolver::Walk,
            Ok(_) | Err(sys::BeneathError::Failed(_)) => self.resolver,
        }
    }

    /// Opens a directory as the working directory of a command (`fchdir` in the child).
    pub fn open_directory(&self, path: &str) -> Result<OwnedFd> {
        let target = Target::parse(path)?;
        let fd = self.open_target(&target, sys::DIRECTORY.difference(rustix::fs::OFlags::NOFOLLOW))?;
        self.refuse_virtual(&target, fd.as_fd())?;
        Ok(fd)
    }
}

impl Tree for DiskTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>> {
        self.read_whole(&Target::parse(path)?, max_bytes)
    }

    fn read_now(&self, path: &str, max_bytes: u64) -> Option<Result<Vec<u8>>> {
        match Target::parse(path) {
            Ok(target) => self.read_cached(&target, max_bytes).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn OpenFile>> {
        self.open_for_parts(&Target::parse(path)?)
    }

    fn write(&self, path: &str, content: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_whole(
            &Target::parse_for_change(path, &self.protected)?,
            content,
            options,
        )
    }

    fn update(&self, path: &str, options: &UpdateOptions, change: &mut Change<'_>) -> Result<bool> {
        self.update_whole(&Target::parse_for_change(path, &self.protected)?, options, change)
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.stat_target(&Target::parse(path)?)
    }

    fn stat_now(&self, path: &str) -> Option<Result<Option<Stat>>> {
        match Target::parse(path) {
            Ok(target) => self.stat_cached(&target).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    fn read_dir(&self, path: &str, sizes: bool) -> Result<Vec<Entry>> {
        self.list(&Target::parse(path)?, sizes)
    }

    fn make_dir(&self, path: &str) -> Result<()> {
        self.make_directories(&Target::parse_for_change(path, &self.protected)?)
    }

    fn remove(&self, path: &str, options: &RemoveOptions) -> Result<()> {
        self.remove_target(&Target::parse_for_change(path, &self.protected)?, options)
    }

    fn rename(&self, from: &str, to: &str, overwrite: bool) -> Result<()> {
        let source = Target::parse_for_change(from, &self.protected)?;
        let target = Target::parse_for_change(to, &self.protected)?;
        self.rename_target(&source, &target, overwrite)
    }

    fn set_mode(&self, path: &str, mode: u32) -> Result<()> {
        self.set_mode_of(&Target::parse_for_change(path, &self.protected)?, mode)
    }

    fn open_walk(&self, path: &str) -> Result<WalkStart> {
        self.open_walk_at(&Target::parse(path)?)
    }

    fn resolved(&self, path: &str) -> Result<String> {
        self.followed_path(&Target::parse(path)?)
    }
}

/// Device and inode, the same width everywhere.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
fn raw_type(stat: &rustix::fs::Stat) -> rustix::fs::FileType {
    rustix::fs::FileType::from_raw_mode(stat.st_mode as rustix::fs::RawMode)
}

fn is_link(stat: &rustix::fs::Stat) -> bool {
    raw_type(stat) == rustix::fs::FileType::Symlink
}

fn file_type(found: rustix::fs::FileType) -> FileType {
    match found {
        rustix::fs::FileType::RegularFile => FileType::File,
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::Symlink,
        _ => FileType::Other,
    }
}

/// For file systems whose listings do not carry types.
fn type_of_entry(dir: BorrowedFd<'_>, name: &[u8]) -> FileType {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_or(FileType::Other, |stat| file_type(raw_type(&stat)))
}

#[cfg(test)]
mod tests;
