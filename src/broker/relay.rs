//! Bytes both ways between two streams until both have ended, one breaks, or nothing moves. Knows nothing of HTTP.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// One read. 64 KB beats squid on bulk; a buffer of this size per tunnel would cost more than the rest of the tunnel,
/// so there is one per thread, and an idle tunnel holds none.
const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Looks at the client's first bytes before they pass.
pub trait Inspect {
    /// `Ok(true)`: all bytes so far may pass, no further look is needed. `Ok(false)`: hold them.
    fn inspect(&mut self, bytes: &[u8]) -> Result<bool, End>;
}

/// Why a relay ended, other than by both sides closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Broken,
    Idle,
    Refused(crate::broker::refusal::Reason),
}

pub struct Limits {
    pub idle: Duration,
    pub half_close: Duration,
    /// For the first bytes to become inspectable.
    pub inspect: Duration,
}

#[derive(Default)]
struct Half {
    /// Read but not yet written.
    pending: Vec<u8>,
    written: usize,
    ended: bool,
    closed: bool,
}

struct Relay<'a, C, U, I, F> {
    client: C,
    upstream: U,
    inspect: Option<I>,
    up: Half,
    down: Half,
    limits: &'a Limits,
    moved: F,
    last: Instant,
    began: Instant,
    timer: Pin<Box<Sleep>>,
}

/// `moved(up, down)` is told every byte count.
pub async fn relay<C, U, I, F>(
    client: C,
    upstream: U,
    inspect: Option<I>,
    limits: &Limits,
    moved: F,
) -> Result<(), End>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
    I: Inspect + Unpin,
    F: Fn(usize, usize) + Unpin,
{
    let now = Instant::now();
    let first = limits.idle.min(limits.half_close).min(limits.inspect);
    let mut relay = Relay {
        client,
        upstream,
        inspect,
        up: Half::default(),
        down: Half::default(),
        limits,
        moved,
        last: now,
        began: now,
        timer: Box::pin(sleep_until(now + first)),
    };
    std::future::poll_fn(move |cx| relay.poll(cx)).await
}

impl<C, U, I, F> Relay<'_, C, U, I, F>
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
    I: Inspect + Unpin,
    F: Fn(usize, usize) + Unpin,
{
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let up = self.poll_up(cx)?;
        let down = self.poll_down(cx)?;
        if up.is_ready() && down.is_ready() {
            return Poll::Ready(Ok(()));
        }
        self.poll_timer(cx)
    }

    fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let Self {
            client,
            upstream,
            inspect,
            up,
            moved,
            last,
            ..
        } = self;
        up.poll(cx, client, upstream, inspect, |n| {
            moved(n, 0);
            *last = Instant::now();
        })
    }

    fn poll_down(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let Self {
            client,
            upstream,
            down,
            moved,
            last,
            ..
        } = self;
        down.poll(cx, upstream, client, &mut None::<Pass>, |n| {
            moved(0, n);
            *last = Instant::now();
        })
    }

    /// One timer, moved on lazily: a busy tunnel never touches the timer wheel.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let half_closed = self.up.ended != self.down.ended;
            let quiet = if half_closed {
                self.limits.half_close.min(self.limits.idle)
            } else {
                self.limits.idle
            };
            let mut deadline = self.last + quiet;
            if self.inspect.is_some() && !self.up.pending.is_empty() {
                deadline = deadline.min(self.began + self.limits.inspect);
            }
            if deadline <= Instant::now() {
                return Poll::Ready(Err(End::Idle));
            }
            // While no side is closed the next look comes early enough for a half-close that happens meanwhile.
            let look = Instant::now() + self.limits.half_close.max(Duration::from_millis(10));
            self.timer.as_mut().reset(deadline.min(look));
        }
        Poll::Pending
    }
}

impl Half {
    fn poll<S, D, I>(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut S,
        sink: &mut D,
        inspect: &mut Option<I>,
        mut moved: impl FnMut(usize),
    ) -> Poll<Result<(), End>>
    where
        S: AsyncRead + Unpin,
        D: AsyncWrite + Unpin,
        I: Inspect,
    {
        let broken = |_| End::Broken;
        loop {
            if inspect.is_none() {
                ready!(self.poll_drain(cx, sink)).map_err(broken)?;
            }
            if self.ended {
                // A hello cut short by the client's end goes out as it is; no server accepts it.
                *inspect = None;
                if !self.closed {
                    ready!(self.poll_drain(cx, sink)).map_err(broken)?;
                    ready!(Pin::new(&mut *sink).poll_shutdown(cx)).map_err(broken)?;
                    self.closed = true;
                }
                return Poll::Ready(Ok(()));
            }
            let read = SCRATCH.with_borrow_mut(|scratch| -> Poll<Result<usize, End>> {
                let mut buf = ReadBuf::new(scratch);
                if Pin::new(&mut *source)
                    .poll_read(cx, &mut buf)
                    .map_err(broken)?
                    .is_pending()
                {
                    return Poll::Pending;
                }
                let bytes = buf.filled();
                if let Some(look) = inspect {
                    self.pending.extend_from_slice(bytes);
                    if look.inspect(&self.pending)? {
                        *inspect = None;
                    }
                } else if !bytes.is_empty() {
                    self.write_or_keep(cx, sink, bytes).map_err(broken)?;
                }
                Poll::Ready(Ok(bytes.len()))
            });
            match read {
                Poll::Pending => {
                    // A TLS stream holds what it was given until it is flushed.
                    let _ = Pin::new(&mut *sink).poll_flush(cx).map_err(broken)?;
                    return Poll::Pending;
                }
                Poll::Ready(n) => match n? {
                    0 => self.ended = true,
                    n => moved(n),
                },
            }
        }
    }

    fn write_or_keep<D: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut D,
        bytes: &[u8],
    ) -> io::Result<()> {
        let n = match Pin::new(sink).poll_write(cx, bytes)? {
            Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(n) => n,
            Poll::Pending => 0,
        };
        self.pending.extend_from_slice(&bytes[n..]);
        Ok(())
    }

    fn poll_drain<D: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut D,
    ) -> Poll<io::Result<()>> {
        while self.written < self.pending.len() {
            match ready!(Pin::new(&mut *sink).poll_write(cx, &self.pending[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                n => self.written += n,
            }
        }
        if self.written > 0 {
            self.pending = Vec::new();
            self.written = 0;
        }
        Poll::Ready(Ok(()))
    }
}

/// The direction nobody inspects.
pub struct Pass;

impl Inspect for Pass {
    fn inspect(&mut self, _: &[u8]) -> Result<bool, End> {
        Ok(true)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const LIMITS: Limits = Limits {
        idle: Duration::from_secs(5),
        half_close: Duration::from_millis(100),
        inspect: Duration::from_millis(100),
    };

    #[tokio::test]
    async fn bytes_pass_both_ways_and_a_half_close_is_passed_on() {
        let ((mut a, client), (mut b, upstream)) = (duplex(100), duplex(100));
        let relay =
            tokio::spawn(async move { relay(client, upstream, None::<Pass>, &LIMITS, |_, _| {}).await });
        let sent: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        let copy = sent.clone();
        let writer = tokio::spawn(async move {
            a.write_all(&copy).await.unwrap();
            a.shutdown().await.unwrap();
            let mut back = Vec::new();
            a.read_to_end(&mut back).await.unwrap();
            back
        });
        let mut got = Vec::new();
        b.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, sent);
        b.write_all(b"late answer").await.unwrap();
        drop(b);
        assert_eq!(writer.await.unwrap(), b"late answer");
        assert_eq!(relay.await.unwrap(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_half_closed_relay_does_not_wait_for_ever() {
        let ((mut a, client), (b, upstream)) = (duplex(100), duplex(100));
        a.shutdown().await.unwrap();
        let ended = relay(client, upstream, None::<Pass>, &LIMITS, |_, _| {}).await;
        assert_eq!(ended, Err(End::Idle));
        drop((a, b));
    }
}
