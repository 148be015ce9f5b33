//! How long text operations on large files take. Prints; asserts nothing about time, so it is ignored by default:
//! `cargo test --release --no-default-features --test text_speed -- --ignored --nocapture`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use croft::text::edit::{Edit, LineEndings, edit, edit_many};
use croft::text::page::{Numbering, PageReader, PageRequest, page};
use croft::text::patch::plan_patch;
use std::io::Read;
use std::time::Instant;

fn median_us(mut run: impl FnMut()) -> u128 {
    let mut times: Vec<_> = (0..21)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// About `bytes` of source-like lines of 45 bytes.
fn source(bytes: usize) -> Vec<u8> {
    let lines = (0..bytes / 45).map(|n| format!("    const value_{n:07} = compute({n:07}, options);\n"));
    lines.collect::<String>().into_bytes()
}

#[test]
#[ignore = "a measurement"]
fn pages_of_a_9_mb_file() {
    let file = source(9_000_000);
    let total = memchr::memchr_iter(b'\n', &file).count();
    let request = |offset, limit| PageRequest {
        offset,
        limit,
        max_chars: usize::MAX,
        numbering: Numbering::Gutter,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("big");
    std::fs::write(&path, &file).unwrap();
    println!(
        "std::fs::read: {} us",
        median_us(|| drop(std::fs::read(&path).unwrap()))
    );
    let mut buffer = vec![0; 128 * 1024];
    println!(
        "read through a 128 KB buffer: {} us",
        median_us(|| {
            let mut open = std::fs::File::open(&path).unwrap();
            while open.read(&mut buffer).unwrap() > 0 {}
        })
    );
    for (name, offset, limit) in [
        ("first 2000", 1, 2000),
        ("middle 2000", total / 2, 2000),
        ("last 2000", total - 1999, 2000),
        ("all", 1, total),
    ] {
        let request = request(offset, limit);
        let in_memory = median_us(|| drop(page(&file, "f", &request).unwrap()));
        let streamed = median_us(|| {
            let mut reader = PageReader::new("f", file.len() as u64, request).unwrap();
            let mut open = std::fs::File::open(&path).unwrap();
            loop {
                match open.read(&mut buffer).unwrap() {
                    0 => break,
                    read => reader.push(&buffer[..read]).unwrap(),
                }
            }
            drop(reader.finish().unwrap());
        });
        println!("{name}: in memory {in_memory} us, streamed from disk {streamed} us");
    }
    let wide = String::from_utf8(file.clone())
        .unwrap()
        .replace("options", "öptiöns")
        .into_bytes();
    println!(
        "first 2000, not ASCII: {} us",
        median_us(|| drop(page(&wide, "f", &request(1, 2000)).unwrap()))
    );
}

#[test]
#[ignore = "a measurement"]
fn edits_of_a_5_mb_file() {
    let file = source(5_000_000);
    let one = Edit {
        old: "value_0060000 = compute",
        new: "value = computed",
        replace_all: false,
    };
    let run = |file: &[u8]| median_us(|| drop(edit(file, "f", &one, LineEndings::Preserve).unwrap()));
    println!("one edit: {} us", run(&file));
    let crlf = String::from_utf8(file.clone())
        .unwrap()
        .replace('\n', "\r\n")
        .into_bytes();
    println!("one edit of CRLF: {} us", run(&crlf));
    let olds: Vec<String> = (0..100).map(|n| format!("value_{:07} =", n * 1000)).collect();
    let edits: Vec<_> = olds
        .iter()
        .map(|old| Edit {
            old,
            new: "renamed =",
            replace_all: false,
        })
        .collect();
    println!(
        "100 edits: {} us",
        median_us(|| drop(edit_many(&file, "f", &edits, LineEndings::Preserve).unwrap()))
    );
    let all = Edit {
        old: "options",
        new: "opts",
        replace_all: true,
    };
    println!(
        "replace all: {} us",
        median_us(|| drop(edit(&file, "f", &all, LineEndings::Preserve).unwrap()))
    );
    let miss = Edit {
        old: "    const value_0060000 = compute(60000, option);\n",
        new: "",
        replace_all: false,
    };
    println!(
        "a miss, explained: {} us",
        median_us(|| drop(edit(&file, "f", &miss, LineEndings::Preserve).unwrap_err()))
    );
}

#[test]
#[ignore = "a measurement"]
fn a_patch_of_1000_hunks() {
    let file = source(5_000_000);
    let folder = tempfile::tempdir().unwrap();
    let changed: String = String::from_utf8(file.clone())
        .unwrap()
        .split_inclusive('\n')
        .enumerate()
        .map(|(at, line)| {
            if at % 111 == 50 {
                line.replace("options", "changed")
            } else {
                line.into()
            }
        })
        .collect();
    std::fs::write(folder.path().join("f"), &file).unwrap();
    std::fs::write(folder.path().join("g"), &changed).unwrap();
    let git = |args: &[&str]| {
        std::process::Command::new("git")
            .args(args)
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let patch = String::from_utf8(git(&["diff", "--no-index", "f", "g"]).stdout).unwrap();
    let patch = patch.replace("b/g", "b/f");
    println!("hunks: {}", patch.matches("\n@@").count());
    std::fs::write(folder.path().join("p"), &patch).unwrap();
    let plan = || plan_patch(&patch, 0, &mut |_| Ok(Some(file.clone()))).unwrap();
    println!(
        "plan_patch, lookup copies the file: {} us",
        median_us(|| drop(plan()))
    );
    println!(
        "git apply --check, with its process: {} us",
        median_us(|| drop(git(&["apply", "--check", "p"])))
    );
    println!(
        "git apply --stat (parse only): {} us",
        median_us(|| drop(git(&["apply", "--numstat", "p"])))
    );
    // All hunks one line off: each is searched for.
    let moved = [b"moved\n", file.as_slice()].concat();
    let plan = || plan_patch(&patch, 0, &mut |_| Ok(Some(moved.clone()))).unwrap();
    println!("plan_patch, every hunk moved: {} us", median_us(|| drop(plan())));
    std::fs::write(folder.path().join("f"), &moved).unwrap();
    println!(
        "git apply --check, every hunk moved: {} us",
        median_us(|| drop(git(&["apply", "--check", "p"])))
    );
}
