//! Finding and reading the files that hold ignore rules.

use crate::search::ignore::{IgnoreStack, MAX_IGNORE_FILE_BYTES};
use crate::tree::{EntryList, FileRead, FileType, Folder};

pub(super) fn none() -> IgnoreStack {
    IgnoreStack::none()
}

/// The rules in force in a directory with these entries.
pub(super) fn inside(
    folder: &dyn Folder,
    prefix: &str,
    entries: &EntryList,
    above: &IgnoreStack,
) -> IgnoreStack {
    let mut ignore = None;
    let mut has_file = false;
    for (name, file_type) in entries.iter() {
        match (name, file_type) {
            // A repository of its own: the rules of the outer one end here.
            (b".git", FileType::Directory | FileType::File) => ignore = Some(exclude_file(folder, prefix)),
            (b".gitignore", FileType::File) => has_file = true,
            _ => {}
        }
    }
    let ignore = ignore.unwrap_or_else(|| above.clone());
    if !has_file {
        return ignore;
    }
    match read(folder, b".gitignore") {
        Some(rules) => ignore.with_file(&rules, prefix),
        None => ignore,
    }
}

/// The rules that the directories above the start lay on it. A start that they exclude was named by the caller
/// all the same, and then they do not count.
pub(super) fn above(start: &str, above: &[(String, Box<dyn Folder>)]) -> IgnoreStack {
    let mut ignore = IgnoreStack::none();
    for (index, (path, folder)) in above.iter().enumerate() {
        let prefix = if path == "." {
            String::new()
        } else {
            path.clone() + "/"
        };
        if folder.open_folder(b".git").is_ok() || read(&**folder, b".git").is_some() {
            ignore = exclude_file(&**folder, &prefix);
        }
        if let Some(rules) = read(&**folder, b".gitignore") {
            ignore = ignore.with_file(&rules, &prefix);
        }
        let child = above.get(index + 1).map_or(start, |(path, _)| path);
        if ignore.excludes(child.as_bytes(), true) {
            return IgnoreStack::none();
        }
    }
    ignore
}

/// A regular file of modest size, or nothing: a FIFO or link in its place is as good as absent.
fn read(folder: &dyn Folder, name: &[u8]) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    match folder.read_file(name, MAX_IGNORE_FILE_BYTES, &mut content) {
        Ok(FileRead::Whole) => Some(content),
        Ok(FileRead::TooLarge | FileRead::NotRegular) | Err(_) => None,
    }
}

/// The rules of `.git/info/exclude`, which hold less than any `.gitignore` of the repository.
fn exclude_file(folder: &dyn Folder, prefix: &str) -> IgnoreStack {
    let rules = folder
        .open_folder(b".git")
        .and_then(|git| git.open_folder(b"info"))
        .ok()
        .and_then(|info| read(&*info, b"exclude"));
    match rules {
        Some(rules) => IgnoreStack::none().with_file(&rules, prefix),
        None => IgnoreStack::none(),
    }
}
