//! Commands: started through `croft-exec`, bounded in time and output, ended with everything they started.
//! Whether a command may run is left to `policy`, what it may see of the host to `sandbox`.

#[cfg(unix)]
mod cgroup;
pub mod env;
#[cfg(unix)]
pub mod exec;
#[cfg(unix)]
mod helper;
pub mod output;
#[cfg(unix)]
pub mod supervise;
#[cfg(unix)]
pub mod venv;

#[cfg(unix)]
pub use cgroup::is_available as cgroup_is_available;

#[cfg(all(test, target_os = "linux"))]
mod tests;
