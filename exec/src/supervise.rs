//! Watches one command to its end, and sees to it that nothing it started outlives it.
//!
//! Phases: running; settling (the command's process ended, others may still finish by themselves); keeping
//! (they may stay); ending (SIGTERM is out, SIGKILL follows). The exit status is reported the moment it is known,
//! never by the end of output, which a daemon can hold open for ever.

use crate::cgroup::Leaf;
use crate::setup::{drain, report};
use crate::spawn::Command;
use croft_exec::descendants::{self, Family};
use croft_exec::wire::{Event, Kill, Leftover, Start};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

enum Phase {
    Running,
    Settling { until: Instant },
    Keeping,
    Ending { kill_at: Instant },
}

pub struct Supervisor<'a> {
    channel: BorrowedFd<'a>,
    /// False once the addon is gone.
    connected: bool,
    signals: OwnedFd,
    pid: libc::pid_t,
    /// False once the command's own process has been reaped; its number may then be reused.
    alive: bool,
    leaf: Option<Leaf>,
    grace: Duration,
    settle: Duration,
    leftover: Leftover,
    phase: Phase,
}

/// Whether any child is left to wait for.
#[derive(PartialEq, Eq)]
enum Children {
    Some,
    None,
}

impl<'a> Supervisor<'a> {
    pub fn new(channel: BorrowedFd<'a>, signals: OwnedFd, start: &Start<'_>, command: Command) -> Self {
        report(
            channel,
            &[Event::Started {
                pid: command.pid as u32,
                containment: command.containment,
            }],
        );
        Supervisor {
            channel,
            connected: true,
            signals,
            pid: command.pid,
            alive: true,
            leaf: command.leaf,
            grace: Duration::from_millis(start.grace_ms.into()),
            settle: Duration::from_millis(start.settle_ms.into()),
            leftover: start.leftover,
            phase: Phase::Running,
        }
    }

    /// Returns when no descendant is alive.
    pub fn run(mut self) {
        loop {
            let (child_changed, message) = self.wait();
            if message {
                self.obey();
            }
            let orphaned = !cfg!(target_os = "linux") && !self.alive;
            if (child_changed || orphaned) && self.reap() == Children::None {
                break;
            }
            if self.deadline().is_some_and(|deadline| Instant::now() >= deadline) && self.on_deadline() {
                break;
            }
        }
        if let Some(leaf) = &self.leaf {
            leaf.remove();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running | Phase::Keeping => None,
            Phase::Settling { until } => Some(until),
            Phase::Ending { kill_at } => Some(kill_at),
        }
    }

    /// Sleeps until something happens: (a child changed, the addon spoke or went).
    fn wait(&self) -> (bool, bool) {
        let timeout = match self.deadline() {
            None if !cfg!(target_os = "linux") && !self.alive => 250,
            // Rounded up: waking a moment early would spin.
            Some(at) => {
                at.saturating_duration_since(Instant::now())
                    .as_millis()
                    .min(60_000) as i32
                    + 1
            }
            None => -1,
        };
        let mut polled = [
            libc::pollfd {
                fd: self.signals.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            },
            // A negative descriptor is skipped: the end of the channel would be readable for ever.
            libc::pollfd {
                fd: if self.connected {
                    self.channel.as_raw_fd()
                } else {
                    -1
                },
                events: libc::POLLIN,
                revents: 0,
            },
        ];
        // SAFETY: polls two entries of a local array.
        unsafe { libc::poll(polled.as_mut_ptr(), 2, timeout) };
        if polled[0].revents != 0 {
            drain(&self.signals);
        }
        (polled[0].revents != 0, polled[1].revents != 0)
    }

    fn obey(&mut self) {
        let mut bytes = [0; Kill::BYTES];
        // SAFETY: receives into a buffer of the given length. Requests are written whole and this small, so a
        // short one means a broken peer.
        let count = unsafe {
            libc::recv(
                self.channel.as_raw_fd(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
                libc::MSG_WAITALL,
            )
        };
        if count == Kill::BYTES as isize {
            let Kill { grace_ms } = Kill::decode(bytes);
            self.end(Duration::from_millis(grace_ms.into()));
        } else {
            // Node closed the workspace or died.
            self.connected = false;
            self.end(self.grace);
        }
    }

    /// Collects everything that ended, reports the command's own end, and moves on from it.
    fn reap(&mut self) -> Children {
        let mut exited = None;
        let children = loop {
            let mut status = 0;
            // SAFETY: waits for any child and stores its status in a local.
            match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
                0 => break Children::Some,
                -1 => break Children::None,
                pid if pid == self.pid && self.alive => {
                    self.alive = false;
                    exited = Some(status);
                }
                _ => {}
            }
        };
        // With a sub-reaper, no child means no descendant: each is our child or below one.
        let children = if children == Children::None && self.has_orphans() {
            Children::Some
        } else {
            children
        };
        let alone = children == Children::None;
        let mut events = Vec::new();
        events.extend(exited.map(|status| Event::Exited { status, alone }));
        if alone {
            events.push(Event::Done);
        } else if exited.is_some() && matches!(self.phase, Phase::Running) {
            self.phase = Phase::Settling {
                until: Instant::now() + self.settle,
            };
        }
        if !events.is_empty() {
            report(self.channel, &events);
        }
        children
    }

    fn family(&self) -> Family {
        Family {
            supervisor: std::process::id(),
            command: self.pid as u32,
        }
    }

    /// Where there is no sub-reaper, orphans are not our children; their end is not told but has to be looked for.
    fn has_orphans(&self) -> bool {
        !cfg!(target_os = "linux") && !self.alive && descendants::count(self.family()) > 0
    }

    /// True when all is over.
    fn on_deadline(&mut self) -> bool {
        match self.phase {
            Phase::Running | Phase::Keeping => false,
            Phase::Settling { .. } => {
                let count = descendants::count(self.family());
                report(self.channel, &[Event::Left { count }]);
                match self.leftover {
                    Leftover::Keep => self.phase = Phase::Keeping,
                    Leftover::Kill => self.end(self.grace),
                }
                false
            }
            Phase::Ending { .. } => {
                self.kill_all();
                true
            }
        }
    }

    /// SIGTERM to all, and the clock for SIGKILL. A second request can only bring the end nearer.
    fn end(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace;
        if let Phase::Ending { kill_at: earlier } = &mut self.phase {
            *earlier = kill_at.min(*earlier);
            return;
        }
        self.phase = Phase::Ending { kill_at };
        // The group as a whole while its leader holds its number, then whoever left the group.
        let group = self.alive.then_some(self.pid);
        for signal in [libc::SIGTERM, libc::SIGCONT] {
            if let Some(group) = group {
                // SAFETY: signals the group of a child that has not been reaped.
                unsafe { libc::kill(-group, signal) };
            }
            // A stopped process acts on SIGTERM only once it continues.
            descendants::signal(self.family(), signal, group.map(|pid| pid as u32));
        }
    }

    /// SIGKILL to every descendant until none is left. New ones may be forked while we look: each pass kills
    /// what it finds, the dead fork no more, and orphans become our children, so the passes run dry.
    fn kill_all(&mut self) {
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(leaf) = &self.leaf {
                leaf.kill();
            }
            if self.alive {
                // SAFETY: signals the group of a child that has not been reaped.
                unsafe { libc::kill(-self.pid, libc::SIGKILL) };
            }
            // Also with a cgroup: a command with root's rights may have moved itself to another one.
            descendants::signal(self.family(), libc::SIGKILL, None);
            if self.reap() == Children::None {
                return;
            }
            let mut polled = libc::pollfd {
                fd: self.signals.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: polls one local entry.
            unsafe { libc::poll(&mut polled, 1, pause.as_millis() as i32) };
            drain(&self.signals);
            // A process in an uninterruptible wait dies when the kernel lets it; asking more often is no help.
            pause = (pause * 2).min(Duration::from_millis(64));
        }
    }
}
