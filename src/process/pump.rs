//! Looks after one background process: merges its output, notices its end, ends it on request.

use super::background::Process;
use super::exec::exit_code;
use super::stream::{OutputPipe, Read};
use super::supervise::{Link, Running};
use croft_exec::wire::Event;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const READ_BYTES: usize = 16 * 1024;
/// How long output is read after the end while a stranger holds the pipe open.
const DRAIN: Duration = Duration::from_millis(250);
/// How long after SIGKILL the end is waited for.
const AFTER_KILL: Duration = Duration::from_millis(250);

pub(super) async fn run(running: Running, process: Arc<Process>, grace: Duration, known_exit: Option<i32>) {
    let Running {
        stdout,
        stderr,
        mut link,
        ..
    } = running;
    let mut outputs = [stdout, stderr].map(OutputPipe::new);
    let mut buffer = vec![0; READ_BYTES];
    let mut exit = known_exit;
    let mut gone = false;
    let mut killing = false;
    let mut settle_at: Option<Instant> = None;
    while !(gone && outputs.iter().all(|output| !output.is_open())) {
        let [stdout, stderr] = &outputs;
        tokio::select! {
            biased;
            () = process.kill.cancelled(), if !killing => {
                killing = true;
                link.kill(grace);
                settle_at = Some(Instant::now() + grace + AFTER_KILL);
            }
            () = until(settle_at) => break,
            event = link.next(), if !gone => match event {
                Some(Event::Exited { status, .. }) => exit = Some(exit_code(status).0),
                Some(Event::Left { .. }) => {}
                // Out of turn, or the channel's end: the helper is over.
                Some(Event::Done | Event::Forked { .. } | Event::Started { .. } | Event::Failed { .. }) | None => {
                    gone = true;
                    settle_at.get_or_insert(Instant::now() + DRAIN);
                }
            },
            () = stdout.readable() => read(&mut outputs[0], &mut buffer, &process),
            () = stderr.readable() => read(&mut outputs[1], &mut buffer, &process),
        }
    }
    outputs
        .iter_mut()
        .for_each(|output| process.push(output.decoder.finish()));
    process.finish(exit.unwrap_or(128 + libc::SIGKILL));
    end(link);
}

/// Dropping the channel ends whatever is left and collects the helper.
fn end(link: Link) {
    drop(link);
}

fn read(output: &mut OutputPipe, buffer: &mut [u8], process: &Process) {
    match output.read(buffer) {
        Read::Bytes(count) => process.push(&output.decoder.push(buffer.get(..count).unwrap_or_default())),
        Read::Nothing | Read::End => {}
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
