#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::tree::{EntryList, FileRead, Folder};

fn tree(files: &[(&str, &str)]) -> MemoryTree {
    let tree = MemoryTree::default();
    for (path, content) in files {
        tree.insert(path, content.as_bytes().to_vec()).unwrap();
    }
    tree
}

fn listing(folder: &dyn Folder) -> Vec<(String, FileType)> {
    let mut out = EntryList::default();
    folder.entries(&mut out).unwrap();
    out.iter()
        .map(|(name, kind)| (String::from_utf8_lossy(name).into_owned(), kind))
        .collect()
}

#[test]
fn a_snapshot_is_sorted_and_does_not_see_later_changes() {
    let tree = tree(&[("b/c", "1"), ("b.txt", "2"), ("a", "3")]);
    let snapshot = tree.snapshot();
    tree.write("a", b"changed", &WriteOptions::default()).unwrap();
    let seen: Vec<_> = snapshot
        .iter()
        .map(|(path, file)| (path.as_str(), file.content()))
        .collect();
    assert_eq!(seen, [("a", &b"3"[..]), ("b.txt", b"2"), ("b/c", b"1")]);
}

#[test]
fn a_walk_keeps_the_state_it_was_opened_in() {
    let tree = tree(&[("d/f", "1"), ("d/sub/g", "2")]);
    let WalkStart::Folder { folder, path, above } = tree.open_walk("d").unwrap() else {
        panic!()
    };
    tree.remove(
        "d",
        &RemoveOptions {
            recursive: true,
            cancel: None,
        },
    )
    .unwrap();
    assert_eq!((path.as_str(), above.len(), above[0].0.as_str()), ("d", 1, "."));
    assert_eq!(
        listing(folder.as_ref()),
        [("f".into(), FileType::File), ("sub".into(), FileType::Directory)]
    );
    let mut buffer = Vec::new();
    assert_eq!(folder.read_file(b"f", 10, &mut buffer), Ok(FileRead::Whole));
    assert_eq!(buffer, b"1");
    assert_eq!(folder.read_file(b"f", 0, &mut buffer), Ok(FileRead::TooLarge));
    assert_eq!(
        folder.read_file(b"sub", 10, &mut buffer),
        Ok(FileRead::NotRegular)
    );
    assert_eq!(
        listing(folder.open_folder(b"sub").unwrap().as_ref()),
        [("g".into(), FileType::File)]
    );
}

#[test]
fn a_walk_may_start_at_a_file() {
    let tree = tree(&[("d/f", "1")]);
    let WalkStart::File { parent, name, path } = tree.open_walk("d/f").unwrap() else {
        panic!()
    };
    assert_eq!((name.as_slice(), path.as_str()), (&b"f"[..], "d/f"));
    assert_eq!(listing(parent.as_ref()), [("f".into(), FileType::File)]);
}

#[test]
fn concurrent_updates_all_land() {
    let tree = tree(&[("n", "")]);
    std::thread::scope(|scope| {
        for letter in [b'a', b'b', b'c', b'd'] {
            let tree = &tree;
            scope.spawn(move || {
                for _ in 0..200 {
                    let mut append = |old: &[u8]| Ok(Some([old, &[letter]].concat()));
                    assert!(tree.update("n", &UpdateOptions::default(), &mut append).unwrap());
                }
            });
        }
    });
    assert_eq!(tree.read("n", 10_000).unwrap().len(), 800);
}
