//! Several roots as one tree: a relative path is in the first, an absolute one in the root with the longest match.
//! Each root is a confined tree of its own, so nothing about confinement is decided here.

use super::{
    Change, Entry, Folder, OpenFile, RemoveOptions, Stat, Tree, UpdateOptions, WalkStart, WriteOptions,
};
use crate::error::{Error, ErrorCode, Result};
use crate::path::quoted;
use std::sync::Arc;

pub struct RoutedTree {
    main: Arc<dyn Tree>,
    /// Absolute paths that mean the first root: as it is, and as the user wrote it.
    main_prefixes: Vec<String>,
    /// By absolute path (no slash at the end, empty for `/`), the longest first; a root may have several.
    others: Vec<(String, Arc<dyn Tree>)>,
}

struct Route<'a> {
    tree: &'a dyn Tree,
    /// Below that tree's root.
    path: String,
    /// Empty for the first root, whose paths are relative.
    /// `None`: the first tree, whose paths are shown relative. `Some("")`: the top of the file system.
    prefix: Option<&'a str>,
}

impl RoutedTree {
    pub fn new(
        main: Arc<dyn Tree>,
        main_prefixes: Vec<String>,
        mut others: Vec<(String, Arc<dyn Tree>)>,
    ) -> Self {
        others.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self {
            main,
            main_prefixes,
            others,
        }
    }

    fn route(&self, path: &str) -> Route<'_> {
        let stay = |path: &str| Route {
            tree: &*self.main,
            path: path.to_owned(),
            prefix: None,
        };
        // A `..` that could cross a root's border is left to the first tree, which refuses absolute paths.
        if !path.starts_with('/') || refuse_climbing(path).is_err() {
            return stay(path);
        }
        let main = self
            .main_prefixes
            .iter()
            .filter_map(|prefix| Some((prefix.len(), below(path, prefix)?)))
            .max();
        let other = self
            .others
            .iter()
            .find_map(|(prefix, tree)| below(path, prefix).map(|rest| (prefix, tree, rest)));
        match (main, other) {
            (Some((length, rest)), other) if other.is_none_or(|(prefix, ..)| prefix.len() <= length) => {
                stay(rest)
            }
            (_, Some((prefix, tree, rest))) => Route {
                tree: &**tree,
                path: rest.to_owned(),
                prefix: Some(prefix),
            },
            (_, None) => stay(path),
        }
    }
}

fn refuse_climbing(path: &str) -> Result<()> {
    if !path.starts_with('/') || path.split('/').all(|part| part != "..") {
        return Ok(());
    }
    let message = format!(
        "path {} is absolute and has \"..\" in it: write it without",
        quoted(path)
    );
    Err(Error::new(ErrorCode::OutsideWorkspace, message).at(path))
}

/// What follows `prefix` by whole components; `.` for the prefix itself.
fn below<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(prefix)?;
    if !rest.is_empty() && !rest.starts_with('/') {
        return None;
    }
    let rest = rest.trim_start_matches('/');
    Some(if rest.is_empty() { "." } else { rest })
}

impl Route<'_> {
    /// A refusal names the path as the caller wrote it.
    fn named<T>(&self, written: &str, answer: Result<T>) -> Result<T> {
        answer.map_err(|error| match refuse_climbing(written) {
            Err(clearer) if error.code == clearer.code => clearer,
            _ => Error {
                message: error.message.replacen(&quoted(&self.path), &quoted(written), 1),
                path: Some(written.to_owned()),
                ..error
            },
        })
    }

    /// A path below this root as the caller may write it.
    fn shown(&self, path: String) -> String {
        match (self.prefix, path.as_str()) {
            (None, _) => path,
            (Some(""), ".") => "/".to_owned(),
            (Some(prefix), ".") => prefix.to_owned(),
            (Some(prefix), path) => format!("{prefix}/{path}"),
        }
    }
}

impl Tree for RoutedTree {
    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>> {
        let route = self.route(path);
        route.named(path, route.tree.read(&route.path, max_bytes))
    }

    fn read_now(&self, path: &str, max_bytes: u64) -> Option<Result<Vec<u8>>> {
        let route = self.route(path);
        Some(route.named(path, route.tree.read_now(&route.path, max_bytes)?))
    }

    fn write(&self, path: &str, content: &[u8], options: &WriteOptions) -> Result<()> {
        let route = self.route(path);
        route.named(path, route.tree.write(&route.path, content, options))
    }

    fn update(&self, path: &str, options: &UpdateOptions, change: &mut Change<'_>) -> Result<bool> {
        let route = self.route(path);
        route.named(path, route.tree.update(&route.path, options, change))
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn OpenFile>> {
        let route = self.route(path);
        route.named(path, route.tree.open_file(&route.path))
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let route = self.route(path);
        route.named(path, route.tree.stat(&route.path))
    }

    fn stat_now(&self, path: &str) -> Option<Result<Option<Stat>>> {
        let route = self.route(path);
        Some(route.named(path, route.tree.stat_now(&route.path)?))
    }

    fn read_dir(&self, path: &str, sizes: bool) -> Result<Vec<Entry>> {
        let route = self.route(path);
        route.named(path, route.tree.read_dir(&route.path, sizes))
    }

    fn make_dir(&self, path: &str) -> Result<()> {
        let route = self.route(path);
        route.named(path, route.tree.make_dir(&route.path))
    }

    fn set_mode(&self, path: &str, mode: u32) -> Result<()> {
        let route = self.route(path);
        route.named(path, route.tree.set_mode(&route.path, mode))
    }

    fn remove(&self, path: &str, options: &RemoveOptions) -> Result<()> {
        let route = self.route(path);
        route.named(path, route.tree.remove(&route.path, options))
    }

    fn rename(&self, from: &str, to: &str, overwrite: bool) -> Result<()> {
        refuse_climbing(from)?;
        refuse_climbing(to)?;
        let (source, target) = (self.route(from), self.route(to));
        if !std::ptr::addr_eq(source.tree, target.tree) {
            let message = format!(
                "{} and {} are in different roots: write the file there and remove it here",
                quoted(from),
                quoted(to)
            );
            return Err(Error::new(ErrorCode::InvalidArgument, message).at(from));
        }
        source.named(from, source.tree.rename(&source.path, &target.path, overwrite))
    }

    fn open_walk(&self, path: &str) -> Result<WalkStart> {
        let route = self.route(path);
        let start = route.named(path, route.tree.open_walk(&route.path))?;
        Ok(match start {
            WalkStart::Folder { folder, path, above } => {
                let above: Vec<(String, Box<dyn Folder>)> = above
                    .into_iter()
                    .map(|(path, folder)| (route.shown(path), folder))
                    .collect();
                WalkStart::Folder {
                    folder,
                    path: route.shown(path),
                    above,
                }
            }
            WalkStart::File { parent, name, path } => WalkStart::File {
                parent,
                name,
                path: route.shown(path),
            },
        })
    }

    fn resolved(&self, path: &str) -> Result<String> {
        let route = self.route(path);
        let found = route.named(path, route.tree.resolved(&route.path))?;
        Ok(route.shown(found))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::tree::MemoryTree;

    fn memory(files: &[&str]) -> Arc<dyn Tree> {
        let tree = MemoryTree::new(&[]);
        for path in files {
            tree.insert(path, path.as_bytes().to_vec()).unwrap();
        }
        Arc::new(tree)
    }

    fn routed() -> RoutedTree {
        RoutedTree::new(
            memory(&["a", "sub/b"]),
            vec!["/w".to_owned()],
            vec![
                ("/data".to_owned(), memory(&["c"])),
                ("/w/nested".to_owned(), memory(&["d"])),
            ],
        )
    }

    #[test]
    fn the_longest_root_answers_an_absolute_path() {
        let tree = routed();
        for (path, content) in [
            ("a", "a"),
            ("/w/a", "a"),
            ("/w/sub/b", "sub/b"),
            ("/data/c", "c"),
            ("/w/nested/d", "d"),
        ] {
            assert_eq!(tree.read(path, 100).unwrap(), content.as_bytes(), "{path}");
        }
        for (path, code) in [
            ("/etc/passwd", ErrorCode::OutsideWorkspace),
            ("/database/c", ErrorCode::OutsideWorkspace),
            ("/data/../w/a", ErrorCode::OutsideWorkspace),
            ("/data/x", ErrorCode::NotFound),
        ] {
            let error = tree.read(path, 100).unwrap_err();
            assert_eq!(error.code, code, "{path}");
            assert!(
                error.message.contains(&format!("\"{path}\"")),
                "{}",
                error.message
            );
        }
    }

    #[test]
    fn a_root_with_two_names_is_one_root() {
        let data = memory(&["c"]);
        let others = vec![("/data".to_owned(), data.clone()), ("/alias".to_owned(), data)];
        let tree = RoutedTree::new(memory(&["a"]), vec!["/w".to_owned()], others);
        tree.rename("/alias/c", "/data/d", false).unwrap();
        assert_eq!(tree.read("/alias/d", 100).unwrap(), b"c");
        let error = tree.rename("/data/d", "/w/d", false).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgument);
    }

    #[test]
    fn a_name_is_not_moved_from_one_root_to_another() {
        let tree = routed();
        assert_eq!(
            tree.rename("a", "/data/a", false).unwrap_err().code,
            ErrorCode::InvalidArgument
        );
        tree.rename("/data/c", "/data/e", false).unwrap();
        assert!(tree.stat("/data/e").unwrap().is_some());
    }

    #[test]
    fn a_walk_shows_absolute_paths_for_another_root() {
        let WalkStart::Folder { path, .. } = routed().open_walk("/data").unwrap() else {
            panic!("a folder");
        };
        assert_eq!(path, "/data");
    }

    #[test]
    fn what_lies_below_the_top_of_the_file_system_is_shown_absolute() {
        let others = vec![(String::new(), memory(&["etc/c"]))];
        let tree = RoutedTree::new(memory(&["a"]), vec!["/w".to_owned()], others);
        for (asked, shown) in [("/etc/c", "/etc/c"), ("/", "/"), ("/w/a", "a"), ("a", "a")] {
            assert_eq!(tree.resolved(asked).unwrap(), shown, "{asked}");
        }
    }
}
