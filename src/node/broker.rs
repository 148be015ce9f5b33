//! The credential broker, for JavaScript.

use super::convert::whole;
use crate::broker::event::{Event, Stats};
use crate::broker::limits::{Limits, Timeouts};
use crate::broker::policy::RuleConfig;
use crate::broker::resolve::{Resolver, SystemResolver};
use crate::broker::runtime::runtime;
use crate::broker::tunnel::Sni;
use crate::broker::value::{BoxFuture, FunctionError, HeaderContext, HeaderFunction, HeaderSource};
use crate::broker::{Broker, BrokerConfig, ListenConfig, Listener};
use crate::error::{Error, ErrorCode, Result};
use napi::Status;
use napi::bindgen_prelude::{Either, Promise};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Events on their way to a busy event loop; more are dropped rather than kept without limit.
const MAX_WAITING_EVENTS: usize = 4096;

/// The answer is a letter and, for `v`, the value behind it: `e` it failed, `n` it gave no string.
type Ask =
    ThreadsafeFunction<NativeQuestion, Either<Promise<String>, String>, NativeQuestion, Status, false, true>;
type Withdraw = ThreadsafeFunction<u32, (), u32, Status, false, true>;
type OnEvent =
    ThreadsafeFunction<NativeBrokerEvent, (), NativeBrokerEvent, Status, false, true, MAX_WAITING_EVENTS>;
type Lookup = ThreadsafeFunction<String, Promise<Vec<String>>, String, Status, false, true>;

#[napi(object, object_to_js = false)]
pub struct NativeBrokerOptions {
    pub rules: Vec<NativeRule>,
    pub allow_private: Vec<String>,
    pub ports: Vec<f64>,
    pub ca: Option<String>,
    #[napi(ts_type = "'match' | 'strict' | 'off'")]
    pub sni: String,
    pub rewrite_location: bool,
    /// Names of `Timeouts` and `Limits` to whole numbers.
    pub timeouts: HashMap<String, f64>,
    pub limits: HashMap<String, f64>,
    pub upstream_proxy: Option<String>,
}

#[napi(object, object_to_js = false)]
pub struct NativeRule {
    pub host: String,
    pub headers: Vec<NativeRuleHeader>,
    pub ports: Vec<f64>,
    pub cleartext: bool,
    pub scrub: bool,
}

#[napi(object, object_to_js = false)]
pub struct NativeRuleHeader {
    pub name: String,
    /// The text, or the number of the function to ask.
    pub value: Either<String, u32>,
}

#[napi(object, object_from_js = false)]
pub struct NativeQuestion {
    pub id: u32,
    pub function: u32,
    pub header: String,
    pub host: String,
    pub port: u32,
    pub method: String,
    pub path: String,
}

#[napi(object, object_from_js = false)]
pub struct NativeBrokerEvent {
    #[napi(ts_type = "'request' | 'tunnel' | 'upgrade' | 'connection'")]
    pub kind: &'static str,
    pub time_ms: f64,
    pub listener: String,
    pub method: String,
    pub host: Option<String>,
    pub port: Option<u32>,
    pub path: Option<String>,
    #[napi(ts_type = "'allow' | 'deny'")]
    pub verdict: &'static str,
    pub injected: bool,
    pub reason: Option<&'static str>,
    pub status: u32,
    pub bytes_in: f64,
    pub bytes_out: f64,
    pub duration_ms: f64,
}

#[napi(object, object_from_js = false)]
pub struct NativeBrokerStats {
    pub connections: f64,
    pub tunnels: f64,
    pub active_requests: f64,
    pub requests: f64,
    pub refused: f64,
    pub failed: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
    pub upstream_connections: f64,
}

#[napi(object, object_to_js = false)]
pub struct NativeListenOptions {
    pub host: String,
    pub port: f64,
    pub clients: Vec<String>,
    pub allow: Vec<String>,
    pub auth: bool,
}

#[napi]
pub struct NativeBroker {
    broker: Arc<Broker>,
}

#[napi]
pub struct NativeListener {
    listener: Arc<Listener>,
}

#[napi]
impl NativeBroker {
    #[napi(factory)]
    pub fn create(
        options: NativeBrokerOptions,
        ask: Ask,
        withdraw: Withdraw,
        on_event: Option<OnEvent>,
        lookup: Option<Lookup>,
    ) -> napi::Result<Self> {
        let functions = Functions {
            ask: Arc::new(ask),
            withdraw: Arc::new(withdraw),
        };
        let config = config(options, &functions, on_event, lookup)?;
        // The broker's housekeeping starts with it, on the broker's own threads.
        let _entered = runtime()?.enter();
        Ok(Self {
            broker: Arc::new(Broker::new(config)?),
        })
    }

    #[napi]
    pub async fn listen(&self, options: NativeListenOptions) -> napi::Result<NativeListener> {
        let config = listen_config(options)?;
        let broker = self.broker.clone();
        let listener = on_broker_threads(async move { broker.listen(config).await }).await?;
        Ok(NativeListener {
            listener: Arc::new(listener),
        })
    }

    /// Takes over a listening socket, and with it the closing of `fd`.
    #[napi]
    pub async fn adopt(&self, fd: i32, allow: Vec<String>, auth: bool) -> napi::Result<NativeListener> {
        let socket = socket_of(fd)?;
        let broker = self.broker.clone();
        let listener = on_broker_threads(async move { broker.adopt(socket, &allow, auth) }).await?;
        Ok(NativeListener {
            listener: Arc::new(listener),
        })
    }

    #[napi]
    pub fn stats(&self) -> NativeBrokerStats {
        self.broker.stats().into()
    }

    #[napi]
    pub async fn close(&self, drain_ms: f64) -> napi::Result<()> {
        let drain = Duration::from_millis(whole("drainMs", drain_ms, 0)?);
        let broker = self.broker.clone();
        on_broker_threads(async move {
            broker.close(drain).await;
            Ok(())
        })
        .await?;
        Ok(())
    }

    /// For the sandboxes, whose commands go through it.
    pub(crate) fn shared(&self) -> Arc<Broker> {
        self.broker.clone()
    }
}

#[napi]
impl NativeListener {
    #[napi(getter)]
    pub fn url(&self) -> String {
        self.listener.url.clone()
    }

    #[napi]
    pub fn env(&self) -> HashMap<String, String> {
        self.listener.env().into_iter().collect()
    }

    #[napi]
    pub fn base_url(&self, host: String) -> napi::Result<String> {
        Ok(self.listener.base_url(&host)?)
    }

    #[napi]
    pub async fn close(&self, drain_ms: f64) -> napi::Result<()> {
        let drain = Duration::from_millis(whole("drainMs", drain_ms, 0)?);
        let listener = self.listener.clone();
        on_broker_threads(async move {
            listener.close(drain).await;
            Ok(())
        })
        .await?;
        Ok(())
    }
}

async fn on_broker_threads<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let joined = runtime()?.spawn(work).await;
    joined.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorCode::Internal,
            "the broker failed unexpectedly; please report this with the call you made",
        ))
    })
}

#[cfg(unix)]
fn socket_of(fd: i32) -> Result<std::net::TcpListener> {
    use std::os::fd::FromRawFd;
    if fd < 0 {
        return Err(Error::new(
            ErrorCode::InvalidArgument,
            format!("fd must be an open descriptor, not {fd}"),
        ));
    }
    // SAFETY: the caller hands the descriptor over (index.d.ts says so) and does not use or close it afterwards; that
    // it is a listening socket is checked by the calls that follow, which fail on any other.
    Ok(unsafe { std::net::TcpListener::from_raw_fd(fd) })
}

#[cfg(not(unix))]
fn socket_of(_: i32) -> Result<std::net::TcpListener> {
    Err(Error::new(
        ErrorCode::Unsupported,
        "a listening socket can be handed over on Unix only: use listen()",
    ))
}

fn port(name: &str, value: f64) -> Result<u16> {
    let number = whole(name, value, 1)?;
    u16::try_from(number).map_err(|_| {
        Error::new(
            ErrorCode::InvalidArgument,
            format!("{name}: {number} is not a port (1 to 65535)"),
        )
    })
}

fn ports(values: Vec<f64>) -> Result<Vec<u16>> {
    values.into_iter().map(|value| port("ports", value)).collect()
}

fn listen_config(options: NativeListenOptions) -> Result<ListenConfig> {
    let host: IpAddr = options.host.parse().map_err(|_| {
        Error::new(
            ErrorCode::InvalidArgument,
            format!("host: {:?} is not an IP address to listen on", options.host),
        )
    })?;
    let port = if options.port == 0.0 {
        0
    } else {
        port("port", options.port)?
    };
    Ok(ListenConfig {
        host,
        port,
        clients: options.clients,
        allow: options.allow,
        auth: options.auth,
    })
}

fn config(
    options: NativeBrokerOptions,
    functions: &Functions,
    on_event: Option<OnEvent>,
    lookup: Option<Lookup>,
) -> Result<BrokerConfig> {
    let rules = options
        .rules
        .into_iter()
        .enumerate()
        .map(|(index, rule)| rule_config(index, rule, functions));
    let resolver: Arc<dyn Resolver> = match lookup {
        None => Arc::new(SystemResolver),
        Some(lookup) => Arc::new(JsResolver(Arc::new(lookup))),
    };
    Ok(BrokerConfig {
        rules: rules.collect::<Result<_>>()?,
        allow_private: options.allow_private,
        ports: ports(options.ports)?,
        ca_pem: options.ca.map(String::into_bytes),
        sni: match options.sni.as_str() {
            "strict" => Sni::Strict,
            "off" => Sni::Off,
            _ => Sni::Match,
        },
        rewrite_location: options.rewrite_location,
        timeouts: timeouts(&options.timeouts)?,
        limits: limits(&options.limits)?,
        upstream_proxy: options.upstream_proxy,
        sink: on_event.map(|on_event| {
            let sink = move |event: Event| {
                // Full or closing: the event is lost, the traffic is not.
                let _ = on_event.call(event.into(), ThreadsafeFunctionCallMode::NonBlocking);
            };
            Arc::new(sink) as _
        }),
        resolver,
    })
}

fn rule_config(index: usize, rule: NativeRule, functions: &Functions) -> Result<RuleConfig> {
    let mut headers = Vec::with_capacity(rule.headers.len());
    for header in rule.headers {
        let source = match header.value {
            // The value itself is never part of a message.
            Either::A(text) => HeaderSource::fixed(&text).map_err(|why| {
                let message = format!("rules[{index}] {:?}, header {:?}: {why}", rule.host, header.name);
                Error::new(ErrorCode::InvalidArgument, message)
            })?,
            Either::B(function) => HeaderSource::Function(Arc::new(JsFunction {
                functions: functions.clone(),
                function,
            })),
        };
        headers.push((header.name, source));
    }
    let ports = ports(rule.ports)?;
    Ok(RuleConfig {
        host: rule.host,
        headers,
        ports,
        cleartext: rule.cleartext,
        scrub: rule.scrub,
    })
}

fn timeouts(given: &HashMap<String, f64>) -> Result<Timeouts> {
    let mut out = Timeouts::default();
    for (name, value) in given {
        let slot = match name.as_str() {
            "headerMs" => &mut out.header_ms,
            "connectMs" => &mut out.connect_ms,
            "functionMs" => &mut out.function_ms,
            "responseMs" => &mut out.response_ms,
            "idleMs" => &mut out.idle_ms,
            "keepAliveMs" => &mut out.keep_alive_ms,
            "halfCloseMs" => &mut out.half_close_ms,
            "poolIdleMs" => &mut out.pool_idle_ms,
            _ => {
                return Err(Error::new(
                    ErrorCode::InvalidArgument,
                    format!("timeouts has no {name:?}"),
                ));
            }
        };
        *slot = whole(name, *value, 1)?;
    }
    Ok(out)
}

fn limits(given: &HashMap<String, f64>) -> Result<Limits> {
    let mut out = Limits::default();
    for (name, value) in given {
        let slot = match name.as_str() {
            "maxHeadBytes" => &mut out.max_head_bytes,
            "maxTargetBytes" => &mut out.max_target_bytes,
            "maxConnections" => &mut out.max_connections,
            "maxConnectionsPerPeer" => &mut out.max_connections_per_peer,
            "maxIdlePerHost" => &mut out.max_idle_per_host,
            _ => {
                return Err(Error::new(
                    ErrorCode::InvalidArgument,
                    format!("limits has no {name:?}"),
                ));
            }
        };
        *slot = whole(name, *value, 1)? as usize;
    }
    Ok(out)
}

#[derive(Clone)]
struct Functions {
    ask: Arc<Ask>,
    withdraw: Arc<Withdraw>,
}

struct JsFunction {
    functions: Functions,
    function: u32,
}

impl HeaderFunction for JsFunction {
    fn value(&self, context: HeaderContext) -> BoxFuture<std::result::Result<String, FunctionError>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (ask, function) = (self.functions.ask.clone(), self.function);
        let mut pending = Pending {
            withdraw: Some(self.functions.withdraw.clone()),
            id,
        };
        Box::pin(async move {
            let HeaderContext {
                header,
                host,
                port,
                method,
                path,
            } = context;
            let question = NativeQuestion {
                id,
                function,
                header,
                host,
                port: port.into(),
                method,
                path,
            };
            // `call_async` would make an exception of the callback an uncaught one.
            let answered = match ask.call_async_catch(question).await {
                Ok(Either::A(promise)) => promise.await,
                Ok(Either::B(now)) => Ok(now),
                Err(error) => Err(error),
            };
            pending.settle();
            let answer = answered.map_err(|_| FunctionError::Failed)?;
            match answer.strip_prefix('v') {
                Some(value) => Ok(value.to_owned()),
                None if answer == "n" => Err(FunctionError::NoString),
                None => Err(FunctionError::Failed),
            }
        })
    }
}

/// Tells the function's `signal` when nobody waits for the answer any more: the client left, or the time is up.
struct Pending {
    withdraw: Option<Arc<Withdraw>>,
    id: u32,
}

impl Pending {
    fn settle(&mut self) {
        self.withdraw = None;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(withdraw) = self.withdraw.take() {
            let _ = withdraw.call(self.id, ThreadsafeFunctionCallMode::NonBlocking);
        }
    }
}

/// The caller's own way from a name to addresses; they are checked like any others.
struct JsResolver(Arc<Lookup>);

impl Resolver for JsResolver {
    fn resolve(&self, name: String) -> BoxFuture<std::io::Result<Vec<IpAddr>>> {
        let lookup = self.0.clone();
        Box::pin(async move {
            let failed = |_| std::io::Error::other("lookup failed");
            let texts = lookup
                .call_async_catch(name)
                .await
                .map_err(failed)?
                .await
                .map_err(failed)?;
            texts
                .iter()
                .map(|text| text.parse().map_err(|_| std::io::Error::other("not an address")))
                .collect()
        })
    }
}

impl From<Event> for NativeBrokerEvent {
    fn from(event: Event) -> Self {
        Self {
            kind: event.kind.as_str(),
            time_ms: event.time_ms as f64,
            listener: event.listener.to_string(),
            method: event.method,
            host: event.host,
            port: event.port.map(u32::from),
            path: event.path,
            verdict: if event.allowed { "allow" } else { "deny" },
            injected: event.injected,
            reason: event.reason.map(|reason| reason.code()),
            status: event.status.into(),
            bytes_in: event.bytes_in as f64,
            bytes_out: event.bytes_out as f64,
            duration_ms: event.duration_ms,
        }
    }
}

impl From<Stats> for NativeBrokerStats {
    fn from(stats: Stats) -> Self {
        Self {
            connections: stats.connections as f64,
            tunnels: stats.tunnels as f64,
            active_requests: stats.active_requests as f64,
            requests: stats.requests as f64,
            refused: stats.refused as f64,
            failed: stats.failed as f64,
            bytes_in: stats.bytes_in as f64,
            bytes_out: stats.bytes_out as f64,
            upstream_connections: stats.upstream_connections as f64,
        }
    }
}
