//! What is said about a command that did not start, or did not end as asked.

use super::{CommandLine, Ended};
use crate::error::{Error, ErrorCode};
use crate::process::start::StartFailure;
use croft_exec::wire::{Leftover, Stage};
use std::io;
use std::time::Duration;

/// Says in the caller's terms why nothing was started.
pub fn explain(failure: StartFailure, command: &CommandLine, cwd: &str) -> Error {
    let (stage, errno) = match failure {
        StartFailure::Other(error) => return error,
        StartFailure::Command { stage, errno } => (stage, errno),
    };
    let reason = io::Error::from_raw_os_error(errno);
    let program = command.program();
    let text = match (stage, errno) {
        (Stage::Cwd, _) => {
            return Error::new(
                ErrorCode::SpawnFailed,
                format!("cwd \"{cwd}\" cannot be entered: {reason}"),
            )
            .at(cwd);
        }
        (Stage::Exec, libc::ENOENT) => {
            let way_out = match command {
                CommandLine::Shell { .. } => "set the shell option to one that exists",
                CommandLine::Program(_) => "check its name, or the PATH in env",
            };
            format!("\"{program}\" was not found: {way_out}")
        }
        (Stage::Exec, libc::EACCES) => format!("\"{program}\" is not executable"),
        (Stage::Exec, libc::E2BIG) => {
            "the command line and the environment are longer than the system allows \
             (one argument: 128 KiB): write the text to a file and run that"
                .into()
        }
        (Stage::Exec, _) => format!("\"{program}\" could not be run: {reason}"),
        (Stage::Fork, _) => format!("the system has no room for another process ({reason}): end some first"),
        (Stage::Limit, _) => format!("a limit could not be set: {reason}"),
        (Stage::Stdin, _) => format!("stdin could not be opened: {reason}"),
        (Stage::Message, _) => "croft-exec does not match this version of croft: reinstall croft".into(),
    };
    Error::new(ErrorCode::SpawnFailed, text)
}

/// How a call ended, as far as a note has to tell it.
pub(super) struct Ending {
    pub ended: Ended,
    pub timeout: Option<Duration>,
    /// Whether the helper told how the command ended.
    pub status_known: bool,
    /// How many processes outlived the command's own.
    pub left: Option<u32>,
    pub leftover: Leftover,
}

impl Ending {
    /// One sentence for the model; `None` when all is as it looks.
    pub(super) fn note(&self) -> Option<String> {
        match (self.ended, self.status_known, self.left) {
            (Ended::ByTimeout, _, _) => {
                let limit = self.timeout.unwrap_or_default().as_millis();
                Some(format!(
                    "The command did not finish within {limit} ms and was ended with everything it had started. \
                     Give it more time, or run it with background: true."
                ))
            }
            (Ended::ByAbort, _, _) => {
                Some("The command was aborted and ended with everything it had started.".into())
            }
            (Ended::ByItself, false, _) => Some(
                "The supervisor of this command was killed, so how the command ended is not known. What it had \
                 started was ended as far as it could be found."
                    .into(),
            ),
            (Ended::ByItself, true, Some(left @ 1..)) => {
                let (processes, were) = if left == 1 { ("process", "was") } else { ("processes", "were") };
                Some(match self.leftover {
                    Leftover::Kill => format!(
                        "{left} {processes} the command left running {were} ended. To keep one running, start it \
                         with background: true."
                    ),
                    Leftover::Keep => format!("{left} {processes} the command started {were} left running."),
                })
            }
            (Ended::ByItself, true, _) => None,
        }
    }
}
