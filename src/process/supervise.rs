//! Starts a command through `croft-exec` and talks to the helper until it is gone. What to do with the command's
//! output, and when to end it, is left to `exec` and `background`.
//!
//! The helper is spawned without any hook in the child (`pre_exec`): that keeps the spawn a vfork, whose price does
//! not grow with Node's memory (measured: 0.9 ms against 26 ms at 512 MB). All the rest happens in the helper.

use super::cgroup::Leaf;
use super::helper;
use crate::error::{Error, ErrorCode, Result};
use croft_exec::channel;
use croft_exec::descendants::{self, Family};
use croft_exec::wire::{CgroupLeaf, Containment, Event, Kill, Leftover, Limit, Stage, Start};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::Instant;

/// How long processes left behind may take to end by themselves (a `tee` that empties its pipe).
const SETTLE: Duration = Duration::from_millis(100);
/// Beyond the grace period, how long a helper may take to finish before the addon ends the tree itself.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Spec {
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub cwd: OwnedFd,
    pub stdin: Option<OwnedFd>,
    pub grace: Duration,
    pub leftover: Leftover,
    pub limits: Vec<Limit>,
}

/// A command that runs.
pub struct Running {
    pub pid: u32,
    pub containment: Containment,
    /// `None` once it has ended.
    pub stdout: Option<pipe::Receiver>,
    pub stderr: Option<pipe::Receiver>,
    pub link: Link,
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

/// Starts the command. Dropping the future, like dropping the result, ends whatever was started.
pub async fn start(spec: Spec) -> std::result::Result<Running, StartFailure> {
    let leaf = Leaf::next();
    let message = encode(&spec, leaf.as_ref())?;
    let (ours, theirs) = StdUnixStream::pair().map_err(resources)?;
    let (stdout, stdout_end) = output_pipe()?;
    let (stderr, stderr_end) = output_pipe()?;

    let mut descriptors: Vec<BorrowedFd<'_>> = vec![spec.cwd.as_fd()];
    descriptors.extend(spec.stdin.as_ref().map(AsFd::as_fd));
    ours.set_nonblocking(true).map_err(resources)?;
    // Sent before there is a reader: by the time the helper runs, its orders are waiting.
    let sent = channel::send(ours.as_fd(), &message, &descriptors).map_err(resources)?;

    // Not on the JS thread, and on no thread whose end would matter: nothing here depends on PDEATHSIG, which
    // belongs to the spawning thread.
    let child = Command::new(helper::path()?)
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(stdout_end))
        .stderr(Stdio::from(stderr_end))
        .spawn()
        .map_err(resources)?;
    let link = Link::new(
        Some(child),
        UnixStream::from_std(ours).map_err(resources)?,
        spec.grace,
        leaf,
    );
    let rest = message.get(sent..).unwrap_or_default();
    // The command has its own copies; ours would keep a closed stdin open.
    drop(spec);
    await_start(link, rest, stdout, stderr).await
}

/// A helper that waits for its orders, started by somebody else: the init of a container.
pub struct Helper {
    pub channel: StdUnixStream,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// As [`start`], through a helper that already runs. It is not ours to reap, and its cgroup not ours to name.
pub async fn start_through(helper: Helper, spec: Spec) -> std::result::Result<Running, StartFailure> {
    let message = encode(&spec, None)?;
    let mut descriptors: Vec<BorrowedFd<'_>> = vec![spec.cwd.as_fd()];
    descriptors.extend(spec.stdin.as_ref().map(AsFd::as_fd));
    helper.channel.set_nonblocking(true).map_err(resources)?;
    let sent = channel::send(helper.channel.as_fd(), &message, &descriptors).map_err(resources)?;
    let stream = UnixStream::from_std(helper.channel).map_err(resources)?;
    let link = Link::new(None, stream, spec.grace, None);
    let stdout = pipe::Receiver::from_owned_fd(helper.stdout).map_err(resources)?;
    let stderr = pipe::Receiver::from_owned_fd(helper.stderr).map_err(resources)?;
    let rest = message.get(sent..).unwrap_or_default();
    drop(spec);
    await_start(link, rest, stdout, stderr).await
}

/// Sends what is left of the orders and hears how the start went.
async fn await_start(
    mut link: Link,
    rest: &[u8],
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
) -> std::result::Result<Running, StartFailure> {
    let mut sent = 0;
    while sent < rest.len() {
        link.stream.writable().await.map_err(resources)?;
        match link.stream.try_write(rest.get(sent..).unwrap_or_default()) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(resources(error).into()),
        }
    }
    loop {
        match (link.next().await, link.started) {
            (Some(Event::Forked { pid }), _) => link.started = Some((pid, link.expected_containment())),
            (Some(Event::Started { pid, containment }), _) => {
                link.started = Some((pid, containment));
                return Ok(Running {
                    pid,
                    containment,
                    stdout: Some(stdout),
                    stderr: Some(stderr),
                    link,
                });
            }
            (Some(Event::Failed { stage, errno }), _) => {
                return Err(StartFailure::Command { stage, errno });
            }
            // The command's first act was to kill its supervisor: it ran, and goes on as one whose end is lost.
            (None, Some((pid, containment))) => {
                return Ok(Running {
                    pid,
                    containment,
                    stdout: Some(stdout),
                    stderr: Some(stderr),
                    link,
                });
            }
            (Some(Event::Exited { .. } | Event::Left { .. } | Event::Done) | None, _) => {
                let message = "croft-exec ended before it had started the command";
                return Err(Error::new(ErrorCode::SpawnFailed, message).into());
            }
        }
    }
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

/// The channel to one helper. Dropping it ends the command and everything it started, and reaps the helper.
pub struct Link {
    /// `None` once handed to the reaper, and for a helper that somebody else started.
    child: Option<Child>,
    stream: UnixStream,
    received: Vec<u8>,
    grace: Duration,
    leaf: Option<Leaf>,
    started: Option<(u32, Containment)>,
}

impl Link {
    fn new(child: Option<Child>, stream: UnixStream, grace: Duration, leaf: Option<Leaf>) -> Self {
        Link {
            child,
            stream,
            received: Vec::new(),
            grace,
            leaf,
            started: None,
        }
    }

    /// What is in force until the helper says otherwise: a leaf that was not made has no member to miss.
    fn expected_containment(&self) -> Containment {
        if self.leaf.is_some() {
            Containment::Cgroup
        } else {
            Containment::Subreaper
        }
    }

    /// What the helper says next; `None` when it is gone. Safe to cancel.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.received.split_first_chunk() {
                let event = Event::decode(*event);
                self.received = rest.to_vec();
                return event;
            }
            self.stream.readable().await.ok()?;
            let mut buffer = [0; 8 * Event::BYTES];
            match self.stream.try_read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(buffer.get(..count)?),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// SIGTERM to everything now, SIGKILL after `grace`. A helper that is gone cannot be asked; `drop` sees to it.
    pub fn kill(&mut self, grace: Duration) {
        self.grace = grace;
        let grace_ms = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        // The socket is empty in this direction since the start message, so four bytes fit.
        let _ = self.stream.try_write(&Kill { grace_ms }.encode());
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let Some(child) = self.child.take() else { return };
        let reaper = Reaper {
            helper: Some(child),
            leaf: self.leaf.take(),
            started: self.started,
            grace: self.grace,
        };
        // The stream closes right after this, which tells the helper to end what is left.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(reaper.run())),
            Err(_) => drop(reaper),
        }
    }
}

/// Collects one helper after its channel is closed, and does its work if it cannot. No SIGCHLD handler: libuv
/// has one and would replace ours.
struct Reaper {
    /// `None` once collected.
    helper: Option<Child>,
    leaf: Option<Leaf>,
    started: Option<(u32, Containment)>,
    grace: Duration,
}

impl Reaper {
    async fn run(mut self) {
        let deadline = Instant::now() + self.grace + PATIENCE;
        let mut pause = Duration::from_millis(1);
        while !self.collect(Instant::now() >= deadline) {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(64));
        }
    }

    /// True when the helper has been collected.
    fn collect(&mut self, late: bool) -> bool {
        let Some(helper) = &mut self.helper else {
            return true;
        };
        match helper.try_wait() {
            Ok(Some(status)) => {
                self.helper = None;
                if !status.success() {
                    // Somebody killed it; its orphans are out of its reach, and with a cgroup still in ours.
                    self.end_orphans();
                }
            }
            Ok(None) => {
                if late {
                    // Stopped, or stuck behind a process that the kernel will not let die.
                    let command = self.started.map_or(0, |(pid, _)| pid);
                    let family = Family {
                        supervisor: helper.id(),
                        command,
                    };
                    descendants::signal(family, libc::SIGKILL, None);
                    let _ = helper.kill();
                }
            }
            // Nothing to wait for.
            Err(_) => self.helper = None,
        }
        self.helper.is_none()
    }

    fn end_orphans(&self) {
        let Some((pid, containment)) = self.started else {
            return;
        };
        let in_leaf = containment == Containment::Cgroup;
        if !(in_leaf && self.leaf.as_ref().is_some_and(Leaf::destroy)) {
            // SAFETY: signals a group by number. Its leader was the command; the number is not reused while any
            // member lives, and without the helper nobody can tell us whether one does.
            unsafe { libc::kill(-(pid as i32), libc::SIGKILL) };
        }
    }
}

impl Drop for Reaper {
    /// Outside a runtime, or with one that shuts down, a thread takes over. Rare, so it may cost one.
    fn drop(&mut self) {
        if self.helper.is_none() {
            return;
        }
        let mut reaper = Reaper {
            helper: self.helper.take(),
            leaf: self.leaf.take(),
            started: self.started,
            grace: self.grace,
        };
        let collect = move || {
            let deadline = Instant::now() + reaper.grace + PATIENCE;
            while !reaper.collect(Instant::now() >= deadline) {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let _ = std::thread::Builder::new()
            .name("croft-reaper".into())
            .spawn(collect);
    }
}
