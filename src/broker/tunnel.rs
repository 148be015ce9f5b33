//! CONNECT tunnels and upgraded connections: who may have one, and what the first bytes must say. The bytes themselves are
//! `relay`'s.

use crate::broker::body::ResponseBody;
use crate::broker::edge::guard::Guard;
use crate::broker::event::Gauge;
use crate::broker::exchange::Exchange;
use crate::broker::host::Host;
use crate::broker::limits::Timeouts;
use crate::broker::listen::Connection;
use crate::broker::refusal::{Reason, Refusal};
use crate::broker::relay::{End, Inspect, Limits, relay};
use crate::broker::route::Target;
use crate::broker::sni::{Hello, read};
use crate::broker::upstream::dial::Transport;
use http::{Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// What a tunnel's TLS server name has to do with its CONNECT host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sni {
    /// A different name ends the tunnel; none, or no TLS at all, passes.
    #[default]
    Match,
    /// The same name, or no tunnel.
    Strict,
    Off,
}

struct NameCheck {
    mode: Sni,
    host: Host,
}

impl Inspect for NameCheck {
    fn inspect(&mut self, bytes: &[u8]) -> Result<bool, End> {
        let strict = self.mode == Sni::Strict;
        match read(bytes) {
            Hello::Incomplete => Ok(false),
            Hello::Name(name) if name == self.host => Ok(true),
            // TLS to an address has no name to state (RFC 6066 3).
            Hello::NoName if !strict || matches!(self.host, Host::Ip(_)) => Ok(true),
            Hello::NotTls if !strict => Ok(true),
            Hello::NoName | Hello::NotTls => Err(End::Refused(Reason::TlsRequired)),
            Hello::Name(_) | Hello::BadName => Err(End::Refused(Reason::SniMismatch)),
        }
    }
}

/// Dials first: a client that gets 200 has its upstream.
pub async fn connect(
    connection: &Arc<Connection>,
    exchange: &Arc<Exchange>,
    target: Target,
    client: OnUpgrade,
) -> Result<Response<ResponseBody>, Refusal> {
    let shared = &connection.shared;
    let waiting = connection.wire.wait();
    let way = shared.upstreams.find_way(&target.host, target.port).await?;
    let upstream = shared.upstreams.connect(&target.host, target.port, &way).await?;
    drop(waiting);
    let check = (shared.sni != Sni::Off).then(|| NameCheck {
        mode: shared.sni,
        host: target.host.clone(),
    });
    spawn(
        connection,
        exchange,
        async move {
            let client = client.await.ok()?;
            Some((client, upstream))
        },
        check,
    );
    exchange.status(200);
    Ok(Response::new(ResponseBody::Tunnel))
}

/// After the upstream's 101.
pub fn upgraded(
    connection: &Arc<Connection>,
    exchange: &Arc<Exchange>,
    client: OnUpgrade,
    upstream: OnUpgrade,
) {
    exchange.upgraded();
    exchange.status(StatusCode::SWITCHING_PROTOCOLS.as_u16());
    spawn(
        connection,
        exchange,
        async move {
            let (client, upstream) = tokio::join!(client, upstream);
            let upstream = upstream.ok()?.downcast::<TokioIo<Transport>>().ok()?;
            Some((
                client.ok()?,
                Early::new(upstream.io.into_inner(), upstream.read_buf),
            ))
        },
        None::<NameCheck>,
    );
}

fn spawn<U, I>(
    connection: &Arc<Connection>,
    exchange: &Arc<Exchange>,
    streams: impl Future<Output = Option<(Upgraded, U)>> + Send + 'static,
    inspect: Option<I>,
) where
    U: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    I: Inspect + Unpin + Send + 'static,
{
    let (connection, exchange) = (connection.clone(), exchange.clone());
    let closing = connection.closing.clone();
    let spawner = connection.clone();
    spawner.spawn(async move {
        let work = run(&connection, &exchange, streams, inspect);
        let end = closing
            .run_until_cancelled(work)
            .await
            .unwrap_or(Err(End::Refused(Reason::Closed)));
        match end {
            Ok(()) => exchange.complete(),
            Err(End::Idle) => exchange.broke(Reason::Idle),
            Err(End::Broken) => exchange.broke(Reason::ClientGone),
            Err(End::Refused(reason)) => exchange.refused(&Refusal::from(reason), false),
        }
        exchange.finish();
    });
}

async fn run<U, I>(
    connection: &Connection,
    exchange: &Exchange,
    streams: impl Future<Output = Option<(Upgraded, U)>>,
    inspect: Option<I>,
) -> Result<(), End>
where
    U: AsyncRead + AsyncWrite + Unpin,
    I: Inspect + Unpin,
{
    let Some((client, upstream)) = streams.await else {
        return Err(End::Broken);
    };
    let Ok(client) = client.downcast::<TokioIo<Guard>>() else {
        return Err(End::Broken);
    };
    let mut guard = client.io.into_inner();
    guard.open(&client.read_buf);
    let _open = Gauge::new(exchange.counters().clone(), |counters| &counters.tunnels);
    let limits = limits(&connection.shared.timeouts);
    relay(guard, upstream, inspect, &limits, |up, down| {
        exchange.add_in(up);
        exchange.add_out(down);
    })
    .await
}

fn limits(timeouts: &Timeouts) -> Limits {
    Limits {
        idle: Duration::from_millis(timeouts.idle_ms),
        half_close: Duration::from_millis(timeouts.half_close_ms),
        inspect: Duration::from_millis(timeouts.header_ms),
    }
}

/// A stream whose first bytes hyper had already taken.
struct Early<S> {
    stream: S,
    early: bytes::Bytes,
}

impl<S> Early<S> {
    fn new(stream: S, early: bytes::Bytes) -> Self {
        Self { stream, early }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Early<S> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        if self.early.is_empty() {
            return std::pin::Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let n = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early.split_to(n));
        std::task::Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Early<S> {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::pin::Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
