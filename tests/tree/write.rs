//! What a write keeps, and what it leaves behind when it fails: nothing, and the old bytes.

use crate::support::{Answer, BOTH, Ground, Mount, as_user, call, give, in_child, is_root, memory, put};
use croft::ErrorCode::*;
use croft::tree::{DiskTree, Resolver, Tree, UpdateOptions, WriteOptions};
use rustix::fs::XattrFlags;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

fn write(tree: &DiskTree, path: &str, content: &str) -> Answer {
    tree.write(path, content.as_bytes(), &WriteOptions::default())
        .map(|()| "")
        .into()
}

fn append(tree: &dyn Tree, path: &str) -> Answer {
    tree.update(path, &UpdateOptions::default(), &mut |old| {
        Ok(Some([old, b"+"].concat()))
    })
    .into()
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn mode_owner_and_attributes_survive() {
    for resolver in BOTH {
        let ground = Ground::on_disk();
        let file = ground.root.join("x.sh");
        let tree = ground.tree(resolver);
        for bits in [0o755, 0o600, 0o640, 0o4755, 0o2755, 0o664] {
            let _ = std::fs::remove_file(&file);
            put(&file, b"x\n");
            give(&file, 1000, 1001);
            chmod(&file, bits);
            rustix::fs::setxattr(&file, "user.at1", b"v1", XattrFlags::empty()).unwrap();
            assert_eq!(append(&tree, "x.sh"), Answer::Ok("true".into()));
            assert_eq!(write(&tree, "x.sh", "y"), Answer::Ok(String::new()));
            let kept = std::fs::metadata(&file).unwrap();
            assert_eq!(kept.mode() & 0o7777, bits, "{resolver:?}");
            if is_root() {
                assert_eq!((kept.uid(), kept.gid()), (1000, 1001), "{resolver:?}");
            }
            let mut value = [0; 8];
            let length = rustix::fs::getxattr(&file, "user.at1", &mut value[..]).unwrap();
            assert_eq!(&value[..length], b"v1");
        }
    }
}

#[test]
fn an_access_list_is_kept_and_none_is_inherited() {
    // POSIX ACL, version 2: user::rw-, user:1234:rw-, group::r--, mask::rw-, other::---
    let entry = |tag: u16, perm: u16, id: u32| {
        [&tag.to_le_bytes()[..], &perm.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let list = [
        2_u32.to_le_bytes().to_vec(),
        entry(1, 6, none),
        entry(2, 6, 1234),
        entry(4, 4, none),
        entry(0x10, 6, none),
        entry(0x20, 0, none),
    ]
    .concat();
    let ground = Ground::on_disk();
    let (with, without) = (ground.root.join("with"), ground.root.join("without"));
    put(&with, b"x");
    put(&without, b"x");
    chmod(&without, 0o660);
    rustix::fs::setxattr(&with, "system.posix_acl_access", &list, XattrFlags::empty()).unwrap();
    rustix::fs::setxattr(
        &ground.root,
        "system.posix_acl_default",
        &list,
        XattrFlags::empty(),
    )
    .unwrap();
    let tree = ground.tree(Resolver::Kernel);
    assert_eq!(write(&tree, "with", "y"), Answer::Ok(String::new()));
    assert_eq!(write(&tree, "without", "y"), Answer::Ok(String::new()));
    let mut value = [0; 256];
    let length = rustix::fs::getxattr(&with, "system.posix_acl_access", &mut value[..]).unwrap();
    assert_eq!(value[..length], list);
    assert!(rustix::fs::getxattr(&without, "system.posix_acl_access", &mut value[..]).is_err());
    assert_eq!(mode(&without), 0o660);
}

#[test]
fn the_new_bytes_are_never_readable_by_more_than_the_target() {
    let ground = Ground::new();
    ground.file("secret", "old");
    chmod(&ground.root.join("secret"), 0o600);
    let tree = ground.tree(Resolver::Kernel);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..300 {
                assert_eq!(write(&tree, "secret", "new"), Answer::Ok(String::new()));
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            for entry in std::fs::read_dir(&ground.root).unwrap().flatten() {
                if let Ok(found) = entry.metadata() {
                    assert_eq!(found.mode() & 0o077, 0);
                }
            }
        }
    });
}

#[test]
fn new_files_follow_the_umask_and_leave_it_alone() {
    for (umask, file, dir) in [
        ("022", "644", "755"),
        ("077", "600", "700"),
        ("000", "666", "777"),
    ] {
        in_child(
            "write::child_creates_files",
            &[("CHILD_UMASK", umask), ("CHILD_FILE", file), ("CHILD_DIR", dir)],
        );
    }
}

#[test]
fn child_creates_files() {
    let Ok(umask) = std::env::var("CHILD_UMASK") else {
        return;
    };
    let octal = |name: &str| u32::from_str_radix(&std::env::var(name).unwrap(), 8).unwrap();
    let umask = u32::from_str_radix(&umask, 8).unwrap();
    let ground = Ground::new();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
    for resolver in BOTH {
        assert_eq!(
            write(&ground.tree(resolver), "a/b/n.txt", "x"),
            Answer::Ok(String::new())
        );
        assert_eq!(mode(&ground.root.join("a/b/n.txt")), octal("CHILD_FILE"));
        assert_eq!(mode(&ground.root.join("a/b")), octal("CHILD_DIR"));
        std::fs::remove_dir_all(ground.root.join("a")).unwrap();
    }
    let after = rustix::process::umask(rustix::fs::Mode::empty());
    assert_eq!(after.as_raw_mode(), umask);
}

#[test]
fn what_a_plain_write_may_not_open_is_not_replaced() {
    for resolver in BOTH {
        let ground = Ground::on_disk();
        ground
            .file("locked.txt", "original")
            .file("ro/f.txt", "x")
            .file("open.txt", "x");
        for path in ["", "..", "locked.txt", "open.txt", "ro", "ro/f.txt"] {
            give(&ground.root.join(path), 1000, 1000);
        }
        chmod(&ground.root.join("locked.txt"), 0o444);
        chmod(&ground.root.join("ro"), 0o555);
        let tree = ground.tree(resolver);
        as_user(1000, || {
            for (path, expected) in [
                ("locked.txt", Answer::Refused(AccessDenied)),
                ("ro/f.txt", Answer::Refused(AccessDenied)),
                ("ro/new.txt", Answer::Refused(AccessDenied)),
                ("ro/new/deep.txt", Answer::Refused(AccessDenied)),
                ("open.txt", Answer::Ok(String::new())),
                ("new.txt", Answer::Ok(String::new())),
            ] {
                assert_eq!(write(&tree, path, "y"), expected, "{path} {resolver:?}");
            }
            assert_eq!(append(&tree, "locked.txt"), Answer::Refused(AccessDenied));
        });
        assert_eq!(
            (ground.read("locked.txt"), ground.read("ro/f.txt")),
            ("original".into(), "x".into())
        );
        assert_eq!(mode(&ground.root.join("locked.txt")), 0o444);
        assert_eq!(names(&ground.root), ["locked.txt", "new.txt", "open.txt", "ro"]);
        assert_eq!(names(&ground.root.join("ro")), ["f.txt"]);
        chmod(&ground.root.join("ro"), 0o755);
    }
}

#[test]
fn a_directory_that_may_only_be_searched_is_passed_through() {
    for resolver in BOTH {
        let ground = Ground::on_disk();
        ground.file("dark/f.txt", "x");
        chmod(&ground.root.join(".."), 0o755);
        chmod(&ground.root.join("dark"), 0o711);
        let tree = ground.tree(resolver);
        as_user(1000, || {
            assert_eq!(call(&tree, "read", "dark/f.txt"), Answer::Ok("x".into()));
            assert_eq!(call(&tree, "list", "dark"), Answer::Refused(AccessDenied));
            assert_eq!(call(&tree, "read", "dark/none"), Answer::Refused(NotFound));
        });
    }
}

#[test]
fn an_immutable_file_is_refused_and_nothing_is_left() {
    let ground = Ground::on_disk();
    ground.file("imm.txt", "x");
    let path = ground.root.join("imm.txt");
    let chattr = |flag: &str| std::process::Command::new("chattr").arg(flag).arg(&path).status();
    if !chattr("+i").is_ok_and(|status| status.success()) {
        eprintln!("skipped: no chattr here");
        return;
    }
    let tree = ground.tree(Resolver::Kernel);
    let answers = [
        write(&tree, "imm.txt", "y"),
        append(&tree, "imm.txt"),
        call(&tree, "remove", "imm.txt"),
    ];
    chattr("-i").unwrap();
    assert_eq!(
        answers,
        [
            Answer::Refused(AccessDenied),
            Answer::Refused(AccessDenied),
            Answer::Refused(AccessDenied)
        ]
    );
    assert_eq!(
        (ground.read("imm.txt").as_str(), names(&ground.root)),
        ("x", vec!["imm.txt".to_owned()])
    );
}

#[test]
fn a_hard_link_is_replaced_and_its_other_name_keeps_the_bytes() {
    for resolver in BOTH {
        let ground = Ground::new();
        put(&ground.outside.join("victim.txt"), b"original");
        for name in ["h.txt", "h2.txt"] {
            std::fs::hard_link(ground.outside.join("victim.txt"), ground.root.join(name)).unwrap();
        }
        let tree = ground.tree(resolver);
        assert_eq!(write(&tree, "h.txt", "NEW"), Answer::Ok(String::new()));
        assert_eq!(append(&tree, "h2.txt"), Answer::Ok("true".into()));
        assert_eq!(
            std::fs::read(ground.outside.join("victim.txt")).unwrap(),
            b"original"
        );
        assert_eq!(
            (ground.read("h.txt"), ground.read("h2.txt")),
            ("NEW".into(), "original+".into())
        );
    }
}

#[test]
fn links_planted_at_guessable_names_are_left_alone() {
    let ground = Ground::new();
    put(&ground.outside.join("victim"), b"original");
    ground.file("f.txt", "a");
    for name in ["f.txt.tmp", ".f.txt.tmp", "f.txt~", ".tmp", ".croft.tmp"] {
        ground.link(name, "${OUT}/victim");
    }
    let tree = ground.tree(Resolver::Kernel);
    assert_eq!(write(&tree, "f.txt", "b"), Answer::Ok(String::new()));
    assert_eq!(
        (ground.read("f.txt").as_str(), names(&ground.root).len()),
        ("b", 6)
    );
    assert_eq!(std::fs::read(ground.outside.join("victim")).unwrap(), b"original");
}

#[test]
fn a_full_disk_leaves_the_old_bytes_and_no_temp() {
    let ground = Ground::new();
    ground.dir("small");
    let small = ground.root.join("small");
    let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=64k", "tmpfs"], &small) else {
        return;
    };
    put(&small.join("f.txt"), b"precious");
    let mut answers = Vec::new();
    for resolver in BOTH {
        let tree = ground.tree(resolver);
        let big = "x".repeat(200_000);
        answers.push(write(&tree, "small/f.txt", &big));
        answers.push(write(&tree, "small/new.txt", &big));
        let grow = &mut |_: &[u8]| Ok(Some(big.clone().into_bytes()));
        answers.push(tree.update("small/f.txt", &UpdateOptions::default(), grow).into());
        answers.push(write(&tree, "small/f.txt", "precious"));
    }
    let (left, listed) = (std::fs::read(small.join("f.txt")).unwrap(), names(&small));
    drop(mount);
    let (full, fits) = (Answer::Refused(NoSpace), Answer::Ok(String::new()));
    let expected = [full.clone(), full.clone(), full, fits];
    assert_eq!(answers, [expected.clone(), expected].concat());
    assert_eq!(
        (left.as_slice(), listed),
        (&b"precious"[..], vec!["f.txt".to_owned()])
    );
}

#[test]
fn a_read_only_file_system_is_named() {
    let ground = Ground::new();
    ground.dir("ro");
    let ro = ground.root.join("ro");
    let Some(mount) = Mount::new(&["-t", "tmpfs", "tmpfs"], &ro) else {
        return;
    };
    put(&ro.join("f.txt"), b"x");
    assert!(mount.again(&["-o", "remount,ro"]));
    let tree = ground.tree(Resolver::Kernel);
    let answers: Vec<_> = [
        ("write", "ro/f.txt"),
        ("write", "ro/n"),
        ("update", "ro/f.txt"),
        ("mkdir", "ro/d"),
        ("remove", "ro/f.txt"),
        ("rename_from", "ro/f.txt"),
    ]
    .map(|(operation, path)| call(&tree, operation, path))
    .into();
    drop(mount);
    assert!(
        answers[..5]
            .iter()
            .all(|answer| *answer == Answer::Refused(ReadOnlyFileSystem)),
        "{answers:?}"
    );
    // Another mount comes first here.
    assert_eq!(answers[5], Answer::Refused(Io));
}

#[test]
fn a_reader_never_sees_half_a_file() {
    let ground = Ground::new();
    let size = 2_000_000;
    ground.file("big.txt", &"A".repeat(size));
    let tree = ground.tree(Resolver::Kernel);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for letter in ["B", "A"].iter().cycle().take(60) {
                assert_eq!(
                    write(&tree, "big.txt", &letter.repeat(size)),
                    Answer::Ok(String::new())
                );
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = std::fs::read(ground.root.join("big.txt")).unwrap();
            assert!(seen.len() == size && seen.iter().all(|byte| *byte == seen[0]));
        }
    });
}

#[test]
fn updates_of_one_file_take_turns_across_trees_links_and_names() {
    for resolver in BOTH {
        let ground = Ground::new();
        ground.file("d/n", "").link("ln", "d/n").link("dd", "d");
        let trees = [ground.tree(resolver), ground.tree(Resolver::Walk)];
        std::thread::scope(|scope| {
            for (tree, path) in [(0, "d/n"), (1, "d/n"), (0, "ln"), (1, "dd/n")] {
                let tree = &trees[tree];
                scope.spawn(move || {
                    for _ in 0..100 {
                        assert_eq!(append(tree, path), Answer::Ok("true".into()));
                    }
                });
            }
        });
        assert_eq!(ground.read("d/n").len(), 400);
    }
}

#[test]
fn content_decides_whether_an_update_is_stale() {
    for resolver in BOTH {
        let ground = Ground::new();
        let path = ground.root.join("n");
        let tree = ground.tree(resolver);
        let update = |meddle: &dyn Fn()| {
            ground.file("n", "old");
            let mut first = true;
            let answer = tree.update("n", &UpdateOptions::default(), &mut |old| {
                if std::mem::take(&mut first) {
                    meddle();
                }
                Ok(Some([old, b"+"].concat()))
            });
            (Answer::from(answer), ground.read("n"))
        };
        let replace = |content: &'static str| {
            std::fs::write(ground.root.join("other"), content).unwrap();
            std::fs::rename(ground.root.join("other"), &path).unwrap();
        };
        let stale = Answer::Refused(Stale);
        assert_eq!(
            update(&|| std::fs::write(&path, "OLD").unwrap()),
            (stale.clone(), "OLD".into())
        );
        assert_eq!(
            update(&|| std::fs::write(&path, "old more").unwrap()),
            (stale.clone(), "old more".into())
        );
        assert_eq!(update(&|| replace("OLD")), (stale, "OLD".into()));
        let done = Answer::Ok("true".into());
        assert_eq!(update(&|| replace("old")), (done.clone(), "old+".into()));
        let touch = || {
            std::fs::File::open(&path)
                .unwrap()
                .set_modified(std::time::SystemTime::now())
                .unwrap()
        };
        assert_eq!(update(&touch), (done, "old+".into()));
        assert_eq!(names(&ground.root), ["n"]);
    }
}

#[test]
fn a_removed_file_is_not_brought_back_by_an_update() {
    let ground = Ground::new();
    ground.file("n", "old");
    let tree = ground.tree(Resolver::Kernel);
    let answer = tree.update("n", &UpdateOptions::default(), &mut |_| {
        std::fs::remove_file(ground.root.join("n")).unwrap();
        Ok(Some(b"new".to_vec()))
    });
    assert_eq!(Answer::from(answer), Answer::Refused(Stale));
    assert!(names(&ground.root).is_empty());
}

#[test]
fn a_change_that_fails_or_does_nothing_writes_nothing() {
    let ground = Ground::new();
    ground.file("n", "old");
    let tree = ground.tree(Resolver::Kernel);
    let before = std::fs::metadata(ground.root.join("n")).unwrap().ino();
    let options = UpdateOptions::default();
    assert_eq!(tree.update("n", &options, &mut |_| Ok(None)), Ok(false));
    let failed = tree.update("n", &options, &mut |_| Err(croft::Error::new(EditNoMatch, "no")));
    assert_eq!(Answer::from(failed), Answer::Refused(EditNoMatch));
    let small = UpdateOptions {
        max_bytes: 2,
        ..options
    };
    let large = tree.update("n", &small, &mut |_| Ok(None));
    assert_eq!(Answer::from(large), Answer::Refused(TooLarge));
    assert_eq!(std::fs::metadata(ground.root.join("n")).unwrap().ino(), before);
}

#[test]
fn a_cancelled_write_changes_nothing() {
    let ground = Ground::new();
    ground.file("n", "old").file("d/x", "x");
    let memory = memory(&[("n", "old"), ("d/x", "x")], &[]);
    let disk = ground.tree(Resolver::Kernel);
    for tree in [&disk as &dyn Tree, &memory] {
        let token = CancellationToken::new();
        let update = UpdateOptions {
            cancel: Some(token.clone()),
            ..UpdateOptions::default()
        };
        let answer = tree.update("n", &update, &mut |_| {
            token.cancel();
            Ok(Some(b"new".to_vec()))
        });
        assert_eq!(Answer::from(answer), Answer::Refused(Aborted));
        let options = WriteOptions {
            cancel: Some(token.clone()),
            ..WriteOptions::default()
        };
        assert_eq!(
            Answer::from(tree.write("n", b"new", &options).map(|()| "")),
            Answer::Refused(Aborted)
        );
        let options = croft::tree::RemoveOptions {
            recursive: true,
            cancel: Some(token),
        };
        assert_eq!(
            Answer::from(tree.remove("d", &options).map(|()| "")),
            Answer::Refused(Aborted)
        );
        assert_eq!(tree.read("n", 10).unwrap(), b"old");
    }
    assert_eq!(
        (names(&ground.root), ground.read("d/x").as_str()),
        (vec!["d".into(), "n".into()], "x")
    );
}

#[test]
fn only_one_creator_wins() {
    for resolver in BOTH {
        let ground = Ground::new();
        let tree = ground.tree(resolver);
        let created: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| usize::from(call(&tree, "create", "new") == Answer::Ok(String::new())))
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((created, names(&ground.root)), (1, vec!["new".to_owned()]));
    }
}

/// A foreign process knows nothing of our locks: only the rename itself can refuse to replace its file.
#[test]
fn a_foreign_creator_is_not_overwritten() {
    for resolver in BOTH {
        let ground = Ground::new();
        let tree = ground.tree(resolver);
        let round = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let foreign = scope.spawn(|| {
                (0..1_000)
                    .map(|index| {
                        round.wait();
                        std::fs::File::create_new(ground.root.join(format!("{index}"))).is_ok()
                    })
                    .collect::<Vec<_>>()
            });
            let ours: Vec<_> = (0..1_000)
                .map(|index| {
                    round.wait();
                    call(&tree, "create", &index.to_string()) == Answer::Ok(String::new())
                })
                .collect();
            let both = foreign
                .join()
                .unwrap()
                .into_iter()
                .zip(ours)
                .filter(|(theirs, ours)| theirs == ours);
            assert_eq!(both.count(), 0, "{resolver:?}");
        });
    }
}

#[test]
fn a_durable_write_is_a_write() {
    let ground = Ground::on_disk();
    let tree = ground.tree(Resolver::Kernel);
    let options = WriteOptions {
        durable: true,
        ..WriteOptions::default()
    };
    tree.write("a/n", b"x", &options).unwrap();
    let update = UpdateOptions {
        durable: true,
        ..UpdateOptions::default()
    };
    assert_eq!(
        tree.update("a/n", &update, &mut |_| Ok(Some(b"y".to_vec()))),
        Ok(true)
    );
    assert_eq!(ground.read("a/n"), "y");
}
