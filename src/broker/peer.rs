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
    match ask_kernel(peer, local) {
        Some(answer) => answer,
        None => tokio::task::spawn_blocking(move || read_table(peer, local))
            .await
            .unwrap_or(Peer::Unknown),
    }
}

/// One exact lookup by sock_diag(7), some microseconds. `None` where that is not to be had.
#[cfg(target_os = "linux")]
fn ask_kernel(peer: SocketAddr, local: SocketAddr) -> Option<Peer> {
    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    };
    const ERROR: u16 = 2;
    const INODE_AT: usize = 84;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        flags,
        Some(netlink::SOCK_DIAG),
    )
    .ok()?;
    send(&socket, &diag_request(peer, local), SendFlags::empty()).ok()?;
    let mut answer = [0u8; 1024];
    // The kernel answers within `send`; there is nothing to wait for.
    let (n, _) = recv(&socket, &mut answer, RecvFlags::empty()).ok()?;
    let answer = answer.get(..n)?;
    let word = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    if u16::from_ne_bytes([*answer.get(4)?, *answer.get(5)?]) == ERROR {
        const NO_SUCH_SOCKET: i32 = -2;
        return (word(16)? as i32 == NO_SUCH_SOCKET).then_some(Peer::Unknown);
    }
    Some(if word(INODE_AT)? == 0 {
        Peer::Gone
    } else {
        Peer::There
    })
}

#[cfg(not(target_os = "linux"))]
fn ask_kernel(_: SocketAddr, _: SocketAddr) -> Option<Peer> {
    Some(Peer::Unknown)
}

/// `nlmsghdr`, `inet_diag_req_v2`: the one TCP socket with these ends, in any state.
#[cfg(target_os = "linux")]
fn diag_request(peer: SocketAddr, local: SocketAddr) -> Vec<u8> {
    const LENGTH: u32 = 72;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const REQUEST: u16 = 1;
    const TCP: u8 = 6;
    let family = if peer.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    } as u8;
    let mut out = Vec::with_capacity(LENGTH as usize);
    out.extend(LENGTH.to_ne_bytes());
    out.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend(REQUEST.to_ne_bytes());
    out.extend([0; 8]);
    out.extend([family, TCP, 0, 0]);
    out.extend(u32::MAX.to_ne_bytes());
    out.extend(peer.port().to_be_bytes());
    out.extend(local.port().to_be_bytes());
    for end in [peer, local] {
        let mut address = [0u8; 16];
        match end.ip() {
            std::net::IpAddr::V4(ip) => address[..4].copy_from_slice(&ip.octets()),
            std::net::IpAddr::V6(ip) => address = ip.octets(),
        }
        out.extend(address);
    }
    out.extend([0; 4]);
    out.extend([0xff; 8]);
    out
}

/// The same from /proc/net/tcp, which costs milliseconds when there are many sockets: one reader at a time.
#[cfg(target_os = "linux")]
fn read_table(peer: SocketAddr, local: SocketAddr) -> Peer {
    static READER: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let Ok(_only) = READER.try_lock() else {
        return Peer::There;
    };
    let table = if peer.is_ipv4() {
        "/proc/net/tcp"
    } else {
        "/proc/net/tcp6"
    };
    std::fs::read_to_string(table).map_or(Peer::Unknown, |text| find(&text, peer, local))
}

#[cfg(not(target_os = "linux"))]
fn read_table(_: SocketAddr, _: SocketAddr) -> Peer {
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
    fn a_closed_peer_is_told_from_a_half_closed_one_by_either_way() {
        for host in ["127.0.0.1", "::1"] {
            let listener = TcpListener::bind((host, 0)).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let local = server.local_addr().unwrap();
            let both = || {
                (
                    ask_kernel(peer, local).unwrap_or_else(|| read_table(peer, local)),
                    read_table(peer, local),
                )
            };
            assert_eq!(both(), (Peer::There, Peer::There));
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(both(), (Peer::There, Peer::There));
            drop(client);
            assert_eq!(both(), (Peer::Gone, Peer::Gone));
        }
        let nobody = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        assert_eq!(read_table(nobody.0, nobody.1), Peer::Unknown);
    }
}
