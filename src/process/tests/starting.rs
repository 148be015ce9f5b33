//! How a command starts: shell or program, directory, stdin, environment, and what is refused.

use super::harness::*;
use crate::error::ErrorCode;
use crate::process::exec::*;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

async fn refusal(request: ExecRequest) -> crate::error::Error {
    exec(request, None, &CancellationToken::new())
        .await
        .err()
        .expect("started")
}

fn program(words: &[&str]) -> ExecRequest {
    let words = words.iter().map(|word| word.to_string()).collect();
    request_in(Path::new("/tmp"), CommandLine::Program(words))
}

#[tokio::test]
async fn a_shell_line_runs_and_its_streams_and_code_come_back() {
    let result = run(shell("echo out; echo err >&2; exit 3")).await;
    assert_eq!(
        (result.stdout.as_str(), result.stderr.as_str()),
        ("out\n", "err\n")
    );
    assert_eq!(
        (result.exit_code, result.signal, result.ended),
        (3, None, Ended::ByItself)
    );
    assert_eq!((result.dropped_bytes, result.note), (0, None));
}

#[tokio::test]
async fn a_list_runs_without_a_shell() {
    let result = run(program(&["printf", "%s|", "$HOME", "a b", ""])).await;
    assert_eq!(result.stdout, "$HOME|a b||");
}

#[tokio::test]
async fn a_program_is_looked_up_on_the_path_of_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let tool = directory.path().join("mytool");
    std::fs::write(&tool, "#!/bin/sh\necho mine\n").unwrap();
    let mut request = program(&["mytool"]);
    assert_eq!(refusal(program(&["mytool"])).await.code, ErrorCode::SpawnFailed);
    request.env = vec![std::ffi::CString::new(format!("PATH={}:/bin", directory.path().display())).unwrap()];
    let not_executable = refusal(ExecRequest {
        env: request.env.clone(),
        ..program(&["mytool"])
    })
    .await;
    assert!(
        not_executable.message.contains("not executable"),
        "{}",
        not_executable.message
    );
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(run(request).await.stdout, "mine\n");
}

#[tokio::test]
async fn nothing_started_is_an_error_that_names_the_cause() {
    let missing = refusal(program(&["no-such-program"])).await;
    assert_eq!(missing.code, ErrorCode::SpawnFailed);
    assert!(missing.message.contains("no-such-program"));
    let no_shell = CommandLine::Shell {
        shell: "/no/shell".into(),
        line: "true".into(),
    };
    assert_eq!(
        refusal(request_in(Path::new("/tmp"), no_shell)).await.code,
        ErrorCode::SpawnFailed
    );
    let long = refusal(shell(&format!(": {}", "x".repeat(200_000)))).await;
    assert!(long.message.contains("128 KiB"), "{}", long.message);
    let huge = refusal(program(&["true", &"x".repeat(9_000_000)])).await;
    assert_eq!(huge.code, ErrorCode::TooLarge);
    assert_eq!(refusal(program(&[])).await.code, ErrorCode::InvalidArgument);
    assert_eq!(refusal(shell("a\0b")).await.code, ErrorCode::InvalidArgument);
}

#[tokio::test]
async fn many_small_arguments_pass_even_when_they_do_not_fit_one_socket_buffer() {
    let word = "x".repeat(100_000);
    let words: Vec<&str> = [&["printf", "%.1s"][..], &[word.as_str(); 12]].concat();
    assert_eq!(run(program(&words)).await.stdout, "x".repeat(12));
}

#[tokio::test]
async fn the_directory_is_the_open_one_even_after_it_was_renamed() {
    let parent = tempfile::tempdir().unwrap();
    let (before, after) = (parent.path().join("before"), parent.path().join("after"));
    std::fs::create_dir(&before).unwrap();
    let request = request_in(&before, line("pwd -P; echo x > here"));
    std::fs::rename(&before, &after).unwrap();
    assert_eq!(run(request).await.stdout, format!("{}\n", after.display()));
    assert!(after.join("here").exists());
}

#[tokio::test]
async fn stdin_is_at_its_end_unless_input_is_given() {
    for command in ["cat /dev/stdin; seq 2 | cat < /dev/stdin", "cat; seq 2"] {
        assert_eq!(run(shell(command)).await.stdout, "1\n2\n", "{command}");
    }
    assert_eq!(run(shell("readlink /proc/self/fd/0")).await.stdout, "/dev/null\n");
    let given = ExecRequest {
        input: Some(b"hello".to_vec()),
        ..shell("cat; echo; cat")
    };
    assert_eq!(run(given).await.stdout, "hello\n");
    let empty = ExecRequest {
        input: Some(vec![]),
        ..shell("cat; echo end")
    };
    assert_eq!(run(empty).await.stdout, "end\n");
}

#[tokio::test]
async fn a_large_input_flows_while_output_flows_back() {
    let input = vec![b'a'; 5_000_000];
    let request = ExecRequest {
        input: Some(input),
        ..shell("cat | wc -c; echo done >&2")
    };
    assert_eq!(run(request).await.stdout.trim(), "5000000");
    // Nobody reads it: no error, no SIGPIPE in this process, no hang.
    let unread = ExecRequest {
        input: Some(vec![b'a'; 5_000_000]),
        ..shell("exec 0<&-; echo ok")
    };
    assert_eq!(run(unread).await.stdout, "ok\n");
}

#[tokio::test]
async fn an_interpreter_without_arguments_and_a_read_from_the_terminal_end_at_once() {
    assert_eq!(run(shell("python3")).await.exit_code, 0);
    let result = run(shell("read x </dev/tty; echo rc=$?")).await;
    assert!(!result.stdout.contains("rc=0"), "{result:?}");
    assert_eq!(
        run(shell("bash -c 'read -p \"Ok to proceed? \" a || echo eof'"))
            .await
            .stdout,
        "eof\n"
    );
}

#[tokio::test]
async fn the_command_holds_no_descriptor_but_its_three_and_no_signal_of_ours() {
    // Something in the process forgot close-on-exec.
    let leaked = open(Path::new("/"));
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    let result = run(shell("exec ls /proc/self/fd")).await;
    // 3 is the directory that ls itself reads.
    assert_eq!(result.stdout, "0\n1\n2\n3\n");
    let signals = run(shell("grep -E '^Sig(Blk|Ign)|^ShdPnd' /proc/self/status"))
        .await
        .stdout;
    for mask in signals
        .lines()
        .map(|line| u64::from_str_radix(line.split('\t').nth(1).unwrap(), 16).unwrap())
    {
        // glibc's posix_spawn leaves its own two, 32 and 33, ignored in every child; no program can tell.
        assert_eq!(mask & !0x1_8000_0000, 0, "{signals}");
    }
}

#[tokio::test]
async fn the_command_leads_a_session_of_its_own_without_a_terminal() {
    let text = run(shell("ps -o pid=,pgid=,sid=,tty= -p $$")).await.stdout;
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!((fields[0], fields[1], fields[3]), (fields[2], fields[2], "?"));
}

#[tokio::test]
async fn limits_and_environment_reach_the_command_and_nothing_of_ours_is_in_the_helper() {
    let mut request = shell("ulimit -c; cat /proc/$PPID/cmdline | tr '\\0' ' '; wc -c < /proc/$PPID/environ");
    let limit = croft_exec::wire::Limit {
        resource: libc::RLIMIT_CORE,
        soft: 0,
        hard: 0,
    };
    request.limits = vec![limit];
    let result = run(request).await;
    let lines: Vec<&str> = result.stdout.lines().collect();
    assert_eq!(lines[0], "0");
    assert!(
        lines[1].contains("croft-exec") && lines[1].ends_with(" 0"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_call_that_is_already_aborted_starts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let request = request_in(directory.path(), line("touch started"));
    let result = exec(request, None, &cancel).await.unwrap().result;
    assert_eq!((result.ended, result.containment), (Ended::ByAbort, None));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!directory.path().join("started").exists());
}
