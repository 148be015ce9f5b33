//! The leg to the upstream: dialling a checked address (directly or through a proxy), TLS, and a pool of connections. What is
//! sent on it is left to `proxy` and `tunnel`.

pub mod dial;
pub mod pool;
pub mod proxy_config;

use crate::broker::body::RequestBody;
use crate::broker::event::{Counters, add};
use crate::broker::host::Host;
use crate::broker::limits::{Limits, Timeouts};
use crate::broker::policy::Policy;
use crate::broker::refusal::{Reason, Refusal};
use crate::broker::resolve::{Checked, Resolver, resolve};
use crate::broker::route::{Scheme, Target};
use crate::broker::seldom::Seldom;
use crate::broker::tls::{Tls, server_name};
use dial::Transport;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use pool::{Key, Lease, Pool};
use proxy_config::UpstreamProxy;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub struct Upstreams {
    pub policy: Arc<Policy>,
    pub resolver: Arc<dyn Resolver>,
    pub tls: Tls,
    pub proxy: Option<UpstreamProxy>,
    pub timeouts: Timeouts,
    pub counters: Arc<Counters>,
    pub pool: Arc<Pool>,
    pub tasks: TaskTracker,
    pub closing: CancellationToken,
}

/// A fit way to the target, not yet opened.
pub struct Way {
    checked: Option<Checked>,
    pub trusted: bool,
    deadline: Instant,
}

impl Upstreams {
    pub fn pool_for(limits: &Limits, timeouts: &Timeouts) -> Arc<Pool> {
        Arc::new(Pool::new(
            limits.max_idle_per_host,
            Duration::from_millis(timeouts.pool_idle_ms),
        ))
    }

    /// Looks the host up and checks every address. Through an upstream proxy the proxy does the looking up: only
    /// literal addresses can be checked then.
    pub async fn find_way(&self, host: &Host, port: u16) -> Result<Way, Refusal> {
        let deadline = Instant::now() + Duration::from_millis(self.timeouts.connect_ms);
        if self.proxy_for(host).is_some() && matches!(host, Host::Name(_)) {
            return Ok(Way {
                checked: None,
                trusted: false,
                deadline,
            });
        }
        let found = timeout_at(
            deadline,
            resolve(&self.policy, self.resolver.as_ref(), host, port),
        )
        .await;
        let checked = found.map_err(|_| Refusal::about(Reason::DnsTimeout, host))??;
        if checked.addresses.iter().any(|addr| dial::is_own_listener(*addr)) {
            return Err(Refusal::about(Reason::Loop, host));
        }
        Ok(Way {
            trusted: checked.trusted,
            checked: Some(checked),
            deadline,
        })
    }

    /// The upstream proxy, unless the host is one of the private ones that are reached directly.
    fn proxy_for(&self, host: &Host) -> Option<&UpstreamProxy> {
        self.proxy
            .as_ref()
            .filter(|_| !self.policy.allow_private.names(host))
    }

    /// A TCP stream to the target for a tunnel.
    pub async fn connect(&self, host: &Host, port: u16, way: &Way) -> Result<TcpStream, Refusal> {
        add(&self.counters.upstream_connections, 1);
        let dialled = match self.proxy_for(host) {
            Some(proxy) => timeout_at(way.deadline, dial::through_proxy(proxy, host, port)).await,
            None => {
                let addresses = way.checked.as_ref().map_or(&[][..], |checked| &checked.addresses);
                timeout_at(way.deadline, dial::first_of(addresses, way.deadline)).await
            }
        };
        match dialled {
            Err(_) => Err(Refusal::about(Reason::ConnectTimeout, host)),
            Ok(result) => result.map_err(|reason| Refusal::about(reason, host)),
        }
    }

    /// A new connection ready for requests.
    pub async fn open(&self, target: &Target, key: Key, way: Way) -> Result<Lease, Refusal> {
        let absolute = self
            .proxy_for(&target.host)
            .filter(|_| target.scheme == Scheme::Http);
        let refuse = |reason| Refusal::about(reason, &target.host);
        let transport = match (target.scheme, absolute) {
            (Scheme::Http, Some(proxy)) => {
                let dialled = timeout_at(way.deadline, dial::to_proxy(proxy)).await;
                Transport::Plain(
                    dialled
                        .map_err(|_| refuse(Reason::ConnectTimeout))?
                        .map_err(refuse)?,
                )
            }
            (Scheme::Http, None) => Transport::Plain(self.connect(&target.host, target.port, &way).await?),
            (Scheme::Https, _) => {
                let stream = self.connect(&target.host, target.port, &way).await?;
                let connector = self.tls.connector().ok_or_else(|| refuse(Reason::TlsFailed))?;
                let name = server_name(&target.host).ok_or_else(|| refuse(Reason::TlsFailed))?;
                let shaken = timeout_at(way.deadline, connector.connect(name, stream)).await;
                let stream = shaken
                    .map_err(|_| refuse(Reason::ConnectTimeout))?
                    .map_err(|_| refuse(Reason::TlsFailed))?;
                Transport::Tls(Box::new(stream))
            }
        };
        let (sender, connection) = http1::handshake::<_, RequestBody>(TokioIo::new(transport))
            .await
            .map_err(|_| refuse(Reason::UpstreamFailed))?;
        let closing = Seldom::new(self.closing.clone().cancelled_owned());
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = closing => {}
                _ = connection.with_upgrades() => {}
            }
        });
        let through = absolute.map(|proxy| proxy.authorization.clone());
        Ok(Lease {
            key,
            sender,
            trusted: way.trusted,
            pooled: false,
            through,
        })
    }

    pub fn reuse(&self, key: &Key) -> Option<Lease> {
        self.pool.take(key)
    }
}
