//! The command's cgroup v2 leaf: made before it, killed and removed after it.

use croft_exec::wire::CgroupLeaf;
use std::ffi::CStr;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub struct Leaf {
    parent: OwnedFd,
    name: std::ffi::CString,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub directory: OwnedFd,
    kill: std::fs::File,
}

impl Leaf {
    /// `None` where the directory may not be made or the kernel has no `cgroup.kill` (before 5.14); the caller
    /// then relies on the sub-reaper and says so.
    pub fn create(leaf: &CgroupLeaf<'_>) -> Option<Leaf> {
        let parent = open_directory(libc::AT_FDCWD, leaf.parent)?;
        // SAFETY: makes a directory by name below a descriptor we own.
        if unsafe { libc::mkdirat(parent.as_raw_fd(), leaf.name.as_ptr(), 0o755) } != 0 {
            return None;
        }
        let opened = open_directory(parent.as_raw_fd(), leaf.name).and_then(|directory| {
            // SAFETY: opens a constant name below a descriptor we own.
            let kill = unsafe {
                libc::openat(
                    directory.as_raw_fd(),
                    c"cgroup.kill".as_ptr(),
                    libc::O_WRONLY | libc::O_CLOEXEC,
                )
            };
            // SAFETY: the descriptor was just opened and is nobody else's.
            (kill >= 0).then(|| (directory, unsafe { std::fs::File::from_raw_fd(kill) }))
        });
        match opened {
            Some((directory, kill)) => Some(Leaf {
                parent,
                name: leaf.name.to_owned(),
                directory,
                kill,
            }),
            None => {
                // SAFETY: removes the directory made above.
                unsafe { libc::unlinkat(parent.as_raw_fd(), leaf.name.as_ptr(), libc::AT_REMOVEDIR) };
                None
            }
        }
    }

    /// SIGKILL to every member at once; forks in flight included, by the kernel's promise.
    pub fn kill(&self) {
        let _ = (&self.kill).write_all(b"1");
    }

    /// Removes the leaf. The last member may still be on its way out, so it is tried for a moment.
    pub fn remove(&self) {
        for attempt in 0..50 {
            // SAFETY: removes a directory by name below a descriptor we own.
            let removed =
                unsafe { libc::unlinkat(self.parent.as_raw_fd(), self.name.as_ptr(), libc::AT_REMOVEDIR) };
            if removed == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EBUSY) {
                return;
            }
            if attempt == 0 {
                self.kill();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

fn open_directory(at: libc::c_int, name: &CStr) -> Option<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: opens a path given as a C string.
    let opened = unsafe { libc::openat(at, name.as_ptr(), flags) };
    // SAFETY: the descriptor was just opened and is nobody else's.
    (opened >= 0).then(|| unsafe { OwnedFd::from_raw_fd(opened) })
}
