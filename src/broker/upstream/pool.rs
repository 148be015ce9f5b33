//! Idle upstream connections, by scheme, host, port and rule: a connection opened under one rule serves no other.

use crate::broker::body::RequestBody;
use crate::broker::route::{Scheme, Target};
use http::HeaderValue;
use hyper::client::conn::http1::SendRequest;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    scheme: Scheme,
    authority: HeaderValue,
    rule: Option<usize>,
}

impl Key {
    /// `authority` is the target's.
    pub fn of(target: &Target, authority: HeaderValue) -> Self {
        Self {
            scheme: target.scheme,
            authority,
            rule: target.rule.as_ref().map(|rule| rule.id),
        }
    }
}

/// A connection in use. It stays on the address that was checked when it was opened.
pub struct Lease {
    pub key: Key,
    pub sender: SendRequest<RequestBody>,
    pub trusted: bool,
    /// Came out of the pool, so the upstream may have closed it meanwhile.
    pub pooled: bool,
    /// It ends at an upstream proxy, which wants absolute targets and perhaps a credential.
    pub through: Option<Option<HeaderValue>>,
}

struct Idle {
    lease: Lease,
    since: Instant,
}

pub struct Pool {
    max_idle_per_host: usize,
    max_idle: Duration,
    idle: Mutex<HashMap<Key, Vec<Idle>>>,
}

impl Pool {
    pub fn new(max_idle_per_host: usize, max_idle: Duration) -> Self {
        Self {
            max_idle_per_host,
            max_idle,
            idle: Mutex::new(HashMap::new()),
        }
    }

    /// The most recently used one that can take a request now.
    pub fn take(&self, key: &Key) -> Option<Lease> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let list = idle.get_mut(key)?;
        while list
            .last()
            .is_some_and(|last| last.lease.sender.is_closed() || last.since.elapsed() > self.max_idle)
        {
            list.pop();
        }
        let ready = list.iter().rposition(|one| one.lease.sender.is_ready())?;
        Some(Lease {
            pooled: true,
            ..list.remove(ready).lease
        })
    }

    pub fn put(&self, lease: Lease) {
        if lease.sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let list = match idle.get_mut(&lease.key) {
            Some(list) => list,
            None => idle.entry(lease.key.clone()).or_default(),
        };
        if list.len() < self.max_idle_per_host {
            list.push(Idle {
                lease,
                since: Instant::now(),
            });
        }
    }

    /// Closes what has been idle too long.
    pub fn sweep(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|_, list| {
            list.retain(|one| !one.lease.sender.is_closed() && one.since.elapsed() <= self.max_idle);
            !list.is_empty()
        });
    }

    pub fn clear(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
