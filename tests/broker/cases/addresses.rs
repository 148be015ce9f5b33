//! A: addresses. N: names. M: matching.

use crate::support::*;
use croft::broker::policy::Policy;
use std::sync::atomic::Ordering;

/// Refused by what it is: never dialled, whatever its spelling.
async fn never_dialled(side: Side, hosts: &[&str]) {
    let setup = Setup {
        allow: hosts
            .iter()
            .filter(|h| {
                Policy::new(vec![], &[], &[])
                    .unwrap()
                    .allow_table(&[h.to_string()])
                    .is_ok()
            })
            .map(|h| h.to_string())
            .collect(),
        allow_private: vec![],
        ..Setup::default()
    };
    let w = setup.start(side).await;
    for host in hosts {
        let target = w.plain(host);
        for raw in [
            format!("GET http://{target}/ HTTP/1.1\r\nHost: x.test\r\n\r\n"),
            format!("CONNECT {target} HTTP/1.1\r\nHost: x.test\r\n\r\n"),
            format!("GET /__broker/{target}/ HTTP/1.1\r\nHost: {}\r\n\r\n", w.at),
        ] {
            let answer = w.ask(&raw).await;
            assert!(matches!(answer.status, 400 | 403), "{raw}: {}", answer.head);
        }
    }
    assert_eq!((w.dialled(), w.names.asked()), (0, vec![]));
}

pub async fn a01(side: Side) {
    never_dialled(
        side,
        &[
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "017700000001",
            "2130706433",
            "127.0.0.1.",
            "0",
            "0x0",
            "00.0.0.0",
            "127.000.000.001",
        ],
    )
    .await;
}

pub async fn a02(side: Side) {
    never_dialled(
        side,
        &[
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:7f00:1]",
            "[::ffff:a9fe:a9fe]",
            "[::1]",
            "[64:ff9b::7f00:1]",
        ],
    )
    .await;
}

pub async fn a04(side: Side) {
    let hosts = [
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    ];
    let setup = Setup {
        allow: hosts.iter().map(|h| h.to_string()).collect(),
        allow_private: [
            "169.254.0.0/16",
            "fd00::/8",
            "100.64.0.0/10",
            "168.63.0.0/16",
            "192.0.0.0/24",
        ]
        .map(String::from)
        .to_vec(),
        ..Setup::default()
    };
    let w = setup.start(side).await;
    for host in hosts {
        w.get(host, "").await.is(403, "address-not-allowed");
    }
    let setup = Setup {
        allow: vec!["169.254.169.254".into()],
        allow_private: vec!["169.254.169.254".into()],
        timeouts: croft::broker::limits::Timeouts {
            connect_ms: 300,
            ..Default::default()
        },
        ..Setup::default()
    };
    let listed = setup.start(side).await.get("169.254.169.254", "").await;
    assert!(
        listed.status >= 500,
        "listed by itself, it is dialled: {}",
        listed.head
    );
}

pub async fn a05(side: Side) {
    never_dialled(side, &["0.0.0.0", "[::]", "0.1.2.3"]).await;
}

pub async fn a07(side: Side) {
    let w = World::new(side).await;
    for raw in [
        "GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://[::1%25.api.test]/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT [::ffff:1.2.3.4%25x.svc.test]:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(w.ask(raw).await.status, 400, "{raw}");
    }
    assert_eq!((w.dialled(), w.names.asked()), (0, vec![]));
}

pub async fn a08(side: Side) {
    let w = World::new(side).await;
    // The broker's own listener, reached by a name that allowPrivate opens.
    let port = w.at.port();
    let mut own = rule("api.test", vec![]);
    own.ports = vec![port];
    let loops = Setup {
        rules: vec![own],
        ports: vec![port],
        allow_private: vec!["127.0.0.0/8".into()],
        ..Setup::default()
    }
    .start(side)
    .await;
    loops.names.set("api.test", &[&w.at.ip().to_string()]);
    loops
        .ask(format!("GET http://api.test:{port}/ HTTP/1.1\r\nHost: a\r\n\r\n"))
        .await
        .is(508, "loop");
    loops
        .ask(format!("CONNECT api.test:{port} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .await
        .is(508, "loop");
    // An upstream proxy that is a broker of this process.
    let around = Setup {
        upstream_proxy: Some(format!("http://{}", w.at)),
        allow_private: vec![],
        ..Setup::default()
    }
    .start(side)
    .await;
    around.get("free.test", "").await.is(508, "loop");
    // An address of this machine's own interface.
    if let Some(ip) = own_interface() {
        w.names.set("free.test", &[&ip]);
        w.get("free.test", "").await.is(403, "address-not-allowed");
    }
    assert_eq!(w.dialled(), 0);
}

fn own_interface() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("8.8.8.8:9").ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}

pub async fn a10(_: Side) {
    for net in ["0.0.0.0/0", "::/0"] {
        let error = Policy::new(vec![], &[net.to_string()], &[]).err().unwrap();
        assert_eq!(error.code, croft::ErrorCode::InvalidArgument);
    }
    assert!(Policy::new(vec![], &["10.0.0.0/8".into()], &[]).is_ok());
}

pub async fn n01(side: Side) {
    let w = Setup {
        allow_private: vec![],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.names.set("free.test", &["93.184.216.34", "127.0.0.1"]);
    w.get("free.test", "").await.is(403, "address-not-allowed");
    assert_eq!(w.names.asked(), ["free.test"], "one lookup");
    let w = World::new(side).await;
    w.get("free.test", "").await.is(200, "");
    assert_eq!((w.names.asked().len(), w.dialled()), (1, 1));
}

pub async fn n02(side: Side) {
    let w = Setup {
        allow_private: vec![],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.names.set("free.test", &["93.184.216.34", "10.0.0.1"]);
    let answer = w.get("free.test", "").await;
    answer.is(403, "address-not-allowed");
    assert!(!answer.text().contains("10.0.0.1"));
}

pub async fn n04(side: Side) {
    let w = World::new(side).await;
    w.get("free.test", "").await.is(200, "");
    w.names.set("free.test", &["10.0.0.1"]);
    w.get("free.test", "").await.is(200, "");
    assert_eq!(
        (w.names.asked().len(), w.http.dialled()),
        (1, 1),
        "the pooled connection stays on its address"
    );
    let target = w.plain("free.test");
    w.ask(format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n"))
        .await
        .is(403, "address-not-allowed");
}

pub async fn n05(side: Side) {
    let w = Setup {
        timeouts: croft::broker::limits::Timeouts {
            connect_ms: 200,
            ..Default::default()
        },
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get("hang.test", "").await.is(504, "dns-timeout");
    w.get("none.test", "").await.is(502, "dns-failed");
    w.names.set("free.test", &[]);
    w.get("free.test", "").await.is(502, "dns-failed");
    // 300 dead addresses cost no more than the budget.
    let many: Vec<String> = (0..300)
        .map(|n| format!("127.9.{}.{}", n / 250, n % 250 + 1))
        .collect();
    let w = Setup {
        allow_private: vec!["127.0.0.0/8".into()],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.names
        .set("free.test", &many.iter().map(String::as_str).collect::<Vec<_>>());
    let answer = w.get("free.test", "").await;
    answer.is(502, "connect-failed");
    assert!(!answer.text().contains("127.9"), "{}", answer.text());
}

pub async fn n07(side: Side) {
    let w = World::new(side).await;
    w.get("evil.test", "").await.is(403, "host-not-allowed");
    w.get_path("evil.test", "/", "").await.is(403, "host-not-allowed");
    w.ask("CONNECT evil.test:443 HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .is(403, "host-not-allowed");
    assert_eq!((w.names.asked(), w.dialled()), (vec![], 0));
}

pub async fn n08(_: Side) {
    use croft::broker::resolve::{Resolver, SystemResolver};
    // A single label goes out with its final dot: a search domain would have made it another name. The hosts file is
    // read first, which a final dot would have hidden.
    assert!(
        SystemResolver
            .resolve("localhost".into())
            .await
            .unwrap()
            .iter()
            .all(std::net::IpAddr::is_loopback)
    );
    assert!(
        SystemResolver
            .resolve("no-such-host-of-croft".into())
            .await
            .is_err()
    );
}

pub async fn m01(side: Side) {
    let w = World::new(side).await;
    for (host, status, reason) in [
        ("svc.test", 403, "host-not-allowed"),
        ("a.svc.test", 200, ""),
        ("b.a.svc.test", 200, ""),
        ("evilsvc.test", 403, "host-not-allowed"),
        ("svc.test.evil.com", 403, "host-not-allowed"),
    ] {
        w.get(host, "").await.is(status, reason);
    }
    assert_eq!(w.get(".svc.test", "").await.status, 400);
}

pub async fn m02(side: Side) {
    let fixed = |text: &str| croft::broker::value::HeaderSource::fixed(text).unwrap();
    let rules = vec![
        rule("*.svc.test", vec![("x-k", fixed("wide"))]),
        rule("a.svc.test", vec![("x-k", fixed("exact"))]),
    ];
    let w = Setup {
        rules,
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get("a.svc.test", "").await.is(200, "");
    assert_eq!(w.http.last().header("x-k"), ["exact"]);
    w.get("b.a.svc.test", "").await.is(200, "");
    assert_eq!(w.http.last().header("x-k"), ["wide"]);
    let twice = vec![rule("api.test", vec![]), rule("API.test", vec![])];
    assert!(Policy::new(twice, &[], &[]).is_err());
    let twice = vec![rule("api.test", vec![("X-K", fixed("a")), ("x-k", fixed("b"))])];
    assert!(Policy::new(twice, &[], &[]).is_err());
}

pub async fn m04(side: Side) {
    let w = World::new(side).await;
    let port = w.http.addr.port();
    drop(w);
    let w = Setup {
        rules: vec![rule(&format!("api.test:{port}"), vec![])],
        allow_private: vec!["127.0.0.0/8".into()],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get("api.test", "").await.is(403, "port-not-allowed");
    w.ask("CONNECT api.test:443 HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .is(403, "port-not-allowed");
    w.names.set("api.test", &["127.0.0.3"]);
    let named = w
        .ask(format!("GET http://api.test:{port}/ HTTP/1.1\r\nHost: a\r\n\r\n"))
        .await;
    assert_ne!(named.status, 403, "{}", named.head);
}

pub async fn m05(side: Side) {
    let w = World::new(side).await;
    w.names.set("10.0.0.1.svc.test", &["127.0.0.1"]);
    w.get("10.0.0.1.svc.test", "").await.is(200, "");
    w.get("1.2.3.4", "").await.is(403, "host-not-allowed");
}

pub async fn m06(side: Side) {
    let public = |cleartext| {
        let mut one = rule("api.test", vec![("authorization", bearer())]);
        one.cleartext = cleartext;
        Setup {
            rules: vec![one],
            timeouts: croft::broker::limits::Timeouts {
                connect_ms: 200,
                ..Default::default()
            },
            ..Setup::default()
        }
    };
    let w = public(false).start(side).await;
    w.names.set("api.test", &["93.184.216.34"]);
    w.ask("GET http://api.test/ HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .is(403, "cleartext-credential");
    assert_eq!(w.broker.stats().upstream_connections, 0);
    let w = public(true).start(side).await;
    w.names.set("api.test", &["93.184.216.34"]);
    w.ask("GET http://api.test/ HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(
        w.broker.stats().upstream_connections,
        1,
        "with cleartext: true it is dialled"
    );
    // Loopback and allowPrivate are the machine's own network.
    let w = World::new(side).await;
    w.get("api.test", "").await.is(200, "");
    assert_eq!(w.http.connections.load(Ordering::SeqCst), 1);
}
