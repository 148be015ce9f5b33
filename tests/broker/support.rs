//! What the broker's tests stand on: scripted upstreams (clear text and TLS) that keep what they saw, a resolver of
//! made-up names, a broker between, and a client that speaks bytes.

use croft::broker::event::Event;
use croft::broker::limits::{Limits, Timeouts};
use croft::broker::policy::RuleConfig;
use croft::broker::resolve::Resolver;
use croft::broker::tunnel::Sni;
use croft::broker::value::{BoxFuture, FunctionError, HeaderContext, HeaderFunction, HeaderSource};
use croft::broker::{Broker, BrokerConfig, ListenConfig, Listener};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

pub const SECRET: &str = "s3cret-value-0123456789";
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Fails instead of hanging.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("nothing hangs")
}

/// Waits for a condition that another task brings about.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[derive(Clone, Debug)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
    pub sni: Option<String>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Vec<String> {
        header_lines(&self.head, name)
    }

    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or("")
    }
}

pub fn header_lines(head: &str, name: &str) -> Vec<String> {
    head.lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .filter(|(n, _)| n.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
        .collect()
}

/// What the upstream does with a request.
pub enum Reply {
    Bytes(Vec<u8>),
    BytesThenClose(Vec<u8>),
    /// Never answers.
    Silence,
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Reply::Bytes(text.as_bytes().to_vec())
    }
}

pub fn ok(body: &str) -> Reply {
    Reply::Bytes(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
}

type Script = Arc<dyn Fn(&Seen) -> Reply + Send + Sync>;

#[derive(Clone)]
pub struct Upstream {
    pub addr: SocketAddr,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    pub connections: Arc<AtomicUsize>,
    /// Connections that ended.
    pub ended: Arc<AtomicUsize>,
}

impl Upstream {
    pub async fn plain(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Arc::new(script), None).await
    }

    pub async fn tls(acceptor: TlsAcceptor, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Arc::new(script), Some(acceptor)).await
    }

    async fn start(script: Script, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let up = Self {
            addr: listener.local_addr().unwrap(),
            seen: Arc::default(),
            connections: Arc::default(),
            ended: Arc::default(),
        };
        let this = up.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                this.connections.fetch_add(1, Ordering::SeqCst);
                let (up, script, tls) = (this.clone(), script.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => up.converse(stream, &script, None).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                let sni = stream.get_ref().1.server_name().map(str::to_owned);
                                up.converse(stream, &script, sni).await;
                            }
                        }
                    }
                    up.ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        up
    }

    async fn converse(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        script: &Script,
        sni: Option<String>,
    ) {
        let mut buf = Vec::new();
        while let Some((head, body)) = read_message(&mut stream, &mut buf, true).await {
            let seen = Seen {
                head,
                body,
                sni: sni.clone(),
            };
            self.seen.lock().unwrap().push(seen.clone());
            match script(&seen) {
                Reply::Bytes(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    let _ = stream.flush().await;
                }
                Reply::BytesThenClose(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.shutdown().await;
                    return;
                }
                Reply::Silence => {
                    let mut rest = [0; 4096];
                    while stream.read(&mut rest).await.is_ok_and(|n| n > 0) {}
                    return;
                }
            }
        }
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    pub fn last(&self) -> Seen {
        self.seen
            .lock()
            .unwrap()
            .last()
            .expect("the upstream saw a request")
            .clone()
    }

    pub fn dialled(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// One message: head, and the body by its framing. `None` at the end of the stream.
pub async fn read_message(
    stream: &mut (impl AsyncRead + Unpin),
    buf: &mut Vec<u8>,
    request: bool,
) -> Option<(String, Vec<u8>)> {
    let end = loop {
        if let Some(at) = buf.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, buf).await?;
    };
    let head = String::from_utf8_lossy(&buf[..end]).into_owned();
    buf.drain(..end);
    let chunked = header_lines(&head, "transfer-encoding")
        .iter()
        .any(|v| v == "chunked");
    let length = header_lines(&head, "content-length")
        .first()
        .and_then(|v| v.parse::<usize>().ok());
    let mut body = Vec::new();
    if chunked {
        loop {
            let line_end = loop {
                if let Some(at) = buf.windows(2).position(|w| w == b"\r\n") {
                    break at;
                }
                more(stream, buf).await?;
            };
            let size =
                usize::from_str_radix(std::str::from_utf8(&buf[..line_end]).ok()?.split(';').next()?, 16)
                    .ok()?;
            while buf.len() < line_end + 2 + size + 2 {
                more(stream, buf).await?;
            }
            if size == 0 {
                // Trailers, if any, are kept behind the body for the tests to see.
                let trailers_at = line_end + 2;
                loop {
                    if buf[trailers_at..].starts_with(b"\r\n") {
                        buf.drain(..trailers_at + 2);
                        return Some((head, body));
                    }
                    if let Some(at) = buf[trailers_at..].windows(4).position(|w| w == b"\r\n\r\n") {
                        body.extend_from_slice(&buf[trailers_at..trailers_at + at + 2]);
                        buf.drain(..trailers_at + at + 4);
                        return Some((head, body));
                    }
                    more(stream, buf).await?;
                }
            }
            body.extend_from_slice(&buf[line_end + 2..line_end + 2 + size]);
            buf.drain(..line_end + 2 + size + 2);
        }
    }
    match length {
        Some(length) => {
            while buf.len() < length {
                more(stream, buf).await?;
            }
            body.extend(buf.drain(..length));
        }
        None if request => {}
        None => {
            while more(stream, buf).await.is_some() {}
            body.append(buf);
        }
    }
    Some((head, body))
}

async fn more(stream: &mut (impl AsyncRead + Unpin), buf: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(buf).await {
        Ok(n) if n > 0 => Some(()),
        _ => None,
    }
}

/// Certificates for the tests' names, their own authority.
pub struct Certificates {
    pub acceptor: TlsAcceptor,
    pub pem: String,
}

pub fn certificates(names: &[&str]) -> Certificates {
    let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    Certificates {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        pem: made.cert.pem(),
    }
}

/// Made-up names. A name that is not listed does not exist; `hang` never answers.
#[derive(Default)]
pub struct Names {
    pub table: Mutex<HashMap<String, Vec<IpAddr>>>,
    pub queries: Mutex<Vec<String>>,
}

impl Names {
    pub fn set(&self, name: &str, ips: &[&str]) {
        self.table
            .lock()
            .unwrap()
            .insert(name.into(), ips.iter().map(|ip| ip.parse().unwrap()).collect());
    }

    pub fn asked(&self) -> Vec<String> {
        self.queries.lock().unwrap().clone()
    }
}

pub struct NamesResolver(pub Arc<Names>);

impl Resolver for NamesResolver {
    fn resolve(&self, name: String) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        self.0.queries.lock().unwrap().push(name.clone());
        let found = self.0.table.lock().unwrap().get(&name).cloned();
        Box::pin(async move {
            match found {
                _ if name.starts_with("hang.") => std::future::pending().await,
                Some(ips) => Ok(ips),
                None => Err(io::Error::other("no such name")),
            }
        })
    }
}

/// A header function made of a Rust one.
pub struct Function<F>(pub F);

impl<F, R> HeaderFunction for Function<F>
where
    F: Fn(HeaderContext) -> R + Send + Sync,
    R: Future<Output = Result<String, FunctionError>> + Send + 'static,
{
    fn value(&self, context: HeaderContext) -> BoxFuture<Result<String, FunctionError>> {
        Box::pin((self.0)(context))
    }
}

pub fn function<F, R>(f: F) -> HeaderSource
where
    F: Fn(HeaderContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<String, FunctionError>> + Send + 'static,
{
    HeaderSource::Function(Arc::new(Function(f)))
}

pub fn rule(host: &str, headers: Vec<(&str, HeaderSource)>) -> RuleConfig {
    RuleConfig {
        host: host.into(),
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        ports: vec![],
        cleartext: false,
        scrub: false,
    }
}

pub fn bearer() -> HeaderSource {
    HeaderSource::fixed(&format!("Bearer {SECRET}")).unwrap()
}

/// Which of the broker's two listeners a case is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Main,
    Extra,
}

/// A broker between a client and two upstreams, one in clear text and one with TLS.
pub struct World {
    pub http: Upstream,
    pub https: Upstream,
    pub names: Arc<Names>,
    pub broker: Arc<Broker>,
    pub listener: Listener,
    pub at: SocketAddr,
    pub events: Arc<Mutex<Vec<Event>>>,
    pub certificates: Certificates,
}

pub struct Setup {
    pub rules: Vec<RuleConfig>,
    pub allow: Vec<String>,
    pub allow_private: Vec<String>,
    pub ports: Vec<u16>,
    pub timeouts: Timeouts,
    pub limits: Limits,
    pub sni: Sni,
    pub auth: bool,
    pub rewrite_location: bool,
    pub script: Box<dyn Fn(&Seen) -> Reply + Send + Sync>,
    pub script_tls: Box<dyn Fn(&Seen) -> Reply + Send + Sync>,
    pub upstream_proxy: Option<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            rules: vec![
                rule("api.test", vec![("authorization", bearer())]),
                rule("*.svc.test", vec![("authorization", bearer())]),
            ],
            allow: vec![
                "free.test".into(),
                "127.0.0.1".into(),
                "hang.test".into(),
                "none.test".into(),
            ],
            allow_private: vec!["127.0.0.1".into()],
            ports: vec![],
            timeouts: Timeouts {
                connect_ms: 2_000,
                ..Timeouts::default()
            },
            limits: Limits::default(),
            sni: Sni::default(),
            auth: false,
            rewrite_location: false,
            script: Box::new(|_| ok("plain")),
            script_tls: Box::new(|_| ok("tls")),
            upstream_proxy: None,
        }
    }
}

impl Setup {
    pub fn script(mut self, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    pub fn script_tls(mut self, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        self.script_tls = Box::new(script);
        self
    }

    pub async fn start(self, side: Side) -> World {
        let certificates = certificates(&["api.test", "a.svc.test", "free.test", "127.0.0.1"]);
        let http = Upstream::plain(self.script).await;
        let https = Upstream::tls(certificates.acceptor.clone(), self.script_tls).await;
        let names = Arc::new(Names::default());
        for name in [
            "api.test",
            "free.test",
            "a.svc.test",
            "b.a.svc.test",
            "evil.test",
            "svc.test",
        ] {
            names.set(name, &["127.0.0.1"]);
        }
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let sink = events.clone();
        let mut ports = self.ports;
        ports.extend([http.addr.port(), https.addr.port()]);
        let config = BrokerConfig {
            rules: self.rules,
            allow_private: self.allow_private,
            ports,
            ca_pem: Some(certificates.pem.clone().into_bytes()),
            sni: self.sni,
            rewrite_location: self.rewrite_location,
            timeouts: self.timeouts,
            limits: self.limits,
            upstream_proxy: self.upstream_proxy,
            sink: Some(Arc::new(move |event| sink.lock().unwrap().push(event))),
            resolver: Arc::new(NamesResolver(names.clone())),
        };
        let broker = Arc::new(Broker::new(config).unwrap());
        let listen = ListenConfig {
            allow: self.allow,
            auth: self.auth,
            ..ListenConfig::default()
        };
        let listen = match side {
            Side::Main => listen,
            Side::Extra => ListenConfig {
                host: "127.0.0.2".parse().unwrap(),
                clients: vec!["127.0.0.0/8".into()],
                ..listen
            },
        };
        let listener = broker.listen(listen).await.unwrap();
        World {
            http,
            https,
            names,
            at: listener.addr,
            listener,
            broker,
            events,
            certificates,
        }
    }
}

impl World {
    pub async fn new(side: Side) -> Self {
        Setup::default().start(side).await
    }

    pub async fn open(&self) -> Client {
        Client::open(self.at).await
    }

    /// `host` with the clear-text upstream's port.
    pub fn plain(&self, host: &str) -> String {
        format!("{host}:{}", self.http.addr.port())
    }

    pub fn secure(&self, host: &str) -> String {
        format!("{host}:{}", self.https.addr.port())
    }

    /// One request on a connection of its own.
    pub async fn ask(&self, raw: impl AsRef<[u8]>) -> Answer {
        let mut client = self.open().await;
        client.send(raw).await;
        client.answer().await
    }

    /// An absolute-form GET to the clear-text upstream.
    pub async fn get(&self, host: &str, extra: &str) -> Answer {
        let authority = self.plain(host);
        self.ask(format!(
            "GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n{extra}\r\n"
        ))
        .await
    }

    /// A path-form GET to the TLS upstream.
    pub async fn get_path(&self, host: &str, path: &str, extra: &str) -> Answer {
        let (at, authority) = (self.at, self.secure(host));
        self.ask(format!(
            "GET /__broker/{authority}{path} HTTP/1.1\r\nHost: {at}\r\n{extra}\r\n"
        ))
        .await
    }

    pub async fn connect(&self, authority: &str) -> Client {
        let mut client = self.open().await;
        client
            .send(format!(
                "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
            ))
            .await;
        let head = client.head().await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        client
    }

    pub fn dialled(&self) -> usize {
        self.http.dialled() + self.https.dialled()
    }

    /// The last event, once there are `n`.
    pub async fn event(&self, n: usize) -> Event {
        until("the event", || self.events.lock().unwrap().len() >= n).await;
        self.events.lock().unwrap()[n - 1].clone()
    }
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Vec<String> {
        header_lines(&self.head, name)
    }

    pub fn reason(&self) -> String {
        self.header("x-broker-error").concat()
    }

    #[track_caller]
    pub fn is(&self, status: u16, reason: &str) {
        assert_eq!(
            (self.status, self.reason().as_str()),
            (status, reason),
            "{}{}",
            self.head,
            self.text()
        );
    }
}

pub struct Client {
    pub stream: TcpStream,
    pub buf: Vec<u8>,
}

impl Client {
    pub async fn open(at: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(at).await.unwrap(),
            buf: Vec::new(),
        }
    }

    pub async fn send(&mut self, raw: impl AsRef<[u8]>) {
        self.stream.write_all(raw.as_ref()).await.unwrap();
    }

    pub async fn head(&mut self) -> String {
        soon(async {
            loop {
                if let Some(at) = self.buf.windows(4).position(|w| w == b"\r\n\r\n") {
                    return String::from_utf8_lossy(&self.buf.drain(..at + 4).collect::<Vec<_>>())
                        .into_owned();
                }
                if more(&mut self.stream, &mut self.buf).await.is_none() {
                    panic!("closed with {:?}", String::from_utf8_lossy(&self.buf));
                }
            }
        })
        .await
    }

    pub async fn answer(&mut self) -> Answer {
        let (head, body) = soon(read_message(&mut self.stream, &mut self.buf, false))
            .await
            .expect("an answer");
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|s| s.parse().ok())
            .expect("a status");
        Answer { status, head, body }
    }

    /// Everything until the broker closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.buf);
        let _ = soon(self.stream.read_to_end(&mut out)).await;
        out
    }

    pub async fn read(&mut self, n: usize) -> Vec<u8> {
        soon(async {
            while self.buf.len() < n {
                more(&mut self.stream, &mut self.buf).await.expect("more bytes");
            }
        })
        .await;
        self.buf.drain(..n).collect()
    }
}
