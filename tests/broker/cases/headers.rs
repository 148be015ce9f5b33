//! B: header hygiene. L: leaks.

use crate::support::*;
use croft::broker::policy::Policy;
use croft::broker::refusal::Reason;
use croft::broker::value::HeaderSource;

pub async fn b01(side: Side) {
    let w = World::new(side).await;
    for host in ["api.test", "free.test"] {
        w.get(
            host,
            "Proxy-Authorization: a\r\nPROXY-AUTHORIZATION: b\r\nProxy-Connection: keep-alive\r\n",
        )
        .await
        .is(200, "");
        assert!(
            !w.http.last().head.to_lowercase().contains("proxy-"),
            "{}",
            w.http.last().head
        );
    }
}

pub async fn b02(side: Side) {
    let w = World::new(side).await;
    w.get(
        "free.test",
        "Connection: X-Foo\r\nX-Foo: 1\r\nKeep-Alive: 5\r\nTE: gzip\r\nTrailer: X\r\nUpgrade: h2c\r\n",
    )
    .await
    .is(200, "");
    let seen = w.http.last();
    for name in ["x-foo", "keep-alive", "te", "trailer", "upgrade", "connection"] {
        assert_eq!(seen.header(name), [""; 0], "{name}");
    }
    w.get("free.test", "TE: trailers\r\n").await.is(200, "");
    assert_eq!(w.http.last().header("te"), ["trailers"]);
}

pub async fn b04(side: Side) {
    let w = World::new(side).await;
    w.get(
        "api.test",
        "Authorization: a\r\nauthorization: b\r\nAUTHORIZATION: c\r\n",
    )
    .await
    .is(200, "");
    assert_eq!(
        w.http.last().header("authorization"),
        [format!("Bearer {SECRET}")]
    );
}

pub async fn b05(side: Side) {
    let w = Setup {
        rules: vec![rule("api.test", vec![("x-api-key", bearer())])],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get("api.test", "Authorization: Bearer mine\r\nX-Api-Key: mine\r\n")
        .await
        .is(200, "");
    assert_eq!(w.http.last().header("authorization"), [""; 0]);
    assert_eq!(w.http.last().header("x-api-key"), [format!("Bearer {SECRET}")]);
    w.get("free.test", "Authorization: Bearer mine\r\n")
        .await
        .is(200, "");
    assert_eq!(
        w.http.last().header("authorization"),
        ["Bearer mine"],
        "a host without a rule keeps the client's own"
    );
}

pub async fn b06(side: Side) {
    use croft::broker::value::FunctionError;
    let none = function(|_| async { Err(FunctionError::NoString) });
    let w = Setup {
        rules: vec![rule("api.test", vec![("x-k", none)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get("api.test", "X-K: mine\r\n").await.is(502, "header-invalid");
    assert_eq!(w.dialled(), 0);
}

pub async fn b07(side: Side) {
    let long = "x".repeat(64 * 1024);
    let bad = ["a\r\nX: b", "a\nb", "a\0b", "é", "", long.as_str()];
    for value in bad {
        assert!(HeaderSource::fixed(value).is_err(), "{value:?}");
        let value = value.to_owned();
        let made = function(move |_| std::future::ready(Ok(value.clone())));
        let w = Setup {
            rules: vec![rule("api.test", vec![("x-k", made)])],
            ..Setup::default()
        }
        .start(side)
        .await;
        let answer = w.get("api.test", "").await;
        answer.is(502, "header-invalid");
        assert_eq!(w.dialled(), 0);
    }
    let padded = HeaderSource::fixed(" padded ").unwrap();
    let w = Setup {
        rules: vec![rule("api.test", vec![("x-k", padded)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get("api.test", "").await.is(200, "");
    assert_eq!(w.http.last().header("x-k"), ["padded"]);
}

pub async fn b08(_: Side) {
    for name in [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Upgrade",
        ":authority",
        "X Y",
        "",
        "Proxy-Authorization",
    ] {
        let rules = vec![rule("api.test", vec![(name, bearer())])];
        let error = Policy::new(rules, &[], &[]).err().expect(name);
        assert_eq!(error.code, croft::ErrorCode::InvalidArgument);
        assert!(!error.message.contains(SECRET));
    }
}

pub async fn b11(side: Side) {
    let w = World::new(side).await;
    w.get("api.test", "").await.is(200, "");
    w.get_path("api.test", "/", "").await.is(200, "");
    for seen in [w.http.last(), w.https.last()] {
        for name in [
            "via",
            "x-forwarded-for",
            "forwarded",
            "x-forwarded-host",
            "x-real-ip",
        ] {
            assert_eq!(seen.header(name), [""; 0], "{name}");
        }
    }
}

pub async fn b13(side: Side) {
    let reply = "HTTP/1.1 401 Unauthorized\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
    let w = Setup::default().script(move |_| reply.into()).start(side).await;
    let answer = w.get("api.test", "").await;
    assert_eq!(answer.header("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(answer.header("www-authenticate"), ["Basic realm=\"x\""]);
}

pub async fn l01(side: Side) {
    let echo = |seen: &Seen| {
        let value = seen.header("authorization").concat();
        let body = format!("you sent {value} and {}", SECRET);
        Reply::Bytes(
            format!(
                "HTTP/1.1 400 Bad\r\nX-Echo: {value}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes(),
        )
    };
    let w = Setup::default().script(echo).start(side).await;
    assert!(
        w.get("api.test", "").await.text().contains(SECRET),
        "documented: without scrub an echo passes"
    );
    let mut masked = rule("api.test", vec![("authorization", bearer())]);
    masked.scrub = true;
    let w = Setup {
        rules: vec![masked],
        ..Setup::default()
    }
    .script(echo)
    .start(side)
    .await;
    let answer = w.get("api.test", "Accept-Encoding: gzip\r\n").await;
    assert_eq!(answer.status, 400);
    assert!(
        !answer.text().contains(SECRET) && !answer.head.contains(SECRET),
        "{}{}",
        answer.head,
        answer.text()
    );
    assert!(answer.text().starts_with("you sent *****"), "{}", answer.text());
    assert_eq!(w.http.last().header("accept-encoding"), ["identity"]);
    // An upstream that compresses all the same cannot be searched.
    let mut masked = rule("api.test", vec![("authorization", bearer())]);
    masked.scrub = true;
    let gzip = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc";
    let w = Setup {
        rules: vec![masked],
        ..Setup::default()
    }
    .script(move |_| gzip.into())
    .start(side)
    .await;
    w.get("api.test", "").await.is(502, "upstream-encoding");
}

pub async fn l02(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    let marked = "X-Mark: m4rk\r\nCookie: c00kie\r\n";
    for raw in [
        format!("GET http://evil.test/m4rk?q=m4rk HTTP/1.1\r\nHost: a\r\n{marked}\r\n"),
        format!("GET http://{target}/ HTTP/1.1\r\nHost: a\r\nHost: m4rk\r\n{marked}\r\n"),
        format!(
            "GET http://none.test:{}/m4rk HTTP/1.1\r\nHost: a\r\n{marked}\r\n",
            w.http.addr.port()
        ),
        format!("GET /m4rk HTTP/1.1\r\nHost: {}\r\n{marked}\r\n", w.at),
    ] {
        let answer = w.ask(&raw).await;
        assert!(answer.status >= 400);
        let all = format!("{}{}", answer.head, answer.text());
        for secret in ["m4rk", "c00kie", SECRET, "127.0.0.1"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
    }
}

pub async fn l05(_: Side) {
    let HeaderSource::Fixed(value) = bearer() else {
        panic!("fixed")
    };
    assert!(value.is_sensitive(), "never indexed, never shown by Debug");
    assert!(!format!("{value:?}").contains(SECRET));
}

pub async fn l07(side: Side) {
    let w = World::new(side).await;
    let shape = |answer: Answer| {
        (
            answer.status,
            answer
                .head
                .lines()
                .filter_map(|l| l.split(':').next())
                .map(str::to_owned)
                .filter(|l| !l.starts_with("HTTP"))
                .collect::<Vec<_>>(),
        )
    };
    let known = shape(w.ask("GET http://api.test:1/ HTTP/1.1\r\nHost: a\r\n\r\n").await);
    let unknown = shape(w.ask("GET http://evil.test:1/ HTTP/1.1\r\nHost: a\r\n\r\n").await);
    assert_eq!(known, unknown);
}

pub async fn l08(side: Side) {
    let w = Setup {
        auth: true,
        ..Setup::default()
    }
    .start(side)
    .await;
    let base = w.listener.base_url("api.test").unwrap();
    let token = base.split('/').nth(4).unwrap().to_owned();
    assert_eq!(token.len(), 48);
    let (at, target) = (w.at, w.secure("api.test"));
    let spread =
        format!("Referer: {base}/x\r\nOrigin: http://{at}\r\nUser-Agent: tool {token}\r\nX-Any: {token}\r\n");
    w.ask(format!(
        "GET /__broker/{token}/{target}/x HTTP/1.1\r\nHost: {at}\r\n{spread}\r\n"
    ))
    .await
    .is(200, "");
    assert!(!w.https.last().head.contains(&token), "{}", w.https.last().head);
}

/// No reason's text could carry anything of a request: they are constants.
pub async fn l04(_: Side) {
    for reason in Reason::ALL {
        assert!(
            !reason.text().contains(['"', '\\', '%', '{']),
            "{}",
            reason.text()
        );
    }
}
