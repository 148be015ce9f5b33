//! One writer at a time, process-wide, for each file: by device and inode, and by directory and name.
//!
//! Both keys are needed. The inode alone changes with every atomic replacement and does not exist before the
//! first; the name alone differs between two spellings on a case-insensitive file system. Links and other
//! workspaces meet at the same keys, because they are taken after resolution.

use std::collections::HashSet;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    File((u64, u64)),
    Name((u64, u64), Vec<u8>),
}

/// Held until it is dropped.
pub(super) struct Lock {
    key: Key,
    /// Another writer had it first.
    pub(super) waited: bool,
}

static HELD: LazyLock<(Mutex<HashSet<Key>>, Condvar)> = LazyLock::new(Default::default);

fn held() -> MutexGuard<'static, HashSet<Key>> {
    HELD.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `None` when cancelled while waiting.
pub(super) fn lock(key: Key, cancel: Option<&CancellationToken>) -> Option<Lock> {
    let mut held = held();
    let mut waited = false;
    while held.contains(&key) {
        if cancel.is_some_and(CancellationToken::is_cancelled) {
            return None;
        }
        waited = true;
        // Wakes on its own only to look at the token.
        let (again, _) = HELD
            .1
            .wait_timeout(held, Duration::from_millis(50))
            .unwrap_or_else(PoisonError::into_inner);
        held = again;
    }
    held.insert(key.clone());
    Some(Lock { key, waited })
}

impl Drop for Lock {
    fn drop(&mut self) {
        held().remove(&self.key);
        HELD.1.notify_all();
    }
}
