//! Test tool: runs a command under a seccomp filter that makes openat2(2) fail, as gVisor (ENOSYS) and old
//! container profiles (EPERM) do. `deny_openat2 ENOSYS|EPERM COMMAND [ARG ...]`

#[cfg(target_os = "linux")]
fn main() {
    use std::os::unix::process::CommandExt;
    let mut args = std::env::args_os().skip(1);
    let errno = match args.next().as_deref().and_then(|name| name.to_str()) {
        Some("ENOSYS") => libc::ENOSYS,
        Some("EPERM") => libc::EPERM,
        _ => usage(),
    };
    let Some(command) = args.next() else { usage() };
    deny_openat2(errno as u32);
    let error = std::process::Command::new(command).args(args).exec();
    eprintln!("deny_openat2: {error}");
    std::process::exit(127);
}

#[cfg(target_os = "linux")]
fn usage() -> ! {
    eprintln!("usage: deny_openat2 ENOSYS|EPERM COMMAND [ARG ...]");
    std::process::exit(2);
}

#[cfg(target_os = "linux")]
fn deny_openat2(errno: u32) {
    // Offset of `nr` in struct seccomp_data is 0; openat2 has the same number on every architecture.
    let nr = libc::SYS_openat2 as u32;
    let code = |class: u32| class as u16;
    let mut filter = [
        libc::sock_filter {
            code: code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS),
            jt: 0,
            jf: 0,
            k: 0,
        },
        libc::sock_filter {
            code: code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K),
            jt: 0,
            jf: 1,
            k: nr,
        },
        libc::sock_filter {
            code: code(libc::BPF_RET | libc::BPF_K),
            jt: 0,
            jf: 0,
            k: libc::SECCOMP_RET_ERRNO | errno,
        },
        libc::sock_filter {
            code: code(libc::BPF_RET | libc::BPF_K),
            jt: 0,
            jf: 0,
            k: libc::SECCOMP_RET_ALLOW,
        },
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: `program` and the filter it points to live until both calls return; the kernel copies them.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &program as *const libc::sock_fprog,
            ) != 0
    };
    if failed {
        eprintln!("deny_openat2: {}", std::io::Error::last_os_error());
        std::process::exit(2);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
