//! Runs one command in the foreground: time, abort, input, output, and when the call is over. Which process ends,
//! and how surely, is left to `supervise` and the helper.

use super::output::{Capture, CaptureOptions, Captured, Stream};
use super::stream::{OutputPipe, Read};
use super::supervise::{self, Link, Running, Spec, StartFailure};
use crate::error::{Error, ErrorCode, Result};
use croft_exec::wire::{Containment, Event, Leftover, Limit, Stage};
use std::collections::VecDeque;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long output is read after the command's own process has ended while somebody holds its pipes open.
const DRAIN: Duration = Duration::from_millis(250);
/// How long after SIGKILL a call waits to hear that nothing is left.
const AFTER_KILL: Duration = Duration::from_millis(250);
/// Most text that waits for a slow listener; then the command's output waits too.
const MAX_BACKLOG_BYTES: usize = 1024 * 1024;
const READ_BYTES: usize = 16 * 1024;
const FLOOD_READ_BYTES: usize = 256 * 1024;
/// The most an unprivileged process may ask for by default.
const FLOOD_PIPE_BYTES: usize = 1024 * 1024;

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
    exec_by(supervise::start, request, live, cancel).await
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
    let call = Call {
        containment: running.containment,
        pid: running.pid,
        link: Some(running.link),
        outputs: [OutputPipe::new(running.stdout), OutputPipe::new(running.stderr)],
        capture: Capture::new(request.capture),
        input,
        live: live.map(Live::new),
        grace: request.kill_grace,
        leftover: request.leftover,
        status: None,
        left: None,
        done: false,
        told: false,
        ended: Ended::ByItself,
        settle_at: None,
        buffer: vec![0; READ_BYTES],
    };
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

/// Text that waits to be written to the command.
struct Input {
    pipe: pipe::Sender,
    bytes: Vec<u8>,
    written: usize,
}

fn input_pipe(
    input: Option<Vec<u8>>,
    given: Option<(OwnedFd, OwnedFd)>,
) -> Result<(Option<OwnedFd>, Option<Input>)> {
    let Some(bytes) = input else {
        return Ok((None, None));
    };
    let failed = |error: io::Error| Error::new(ErrorCode::SpawnFailed, format!("no pipe for input: {error}"));
    let (theirs, ours) = match given {
        Some(ends) => ends,
        None => io::pipe()
            .map(|(theirs, ours)| (theirs.into(), ours.into()))
            .map_err(failed)?,
    };
    let pipe = pipe::Sender::from_owned_fd(ours).map_err(failed)?;
    Ok((
        Some(theirs),
        Some(Input {
            pipe,
            bytes,
            written: 0,
        }),
    ))
}

impl Input {
    /// True when there is nothing more to write: all is out, or the command closed its stdin.
    async fn write_some(&mut self) -> bool {
        let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) else {
            return true;
        };
        if self.pipe.writable().await.is_err() {
            return true;
        }
        match self.pipe.try_write(rest) {
            Ok(count) => {
                self.written += count;
                self.written >= self.bytes.len()
            }
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ),
        }
    }
}

/// Hands text on without ever holding the reading up after the command has ended.
struct Live {
    sender: LiveOutput,
    backlog: VecDeque<(Stream, String)>,
    backlog_bytes: usize,
}

impl Live {
    fn new(sender: LiveOutput) -> Self {
        Live {
            sender,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
        }
    }

    fn push(&mut self, stream: Stream, text: String) {
        if text.is_empty() {
            return;
        }
        self.backlog_bytes += text.len();
        self.backlog.push_back((stream, text));
        while let Ok(permit) = self.sender.try_reserve() {
            let Some((stream, text)) = self.backlog.pop_front() else {
                return;
            };
            self.backlog_bytes -= text.len();
            permit.send((stream, text));
        }
    }

    async fn flush_one(&mut self) {
        match self.sender.clone().reserve_owned().await {
            Ok(permit) => {
                if let Some((stream, text)) = self.backlog.pop_front() {
                    self.backlog_bytes -= text.len();
                    permit.send((stream, text));
                }
            }
            // Nobody listens any more.
            Err(_) => {
                self.backlog.clear();
                self.backlog_bytes = 0;
            }
        }
    }
}

struct Call {
    containment: Containment,
    pid: u32,
    /// `None` once the helper is gone.
    link: Option<Link>,
    outputs: [OutputPipe; 2],
    capture: Capture,
    input: Option<Input>,
    live: Option<Live>,
    grace: Duration,
    leftover: Leftover,
    /// The raw wait status of the command's own process.
    status: Option<i32>,
    /// How many processes outlived it.
    left: Option<u32>,
    /// Nothing of the command is alive, or nobody is left to ask.
    done: bool,
    /// The supervisor has said so.
    told: bool,
    ended: Ended,
    /// The call is over then, whatever is still open.
    settle_at: Option<Instant>,
    buffer: Vec<u8>,
}

impl Call {
    async fn run(
        mut self,
        began: Instant,
        deadline: Option<Instant>,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Outcome {
        while !self.is_over() {
            let running = self.status.is_none() && self.ended == Ended::ByItself;
            let held_up = self.status.is_none() && self.live.as_ref().is_some_and(Live::is_full);
            let [stdout, stderr] = &self.outputs;
            let happened = tokio::select! {
                biased;
                () = cancel.cancelled(), if running => Happened::Aborted,
                () = until(deadline), if running => Happened::TimedOut,
                () = until(self.settle_at) => Happened::Settled,
                event = next_event(&mut self.link) => Happened::Helper(event),
                () = stdout.readable(), if !held_up => Happened::Readable,
                () = stderr.readable(), if !held_up => Happened::Readable,
                finished = write_input(&mut self.input) => Happened::Written { finished },
                () = flush(&mut self.live) => continue,
            };
            match happened {
                Happened::Aborted => self.end(Ended::ByAbort),
                Happened::TimedOut => self.end(Ended::ByTimeout),
                Happened::Settled => break,
                Happened::Helper(event) => self.hear(event),
                // Both, or a flood on one would starve the other. Costs nothing when the other is empty.
                Happened::Readable => {
                    self.read(Stream::Stdout);
                    self.read(Stream::Stderr);
                }
                Happened::Written { finished } => {
                    if finished {
                        self.input = None;
                    }
                }
            }
        }
        self.deliver_rest().await;
        self.finish(began.elapsed(), timeout)
    }

    fn is_over(&self) -> bool {
        let quiet = self.outputs.iter().all(|output| !output.is_open());
        let kept = self.leftover == Leftover::Keep && self.left.is_some_and(|left| left > 0);
        self.status.is_some()
            && ((quiet && self.done) || kept)
            && self.live.as_ref().is_none_or(Live::is_empty)
    }

    fn end(&mut self, why: Ended) {
        self.ended = why;
        self.input = None;
        self.settle_at = Some(Instant::now() + self.grace + AFTER_KILL);
        if let Some(link) = &mut self.link {
            link.kill(self.grace);
        }
    }

    fn hear(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Exited { status, alone }) => {
                self.status = Some(status);
                self.done |= alone;
                self.told |= alone;
                self.input = None;
                self.settle_at.get_or_insert(Instant::now() + DRAIN);
            }
            Some(Event::Left { count }) => self.left = Some(count),
            Some(Event::Done) => {
                self.done = true;
                self.told = true;
            }
            // Out of turn, or the end of the channel: the helper is not to be relied on any more.
            Some(Event::Forked { .. } | Event::Started { .. } | Event::Failed { .. }) | None => {
                self.link = None;
                self.settle_at.get_or_insert(Instant::now() + DRAIN);
                self.done = true;
            }
        }
    }

    fn read(&mut self, stream: Stream) {
        let output = match stream {
            Stream::Stdout => &mut self.outputs[0],
            Stream::Stderr => &mut self.outputs[1],
        };
        let text = match output.read(&mut self.buffer) {
            Read::Nothing => return,
            Read::End => output.decoder.finish().to_owned(),
            Read::Bytes(count) => {
                let bytes = self.buffer.get(..count).unwrap_or_default();
                self.capture.push(stream, bytes);
                let text = self
                    .live
                    .as_ref()
                    .map(|_| output.decoder.push(bytes))
                    .unwrap_or_default();
                if count == self.buffer.len() && count < FLOOD_READ_BYTES {
                    self.buffer.resize(FLOOD_READ_BYTES, 0);
                    // Fewer, larger reads: half the time of a flood. Only then, because pipe memory is counted
                    // per user. A refusal costs nothing.
                    #[cfg(target_os = "linux")]
                    let _ = output
                        .pipe
                        .as_ref()
                        .map(|pipe| rustix::pipe::fcntl_setpipe_size(pipe, FLOOD_PIPE_BYTES));
                }
                text
            }
        };
        if let Some(live) = &mut self.live {
            live.push(stream, text);
        }
    }

    /// A listener has read everything when the call answers, unless it is too slow to be waited for.
    async fn deliver_rest(&mut self) {
        let Some(live) = &mut self.live else { return };
        let deliver = async {
            while !live.is_empty() {
                live.flush_one().await;
            }
        };
        let _ = tokio::time::timeout(DRAIN, deliver).await;
    }

    fn finish(self, duration: Duration, timeout: Option<Duration>) -> Outcome {
        let note = self.note(timeout);
        let (exit_code, signal) = match self.status {
            Some(status) => exit_code(status),
            // It was killed, or is beyond even the kernel's reach for now.
            None => (128 + libc::SIGKILL, Some("SIGKILL")),
        };
        let Captured {
            stdout,
            stderr,
            dropped_bytes,
        } = self.capture.finish();
        let result = ExecResult {
            stdout,
            stderr,
            exit_code,
            signal,
            ended: self.ended,
            dropped_bytes,
            duration,
            note,
            containment: Some(self.containment),
        };
        let keeps = self.leftover == Leftover::Keep && !self.done && self.ended == Ended::ByItself;
        let [stdout, stderr] = self.outputs.map(|output| output.pipe);
        let kept = match (self.link, keeps) {
            (Some(link), true) => Some(Running {
                pid: self.pid,
                containment: self.containment,
                stdout,
                stderr,
                link,
            }),
            _ => None,
        };
        Outcome {
            result,
            kept,
            all_gone: self.told,
        }
    }

    fn note(&self, timeout: Option<Duration>) -> Option<String> {
        match (self.ended, self.status, self.left) {
            (Ended::ByTimeout, _, _) => {
                let limit = timeout.unwrap_or_default().as_millis();
                Some(format!(
                    "The command did not finish within {limit} ms and was ended with everything it had started. \
                     Give it more time, or run it with background: true."
                ))
            }
            (Ended::ByAbort, _, _) => {
                Some("The command was aborted and ended with everything it had started.".into())
            }
            (Ended::ByItself, None, _) => Some(
                "The supervisor of this command was killed, so how the command ended is not known. What it had \
                 started was ended as far as it could be found."
                    .into(),
            ),
            (Ended::ByItself, Some(_), Some(left @ 1..)) => {
                let (processes, were) = if left == 1 { ("process", "was") } else { ("processes", "were") };
                Some(match self.leftover {
                    Leftover::Kill => format!(
                        "{left} {processes} the command left running {were} ended. To keep one running, start it \
                         with background: true."
                    ),
                    Leftover::Keep => format!("{left} {processes} the command started {were} left running."),
                })
            }
            (Ended::ByItself, Some(_), _) => None,
        }
    }
}

enum Happened {
    Aborted,
    TimedOut,
    Settled,
    Helper(Option<Event>),
    Readable,
    Written { finished: bool },
}

async fn next_event(link: &mut Option<Link>) -> Option<Event> {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}

async fn write_input(input: &mut Option<Input>) -> bool {
    match input {
        Some(input) => input.write_some().await,
        None => std::future::pending().await,
    }
}

async fn flush(live: &mut Option<Live>) {
    match live {
        Some(live) if !live.is_empty() => live.flush_one().await,
        _ => std::future::pending().await,
    }
}

impl Live {
    fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }

    fn is_full(&self) -> bool {
        self.backlog_bytes > MAX_BACKLOG_BYTES
    }
}

/// As a shell reports it: (code, name of the signal).
pub fn exit_code(status: i32) -> (i32, Option<&'static str>) {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        (128 + signal, Some(signal_name(signal)))
    } else {
        (libc::WEXITSTATUS(status), None)
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGVTALRM => "SIGVTALRM",
        libc::SIGPROF => "SIGPROF",
        libc::SIGSYS => "SIGSYS",
        // Real-time and platform-specific ones have no name that scripts agree on; the exit code has the number.
        _ => "SIGUNKNOWN",
    }
}

/// Says in the caller's terms why nothing was started.
pub fn explain(failure: StartFailure, command: &CommandLine, cwd: &str) -> Error {
    let (stage, errno) = match failure {
        StartFailure::Other(error) => return error,
        StartFailure::Command { stage, errno } => (stage, errno),
    };
    let reason = io::Error::from_raw_os_error(errno);
    let program = command.program();
    let text = match (stage, errno) {
        (Stage::Cwd, _) => {
            return Error::new(
                ErrorCode::SpawnFailed,
                format!("cwd \"{cwd}\" cannot be entered: {reason}"),
            )
            .at(cwd);
        }
        (Stage::Exec, libc::ENOENT) => {
            let way_out = match command {
                CommandLine::Shell { .. } => "set the shell option to one that exists",
                CommandLine::Program(_) => "check its name, or the PATH in env",
            };
            format!("\"{program}\" was not found: {way_out}")
        }
        (Stage::Exec, libc::EACCES) => format!("\"{program}\" is not executable"),
        (Stage::Exec, libc::E2BIG) => {
            "the command line and the environment are longer than the system allows \
             (one argument: 128 KiB): write the text to a file and run that"
                .into()
        }
        (Stage::Exec, _) => format!("\"{program}\" could not be run: {reason}"),
        (Stage::Fork, _) => format!("the system has no room for another process ({reason}): end some first"),
        (Stage::Limit, _) => format!("a limit could not be set: {reason}"),
        (Stage::Stdin, _) => format!("stdin could not be opened: {reason}"),
        (Stage::Message, _) => "croft-exec does not match this version of croft: reinstall croft".into(),
    };
    Error::new(ErrorCode::SpawnFailed, text)
}
