//! Runs one command in the foreground: time, abort, input, output, and when the call is over. Which process ends,
//! and how surely, is left to `supervise` and the helper.

mod call;
mod exit;
mod input;
mod live;
mod words;

use super::output::{CaptureOptions, Stream};
use super::start::{self, Spec, StartFailure};
use super::supervise::Running;
use crate::error::{Error, ErrorCode, Result};
use call::{Call, Wishes};
use croft_exec::wire::{Containment, Leftover, Limit};
use input::input_pipe;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use exit::exit_code;
pub use words::explain;

/// How long after SIGKILL a call waits to hear that nothing is left.
const AFTER_KILL: Duration = Duration::from_millis(250);

/// What to run.
#[derive(Clone, Debug)]
pub enum CommandLine {
    /// `shell -c line`.
    Shell { shell: String, line: String },
    /// A program and its arguments, without a shell.
    Program(Vec<String>),
}

pub struct ExecRequest {
    pub command: CommandLine,
    /// An open directory: the path was resolved once, and is not resolved again.
    pub cwd: OwnedFd,
    /// For messages.
    pub cwd_display: String,
    /// `NAME=value`, complete.
    pub env: Vec<CString>,
    /// `None`: stdin is `/dev/null`.
    pub input: Option<Vec<u8>>,
    /// A pipe for `input` (the command's end, ours) when it must be one that somebody else has made.
    pub stdin: Option<(OwnedFd, OwnedFd)>,
    pub timeout: Option<Duration>,
    pub kill_grace: Duration,
    pub capture: CaptureOptions,
    pub leftover: Leftover,
    pub limits: Vec<Limit>,
    /// Hears the command's pid once it runs; dropped unheard when it never did.
    pub started: Option<Started>,
}

/// Why a command was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    ByItself,
    ByTimeout,
    ByAbort,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecResult {
    pub stdout: String,
    pub stderr: String,
    /// 128 + n when killed by signal n.
    pub exit_code: i32,
    pub signal: Option<&'static str>,
    pub ended: Ended,
    pub dropped_bytes: u64,
    pub duration: Duration,
    /// One sentence for the model when something is not as it looks.
    pub note: Option<String>,
    /// `None` when nothing was started.
    pub containment: Option<Containment>,
}

pub type Started = oneshot::Sender<u32>;

/// What a listener hears while the command runs.
pub type LiveOutput = mpsc::Sender<(Stream, String)>;

/// A finished call, and with `Leftover::Keep` the processes that stayed.
pub struct Outcome {
    pub result: ExecResult,
    pub kept: Option<Running>,
    /// The supervisor has said that nothing of the command is alive. False when it was killed, or gave no answer.
    pub all_gone: bool,
}

/// Resolves however the command ends; fails only when nothing could be started.
pub async fn exec(
    request: ExecRequest,
    live: Option<LiveOutput>,
    cancel: &CancellationToken,
) -> Result<Outcome> {
    exec_by(|spec| start::start(spec, None), request, live, cancel).await
}

/// As [`exec`], with the command started by `start`, such as one that starts it in a container.
pub async fn exec_by<F>(
    start: impl FnOnce(Spec) -> F,
    request: ExecRequest,
    live: Option<LiveOutput>,
    cancel: &CancellationToken,
) -> Result<Outcome>
where
    F: Future<Output = std::result::Result<Running, StartFailure>>,
{
    let began = Instant::now();
    let deadline = request.timeout.map(|timeout| began + timeout);
    if cancel.is_cancelled() {
        return Ok(Outcome {
            result: not_started(Ended::ByAbort, began),
            kept: None,
            all_gone: true,
        });
    }
    let argv = request.command.argv()?;
    let (stdin, input) = input_pipe(request.input, request.stdin)?;
    let spec = Spec {
        argv,
        env: request.env,
        cwd: request.cwd,
        stdin,
        grace: request.kill_grace,
        leftover: request.leftover,
        limits: request.limits,
    };
    let starting = start(spec);
    tokio::pin!(starting);
    let stopped = tokio::select! {
        started = &mut starting => Ok(started),
        () = cancel.cancelled() => Err(Ended::ByAbort),
        () = until(deadline) => Err(Ended::ByTimeout),
    };
    let started = match stopped {
        Ok(started) => started,
        // The command may run already without our having heard: it is ended in the ordinary way, so that the
        // call does not answer before it is gone.
        Err(ended) => match tokio::time::timeout(AFTER_KILL, starting).await {
            Ok(started) => started,
            Err(_) => {
                return Ok(Outcome {
                    result: not_started(ended, began),
                    kept: None,
                    all_gone: false,
                });
            }
        },
    };
    let running = started.map_err(|failure| explain(failure, &request.command, &request.cwd_display))?;
    if let Some(started) = request.started {
        let _ = started.send(running.pid);
    }
    let wishes = Wishes {
        capture: request.capture,
        input,
        live,
        grace: request.kill_grace,
        leftover: request.leftover,
    };
    let call = Call::new(running, wishes);
    Ok(call.run(began, deadline, request.timeout, cancel).await)
}

impl CommandLine {
    pub fn argv(&self) -> Result<Vec<CString>> {
        let words: Vec<&str> = match self {
            CommandLine::Shell { shell, line } => vec![shell, "-c", line],
            CommandLine::Program(words) => words.iter().map(String::as_str).collect(),
        };
        if words.first().is_none_or(|program| program.is_empty()) {
            return Err(Error::new(
                ErrorCode::InvalidArgument,
                "command: the program's name is empty",
            ));
        }
        let strings = words
            .into_iter()
            .map(CString::new)
            .collect::<std::result::Result<_, _>>();
        strings.map_err(|_| Error::new(ErrorCode::InvalidArgument, "command: contains a NUL character"))
    }

    fn program(&self) -> &str {
        match self {
            CommandLine::Shell { shell, .. } => shell,
            CommandLine::Program(words) => words.first().map_or("", String::as_str),
        }
    }
}

pub fn not_started(ended: Ended, began: Instant) -> ExecResult {
    ExecResult {
        stdout: String::new(),
        stderr: String::new(),
        // As if ended by SIGTERM, which is what an abort or a timeout sends.
        exit_code: 128 + libc::SIGTERM,
        signal: None,
        ended,
        dropped_bytes: 0,
        duration: began.elapsed(),
        note: Some("Nothing was started.".into()),
        containment: None,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
