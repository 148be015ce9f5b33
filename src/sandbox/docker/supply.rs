//! Where a command gets its container: a fresh one, one started ahead of need, or the one of its session. What
//! runs in it is left to `run`.

use super::container::{Container, Yard};
use super::egress::Egress;
use super::mounts::Root;
use super::options::Reuse;
use crate::error::{Error, ErrorCode, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Containers that wait for each directory. One is taken while the other starts.
const READY: usize = 2;
/// Directories for which containers wait; those of the one that was used least recently make room.
const MAX_ROOTS: usize = 4;

type Starting = JoinHandle<Result<Container>>;
type SessionSlot = Arc<tokio::sync::Mutex<Option<Arc<Container>>>>;

pub struct Supply {
    yard: Arc<Yard>,
    egress: Arc<Egress>,
    reuse: Reuse,
    starts: TaskTracker,
    /// The most recently used directory last.
    ready: Mutex<Vec<(Root, VecDeque<Starting>)>>,
    sessions: Mutex<HashMap<Root, SessionSlot>>,
}

/// A container for one command.
pub enum Lease {
    Own(Box<Container>),
    Shared(Arc<Container>),
}

impl Lease {
    pub fn container(&self) -> &Container {
        match self {
            Lease::Own(container) => container,
            Lease::Shared(container) => container,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supply {
    pub fn new(yard: Arc<Yard>, egress: Arc<Egress>) -> Self {
        Supply {
            reuse: yard.options.reuse,
            yard,
            egress,
            starts: TaskTracker::new(),
            ready: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    /// Safe to cancel: a start goes on as a task of its own, and what comes of it is removed.
    pub async fn lease(&self, root: &Root) -> Result<Lease> {
        match self.reuse {
            Reuse::Command => Ok(Lease::Own(Box::new(finished(self.start(root)).await?))),
            Reuse::Pool => Ok(Lease::Own(Box::new(self.pooled(root).await?))),
            Reuse::Session => Ok(Lease::Shared(self.of_session(root).await?)),
        }
    }

    fn start(&self, root: &Root) -> Starting {
        let (yard, egress, root) = (self.yard.clone(), self.egress.clone(), root.clone());
        self.starts.spawn(async move { yard.start(&root, &egress).await })
    }

    async fn pooled(&self, root: &Root) -> Result<Container> {
        while let Some(starting) = self.pop(root) {
            // One that died while it waited (an engine restarted), or failed to start, is no answer: what holds for
            // a new one decides.
            if let Ok(container) = finished(starting).await
                && !container.is_gone().await
            {
                return Ok(container);
            }
        }
        finished(self.start(root)).await
    }

    /// The one that has waited longest; tops the rest up.
    fn pop(&self, root: &Root) -> Option<Starting> {
        let mut ready = lock(&self.ready);
        let known = ready.iter().position(|(other, _)| other == root);
        let mut waiting = known.map(|at| ready.remove(at).1).unwrap_or_default();
        let up = waiting.iter().position(JoinHandle::is_finished);
        let taken = match up {
            Some(at) => waiting.remove(at),
            None => waiting.pop_front(),
        };
        while waiting.len() < READY {
            waiting.push_back(self.start(root));
        }
        ready.push((root.clone(), waiting));
        if ready.len() > MAX_ROOTS {
            // Dropping a handle lets go of its container, now or once it has started.
            drop(ready.remove(0));
        }
        taken
    }

    async fn of_session(&self, root: &Root) -> Result<Arc<Container>> {
        let slot = lock(&self.sessions).entry(root.clone()).or_default().clone();
        // First commands that come together wait for one start.
        let mut held = slot.lock().await;
        if let Some(container) = held.as_ref()
            && !container.is_gone().await
        {
            return Ok(container.clone());
        }
        let container = Arc::new(finished(self.start(root)).await?);
        *held = Some(container.clone());
        Ok(container)
    }

    /// Gives a container back. One with something left alive in it is not used again.
    pub async fn give_back(&self, lease: Lease, root: &Root, clean: bool) -> Option<JoinHandle<()>> {
        match lease {
            Lease::Own(container) => Some(container.remove()),
            Lease::Shared(_) if clean => None,
            Lease::Shared(container) => {
                let slot = lock(&self.sessions).get(root).cloned();
                if let Some(slot) = slot {
                    let mut held = slot.lock().await;
                    if held
                        .as_ref()
                        .is_some_and(|current| Arc::ptr_eq(current, &container))
                    {
                        *held = None;
                    }
                }
                container.end().await;
                None
            }
        }
    }

    /// Removes what waits. The caller has seen to it that nothing runs.
    pub async fn close(&self) {
        self.starts.close();
        self.starts.wait().await;
        lock(&self.ready).clear();
        lock(&self.sessions).clear();
    }
}

async fn finished(starting: Starting) -> Result<Container> {
    let panicked = |_| Error::new(ErrorCode::Internal, "starting a container failed unexpectedly");
    starting.await.map_err(panicked)?
}
