//! W: web pages and other local users. D: Docker, as far as a listener alone can show it.

use crate::support::*;
use croft::broker::ListenConfig;

pub async fn w01(side: Side) {
    let w = World::new(side).await;
    let (target, port) = (w.secure("api.test"), w.at.port());
    for host in [
        format!("rebind.evil:{port}"),
        "127.0.0.1".into(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
        "api.test".into(),
    ] {
        w.ask(format!(
            "GET /__broker/{target}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
        ))
        .await
        .is(403, "wrong-host");
    }
    for host in [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("[::1]:{port}"),
        w.at.to_string(),
    ] {
        w.ask(format!(
            "GET /__broker/{target}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
        ))
        .await
        .is(200, "");
    }
}

pub async fn w02(side: Side) {
    let w = World::new(side).await;
    for lines in [
        "Origin: https://evil.test\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n",
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            let (at, target) = (w.at, w.secure("api.test"));
            let answer = w
                .ask(format!(
                    "{method} /__broker/{target}/delete HTTP/1.1\r\nHost: {at}\r\n{lines}\r\n"
                ))
                .await;
            answer.is(403, "cross-site");
            assert!(
                !answer.head.to_lowercase().contains("access-control"),
                "{}",
                answer.head
            );
        }
    }
    assert_eq!(w.dialled(), 0);
    w.get_path("api.test", "/", "Sec-Fetch-Mode: cors\r\n")
        .await
        .is(200, "");
}

pub async fn w04(side: Side) {
    let w = Setup {
        auth: true,
        ..Setup::default()
    }
    .start(side)
    .await;
    let answer = w.get("api.test", "").await;
    answer.is(407, "auth-required");
    assert_eq!(answer.header("proxy-authenticate"), ["Basic realm=\"croft\""]);
    w.get("evil.test", "").await.is(407, "auth-required");
    w.get("api.test", "Proxy-Authorization: Basic Y3JvZnQ6d3Jvbmc=\r\n")
        .await
        .is(407, "auth-required");
    w.ask("CONNECT api.test:443 HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .is(407, "auth-required");
    w.get_path("api.test", "/", "").await.is(403, "token-required");
    assert_eq!(
        (w.dialled(), w.names.asked()),
        (0, vec![]),
        "nothing is looked up for a stranger"
    );
    // With the credential of the URL, as a client would send it, on the connection of the 407.
    let userinfo = w
        .listener
        .url
        .strip_prefix("http://")
        .unwrap()
        .split('@')
        .next()
        .unwrap()
        .to_owned();
    let basic = base64(userinfo.as_bytes());
    let target = w.plain("api.test");
    let mut client = w.open().await;
    client
        .send(format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"))
        .await;
    client.answer().await.is(407, "auth-required");
    client
        .send(format!(
            "GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {basic}\r\n\r\n"
        ))
        .await;
    client.answer().await.is(200, "");
    let base = w.listener.base_url(&w.secure("api.test")).unwrap();
    let path = base.strip_prefix(&format!("http://{}", w.at)).unwrap();
    w.ask(format!("GET {path}/x HTTP/1.1\r\nHost: {}\r\n\r\n", w.at))
        .await
        .is(200, "");
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let n = group.iter().fold(0u32, |n, &b| (n << 8) | u32::from(b)) << (8 * (3 - group.len()));
        for i in 0..4 {
            out.push(if i <= group.len() {
                ALPHABET[(n >> (18 - 6 * i)) as usize & 63] as char
            } else {
                '='
            });
        }
    }
    out
}

pub async fn w07(_: Side) {
    let w = World::new(Side::Main).await;
    for host in ["0.0.0.0", "::", "192.0.2.1"] {
        let config = ListenConfig {
            host: host.parse().unwrap(),
            ..ListenConfig::default()
        };
        let error = w.broker.listen(config).await.err().expect("refused");
        assert_eq!(error.code, croft::ErrorCode::InvalidArgument);
        assert!(error.message.contains("clients"), "{}", error.message);
    }
    let spelled = ListenConfig {
        host: "0.0.0.0".parse().unwrap(),
        clients: vec!["127.0.0.0/8".into()],
        ..ListenConfig::default()
    };
    assert!(w.broker.listen(spelled).await.is_ok());
}

async fn listener(w: &World, host: &str, clients: &[&str]) -> croft::broker::Listener {
    let clients = clients.iter().map(|c| c.to_string()).collect();
    w.broker
        .listen(ListenConfig {
            host: host.parse().unwrap(),
            clients,
            ..ListenConfig::default()
        })
        .await
        .unwrap()
}

pub async fn d01(_: Side) {
    let w = World::new(Side::Main).await;
    let strangers = listener(&w, "127.0.0.1", &["172.30.0.0/24"]).await;
    let mut client = Client::open(strangers.addr).await;
    let _ = tokio::io::AsyncWriteExt::write_all(&mut client.stream, b"GET / HTTP/1.1\r\n\r\n").await;
    assert_eq!(client.rest().await, b"", "closed before a byte is read");
    let event = w.event(1).await;
    assert_eq!(event.reason.map(|r| r.code()), Some("peer-not-allowed"));
    let members = listener(&w, "127.0.0.1", &["172.30.0.0/24", "127.0.0.0/8"]).await;
    let mut client = Client::open(members.addr).await;
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 403);
}

pub async fn d02(_: Side) {
    // A process of the host reaches a gateway address from that very address.
    let Some(own) = own_address() else { return };
    let w = World::new(Side::Main).await;
    let subnet = format!("{own}/24");
    let gateway = listener(&w, &own, &[&subnet]).await;
    assert_eq!(Client::open(gateway.addr).await.rest().await, b"");
    let listed = listener(&w, &own, &[&format!("{own}/32")]).await;
    let mut client = Client::open(listed.addr).await;
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 403);
}

fn own_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.200:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback()).then(|| ip.to_string())
}

pub async fn d07(_: Side) {
    let w = World::new(Side::Main).await;
    // An address that is not there yet is tried for a while, then named in the error.
    let config = ListenConfig {
        host: "203.0.113.7".parse().unwrap(),
        clients: vec!["203.0.113.0/24".into()],
        ..ListenConfig::default()
    };
    let error = soon(w.broker.listen(config)).await.err().expect("refused");
    assert_eq!(error.code, croft::ErrorCode::BrokerFailed);
    // A socket made elsewhere is served like any other.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let adopted = w.broker.adopt(socket, &["evil.test".into()], false).unwrap();
    let target = w.plain("evil.test");
    let mut client = Client::open(adopted.addr).await;
    client
        .send(format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"))
        .await;
    client.answer().await.is(200, "");
    w.get("evil.test", "").await.is(403, "host-not-allowed");
}

pub async fn d08(_: Side) {
    let w = World::new(Side::Main).await;
    // A dual-stack socket sees an IPv4 peer as ::ffff:127.0.0.1.
    let dual = listener(&w, "::", &["127.0.0.0/8"]).await;
    let mut client = Client::open(format!("127.0.0.1:{}", dual.addr.port()).parse().unwrap()).await;
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 403);
    assert_eq!(
        Client::open(format!("[::1]:{}", dual.addr.port()).parse().unwrap())
            .await
            .rest()
            .await,
        b"",
        "::1 is not listed"
    );
}
