//! Listeners and the client connections on them: who may connect, how many, how long. What a request may do is left to
//! `proxy`.

use crate::broker::edge::guard::Guard;
use crate::broker::edge::wire::Wire;
use crate::broker::event::{Counters, Event, EventSink, Kind, add};
use crate::broker::exchange::{Exchange, now_ms};
use crate::broker::limits::{Limits, Timeouts};
use crate::broker::peer::{self, Peer};
use crate::broker::proxy::serve;
use crate::broker::refusal::{Reason, Refusal};
use crate::broker::route::{PATH_PREFIX, Scope, Target};
use crate::broker::seldom::Seldom;
use crate::broker::tunnel::Sni;
use crate::broker::upstream::Upstreams;
use crate::broker::upstream::dial::{forget_listener, register_listener};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What all listeners of a broker share.
pub struct Shared {
    pub upstreams: Upstreams,
    pub timeouts: Timeouts,
    pub limits: Limits,
    pub sni: Sni,
    pub rewrite_location: bool,
    pub sink: Option<EventSink>,
    pub counters: Arc<Counters>,
}

/// What a broker ends its listeners with.
#[derive(Clone, Default)]
pub struct Ends {
    pub tasks: TaskTracker,
    pub draining: CancellationToken,
    pub closing: CancellationToken,
}

/// The peers one listener serves.
#[derive(Clone, Debug)]
pub enum Clients {
    /// Whoever reaches the socket: loopback, or a namespace of its own.
    Any,
    Nets(Vec<IpNet>),
}

impl Clients {
    /// A process on this machine reaches a gateway address from that same address; it is no member of the subnet unless
    /// it is listed by itself.
    fn admit(&self, peer: IpAddr, local: IpAddr) -> bool {
        let Clients::Nets(nets) = self else { return true };
        let (peer, local) = (peer.to_canonical(), local.to_canonical());
        let host_itself = peer == local && !local.is_loopback();
        nets.iter()
            .any(|net| net.contains(&peer) && (!host_itself || net.prefix_len() == net.max_prefix_len()))
    }
}

pub struct Acceptor {
    pub shared: Arc<Shared>,
    pub scope: Arc<Scope>,
    pub clients: Clients,
    pub url: Arc<str>,
    /// This listener's connections.
    pub tasks: TaskTracker,
    /// Those of all listeners.
    all: TaskTracker,
    /// No new connections; idle ones close, busy ones finish their request.
    pub draining: CancellationToken,
    /// Everything ends now.
    pub closing: CancellationToken,
    open: AtomicUsize,
    per_peer: Mutex<HashMap<IpAddr, usize>>,
}

/// One client connection, for as long as it or its tunnel lives.
pub struct Connection {
    pub shared: Arc<Shared>,
    pub scope: Arc<Scope>,
    pub local: SocketAddr,
    pub wire: Arc<Wire>,
    pub closing: CancellationToken,
    acceptor: Arc<Acceptor>,
    peer: SocketAddr,
}

impl Acceptor {
    pub fn new(
        shared: Arc<Shared>,
        scope: Scope,
        clients: Clients,
        url: Arc<str>,
        broker: &Ends,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            scope: Arc::new(scope),
            clients,
            url,
            tasks: TaskTracker::new(),
            all: broker.tasks.clone(),
            draining: broker.draining.child_token(),
            closing: broker.closing.child_token(),
            open: AtomicUsize::new(0),
            per_peer: Mutex::new(HashMap::new()),
        })
    }

    /// Accepts until drained. `register`: the address is one of this network namespace, where dialling it would loop.
    pub async fn run(self: Arc<Self>, listener: TcpListener, register: bool) {
        let addr = listener.local_addr().ok().filter(|_| register);
        if let Some(addr) = addr {
            register_listener(addr);
        }
        let _ = self
            .draining
            .clone()
            .run_until_cancelled(self.accept_loop(&listener))
            .await;
        if let Some(addr) = addr {
            forget_listener(addr);
        }
    }

    async fn accept_loop(self: &Arc<Self>, listener: &TcpListener) {
        /// Out of descriptors or memory (EMFILE, ENFILE, ENOBUFS): connections wait in the backlog meanwhile.
        const PAUSE: Duration = Duration::from_millis(20);
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => self.accept(stream, peer),
                Err(error) if is_about_one_connection(&error) => {}
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn accept(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let Ok(local) = stream.local_addr() else { return };
        if !self.clients.admit(peer.ip(), local.ip()) {
            self.report(Reason::PeerRefused);
            return;
        }
        let _ = stream.set_nodelay(true);
        if !self.enter(peer.ip()) {
            self.report(Reason::TooManyConnections);
            self.spawn(turn_away(stream, self.closing.clone()));
            return;
        }
        let connection = Arc::new(Connection {
            shared: self.shared.clone(),
            scope: self.scope.clone(),
            local: SocketAddr::new(local.ip().to_canonical(), local.port()),
            wire: Arc::new(Wire::new()),
            closing: self.closing.clone(),
            acceptor: self.clone(),
            peer,
        });
        self.spawn(connection.run(stream, local));
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.all.track_future(task));
    }

    fn enter(&self, peer: IpAddr) -> bool {
        let limits = &self.shared.limits;
        let mut per_peer = self.per_peer.lock().unwrap_or_else(PoisonError::into_inner);
        let count = per_peer.get(&peer).copied().unwrap_or(0);
        if count >= limits.max_connections_per_peer
            || self.open.load(Ordering::Relaxed) >= limits.max_connections
        {
            return false;
        }
        per_peer.insert(peer, count + 1);
        self.open.fetch_add(1, Ordering::Relaxed);
        add(&self.shared.counters.connections, 1);
        true
    }

    fn leave(&self, peer: IpAddr) {
        let mut per_peer = self.per_peer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = per_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                per_peer.remove(&peer);
            }
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.shared.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn report(&self, reason: Reason) {
        add(&self.shared.counters.refused, 1);
        let Some(sink) = &self.shared.sink else { return };
        sink(Event {
            kind: Kind::Connection,
            time_ms: now_ms(),
            listener: self.url.clone(),
            method: String::new(),
            host: None,
            port: None,
            path: None,
            allowed: false,
            injected: false,
            reason: Some(reason),
            status: if reason == Reason::PeerRefused {
                0
            } else {
                reason.status()
            },
            bytes_in: 0,
            bytes_out: 0,
            duration_ms: 0.0,
        });
    }
}

fn is_about_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// A clear answer instead of a silent drop, then out.
async fn turn_away(mut stream: TcpStream, closing: CancellationToken) {
    const PATIENCE: Duration = Duration::from_secs(1);
    let refusal = Refusal::from(Reason::TooManyConnections);
    let body = refusal.json();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nx-broker-error: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        refusal.reason.code(),
        body.len()
    );
    let polite = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = closing
        .run_until_cancelled(tokio::time::timeout(PATIENCE, polite))
        .await;
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.acceptor.leave(self.peer.ip());
    }
}

impl Connection {
    pub fn begin(&self, method: &str) -> Arc<Exchange> {
        let shared = &self.shared;
        Exchange::begin(
            self.wire.clone(),
            shared.counters.clone(),
            shared.sink.clone(),
            &self.acceptor.url,
            method,
        )
    }

    /// Runs as long as the listener does not close.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.acceptor.spawn(task);
    }

    /// The base URL's path for a target, when redirects are to be mapped back to it.
    pub fn rewrite_prefix(&self, target: &Target) -> Option<String> {
        if !self.shared.rewrite_location || !target.path_form {
            return None;
        }
        let authority = target.authority();
        Some(match &self.scope.token {
            None => format!("{PATH_PREFIX}/{authority}"),
            Some(token) => format!("{PATH_PREFIX}/{}/{authority}", token.text()),
        })
    }

    async fn run(self: Arc<Self>, stream: TcpStream, local: SocketAddr) {
        let timeouts = &self.shared.timeouts;
        let limits = &self.shared.limits;
        let guard = Guard::new(
            stream,
            self.wire.clone(),
            limits.head(),
            Duration::from_millis(timeouts.header_ms),
        );
        let service = service_fn({
            let connection = self.clone();
            move |request| serve(connection.clone(), request)
        });
        let http = http1::Builder::new()
            .timer(TokioTimer::new())
            // The guard keeps its own time and answers 408; hyper would close without a word.
            .header_read_timeout(None)
            // What the upstream did not say is not said for it.
            .auto_date_header(false)
            .max_buf_size(limits.max_head_bytes * 2 + 8192)
            .serve_connection(TokioIo::new(guard), service)
            .with_upgrades();
        tokio::pin!(http);
        let mut end = Seldom::new(self.end(local));
        let mut drain = Seldom::new(self.acceptor.draining.cancelled());
        let mut drained = false;
        loop {
            let served = poll_fn(|cx| self.wire.during_poll(cx, |cx| http.as_mut().poll(cx)));
            tokio::select! {
                biased;
                () = &mut end => return,
                _ = served => return,
                () = &mut drain, if !drained => {
                    drained = true;
                    http.as_mut().graceful_shutdown();
                }
            }
        }
    }

    /// Returns when the connection should end: the listener closes, the client is gone, or nothing has moved for too long.
    async fn end(&self, local: SocketAddr) {
        tokio::select! {
            () = self.closing.cancelled() => {}
            () = self.quiet_too_long() => {}
            () = self.peer_gone(local) => {}
        }
    }

    async fn quiet_too_long(&self) {
        let timeouts = &self.shared.timeouts;
        loop {
            let limit = match (self.wire.heads(), self.wire.is_serving()) {
                (_, true) => timeouts.idle_ms,
                // A head that has begun is the guard's to time out, with an answer; a little later than this.
                (0, false) => timeouts.header_ms + 500,
                (_, false) => timeouts.keep_alive_ms,
            };
            let quiet = if self.wire.is_waiting() {
                0
            } else {
                self.wire.quiet_ms()
            };
            if quiet >= limit {
                return;
            }
            // Not past the shorter limits: the state may change while this sleeps.
            let shortest = timeouts.idle_ms.min(timeouts.keep_alive_ms).max(10);
            let nap = (limit - quiet).min(shortest);
            tokio::time::sleep(Duration::from_millis(nap)).await;
        }
    }

    /// After a FIN in the middle of a request. A client that only closed its sending side gets its answer.
    async fn peer_gone(&self, local: SocketAddr) {
        const FIRST_LOOK: Duration = Duration::from_millis(50);
        const MAX_PAUSE: Duration = Duration::from_secs(2);
        self.wire.fin.notified().await;
        let mut pause = FIRST_LOOK;
        loop {
            match peer::look(self.peer, local).await {
                Peer::Gone => return,
                Peer::There => tokio::time::sleep(pause).await,
                Peer::Unknown => std::future::pending().await,
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}
