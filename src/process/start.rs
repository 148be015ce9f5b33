//! Starts a command through `croft-exec`: makes the helper, gives it its orders, hears how the start went. The
//! helper's further life is left to `supervise`.
//!
//! The helper is spawned without any hook in the child (`pre_exec`): that keeps the spawn a vfork, whose price does
//! not grow with Node's memory (measured: 0.9 ms against 26 ms at 512 MB). All the rest happens in the helper.

use super::cgroup::Leaf;
use super::helper;
use super::ready::Ready;
use super::supervise::{Link, Running};
use crate::error::{Error, ErrorCode, Result};
use croft_exec::channel;
use croft_exec::wire::{CgroupLeaf, Event, Leftover, Limit, Stage, Start};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// How long processes left behind may take to end by themselves (a `tee` that empties its pipe).
const SETTLE: Duration = Duration::from_millis(100);

pub struct Spec {
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub cwd: OwnedFd,
    pub stdin: Option<OwnedFd>,
    pub grace: Duration,
    pub leftover: Leftover,
    pub limits: Vec<Limit>,
}

/// Why a command is not running. `exec` puts it into words.
#[derive(Debug)]
pub enum StartFailure {
    Command { stage: Stage, errno: i32 },
    Other(Error),
}

impl From<Error> for StartFailure {
    fn from(error: Error) -> Self {
        StartFailure::Other(error)
    }
}

/// Starts the command, through the helper that waits in `ready` if there is one, and has the next helper wait
/// there. Dropping the future, like dropping the result, ends whatever was started.
pub async fn start(spec: Spec, ready: Option<&Arc<Ready>>) -> std::result::Result<Running, StartFailure> {
    let waiting = ready.and_then(|ready| ready.take());
    if let Some(helper) = waiting
        && let Some(running) = run(helper, &spec, ready).await?
    {
        return Ok(running);
    }
    // None waited, or it was killed while it did: nothing of the command has run.
    run(Helper::spawn()?, &spec, ready).await?.ok_or_else(lost)
}

/// As [`start`], through a helper that already runs. It is not ours to reap, and its cgroup not ours to name.
pub async fn start_through(helper: Helper, spec: Spec) -> std::result::Result<Running, StartFailure> {
    run(helper, &spec, None).await?.ok_or_else(lost)
}

fn lost() -> StartFailure {
    Error::new(
        ErrorCode::SpawnFailed,
        "croft-exec ended before it had started the command",
    )
    .into()
}

/// `None` when the helper ended before it forked.
async fn run(
    mut helper: Helper,
    spec: &Spec,
    ready: Option<&Arc<Ready>>,
) -> std::result::Result<Option<Running>, StartFailure> {
    let Some(rest) = helper.order(spec)? else {
        return Ok(None);
    };
    // While the helper forks; afterwards the next command would already wait for it.
    if let Some(ready) = ready {
        ready.refill();
    }
    helper.started(&rest).await
}

/// A `croft-exec` that has no orders yet. Dropping it ends and reaps it.
pub struct Helper {
    link: Link,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    /// Whether it is a child of this process, which also means that its command gets a cgroup of our naming.
    ours: bool,
}

impl Helper {
    /// Not on the JS thread, and on no thread whose end would matter: nothing here depends on PDEATHSIG, which
    /// belongs to the spawning thread.
    pub(super) fn spawn() -> Result<Helper> {
        let (ours, theirs) = StdUnixStream::pair().map_err(resources)?;
        let (stdout, stdout_end) = output_pipe()?;
        let (stderr, stderr_end) = output_pipe()?;
        let child = Command::new(helper::path()?)
            .env_clear()
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(stdout_end))
            .stderr(Stdio::from(stderr_end))
            .spawn()
            .map_err(resources)?;
        Ok(Helper {
            link: Link::new(Some(child), stream(ours)?),
            stdout,
            stderr,
            ours: true,
        })
    }

    /// One that somebody else started and will reap: the init of a container.
    pub fn of_container(channel: StdUnixStream, stdout: OwnedFd, stderr: OwnedFd) -> Result<Helper> {
        Ok(Helper {
            link: Link::new(None, stream(channel)?),
            stdout: pipe::Receiver::from_owned_fd(stdout).map_err(resources)?,
            stderr: pipe::Receiver::from_owned_fd(stderr).map_err(resources)?,
            ours: false,
        })
    }

    /// A process of the same user may have stopped it while it waited.
    pub(super) fn wake(&self) {
        self.link.signal(libc::SIGCONT);
    }

    #[cfg(test)]
    pub(super) fn pid(&self) -> Option<u32> {
        self.link.helper_pid()
    }

    /// Ends it, and returns once it has been reaped.
    pub(super) async fn end(self) {
        self.link.end().await;
    }

    /// Sends what fits at once and returns the rest; `None` when nobody is there to read it.
    fn order(&mut self, spec: &Spec) -> Result<Option<Vec<u8>>> {
        let leaf = if self.ours { Leaf::next() } else { None };
        let mut message = encode(spec, leaf.as_ref())?;
        self.link.expect(spec.grace, leaf);
        let mut descriptors: Vec<BorrowedFd<'_>> = vec![spec.cwd.as_fd()];
        descriptors.extend(spec.stdin.as_ref().map(AsFd::as_fd));
        match channel::send(self.link.stream().as_fd(), &message, &descriptors) {
            Ok(sent) => Ok(Some(message.split_off(sent))),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(resources(error)),
        }
    }

    /// Sends what is left of the orders and hears how the start went; `None` when nothing was started.
    async fn started(mut self, rest: &[u8]) -> std::result::Result<Option<Running>, StartFailure> {
        match self.link.write(rest).await {
            Ok(()) => {}
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(resources(error).into()),
        }
        let (pid, containment) = loop {
            match (self.link.next().await, self.link.started()) {
                (Some(Event::Forked { pid }), _) => self.link.note_fork(pid),
                (Some(Event::Started { pid, containment }), _) => {
                    self.link.note_start(pid, containment);
                    break (pid, containment);
                }
                (Some(Event::Failed { stage, errno }), _) => {
                    return Err(StartFailure::Command { stage, errno });
                }
                // The command's first act was to kill its supervisor: it ran, and goes on as one whose end is lost.
                (None, Some(started)) => break started,
                // The child tells of itself before it becomes the command, so nothing has run.
                (None, None) => return Ok(None),
                (Some(Event::Exited { .. } | Event::Left { .. } | Event::Done), _) => return Err(lost()),
            }
        };
        Ok(Some(Running {
            pid,
            containment,
            stdout: Some(self.stdout),
            stderr: Some(self.stderr),
            link: self.link,
        }))
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
    )
}

fn stream(channel: StdUnixStream) -> Result<UnixStream> {
    channel.set_nonblocking(true).map_err(resources)?;
    UnixStream::from_std(channel).map_err(resources)
}

fn encode(spec: &Spec, leaf: Option<&Leaf>) -> Result<Vec<u8>> {
    let milliseconds = |duration: Duration| u32::try_from(duration.as_millis()).unwrap_or(u32::MAX);
    let start = Start {
        argv: spec.argv.iter().map(CString::as_c_str).collect(),
        env: spec.env.iter().map(CString::as_c_str).collect(),
        grace_ms: milliseconds(spec.grace),
        settle_ms: milliseconds(SETTLE),
        leftover: spec.leftover,
        cgroup: leaf.map(|leaf| CgroupLeaf {
            parent: &leaf.parent,
            name: &leaf.name,
        }),
        limits: spec.limits.clone(),
        has_stdin: spec.stdin.is_some(),
    };
    start.encode().ok_or_else(|| {
        Error::new(
            ErrorCode::TooLarge,
            "the command and its environment are longer than 8 MiB: write the text to a file and use it from there",
        )
    })
}

/// Our end does not block; the command's end is an ordinary pipe.
fn output_pipe() -> Result<(pipe::Receiver, OwnedFd)> {
    let (ours, theirs) = io::pipe().map_err(resources)?;
    let ours = pipe::Receiver::from_owned_fd(ours.into()).map_err(resources)?;
    Ok((ours, theirs.into()))
}

pub(super) fn resources(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => Error::new(
            ErrorCode::TooManyOpenFiles,
            "no descriptor is free to start a command with: close some, or raise the limit of open files",
        ),
        Some(libc::EAGAIN | libc::ENOMEM) => Error::new(
            ErrorCode::SpawnFailed,
            format!("the system has no room for another process ({error}): end some first"),
        ),
        _ => Error::new(
            ErrorCode::SpawnFailed,
            format!("croft-exec could not be started: {error}"),
        ),
    }
}
