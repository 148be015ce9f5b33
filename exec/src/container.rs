//! The messages between the addon and the init of a container. What they carry is explained in `init` (of the
//! binary) and in the addon's `sandbox::docker`; the commands themselves use the messages of `wire`.
//!
//! The init greets with `Hello` when it is up. Each `Launch` is answered with an errno, and on success with the
//! descriptors of one supervisor, all made inside the container.

use crate::wire::{Reader, Writer};
use std::ffi::CStr;

/// Both halves come from one package; the number catches a stale helper.
pub const VERSION: u32 = 1;
/// The kernel's ceiling for an environment is 6 MiB; a hello holds one.
pub const MAX_HELLO_BYTES: usize = 8 * 1024 * 1024;
/// A launch holds one path.
pub const MAX_LAUNCH_BYTES: usize = 16 * 1024;
/// Descriptors of a successful launch, in this order: channel, stdout, stderr, directory, stdin's two ends
/// (the command's, then ours).
pub const LAUNCH_DESCRIPTORS: usize = 6;

/// What the init knows when it starts. Its descriptors follow in the order of the flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Of the kernel that runs the container: equal to ours exactly when it is the same one.
    pub boot_id: &'a CStr,
    /// What the image and the engine set, `NAME=value` each.
    pub env: Vec<&'a CStr>,
    /// A descriptor of the kernel's count of processes killed for memory comes along.
    pub has_memory_events: bool,
    /// One of its count of refused forks.
    pub has_process_events: bool,
    /// One of a TCP listener on the container's loopback.
    pub has_listener: bool,
}

impl<'a> Hello<'a> {
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Writer::new();
        out.number(VERSION);
        out.number(u32::from(self.has_memory_events));
        out.number(u32::from(self.has_process_events));
        out.number(u32::from(self.has_listener));
        out.text(self.boot_id);
        out.texts(&self.env);
        out.finish(MAX_HELLO_BYTES)
    }

    /// Reads the body, without the length in front. `None` for anything malformed.
    pub fn decode(body: &'a [u8]) -> Option<Hello<'a>> {
        let mut reader = Reader::new(body);
        if reader.number()? != VERSION {
            return None;
        }
        let has_memory_events = reader.flag()?;
        let has_process_events = reader.flag()?;
        let has_listener = reader.flag()?;
        let boot_id = reader.text()?;
        let env = reader.texts()?;
        reader.is_empty().then_some(Hello {
            boot_id,
            env,
            has_memory_events,
            has_process_events,
            has_listener,
        })
    }
}

/// Asks for a supervisor whose command will start in `cwd`, a path inside the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch<'a> {
    pub cwd: &'a CStr,
}

impl<'a> Launch<'a> {
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Writer::new();
        out.text(self.cwd);
        out.finish(MAX_LAUNCH_BYTES)
    }

    pub fn decode(body: &'a [u8]) -> Option<Launch<'a>> {
        let mut reader = Reader::new(body);
        let cwd = reader.text()?;
        reader.is_empty().then_some(Launch { cwd })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_and_a_launch_come_back_as_they_were_sent_and_not_when_cut() {
        let hello = Hello {
            boot_id: c"0f-1",
            env: vec![c"PATH=/bin", c"EMPTY="],
            has_memory_events: true,
            has_process_events: false,
            has_listener: true,
        };
        let bytes = hello.encode().unwrap();
        assert_eq!(Hello::decode(&bytes[4..]), Some(hello));
        for cut in 4..bytes.len() {
            assert_eq!(Hello::decode(&bytes[4..cut]), None, "cut at {cut}");
        }
        let launch = Launch { cwd: c"/a b\xff" };
        let bytes = launch.encode().unwrap();
        assert_eq!(Launch::decode(&bytes[4..]), Some(launch));
        assert_eq!(Launch::decode(&[&bytes[4..], b"x"].concat()), None);
    }

    #[test]
    fn a_path_longer_than_a_launch_may_be_is_refused() {
        let long = std::ffi::CString::new(vec![b'a'; MAX_LAUNCH_BYTES]).unwrap();
        assert_eq!(Launch { cwd: &long }.encode(), None);
    }
}
