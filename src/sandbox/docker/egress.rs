//! The way out of a container: none, the engine's, or a broker and nothing else. Which hosts pass is the broker's
//! business; here it is seen to that there is no other way.

use super::engine::{Engine, Kind, Version, refusal, unavailable};
use super::options::{EgressMode, Network, Options, Transport};
use super::owner;
use crate::broker::runtime::runtime;
use crate::broker::{Broker, ListenConfig, Listener};
use crate::error::{Error, ErrorCode, Result};
use bollard::Docker;
use bollard::models::{Ipam, IpamConfig, NetworkCreateRequest, NetworkInspect};
use bollard::query_parameters::InspectNetworkOptions;
use ipnet::Ipv4Net;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Before it, an internal network forwards DNS questions to the outside (CVE-2024-29018).
const MIN_VERSION: Version = Version(25, 0, 5);
/// Small subnets that are tried when the engine's own pool is used up.
const SPARE_ATTEMPTS: u32 = 8;

/// The way out of all containers of one sandbox.
pub enum Egress {
    Fixed(&'static str),
    Socket(Allowed),
    Bridge(Allowed, Box<OnceCell<Bridge>>),
}

pub struct Allowed {
    broker: Arc<Broker>,
    hosts: Vec<String>,
    network_name: Option<String>,
    labels: Vec<(String, String)>,
}

/// An internal network with the broker on its gateway.
pub struct Bridge {
    id: String,
    ours: bool,
    listener: Arc<Listener>,
}

/// What one container has of it: the variables that point at the broker, and with a listener of its own that one.
pub struct Opening {
    pub env: Vec<(String, String)>,
    listener: Option<Arc<Listener>>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let (Some(listener), Ok(runtime)) = (self.listener.take(), runtime()) {
            runtime.spawn(async move { listener.close(Duration::ZERO).await });
        }
    }
}

fn unsupported(cause: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorCode::EgressUnsupported,
        format!(
            "an allow list cannot be enforced here: {cause}. Use network: 'none', or run the agent on Linux beside a \
             Docker Engine of {MIN_VERSION} or later"
        ),
    )
}

/// What `network` comes to on this engine; refused when it cannot be kept.
pub fn decide(
    options: &Options,
    broker: Option<&Arc<Broker>>,
    engine: &Engine,
    transport: Transport,
) -> Result<Egress> {
    let hosts = match &options.network {
        Network::None => return Ok(Egress::Fixed("none")),
        Network::Default => return Ok(Egress::Fixed("default")),
        Network::Allow(hosts) => hosts,
    };
    // A list that nobody enforces is no way out.
    let Some(broker) = broker else {
        return Ok(Egress::Fixed("none"));
    };
    match &engine.kind {
        Kind::Native => {}
        Kind::Rootless => {
            return Err(unsupported(
                "the engine is rootless, and its networks are in a namespace of its own",
            ));
        }
        Kind::Machine(name) => {
            return Err(unsupported(format_args!(
                "the engine's containers run in a virtual machine ({name}), where the broker cannot listen"
            )));
        }
    }
    if engine.version < MIN_VERSION {
        return Err(unsupported(format_args!(
            "the engine is version {}, and engines before {MIN_VERSION} let DNS questions out of internal networks",
            engine.version
        )));
    }
    let allowed = Allowed {
        broker: broker.clone(),
        hosts: hosts.clone(),
        network_name: options.network_name.clone(),
        labels: options.labels.clone(),
    };
    match (options.egress, transport) {
        (Some(EgressMode::Network), _) | (None, Transport::Attach) => {
            Ok(Egress::Bridge(allowed, Box::default()))
        }
        (Some(EgressMode::Socket) | None, Transport::Socket) => Ok(Egress::Socket(allowed)),
        (Some(EgressMode::Socket), Transport::Attach) => Err(unsupported(
            "egress: 'socket' needs croft's own init in the container, and transport: 'attach' has none",
        )),
    }
}

impl Egress {
    /// Whether the init is to make a listener and hand it out.
    pub fn wants_listener(&self) -> bool {
        matches!(self, Egress::Socket(_))
    }

    /// The network that a container joins.
    pub async fn network(&self, engine: &Engine) -> Result<String> {
        match self {
            Egress::Fixed(name) => Ok((*name).to_owned()),
            Egress::Socket(_) => Ok("none".into()),
            // First runs that come together make one network.
            Egress::Bridge(allowed, bridge) => {
                let bridge = bridge.get_or_try_init(|| allowed.bridge(&engine.api)).await?;
                Ok(bridge.id.clone())
            }
        }
    }

    /// Opens the way out of one container, given the listener its init has made.
    pub async fn open(&self, listener: Option<std::net::TcpListener>) -> Result<Option<Opening>> {
        match (self, listener) {
            (Egress::Fixed(_), _) => Ok(None),
            (Egress::Socket(allowed), Some(socket)) => {
                let (broker, hosts) = (allowed.broker.clone(), allowed.hosts.clone());
                let listener = on_broker(async move { broker.adopt(socket, &hosts, false) }).await?;
                Ok(Some(Opening {
                    env: listener.env(),
                    listener: Some(Arc::new(listener)),
                }))
            }
            (Egress::Socket(_), None) => Err(unsupported("the container's init made no listener")),
            (Egress::Bridge(_, bridge), _) => Ok(bridge.get().map(|bridge| Opening {
                env: bridge.listener.env(),
                listener: None,
            })),
        }
    }

    /// After the last container has gone.
    pub async fn close(&self, api: &Docker) {
        let Egress::Bridge(_, bridge) = self else { return };
        let Some(bridge) = bridge.get() else { return };
        let listener = bridge.listener.clone();
        let closed = on_broker(async move {
            listener.close(Duration::ZERO).await;
            Ok(())
        });
        let _ = closed.await;
        if bridge.ours {
            remove_network(api, &bridge.id).await;
        }
    }
}

/// The engine takes a moment to let go of an endpoint whose container is gone.
pub async fn remove_network(api: &Docker, id: &str) {
    for _ in 0..50 {
        match api.remove_network(id).await {
            Ok(()) => return,
            Err(error) if refusal(&error).is_some_and(|(status, _)| status == 404) => return,
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn on_broker<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let gone = |_| Error::new(ErrorCode::Internal, "the broker failed unexpectedly");
    runtime()?.spawn(work).await.map_err(gone)?
}

impl Allowed {
    async fn bridge(&self, api: &Docker) -> Result<Bridge> {
        let (network, ours) = match &self.network_name {
            Some(name) => match inspect(api, name).await? {
                Some(found) => (found, false),
                None => (self.create(api, name).await?, true),
            },
            None => {
                let name = format!("lousho-egress-{}", super::container::random_name()?);
                (self.create(api, &name).await?, true)
            }
        };
        let id = network.id.clone().unwrap_or_default();
        let listening = async {
            let (gateway, subnet) = internal_addresses(&network)?;
            self.listen(gateway, subnet).await
        };
        match listening.await {
            Ok(listener) => Ok(Bridge { id, ours, listener }),
            Err(error) => {
                if ours {
                    remove_network(api, &id).await;
                }
                Err(error)
            }
        }
    }

    async fn create(&self, api: &Docker, name: &str) -> Result<NetworkInspect> {
        let mut last = match api.create_network(self.request(name, None)).await {
            Ok(_) => return self.created(api, name).await,
            Err(error) => error,
        };
        // 24 and earlier: "all predefined address pools have been fully subnetted".
        let exhausted = |message: &str| message.contains("address pool");
        if refusal(&last).is_some_and(|(_, message)| exhausted(message)) {
            for _ in 0..SPARE_ATTEMPTS {
                match api
                    .create_network(self.request(name, Some(spare_subnet()?)))
                    .await
                {
                    Ok(_) => return self.created(api, name).await,
                    Err(error) => last = error,
                }
            }
        }
        let (_, message) = refusal(&last).unwrap_or((0, "it does not answer"));
        Err(unavailable(format!(
            "the Docker engine made no network for the allow list ({message}). Remove unused ones with docker network \
             prune, widen default-address-pools, or use egress: 'socket', which needs none"
        )))
    }

    fn request(&self, name: &str, subnet: Option<Ipv4Net>) -> NetworkCreateRequest {
        NetworkCreateRequest {
            name: name.to_owned(),
            driver: Some("bridge".into()),
            internal: Some(true),
            enable_ipv6: Some(false),
            labels: Some(owner::labels("egress", &self.labels)),
            // Containers of one sandbox do not reach each other.
            options: Some(HashMap::from([(
                "com.docker.network.bridge.enable_icc".to_owned(),
                "false".to_owned(),
            )])),
            ipam: subnet.map(|subnet| Ipam {
                config: Some(vec![IpamConfig {
                    subnet: Some(subnet.to_string()),
                    // An engine shows the gateway of a given subnet only if it was given too.
                    gateway: subnet.hosts().next().map(|first| first.to_string()),
                    ..Default::default()
                }]),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    async fn created(&self, api: &Docker, name: &str) -> Result<NetworkInspect> {
        let vanished = || unavailable(format!("the network {name} vanished right after it was made"));
        inspect(api, name).await?.ok_or_else(vanished)
    }

    async fn listen(&self, gateway: IpAddr, subnet: String) -> Result<Arc<Listener>> {
        let (broker, hosts) = (self.broker.clone(), self.hosts.clone());
        let listening = on_broker(async move {
            let config = ListenConfig {
                host: gateway,
                clients: vec![subnet],
                allow: hosts,
                ..ListenConfig::default()
            };
            broker.listen(config).await
        });
        listening.await.map(Arc::new).map_err(|error| match error.code {
            // The gateway is an address of some other machine, or of another namespace.
            ErrorCode::BrokerFailed => unsupported(format_args!(
                "the broker cannot listen on the network's gateway {gateway}: the engine is not on this machine"
            )),
            _ => error,
        })
    }
}

async fn inspect(api: &Docker, name: &str) -> Result<Option<NetworkInspect>> {
    match api.inspect_network(name, None::<InspectNetworkOptions>).await {
        Ok(network) => Ok(Some(network)),
        Err(error) if refusal(&error).is_some_and(|(status, _)| status == 404) => Ok(None),
        Err(error) => Err(unavailable(format!(
            "the network {name} could not be looked at: {error}"
        ))),
    }
}

/// (gateway, subnet) of a network from which nothing else is reachable.
fn internal_addresses(network: &NetworkInspect) -> Result<(IpAddr, String)> {
    let name = network.name.as_deref().unwrap_or_default();
    if network.internal != Some(true) {
        return Err(unsupported(format_args!(
            "the network \"{name}\" exists and is not internal, so its containers reach everything. Choose another \
             networkName"
        )));
    }
    if network.enable_ipv6 == Some(true) {
        return Err(unsupported(format_args!(
            "the network \"{name}\" has IPv6 enabled"
        )));
    }
    let configs = network
        .ipam
        .iter()
        .filter_map(|ipam| ipam.config.as_ref())
        .flatten();
    let addresses = configs
        .filter_map(|config| {
            let gateway = config.gateway.as_deref()?.split('/').next()?.parse().ok()?;
            Some((gateway, config.subnet.clone()?))
        })
        .next();
    addresses.ok_or_else(|| unsupported(format_args!("the network \"{name}\" has no gateway address")))
}

/// Fourteen addresses out of the range that is set aside for benchmarks and routed nowhere.
fn spare_subnet() -> Result<Ipv4Net> {
    let mut bytes = [0; 3];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(ErrorCode::Io, format!("no random bytes: {error}")))?;
    let [a, b, c] = bytes;
    let subnet = Ipv4Net::new(Ipv4Addr::new(198, 18 + a % 2, b, c & 0xF0), 28);
    subnet.map_err(|_| Error::new(ErrorCode::Internal, "no such subnet"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn network(internal: bool, gateway: Option<&str>) -> NetworkInspect {
        NetworkInspect {
            name: Some("n".into()),
            internal: Some(internal),
            ipam: Some(Ipam {
                config: Some(vec![IpamConfig {
                    subnet: Some("172.19.0.0/16".into()),
                    gateway: gateway.map(str::to_owned),
                    ..Default::default()
                }]),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn only_an_internal_network_with_a_gateway_is_used() {
        let (gateway, subnet) = internal_addresses(&network(true, Some("172.19.0.1/16"))).unwrap();
        assert_eq!(
            (gateway.to_string().as_str(), subnet.as_str()),
            ("172.19.0.1", "172.19.0.0/16")
        );
        for bad in [network(false, Some("172.19.0.1")), network(true, None)] {
            let error = internal_addresses(&bad).unwrap_err();
            assert_eq!(error.code, ErrorCode::EgressUnsupported);
        }
    }

    #[test]
    fn a_spare_subnet_is_a_small_one_of_the_benchmark_range() {
        for _ in 0..50 {
            let subnet = spare_subnet().unwrap();
            assert_eq!((subnet.trunc(), subnet.prefix_len()), (subnet, 28));
            assert!("198.18.0.0/15".parse::<Ipv4Net>().unwrap().contains(&subnet));
        }
    }
}
