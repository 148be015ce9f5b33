//! Replacing a file as a whole: a temporary file in the target's directory, then a rename of one plain name over
//! another. Whatever fails before the rename leaves the old bytes as they were.

use super::DiskTree;
use super::lock::{Key, Lock, lock, lock_between_processes};
use super::metadata;
use super::read::{read_up_to, size_of};
use super::resolve::{Last, Located};
use super::sys::Existing;
use super::temp::Temp;
use super::walk::Missing;
use crate::error::{ErrorCode, Result};
use crate::tree::refusal::Target;
use crate::tree::{Change, Flush, UpdateOptions, WriteOptions};
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsFd;
use tokio_util::sync::CancellationToken;

/// Tries before a target that keeps being swapped is given up.
const MAX_TRIES: u32 = 32;

/// A place to write to, with its locks held.
struct Held<'t> {
    at: Located<'t>,
    old: Option<Old>,
    _name: Lock,
    _file: Option<Lock>,
}

/// The file that is to be replaced, open for writing: what a plain write may not open, a rename must not beat.
struct Old {
    file: File,
    stat: Stat,
}

/// What a compare before the rename found.
enum Verdict {
    Unchanged,
    /// Another file with the same bytes took its place: its mode and owner have to be looked at again.
    Again,
    Stale,
}

impl DiskTree {
    pub(super) fn write_whole(
        &self,
        target: &Target<'_>,
        content: &[u8],
        options: &WriteOptions,
    ) -> Result<()> {
        let cancel = options.cancel.as_ref();
        target.check_cancel(cancel)?;
        // `new/x/` cannot become a file: no directory is made to find that out.
        let missing = if options.create_parents && !target.parsed.must_be_directory {
            Missing::Create
        } else {
            Missing::Refuse
        };
        let held = self.hold(target, missing, OFlags::WRONLY, cancel)?;
        if held.at.must_be_directory && held.old.is_none() {
            return Err(target.is_directory());
        }
        if options.create_only && held.old.is_some() {
            return Err(target.exists());
        }
        let existing = if options.create_only {
            Existing::Refuse
        } else {
            Existing::Replace
        };
        let temp = prepare(target, &held, content, cancel)?;
        if self.flushes(options.durable) {
            temp.sync(target)?;
        }
        target.check_cancel(cancel)?;
        self.put_in_place(temp, &held, existing, options.durable, target)
    }

    pub(super) fn update_whole(
        &self,
        target: &Target<'_>,
        options: &UpdateOptions,
        change: &mut Change<'_>,
    ) -> Result<bool> {
        let cancel = options.cancel.as_ref();
        for _ in 0..MAX_TRIES {
            target.check_cancel(cancel)?;
            let held = self.hold(target, Missing::Refuse, OFlags::RDWR, cancel)?;
            let Some(old) = &held.old else {
                return Err(self.not_found_in(held.at.dir.as_fd(), target));
            };
            let before = read_up_to(target, old.file.as_fd(), size_of(&old.stat), options.max_bytes)?;
            let Some(after) = change(&before)? else {
                return Ok(false);
            };
            let temp = prepare(target, &held, &after, cancel)?;
            if self.flushes(options.durable) {
                temp.sync(target)?;
            }
            target.check_cancel(cancel)?;
            match compare(&held.at, old, &before) {
                Verdict::Unchanged => {}
                Verdict::Again => continue,
                Verdict::Stale => return Err(target.stale()),
            }
            self.put_in_place(temp, &held, Existing::Replace, options.durable, target)?;
            return Ok(true);
        }
        Err(target.stale())
    }

    /// Through the descriptor of the file that was found; set-user-ID and its kin are never given.
    pub(super) fn set_mode_of(&self, target: &Target<'_>, mode: u32) -> Result<()> {
        let held = self.hold(target, Missing::Refuse, OFlags::RDONLY, None)?;
        let Some(old) = &held.old else {
            return Err(self.not_found_in(held.at.dir.as_fd(), target));
        };
        #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
        let mode = Mode::from_raw_mode((mode & 0o777) as rustix::fs::RawMode);
        rustix::fs::fchmod(&old.file, mode).map_err(|errno| target.os_error(errno, "given another mode"))
    }

    fn put_in_place(
        &self,
        temp: Temp<'_>,
        held: &Held<'_>,
        existing: Existing,
        durable: bool,
        target: &Target<'_>,
    ) -> Result<()> {
        if held.old.is_some() && existing == Existing::Replace && !self.flushes(durable) {
            temp.swap(&held.at.name, target)?;
        } else {
            temp.commit(&held.at.name, existing, target)?;
        }
        if durable {
            sync_directory(target, &held.at)?;
        }
        Ok(())
    }

    fn flushes(&self, durable: bool) -> bool {
        durable || self.flush == Flush::BeforeRename
    }

    /// Finds where the path leads, links at its end included, and locks it there.
    fn hold(
        &self,
        target: &Target<'_>,
        missing: Missing,
        access: OFlags,
        cancel: Option<&CancellationToken>,
    ) -> Result<Held<'_>> {
        let mut located = self.locate_by_kernel(target)?;
        for _ in 0..MAX_TRIES {
            let at = match located.take() {
                Some(at) => at,
                None => self
                    .locate_by_walk(target, missing, Last::Follow)?
                    .ok_or_else(|| target.is_directory())?,
            };
            let name_key = Key::Name(at.dir_id, at.name.clone());
            let name = lock(name_key, cancel).ok_or_else(|| target.aborted())?;
            // A link here, or in a moment: the next try walks it.
            let Found::Plain(old) = self.open_old(target, &at, access)? else {
                continue;
            };
            let Some(old) = old else {
                return Ok(Held {
                    at,
                    old: None,
                    _name: name,
                    _file: None,
                });
            };
            let file = lock(Key::File(super::identity(&old.stat)), cancel).ok_or_else(|| target.aborted())?;
            if !lock_between_processes(&old.file, cancel) {
                return Err(target.aborted());
            }
            // Another writer had it until a moment ago, here or in another process.
            if !is_still(&at, &old) {
                continue;
            }
            return Ok(Held {
                at,
                old: Some(old),
                _name: name,
                _file: Some(file),
            });
        }
        Err(target.kept_moving())
    }

    fn open_old(&self, target: &Target<'_>, at: &Located<'_>, access: OFlags) -> Result<Found> {
        // Looked at before it is opened: opening a FIFO for writing would wake its reader.
        match rustix::fs::statat(at.dir.as_fd(), &at.name[..], AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(Found::Plain(None)),
            Err(errno) => return Err(target.os_error(errno, "written")),
            Ok(stat) => match super::raw_type(&stat) {
                rustix::fs::FileType::Symlink => return Ok(Found::Link),
                rustix::fs::FileType::Directory => return Err(target.is_directory()),
                rustix::fs::FileType::RegularFile if at.must_be_directory => {
                    return Err(target.not_directory());
                }
                rustix::fs::FileType::RegularFile => {}
                _ => return Err(target.not_regular()),
            },
        }
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(at.dir.as_fd(), &at.name[..], flags, Mode::empty()) {
            Ok(file) => {
                let stat = self.check_regular(target, file.as_fd())?;
                Ok(Found::Plain(Some(Old {
                    file: File::from(file),
                    stat,
                })))
            }
            Err(Errno::LOOP | Errno::MLINK) => Ok(Found::Link),
            Err(Errno::NOENT) => Ok(Found::Plain(None)),
            Err(errno) => Err(target.os_error(errno, "written")),
        }
    }
}

enum Found {
    Link,
    Plain(Option<Old>),
}

/// The new content with the old file's metadata, under a temporary name.
fn prepare<'h>(
    target: &Target<'_>,
    held: &'h Held<'_>,
    content: &[u8],
    cancel: Option<&CancellationToken>,
) -> Result<Temp<'h>> {
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    let mode = match &held.old {
        // Until it has its owner, for nobody but us, and never wider than the target.
        Some(old) => old.stat.st_mode as u32 & 0o600,
        // A new file: the kernel applies the umask and the directory's default ACL.
        None => 0o666,
    };
    let mut temp = Temp::create(held.at.dir.as_fd(), mode, target)?;
    temp.write(content, target)?;
    if let Some(old) = &held.old {
        metadata::copy(&old.file, &old.stat, &temp.file, target)?;
    }
    target.check_cancel(cancel)?;
    Ok(temp)
}

/// Content decides: the bytes under the name are read again, right before the rename. What remains is the time
/// between this and the rename, some microseconds, in which a foreign writer is not seen.
fn compare(at: &Located<'_>, old: &Old, before: &[u8]) -> Verdict {
    if is_still(at, old) {
        return if holds(&old.file, before) {
            Verdict::Unchanged
        } else {
            Verdict::Stale
        };
    }
    let flags = super::read::READ | OFlags::NOFOLLOW;
    match rustix::fs::openat(at.dir.as_fd(), &at.name[..], flags, Mode::empty()) {
        Ok(now) if holds(&now, before) => Verdict::Again,
        Ok(_) | Err(_) => Verdict::Stale,
    }
}

/// Whether the name still means the file that was opened.
fn is_still(at: &Located<'_>, old: &Old) -> bool {
    rustix::fs::statat(at.dir.as_fd(), &at.name[..], AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|now| super::identity(&now) == super::identity(&old.stat))
}

fn holds(file: impl AsFd, expected: &[u8]) -> bool {
    let mut chunk = vec![0; expected.len().saturating_add(1).min(64 * 1024)];
    let mut offset = 0;
    loop {
        match rustix::io::pread(&file, &mut chunk[..], offset as u64) {
            Ok(0) => return offset == expected.len(),
            Ok(read) => {
                if expected.get(offset..offset + read) != Some(&chunk[..read]) {
                    return false;
                }
                offset += read;
            }
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// After this the new name survives a power cut, too.
fn sync_directory(target: &Target<'_>, at: &Located<'_>) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(at.dir.as_fd(), ".", flags, Mode::empty())
        .and_then(rustix::fs::fsync)
        .map_err(|errno| {
            let rule = format!("was written, but its directory could not be flushed to the disk: {errno}");
            target.refuse(ErrorCode::Io, &rule)
        })
}
