//! Writes whose flush is left to the kernel: the same answers, and the name never missing, although the two files
//! change places instead of one replacing the other.

use crate::support::{Ground, put};
use croft::ErrorCode;
use croft::tree::{DiskOptions, DiskTree, Flush, Tree, UpdateOptions, WriteOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn tree(ground: &Ground) -> DiskTree {
    DiskTree::open(&DiskOptions {
        root: ground.root.clone(),
        flush: Flush::ByKernel,
        ..DiskOptions::default()
    })
    .unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_made_replaced_and_changed_and_nothing_else_is_left() {
    for ground in [Ground::new(), Ground::on_disk()] {
        let tree = tree(&ground);
        let (plain, durable) = (
            WriteOptions::default(),
            WriteOptions {
                durable: true,
                ..WriteOptions::default()
            },
        );
        tree.write("a.txt", b"one", &plain).unwrap();
        std::fs::set_permissions(ground.root.join("a.txt"), std::fs::Permissions::from_mode(0o640)).unwrap();
        std::fs::hard_link(ground.root.join("a.txt"), ground.root.join("b.txt")).unwrap();
        tree.write("a.txt", b"two", &plain).unwrap();
        assert_eq!(ground.read("a.txt"), "two");
        assert_eq!(ground.read("b.txt"), "one", "a hard link was written through");
        let changed = tree.update("a.txt", &UpdateOptions::default(), &mut |old| {
            Ok(Some([old, b"+"].concat()))
        });
        assert!(changed.unwrap());
        assert_eq!(ground.read("a.txt"), "two+");
        assert_eq!(
            std::fs::metadata(ground.root.join("a.txt")).unwrap().mode() & 0o777,
            0o640
        );
        tree.write("a.txt", b"three", &durable).unwrap();
        let exists = tree.write(
            "a.txt",
            b"four",
            &WriteOptions {
                create_only: true,
                ..WriteOptions::default()
            },
        );
        assert_eq!(exists.unwrap_err().code, ErrorCode::AlreadyExists);
        assert_eq!(ground.read("a.txt"), "three");
        assert_eq!(names(&ground.root), ["a.txt", "b.txt"]);
    }
}

#[test]
fn a_reader_always_finds_one_whole_content() {
    let ground = Ground::new();
    let tree = tree(&ground);
    let contents = ["a".repeat(10_000), "b".repeat(20_000)];
    tree.write("x", contents[0].as_bytes(), &WriteOptions::default())
        .unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let seen = ground.read("x");
                assert!(contents.contains(&seen), "{} bytes", seen.len());
            }
        });
        for round in 0..3_000 {
            tree.write("x", contents[round % 2].as_bytes(), &WriteOptions::default())
                .unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(names(&ground.root), ["x"]);
}

/// What takes the name between the last look and the exchange.
#[test]
fn a_directory_that_takes_the_name_in_the_last_moment_stays() {
    let ground = Ground::new();
    let tree = tree(&ground);
    let (name, aside) = (ground.root.join("x"), ground.root.join("aside"));
    std::fs::create_dir(&aside).unwrap();
    put(&aside.join("kept"), b"kept");
    put(&name, b"old");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let root = rustix::fs::CWD;
                let _ =
                    rustix::fs::renameat_with(root, &name, root, &aside, rustix::fs::RenameFlags::EXCHANGE);
            }
        });
        for _ in 0..20_000 {
            if let Err(error) = tree.write("x", b"new", &WriteOptions::default()) {
                let expected = [ErrorCode::IsDirectory, ErrorCode::Io];
                assert!(expected.contains(&error.code), "{error:?}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let directory = if name.is_dir() { &name } else { &aside };
    assert_eq!(std::fs::read(directory.join("kept")).unwrap(), b"kept");
    assert_eq!(names(&ground.root), ["aside", "x"]);
}
