//! What the tests of this folder share: a request with everything at its default, and looking for survivors.

use crate::process::env::{EnvRequest, Inherit, build};
use crate::process::exec::*;
use crate::process::output::{CaptureOptions, Keep};
use croft_exec::wire::Leftover;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub const WHOLE: CaptureOptions = CaptureOptions {
    max_bytes: 1024 * 1024,
    shared: false,
    keep: Keep::HeadTail,
};

pub fn open(directory: &Path) -> OwnedFd {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, rustix::fs::Mode::empty()).unwrap()
}

pub fn request_in(directory: &Path, command: CommandLine) -> ExecRequest {
    let host: Vec<_> = std::env::vars_os().collect();
    let env = build(&EnvRequest {
        host: &host,
        inherit: &Inherit::Names(vec![]),
        workspace: &[],
        call: &[],
        venv: None,
        pwd: &directory.as_os_str().to_owned(),
        home: None,
    });
    ExecRequest {
        command,
        cwd: open(directory),
        cwd_display: ".".into(),
        env: env.unwrap(),
        input: None,
        stdin: None,
        timeout: Some(Duration::from_secs(20)),
        kill_grace: Duration::from_millis(500),
        capture: WHOLE,
        leftover: Leftover::Kill,
        limits: vec![],
        started: None,
    }
}

pub fn line(line: &str) -> CommandLine {
    CommandLine::Shell {
        shell: "/bin/sh".into(),
        line: line.into(),
    }
}

pub fn shell(text: &str) -> ExecRequest {
    request_in(Path::new("/tmp"), line(text))
}

pub fn within(milliseconds: u64, request: ExecRequest) -> ExecRequest {
    ExecRequest {
        timeout: Some(Duration::from_millis(milliseconds)),
        ..request
    }
}

pub async fn run(request: ExecRequest) -> ExecResult {
    exec(request, None, &CancellationToken::new())
        .await
        .unwrap()
        .result
}

/// A number no other process on the machine has in its command line, for `sleep`.
pub fn unique_seconds() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "{}.{}",
        100_000 + std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Living processes with `mark` among their arguments.
pub fn alive(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| line.split(|&byte| byte == 0).any(|word| word == mark.as_bytes()))
        .count()
}

/// Waits until `condition` holds; a test fails rather than hang.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
