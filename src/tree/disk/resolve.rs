//! From a path to a descriptor: the kernel's resolver where it serves, the component walk where it does not or
//! where the reason for a refusal is wanted.

use super::sys::{Beneath, BeneathError};
use super::walk::{Missing, Step, Walk};
use super::{DiskTree, Resolver, sys};
use crate::error::Result;
use crate::tree::Symlinks;
use crate::tree::gate::Access;
use crate::tree::refusal::Target;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// `EAGAIN` says that something was renamed while a link went through `..`. It is tried again and then told; it
/// never leads to another resolver.
const MAX_RETRIES: u32 = 32;

/// A directory that an operation acts in.
pub(super) enum Place<'t> {
    Root(BorrowedFd<'t>),
    Below(OwnedFd),
}

impl AsFd for Place<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Place::Root(fd) => *fd,
            Place::Below(fd) => fd.as_fd(),
        }
    }
}

/// Where an operation acts: a directory and one plain name in it.
pub(super) struct Located<'t> {
    pub dir: Place<'t>,
    /// Device and inode of `dir`.
    pub dir_id: (u64, u64),
    pub name: Vec<u8>,
    /// The path asked for a directory (it ended in a slash).
    pub must_be_directory: bool,
}

/// What is done about a link at the end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// The link itself is meant (remove, rename).
    Keep,
    /// Its target is meant.
    Follow,
}

impl DiskTree {
    /// Opens what `target` names, following links that stay inside.
    pub(super) fn open_target(&self, target: &Target<'_>, flags: OFlags) -> Result<OwnedFd> {
        let mut flags = flags;
        if target.parsed.must_be_directory {
            flags |= OFlags::DIRECTORY;
        }
        let follow_links = self.symlinks == Symlinks::Inside;
        match self.open_by_kernel(target, &target.parsed.components, flags, follow_links) {
            Ok(fd) => Ok(fd),
            // The reasons that the walk can tell apart: a missing file from a dead link, an absolute link
            // that leads inside from one that leads out.
            Err(
                BeneathError::Unavailable
                | BeneathError::Failed(Errno::NOENT | Errno::LOOP | Errno::XDEV | Errno::NOTDIR),
            ) => Walk::new(self, target, Missing::Refuse).open(flags),
            Err(BeneathError::Failed(Errno::AGAIN)) => Err(target.kept_moving()),
            Err(BeneathError::Failed(errno)) => Err(target.os_error(errno, "opened")),
        }
    }

    /// `components` are those of `target`, or the first of them.
    pub(super) fn open_by_kernel(
        &self,
        target: &Target<'_>,
        components: &[&str],
        flags: OFlags,
        follow_links: bool,
    ) -> std::result::Result<OwnedFd, BeneathError> {
        // `..` is the walk's: the kernel has to answer EAGAIN for it whenever anything on the machine is renamed
        // meanwhile, while the walk goes back on its own stack.
        let judged = follow_links && self.gate.is_some();
        if self.resolver == Resolver::Walk || target.parsed.has_parent_steps || judged {
            return Err(BeneathError::Unavailable);
        }
        let path = if components.is_empty() {
            ".".to_owned()
        } else {
            components.join("/")
        };
        let beneath = Beneath {
            follow_links,
            cached_only: false,
        };
        for _ in 0..MAX_RETRIES {
            match sys::open_beneath(self.root.as_fd(), &path, flags, beneath) {
                Err(BeneathError::Failed(Errno::AGAIN | Errno::INTR)) => {}
                answer => return answer,
            }
        }
        Err(BeneathError::Failed(Errno::AGAIN))
    }

    /// The directory and the name that removing or renaming `target` acts on: a link at its end is meant itself.
    /// Protected names are refused, by the names that were resolved. `None` when it is the root.
    pub(super) fn locate(&self, target: &Target<'_>, missing: Missing) -> Result<Option<Located<'_>>> {
        match self.locate_by_kernel(target)? {
            Some(located) => Ok(Some(located)),
            None => self.locate_by_walk(target, missing, Last::Keep),
        }
    }

    /// Without any link on the way, the written names are the resolved names. Anything else is the walk's.
    pub(super) fn locate_by_kernel(&self, target: &Target<'_>) -> Result<Option<Located<'_>>> {
        let parsed = &target.parsed;
        let Some((name, above)) = parsed.components.split_last() else {
            return Ok(None);
        };
        // A single name here is never `..`: that is outside, and was refused.
        let dir = if above.is_empty() {
            Place::Root(self.root.as_fd())
        } else {
            match self.open_by_kernel(target, above, sys::DIRECTORY, false) {
                Ok(fd) => Place::Below(fd),
                Err(BeneathError::Failed(Errno::AGAIN)) => return Err(target.kept_moving()),
                Err(BeneathError::Unavailable | BeneathError::Failed(_)) => return Ok(None),
            }
        };
        let dir_id = self.refuse_virtual(target, dir.as_fd())?;
        let name = name.as_bytes().to_vec();
        Ok(Some(Located {
            dir,
            dir_id,
            name,
            must_be_directory: parsed.must_be_directory,
        }))
    }

    /// Where a change of `target` acts. Protected names are refused, by the names that were resolved.
    pub(super) fn locate_by_walk(
        &self,
        target: &Target<'_>,
        missing: Missing,
        last: Last,
    ) -> Result<Option<Located<'_>>> {
        let mut walk = Walk::new(self, target, missing);
        let Some(step) = self.walk_to(&mut walk, target, last)? else {
            return Ok(None);
        };
        walk.refuse_protected(&step.name)?;
        walk.admit(Access::Read, Some(&step.name))?;
        self.located(walk, target, step).map(Some)
    }

    /// Where a renamed directory goes, with its missing parents made, but none of them inside itself.
    pub(super) fn locate_beside(
        &self,
        target: &Target<'_>,
        moving: Option<(u64, u64)>,
    ) -> Result<Option<Located<'_>>> {
        let mut walk = Walk::new(self, target, Missing::Create);
        walk.moving = moving;
        let Some(step) = self.walk_to(&mut walk, target, Last::Keep)? else {
            return Ok(None);
        };
        walk.refuse_protected(&step.name)?;
        self.located(walk, target, step).map(Some)
    }

    /// Where a file lies that is only read.
    pub(super) fn locate_for_reading(&self, target: &Target<'_>) -> Result<Option<Located<'_>>> {
        let mut walk = Walk::new(self, target, Missing::Refuse);
        let Some(step) = self.walk_to(&mut walk, target, Last::Follow)? else {
            return Ok(None);
        };
        walk.admit(Access::Read, Some(&step.name))?;
        self.located(walk, target, step).map(Some)
    }

    /// The resolved names, links at the end followed.
    pub(super) fn followed_path(&self, target: &Target<'_>) -> Result<String> {
        let mut walk = Walk::new(self, target, Missing::Refuse);
        let last = self.walk_to(&mut walk, target, Last::Follow)?;
        Ok(walk.path_of(last.as_ref().map(|step| step.name.as_slice())))
    }

    fn walk_to(&self, walk: &mut Walk<'_, '_>, target: &Target<'_>, last: Last) -> Result<Option<Step>> {
        loop {
            let Some(step) = walk.until_last_named()? else {
                return Ok(None);
            };
            if last == Last::Keep || !self.expand_last(walk, target, &step)? {
                return Ok(Some(step));
            }
        }
    }

    fn located(&self, walk: Walk<'_, '_>, target: &Target<'_>, step: Step) -> Result<Located<'_>> {
        let must_be_directory = walk.must_be_directory();
        let dir = walk
            .into_here()
            .map_or(Place::Root(self.root.as_fd()), Place::Below);
        let dir_id = self.refuse_virtual(target, dir.as_fd())?;
        Ok(Located {
            dir,
            dir_id,
            name: step.name,
            must_be_directory,
        })
    }

    /// Whether the last name was a link and its target is now ahead.
    fn expand_last(&self, walk: &mut Walk<'_, '_>, target: &Target<'_>, step: &Step) -> Result<bool> {
        match rustix::fs::statat(walk.here(), &step.name[..], rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if super::is_link(&stat) => walk.expand(&step.name),
            Ok(_) => Ok(false),
            Err(Errno::NOENT) if step.from_link => Err(target.link_dangling()),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(target.os_error(errno, "opened")),
        }
    }

    /// Nothing is made, replaced or removed in procfs and the like, by what was opened. Gives device and inode.
    pub(super) fn refuse_virtual(&self, target: &Target<'_>, fd: BorrowedFd<'_>) -> Result<(u64, u64)> {
        let stat = rustix::fs::fstat(fd).map_err(|errno| target.os_error(errno, "opened"))?;
        let id = super::identity(&stat);
        self.refuse_virtual_device(target, fd, id.0)?;
        Ok(id)
    }

    pub(super) fn refuse_virtual_device(
        &self,
        target: &Target<'_>,
        fd: BorrowedFd<'_>,
        device: u64,
    ) -> Result<()> {
        // The root's own file system was looked at when it was opened.
        if device == self.device {
            return Ok(());
        }
        match sys::is_virtual(fd) {
            Ok(false) => Ok(()),
            Ok(true) => Err(target.not_regular()),
            Err(errno) => Err(target.os_error(errno, "opened")),
        }
    }
}
