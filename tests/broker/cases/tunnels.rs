//! C: CONNECT.

use crate::support::*;
use croft::broker::limits::Timeouts;
use croft::broker::tunnel::Sni;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, pki_types::ServerName, pki_types::pem::PemObject};

/// An upstream that echoes.
pub async fn echo() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                continue;
            };
            tokio::spawn(async move {
                let (mut r, mut w) = stream.split();
                let _ = tokio::io::copy(&mut r, &mut w).await;
                let _ = w.shutdown().await;
            });
        }
    });
    addr
}

async fn with_echo(side: Side, setup: Setup) -> (World, String) {
    let addr = echo().await;
    let setup = Setup {
        ports: vec![addr.port()],
        ..setup
    };
    (setup.start(side).await, format!("api.test:{}", addr.port()))
}

pub async fn c01(side: Side) {
    let (w, target) = with_echo(side, Setup::default()).await;
    let mut client = w.open().await;
    client
        .send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"))
        .await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(
        header_lines(&head, "content-length").is_empty()
            && header_lines(&head, "transfer-encoding").is_empty(),
        "{head}"
    );
    let opaque: Vec<u8> = (0..=255).collect();
    client.send(&opaque).await;
    assert_eq!(client.read(256).await, opaque);
}

pub async fn c02(side: Side) {
    let (w, target) = with_echo(side, Setup::default()).await;
    let mut client = w.open().await;
    client
        .send(format!(
            "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nearly bytes"
        ))
        .await;
    client.head().await;
    assert_eq!(client.read(11).await, b"early bytes");
}

pub async fn c04(side: Side) {
    let w = World::new(side).await;
    w.ask("CONNECT api.test HTTP/1.1\r\nHost: api.test\r\n\r\n")
        .await
        .is(400, "connect-form");
    w.ask("CONNECT api.test: HTTP/1.1\r\nHost: api.test\r\n\r\n")
        .await
        .is(400, "connect-form");
}

pub async fn c05(side: Side) {
    let w = World::new(side).await;
    for target in ["/x", "http://api.test:443/", "/__broker/api.test/x", "*"] {
        let answer = w
            .ask(format!("CONNECT {target} HTTP/1.1\r\nHost: {}\r\n\r\n", w.at))
            .await;
        assert_eq!(answer.status, 400, "{target}");
    }
    assert_eq!(w.dialled(), 0);
}

pub async fn c07(side: Side) {
    let w = World::new(side).await;
    w.ask("CONNECT evil.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n")
        .await
        .is(403, "host-not-allowed");
}

pub async fn c08(side: Side) {
    let (w, target) = with_echo(side, Setup::default()).await;
    for framing in [
        "Content-Length: 3",
        "Content-Length: 0",
        "Transfer-Encoding: chunked",
    ] {
        let mut client = w.open().await;
        client
            .send(format!(
                "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{framing}\r\n\r\nabc"
            ))
            .await;
        client.answer().await.is(400, "connect-form");
        assert_eq!(client.rest().await, b"", "closed");
    }
}

fn connector(w: &World) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let der = tokio_rustls::rustls::pki_types::CertificateDer::from_pem_slice(w.certificates.pem.as_bytes())
        .unwrap();
    roots.add(der).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn tls_through(w: &World, host: &str, sni: &str) -> std::io::Result<String> {
    let tunnel = w.connect(&w.secure(host)).await.stream;
    let mut tls = soon(connector(w).connect(ServerName::try_from(sni.to_owned()).unwrap(), tunnel)).await?;
    tls.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
        .await?;
    let mut out = Vec::new();
    let (head, body) = soon(read_message(&mut tls, &mut out, false))
        .await
        .ok_or(std::io::ErrorKind::UnexpectedEof)?;
    assert!(head.starts_with("HTTP/1.1 200"));
    Ok(String::from_utf8(body).unwrap())
}

pub async fn c10(side: Side) {
    let w = World::new(side).await;
    assert_eq!(tls_through(&w, "api.test", "api.test").await.unwrap(), "tls");
    assert!(
        tls_through(&w, "api.test", "free.test").await.is_err(),
        "another name ends the tunnel"
    );
    until("the audit record", || {
        let events = w.events.lock().unwrap();
        events
            .iter()
            .any(|e| e.reason.is_some_and(|r| r.code() == "sni-mismatch") && !e.allowed)
    })
    .await;
    assert_eq!(
        w.https.count(),
        1,
        "nothing of the second hello reached the upstream's HTTP"
    );
    // No name (an address), and no TLS at all, pass.
    assert_eq!(tls_through(&w, "api.test", "127.0.0.1").await.unwrap(), "tls");
    let (plain, target) = with_echo(side, Setup::default()).await;
    let mut client = plain.connect(&target).await;
    client.send("SSH-2.0-x\r\n").await;
    assert_eq!(client.read(11).await, b"SSH-2.0-x\r\n");
    // The stricter and the looser way.
    let strict = Setup {
        sni: Sni::Strict,
        ..Setup::default()
    }
    .start(side)
    .await;
    assert_eq!(tls_through(&strict, "api.test", "api.test").await.unwrap(), "tls");
    assert!(tls_through(&strict, "api.test", "127.0.0.1").await.is_err());
    let off = Setup {
        sni: Sni::Off,
        ..Setup::default()
    }
    .start(side)
    .await;
    assert_eq!(tls_through(&off, "api.test", "free.test").await.unwrap(), "tls");
}

pub async fn c11(side: Side) {
    let w = Setup {
        timeouts: Timeouts {
            connect_ms: 300,
            ..Timeouts::default()
        },
        allow_private: vec!["127.0.0.0/8".into(), "10.255.255.0/24".into()],
        ..Setup::default()
    }
    .start(side)
    .await;
    let target = w.plain("free.test");
    for (ips, status, reason) in [
        (&["127.0.0.9"][..], 502, "connect-failed"),
        (&[], 502, "dns-failed"),
    ] {
        w.names.set("free.test", ips);
        let answer = w
            .ask(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"))
            .await;
        answer.is(status, reason);
        assert!(!answer.text().contains("127.0.0"), "{}", answer.text());
    }
    w.ask(format!(
        "CONNECT hang.test:{} HTTP/1.1\r\nHost: a\r\n\r\n",
        w.http.addr.port()
    ))
    .await
    .is(504, "dns-timeout");
}

pub async fn c13(side: Side) {
    let w = World::new(side).await;
    // Passed untouched: the upstream sees the client's own words and no credential.
    let mut client = w.connect(&w.plain("api.test")).await;
    client
        .send("GET /x HTTP/1.1\r\nHost: api.test\r\nAuthorization: mine\r\n\r\n")
        .await;
    client.answer().await.is(200, "");
    assert_eq!(
        w.http.last().head,
        "GET /x HTTP/1.1\r\nHost: api.test\r\nAuthorization: mine\r\n\r\n"
    );
}

pub async fn c14(side: Side) {
    let w = World::new(side).await;
    for port in ["0", "65536", "-1", "0443"] {
        let answer = w
            .ask(format!("CONNECT api.test:{port} HTTP/1.1\r\nHost: a\r\n\r\n"))
            .await;
        assert_eq!(answer.status, 400, "{port}");
    }
}

pub async fn c16(side: Side) {
    let (w, target) = with_echo(side, Setup::default()).await;
    let mut client = w.connect(&target).await;
    client.send("last words").await;
    client.stream.shutdown().await.unwrap();
    assert_eq!(client.rest().await, b"last words");
}

pub async fn c17(side: Side) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let setup = Setup {
        ports: vec![addr.port()],
        timeouts: Timeouts {
            half_close_ms: 100,
            ..Timeouts::default()
        },
        ..Setup::default()
    };
    let w = setup.start(side).await;
    let mut client = w.connect(&format!("api.test:{}", addr.port())).await;
    let (mut held, _): (TcpStream, _) = soon(listener.accept()).await.unwrap();
    client.stream.shutdown().await.unwrap();
    // The upstream keeps its side open and says nothing: the tunnel is reaped all the same.
    assert_eq!(client.rest().await, b"");
    let mut rest = Vec::new();
    let _ = soon(held.read_to_end(&mut rest)).await;
    until("the tunnel is gone", || w.broker.stats().tunnels == 0).await;
}
