//! What comes back of a command's output, and what a listener hears.

use super::harness::*;
use crate::process::exec::*;
use crate::process::output::{CaptureOptions, Keep, Stream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

fn capped(max_bytes: usize, request: ExecRequest) -> ExecRequest {
    ExecRequest {
        capture: CaptureOptions { max_bytes, ..WHOLE },
        ..request
    }
}

#[tokio::test]
async fn a_character_written_in_two_pieces_stays_whole() {
    let result = run(shell("printf '\\342\\202'; sleep 0.05; printf '\\254\\n'")).await;
    assert_eq!(result.stdout, "€\n");
}

#[tokio::test]
async fn long_output_over_many_reads_is_whole() {
    let result = run(shell("python3 -c 'print(\"你\"*50000,end=\"\")'")).await;
    assert_eq!(result.stdout, "你".repeat(50_000));
}

#[tokio::test]
async fn partial_output_is_kept_on_a_timeout() {
    let result = run(within(400, shell("echo before; sleep 30"))).await;
    assert_eq!(
        (result.stdout.as_str(), result.ended),
        ("before\n", Ended::ByTimeout)
    );
}

#[tokio::test]
async fn too_much_output_is_cut_and_does_not_end_the_command() {
    let result = run(capped(20_000, shell("yes | head -c 3000000; echo END"))).await;
    assert_eq!((result.exit_code, result.ended), (0, Ended::ByItself));
    assert!(result.stdout.starts_with("y\n") && result.stdout.ends_with("END\n"));
    assert!(result.stdout.len() <= 20_000);
    let (head, tail) = result.stdout.split_once("[... ").unwrap();
    let tail = tail.split_once("...]\n").unwrap().1;
    let newline = usize::from(head.ends_with("y\n\n"));
    assert_eq!(
        (head.len() - newline + tail.len()) as u64 + result.dropped_bytes,
        3_000_004
    );
}

#[tokio::test]
async fn a_flood_is_drained_in_constant_memory_until_the_clock_ends_it() {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    run(capped(50_000, shell("yes | head -c 1000000"))).await;
    let before = resident();
    let result = run(within(1000, capped(50_000, shell("yes")))).await;
    assert_eq!(result.ended, Ended::ByTimeout);
    assert!(result.dropped_bytes > 1_000_000);
    assert!(
        resident() < before + 30_000_000,
        "grew by {}",
        resident() - before
    );
}

#[tokio::test]
async fn the_end_of_one_very_long_line_survives() {
    let result = run(capped(
        8000,
        shell("python3 -c 'print(\"a\"*400000); print(\"FINAL ERROR\")'"),
    ))
    .await;
    assert!(result.stdout.ends_with("FINAL ERROR\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_chatty_commands_at_once_lose_no_line() {
    let chatty = "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done";
    let expected: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    for call in (0..4)
        .map(|_| tokio::spawn(run(shell(chatty))))
        .collect::<Vec<_>>()
    {
        assert_eq!(call.await.unwrap().stdout, expected);
    }
}

#[tokio::test]
async fn a_shared_budget_covers_both_streams() {
    let options = CaptureOptions {
        max_bytes: 10,
        shared: true,
        keep: Keep::Head,
    };
    let request = shell("printf abcdef; sleep 0.05; printf 123456 >&2; sleep 0.05; printf ghi");
    let result = run(ExecRequest {
        capture: options,
        ..request
    })
    .await;
    assert_eq!(
        (&*result.stdout, &*result.stderr, result.dropped_bytes),
        ("abcdef", "1234", 5)
    );
}

#[tokio::test]
async fn a_listener_hears_everything_while_it_happens_and_before_the_call_answers() {
    let (sender, mut receiver) = mpsc::channel::<(Stream, String)>(4);
    let listen = async {
        let (mut out, mut err, mut pieces) = (String::new(), String::new(), 0);
        while let Some((stream, text)) = receiver.recv().await {
            pieces += 1;
            match stream {
                Stream::Stdout => out.push_str(&text),
                Stream::Stderr => err.push_str(&text),
            }
        }
        (out, err, pieces)
    };
    let request =
        shell("printf '\\342\\202'; sleep 0.05; printf '\\254'; echo e >&2; seq 30000; printf '\\377'");
    let cancel = CancellationToken::new();
    let (outcome, (out, err, pieces)) = tokio::join!(exec(request, Some(sender), &cancel), listen);
    let result = outcome.unwrap().result;
    assert_eq!((out, err), (result.stdout, result.stderr));
    assert!(pieces > 2);
}

#[tokio::test]
async fn a_listener_that_never_listens_holds_nothing_up_for_long() {
    let (sender, _receiver) = mpsc::channel(1);
    let request = shell("seq 1000");
    let result = exec(request, Some(sender), &CancellationToken::new())
        .await
        .unwrap()
        .result;
    assert!(result.stdout.ends_with("1000\n"));
    let (sender, _receiver) = mpsc::channel(1);
    let flood = within(500, shell("yes"));
    let result = exec(flood, Some(sender), &CancellationToken::new())
        .await
        .unwrap()
        .result;
    assert_eq!(result.ended, Ended::ByTimeout);
}

#[tokio::test]
async fn git_pages_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let make = "git init -q . && for i in $(seq 30); do git -c user.name=a -c user.email=a@b commit -q --allow-empty -m \"commit $i\"; done";
    assert_eq!(run(request_in(directory.path(), line(make))).await.exit_code, 0);
    let log = run(request_in(
        directory.path(),
        line("git -c core.pager=less log --oneline; echo $PAGER $GIT_PAGER"),
    ))
    .await;
    assert_eq!(log.stdout.lines().count(), 31);
    assert!(log.stdout.ends_with("cat cat\n"));
}
