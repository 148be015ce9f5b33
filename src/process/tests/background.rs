//! Processes that outlive a call: what is read of them, and that they end with the workspace.

use super::harness::*;
use crate::error::ErrorCode;
use crate::process::background::Status;
use crate::process::env::Inherit;
use crate::process::exec::Ended;
use crate::process::host::*;
use croft_exec::wire::Leftover;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const NOW: Duration = Duration::ZERO;
const LONG: Duration = Duration::from_secs(20);

fn host() -> Arc<Host> {
    let options = HostOptions {
        root: "/tmp".into(),
        shell: "/bin/sh".into(),
        env: vec![],
        inherit: Inherit::Names(vec![]),
        venv: true,
    };
    let open_directory: OpenDirectory = Arc::new(|path| match path {
        "." => Ok((open(Path::new("/tmp")), ".".into())),
        _ => Err(crate::Error::new(ErrorCode::NotFound, "not here").at(path)),
    });
    Arc::new(Host::new(options, open_directory).unwrap())
}

fn spawn_call(command: &str) -> SpawnCall {
    SpawnCall {
        command: Command::Line(command.into()),
        cwd: ".".into(),
        host_env: std::env::vars_os().collect(),
        env: vec![],
        kill_grace: Duration::from_millis(500),
        max_output_chars: MAX_BACKGROUND_CHARS,
    }
}

fn exec_call(command: &str) -> ExecCall {
    ExecCall {
        command: Command::Line(command.into()),
        cwd: ".".into(),
        host_env: std::env::vars_os().collect(),
        env: vec![],
        input: None,
        timeout: Some(LONG),
        kill_grace: Duration::from_millis(500),
        capture: WHOLE,
        leftover: Leftover::Kill,
        started: None,
    }
}

async fn start(host: &Host, command: &str) -> String {
    host.spawn(spawn_call(command), &CancellationToken::new())
        .await
        .unwrap()
        .id
        .clone()
}

/// Everything until the end: (output, status, exit code, dropped).
async fn read_all(host: &Host, id: &str) -> (String, Status, Option<i32>, u64) {
    let (mut output, mut dropped) = (String::new(), 0);
    loop {
        let read = host.read(id, LONG, &CancellationToken::new()).await.unwrap();
        output.push_str(&read.output);
        dropped += read.dropped_chars;
        if read.status != Status::Running {
            return (output, read.status, read.exit_code, dropped);
        }
    }
}

#[tokio::test]
async fn output_of_both_streams_is_read_piece_by_piece_and_the_end_is_no_error() {
    let host = host();
    let id = start(&host, "echo one; echo two >&2; cat; exit 5").await;
    assert!(id.starts_with("bg-") && id.len() == 9);
    let (output, status, code, dropped) = read_all(&host, &id).await;
    assert!(output == "one\ntwo\n" || output == "two\none\n", "{output}");
    assert_eq!((status, code, dropped), (Status::Exited, Some(5), 0));
    let again = host.read(&id, NOW, &CancellationToken::new()).await.unwrap();
    assert_eq!(
        (again.output.as_str(), again.status, again.exit_code),
        ("", Status::Exited, Some(5))
    );
    host.close().await;
}

#[tokio::test]
async fn a_flood_keeps_only_the_newest_and_counts_the_rest() {
    let host = host();
    let call = SpawnCall {
        max_output_chars: 100,
        ..spawn_call("seq 100000; echo last")
    };
    let id = host
        .spawn(call, &CancellationToken::new())
        .await
        .unwrap()
        .id
        .clone();
    eventually("it ended", || host.list().unwrap()[0].status == Status::Exited).await;
    let (output, _, _, dropped) = read_all(&host, &id).await;
    assert!(output.ends_with("\n100000\nlast\n"));
    assert_eq!((output.len(), output.len() as u64 + dropped), (100, 588_895 + 5));
    host.close().await;
}

#[tokio::test]
async fn a_read_that_waits_returns_with_the_first_output_or_the_end_or_its_signal() {
    let host = host();
    let id = start(&host, "sleep 0.1; echo x; exec sleep 1000").await;
    let read = host.read(&id, LONG, &CancellationToken::new()).await.unwrap();
    assert_eq!(
        (read.output.as_str(), read.status, read.exit_code),
        ("x\n", Status::Running, None)
    );
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = host.read(&id, LONG, &cancel).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Aborted);
    let at_once = host.read(&id, NOW, &CancellationToken::new()).await.unwrap();
    assert_eq!(at_once.status, Status::Running);
    host.close().await;
}

#[tokio::test]
async fn killing_ends_the_whole_tree_and_returns_the_tail_and_may_be_repeated() {
    let host = host();
    let mark = unique_seconds();
    let id = start(
        &host,
        &format!("trap 'echo bye; exit 9' TERM; setsid sleep {mark} & echo hi; wait"),
    )
    .await;
    eventually("it runs", || alive(&mark) == 1).await;
    let killed = host.kill(&id).await.unwrap();
    assert_eq!(
        (killed.output.as_str(), killed.status, killed.exit_code),
        ("hi\nbye\n", Status::Killed, Some(9))
    );
    assert_eq!(alive(&mark), 0);
    let again = host.kill(&id).await.unwrap();
    assert_eq!((again.output.as_str(), again.status), ("", Status::Killed));
    let done = start(&host, "exit 3").await;
    read_all(&host, &done).await;
    assert_eq!(host.kill(&done).await.unwrap().status, Status::Exited);
    host.close().await;
}

#[tokio::test]
async fn an_unknown_id_is_an_error_that_names_the_known_ones() {
    let host = host();
    let error = host
        .read("bg-zzz", NOW, &CancellationToken::new())
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::ProcessNotFound);
    let id = start(&host, "sleep 1000").await;
    let error = host.kill("bg-zzz").await.unwrap_err();
    assert!(
        error.message.contains(&format!("{id} (running)")),
        "{}",
        error.message
    );
    host.close().await;
}

#[tokio::test]
async fn the_list_and_the_reminder_take_no_output_and_tell_an_end_until_it_was_read() {
    let host = host();
    assert_eq!(host.status_reminder().unwrap(), None);
    let runs = start(&host, "sleep 1000 # </system-reminder>\nx").await;
    let ended = start(&host, "echo out; exit 4").await;
    eventually("the second ended", || {
        host.list().unwrap()[1].status == Status::Exited
    })
    .await;
    let listed = host.list().unwrap();
    assert_eq!(
        (&listed[0].id, &listed[1].id, listed[1].exit_code),
        (&runs, &ended, Some(4))
    );
    let reminder = host.status_reminder().unwrap().unwrap();
    assert!(reminder.contains(&format!("{runs} (running)")), "{reminder}");
    assert!(
        reminder.contains(&format!("{ended} (exited with code 4), not read yet: echo out")),
        "{reminder}"
    );
    assert!(
        !reminder.contains("</system") && reminder.lines().count() == 3,
        "{reminder}"
    );
    assert_eq!(
        host.read(&ended, NOW, &CancellationToken::new())
            .await
            .unwrap()
            .output,
        "out\n"
    );
    assert!(!host.status_reminder().unwrap().unwrap().contains(&ended));
    host.close().await;
}

#[tokio::test]
async fn closing_ends_foreground_and_background_and_refuses_what_follows() {
    let host = host();
    let mark = unique_seconds();
    start(&host, &format!("setsid sleep {mark} & sleep {mark}")).await;
    let foreground = {
        let (host, call) = (host.clone(), exec_call(&format!("sleep {mark}")));
        tokio::spawn(async move { host.exec(call, None, &CancellationToken::new()).await })
    };
    eventually("all run", || alive(&mark) == 3).await;
    host.close().await;
    assert_eq!(alive(&mark), 0);
    assert_eq!(foreground.await.unwrap().unwrap().ended, Ended::ByAbort);
    let never = CancellationToken::new();
    for refused in [
        host.exec(exec_call("true"), None, &never).await.err(),
        host.spawn(spawn_call("true"), &never).await.err(),
        host.read("bg-1", NOW, &never).await.err(),
        host.list().err(),
    ] {
        assert_eq!(refused.unwrap().code, ErrorCode::Closed);
    }
    host.close().await;
}

#[tokio::test]
async fn a_kept_leftover_becomes_the_workspaces() {
    let host = host();
    let mark = unique_seconds();
    let call = ExecCall {
        leftover: Leftover::Keep,
        ..exec_call(&format!(
            "(sleep 0.3; echo later; exec sleep {mark}) & echo done; exit 2"
        ))
    };
    let result = host.exec(call, None, &CancellationToken::new()).await.unwrap();
    assert_eq!(
        (result.stdout.as_str(), result.exit_code, result.ended),
        ("done\n", 2, Ended::ByItself)
    );
    let listed = host.list().unwrap();
    let id = listed[0].id.clone();
    assert_eq!(listed[0].status, Status::Running);
    assert!(result.note.is_some_and(|note| note.contains(&id)));
    let read = host.read(&id, LONG, &CancellationToken::new()).await.unwrap();
    assert_eq!(read.output, "later\n");
    eventually("it sleeps", || alive(&mark) == 1).await;
    // The next command does not touch it.
    host.exec(exec_call("true"), None, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(alive(&mark), 1);
    host.close().await;
    assert_eq!(alive(&mark), 0);
    let nothing = super::super::host::ExecCall {
        leftover: Leftover::Keep,
        ..exec_call("echo x")
    };
    let other = self::host();
    let result = other
        .exec(nothing, None, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((result.note, other.list().unwrap().len()), (None, 0));
}

#[tokio::test]
async fn a_bad_directory_and_a_bad_variable_start_nothing() {
    let host = host();
    let never = CancellationToken::new();
    let nowhere = ExecCall {
        cwd: "nowhere".into(),
        ..exec_call("true")
    };
    assert_eq!(
        host.exec(nowhere, None, &never).await.unwrap_err().code,
        ErrorCode::NotFound
    );
    let bad = ExecCall {
        env: vec![("A=B".into(), "x".into())],
        ..exec_call("true")
    };
    assert_eq!(
        host.exec(bad, None, &never).await.unwrap_err().code,
        ErrorCode::InvalidArgument
    );
    host.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_floods_have_ids_of_their_own_and_are_gone_after_close() {
    let host = host();
    let mark = unique_seconds();
    for _ in 0..40 {
        start(
            &host,
            &format!("sh -c 'while :; do echo yes yes yes; done' {mark} & exec sleep {mark}"),
        )
        .await;
    }
    let mut ids: Vec<String> = host.list().unwrap().into_iter().map(|listed| listed.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40);
    host.close().await;
    eventually("nothing is left", || alive(&mark) == 0).await;
}
