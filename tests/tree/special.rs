//! What is not a plain file, names of every kind, and too much of anything: a clear refusal, nothing left open.

use crate::support::{Answer, BOTH, Ground, Mount, OPERATIONS, call, in_child, put};
use croft::ErrorCode::*;
use croft::tree::{EntryList, FileRead, FileType, Resolver, Tree, WalkStart};
use rustix::fs::{CWD, Mode};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;

fn node(ground: &Ground, name: &str, kind: rustix::fs::FileType, device: u64) -> bool {
    rustix::fs::mknodat(
        CWD,
        ground.root.join(name),
        kind,
        Mode::from_raw_mode(0o666),
        device,
    )
    .is_ok()
}

#[test]
fn what_is_not_a_regular_file_is_refused_at_once() {
    for resolver in BOTH {
        let ground = Ground::on_disk();
        assert!(node(&ground, "fifo", rustix::fs::FileType::Fifo, 0));
        let _listener = UnixListener::bind(ground.root.join("socket")).unwrap();
        ground.link("to-fifo", "fifo").file("d/x", "x");
        let mut paths = vec!["fifo", "socket", "to-fifo"];
        if node(
            &ground,
            "zero",
            rustix::fs::FileType::CharacterDevice,
            rustix::fs::makedev(1, 5),
        ) {
            paths.push("zero");
        }
        if node(
            &ground,
            "loop",
            rustix::fs::FileType::BlockDevice,
            rustix::fs::makedev(7, 200),
        ) {
            paths.push("loop");
        }
        let tree = ground.tree(resolver);
        for path in paths {
            for operation in ["read", "open_file", "write", "update", "walk"] {
                assert_eq!(
                    call(&tree, operation, path),
                    Answer::Refused(NotRegularFile),
                    "{operation} {path} {resolver:?}"
                );
            }
            assert!(!matches!(tree.read_now(path, 100), Some(Ok(_))));
            assert_eq!(call(&tree, "stat", path), Answer::Ok("Some(Other)".into()));
        }
        let WalkStart::Folder { folder, .. } = tree.open_walk(".").unwrap() else {
            panic!()
        };
        let mut buffer = Vec::new();
        for name in ["fifo", "socket", "to-fifo", "d", "zero"] {
            if ground.root.join(name).symlink_metadata().is_ok() {
                assert_eq!(
                    folder.read_file(name.as_bytes(), 100, &mut buffer),
                    Ok(FileRead::NotRegular),
                    "{name}"
                );
            }
        }
        for name in ["", ".", "..", "d/x", "/etc/passwd"] {
            assert_eq!(
                folder
                    .read_file(name.as_bytes(), 100, &mut buffer)
                    .unwrap_err()
                    .code,
                InvalidPath
            );
            assert!(folder.open_folder(name.as_bytes()).is_err());
        }
    }
}

/// A reader that waits at a FIFO must not be woken by a write that is refused.
#[test]
fn a_refused_write_does_not_touch_the_fifo() {
    let ground = Ground::new();
    assert!(node(&ground, "fifo", rustix::fs::FileType::Fifo, 0));
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let reader = rustix::fs::open(ground.root.join("fifo"), flags, Mode::empty()).unwrap();
    assert_eq!(
        call(&ground.tree(Resolver::Kernel), "write", "fifo"),
        Answer::Refused(NotRegularFile)
    );
    let mut polled = [rustix::event::PollFd::new(&reader, rustix::event::PollFlags::IN)];
    let wait = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    assert_eq!(
        rustix::event::poll(&mut polled, Some(&wait)).unwrap(),
        0,
        "no hang-up was seen"
    );
}

#[test]
fn procfs_inside_the_root_is_refused_by_what_it_is() {
    let ground = Ground::new();
    ground.dir("p").file("movable", "m");
    let point = ground.root.join("p");
    let Some(mount) = Mount::new(&["-t", "proc", "proc"], &point) else {
        return;
    };
    let mut answers = Vec::new();
    for resolver in BOTH {
        let tree = ground.tree(resolver);
        for path in [
            "p/self/environ",
            "p/self/status",
            "p/version",
            "p/sys/kernel/hostname",
        ] {
            for operation in ["read", "open_file", "write", "update", "walk"] {
                answers.push((operation, path, call(&tree, operation, path)));
            }
            assert!(tree.read_now(path, 1000).is_none());
        }
        for (operation, path) in [
            ("list", "p"),
            ("walk", "p"),
            ("mkdir", "p/x"),
            ("rename_to", "p/x"),
            ("remove", "p/version"),
        ] {
            answers.push((operation, path, call(&tree, operation, path)));
        }
        for path in [
            "p/self/exe",
            "p/self/root/etc/hostname",
            "p/self/cwd/x",
            "p/self/fd/0",
        ] {
            answers.push(("read", path, call(&tree, "read", path)));
        }
        if let Ok(WalkStart::Folder { folder, .. }) = tree.open_walk(".") {
            assert!(folder.open_folder(b"p").is_err());
        }
    }
    drop(mount);
    for (operation, path, answer) in answers {
        assert!(
            matches!(
                answer,
                Answer::Refused(NotRegularFile | LinkRefused | IsDirectory)
            ),
            "{operation} {path}: {answer:?}"
        );
    }
}

#[test]
fn a_mount_inside_the_root_is_part_of_it() {
    let ground = Ground::new();
    ground.dir("m");
    let point = ground.root.join("m");
    let Some(mount) = Mount::new(&["-t", "tmpfs", "tmpfs"], &point) else {
        return;
    };
    put(&point.join("f.txt"), b"x");
    let mut answers = Vec::new();
    for resolver in BOTH {
        let tree = ground.tree(resolver);
        for operation in ["read", "write", "update", "list", "mkdir"] {
            let path = if matches!(operation, "list" | "mkdir") {
                "m"
            } else {
                "m/f.txt"
            };
            answers.push(call(&tree, operation, path));
        }
        if let Ok(WalkStart::Folder { folder, .. }) = tree.open_walk(".") {
            let mut buffer = Vec::new();
            answers.push(
                folder
                    .open_folder(b"m")
                    .unwrap()
                    .read_file(b"f.txt", 10, &mut buffer)
                    .map(|_| "")
                    .into(),
            );
        }
    }
    drop(mount);
    assert!(
        answers.iter().all(|answer| matches!(answer, Answer::Ok(_))),
        "{answers:?}"
    );
}

#[test]
fn a_huge_sparse_file_is_refused_by_size_and_read_in_parts() {
    let ground = Ground::on_disk();
    let size = 3 << 30;
    std::fs::File::create(ground.root.join("sparse"))
        .unwrap()
        .set_len(size)
        .unwrap();
    for resolver in BOTH {
        let tree = ground.tree(resolver);
        assert_eq!(call(&tree, "read", "sparse"), Answer::Refused(TooLarge));
        assert_eq!(call(&tree, "update", "sparse"), Answer::Refused(TooLarge));
        assert!(tree.read_now("sparse", u64::MAX).is_none());
        let file = tree.open_file("sparse").unwrap();
        let mut buffer = [1; 100];
        assert_eq!(
            (file.size(), file.read_at(size - 10, &mut buffer)),
            (size, Ok(10))
        );
        assert_eq!(file.read_at(size + 10, &mut buffer), Ok(0));
        let WalkStart::Folder { folder, .. } = tree.open_walk(".").unwrap() else {
            panic!()
        };
        let mut buffer = Vec::new();
        assert_eq!(
            folder.read_file(b"sparse", 1 << 20, &mut buffer),
            Ok(FileRead::TooLarge)
        );
        assert!(buffer.is_empty() && buffer.capacity() < 4 << 20);
    }
}

#[test]
fn a_directory_of_100_000_entries_is_listed_whole_and_removed() {
    let ground = Ground::new();
    ground.dir("many");
    let many = ground.root.join("many");
    for index in 0..100_000 {
        std::fs::File::create(many.join(format!("{index:06}"))).unwrap();
    }
    let tree = ground.tree(Resolver::Kernel);
    let entries = tree.read_dir("many", false).unwrap();
    assert_eq!(
        (entries.len(), entries[99_999].name.as_str()),
        (100_000, "099999")
    );
    assert_eq!(call(&tree, "read", "many/none"), Answer::Refused(NotFound));
    assert_eq!(call(&tree, "remove_all", "many"), Answer::Ok(String::new()));
    assert!(!many.exists());
}

#[test]
fn a_tree_deeper_than_any_stack_is_removed() {
    for resolver in BOTH {
        let ground = Ground::new();
        ground.file("deep/f", "x");
        let mut at = std::fs::File::open(ground.root.join("deep")).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&at, "d", Mode::from_raw_mode(0o755)).unwrap();
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
            at = rustix::fs::openat(&at, "d", flags, Mode::empty()).unwrap().into();
        }
        drop(at);
        let tree = ground.tree(resolver);
        assert_eq!(call(&tree, "remove_all", "deep"), Answer::Ok(String::new()));
        assert!(!ground.root.join("deep").exists());
    }
}

#[test]
fn removing_a_tree_takes_links_and_leaves_their_targets() {
    for resolver in BOTH {
        let ground = Ground::new();
        put(&ground.outside.join("keep"), b"x");
        ground
            .file("t/a/b", "x")
            .file("kept", "k")
            .link("t/out", "${OUT}")
            .link("t/in", "../kept")
            .link("t/up", "..");
        assert_eq!(
            call(&ground.tree(resolver), "remove_all", "t"),
            Answer::Ok(String::new())
        );
        assert!(
            ground.outside.join("keep").exists()
                && ground.root.join("kept").exists()
                && !ground.root.join("t").exists()
        );
    }
}

#[test]
fn names_of_every_kind_are_listed_and_opened() {
    for resolver in BOTH {
        let ground = Ground::new();
        for name in [
            &b"bad\xff.txt"[..],
            b"a\\b",
            b"tab\tnew\nline",
            b" lead",
            b"q\"'",
            b"[x](y)",
            b"-rf",
            b"%41",
            b"aux.c",
            b"con",
        ] {
            std::fs::write(ground.root.join(OsStr::from_bytes(name)), name).unwrap();
        }
        let tree = ground.tree(resolver);
        let entries = tree.read_dir(".", true).unwrap();
        let shown: Vec<_> = entries
            .iter()
            .map(|e| (e.name.as_str(), e.addressable, e.size))
            .collect();
        assert_eq!(
            shown,
            [
                (" lead", true, Some(5)),
                ("%41", true, Some(3)),
                ("-rf", true, Some(3)),
                ("[x](y)", true, Some(6)),
                ("a\\x5cb", false, Some(3)),
                ("aux.c", true, Some(5)),
                ("bad\\xff.txt", false, Some(8)),
                ("con", true, Some(3)),
                ("q\"'", true, Some(3)),
                ("tab\tnew\nline", true, Some(12)),
            ]
        );
        for entry in entries.iter().filter(|entry| entry.addressable) {
            assert_eq!(
                call(&tree, "read", &entry.name),
                Answer::Ok(entry.name.clone()),
                "{:?}",
                entry.name
            );
        }
        assert_eq!(call(&tree, "read", "a\\b"), Answer::Refused(NotFound));
        for entry in entries.iter().filter(|entry| !entry.addressable) {
            assert_eq!(
                call(&tree, "read", &entry.name),
                Answer::Refused(NotFound),
                "{:?}",
                entry.name
            );
        }
    }
}

#[test]
fn a_listing_tells_links_apart_without_telling_about_outside() {
    for resolver in BOTH {
        let ground = Ground::new();
        put(&ground.outside.join("secret"), b"12345");
        ground
            .file("f", "x")
            .dir("d")
            .link("lf", "f")
            .link("ld", "d")
            .link("lo", "${OUT}")
            .link("los", "${OUT}/secret");
        ground
            .link("dead", "none")
            .link("abs", "${ROOT}/f")
            .link("d/up", "../f")
            .link("loop", "loop");
        let tree = ground.tree(resolver);
        let listed = |path: &str| -> Vec<(String, FileType, Option<FileType>, Option<u64>)> {
            let entries = tree.read_dir(path, true).unwrap().into_iter();
            entries
                .map(|entry| (entry.name, entry.file_type, entry.link_target, entry.size))
                .collect()
        };
        use FileType::*;
        let link = |name: &str, target| (name.to_owned(), Symlink, target, None);
        assert_eq!(
            listed("."),
            [
                link("abs", Some(File)),
                ("d".into(), Directory, None, None),
                link("dead", None),
                ("f".into(), File, None, Some(1)),
                link("ld", Some(Directory)),
                link("lf", Some(File)),
                link("lo", None),
                link("loop", None),
                link("los", None),
            ]
        );
        assert_eq!(listed("ld"), [link("up", Some(File))]);
    }
}

#[test]
fn a_file_that_vanishes_during_a_walk_is_not_found() {
    let ground = Ground::new();
    ground.file("d/f", "x").file("d/sub/g", "x");
    let WalkStart::Folder { folder, .. } = ground.tree(Resolver::Kernel).open_walk("d").unwrap() else {
        panic!()
    };
    let mut entries = EntryList::default();
    folder.entries(&mut entries).unwrap();
    assert_eq!(entries.len(), 2);
    std::fs::remove_dir_all(ground.root.join("d")).unwrap();
    assert_eq!(
        folder.read_file(b"f", 10, &mut Vec::new()).unwrap_err().code,
        NotFound
    );
    assert_eq!(folder.open_folder(b"sub").err().unwrap().code, NotFound);
}

#[test]
fn a_walk_does_not_show_a_write_in_progress_and_a_removal_takes_what_is_left_of_one() {
    for resolver in BOTH {
        let ground = Ground::new();
        ground
            .file("d/.croft-0123456789abcdef.tmp", "x")
            .file("d/.croft-notes.tmp", "x")
            .file("d/f", "x");
        let tree = ground.tree(resolver);
        let WalkStart::Folder { folder, .. } = tree.open_walk("d").unwrap() else {
            panic!()
        };
        let mut entries = EntryList::default();
        folder.entries(&mut entries).unwrap();
        entries.sort_by_name();
        let names: Vec<_> = entries.iter().map(|(name, _)| name).collect();
        assert_eq!(names, [&b".croft-notes.tmp"[..], b"f"]);
        assert_eq!(tree.read_dir("d", false).unwrap().len(), 3);
        assert_eq!(call(&tree, "remove_all", "d"), Answer::Ok(String::new()));
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn failing_calls_leak_no_descriptor() {
    in_child("special::child_fails_often", &[("CHILD_FAILS", "1")]);
}

#[test]
fn child_fails_often() {
    if std::env::var("CHILD_FAILS").is_err() {
        return;
    }
    let ground = Ground::new();
    put(&ground.outside.join("secret"), b"x");
    ground
        .file("f", "x")
        .file("movable", "m")
        .file("full/x", "x")
        .file(".git/x", "x")
        .file("n/.git/x", "x");
    ground
        .link("out", "${OUT}")
        .link("dead", "none")
        .link("loop", "loop")
        .link("g", ".git");
    assert!(node(&ground, "fifo", rustix::fs::FileType::Fifo, 0));
    let trees = BOTH.map(|resolver| ground.tree(resolver));
    let paths = [
        "out/secret",
        "dead",
        "loop",
        "fifo",
        "f/x",
        "none/x/y",
        "g/x",
        "full/../none/z",
        "../x",
        ".git/x",
        "n",
        "out",
        "f/",
    ];
    let before = open_descriptors();
    let mut failed = 0;
    while failed < 20_000 {
        for tree in &trees {
            for path in paths {
                for operation in OPERATIONS {
                    // These would take something away, so that later calls would not fail.
                    if matches!(
                        operation,
                        "remove" | "rename_from" | "rename_over" | "remove_all" | "mkdir"
                    ) && !path.contains("x")
                    {
                        continue;
                    }
                    failed += usize::from(matches!(call(tree, operation, path), Answer::Refused(_)));
                }
            }
        }
    }
    assert_eq!(open_descriptors(), before);
}

#[test]
fn without_free_descriptors_every_call_says_so() {
    in_child("special::child_has_no_descriptors", &[("CHILD_STARVED", "1")]);
}

#[test]
fn child_has_no_descriptors() {
    if std::env::var("CHILD_STARVED").is_err() {
        return;
    }
    let ground = Ground::new();
    ground
        .file("f", "x")
        .file("d/f", "x")
        .file("movable", "m")
        .link("l", "d/f");
    let trees = BOTH.map(|resolver| ground.tree(resolver));
    let limit = rustix::process::Rlimit {
        current: Some(40),
        maximum: Some(40),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let mut hoard = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        hoard.push(file);
    }
    for tree in &trees {
        for (operation, path) in [
            ("read", "f"),
            ("read", "d/f"),
            ("read", "l"),
            ("write", "f"),
            ("write", "d/f"),
            ("write", "l"),
            ("update", "d/f"),
            ("create", "d/new"),
            ("list", "d"),
            ("walk", "d"),
            ("open_file", "f"),
            ("mkdir", "d/x/y"),
            ("remove_all", "d"),
        ] {
            assert_eq!(
                call(tree, operation, path),
                Answer::Refused(TooManyOpenFiles),
                "{operation} {path}"
            );
            assert!(!matches!(tree.read_now("f", 10), Some(Err(_))));
        }
    }
    hoard.clear();
    for tree in &trees {
        assert_eq!(call(tree, "read", "l"), Answer::Ok("x".into()));
    }
    assert_eq!(
        std::fs::read_dir(ground.root.join("d"))
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name() != "x")
            .count(),
        1
    );
}
