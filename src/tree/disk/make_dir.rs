//! Making a directory and those above it. What is there already is left as it is.

use super::walk::{Missing, Walk};
use super::{DiskTree, sys};
use crate::error::Result;
use crate::tree::refusal::Target;
use rustix::fs::Mode;
use rustix::io::Errno;

impl DiskTree {
    pub(super) fn make_directories(&self, target: &Target<'_>) -> Result<()> {
        let mut walk = Walk::new(self, target, Missing::Create);
        while let Some(step) = walk.until_last()? {
            // What a dead link names is not made: it may be anybody's idea of a place.
            if !step.from_link {
                walk.create(&step.name)?;
            }
            match rustix::fs::openat(walk.here(), &step.name[..], sys::DIRECTORY, Mode::empty()) {
                Ok(_) => return walk.refuse_protected(&step.name),
                Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) if walk.expand(&step.name)? => {}
                Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => return Err(target.exists()),
                Err(errno) => return Err(walk.refuse_last(&step, errno)),
            }
        }
        Ok(())
    }
}
