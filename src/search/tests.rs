//! The searches over a tree in memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::error::ErrorCode;
use crate::tree::MemoryTree;

fn tree(files: &[(&str, &str)]) -> MemoryTree {
    let tree = MemoryTree::new(&[]);
    for (path, content) in files {
        tree.insert(path, content.as_bytes().to_vec()).unwrap();
    }
    tree
}

fn glob_paths(tree: &MemoryTree, pattern: &str, path: &str) -> Vec<String> {
    let request = GlobRequest {
        path: path.into(),
        ..GlobRequest::new(pattern)
    };
    glob(tree, &request, &NeverCancelled).unwrap().paths
}

fn grep_places(tree: &MemoryTree, request: &GrepRequest) -> Vec<String> {
    let result = grep(tree, request, &NeverCancelled).unwrap();
    let places = |file: &FileMatches| {
        let lines: Vec<_> = file
            .lines
            .iter()
            .map(|line| format!("{}:{}", file.path, line.line))
            .collect();
        lines
    };
    result.files.iter().flat_map(places).collect()
}

#[test]
fn paths_come_in_byte_order_whatever_the_order_of_directories() {
    let tree = tree(&[
        ("a/b", ""),
        ("a.ts", ""),
        ("a0", ""),
        ("é", ""),
        ("Z", ""),
        ("a/a/x", ""),
        ("10", ""),
        ("9", ""),
    ]);
    let paths = glob_paths(&tree, "**/*", ".");
    assert_eq!(paths, ["10", "9", "Z", "a.ts", "a/a/x", "a/b", "a0", "é"]);
    let mut sorted = paths.clone();
    sorted.sort();
    assert_eq!(paths, sorted);
}

#[test]
fn the_pattern_is_relative_to_the_path_and_results_to_the_root() {
    let tree = tree(&[("src/a.ts", ""), ("src/x/b.ts", ""), ("c.ts", "")]);
    assert_eq!(glob_paths(&tree, "*.ts", "src"), ["src/a.ts"]);
    assert_eq!(glob_paths(&tree, "**/*.ts", "src/"), ["src/a.ts", "src/x/b.ts"]);
    let request = GlobRequest {
        path: "c.ts".into(),
        ..GlobRequest::new("*")
    };
    assert_eq!(
        glob(&tree, &request, &NeverCancelled).unwrap_err().code,
        ErrorCode::NotDirectory
    );
    let request = GlobRequest {
        path: "nope".into(),
        ..GlobRequest::new("*")
    };
    assert_eq!(
        glob(&tree, &request, &NeverCancelled).unwrap_err().code,
        ErrorCode::NotFound
    );
}

#[test]
fn skipped_names_are_skipped_at_any_depth_but_may_be_named() {
    let tree = tree(&[
        ("node_modules/p/i.js", "n"),
        ("a/node_modules/q.js", "n"),
        ("b.js", "n"),
    ]);
    assert_eq!(glob_paths(&tree, "**/*.js", "."), ["b.js"]);
    assert_eq!(
        glob_paths(&tree, "**/*.js", "node_modules"),
        ["node_modules/p/i.js"]
    );
    let mut request = GlobRequest::new("**/*.js");
    request.walk.skip_names.clear();
    assert_eq!(glob(&tree, &request, &NeverCancelled).unwrap().paths.len(), 3);
}

/// (files, path, what glob and grep see). Every file holds an `n`.
type IgnoreCase = (
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static [&'static str],
);

const IGNORE_TABLE: &[IgnoreCase] = &[
    (
        &[
            (".gitignore", "build/\n!build/keep\n"),
            ("build/keep", "n"),
            ("build/x", "n"),
            ("a", "n"),
        ],
        ".",
        &["a"],
    ),
    (
        &[
            (".gitignore", "build/*\n!build/keep\n"),
            ("build/keep", "n"),
            ("build/x", "n"),
        ],
        ".",
        &["build/keep"],
    ),
    (
        &[
            (".gitignore", "*.log\n"),
            ("a/.gitignore", "!x.log\n"),
            ("a/x.log", "n"),
            ("x.log", "n"),
        ],
        ".",
        &["a/x.log"],
    ),
    (
        &[(".gitignore", "/a/**\n"), ("a/a/t", "n"), ("b/a/t", "n")],
        ".",
        &["b/a/t"],
    ),
    (
        &[
            (".gitignore", "build/\n!/some_dir/build/\n"),
            ("some_dir/build/foo", "n"),
            ("build/z", "n"),
        ],
        "some_dir",
        &["some_dir/build/foo"],
    ),
    (
        &[
            (".gitignore", "\\#a\n\\!b\n# c\n"),
            ("#a", "n"),
            ("!b", "n"),
            ("c", "n"),
        ],
        ".",
        &["c"],
    ),
    (
        &[(".gitignore", "doc/f\n"), ("x/doc/f/t", "n"), ("doc/f/t", "n")],
        ".",
        &["x/doc/f/t"],
    ),
    (
        &[
            (".gitignore", "*.log\n"),
            ("sub/.git/HEAD", "x"),
            ("sub/x.log", "n"),
            ("sub/y", "n"),
        ],
        "sub",
        &["sub/x.log", "sub/y"],
    ),
    (
        &[
            (".gitignore", "*.log\n"),
            ("sub/.git/HEAD", "x"),
            ("sub/x.log", "n"),
            ("x.log", "n"),
        ],
        ".",
        &["sub/x.log"],
    ),
    (
        &[(".git/info/exclude", "a\n"), ("a", "n"), ("b", "n")],
        ".",
        &["b"],
    ),
    (
        &[
            (".git/info/exclude", "*\n"),
            (".gitignore", "!b\n"),
            ("a", "n"),
            ("b", "n"),
        ],
        ".",
        &["b"],
    ),
    (
        &[(".gitignore", "*.log\n"), ("a.log", "n"), ("b", "n")],
        ".",
        &["b"],
    ),
    (
        &[(".gitignore", "dist/\n"), ("dist/b.js", "n"), ("dist/c/d", "n")],
        "dist",
        &["dist/b.js", "dist/c/d"],
    ),
    (
        &[(".gitignore", "*.log\n"), ("d/a.log", "n"), ("d/b", "n")],
        "d",
        &["d/b"],
    ),
];

#[test]
fn ignore_rules_hold_for_glob_and_grep_alike() {
    for (files, path, expected) in IGNORE_TABLE {
        let tree = tree(files);
        let mut paths = glob_paths(&tree, "**/*", path);
        paths.retain(|path| !path.ends_with(".gitignore"));
        assert_eq!(paths, *expected, "glob of {files:?}");
        let request = GrepRequest {
            path: (*path).into(),
            ..GrepRequest::new("^n$")
        };
        let found: Vec<_> = expected.iter().map(|path| format!("{path}:1")).collect();
        assert_eq!(grep_places(&tree, &request), found, "grep of {files:?}");
    }
}

#[test]
fn an_ignored_file_that_is_named_is_searched() {
    let tree = tree(&[
        (".gitignore", "dist/\n"),
        ("dist/b.js", "needle\n"),
        ("a.js", "needle\n"),
    ]);
    assert_eq!(grep_places(&tree, &GrepRequest::new("needle")), ["a.js:1"]);
    let request = GrepRequest {
        path: "dist/b.js".into(),
        ..GrepRequest::new("needle")
    };
    assert_eq!(grep_places(&tree, &request), ["dist/b.js:1"]);
    let mut request = GrepRequest::new("needle");
    request.walk.gitignore = false;
    assert_eq!(grep_places(&tree, &request), ["a.js:1", "dist/b.js:1"]);
}

#[test]
fn grep_takes_a_glob() {
    let tree = tree(&[
        ("a.ts", "n"),
        ("src/b.ts", "n"),
        ("src/c.tsx", "n"),
        ("src/[id].ts", "n"),
    ]);
    let with = |glob: &str| {
        grep_places(
            &tree,
            &GrepRequest {
                glob: Some(glob.into()),
                ..GrepRequest::new("n")
            },
        )
    };
    assert_eq!(
        with("*.{ts,tsx}"),
        ["a.ts:1", "src/[id].ts:1", "src/b.ts:1", "src/c.tsx:1"]
    );
    assert_eq!(with("src/**"), ["src/[id].ts:1", "src/b.ts:1", "src/c.tsx:1"]);
    assert_eq!(with("src/\\[id\\].ts"), ["src/[id].ts:1"]);
}

#[test]
fn truncation_is_exact_at_the_cap() {
    for (files, truncated) in [(3, false), (4, true)] {
        let tree = MemoryTree::new(&[]);
        for n in 0..files {
            tree.insert(&format!("f{n}.txt"), b"needle\nneedle\n".to_vec())
                .unwrap();
        }
        let request = GlobRequest {
            max_results: 3,
            ..GlobRequest::new("*.txt")
        };
        let globbed = glob(&tree, &request, &NeverCancelled).unwrap();
        assert_eq!((globbed.paths.len(), globbed.truncated()), (3, truncated));
        let request = GrepRequest {
            max_results: 6,
            ..GrepRequest::new("needle")
        };
        let grepped = grep(&tree, &request, &NeverCancelled).unwrap();
        assert_eq!((grepped.matches, grepped.truncated()), (6, truncated));
        let request = GrepRequest {
            max_results: 5,
            ..GrepRequest::new("needle")
        };
        let grepped = grep(&tree, &request, &NeverCancelled).unwrap();
        assert_eq!(
            (grepped.matches, grepped.truncated(), grepped.files.len()),
            (5, true, 3)
        );
        let mut request = GlobRequest::new("*.txt");
        request.walk.max_files_scanned = 3;
        let globbed = glob(&tree, &request, &NeverCancelled).unwrap();
        assert_eq!(globbed.stop, truncated.then_some(Stop::MaxFiles));
    }
}

#[test]
fn what_is_left_out_is_counted() {
    let tree = tree(&[("bin", "a\0needle"), ("ok", "needle")]);
    tree.insert("big", vec![b'x'; 2 * 1024 * 1024 + 1]).unwrap();
    tree.insert("edge", vec![b'x'; 2 * 1024 * 1024]).unwrap();
    let result = grep(&tree, &GrepRequest::new("needle"), &NeverCancelled).unwrap();
    assert_eq!(
        result.skipped,
        Skipped {
            binary_files: 1,
            large_files: 1,
            ..Skipped::default()
        }
    );
    assert_eq!(
        grep_text(&result, 50_000),
        "ok:1: needle\n[skipped: 1 binary file, 1 file over the size limit]"
    );
}

#[test]
fn the_text_is_one_line_each_with_notes_in_brackets() {
    let tree = tree(&[("a b.txt", "one\ntwo\nthree\n"), ("n\new", "two"), ("é", "two")]);
    let request = GrepRequest {
        context: 1,
        path: "a b.txt".into(),
        ..GrepRequest::new("two")
    };
    let result = grep(&tree, &request, &NeverCancelled).unwrap();
    assert_eq!(
        grep_text(&result, 50_000),
        "a b.txt-1- one\na b.txt:2: two\na b.txt-3- three"
    );
    let request = GrepRequest {
        max_results: 2,
        ..GrepRequest::new("two")
    };
    let result = grep(&tree, &request, &NeverCancelled).unwrap();
    assert_eq!(
        grep_text(&result, 50_000),
        "a b.txt:2: two\nn\\new:1: two\n[stopped after 2 matches, there are more: use a narrower path or pattern]"
    );
    let result = glob(&tree, &GlobRequest::new("*"), &NeverCancelled).unwrap();
    assert_eq!(glob_text(&result, 50_000), "a b.txt\nn\\new\né");
    assert_eq!(
        glob_text(&result, 10),
        "a b.txt\n[2 lines left out, the answer is limited to 10 characters: search a narrower path or pattern]"
    );
    let result = glob(&tree, &GlobRequest::new("*.rs"), &NeverCancelled).unwrap();
    assert_eq!(glob_text(&result, 50_000), "[no files match; 3 files looked at]");
}

#[test]
fn a_listing_shows_directories_before_what_they_hold() {
    let tree = tree(&[("d/e/f", "x"), ("d.txt", "x"), (".git/HEAD", "x")]);
    let request = ListRequest {
        path: ".".into(),
        max_results: 10,
        walk: WalkOptions::default(),
    };
    let result = list(&tree, &request, &NeverCancelled).unwrap();
    assert_eq!(list_text(&result, 50_000), "d.txt\nd/\nd/e/\nd/e/f");
}

#[test]
fn a_cancelled_search_ends_with_aborted_and_a_late_one_with_what_it_has() {
    let tree = tree(&[("a", "n")]);
    let cancel = std::sync::atomic::AtomicBool::new(true);
    assert_eq!(
        glob(&tree, &GlobRequest::new("*"), &cancel).unwrap_err().code,
        ErrorCode::Aborted
    );
    let tree = MemoryTree::new(&[]);
    for n in 0..1000 {
        tree.insert(&format!("f{n}"), b"n".to_vec()).unwrap();
    }
    let mut request = GrepRequest::new("n");
    request.walk.timeout_ms = Some(0);
    let result = grep(&tree, &request, &NeverCancelled).unwrap();
    assert_eq!(result.stop, Some(Stop::Deadline));
}

#[test]
fn a_step_limit_is_reported_with_what_was_found_before() {
    let hard = "a".repeat(4000) + "xzy";
    let tree = tree(&[("1", "aaxy"), ("2", &hard), ("3", "aaxy")]);
    let result = grep(&tree, &GrepRequest::new("(.*)(.*)(.*)(.*)x\\1y"), &NeverCancelled).unwrap();
    assert_eq!(
        result.stop,
        Some(Stop::StepLimit {
            path: "2".into(),
            line: 1
        })
    );
    assert_eq!(result.matches, 1);
    let error = step_limit_error(&result).unwrap();
    assert_eq!(
        (error.code, error.path.as_deref()),
        (ErrorCode::SearchLimit, Some("2"))
    );
    assert!(error.message.ends_with("1 match\n1:1: aaxy"), "{error}");
}

/// Some 3,000 files in uneven directories, every 7th with a match, some binary.
fn big_tree() -> MemoryTree {
    let tree = MemoryTree::new(&[]);
    for n in 0..3000_usize {
        let folder = match n % 5 {
            0 => format!("a/{}/{}", n % 13, n % 3),
            1 => "flat".to_owned(),
            2 => format!("z/{n}"),
            3 => format!("m/{}", "d/".repeat(n % 20)),
            _ => "a.b".to_owned(),
        };
        let content = match n % 7 {
            0 => "needle\nx\nneedle\n",
            1 => "a\0b",
            _ => "hay\n",
        };
        tree.insert(&format!("{folder}/f{n}").replace("//", "/"), content.into())
            .unwrap();
    }
    tree
}

#[test]
fn neither_the_number_of_threads_nor_their_luck_shows_in_a_result() {
    let tree = big_tree();
    for max_files in [20_000, 2999, 1000, 70] {
        for max_results in [usize::MAX, 859, 858, 857, 200, 1] {
            let run = |threads| {
                let mut grep_request = GrepRequest {
                    max_results,
                    ..GrepRequest::new("needle")
                };
                grep_request.walk.threads = Some(threads);
                grep_request.walk.max_files_scanned = max_files;
                let walk = grep_request.walk.clone();
                let glob_request = GlobRequest {
                    max_results,
                    walk: walk.clone(),
                    ..GlobRequest::new("**/*[05]")
                };
                let list_request = ListRequest {
                    path: ".".into(),
                    max_results,
                    walk,
                };
                (
                    grep(&tree, &grep_request, &NeverCancelled).unwrap(),
                    glob(&tree, &glob_request, &NeverCancelled).unwrap(),
                    list(&tree, &list_request, &NeverCancelled).unwrap(),
                )
            };
            let alone = run(1);
            assert!(alone.1.paths.is_sorted());
            for _ in 0..5 {
                assert_eq!(run(4), alone, "max_files {max_files}, max_results {max_results}");
            }
        }
    }
}
