//! How a command ends: by itself, by signal, by time, by abort; and that nothing it started stays.

use super::harness::*;
use crate::process::exec::*;
use croft_exec::wire::Containment;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

async fn aborted_once(request: ExecRequest, mark: &str, count: usize) -> ExecResult {
    let cancel = CancellationToken::new();
    let trigger = async {
        eventually("the command runs", || alive(mark) >= count).await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(exec(request, None, &cancel), trigger);
    outcome.unwrap().result
}

#[tokio::test]
async fn exit_codes_and_signals_are_told_as_a_shell_tells_them() {
    for (command, code, signal) in [
        ("exit 0", 0, None),
        ("exit 255", 255, None),
        ("nosuchcmd", 127, None),
        ("/etc", 126, None),
        ("kill -9 $$", 137, Some("SIGKILL")),
        ("kill -TERM $$", 143, Some("SIGTERM")),
        ("sh -c 'kill -SEGV $$'", 139, None),
        ("kill -TERM 0; sleep 5", 143, Some("SIGTERM")),
    ] {
        let result = run(shell(command)).await;
        assert_eq!((result.exit_code, result.signal), (code, signal), "{command}");
        assert_eq!((result.ended, result.note), (Ended::ByItself, None), "{command}");
    }
}

#[tokio::test]
async fn a_call_ends_with_its_shell_and_what_it_left_is_ended_and_counted() {
    let mark = unique_seconds();
    for command in [
        format!("sleep {mark} & echo done"),
        format!("sh -c 'while :; do echo tick; sleep 0.02; done' x {mark} & echo done"),
        format!("setsid sleep {mark} & echo done"),
        format!(
            "(setsid sh -c 'sleep {mark} & exit' &); while [ -z \"$(pgrep -f 'sleep {mark}')\" ]; do :; done; echo done"
        ),
        format!("setsid sleep {mark} >/dev/null 2>&1 & echo done"),
    ] {
        let began = Instant::now();
        let result = run(shell(&command)).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{command}");
        assert!(result.stdout.contains("done\n"), "{command}: {result:?}");
        assert_eq!(
            (result.exit_code, result.ended),
            (0, Ended::ByItself),
            "{command}"
        );
        let note = result.note.expect(&command);
        assert!(
            note.contains("left running") && note.contains("background: true"),
            "{note}"
        );
        eventually(&command, || alive(&mark) == 0).await;
    }
}

#[tokio::test]
async fn a_leftover_that_ends_by_itself_is_waited_for_and_not_mentioned() {
    let directory = tempfile::tempdir().unwrap();
    let command = "bash -c 'exec > >(tee -a log.txt) 2>&1; echo hi'";
    let result = run(request_in(directory.path(), line(command))).await;
    assert_eq!(
        (result.stdout.as_str(), result.exit_code, result.note),
        ("hi\n", 0, None)
    );
    assert_eq!(
        std::fs::read_to_string(directory.path().join("log.txt")).unwrap(),
        "hi\n"
    );
}

#[tokio::test]
async fn an_exit_is_reported_although_a_descendant_holds_the_pipes() {
    let mark = unique_seconds();
    let result = run(shell(&format!("setsid sleep {mark} & exec 1>&2; exit 3"))).await;
    assert_eq!((result.exit_code, result.ended), (3, Ended::ByItself));
    eventually("the descendant is gone", || alive(&mark) == 0).await;
}

#[tokio::test]
async fn a_timeout_ends_every_kind_of_descendant() {
    let mark = unique_seconds();
    for command in [
        format!("sleep {mark}"),
        format!("sleep {mark} & sleep {mark}; true"),
        format!("nohup sleep {mark} >/dev/null 2>&1 & sleep {mark}"),
        format!("(setsid sh -c 'sleep {mark} & exit' &); sleep {mark}"),
        format!("setsid sh -c 'setsid sh -c \"setsid sleep {mark} &\" &' & sleep {mark}"),
        format!(
            "mkfifo p.{mark}; (while true; do echo child; sleep 0.1; done) > p.{mark} & cat p.{mark} x {mark}"
        ),
        format!("sleep {mark} & kill -STOP $!; sleep {mark}"),
        format!("trap '' TERM HUP INT; sh -c 'trap \"\" TERM; sleep {mark}'; sleep {mark}"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let request = within(400, request_in(directory.path(), line(&command)));
        let result = run(request).await;
        assert_eq!(result.ended, Ended::ByTimeout, "{command}");
        assert!(
            result.note.is_some_and(|note| note.contains("400 ms")),
            "{command}"
        );
        assert_eq!(alive(&mark), 0, "{command}");
    }
}

#[tokio::test]
async fn what_ignores_sigterm_is_killed_after_the_grace_and_reported_so() {
    let mut request = within(300, shell("trap '' TERM; while :; do sleep 0.05; done"));
    request.kill_grace = Duration::from_millis(200);
    let result = run(request).await;
    assert_eq!(
        (result.exit_code, result.signal, result.ended),
        (137, Some("SIGKILL"), Ended::ByTimeout)
    );
}

#[tokio::test]
async fn what_obeys_sigterm_may_clean_up() {
    let result = run(within(
        300,
        shell("trap 'echo bye; exit 7' TERM; sleep 30 & wait"),
    ))
    .await;
    assert_eq!(
        (result.stdout.as_str(), result.exit_code, result.signal),
        ("bye\n", 7, None)
    );
    assert_eq!(result.ended, Ended::ByTimeout);
}

#[tokio::test]
async fn a_fork_storm_dies_with_its_timeout() {
    let mark = unique_seconds();
    let storm = format!("while :; do setsid sh -c 'sleep {mark} & sleep 0.01' & sleep 0.005; done");
    let result = run(within(800, shell(&storm))).await;
    assert_eq!(result.ended, Ended::ByTimeout);
    eventually("the storm is over", || alive(&mark) == 0).await;
}

#[tokio::test]
async fn an_abort_ends_nested_background_jobs_and_is_no_timeout() {
    let mark = unique_seconds();
    let request = shell(&format!("sh -c \"sleep {mark} & sleep {mark} & wait\" & wait"));
    let result = aborted_once(request, &mark, 2).await;
    assert_eq!(result.ended, Ended::ByAbort);
    assert_eq!(alive(&mark), 0);
}

#[tokio::test]
async fn a_dropped_call_ends_its_command() {
    let mark = unique_seconds();
    let cancel = CancellationToken::new();
    {
        let call = exec(
            shell(&format!("setsid sleep {mark} & sleep {mark}")),
            None,
            &cancel,
        );
        tokio::select! {
            _ = call => panic!("ended by itself"),
            () = eventually("the command runs", || alive(&mark) == 2) => {}
        }
    }
    eventually("it is gone", || alive(&mark) == 0).await;
}

#[tokio::test]
async fn a_command_that_kills_or_stops_its_supervisor_ends_all_the_same() {
    let mark = unique_seconds();
    let killed = run(shell(&format!("sleep {mark} & kill -9 $PPID; sleep {mark}"))).await;
    assert_eq!((killed.ended, killed.signal), (Ended::ByItself, Some("SIGKILL")));
    assert!(killed.note.is_some_and(|note| note.contains("supervisor")));
    eventually("nothing is left of the first", || alive(&mark) == 0).await;
    let stopped = run(within(
        300,
        shell(&format!("setsid sleep {mark} & kill -STOP $PPID; sleep {mark}")),
    ))
    .await;
    assert_eq!(stopped.ended, Ended::ByTimeout);
    eventually("nothing is left of the second", || alive(&mark) == 0).await;
    // What can be blocked is.
    let polite = run(shell(
        "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; echo ok",
    ))
    .await;
    assert_eq!((polite.stdout.as_str(), polite.exit_code), ("ok\n", 0));
}

#[tokio::test]
async fn the_strongest_containment_of_this_machine_is_used_and_told() {
    let expected = match crate::process::cgroup::is_available() {
        true => Containment::Cgroup,
        false => Containment::Subreaper,
    };
    let result = run(shell("grep ^0:: /proc/self/cgroup")).await;
    assert_eq!(result.containment, Some(expected));
    assert_eq!(
        result.stdout.contains("/croft-"),
        expected == Containment::Cgroup,
        "{}",
        result.stdout
    );
}
