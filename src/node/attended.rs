//! Commands that run on under somebody else's eyes, for JavaScript: output and end are told as they come, and the
//! command ends when it is asked to. The workspace's own list of such commands is left to `process`.

use super::process::{LIVE_PIECES, OnOutput, deliver};
use crate::error::{Error, ErrorCode, Result};
use crate::process::background::Process;
use crate::process::exec::{LiveOutput, Started};
use crate::process::output::{Capture, CaptureOptions, Captured, Keep, Stream};
use napi::Status;
use napi::threadsafe_function::ThreadsafeFunction;
use napi_derive::napi;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Weak, like every callback of a command: one that runs does not keep Node alive.
pub(super) type OnExit = ThreadsafeFunction<NativeExit, (), NativeExit, Status, false, true>;

#[napi(object, object_from_js = false)]
pub struct NativeExit {
    pub exit_code: i32,
    pub signal: Option<&'static str>,
    pub oom_killed: bool,
    pub hint: Option<String>,
}

/// A command that was started, and the way to end it.
#[napi]
pub struct NativeAttended {
    pid: u32,
    kill: CancellationToken,
    /// Cancelled when JavaScript has heard of the end.
    over: CancellationToken,
}

#[napi]
impl NativeAttended {
    /// As the place counts where it runs.
    #[napi(getter)]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends it and everything it started; settles once its end was told. Idempotent. The promise keeps Node alive,
    /// which the callbacks do not.
    #[napi]
    pub async fn kill(&self) {
        self.kill.cancel();
        self.over.cancelled().await;
    }
}

/// Starts `work`, which tells its pid and its output, and ends when its token is cancelled. Answers once it runs.
pub(super) async fn attend<F>(
    work: impl FnOnce(LiveOutput, Started, CancellationToken) -> F,
    on_output: OnOutput,
    on_exit: OnExit,
    cancel: CancellationToken,
) -> Result<NativeAttended>
where
    F: Future<Output = Result<NativeExit>> + Send + 'static,
{
    let (live, pieces) = mpsc::channel(LIVE_PIECES);
    let (started, mut starting) = oneshot::channel();
    let kill = CancellationToken::new();
    let work = work(live, started, kill.clone());
    // A task of its own: the command outlives the call that started it.
    let running = tokio::spawn(async move { tokio::join!(work, deliver(pieces, on_output)).0 });
    let started = tokio::select! {
        biased;
        started = &mut starting => started.ok(),
        () = cancel.cancelled() => {
            kill.cancel();
            None
        }
    };
    let Some(pid) = started else {
        // Seen to its end, so that an aborted call leaves nothing behind.
        return match running.await {
            Ok(Err(error)) => Err(error),
            _ => Err(Error::new(
                ErrorCode::Aborted,
                "the call was aborted; nothing was started",
            )),
        };
    };
    let over = CancellationToken::new();
    let told = over.clone();
    tokio::spawn(async move {
        let exit = running.await.map_err(|error| error.to_string());
        let exit = exit.and_then(|exit| exit.map_err(|error| error.message));
        let exit = exit.unwrap_or_else(lost);
        // Fails only when Node is ending.
        let _ = on_exit.call_async_catch(exit).await;
        told.cancel();
    });
    Ok(NativeAttended { pid, kill, over })
}

/// The end of a command whose supervisor went away.
fn lost(why: String) -> NativeExit {
    NativeExit {
        exit_code: 128 + libc::SIGKILL,
        signal: Some("SIGKILL"),
        oom_killed: false,
        hint: Some(why),
    }
}

/// A background process of a workspace that runs elsewhere: JavaScript pushes its output and tells its end.
#[napi]
pub struct NativeAdopted {
    process: Arc<Process>,
}

impl NativeAdopted {
    pub(super) fn new(process: Arc<Process>) -> Self {
        Self { process }
    }
}

#[napi]
impl NativeAdopted {
    #[napi(getter)]
    pub fn id(&self) -> String {
        self.process.id.clone()
    }

    #[napi]
    pub fn push(&self, text: String) {
        self.process.push(&text);
    }

    /// From here on its end counts as ours.
    #[napi]
    pub fn expect_end(&self) {
        self.process.kill.cancel();
    }

    /// The first end counts.
    #[napi]
    pub fn finish(&self, exit_code: i32) {
        self.process.finish(exit_code);
    }
}

/// Output that somebody else collected, brought within a budget as a command's own is.
#[napi]
pub struct NativeCapture {
    capture: Option<Capture>,
}

#[napi(object, object_from_js = false)]
pub struct NativeCaptured {
    pub stdout: String,
    pub stderr: String,
    pub dropped_bytes: f64,
}

#[napi]
impl NativeCapture {
    /// `shared_head`: one budget for both streams, of which the first bytes are kept.
    #[napi(constructor)]
    pub fn new(max_bytes: f64, shared_head: bool) -> napi::Result<Self> {
        let options = CaptureOptions {
            max_bytes: super::convert::whole("maxOutputBytes", max_bytes, 0)? as usize,
            shared: shared_head,
            keep: if shared_head { Keep::Head } else { Keep::HeadTail },
        };
        Ok(Self {
            capture: Some(Capture::new(options)),
        })
    }

    #[napi]
    pub fn push(&mut self, #[napi(ts_arg_type = "'stdout' | 'stderr'")] stream: String, text: String) {
        let stream = if stream == "stderr" {
            Stream::Stderr
        } else {
            Stream::Stdout
        };
        if let Some(capture) = &mut self.capture {
            capture.push(stream, text.as_bytes());
        }
    }

    /// Once; empty afterwards.
    #[napi]
    pub fn finish(&mut self) -> NativeCaptured {
        let Captured {
            stdout,
            stderr,
            dropped_bytes,
        } = self.capture.take().map(Capture::finish).unwrap_or_default();
        NativeCaptured {
            stdout,
            stderr,
            dropped_bytes: dropped_bytes as f64,
        }
    }
}
