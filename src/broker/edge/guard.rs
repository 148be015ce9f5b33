//! The strict edge on a socket: hyper reads through it and sees one checked message at a time. A bad head is replaced
//! by a harmless one and the reason left on the `Wire`, so that the service answers in the broker's own words.

use crate::broker::edge::chunk::ChunkCheck;
use crate::broker::edge::head::{self, Framing, HeadLimits, HeadScan};
use crate::broker::edge::wire::Wire;
use crate::broker::refusal::Reason;
use bytes::{Buf, BytesMut};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::io::poll_read_buf;

/// Bytes of a next request taken in while the present one is served.
const MAX_EARLY_BYTES: usize = 16 * 1024;
/// What a closing connection still reads, so that a client in the middle of sending gets to see the answer.
const LINGER_MS: u64 = 1_000;
const MAX_SPLIT_EMPTY_LINES: usize = 4;
const REPLACEMENT: &[u8] = b"GET / HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n\r\n";

enum State {
    Head,
    Length(u64),
    Chunked(ChunkCheck),
    /// Nothing more of this connection is read.
    Refused,
    /// A tunnel or an upgraded connection: all bytes pass.
    Open,
}

pub struct Guard {
    stream: TcpStream,
    wire: Arc<Wire>,
    limits: HeadLimits,
    header_timeout: Duration,
    state: State,
    /// Received and not yet handed on; the first `ready` bytes are checked.
    held: BytesMut,
    ready: usize,
    scan: HeadScan,
    empty_lines: usize,
    /// Runs while a head is incomplete.
    deadline: Option<Pin<Box<Sleep>>>,
    eof: bool,
    /// Heads whose answers have reached the socket.
    flushed: u64,
    linger: Option<Pin<Box<Sleep>>>,
}

impl Guard {
    pub fn new(stream: TcpStream, wire: Arc<Wire>, limits: HeadLimits, header_timeout: Duration) -> Self {
        Self {
            stream,
            wire,
            limits,
            header_timeout,
            state: State::Head,
            held: BytesMut::new(),
            ready: 0,
            scan: HeadScan::default(),
            empty_lines: 0,
            deadline: None,
            eof: false,
            flushed: 0,
            linger: None,
        }
    }

    /// After CONNECT or an upgrade; `early` is what hyper had already taken.
    pub fn open(&mut self, early: &[u8]) {
        let held = std::mem::take(&mut self.held);
        self.held = BytesMut::from(early);
        self.held.unsplit(held);
        self.ready = self.held.len();
        self.state = State::Open;
    }

    pub fn socket(&self) -> &TcpStream {
        &self.stream
    }

    fn poll_message(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.ready > 0 {
                self.hand_on(buf);
                return Poll::Ready(Ok(()));
            }
            match self.state {
                State::Refused => return Poll::Pending,
                State::Open => return self.poll_open(cx, buf),
                State::Length(_) | State::Chunked(_) => return self.poll_body(cx, buf),
                State::Head => {
                    if self.wire.is_serving() {
                        return self.poll_early(cx);
                    }
                    self.wire.reads_on();
                    if self.held.is_empty() && !self.eof {
                        if ready!(self.poll_whole_head(cx, buf))? {
                            return Poll::Ready(Ok(()));
                        }
                    } else if ready!(self.poll_partial_head(cx))? {
                        return self.poll_eof(cx);
                    }
                }
            }
        }
    }

    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) {
        let n = self.ready.min(buf.remaining());
        buf.put_slice(&self.held[..n]);
        self.held.advance(n);
        self.ready -= n;
        if self.held.is_empty() {
            // An idle tunnel must not hold a buffer.
            self.held = BytesMut::new();
        }
    }

    /// The common case: a whole head in one segment, checked where it lies. `false`: it is held for the slow way.
    fn poll_whole_head(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<bool>> {
        let start = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.wire.touch();
        let bytes = &buf.filled()[start..];
        if bytes.is_empty() {
            self.eof = true;
            return Poll::Ready(Ok(false));
        }
        let admitted = match HeadScan::default().find_end(bytes) {
            Ok(Some(end)) if head::leading_empty_lines(bytes) == 0 => {
                head::check(&bytes[..end], &self.limits).ok().map(|f| (end, f))
            }
            _ => None,
        };
        let Some((end, framing)) = admitted else {
            self.held.extend_from_slice(bytes);
            buf.set_filled(start);
            return Poll::Ready(Ok(false));
        };
        self.begin_body(framing);
        let admitted = end + self.state.admit(&bytes[end..]).unwrap_or(0);
        self.held.extend_from_slice(&bytes[admitted..]);
        buf.set_filled(start + admitted);
        Poll::Ready(Ok(true))
    }

    /// A head in pieces, or a bad one. `true`: the client has closed.
    fn poll_partial_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            if let Some(outcome) = self.examine_held() {
                self.deadline = None;
                match outcome {
                    Ok(framing) => self.begin_body(framing),
                    Err(reason) => self.refuse(reason),
                }
                return Poll::Ready(Ok(false));
            }
            if self.eof {
                return Poll::Ready(Ok(true));
            }
            let timeout = self.header_timeout;
            let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
            if deadline.as_mut().poll(cx).is_ready() {
                self.deadline = None;
                self.refuse(Reason::HeaderTimeout);
                return Poll::Ready(Ok(false));
            }
            let n = ready!(poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.held))?;
            self.wire.touch();
            self.eof = n == 0;
        }
    }

    /// Looks for a complete head in what is held; on success `ready` covers it.
    fn examine_held(&mut self) -> Option<Result<Framing, Reason>> {
        if self.scan.is_fresh() {
            let empty = head::leading_empty_lines(&self.held);
            self.held.advance(empty);
        }
        match self.scan.find_end(&self.held) {
            Err(reason) => Some(Err(reason)),
            // An empty line that came in two pieces.
            Ok(Some(2)) if self.empty_lines < MAX_SPLIT_EMPTY_LINES => {
                self.empty_lines += 1;
                self.held.advance(2);
                self.examine_held()
            }
            Ok(Some(end)) => {
                let verdict = head::check(&self.held[..end], &self.limits);
                self.ready = if verdict.is_ok() { end } else { 0 };
                Some(verdict)
            }
            Ok(None) if self.held.len() > self.limits.max_head_bytes => {
                Some(Err(if self.scan.in_first_line() {
                    Reason::TargetTooLong
                } else {
                    Reason::HeadTooLarge
                }))
            }
            Ok(None) => None,
        }
    }

    fn begin_body(&mut self, framing: Framing) {
        self.wire.head_taken();
        self.scan = HeadScan::default();
        self.empty_lines = 0;
        self.state = match framing {
            Framing::None | Framing::Length(0) => State::Head,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(ChunkCheck::default()),
        };
    }

    fn refuse(&mut self, reason: Reason) {
        self.wire.reject(reason);
        self.wire.head_taken();
        self.held = BytesMut::from(REPLACEMENT);
        self.ready = REPLACEMENT.len();
        self.state = State::Refused;
    }

    fn poll_body(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.held.is_empty() {
            let admitted = self.state.admit(&self.held);
            let Some(admitted) = admitted else {
                return self.bad_body();
            };
            self.ready = admitted;
            self.hand_on(buf);
            return Poll::Ready(Ok(()));
        }
        let start = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.wire.touch();
        let bytes = &buf.filled()[start..];
        self.eof = bytes.is_empty();
        let Some(admitted) = self.state.admit(bytes) else {
            buf.set_filled(start);
            return self.bad_body();
        };
        self.held.extend_from_slice(&bytes[admitted..]);
        buf.set_filled(start + admitted);
        Poll::Ready(Ok(()))
    }

    fn bad_body(&mut self) -> Poll<io::Result<()>> {
        self.state = State::Refused;
        self.wire.set_bad_body();
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "bad chunk")))
    }

    /// While a request is served: takes a little of what follows and notices the client's FIN. What it read waits for
    /// its turn, so a second request is never mistaken for bytes of a tunnel.
    fn poll_early(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.register_reader(cx);
        if !self.wire.is_serving() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        while !self.eof && self.held.len() < MAX_EARLY_BYTES {
            let n = ready!(poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.held))?;
            if n == 0 {
                self.eof = true;
                self.wire.fin.notify_one();
            }
        }
        Poll::Pending
    }

    /// Hands on the end of the stream once the last answer has left: hyper drops what it still holds when it learns of it.
    fn poll_eof(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.flushed == self.wire.heads() {
            return Poll::Ready(Ok(()));
        }
        self.wire.register_reader(cx);
        Poll::Pending
    }

    fn poll_open(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.eof {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0u8; 4096];
        while !self.eof {
            let linger = self
                .linger
                .get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(LINGER_MS))));
            if linger.as_mut().poll(cx).is_ready() {
                break;
            }
            let mut buf = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                _ => self.eof = true,
            }
            if linger_is_over(self.linger.as_ref()) {
                break;
            }
        }
        Poll::Ready(())
    }
}

/// A client that floods keeps the socket readable, and the timer is only polled between reads.
fn linger_is_over(linger: Option<&Pin<Box<Sleep>>>) -> bool {
    linger.is_some_and(|sleep| sleep.deadline() <= Instant::now())
}

impl State {
    /// How many of `bytes` belong to the message; `None` if they break it. Moves to `Head` at its end.
    fn admit(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            State::Length(left) => {
                let n = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= n as u64;
                if *left == 0 {
                    *self = State::Head;
                }
                Some(n)
            }
            State::Chunked(check) => {
                let n = check.feed(bytes).ok()?;
                if check.is_done() {
                    *self = State::Head;
                }
                Some(n)
            }
            State::Head | State::Refused | State::Open => Some(0),
        }
    }
}

impl AsyncRead for Guard {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_message(cx, buf)
    }
}

impl AsyncWrite for Guard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.wire.touch();
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.wire.touch();
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper flushes when its own buffer is empty: every finished answer is in the socket then.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if !self.wire.is_serving() {
            self.flushed = self.wire.heads();
            if self.eof {
                self.wire.wake_reader();
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Closing a socket with unread bytes resets it, and the client may lose the answer (RFC 9112 9.6).
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
        if !matches!(self.state, State::Open) && result.is_ok() {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(result)
    }
}
