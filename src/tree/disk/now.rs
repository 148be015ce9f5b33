//! Answers that provably need no disk, for the caller's own thread: the kernel is asked for what it has cached
//! and says so when it would have to wait. Everything else is left to the ordinary calls, errors included.

use super::read::READ;
use super::sys::{Beneath, BeneathError};
use super::{DiskTree, Resolver, sys};
use crate::tree::refusal::Target;
use crate::tree::{FileType, Stat, Symlinks};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};

/// Copying more than this holds the event loop longer than a thread hop costs.
const MAX_CACHED_BYTES: u64 = 256 * 1024;

impl DiskTree {
    pub(super) fn read_cached(&self, target: &Target<'_>, max_bytes: u64) -> Option<Vec<u8>> {
        let fd = self
            .open_cached(target, READ, self.symlinks == Symlinks::Inside)
            .ok()?;
        let (device, stat) = sys::stat_cached(fd.as_fd()).ok()?;
        let quick = stat.file_type == FileType::File && device == self.device;
        if !quick || stat.size > max_bytes.min(MAX_CACHED_BYTES) {
            return None;
        }
        let mut content = vec![0; usize::try_from(stat.size).ok()? + 1];
        let mut filled = 0;
        loop {
            let read = sys::read_cached(fd.as_fd(), &mut content[filled..], filled as u64).ok()?;
            filled += read;
            if read == 0 {
                content.truncate(filled);
                return Some(content);
            }
            // It grew meanwhile: not the quick case.
            if filled == content.len() {
                return None;
            }
        }
    }

    pub(super) fn stat_cached(&self, target: &Target<'_>) -> Option<Option<Stat>> {
        // Without links, so that "not there" is not a dead link.
        let fd = match self.open_cached(target, sys::ASK, false) {
            Ok(fd) => fd,
            Err(BeneathError::Failed(Errno::NOENT)) => return Some(None),
            Err(BeneathError::Failed(_) | BeneathError::Unavailable) => return None,
        };
        let (_, stat) = sys::stat_cached(fd.as_fd()).ok()?;
        if target.parsed.must_be_directory && stat.file_type != FileType::Directory {
            return None;
        }
        Some(Some(stat))
    }

    fn open_cached(
        &self,
        target: &Target<'_>,
        flags: OFlags,
        follow_links: bool,
    ) -> std::result::Result<OwnedFd, BeneathError> {
        if self.resolver == Resolver::Walk || (follow_links && self.gate.is_some()) {
            return Err(BeneathError::Unavailable);
        }
        let beneath = Beneath {
            follow_links,
            cached_only: true,
        };
        let flags = if target.parsed.must_be_directory {
            flags | OFlags::DIRECTORY
        } else {
            flags
        };
        match target.parsed.components.as_slice() {
            [] => sys::open_beneath(self.root.as_fd(), ".", flags, beneath),
            [name] => sys::open_beneath(self.root.as_fd(), name, flags, beneath),
            names => sys::open_beneath(self.root.as_fd(), &names.join("/"), flags, beneath),
        }
    }
}
