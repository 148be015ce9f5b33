//! The first process of a container: connects to the addon over the mounted socket, hands out a supervisor per
//! command, reaps. Supervising a command is left to this same program, started again without arguments.
//!
//! The socket is the lifeline of the container: when it ends, Node is gone or done, this process exits, and the
//! kernel ends every other process of the namespace with it, whatever they did to get away.
//!
//! Everything the addon later holds of a command is made here, inside: its pipes belong to the container's user
//! (so `/dev/stdout` can be opened again), and its directory is one of the container. A directory of the host's
//! must never enter: `openat(fd, "..")` would walk out of the container.

use crate::setup::{drain, isolate, receive_message};
use croft_exec::channel;
use croft_exec::container::{Hello, Launch, MAX_LAUNCH_BYTES};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;

/// `croft-exec init SOCKET [PORT]`.
pub struct Arguments {
    program: CString,
    socket: std::path::PathBuf,
    /// Listen here on the loopback and hand the listener out.
    port: Option<u16>,
}

impl Arguments {
    /// `None` when this is not the init's command line. By hand: std's own list of arguments is filled by the
    /// start-up code that this program does without.
    ///
    /// # Safety
    /// `argv` holds `argc` C strings that are never freed.
    pub unsafe fn from_main(argc: libc::c_int, argv: *const *const libc::c_char) -> Option<Arguments> {
        // SAFETY: promised by the caller.
        let word = |at: usize| unsafe { CStr::from_ptr(*argv.add(at)) };
        let count = usize::try_from(argc).ok()?;
        if count < 3 || word(1) != c"init" {
            return None;
        }
        let port = match count {
            3 => None,
            _ => Some(word(3).to_str().ok()?.parse().ok()?),
        };
        Some(Arguments {
            program: word(0).to_owned(),
            socket: std::ffi::OsStr::from_bytes(word(2).to_bytes()).into(),
            port,
        })
    }
}

/// Returns the exit code when the addon has let go.
pub fn run(arguments: &Arguments) -> i32 {
    let Some(signals) = isolate() else {
        return 1;
    };
    obey_outside_term();
    let Ok(stream) = UnixStream::connect(&arguments.socket) else {
        return 1;
    };
    if greet(stream.as_fd(), arguments.port).is_none() {
        return 1;
    }
    loop {
        let (child_changed, message) = wait(&signals, stream.as_fd());
        if child_changed {
            reap();
        }
        if message && serve(stream.as_fd(), &arguments.program).is_none() {
            return 0;
        }
    }
}

/// `docker stop` and an engine that shuts down send SIGTERM, and kill only 10 s later. A command inside may send
/// it too, but must not end its own init: the kernel gives a sender from outside the namespace the pid 0.
fn obey_outside_term() {
    extern "C" fn on_term(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
        // SAFETY: the kernel passes a valid siginfo; _exit is async-signal-safe.
        unsafe {
            if (*info).si_pid() == 0 {
                libc::_exit(143);
            }
        }
    }
    // SAFETY: installs a handler that only reads its argument and ends the process.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_term as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut());
        let mut term: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut term);
        libc::sigaddset(&mut term, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_UNBLOCK, &term, std::ptr::null_mut());
    }
}

fn greet(socket: BorrowedFd<'_>, port: Option<u16>) -> Option<()> {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot_id = CString::new(boot_id.trim()).ok()?;
    let env: Vec<CString> = std::env::vars_os()
        .filter_map(|(name, value)| {
            CString::new([name.into_vec(), b"=".to_vec(), value.into_vec()].concat()).ok()
        })
        .collect();
    // cgroup v2, then v1. Opened before any command runs, and from here on by descriptor.
    let memory = open_first(&[
        "/sys/fs/cgroup/memory.events",
        "/sys/fs/cgroup/memory/memory.oom_control",
    ]);
    let processes = open_first(&["/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"]);
    let listener = match port {
        Some(port) => Some(std::net::TcpListener::bind(("127.0.0.1", port)).ok()?),
        None => None,
    };
    let hello = Hello {
        boot_id: &boot_id,
        env: env.iter().map(CString::as_c_str).collect(),
        has_memory_events: memory.is_some(),
        has_process_events: processes.is_some(),
        has_listener: listener.is_some(),
    };
    let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
    descriptors.extend(memory.as_ref().map(AsFd::as_fd));
    descriptors.extend(processes.as_ref().map(AsFd::as_fd));
    // Our copy of the listener closes on return: inside, nobody can accept on it or take it over.
    descriptors.extend(listener.as_ref().map(AsFd::as_fd));
    send_all(socket, &hello.encode()?, &descriptors)
}

fn open_first(paths: &[&str]) -> Option<std::fs::File> {
    paths.iter().find_map(|path| std::fs::File::open(path).ok())
}

fn send_all(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Option<()> {
    let mut sent = channel::send(socket, bytes, descriptors).ok()?;
    while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
        sent += channel::send(socket, rest, &[]).ok()?;
    }
    Some(())
}

/// Sleeps until something happens: (a child changed, the addon spoke or went).
fn wait(signals: &OwnedFd, socket: BorrowedFd<'_>) -> (bool, bool) {
    let entry = |fd: RawFd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled = [entry(signals.as_raw_fd()), entry(socket.as_raw_fd())];
    // SAFETY: polls two entries of a local array.
    unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) };
    if polled[0].revents != 0 {
        drain(signals);
    }
    (polled[0].revents != 0, polled[1].revents != 0)
}

fn reap() {
    // SAFETY: collects any child without waiting.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
}

/// Answers one launch. `None` ends the container.
fn serve(socket: BorrowedFd<'_>, program: &CStr) -> Option<()> {
    let body = receive_message(socket, &mut Vec::new(), MAX_LAUNCH_BYTES)?;
    let launch = Launch::decode(&body)?;
    match start_supervisor(&launch, program) {
        Ok(ours) => {
            let descriptors: Vec<BorrowedFd<'_>> = ours.iter().map(AsFd::as_fd).collect();
            send_all(socket, &0_i32.to_le_bytes(), &descriptors)
        }
        Err(errno) => send_all(socket, &errno.to_le_bytes(), &[]),
    }
}

/// Starts this program again as a supervisor that waits for its orders. Returns the addon's descriptors.
fn start_supervisor(launch: &Launch<'_>, program: &CStr) -> Result<Vec<OwnedFd>, i32> {
    let directory = {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: opens a path given as a C string.
        adopt(unsafe { libc::open(launch.cwd.as_ptr(), flags) })?
    };
    let (stdout, stdout_end) = pipe()?;
    let (stderr, stderr_end) = pipe()?;
    let (stdin_end, stdin) = pipe()?;
    let (channel, channel_end) = {
        let mut ends = [0; 2];
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: fills the two descriptors, which are then ours.
        let made = unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) };
        if made != 0 {
            return Err(errno());
        }
        (adopt(ends[0])?, adopt(ends[1])?)
    };
    let argv = [program.as_ptr(), std::ptr::null()];
    let env = [std::ptr::null()];
    // SAFETY: single-threaded; the child makes only async-signal-safe calls. The three ends are above 2, so that
    // dup2 makes real copies, without close-on-exec.
    match unsafe { libc::fork() } {
        -1 => return Err(errno()),
        // SAFETY: as above; the argument arrays end in null.
        0 => unsafe {
            for (target, end) in [&channel_end, &stdout_end, &stderr_end].into_iter().enumerate() {
                libc::dup2(end.as_raw_fd(), target as RawFd);
            }
            libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr());
            libc::_exit(127)
        },
        _ => {}
    }
    Ok(vec![channel, stdout, stderr, directory, stdin_end, stdin])
}

/// (read end, write end), close-on-exec.
fn pipe() -> Result<(OwnedFd, OwnedFd), i32> {
    let mut ends = [0; 2];
    // SAFETY: fills the two descriptors, which are then ours.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(errno());
    }
    Ok((adopt(ends[0])?, adopt(ends[1])?))
}

fn adopt(raw: RawFd) -> Result<OwnedFd, i32> {
    if raw < 0 {
        return Err(errno());
    }
    // SAFETY: every caller passes a descriptor it has just made.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
