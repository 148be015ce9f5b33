//! Makes the helper a safe place to supervise from, and talks over its channel.

use croft_exec::channel;
use croft_exec::wire::{Event, MAX_START_BYTES};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// The write end the SIGCHLD handler uses.
static WAKE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_child(_signal: libc::c_int) {
    let descriptor: RawFd = WAKE.load(Ordering::Relaxed);
    // SAFETY: write is async-signal-safe; a full pipe already holds a wake-up, so the result does not matter.
    // errno is put back, for the code that was interrupted.
    unsafe {
        let place = errno_place();
        let saved = *place;
        libc::write(descriptor, [0_u8].as_ptr().cast(), 1);
        *place = saved;
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
unsafe fn errno_place() -> *mut libc::c_int {
    // SAFETY: always valid for the calling thread.
    unsafe { libc::__errno_location() }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
unsafe fn errno_place() -> *mut libc::c_int {
    // SAFETY: always valid for the calling thread.
    unsafe { libc::__error() }
}

/// Cuts the helper loose from Node's session, signals and stray descriptors and makes it the reaper of all its
/// descendants. Returns the descriptor that becomes readable when a child changes.
pub fn isolate() -> Option<OwnedFd> {
    close_strays();
    // SAFETY: plain calls with valid arguments in a single-threaded process; the handler only writes.
    unsafe {
        // Whatever the command or a terminal sends must not end its supervisor. SIGKILL and SIGSTOP cannot be
        // blocked: the addon has a fallback for those.
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut blocked);
        libc::sigdelset(&mut blocked, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_SETMASK, &blocked, std::ptr::null_mut());

        let mut ends = [0; 2];
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return None;
        }
        for end in ends {
            libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
            libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK);
        }
        WAKE.store(ends[1], Ordering::Relaxed);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_child as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut());

        // Out of Node's process group: a SIGKILL to that group must not take the supervisor along. Not a session of
        // its own: the kernel makes each a scheduling group (autogroup), which costs time on a busy machine.
        libc::setpgid(0, 0);
        #[cfg(target_os = "linux")]
        {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
            // A command of the same user could otherwise take the channel with pidfd_getfd and speak for us.
            libc::prctl(libc::PR_SET_DUMPABLE, 0);
        }
        Some(OwnedFd::from_raw_fd(ends[0]))
    }
}

/// Some other addon may have opened descriptors without close-on-exec; none may reach the command.
fn close_strays() {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: closes descriptors by number; Rust owns none above 2 yet.
        if unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) } == 0 {
            return;
        }
    }
    let listing = if cfg!(target_os = "linux") {
        "/proc/self/fd"
    } else {
        "/dev/fd"
    };
    let strays: Vec<RawFd> = std::fs::read_dir(listing)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect();
    for number in strays {
        // SAFETY: as above; the listing's own descriptor is closed already, EBADF is harmless.
        unsafe { libc::close(number) };
    }
}

/// Reads the start message. `None` when the addon went away or sent nonsense.
pub fn receive_start(socket: BorrowedFd<'_>, descriptors: &mut Vec<OwnedFd>) -> Option<Vec<u8>> {
    receive_message(socket, descriptors, MAX_START_BYTES)
}

/// Reads one message with its length in front.
pub fn receive_message(
    socket: BorrowedFd<'_>,
    descriptors: &mut Vec<OwnedFd>,
    max_bytes: usize,
) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    fill(socket, &mut length, descriptors)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > max_bytes {
        return None;
    }
    let mut body = vec![0; length];
    fill(socket, &mut body, descriptors)?;
    Some(body)
}

fn fill(socket: BorrowedFd<'_>, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> Option<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match channel::receive(socket, buffer.get_mut(filled..)?, descriptors) {
            Ok(0) | Err(_) => return None,
            Ok(count) => filled += count,
        }
    }
    Some(())
}

/// Tells the addon; in one piece, so that an exit and its consequences cost one wake-up. A lost peer shows as
/// the end of the channel, not here.
pub fn report(socket: BorrowedFd<'_>, events: &[Event]) {
    let bytes: Vec<u8> = events.iter().flat_map(|event| event.encode()).collect();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match channel::send(socket, rest, &[]) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(_) => return,
        }
    }
}

/// Points the helper's own 1 and 2 at `/dev/null`: the pipes must end with the command, not with its supervisor.
pub fn release_output() {
    // SAFETY: opens a constant path and replaces two descriptors that nothing here writes to.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for target in [1, 2] {
            if null >= 0 {
                libc::dup2(null, target);
            } else {
                libc::close(target);
            }
        }
        if null > 2 {
            libc::close(null);
        }
    }
}

/// Empties the wake-up pipe.
pub fn drain(signals: &OwnedFd) {
    let mut buffer = [0_u8; 64];
    // SAFETY: reads into a buffer of the given length; the descriptor does not block.
    while unsafe { libc::read(signals.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}
