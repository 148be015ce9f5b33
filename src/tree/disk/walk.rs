//! Resolving a path one component at a time from the root descriptor: the whole resolver where the kernel has
//! none, and the one that follows absolute links, names what it resolved, and says why a path is refused.
//!
//! No step ever follows a link by itself (`O_NOFOLLOW` on one plain name). A link is read, and its target's
//! parts are put in front of the rest; `..` goes back on a stack of descriptors, so a directory that is moved
//! meanwhile cannot be climbed out of.

use super::{DiskTree, sys};
use crate::error::{Error, Result};
use crate::limits::MAX_LINKS_FOLLOWED;
use crate::tree::Symlinks;
use crate::tree::gate::Access;
use crate::tree::refusal::Target;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// One name still to be looked up.
#[derive(Debug)]
pub(super) struct Step {
    pub name: Vec<u8>,
    /// It comes from a link's target: when it is missing, the link dangles.
    pub from_link: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Refuse,
    /// Make directories that the path names (never those that only a link names).
    Create,
}

pub(super) struct Walk<'t, 'p> {
    tree: &'t DiskTree,
    target: &'t Target<'p>,
    missing: Missing,
    /// Below the root, each with the name it was opened by.
    stack: Vec<(OwnedFd, Vec<u8>)>,
    /// Last first.
    pending: Vec<Step>,
    /// The directory that is being moved: nothing is made in it.
    pub(super) moving: Option<(u64, u64)>,
    links_followed: u32,
    must_be_directory: bool,
}

impl<'t, 'p> Walk<'t, 'p> {
    pub(super) fn new(tree: &'t DiskTree, target: &'t Target<'p>, missing: Missing) -> Self {
        let step = |name: &&str| Step {
            name: name.as_bytes().to_vec(),
            from_link: false,
        };
        Self {
            tree,
            target,
            missing,
            stack: Vec::new(),
            pending: target.parsed.components.iter().rev().map(step).collect(),
            moving: None,
            links_followed: 0,
            must_be_directory: target.parsed.must_be_directory,
        }
    }

    /// The directory reached so far.
    pub(super) fn here(&self) -> BorrowedFd<'_> {
        self.stack
            .last()
            .map_or(self.tree.root.as_fd(), |(fd, _)| fd.as_fd())
    }

    /// `None` stands for the root.
    pub(super) fn into_here(mut self) -> Option<OwnedFd> {
        self.stack.pop().map(|(fd, _)| fd)
    }

    /// Resolved names from the root to here.
    pub(super) fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.stack.iter().map(|(_, name)| name.as_slice())
    }

    /// The resolved path: where we are, and `last` in it.
    pub(super) fn path_of(&self, last: Option<&[u8]>) -> String {
        let names: Vec<_> = self.names().chain(last).map(String::from_utf8_lossy).collect();
        if names.is_empty() {
            ".".to_owned()
        } else {
            names.join("/")
        }
    }

    /// Asks the gate about what was resolved, right before it is opened by this one name from the descriptor held
    /// here: nothing can be put in between.
    pub(super) fn admit(&self, access: Access, last: Option<&[u8]>) -> Result<()> {
        match &self.tree.gate {
            Some(gate) => gate.check_resolved(access, &self.path_of(last), self.target.written),
            None => Ok(()),
        }
    }

    pub(super) fn must_be_directory(&self) -> bool {
        self.must_be_directory
    }

    /// Goes on until one name is left, and gives it; `None` when the path ends in the directory `here`.
    pub(super) fn until_last(&mut self) -> Result<Option<Step>> {
        while let Some(step) = self.pending.pop() {
            if step.name == b".." {
                if self.stack.pop().is_none() {
                    return Err(self.target.link_outside());
                }
            } else if self.pending.is_empty() {
                return Ok(Some(step));
            } else {
                self.enter(step)?;
            }
        }
        Ok(None)
    }

    /// As `until_last`, but the path itself ends here: `a/..` gives the parent of `a` and the name it has there.
    pub(super) fn until_last_named(&mut self) -> Result<Option<Step>> {
        Ok(match self.until_last()? {
            Some(step) => Some(step),
            None => self.stack.pop().map(|(_, name)| Step {
                name,
                from_link: false,
            }),
        })
    }

    pub(super) fn enter(&mut self, step: Step) -> Result<()> {
        loop {
            match rustix::fs::openat(self.here(), &step.name[..], sys::DIRECTORY, Mode::empty()) {
                Ok(fd) => {
                    self.stack.push((fd, step.name));
                    return Ok(());
                }
                Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {
                    return if self.expand(&step.name)? {
                        Ok(())
                    } else {
                        Err(self.target.not_directory())
                    };
                }
                Err(Errno::NOENT) if step.from_link => return Err(self.target.link_dangling()),
                Err(Errno::NOENT) if self.may_create() => self.create(&step.name)?,
                Err(Errno::NOENT) => return Err(self.target.not_found()),
                Err(errno) => return Err(self.target.os_error(errno, "opened")),
            }
        }
    }

    /// Not below a `..` that is still to come: `new/../x` needs `new` to be there, on every tree.
    fn may_create(&self) -> bool {
        self.missing == Missing::Create && self.pending.iter().all(|step| step.name != b"..")
    }

    /// Makes one directory here, after the names that lead to it have passed.
    pub(super) fn create(&self, name: &[u8]) -> Result<()> {
        self.refuse_protected(name)?;
        self.tree.refuse_virtual(self.target, self.here())?;
        if self.moving.is_some() && self.stack.iter().any(|(fd, _)| self.is_moving(fd)) {
            return Err(self.target.moved_into_itself());
        }
        match rustix::fs::mkdirat(self.here(), name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(self.target.os_error(errno, "created")),
        }
    }

    fn is_moving(&self, fd: &OwnedFd) -> bool {
        rustix::fs::fstat(fd).is_ok_and(|stat| Some(super::identity(&stat)) == self.moving)
    }

    /// Refuses to change `last` here when a resolved name is protected or the gate says no: a link may have led
    /// there.
    pub(super) fn refuse_protected(&self, last: &[u8]) -> Result<()> {
        let protected = &self.tree.protected;
        if self.names().any(|name| protected.covers_bytes(name)) || protected.covers_bytes(last) {
            return Err(self.target.protected());
        }
        self.admit(Access::Write, Some(last))
    }

    /// Puts the target of the link `name` in front of what is left; `false` when `name` is no link.
    pub(super) fn expand(&mut self, name: &[u8]) -> Result<bool> {
        let text = match rustix::fs::readlinkat(self.here(), name, Vec::new()) {
            Ok(text) => text.into_bytes(),
            Err(Errno::INVAL) => return Ok(false),
            Err(errno) => return Err(self.target.os_error(errno, "opened")),
        };
        if self.tree.symlinks == Symlinks::Deny {
            return Err(self.target.link_denied());
        }
        self.links_followed += 1;
        if self.links_followed > MAX_LINKS_FOLLOWED {
            return Err(self.target.too_many_links());
        }
        let mut rest = text.as_slice();
        if text.starts_with(b"/") {
            // From here on the root descriptor, not the host's path, is what the text is relative to.
            rest = self
                .tree
                .below_root(&text)
                .ok_or_else(|| self.target.link_outside())?;
            self.stack.clear();
        }
        if self.pending.is_empty() {
            self.must_be_directory |= text.ends_with(b"/") || text.ends_with(b"/.") || text == b".";
        }
        for part in rest.split(|&byte| byte == b'/').rev() {
            if !matches!(part, b"" | b".") {
                self.pending.push(Step {
                    name: part.to_vec(),
                    from_link: true,
                });
            }
        }
        Ok(true)
    }

    /// Opens what the path leads to, following links at its end too. Not for `O_PATH`, which would open a link.
    pub(super) fn open(mut self, flags: OFlags) -> Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        while let Some(step) = self.until_last()? {
            self.admit(Access::Read, Some(&step.name))?;
            let directory = if self.must_be_directory {
                OFlags::DIRECTORY
            } else {
                OFlags::empty()
            };
            match rustix::fs::openat(self.here(), &step.name[..], flags | directory, Mode::empty()) {
                Ok(fd) => return Ok(fd),
                Err(errno @ (Errno::NOTDIR | Errno::LOOP | Errno::MLINK)) => {
                    if !self.expand(&step.name)? {
                        return Err(self.target.os_error(errno, "opened"));
                    }
                }
                Err(errno) => return Err(self.refuse_last(&step, errno)),
            }
        }
        self.admit(Access::Read, None)?;
        let flags = flags.difference(OFlags::NOFOLLOW);
        rustix::fs::openat(self.here(), ".", flags, Mode::empty())
            .map_err(|errno| self.target.os_error(errno, "opened"))
    }

    /// Why the last name could not be opened.
    pub(super) fn refuse_last(&self, step: &Step, errno: Errno) -> Error {
        match errno {
            Errno::NOENT if step.from_link => self.target.link_dangling(),
            Errno::NOENT => self.tree.not_found_in(self.here(), self.target),
            errno => self.target.os_error(errno, "opened"),
        }
    }
}
