//! Where `croft-exec` is. Starting it is left to `supervise`.

use crate::error::{Error, ErrorCode, Result};
use std::path::PathBuf;
use std::sync::OnceLock;

const NAME: &str = "croft-exec";

/// The helper beside the shared object this code was loaded from: both come from one platform package, and no
/// search path or environment variable decides what supervises commands.
pub fn path() -> Result<&'static PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(locate).as_ref().ok_or_else(|| {
        Error::new(
            ErrorCode::SpawnFailed,
            "croft-exec, which supervises commands, is missing beside the native addon: reinstall croft \
             (in a clone: npm run build)",
        )
    })
}

#[cfg(not(test))]
fn locate() -> Option<PathBuf> {
    let helper = own_object()?.parent()?.join(NAME);
    helper.is_file().then_some(helper)
}

/// Tests run from target/<profile>/deps; cargo puts the helper one folder up once it is asked to build it.
#[cfg(test)]
fn locate() -> Option<PathBuf> {
    let profile = own_object()?.parent()?.parent()?.to_path_buf();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = std::process::Command::new(cargo);
    build
        .args(["build", "-q", "-p", "croft-exec", "--target-dir"])
        .arg(profile.parent()?);
    build.args([
        "--manifest-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
    ]);
    if profile.ends_with("release") {
        build.arg("--release");
    }
    build.status().ok()?.success().then(|| profile.join(NAME))
}

/// The file this code was loaded from.
fn own_object() -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: an all-zero Dl_info is valid; dladdr fills it for an address inside this object, and the name it
    // points at lives as long as the object is loaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(own_object as *const libc::c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = std::ffi::CStr::from_ptr(info.dli_fname).to_bytes();
        std::fs::canonicalize(std::ffi::OsStr::from_bytes(name)).ok()
    }
}
