//! Trees to run a case on, and what an operation answered.

use croft::tree::{
    DiskOptions, DiskTree, MemoryTree, RemoveOptions, Resolver, Symlinks, Tree, UpdateOptions, WalkStart,
    WriteOptions,
};
use croft::{Error, ErrorCode};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A directory for the root and one beside it that nothing may touch.
pub struct Ground {
    _scratch: tempfile::TempDir,
    pub root: PathBuf,
    pub outside: PathBuf,
}

impl Ground {
    /// In memory where there is such a place: a case is about paths, and flushing hundreds of files takes long.
    pub fn new() -> Self {
        let shm = Path::new("/dev/shm");
        if shm.is_dir() {
            Self::within(shm.to_path_buf())
        } else {
            Self::on_disk()
        }
    }

    pub fn on_disk() -> Self {
        Self::within(std::env::temp_dir())
    }

    fn within(place: PathBuf) -> Self {
        crate::denied::deny_if_asked();
        let scratch = tempfile::tempdir_in(place).unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let (root, outside) = (base.join("ws"), base.join("out"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&outside).unwrap();
        Self {
            _scratch: scratch,
            root,
            outside,
        }
    }

    pub fn file(&self, path: &str, content: &str) -> &Self {
        put(&self.root.join(path), content.as_bytes());
        self
    }

    pub fn dir(&self, path: &str) -> &Self {
        std::fs::create_dir_all(self.root.join(path)).unwrap();
        self
    }

    /// `${ROOT}` and `${OUT}` in the target stand for the two directories.
    pub fn link(&self, path: &str, target: &str) -> &Self {
        let target = target
            .replace("${ROOT}", self.root.to_str().unwrap())
            .replace("${OUT}", self.outside.to_str().unwrap());
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    pub fn tree(&self, resolver: Resolver) -> DiskTree {
        self.tree_with(resolver, Symlinks::Inside)
    }

    pub fn tree_with(&self, resolver: Resolver, symlinks: Symlinks) -> DiskTree {
        let options = DiskOptions {
            root: self.root.clone(),
            symlinks,
            ..DiskOptions::default()
        };
        DiskTree::open_with(&options, resolver).unwrap()
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }
}

pub fn put(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub const BOTH: [Resolver; 2] = [Resolver::Kernel, Resolver::Walk];

/// What one operation on one path answered, in a form that can stand in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok(String),
    Refused(ErrorCode),
}

impl<T: ToString> From<Result<T, Error>> for Answer {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => Answer::Ok(value.to_string()),
            Err(error) => Answer::Refused(error.code),
        }
    }
}

pub fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Every operation, by name, so that a case can be put to all of them.
pub fn call(tree: &dyn Tree, operation: &str, path: &str) -> Answer {
    call_below(tree, "", operation, path)
}

/// As `call`, with every path below `base`: empty, or ending in a slash.
pub fn call_below(tree: &dyn Tree, base: &str, operation: &str, path: &str) -> Answer {
    let path = &format!("{base}{path}");
    let movable = &format!("{base}movable");
    match operation {
        "read" => tree.read(path, 1 << 20).map(text).into(),
        "open_file" => tree.open_file(path).map(|file| file.size()).into(),
        "write" => tree
            .write(path, b"NEW", &WriteOptions::default())
            .map(|()| "")
            .into(),
        "write_no_parents" => {
            let options = WriteOptions {
                create_parents: false,
                ..WriteOptions::default()
            };
            tree.write(path, b"NEW", &options).map(|()| "").into()
        }
        "create" => {
            let options = WriteOptions {
                create_only: true,
                ..WriteOptions::default()
            };
            tree.write(path, b"NEW", &options).map(|()| "").into()
        }
        "update" => tree
            .update(path, &UpdateOptions::default(), &mut |old| {
                Ok(Some([old, b"+"].concat()))
            })
            .into(),
        "stat" => tree
            .stat(path)
            .map(|stat| format!("{:?}", stat.map(|stat| stat.file_type)))
            .into(),
        "list" => tree
            .read_dir(path, false)
            .map(|entries| {
                entries
                    .into_iter()
                    .map(|entry| entry.name)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .into(),
        "mkdir" => tree.make_dir(path).map(|()| "").into(),
        "remove" => tree.remove(path, &RemoveOptions::default()).map(|()| "").into(),
        "remove_all" => tree
            .remove(
                path,
                &RemoveOptions {
                    recursive: true,
                    cancel: None,
                },
            )
            .map(|()| "")
            .into(),
        "rename_from" => tree
            .rename(path, &format!("{base}renamed-here"), false)
            .map(|()| "")
            .into(),
        "rename_to" => tree.rename(movable, path, false).map(|()| "").into(),
        "rename_over" => tree.rename(movable, path, true).map(|()| "").into(),
        "walk" => tree
            .open_walk(path)
            .map(|start| match start {
                WalkStart::Folder { path, above, .. } => format!("folder {path} {}", above.len()),
                WalkStart::File { path, name, .. } => {
                    format!("file {path} {}", String::from_utf8_lossy(&name))
                }
            })
            .into(),
        other => panic!("no operation {other}"),
    }
}

pub const OPERATIONS: [&str; 15] = [
    "read",
    "open_file",
    "write",
    "write_no_parents",
    "create",
    "update",
    "stat",
    "list",
    "mkdir",
    "remove",
    "remove_all",
    "rename_from",
    "rename_to",
    "rename_over",
    "walk",
];

/// The same files and directories in memory.
pub fn memory(files: &[(&str, &str)], dirs: &[&str]) -> MemoryTree {
    let tree = MemoryTree::default();
    for (path, content) in files {
        tree.insert(path, content.as_bytes().to_vec()).unwrap();
    }
    for path in dirs {
        tree.make_dir(path).unwrap();
    }
    tree
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives a file away, where the tests run as root; elsewhere it is an ordinary user's already.
pub fn give(path: &Path, user: u32, group: u32) {
    if is_root() {
        std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
    }
}

/// Runs `work` in a thread of its own with an ordinary user's rights; the rest of the process stays as it is.
pub fn as_user(id: u32, work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if !is_root() {
                return work();
            }
            let (user, group) = (
                rustix::process::Uid::from_raw(id),
                rustix::process::Gid::from_raw(id),
            );
            rustix::thread::set_thread_res_gid(group, group, group).unwrap();
            rustix::thread::set_thread_res_uid(user, user, user).unwrap();
            work();
        });
        thread.join().unwrap();
    });
}

/// Runs one test of this binary (or those with a prefix) in a process of its own.
pub fn in_child(test: &str, env: &[(&str, &str)]) {
    let exact = if test.ends_with("::") {
        &[][..]
    } else {
        &["--exact"][..]
    };
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .arg(test)
        .args(exact)
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success(),
        "{told}\n{}",
        String::from_utf8_lossy(&child.stderr)
    );
    assert!(!told.contains("running 0 tests"), "no test is called {test}");
}

/// A file system mounted for one test, and gone at its end, however that comes.
pub struct Mount {
    point: PathBuf,
}

impl Mount {
    /// `None`, and a word about it, where this user may not mount.
    pub fn new(arguments: &[&str], point: &Path) -> Option<Self> {
        let mount = Self {
            point: point.to_path_buf(),
        };
        if mount.again(arguments) {
            return Some(mount);
        }
        std::mem::forget(mount);
        eprintln!("skipped: mounting {arguments:?} needs root");
        None
    }

    pub fn again(&self, arguments: &[&str]) -> bool {
        let mut command = std::process::Command::new("mount");
        command
            .args(arguments)
            .arg(&self.point)
            .status()
            .is_ok_and(|status| status.success())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.point)
            .status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}
