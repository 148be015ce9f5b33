#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::Platform::{Posix, Win32};
use super::*;
use crate::error::ErrorCode::{InvalidPath, OutsideWorkspace};
use proptest::prelude::*;

#[test]
fn accepted_paths_come_out_relative_with_slashes() {
    for (path, expected) in [
        ("", "."),
        (".", "."),
        ("./", "."),
        ("a", "a"),
        ("a/b", "a/b"),
        ("a\\b", "a/b"),
        ("./a//b/./c/", "a/b/c"),
        ("a/../b", "b"),
        ("a/b/..", "a"),
        ("a/..", "."),
        ("[...slug]/page.tsx", "[...slug]/page.tsx"),
        ("a..b", "a..b"),
        ("..foo", "..foo"),
        ("foo..", "foo.."),
        ("...", "..."),
        ("~/x", "~/x"),
        ("%2e%2e/x", "%2e%2e/x"),
        ("a b/c\td", "a b/c\td"),
        ("aux.c", "aux.c"),
        ("con", "con"),
        ("COM1.txt", "COM1.txt"),
        ("sub/a:b", "sub/a:b"),
        ("ab:c", "ab:c"),
        ("café", "café"),
    ] {
        assert_eq!(normalize(path, Posix).as_deref(), Ok(expected), "{path:?}");
    }
}

#[test]
fn refused_on_every_platform() {
    for (path, code) in [
        ("..", OutsideWorkspace),
        ("../x", OutsideWorkspace),
        ("../ws-evil/secret", OutsideWorkspace),
        ("a/../../x", OutsideWorkspace),
        ("a/../../a", OutsideWorkspace),
        ("src/..\\..\\x", OutsideWorkspace),
        ("..\\x", OutsideWorkspace),
        ("/", OutsideWorkspace),
        ("/etc/passwd", OutsideWorkspace),
        ("//server/share", OutsideWorkspace),
        ("\\\\server\\share", OutsideWorkspace),
        ("\\\\?\\C:\\x", OutsideWorkspace),
        ("\\x", OutsideWorkspace),
        ("C:\\x", InvalidPath),
        ("C:x", InvalidPath),
        ("c:", InvalidPath),
        ("./C:x", InvalidPath),
        ("a/../C:x", InvalidPath),
        ("a\0b", InvalidPath),
        ("\0", InvalidPath),
    ] {
        for platform in [Posix, Win32] {
            let error = normalize(path, platform).expect_err(path);
            assert_eq!(
                (error.code, error.path.as_deref()),
                (code, Some(path)),
                "{path:?} {platform:?}"
            );
        }
    }
}

#[test]
fn windows_names_are_refused_on_windows_only() {
    for name in [
        "CON",
        "con.txt",
        "nul",
        "NUL.tar.gz",
        "nul ",
        "nul .txt",
        "aux.",
        "PRN",
        "com1",
        "COM9.x",
        "COM¹",
        "LPT²",
        "lpt³.txt",
        "CONIN$",
        "conout$",
        "a:b",
        "file.txt::$DATA",
        ".. ",
        ". .",
        "...",
        " ",
        "x/CON/y",
        "x/.. /y",
    ] {
        let name = if windows::has_drive_letter(name) {
            format!("d/{name}")
        } else {
            name.to_owned()
        };
        assert_eq!(
            normalize(&name, Win32).expect_err(&name).code,
            InvalidPath,
            "{name:?}"
        );
        assert!(normalize(&name, Posix).is_ok(), "{name:?}");
    }
    for name in [
        "console",
        "COM",
        "COM10",
        "com0x",
        "nully.txt",
        "aux-1",
        "x.con",
        ".foo",
        "a. b",
        "[...slug]",
    ] {
        assert!(normalize(name, Win32).is_ok(), "{name:?}");
    }
}

#[test]
fn lengths_are_counted_before_parent_steps_are_taken() {
    let name = "n".repeat(MAX_NAME_BYTES);
    assert!(normalize(&name, Posix).is_ok());
    assert_eq!(
        normalize(&format!("{name}n"), Posix).unwrap_err().code,
        InvalidPath
    );
    assert_eq!(normalize(&"😀".repeat(64), Posix).unwrap_err().code, InvalidPath);
    assert!(normalize(&"😀".repeat(64), Win32).is_ok());
    let climbing = format!("{}x", "a/../".repeat(MAX_PATH_BYTES / 5));
    assert_eq!(climbing.len(), MAX_PATH_BYTES - MAX_PATH_BYTES % 5 + 1);
    assert_eq!(
        normalize(&climbing, Posix).as_deref().err().map(|e| e.code),
        (climbing.len() > MAX_PATH_BYTES).then_some(InvalidPath)
    );
    assert_eq!(
        normalize(&format!("{climbing}xxxxx"), Posix).unwrap_err().code,
        InvalidPath
    );
}

#[test]
fn a_final_separator_asks_for_a_directory() {
    for (path, expected) in [
        ("f", false),
        ("f/", true),
        ("f/.", true),
        ("f\\", true),
        ("f/..", false),
        (".", true),
        ("", true),
    ] {
        assert_eq!(
            parse(path, Posix).unwrap().must_be_directory,
            expected,
            "{path:?}"
        );
    }
}

#[test]
fn parent_steps_are_kept_for_the_resolver() {
    let parsed = parse("a/.././b", Posix).unwrap();
    assert_eq!(
        (parsed.components, parsed.has_parent_steps),
        (vec!["a", "..", "b"], true)
    );
}

#[test]
fn every_spelling_of_git_is_protected() {
    let protected = ProtectedNames::default();
    for name in [
        ".git",
        ".GIT",
        ".Git",
        ".gIt",
        ".git.",
        ".git ",
        ".git. .",
        ".git...",
        "git~1",
        "GIT~1",
        "Git~2",
        "git~10",
        "git~1.",
        ".git:x",
        ".git::$INDEX_ALLOCATION",
        ".git .:x",
        "GIT~1::$DATA",
        ".g\u{200c}it",
        "\u{feff}.git",
        ".git\u{202e}",
        ".gi\u{200d}t",
        ".g\u{ad}it",
        ".g\u{131}t",
        ".git\u{fe0f}",
        ".git\u{1}",
    ] {
        assert!(protected.covers(name), "{name:?}");
    }
    for name in [
        ".gitignore",
        ".github",
        ".gitmodules",
        "git",
        "x.git",
        ".git-x",
        "..git",
        "git~",
        "git~x",
        "git~1x",
        "_git",
        ".gıtx",
        ".gut",
        "",
        "gitignore",
        ".git_",
    ] {
        assert!(!protected.covers(name), "{name:?}");
    }
}

#[test]
fn added_names_are_protected_in_every_case() {
    let protected = ProtectedNames::new(&[".env", "Secrets"]);
    for name in [".env", ".ENV", ".env.", "secrets", "SECRETS ", ".git"] {
        assert!(protected.covers(name), "{name:?}");
    }
    for name in [".env.local", "env", "secret"] {
        assert!(!protected.covers(name), "{name:?}");
    }
}

proptest! {
    #[test]
    fn the_result_is_stable_and_never_climbs(path in "([a-cC:./\\\\~ ]|\\.\\.|\u{e9}){0,12}") {
        for platform in [Posix, Win32] {
            if let Ok(normal) = normalize(&path, platform) {
                prop_assert_eq!(normalize(&normal, platform), Ok(normal.clone()));
                prop_assert!(normal.split('/').all(|name| name != ".." && !name.is_empty()));
                prop_assert!(!normal.starts_with('/') && !normal.contains('\\'));
            }
        }
    }
}
