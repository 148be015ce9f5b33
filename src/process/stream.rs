//! One of a command's output pipes: when it has something, and what. Keeping it is left to the reader.

use super::output::Decoder;
use std::io;
use tokio::net::unix::pipe;

pub struct OutputPipe {
    /// `None` once it has ended.
    pub pipe: Option<pipe::Receiver>,
    pub decoder: Decoder,
}

pub enum Read {
    Bytes(usize),
    Nothing,
    End,
}

impl OutputPipe {
    pub fn new(pipe: Option<pipe::Receiver>) -> Self {
        OutputPipe {
            pipe,
            decoder: Decoder::default(),
        }
    }

    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Never returns once the pipe has ended. Safe to cancel.
    pub async fn readable(&self) {
        match &self.pipe {
            Some(pipe) => drop(pipe.readable().await),
            None => std::future::pending().await,
        }
    }

    /// As `read`, without asking the runtime whether there is something: it may not have had time to look.
    pub fn read_now(&mut self, buffer: &mut [u8]) -> Read {
        let Some(pipe) = &self.pipe else {
            return Read::Nothing;
        };
        match rustix::io::read(pipe, buffer) {
            Ok(count @ 1..) => Read::Bytes(count),
            Ok(0) | Err(_) => Read::End,
        }
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> Read {
        let Some(pipe) = &self.pipe else {
            return Read::Nothing;
        };
        match pipe.try_read(buffer) {
            Ok(count @ 1..) => Read::Bytes(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Read::Nothing,
            Ok(0) | Err(_) => {
                self.pipe = None;
                Read::End
            }
        }
    }
}
