//! J: the function that supplies a header.

use crate::support::*;
use croft::broker::limits::Timeouts;
use croft::broker::value::FunctionError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub async fn j01(side: Side) {
    let failing = function(|_| async { Err(FunctionError::Failed) });
    let w = Setup {
        rules: vec![rule("api.test", vec![("authorization", failing)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get("api.test", "").await.is(502, "header-function-failed");
    assert_eq!(w.dialled(), 0);
    let panicking = function(|_| async { panic!("token is {SECRET}") });
    let w = Setup {
        rules: vec![rule("api.test", vec![("authorization", panicking)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    let answer = w.get("api.test", "").await;
    answer.is(502, "header-function-failed");
    assert!(!answer.text().contains(SECRET));
}

pub async fn j02(side: Side) {
    for value in ["", " "] {
        let made = function(move |_| std::future::ready(Ok(value.to_owned())));
        let w = Setup {
            rules: vec![rule("api.test", vec![("x-k", made)])],
            ..Setup::default()
        }
        .start(side)
        .await;
        w.get("api.test", "").await.is(502, "header-invalid");
        assert_eq!(w.dialled(), 0);
    }
}

pub async fn j04(side: Side) {
    let stuck = function(|_| std::future::pending());
    let rules = vec![
        rule("a.svc.test", vec![("x-k", stuck)]),
        rule("api.test", vec![("authorization", bearer())]),
    ];
    let w = Setup {
        rules,
        timeouts: Timeouts {
            function_ms: 300,
            ..Timeouts::default()
        },
        ..Setup::default()
    }
    .start(side)
    .await;
    let mut waiting = w.open().await;
    let target = w.plain("a.svc.test");
    waiting
        .send(format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"))
        .await;
    for _ in 0..20 {
        w.get("api.test", "").await.is(200, "");
    }
    waiting.answer().await.is(502, "header-function-timeout");
    assert!(
        !w.http
            .seen
            .lock()
            .unwrap()
            .iter()
            .any(|seen| seen.header("host") == [target.clone()])
    );
}

struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub async fn j05(side: Side) {
    let asked = Arc::new(AtomicUsize::new(0));
    let dropped = Arc::new(AtomicUsize::new(0));
    let (a, d) = (asked.clone(), dropped.clone());
    let stuck = function(move |_| {
        a.fetch_add(1, Ordering::SeqCst);
        let guard = Dropped(d.clone());
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let w = Setup {
        rules: vec![rule("api.test", vec![("x-k", stuck)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    let mut client = w.open().await;
    let target = w.plain("api.test");
    client
        .send(format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"))
        .await;
    until("the function is asked", || asked.load(Ordering::SeqCst) == 1).await;
    drop(client);
    until("the question is withdrawn", || {
        dropped.load(Ordering::SeqCst) == 1
    })
    .await;
    assert_eq!(w.dialled(), 0);
}

pub async fn j07(side: Side) {
    let meet = Arc::new(tokio::sync::Barrier::new(2));
    let (one, two) = (meet.clone(), meet);
    let first = function(move |_| {
        let meet = one.clone();
        async move {
            meet.wait().await;
            Ok("1".to_owned())
        }
    });
    let second = function(move |_| {
        let meet = two.clone();
        async move {
            meet.wait().await;
            Ok("2".to_owned())
        }
    });
    let w = Setup {
        rules: vec![rule("api.test", vec![("x-a", first), ("x-b", second)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    w.get("api.test", "").await.is(200, "");
    assert_eq!(
        (w.http.last().header("x-a"), w.http.last().header("x-b")),
        (vec!["1".into()], vec!["2".into()])
    );
}

pub async fn j08(side: Side) {
    let stuck = function(|_| std::future::pending());
    let w = Setup {
        rules: vec![rule("api.test", vec![("x-k", stuck)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    let mut client = w.open().await;
    let target = w.plain("api.test");
    client
        .send(format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"))
        .await;
    until("the request is in progress", || {
        w.broker.stats().active_requests == 1
    })
    .await;
    soon(w.listener.close(Duration::ZERO)).await;
    soon(w.broker.close(Duration::ZERO)).await;
    assert_eq!(client.rest().await, b"");
    assert_eq!(w.broker.stats().active_requests, 0);
}

pub async fn j10(side: Side) {
    let count = Arc::new(AtomicUsize::new(0));
    let rotating = function(move |_| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        async move { Ok(format!("token-{n}")) }
    });
    let w = Setup {
        rules: vec![rule("api.test", vec![("x-k", rotating)])],
        ..Setup::default()
    }
    .start(side)
    .await;
    for n in 0..3 {
        w.get("api.test", "").await.is(200, "");
        assert_eq!(w.http.last().header("x-k"), [format!("token-{n}")]);
    }
    assert_eq!(w.http.dialled(), 1, "on one pooled connection");
}
