//! One command in a container: its environment, its supervisor, and what the container says about how it ended.
//! Where the container comes from is left to `supply`.

use super::channel::{LaunchFailure, Launched, Limited};
use super::engine::unavailable;
use super::mounts::Root;
use super::options::{Options, User};
use super::plan::HOME_INSIDE;
use super::supply::{Lease, Supply};
use crate::error::{Error, ErrorCode, Result};
use crate::process::env::{self, Variables};
use crate::process::exec::{self, CommandLine, Ended, ExecRequest, ExecResult, LiveOutput, Outcome, Started};
use crate::process::output::CaptureOptions;
use crate::process::start::{Helper, start_through};
use croft_exec::wire::Leftover;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A command is ended by force soon after it was asked to end; its container is gone under a second after.
pub const KILL_GRACE: Duration = Duration::from_millis(100);
/// How long a call that was cut short waits to see its container gone.
const REMOVAL_PATIENCE: Duration = Duration::from_millis(600);

pub struct RunCall {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Absolute, inside the container.
    pub cwd: String,
    pub env: Variables,
    pub input: Option<Vec<u8>>,
    pub timeout: Option<Duration>,
    pub capture: CaptureOptions,
    pub started: Option<Started>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    pub exec: ExecResult,
    pub oom_killed: bool,
    /// For the model: a limit of the sandbox that explains the result.
    pub hint: Option<String>,
}

pub async fn run(
    supply: &Supply,
    options: &Options,
    root: &Root,
    call: RunCall,
    live: Option<LiveOutput>,
    cancel: &CancellationToken,
) -> Result<RunResult> {
    env::validate(&call.env, "env")?;
    let (lease, launched) = tokio::select! {
        ready = prepare(supply, root, &call.cwd) => ready?,
        () = cancel.cancelled() => return Ok(aborted()),
    };
    let before = lease.container().channel.lock().await.limited();
    let outcome = in_container(&lease, launched, options, call, live, cancel).await;
    let container = lease.container();
    let (after, gone) = {
        let channel = container.channel.lock().await;
        (channel.limited(), channel.is_closed())
    };
    let clean = matches!(&outcome, Ok(outcome) if outcome.all_gone) && !gone;
    let removal = supply.give_back(lease, root, clean).await;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return Err(error),
    };
    if outcome.result.ended != Ended::ByItself
        && let Some(removal) = removal
    {
        // Cut short means gone: whoever aborts may look at once.
        let _ = tokio::time::timeout(REMOVAL_PATIENCE, removal).await;
    }
    Ok(judge(outcome, options, before, after, gone))
}

/// A container with a supervisor in it. A container found dead is replaced once.
async fn prepare(supply: &Supply, root: &Root, cwd: &str) -> Result<(Lease, Launched)> {
    let inside = CString::new(cwd)
        .map_err(|_| Error::new(ErrorCode::InvalidArgument, "cwd contains a NUL character"))?;
    for _ in 0..2 {
        let lease = supply.lease(root).await?;
        let launched = lease.container().channel.lock().await.launch(&inside).await;
        match launched {
            Ok(launched) => return Ok((lease, launched)),
            Err(LaunchFailure::Refused(error)) => {
                supply.give_back(lease, root, true).await;
                let message = format!("cwd \"{cwd}\" cannot be entered in the container: {error}");
                return Err(Error::new(ErrorCode::SpawnFailed, message).at(cwd));
            }
            Err(LaunchFailure::Gone) => drop(supply.give_back(lease, root, false).await),
        }
    }
    Err(unavailable(
        "the container ended before the command could start: the engine may be restarting; try again",
    ))
}

async fn in_container(
    lease: &Lease,
    launched: Launched,
    options: &Options,
    call: RunCall,
    live: Option<LiveOutput>,
    cancel: &CancellationToken,
) -> Result<Outcome> {
    let container = lease.container();
    let egress = container.egress.as_ref().map(|opening| opening.env.as_slice());
    let env = {
        let channel = container.channel.lock().await;
        environment(&channel.env, options, &call, egress.unwrap_or_default())?
    };
    let channel = UnixStream::from(launched.channel);
    let helper = Helper::of_container(channel, launched.stdout, launched.stderr)?;
    let program = call.command.first().cloned().unwrap_or_default();
    let request = ExecRequest {
        command: CommandLine::Program(call.command),
        cwd: launched.cwd,
        cwd_display: call.cwd,
        env,
        input: call.input,
        stdin: Some(launched.stdin),
        timeout: call.timeout,
        kill_grace: KILL_GRACE,
        capture: call.capture,
        leftover: Leftover::Kill,
        limits: Vec::new(),
        started: call.started,
    };
    let start = |spec| start_through(helper, spec);
    let outcome = exec::exec_by(start, request, live, cancel).await;
    outcome.map_err(|error| in_terms_of_image(error, &program, &options.image))
}

fn in_terms_of_image(error: Error, program: &str, image: &str) -> Error {
    if error.code != ErrorCode::SpawnFailed || !error.message.contains("was not found") {
        return error;
    }
    no_program(program, image)
}

pub fn no_program(program: &str, image: &str) -> Error {
    let way_out = match program {
        "sh" | "/bin/sh" => "use an image with a shell, or give run() a program of the image",
        _ => "check its name, or use an image that has it",
    };
    Error::new(
        ErrorCode::SpawnFailed,
        format!("the image \"{image}\" has no \"{program}\" (exit code 127): {way_out}"),
    )
}

/// What the image and the engine set, then the call's, then the way to the broker: nothing of the host's.
fn environment(
    image: &[CString],
    options: &Options,
    call: &RunCall,
    egress: &[(String, String)],
) -> Result<Vec<CString>> {
    let mut variables: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for entry in image {
        let bytes = entry.to_bytes();
        if let Some(at) = bytes.iter().position(|&byte| byte == b'=') {
            variables.insert(bytes[..at].to_vec(), bytes[at + 1..].to_vec());
        }
    }
    let home = match options.user {
        User::Image => None,
        User::Caller => Some(HOME_INSIDE),
        // What a user without an entry in the image's passwd gets is "/", which it cannot write to.
        User::Named(_) => {
            Some("/tmp").filter(|_| variables.get(&b"HOME"[..]).is_none_or(|home| home == b"/"))
        }
    };
    if let Some(home) = home {
        variables.insert(b"HOME".to_vec(), home.into());
    }
    variables.insert(b"PWD".to_vec(), call.cwd.clone().into());
    for (name, value) in call.env.iter().chain(egress) {
        variables.insert(name.clone().into(), value.clone().into());
    }
    let entries = variables
        .into_iter()
        .map(|(name, value)| CString::new([&name[..], b"=", &value].concat()));
    entries.collect::<std::result::Result<_, _>>().map_err(|_| {
        Error::new(
            ErrorCode::InvalidArgument,
            "env: a variable contains a NUL character",
        )
    })
}

fn judge(outcome: Outcome, options: &Options, before: Limited, after: Limited, gone: bool) -> RunResult {
    let mut exec = outcome.result;
    let oom_killed = after.memory > before.memory && exec.ended == Ended::ByItself;
    let hint = if oom_killed {
        Some(memory_hint(options))
    } else if after.processes > before.processes {
        Some(format!(
            "The sandbox reached its process limit (pidsLimit: {}), not a memory limit: start fewer processes at a \
             time, or raise it.",
            options.pids_limit
        ))
    } else if gone && exec.ended == Ended::ByItself && !outcome.all_gone {
        exec.note = Some("The container was ended from outside while the command ran (an engine that restarts, or docker rm).".into());
        None
    } else {
        None
    };
    RunResult {
        exec,
        oom_killed,
        hint,
    }
}

pub fn memory_hint(options: &Options) -> String {
    let limit = match options.memory {
        Some(bytes) => format!("{bytes} bytes"),
        None => "the machine's".to_owned(),
    };
    format!(
        "A process was killed because the sandbox reached its memory limit (memory: {limit}). Use less memory, or raise \
         the limit."
    )
}

/// As an aborted command that never began.
pub fn aborted() -> RunResult {
    RunResult {
        exec: exec::not_started(Ended::ByAbort, tokio::time::Instant::now()),
        oom_killed: false,
        hint: None,
    }
}
