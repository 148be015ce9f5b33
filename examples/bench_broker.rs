//! The broker as bench/broker measures it: 1,000 rules, events, every check on.
//!   bench_broker PORT UPSTREAM_PORT TLS_PORT CA_FILE
#![allow(clippy::unwrap_used)]

use croft::broker::limits::{Limits, Timeouts};
use croft::broker::policy::RuleConfig;
use croft::broker::resolve::SystemResolver;
use croft::broker::tunnel::Sni;
use croft::broker::value::HeaderSource;
use croft::broker::{Broker, BrokerConfig, ListenConfig, runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

static EVENTS: AtomicU64 = AtomicU64::new(0);

fn rule(host: String) -> RuleConfig {
    let headers = vec![(
        "authorization".to_owned(),
        HeaderSource::fixed("Bearer 0123456789abcdef").unwrap(),
    )];
    RuleConfig {
        host,
        headers,
        ports: vec![],
        cleartext: false,
        scrub: false,
    }
}

async fn run() {
    let args: Vec<String> = std::env::args().collect();
    let port = |n: usize| args[n].parse::<u16>().unwrap();
    let mut rules: Vec<RuleConfig> = (0..999)
        .map(|n| {
            rule(if n % 2 == 0 {
                format!("h{n}.example.org")
            } else {
                format!("*.s{n}.example.org")
            })
        })
        .collect();
    rules.push(rule("localhost".into()));
    let broker = Broker::new(BrokerConfig {
        rules,
        allow_private: vec!["localhost".into()],
        ports: vec![port(2), port(3)],
        ca_pem: Some(std::fs::read(&args[4]).unwrap()),
        sni: Sni::Match,
        rewrite_location: false,
        timeouts: Timeouts::default(),
        limits: Limits::default(),
        upstream_proxy: None,
        sink: Some(Arc::new(|event| {
            EVENTS.fetch_add(event.bytes_out + 1, Ordering::Relaxed);
        })),
        resolver: Arc::new(SystemResolver),
    });
    let broker = broker.unwrap();
    let _listener = broker
        .listen(ListenConfig {
            port: port(1),
            ..ListenConfig::default()
        })
        .await
        .unwrap();
    std::future::pending::<()>().await;
}

fn main() {
    runtime::runtime()
        .unwrap()
        .block_on(async { tokio::spawn(run()).await.unwrap() });
}
