//! Header surgery (pure): what is taken from a request and an answer, and what is put in. Which request gets here
//! is decided by `route`.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// What the request is on its way to.
pub struct Outgoing<'a> {
    /// The value of `Host`.
    pub authority: HeaderValue,
    /// The host has a rule: the client's own claims and credentials are not passed on.
    pub brokered: bool,
    /// Names the rule sets.
    pub rule_headers: &'a [HeaderName],
    pub injected: Vec<(HeaderName, HeaderValue)>,
    /// A WebSocket handshake.
    pub upgrade: bool,
    /// The listener's credential, which no upstream may learn.
    pub token: Option<&'a [u8]>,
}

/// Makes a client's headers those of the upstream request. Returns whether the client accepts trailers.
pub fn request(headers: &mut HeaderMap, out: Outgoing<'_>) -> bool {
    let accepts_trailers = lists(headers, header::TE, "trailers");
    let trailers = declared_trailers(headers);
    let expects = headers.contains_key(header::EXPECT);
    remove_hop_by_hop(headers);
    if out.brokered {
        remove_where(headers, |name, _| {
            is_claim(name) || *name == header::AUTHORIZATION
        });
        for name in out.rule_headers {
            headers.remove(name);
        }
    }
    if let Some(token) = out.token {
        remove_where(headers, |_, value| {
            memchr::memmem::find(value.as_bytes(), token).is_some()
        });
    }
    headers.insert(header::HOST, out.authority);
    for (name, value) in out.injected {
        headers.insert(name, value);
    }
    if let Some(trailers) = trailers {
        headers.insert(header::TRAILER, trailers);
    }
    if expects {
        headers.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
    }
    if out.upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    } else if accepts_trailers {
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    accepts_trailers
}

/// The mark of the broker's own answers; an upstream cannot set it.
pub const ERROR_HEADER: HeaderName = HeaderName::from_static("x-broker-error");

/// Makes an upstream's headers those of the answer. `false`: the body's length is not stated in one valid way.
pub fn response(headers: &mut HeaderMap, status: http::StatusCode, accepts_trailers: bool) -> bool {
    let trailers = declared_trailers(headers).filter(|_| accepts_trailers);
    let chunked = match single_transfer_encoding(headers) {
        Ok(chunked) => chunked,
        Err(()) => return false,
    };
    let websocket = status == http::StatusCode::SWITCHING_PROTOCOLS;
    remove_hop_by_hop(headers);
    headers.remove(&ERROR_HEADER);
    // With both, Transfer-Encoding decided the length (RFC 9112 6.3); hyper's server would refuse to send them.
    if chunked || status == http::StatusCode::NO_CONTENT || status.is_informational() {
        headers.remove(header::CONTENT_LENGTH);
    } else if headers.get_all(header::CONTENT_LENGTH).iter().count() > 1 {
        // hyper has checked that they agree.
        if let Some(length) = headers.get(header::CONTENT_LENGTH).cloned() {
            headers.insert(header::CONTENT_LENGTH, length);
        }
    }
    if let Some(trailers) = trailers {
        headers.insert(header::TRAILER, trailers);
    }
    if websocket {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    true
}

/// Only `chunked` is undone by hyper; any other coding would reach the client with its label taken off.
fn single_transfer_encoding(headers: &HeaderMap) -> Result<bool, ()> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(false),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(true),
        _ => Err(()),
    }
}

/// RFC 9110 7.6.1: the fixed names, all `Proxy-*`, and whatever `Connection` lists.
fn remove_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        let listed: Vec<HeaderName> = tokens(headers, header::CONNECTION)
            .filter_map(|t| HeaderName::from_bytes(t.as_bytes()).ok())
            .collect();
        for name in listed {
            headers.remove(name);
        }
    }
    remove_where(headers, |name, _| is_hop_by_hop(name));
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    let text = name.as_str();
    let fixed = match text.len() {
        2 => text == "te",
        6 => text == "expect",
        7 => text == "upgrade" || text == "trailer",
        10 => text == "connection" || text == "keep-alive",
        14 => text == "http2-settings",
        17 => text == "transfer-encoding",
        _ => false,
    };
    fixed || text.starts_with("proxy-")
}

/// Statements about where the request came from: the local port, the listener's URL, an address of the agent's choice.
fn is_claim(name: &HeaderName) -> bool {
    let text = name.as_str();
    matches!(
        text,
        "forwarded" | "via" | "referer" | "origin" | "x-real-ip" | "true-client-ip" | "client-ip"
    ) || text.starts_with("x-forwarded-")
}

fn remove_where(headers: &mut HeaderMap, unwanted: impl Fn(&HeaderName, &HeaderValue) -> bool) {
    let names: Vec<HeaderName> = headers
        .iter()
        .filter(|(name, value)| unwanted(name, value))
        .map(|(name, _)| name.clone())
        .collect();
    for name in names {
        headers.remove(name);
    }
}

/// The comma-separated members of every line of a header.
pub fn tokens(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers
        .get_all(name)
        .into_iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(str::trim)
        .filter(|t| !t.is_empty())
}

pub fn lists(headers: &HeaderMap, name: HeaderName, member: &str) -> bool {
    tokens(headers, name).any(|token| {
        token
            .split(';')
            .next()
            .is_some_and(|t| t.trim().eq_ignore_ascii_case(member))
    })
}

/// RFC 9110 6.5.1: a trailer never carries framing, routing, authentication or anything that controls how the
/// message is read.
pub fn may_be_trailer(name: &HeaderName) -> bool {
    let text = name.as_str();
    let forbidden = is_hop_by_hop(name)
        || is_claim(name)
        || text.starts_with("content-")
        || matches!(
            text,
            "host"
                | "authorization"
                | "www-authenticate"
                | "cookie"
                | "set-cookie"
                | "cache-control"
                | "max-forwards"
                | "range"
                | "age"
                | "date"
                | "expires"
                | "location"
                | "retry-after"
                | "vary"
                | "warning"
                | "pragma"
        );
    !forbidden
}

fn declared_trailers(headers: &HeaderMap) -> Option<HeaderValue> {
    // Only a chunked message can have any.
    if !headers.contains_key(header::TRAILER) || !headers.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    let names: Vec<&str> = tokens(headers, header::TRAILER)
        .filter(|t| HeaderName::from_bytes(t.as_bytes()).is_ok_and(|n| may_be_trailer(&n)))
        .collect();
    if names.is_empty() {
        None
    } else {
        HeaderValue::from_str(&names.join(", ")).ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use http::StatusCode;

    fn map(lines: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        map
    }

    fn lines(map: &HeaderMap) -> Vec<String> {
        let mut out: Vec<String> = map
            .iter()
            .map(|(n, v)| format!("{n}: {}", String::from_utf8_lossy(v.as_bytes())))
            .collect();
        out.sort();
        out
    }

    fn outgoing(brokered: bool) -> Outgoing<'static> {
        static RULE: [HeaderName; 1] = [HeaderName::from_static("x-api-key")];
        let injected = if brokered {
            vec![(RULE[0].clone(), HeaderValue::from_static("secret"))]
        } else {
            vec![]
        };
        Outgoing {
            authority: HeaderValue::from_static("api.test"),
            brokered,
            rule_headers: if brokered { &RULE } else { &[] },
            injected,
            upgrade: false,
            token: None,
        }
    }

    #[test]
    fn hop_by_hop_headers_and_what_connection_names_do_not_pass() {
        let mut headers = map(&[
            ("host", "evil.test"),
            ("connection", "X-Foo, close, content-length, host"),
            ("x-foo", "1"),
            ("keep-alive", "5"),
            ("te", "gzip"),
            ("trailer", "authorization"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("proxy-authorization", "a"),
            ("PROXY-Authorization", "b"),
            ("proxy-connection", "c"),
            ("proxy-anything", "d"),
            ("transfer-encoding", "chunked"),
            ("accept", "*/*"),
        ]);
        request(&mut headers, outgoing(false));
        assert_eq!(lines(&headers), ["accept: */*", "host: api.test"]);
    }

    #[test]
    fn a_client_passes_neither_credentials_nor_claims_to_a_brokered_host() {
        let client = [
            ("authorization", "Bearer mine"),
            ("Authorization", "again"),
            ("x-api-key", "mine"),
            ("forwarded", "for=1"),
            ("x-forwarded-for", "1.2.3.4"),
            ("via", "1.1 x"),
            ("referer", "http://127.0.0.1:1/__broker/"),
            ("origin", "http://127.0.0.1:1"),
            ("cookie", "c=1"),
            ("x-bytes", "\u{fc}"),
        ];
        let mut headers = map(&client);
        request(&mut headers, outgoing(true));
        assert_eq!(
            lines(&headers),
            [
                "cookie: c=1",
                "host: api.test",
                "x-api-key: secret",
                "x-bytes: \u{fc}"
            ]
        );
        let mut headers = map(&client);
        request(&mut headers, outgoing(false));
        assert_eq!(
            headers.len(),
            client.len() + 1,
            "an allowed host without a rule gets all of it"
        );
    }

    #[test]
    fn connection_cannot_take_an_injected_header_away() {
        let mut headers = map(&[("connection", "x-api-key, host"), ("x-api-key", "mine")]);
        request(&mut headers, outgoing(true));
        assert_eq!(lines(&headers), ["host: api.test", "x-api-key: secret"]);
    }

    #[test]
    fn the_listeners_credential_leaves_in_no_header() {
        let mut headers = map(&[
            ("user-agent", "x http://127.0.0.1:1/__broker/tok3n/"),
            ("accept", "*/*"),
        ]);
        request(
            &mut headers,
            Outgoing {
                token: Some(b"tok3n"),
                ..outgoing(false)
            },
        );
        assert_eq!(lines(&headers), ["accept: */*", "host: api.test"]);
    }

    #[test]
    fn trailers_pass_only_declared_and_harmless() {
        let mut headers = map(&[
            ("te", "trailers, gzip"),
            ("trailer", "X-T, Authorization"),
            ("trailer", "content-length"),
            ("transfer-encoding", "chunked"),
        ]);
        assert!(request(&mut headers, outgoing(false)));
        assert_eq!(
            lines(&headers),
            ["connection: te", "host: api.test", "te: trailers", "trailer: X-T"]
        );
        let mut headers = map(&[("trailer", "x-t"), ("transfer-encoding", "chunked")]);
        assert!(response(&mut headers, StatusCode::OK, false));
        assert_eq!(lines(&headers), [""; 0]);
    }

    #[test]
    fn an_answer_states_its_length_once() {
        type Lines<'a> = &'a [(&'a str, &'a str)];
        let cases: [(Lines, StatusCode, Option<&[&str]>); 7] = [
            (
                &[("content-length", "3"), ("transfer-encoding", "chunked")],
                StatusCode::OK,
                Some(&[]),
            ),
            (
                &[("content-length", "3"), ("content-length", "3")],
                StatusCode::OK,
                Some(&["content-length: 3"]),
            ),
            (&[("content-length", "3")], StatusCode::NO_CONTENT, Some(&[])),
            (
                &[("content-length", "3")],
                StatusCode::NOT_MODIFIED,
                Some(&["content-length: 3"]),
            ),
            (&[("transfer-encoding", "gzip")], StatusCode::OK, None),
            (&[("transfer-encoding", "gzip, chunked")], StatusCode::OK, None),
            (
                &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
                StatusCode::OK,
                None,
            ),
        ];
        for (given, status, expected) in cases {
            let mut headers = map(given);
            assert_eq!(
                response(&mut headers, status, false),
                expected.is_some(),
                "{given:?}"
            );
            if let Some(expected) = expected {
                assert_eq!(lines(&headers), expected, "{given:?}");
            }
        }
    }

    #[test]
    fn an_answer_keeps_its_cookies_and_challenge_and_loses_its_hops() {
        let mut headers = map(&[
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("www-authenticate", "Basic"),
            ("connection", "X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "t"),
            ("proxy-authenticate", "Basic"),
            ("x-broker-error", "forged"),
            ("location", "https://other.test/"),
        ]);
        assert!(response(&mut headers, StatusCode::FOUND, true));
        assert_eq!(
            lines(&headers),
            [
                "location: https://other.test/",
                "set-cookie: a=1",
                "set-cookie: b=2",
                "www-authenticate: Basic"
            ]
        );
    }
}
