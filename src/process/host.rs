//! The commands of one workspace on this host: what each call adds to the workspace's settings, what is still
//! running, and the end of all. How one command runs is left to `exec` and `background`.

use super::background::{Background, Listed, Process, ReadOutput};
use super::env::{self, EnvRequest, Inherit, Variables};
use super::exec::{self, CommandLine, Ended, ExecRequest, ExecResult, LiveOutput, Started};
use super::output::CaptureOptions;
use super::ready::Ready;
use super::start::{self, Spec};
use super::{cgroup, venv};
use crate::error::{Error, ErrorCode, Result};
use croft_exec::wire::{Containment, Leftover};
use std::ffi::{CString, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long after the last SIGKILL `close` and `kill` wait to hear that nothing is left.
const AFTER_KILL: Duration = Duration::from_millis(250);
/// git cleans its lock files up when it is asked to end.
const PROGRAM_KILL_GRACE: Duration = Duration::from_millis(500);
/// Characters of background output kept between reads, unless the call says otherwise.
pub const MAX_BACKGROUND_CHARS: usize = 30_000;

/// Opens a workspace directory, confined: the descriptor and its path below the root.
pub type OpenDirectory = Arc<dyn Fn(&str) -> Result<(OwnedFd, String)> + Send + Sync>;

pub struct HostOptions {
    /// The real absolute path.
    pub root: PathBuf,
    pub shell: String,
    pub env: Variables,
    pub inherit: Inherit,
    /// Whether `.venv` or `venv` at the root is activated.
    pub venv: bool,
}

/// What to run, as the caller said it.
#[derive(Clone, Debug)]
pub enum Command {
    Line(String),
    Words(Vec<String>),
}

pub struct ExecCall {
    pub command: Command,
    pub cwd: String,
    /// The host's variables at this moment.
    pub host_env: Vec<(OsString, OsString)>,
    pub env: Variables,
    pub input: Option<Vec<u8>>,
    pub timeout: Option<Duration>,
    pub kill_grace: Duration,
    pub capture: CaptureOptions,
    pub leftover: Leftover,
    pub started: Option<Started>,
}

pub struct SpawnCall {
    pub command: Command,
    pub cwd: String,
    pub host_env: Vec<(OsString, OsString)>,
    pub env: Variables,
    pub kill_grace: Duration,
    pub max_output_chars: usize,
}

/// A program of croft's own choice, run in the workspace's root with a whole environment of its own.
pub struct ProgramCall {
    pub words: Vec<String>,
    pub env: Vec<CString>,
    pub input: Option<Vec<u8>>,
    pub timeout: Duration,
    pub capture: CaptureOptions,
}

pub struct Host {
    options: HostOptions,
    open_directory: OpenDirectory,
    background: Background,
    ready: Arc<Ready>,
    /// Cancelled by `close`.
    closing: CancellationToken,
    calls: TaskTracker,
}

impl Host {
    pub fn new(options: HostOptions, open_directory: OpenDirectory) -> Result<Self> {
        env::validate(&options.env, "env")?;
        Ok(Host {
            options,
            open_directory,
            background: Background::default(),
            ready: Arc::default(),
            closing: CancellationToken::new(),
            calls: TaskTracker::new(),
        })
    }

    /// Runs to the end, or until `cancel` or `close`.
    pub async fn exec(
        &self,
        call: ExecCall,
        live: Option<LiveOutput>,
        cancel: &CancellationToken,
    ) -> Result<ExecResult> {
        self.check_open()?;
        self.calls
            .track_future(self.exec_tracked(call, live, cancel))
            .await
    }

    /// As `exec`, for a program that the workspace's settings do not reach.
    pub async fn run_program(&self, call: ProgramCall, cancel: &CancellationToken) -> Result<ExecResult> {
        self.check_open()?;
        let request = ExecRequest {
            command: CommandLine::Program(call.words),
            cwd: self.open_root()?,
            cwd_display: ".".to_owned(),
            env: call.env,
            input: call.input,
            stdin: None,
            timeout: Some(call.timeout),
            kill_grace: PROGRAM_KILL_GRACE,
            capture: call.capture,
            leftover: Leftover::Kill,
            limits: Vec::new(),
            started: None,
        };
        let token = self.closing.child_token();
        let running = self.calls.track_future(async {
            let start = |spec| start::start(spec, Some(&self.ready));
            let running = exec::exec_by(start, request, None, &token);
            tokio::pin!(running);
            tokio::select! {
                outcome = &mut running => outcome,
                () = cancel.cancelled() => {
                    token.cancel();
                    running.await
                }
            }
        });
        Ok(running.await?.result)
    }

    /// The real absolute path.
    pub fn root(&self) -> &Path {
        &self.options.root
    }

    pub fn open_root(&self) -> Result<OwnedFd> {
        Ok((self.open_directory)(".")?.0)
    }

    async fn exec_tracked(
        &self,
        call: ExecCall,
        live: Option<LiveOutput>,
        cancel: &CancellationToken,
    ) -> Result<ExecResult> {
        let token = self.closing.child_token();
        if cancel.is_cancelled() {
            token.cancel();
        }
        let prepared = self.prepare(&call.command, &call.cwd, &call.host_env, &call.env)?;
        let request = ExecRequest {
            command: prepared.line,
            cwd: prepared.cwd,
            cwd_display: call.cwd,
            env: prepared.env,
            input: call.input,
            stdin: None,
            timeout: call.timeout,
            kill_grace: call.kill_grace,
            capture: call.capture,
            leftover: call.leftover,
            limits: Vec::new(),
            started: call.started,
        };
        let start = |spec| start::start(spec, Some(&self.ready));
        let running = exec::exec_by(start, request, live, &token);
        tokio::pin!(running);
        let outcome = tokio::select! {
            outcome = &mut running => outcome?,
            () = cancel.cancelled() => {
                token.cancel();
                running.await?
            }
        };
        let mut result = outcome.result;
        if let Some(kept) = outcome.kept {
            let text = display(&call.command);
            let code = Some(result.exit_code);
            let process = self
                .background
                .add(kept, text, MAX_BACKGROUND_CHARS, call.kill_grace, code);
            let note = result.note.take().unwrap_or_default();
            result.note = Some(format!("{note} They are background process {}.", process.id));
            if self.closing.is_cancelled() {
                process.kill.cancel();
            }
        }
        debug_assert!(result.ended != Ended::ByItself || result.containment.is_some());
        Ok(result)
    }

    /// Starts a command that runs until it ends by itself, is killed, or the workspace closes.
    pub async fn spawn(&self, call: SpawnCall, cancel: &CancellationToken) -> Result<Arc<Process>> {
        self.check_open()?;
        self.calls.track_future(self.spawn_tracked(call, cancel)).await
    }

    async fn spawn_tracked(&self, call: SpawnCall, cancel: &CancellationToken) -> Result<Arc<Process>> {
        let aborted = || Error::new(ErrorCode::Aborted, "the call was aborted; nothing was started");
        if cancel.is_cancelled() {
            return Err(aborted());
        }
        let prepared = self.prepare(&call.command, &call.cwd, &call.host_env, &call.env)?;
        let spec = Spec {
            argv: prepared.line.argv()?,
            env: prepared.env,
            cwd: prepared.cwd,
            stdin: None,
            grace: call.kill_grace,
            leftover: Leftover::Kill,
            limits: Vec::new(),
        };
        let running = tokio::select! {
            started = start::start(spec, Some(&self.ready)) => {
                started.map_err(|failure| exec::explain(failure, &prepared.line, &call.cwd))?
            }
            () = cancel.cancelled() => return Err(aborted()),
        };
        let text = display(&call.command);
        let process = self
            .background
            .add(running, text, call.max_output_chars, call.kill_grace, None);
        // `close` may have come between; it waits for this call, then for the process.
        if self.closing.is_cancelled() {
            process.kill.cancel();
        }
        Ok(process)
    }

    /// A process of somebody else's, such as one in a container, becomes one of this workspace's.
    pub fn adopt(&self, pid: u32, command: String, max_output_chars: usize) -> Result<Arc<Process>> {
        self.check_open()?;
        Ok(self.background.adopt(pid, command, max_output_chars))
    }

    /// Where a confined directory really is, for who takes paths only.
    pub fn real_directory(&self, path: &str) -> Result<PathBuf> {
        self.check_open()?;
        let (directory, below) = (self.open_directory)(path)?;
        let real = if cfg!(target_os = "linux") {
            std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
        } else {
            self.options.root.join(below).canonicalize()
        };
        real.map_err(|error| {
            let message = format!("cwd \"{path}\" could not be looked up: {error}");
            Error::new(ErrorCode::Io, message).at(path)
        })
    }

    pub async fn read(&self, id: &str, wait: Duration, cancel: &CancellationToken) -> Result<ReadOutput> {
        self.check_open()?;
        self.background.read(id, wait, cancel).await
    }

    pub async fn kill(&self, id: &str) -> Result<ReadOutput> {
        self.check_open()?;
        self.background.kill(id, self.patience()).await
    }

    pub fn list(&self) -> Result<Vec<Listed>> {
        self.check_open()?;
        Ok(self.background.list())
    }

    pub fn status_reminder(&self) -> Result<Option<String>> {
        self.check_open()?;
        Ok(self.background.status_reminder())
    }

    /// Ends every command and every background process, and returns when they are gone. Idempotent.
    pub async fn close(&self) {
        self.closing.cancel();
        self.calls.close();
        self.calls.wait().await;
        tokio::join!(self.background.kill_all(self.patience()), self.ready.close());
    }

    /// As `close`, for when nobody can wait any more.
    pub fn abandon(&self) {
        self.closing.cancel();
        self.background.end_all();
        self.ready.abandon();
    }

    fn check_open(&self) -> Result<()> {
        if self.closing.is_cancelled() {
            Err(closed())
        } else {
            Ok(())
        }
    }

    /// Longest grace a call may ask for, and the time after it. A process ends long before.
    fn patience(&self) -> Duration {
        Duration::from_millis(super::MAX_KILL_GRACE_MS.into()) + AFTER_KILL
    }

    fn prepare(
        &self,
        command: &Command,
        cwd: &str,
        host_env: &[(OsString, OsString)],
        env: &Variables,
    ) -> Result<Prepared> {
        let (directory, below) = (self.open_directory)(cwd)?;
        let pwd: OsString = match below.as_str() {
            "." => self.options.root.clone().into(),
            below => self.options.root.join(below).into(),
        };
        let venv = if self.options.venv {
            self.find_venv(&self.options.root)
        } else {
            None
        };
        let home = std::env::home_dir().map(OsString::from);
        let env = env::build(&EnvRequest {
            host: host_env,
            inherit: &self.options.inherit,
            workspace: &self.options.env,
            call: env,
            venv: venv.as_ref(),
            pwd: &pwd,
            home: home.as_ref(),
        })?;
        let line = match command {
            Command::Line(line) => CommandLine::Shell {
                shell: self.options.shell.clone(),
                line: line.clone(),
            },
            Command::Words(words) => CommandLine::Program(words.clone()),
        };
        Ok(Prepared {
            line,
            cwd: directory,
            env,
        })
    }

    fn find_venv(&self, root: &Path) -> Option<env::ActiveVenv> {
        venv::find(root, |path| {
            (self.open_directory)(path).ok().map(|(directory, _)| directory)
        })
    }
}

struct Prepared {
    line: CommandLine,
    cwd: OwnedFd,
    env: Vec<CString>,
}

fn display(command: &Command) -> String {
    match command {
        Command::Line(line) => line.clone(),
        Command::Words(words) => words.join(" "),
    }
}

fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the workspace is closed: create a new one")
}

/// How surely a command's descendants are held on this machine.
pub fn containment() -> Containment {
    if cgroup::is_available() {
        Containment::Cgroup
    } else if cfg!(target_os = "linux") {
        Containment::Subreaper
    } else {
        Containment::Group
    }
}
