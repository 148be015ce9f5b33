//! One request, from its head to the head of its answer: the order of the checks is the security of the broker. Route
//! before any lookup, address before any function, functions before any connection.

use crate::broker::body::{ExpectGate, Expecting, RequestBody, ResponseBody, StreamBody};
use crate::broker::exchange::Exchange;
use crate::broker::inject::{self, ERROR_HEADER, Outgoing, lists};
use crate::broker::listen::Connection;
use crate::broker::location;
use crate::broker::refusal::{Reason, Refusal};
use crate::broker::route::{Route, Scheme, Target, route};
use crate::broker::tunnel;
use crate::broker::upstream::Way;
use crate::broker::upstream::pool::{Key, Lease};
use crate::broker::value::{HeaderContext, supply};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode, Uri, Version, request::Parts};
use hyper::body::{Body, Incoming};
use hyper::upgrade::OnUpgrade;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

pub async fn serve(
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Infallible> {
    // Read at once: the guard let this head through only after the previous answer had ended.
    let rejected = connection.wire.take_reject();
    // A rejected head was replaced: its method is not the client's.
    let exchange = connection.begin(if rejected.is_some() {
        ""
    } else {
        request.method().as_str()
    });
    let version = request.version();
    let result = match rejected {
        Some(reason) => Err(reason.into()),
        None => answer(&connection, &exchange, request).await,
    };
    let mut response = result.unwrap_or_else(|failure| refuse(&exchange, failure));
    if version == Version::HTTP_10 && rejected.is_none() {
        *response.version_mut() = version;
    }
    Ok(response)
}

/// A refusal and whether an upstream had been contacted by then.
struct Failure {
    refusal: Refusal,
    contacted: bool,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            contacted: false,
        }
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Refusal::from(reason).into()
    }
}

fn refuse(exchange: &Arc<Exchange>, failure: Failure) -> Response<ResponseBody> {
    let Failure { refusal, contacted } = failure;
    exchange.refused(&refusal, contacted);
    exchange.status(refusal.reason.status());
    let text = Some(Bytes::from(refusal.json()));
    let mut response = Response::new(ResponseBody::Own {
        text,
        exchange: Some(exchange.clone()),
    });
    *response.status_mut() = StatusCode::from_u16(refusal.reason.status()).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = response.headers_mut();
    headers.insert(ERROR_HEADER, HeaderValue::from_static(refusal.reason.code()));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    match refusal.reason {
        Reason::AuthRequired => {
            headers.insert(
                header::PROXY_AUTHENTICATE,
                HeaderValue::from_static("Basic realm=\"croft\""),
            );
        }
        reason if matches!(reason.status(), 400 | 408 | 414 | 431) => {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        _ => {}
    }
    response
}

async fn answer(
    connection: &Arc<Connection>,
    exchange: &Arc<Exchange>,
    mut request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Failure> {
    let takes_over = request.method() == Method::CONNECT || request.headers().contains_key(header::UPGRADE);
    let client = takes_over.then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    let decided = route(
        &connection.shared.upstreams.policy,
        &connection.scope,
        connection.local,
        &parts,
    )?;
    match (decided, client) {
        (Route::Tunnel(target), Some(client)) => {
            exchange.allowed(&target);
            Ok(tunnel::connect(connection, exchange, target, client).await?)
        }
        (Route::Tunnel(_), None) => Err(Reason::ConnectForm.into()),
        (Route::Forward(target), client) => {
            exchange.allowed(&target);
            let client = client.filter(|_| is_websocket(&parts, &body));
            forward(connection, exchange, target, parts, body, client).await
        }
    }
}

/// Other upgrades (h2c) are simply not taken up: the request is answered in HTTP/1.1, as RFC 9110 7.8 allows.
fn is_websocket(parts: &Parts, body: &Incoming) -> bool {
    parts.method == Method::GET
        && parts.version == Version::HTTP_11
        && body.is_end_stream()
        && lists(&parts.headers, header::CONNECTION, "upgrade")
        && lists(&parts.headers, header::UPGRADE, "websocket")
}

async fn forward(
    connection: &Arc<Connection>,
    exchange: &Arc<Exchange>,
    target: Target,
    mut parts: Parts,
    body: Incoming,
    client: Option<OnUpgrade>,
) -> Result<Response<ResponseBody>, Failure> {
    let upstreams = &connection.shared.upstreams;
    let expects = expects_continue(&parts)?;
    let waiting = connection.wire.wait();
    let authority = HeaderValue::try_from(target.authority()).map_err(|_| Reason::BadHost)?;
    let key = Key::of(&target, authority.clone());
    let mut lease = upstreams.reuse(&key);
    let mut way = None;
    if lease.is_none() {
        way = Some(upstreams.find_way(&target.host, target.port).await?);
    }
    let trusted = lease.as_ref().map_or_else(
        || way.as_ref().is_some_and(|way| way.trusted),
        |lease| lease.trusted,
    );
    check_cleartext(&target, trusted)?;
    let injected = supply_values(connection, &target, &parts.method).await?;
    let scrubber = target.rule.as_ref().and_then(|rule| rule.scrubber(&injected));

    let accepts_trailers = inject::request(
        &mut parts.headers,
        Outgoing {
            authority,
            brokered: target.rule.is_some(),
            rule_headers: target.rule.as_ref().map_or(&[], |rule| &rule.names),
            injected,
            upgrade: client.is_some(),
            token: connection
                .scope
                .token
                .as_ref()
                .map(|token| token.text().as_bytes()),
        },
    );
    if scrubber.is_some() {
        parts
            .headers
            .insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let method = parts.method.clone();
    let body = request_body(body, expects, exchange);
    let request = Outbound {
        method: parts.method,
        path: target.path.clone(),
        headers: parts.headers,
        gate: body.1,
        body: body.0,
    };
    if lease.is_none() {
        lease = Some(open(connection, &target, key, way).await?);
    }
    let Some(lease) = lease else {
        return Err(Reason::ConnectFailed.into());
    };
    let (lease, response) = send(connection, exchange, &target, lease, request)
        .await
        .map_err(|refusal| Failure {
            refusal,
            contacted: true,
        })?;
    drop(waiting);
    let passed = pass_back(
        connection,
        exchange,
        &target,
        client,
        lease,
        response,
        Back {
            accepts_trailers,
            scrubber,
            method,
        },
    );
    passed.map_err(|reason| Failure {
        refusal: Refusal::about(reason, &target.host),
        contacted: true,
    })
}

fn expects_continue(parts: &Parts) -> Result<bool, Reason> {
    match parts.headers.get(header::EXPECT) {
        None => Ok(false),
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => {
            Ok(parts.version == Version::HTTP_11)
        }
        Some(_) => Err(Reason::ExpectUnknown),
    }
}

/// A credential goes in clear text only where the network is the machine's own or the caller said so.
fn check_cleartext(target: &Target, trusted: bool) -> Result<(), Refusal> {
    let refused = target.scheme == Scheme::Http
        && !trusted
        && target
            .rule
            .as_ref()
            .is_some_and(|rule| !rule.cleartext && !rule.headers.is_empty());
    if refused {
        Err(Refusal::about(Reason::CleartextCredential, &target.host))
    } else {
        Ok(())
    }
}

async fn supply_values(
    connection: &Connection,
    target: &Target,
    method: &Method,
) -> Result<Vec<(HeaderName, HeaderValue)>, Refusal> {
    let Some(rule) = &target.rule else {
        return Ok(Vec::new());
    };
    let context = |name: &HeaderName| HeaderContext {
        header: name.as_str().to_owned(),
        host: target.host.to_string(),
        port: target.port,
        method: method.as_str().to_owned(),
        path: target.path.to_string(),
    };
    let timeout_ms = connection.shared.timeouts.function_ms;
    supply(&rule.headers, context, timeout_ms)
        .await
        .map_err(|reason| Refusal::about(reason, &target.host))
}

fn request_body(
    body: Incoming,
    expects: bool,
    exchange: &Arc<Exchange>,
) -> (RequestBody, Option<Arc<ExpectGate>>) {
    if body.is_end_stream() {
        exchange.sent();
        return (RequestBody::Empty, None);
    }
    let gate = expects.then(|| Arc::new(ExpectGate::default()));
    let expecting = gate.clone().map(Expecting::new);
    (
        RequestBody::Stream {
            inner: body,
            expecting,
            exchange: exchange.clone(),
        },
        gate,
    )
}

async fn open(
    connection: &Connection,
    target: &Target,
    key: Key,
    way: Option<Way>,
) -> Result<Lease, Failure> {
    let upstreams = &connection.shared.upstreams;
    let way = match way {
        Some(way) => way,
        None => upstreams.find_way(&target.host, target.port).await?,
    };
    upstreams.open(target, key, way).await.map_err(|refusal| Failure {
        refusal,
        contacted: true,
    })
}

struct Outbound {
    method: Method,
    path: PathAndQuery,
    headers: HeaderMap,
    body: RequestBody,
    gate: Option<Arc<ExpectGate>>,
}

impl Outbound {
    fn into_request(mut self, target: &Target, lease: &Lease) -> Result<Request<RequestBody>, Reason> {
        let uri = match &lease.through {
            None => Uri::from(self.path),
            Some(authorization) => {
                if let Some(value) = authorization {
                    self.headers.insert(header::PROXY_AUTHORIZATION, value.clone());
                }
                Uri::try_from(format!("http://{}{}", target.authority(), self.path))
                    .map_err(|_| Reason::BadTarget)?
            }
        };
        let mut request = Request::new(self.body);
        *request.uri_mut() = uri;
        *request.method_mut() = self.method;
        *request.headers_mut() = self.headers;
        if let Some(gate) = self.gate {
            hyper::ext::on_informational(&mut request, move |response| {
                if response.status() == StatusCode::CONTINUE {
                    gate.open();
                }
            });
        }
        Ok(request)
    }

    /// What may be sent a second time: RFC 9110 9.2.2, and no body that is already consumed.
    fn repeatable(&self) -> Option<Self> {
        let idempotent = matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS);
        (idempotent && matches!(self.body, RequestBody::Empty)).then(|| Self {
            method: self.method.clone(),
            path: self.path.clone(),
            headers: self.headers.clone(),
            body: RequestBody::Empty,
            gate: None,
        })
    }
}

/// Sends; a pooled connection that turns out to be closed is replaced once, if nothing was sent on it or the request
/// may be repeated.
async fn send(
    connection: &Connection,
    exchange: &Exchange,
    target: &Target,
    mut lease: Lease,
    outbound: Outbound,
) -> Result<(Lease, Response<Incoming>), Refusal> {
    let about = |reason| Refusal::about(reason, &target.host);
    let pooled = lease.pooled;
    let again = if pooled { outbound.repeatable() } else { None };
    let request = outbound.into_request(target, &lease).map_err(about)?;
    let first = in_time(connection, exchange, lease.sender.try_send_request(request)).await;
    let mut error = match first {
        Err(reason) => return Err(about(reason)),
        Ok(Ok(response)) => return Ok((lease, response)),
        Ok(Err(error)) => error,
    };
    if connection.wire.has_bad_body() {
        return Err(about(Reason::BadFraming));
    }
    let unsent = error.take_message();
    if !pooled {
        return Err(about(Reason::UpstreamFailed));
    }
    if unsent.is_none() && again.is_none() {
        return Err(about(Reason::UpstreamFailed));
    }
    let mut lease = open(connection, target, lease.key, None)
        .await
        .map_err(|failure| failure.refusal)?;
    let request = match (unsent, again) {
        (Some(request), _) => request,
        (None, Some(again)) => again.into_request(target, &lease).map_err(about)?,
        (None, None) => return Err(about(Reason::UpstreamFailed)),
    };
    match in_time(connection, exchange, lease.sender.send_request(request)).await {
        Err(reason) => Err(about(reason)),
        Ok(Ok(response)) => Ok((lease, response)),
        Ok(Err(_)) if connection.wire.has_bad_body() => Err(about(Reason::BadFraming)),
        Ok(Err(_)) => Err(about(Reason::UpstreamFailed)),
    }
}

/// The upstream's time to answer runs from the last byte of the request: an upload takes as long as it takes, while it
/// moves.
async fn in_time<T>(
    connection: &Connection,
    exchange: &Exchange,
    answer: impl Future<Output = T>,
) -> Result<T, Reason> {
    let timeouts = &connection.shared.timeouts;
    tokio::pin!(answer);
    loop {
        let (left, reason) = match exchange.sent_ms_ago() {
            Some(ago) => (timeouts.response_ms.saturating_sub(ago), Reason::ResponseTimeout),
            None => (
                timeouts.idle_ms.saturating_sub(connection.wire.quiet_ms()),
                Reason::Idle,
            ),
        };
        if left == 0 {
            return Err(reason);
        }
        // Not longer than the shorter of the two: the last byte may be sent meanwhile.
        let nap = if reason == Reason::Idle {
            left.min(timeouts.response_ms)
        } else {
            left
        };
        if let Ok(answer) = tokio::time::timeout(Duration::from_millis(nap), &mut answer).await {
            return Ok(answer);
        }
    }
}

struct Back {
    accepts_trailers: bool,
    scrubber: Option<crate::broker::scrub::Scrubber>,
    method: Method,
}

fn pass_back(
    connection: &Arc<Connection>,
    exchange: &Arc<Exchange>,
    target: &Target,
    client: Option<OnUpgrade>,
    lease: Lease,
    mut response: Response<Incoming>,
    back: Back,
) -> Result<Response<ResponseBody>, Reason> {
    let status = response.status();
    if !inject::response(response.headers_mut(), status, back.accepts_trailers) {
        return Err(Reason::UpstreamFailed);
    }
    if let Some(prefix) = connection.rewrite_prefix(target) {
        location::rewrite(response.headers_mut(), target, &prefix);
    }
    if let Some(scrubber) = &back.scrubber {
        mask_headers(response.headers_mut(), scrubber);
        let encoded = response
            .headers()
            .get(header::CONTENT_ENCODING)
            .is_some_and(|value| value != "identity");
        if encoded && back.method != Method::HEAD {
            return Err(Reason::UpstreamEncoding);
        }
    }
    if status == StatusCode::SWITCHING_PROTOCOLS {
        // A 101 that nobody asked for would turn the connection into a raw pipe.
        let client = client.ok_or(Reason::UpstreamFailed)?;
        let upstream = hyper::upgrade::on(&mut response);
        tunnel::upgraded(connection, exchange, client, upstream);
        return Ok(response.map(|_| ResponseBody::Tunnel));
    }
    exchange.status(status.as_u16());
    let pool = connection.shared.upstreams.pool.clone();
    let (mut parts, body) = response.into_parts();
    let bare = status == StatusCode::NOT_MODIFIED && parts.headers.contains_key(header::CONTENT_LENGTH);
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    Ok(Response::from_parts(
        parts,
        ResponseBody::Stream(StreamBody::new(
            body,
            exchange.clone(),
            back.scrubber,
            bare,
            (pool, lease),
        )),
    ))
}

fn mask_headers(headers: &mut HeaderMap, scrubber: &crate::broker::scrub::Scrubber) {
    for value in headers.values_mut() {
        let mut bytes = value.as_bytes().to_vec();
        if scrubber.mask(&mut bytes)
            && let Ok(masked) = HeaderValue::from_bytes(&bytes)
        {
            *value = masked;
        }
    }
}
