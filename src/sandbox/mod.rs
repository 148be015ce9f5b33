//! Places where commands run apart from the host. Each takes a command and answers as `process` does on the host;
//! choosing one is left to the caller.

#[cfg(unix)]
pub mod docker;
