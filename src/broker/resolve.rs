//! A host to the addresses that may be dialled: looked up once, every address classified, and only these addresses
//! handed on. Whether the host may be asked for at all was decided in `route`, so no refused name reaches DNS.

use crate::broker::address::{Class, classify};
use crate::broker::host::Host;
use crate::broker::limits::MAX_ADDRESSES_TRIED;
use crate::broker::policy::Policy;
use crate::broker::refusal::{Reason, Refusal};
use crate::broker::value::BoxFuture;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

pub trait Resolver: Send + Sync {
    fn resolve(&self, name: String) -> BoxFuture<io::Result<Vec<IpAddr>>>;
}

/// The host's own way: its hosts file, then getaddrinfo with a final dot, so that no search domain makes `api` into
/// `api.corp.example`. (glibc does not find a name with a dot in the hosts file, hence the two steps.)
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: String) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let listed = tokio::task::spawn_blocking({
                let name = name.clone();
                move || {
                    std::fs::read_to_string(HOSTS_FILE)
                        .map(|text| hosts_entries(&text, &name))
                        .unwrap_or_default()
                }
            })
            .await
            .unwrap_or_default();
            if !listed.is_empty() {
                return Ok(listed);
            }
            let absolute = format!("{name}.");
            Ok(tokio::net::lookup_host((absolute, 0))
                .await?
                .map(|addr| addr.ip())
                .collect())
        })
    }
}

#[cfg(unix)]
const HOSTS_FILE: &str = "/etc/hosts";
#[cfg(not(unix))]
const HOSTS_FILE: &str = r"C:\Windows\System32\drivers\etc\hosts";

fn hosts_entries(text: &str, name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or("").split_ascii_whitespace();
        let Some(ip) = words.next().and_then(|word| word.parse().ok()) else {
            continue;
        };
        if words.any(|word| word.trim_end_matches('.').eq_ignore_ascii_case(name)) && !found.contains(&ip) {
            found.push(ip);
        }
    }
    found
}

/// Addresses that passed the check; the only ones the connection may go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub addresses: Vec<SocketAddr>,
    /// All are loopback or opened by `allowPrivate`: a credential may go there in clear text.
    pub trusted: bool,
}

pub async fn resolve(
    policy: &Policy,
    resolver: &dyn Resolver,
    host: &Host,
    port: u16,
) -> Result<Checked, Refusal> {
    let ips = match host {
        Host::Ip(ip) => vec![*ip],
        Host::Name(name) => resolver
            .resolve(name.clone())
            .await
            .map_err(|_| Refusal::about(Reason::DnsFailed, host))?,
    };
    check(policy, host, port, &ips, is_own_address)
}

/// One bad address refuses the name: a mixed answer is how a rebinding attack looks.
fn check(
    policy: &Policy,
    host: &Host,
    port: u16,
    ips: &[IpAddr],
    is_own: impl Fn(IpAddr) -> bool,
) -> Result<Checked, Refusal> {
    let mut trusted = true;
    for ip in ips.iter().map(IpAddr::to_canonical) {
        if policy.allow_private.permits(host, ip) {
            continue;
        }
        trusted = false;
        if classify(ip) != Class::Public || is_own(ip) {
            return Err(Refusal::about(Reason::AddressRefused, host));
        }
    }
    if ips.is_empty() {
        return Err(Refusal::about(Reason::DnsFailed, host));
    }
    let addresses = ips
        .iter()
        .take(MAX_ADDRESSES_TRIED)
        .map(|ip| SocketAddr::new(ip.to_canonical(), port))
        .collect();
    Ok(Checked { addresses, trusted })
}

/// Whether an interface of this machine has the address: the kernel then picks it as the source too. Nothing is sent.
fn is_own_address(ip: IpAddr) -> bool {
    let any: SocketAddr = if ip.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0u16; 8], 0).into()
    };
    let source =
        UdpSocket::bind(any).and_then(|socket| socket.connect((ip, 9)).and_then(|()| socket.local_addr()));
    source.is_ok_and(|source| source.ip() == ip)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn verdict(allow_private: &[&str], ips: &[&str]) -> Result<Checked, Reason> {
        let allow_private: Vec<String> = allow_private.iter().map(|s| s.to_string()).collect();
        let policy = Policy::new(vec![], &allow_private, &[]).unwrap();
        let ips: Vec<IpAddr> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        let own: IpAddr = "8.8.4.4".parse().unwrap();
        check(&policy, &Host::Name("api.test".into()), 443, &ips, |ip| ip == own)
            .map_err(|refusal| refusal.reason)
    }

    #[test]
    fn one_bad_address_refuses_the_name() {
        assert!(!verdict(&[], &["8.8.8.8", "2606:4700::1111"]).unwrap().trusted);
        for ips in [
            &["8.8.8.8", "10.0.0.1"][..],
            &["10.0.0.1"],
            &["8.8.8.8", "127.0.0.1"],
            &["::ffff:10.0.0.1"],
            &["169.254.169.254"],
            &["8.8.4.4"],
        ] {
            assert_eq!(verdict(&[], ips), Err(Reason::AddressRefused), "{ips:?}");
        }
        assert_eq!(verdict(&[], &[]), Err(Reason::DnsFailed));
    }

    #[test]
    fn what_allow_private_opens_is_trusted_with_clear_text_and_a_public_address_is_not() {
        assert!(
            verdict(&["api.test"], &["127.0.0.1", "10.0.0.1"])
                .unwrap()
                .trusted
        );
        assert!(verdict(&["10.0.0.0/8"], &["10.0.0.1"]).unwrap().trusted);
        assert!(
            !verdict(&["10.0.0.0/8"], &["10.0.0.1", "8.8.8.8"])
                .unwrap()
                .trusted
        );
        assert_eq!(
            verdict(&["api.test"], &["169.254.169.254"]),
            Err(Reason::AddressRefused)
        );
    }

    #[test]
    fn only_some_of_many_addresses_are_tried() {
        let many: Vec<String> = (0..300).map(|n| format!("8.0.{}.{}", n / 256, n % 256)).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(verdict(&[], &many).unwrap().addresses.len(), MAX_ADDRESSES_TRIED);
    }

    #[test]
    fn the_hosts_file_is_read_as_the_system_reads_it() {
        let text = "127.0.0.1 localhost\n# 1.1.1.1 api.test\n10.0.0.1\tother API.test # x\n::1 api.test. api.test\nbad api.test\n";
        let found = hosts_entries(text, "api.test");
        assert_eq!(
            found,
            ["10.0.0.1".parse::<IpAddr>().unwrap(), "::1".parse().unwrap()]
        );
        assert!(hosts_entries(text, "api").is_empty());
    }

    #[test]
    fn an_address_of_this_machine_is_known() {
        assert!(is_own_address("127.0.0.1".parse().unwrap()));
        assert!(!is_own_address("192.0.2.77".parse().unwrap()));
    }
}
