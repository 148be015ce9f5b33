//! Opening a TCP connection: to one of the checked addresses and to nothing else, or through the upstream proxy.

use crate::broker::host::Host;
use crate::broker::refusal::Reason;
use crate::broker::upstream::proxy_config::UpstreamProxy;
use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::client::TlsStream;

/// Every address this process's brokers listen on. Dialling one would make a loop, whatever `allowPrivate` says.
static LISTENERS: Mutex<Option<HashSet<SocketAddr>>> = Mutex::new(None);

pub fn register_listener(addr: SocketAddr) {
    LISTENERS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert(addr);
}

pub fn forget_listener(addr: SocketAddr) {
    if let Some(all) = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        all.remove(&addr);
    }
}

pub fn is_own_listener(addr: SocketAddr) -> bool {
    let listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    listeners.as_ref().is_some_and(|all| {
        // 0.0.0.0 leads where 127.0.0.1 does; a listener on all addresses answers on any of them.
        let same = |one: &SocketAddr| {
            one.ip().is_unspecified() || (addr.ip().is_unspecified() && one.ip().is_loopback())
        };
        all.contains(&addr) || all.iter().any(|one| one.port() == addr.port() && same(one))
    })
}

/// The first address that accepts. Each gets a share of the time left, so that one dead address of several does not
/// use it up.
pub async fn first_of(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Reason> {
    const MIN_SHARE: Duration = Duration::from_millis(250);
    let mut outcome = Reason::ConnectFailed;
    for (index, addr) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = (left / (addresses.len() - index) as u32).max(MIN_SHARE);
        match timeout(share, TcpStream::connect(addr)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(_)) => outcome = Reason::ConnectFailed,
            Err(_) => outcome = Reason::ConnectTimeout,
        }
    }
    Err(outcome)
}

pub async fn to_proxy(proxy: &UpstreamProxy) -> Result<TcpStream, Reason> {
    let mut addresses = tokio::net::lookup_host((proxy.host.as_str(), proxy.port))
        .await
        .map_err(|_| Reason::ProxyFailed)?;
    let addr = addresses.next().ok_or(Reason::ProxyFailed)?;
    if is_own_listener(addr) {
        return Err(Reason::Loop);
    }
    let stream = TcpStream::connect(addr).await.map_err(|_| Reason::ProxyFailed)?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

pub async fn through_proxy(proxy: &UpstreamProxy, host: &Host, port: u16) -> Result<TcpStream, Reason> {
    let mut stream = to_proxy(proxy).await?;
    let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    if let Some(value) = &proxy.authorization {
        head.extend([b"Proxy-Authorization: ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(b"\r\n");
    stream.write_all(&head).await.map_err(|_| Reason::ProxyFailed)?;
    let answer = read_head(&mut stream).await.map_err(|_| Reason::ProxyFailed)?;
    let accepted = answer.starts_with(b"HTTP/1.1 2") || answer.starts_with(b"HTTP/1.0 2");
    if accepted {
        Ok(stream)
    } else {
        Err(Reason::ProxyFailed)
    }
}

/// Byte by byte, so that nothing behind the head is taken: it belongs to the tunnel.
async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    const MAX_HEAD_BYTES: usize = 16 * 1024;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

pub enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Transport::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Transport::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_read(cx, buf))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => stream.poll_shutdown(cx))
    }
}
