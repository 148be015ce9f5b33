//! The file that a write is prepared in: beside its target, so that the rename stays in one directory, and gone
//! unless it was committed.

use super::sys::{self, Existing};
use crate::error::{Error, ErrorCode, Result};
use crate::tree::refusal::Target;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;

pub(super) struct Temp<'d> {
    dir: BorrowedFd<'d>,
    name: Vec<u8>,
    pub(super) file: File,
    committed: bool,
}

impl<'d> Temp<'d> {
    /// The name is random, so that nothing can be planted in its place, and `O_EXCL` follows no link.
    pub(super) fn create(dir: BorrowedFd<'d>, mode: u32, target: &Target<'_>) -> Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[allow(clippy::useless_conversion)]
        let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
        for _ in 0..8 {
            let name = random_name()?;
            match rustix::fs::openat(dir, &name[..], flags, mode) {
                Ok(fd) => {
                    return Ok(Self {
                        dir,
                        name,
                        file: File::from(fd),
                        committed: false,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(target.os_error(errno, "written")),
            }
        }
        Err(target.os_error(Errno::EXIST, "written"))
    }

    pub(super) fn write(&mut self, content: &[u8], target: &Target<'_>) -> Result<()> {
        self.file.write_all(content).map_err(|error| io(target, &error))
    }

    /// Content that has reached the disk before the name does: after a power cut the name holds all or nothing.
    pub(super) fn sync(&self, target: &Target<'_>) -> Result<()> {
        self.file.sync_all().map_err(|error| io(target, &error))
    }

    /// Takes the place of `name`.
    pub(super) fn commit(mut self, name: &[u8], existing: Existing, target: &Target<'_>) -> Result<()> {
        let renamed = match sys::rename(self.dir, &self.name, self.dir, name, existing) {
            // A file system without RENAME_NOREPLACE: a hard link never replaces either.
            Err(Errno::INVAL | Errno::NOSYS) if existing == Existing::Refuse => {
                rustix::fs::linkat(self.dir, &self.name[..], self.dir, name, AtFlags::empty())
            }
            renamed => {
                self.committed = renamed.is_ok();
                renamed
            }
        };
        renamed.map_err(|errno| target.os_error(errno, "written"))
    }

    /// As `commit` over a file, for content whose flush is left to the kernel: a rename that replaces a file has ext4
    /// start the write-out at once (auto_da_alloc), which is most of what a small write takes. So the two change
    /// places, and the old one is removed by the temporary name.
    pub(super) fn swap(mut self, name: &[u8], target: &Target<'_>) -> Result<()> {
        match sys::exchange(self.dir, &self.name, name) {
            Ok(()) => {}
            // Nothing to change places with, or a file system that cannot.
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                return self.commit(name, Existing::Replace, target);
            }
            Err(errno) => return Err(target.os_error(errno, "written")),
        }
        let Err(errno) = rustix::fs::unlinkat(self.dir, &self.name[..], AtFlags::empty()) else {
            self.committed = true;
            return Ok(());
        };
        // A directory in the last moment, which a rename would not have replaced. Should it not go back, our file has
        // the name, and dropping this must not empty it.
        self.committed = sys::exchange(self.dir, &self.name, name).is_err();
        Err(target.os_error(errno, "written"))
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // Nothing more can be done about a failure here, and the first error is the one to report. Emptied
            // first: a process forked in this moment holds the file until it calls exec, and a full disk
            // would stay full for as long.
            let _ = self.file.set_len(0);
            let _ = rustix::fs::unlinkat(self.dir, &self.name[..], AtFlags::empty());
        }
    }
}

fn io(target: &Target<'_>, error: &std::io::Error) -> Error {
    match Errno::from_io_error(error) {
        Some(errno) => target.os_error(errno, "written"),
        None => target.refuse(ErrorCode::Io, &format!("could not be written: {error}")),
    }
}

/// Whether a name is one that `random_name` gives.
pub(super) fn is_temp_name(name: &[u8]) -> bool {
    name.len() == 27 && name.starts_with(b".croft-") && name.ends_with(b".tmp")
}

fn random_name() -> Result<Vec<u8>> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random)
        .map_err(|error| Error::new(ErrorCode::Io, format!("no random bytes from the system: {error}")))?;
    Ok(format!(".croft-{:016x}.tmp", u64::from_ne_bytes(random)).into_bytes())
}
