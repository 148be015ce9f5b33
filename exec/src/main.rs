//! `croft-exec`: supervises one command. This file sets the process up; starting the command is `spawn`,
//! watching and ending it `supervise`.
//!
//! Descriptor 0 is a socket to the addon, the channel and the lifeline at once: when it ends, Node is gone and
//! the command goes too. 1 and 2 are the command's. Nothing secret or variable is in argv or the environment,
//! which anybody on the machine may read: it comes over the socket.
//!
//! As the first process of a container (`init`) it starts one such supervisor per command.
//!
//! A process of its own, because a sub-reaper inherits every orphan below it and must reap with `waitpid(-1)`:
//! inside Node that would steal children from libuv. Single-threaded and without a runtime, because it is
//! started for every command and forks. Without Rust's start-up code too: it reads `/proc/self/maps` and sets up
//! a signal stack, for nothing here.

#![cfg_attr(all(unix, not(test)), no_main)]

#[cfg(unix)]
mod cgroup;
#[cfg(target_os = "linux")]
#[cfg_attr(test, allow(dead_code))]
mod init;
#[cfg(unix)]
mod setup;
#[cfg(unix)]
mod spawn;
#[cfg(unix)]
mod supervise;

/// The C entry point.
///
/// # Safety
/// Called by the C runtime, with its arguments.
#[cfg(all(unix, not(test)))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn main(argc: libc::c_int, argv: *const *const libc::c_char) -> libc::c_int {
    // Without arguments it supervises; a container's engine, which has only argv to speak with, asks for the init.
    #[cfg(target_os = "linux")]
    // SAFETY: the C runtime's own arguments: `argc` strings that live as long as the process.
    if let Some(arguments) = unsafe { init::Arguments::from_main(argc, argv) } {
        return init::run(&arguments);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (argc, argv);
    if run().is_some() { 0 } else { 1 }
}

/// `None` when there was nothing to supervise and nobody to tell.
#[cfg(unix)]
#[cfg_attr(test, allow(dead_code))]
fn run() -> Option<()> {
    use croft_exec::wire::{Event, Stage, Start};
    use std::os::fd::BorrowedFd;

    let signals = setup::isolate()?;
    // SAFETY: the addon starts us with the channel as 0, and nothing here closes it.
    let channel = unsafe { BorrowedFd::borrow_raw(0) };
    let mut descriptors = Vec::new();
    let body = setup::receive_start(channel, &mut descriptors)?;
    let Some(start) = Start::decode(&body) else {
        setup::report(
            channel,
            &[Event::Failed {
                stage: Stage::Message,
                errno: libc::EPROTO,
            }],
        );
        return None;
    };
    match spawn::spawn(&start, descriptors) {
        Ok(command) => supervise::Supervisor::new(channel, signals, &start, command).run(),
        Err((stage, errno)) => setup::report(channel, &[Event::Failed { stage, errno }]),
    }
    Some(())
}

#[cfg(not(unix))]
fn main() {
    std::process::exit(1);
}
