//! Commands, for JavaScript.

use super::CancelHandle;
use super::attended::{NativeAdopted, NativeAttended, NativeExit, OnExit, attend};
use super::convert::whole;
use super::tree::NativeTree;
use crate::error::{Error, ErrorCode, Result};
use crate::path::{Platform, normalize};
use crate::process::MAX_KILL_GRACE_MS;
use crate::process::background::{Listed, ReadOutput};
use crate::process::env::{Inherit, Variables};
use crate::process::exec::{Ended, ExecResult};
use crate::process::host::{Command, ExecCall, Host, HostOptions, OpenDirectory, SpawnCall, containment};
use crate::process::output::{CaptureOptions, Keep, Stream};
use croft_exec::wire::Leftover;
use napi::bindgen_prelude::{Either, PromiseRaw, Uint8Array};
use napi::threadsafe_function::ThreadsafeFunction;
use napi::{Env, Status};
use napi_derive::napi;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Pieces of live output on their way to JavaScript; more make the command wait.
pub(super) const LIVE_PIECES: usize = 16;

pub(super) type OnOutput = ThreadsafeFunction<NativeLiveOutput, (), NativeLiveOutput, Status, false, true>;

/// The commands of one workspace.
#[napi]
pub struct NativeCommands {
    host: Arc<Host>,
}

#[napi(object, object_to_js = false)]
pub struct NativeCommandsOptions {
    pub shell: String,
    pub env: HashMap<String, String>,
    /// Names, or `true` for all.
    pub inherit_env: Either<bool, Vec<String>>,
    pub venv: bool,
}

#[napi(object, object_to_js = false)]
pub struct NativeExecRequest {
    pub command: Either<String, Vec<String>>,
    pub cwd: String,
    /// `process.env` as JSON: what it is now, and in a worker the worker's own.
    pub host_env: String,
    pub env: HashMap<String, String>,
    pub timeout_ms: Option<f64>,
    pub input: Option<Either<String, Uint8Array>>,
    pub max_output_bytes: f64,
    /// One budget for both streams, of which the first bytes are kept.
    pub shared_head: bool,
    pub keep_leftover: bool,
    pub kill_grace_ms: f64,
}

#[napi(object, object_from_js = false)]
pub struct NativeExecResult {
    pub stdout: String,
    pub stderr: String,
    pub exit_code: i32,
    pub signal: Option<&'static str>,
    pub timed_out: bool,
    pub aborted: bool,
    pub dropped_bytes: f64,
    pub duration_ms: f64,
    pub note: Option<String>,
    #[napi(ts_type = "'cgroup' | 'subreaper' | 'group'")]
    pub containment: Option<&'static str>,
}

#[napi(object, object_from_js = false)]
pub struct NativeLiveOutput {
    #[napi(ts_type = "'stdout' | 'stderr'")]
    pub stream: &'static str,
    pub text: String,
}

#[napi(object, object_to_js = false)]
pub struct NativeSpawnRequest {
    pub command: Either<String, Vec<String>>,
    pub cwd: String,
    pub host_env: String,
    pub env: HashMap<String, String>,
    pub kill_grace_ms: f64,
    pub max_output_chars: f64,
}

#[napi(object, object_from_js = false)]
pub struct NativeProcess {
    pub id: String,
    pub pid: u32,
    pub command: String,
    #[napi(ts_type = "'running' | 'exited' | 'killed'")]
    pub status: &'static str,
    pub exit_code: Option<i32>,
}

#[napi(object, object_from_js = false)]
pub struct NativeProcessOutput {
    pub output: String,
    #[napi(ts_type = "'running' | 'exited' | 'killed'")]
    pub status: &'static str,
    pub exit_code: Option<i32>,
    pub dropped_chars: f64,
}

#[napi]
impl NativeCommands {
    #[napi(constructor)]
    pub fn new(env: Env, tree: &NativeTree, options: NativeCommandsOptions) -> napi::Result<Self> {
        let disk = tree.disk_tree().ok_or_else(|| {
            Error::new(
                ErrorCode::Unsupported,
                "a workspace in memory runs no commands: give it an exec function",
            )
        })?;
        let options = HostOptions {
            root: disk.real_path().to_owned(),
            shell: options.shell,
            env: options.env.into_iter().collect(),
            inherit: match options.inherit_env {
                Either::A(true) => Inherit::All,
                Either::A(false) => Inherit::Names(Vec::new()),
                Either::B(names) => Inherit::Names(names),
            },
            venv: options.venv,
        };
        // Weak, so that closing the workspace lets go of the root.
        let disk = Arc::downgrade(&disk);
        let open_directory: OpenDirectory = Arc::new(move |path| {
            let closed = || Error::new(ErrorCode::Closed, "the workspace is closed: create a new one");
            let directory = disk.upgrade().ok_or_else(closed)?.open_directory(path)?;
            Ok((directory, normalize(path, Platform::HOST)?))
        });
        let host = Arc::new(Host::new(options, open_directory)?);
        let weak = Arc::downgrade(&host);
        end_with_environment(env, weak)?;
        Ok(Self { host })
    }

    /// How surely a command's descendants are held on this machine.
    #[napi(getter, ts_return_type = "'cgroup' | 'subreaper' | 'group'")]
    pub fn containment(&self) -> &'static str {
        containment().as_str()
    }

    #[napi]
    pub fn exec<'env>(
        &self,
        env: &'env Env,
        request: NativeExecRequest,
        cancel: Option<&CancelHandle>,
        on_output: Option<OnOutput>,
    ) -> napi::Result<PromiseRaw<'env, NativeExecResult>> {
        let call = exec_call(request)?;
        let token = cancel.map(CancelHandle::token).unwrap_or_default();
        let host = self.host.clone();
        env.spawn_future(async move {
            let result = match on_output {
                None => host.exec(call, None, &token).await,
                Some(listener) => {
                    let (sender, receiver) = mpsc::channel(LIVE_PIECES);
                    let exec = host.exec(call, Some(sender), &token);
                    tokio::join!(exec, deliver(receiver, listener)).0
                }
            };
            Ok(result?.into())
        })
    }

    #[napi]
    pub fn spawn<'env>(
        &self,
        env: &'env Env,
        request: NativeSpawnRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeProcess>> {
        let call = spawn_call(request)?;
        let token = cancel.map(CancelHandle::token).unwrap_or_default();
        let host = self.host.clone();
        env.spawn_future(async move { Ok(host.spawn(call, &token).await?.listed().into()) })
    }

    /// As `exec` without a timeout; answers once the command runs. Output and end are told.
    #[napi]
    pub fn attend<'env>(
        &self,
        env: &'env Env,
        request: NativeExecRequest,
        cancel: Option<&CancelHandle>,
        on_output: OnOutput,
        on_exit: OnExit,
    ) -> napi::Result<PromiseRaw<'env, NativeAttended>> {
        let mut call = exec_call(request)?;
        let token = cancel.map(CancelHandle::token).unwrap_or_default();
        let host = self.host.clone();
        env.spawn_future(async move {
            let work = |live, started, kill: CancellationToken| async move {
                call.started = Some(started);
                let result = host.exec(call, Some(live), &kill).await?;
                Ok(NativeExit {
                    exit_code: result.exit_code,
                    signal: result.signal,
                    oom_killed: false,
                    hint: None,
                })
            };
            Ok(attend(work, on_output, on_exit, token).await?)
        })
    }

    /// Lists a process that runs elsewhere; the caller tells its output and its end.
    #[napi]
    pub fn adopt(&self, pid: u32, command: String, max_output_chars: f64) -> napi::Result<NativeAdopted> {
        let max_output_chars = whole("maxOutputChars", max_output_chars, 1)? as usize;
        Ok(NativeAdopted::new(self.host.adopt(
            pid,
            command,
            max_output_chars,
        )?))
    }

    /// The real absolute path of a confined directory, for an executor: it gets paths, not descriptors.
    #[napi]
    pub fn real_directory<'env>(
        &self,
        env: &'env Env,
        path: String,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let host = self.host.clone();
        env.spawn_future(async move {
            let real = host.real_directory(&path)?;
            let message = "the directory's path is not UTF-8: an executor cannot be told of it";
            let real = real.into_os_string().into_string();
            Ok(real.map_err(|_| Error::new(ErrorCode::InvalidArgument, message).at(&path))?)
        })
    }

    #[napi]
    pub fn read_output<'env>(
        &self,
        env: &'env Env,
        id: String,
        wait_ms: f64,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeProcessOutput>> {
        let wait = Duration::from_millis(whole("waitMs", wait_ms, 0)?);
        let token = cancel.map(CancelHandle::token).unwrap_or_default();
        let host = self.host.clone();
        env.spawn_future(async move { Ok(host.read(&id, wait, &token).await?.into()) })
    }

    #[napi]
    pub async fn kill(&self, id: String) -> napi::Result<NativeProcessOutput> {
        Ok(self.host.kill(&id).await?.into())
    }

    #[napi]
    pub fn list(&self) -> napi::Result<Vec<NativeProcess>> {
        Ok(self.host.list()?.into_iter().map(NativeProcess::from).collect())
    }

    #[napi]
    pub fn status_reminder(&self) -> napi::Result<Option<String>> {
        Ok(self.host.status_reminder()?)
    }

    #[napi]
    pub async fn close(&self) {
        self.host.close().await;
    }
}

thread_local! {
    /// What runs commands for this thread's environment; `None` until there was one.
    static RUNNERS: RefCell<Option<Vec<Weak<dyn Runner>>>> = const { RefCell::new(None) };
}

/// What runs commands, on this host or in a sandbox.
pub(super) trait Runner: Send + Sync {
    /// Ends all of them, and waits for none.
    fn abandon(&self);
}

impl Runner for Host {
    fn abandon(&self) {
        Host::abandon(self);
    }
}

impl Runner for crate::sandbox::docker::Sandbox {
    fn abandon(&self) {
        crate::sandbox::docker::Sandbox::abandon(self);
    }
}

/// A worker that is terminated cannot close its workspaces: their commands end with its environment. One hook for
/// all, because napi keeps each until the end.
pub(super) fn end_with_environment(env: Env, runner: Weak<dyn Runner>) -> napi::Result<()> {
    let first = RUNNERS.with_borrow_mut(|runners| {
        let first = runners.is_none();
        let runners = runners.get_or_insert_default();
        runners.retain(|runner| runner.strong_count() > 0);
        runners.push(runner);
        first
    });
    if first {
        env.add_env_cleanup_hook((), |()| {
            let runners = RUNNERS.with_borrow_mut(Option::take).unwrap_or_default();
            runners
                .iter()
                .filter_map(Weak::upgrade)
                .for_each(|runner| runner.abandon());
        })?;
    }
    Ok(())
}

impl NativeCommands {
    pub(super) fn host(&self) -> Arc<Host> {
        self.host.clone()
    }
}

/// One piece at a time: the command is read no faster than JavaScript listens.
pub(super) async fn deliver(mut pieces: mpsc::Receiver<(Stream, String)>, listener: OnOutput) {
    while let Some((stream, text)) = pieces.recv().await {
        let stream = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        // ts/process.ts catches what the listener throws; a failure here means that Node is ending.
        if listener
            .call_async_catch(NativeLiveOutput { stream, text })
            .await
            .is_err()
        {
            return;
        }
    }
}

fn exec_call(request: NativeExecRequest) -> Result<ExecCall> {
    Ok(ExecCall {
        command: command(request.command),
        cwd: request.cwd,
        host_env: host_env(&request.host_env)?,
        env: variables(request.env),
        input: request.input.map(|input| match input {
            Either::A(text) => text.into_bytes(),
            Either::B(bytes) => bytes.to_vec(),
        }),
        timeout: match request.timeout_ms {
            Some(milliseconds) => Some(Duration::from_millis(whole("timeoutMs", milliseconds, 1)?)),
            None => None,
        },
        kill_grace: kill_grace(request.kill_grace_ms)?,
        capture: CaptureOptions {
            max_bytes: whole("maxOutputBytes", request.max_output_bytes, 0)? as usize,
            shared: request.shared_head,
            keep: if request.shared_head {
                Keep::Head
            } else {
                Keep::HeadTail
            },
        },
        leftover: if request.keep_leftover {
            Leftover::Keep
        } else {
            Leftover::Kill
        },
        started: None,
    })
}

fn spawn_call(request: NativeSpawnRequest) -> Result<SpawnCall> {
    Ok(SpawnCall {
        command: command(request.command),
        cwd: request.cwd,
        host_env: host_env(&request.host_env)?,
        env: variables(request.env),
        kill_grace: kill_grace(request.kill_grace_ms)?,
        max_output_chars: whole("maxOutputChars", request.max_output_chars, 1)? as usize,
    })
}

fn command(command: Either<String, Vec<String>>) -> Command {
    match command {
        Either::A(line) => Command::Line(line),
        Either::B(words) => Command::Words(words),
    }
}

fn variables(env: HashMap<String, String>) -> Variables {
    env.into_iter().collect()
}

pub(super) fn host_env(json: &str) -> Result<Vec<(OsString, OsString)>> {
    let env: BTreeMap<String, String> = serde_json::from_str(json).map_err(|error| {
        Error::new(
            ErrorCode::Internal,
            format!("process.env did not arrive: {error}"),
        )
    })?;
    Ok(env
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect())
}

fn kill_grace(milliseconds: f64) -> Result<Duration> {
    let milliseconds = whole("killGraceMs", milliseconds, 0)?;
    if milliseconds > MAX_KILL_GRACE_MS.into() {
        let message = format!("killGraceMs must be at most {MAX_KILL_GRACE_MS} ms, not {milliseconds}");
        return Err(Error::new(ErrorCode::InvalidArgument, message));
    }
    Ok(Duration::from_millis(milliseconds))
}

impl From<ExecResult> for NativeExecResult {
    fn from(result: ExecResult) -> Self {
        Self {
            stdout: result.stdout,
            stderr: result.stderr,
            exit_code: result.exit_code,
            signal: result.signal,
            timed_out: result.ended == Ended::ByTimeout,
            aborted: result.ended == Ended::ByAbort,
            dropped_bytes: result.dropped_bytes as f64,
            duration_ms: result.duration.as_secs_f64() * 1000.0,
            note: result.note,
            containment: result.containment.map(|containment| containment.as_str()),
        }
    }
}

impl From<Listed> for NativeProcess {
    fn from(listed: Listed) -> Self {
        Self {
            id: listed.id,
            pid: listed.pid,
            command: listed.command,
            status: listed.status.as_str(),
            exit_code: listed.exit_code,
        }
    }
}

impl From<ReadOutput> for NativeProcessOutput {
    fn from(read: ReadOutput) -> Self {
        Self {
            output: read.output,
            status: read.status.as_str(),
            exit_code: read.exit_code,
            dropped_chars: read.dropped_chars as f64,
        }
    }
}
