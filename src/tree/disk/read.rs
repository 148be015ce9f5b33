//! Reading a whole file, or holding it open for parts, after looking at what was opened.

use super::DiskTree;
use crate::error::{Error, ErrorCode, Result};
use crate::tree::OpenFile;
use crate::tree::refusal::Target;
use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `O_NONBLOCK`: opening a FIFO must not wait for its other end; a regular file does not care. `O_NOCTTY`: a
/// terminal must not become ours.
pub(super) const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

impl DiskTree {
    pub(super) fn read_whole(&self, target: &Target<'_>, max_bytes: u64) -> Result<Vec<u8>> {
        let (fd, stat) = self.open_regular(target)?;
        read_up_to(target, fd.as_fd(), size_of(&stat), max_bytes)
    }

    pub(super) fn open_for_parts(&self, target: &Target<'_>) -> Result<Box<dyn OpenFile>> {
        let (fd, stat) = self.open_regular(target)?;
        Ok(Box::new(DiskFile {
            fd,
            size: size_of(&stat),
            path: target.written.to_owned(),
        }))
    }

    pub(super) fn open_regular(&self, target: &Target<'_>) -> Result<(OwnedFd, Stat)> {
        let fd = self.open_target(target, READ)?;
        let stat = self.check_regular(target, fd.as_fd())?;
        Ok((fd, stat))
    }

    /// By what was opened, never by its name: a regular file, and not one of procfs or the like.
    pub(super) fn check_regular(&self, target: &Target<'_>, fd: BorrowedFd<'_>) -> Result<Stat> {
        let stat = rustix::fs::fstat(fd).map_err(|errno| target.os_error(errno, "read"))?;
        match super::raw_type(&stat) {
            rustix::fs::FileType::RegularFile => {}
            rustix::fs::FileType::Directory => return Err(target.is_directory()),
            _ => return Err(target.not_regular()),
        }
        self.refuse_virtual_device(target, fd, super::identity(&stat).0)?;
        Ok(stat)
    }
}

pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The content from the start; `size` is what `fstat` said, and the file may have grown since.
pub(super) fn read_up_to(
    target: &Target<'_>,
    fd: BorrowedFd<'_>,
    size: u64,
    max_bytes: u64,
) -> Result<Vec<u8>> {
    if size > max_bytes {
        return Err(target.too_large(size, max_bytes));
    }
    // One byte more than the size: the read that fills all but it has seen the end.
    let capacity = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(1);
    let mut content = Vec::new();
    content
        .try_reserve_exact(capacity)
        .map_err(|_| target.refuse(ErrorCode::TooLarge, "does not fit into memory"))?;
    loop {
        if content.len() as u64 > max_bytes {
            return Err(target.too_large(content.len() as u64, max_bytes));
        }
        if content.len() == content.capacity() {
            content.reserve(64 * 1024);
        }
        let offset = content.len() as u64;
        let had = content.capacity() - content.len();
        match rustix::io::pread(fd, rustix::buffer::spare_capacity(&mut content), offset) {
            Ok(0) => return Ok(content),
            // A short read of a regular file is its end.
            Ok(read) if read < had => {
                if content.len() as u64 > max_bytes {
                    return Err(target.too_large(content.len() as u64, max_bytes));
                }
                return Ok(content);
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(target.os_error(errno, "read")),
        }
    }
}

struct DiskFile {
    fd: OwnedFd,
    size: u64,
    path: String,
}

impl OpenFile for DiskFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::pread(&self.fd, &mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    let message = format!("{} could not be read: {errno}", crate::path::quoted(&self.path));
                    return Err(Error::new(ErrorCode::Io, message).at(self.path.clone()));
                }
            }
        }
        Ok(filled)
    }
}
