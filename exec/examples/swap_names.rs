//! Test tool: exchanges two names in a tight loop, as an attacker would while a file tool works on one of them.
//! `swap_names A B` says `go` once it runs and exchanges until it is killed; `swap_names A B once` does it once.

#[cfg(target_os = "linux")]
fn main() {
    use std::ffi::CString;
    use std::io::Write;
    let args: Vec<String> = std::env::args().collect();
    let (Some(a), Some(b)) = (args.get(1), args.get(2)) else {
        eprintln!("usage: swap_names A B [once]");
        std::process::exit(2);
    };
    let (Ok(a), Ok(b)) = (CString::new(a.as_str()), CString::new(b.as_str())) else {
        std::process::exit(2);
    };
    // Bound, so that a forgotten swapper ends by itself.
    let times = if args.get(3).is_some() { 1 } else { 2_000_000_000 };
    let _ = std::io::stdout().write_all(b"go\n");
    for _ in 0..times {
        // SAFETY: both strings outlive the call and end in NUL.
        unsafe {
            libc::renameat2(
                libc::AT_FDCWD,
                a.as_ptr(),
                libc::AT_FDCWD,
                b.as_ptr(),
                libc::RENAME_EXCHANGE,
            )
        };
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}
