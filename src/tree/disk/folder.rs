//! Walking: folders held open by descriptor, one name at a time, never through a link.

use super::read::READ;
use super::{DiskTree, sys};
use crate::error::{Error, ErrorCode, Result};
use crate::path::quoted;
use crate::tree::refusal::Target;
use crate::tree::{EntryList, FileRead, Folder, WalkStart};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A first read that is not filled has seen the end of the file.
const FIRST_READ_BYTES: usize = 64 * 1024;

impl DiskTree {
    pub(super) fn open_walk_at(&self, target: &Target<'_>) -> Result<WalkStart> {
        // With `..` in the path the written names may not be the real ones, so those are used.
        let names: Vec<String> = if target.parsed.has_parent_steps {
            self.resolved_names(target)?
        } else {
            target
                .parsed
                .components
                .iter()
                .map(|&name| name.to_owned())
                .collect()
        };
        let path = if names.is_empty() {
            ".".to_owned()
        } else {
            names.join("/")
        };
        let above = self.folders_above(&names)?;
        match self.open_target(target, OPEN | OFlags::NONBLOCK) {
            Ok(fd) => {
                self.refuse_virtual(target, fd.as_fd())?;
                Ok(WalkStart::Folder {
                    folder: Box::new(DiskFolder { fd }),
                    path,
                    above,
                })
            }
            Err(error) if error.code == ErrorCode::NotDirectory && !target.parsed.must_be_directory => {
                self.open_walk_at_file(target, path)
            }
            Err(error) => Err(error),
        }
    }

    fn open_walk_at_file(&self, target: &Target<'_>, path: String) -> Result<WalkStart> {
        let (_file, _) = self.open_regular(target)?;
        let at = self
            .locate_for_reading(target)?
            .ok_or_else(|| target.is_directory())?;
        let fd = reopen(at.dir.as_fd()).map_err(|errno| target.os_error(errno, "opened"))?;
        Ok(WalkStart::File {
            parent: Box::new(DiskFolder { fd }),
            name: at.name,
            path,
        })
    }

    fn folders_above(&self, names: &[String]) -> Result<Vec<(String, Box<dyn Folder>)>> {
        let mut above: Vec<(String, Box<dyn Folder>)> = Vec::new();
        for depth in 0..names.len() {
            let path = if depth == 0 {
                ".".to_owned()
            } else {
                names[..depth].join("/")
            };
            let target = Target::parse(&path)?;
            // Search permission is enough to walk through, so that is all that is asked for above the start.
            let fd = self.open_target(&target, sys::DIRECTORY.difference(OFlags::NOFOLLOW))?;
            above.push((path, Box::new(DiskFolder { fd })));
        }
        Ok(above)
    }
}

fn reopen(dir: BorrowedFd<'_>) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(dir, ".", OPEN, Mode::empty())
}

struct DiskFolder {
    fd: OwnedFd,
}

impl Folder for DiskFolder {
    /// Without the files that writes are being prepared in: a search beside a write would find its lines twice.
    fn entries(&self, out: &mut EntryList) -> Result<()> {
        match sys::read_entries(self.fd.as_fd(), out) {
            // Opened only to resolve from.
            Err(Errno::BADF) => {
                let fd = reopen(self.fd.as_fd()).map_err(|errno| refuse(b".", errno))?;
                sys::read_entries(fd.as_fd(), out).map_err(|errno| refuse(b".", errno))?;
            }
            listed => listed.map_err(|errno| refuse(b".", errno))?,
        }
        out.retain(|name| !super::temp::is_temp_name(name));
        Ok(())
    }

    fn open_folder(&self, name: &[u8]) -> Result<Box<dyn Folder>> {
        check_plain(name)?;
        let (fd, same_device) = sys::open_child(self.fd.as_fd(), name, OPEN | OFlags::NONBLOCK)
            .map_err(|errno| refuse(name, errno))?;
        if !same_device && sys::is_virtual(fd.as_fd()).map_err(|errno| refuse(name, errno))? {
            return Err(refuse(name, Errno::NODEV));
        }
        Ok(Box::new(DiskFolder { fd }))
    }

    fn read_file(&self, name: &[u8], max_bytes: u64, buffer: &mut Vec<u8>) -> Result<FileRead> {
        check_plain(name)?;
        buffer.clear();
        let (fd, same_device) = match sys::open_child(self.fd.as_fd(), name, READ) {
            Ok(opened) => opened,
            Err(Errno::LOOP | Errno::MLINK | Errno::NXIO | Errno::NODEV) => return Ok(FileRead::NotRegular),
            Err(errno) => return Err(refuse(name, errno)),
        };
        let read = read_regular(&fd, same_device, max_bytes, buffer);
        if !matches!(read, Ok(FileRead::Whole)) {
            buffer.clear();
        }
        read.map_err(|errno| refuse(name, errno))
    }

    fn identity(&self) -> Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|errno| refuse(b".", errno))?;
        Ok(super::identity(&stat))
    }
}

/// A small file costs open, read and close: `pread` fails on a FIFO, a socket and a directory, and whatever
/// fills the first read is looked at before more is taken of it.
fn read_regular(
    fd: &OwnedFd,
    same_device: bool,
    max_bytes: u64,
    buffer: &mut Vec<u8>,
) -> rustix::io::Result<FileRead> {
    if !same_device && !is_plain_file(fd)? {
        return Ok(FileRead::NotRegular);
    }
    buffer.reserve(FIRST_READ_BYTES);
    let mut looked_at = !same_device;
    loop {
        let had = buffer.capacity() - buffer.len();
        let offset = buffer.len() as u64;
        let read = match rustix::io::pread(fd, rustix::buffer::spare_capacity(buffer), offset) {
            Ok(read) => read,
            Err(Errno::INTR) => continue,
            Err(Errno::SPIPE | Errno::ISDIR | Errno::AGAIN) => return Ok(FileRead::NotRegular),
            Err(errno) => return Err(errno),
        };
        if read < had {
            let fits = buffer.len() as u64 <= max_bytes;
            return Ok(if fits { FileRead::Whole } else { FileRead::TooLarge });
        }
        if !looked_at {
            let stat = rustix::fs::fstat(fd)?;
            if super::raw_type(&stat) != FileType::RegularFile {
                return Ok(FileRead::NotRegular);
            }
            let size = super::read::size_of(&stat);
            if size > max_bytes {
                return Ok(FileRead::TooLarge);
            }
            let rest = usize::try_from(size)
                .unwrap_or(usize::MAX)
                .saturating_sub(buffer.len());
            buffer.reserve(rest.saturating_add(1));
            looked_at = true;
        } else if buffer.len() as u64 > max_bytes {
            return Ok(FileRead::TooLarge);
        } else {
            buffer.reserve(FIRST_READ_BYTES);
        }
    }
}

/// On a mount of its own: a regular file, and not procfs or the like.
fn is_plain_file(fd: &OwnedFd) -> rustix::io::Result<bool> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(super::raw_type(&stat) == FileType::RegularFile && !sys::is_virtual(fd.as_fd())?)
}

/// A name that came from a listing is plain; one that did not must be, too.
fn check_plain(name: &[u8]) -> Result<()> {
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0) {
        return Err(Error::new(
            ErrorCode::InvalidPath,
            "a walk takes one plain name at a time",
        ));
    }
    Ok(())
}

fn refuse(name: &[u8], errno: Errno) -> Error {
    let code = match errno {
        Errno::NOENT => ErrorCode::NotFound,
        Errno::NOTDIR => ErrorCode::NotDirectory,
        Errno::LOOP | Errno::MLINK => ErrorCode::LinkRefused,
        Errno::ACCESS | Errno::PERM => ErrorCode::AccessDenied,
        Errno::MFILE | Errno::NFILE => ErrorCode::TooManyOpenFiles,
        Errno::NXIO | Errno::NODEV => ErrorCode::NotRegularFile,
        _ => ErrorCode::Io,
    };
    Error::new(
        code,
        format!(
            "{} could not be opened: {errno}",
            quoted(&String::from_utf8_lossy(name))
        ),
    )
}
