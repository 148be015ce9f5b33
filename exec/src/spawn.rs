//! Starts the command: its session, directory, stdin and limits, then `execve`. Watching it is `supervise`.

use crate::cgroup::Leaf;
use croft_exec::wire::{Containment, Event, Limit, Stage, Start};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

pub struct Command {
    pub pid: libc::pid_t,
    pub leaf: Option<Leaf>,
    pub containment: Containment,
}

type Failure = (Stage, i32);

/// The libc crate's constant has the wrong width.
#[cfg(target_os = "linux")]
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Everything the child needs, made ready before the fork: after it only raw calls are safe.
struct Plan<'a> {
    programs: Vec<CString>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    limits: &'a [Limit],
    cwd: RawFd,
    stdin: Option<RawFd>,
    /// Carries (stage, errno) out of the child; closes by itself when `execve` succeeds.
    failure: RawFd,
}

pub fn spawn(start: &Start<'_>, descriptors: Vec<OwnedFd>) -> Result<Command, Failure> {
    let mut descriptors = descriptors.into_iter();
    let cwd = descriptors.next().ok_or((Stage::Message, libc::EBADF))?;
    let stdin = match start.has_stdin {
        true => Some(descriptors.next().ok_or((Stage::Message, libc::EBADF))?),
        false => None,
    };
    let (failed, failure) = close_on_exec_pipe().ok_or((Stage::Fork, errno()))?;
    let plan = Plan {
        programs: candidates(start),
        argv: pointers(&start.argv),
        env: pointers(&start.env),
        limits: &start.limits,
        cwd: cwd.as_raw_fd(),
        stdin: stdin.as_ref().map(AsRawFd::as_raw_fd),
        failure: failure.as_raw_fd(),
    };
    let leaf = start.cgroup.as_ref().and_then(Leaf::create);
    let (pid, in_leaf) = fork(&plan, leaf.as_ref()).map_err(|errno| {
        if let Some(leaf) = &leaf {
            leaf.remove();
        }
        (Stage::Fork, errno)
    })?;
    drop(failure);
    crate::setup::release_output();
    if let Some(failure) = read_failure(&failed) {
        // SAFETY: reaps the child that has just reported and is ending.
        unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        if let Some(leaf) = &leaf {
            leaf.remove();
        }
        return Err(failure);
    }
    let containment = match (in_leaf, cfg!(target_os = "linux")) {
        (true, _) => Containment::Cgroup,
        (false, true) => Containment::Subreaper,
        (false, false) => Containment::Group,
    };
    Ok(Command {
        pid,
        leaf,
        containment,
    })
}

/// The paths to try, as `execvp` would: on the command's own `PATH`, which is not the helper's.
fn candidates(start: &Start<'_>) -> Vec<CString> {
    let name = start.argv[0];
    if name.to_bytes().contains(&b'/') {
        return vec![name.to_owned()];
    }
    let path = start
        .env
        .iter()
        .find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
        .split(|&byte| byte == b':')
        .map(|folder| if folder.is_empty() { &b"."[..] } else { folder })
        .filter_map(|folder| CString::new([folder, b"/", name.to_bytes()].concat()).ok())
        .collect()
}

fn pointers(texts: &[&CStr]) -> Vec<*const libc::c_char> {
    texts
        .iter()
        .map(|text| text.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// Forks; the parent stands still until the child has become the command or failed, so that the failure pipe
/// can be read without waiting. Returns the pid and whether the child was born inside the leaf.
fn fork(plan: &Plan<'_>, leaf: Option<&Leaf>) -> Result<(libc::pid_t, bool), i32> {
    #[cfg(target_os = "linux")]
    {
        // Born in its cgroup: moving it afterwards leaves a window and costs an RCU grace period. Not
        // CLONE_VM: a child on our stack needs a trampoline in assembly, and a process of this size is
        // copied in some 50 us.
        let flags = libc::CLONE_VFORK as u64;
        if let Some(leaf) = leaf {
            let into = flags | CLONE_INTO_CGROUP;
            if let Ok(pid) = clone3(plan, into, leaf.directory.as_raw_fd() as u64) {
                return Ok((pid, true));
            }
        }
        if let Ok(pid) = clone3(plan, flags, 0) {
            return Ok((pid, false));
        }
    }
    let _ = leaf;
    // clone3 is refused by older container engines' filters.
    // SAFETY: single-threaded; the child makes only async-signal-safe calls.
    match unsafe { libc::fork() } {
        -1 => Err(errno()),
        0 => child(plan),
        pid => Ok((pid, false)),
    }
}

#[cfg(target_os = "linux")]
fn clone3(plan: &Plan<'_>, flags: u64, cgroup: u64) -> Result<libc::pid_t, i32> {
    // SAFETY: all-zero clone arguments are valid.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = flags;
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.cgroup = cgroup;
    // SAFETY: without CLONE_VM and without a stack this is a fork; the process has one thread, and the child
    // makes only async-signal-safe calls.
    match unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut arguments,
            size_of::<libc::clone_args>(),
        )
    } {
        -1 => Err(errno()),
        0 => child(plan),
        pid => Ok(pid as libc::pid_t),
    }
}

/// Runs in the child and never returns. Async-signal-safe calls only.
fn child(plan: &Plan<'_>) -> ! {
    let (stage, errno) = match become_command(plan) {
        Ok(never) => match never {},
        Err(failure) => failure,
    };
    let mut bytes = [0_u8; 8];
    bytes[..4].copy_from_slice(&(stage as i32).to_le_bytes());
    bytes[4..].copy_from_slice(&errno.to_le_bytes());
    // SAFETY: writes a local buffer and ends without running any destructor of the parent's copies.
    unsafe {
        libc::write(plan.failure, bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

fn become_command(plan: &Plan<'_>) -> Result<std::convert::Infallible, Failure> {
    // SAFETY: raw calls on values prepared before the fork; the pointer arrays end in null.
    unsafe {
        libc::setsid();
        let forked = Event::Forked {
            pid: libc::getpid() as u32,
        }
        .encode();
        libc::send(0, forked.as_ptr().cast(), forked.len(), 0);
        if libc::fchdir(plan.cwd) != 0 {
            return Err((Stage::Cwd, errno()));
        }
        // Replaces the copy of the channel that the fork made: the command must not hold its own lifeline.
        let stdin = match plan.stdin {
            Some(stdin) => stdin,
            None => libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC),
        };
        if stdin < 0 || libc::dup2(stdin, 0) < 0 {
            return Err((Stage::Stdin, errno()));
        }
        for limit in plan.limits {
            let value = libc::rlimit {
                rlim_cur: limit.soft as _,
                rlim_max: limit.hard as _,
            };
            if libc::setrlimit(limit.resource as _, &value) != 0 {
                return Err((Stage::Limit, errno()));
            }
        }
        // Ignored signals (nohup, and Node's SIGPIPE) and the helper's mask survive an exec unless undone.
        for signal in 1..65 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());

        let mut refused = None;
        let mut last = libc::ENOENT;
        for program in &plan.programs {
            libc::execve(program.as_ptr(), plan.argv.as_ptr(), plan.env.as_ptr());
            last = errno();
            match last {
                libc::ENOENT | libc::ENOTDIR => {}
                // As execvp: a later directory may hold one that may be executed.
                libc::EACCES => refused = Some(last),
                _ => return Err((Stage::Exec, last)),
            }
        }
        Err((Stage::Exec, refused.unwrap_or(last)))
    }
}

fn close_on_exec_pipe() -> Option<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: fills the two descriptors, which are then ours; nothing forks between the calls.
    unsafe {
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return None;
        }
        for end in ends {
            libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        Some((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// What the child reported; `None` when it became the command.
fn read_failure(failed: &OwnedFd) -> Option<Failure> {
    let mut bytes = [0_u8; 8];
    let count = loop {
        // SAFETY: reads into a buffer of the given length.
        let count = unsafe { libc::read(failed.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
        if count >= 0 || errno() != libc::EINTR {
            break count;
        }
    };
    if count != bytes.len() as isize {
        return None;
    }
    let [stage, errno] =
        [0, 4].map(|at| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    let stage = match stage {
        stage if stage == Stage::Cwd as i32 => Stage::Cwd,
        stage if stage == Stage::Stdin as i32 => Stage::Stdin,
        stage if stage == Stage::Limit as i32 => Stage::Limit,
        _ => Stage::Exec,
    };
    Some((stage, errno))
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
