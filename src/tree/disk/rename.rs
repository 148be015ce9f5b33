//! Moving one name to another inside the tree. Both ends are a descriptor and one plain name; links are moved
//! as links.

use super::DiskTree;
use super::lock::{Key, lock};
use super::resolve::Located;
use super::sys::{self, Existing};
use super::walk::Missing;
use crate::error::{Error, ErrorCode, Result};
use crate::tree::refusal::Target;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use std::os::fd::AsFd;

impl DiskTree {
    pub(super) fn rename_target(
        &self,
        source: &Target<'_>,
        target: &Target<'_>,
        overwrite: bool,
    ) -> Result<()> {
        let from = self
            .locate(source, Missing::Refuse)?
            .ok_or_else(|| source.is_root("renamed"))?;
        let moved_directory = self.directory_at(source, &from)?;
        let moves_directory = moved_directory.is_some();
        let to = self
            .locate_new(target, moved_directory)?
            .ok_or_else(|| target.is_root("replaced"))?;

        let mut keys = [
            Key::Name(from.dir_id, from.name.clone()),
            Key::Name(to.dir_id, to.name.clone()),
        ];
        keys.sort_unstable();
        let [first, second] = keys;
        let same = first == second;
        let _first = lock(first, None);
        let _second = if same { None } else { lock(second, None) };

        if to.must_be_directory && !moves_directory {
            let there = rustix::fs::statat(to.dir.as_fd(), &to.name[..], AtFlags::SYMLINK_NOFOLLOW).is_ok();
            return Err(if there && !overwrite {
                target.exists()
            } else {
                target.not_directory()
            });
        }
        let existing = if overwrite {
            Existing::Replace
        } else {
            Existing::Refuse
        };
        let renamed = sys::rename(from.dir.as_fd(), &from.name, to.dir.as_fd(), &to.name, existing);
        match renamed {
            Err(Errno::INVAL | Errno::NOSYS) if existing == Existing::Refuse => {
                rename_without_flag(&from, &to, moves_directory)
            }
            renamed => renamed,
        }
        .map_err(|errno| refusal(source, target, errno))
    }

    /// Makes missing parents of the new name, unless it is clear already that the rename will be refused.
    fn locate_new(
        &self,
        target: &Target<'_>,
        moved_directory: Option<(u64, u64)>,
    ) -> Result<Option<Located<'_>>> {
        match self.locate(target, Missing::Refuse) {
            Err(error) if error.code == ErrorCode::NotFound => {
                if target.parsed.must_be_directory && moved_directory.is_none() {
                    return Err(error);
                }
                self.locate_beside(target, moved_directory)
            }
            located => located,
        }
    }

    /// Device and inode, if it is a directory.
    fn directory_at(&self, source: &Target<'_>, from: &Located<'_>) -> Result<Option<(u64, u64)>> {
        match rustix::fs::statat(from.dir.as_fd(), &from.name[..], AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let is_directory = super::raw_type(&stat) == FileType::Directory;
                if from.must_be_directory && !is_directory {
                    return Err(source.not_directory());
                }
                Ok(is_directory.then(|| super::identity(&stat)))
            }
            Err(Errno::NOENT) => Err(self.not_found_in(from.dir.as_fd(), source)),
            Err(errno) => Err(source.os_error(errno, "renamed")),
        }
    }
}

/// File systems without RENAME_NOREPLACE. A hard link never replaces; for a directory nothing alike exists, and
/// rename itself refuses to replace anything but an empty directory by one.
fn rename_without_flag(
    from: &Located<'_>,
    to: &Located<'_>,
    moves_directory: bool,
) -> rustix::io::Result<()> {
    let (from_dir, to_dir) = (from.dir.as_fd(), to.dir.as_fd());
    if !moves_directory {
        rustix::fs::linkat(from_dir, &from.name[..], to_dir, &to.name[..], AtFlags::empty())?;
        return rustix::fs::unlinkat(from_dir, &from.name[..], AtFlags::empty());
    }
    match rustix::fs::statat(to_dir, &to.name[..], AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => sys::rename(from_dir, &from.name, to_dir, &to.name, Existing::Replace),
        Ok(_) => Err(Errno::EXIST),
        Err(errno) => Err(errno),
    }
}

fn refusal(source: &Target<'_>, target: &Target<'_>, errno: Errno) -> Error {
    match errno {
        Errno::EXIST => target.exists(),
        Errno::INVAL => source.moved_into_itself(),
        Errno::NOTEMPTY => target.not_empty(),
        Errno::ISDIR => target.replaces_directory(),
        Errno::NOTDIR => target.replaces_file(),
        Errno::XDEV => source.crosses_mount(),
        errno => source.os_error(errno, "renamed"),
    }
}
