//! Commands that run on while the agent does something else: started, read, ended, listed, and told about in the
//! next turn. Each is looked after by a task of its own (`pump`).

use super::newest::{Newest, Unread};
use super::pump;
use super::supervise::Running;
use crate::error::{Error, ErrorCode, Result};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Finished processes that have been read stay known so long as no more than this many are.
const MAX_FINISHED: usize = 256;
/// Characters of a command shown in a list.
const PREVIEW_CHARS: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Running,
    /// Ended by itself, or by a signal that was not ours.
    Exited,
    /// Ended by `kill` or `close`.
    Killed,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Exited => "exited",
            Status::Killed => "killed",
        }
    }
}

/// One background process, shared by the list and the task that looks after it.
pub struct Process {
    pub id: String,
    pub pid: u32,
    pub command: String,
    state: Mutex<State>,
    /// Counts changes, for readers that wait.
    changed: watch::Sender<u64>,
    pub kill: CancellationToken,
}

struct State {
    output: Newest,
    status: Status,
    exit_code: Option<i32>,
    /// The end has been told to a reader.
    delivered: bool,
}

/// What a read returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOutput {
    pub output: String,
    pub dropped_chars: u64,
    pub status: Status,
    pub exit_code: Option<i32>,
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub pid: u32,
    pub command: String,
    pub status: Status,
    pub exit_code: Option<i32>,
}

impl Process {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every critical section leaves the state whole, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, text: &str) {
        if !text.is_empty() {
            self.state().output.push(text);
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// The first end counts.
    pub fn finish(&self, exit_code: i32) {
        let mut state = self.state();
        if state.status != Status::Running {
            return;
        }
        state.status = if self.kill.is_cancelled() {
            Status::Killed
        } else {
            Status::Exited
        };
        state.exit_code = Some(exit_code);
        drop(state);
        self.changed.send_modify(|count| *count += 1);
    }

    fn take(&self) -> ReadOutput {
        let mut state = self.state();
        let Unread { text, dropped_chars } = state.output.take();
        state.delivered = state.status != Status::Running;
        ReadOutput {
            output: text,
            dropped_chars,
            status: state.status,
            exit_code: state.exit_code,
        }
    }

    pub fn listed(&self) -> Listed {
        let state = self.state();
        Listed {
            id: self.id.clone(),
            pid: self.pid,
            command: self.command.clone(),
            status: state.status,
            exit_code: state.exit_code,
        }
    }

    fn is_running(&self) -> bool {
        self.state().status == Status::Running
    }

    /// Until `ready` holds or the time is over.
    async fn wait(&self, until: Instant, ready: impl Fn(&State) -> bool) {
        let mut changes = self.changed.subscribe();
        while !ready(&self.state()) {
            if tokio::time::timeout_at(until, changes.changed()).await.is_err() {
                return;
            }
        }
    }
}

/// The background processes of one workspace.
#[derive(Default)]
pub struct Background {
    /// In order of their start.
    processes: Mutex<Vec<Arc<Process>>>,
}

impl Background {
    fn processes(&self) -> MutexGuard<'_, Vec<Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a running command over. `exit_code` is known already when only descendants of it still run.
    pub fn add(
        &self,
        running: Running,
        command: String,
        max_output_chars: usize,
        grace: Duration,
        exit_code: Option<i32>,
    ) -> Arc<Process> {
        let process = self.adopt(running.pid, command, max_output_chars);
        tokio::spawn(pump::run(running, process.clone(), grace, exit_code));
        process
    }

    /// Lists a process that somebody else looks after: who pushes its output, heeds `kill` and tells its end.
    pub fn adopt(&self, pid: u32, command: String, max_output_chars: usize) -> Arc<Process> {
        let mut processes = self.processes();
        let process = Arc::new(Process {
            id: fresh_id(&processes),
            pid,
            command,
            state: Mutex::new(State {
                output: Newest::new(max_output_chars),
                status: Status::Running,
                exit_code: None,
                delivered: false,
            }),
            changed: watch::Sender::new(0),
            kill: CancellationToken::new(),
        });
        forget_oldest(&mut processes);
        processes.push(process.clone());
        process
    }

    /// New output since the last read. Waits for some, or for the end, at most `wait`.
    pub async fn read(&self, id: &str, wait: Duration, cancel: &CancellationToken) -> Result<ReadOutput> {
        let process = self.find(id)?;
        let ready = |state: &State| state.status != Status::Running || !state.output.is_empty();
        tokio::select! {
            () = process.wait(Instant::now() + wait, ready) => Ok(process.take()),
            () = cancel.cancelled() => Err(Error::new(ErrorCode::Aborted, "the call was aborted; no output was taken")),
        }
    }

    /// Ends the process and everything it started, and returns its last output. Idempotent.
    pub async fn kill(&self, id: &str, patience: Duration) -> Result<ReadOutput> {
        let process = self.find(id)?;
        if process.is_running() {
            process.kill.cancel();
            process
                .wait(Instant::now() + patience, |state| state.status != Status::Running)
                .await;
        }
        Ok(process.take())
    }

    /// Asks all of them to end, and waits for none.
    pub fn end_all(&self) {
        self.processes().iter().for_each(|process| process.kill.cancel());
    }

    /// Ends all of them at once.
    pub async fn kill_all(&self, patience: Duration) {
        let running: Vec<_> = self
            .processes()
            .iter()
            .filter(|process| process.is_running())
            .cloned()
            .collect();
        running.iter().for_each(|process| process.kill.cancel());
        let until = Instant::now() + patience;
        for process in running {
            process.wait(until, |state| state.status != Status::Running).await;
        }
    }

    /// In order of their start. Takes no output.
    pub fn list(&self) -> Vec<Listed> {
        self.processes().iter().map(|process| process.listed()).collect()
    }

    fn find(&self, id: &str) -> Result<Arc<Process>> {
        let processes = self.processes();
        if let Some(process) = processes.iter().find(|process| process.id == id) {
            return Ok(process.clone());
        }
        let known: Vec<String> = processes
            .iter()
            .map(|process| summary(&process.listed()))
            .collect();
        let known = if known.is_empty() {
            "there are none".into()
        } else {
            format!("known are {}", known.join(", "))
        };
        Err(Error::new(
            ErrorCode::ProcessNotFound,
            format!(
                "no background process \"{}\": {known}; processes do not survive a restart",
                preview(id)
            ),
        ))
    }

    /// For the next turn of the model: what runs, and each end until it has been read once.
    pub fn status_reminder(&self) -> Option<String> {
        let mut text = String::new();
        for process in self.processes().iter() {
            if process.state().delivered {
                continue;
            }
            let listed = process.listed();
            let unread = if listed.status == Status::Running {
                ""
            } else {
                ", not read yet"
            };
            let _ = write!(
                text,
                "\n- {}{unread}: {}",
                summary(&listed),
                preview(&listed.command)
            );
        }
        (!text.is_empty()).then(|| format!("Background processes of this workspace:{text}"))
    }
}

fn summary(listed: &Listed) -> String {
    match (listed.status, listed.exit_code) {
        (Status::Running, _) => format!("{} (running)", listed.id),
        (Status::Exited, Some(code)) => format!("{} (exited with code {code})", listed.id),
        (Status::Exited, None) => format!("{} (exited)", listed.id),
        (Status::Killed, _) => format!("{} (killed)", listed.id),
    }
}

/// One line, short, and nothing in it that could pass for the end of the message it stands in.
fn preview(command: &str) -> String {
    let mut text: String = command.chars().take(PREVIEW_CHARS).collect();
    if text.len() < command.len() {
        text.push('…');
    }
    text.escape_debug().to_string().replace('<', "\\u{3c}")
}

/// Not counted up: an id from an earlier session in a transcript must not name another process now.
fn fresh_id(processes: &[Arc<Process>]) -> String {
    let mut taken: HashMap<&str, ()> = processes
        .iter()
        .map(|process| (process.id.as_str(), ()))
        .collect();
    let mut number = getrandom::u32().unwrap_or_default();
    loop {
        let id = format!("bg-{:06x}", number & 0x00FF_FFFF);
        if taken.remove(id.as_str()).is_none() {
            return id;
        }
        number = number.wrapping_add(1);
    }
}

/// Makes room when many processes have come and gone; what was not read, or runs, stays.
fn forget_oldest(processes: &mut Vec<Arc<Process>>) {
    let finished = processes
        .iter()
        .filter(|process| process.state().delivered)
        .count();
    let mut excess = (finished + 1).saturating_sub(MAX_FINISHED);
    processes.retain(|process| {
        let forget = excess > 0 && process.state().delivered;
        excess -= usize::from(forget);
        !forget
    });
}
