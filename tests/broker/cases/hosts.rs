//! H: host confusion. PF: the path form.

use crate::support::*;
use croft::broker::host::Host;
use croft::broker::rules::Pattern;

pub async fn h01(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    w.ask(format!(
        "GET http://{target}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    ))
    .await
    .is(200, "");
    assert_eq!(w.http.last().header("host"), [target]);
    assert_eq!(
        w.http.last().header("authorization"),
        [format!("Bearer {SECRET}")]
    );
}

pub async fn h02(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    w.ask(format!(
        "GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nHost: {target}\r\n\r\n"
    ))
    .await
    .is(400, "bad-request");
    assert_eq!(w.dialled(), 0);
}

pub async fn h04(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("free.test");
    w.ask(format!("GET http://{target}/ HTTP/1.1\r\nHost: api.test\r\n\r\n"))
        .await
        .is(200, "");
    assert_eq!(w.http.last().header("authorization"), [""; 0]);
    assert_eq!(w.http.last().header("host"), [target]);
}

/// Each target is refused with 400 before anything is dialled or looked up.
async fn refused_400(side: Side, targets: &[&str]) {
    let w = World::new(side).await;
    for target in targets {
        let answer = w
            .ask(format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", w.at))
            .await;
        assert_eq!(answer.status, 400, "{target}: {}", answer.text());
        assert_ne!(answer.reason(), "", "{target}");
    }
    assert_eq!((w.dialled(), w.names.asked()), (0, vec![]));
}

pub async fn h05(side: Side) {
    refused_400(
        side,
        &["http://u:pw@api.test/", "http://u@api.test/", "http://@api.test/"],
    )
    .await;
}

pub async fn h07(side: Side) {
    refused_400(
        side,
        &[
            "http://api.test\\@evil.test/",
            "http://api.test%5c@evil.test/",
            "http://evil.test\\.api.test/",
        ],
    )
    .await;
}

pub async fn h08(side: Side) {
    refused_400(
        side,
        &[
            "http://evil.test#.api.test/",
            "http://api.test/#x",
            "/__broker/api.test/#x",
        ],
    )
    .await;
}

pub async fn h10(side: Side) {
    refused_400(
        side,
        &[
            "http://api.test../",
            "http://a..test/",
            "http://.api.test/",
            "http://./",
        ],
    )
    .await;
}

pub async fn h11(side: Side) {
    let w = World::new(side).await;
    w.get("API.Test", "").await.is(200, "");
    assert_eq!(w.http.last().header("host"), [w.plain("api.test")]);
    assert_eq!(w.names.asked(), ["api.test"]);
    w.get("api.test.", "").await.is(200, "");
    assert_eq!(w.http.last().header("host"), [w.plain("api.test")]);
}

pub async fn h13(side: Side) {
    refused_400(side, &["http://a%70i.test/", "/__broker/a%70i.test/x"]).await;
}

pub async fn h14(side: Side) {
    refused_400(
        side,
        &[
            "http://api.test%00.evil.test/",
            "/__broker/api.test%00.evil.test/",
            "http://api.test\0.evil.test/",
        ],
    )
    .await;
    let w = World::new(side).await;
    assert_eq!(
        w.ask("CONNECT api.test%00.evil.test:443 HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .status,
        400
    );
}

pub async fn h16(_: Side) {
    let pattern = Pattern::parse("*.Tést.example").unwrap();
    assert_eq!(
        (pattern.host, pattern.suffix),
        (Host::Name("xn--tst-bma.example".into()), true)
    );
    let long = format!("{}.test", "a".repeat(64));
    for bad in ["-a.test", long.as_str(), "a..test"] {
        let setup = vec![rule("good_1.test", vec![]), rule(bad, vec![])];
        let error = croft::broker::policy::Policy::new(setup, &[], &[]).err().unwrap();
        assert!(error.message.starts_with("rules[1]"), "{}", error.message);
    }
}

pub async fn h17(side: Side) {
    let ports = [":99999", ":65536", ":-1", ":0", ":080", ":8a", ":+80"];
    let targets: Vec<String> = ports
        .iter()
        .map(|port| format!("http://api.test{port}/"))
        .collect();
    refused_400(side, &targets.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let w = Setup {
        allow_private: vec!["127.0.0.0/8".into()],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.names.set("api.test", &["127.0.0.3"]);
    // An empty port is the scheme's own: nobody listens there, but it was tried.
    assert_eq!(
        w.ask("GET http://api.test:/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
            .await
            .reason(),
        "connect-failed"
    );
}

pub async fn h19(side: Side) {
    refused_400(side, &["api.test:443", "api.test:80"]).await;
}

pub async fn h20(side: Side) {
    let w = World::new(side).await;
    let target = w.secure("api.test");
    w.ask(format!(
        "GET https://{target}/x HTTP/1.1\r\nHost: {target}\r\n\r\n"
    ))
    .await
    .is(400, "https-target");
    assert_eq!(w.dialled(), 0);
}

pub async fn h22(side: Side) {
    let w = World::new(side).await;
    let target = w.plain("api.test");
    w.ask(format!(
        "OPTIONS http://{target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
    ))
    .await
    .is(400, "bad-target");
    w.ask(format!(
        "OPTIONS http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"
    ))
    .await
    .is(200, "");
    assert_eq!(w.http.last().line(), "OPTIONS / HTTP/1.1");
}

pub async fn h23(side: Side) {
    let w = World::new(side).await;
    let answer = w
        .ask(format!("OPTIONS * HTTP/1.1\r\nHost: {}\r\n\r\n", w.at))
        .await;
    assert!((400..500).contains(&answer.status), "{}", answer.head);
    assert_eq!(w.dialled(), 0);
}

pub async fn pf01(side: Side) {
    let w = World::new(side).await;
    let answer = w.get_path("api.test", "/v1/x%2Fy/../z?q=%2F&r={a}", "").await;
    answer.is(200, "");
    let seen = w.https.last();
    assert_eq!(seen.line(), "GET /v1/x%2Fy/../z?q=%2F&r={a} HTTP/1.1");
    assert_eq!(seen.header("host"), [w.secure("api.test")]);
    assert_eq!(seen.header("authorization"), [format!("Bearer {SECRET}")]);
    assert_eq!(seen.sni.as_deref(), Some("api.test"));
}

pub async fn pf02(side: Side) {
    let w = World::new(side).await;
    for (rest, line) in [
        ("", "GET / HTTP/1.1"),
        ("?x", "GET /?x HTTP/1.1"),
        ("/?x", "GET /?x HTTP/1.1"),
    ] {
        w.get_path("api.test", rest, "").await.is(200, "");
        assert_eq!(w.https.last().line(), line);
    }
    for (path, status) in [("/__broker/", 400), ("/__broker//x", 400), ("/__broker", 404)] {
        let answer = w
            .ask(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", w.at))
            .await;
        assert_eq!(answer.status, status, "{path}");
    }
}

pub async fn pf04(side: Side) {
    refused_400(
        side,
        &[
            "/__broker/api.test%2f@evil.test/",
            "/__broker/api.test%40evil.test/",
            "/__broker/u:p@api.test/",
            "/__broker/api.test%3a8443/",
        ],
    )
    .await;
}

pub async fn pf05(side: Side) {
    let w = Setup {
        ports: vec![],
        rules: vec![rule("api.test:1", vec![])],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get_path("api.test", "/x", "").await.is(403, "port-not-allowed");
    let mut open = rule("api.test", vec![("x-k", bearer())]);
    open.ports = vec![8443];
    let w = Setup {
        rules: vec![open],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get_path("api.test", "/x", "").await.is(200, "");
    assert_eq!(w.https.last().header("host"), [w.secure("api.test")]);
}

pub async fn pf07(side: Side) {
    let w = World::new(side).await;
    let answer = w.get_path("evil.test", "/x", "").await;
    answer.is(403, "host-not-allowed");
    assert!(
        answer.text().contains("\"host\":\"evil.test\""),
        "{}",
        answer.text()
    );
    assert_eq!((w.dialled(), w.names.asked()), (0, vec![]));
}

pub async fn pf08(side: Side) {
    let w = World::new(side).await;
    let (at, target) = (w.at, w.secure("api.test"));
    w.ask(format!(
        "GET http://{at}/__broker/{target}/x HTTP/1.1\r\nHost: {at}\r\n\r\n"
    ))
    .await
    .is(200, "");
    assert_eq!(w.https.last().line(), "GET /x HTTP/1.1");
}

pub async fn pf09(side: Side) {
    let script = |_: &Seen| -> Reply {
        "HTTP/1.1 302 Found\r\nLocation: /login\r\nSet-Cookie: a=1; Domain=api.test; Path=/; Secure\r\nContent-Length: 0\r\n\r\n".into()
    };
    let w = Setup::default().script_tls(script).start(side).await;
    let answer = w.get_path("api.test", "/x", "").await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (302, vec!["/login".into()])
    );
    assert_eq!(
        answer.header("set-cookie"),
        ["a=1; Domain=api.test; Path=/; Secure"]
    );
    let w = Setup {
        rewrite_location: true,
        ..Setup::default()
    }
    .script_tls(script)
    .start(side)
    .await;
    let answer = w.get_path("api.test", "/x", "").await;
    assert_eq!(
        answer.header("location"),
        [format!("/__broker/{}/login", w.secure("api.test"))]
    );
}

pub async fn pf10(side: Side) {
    let w = World::new(side).await;
    let target = w.secure("api.test");
    let port = w.at.port();
    w.ask(format!(
        "GET /__broker/{target}/x HTTP/1.1\r\nHost: rebind.evil.test:{port}\r\n\r\n"
    ))
    .await
    .is(403, "wrong-host");
    assert_eq!(w.dialled(), 0);
}

pub async fn pf11(side: Side) {
    let w = World::new(side).await;
    let own = w.at;
    let claims = format!(
        "Forwarded: for=1.2.3.4\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: x\r\nVia: 1.1 x\r\nReferer: http://{own}/__broker/api.test/\r\nOrigin: http://{own}\r\n"
    );
    w.get_path("api.test", "/x", &claims).await.is(200, "");
    let seen = w.https.last();
    for name in [
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "via",
        "referer",
        "origin",
    ] {
        assert_eq!(seen.header(name), [""; 0], "{name}");
    }
    assert!(!seen.head.contains(&own.port().to_string()), "{}", seen.head);
}
