//! Several threads on one walk. The caller's thread starts alone; once the tree has turned out to be big, helpers
//! come, and whoever is idle is handed the part of another's task that would be done last. So the parts stay in
//! order, and a walk that ends early has mostly done what comes early.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::descend::{Directory, Frame, Task};
use super::{Output, Visitor, Walk};
use crate::error::{Error, Result};

const MAX_THREADS: usize = 8;

/// What a thread asks while it works.
pub(super) trait Share {
    /// Nobody needs the rest of this task.
    fn is_over(&self) -> bool;
    /// Somebody is idle. Called after every entry.
    fn wants_work(&self) -> bool;
    fn give(&self, task: Option<Task>);
}

/// Walks everything below `directory`; the outputs follow each other.
pub(super) fn run<V: Visitor>(walk: &Walk<'_, V>, directory: Directory) -> Result<Vec<Output<V::Hit>>> {
    let helpers = walk.options.threads.unwrap_or_else(threads).clamp(1, MAX_THREADS) - 1;
    let crew = Crew::new(walk.max_results, walk.options.max_files_scanned);
    let task = Task::new(Frame::whole(directory));
    std::thread::scope(|scope| {
        let call_helpers = || {
            for _ in 0..helpers {
                // Without a thread to be had the others, or this one, do the work.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || crew.help(walk));
            }
        };
        let entries_alone = walk.visitor.entries_alone();
        let lead = Lead {
            crew: &crew,
            part: 0,
            helpers,
            entries_alone,
            entries: Cell::new(0),
            call: &call_helpers,
        };
        crew.work(walk, 0, task, &lead);
        crew.help(walk);
    });
    crew.into_outputs()
}

fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

struct Crew<H> {
    state: Mutex<State<H>>,
    changed: Condvar,
    /// Idle threads that no task is waiting for.
    idle: AtomicUsize,
    over: AtomicBool,
    max_results: usize,
    max_files: usize,
}

struct State<H> {
    waiting: Vec<(usize, Task)>,
    /// Each part's output, once it is done, and the part that follows it.
    parts: Vec<Part<H>>,
    /// Parts that a thread is at work on.
    active: usize,
    error: Option<Error>,
}

struct Part<H> {
    output: Option<Output<H>>,
    next: Option<usize>,
}

impl<H: Send> Crew<H> {
    fn new(max_results: usize, max_files: usize) -> Self {
        let first = Part {
            output: None,
            next: None,
        };
        let state = State {
            waiting: Vec::new(),
            parts: vec![first],
            active: 1,
            error: None,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            idle: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            max_results,
            max_files,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<H>> {
        // A panic elsewhere is re-raised by the scope; the state is a list of finished parts either way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes tasks until there are none and none can come.
    fn help<V: Visitor<Hit = H>>(&self, walk: &Walk<'_, V>) {
        while let Some((part, task)) = self.next_task() {
            self.work(walk, part, task, &Helper { crew: self, part });
        }
    }

    fn work<V: Visitor<Hit = H>>(&self, walk: &Walk<'_, V>, part: usize, task: Task, share: &dyn Share) {
        // A panic in a visitor must not leave the others waiting for this part.
        let guard = FinishOnPanic { crew: self, part };
        let done = walk.descend(task, share);
        std::mem::forget(guard);
        self.finish(part, done);
    }

    fn next_task(&self) -> Option<(usize, Task)> {
        let mut state = self.lock();
        loop {
            if self.over.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(task) = state.waiting.pop() {
                state.active += 1;
                return Some(task);
            }
            if state.active == 0 {
                return None;
            }
            self.idle.fetch_add(1, Ordering::Relaxed);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Puts a task in line behind the part it was cut from.
    fn give(&self, from: usize, task: Task) {
        let mut state = self.lock();
        let part = state.parts.len();
        let next = state.parts[from].next.replace(part);
        state.parts.push(Part { output: None, next });
        state.waiting.push((part, task));
        // Taken back here and not by the thread that wakes up, or several would give to the same one.
        let _ = self
            .idle
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |idle| idle.checked_sub(1));
        self.changed.notify_one();
    }

    fn finish(&self, part: usize, done: Result<Output<H>>) {
        let mut state = self.lock();
        state.active -= 1;
        match done {
            Ok(output) => state.parts[part].output = Some(output),
            Err(error) => {
                state.error.get_or_insert(error);
            }
        }
        let over = state.error.is_some() || state.is_enough(self.max_results, self.max_files);
        if over {
            self.over.store(true, Ordering::Relaxed);
        }
        if over || (state.active == 0 && state.waiting.is_empty()) {
            self.changed.notify_all();
        }
    }

    /// The outputs from the first part to the last, or to where the result is known to end.
    fn into_outputs(self) -> Result<Vec<Output<H>>> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error {
            return Err(error);
        }
        let mut outputs = Vec::with_capacity(state.parts.len());
        let mut at = Some(0);
        while let Some(part) = at {
            match state.parts[part].output.take() {
                Some(output) => outputs.push(output),
                None => break,
            }
            at = state.parts[part].next;
        }
        Ok(outputs)
    }
}

impl<H> State<H> {
    /// Whether the parts done without a gap hold all that will be shown.
    fn is_enough(&self, max_results: usize, max_files: usize) -> bool {
        let (mut weight, mut files) = (0, 0);
        let mut at = Some(0);
        while let Some(part) = at {
            let Some(output) = &self.parts[part].output else {
                return false;
            };
            weight += output.weight();
            files += output.files();
            if weight > max_results || files > max_files || output.stop.is_some() {
                return true;
            }
            at = self.parts[part].next;
        }
        false
    }
}

struct FinishOnPanic<'a, H: Send> {
    crew: &'a Crew<H>,
    part: usize,
}

impl<H: Send> Drop for FinishOnPanic<'_, H> {
    fn drop(&mut self) {
        self.crew.finish(self.part, Ok(Output::default()));
    }
}

/// The caller's thread on the first part.
struct Lead<'a, H: Send> {
    crew: &'a Crew<H>,
    part: usize,
    helpers: usize,
    entries_alone: usize,
    entries: Cell<usize>,
    call: &'a dyn Fn(),
}

impl<H: Send> Share for Lead<'_, H> {
    fn is_over(&self) -> bool {
        self.crew.over.load(Ordering::Relaxed)
    }

    fn wants_work(&self) -> bool {
        let entries = self.entries.get() + 1;
        self.entries.set(entries);
        if entries == self.entries_alone && self.helpers > 0 {
            (self.call)();
        }
        self.crew.idle.load(Ordering::Relaxed) > 0
    }

    fn give(&self, task: Option<Task>) {
        if let Some(task) = task {
            self.crew.give(self.part, task);
        }
    }
}

struct Helper<'a, H: Send> {
    crew: &'a Crew<H>,
    part: usize,
}

impl<H: Send> Share for Helper<'_, H> {
    fn is_over(&self) -> bool {
        self.crew.over.load(Ordering::Relaxed)
    }

    fn wants_work(&self) -> bool {
        self.crew.idle.load(Ordering::Relaxed) > 0
    }

    fn give(&self, task: Option<Task>) {
        if let Some(task) = task {
            self.crew.give(self.part, task);
        }
    }
}
