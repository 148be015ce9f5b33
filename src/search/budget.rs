//! What ends a search before the tree does: a caller who gave up, a deadline, a count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Tells a search that nobody waits for it any more. Asked between files and every few lines.
pub trait Cancel: Sync {
    fn is_cancelled(&self) -> bool;
}

impl Cancel for AtomicBool {
    fn is_cancelled(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
}

impl Cancel for CancellationToken {
    fn is_cancelled(&self) -> bool {
        CancellationToken::is_cancelled(self)
    }
}

/// For callers that always wait to the end.
pub struct NeverCancelled;

impl Cancel for NeverCancelled {
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Why a result is not the whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// More results exist than were asked for.
    MaxResults,
    /// The tree holds more files than one search visits.
    MaxFiles,
    Deadline,
    /// A pattern with look-around or back-references needed too many steps on this line.
    StepLimit {
        path: String,
        line: usize,
    },
}

/// The moment a search must end, and the cancellation it listens to.
pub struct Clock<'a> {
    cancel: &'a dyn Cancel,
    deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    GoOn,
    Cancelled,
    DeadlinePassed,
}

impl<'a> Clock<'a> {
    pub fn new(cancel: &'a dyn Cancel, timeout_ms: Option<u64>) -> Self {
        let deadline = timeout_ms.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        Self { cancel, deadline }
    }

    pub fn tick(&self) -> Tick {
        if self.cancel.is_cancelled() {
            return Tick::Cancelled;
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Tick::DeadlinePassed,
            _ => Tick::GoOn,
        }
    }
}
