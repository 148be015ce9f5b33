//! The helper that waits for the next command: it serves once, is replaced, and never stays longer than it may.

use super::harness::*;
use crate::process::exec::*;
use crate::process::ready::Ready;
use crate::process::start;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

async fn through(ready: &Arc<Ready>, request: ExecRequest) -> ExecResult {
    let start = |spec| start::start(spec, Some(ready));
    exec_by(start, request, None, &CancellationToken::new())
        .await
        .unwrap()
        .result
}

fn alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

async fn gone(pid: u32) {
    while alive(pid) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn signal(pid: u32, signal: libc::c_int) {
    // SAFETY: signals a child of this process that has not been reaped.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

#[tokio::test]
async fn each_command_has_a_helper_of_its_own_and_one_waits_for_the_next() {
    let ready = Arc::new(Ready::default());
    let mut seen = vec![];
    for number in 0..4 {
        // The command's parent is its helper.
        let result = through(&ready, shell(&format!("echo {number} $PPID"))).await;
        let words: Vec<u32> = result
            .stdout
            .split_whitespace()
            .map(|word| word.parse().unwrap())
            .collect();
        assert_eq!(words[0], number, "{result:?}");
        assert!(
            seen.last().is_none_or(|waiting| *waiting == words[1]),
            "the one that waited was not used"
        );
        seen.push(ready.waiting().unwrap());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 4);
    ready.close().await;
}

#[tokio::test]
async fn one_that_was_killed_while_it_waited_is_replaced_and_the_command_runs_once() {
    let ready = Arc::new(Ready::default());
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..5 {
        through(&ready, shell("true")).await;
        signal(ready.waiting().unwrap(), libc::SIGKILL);
        let request = request_in(directory.path(), line("echo ran >> log"));
        assert_eq!(through(&ready, request).await.exit_code, 0);
    }
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert_eq!(log, "ran\n".repeat(5));
    ready.close().await;
}

#[tokio::test]
async fn one_that_was_stopped_while_it_waited_goes_on() {
    let ready = Arc::new(Ready::default());
    through(&ready, shell("true")).await;
    signal(ready.waiting().unwrap(), libc::SIGSTOP);
    assert_eq!(through(&ready, shell("echo on")).await.stdout, "on\n");
    ready.close().await;
}

#[tokio::test]
async fn none_is_left_after_close_nor_after_the_workspace_is_dropped_nor_when_it_has_waited_long_enough() {
    let closed = Arc::new(Ready::default());
    through(&closed, shell("true")).await;
    let pid = closed.waiting().unwrap();
    closed.close().await;
    assert!(!alive(pid));
    assert_eq!(through(&closed, shell("echo late")).await.stdout, "late\n");
    assert_eq!(closed.waiting(), None);

    let dropped = Arc::new(Ready::default());
    through(&dropped, shell("true")).await;
    let pid = dropped.waiting().unwrap();
    drop(dropped);
    gone(pid).await;

    let rested = Arc::new(Ready::default());
    through(&rested, shell("true")).await;
    let pid = rested.waiting().unwrap();
    assert!(rested.look().is_some());
    assert_eq!(rested.waiting(), Some(pid));
    rested.let_time_pass();
    assert!(rested.look().is_none());
    gone(pid).await;
}
