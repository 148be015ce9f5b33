//! Listing one directory, and the names that a refusal hints at.

use super::walk::{Missing, Walk};
use super::{DiskTree, sys};
use crate::error::{Error, Result};
use crate::tree::refusal::Target;
use crate::tree::{Entry, EntryList, FileType, Symlinks};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::os::fd::{AsFd, BorrowedFd};

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A hint is not worth a long listing.
const MAX_HINT_NAMES: usize = 2_000;

impl DiskTree {
    pub(super) fn list(&self, target: &Target<'_>, sizes: bool) -> Result<Vec<Entry>> {
        let dir = self.open_target(target, OPEN)?;
        self.refuse_virtual(target, dir.as_fd())?;
        let mut found = EntryList::default();
        sys::read_entries(dir.as_fd(), &mut found).map_err(|errno| target.os_error(errno, "listed"))?;
        found.sort_by_name();
        let entry = |(name, file_type): (&[u8], FileType)| {
            let (shown, addressable) = shown(name);
            Entry {
                link_target: (file_type == FileType::Symlink && addressable)
                    .then(|| self.link_target(target, &shown))
                    .flatten(),
                size: (sizes && file_type == FileType::File)
                    .then(|| size(dir.as_fd(), name))
                    .flatten(),
                name: shown,
                addressable,
                file_type,
            }
        };
        Ok(found.iter().map(entry).collect())
    }

    /// The type of what a link in `directory` leads to, if that is inside. Resolved from the root again, so that
    /// the answer is about a place inside even when the directory is swapped meanwhile; and by the walk, which
    /// never has to say that directories kept moving.
    fn link_target(&self, directory: &Target<'_>, name: &str) -> Option<FileType> {
        if self.symlinks == Symlinks::Deny {
            return None;
        }
        let path = format!("{}/{name}", directory.parsed.components.join("/"));
        let target = Target::parse(path.trim_start_matches('/')).ok()?;
        let found = self.stat_walking(&target).ok()??.file_type;
        (found != FileType::Symlink).then_some(found)
    }

    /// Not found, with the name in `dir` that looks like the wanted one.
    pub(super) fn not_found_in(&self, dir: BorrowedFd<'_>, target: &Target<'_>) -> Error {
        let mut found = EntryList::default();
        if let Ok(dir) = rustix::fs::openat(dir, ".", OPEN, Mode::empty())
            && sys::read_entries(dir.as_fd(), &mut found).is_ok()
        {
            let names = found.iter().take(MAX_HINT_NAMES);
            return target.not_found_among(names.filter_map(|(name, _)| std::str::from_utf8(name).ok()));
        }
        target.not_found()
    }
}

fn size(dir: BorrowedFd<'_>, name: &[u8]) -> Option<u64> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(super::read::size_of(&stat))
}

/// A name as text, and whether a path can say it. What cannot be said is written `\xNN`, and so is the
/// backslash: shown plainly, `a\b` would be taken for `b` in `a`.
fn shown(name: &[u8]) -> (String, bool) {
    if let Ok(text) = std::str::from_utf8(name)
        && !text.contains('\\')
    {
        return (text.to_owned(), true);
    }
    let mut out = String::new();
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                out.push_str("\\x5c")
            } else {
                out.push(c)
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    (out, false)
}

impl DiskTree {
    /// Resolved names of a path that has `..` in it, for results that must name the right place.
    pub(super) fn resolved_names(&self, target: &Target<'_>) -> Result<Vec<String>> {
        let mut walk = Walk::new(self, target, Missing::Refuse);
        let last = walk.until_last_named()?;
        let mut names: Vec<String> = walk
            .names()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        names.extend(last.map(|step| String::from_utf8_lossy(&step.name).into_owned()));
        Ok(names)
    }
}
