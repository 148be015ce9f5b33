//! Linux: `openat2`, cached reads, `getdents` and the file systems that are not files.

use super::{Beneath, BeneathError, Existing};
use crate::tree::{EntryList, Stat};
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, StatxFlags};
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags, Result};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// A directory as a place to resolve from: needs search permission only, so that 0711 can be passed through.
pub(in super::super) const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A file to ask about but not to read.
pub(in super::super) const ASK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// ENOSYS is final for a kernel. EPERM is not remembered: a seccomp filter may be laid on one thread only, and
/// a filter laid later must not be taken for the kernel.
static NO_OPENAT2: AtomicBool = AtomicBool::new(false);

/// `path` below `dir`, in one call that the kernel keeps beneath `dir`, also against renames meanwhile.
pub(in super::super) fn open_beneath(
    dir: BorrowedFd<'_>,
    path: &str,
    flags: OFlags,
    beneath: Beneath,
) -> std::result::Result<OwnedFd, BeneathError> {
    if NO_OPENAT2.load(Ordering::Relaxed) {
        return Err(BeneathError::Unavailable);
    }
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    if !beneath.follow_links {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    if beneath.cached_only {
        resolve |= ResolveFlags::CACHED;
    }
    match rustix::fs::openat2(dir, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Ok(fd) => Ok(fd),
        Err(Errno::NOSYS) => {
            NO_OPENAT2.store(true, Ordering::Relaxed);
            Err(BeneathError::Unavailable)
        }
        Err(Errno::PERM) => Err(BeneathError::Unavailable),
        Err(errno) => Err(BeneathError::Failed(errno)),
    }
}

/// One name in `dir`, opened without following a link. The flag says whether it is known to lie on the file
/// system of `dir`; otherwise the caller looks at what it got.
pub(in super::super) fn open_child(
    dir: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
) -> Result<(OwnedFd, bool)> {
    if !NO_OPENAT2.load(Ordering::Relaxed) {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve) {
            Ok(fd) => return Ok((fd, true)),
            // A mount point, a storm of renames, or no such call: the plain call is as safe for one name.
            Err(Errno::XDEV | Errno::AGAIN | Errno::NOSYS | Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty()).map(|fd| (fd, false))
}

/// Reads into `buffer` from the page cache only; `EAGAIN` where the disk would be asked.
pub(in super::super) fn read_cached(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    rustix::io::preadv2(fd, &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)
}

/// What the caches know of an open file, without asking a server: its device and the rest.
pub(in super::super) fn stat_cached(fd: BorrowedFd<'_>) -> Result<(u64, Stat)> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(fd, "", flags, StatxFlags::BASIC_STATS)?;
    let stat = Stat {
        file_type: super::super::file_type(rustix::fs::FileType::from_raw_mode(u32::from(found.stx_mode))),
        size: found.stx_size,
        mtime_ms: found.stx_mtime.tv_sec as f64 * 1000.0 + f64::from(found.stx_mtime.tv_nsec) / 1e6,
        mode: u32::from(found.stx_mode) & 0o7777,
    };
    Ok((
        rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
        stat,
    ))
}

/// Every entry but `.` and `..`. `dir` must be open for reading and at its start.
pub(in super::super) fn read_entries(dir: BorrowedFd<'_>, out: &mut EntryList) -> Result<()> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 32 * 1024];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
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

/// File systems whose files are windows into the kernel or into other processes: reading or writing one is not
/// a file operation, wherever it is mounted and whatever the path is called.
pub(in super::super) fn is_virtual(fd: BorrowedFd<'_>) -> Result<bool> {
    const VIRTUAL: [u32; 20] = [
        0x0000_9fa0, // procfs
        0x6265_6572, // sysfs
        0x6462_6720, // debugfs
        0x7472_6163, // tracefs
        0x7363_6673, // securityfs
        0x0027_e0eb, // cgroup
        0x6367_7270, // cgroup2
        0xcafe_4a11, // bpf
        0x0000_1cd1, // devpts
        0xf97c_ff8c, // selinuxfs
        0x4341_5d53, // smackfs
        0xde5e_81e4, // efivarfs
        0x6165_676c, // pstore
        0x6265_6570, // configfs
        0x6e73_6673, // nsfs
        0x6573_5543, // fusectl
        0x1980_0202, // mqueue
        0x4249_4e4d, // binfmt_misc
        0x0bad_1dea, // futexfs
        0x0187,      // autofs: opening may mount
    ];
    // The width and sign of f_type differ by architecture; the numbers are 32 bits wide.
    let magic = rustix::fs::fstatfs(fd)?.f_type as u32;
    Ok(VIRTUAL.contains(&magic))
}

/// Both ends are one plain name in an open directory.
/// Two names change places; none is missing at any moment.
pub(in super::super) fn exchange(dir: BorrowedFd<'_>, one: &[u8], other: &[u8]) -> Result<()> {
    rustix::fs::renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE)
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
        Existing::Refuse => rustix::fs::renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE),
    }
}

/// Names of the extended attributes of an open file, each ended by NUL.
pub(in super::super) fn list_attributes(file: &File) -> Result<Vec<u8>> {
    let size = rustix::fs::flistxattr_query(file)?;
    if size == 0 {
        return Ok(Vec::new());
    }
    let mut names = Vec::with_capacity(size + 256);
    rustix::fs::flistxattr(file, rustix::buffer::spare_capacity(&mut names))?;
    Ok(names)
}

pub(in super::super) fn copy_attribute(from: &File, to: &File, name: &[u8]) -> Result<()> {
    let size = rustix::fs::fgetxattr_query(from, name)?;
    let mut value = Vec::with_capacity(size + 1);
    rustix::fs::fgetxattr(from, name, rustix::buffer::spare_capacity(&mut value))?;
    rustix::fs::fsetxattr(to.as_fd(), name, &value, rustix::fs::XattrFlags::empty())
}

pub(in super::super) fn remove_attribute(file: &File, name: &[u8]) -> Result<()> {
    rustix::fs::fremovexattr(file, name)
}
