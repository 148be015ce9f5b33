//! Our end of a container's socket: what its init says of itself, and supervisors on request. What runs under a
//! supervisor is left to `process`.

use croft_exec::channel;
use croft_exec::container::{Hello, LAUNCH_DESCRIPTORS, Launch, MAX_HELLO_BYTES};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use tokio::net::UnixStream;

/// A container whose init has greeted.
pub struct Channel {
    stream: UnixStream,
    pub env: Vec<CString>,
    memory_events: Option<File>,
    process_events: Option<File>,
}

/// A supervisor that waits for its orders, and what belongs to it.
pub struct Launched {
    pub channel: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub cwd: OwnedFd,
    /// (the command's end, ours).
    pub stdin: (OwnedFd, OwnedFd),
}

#[derive(Debug)]
pub enum LaunchFailure {
    /// The container is gone or does not behave.
    Gone,
    /// Inside, the working directory could not be entered or no process be started.
    Refused(io::Error),
}

/// How often a limit was met since the container started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limited {
    pub memory: u64,
    pub processes: u64,
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the init of the container sent nonsense",
    )
}

impl Channel {
    /// Hears the init out. Also returns the listener it made, if it was asked for one.
    pub async fn greet(stream: UnixStream) -> io::Result<(Channel, Option<std::net::TcpListener>)> {
        let mut descriptors = Vec::new();
        let mut length = [0; 4];
        fill(&stream, &mut length, &mut descriptors).await?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_HELLO_BYTES {
            return Err(malformed());
        }
        let mut body = vec![0; length];
        fill(&stream, &mut body, &mut descriptors).await?;
        let hello = Hello::decode(&body).ok_or_else(malformed)?;
        if !is_our_kernel(hello.boot_id) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the container runs on another kernel",
            ));
        }
        let mut descriptors = descriptors.into_iter();
        let mut next = |present: bool| match present {
            true => descriptors.next().map(Some).ok_or_else(malformed),
            false => Ok(None),
        };
        let memory_events = next(hello.has_memory_events)?.map(File::from);
        let process_events = next(hello.has_process_events)?.map(File::from);
        let listener = next(hello.has_listener)?.map(std::net::TcpListener::from);
        let env = hello.env.into_iter().map(CStr::to_owned).collect();
        let channel = Channel {
            stream,
            env,
            memory_events,
            process_events,
        };
        Ok((channel, listener))
    }

    /// Not safe to cancel: the answer would be taken for that of the next request.
    pub async fn launch(&mut self, cwd: &CStr) -> Result<Launched, LaunchFailure> {
        let request = Launch { cwd }
            .encode()
            .ok_or_else(|| LaunchFailure::Refused(io::Error::from_raw_os_error(libc::ENAMETOOLONG)))?;
        let mut rest = request.as_slice();
        while !rest.is_empty() {
            self.stream.writable().await.map_err(|_| LaunchFailure::Gone)?;
            match self.stream.try_write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(LaunchFailure::Gone),
            }
        }
        let (mut answer, mut descriptors) = ([0; 4], Vec::new());
        let answered = fill(&self.stream, &mut answer, &mut descriptors).await;
        answered.map_err(|_| LaunchFailure::Gone)?;
        match i32::from_le_bytes(answer) {
            0 => {}
            errno => return Err(LaunchFailure::Refused(io::Error::from_raw_os_error(errno))),
        }
        let all: [OwnedFd; LAUNCH_DESCRIPTORS] = descriptors.try_into().map_err(|_| LaunchFailure::Gone)?;
        let [channel, stdout, stderr, cwd, stdin_end, stdin] = all;
        Ok(Launched {
            channel,
            stdout,
            stderr,
            cwd,
            stdin: (stdin_end, stdin),
        })
    }

    /// The init exits, and the kernel ends everything else in the container.
    pub fn hang_up(&self) {
        let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Both);
    }

    /// The init never speaks unasked: anything to be read is the end.
    pub fn is_closed(&self) -> bool {
        let mut byte = [0];
        !matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// By descriptor, so that it also answers for a container that is on its way out.
    pub fn limited(&self) -> Limited {
        let count = |file: &Option<File>, name: &str| {
            let mut text = [0; 1024];
            let length = file
                .as_ref()
                .and_then(|file| file.read_at(&mut text, 0).ok())
                .unwrap_or(0);
            counter(
                &String::from_utf8_lossy(text.get(..length).unwrap_or_default()),
                name,
            )
        };
        Limited {
            memory: count(&self.memory_events, "oom_kill"),
            processes: count(&self.process_events, "max"),
        }
    }
}

/// `name N` on a line of its own; 0 when it is not there.
fn counter(text: &str, name: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}

fn is_our_kernel(boot_id: &CStr) -> bool {
    let own = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    !own.trim().is_empty() && own.trim().as_bytes() == boot_id.to_bytes()
}

async fn fill(stream: &UnixStream, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        stream.readable().await?;
        let received = stream.try_io(tokio::io::Interest::READABLE, || {
            channel::receive(stream.as_fd(), rest, descriptors)
        });
        match received {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::counter;

    #[test]
    fn counters_are_read_from_both_generations_of_cgroups() {
        let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        let v2 = "low 0\nhigh 0\nmax 7\noom 2\noom_kill 1\noom_group_kill 0\n";
        assert_eq!(
            (
                counter(v1, "oom_kill"),
                counter(v2, "oom_kill"),
                counter(v2, "max")
            ),
            (3, 1, 7)
        );
        assert_eq!(counter("", "oom_kill"), 0);
    }
}
