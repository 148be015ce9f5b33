//! System calls, counted by `strace -c -f`: a gate that a noisy machine cannot move. The cost of one search or write
//! is the difference between a process that makes two and one that makes twelve.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

use croft::search::{GlobRequest, GrepRequest, NeverCancelled, glob, grep};
use croft::tree::{DiskOptions, DiskTree, Flush, Tree, WriteOptions};

const FOLDERS: usize = 240;
const FILES_A_FOLDER: usize = 7;
const MAX_CALLS_A_FILE: f64 = 4.5;
const MAX_CALLS_A_FOLDER: f64 = 5.5;

/// A project of modest files, some folders with an ignore file, and folders that are ignored.
fn build(root: &Path) {
    std::fs::write(root.join(".gitignore"), "dist/\n*.log\n").unwrap();
    for n in 0..FOLDERS {
        let folder = root.join(format!("packages/p{}/m{n}", n % 16));
        std::fs::create_dir_all(folder.join("dist")).unwrap();
        for file in 0..FILES_A_FOLDER {
            let text = format!("export const value{file} = {n};\n").repeat(20 + 13 * file * (n % 5));
            std::fs::write(folder.join(format!("f{file}.ts")), text).unwrap();
        }
        std::fs::write(folder.join("dist/out.ts"), "x").unwrap();
        if n % 20 == 0 {
            std::fs::write(folder.join(".gitignore"), "*.tmp\n").unwrap();
        }
    }
}

/// Does nothing unless a parent asks for it.
#[test]
fn child() {
    let Ok(what) = std::env::var("CROFT_SYSCALLS") else {
        return;
    };
    let root = std::env::var("CROFT_SYSCALLS_ROOT").unwrap();
    let times: usize = std::env::var("CROFT_SYSCALLS_TIMES").unwrap().parse().unwrap();
    match what.as_str() {
        "grep" | "glob" => search(&what, &root, times),
        how => write(how, &root, times),
    }
}

fn search(what: &str, root: &str, times: usize) {
    let tree = open(root, Flush::BeforeRename);
    for _ in 0..times {
        let files = if what == "grep" {
            grep(&tree, &GrepRequest::new("no such text"), &NeverCancelled)
                .unwrap()
                .files_scanned
        } else {
            glob(&tree, &GlobRequest::new("**/*.none"), &NeverCancelled)
                .unwrap()
                .files_scanned
        };
        assert!(files >= FOLDERS * FILES_A_FOLDER, "{files}");
    }
}

fn write(how: &str, root: &str, times: usize) {
    let flush = if how == "write" {
        Flush::BeforeRename
    } else {
        Flush::ByKernel
    };
    let tree = open(root, flush);
    let options = WriteOptions {
        durable: how == "write durable",
        ..WriteOptions::default()
    };
    for _ in 0..times {
        tree.write("f.txt", b"content", &options).unwrap();
    }
}

fn open(root: &str, flush: Flush) -> DiskTree {
    DiskTree::open(&DiskOptions {
        root: root.into(),
        flush,
        ..DiskOptions::default()
    })
    .unwrap()
}

fn count_calls(what: &str, root: &Path, times: usize, counted: impl Fn(&str) -> bool) -> f64 {
    let report = root.join("strace.log");
    let status = Command::new("strace")
        .args(["-c", "-f", "-o"])
        .arg(&report)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child"])
        .env("CROFT_SYSCALLS", what)
        .env("CROFT_SYSCALLS_ROOT", root)
        .env("CROFT_SYSCALLS_TIMES", times.to_string())
        .output()
        .unwrap();
    assert!(
        status.status.success(),
        "{}",
        String::from_utf8_lossy(&status.stdout)
    );
    let text = std::fs::read_to_string(&report).unwrap();
    std::fs::remove_file(&report).unwrap();
    text.lines().filter_map(|line| calls_in(line, &counted)).sum()
}

/// "% time, seconds, usecs/call, calls, [errors,] name".
fn calls_in(line: &str, counted: impl Fn(&str) -> bool) -> Option<f64> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let name = columns.last()?;
    if columns.len() < 5 || matches!(*name, "total" | "syscall") || !counted(name) {
        return None;
    }
    columns[3].parse().ok()
}

/// False, loudly, where there is no strace.
fn can_count() -> bool {
    if Command::new("strace").arg("-V").output().is_ok() {
        return true;
    }
    assert!(
        std::env::var_os("CROFT_REQUIRE_STRACE").is_none(),
        "strace is not installed"
    );
    eprintln!("SKIPPED: strace is not installed, system calls are not counted");
    false
}

#[test]
fn a_search_makes_few_system_calls() {
    if !can_count() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    build(root.path());
    // The standard library asks `fcntl` of every descriptor before it closes it, in builds with debug assertions
    // only; nothing of ours calls it in a walk.
    let all = |name: &str| name != "fcntl";
    // Each folder, its parents p0 to p15, and the two above.
    let folders = (FOLDERS + 16 + 2) as f64;
    let files = (FOLDERS * FILES_A_FOLDER) as f64;
    for (what, things, most) in [
        ("grep", files, MAX_CALLS_A_FILE),
        ("glob", folders, MAX_CALLS_A_FOLDER),
    ] {
        let few = count_calls(what, root.path(), 2, all);
        let many = count_calls(what, root.path(), 12, all);
        let each = (many - few) / 10.0 / things;
        eprintln!("{what}: {each:.2} system calls");
        assert!(
            each > 1.0 && each <= most,
            "{what}: {each:.2} system calls, at most {most}"
        );
    }
}

#[test]
fn a_write_is_flushed_before_its_name_unless_the_tree_leaves_that_to_the_kernel() {
    if !can_count() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    for (how, flushes) in [("write", 1.0), ("write unflushed", 0.0), ("write durable", 2.0)] {
        let count = |times| count_calls(how, root.path(), times, |name| name == "fsync");
        assert_eq!((count(12) - count(2)) / 10.0, flushes, "{how}");
    }
}
