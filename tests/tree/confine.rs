//! Where paths lead: nothing outside is read, changed or told apart, and what is inside works.

use crate::support::{Answer, BOTH, Ground, OPERATIONS, call, memory, put};
use croft::ErrorCode::{self, *};
use croft::tree::{Resolver, Symlinks, Tree};

fn ok(text: &str) -> Answer {
    Answer::Ok(text.to_owned())
}

/// A ground with links of every kind, and a movable file.
pub fn linked() -> Ground {
    linked_on(Ground::new())
}

pub fn linked_on(ground: Ground) -> Ground {
    put(&ground.outside.join("secret.txt"), b"OUTSIDE-SECRET\n");
    put(&ground.outside.join("dir/deep.txt"), b"OUTSIDE-SECRET\n");
    ground
        .file("movable", "m")
        .file("in.txt", "in")
        .file("d/f.txt", "f")
        .file("b/target", "B")
        .file("target", "TOP")
        .dir("b/c")
        .link("out-file", "${OUT}/secret.txt")
        .link("out-file-relative", "../out/secret.txt")
        .link("out-dir", "${OUT}")
        .link("out-dir-relative", "../out")
        .link("out-missing", "../out/not-yet.txt")
        .link("out-missing-absolute", "${OUT}/not-yet.txt")
        .link("prefix-sibling", "${ROOT}-evil/x")
        .link("up", "..")
        .link("d/up-and-out", "../../out/secret.txt")
        .link("hop", "out-dir/secret.txt")
        .link("slash", "${OUT}/")
        .link("root-slash", "/")
        .link("climb-from-root", "${ROOT}/../out/secret.txt")
        .link("proc", "/proc/self/environ")
        .link("magic", "/proc/self/root/etc/hostname")
        .link("self", "self")
        .link("x", "y")
        .link("y", "x")
        .link("dead", "nowhere")
        .link("dead-dir", "nowhere/below");
    ground
}

pub const LEADS_OUT: [&str; 26] = [
    "out-file",
    "out-file-relative",
    "out-dir/secret.txt",
    "out-dir/dir/deep.txt",
    "out-dir-relative/secret.txt",
    "out-dir/missing.txt",
    "out-dir/missing/x",
    "out-missing",
    "out-missing-absolute",
    "prefix-sibling",
    "up/out/secret.txt",
    "d/up-and-out",
    "hop",
    "slash/secret.txt",
    "root-slash/etc/hostname",
    "climb-from-root",
    "proc",
    "magic",
    "out-dir/..",
    "out-dir/../ws/in.txt",
    "out-dir/./secret.txt",
    "out-dir//secret.txt",
    "self",
    "x",
    "x/f",
    "self/f",
];

#[test]
fn no_operation_follows_a_link_out() {
    for resolver in BOTH {
        for symlinks in [Symlinks::Inside, Symlinks::Deny] {
            for (operation, path) in every_operation_on(&LEADS_OUT) {
                let ground = linked();
                let tree = ground.tree_with(resolver, symlinks);
                let answer = call(&tree, operation, path);
                let case = format!("{operation} {path} {resolver:?} {symlinks:?}");
                assert_led_nowhere(&ground, operation, path, &answer, &case);
            }
        }
    }
}

pub fn every_operation_on(
    paths: &'static [&'static str],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let on = |path: &&'static str| OPERATIONS.map(|operation| (operation, *path));
    paths.iter().flat_map(on)
}

/// What an operation on one of `LEADS_OUT` answers: it may name a link, not go through it.
pub fn assert_led_nowhere(ground: &Ground, operation: &str, path: &str, answer: &Answer, case: &str) {
    let last_is_link = !path.contains('/') || path == "d/up-and-out";
    let names_the_link = ["remove", "remove_all", "rename_from", "rename_over"].contains(&operation);
    let expected = match operation {
        _ if last_is_link && names_the_link => ok(""),
        "rename_to" if last_is_link => Answer::Refused(AlreadyExists),
        "stat" if last_is_link => ok("Some(Symlink)"),
        _ => Answer::Refused(LinkRefused),
    };
    assert_eq!(*answer, expected, "{case}");
    assert_outside_untouched(ground, case);
}

pub fn assert_outside_untouched(ground: &Ground, case: &str) {
    let mut left: Vec<_> = walkdir(&ground.outside);
    left.sort();
    assert_eq!(left, ["dir", "dir/deep.txt", "secret.txt"], "{case}");
    let secret = std::fs::read(ground.outside.join("secret.txt")).unwrap();
    assert_eq!(secret, b"OUTSIDE-SECRET\n", "{case}");
}

fn walkdir(dir: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(current) = open.pop() {
        for entry in std::fs::read_dir(&current).unwrap() {
            let entry = entry.unwrap();
            found.push(
                entry
                    .path()
                    .strip_prefix(dir)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
            );
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn a_dead_link_is_refused_for_reading_and_creating() {
    for resolver in BOTH {
        for path in ["dead", "dead-dir", "dead/x", "dead-dir/x/y"] {
            for operation in [
                "read",
                "write",
                "create",
                "update",
                "mkdir",
                "list",
                "walk",
                "open_file",
            ] {
                let ground = linked();
                let answer = call(&ground.tree(resolver), operation, path);
                assert_eq!(
                    answer,
                    Answer::Refused(LinkRefused),
                    "{operation} {path} {resolver:?}"
                );
                assert!(!ground.root.join("nowhere").exists());
            }
        }
    }
}

#[test]
fn a_listing_through_a_trailing_slash_stays_inside() {
    for resolver in BOTH {
        let ground = linked();
        let tree = ground.tree(resolver);
        for path in [
            "out-dir/",
            "out-dir/.",
            "out-dir",
            "slash",
            "slash/",
            "out-dir-relative//",
        ] {
            for operation in ["list", "walk", "mkdir", "write", "read"] {
                let answer = call(&tree, operation, path);
                assert_eq!(
                    answer,
                    Answer::Refused(LinkRefused),
                    "{operation} {path} {resolver:?}"
                );
            }
        }
    }
}

pub fn inside() -> Ground {
    let ground = Ground::new();
    ground
        .file("movable", "m")
        .file("packages/doc/a.md", "in")
        .file("f.txt", "F")
        .file("b/target", "B")
        .file("target", "TOP")
        .dir("b/c")
        .link("docs", "packages/doc")
        .link("abs", "${ROOT}/f.txt")
        .link("abs-dir", "${ROOT}/packages")
        .link("abs-root", "${ROOT}")
        .link("chain", "docs/a.md")
        .link("packages/up", "../f.txt")
        .link("a", "b/c")
        .link("to-dir-slash", "packages/")
        .link("to-file-slash", "f.txt/")
        .link("here", ".");
    ground
}

#[test]
fn links_that_stay_inside_are_followed() {
    for resolver in BOTH {
        for (operation, path, expected) in [
            ("read", "docs/a.md", ok("in")),
            ("read", "abs", ok("F")),
            ("read", "abs-dir/doc/a.md", ok("in")),
            ("read", "abs-root/abs-root/f.txt", ok("F")),
            ("read", "chain", ok("in")),
            ("read", "packages/up", ok("F")),
            ("read", "to-dir-slash/doc/a.md", ok("in")),
            ("read", "to-file-slash", Answer::Refused(NotDirectory)),
            ("read", "here/here/f.txt", ok("F")),
            ("read", "a/../target", ok("B")),
            ("read", "docs", Answer::Refused(IsDirectory)),
            ("list", "docs", ok("a.md")),
            ("list", "docs/", ok("a.md")),
            ("list", "abs-dir/doc", ok("a.md")),
            ("list", "abs", Answer::Refused(NotDirectory)),
            ("stat", "docs", ok("Some(Directory)")),
            ("stat", "chain", ok("Some(File)")),
            ("stat", "chain/", ok("None")),
            ("stat", "abs", ok("Some(File)")),
            ("stat", "docs/none", ok("None")),
            ("walk", "docs", ok("folder docs 1")),
            ("walk", "abs-dir/doc", ok("folder abs-dir/doc 2")),
            ("walk", "chain", ok("file chain a.md")),
            ("walk", "a/..", ok("folder b 1")),
            ("walk", "a/../target", ok("file b/target target")),
            ("write", "docs/new.md", ok("")),
            ("write", "docs/sub/new.md", ok("")),
            ("write", "chain", ok("")),
            ("update", "abs", ok("true")),
            ("mkdir", "docs", ok("")),
            ("mkdir", "docs/x/y", ok("")),
            ("mkdir", "abs", Answer::Refused(AlreadyExists)),
            ("create", "abs", Answer::Refused(AlreadyExists)),
            ("remove", "docs", ok("")),
            ("remove", "docs/", Answer::Refused(NotDirectory)),
            ("remove_all", "docs/a.md", ok("")),
            ("rename_from", "docs", ok("")),
            ("rename_to", "docs/moved", ok("")),
            ("rename_to", "docs/x/moved", ok("")),
        ] {
            let ground = inside();
            let answer = call(&ground.tree(resolver), operation, path);
            assert_eq!(answer, expected, "{operation} {path} {resolver:?}");
            assert!(ground.root.join("packages/doc").is_dir());
        }
    }
}

#[test]
fn a_write_through_a_link_updates_its_target_and_keeps_the_link() {
    for resolver in BOTH {
        let ground = inside();
        let tree = ground.tree(resolver);
        assert_eq!(call(&tree, "write", "abs"), ok(""));
        assert_eq!(call(&tree, "update", "chain"), ok("true"));
        assert_eq!(
            (ground.read("f.txt"), ground.read("packages/doc/a.md")),
            ("NEW".into(), "in+".into())
        );
        assert!(ground.root.join("abs").is_symlink() && ground.root.join("chain").is_symlink());
    }
}

#[test]
fn with_links_denied_any_link_is_refused_but_may_be_named() {
    for resolver in BOTH {
        for path in ["docs/a.md", "abs", "chain", "packages/up", "docs/new/x"] {
            for operation in [
                "read",
                "write",
                "create",
                "update",
                "list",
                "walk",
                "open_file",
                "mkdir",
            ] {
                let ground = inside();
                let tree = ground.tree_with(resolver, Symlinks::Deny);
                assert_eq!(
                    call(&tree, operation, path),
                    Answer::Refused(LinkRefused),
                    "{operation} {path} {resolver:?}"
                );
            }
        }
        let ground = inside();
        let tree = ground.tree_with(resolver, Symlinks::Deny);
        assert_eq!(call(&tree, "read", "packages/doc/a.md"), ok("in"));
        assert_eq!(call(&tree, "stat", "docs"), ok("Some(Symlink)"));
        assert_eq!(call(&tree, "remove", "docs"), ok(""));
        assert_eq!(call(&tree, "rename_from", "abs"), ok(""));
    }
}

const FILES: [(&str, &str); 6] = [
    ("d/f", "a\r\nb\n"),
    ("g", "x"),
    ("movable", "m"),
    ("full/x", "1"),
    ("cafe\u{301}.txt", "nfd"),
    ("[id]/(p).ts", "p"),
];
const DIRS: [&str; 2] = ["empty", "d/sub"];

const LONG_NAME: &str = match std::str::from_utf8(&[b'n'; 256]) {
    Ok(name) => name,
    Err(_) => "",
};

/// The same calls on every tree give the same answers and codes.
pub fn alike() -> Vec<(&'static str, &'static str, Answer)> {
    let refused = |code: ErrorCode| Answer::Refused(code);
    vec![
        ("read", "d/f", ok("a\r\nb\n")),
        ("read", "./d//./f", ok("a\r\nb\n")),
        ("read", "d\\f", ok("a\r\nb\n")),
        ("read", "d/../g", ok("x")),
        ("read", "d/sub/../../d/f", ok("a\r\nb\n")),
        ("read", "[id]/(p).ts", ok("p")),
        ("read", "d", refused(IsDirectory)),
        ("read", "d/", refused(IsDirectory)),
        ("read", ".", refused(IsDirectory)),
        ("read", "", refused(IsDirectory)),
        ("read", "g/", refused(NotDirectory)),
        ("read", "g/.", refused(NotDirectory)),
        ("read", "g/x", refused(NotDirectory)),
        ("read", "g/..", refused(NotDirectory)),
        ("read", "nope", refused(NotFound)),
        ("read", "nope/", refused(NotFound)),
        ("read", "nope/x", refused(NotFound)),
        ("read", "nope/../g", refused(NotFound)),
        ("read", "caf\u{e9}.txt", refused(NotFound)),
        ("read", "../x", refused(OutsideWorkspace)),
        ("read", "../out/secret.txt", refused(OutsideWorkspace)),
        ("read", "/etc/passwd", refused(OutsideWorkspace)),
        ("read", "C:\\x", refused(InvalidPath)),
        ("read", "a\0b", refused(InvalidPath)),
        ("read", LONG_NAME, refused(InvalidPath)),
        ("write", LONG_NAME, refused(InvalidPath)),
        ("write", "new", ok("")),
        ("write", "new/deep/er", ok("")),
        ("write", "g", ok("")),
        ("write", "g/x", refused(NotDirectory)),
        ("write", "g/", refused(NotDirectory)),
        ("write", "d", refused(IsDirectory)),
        ("write", "d/", refused(IsDirectory)),
        ("write", ".", refused(IsDirectory)),
        ("write", "d/..", refused(IsDirectory)),
        ("write", "d/sub/..", refused(IsDirectory)),
        ("write", "new/", refused(IsDirectory)),
        ("write", "d/../new", ok("")),
        ("write", "nope/../new", refused(NotFound)),
        ("write", "a\0b", refused(InvalidPath)),
        ("write", ".git/config", refused(ProtectedPath)),
        ("write", ".git", refused(ProtectedPath)),
        ("write", "sub/.GIT/config", refused(ProtectedPath)),
        (
            "write",
            ".git::$INDEX_ALLOCATION/hooks/pre-commit",
            refused(ProtectedPath),
        ),
        ("write", "d/../.git/x", refused(ProtectedPath)),
        ("write", ".gitignore", ok("")),
        ("write", ".github/x", ok("")),
        ("write", "[x]/a b", ok("")),
        ("write_no_parents", "nope/x", refused(NotFound)),
        ("write_no_parents", "d/x", ok("")),
        ("create", "g", refused(AlreadyExists)),
        ("create", "d", refused(IsDirectory)),
        ("create", "new/x", ok("")),
        ("update", "g", ok("true")),
        ("update", "nope", refused(NotFound)),
        ("update", "nope/x", refused(NotFound)),
        ("update", "d", refused(IsDirectory)),
        ("update", "g/", refused(NotDirectory)),
        ("update", ".git/HEAD", refused(ProtectedPath)),
        ("stat", "g", ok("Some(File)")),
        ("stat", "g/", ok("None")),
        ("stat", "g/x", ok("None")),
        ("stat", "d", ok("Some(Directory)")),
        ("stat", "d/", ok("Some(Directory)")),
        ("stat", ".", ok("Some(Directory)")),
        ("stat", "nope", ok("None")),
        ("stat", "nope/x", ok("None")),
        ("stat", "..", refused(OutsideWorkspace)),
        ("list", "d", ok("f sub")),
        ("list", "d/", ok("f sub")),
        ("list", ".", ok("[id] cafe\u{301}.txt d empty full g movable")),
        ("list", "g", refused(NotDirectory)),
        ("list", "nope", refused(NotFound)),
        ("list", "empty", ok("")),
        ("mkdir", "m/n/o", ok("")),
        ("mkdir", "d", ok("")),
        ("mkdir", ".", ok("")),
        ("mkdir", "d/sub/", ok("")),
        ("mkdir", "g", refused(AlreadyExists)),
        ("mkdir", "g/x", refused(NotDirectory)),
        ("mkdir", ".Git", refused(ProtectedPath)),
        ("mkdir", "nope/../x", refused(NotFound)),
        ("remove", "g", ok("")),
        ("remove", "g/", refused(NotDirectory)),
        ("remove", "empty", ok("")),
        ("remove", "empty/", ok("")),
        ("remove", "full", refused(DirectoryNotEmpty)),
        ("remove", "nope", refused(NotFound)),
        ("remove", "nope/x", refused(NotFound)),
        ("remove", "g/x", refused(NotDirectory)),
        ("remove", ".", refused(InvalidArgument)),
        ("remove", "d/..", refused(InvalidArgument)),
        ("remove", "empty/../empty", ok("")),
        ("remove", "d/sub/..", refused(DirectoryNotEmpty)),
        ("remove_all", "full", ok("")),
        ("remove_all", "d/sub/..", ok("")),
        ("remove_all", ".", refused(InvalidArgument)),
        ("remove_all", ".git", refused(ProtectedPath)),
        ("rename_from", "g", ok("")),
        ("rename_from", "g/", refused(NotDirectory)),
        ("rename_from", "d", ok("")),
        ("rename_from", "d/", ok("")),
        ("rename_from", "nope", refused(NotFound)),
        ("rename_from", ".", refused(InvalidArgument)),
        ("rename_from", ".git", refused(ProtectedPath)),
        ("rename_to", "new", ok("")),
        ("rename_to", "new/deep", ok("")),
        ("rename_to", "new/", refused(NotDirectory)),
        ("rename_to", "g", refused(AlreadyExists)),
        ("rename_to", "movable", refused(AlreadyExists)),
        ("rename_to", "d", refused(AlreadyExists)),
        ("rename_to", "g/x", refused(NotDirectory)),
        ("rename_to", ".", refused(InvalidArgument)),
        ("rename_to", ".git/x", refused(ProtectedPath)),
        ("rename_over", "g", ok("")),
        ("rename_over", "movable", ok("")),
        ("rename_over", "d", refused(IsDirectory)),
        ("rename_over", "empty", refused(IsDirectory)),
        ("walk", ".", ok("folder . 0")),
        ("walk", "d/sub", ok("folder d/sub 2")),
        ("walk", "d/f", ok("file d/f f")),
        ("walk", "d/../g", ok("file g g")),
        ("walk", "g/", refused(NotDirectory)),
        ("walk", "nope", refused(NotFound)),
        ("walk", "g/x", refused(NotDirectory)),
    ]
}

#[test]
fn all_trees_answer_alike() {
    for (operation, path, expected) in &alike() {
        assert_eq!(
            &call(&memory(&FILES, &DIRS), operation, path),
            expected,
            "{operation} {path:?} in memory"
        );
        for resolver in BOTH {
            let ground = plain();
            let answer = call(&ground.tree(resolver), operation, path);
            assert_eq!(&answer, expected, "{operation} {path:?} {resolver:?}");
            let tree = ground.tree(resolver);
            assert!(
                tree.read_dir(".", false)
                    .unwrap()
                    .iter()
                    .all(|entry| !entry.name.contains(".tmp")),
                "temp left"
            );
        }
    }
}

pub fn plain() -> Ground {
    let ground = Ground::new();
    for (path, content) in FILES {
        ground.file(path, content);
    }
    for path in DIRS {
        ground.dir(path);
    }
    ground
}

#[test]
fn directories_are_renamed_as_the_kernel_decides() {
    for (from, to, overwrite, expected) in [
        ("d", "d/sub/x", false, Answer::Refused(InvalidArgument)),
        ("d", "d/new/x", false, Answer::Refused(InvalidArgument)),
        ("d", "empty", true, ok("")),
        ("d", "empty", false, Answer::Refused(AlreadyExists)),
        ("d", "full", true, Answer::Refused(DirectoryNotEmpty)),
        ("d", "g", true, Answer::Refused(NotDirectory)),
        ("d", "new/", false, ok("")),
        ("d", "d", true, ok("")),
        ("d/sub", "d", true, Answer::Refused(DirectoryNotEmpty)),
        ("d/f", "d", true, Answer::Refused(DirectoryNotEmpty)),
        ("g", "d/f", true, ok("")),
    ] {
        let rename = |tree: &dyn Tree| Answer::from(tree.rename(from, to, overwrite).map(|()| ""));
        assert_eq!(
            rename(&memory(&FILES, &DIRS)),
            expected,
            "{from} -> {to} in memory"
        );
        for resolver in BOTH {
            assert_eq!(
                rename(&plain().tree(resolver)),
                expected,
                "{from} -> {to} {resolver:?}"
            );
        }
    }
}

#[test]
fn a_link_into_git_does_not_open_it_for_writing() {
    for resolver in BOTH {
        for (operation, path) in [
            ("write", "g/config"),
            ("write", "g/new/x"),
            ("update", "g/config"),
            ("create", "g/x"),
            ("mkdir", "g/x"),
            ("remove", "g/config"),
            ("rename_from", "g/config"),
            ("rename_to", "g/x"),
            ("write", "conf"),
            ("update", "conf"),
            ("write", "sub/g/../hooks/x"),
            ("remove_all", "nested"),
            ("remove_all", "g/hooks"),
        ] {
            let ground = Ground::new();
            ground
                .file("movable", "m")
                .file(".git/config", "[core]")
                .file(".git/hooks/old", "x")
                .file("nested/a/.git/HEAD", "ref")
                .file("nested/a/b", "x")
                .link("g", ".git")
                .link("sub/g", "../.git/hooks")
                .link("conf", ".git/config");
            let tree = ground.tree(resolver);
            assert_eq!(
                call(&tree, operation, path),
                Answer::Refused(ProtectedPath),
                "{operation} {path} {resolver:?}"
            );
            assert_eq!(call(&tree, "read", "g/config"), ok("[core]"), "reads are allowed");
            assert!(ground.root.join("nested/a/b").exists() && ground.root.join(".git/hooks/old").exists());
            assert!(!ground.root.join(".git/x").exists() && !ground.root.join(".git/new").exists());
        }
    }
}

#[test]
fn a_renamed_root_stays_pinned() {
    for resolver in BOTH {
        let ground = linked();
        let tree = ground.tree(resolver);
        let moved = ground.root.with_file_name("moved");
        std::fs::rename(&ground.root, &moved).unwrap();
        std::os::unix::fs::symlink(&ground.outside, &ground.root).unwrap();
        assert_eq!(call(&tree, "read", "in.txt"), ok("in"));
        assert_eq!(call(&tree, "read", "secret.txt"), Answer::Refused(NotFound));
        assert_eq!(call(&tree, "write", "new.txt"), ok(""));
        assert!(moved.join("new.txt").exists() && !ground.outside.join("new.txt").exists());
    }
}

#[test]
fn a_root_named_through_a_link_works() {
    let ground = inside();
    let alias = ground.root.with_file_name("alias");
    std::os::unix::fs::symlink(&ground.root, &alias).unwrap();
    ground.link("by-alias", alias.join("f.txt").to_str().unwrap());
    let options = croft::tree::DiskOptions {
        root: alias,
        ..Default::default()
    };
    for resolver in BOTH {
        let tree = croft::tree::DiskTree::open_with(&options, resolver).unwrap();
        assert_eq!(tree.real_path(), ground.root);
        assert_eq!(call(&tree, "read", "f.txt"), ok("F"));
        assert_eq!(call(&tree, "read", "by-alias"), ok("F"));
        assert_eq!(call(&tree, "read", "abs"), ok("F"));
    }
}

#[test]
fn a_bad_root_is_an_error_that_names_it() {
    let ground = inside();
    for (root, code) in [
        ("", InvalidArgument),
        ("/proc/self", NotDirectory),
        ("/sys", NotDirectory),
        (ground.root.join("f.txt").to_str().unwrap(), NotDirectory),
        (ground.root.join("missing").to_str().unwrap(), NotFound),
    ] {
        let options = croft::tree::DiskOptions {
            root: root.into(),
            ..Default::default()
        };
        let error = croft::tree::DiskTree::open(&options).err().unwrap();
        assert_eq!(error.code, code, "{root}");
        assert!(error.message.contains(root), "{}", error.message);
    }
}

#[test]
fn messages_name_no_place_outside_and_no_host_path() {
    for resolver in BOTH {
        let ground = linked();
        let tree = ground.tree(resolver);
        for path in LEADS_OUT
            .into_iter()
            .chain(["nope", "../out/nope", "d", "in.txt/x"])
        {
            for result in [
                tree.read(path, 10).map(|_| ()),
                tree.write(path, b"", &Default::default()),
            ] {
                let Err(error) = result else { continue };
                assert!(
                    !error.message.contains(ground.outside.to_str().unwrap()),
                    "{}",
                    error.message
                );
                assert!(
                    !error.message.contains(ground.root.to_str().unwrap()),
                    "{}",
                    error.message
                );
                assert_eq!(error.path.as_deref(), Some(path));
            }
        }
    }
}

#[test]
fn the_quick_answers_are_the_slow_answers() {
    let ground = linked_on(Ground::on_disk());
    let tree = ground.tree(Resolver::Kernel);
    for path in LEADS_OUT.into_iter().chain([
        "in.txt",
        "d/f.txt",
        "d",
        "nope",
        "in.txt/",
        "d/",
        "d/../in.txt",
        "../x",
    ]) {
        if let Some(quick) = tree.read_now(path, 1 << 20) {
            assert_eq!(quick, tree.read(path, 1 << 20), "{path}");
        }
        if let Some(quick) = tree.stat_now(path) {
            assert_eq!(quick, tree.stat(path), "{path}");
        }
    }
    assert!(ground.tree(Resolver::Walk).read_now("in.txt", 10).is_none());
}
