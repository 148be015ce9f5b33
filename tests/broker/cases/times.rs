//! T: time and limits.

use crate::cases::tunnels::echo;
use crate::support::*;
use croft::broker::ListenConfig;
use croft::broker::limits::{Limits, Timeouts};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

pub async fn t01(side: Side) {
    let w = Setup {
        timeouts: Timeouts {
            header_ms: 300,
            ..Timeouts::default()
        },
        ..Setup::default()
    }
    .start(side)
    .await;
    let mut slow = w.open().await;
    for byte in "GET http://api.te".bytes() {
        if slow.stream.write_all(&[byte]).await.is_err() {
            break;
        }
        w.get("api.test", "").await.is(200, "");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    slow.answer().await.is(408, "header-timeout");
    // One that says nothing at all is closed without an answer.
    assert_eq!(w.open().await.rest().await, b"");
}

pub async fn t02(side: Side) {
    let w = Setup {
        timeouts: Timeouts {
            idle_ms: 400,
            header_ms: 200,
            ..Timeouts::default()
        },
        ..Setup::default()
    }
    .start(side)
    .await;
    let target = w.plain("api.test");
    let mut client = w.open().await;
    client
        .send(format!(
            "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: 8\r\n\r\n"
        ))
        .await;
    for byte in "progress".bytes() {
        tokio::time::sleep(Duration::from_millis(150)).await;
        client.send([byte]).await;
    }
    client.answer().await.is(200, "");
    // Longer than the upstream has to answer, too: its time runs from the last byte of the request.
    let timeouts = Timeouts {
        idle_ms: 400,
        response_ms: 200,
        ..Timeouts::default()
    };
    let w = Setup {
        timeouts,
        ..Setup::default()
    }
    .start(side)
    .await;
    let target = w.plain("api.test");
    let post = format!("POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: 8\r\n\r\n");
    let mut client = w.open().await;
    client.send(&post).await;
    for byte in "progress".bytes() {
        tokio::time::sleep(Duration::from_millis(100)).await;
        client.send([byte]).await;
    }
    client.answer().await.is(200, "");
    let mut stalled = w.open().await;
    stalled.send(format!("{post}abc")).await;
    stalled.answer().await.is(408, "idle");
}

pub async fn t04(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    let head = |lines: &str, path: &str| {
        format!("GET http://{target}{path} HTTP/1.1\r\nHost: {target}\r\n{lines}\r\n")
    };
    w.ask(head(&format!("X: {}\r\n", "a".repeat(64 * 1024)), "/"))
        .await
        .is(431, "head-too-large");
    w.ask(head(&"X: a\r\n".repeat(150), "/"))
        .await
        .is(431, "head-too-large");
    w.ask(head("", &format!("/{}", "a".repeat(70 * 1024))))
        .await
        .is(414, "target-too-long");
    w.ask(head("", &format!("/{}", "a".repeat(20 * 1024))))
        .await
        .is(414, "target-too-long");
    w.ask(head(&format!("X: {}\r\n", "a".repeat(32 * 1024)), "/"))
        .await
        .is(200, "");
    w.ask(head(&"X: a\r\n".repeat(90), &format!("/{}", "a".repeat(8000))))
        .await
        .is(200, "");
}

pub async fn t08(side: Side) {
    let addr = echo().await;
    let stuck = function(|_| std::future::pending());
    let rules = vec![
        rule("api.test", vec![("authorization", bearer())]),
        rule("a.svc.test", vec![("x-k", stuck)]),
    ];
    let w = Setup {
        rules,
        ports: vec![addr.port()],
        ..Setup::default()
    }
    .script(|_| Reply::Silence)
    .start(side)
    .await;
    let mut idle = w.open().await;
    let mut tunnel = w.connect(&format!("api.test:{}", addr.port())).await;
    let mut waiting = w.open().await;
    waiting
        .send(format!(
            "GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n",
            w.plain("api.test")
        ))
        .await;
    let mut asking = w.open().await;
    asking
        .send(format!(
            "GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n",
            w.plain("a.svc.test")
        ))
        .await;
    let mut uploading = w.open().await;
    uploading
        .send(format!(
            "POST http://{}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc",
            w.plain("api.test")
        ))
        .await;
    until("all are in progress", || w.broker.stats().active_requests == 4).await;
    let close = async {
        w.listener.close(Duration::ZERO).await;
        w.broker.close(Duration::ZERO).await;
        w.broker.close(Duration::ZERO).await;
    };
    tokio::time::timeout(Duration::from_secs(1), close)
        .await
        .expect("closed within a second");
    for client in [&mut idle, &mut tunnel, &mut waiting, &mut asking, &mut uploading] {
        client.rest().await;
    }
    let stats = w.broker.stats();
    assert_eq!(
        (stats.connections, stats.tunnels, stats.active_requests),
        (0, 0, 0)
    );
    assert!(tokio::net::TcpStream::connect(w.at).await.is_err());
    let again = std::net::TcpListener::bind(w.at);
    assert!(again.is_ok(), "the port is free at once");
    // With a drain, a request in progress is answered and an idle connection is closed.
    let (answer, gate) = tokio::sync::oneshot::channel::<()>();
    let gate = std::sync::Mutex::new(Some(gate));
    let slow = function(move |_| {
        let gate = gate.lock().unwrap().take();
        async move {
            if let Some(gate) = gate {
                let _ = gate.await;
            }
            Ok("late".to_owned())
        }
    });
    let w = Setup {
        rules: vec![rule("api.test", vec![("x-k", slow)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    let mut busy = w.open().await;
    busy.send(format!(
        "GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n",
        w.plain("api.test")
    ))
    .await;
    until("it is in progress", || w.broker.stats().active_requests == 1).await;
    let closing = w.listener.close(Duration::from_secs(5));
    let client = async {
        answer.send(()).unwrap();
        busy.answer().await.is(200, "");
    };
    soon(async { tokio::join!(closing, client) }).await;
}

pub async fn t10(side: Side) {
    let count = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let w = World::new(side).await;
    let mut first = 0;
    for round in 0..50 {
        let host = if side == Side::Main {
            "127.0.0.1"
        } else {
            "127.0.0.3"
        };
        let clients = if side == Side::Main {
            vec![]
        } else {
            vec!["127.0.0.0/8".to_owned()]
        };
        let listener = w
            .broker
            .listen(ListenConfig {
                host: host.parse().unwrap(),
                clients,
                ..ListenConfig::default()
            })
            .await
            .unwrap();
        let mut client = Client::open(listener.addr).await;
        client
            .send(format!(
                "GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n",
                w.plain("api.test")
            ))
            .await;
        client.answer().await.is(200, "");
        listener.close(Duration::ZERO).await;
        if round == 0 {
            first = count();
        }
    }
    // Other tests run beside this one and open sockets of their own; a leak of one per round would be seen.
    assert!(
        count() < first + 500,
        "{} descriptors after 50 rounds, {first} after one",
        count()
    );
}

pub async fn t13(side: Side) {
    let w = Setup {
        timeouts: Timeouts {
            response_ms: 200,
            ..Timeouts::default()
        },
        ..Setup::default()
    }
    .script(|_| Reply::Silence)
    .start(side)
    .await;
    w.get("api.test", "").await.is(504, "response-timeout");
    // A body that streams longer than that is not cut.
    let w = Setup {
        timeouts: Timeouts {
            response_ms: 200,
            ..Timeouts::default()
        },
        ..Setup::default()
    }
    .script(|_| "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab".into())
    .start(side)
    .await;
    let mut client = w.open().await;
    client
        .send(format!(
            "GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n",
            w.plain("api.test")
        ))
        .await;
    client.head().await;
    assert_eq!(client.read(2).await, b"ab");
    let more = tokio::time::timeout(Duration::from_millis(400), client.stream.readable()).await;
    assert!(more.is_err(), "still open");
}

pub async fn t14(side: Side) {
    let limits = Limits {
        max_connections: 3,
        ..Limits::default()
    };
    let w = Setup {
        limits,
        ..Setup::default()
    }
    .start(side)
    .await;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut client = w.open().await;
        client
            .send(format!(
                "GET http://{}/ HTTP/1.1\r\nHost: a\r\n\r\n",
                w.plain("api.test")
            ))
            .await;
        client.answer().await.is(200, "");
        held.push(client);
    }
    let mut over = w.open().await;
    over.answer().await.is(503, "too-many-connections");
    assert_eq!(over.rest().await, b"");
    held.pop();
    until("a place is free", || w.broker.stats().connections == 2).await;
    w.get("api.test", "").await.is(200, "");
}
