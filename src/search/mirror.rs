//! A copy of somebody else's file system, made as far as a search asks for it. The search runs over the copy;
//! where something is missing it is noted, the caller fetches it, and the search runs again. So the walk that
//! decides what is looked at is the one of our own trees, and only what it enters is fetched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::walk::Walkable;
use crate::error::{Error, ErrorCode, Result};
use crate::tree::{EntryList, FileRead, FileType, Folder, WalkStart};

#[derive(Default)]
pub struct Mirror {
    root: Arc<Directory>,
    missing: Arc<Mutex<Missing>>,
}

/// What a search asked for and did not find, each path once and in byte order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    pub directories: Vec<String>,
    pub files: Vec<String>,
}

#[derive(Default)]
struct Directory(Mutex<Listing>);

#[derive(Default)]
struct Listing {
    entries: BTreeMap<String, Node>,
    state: State,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unlisted,
    Listed,
    Unreadable,
}

enum Node {
    Directory(Arc<Directory>),
    File(Content),
    /// A link, socket or device: listed, never opened.
    Other(FileType),
}

enum Content {
    Unread,
    Unreadable,
    Read(Arc<[u8]>),
}

impl Mirror {
    /// Says what is in the directory `path` (normalised).
    pub fn list(&self, path: &str, entries: &[(String, FileType)]) -> Result<()> {
        let directory = self.directory(path)?;
        let mut listing = directory.lock();
        for (name, file_type) in entries {
            // A provider's own listing is not trusted to be one of plain names.
            if matches!(name.as_str(), "" | "." | "..") || name.contains(['/', '\0']) {
                continue;
            }
            let node = || match file_type {
                FileType::Directory => Node::Directory(Arc::default()),
                FileType::File => Node::File(Content::Unread),
                FileType::Symlink | FileType::Other => Node::Other(*file_type),
            };
            listing.entries.entry(name.clone()).or_insert_with(node);
        }
        listing.state = State::Listed;
        Ok(())
    }

    /// Says that a directory cannot be listed.
    pub fn shut(&self, path: &str) -> Result<()> {
        self.directory(path)?.lock().state = State::Unreadable;
        Ok(())
    }

    /// Gives a file's content; `None` when it cannot be read.
    pub fn fill(&self, path: &str, content: Option<&[u8]>) -> Result<()> {
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        let content = content.map_or(Content::Unreadable, |content| Content::Read(content.into()));
        self.directory(folder)?
            .lock()
            .entries
            .insert(name.to_owned(), Node::File(content));
        Ok(())
    }

    /// Takes what was missing since it was last asked.
    pub fn take_missing(&self) -> Missing {
        let mut missing = std::mem::take(&mut *self.missing.lock().unwrap_or_else(PoisonError::into_inner));
        for paths in [&mut missing.directories, &mut missing.files] {
            paths.sort_unstable();
            paths.dedup();
        }
        missing
    }

    /// Finds or makes a directory.
    fn directory(&self, path: &str) -> Result<Arc<Directory>> {
        let mut at = self.root.clone();
        for name in names(path) {
            let next = match at
                .lock()
                .entries
                .entry(name.to_owned())
                .or_insert_with(|| Node::Directory(Arc::default()))
            {
                Node::Directory(next) => next.clone(),
                Node::File(_) | Node::Other(_) => {
                    let message = format!("{path:?} is not a directory");
                    return Err(Error::new(ErrorCode::NotDirectory, message).at(path));
                }
            };
            at = next;
        }
        Ok(at)
    }

    fn handle(&self, directory: Arc<Directory>, path: String) -> Box<dyn Folder> {
        Box::new(Handle {
            directory,
            path,
            missing: self.missing.clone(),
        })
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

impl Directory {
    fn lock(&self) -> MutexGuard<'_, Listing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Walkable for Mirror {
    fn start_walk(&self, path: &str) -> Result<WalkStart> {
        let names: Vec<&str> = names(path).collect();
        let mut above = Vec::new();
        let mut at = self.root.clone();
        for (depth, name) in names.iter().enumerate() {
            let here = if depth == 0 {
                ".".to_owned()
            } else {
                names[..depth].join("/")
            };
            above.push((here.clone(), self.handle(at.clone(), here)));
            let next = match at.lock().entries.get(*name) {
                Some(Node::Directory(next)) => Some(next.clone()),
                Some(Node::File(_)) if depth + 1 == names.len() => None,
                _ => {
                    let message = format!("{path:?} does not exist: list its directory");
                    return Err(Error::new(ErrorCode::NotFound, message).at(path));
                }
            };
            match next {
                Some(next) => at = next,
                None => {
                    let here = if depth == 0 {
                        ".".to_owned()
                    } else {
                        names[..depth].join("/")
                    };
                    let parent = self.handle(at, here);
                    return Ok(WalkStart::File {
                        parent,
                        name: name.as_bytes().to_vec(),
                        path: path.to_owned(),
                    });
                }
            }
        }
        let path = if names.is_empty() {
            ".".to_owned()
        } else {
            names.join("/")
        };
        Ok(WalkStart::Folder {
            folder: self.handle(at, path.clone()),
            path,
            above,
        })
    }
}

struct Handle {
    directory: Arc<Directory>,
    /// Normalised.
    path: String,
    missing: Arc<Mutex<Missing>>,
}

impl Handle {
    fn below(&self, name: &str) -> String {
        if self.path == "." {
            name.to_owned()
        } else {
            format!("{}/{name}", self.path)
        }
    }

    fn missing(&self) -> MutexGuard<'_, Missing> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_there() -> Error {
    Error::new(ErrorCode::NotFound, "not in this directory")
}

impl Folder for Handle {
    fn entries(&self, out: &mut EntryList) -> Result<()> {
        let listing = self.directory.lock();
        match listing.state {
            State::Listed => {}
            State::Unlisted => {
                self.missing().directories.push(self.path.clone());
                return Ok(());
            }
            State::Unreadable => return Err(Error::new(ErrorCode::AccessDenied, "not listed")),
        }
        for (name, node) in &listing.entries {
            let file_type = match node {
                Node::Directory(_) => FileType::Directory,
                Node::File(_) => FileType::File,
                Node::Other(other) => *other,
            };
            out.push(name.as_bytes(), file_type);
        }
        Ok(())
    }

    fn open_folder(&self, name: &[u8]) -> Result<Box<dyn Folder>> {
        let name = std::str::from_utf8(name).map_err(|_| not_there())?;
        match self.directory.lock().entries.get(name) {
            Some(Node::Directory(directory)) => {
                let (directory, path) = (directory.clone(), self.below(name));
                Ok(Box::new(Handle {
                    directory,
                    path,
                    missing: self.missing.clone(),
                }))
            }
            _ => Err(not_there()),
        }
    }

    fn read_file(&self, name: &[u8], max_bytes: u64, buffer: &mut Vec<u8>) -> Result<FileRead> {
        buffer.clear();
        let name = std::str::from_utf8(name).map_err(|_| not_there())?;
        match self.directory.lock().entries.get(name) {
            Some(Node::File(Content::Read(content))) if content.len() as u64 > max_bytes => {
                Ok(FileRead::TooLarge)
            }
            Some(Node::File(Content::Read(content))) => {
                buffer.extend_from_slice(content);
                Ok(FileRead::Whole)
            }
            Some(Node::File(Content::Unread)) => {
                self.missing().files.push(self.below(name));
                Ok(FileRead::Whole)
            }
            Some(Node::File(Content::Unreadable)) => Err(Error::new(ErrorCode::AccessDenied, "not read")),
            Some(Node::Directory(_) | Node::Other(_)) => Ok(FileRead::NotRegular),
            None => Err(not_there()),
        }
    }

    fn identity(&self) -> Result<(u64, u64)> {
        Ok((0, Arc::as_ptr(&self.directory) as u64))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::search::{GlobRequest, GrepRequest, NeverCancelled, glob, grep};

    fn entry(name: &str, file_type: FileType) -> (String, FileType) {
        (name.to_owned(), file_type)
    }

    #[test]
    fn a_search_asks_only_for_what_it_enters() {
        let mirror = Mirror::default();
        let mut request = GlobRequest::new("src/**/*.ts");
        request.walk.threads = Some(1);
        let asked = || {
            let found = glob(&mirror, &request, &NeverCancelled).unwrap();
            (found.paths, mirror.take_missing().directories)
        };
        assert_eq!(asked(), (vec![], vec![".".to_owned()]));
        let directories = ["src", "lib", "node_modules"].map(|name| entry(name, FileType::Directory));
        mirror.list(".", &directories).unwrap();
        mirror.list(".", &[entry(".gitignore", FileType::File)]).unwrap();
        mirror.fill(".gitignore", Some(b"out/\n")).unwrap();
        assert_eq!(asked(), (vec![], vec!["src".to_owned()]));
        let inside = [
            entry("out", FileType::Directory),
            entry("a", FileType::Directory),
            entry("x.ts", FileType::File),
        ];
        mirror.list("src", &inside).unwrap();
        assert_eq!(asked(), (vec!["src/x.ts".to_owned()], vec!["src/a".to_owned()]));
        mirror.shut("src/a").unwrap();
        let found = glob(&mirror, &request, &NeverCancelled).unwrap();
        assert_eq!(found.skipped.unreadable_directories, 1);
        assert_eq!(mirror.take_missing(), Missing::default());
    }

    #[test]
    fn grep_asks_for_contents_and_finds_them() {
        let mirror = Mirror::default();
        mirror
            .list(
                ".",
                &[
                    entry("a", FileType::File),
                    entry("b", FileType::File),
                    entry("l", FileType::Symlink),
                ],
            )
            .unwrap();
        let run = || grep(&mirror, &GrepRequest::new("x"), &NeverCancelled).unwrap();
        assert_eq!(run().matches, 0);
        assert_eq!(mirror.take_missing().files, ["a", "b"]);
        mirror.fill("a", Some(b"x\n")).unwrap();
        mirror.fill("b", None).unwrap();
        let found = run();
        assert_eq!((found.matches, found.skipped.unreadable_files), (1, 1));
    }

    #[test]
    fn a_listing_cannot_name_what_is_elsewhere() {
        let mirror = Mirror::default();
        let names = ["..", ".", "", "a/b", "n\0", "ok"].map(|name| entry(name, FileType::File));
        mirror.list(".", &names).unwrap();
        assert_eq!(
            glob(&mirror, &GlobRequest::new("**"), &NeverCancelled)
                .unwrap()
                .paths,
            ["ok"]
        );
    }
}
