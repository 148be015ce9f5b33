//! What the parts of one client connection know about each other: the guard that reads, the service that answers, the
//! watch that ends it.

use crate::broker::refusal::Reason;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::sync::Notify;

#[derive(Debug)]
pub struct Wire {
    born: Instant,
    /// Heads handed to hyper.
    heads: AtomicU64,
    /// Answers finished: the guard lets the next head through only when this equals `heads`.
    answers: AtomicU64,
    /// Requests that wait for an upstream; no byte is expected to move then.
    waiting: AtomicU32,
    last_activity_ms: AtomicU64,
    reject: Mutex<Option<Reason>>,
    bad_body: AtomicBool,
    reader: Mutex<Option<Waker>>,
    /// hyper runs.
    in_poll: AtomicBool,
    /// An answer ended since the guard last looked for a head.
    must_read: AtomicBool,
    /// The client has sent its FIN while its request was in progress.
    pub fin: Notify,
}

impl Wire {
    pub fn new() -> Self {
        Self {
            born: Instant::now(),
            heads: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            last_activity_ms: AtomicU64::new(0),
            reject: Mutex::new(None),
            bad_body: AtomicBool::new(false),
            reader: Mutex::new(None),
            in_poll: AtomicBool::new(false),
            must_read: AtomicBool::new(false),
            fin: Notify::new(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.born.elapsed().as_millis() as u64
    }

    pub fn touch(&self) {
        self.last_activity_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    pub fn quiet_ms(&self) -> u64 {
        self.now_ms()
            .saturating_sub(self.last_activity_ms.load(Ordering::Relaxed))
    }

    pub fn head_taken(&self) {
        self.heads.fetch_add(1, Ordering::AcqRel);
    }

    /// The answer to the current request is complete, or will never be.
    pub fn answered(&self) {
        self.answers.fetch_add(1, Ordering::AcqRel);
        self.must_read.store(true, Ordering::SeqCst);
        if !self.in_poll.load(Ordering::SeqCst) {
            self.wake_reader();
        }
    }

    /// The guard looks for the next head.
    pub fn reads_on(&self) {
        self.must_read.store(false, Ordering::SeqCst);
    }

    /// Lets hyper run. It mostly goes on to read by itself after an answer; a wake for each would cost every request one
    /// more turn of the task.
    pub fn during_poll<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.in_poll.store(true, Ordering::SeqCst);
        let outcome = poll(cx);
        self.in_poll.store(false, Ordering::SeqCst);
        if outcome.is_pending() && self.must_read.swap(false, Ordering::SeqCst) {
            cx.waker().wake_by_ref();
        }
        outcome
    }

    pub fn heads(&self) -> u64 {
        self.heads.load(Ordering::Acquire)
    }

    pub fn is_serving(&self) -> bool {
        self.answers.load(Ordering::Acquire) < self.heads()
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Suspends the idle limit while it lives.
    pub fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }

    pub fn reject(&self, reason: Reason) {
        *self.reject.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }

    pub fn take_reject(&self) -> Option<Reason> {
        self.reject.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn set_bad_body(&self) {
        self.bad_body.store(true, Ordering::Release);
    }

    pub fn has_bad_body(&self) -> bool {
        self.bad_body.load(Ordering::Acquire)
    }

    pub fn register_reader(&self, cx: &Context<'_>) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if !reader.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *reader = Some(cx.waker().clone());
        }
    }

    pub fn wake_reader(&self) {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = reader {
            waker.wake();
        }
    }
}

impl Default for Wire {
    fn default() -> Self {
        Self::new()
    }
}

pub struct Waiting<'a>(&'a Wire);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        self.0.touch();
    }
}
