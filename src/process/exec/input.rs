//! What is written to a command's stdin while it runs.

use crate::error::Result;
use crate::process::start::resources;
use std::io;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe;

/// Text that waits to be written to the command.
pub(super) struct Input {
    pipe: pipe::Sender,
    bytes: Vec<u8>,
    written: usize,
}

pub(super) fn input_pipe(
    input: Option<Vec<u8>>,
    given: Option<(OwnedFd, OwnedFd)>,
) -> Result<(Option<OwnedFd>, Option<Input>)> {
    let Some(bytes) = input else {
        return Ok((None, None));
    };
    let (theirs, ours) = match given {
        Some(ends) => ends,
        None => io::pipe()
            .map(|(theirs, ours)| (theirs.into(), ours.into()))
            .map_err(resources)?,
    };
    let pipe = pipe::Sender::from_owned_fd(ours).map_err(resources)?;
    Ok((
        Some(theirs),
        Some(Input {
            pipe,
            bytes,
            written: 0,
        }),
    ))
}

impl Input {
    /// True when there is nothing more to write: all is out, or the command closed its stdin.
    pub(super) async fn write_some(&mut self) -> bool {
        let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) else {
            return true;
        };
        if self.pipe.writable().await.is_err() {
            return true;
        }
        match self.pipe.try_write(rest) {
            Ok(count) => {
                self.written += count;
                self.written >= self.bytes.len()
            }
            Err(error) => !matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
            ),
        }
    }
}

/// Never returns when there is no input.
pub(super) async fn write_input(input: &mut Option<Input>) -> bool {
    match input {
        Some(input) => input.write_some().await,
        None => std::future::pending().await,
    }
}
