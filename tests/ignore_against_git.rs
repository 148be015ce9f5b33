//! Ignore rules against git itself: on generated trees, a walk shows exactly the files that
//! `git ls-files --others --exclude-standard` shows. `CROFT_GIT_TREES` sets how many trees.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use croft::search::{GlobRequest, NeverCancelled, glob};
use croft::tree::MemoryTree;

const DEFAULT_TREES: u64 = 2000;

/// A small generator with a seed that a failure can name.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const NAMES: &[&str] = &[
    "a", "b", "ab", "foo", "bar", "a.c", "b.log", ".x", "foo bar", "é", "[a]", "a-b", "#a", "!b", "a*",
];
const PIECES: &[&str] = &[
    "a",
    "b",
    "ab",
    "foo",
    "bar",
    "*",
    "**",
    "?",
    "*.c",
    "*.log",
    "[ab]",
    "[!a]",
    "[a-c]*",
    "f*",
    "**a",
    "a**",
    ".x",
    "foo bar",
    "\\[a\\]",
    "é",
    "[[:alpha:]]",
    "*b*",
    "\\a",
    "[",
    "[abc",
    "[]a]",
    "a\\*",
    "??",
    "[^b]",
    "f?o",
    "\\!b",
    "!b",
    "#a",
    "***",
    "[a-]",
    "[\\]a]",
    "*o",
    "foo*",
];

fn pattern(random: &mut Random) -> String {
    let mut line = String::new();
    if random.below(4) == 0 {
        line.push('!');
    }
    if random.below(4) == 0 {
        line.push('/');
    }
    for index in 0..=random.below(3) {
        if index > 0 {
            line.push('/');
        }
        line.push_str(random.pick(PIECES));
    }
    if random.below(4) == 0 {
        line.push('/');
    }
    line.push_str(random.pick(&["", "", "", "", " ", "\\ ", "  ", "\t", "\r"]));
    line
}

fn rules(random: &mut Random) -> String {
    let mut text = String::new();
    if random.below(10) == 0 {
        text.push('\u{feff}');
    }
    for _ in 0..=random.below(4) {
        text.push_str(&pattern(random));
        text.push('\n');
    }
    if random.below(3) == 0 {
        text.push_str(random.pick(&["# note", "\n\n", "/", "!", "//", "**", "*/"]));
    }
    text
}

/// Path to content; a path is never both a file and a directory.
fn generate(random: &mut Random) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![String::new()];
    for _ in 0..random.below(7) {
        let parent = folders[random.below(folders.len())].clone();
        if parent.matches('/').count() < 3 {
            let folder = format!("{parent}{}/", random.pick(NAMES));
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    for folder in &folders {
        for _ in 0..random.below(6) {
            let path = format!("{folder}{}", random.pick(NAMES));
            if !folders.contains(&format!("{path}/")) {
                files.insert(path, "x".to_owned());
            }
        }
        if folder.is_empty() || random.below(3) == 0 {
            files.insert(format!("{folder}.gitignore"), rules(random));
        }
    }
    if random.below(3) == 0 {
        files.insert(".git/info/exclude".to_owned(), rules(random));
    }
    files
}

fn git(folder: &Path, args: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.current_dir(folder).args(args);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        command.env(name, "/dev/null");
    }
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "XDG_CONFIG_HOME"] {
        command.env_remove(name);
    }
    let output = command.env("HOME", folder).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn seen_by_git(files: &BTreeMap<String, String>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    git(folder.path(), &["init", "-q", "--template=", "."]);
    for (path, content) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let listed = git(
        folder.path(),
        &["ls-files", "--others", "--exclude-standard", "-z"],
    );
    let mut paths: Vec<String> = listed
        .split(|&byte| byte == 0)
        .map(|path| String::from_utf8(path.to_vec()).unwrap())
        .collect();
    paths.retain(|path| !path.is_empty());
    paths.sort();
    paths
}

fn seen_by_walk(files: &BTreeMap<String, String>) -> Vec<String> {
    let tree = MemoryTree::new(&[]);
    tree.insert(".git/HEAD", b"ref: refs/heads/main\n".to_vec())
        .unwrap();
    for (path, content) in files {
        tree.insert(path, content.clone().into_bytes()).unwrap();
    }
    let mut request = GlobRequest {
        max_results: usize::MAX,
        ..GlobRequest::new("**/*")
    };
    request.walk.skip_names.clear();
    glob(&tree, &request, &NeverCancelled).unwrap().paths
}

#[test]
fn a_walk_sees_what_git_sees() {
    let trees = std::env::var("CROFT_GIT_TREES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(DEFAULT_TREES);
    let mut ignored = 0;
    for seed in 1..=trees {
        let files = generate(&mut Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let (ours, theirs) = (seen_by_walk(&files), seen_by_git(&files));
        assert_eq!(ours, theirs, "tree {seed}: {files:#?}");
        ignored += files
            .keys()
            .filter(|path| !path.starts_with(".git/") && !ours.contains(path))
            .count();
    }
    assert!(ignored > 0, "the generated rules never excluded anything");
    eprintln!("{trees} trees, {ignored} files excluded");
}
