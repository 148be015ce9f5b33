//! Finds the Python environment at a workspace's root. Putting it into effect is left to `env`.

use super::env::ActiveVenv;
use std::os::fd::OwnedFd;
use std::path::Path;

const NAMES: [&str; 2] = [".venv", "venv"];
const PROGRAMS: &str = if cfg!(windows) { "Scripts" } else { "bin" };
const INTERPRETERS: [&str; 2] = if cfg!(windows) {
    ["python.exe", "python3.exe"]
} else {
    ["python", "python3"]
};

/// The first of `.venv` and `venv` that holds an interpreter. `open_directory` opens a workspace path confined to
/// the root, so an environment behind a link that leaves it is not found: whoever can write the workspace could
/// otherwise choose programs of another project. The interpreter itself usually is a link to the system's.
pub fn find(root: &Path, open_directory: impl Fn(&str) -> Option<OwnedFd>) -> Option<ActiveVenv> {
    NAMES.into_iter().find_map(|name| {
        let programs = open_directory(&format!("{name}/{PROGRAMS}"))?;
        let found = INTERPRETERS.into_iter().any(|interpreter| {
            rustix::fs::statat(&programs, interpreter, rustix::fs::AtFlags::empty()).is_ok()
        });
        let directory = root.join(name);
        found.then(|| ActiveVenv {
            programs: directory.join(PROGRAMS).into(),
            directory: directory.into(),
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    fn find_in(root: &Path) -> Option<ActiveVenv> {
        // Stands in for the confined open: refuses links, as the tree does for links that leave the root.
        find(root, |path| {
            let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
            let first = root.join(path.split('/').next()?);
            if fs::symlink_metadata(first).ok()?.is_symlink() {
                return None;
            }
            rustix::fs::open(root.join(path), flags, rustix::fs::Mode::empty()).ok()
        })
    }

    #[test]
    fn a_directory_with_an_interpreter_is_active_and_dot_venv_comes_first() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(find_in(root.path()), None);
        fs::create_dir_all(root.path().join("venv/bin")).unwrap();
        assert_eq!(find_in(root.path()), None, "no interpreter");
        fs::write(root.path().join("venv/bin/python3"), "").unwrap();
        let directory = root.path().join("venv");
        let venv = ActiveVenv {
            programs: directory.join("bin").into(),
            directory: directory.into(),
        };
        assert_eq!(find_in(root.path()), Some(venv));
        fs::create_dir_all(root.path().join(".venv/bin")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", root.path().join(".venv/bin/python")).unwrap();
        assert_eq!(find_in(root.path()).unwrap().directory, root.path().join(".venv"));
    }

    #[test]
    fn a_link_that_leaves_the_root_is_not_activated() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(outside.path().join("bin")).unwrap();
        fs::write(outside.path().join("bin/python"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join(".venv")).unwrap();
        assert_eq!(find_in(root.path()), None);
    }
}
