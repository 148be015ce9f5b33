//! Where commands get a cgroup of their own: finds a writable cgroup v2 directory, names the leaves, and clears
//! away what a dead process left. Making, killing and removing a leaf is the helper's; the addon does it only
//! when the helper was killed.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const PREFIX: &str = "croft-";

/// A leaf that the helper is told to make.
#[derive(Clone, Debug)]
pub struct Leaf {
    pub parent: CString,
    pub name: CString,
    path: PathBuf,
}

impl Leaf {
    /// A fresh name, or `None` where no cgroup can be made.
    pub fn next() -> Option<Leaf> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = parent()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number}", owner_prefix()?);
        Some(Leaf {
            path: parent.join(&name),
            parent: CString::new(parent.to_str()?).ok()?,
            name: CString::new(name).ok()?,
        })
    }

    /// Ends every member and removes the leaf; false when there is none. May block for some milliseconds.
    pub fn destroy(&self) -> bool {
        destroy(&self.path)
    }
}

/// Whether commands get a cgroup here.
pub fn is_available() -> bool {
    parent().is_some()
}

/// The process's own cgroup v2 directory when leaves can be made and killed in it. Tried for real once: reading
/// permissions would not show a read-only mount or a kernel without `cgroup.kill` (before 5.14).
fn parent() -> Option<&'static Path> {
    static PARENT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PARENT.get_or_init(|| {
        let parent = own_directory(
            &fs::read_to_string("/proc/self/mountinfo").ok()?,
            &fs::read_to_string("/proc/self/cgroup").ok()?,
        )?;
        // Not waited for: a member on its way out can hold a leaf for a while.
        let swept = parent.clone();
        let _ = std::thread::Builder::new()
            .name("croft-sweep".into())
            .spawn(move || sweep(&swept));
        let trial = parent.join(format!("{}probe", owner_prefix()?));
        fs::create_dir(&trial).ok()?;
        let works = fs::OpenOptions::new()
            .write(true)
            .open(trial.join("cgroup.kill"))
            .is_ok();
        let _ = fs::remove_dir(&trial);
        works.then_some(parent)
    });
    found.as_deref()
}

/// Where this process's cgroup v2 directory is mounted, if it is.
fn own_directory(mountinfo: &str, cgroup: &str) -> Option<PathBuf> {
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    mountinfo.lines().find_map(|line| {
        // "36 35 98:0 /root /mount/point options - cgroup2 source options"
        let (fields, kind) = line.split_once(" - ")?;
        if kind.split(' ').next()? != "cgroup2" {
            return None;
        }
        let mut fields = fields.split(' ').skip(3);
        let (mounted, point) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(mounted).ok()?;
        // A mount point with a space is written \040; nobody has one, and a wrong path only fails to open.
        Some(if below.as_os_str().is_empty() {
            point.into()
        } else {
            Path::new(point).join(below)
        })
    })
}

/// `croft-<pid namespace>-<pid>-<start time>-`: says whose leaf it is, across containers that share the mount and
/// across reuse of the pid.
fn owner_prefix() -> Option<&'static str> {
    static PREFIX_OF_OWNER: OnceLock<Option<String>> = OnceLock::new();
    let prefix = PREFIX_OF_OWNER.get_or_init(|| {
        let pid = std::process::id();
        Some(format!(
            "{PREFIX}{}-{pid}-{}-",
            pid_namespace()?,
            start_time(pid)?
        ))
    });
    prefix.as_deref()
}

fn pid_namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?
        .strip_prefix("pid:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// In clock ticks since boot; with the pid it names one process for ever.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything; fields count from after its closing parenthesis.
    stat.get(stat.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .nth(19)?
        .parse()
        .ok()
}

/// Ends and removes the leaves of processes that are gone (killed together with their helpers).
fn sweep(parent: &Path) {
    let Some(namespace) = pid_namespace() else { return };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(|name| owner_of(name, namespace)) else {
            continue;
        };
        if start_time(owner.0) != Some(owner.1) {
            destroy(&entry.path());
        }
    }
}

/// (pid, start time) of a leaf's owner, if it belongs to this pid namespace.
fn owner_of(name: &str, namespace: u64) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let same = parts.next()?.parse() == Ok(namespace);
    let owner = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    same.then_some(owner)
}

fn destroy(leaf: &Path) -> bool {
    if fs::write(leaf.join("cgroup.kill"), "1").is_err() {
        return false;
    }
    for _ in 0..100 {
        match fs::remove_dir(leaf) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            _ => break,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_directory_is_found_in_hybrid_unified_and_namespaced_layouts() {
        let hybrid = "30 25 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n";
        let unified = "31 25 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let bound = "31 25 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        for (mounts, own, expected) in [
            (hybrid, "4:pids:/a\n0::/\n", Some("/sys/fs/cgroup/unified")),
            (
                unified,
                "0::/user.slice/a b\n",
                Some("/sys/fs/cgroup/user.slice/a b"),
            ),
            (bound, "0::/docker/x/sub\n", Some("/sys/fs/cgroup/sub")),
            (bound, "0::/elsewhere\n", None),
            (unified, "4:pids:/a\n", None),
            ("", "0::/\n", None),
        ] {
            assert_eq!(
                own_directory(mounts, own),
                expected.map(PathBuf::from),
                "{mounts}{own}"
            );
        }
    }

    #[test]
    fn a_leaf_of_another_pid_namespace_or_another_name_is_nobodys() {
        assert_eq!(owner_of("croft-7-12-345-0", 7), Some((12, 345)));
        for name in [
            "croft-8-12-345-0",
            "croft-7-x-345-0",
            "croft-",
            "docker",
            "croft-7-12",
        ] {
            assert_eq!(owner_of(name, 7), None, "{name}");
        }
    }
}
