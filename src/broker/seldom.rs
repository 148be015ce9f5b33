//! A future that is seldom ready beside one that is polled often: polled only after it has asked to be. Knows nothing of the
//! broker.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The ends of a connection (closing, draining, idle) are a lock each to ask, several times per request.
pub struct Seldom<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Default)]
struct Bell {
    rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    fn listen(&self, waker: &Waker) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = task.as_ref() {
            waker.wake_by_ref();
        }
    }
}

impl<F: Future> Seldom<F> {
    pub fn new(future: F) -> Self {
        let bell = Arc::new(Bell::default());
        bell.rung.store(true, Ordering::Relaxed);
        Self {
            future: Box::pin(future),
            waker: bell.clone().into(),
            bell,
        }
    }
}

impl<F: Future> Future for Seldom<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Before the look at the flag: a ring in between is not missed.
        self.bell.listen(cx.waker());
        if !self.bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let Self { future, waker, .. } = &mut *self;
        future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn a_seldom_future_is_polled_when_it_asks_and_not_between() {
        let (ready, polls) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (inner_ready, inner_polls) = (ready.clone(), polls.clone());
        let mut inner = Box::pin(async move { inner_ready.notified().await });
        let mut seldom = Seldom::new(std::future::poll_fn(move |cx| {
            inner_polls.fetch_add(1, Ordering::Relaxed);
            inner.as_mut().poll(cx)
        }));
        for _ in 0..10 {
            let outcome = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut seldom).poll(cx))).await;
            assert!(outcome.is_pending());
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        ready.notify_one();
        seldom.await;
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_ring_from_another_thread_is_never_missed() {
        for round in 0..2_000u64 {
            let ready = Arc::new(Notify::new());
            let other = ready.clone();
            let task = tokio::spawn(Seldom::new(async move { ready.notified().await }));
            if round % 2 == 0 {
                tokio::task::yield_now().await;
            }
            other.notify_one();
            tokio::time::timeout(Duration::from_secs(10), task)
                .await
                .unwrap()
                .unwrap();
        }
    }
}
