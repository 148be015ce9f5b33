//! The life of one helper, seen from Node: its channel, what it says, and its end. Starting a command through it is
//! left to `start`; what to do with the command's output, and when to end it, to `exec` and `background`.

use super::cgroup::Leaf;
use croft_exec::descendants::{self, Family};
use croft_exec::wire::{Containment, Event, Kill};
use std::io;
use std::process::Child;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::Instant;

/// Beyond the grace period, how long a helper may take to finish before the addon ends the tree itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// A command that runs.
pub struct Running {
    pub pid: u32,
    pub containment: Containment,
    /// `None` once it has ended.
    pub stdout: Option<pipe::Receiver>,
    pub stderr: Option<pipe::Receiver>,
    pub link: Link,
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
    pub(super) fn new(child: Option<Child>, stream: UnixStream) -> Self {
        Link {
            child,
            stream,
            received: Vec::new(),
            grace: Duration::ZERO,
            leaf: None,
            started: None,
        }
    }

    /// What to go by should the helper be lost from here on.
    pub(super) fn expect(&mut self, grace: Duration, leaf: Option<Leaf>) {
        self.grace = grace;
        self.leaf = leaf;
    }

    pub(super) fn note_fork(&mut self, pid: u32) {
        self.started = Some((pid, self.expected_containment()));
    }

    pub(super) fn note_start(&mut self, pid: u32, containment: Containment) {
        self.started = Some((pid, containment));
    }

    pub(super) fn started(&self) -> Option<(u32, Containment)> {
        self.started
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    #[cfg(test)]
    pub(super) fn helper_pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// To the helper itself, if it is ours and has not been reaped.
    pub(super) fn signal(&self, signal: libc::c_int) {
        let Some(child) = &self.child else { return };
        // SAFETY: signals a child that has not been waited for, so the number is still its own.
        unsafe { libc::kill(child.id() as libc::pid_t, signal) };
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Closes the channel, which ends the helper, and returns once it has been reaped.
    pub(super) async fn end(mut self) {
        let Some(reaper) = self.reaper() else { return };
        drop(self);
        reaper.run().await;
    }

    fn reaper(&mut self) -> Option<Reaper> {
        Some(Reaper {
            helper: Some(self.child.take()?),
            leaf: self.leaf.take(),
            started: self.started,
            grace: self.grace,
        })
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
        let Some(reaper) = self.reaper() else { return };
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
