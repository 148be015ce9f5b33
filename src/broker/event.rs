//! What the operator is told: one event per request, tunnel or refused peer, and running totals. Never a header
//! value, a query, a body or a resolved address.

use crate::broker::refusal::Reason;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    Tunnel,
    Upgrade,
    /// A connection that was refused before any request.
    Connection,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Request => "request",
            Kind::Tunnel => "tunnel",
            Kind::Upgrade => "upgrade",
            Kind::Connection => "connection",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Event {
    pub kind: Kind,
    /// Milliseconds since 1970, when the request arrived.
    pub time_ms: u64,
    /// The listener's URL.
    pub listener: Arc<str>,
    pub method: String,
    pub host: Option<String>,
    pub port: Option<u16>,
    /// Without query; the query may hold secrets.
    pub path: Option<String>,
    pub allowed: bool,
    /// Whether headers were injected.
    pub injected: bool,
    /// Why it was refused or broke off.
    pub reason: Option<Reason>,
    pub status: u16,
    /// Body or tunnel bytes from the client.
    pub bytes_in: u64,
    /// Body or tunnel bytes to the client.
    pub bytes_out: u64,
    pub duration_ms: f64,
}

pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: AtomicU64,)* }

        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Stats { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            pub fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Open client connections, tunnels included.
    connections,
    /// Open tunnels and upgraded connections.
    tunnels,
    /// Requests in progress.
    active_requests,
    /// Requests and tunnels so far.
    requests,
    /// Of those, refused before any upstream was contacted.
    refused,
    /// Of those, failed afterwards.
    failed,
    bytes_in,
    bytes_out,
    /// Upstream connections opened.
    upstream_connections,
}

pub fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Counts one up while it lives.
#[derive(Debug)]
pub struct Gauge<F: Fn(&Counters) -> &AtomicU64> {
    counters: Arc<Counters>,
    pick: F,
}

impl<F: Fn(&Counters) -> &AtomicU64> Gauge<F> {
    pub fn new(counters: Arc<Counters>, pick: F) -> Self {
        pick(&counters).fetch_add(1, Ordering::Relaxed);
        Self { counters, pick }
    }
}

impl<F: Fn(&Counters) -> &AtomicU64> Drop for Gauge<F> {
    fn drop(&mut self) {
        (self.pick)(&self.counters).fetch_sub(1, Ordering::Relaxed);
    }
}
