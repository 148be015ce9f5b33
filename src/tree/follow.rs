//! Follows the links of a host path by looking at names only, so that the policy can tell where a command's words lead.
//! Nothing is opened, and what is found is never opened by it: between the look and the command it may change.

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

/// The part that does not exist is taken as it is written, so that the target of a dangling link is told too.
/// `None`: too many links, or a path that is not absolute.
pub fn follow_links(path: &str) -> Option<String> {
    let path = Path::new(path);
    if !path.is_absolute() {
        return None;
    }
    let mut found = PathBuf::new();
    let mut pending: VecDeque<PathBuf> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = pending.pop_front() {
        if part.as_os_str() == ".." {
            found.pop();
            continue;
        }
        // An absolute part replaces everything before it.
        let next = found.join(part);
        let Ok(target) = std::fs::read_link(&next) else {
            found = next;
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
            pending.push_front(part);
        }
    }
    Some(found.to_string_lossy().into_owned())
}

fn parts(path: &Path) -> impl Iterator<Item = PathBuf> + '_ {
    path.components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| PathBuf::from(part.as_os_str()))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_the_end_and_a_loop_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap();
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        for (target, name) in [
            ("real", "a"),
            ("a/deep", "b"),
            ("../a", "real/up"),
            ("/outside/x", "out"),
            ("missing/y", "dangling"),
            ("loop", "loop"),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        let at = |path: &str| root.join(path).to_str().unwrap().to_owned();
        for (path, expected) in [
            ("real/deep", Some(at("real/deep"))),
            ("a", Some(at("real"))),
            ("b/new", Some(at("real/deep/new"))),
            ("real/up/deep", Some(at("real/deep"))),
            ("out/z", Some("/outside/x/z".to_owned())),
            ("dangling", Some(at("missing/y"))),
            ("loop", None),
            ("none", Some(at("none"))),
        ] {
            assert_eq!(follow_links(&at(path)), expected, "{path}");
        }
        assert_eq!(follow_links("relative"), None);
    }
}
