//! What is at a path. A link that may be followed answers as its target; one that may not, as itself, so that
//! nothing outside can be told apart.

use super::sys::Beneath;
use super::walk::{Missing, Walk};
use super::{DiskTree, Resolver, sys};
use crate::error::{ErrorCode, Result};
use crate::tree::refusal::Target;
use crate::tree::{FileType, Stat, Symlinks};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::os::fd::AsFd;

impl DiskTree {
    pub(super) fn stat_target(&self, target: &Target<'_>) -> Result<Option<Stat>> {
        if let Some(stat) = self.stat_by_kernel(target) {
            return Ok(Some(stat));
        }
        let mut walk = Walk::new(self, target, Missing::Refuse);
        let mut link = None;
        match stat_by_walk(&mut walk, target, &mut link) {
            Ok(stat) => Ok(stat),
            Err(error) => match (error.code, link) {
                // `link-to-a-file/`: there is no such directory.
                (ErrorCode::NotDirectory, Some(_)) if target.parsed.must_be_directory => Ok(None),
                (_, Some(link)) => Ok(Some(link)),
                (ErrorCode::NotFound | ErrorCode::NotDirectory, None) => Ok(None),
                (_, None) => Err(error),
            },
        }
    }

    fn stat_by_kernel(&self, target: &Target<'_>) -> Option<Stat> {
        if self.resolver == Resolver::Walk {
            return None;
        }
        let path = target.parsed.components.join("/");
        let path = if path.is_empty() { "." } else { &path };
        let beneath = Beneath {
            follow_links: self.symlinks == Symlinks::Inside,
            cached_only: false,
        };
        let fd = sys::open_beneath(self.root.as_fd(), path, sys::ASK, beneath).ok()?;
        let stat = describe(&rustix::fs::fstat(fd).ok()?);
        (!target.parsed.must_be_directory || stat.file_type == FileType::Directory).then_some(stat)
    }
}

/// `link` is set to the link at the end of the path while its target is looked for.
fn stat_by_walk(
    walk: &mut Walk<'_, '_>,
    target: &Target<'_>,
    link: &mut Option<Stat>,
) -> Result<Option<Stat>> {
    while let Some(step) = walk.until_last()? {
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
