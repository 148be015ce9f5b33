//! The whole table again where `openat2` is really denied: a seccomp filter as container runtimes lay one, with the
//! answer of an old profile (ENOSYS) and of a strict one (EPERM).

use crate::support::{Ground, in_child};
use std::cell::Cell;

const ASKED: &str = "CROFT_TEST_DENY_OPENAT2";

thread_local! {
    static DENIED: Cell<bool> = const { Cell::new(false) };
}

/// Lays the filter on this thread, once, if the process was started to test under it.
pub fn deny_if_asked() {
    let Ok(errno) = std::env::var(ASKED) else { return };
    let errno = if errno == "ENOSYS" {
        libc::ENOSYS
    } else {
        libc::EPERM
    };
    DENIED.with(|denied| {
        if !denied.replace(true) {
            deny_openat2(errno.unsigned_abs());
        }
    });
}

/// Four instructions: load the call's number; `openat2` gets the errno, all else is allowed. The number is the same
/// on every architecture.
fn deny_openat2(errno: u32) {
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_openat2 as u32,
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: plain integers; the program and its filter live until the call returns.
    let laid = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    assert!(laid, "no seccomp here: {}", std::io::Error::last_os_error());
}

#[test]
fn every_case_holds_with_openat2_denied() {
    for errno in ["ENOSYS", "EPERM"] {
        for tests in [
            "confine::",
            "routed::",
            "write::",
            "special::",
            "denied::the_denial_is_real",
        ] {
            in_child(tests, &[(ASKED, errno)]);
        }
    }
}

#[test]
fn the_denial_is_real() {
    let Ok(asked) = std::env::var(ASKED) else { return };
    let ground = Ground::new();
    let how = rustix::fs::ResolveFlags::BENEATH;
    let none = rustix::fs::Mode::empty();
    let root = std::fs::File::open(&ground.root).unwrap();
    let error = rustix::fs::openat2(&root, ".", rustix::fs::OFlags::RDONLY, none, how).unwrap_err();
    let expected = if asked == "ENOSYS" {
        rustix::io::Errno::NOSYS
    } else {
        rustix::io::Errno::PERM
    };
    assert_eq!(error, expected);
}
