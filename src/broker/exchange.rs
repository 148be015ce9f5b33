//! One request and its answer as the operator sees them: counted while they run, reported once at the end.

use crate::broker::edge::wire::Wire;
use crate::broker::event::{Counters, Event, EventSink, Kind, add};
use crate::broker::refusal::{Reason, Refusal};
use crate::broker::route::Target;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub struct Exchange {
    wire: Arc<Wire>,
    counters: Arc<Counters>,
    sink: Option<EventSink>,
    started: Instant,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    complete: AtomicBool,
    /// The request's last byte was handed to the upstream's connection.
    /// Milliseconds after the start, plus one; 0: not yet.
    sent: AtomicU64,
    finished: AtomicBool,
    /// Kept only when somebody listens, until it is reported.
    event: Mutex<Option<Event>>,
}

pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

impl Exchange {
    pub fn begin(
        wire: Arc<Wire>,
        counters: Arc<Counters>,
        sink: Option<EventSink>,
        listener: &Arc<str>,
        method: &str,
    ) -> Arc<Self> {
        add(&counters.requests, 1);
        add(&counters.active_requests, 1);
        let event = sink.as_ref().map(|_| Event {
            kind: if method == "CONNECT" {
                Kind::Tunnel
            } else {
                Kind::Request
            },
            time_ms: now_ms(),
            listener: listener.clone(),
            method: method.to_owned(),
            host: None,
            port: None,
            path: None,
            allowed: false,
            injected: false,
            reason: None,
            status: 0,
            bytes_in: 0,
            bytes_out: 0,
            duration_ms: 0.0,
        });
        Arc::new(Self {
            wire,
            counters,
            sink,
            started: Instant::now(),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            complete: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            event: Mutex::new(event),
        })
    }

    fn note(&self, change: impl FnOnce(&mut Event)) {
        let mut event = self.event.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = event.as_mut() {
            change(event);
        }
    }

    pub fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }

    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    pub fn allowed(&self, target: &Target) {
        self.note(|event| {
            event.allowed = true;
            event.injected = event.kind == Kind::Request
                && target.rule.as_ref().is_some_and(|rule| !rule.headers.is_empty());
            event.host = Some(target.host.to_string());
            event.port = Some(target.port);
            if event.kind == Kind::Request {
                event.path = Some(target.path.path().to_owned());
            }
        });
    }

    /// Before any upstream was contacted, or after.
    pub fn refused(&self, refusal: &Refusal, contacted: bool) {
        add(
            if contacted {
                &self.counters.failed
            } else {
                &self.counters.refused
            },
            1,
        );
        self.note(|event| {
            event.reason = Some(refusal.reason);
            event.allowed &= contacted;
            event.injected &= contacted;
            if event.host.is_none() {
                event.host.clone_from(&refusal.host);
            }
        });
    }

    pub fn status(&self, status: u16) {
        self.note(|event| event.status = status);
    }

    pub fn upgraded(&self) {
        self.note(|event| event.kind = Kind::Upgrade);
    }

    pub fn broke(&self, reason: Reason) {
        self.note(|event| event.reason = event.reason.or(Some(reason)));
    }

    pub fn upstream_broke(&self) {
        add(&self.counters.failed, 1);
        self.broke(if self.wire.has_bad_body() {
            Reason::BadFraming
        } else {
            Reason::UpstreamFailed
        });
    }

    pub fn add_in(&self, n: usize) {
        self.bytes_in.fetch_add(n as u64, Ordering::Relaxed);
        add(&self.counters.bytes_in, n as u64);
    }

    pub fn add_out(&self, n: usize) {
        self.bytes_out.fetch_add(n as u64, Ordering::Relaxed);
        add(&self.counters.bytes_out, n as u64);
    }

    pub fn sent(&self) {
        self.sent.store(self.elapsed_ms() + 1, Ordering::Relaxed);
    }

    pub fn was_sent(&self) -> bool {
        self.sent.load(Ordering::Relaxed) > 0
    }

    pub fn sent_ms_ago(&self) -> Option<u64> {
        let sent = self.sent.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.elapsed_ms().saturating_sub(sent))
    }

    fn elapsed_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// The answer's last byte was taken by the client's connection.
    pub fn complete(&self) {
        self.complete.store(true, Ordering::Relaxed);
    }

    /// Reports once; frees the client's connection for its next request.
    pub fn finish(&self) {
        if self.finished.swap(true, Ordering::AcqRel) {
            return;
        }
        self.counters.active_requests.fetch_sub(1, Ordering::Relaxed);
        self.report();
        self.wire.answered();
    }

    fn report(&self) {
        let event = self.event.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(mut event), Some(sink)) = (event, &self.sink) else {
            return;
        };
        if !self.complete.load(Ordering::Relaxed) && event.reason.is_none() {
            event.reason = Some(Reason::ClientGone);
        }
        event.bytes_in = self.bytes_in.load(Ordering::Relaxed);
        event.bytes_out = self.bytes_out.load(Ordering::Relaxed);
        event.duration_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        sink(event);
    }
}

/// An exchange whose future is dropped (client gone, broker closed) is still reported.
impl Drop for Exchange {
    fn drop(&mut self) {
        self.finish();
    }
}
