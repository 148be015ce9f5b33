//! Opening the root, once, and telling which absolute paths mean a place below it.

use super::{DiskTree, sys};
use crate::error::{Error, ErrorCode, Result};
use crate::path::{ProtectedNames, quoted};
use crate::tree::DiskOptions;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How paths become descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// `openat2` where the kernel has it and no filter forbids it, else the component walk, decided at each call.
    Kernel,
    /// The component walk always.
    Walk,
}

impl DiskTree {
    pub fn open(options: &DiskOptions) -> Result<Self> {
        Self::open_with(options, Resolver::Kernel)
    }

    /// With the resolver chosen, so that tests can run each case on both.
    pub fn open_with(options: &DiskOptions, resolver: Resolver) -> Result<Self> {
        let given = &options.root;
        if given.as_os_str().is_empty() {
            return Err(refuse(
                given,
                ErrorCode::InvalidArgument,
                "is empty: give the path of a directory",
            ));
        }
        let given_path = std::path::absolute(given).map_err(|error| os(given, &error))?;
        let real_path = std::fs::canonicalize(given).map_err(|error| os(given, &error))?;
        let flags = sys::DIRECTORY.difference(OFlags::NOFOLLOW);
        let root =
            rustix::fs::open(&real_path, flags, Mode::empty()).map_err(|errno| os(given, &errno.into()))?;
        if sys::is_virtual(root.as_fd()).map_err(|errno| os(given, &errno.into()))? {
            let rule = "lies on a virtual file system such as procfs, which cannot be confined";
            return Err(refuse(given, ErrorCode::NotDirectory, rule));
        }
        let stat = rustix::fs::fstat(&root).map_err(|errno| os(given, &errno.into()))?;
        Ok(Self {
            root,
            real_path,
            given_path,
            device: super::identity(&stat).0,
            symlinks: options.symlinks,
            protected: ProtectedNames::new(&options.protect),
            flush: options.flush,
            resolver,
            gate: None,
        })
    }

    /// What is left of an absolute link target below the root, if it names a place there. Only the text is
    /// compared: the rest is resolved from the root descriptor, whatever lies at that path by now.
    pub(super) fn below_root<'p>(&self, absolute: &'p [u8]) -> Option<&'p [u8]> {
        [&self.real_path, &self.given_path]
            .into_iter()
            .find_map(|root| strip_root(root, absolute))
    }
}

fn strip_root<'p>(root: &Path, absolute: &'p [u8]) -> Option<&'p [u8]> {
    let mut rest = absolute;
    for name in root
        .as_os_str()
        .as_bytes()
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
    {
        loop {
            rest = rest.strip_prefix(b"/")?;
            // `//` and `/./` mean nothing; any other difference is another place.
            match rest {
                [b'/', ..] => {}
                [b'.', b'/', ..] => rest = &rest[1..],
                _ => break,
            }
        }
        rest = rest.strip_prefix(name)?;
    }
    (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
}

fn refuse(root: &Path, code: ErrorCode, rule: &str) -> Error {
    // The root is the caller's own word for a host path, so it may be shown to the caller.
    Error::new(
        code,
        format!("workspace root {} {rule}", quoted(&root.to_string_lossy())),
    )
}

fn os(root: &Path, error: &std::io::Error) -> Error {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => refuse(
            root,
            ErrorCode::NotFound,
            "does not exist: create the directory first",
        ),
        Some(Errno::NOTDIR) => refuse(root, ErrorCode::NotDirectory, "is not a directory"),
        Some(Errno::ACCESS | Errno::PERM) => refuse(
            root,
            ErrorCode::AccessDenied,
            "cannot be opened: permission denied",
        ),
        Some(Errno::MFILE | Errno::NFILE) => refuse(
            root,
            ErrorCode::TooManyOpenFiles,
            "cannot be opened: too many open files",
        ),
        _ => refuse(root, ErrorCode::Io, &format!("cannot be opened: {error}")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::strip_root;
    use std::path::Path;

    #[test]
    fn an_absolute_target_is_inside_only_by_whole_components() {
        for (root, absolute, rest) in [
            ("/tmp/ws", "/tmp/ws/a", Some("/a")),
            ("/tmp/ws", "/tmp/ws", Some("")),
            ("/tmp/ws", "//tmp/./ws//a", Some("//a")),
            ("/tmp/ws", "/tmp/ws/../x", Some("/../x")),
            ("/", "/etc", Some("/etc")),
            ("/tmp/ws", "/tmp/ws-evil/a", None),
            ("/tmp/ws", "/tmp/w", None),
            ("/tmp/ws", "/tmp/x/../ws/a", None),
            ("/tmp/ws", "/etc/passwd", None),
            ("/tmp/ws", "/", None),
        ] {
            let found = strip_root(Path::new(root), absolute.as_bytes());
            assert_eq!(found, rest.map(str::as_bytes), "{absolute} below {root}");
        }
    }
}
