//! Bodies on their way through: counted, never collected. Back-pressure is hyper's: a frame is asked for only when the
//! other side can take it.

use crate::broker::exchange::Exchange;
use crate::broker::inject::may_be_trailer;
use crate::broker::limits::EXPECT_WAIT_MS;
use crate::broker::scrub::Scrubber;
use crate::broker::upstream::pool::{Lease, Pool};
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Sleep, sleep};

/// Opens when the upstream says `100 Continue`.
#[derive(Debug, Default)]
pub struct ExpectGate {
    open: AtomicBool,
    opened: Arc<Notify>,
}

impl ExpectGate {
    pub fn open(&self) {
        self.open.store(true, Ordering::Release);
        self.opened.notify_waiters();
    }
}

/// A gate from a body's side: hyper tells the client `100 Continue` when the body is first asked for, so it is not
/// asked for before the upstream has said so (or kept silent for a second).
pub struct Expecting {
    gate: Arc<ExpectGate>,
    opened: Pin<Box<OwnedNotified>>,
    timeout: Pin<Box<Sleep>>,
}

impl Expecting {
    pub fn new(gate: Arc<ExpectGate>) -> Self {
        let opened = Box::pin(gate.opened.clone().notified_owned());
        Self {
            gate,
            opened,
            timeout: Box::pin(sleep(Duration::from_millis(EXPECT_WAIT_MS))),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // The waiter is registered before the flag is read: an opening in between is not missed.
        let notified = self.opened.as_mut().poll(cx).is_ready();
        if notified || self.gate.open.load(Ordering::Acquire) || self.timeout.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

pub enum RequestBody {
    Empty,
    Stream {
        inner: Incoming,
        expecting: Option<Expecting>,
        exchange: Arc<Exchange>,
    },
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let RequestBody::Stream {
            inner,
            expecting,
            exchange,
        } = self.get_mut()
        else {
            return Poll::Ready(None);
        };
        if let Some(gate) = expecting {
            ready!(gate.poll(cx));
            *expecting = None;
        }
        let frame = ready!(Pin::new(&mut *inner).poll_frame(cx));
        if frame.is_none() || inner.is_end_stream() {
            exchange.sent();
        }
        Poll::Ready(frame.map(|frame| frame.map(|frame| pass(frame, |n| exchange.add_in(n)))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            RequestBody::Empty => true,
            RequestBody::Stream { inner, .. } => inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            RequestBody::Empty => SizeHint::with_exact(0),
            RequestBody::Stream { inner, .. } => inner.size_hint(),
        }
    }
}

/// Counts data; of trailers lets pass what may be one.
fn pass(frame: Frame<Bytes>, count: impl Fn(usize)) -> Frame<Bytes> {
    match frame.into_data() {
        Ok(data) => {
            count(data.len());
            Frame::data(data)
        }
        Err(frame) => match frame.into_trailers() {
            Ok(mut trailers) => {
                let unwanted: Vec<_> = trailers
                    .keys()
                    .filter(|name| !may_be_trailer(name))
                    .cloned()
                    .collect();
                for name in unwanted {
                    trailers.remove(name);
                }
                Frame::trailers(trailers)
            }
            Err(frame) => frame,
        },
    }
}

/// What still goes to the client. Dropping it ends the exchange, whether its last byte was sent or not.
pub enum ResponseBody {
    /// The broker's own words.
    Own {
        text: Option<Bytes>,
        exchange: Option<Arc<Exchange>>,
    },
    Stream(Box<StreamBody>),
    /// The answer of a tunnel: what follows is no body.
    Tunnel,
}

pub struct StreamBody {
    inner: Incoming,
    exchange: Arc<Exchange>,
    scrub: Option<Scrub>,
    /// 304 with a Content-Length: the length is that of a body which is not sent. hyper strikes it out for a body that
    /// says it is empty, and keeps it for one that says nothing.
    bare: bool,
    /// Goes back to the pool when the body has ended.
    lease: Option<(Arc<Pool>, Lease)>,
}

struct Scrub {
    scrubber: Scrubber,
    held: BytesMut,
    after: VecDeque<Frame<Bytes>>,
}

impl StreamBody {
    pub fn new(
        inner: Incoming,
        exchange: Arc<Exchange>,
        scrubber: Option<Scrubber>,
        bare: bool,
        lease: (Arc<Pool>, Lease),
    ) -> Box<Self> {
        let scrub = scrubber.map(|scrubber| Scrub {
            scrubber,
            held: BytesMut::new(),
            after: VecDeque::new(),
        });
        let mut body = Box::new(Self {
            inner,
            exchange,
            scrub,
            bare,
            lease: Some(lease),
        });
        if body.inner.is_end_stream() {
            body.end();
        }
        body
    }

    fn end(&mut self) {
        self.exchange.complete();
        // Answered before the request was sent whole: the connection is busy with the rest.
        if let Some((pool, lease)) = self.lease.take()
            && self.exchange.was_sent()
        {
            pool.put(lease);
        }
    }

    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            None => {
                self.end();
                return Poll::Ready(None);
            }
            Some(Err(error)) => {
                self.exchange.upstream_broke();
                return Poll::Ready(Some(Err(error)));
            }
            Some(Ok(frame)) => pass(frame, |n| self.exchange.add_out(n)),
        };
        if self.scrub.is_none() && self.inner.is_end_stream() {
            self.end();
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn poll_scrubbed(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        loop {
            if let Some(frame) = self.scrub.as_mut().and_then(|scrub| scrub.after.pop_front()) {
                return Poll::Ready(Some(Ok(frame)));
            }
            let next = ready!(self.poll_inner(cx));
            let Some(scrub) = &mut self.scrub else {
                return Poll::Ready(next);
            };
            match next {
                None => match scrub.flush() {
                    Some(rest) => return Poll::Ready(Some(Ok(Frame::data(rest)))),
                    None => return Poll::Ready(None),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        if let Some(masked) = scrub.push(&data) {
                            return Poll::Ready(Some(Ok(Frame::data(masked))));
                        }
                    }
                    Err(trailers) => match scrub.flush() {
                        Some(rest) => {
                            scrub.after.push_back(trailers);
                            return Poll::Ready(Some(Ok(Frame::data(rest))));
                        }
                        None => return Poll::Ready(Some(Ok(trailers))),
                    },
                },
            }
        }
    }
}

impl Scrub {
    fn push(&mut self, data: &[u8]) -> Option<Bytes> {
        self.held.extend_from_slice(data);
        self.scrubber.mask(&mut self.held);
        let keep = self.scrubber.pending(&self.held);
        let out = self.held.split_to(self.held.len() - keep).freeze();
        (!out.is_empty()).then_some(out)
    }

    fn flush(&mut self) -> Option<Bytes> {
        let out = self.held.split().freeze();
        (!out.is_empty()).then_some(out)
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            ResponseBody::Own { text, .. } => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            ResponseBody::Stream(body) if body.scrub.is_some() => body.poll_scrubbed(cx),
            ResponseBody::Stream(body) => body.poll_inner(cx),
            ResponseBody::Tunnel => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Own { text, .. } => text.is_none(),
            ResponseBody::Stream(body) if body.bare => false,
            ResponseBody::Stream(body) => {
                body.scrub
                    .as_ref()
                    .is_none_or(|s| s.held.is_empty() && s.after.is_empty())
                    && body.inner.is_end_stream()
            }
            ResponseBody::Tunnel => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Own { text, .. } => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            // Masking keeps every length, but held bytes make the rest of the inner body shorter than ours.
            ResponseBody::Stream(body) if body.scrub.as_ref().is_some_and(|s| !s.held.is_empty()) => {
                SizeHint::default()
            }
            ResponseBody::Stream(body) if body.bare => SizeHint::default(),
            ResponseBody::Stream(body) => body.inner.size_hint(),
            ResponseBody::Tunnel => SizeHint::with_exact(0),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        match self {
            ResponseBody::Own { exchange, .. } => {
                if let Some(exchange) = exchange.take() {
                    exchange.complete();
                    exchange.finish();
                }
            }
            ResponseBody::Stream(body) => body.exchange.finish(),
            ResponseBody::Tunnel => {}
        }
    }
}
