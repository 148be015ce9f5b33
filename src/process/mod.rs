//! Commands: started through `croft-exec`, bounded in time and output, ended with everything they started.
//! Whether a command may run is left to `policy`, what it may see of the host to `sandbox`.

pub mod output;

#[cfg(unix)]
pub mod background;
#[cfg(unix)]
mod cgroup;
#[cfg(unix)]
pub mod env;
#[cfg(unix)]
pub mod exec;
#[cfg(unix)]
mod helper;
#[cfg(unix)]
pub use helper::path as helper_path;
#[cfg(unix)]
pub mod host;
mod newest;
#[cfg(unix)]
mod pump;
#[cfg(unix)]
pub mod ready;
#[cfg(unix)]
pub mod start;
#[cfg(unix)]
mod stream;
#[cfg(unix)]
pub mod supervise;
#[cfg(unix)]
pub mod venv;

/// Longest time between SIGTERM and SIGKILL that a call may ask for.
pub const MAX_KILL_GRACE_MS: u32 = 60_000;

#[cfg(all(test, target_os = "linux"))]
mod tests;
