//! Status, diff and commit through the git command line, hardened: nothing that a repository configures is run,
//! nothing of the caller's GIT_* variables counts, and each call ends in time. Running it is left to `process`.
//!
//! The command line and not a library, because it is what users know: ignore rules, attributes, index formats.

#[cfg(unix)]
mod commit;
mod explain;
#[cfg(unix)]
mod own;
#[cfg(unix)]
mod repository;
mod settings;
mod status;

#[cfg(unix)]
pub use commit::Committed;
#[cfg(unix)]
pub use repository::{Git, GitOptions};
pub use status::Status;
