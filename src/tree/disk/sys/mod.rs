//! What differs between operating systems, behind one set of functions; the only `cfg` switch of the disk tree.
//! Each function works on a descriptor it is given and at most one plain name, except `open_beneath`.

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "linux.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "portable.rs")]
mod imp;

pub(super) use imp::*;

use rustix::io::Errno;

/// How much `open_beneath` may do.
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beneath {
    /// Follow links (never the magic ones of procfs).
    pub follow_links: bool,
    /// Fail with `EAGAIN` where the answer is not in the kernel's caches.
    pub cached_only: bool,
}

/// Why the kernel did not open a path beneath a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BeneathError {
    /// There is no such call here, or a filter forbids it: walk the components instead.
    Unavailable,
    Failed(Errno),
}

/// How a name is taken by a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Replace,
    /// `EEXIST` when there is anything.
    Refuse,
}
