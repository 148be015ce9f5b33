//! Ten thousand damaged requests: each is answered or closed, nothing hangs or panics, and nothing that was only a body ever
//! reaches an upstream as a request.

use crate::support::*;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const REQUESTS: usize = 10_000;
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n";

/// xorshift: the same requests on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

fn seeds(plain: &str, secure: &str, at: &str) -> Vec<Vec<u8>> {
    let length = SMUGGLED.len();
    let chunk = format!("{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n");
    [
        format!("GET http://{plain}/ HTTP/1.1\r\nHost: {plain}\r\nAccept: */*\r\n\r\n"),
        format!("POST http://{plain}/ HTTP/1.1\r\nHost: {plain}\r\nContent-Length: {length}\r\n\r\n{SMUGGLED}"),
        format!("POST http://{plain}/ HTTP/1.1\r\nHost: {plain}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}"),
        format!("POST http://{plain}/ HTTP/1.1\r\nHost: {plain}\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n{SMUGGLED}"),
        format!("GET /__broker/{secure}/x?y HTTP/1.1\r\nHost: {at}\r\nConnection: keep-alive, X-A\r\nX-A: b\r\n\r\n"),
        format!("POST /__broker/{secure}/x HTTP/1.1\r\nHost: {at}\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n{chunk}"),
        format!("GET http://{plain}/ HTTP/1.1\r\nHost: {plain}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n{SMUGGLED}"),
        format!("HEAD http://{plain}/ HTTP/1.0\r\nAuthorization: mine\r\n\r\n"),
        format!("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n{SMUGGLED}"),
    ]
    .map(String::into_bytes)
    .into()
}

const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b",",
    b"\r\n ",
    b"Content-Length: 0\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: \x0bchunked\r\n",
    b"Host: evil.test\r\n",
    b"0\r\n\r\n",
    b"\r\n\r\n",
    b"#",
    b"@",
    b"\\",
    b"%0d%0a",
    b"//",
    b"\xff",
    b"HTTP/1.1",
    b"-1",
    b"+",
    b"0x",
    b";a=b",
    b"Connection: close\r\n",
];

fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len().max(1)).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.splice(at..at, random.pick(PIECES).iter().copied())),
            1 => bytes.truncate(at.max(1)),
            2 => {
                let to = (at + 1 + random.below(8)).min(bytes.len());
                bytes.drain(at..to);
            }
            3 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.below(256) as u8;
                }
            }
            4 => {
                let to = (at + random.below(40)).min(bytes.len());
                let copy = bytes[at..to].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                // A line moved to the end of the head.
                let lines: Vec<&[u8]> = seed.split(|&b| b == b'\n').collect();
                let line = [random.pick(&lines), b"\n"].concat();
                let end = bytes
                    .windows(4)
                    .position(|w| w == b"\r\n\r\n")
                    .map_or(bytes.len(), |end| end + 2);
                bytes.splice(end..end, line);
            }
        }
    }
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_damaged_requests_smuggle_nothing() {
    let w = Arc::new(World::new(Side::Main).await);
    let seeds = Arc::new(seeds(
        &w.plain("api.test"),
        &w.secure("api.test"),
        &w.at.to_string(),
    ));
    let mut workers = tokio::task::JoinSet::new();
    const WORKERS: usize = 16;
    for worker in 0..WORKERS {
        let (at, seeds) = (w.at, seeds.clone());
        workers.spawn(async move {
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (worker as u64 + 1));
            for n in 0..REQUESTS / WORKERS {
                let bytes = mutate(&seeds[n % seeds.len()], &mut random);
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                let talk = async {
                    let mut stream = TcpStream::connect(at).await.unwrap();
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.shutdown().await;
                    let mut answer = Vec::new();
                    let _ = stream.read_to_end(&mut answer).await;
                    answer
                };
                let answer = tokio::time::timeout(PATIENCE, talk)
                    .await
                    .unwrap_or_else(|_| panic!("hangs: {shown:?}"));
                assert!(
                    answer.is_empty() || answer.starts_with(b"HTTP/1."),
                    "{shown:?} -> {:?}",
                    String::from_utf8_lossy(&answer)
                );
            }
        });
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
    for (upstream, port) in [(&w.http, w.http.addr.port()), (&w.https, w.https.addr.port())] {
        let seen = upstream.seen.lock().unwrap();
        assert!(seen.len() > 100, "some were only scratched: {}", seen.len());
        for one in seen.iter() {
            assert!(
                !one.line().contains("/smuggled") && !one.head.contains("evil.test\r\nHost"),
                "{}",
                one.head
            );
            let hosts = one.header("host");
            assert_eq!(hosts.len(), 1, "{}", one.head);
            assert!(hosts[0] == format!("api.test:{port}"), "{}", one.head);
            assert_eq!(
                one.header("authorization"),
                [format!("Bearer {SECRET}")],
                "{}",
                one.head
            );
            assert!(
                one.header("content-length").len() + one.header("transfer-encoding").len() <= 1,
                "{}",
                one.head
            );
        }
    }
    until("every connection is over", || w.broker.stats().connections == 0).await;
    assert_eq!(w.broker.stats().active_requests, 0);
}
