//! What can only be seen in a process where nothing else happens: leaks, and the death of the whole process.
//! Each `_inside` test is ignored and run by its twin in a fresh process of this test binary.

use super::harness::*;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

fn inside(test: &str) -> Child {
    let name = format!("process::tests::alone::{test}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        &name,
        "--ignored",
        "--nocapture",
        "--test-threads",
        "1",
    ]);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_thousand_commands_leave_no_zombie_descriptor_thread_or_cgroup() {
    assert!(
        inside("a_thousand_commands_inside")
            .wait_with_output()
            .unwrap()
            .status
            .success()
    );
}

/// (descriptors, threads, children in any state, cgroup leaves) of this process.
fn held() -> [usize; 4] {
    let count = |path: &str| std::fs::read_dir(path).unwrap().count();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children = children.map(|list| list.split_whitespace().count()).sum();
    let leaves = std::fs::read_dir("/sys/fs/cgroup/unified")
        .into_iter()
        .flatten()
        .flatten();
    let own = format!("-{}-", std::process::id());
    let leaves = leaves
        .filter(|leaf| leaf.file_name().to_string_lossy().contains(&own))
        .count();
    [count("/proc/self/fd"), count("/proc/self/task"), children, leaves]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by its twin in a process of its own"]
async fn a_thousand_commands_inside() {
    for _ in 0..50 {
        run(shell("sleep 0.001 & true")).await;
    }
    eventually("the first are collected", || held()[2] == 0).await;
    let before = held();
    for _ in 0..10 {
        let fifty = (0..50).map(|_| tokio::spawn(run(shell("printf x"))));
        for call in fifty.collect::<Vec<_>>() {
            let result = call.await.unwrap();
            assert_eq!((result.stdout.as_str(), result.exit_code), ("x", 0));
        }
    }
    for _ in 0..500 {
        assert_eq!(run(shell("printf x")).await.stdout, "x");
    }
    let mut after = [0; 4];
    eventually("all is as before", || {
        after = held();
        after == before
    })
    .await;
}

#[tokio::test]
async fn a_process_that_is_killed_takes_its_commands_along() {
    let mut process = inside("commands_until_killed_inside");
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let mark = lines
        .find_map(|line| line.unwrap().strip_prefix("mark ").map(str::to_owned))
        .unwrap();
    eventually("all run", || alive(&mark) >= 30).await;
    process.kill().unwrap();
    process.wait().unwrap();
    let killed = std::time::Instant::now();
    eventually("nothing is left", || alive(&mark) == 0).await;
    // 500 ms of grace for those that ignore SIGTERM, and a wide margin.
    assert!(killed.elapsed().as_secs() < 2, "{:?}", killed.elapsed());
    let leaf = format!("-{}-", process.id());
    let leaves = || {
        std::fs::read_dir("/sys/fs/cgroup/unified")
            .into_iter()
            .flatten()
            .flatten()
    };
    eventually("no cgroup is left", || {
        !leaves().any(|entry| entry.file_name().to_string_lossy().contains(&leaf))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by its twin in a process of its own"]
async fn commands_until_killed_inside() {
    let mark = unique_seconds();
    println_now(&format!("\nmark {mark}"));
    let stubborn =
        format!("trap '' TERM; (setsid sh -c 'sleep {mark} & exit' &); sleep {mark}; sleep {mark}");
    let plain = format!("sleep {mark} & sleep {mark}");
    let calls = (0..20).map(|n| tokio::spawn(run(shell(if n % 2 == 0 { &stubborn } else { &plain }))));
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
}

fn println_now(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
