//! Finds and signals every descendant of a process. When and with what is left to the caller.
//!
//! On Linux the kernel's own child lists are walked; a helper that is sub-reaper keeps even a double-forked
//! `setsid` daemon in its tree. Elsewhere an orphan leaves the tree: the command's session and what still descends
//! from it are found, a daemon that left both is not.

/// A supervisor and the command it started, which leads a session and a process group.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub supervisor: u32,
    pub command: u32,
}

/// Signals all living descendants except `skip_group`'s members (a group signalled as a whole before), and says how
/// many there were. One pass: a process forked meanwhile is met by the next one.
pub fn signal(family: Family, signal: i32, skip_group: Option<u32>) -> u32 {
    let mut count = 0;
    walk(family, &mut |process| {
        if process.state == b'Z' {
            return;
        }
        count += 1;
        if skip_group != Some(process.group) {
            deliver(process.pid, family, signal);
        }
    });
    count
}

/// How many descendants are alive.
pub fn count(family: Family) -> u32 {
    let mut count = 0;
    walk(family, &mut |process| count += u32::from(process.state != b'Z'));
    count
}

struct Process {
    pid: u32,
    /// Elsewhere the scan has looked at it already.
    #[cfg(target_os = "linux")]
    parent: u32,
    group: u32,
    state: u8,
}

#[cfg(target_os = "linux")]
fn walk(family: Family, visit: &mut dyn FnMut(&Process)) {
    // Breadth first over an explicit queue: a fork bomb's depth must not become ours. The set keeps a pid that
    // moved while we looked (its parent died, so it is now the reaper's) from being met twice.
    let mut queue = vec![family.supervisor];
    let mut seen = std::collections::HashSet::new();
    let mut next = 0;
    while let Some(&parent) = queue.get(next) {
        next += 1;
        for child in children(parent) {
            if seen.insert(child) {
                if let Some(process) = status(child) {
                    visit(&process);
                }
                queue.push(child);
            }
        }
    }
}

/// The children of every thread of `pid`: a child belongs to the thread that forked it.
#[cfg(target_os = "linux")]
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return found;
    };
    let mut listed = false;
    for thread in threads.flatten() {
        if let Ok(text) = std::fs::read_to_string(thread.path().join("children")) {
            listed = true;
            found.extend(
                text.split_ascii_whitespace()
                    .filter_map(|word| word.parse::<u32>().ok()),
            );
        }
    }
    if !listed {
        // A kernel without CONFIG_PROC_CHILDREN (or a thread that ended under us): ask every process.
        found = all_processes()
            .filter(|process| process.parent == pid)
            .map(|process| process.pid)
            .collect();
    }
    found
}

#[cfg(target_os = "linux")]
fn all_processes() -> impl Iterator<Item = Process> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(status)
}

#[cfg(target_os = "linux")]
fn status(pid: u32) -> Option<Process> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and parentheses; the fields begin after its last closing one.
    let end = text.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some(Process {
        pid,
        state,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

/// Signals `pid` if it still descends from `ancestor`. The number may have been reused since it was listed; a
/// pidfd pins the process first, and only then is its descent looked at.
#[cfg(target_os = "linux")]
fn deliver(pid: u32, family: Family, signal: i32) {
    let ancestor = family.supervisor;
    // SAFETY: pidfd_open takes two numbers.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if pidfd < 0 {
        // Gone, or a kernel before 5.3 or a filter, where the number is all there is.
        if std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH) && descends(pid, ancestor) {
            // SAFETY: kill takes two numbers.
            unsafe { libc::kill(pid as i32, signal) };
        }
        return;
    }
    if descends(pid, ancestor) {
        // SAFETY: signals through a descriptor we own; no signal info is passed.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                pidfd,
                signal,
                std::ptr::null::<u8>(),
                0,
            )
        };
    }
    // SAFETY: the descriptor was opened above and is used nowhere else.
    unsafe { libc::close(pidfd as i32) };
}

#[cfg(target_os = "linux")]
fn descends(pid: u32, ancestor: u32) -> bool {
    let mut at = pid;
    // Bounded: the chain is read while it changes and could, in theory, run in a circle of reused numbers.
    for _ in 0..4096 {
        match status(at) {
            Some(process) if process.parent == ancestor => return true,
            Some(process) if process.parent > 1 => at = process.parent,
            _ => return false,
        }
    }
    false
}

#[cfg(target_os = "macos")]
fn walk(family: Family, visit: &mut dyn FnMut(&Process)) {
    let all = mac::processes();
    let mut found: std::collections::HashSet<u32> = [family.command].into();
    // Parents are not listed before their children, so passes are made until one finds nothing new.
    loop {
        let before = found.len();
        for process in &all {
            if process.session == family.command
                || process.group == family.command
                || found.contains(&process.parent)
            {
                found.insert(process.pid);
            }
        }
        if found.len() == before {
            break;
        }
    }
    for process in all.iter().filter(|process| found.contains(&process.pid)) {
        let state = if process.zombie { b'Z' } else { b'R' };
        visit(&Process {
            pid: process.pid,
            group: process.group,
            state,
        });
    }
}

#[cfg(target_os = "macos")]
fn deliver(pid: u32, _family: Family, signal: i32) {
    // No pidfd here; the number was listed a moment ago and is not reused that fast.
    // SAFETY: kill takes two numbers.
    unsafe { libc::kill(pid as i32, signal) };
}

#[cfg(target_os = "macos")]
mod mac {
    pub struct Listed {
        pub pid: u32,
        pub parent: u32,
        pub group: u32,
        pub session: u32,
        pub zombie: bool,
    }

    pub fn processes() -> Vec<Listed> {
        // SAFETY: a null buffer asks for the number of processes.
        let count = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
        let mut pids = vec![0_i32; usize::try_from(count).unwrap_or(0) + 64];
        let bytes = size_of_val(pids.as_slice()) as i32;
        // SAFETY: the buffer is as long as said; the answer is a number of pids.
        let listed = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) };
        pids.truncate(usize::try_from(listed).unwrap_or(0));
        pids.into_iter().filter_map(look_up).collect()
    }

    fn look_up(pid: i32) -> Option<Listed> {
        // SAFETY: all-zero is a valid proc_bsdinfo, and the size passed is its own.
        let (info, filled) = unsafe {
            let mut info: libc::proc_bsdinfo = std::mem::zeroed();
            let size = size_of::<libc::proc_bsdinfo>() as i32;
            let place = (&raw mut info).cast();
            let filled = libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, place, size);
            (info, filled == size)
        };
        // SAFETY: getsid takes a number.
        let session = unsafe { libc::getsid(pid) };
        filled.then(|| Listed {
            pid: info.pbi_pid,
            parent: info.pbi_ppid,
            group: info.pbi_pgid,
            session: u32::try_from(session).unwrap_or(0),
            zombie: info.pbi_status == libc::SZOMB,
        })
    }
}

/// Elsewhere the process group is all there is, and the caller signals that as a whole.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn walk(_family: Family, _visit: &mut dyn FnMut(&Process)) {}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn deliver(_pid: u32, _family: Family, _signal: i32) {}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, clippy::zombie_processes)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn below(supervisor: u32) -> Family {
        Family {
            supervisor,
            command: supervisor,
        }
    }

    #[test]
    fn grandchildren_are_counted_and_a_stranger_is_not_signalled() {
        // `cat` waits for its stdin, so nothing here depends on time.
        let mut shell = Command::new("sh")
            .args(["-c", "cat & cat; wait"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stranger = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        while count(below(shell.id())) < 1 {
            std::thread::yield_now();
        }
        deliver(stranger.id(), below(shell.id()), libc::SIGKILL);
        assert_eq!(stranger.try_wait().unwrap(), None);
        while signal(below(shell.id()), libc::SIGKILL, None) > 0 {
            std::thread::yield_now();
        }
        drop(shell.stdin.take());
        shell.wait().unwrap();
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
