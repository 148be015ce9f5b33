//! F: framing.

use crate::support::*;
use tokio::io::AsyncWriteExt;

/// POSTs with these header lines and this body; every one is refused, the connection closed, nothing sent on.
async fn refused(side: Side, messages: &[(&str, &str)], status: u16) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    for (lines, body) in messages {
        let mut client = w.open().await;
        client
            .send(format!(
                "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\n{lines}\r\n{body}"
            ))
            .await;
        let answer = client.answer().await;
        assert_eq!(answer.status, status, "{lines:?}: {}", answer.head);
        assert_eq!(client.rest().await, b"", "closed after {lines:?}");
    }
    assert_eq!(w.http.count(), 0);
}

pub async fn f01(side: Side) {
    let cl_te = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n";
    let te_cl = "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n";
    refused(side, &[(cl_te, "0\r\n\r\n"), (te_cl, "0\r\n\r\n")], 400).await;
}

pub async fn f02(side: Side) {
    refused(
        side,
        &[
            ("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"),
            ("Content-Length: 3, 4\r\n", "abcd"),
        ],
        400,
    )
    .await;
}

pub async fn f04(side: Side) {
    let lines = ["+3", "-1", "0x3", "18446744073709551616", "", "3 ", "03x"]
        .map(|v| format!("Content-Length: {v}\r\n"));
    let messages: Vec<(&str, &str)> = lines
        .iter()
        .filter(|l| !l.contains("3 "))
        .map(|l| (l.as_str(), "abc"))
        .collect();
    refused(side, &messages, 400).await;
}

pub async fn f05(side: Side) {
    refused(
        side,
        &[
            ("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
            ("Transfer-Encoding: gzip\r\n", "abc"),
        ],
        400,
    )
    .await;
}

pub async fn f07(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    let raw = format!(
        "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    );
    w.ask(raw).await.is(200, "");
    assert_eq!(w.http.last().body, b"abc");
}

pub async fn f08(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    let raw =
        format!("POST http://{target}/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    w.ask(raw).await.is(400, "bad-framing");
    assert_eq!(w.dialled(), 0);
}

/// A chunked body that is good at first, then not: refused, and what follows it is never a request.
async fn bad_chunks(side: Side, bodies: &[&str]) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    for body in bodies {
        let mut client = w.open().await;
        let smuggled = format!("GET http://{target}/smuggled HTTP/1.1\r\nHost: {target}\r\n\r\n");
        client.send(format!("POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\n\r\n{body}{smuggled}")).await;
        let answer = client.answer().await;
        assert_eq!(
            (answer.status, answer.reason().as_str()),
            (400, "bad-framing"),
            "{body:?}: {}",
            answer.head
        );
        assert_eq!(client.rest().await, b"", "closed after {body:?}");
    }
    assert_eq!(w.http.count(), 0, "no whole request reached the upstream");
}

pub async fn f10(side: Side) {
    bad_chunks(
        side,
        &[
            "3\nabc\r\n0\r\n\r\n",
            "3;a\nb\r\nabc\r\n0\r\n\r\n",
            "3;a=\n\r\nabc\r\n0\r\n\r\n",
            "3\r\nabc\r\n0\n\r\n",
            "0x3\r\nabc\r\n0\r\n\r\n",
        ],
    )
    .await;
}

pub async fn f11(side: Side) {
    bad_chunks(
        side,
        &[
            "3\r\nabcXX0\r\n\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
        ],
    )
    .await;
}

pub async fn f13(side: Side) {
    let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Down, Authorization\r\n\r\n2\r\nok\r\n0\r\nX-Down: 1\r\nAuthorization: x\r\nX-Undeclared: 2\r\n\r\n";
    let w = Setup::default().script(move |_| reply.into()).start(side).await;
    let target = w.plain("api.test");
    let post = |lines: &str| {
        format!(
            "POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nTransfer-Encoding: chunked\r\n{lines}\r\n3\r\nabc\r\n0\r\nAuthorization: mine\r\nContent-Length: 9\r\nHost: evil\r\nX-T: t\r\n\r\n"
        )
    };
    let answer = w
        .ask(post(
            "Trailer: X-T, Authorization, Content-Length, Host\r\nTE: trailers\r\n",
        ))
        .await;
    assert_eq!(String::from_utf8_lossy(&w.http.last().body), "abcx-t: t\r\n");
    assert_eq!(answer.text(), "okx-down: 1\r\n");
    let answer = w.ask(post("")).await;
    assert_eq!(w.http.last().body, b"abc", "undeclared trailers are dropped");
    assert_eq!(
        answer.text(),
        "ok",
        "a client that did not ask for trailers gets none"
    );
}

pub async fn f14(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    w.ask(format!(
        "GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: 3\r\n\r\nabc"
    ))
    .await
    .is(200, "");
    let seen = w.http.last();
    assert_eq!(
        (seen.body.as_slice(), seen.header("content-length")),
        (&b"abc"[..], vec!["3".to_owned()])
    );
}

pub async fn f16(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    for raw in [
        format!("GET http://{target}/ HTTP/1.1\nHost: {target}\n\n"),
        format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nX: a\nProxy-Authorization: b\r\n\r\n"),
        format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\n\r\n"),
    ] {
        w.ask(raw).await.is(400, "bad-request");
    }
    assert_eq!(w.dialled(), 0);
}

pub async fn f17(side: Side) {
    refused(
        side,
        &[("X: a\rb\r\n", ""), ("X: a\0b\r\n", ""), ("X: \x01\r\n", "")],
        400,
    )
    .await;
}

pub async fn f19(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    let mut raw = format!(
        "GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: \u{e9}\r\nX-Bytes: "
    )
    .into_bytes();
    raw.extend([0xff, 0xfe, b'a']);
    raw.extend(b"\r\n\r\n");
    // Kept by bytes: the upstream's text form of them is lossy on both sides alike.
    w.ask(raw).await.is(200, "");
    assert_eq!(
        w.http.last().header("x-bytes"),
        [String::from_utf8_lossy(&[0xff, 0xfe, b'a'])]
    );
    assert_eq!(w.http.last().header("proxy-authorization"), [""; 0]);
}

pub async fn f20(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    w.ask(format!(
        "\r\n\r\nGET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"
    ))
    .await
    .is(200, "");
    assert_eq!(w.ask("\r\n".repeat(40)).await.status, 400);
    let mut client = w.open().await;
    for piece in ["\r", "\n\r", "\n"] {
        client.send(piece).await;
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    client
        .send(format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"))
        .await;
    client.answer().await.is(200, "");
}

pub async fn f22(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    for line in [
        format!("GET  http://{target}/ HTTP/1.1"),
        format!("GET\thttp://{target}/ HTTP/1.1"),
        format!("GET http://{target}/  HTTP/1.1"),
    ] {
        w.ask(format!("{line}\r\nHost: {target}\r\n\r\n"))
            .await
            .is(400, "bad-request");
    }
    assert_eq!(w.dialled(), 0);
}

pub async fn f23(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    let evil = w.plain("evil.test");
    let mut client = w.open().await;
    client
        .send(format!(
            "GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nGET http://{evil}/ HTTP/1.1\r\nHost: {evil}\r\n\r\n"
        ))
        .await;
    client.answer().await.is(200, "");
    client.answer().await.is(403, "host-not-allowed");
    assert_eq!(
        w.http.count(),
        1,
        "the second request was judged by the broker, not passed on"
    );
}

pub async fn f25(side: Side) {
    // The upstream answers without reading the body; the next request on the client's connection is not made of it.
    let w = Setup::default()
        .script(|_| "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".into())
        .start(side)
        .await;
    let target = w.plain("api.test");
    let mut client = w.open().await;
    let body = format!("GET http://{}/ HTTP/1.1\r\nHost: x\r\n\r\n", w.plain("evil.test"));
    client
        .send(format!(
            "POST http://{}/ HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            w.plain("evil.test"),
            body.len() + 100_000
        ))
        .await;
    client.answer().await.is(403, "host-not-allowed");
    let _ = client.stream.write_all(body.as_bytes()).await;
    assert_eq!(client.rest().await, b"", "an unread body closes the connection");
    drop(target);
    assert_eq!(w.http.count(), 0);
}
