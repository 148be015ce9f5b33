//! Removing a name, and what is below it: by descriptors, following no link, however deep the tree is.

use super::DiskTree;
use super::lock::{Key, lock};
use super::resolve::Located;
use super::sys;
use super::walk::Missing;
use crate::error::Result;
use crate::tree::refusal::Target;
use crate::tree::{EntryList, FileType, RemoveOptions};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Directories held open at once; those above are found again by `..` and their identity.
const MAX_OPEN: usize = 64;

impl DiskTree {
    pub(super) fn remove_target(&self, target: &Target<'_>, options: &RemoveOptions) -> Result<()> {
        let cancel = options.cancel.as_ref();
        target.check_cancel(cancel)?;
        let at = self
            .locate(target, Missing::Refuse)?
            .ok_or_else(|| target.is_root("removed"))?;
        let _lock = lock(Key::Name(at.dir_id, at.name.clone()), cancel).ok_or_else(|| target.aborted())?;
        let refuse = |errno| match errno {
            Errno::NOENT => self.not_found_in(at.dir.as_fd(), target),
            // POSIX lets a file system say EEXIST.
            Errno::EXIST => target.not_empty(),
            errno => target.os_error(errno, "removed"),
        };
        let stat =
            rustix::fs::statat(at.dir.as_fd(), &at.name[..], AtFlags::SYMLINK_NOFOLLOW).map_err(refuse)?;
        if super::raw_type(&stat) != rustix::fs::FileType::Directory {
            if at.must_be_directory {
                return Err(target.not_directory());
            }
            return rustix::fs::unlinkat(at.dir.as_fd(), &at.name[..], AtFlags::empty()).map_err(refuse);
        }
        if options.recursive {
            self.refuse_protected_below(target, &at)?;
            let mut emptying = Descent::start(target, &at, Pass::Remove)?;
            while emptying.step(target, self)? {
                target.check_cancel(cancel)?;
            }
        }
        rustix::fs::unlinkat(at.dir.as_fd(), &at.name[..], AtFlags::REMOVEDIR).map_err(refuse)
    }

    /// All or nothing: a repository below is found before anything is gone.
    fn refuse_protected_below(&self, target: &Target<'_>, at: &Located<'_>) -> Result<()> {
        let mut looking = Descent::start(target, at, Pass::Look)?;
        while looking.step(target, self)? {}
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Look,
    Remove,
}

/// Depth first through a directory, without recursion: a tree may be deeper than a thread's stack.
struct Descent {
    pass: Pass,
    levels: Vec<Level>,
}

struct Level {
    /// Closed while deep below.
    fd: Option<OwnedFd>,
    identity: (u64, u64),
    /// The name in the level above; of the first, in the located directory.
    name: Vec<u8>,
    entries: EntryList,
    next: usize,
}

impl Descent {
    fn start(target: &Target<'_>, at: &Located<'_>, pass: Pass) -> Result<Self> {
        let mut descent = Self {
            pass,
            levels: Vec::new(),
        };
        descent.enter(target, at.dir.as_fd(), &at.name)?;
        Ok(descent)
    }

    fn enter(&mut self, target: &Target<'_>, dir: BorrowedFd<'_>, name: &[u8]) -> Result<()> {
        let refuse = |errno| target.os_error(errno, "removed");
        let fd = rustix::fs::openat(dir, name, OPEN, Mode::empty()).map_err(refuse)?;
        let identity = super::identity(&rustix::fs::fstat(&fd).map_err(refuse)?);
        let mut entries = EntryList::default();
        sys::read_entries(fd.as_fd(), &mut entries).map_err(refuse)?;
        if let Some(above) = self.levels.len().checked_sub(MAX_OPEN) {
            self.levels[above].fd = None;
        }
        self.levels.push(Level {
            fd: Some(fd),
            identity,
            name: name.to_vec(),
            entries,
            next: 0,
        });
        Ok(())
    }

    /// One entry further; `false` at the end.
    fn step(&mut self, target: &Target<'_>, tree: &DiskTree) -> Result<bool> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(false);
        };
        let Some(fd) = level.fd.as_ref() else {
            return Err(target.kept_moving());
        };
        if level.next == level.entries.len() {
            return self.leave(target).map(|()| !self.levels.is_empty());
        }
        let (name, file_type) = level.entries.get(level.next);
        level.next += 1;
        if tree.protected.covers_bytes(name) {
            return Err(target.holds_protected());
        }
        if file_type != FileType::Directory {
            if self.pass == Pass::Look {
                return Ok(true);
            }
            return match rustix::fs::unlinkat(fd, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => Ok(true),
                Err(errno) => Err(target.os_error(errno, "removed")),
            };
        }
        let name = name.to_vec();
        let fd = fd
            .try_clone()
            .map_err(|_| target.os_error(Errno::MFILE, "removed"))?;
        self.enter(target, fd.as_fd(), &name)?;
        Ok(true)
    }

    /// Back to the level above, which loses the directory just emptied.
    fn leave(&mut self, target: &Target<'_>) -> Result<()> {
        let Some(done) = self.levels.pop() else {
            return Ok(());
        };
        let Some(above) = self.levels.last_mut() else {
            return Ok(());
        };
        if above.fd.is_none() {
            // Not by its name: by what `..` of the open directory is, and only if that is the one we came from.
            let refuse = |errno| target.os_error(errno, "removed");
            let here = done.fd.as_ref().ok_or_else(|| target.kept_moving())?;
            let parent = rustix::fs::openat(here, "..", OPEN, Mode::empty()).map_err(refuse)?;
            if super::identity(&rustix::fs::fstat(&parent).map_err(refuse)?) != above.identity {
                return Err(target.kept_moving());
            }
            above.fd = Some(parent);
        }
        let Some(fd) = &above.fd else {
            return Err(target.kept_moving());
        };
        if self.pass == Pass::Look {
            return Ok(());
        }
        match rustix::fs::unlinkat(fd, &done.name[..], AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(target.os_error(errno, "removed")),
        }
    }
}
