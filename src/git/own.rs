//! Whether everything of a repository lies in its `.git`: objects or an index from elsewhere would be shown as if they
//! were of the workspace, whatever the agent may read.
//!
//! Looked at before git starts, so it is about repositories that were made as a trap, not about a process that
//! changes `.git` at the same moment: who can do that can read those files itself.

use crate::error::{Error, ErrorCode, Result};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

/// Each has to be a real file or directory, if it is there.
const OWN: [&str; 4] = ["objects", "refs", "index", "packed-refs"];
const ALTERNATES: &str = "objects/info/alternates";

pub(super) fn check(git: BorrowedFd<'_>) -> Result<()> {
    if exists(git, "commondir") {
        return refuse(
            ".git/commondir names a repository elsewhere: open the repository's own directory instead",
        );
    }
    // Made by git clone --shared and --reference.
    if exists(git, ALTERNATES) {
        return refuse(
            ".git/objects/info/alternates borrows objects from elsewhere: in a shell, git repack -a -d copies them, then remove that file",
        );
    }
    if let Some(name) = OWN.into_iter().find(|name| is_link(git, name)) {
        return refuse(&leads_elsewhere(&format!(".git/{name}")));
    }
    match link_in(git, "objects", 2) {
        Some(path) => refuse(&leads_elsewhere(&format!(".git/{path}"))),
        None => Ok(()),
    }
}

fn refuse<T>(message: &str) -> Result<T> {
    Err(Error::new(ErrorCode::GitFailed, message))
}

fn leads_elsewhere(path: &str) -> String {
    format!("{path} is a link, which may lead out of the workspace: open a repository that is whole instead")
}

fn exists(git: BorrowedFd<'_>, path: &str) -> bool {
    !matches!(
        rustix::fs::statat(git, path, AtFlags::SYMLINK_NOFOLLOW),
        Err(Errno::NOENT)
    )
}

fn is_link(git: BorrowedFd<'_>, path: &str) -> bool {
    rustix::fs::statat(git, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// The first link among the entries down to `depth` levels: a directory of loose objects, an object, a pack.
fn link_in(dir: BorrowedFd<'_>, path: &str, depth: usize) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = path.rsplit('/').next()?;
    let folder = rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?;
    for entry in Dir::read_from(&folder).ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let below = format!("{path}/{name}");
        match entry.file_type() {
            FileType::Symlink => return Some(below),
            FileType::Unknown if is_link(folder.as_fd(), &name) => return Some(below),
            FileType::Directory | FileType::Unknown if depth > 1 && name != "." && name != ".." => {
                if let Some(found) = link_in(folder.as_fd(), &below, depth - 1) {
                    return Some(found);
                }
            }
            _ => {}
        }
    }
    None
}
