//! Every way the broker says no: one stable reason, its status and a fixed text. Nothing of the request but the
//! refused host is ever repeated, so no answer can carry a secret or an address.

use crate::broker::host::Host;

macro_rules! reasons {
    ($($name:ident = $status:literal, $code:literal, $text:literal;)*) => {
        /// The value of `x-broker-error`, of `error` in the body and of `reason` in an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $($name,)* }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];
            pub fn status(self) -> u16 { match self { $(Reason::$name => $status,)* } }
            pub fn code(self) -> &'static str { match self { $(Reason::$name => $code,)* } }
            pub fn text(self) -> &'static str { match self { $(Reason::$name => $text,)* } }
        }
    };
}

reasons! {
    BadRequest = 400, "bad-request", "the request head is not valid HTTP/1.1";
    BadFraming = 400, "bad-framing", "the body's length is not stated in exactly one valid way";
    BadTarget = 400, "bad-target", "the request target is not valid";
    BadHost = 400, "bad-host", "the host is not a plain name, IPv4 address or [IPv6] address with a port of 1 to 65535";
    HttpsTarget = 400, "https-target", "an https:// target cannot be proxied in clear text: use CONNECT or the path form";
    ConnectForm = 400, "connect-form", "CONNECT takes host:port and no body";
    MethodRefused = 405, "method-refused", "TRACE would echo the injected header: it is refused on hosts with a rule";
    NotFound = 404, "not-found", "not a proxy request; the path form is /__broker/<host>/<path>";
    HostRefused = 403, "host-not-allowed", "the host is in no rule and not in allow";
    PortRefused = 403, "port-not-allowed", "the host is known, but not with this port; add it as host:port or in ports";
    AddressRefused = 403, "address-not-allowed", "the host leads to an address that is not public; list it in allowPrivate if it may be reached";
    CleartextCredential = 403, "cleartext-credential", "the credential would cross the network in clear text: use the path form or CONNECT, or set cleartext: true on the rule";
    WebPage = 403, "cross-site", "web pages may not use the path form";
    OwnHost = 403, "wrong-host", "the Host header does not name this listener";
    AuthRequired = 407, "auth-required", "this listener asks for its credential: use the proxy URL as it was given";
    TokenRequired = 403, "token-required", "this listener asks for its credential: use the base URL as it was given";
    ExpectUnknown = 417, "expect-unknown", "the only expectation served is 100-continue";
    HeaderTimeout = 408, "header-timeout", "the request head did not arrive in time";
    HeadTooLarge = 431, "head-too-large", "the request head is over the size or header count limit";
    TargetTooLong = 414, "target-too-long", "the request target is over the size limit";
    TooManyConnections = 503, "too-many-connections", "the connection limit is reached";
    HeaderFunctionFailed = 502, "header-function-failed", "the function that supplies a header failed";
    HeaderFunctionTimeout = 502, "header-function-timeout", "the function that supplies a header took too long";
    HeaderInvalid = 502, "header-invalid", "the function that supplies a header gave no valid header value";
    DnsFailed = 502, "dns-failed", "the host has no address";
    DnsTimeout = 504, "dns-timeout", "the host's address was not found in time";
    ConnectFailed = 502, "connect-failed", "the upstream could not be reached";
    ConnectTimeout = 504, "connect-timeout", "the upstream did not accept the connection in time";
    TlsFailed = 502, "tls-failed", "the upstream's certificate or TLS handshake is not valid";
    UpstreamFailed = 502, "upstream-failed", "the upstream closed the connection or its answer is not valid HTTP";
    UpstreamEncoding = 502, "upstream-encoding", "the answer is compressed and cannot be searched for the credential";
    ResponseTimeout = 504, "response-timeout", "the upstream did not answer in time";
    ProxyFailed = 502, "upstream-proxy-failed", "the upstream proxy refused or could not be reached";
    Loop = 508, "loop", "the request would come back to a broker of this process";
    SniMismatch = 403, "sni-mismatch", "the TLS server name differs from the CONNECT host";
    TlsRequired = 403, "tls-required", "the tunnel carries no TLS server name, which this broker requires";
    PeerRefused = 403, "peer-not-allowed", "the peer is outside the listener's clients";
    ClientGone = 499, "client-gone", "the client went away";
    Idle = 408, "idle", "no byte moved within the idle time";
    Closed = 503, "closed", "the broker is closing";
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    /// The canonical host that was refused, when there is one.
    pub host: Option<String>,
}

impl Refusal {
    pub fn about(reason: Reason, host: &Host) -> Self {
        Self {
            reason,
            host: Some(host.to_string()),
        }
    }

    /// `{"error":"host-not-allowed","message":"...","host":"evil.test"}`. A canonical host needs no escaping.
    pub fn json(&self) -> String {
        let (code, text) = (self.reason.code(), self.reason.text());
        match &self.host {
            Some(host) => format!("{{\"error\":\"{code}\",\"message\":\"{text}\",\"host\":\"{host}\"}}\n"),
            None => format!("{{\"error\":\"{code}\",\"message\":\"{text}\"}}\n"),
        }
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self { reason, host: None }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_json_with_its_reason_and_nothing_else_of_the_request() {
        for &reason in Reason::ALL {
            let refusal = Refusal::about(reason, &Host::Name("evil.test".into()));
            let value: serde_json::Value = serde_json::from_str(&refusal.json()).unwrap();
            assert_eq!(value["error"], reason.code());
            assert_eq!(value["host"], "evil.test");
            assert_eq!(value.as_object().unwrap().len(), 3);
            assert!(serde_json::from_str::<serde_json::Value>(&Refusal::from(reason).json()).is_ok());
        }
    }

    #[test]
    fn the_page_for_users_lists_every_reason_with_its_status_and_text() {
        let page = include_str!("../../docs/broker.md");
        for &reason in Reason::ALL {
            let row = format!(
                "| `{}` | {} | {} |",
                reason.code(),
                reason.status(),
                reason.text()
            );
            assert!(page.contains(&row), "{row}");
        }
    }
}
