//! The helper that waits for the next command, so that the command need not wait for a helper: about half of what
//! `true` takes. Giving it its orders is left to `start`.

use super::start::Helper;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// How long one waits. A workspace that rests holds no process.
const IDLE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Ready {
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    helper: Option<Helper>,
    /// When the helper that waits has waited long enough.
    until: Option<Instant>,
    /// Somebody is about to put one here.
    filling: bool,
    /// A task looks after `until`.
    watched: bool,
    closed: bool,
}

impl Ready {
    pub(super) fn take(&self) -> Option<Helper> {
        let helper = self.place().helper.take()?;
        helper.wake();
        Some(helper)
    }

    /// Starts the next one, unless one waits. A failure is the next command's to meet, and to explain.
    pub(super) fn refill(self: &Arc<Self>) {
        {
            let mut place = self.place();
            if place.closed || place.filling || place.helper.is_some() {
                return;
            }
            place.filling = true;
        }
        let helper = Helper::spawn().ok();
        let mut place = self.place();
        place.filling = false;
        if place.closed {
            return;
        }
        place.until = Some(Instant::now() + IDLE);
        place.helper = helper;
        if !place.watched {
            place.watched = true;
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }

    /// Ends the one that waits, and returns once it has been reaped. None waits from here on.
    pub async fn close(&self) {
        let helper = self.shut();
        if let Some(helper) = helper {
            helper.end().await;
        }
    }

    /// As `close`, without waiting.
    pub fn abandon(&self) {
        drop(self.shut());
    }

    fn shut(&self) -> Option<Helper> {
        let mut place = self.place();
        place.closed = true;
        place.helper.take()
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When to look again; `None` when there is nothing to look after any more.
    pub(super) fn look(&self) -> Option<Instant> {
        let mut place = self.place();
        let until = place.until.filter(|_| place.helper.is_some() || place.filling);
        match until {
            Some(until) if until > Instant::now() => Some(until),
            _ => {
                place.watched = false;
                drop(place.helper.take());
                None
            }
        }
    }
}

#[cfg(test)]
impl Ready {
    /// The process number of the one that waits.
    pub(super) fn waiting(&self) -> Option<u32> {
        self.place().helper.as_ref().and_then(Helper::pid)
    }

    /// As if it had waited long enough.
    pub(super) fn let_time_pass(&self) {
        self.place().until = Some(Instant::now());
    }
}

/// Holds the workspace only weakly: the helper ends with it.
async fn watch(ready: Weak<Ready>) {
    while let Some(until) = ready.upgrade().and_then(|ready| ready.look()) {
        tokio::time::sleep_until(until).await;
    }
}
