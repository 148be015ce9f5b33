//! What a replaced file keeps: mode, owner and group, and extended attributes, copied between descriptors. By
//! path, a link swapped in between would hand the target's mode to a file outside.

use super::sys;
use crate::error::Result;
use crate::tree::refusal::Target;
use rustix::fs::{Gid, Mode, Stat, Uid};
use rustix::io::Errno;
use std::fs::File;

const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const ACL: &[u8] = b"system.posix_acl_access";

/// `from` is the file to be replaced, `stat` what is known of it, `to` the file that will take its place.
pub(super) fn copy(from: &File, stat: &Stat, to: &File, target: &Target<'_>) -> Result<()> {
    let refuse = |errno| target.os_error(errno, "written");
    let made = rustix::fs::fstat(to).map_err(refuse)?;
    let (user_kept, group_kept) = copy_owner(stat, &made, to);
    let theirs = attributes(from);
    if !has(&theirs, ACL) && has(&attributes(to), ACL) {
        // Inherited from the directory's default ACL: it would let in whom the target does not.
        sys::remove_attribute(to, ACL).map_err(refuse)?;
    }
    copy_mode(stat, &made, to, user_kept, group_kept).map_err(refuse)?;
    for name in theirs
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty() && is_copied(name))
    {
        match sys::copy_attribute(from, to, name) {
            // "Where permitted": trusted.* needs a capability, and a label may be the system's to set.
            Ok(()) | Err(Errno::PERM | Errno::ACCESS | Errno::NOTSUP | Errno::NODATA | Errno::INVAL) => {}
            Err(errno) => return Err(refuse(errno)),
        }
    }
    Ok(())
}

/// File capabilities and integrity signatures belong to the old content; a plain write drops them too.
fn is_copied(name: &[u8]) -> bool {
    !matches!(name, b"security.capability" | b"security.ima" | b"security.evm")
}

/// Whether user and group are now those of `stat`. A process that may not give files away keeps its own.
fn copy_owner(stat: &Stat, made: &Stat, to: &File) -> (bool, bool) {
    let (user_same, group_same) = (stat.st_uid == made.st_uid, stat.st_gid == made.st_gid);
    if user_same && group_same {
        return (true, true);
    }
    let (user, group) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    if rustix::fs::fchown(to, Some(user), Some(group)).is_ok() {
        return (true, true);
    }
    (
        user_same,
        group_same || rustix::fs::fchown(to, None, Some(group)).is_ok(),
    )
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
fn copy_mode(
    stat: &Stat,
    made: &Stat,
    to: &File,
    user_kept: bool,
    group_kept: bool,
) -> rustix::io::Result<()> {
    let mut mode = stat.st_mode as u32 & 0o7777;
    // A set-id bit must not run as somebody else than before.
    if !user_kept {
        mode &= !SET_USER_ID;
    }
    if !group_kept {
        mode &= !SET_GROUP_ID;
    }
    if mode == made.st_mode as u32 & 0o7777 && user_kept && group_kept && mode & 0o6000 == 0 {
        return Ok(());
    }
    rustix::fs::fchmod(to, Mode::from_raw_mode(mode as rustix::fs::RawMode))
}

/// None where the file system has no attributes.
fn attributes(file: &File) -> Vec<u8> {
    sys::list_attributes(file).unwrap_or_default()
}

fn has(list: &[u8], wanted: &[u8]) -> bool {
    list.split(|&byte| byte == 0).any(|name| name == wanted)
}
