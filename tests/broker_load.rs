//! The broker under load, in a process of its own: many idle tunnels beside many active streams, slow clients, no descriptors
//! left. One test, because its parts share the process's limits.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use croft::broker::limits::{Limits, Timeouts};
use croft::broker::resolve::Resolver;
use croft::broker::tunnel::Sni;
use croft::broker::value::BoxFuture;
use croft::broker::{Broker, BrokerConfig, ListenConfig};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TUNNELS: usize = 2_000;
const STREAMS: usize = 200;
const ROUNDS: usize = 10;

struct Here;

impl Resolver for Here {
    fn resolve(&self, _: String) -> BoxFuture<std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
    }
}

async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            tokio::spawn(async move {
                let mut buf = [0; 512];
                while let Ok(n @ 1..) = stream.read(&mut buf).await {
                    if stream.write_all(&buf[..n]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    addr
}

async fn tunnel(proxy: SocketAddr, port: u16) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(proxy).await?;
    stream
        .write_all(format!("CONNECT api.test:{port} HTTP/1.1\r\nHost: api.test\r\n\r\n").as_bytes())
        .await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 200"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    Ok(stream)
}

async fn round_trip(stream: &mut TcpStream) {
    let word = [7; 64];
    stream.write_all(&word).await.unwrap();
    let mut back = [0; 64];
    stream.read_exact(&mut back).await.unwrap();
    assert_eq!(back, word);
}

fn rss_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_is_carried_without_growth_and_exhaustion_is_survived() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )
    .unwrap();
    // Four descriptors a tunnel: client, accepted, dialled, echo.
    let tunnels =
        TUNNELS.min((limit.maximum.unwrap_or(u64::MAX) as usize).saturating_sub(1_000) / 4 - STREAMS);
    let upstream = echo().await;
    let broker = Broker::new(BrokerConfig {
        rules: vec![],
        allow_private: vec!["api.test".into()],
        ports: vec![upstream.port()],
        ca_pem: None,
        sni: Sni::Match,
        rewrite_location: false,
        timeouts: Timeouts {
            header_ms: 1_000,
            ..Timeouts::default()
        },
        limits: Limits::default(),
        upstream_proxy: None,
        sink: None,
        resolver: Arc::new(Here),
    })
    .unwrap();
    let listener = broker
        .listen(ListenConfig {
            allow: vec!["api.test".into()],
            ..ListenConfig::default()
        })
        .await
        .unwrap();
    let (proxy, port) = (listener.addr, upstream.port());

    let before = descriptors();
    let mut sizes = Vec::new();
    for _ in 0..ROUNDS {
        let mut idle = Vec::with_capacity(tunnels);
        for _ in 0..tunnels {
            idle.push(tunnel(proxy, port).await.unwrap());
        }
        let mut active = tokio::task::JoinSet::new();
        for _ in 0..STREAMS {
            active.spawn(async move {
                let mut stream = tunnel(proxy, port).await.unwrap();
                for _ in 0..50 {
                    round_trip(&mut stream).await;
                }
            });
        }
        while let Some(done) = active.join_next().await {
            done.unwrap();
        }
        round_trip(&mut idle[0]).await;
        sizes.push(rss_kib());
        drop(idle);
        until("all tunnels are closed", || {
            broker.stats().tunnels == 0 && broker.stats().connections == 0
        })
        .await;
        until("no descriptor is left", || descriptors() <= before).await;
    }
    eprintln!(
        "{tunnels} idle tunnels and {STREAMS} streams, RSS in KiB per round (clients and upstream included): {sizes:?}"
    );
    let (first, last) = (sizes[2], sizes[ROUNDS - 1]);
    assert!(last < first + first / 10 + 4_096, "grows: {sizes:?}");

    // Slow clients: three hundred heads that drip in do not slow one another, nor a tunnel.
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.write_all(b"GET http://api.te").await.unwrap();
        slow.push(stream);
    }
    let mut stream = tunnel(proxy, port).await.unwrap();
    for _ in 0..100 {
        tokio::time::timeout(Duration::from_secs(5), round_trip(&mut stream))
            .await
            .unwrap();
    }
    for mut one in slow {
        let mut answer = Vec::new();
        tokio::time::timeout(Duration::from_secs(10), one.read_to_end(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert!(
            answer.starts_with(b"HTTP/1.1 408"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }

    // No descriptors left: the listener survives, and works again once there are some.
    let scarce = descriptors() as u64 + 40;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(scarce),
            maximum: limit.maximum,
        },
    )
    .unwrap();
    let mut held = Vec::new();
    while let Ok(one) = TcpStream::connect(proxy).await {
        held.push(one);
    }
    assert!(!held.is_empty());
    round_trip(&mut stream).await;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    )
    .unwrap();
    drop(held);
    let mut again = tokio::time::timeout(Duration::from_secs(10), tunnel(proxy, port))
        .await
        .expect("accepts again")
        .unwrap();
    round_trip(&mut again).await;

    tokio::time::timeout(Duration::from_secs(1), broker.close(Duration::ZERO))
        .await
        .expect("closes within a second");
    let stats = broker.stats();
    assert_eq!(
        (stats.connections, stats.tunnels, stats.active_requests),
        (0, 0, 0)
    );
}
