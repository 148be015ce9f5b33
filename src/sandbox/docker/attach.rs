//! One command in a container without our init: through the engine's attach call. The only way into an engine whose
//! containers run on another kernel, where no descriptor can follow.
//!
//! The order loses nothing: create, attach and see it confirmed, start, wait. Attaching after the start loses early
//! output; a wait sent before it answers 0 at once; one that reaches the engine after the removal never answers. The
//! engine may keep the stream open after the exit, so reading it has a deadline then.

use super::container::{Yard, caller, explain_create};
use super::egress::Egress;
use super::engine::{refusal, unavailable};
use super::mounts::Root;
use super::options::User;
use super::owner;
use super::plan::{self, Entry, HOME_INSIDE, Plan};
use super::run::{RunCall, RunResult, aborted, memory_hint};
use crate::error::{Error, ErrorCode, Result};
use crate::process::exec::{Ended, ExecResult, LiveOutput};
use crate::process::output::{Capture, Captured, Decoder, Stream};
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error as ApiError;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, InspectContainerOptions, StartContainerOptions,
    WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long output is read once the exit is known.
const DRAIN: Duration = Duration::from_secs(1);
const REMOVAL_PATIENCE: Duration = Duration::from_millis(600);

pub async fn run(
    yard: &Yard,
    egress: &Egress,
    root: &Root,
    call: RunCall,
    live: Option<LiveOutput>,
    cancel: &CancellationToken,
) -> Result<RunResult> {
    crate::process::env::validate(&call.env, "env")?;
    let network = egress.network(&yard.engine).await?;
    let opening = egress.open(None).await?;
    let proxy = opening
        .as_ref()
        .map(|opening| opening.env.as_slice())
        .unwrap_or_default();
    // The engine's init reaps and passes signals on; where its package lacks one, the command is the first process.
    for with_init in [true, false] {
        let env = environment(yard, &call, proxy);
        let mut body = plan::body(&Plan {
            options: &yard.options,
            root,
            entry: Entry::Attach {
                command: &call.command,
                env,
                cwd: &call.cwd,
                open_stdin: call.input.is_some(),
            },
            network: &network,
            labels: owner::labels("command", &yard.options.labels),
            caller: caller(),
        });
        if let Some(host) = body.host_config.as_mut() {
            host.init = Some(with_init);
        }
        let container = match yard.engine.api.create_container(None, body).await {
            Ok(created) => yard.leaving(created.id),
            Err(error) => return Err(explain_create(&error, &yard.options.image)),
        };
        let attached = attach(yard, &container.name, call.input.is_some()).await?;
        if cancel.is_cancelled() {
            return Ok(aborted());
        }
        let started = yard
            .engine
            .api
            .start_container(&container.name, None::<StartContainerOptions>)
            .await;
        match started {
            Ok(()) => {
                let run = Run {
                    yard,
                    name: container.name.clone(),
                    capture: Capture::new(call.capture),
                    decoders: [Decoder::default(), Decoder::default()],
                    live,
                };
                let (result, cut_short) = run.finish_up(call, attached, cancel).await;
                let removal = container.remove();
                if cut_short {
                    let _ = tokio::time::timeout(REMOVAL_PATIENCE, removal).await;
                }
                return Ok(result);
            }
            Err(error) if with_init && lacks_init(&error) => drop(container),
            Err(error) => return Err(explain_start(yard, &error, &call)),
        }
    }
    Err(unavailable("the container could not be started"))
}

fn lacks_init(error: &ApiError) -> bool {
    refusal(error).is_some_and(|(_, message)| message.contains("docker-init"))
}

fn explain_start(yard: &Yard, error: &ApiError, call: &RunCall) -> Error {
    match refusal(error) {
        Some((_, message))
            if message.contains("executable file not found") || message.contains("no such file") =>
        {
            let program = call.command.first().map_or("", String::as_str);
            super::run::no_program(program, &yard.options.image)
        }
        _ => yard.explain_start(error),
    }
}

fn environment(yard: &Yard, call: &RunCall, proxy: &[(String, String)]) -> Vec<String> {
    let home = match yard.options.user {
        User::Image => None,
        User::Caller => Some(HOME_INSIDE),
        User::Named(_) => Some("/tmp"),
    };
    let home = home.map(|home| format!("HOME={home}"));
    let given = call
        .env
        .iter()
        .chain(proxy)
        .map(|(name, value)| format!("{name}={value}"));
    home.into_iter().chain(given).collect()
}

/// Returns once the engine has confirmed: from then on every byte arrives.
async fn attach(yard: &Yard, name: &str, stdin: bool) -> Result<AttachContainerResults> {
    let options = AttachContainerOptionsBuilder::default()
        .stream(true)
        .stdout(true)
        .stderr(true)
        .stdin(stdin)
        .build();
    let attached = yard.engine.api.attach_container(name, Some(options)).await;
    attached.map_err(|error| unavailable(format!("the engine did not attach to the container: {error}")))
}

struct Run<'a> {
    yard: &'a Yard,
    name: String,
    capture: Capture,
    decoders: [Decoder; 2],
    live: Option<LiveOutput>,
}

impl Run<'_> {
    async fn finish_up(
        mut self,
        call: RunCall,
        attached: AttachContainerResults,
        cancel: &CancellationToken,
    ) -> (RunResult, bool) {
        let began = Instant::now();
        let AttachContainerResults {
            mut output,
            mut input,
        } = attached;
        let given = call.input.unwrap_or_default();
        // A command that does not read must not hold its own output up.
        let feed = tokio::spawn(async move {
            let _ = input.write_all(&given).await;
            let _ = input.shutdown().await;
            // Dropped here; an attachment that is closed early would close the output too on some engines.
            std::future::pending::<()>().await
        });
        let options = WaitContainerOptionsBuilder::default()
            .condition("not-running")
            .build();
        let api = self.yard.engine.api.clone();
        let mut waiting = Box::pin(api.wait_container(&self.name, Some(options)));
        let deadline = call.timeout.map(|timeout| began + timeout);
        let (mut status, mut open, mut ended) = (None, true, Ended::ByItself);
        let mut drained = None;
        while status.is_none() || open {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    ended = Ended::ByAbort;
                    break;
                }
                () = until(deadline), if status.is_none() => {
                    ended = Ended::ByTimeout;
                    break;
                }
                () = until(drained) => break,
                piece = output.next(), if open => match piece {
                    Some(Ok(piece)) => self.take(piece).await,
                    Some(Err(_)) | None => open = false,
                },
                answer = waiting.next(), if status.is_none() => {
                    status = Some(exit_status(answer));
                    drained = Some(Instant::now() + DRAIN);
                }
            }
        }
        feed.abort();
        (
            self.finish(status, ended, began.elapsed(), call.timeout).await,
            ended != Ended::ByItself,
        )
    }

    async fn take(&mut self, piece: LogOutput) {
        let (stream, bytes) = match piece {
            LogOutput::StdErr { message } => (Stream::Stderr, message),
            LogOutput::StdOut { message } | LogOutput::Console { message } => (Stream::Stdout, message),
            LogOutput::StdIn { .. } => return,
        };
        self.capture.push(stream, &bytes);
        if let Some(live) = &self.live {
            let text = self.decoders[usize::from(stream == Stream::Stderr)].push(&bytes);
            if !text.is_empty() {
                let _ = live.send((stream, text)).await;
            }
        }
    }

    async fn finish(
        self,
        status: Option<i64>,
        ended: Ended,
        duration: Duration,
        timeout: Option<Duration>,
    ) -> RunResult {
        let oom_killed = ended == Ended::ByItself && self.was_out_of_memory().await;
        let Captured {
            stdout,
            stderr,
            dropped_bytes,
        } = self.capture.finish();
        let note = match ended {
            Ended::ByItself => None,
            Ended::ByAbort => Some("The command was aborted and its container removed.".to_owned()),
            Ended::ByTimeout => Some(format!(
                "The command did not finish within {} ms and its container was removed.",
                timeout.unwrap_or_default().as_millis()
            )),
        };
        let exit_code = status.map_or(128 + libc::SIGKILL, |status| status as i32);
        RunResult {
            exec: ExecResult {
                stdout,
                stderr,
                exit_code,
                // The engine tells a signal from an exit code only by its number.
                signal: (exit_code == 128 + libc::SIGKILL).then_some("SIGKILL"),
                ended,
                dropped_bytes,
                duration,
                note,
                containment: None,
            },
            oom_killed,
            hint: oom_killed.then(|| memory_hint(&self.yard.options)),
        }
    }

    async fn was_out_of_memory(&self) -> bool {
        let inspected = self
            .yard
            .engine
            .api
            .inspect_container(&self.name, None::<InspectContainerOptions>)
            .await;
        let state = inspected.ok().and_then(|container| container.state);
        state.and_then(|state| state.oom_killed).unwrap_or(false)
    }
}

/// A code other than 0 is an error to bollard, and a result here.
fn exit_status(answer: Option<std::result::Result<bollard::models::ContainerWaitResponse, ApiError>>) -> i64 {
    match answer {
        Some(Ok(response)) => response.status_code,
        Some(Err(ApiError::DockerContainerWaitError { code, .. })) => code,
        // The engine went away, and the container with it.
        Some(Err(_)) | None => 137,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// What needs our init is refused by name rather than done differently.
pub fn unsupported(what: &str) -> Error {
    Error::new(
        ErrorCode::SandboxUnavailable,
        format!(
            "{what} needs croft's own init in the container, which an engine in a virtual machine (and transport: \
             'attach') has not: use reuse: 'command'"
        ),
    )
}
