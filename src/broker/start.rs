//! Starting and stopping a broker and its listeners; the configuration as the caller gives it.

use crate::broker::event::{Counters, EventSink, Stats};
use crate::broker::limits::{Limits, Timeouts};
use crate::broker::listen::{Acceptor, Clients, Ends, Shared};
use crate::broker::policy::{Policy, RuleConfig};
use crate::broker::resolve::Resolver;
use crate::broker::route::{PATH_PREFIX, Scope};
use crate::broker::rules::Pattern;
use crate::broker::tls::Tls;
use crate::broker::token::{Token, USER};
use crate::broker::tunnel::Sni;
use crate::broker::upstream::Upstreams;
use crate::broker::upstream::proxy_config::UpstreamProxy;
use crate::error::{Error, ErrorCode, Result};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub struct BrokerConfig {
    pub rules: Vec<RuleConfig>,
    pub allow_private: Vec<String>,
    /// Beside 80 and 443.
    pub ports: Vec<u16>,
    pub ca_pem: Option<Vec<u8>>,
    pub sni: Sni,
    pub rewrite_location: bool,
    pub timeouts: Timeouts,
    pub limits: Limits,
    pub upstream_proxy: Option<String>,
    pub sink: Option<EventSink>,
    pub resolver: Arc<dyn Resolver>,
}

/// Where a listener listens and whom it serves.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    pub host: IpAddr,
    /// 0 for any free port.
    pub port: u16,
    /// CIDRs; needed unless the host is a loopback address.
    pub clients: Vec<String>,
    pub allow: Vec<String>,
    /// Ask for a credential.
    pub auth: bool,
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            clients: Vec::new(),
            allow: Vec::new(),
            auth: false,
        }
    }
}

/// The engine behind the listeners. Dropping it closes everything.
pub struct Broker {
    shared: Arc<Shared>,
    ends: Ends,
    accepting: TaskTracker,
}

pub struct Listener {
    pub addr: SocketAddr,
    /// The proxy URL, with the credential if the listener asks for one.
    pub url: String,
    base: String,
    acceptor: Arc<Acceptor>,
    accepting: TaskTracker,
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

impl Broker {
    /// Needs a tokio runtime: the caller's.
    pub fn new(config: BrokerConfig) -> Result<Self> {
        let BrokerConfig { timeouts, limits, .. } = config;
        let policy = Arc::new(Policy::new(config.rules, &config.allow_private, &config.ports)?);
        let counters = Arc::new(Counters::default());
        let ends = Ends::default();
        let (closing, tasks) = (ends.closing.clone(), TaskTracker::new());
        let upstreams = Upstreams {
            policy,
            resolver: config.resolver,
            tls: Tls::new(config.ca_pem.as_deref())?,
            proxy: config
                .upstream_proxy
                .as_deref()
                .map(UpstreamProxy::parse)
                .transpose()?,
            timeouts,
            counters: counters.clone(),
            pool: Upstreams::pool_for(&limits, &timeouts),
            tasks: tasks.clone(),
            closing: closing.clone(),
        };
        let (sni, rewrite_location, sink) = (config.sni, config.rewrite_location, config.sink);
        let shared = Arc::new(Shared {
            upstreams,
            timeouts,
            limits,
            sni,
            rewrite_location,
            sink,
            counters,
        });
        tasks.spawn(sweep(shared.clone(), closing.clone()));
        Ok(Self {
            shared,
            ends,
            accepting: TaskTracker::new(),
        })
    }

    pub async fn listen(&self, config: ListenConfig) -> Result<Listener> {
        let clients = clients_of(&config)?;
        let scope = self.scope(&config.allow, config.auth)?;
        let listener = bind(SocketAddr::new(config.host, config.port)).await?;
        self.start(listener, clients, scope, true)
    }

    /// Serves on a socket that listens already, such as one made inside a container's network namespace. Whoever
    /// reaches it is served: the namespace is the boundary.
    pub fn adopt(&self, socket: std::net::TcpListener, allow: &[String], auth: bool) -> Result<Listener> {
        let failed = |error: std::io::Error| {
            Error::new(
                ErrorCode::BrokerFailed,
                format!("the socket cannot be used as a listener: {}", error.kind()),
            )
        };
        socket.set_nonblocking(true).map_err(failed)?;
        let listener = TcpListener::from_std(socket).map_err(failed)?;
        self.start(listener, Clients::Any, self.scope(allow, auth)?, false)
    }

    fn scope(&self, allow: &[String], auth: bool) -> Result<Scope> {
        let token = if auth { Some(Token::random()?) } else { None };
        Ok(Scope {
            allow: self.shared.upstreams.policy.allow_table(allow)?,
            token,
        })
    }

    fn start(
        &self,
        listener: TcpListener,
        clients: Clients,
        scope: Scope,
        register: bool,
    ) -> Result<Listener> {
        if self.ends.draining.is_cancelled() {
            return Err(Error::new(ErrorCode::Closed, "the broker is closed"));
        }
        let failed = |_| Error::new(ErrorCode::BrokerFailed, "the listener has no address");
        let addr = listener.local_addr().map_err(failed)?;
        let plain = format!("http://{addr}");
        let url = match &scope.token {
            None => plain.clone(),
            Some(token) => format!("http://{USER}:{}@{addr}", token.text()),
        };
        let base = match &scope.token {
            None => format!("{plain}{PATH_PREFIX}"),
            Some(token) => format!("{plain}{PATH_PREFIX}/{}", token.text()),
        };
        let acceptor = Acceptor::new(self.shared.clone(), scope, clients, Arc::from(plain), &self.ends);
        let accepting = TaskTracker::new();
        accepting.spawn(
            self.accepting
                .track_future(acceptor.clone().run(listener, register)),
        );
        accepting.close();
        Ok(Listener {
            addr,
            url,
            base,
            acceptor,
            accepting,
        })
    }

    pub fn stats(&self) -> Stats {
        self.shared.counters.snapshot()
    }

    /// Stops accepting at once, lets requests in progress finish for `drain`, then cuts off everything. When this
    /// returns no socket of the broker is open. A second call waits for the first.
    pub async fn close(&self, drain: Duration) {
        let Ends {
            tasks,
            draining,
            closing,
        } = &self.ends;
        draining.cancel();
        self.accepting.close();
        self.accepting.wait().await;
        tasks.close();
        if !drain.is_zero() {
            let _ = tokio::time::timeout(drain, tasks.wait()).await;
        }
        closing.cancel();
        tasks.wait().await;
        self.shared.upstreams.pool.clear();
        let upstream = &self.shared.upstreams.tasks;
        upstream.close();
        upstream.wait().await;
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.ends.draining.cancel();
        self.ends.closing.cancel();
    }
}

impl Listener {
    /// Where the path form of a host begins, without a final slash.
    pub fn base_url(&self, host: &str) -> Result<String> {
        let pattern = Pattern::parse(host).map_err(|why| invalid(format!("baseUrl: {host:?}: {why}")))?;
        if pattern.suffix {
            return Err(invalid(format!("baseUrl: {host:?} is not one host")));
        }
        Ok(match pattern.port {
            None => format!("{}/{}", self.base, pattern.host),
            Some(port) => format!("{}/{}:{port}", self.base, pattern.host),
        })
    }

    /// What a command needs to use this listener as its proxy.
    pub fn env(&self) -> Vec<(String, String)> {
        let no_proxy = self.addr.ip().to_string();
        let pairs = [
            ("HTTP_PROXY", &self.url),
            ("HTTPS_PROXY", &self.url),
            ("NO_PROXY", &no_proxy),
        ];
        let both = pairs.iter().flat_map(|(name, value)| {
            [
                (name.to_string(), value.to_string()),
                (name.to_lowercase(), value.to_string()),
            ]
        });
        both.collect()
    }

    /// Stops accepting at once, lets requests in progress finish for `drain`, then cuts off what is left.
    pub async fn close(&self, drain: Duration) {
        self.acceptor.draining.cancel();
        self.accepting.wait().await;
        self.acceptor.tasks.close();
        if !drain.is_zero() {
            let _ = tokio::time::timeout(drain, self.acceptor.tasks.wait()).await;
        }
        self.acceptor.closing.cancel();
        self.acceptor.tasks.wait().await;
    }
}

async fn sweep(shared: Arc<Shared>, closing: CancellationToken) {
    const EVERY: Duration = Duration::from_secs(15);
    while closing
        .run_until_cancelled(tokio::time::sleep(EVERY))
        .await
        .is_some()
    {
        shared.upstreams.pool.sweep();
    }
}

/// Anything but loopback is reachable by others, so it must say by whom.
fn clients_of(config: &ListenConfig) -> Result<Clients> {
    if config.clients.is_empty() {
        if config.host.is_loopback() {
            return Ok(Clients::Any);
        }
        return Err(invalid(format!(
            "listen: {} is not a loopback address: say in clients which networks it serves, as CIDR",
            config.host
        )));
    }
    let mut nets = Vec::new();
    for (index, text) in config.clients.iter().enumerate() {
        let net = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let net = net.map_err(|_| {
            invalid(format!(
                "clients[{index}] {text:?} is not a CIDR such as 172.30.0.0/24"
            ))
        })?;
        nets.push(net.trunc());
    }
    Ok(Clients::Nets(nets))
}

/// A bridge's gateway address may come up a moment after its network was made.
async fn bind(addr: SocketAddr) -> Result<TcpListener> {
    const TRIES: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(100);
    let mut tried = 0;
    loop {
        match bind_now(addr) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable && tried < TRIES => {
                tried += 1;
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => {
                return Err(Error::new(
                    ErrorCode::BrokerFailed,
                    format!("cannot listen on {addr}: {}", error.kind()),
                ));
            }
        }
    }
}

fn bind_now(addr: SocketAddr) -> std::io::Result<TcpListener> {
    const BACKLOG: u32 = 1024;
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // The port is free again at once after a close.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}
