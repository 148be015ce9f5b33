//! `git apply` as a second opinion: generated files and diffs through both. Same bytes, or both refuse; where
//! croft may differ is spelled out in `judge`. `CROFT_PATCH_CASES` sets how many cases run.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use croft::error::{Error, ErrorCode};
use croft::text::patch::{Operation, plan_patch};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

type Files = BTreeMap<String, (Vec<u8>, bool)>;

/// xorshift64*, so that a failure names a case that can be run again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit.max(1)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Lines from a small alphabet, so that many places look alike.
fn line(random: &mut Random, ending: &str) -> String {
    const TEXTS: &[&str] = &[
        "a",
        "b",
        "}",
        "",
        "    x",
        "\ty = 1;",
        "-- c",
        "+ d",
        "\u{e9}\u{81ea}",
        "@@ e",
        " f ",
        "\\ g",
    ];
    let text = TEXTS[random.below(TEXTS.len())];
    let number = if random.one_in(2) {
        random.below(40).to_string()
    } else {
        String::new()
    };
    format!("{text}{number}{ending}")
}

fn text(random: &mut Random, ending: &str) -> Vec<String> {
    let count = if random.one_in(8) {
        random.below(3)
    } else {
        random.below(40)
    };
    (0..count).map(|_| line(random, ending)).collect()
}

fn changed(random: &mut Random, lines: &[String], ending: &str, changes: usize) -> Vec<String> {
    let mut lines = lines.to_vec();
    for _ in 0..changes {
        let at = random.below(lines.len() + 1);
        match random.below(3) {
            0 => lines.insert(at, line(random, ending)),
            1 if at < lines.len() => lines[at] = line(random, ending),
            _ if at < lines.len() => drop(lines.remove(at)),
            _ => {}
        }
    }
    lines
}

fn joined(random: &mut Random, lines: &[String]) -> Vec<u8> {
    let mut text = lines.concat();
    if random.one_in(5) {
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    text.into_bytes()
}

fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap());
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn write_tree(folder: &Path, files: &Files) {
    for (path, (content, executable)) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        set_executable(&path, *executable);
    }
}

#[cfg(unix)]
fn set_executable(path: &Path, executable: bool) {
    use std::os::unix::fs::PermissionsExt;
    let mode = if executable { 0o755 } else { 0o644 };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o100 != 0
}

fn read_tree(folder: &Path) -> Files {
    fn walk(root: &Path, folder: &Path, files: &mut Files) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(".git") || path.ends_with("the.patch") {
                continue;
            }
            if path.is_dir() {
                walk(root, &path, files);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(name, (std::fs::read(&path).unwrap(), is_executable(&path)));
        }
    }
    let mut files = Files::new();
    walk(folder, folder, &mut files);
    files
}

fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with(".git") => {}
            true => std::fs::remove_dir_all(path).unwrap(),
            false => std::fs::remove_file(path).unwrap(),
        }
    }
}

fn by_git(folder: &Path, base: &Files, patch: &str) -> Option<Files> {
    clear(folder);
    write_tree(folder, base);
    std::fs::write(folder.join("the.patch"), patch).unwrap();
    let done = git(folder)
        .args(["apply", "--whitespace=nowarn", "the.patch"])
        .status()
        .unwrap()
        .success();
    let after = read_tree(folder);
    assert!(done || after == *base, "git changed files and failed");
    done.then_some(after)
}

fn by_croft(base: &Files, patch: &str) -> Result<Files, Error> {
    let mut lookup = |path: &str| Ok(base.get(path).map(|(content, _)| content.clone()));
    let plan = plan_patch(patch, 0, &mut lookup)?;
    let mut after = base.clone();
    for operation in plan.operations {
        match operation {
            Operation::Write {
                path,
                before,
                content,
                executable,
                mode_from,
            } => {
                assert_eq!(after.get(&path).map(|(content, _)| content.clone()), before);
                let own = after.get(&path).map(|(_, mode)| *mode);
                let source = mode_from.and_then(|from| base.get(&from)).map(|(_, mode)| *mode);
                let mode = executable.or(source).or(own).unwrap_or(false);
                after.insert(path, (content, mode));
            }
            Operation::Rename {
                from,
                to,
                before,
                content,
                executable,
            } => {
                let (old, mode) = after.remove(&from).unwrap();
                assert_eq!(old, before);
                assert!(
                    after
                        .insert(to, (content.unwrap_or(old), executable.unwrap_or(mode)))
                        .is_none()
                );
            }
            Operation::Remove { path, before } => assert_eq!(after.remove(&path).unwrap().0, before),
        }
    }
    Ok(after)
}

#[derive(Debug, Default)]
struct Tally {
    both_apply: usize,
    both_refuse: usize,
    stricter: BTreeMap<&'static str, usize>,
    wider: usize,
}

/// Where croft may differ from git, and nowhere else.
fn judge(
    tally: &mut Tally,
    case: &str,
    is_spoiled: bool,
    base: &Files,
    patch: &str,
    git: Option<Files>,
    croft: Result<Files, Error>,
) {
    let show = || {
        let base: Vec<_> = base
            .iter()
            .map(|(path, (text, _))| (path, String::from_utf8_lossy(text).into_owned()))
            .collect();
        format!("{case}\nbase: {base:#?}\npatch: {patch:?}\n{patch}")
    };
    match (git, croft) {
        (Some(git), Ok(croft)) => {
            assert_eq!(croft, git, "{}", show());
            tally.both_apply += 1;
        }
        (None, Err(_)) => tally.both_refuse += 1,
        (Some(git), Err(error)) => {
            let why = match error.code {
                ErrorCode::PatchInvalid if git == *base => "git succeeds without doing anything",
                ErrorCode::PatchInvalid if is_spoiled => "spoiled, and git reads over it",
                ErrorCode::PatchConflict if error.message.contains("at several places") => {
                    "several places fit"
                }
                ErrorCode::PatchInvalid if error.message.contains(" old and ") => "wrong counts",
                ErrorCode::PatchInvalid if error.message.contains("before other lines") => {
                    "no newline inside"
                }
                ErrorCode::PatchConflict if error.message.contains("has no context") => {
                    let is_incomplete = base
                        .values()
                        .any(|(text, _)| text.last().is_some_and(|&last| last != b'\n'));
                    assert!(is_incomplete, "git applies, croft says: {error}\n{}", show());
                    "git glues a line to one without newline"
                }
                _ => panic!("git applies, croft says: {error}\n{}", show()),
            };
            *tally.stricter.entry(why).or_default() += 1;
        }
        (None, Ok(croft)) => {
            // Only CR against no CR, throughout: with the CRs taken away from both, git must agree.
            let bare = |files: &Files| -> Files {
                files
                    .iter()
                    .map(|(path, (text, mode))| (path.clone(), (without_cr(text), *mode)))
                    .collect()
            };
            assert!(
                patch.contains('\r') != base.values().any(|(text, _)| text.contains(&b'\r')),
                "git refuses, croft applies\n{}",
                show()
            );
            let folder = tempfile::tempdir().unwrap();
            let git = by_git(folder.path(), &bare(base), &patch.replace('\r', ""));
            assert_eq!(git, Some(bare(&croft)), "git refuses, croft applies\n{}", show());
            tally.wider += 1;
        }
    }
}

fn without_cr(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|&byte| byte != b'\r').collect()
}

fn cases() -> usize {
    std::env::var("CROFT_PATCH_CASES")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(800)
}

fn has_git() -> bool {
    let found = Command::new("git")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    if !found {
        println!("SKIPPED: no git on this machine");
    }
    found
}

/// One patch in a dozen is spoiled: a number, a line, a marker.
fn spoiled(random: &mut Random, patch: &str) -> String {
    let mut lines: Vec<String> = patch.split_inclusive('\n').map(str::to_owned).collect();
    let at = random.below(lines.len());
    match random.below(4) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[random.below(lines.len())].clone()),
        2 => lines.swap(at, random.below(patch.lines().count())),
        _ => {
            let header = lines
                .iter()
                .position(|line| line.starts_with("@@ "))
                .unwrap_or(at);
            let digit = (1 + random.below(9)).to_string();
            let from = ["1", "2", "3", "4"][random.below(4)];
            lines[header] = lines[header].replacen(from, &digit, 1);
        }
    }
    lines.concat()
}

#[test]
fn one_file_is_patched_as_git_does_it_or_both_refuse() {
    if !has_git() {
        return;
    }
    let (folder, diffs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut random = Random(0x5eed_0001);
    let mut tally = Tally::default();
    for case in 0..cases() {
        let seed = random.0;
        let ending = if random.one_in(4) { "\r\n" } else { "\n" };
        let old = text(&mut random, ending);
        let changes = 1 + random.below(5);
        let new = changed(&mut random, &old, ending, changes);
        let (old_text, new_text) = (joined(&mut random, &old), joined(&mut random, &new));
        std::fs::write(diffs.path().join("old"), &old_text).unwrap();
        std::fs::write(diffs.path().join("new"), &new_text).unwrap();
        let context = format!("-U{}", [3, 3, 3, 1, 2, 0][random.below(6)]);
        let output = git(diffs.path())
            .args(["diff", "--no-index", &context, "old", "new"])
            .output()
            .unwrap();
        let mut patch = String::from_utf8(output.stdout).unwrap();
        patch = patch
            .replace("a/old b/new", "a/f b/f")
            .replace("--- a/old", "--- a/f")
            .replace("+++ b/new", "+++ b/f");
        if patch.is_empty() {
            continue;
        }
        if random.one_in(3) {
            // Without git's own header lines.
            patch = patch[patch.find("--- ").unwrap_or(0)..].to_owned();
        }
        let is_spoiled = random.one_in(12);
        if is_spoiled {
            patch = spoiled(&mut random, &patch);
        }
        // Sometimes the file has moved on, or has other endings than the patch.
        let base = match random.below(6) {
            0 | 1 => old_text,
            2 => [line(&mut random, ending).into_bytes(), old_text].concat(),
            3 => {
                let base = changed(&mut random, &old, ending, 2);
                joined(&mut random, &base)
            }
            4 => [
                text(&mut random, ending).concat().into_bytes(),
                old_text.clone(),
                old_text,
            ]
            .concat(),
            _ if random.one_in(2) => without_cr(&old_text),
            _ => new_text,
        };
        let base = Files::from([("f".to_owned(), (base, false))]);
        let (git, croft) = (by_git(folder.path(), &base, &patch), by_croft(&base, &patch));
        judge(
            &mut tally,
            &format!("case {case}, seed {seed:#x}"),
            is_spoiled,
            &base,
            &patch,
            git,
            croft,
        );
    }
    println!("{tally:?}");
    assert!(
        tally.both_apply > cases() / 4 && tally.both_refuse > cases() / 20,
        "{tally:?}"
    );
}

#[test]
fn trees_with_renames_copies_modes_and_deletions_are_patched_as_git_does_it() {
    if !has_git() {
        return;
    }
    let (folder, repository) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let in_repository = |args: &[&str]| {
        let identity = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "core.autocrlf=false",
        ];
        let output = git(repository.path()).args(identity).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    in_repository(&["init", "-q"]);
    const NAMES: &[&str] = &[
        "f",
        "g",
        "d/x",
        "d/y",
        "sp ace",
        "caf\u{e9}.txt",
        "t\tab",
        "q\"uote",
    ];
    let mut random = Random(0x5eed_0002);
    let mut tally = Tally::default();
    for case in 0..cases() / 8 {
        let seed = random.0;
        let mut old = Files::new();
        for name in NAMES.iter().filter(|_| true) {
            if random.one_in(2) {
                let lines = text(&mut random, "\n");
                old.insert(
                    (*name).to_owned(),
                    (joined(&mut random, &lines), random.one_in(4)),
                );
            }
        }
        let mut new = old.clone();
        for _ in 0..1 + random.below(4) {
            let to = NAMES[random.below(NAMES.len())].to_owned();
            let from = new.keys().nth(random.below(new.len())).cloned();
            match (from, random.below(6)) {
                (Some(from), 0) => drop(new.remove(&from)),
                (Some(from), 1) => {
                    let file = new.remove(&from).unwrap();
                    new.insert(to, file);
                }
                (Some(from), 2) => {
                    let file = new[&from].clone();
                    new.insert(to, file);
                }
                (Some(from), 3) => new.get_mut(&from).unwrap().1 ^= true,
                (Some(from), 4) => {
                    let lines: Vec<String> = String::from_utf8(new[&from].0.clone())
                        .unwrap()
                        .split_inclusive('\n')
                        .map(str::to_owned)
                        .collect();
                    let lines = changed(&mut random, &lines, "\n", 2);
                    new.get_mut(&from).unwrap().0 = lines.concat().into_bytes();
                }
                _ => {
                    let lines = text(&mut random, "\n");
                    new.insert(to, (joined(&mut random, &lines), random.one_in(4)));
                }
            }
        }
        clear(repository.path());
        write_tree(repository.path(), &old);
        in_repository(&["add", "-A"]);
        in_repository(&["commit", "-q", "--allow-empty", "-m", "old"]);
        clear(repository.path());
        write_tree(repository.path(), &new);
        in_repository(&["add", "-A"]);
        let patch = in_repository(&["diff", "--cached", "-M40%", "-C40%", "--find-copies-harder"]);
        if patch.is_empty() {
            continue;
        }
        let mut base = old.clone();
        if random.one_in(6) {
            let extra = NAMES[random.below(NAMES.len())].to_owned();
            match random.one_in(2) {
                true => drop(base.remove(&extra)),
                false => drop(base.insert(extra, (b"in the way\n".to_vec(), false))),
            }
        }
        let (git, croft) = (by_git(folder.path(), &base, &patch), by_croft(&base, &patch));
        if let (Some(git), true) = (&git, base == old) {
            assert_eq!(*git, new);
        }
        judge(
            &mut tally,
            &format!("case {case}, seed {seed:#x}"),
            false,
            &base,
            &patch,
            git,
            croft,
        );
    }
    println!("{tally:?}");
    assert!(
        tally.both_apply > 20 && tally.stricter.is_empty() && tally.wider == 0,
        "{tally:?}"
    );
}
