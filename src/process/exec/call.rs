//! One command while it runs: what happens next, and when the call is over.

use super::exit::exit_code;
use super::input::{Input, write_input};
use super::live::{Live, flush};
use super::words::Ending;
use super::{AFTER_KILL, Ended, ExecResult, LiveOutput, Outcome, until};
use crate::process::output::{Capture, CaptureOptions, Captured, Stream};
use crate::process::stream::{OutputPipe, Read};
use crate::process::supervise::{Link, Running};
use croft_exec::wire::{Containment, Event, Leftover};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long output is read after the command's own process has ended while somebody holds its pipes open.
const DRAIN: Duration = Duration::from_millis(250);
const READ_BYTES: usize = 16 * 1024;
const FLOOD_READ_BYTES: usize = 256 * 1024;
/// The most an unprivileged process may ask for by default.
const FLOOD_PIPE_BYTES: usize = 1024 * 1024;

/// What the caller asked for, beside what to run.
pub(super) struct Wishes {
    pub capture: CaptureOptions,
    pub input: Option<Input>,
    pub live: Option<LiveOutput>,
    pub grace: Duration,
    pub leftover: Leftover,
}

pub(super) struct Call {
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
    pub(super) fn new(running: Running, wishes: Wishes) -> Self {
        Call {
            containment: running.containment,
            pid: running.pid,
            link: Some(running.link),
            outputs: [OutputPipe::new(running.stdout), OutputPipe::new(running.stderr)],
            capture: Capture::new(wishes.capture),
            input: wishes.input,
            live: wishes.live.map(Live::new),
            grace: wishes.grace,
            leftover: wishes.leftover,
            status: None,
            left: None,
            done: false,
            told: false,
            ended: Ended::ByItself,
            settle_at: None,
            buffer: vec![0; READ_BYTES],
        }
    }

    pub(super) async fn run(
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
        self.read_rest();
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

    /// What is in the pipes already belongs to the command, also when this thread had to wait for its turn longer
    /// than the drain lasts. Bounded by what a pipe holds, so that a daemon that goes on writing holds nothing up.
    fn read_rest(&mut self) {
        for (output, stream) in self.outputs.iter_mut().zip([Stream::Stdout, Stream::Stderr]) {
            let mut left = FLOOD_PIPE_BYTES;
            while let Read::Bytes(count) = output.read_now(&mut self.buffer) {
                let bytes = self.buffer.get(..count).unwrap_or_default();
                self.capture.push(stream, bytes);
                if let Some(live) = &mut self.live {
                    live.push(stream, output.decoder.push(bytes));
                }
                left = left.saturating_sub(count);
                if left == 0 {
                    break;
                }
            }
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
        let ending = Ending {
            ended: self.ended,
            timeout,
            status_known: self.status.is_some(),
            left: self.left,
            leftover: self.leftover,
        };
        let note = ending.note();
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
