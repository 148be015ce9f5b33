//! Upstream and load for bench/broker. Each mode prints one JSON line.
//!   bench_net upstream PORT TLS_PORT CA_FILE
//!   bench_net get PROXY TARGET CONNECTIONS SECONDS      TARGET is what stands in the request line
//!   bench_net connect PROXY HOST:PORT CONNECTIONS SECONDS
//!   bench_net tunnel PROXY HOST:PORT MEGABYTES
//!   bench_net idle PROXY HOST:PORT TUNNELS PIDS
//!   bench_net sse PROXY TARGET STREAMS SECONDS          how long each event was on its way, in microseconds
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};

const BODY_BYTES: usize = 1024;

fn print(line: String) {
    println!("{line}");
}

fn now_nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

/// An event every 10 ms that says when it was sent.
async fn send_events(mut stream: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    loop {
        ticks.tick().await;
        let event = format!("data: {}\n\n", now_nanos());
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        stream.write_all(chunk.as_bytes()).await?;
        stream.flush().await?;
    }
}

/// Answers each request with 1 KB; `GET /bulk` with zeros, `GET /sse` with events, until the client leaves.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let reply = [
        format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n").into_bytes(),
        vec![b'x'; BODY_BYTES],
    ]
    .concat();
    let mut buf = Vec::with_capacity(4096);
    loop {
        while let Some(end) = buf.windows(4).position(|w| w == b"\r\n\r\n") {
            if buf.starts_with(b"GET /bulk") {
                let block = vec![0; 1 << 20];
                while stream.write_all(&block).await.is_ok() {}
                return;
            }
            if buf.starts_with(b"GET /sse") {
                let _ = send_events(stream).await;
                return;
            }
            buf.drain(..end + 4);
            if stream.write_all(&reply).await.is_err() {
                return;
            }
            let _ = stream.flush().await;
        }
        if stream.read_buf(&mut buf).await.unwrap_or(0) == 0 {
            return;
        }
    }
}

async fn upstream(args: &[String]) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&args[2], made.cert.pem()).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let plain = TcpListener::bind(format!("127.0.0.1:{}", args[0])).await.unwrap();
    let secure = TcpListener::bind(format!("127.0.0.1:{}", args[1])).await.unwrap();
    print("{}".into());
    loop {
        tokio::select! {
            Ok((stream, _)) = plain.accept() => {
                let _ = stream.set_nodelay(true);
                tokio::spawn(answer(stream));
            }
            Ok((stream, _)) = secure.accept() => {
                let tls = tls.clone();
                tokio::spawn(async move {
                    if let Ok(stream) = tls.accept(stream).await {
                        answer(stream).await;
                    }
                });
            }
        }
    }
}

async fn open(proxy: &str) -> TcpStream {
    let stream = TcpStream::connect(proxy).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads to the end of a head and returns what came behind it.
async fn read_head(stream: &mut TcpStream, buf: &mut Vec<u8>) -> usize {
    loop {
        if let Some(end) = buf.windows(4).position(|w| w == b"\r\n\r\n") {
            return end + 4;
        }
        assert_ne!(
            stream.read_buf(buf).await.unwrap(),
            0,
            "closed: {}",
            String::from_utf8_lossy(buf)
        );
    }
}

fn request_for(proxy: &str, target: &str) -> String {
    let host = target
        .strip_prefix("http://")
        .map_or(proxy, |rest| rest.split('/').next().unwrap());
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
}

async fn get(args: &[String]) {
    let (connections, seconds): (usize, u64) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let request = request_for(&args[0], &args[1]);
    let (count, micros) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(std::sync::Mutex::new(Vec::new())),
    );
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (request, proxy, count, micros) =
            (request.clone(), args[0].clone(), count.clone(), micros.clone());
        tasks.spawn(async move {
            let mut stream = open(&proxy).await;
            let (mut buf, mut times) = (Vec::with_capacity(8192), Vec::new());
            while Instant::now() < deadline {
                let began = Instant::now();
                // Some proxies close after each answer; the new connection is then part of their price.
                if stream.write_all(request.as_bytes()).await.is_err()
                    || stream.read_buf(&mut buf).await.unwrap_or(0) == 0
                {
                    stream = open(&proxy).await;
                    continue;
                }
                let end = read_head(&mut stream, &mut buf).await;
                assert!(
                    buf.starts_with(b"HTTP/1.1 200") || buf.starts_with(b"HTTP/1.0 200"),
                    "{}",
                    String::from_utf8_lossy(&buf)
                );
                while buf.len() < end + BODY_BYTES {
                    assert_ne!(stream.read_buf(&mut buf).await.unwrap(), 0);
                }
                buf.clear();
                times.push(began.elapsed().as_micros() as u32);
                count.fetch_add(1, Ordering::Relaxed);
            }
            micros.lock().unwrap().append(&mut times);
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let mut micros = micros.lock().unwrap();
    micros.sort_unstable();
    print(format!(
        "{{\"requests\":{},\"seconds\":{seconds},\"p50\":{}}}",
        count.load(Ordering::Relaxed),
        micros[micros.len() / 2]
    ));
}

async fn tunnelled(proxy: &str, target: &str) -> TcpStream {
    let mut stream = open(proxy).await;
    stream
        .write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut buf = Vec::new();
    let end = read_head(&mut stream, &mut buf).await;
    assert!(
        buf.split(|&b| b == b' ').nth(1) == Some(b"200") && buf.len() == end,
        "{}",
        String::from_utf8_lossy(&buf)
    );
    stream
}

async fn connect(args: &[String]) {
    let (connections, seconds): (usize, u64) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let count = Arc::new(AtomicU64::new(0));
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (proxy, target, count) = (args[0].clone(), args[1].clone(), count.clone());
        tasks.spawn(async move {
            while Instant::now() < deadline {
                drop(tunnelled(&proxy, &target).await);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    print(format!(
        "{{\"requests\":{},\"seconds\":{seconds}}}",
        count.load(Ordering::Relaxed)
    ));
}

async fn tunnel(args: &[String]) {
    let total = args[2].parse::<usize>().unwrap() << 20;
    let mut stream = tunnelled(&args[0], &args[1]).await;
    stream.write_all(b"GET /bulk HTTP/1.1\r\n\r\n").await.unwrap();
    let (began, mut block, mut got) = (Instant::now(), vec![0; 1 << 20], 0);
    while got < total {
        got += stream.read(&mut block).await.unwrap();
    }
    print(format!(
        "{{\"megabytes\":{},\"seconds\":{}}}",
        got >> 20,
        began.elapsed().as_secs_f64()
    ));
}

fn rss_kib(pids: &str) -> u64 {
    let one = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_ascii_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    pids.split(',').map(one).sum()
}

async fn idle(args: &[String]) {
    let count: usize = args[2].parse().unwrap();
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(tunnelled(&args[0], &args[1]).await);
    }
    let before = rss_kib(&args[3]);
    for _ in 0..count {
        held.push(tunnelled(&args[0], &args[1]).await);
    }
    let after = rss_kib(&args[3]);
    print(format!(
        "{{\"tunnels\":{count},\"kib\":{},\"rss\":{after}}}",
        after.saturating_sub(before)
    ));
}

/// The delays of one stream's events; however they are framed on the way, each line is whole.
async fn receive_events(proxy: String, request: String, deadline: Instant) -> Vec<u64> {
    let mut stream = open(&proxy).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut buf, mut delays) = (Vec::with_capacity(8192), Vec::new());
    while Instant::now() < deadline {
        assert_ne!(stream.read_buf(&mut buf).await.unwrap(), 0, "the stream ended");
        let now = now_nanos();
        while let Some(end) = buf.windows(2).position(|w| w == b"\n\n") {
            let text = String::from_utf8_lossy(&buf[..end]);
            let sent: u128 = text.rsplit("data: ").next().unwrap().parse().unwrap();
            delays.push(u64::try_from(now.saturating_sub(sent) / 1000).unwrap());
            buf.drain(..end + 2);
        }
    }
    // The first ones came while the other streams were being opened.
    delays.split_off(delays.len().min(10))
}

async fn sse(args: &[String]) {
    let (streams, seconds): (usize, u64) = (args[2].parse().unwrap(), args[3].parse().unwrap());
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let request = request_for(&args[0], &args[1]);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..streams {
        tasks.spawn(receive_events(args[0].clone(), request.clone(), deadline));
    }
    let mut delays: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
    delays.sort_unstable();
    print(format!(
        "{{\"events\":{},\"p50\":{},\"p99\":{},\"max\":{}}}",
        delays.len(),
        delays[delays.len() / 2],
        delays[delays.len() * 99 / 100],
        delays[delays.len() - 1]
    ));
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args[0].as_str() {
        "upstream" => upstream(&args[1..]).await,
        "get" => get(&args[1..]).await,
        "connect" => connect(&args[1..]).await,
        "tunnel" => tunnel(&args[1..]).await,
        "sse" => sse(&args[1..]).await,
        _ => idle(&args[1..]).await,
    }
}
