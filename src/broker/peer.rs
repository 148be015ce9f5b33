//! Whether a client that sent its FIN is still there to read: a half-close and a close look the same on the wire, and the
//! one is to be answered, the other to be let go.

use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    There,
    Gone,
    /// Not a socket of this network namespace.
    Unknown,
}

/// For a peer on this machine the kernel says: a socket that no process holds any more has inode 0.
pub async fn look(peer: SocketAddr, local: SocketAddr) -> Peer {
    tokio::task::spawn_blocking(move || look_now(peer, local))
        .await
        .unwrap_or(Peer::Unknown)
}

#[cfg(target_os = "linux")]
fn look_now(peer: SocketAddr, local: SocketAddr) -> Peer {
    let table = if peer.is_ipv4() {
        "/proc/net/tcp"
    } else {
        "/proc/net/tcp6"
    };
    std::fs::read_to_string(table).map_or(Peer::Unknown, |text| find(&text, peer, local))
}

#[cfg(not(target_os = "linux"))]
fn look_now(_: SocketAddr, _: SocketAddr) -> Peer {
    Peer::Unknown
}

#[cfg(any(target_os = "linux", test))]
fn find(table: &str, peer: SocketAddr, local: SocketAddr) -> Peer {
    let (peer, local) = (hex(peer), hex(local));
    for line in table.lines() {
        let mut fields = line.split_ascii_whitespace().skip(1);
        if fields.next() == Some(&peer) && fields.next() == Some(&local) {
            return match fields.nth(6) {
                Some("0") => Peer::Gone,
                _ => Peer::There,
            };
        }
    }
    Peer::Unknown
}

/// `0100007F:A0E8`: words of the address in host order, the port as a number.
#[cfg(any(target_os = "linux", test))]
fn hex(addr: SocketAddr) -> String {
    let words: String = match addr.ip() {
        std::net::IpAddr::V4(ip) => format!("{:08X}", u32::from_ne_bytes(ip.octets())),
        std::net::IpAddr::V6(ip) => ip
            .octets()
            .chunks_exact(4)
            .map(|w| format!("{:08X}", u32::from_ne_bytes([w[0], w[1], w[2], w[3]])))
            .collect(),
    };
    format!("{words}:{:04X}", addr.port())
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener, TcpStream};

    #[test]
    fn a_closed_peer_is_told_from_a_half_closed_one() {
        for host in ["127.0.0.1", "::1"] {
            let listener = TcpListener::bind((host, 0)).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let local = server.local_addr().unwrap();
            assert_eq!(look_now(peer, local), Peer::There);
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(look_now(peer, local), Peer::There);
            drop(client);
            assert_eq!(look_now(peer, local), Peer::Gone);
        }
    }
}
