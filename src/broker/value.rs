//! Where an injected header value comes from: a fixed text or a function asked per request, with a deadline. Which
//! headers exist on a request is left to `inject`.

use crate::broker::limits::MAX_HEADER_VALUE_BYTES;
use crate::broker::refusal::Reason;
use http::{HeaderName, HeaderValue};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a header function is told.
#[derive(Clone, Debug)]
pub struct HeaderContext {
    pub header: String,
    pub host: String,
    pub port: u16,
    pub method: String,
    /// With the query, as it will be sent: request signing needs it.
    pub path: String,
}

/// It threw, rejected or gave no string. The cause is the function's own affair: its text may hold the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionError {
    Failed,
    NoString,
}

pub trait HeaderFunction: Send + Sync {
    /// Dropping the future means that nobody wants the answer any more.
    fn value(&self, context: HeaderContext) -> BoxFuture<Result<String, FunctionError>>;
}

#[derive(Clone)]
pub enum HeaderSource {
    Fixed(HeaderValue),
    Function(Arc<dyn HeaderFunction>),
}

/// A header a rule may set. Framing, routing and hop-by-hop names are the broker's own business.
pub fn parse_name(text: &str) -> Result<HeaderName, String> {
    let name =
        HeaderName::from_bytes(text.as_bytes()).map_err(|_| format!("{text:?} is not a header name"))?;
    let reserved = matches!(
        name.as_str(),
        "host"
            | "content-length"
            | "transfer-encoding"
            | "connection"
            | "upgrade"
            | "te"
            | "trailer"
            | "keep-alive"
            | "expect"
            | "http2-settings"
    );
    if reserved || name.as_str().starts_with("proxy-") {
        return Err(format!(
            "a rule cannot set {name}: it belongs to the connection, not to the request"
        ));
    }
    Ok(name)
}

/// Visible ASCII, inner spaces and tabs; spaces around it are trimmed, as HTTP would. An empty value is refused: it
/// is a token that was not there.
pub fn parse_value(text: &str) -> Option<HeaderValue> {
    let text = text.trim_matches([' ', '\t']);
    if text.is_empty() || text.len() > MAX_HEADER_VALUE_BYTES || !text.is_ascii() {
        return None;
    }
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl HeaderSource {
    pub fn fixed(text: &str) -> Result<Self, String> {
        parse_value(text).map(Self::Fixed).ok_or_else(|| {
            format!("a header value is 1 to {MAX_HEADER_VALUE_BYTES} bytes of printable ASCII on one line")
        })
    }
}

/// All values of one request, functions side by side, each within `timeout_ms`.
pub async fn supply(
    headers: &[(HeaderName, HeaderSource)],
    context: impl Fn(&HeaderName) -> HeaderContext,
    timeout_ms: u64,
) -> Result<Vec<(HeaderName, HeaderValue)>, Reason> {
    let mut values = Vec::with_capacity(headers.len());
    let mut pending = None;
    for (name, source) in headers {
        match source {
            HeaderSource::Fixed(value) => values.push((name.clone(), value.clone())),
            HeaderSource::Function(function) => {
                let (name, asked) = (name.clone(), function.value(context(name)));
                let pending = pending.get_or_insert_with(tokio::task::JoinSet::new);
                pending.spawn(async move { (name, ask(asked, timeout_ms).await) });
            }
        }
    }
    let Some(mut pending) = pending else {
        return Ok(values);
    };
    while let Some(joined) = pending.join_next().await {
        let (name, value) = joined.map_err(|_| Reason::HeaderFunctionFailed)?;
        values.push((name, value?));
    }
    Ok(values)
}

async fn ask(
    asked: BoxFuture<Result<String, FunctionError>>,
    timeout_ms: u64,
) -> Result<HeaderValue, Reason> {
    match tokio::time::timeout(Duration::from_millis(timeout_ms), asked).await {
        Err(_) => Err(Reason::HeaderFunctionTimeout),
        Ok(Err(FunctionError::Failed)) => Err(Reason::HeaderFunctionFailed),
        Ok(Err(FunctionError::NoString)) => Err(Reason::HeaderInvalid),
        Ok(Ok(text)) => parse_value(&text).ok_or(Reason::HeaderInvalid),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_sets_no_header_of_the_connection() {
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
            "TE",
            "Expect",
            "a\r\nb",
        ] {
            assert!(parse_name(name).is_err(), "{name:?}");
        }
        for name in ["Authorization", "x-api-key", "Cookie", "X_Under"] {
            assert!(parse_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_value_is_one_line_of_printable_ascii() {
        for text in [
            "a\r\nX: b",
            "a\nb",
            "a\0b",
            "é",
            "",
            "  ",
            "a\u{7f}",
            &"x".repeat(MAX_HEADER_VALUE_BYTES + 1),
        ] {
            assert!(parse_value(text).is_none(), "{text:?}");
        }
        assert_eq!(parse_value(" padded ").unwrap(), "padded");
        assert!(parse_value("Bearer x").unwrap().is_sensitive());
        assert!(parse_value(&"x".repeat(MAX_HEADER_VALUE_BYTES)).is_some());
    }
}
