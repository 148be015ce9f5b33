//! `croft-exec`: supervises one command. This file sets the process up; starting the command is `spawn`,
//! watching and ending it `supervise`.
//!
//! Descriptor 0 is a socket to the addon, the channel and the lifeline at once: when it ends, Node is gone and
//! the command goes too. 1 and 2 are the command's. Nothing secret or variable is in argv or the environment,
//! which anybody on the machine may read: it comes over the socket.
//!
//! A process of its own, because a sub-reaper inherits every orphan below it and must reap with `waitpid(-1)`:
//! inside Node that would steal children from libuv. Single-threaded and without a runtime, because it is
//! started for every command and forks.

#[cfg(unix)]
mod cgroup;
#[cfg(unix)]
mod setup;
#[cfg(unix)]
mod spawn;
#[cfg(unix)]
mod supervise;

#[cfg(unix)]
fn main() {
    use croft_exec::wire::{Event, Stage};
    use std::os::fd::AsFd;

    let Some(signals) = setup::isolate() else {
        std::process::exit(1)
    };
    let stdin = std::io::stdin();
    let channel = stdin.as_fd();
    let mut descriptors = Vec::new();
    let Some(body) = setup::receive_start(channel, &mut descriptors) else {
        std::process::exit(1)
    };
    let Some(start) = croft_exec::wire::Start::decode(&body) else {
        setup::report(
            channel,
            &[Event::Failed {
                stage: Stage::Message,
                errno: libc::EPROTO,
            }],
        );
        std::process::exit(1)
    };
    match spawn::spawn(&start, descriptors) {
        Ok(command) => supervise::Supervisor::new(channel, signals, &start, command).run(),
        Err((stage, errno)) => setup::report(channel, &[Event::Failed { stage, errno }]),
    }
}

#[cfg(not(unix))]
fn main() {
    std::process::exit(1);
}
