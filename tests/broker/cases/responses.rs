//! R: responses and streams.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// An upstream whose every connection is spoken by hand.
async fn by_hand(side: Side) -> (World, TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let w = Setup {
        ports: vec![port],
        ..Setup::default()
    }
    .start(side)
    .await;
    (w, listener, format!("api.test:{port}"))
}

async fn accept(listener: &TcpListener) -> Client {
    Client {
        stream: soon(listener.accept()).await.unwrap().0,
        buf: Vec::new(),
    }
}

fn get(target: &str) -> String {
    format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

pub async fn r01(side: Side) {
    let (w, listener, target) = by_hand(side).await;
    let mut client = w.open().await;
    let post = format!(
        "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    );
    client.send(&post).await;
    let mut upstream = accept(&listener).await;
    assert!(upstream.head().await.contains("expect: 100-continue"));
    upstream
        .send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert_eq!(client.answer().await.status, 401, "no 100 was invented before");
    // And the other way: 100 when the upstream says so, then the body.
    let mut client = w.open().await;
    client.send(&post).await;
    let mut upstream = accept(&listener).await;
    upstream.head().await;
    upstream.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 100 Continue"));
    client.send("abc").await;
    assert_eq!(upstream.read(3).await, b"abc");
    upstream
        .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    client.answer().await.is(200, "");
    w.ask(post.replace("100-continue", "200-ok"))
        .await
        .is(417, "expect-unknown");
}

pub async fn r02(side: Side) {
    let w = Setup::default()
        .script(|_| {
            "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                .into()
        })
        .start(side)
        .await;
    let answer = w.get("api.test", "").await;
    assert_eq!((answer.status, answer.text()), (200, "ok".into()));
}

pub async fn r04(side: Side) {
    let w = Setup::default()
        .script(|seen| match seen.line() {
            line if line.starts_with("HEAD") => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".into(),
            line if line.contains("/204") => "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n".into(),
            line if line.contains("/304") => "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".into(),
            _ => ok("body"),
        })
        .start(side)
        .await;
    let target = w.plain("api.test");
    let mut client = w.open().await;
    for (method, path, status, length) in [
        ("HEAD", "/", 200, Some("5")),
        ("GET", "/204", 204, None),
        ("GET", "/304", 304, Some("5")),
    ] {
        client
            .send(format!(
                "{method} http://{target}{path} HTTP/1.1\r\nHost: {target}\r\n\r\n"
            ))
            .await;
        let head = client.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
        assert_eq!(
            header_lines(&head, "content-length").first().map(String::as_str),
            length,
            "{method} {path}"
        );
    }
    client.send(get(&target)).await;
    assert_eq!(
        client.answer().await.text(),
        "body",
        "the connection is still in step"
    );
    assert_eq!(w.http.dialled(), 1, "and so is the upstream's");
}

pub async fn r05(side: Side) {
    let w = Setup::default()
        .script(|_| {
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
                .into()
        })
        .start(side)
        .await;
    let answer = w.get("api.test", "").await;
    assert_eq!((answer.status, answer.text()), (200, "ok".into()));
    assert_eq!(answer.header("content-length"), [""; 0]);
}

pub async fn r07(side: Side) {
    for line in ["X: a\rb", "X: a\r\n b", "X: a\0b", "X : a"] {
        let reply = format!("HTTP/1.1 200 OK\r\n{line}\r\nContent-Length: 0\r\n\r\n");
        let w = Setup::default()
            .script(move |_| reply.as_str().into())
            .start(side)
            .await;
        w.get("api.test", "").await.is(502, "upstream-failed");
    }
    for coding in ["gzip", "gzip, chunked"] {
        let reply = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n2\r\nok\r\n0\r\n\r\n");
        let w = Setup::default()
            .script(move |_| Reply::BytesThenClose(reply.clone().into_bytes()))
            .start(side)
            .await;
        w.get("api.test", "").await.is(502, "upstream-failed");
    }
    let w = Setup::default()
        .script(|_| "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw".into())
        .start(side)
        .await;
    w.get("api.test", "").await.is(502, "upstream-failed");
}

pub async fn r08(side: Side) {
    let w = Setup::default()
        .script(|_| "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nX-Broker-Error: forged\r\nContent-Length: 0\r\n\r\n".into())
        .start(side)
        .await;
    let answer = w.get("api.test", "").await;
    answer.is(200, "");
    for name in ["x-hop", "keep-alive", "proxy-authenticate", "connection"] {
        assert_eq!(answer.header(name), [""; 0], "{name}");
    }
}

pub async fn r10(side: Side) {
    let w = Setup::default()
        .script(|seen| match seen.line().contains("/close") {
            true => Reply::BytesThenClose(b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec()),
            false => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n".into(),
        })
        .start(side)
        .await;
    let target = w.plain("api.test");
    let mut client = w.open().await;
    client
        .send(format!("GET http://{target}/ HTTP/1.0\r\n\r\n"))
        .await;
    let answer = client.answer().await;
    assert_eq!(
        (answer.header("transfer-encoding").len(), answer.text()),
        (0, "ok".into()),
        "{}",
        answer.head
    );
    let answer = w
        .ask(format!("GET http://{target}/close HTTP/1.1\r\nHost: a\r\n\r\n"))
        .await;
    assert_eq!(
        (answer.header("transfer-encoding"), answer.text()),
        (vec!["chunked".to_owned()], "until the end".into())
    );
}

pub async fn r11(side: Side) {
    let (w, listener, target) = by_hand(side).await;
    let mut client = w.open().await;
    client.send(get(&target)).await;
    let mut upstream = accept(&listener).await;
    upstream.head().await;
    upstream
        .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    client.head().await;
    for n in 0..20 {
        // Each event arrives by itself: the next one is not sent before this one was seen.
        let event = format!("data: {n}\n\n");
        let chunk = format!("{:X}\r\n{event}\r\n", event.len());
        upstream.send(&chunk).await;
        assert_eq!(client.read(chunk.len()).await, chunk.as_bytes());
    }
}

/// How many bytes were taken once no more are.
async fn once_stalled(taken: &AtomicUsize) -> usize {
    soon(async {
        let mut last = usize::MAX;
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = taken.load(Ordering::SeqCst);
            if now == last {
                return now;
            }
            last = now;
        }
    })
    .await
}

pub async fn r13(side: Side) {
    // A client that does not read stops the upstream: what is in flight stays within socket and hyper buffers.
    let (w, listener, target) = by_hand(side).await;
    let mut client = w.open().await;
    client.send(get(&target)).await;
    let mut upstream = accept(&listener).await;
    upstream.head().await;
    const TOTAL: usize = 64 << 20;
    upstream
        .send(format!("HTTP/1.1 200 OK\r\nContent-Length: {TOTAL}\r\n\r\n"))
        .await;
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let writer = tokio::spawn(async move {
        let block = vec![7u8; 64 << 10];
        while counter.load(Ordering::SeqCst) < TOTAL {
            upstream.stream.write_all(&block).await.unwrap();
            counter.fetch_add(block.len(), Ordering::SeqCst);
        }
    });
    let stalled = once_stalled(&sent).await;
    assert!(
        stalled < 32 << 20,
        "{stalled} bytes were taken from the upstream while nobody read"
    );
    let head = client.head().await;
    assert!(head.contains(&TOTAL.to_string()));
    let mut left = TOTAL - client.buf.len();
    let mut block = vec![0; 1 << 20];
    while left > 0 {
        left -= soon(client.stream.read(&mut block)).await.unwrap();
    }
    writer.await.unwrap();
}

pub async fn r14(side: Side) {
    let (w, listener, target) = by_hand(side).await;
    // In the middle of a download, and while the answer is still awaited.
    for head in [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "",
    ] {
        let mut client = w.open().await;
        client.send(get(&target)).await;
        let mut upstream = accept(&listener).await;
        upstream.head().await;
        upstream.send(head).await;
        if !head.is_empty() {
            client.head().await;
        }
        drop(client);
        let began = Instant::now();
        let mut rest = Vec::new();
        let _ = soon(upstream.stream.read_to_end(&mut rest)).await;
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "the upstream learns of it"
        );
    }
    // A client that only ends its own side is served.
    let mut client = w.open().await;
    client.send(get(&target)).await;
    client.stream.shutdown().await.unwrap();
    let mut upstream = accept(&listener).await;
    upstream.head().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    upstream
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        .await;
    assert_eq!(client.answer().await.text(), "ok");
}

pub async fn r16(side: Side) {
    let (w, listener, target) = by_hand(side).await;
    let mut client = w.open().await;
    client.send(get(&target)).await;
    let mut upstream = accept(&listener).await;
    upstream.head().await;
    upstream
        .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    client.answer().await.is(200, "");
    // The POST arrives on the reused connection, which then dies: it is not sent a second time.
    client
        .send(format!(
            "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: 3\r\n\r\nabc"
        ))
        .await;
    assert!(upstream.head().await.starts_with("POST"));
    drop(upstream);
    client.answer().await.is(502, "upstream-failed");
    let second = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
    assert!(second.is_err(), "no second connection was opened for it");
    // A GET in the same place is repeated once.
    let mut client = w.open().await;
    client.send(get(&target)).await;
    let mut upstream = accept(&listener).await;
    upstream.head().await;
    upstream
        .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    client.answer().await.is(200, "");
    client.send(get(&target)).await;
    upstream.head().await;
    drop(upstream);
    let mut upstream = accept(&listener).await;
    upstream.head().await;
    upstream
        .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        .await;
    client.answer().await.is(200, "");
}

pub async fn r17(side: Side) {
    let w = World::new(side).await;
    let elsewhere = format!("http://{}/", w.plain("evil.test"));
    let reply = format!("HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n");
    let w = Setup::default()
        .script(move |_| reply.as_str().into())
        .start(side)
        .await;
    let answer = w.get("api.test", "").await;
    assert_eq!((answer.status, answer.header("location")), (302, vec![elsewhere]));
    assert_eq!(w.http.count(), 1, "never followed");
    w.get("evil.test", "").await.is(403, "host-not-allowed");
}

pub async fn r19(side: Side) {
    let w = Setup::default()
        .script(|seen| {
            assert_eq!(seen.header("range"), ["bytes=1-3"]);
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1-3/10\r\nContent-Length: 3\r\nETag: \"x\"\r\n\r\nabc".into()
        })
        .start(side)
        .await;
    let answer = w.get("api.test", "Range: bytes=1-3\r\n").await;
    assert_eq!(
        (answer.status, answer.header("content-range"), answer.text()),
        (206, vec!["bytes 1-3/10".into()], "abc".into())
    );
    // An upload waits for an upstream that does not read, and then passes in pieces (the 8 GB of the case is only more
    // of the same).
    let (w, listener, target) = by_hand(side).await;
    const TOTAL: usize = 64 << 20;
    let mut client = w.open().await;
    client
        .send(format!(
            "PUT http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: {TOTAL}\r\n\r\n"
        ))
        .await;
    let mut upstream = accept(&listener).await;
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = taken.clone();
    let writer = tokio::spawn(async move {
        let block = vec![9u8; 64 << 10];
        for _ in 0..TOTAL / block.len() {
            client.stream.write_all(&block).await.unwrap();
            counter.fetch_add(block.len(), Ordering::SeqCst);
        }
        client
    });
    upstream.head().await;
    let stalled = once_stalled(&taken).await;
    assert!(
        stalled < 32 << 20,
        "{stalled} bytes were taken from the client while the upstream read nothing"
    );
    let mut left = TOTAL - upstream.buf.len();
    let mut block = vec![0; 1 << 20];
    while left > 0 {
        left -= soon(upstream.stream.read(&mut block)).await.unwrap();
    }
    upstream
        .send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        .await;
    assert_eq!(writer.await.unwrap().answer().await.status, 201);
}

const HANDSHAKE: &str =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n";

pub async fn r20(side: Side) {
    let (w, listener, target) = by_hand(side).await;
    let mut client = w.open().await;
    client
        .send(format!(
            "GET http://{target}/ws HTTP/1.1\r\nHost: {target}\r\n{HANDSHAKE}\r\n"
        ))
        .await;
    let mut upstream = accept(&listener).await;
    let head = upstream.head().await;
    assert_eq!(header_lines(&head, "authorization"), [format!("Bearer {SECRET}")]);
    assert_eq!(header_lines(&head, "upgrade"), ["websocket"]);
    upstream.send(format!("{SWITCH}first")).await;
    assert!(client.head().await.starts_with("HTTP/1.1 101"));
    assert_eq!(client.read(5).await, b"first", "bytes sent with the 101 arrive");
    client.send("ping").await;
    assert_eq!(upstream.read(4).await, b"ping");
    upstream.send("pong").await;
    assert_eq!(client.read(4).await, b"pong");
    upstream.stream.shutdown().await.unwrap();
    client.stream.shutdown().await.unwrap();
    assert_eq!(client.rest().await, b"");
    until("the event", || {
        w.events
            .lock()
            .unwrap()
            .iter()
            .any(|e| e.kind.as_str() == "upgrade" && e.bytes_in == 4)
    })
    .await;
    // The same over TLS, by the path form.
    let w = Setup::default()
        .script_tls(|_| Reply::Bytes(format!("{SWITCH}hello").into_bytes()))
        .start(side)
        .await;
    let mut client = w.open().await;
    client
        .send(format!(
            "GET /__broker/{}/ws HTTP/1.1\r\nHost: {}\r\n{HANDSHAKE}\r\n",
            w.secure("api.test"),
            w.at
        ))
        .await;
    assert!(client.head().await.starts_with("HTTP/1.1 101"));
    assert_eq!(client.read(5).await, b"hello");
    assert_eq!(
        w.https.last().header("authorization"),
        [format!("Bearer {SECRET}")]
    );
}

pub async fn r21(side: Side) {
    let w = World::new(side).await;
    assert_eq!(w.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.status, 400);
    let answer = w.get("free.test", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n").await;
    answer.is(200, "");
    assert_eq!(w.http.last().header("upgrade"), [""; 0], "h2c is not taken up");
}

pub async fn expect_without_a_word_from_the_upstream(side: Side) {
    // The upstream waits for the body without saying 100: after a second the body is sent all the same.
    let w = World::new(side).await;
    let target = w.plain("api.test");
    for end in [false, true] {
        let mut client = w.open().await;
        client.send(format!("POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc")).await;
        if end {
            client.stream.shutdown().await.unwrap();
        }
        assert!(client.head().await.starts_with("HTTP/1.1 100"));
        client.answer().await.is(200, "");
        assert_eq!(w.http.last().body, b"abc");
    }
}
