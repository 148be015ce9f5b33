//! Where a path points, by its letters alone: inside the workspace or outside. Links are the tree's business; it
//! hands in what it resolved as a second place.

/// A path after `.` and `..` are taken. Inside: `.` or `a/b`. Outside: absolute, or `~user/...` which nobody resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    Inside(String),
    Outside(String),
}

impl Place {
    pub fn root() -> Self {
        Place::Inside(".".to_owned())
    }

    /// As a message shows it, and as the caller may write it.
    pub fn shown(&self) -> &str {
        match self {
            Place::Inside(path) | Place::Outside(path) => path,
        }
    }

    pub fn is_inside(&self) -> bool {
        matches!(self, Place::Inside(_))
    }
}

/// The directories that decide what a path means.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The real root first, then other spellings of it. Absolute, `/` between names, no `/` at the end.
    roots: Vec<String>,
    home: Option<String>,
}

impl Ground {
    pub fn new(root: &str, alias: Option<&str>, home: Option<&str>) -> Self {
        let mut roots = vec![plain(root)];
        roots.extend(alias.map(plain).filter(|alias| *alias != roots[0]));
        Self {
            roots,
            home: home.map(plain).filter(|home| !home.is_empty()),
        }
    }

    pub fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// The absolute path of the root.
    pub fn root(&self) -> &str {
        &self.roots[0]
    }

    /// Where `path` points when it is written in `base`.
    pub fn locate(&self, path: &str, base: &Place) -> Place {
        let path = separators(path);
        if let Some(rest) = path.strip_prefix('~') {
            return match (&self.home, rest.is_empty() || rest.starts_with('/')) {
                (Some(home), true) => self.classify(&collapse(&format!("{home}{rest}"))),
                // Another user's home, or a home nobody told us: outside in any case.
                _ => Place::Outside(path.into_owned()),
            };
        }
        if is_absolute(&path) {
            return self.classify(&collapse(&path));
        }
        match base {
            Place::Inside(folder) => self.classify(&collapse(&format!("{}/{folder}/{path}", self.root()))),
            Place::Outside(folder) if is_absolute(folder) => {
                self.classify(&collapse(&format!("{folder}/{path}")))
            }
            Place::Outside(folder) => Place::Outside(format!("{folder}/{path}")),
        }
    }

    /// The absolute form that absolute patterns are compared with.
    pub fn absolute(&self, place: &Place) -> String {
        match place {
            Place::Inside(path) if path == "." => self.root().to_owned(),
            Place::Inside(path) => format!("{}/{path}", self.root()),
            Place::Outside(path) => path.clone(),
        }
    }

    fn classify(&self, absolute: &str) -> Place {
        for root in &self.roots {
            if let Some(rest) = below(absolute, root) {
                let rest = if rest.is_empty() { "." } else { rest };
                return Place::Inside(rest.to_owned());
            }
        }
        Place::Outside(absolute.to_owned())
    }
}

/// The rest of `path` below `folder` without its leading `/`, `""` for the folder itself.
pub fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder)?;
    if rest.is_empty() || folder.is_empty() || folder.ends_with('/') {
        return Some(rest.trim_start_matches('/'));
    }
    rest.strip_prefix('/')
}

pub fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || (cfg!(windows) && path.as_bytes().get(1) == Some(&b':'))
}

fn separators(path: &str) -> std::borrow::Cow<'_, str> {
    if cfg!(windows) && path.contains('\\') {
        path.replace('\\', "/").into()
    } else {
        path.into()
    }
}

fn plain(path: &str) -> String {
    let path = collapse(&separators(path));
    // The root of the file system is the empty prefix, so that `root + "/" + name` stays right.
    if path == "/" { String::new() } else { path }
}

/// Takes `.` and `..` of an absolute path by its letters; `..` of the top is the top, as in the kernel.
fn collapse(path: &str) -> String {
    let (drive, path) = match path.find('/') {
        Some(0) | None => ("", path),
        Some(at) => path.split_at(at),
    };
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("{drive}/{}", names.join("/"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_inside_exactly_when_its_letters_stay_below_the_root() {
        let ground = Ground::new("/w/proj", Some("/alias"), Some("/home/u"));
        let inside = |path: &str| Place::Inside(path.to_owned());
        let outside = |path: &str| Place::Outside(path.to_owned());
        let sub = inside("sub");
        for (path, base, expected) in [
            ("", Place::root(), inside(".")),
            ("a/./b//c/", Place::root(), inside("a/b/c")),
            ("../x", Place::root(), outside("/w/x")),
            ("../x", sub.clone(), inside("x")),
            ("../../x", sub.clone(), outside("/w/x")),
            ("../proj/a", Place::root(), inside("a")),
            ("../proj2/a", Place::root(), outside("/w/proj2/a")),
            ("/w/proj", Place::root(), inside(".")),
            ("/w/proj/a", sub, inside("a")),
            ("/alias/a", Place::root(), inside("a")),
            ("/etc/../../..", Place::root(), outside("/")),
            ("~", Place::root(), outside("/home/u")),
            ("~/x", Place::root(), outside("/home/u/x")),
            ("~root/x", Place::root(), outside("~root/x")),
            ("x", outside("/etc"), outside("/etc/x")),
            ("..", outside("/w/proj/.."), outside("/")),
            ("proj", outside("/w"), inside(".")),
        ] {
            assert_eq!(ground.locate(path, &base), expected, "{path:?} in {base:?}");
        }
    }

    #[test]
    fn a_root_at_the_top_of_the_file_system_holds_everything() {
        let ground = Ground::new("/", None, None);
        assert_eq!(
            ground.locate("/etc/x", &Place::root()),
            Place::Inside("etc/x".to_owned())
        );
        assert_eq!(ground.absolute(&Place::Inside("etc".to_owned())), "/etc");
        assert_eq!(
            ground.locate("~/x", &Place::root()),
            Place::Outside("~/x".to_owned())
        );
    }
}
