//! What is at a path. A link that may be followed answers as its target; one that may not, as itself, so that
//! nothing outside can be told apart.

use super::sys::BeneathError;
use super::walk::{Missing, Walk};
use super::{DiskTree, sys};
use crate::error::{ErrorCode, Result};
use crate::tree::gate::Access;
use crate::tree::refusal::Target;
use crate::tree::{FileType, Stat, Symlinks};
use rustix::fs::AtFlags;
use rustix::io::Errno;

impl DiskTree {
    pub(super) fn stat_target(&self, target: &Target<'_>) -> Result<Option<Stat>> {
        if let Some(stat) = self.stat_by_kernel(target)? {
            return Ok(Some(stat));
        }
        self.stat_walking(target)
    }

    pub(super) fn stat_walking(&self, target: &Target<'_>) -> Result<Option<Stat>> {
        let mut walk = Walk::new(self, target, Missing::Refuse);
        let mut link = None;
        match stat_by_walk(&mut walk, target, &mut link) {
            Ok(stat) => Ok(stat),
            Err(error) => match (error.code, link) {
                // `link-to-a-file/`: there is no such directory.
                (ErrorCode::NotDirectory, Some(_)) if target.parsed.must_be_directory => Ok(None),
                (
                    ErrorCode::LinkRefused
                    | ErrorCode::NotFound
                    | ErrorCode::NotDirectory
                    | ErrorCode::AccessDenied,
                    Some(link),
                ) => Ok(Some(link)),
                (ErrorCode::NotFound | ErrorCode::NotDirectory, None) => Ok(None),
                _ => Err(error),
            },
        }
    }

    fn stat_by_kernel(&self, target: &Target<'_>) -> Result<Option<Stat>> {
        let follow_links = self.symlinks == Symlinks::Inside;
        let fd = match self.open_by_kernel(target, &target.parsed.components, sys::ASK, follow_links) {
            Ok(fd) => fd,
            Err(BeneathError::Failed(Errno::AGAIN)) => return Err(target.kept_moving()),
            Err(BeneathError::Failed(_) | BeneathError::Unavailable) => return Ok(None),
        };
        let found = rustix::fs::fstat(fd).map_err(|errno| target.os_error(errno, "looked at"))?;
        let stat = describe(&found);
        let fits = !target.parsed.must_be_directory || stat.file_type == FileType::Directory;
        Ok(fits.then_some(stat))
    }
}

/// `link` is set to the link at the end of the path while its target is looked for.
fn stat_by_walk(
    walk: &mut Walk<'_, '_>,
    target: &Target<'_>,
    link: &mut Option<Stat>,
) -> Result<Option<Stat>> {
    while let Some(step) = walk.until_last()? {
        walk.admit(Access::Read, Some(&step.name))?;
        let found = match rustix::fs::statat(walk.here(), &step.name[..], AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(errno) => {
                return if errno == Errno::NOENT && link.is_none() {
                    Ok(None)
                } else {
                    Err(target.os_error(errno, "looked at"))
                };
            }
        };
        if super::is_link(&found) {
            if link.is_none() {
                *link = Some(describe(&found));
            }
            walk.expand(&step.name)?;
            continue;
        }
        let stat = describe(&found);
        if walk.must_be_directory() && stat.file_type != FileType::Directory {
            return Err(target.not_directory());
        }
        return Ok(Some(stat));
    }
    walk.admit(Access::Read, None)?;
    let here = rustix::fs::fstat(walk.here()).map_err(|errno| target.os_error(errno, "looked at"))?;
    Ok(Some(describe(&here)))
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
pub(super) fn describe(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        file_type: super::file_type(super::raw_type(stat)),
        size: super::read::size_of(stat),
        mtime_ms: stat.st_mtime as f64 * 1000.0 + stat.st_mtime_nsec as f64 / 1e6,
        mode: (stat.st_mode as u32) & 0o7777,
    }
}
