//! Unix systems other than Linux: no `openat2`, so every path is walked component by component, and nothing is
//! answered without the disk. Compiles and is plausible; enforced and tested is Linux.

use super::{Beneath, BeneathError, Existing};
use crate::tree::{EntryList, Stat};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::{Errno, Result};
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A directory as a place to resolve from.
pub(in super::super) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A file to ask about but not to read.
pub(in super::super) const ASK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

pub(in super::super) fn open_beneath(
    _dir: BorrowedFd<'_>,
    _path: &str,
    _flags: OFlags,
    _beneath: Beneath,
) -> std::result::Result<OwnedFd, BeneathError> {
    Err(BeneathError::Unavailable)
}

pub(in super::super) fn open_child(
    dir: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
) -> Result<(OwnedFd, bool)> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty()).map(|fd| (fd, false))
}

pub(in super::super) fn read_cached(_fd: BorrowedFd<'_>, _buffer: &mut [u8], _offset: u64) -> Result<usize> {
    Err(Errno::AGAIN)
}

pub(in super::super) fn stat_cached(_fd: BorrowedFd<'_>) -> Result<(u64, Stat)> {
    Err(Errno::AGAIN)
}

pub(in super::super) fn read_entries(dir: BorrowedFd<'_>, out: &mut EntryList) -> Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let found = match entry.file_type() {
            rustix::fs::FileType::Unknown => super::super::type_of_entry(dir, name),
            known => super::super::file_type(known),
        };
        out.push(name, found);
    }
    Ok(())
}

/// macOS has no procfs; devices are refused by their file type.
pub(in super::super) fn is_virtual(_fd: BorrowedFd<'_>) -> Result<bool> {
    Ok(false)
}

/// The caller renames instead.
pub(in super::super) fn exchange(_dir: BorrowedFd<'_>, _one: &[u8], _other: &[u8]) -> Result<()> {
    Err(Errno::NOSYS)
}

pub(in super::super) fn rename(
    from_dir: BorrowedFd<'_>,
    from: &[u8],
    to_dir: BorrowedFd<'_>,
    to: &[u8],
    existing: Existing,
) -> Result<()> {
    match existing {
        Existing::Replace => rustix::fs::renameat(from_dir, from, to_dir, to),
        #[cfg(target_vendor = "apple")]
        Existing::Refuse => {
            rustix::fs::renameat_with(from_dir, from, to_dir, to, rustix::fs::RenameFlags::NOREPLACE)
        }
        // The caller then links and unlinks, which never replaces.
        #[cfg(not(target_vendor = "apple"))]
        Existing::Refuse => Err(Errno::INVAL),
    }
}

pub(in super::super) fn list_attributes(_file: &File) -> Result<Vec<u8>> {
    Err(Errno::NOTSUP)
}

pub(in super::super) fn copy_attribute(_from: &File, _to: &File, _name: &[u8]) -> Result<()> {
    Err(Errno::NOTSUP)
}

pub(in super::super) fn remove_attribute(_file: &File, _name: &[u8]) -> Result<()> {
    Err(Errno::NOTSUP)
}
