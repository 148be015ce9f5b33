//! Where a request may go (pure): the head of a request and the policy give a target or a refusal, before any name
//! is looked up. Addresses are left to `resolve`, headers to `inject`.

use crate::broker::host::{Host, HostError, parse_authority};
use crate::broker::policy::{Policy, Rule};
use crate::broker::refusal::{Reason, Refusal};
use crate::broker::rules::{HostTable, Lookup};
use crate::broker::token::Token;
use http::header::{self, HeaderMap};
use http::uri::PathAndQuery;
use http::{Method, Version, request::Parts};
use std::net::SocketAddr;
use std::sync::Arc;

/// What one listener adds to the rules: the broker's `allow` for its own, `listen`'s for another.
pub struct Scope {
    pub allow: HostTable<()>,
    pub token: Option<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    Http,
    Https,
}

#[derive(Clone)]
pub struct Target {
    pub scheme: Scheme,
    pub host: Host,
    pub port: u16,
    /// Path and query, byte for byte as the client wrote them.
    pub path: PathAndQuery,
    pub rule: Option<Arc<Rule>>,
    /// It came as `/__broker/<host>/...`.
    pub path_form: bool,
}

impl Target {
    /// The value of `Host`, part of the pool key: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        match (self.scheme, self.port) {
            (Scheme::Http, 80) | (Scheme::Https, 443) => self.host.to_string(),
            _ => format!("{}:{}", self.host, self.port),
        }
    }
}

pub enum Route {
    Forward(Target),
    /// A CONNECT tunnel to host and port.
    Tunnel(Target),
}

pub const PATH_PREFIX: &str = "/__broker";

/// Decides. `local` is the listener's end of the connection: its own names are taken from it.
pub fn route(policy: &Policy, scope: &Scope, local: SocketAddr, parts: &Parts) -> Result<Route, Refusal> {
    let stated = stated_host(parts)?;
    if parts.method == Method::CONNECT {
        let authority = parts.uri.authority().ok_or(Reason::ConnectForm)?;
        let (host, port) = parse_target(authority.as_str(), stated)?;
        let port = port.ok_or(Reason::ConnectForm)?;
        check_proxy_token(scope, &parts.headers)?;
        let rule = find(policy, scope, &host, port)?;
        return Ok(Route::Tunnel(Target {
            scheme: Scheme::Https,
            host,
            port,
            path: PathAndQuery::from_static("/"),
            rule,
            path_form: false,
        }));
    }
    match parts.uri.scheme_str() {
        None => {
            let stated = stated.map(parse_authority).transpose().map_err(bad_host)?;
            let stated = stated.map(|(host, port)| (host, port.unwrap_or(80)));
            own_request(policy, scope, local, parts, stated)
        }
        Some(scheme) => {
            let authority = parts.uri.authority().ok_or(Reason::BadTarget)?;
            let (host, port) = parse_target(authority.as_str(), stated)?;
            if scheme == "https" {
                return Err(Refusal::about(Reason::HttpsTarget, &host));
            }
            let port = port.unwrap_or(80);
            // curl sends even the base URL through the proxy when loopback is not in NO_PROXY.
            if is_own(local, &host, port) {
                return own_request(policy, scope, local, parts, Some((host, port)));
            }
            check_proxy_token(scope, &parts.headers)?;
            forward(
                policy,
                scope,
                parts,
                Target {
                    scheme: Scheme::Http,
                    host,
                    port,
                    path: absolute_path(parts)?,
                    rule: None,
                    path_form: false,
                },
            )
        }
    }
}

fn bad_host(_: HostError) -> Refusal {
    Reason::BadHost.into()
}

/// The target's host. `Host` chooses nothing beside it, but must be well-formed; it mostly says the same.
fn parse_target(authority: &str, stated: Option<&str>) -> Result<(Host, Option<u16>), Refusal> {
    if let Some(stated) = stated.filter(|stated| *stated != authority) {
        parse_authority(stated).map_err(bad_host)?;
    }
    parse_authority(authority).map_err(bad_host)
}

/// `http://api.test` and `http://api.test?x` have no slash of their own.
fn absolute_path(parts: &Parts) -> Result<PathAndQuery, Refusal> {
    match parts.uri.path_and_query() {
        Some(path) if path.as_str().len() > 1 && path.as_str().starts_with('/') => Ok(path.clone()),
        Some(path) if path.as_str().starts_with('?') => with_slash(path.as_str()),
        _ => Ok(PathAndQuery::from_static("/")),
    }
}

fn with_slash(query: &str) -> Result<PathAndQuery, Refusal> {
    PathAndQuery::try_from(format!("/{query}")).map_err(|_| Reason::BadTarget.into())
}

/// The one `Host` line (the edge has counted).
fn stated_host(parts: &Parts) -> Result<Option<&str>, Refusal> {
    let mut lines = parts.headers.get_all(header::HOST).iter();
    let (first, second) = (lines.next(), lines.next());
    if second.is_some()
        || (first.is_none() && parts.version == Version::HTTP_11 && parts.method != Method::CONNECT)
    {
        return Err(Reason::BadRequest.into());
    }
    Ok(first
        .map(|value| value.to_str())
        .transpose()
        .map_err(|_| Reason::BadHost)?)
}

/// A request to the listener itself. A page in the user's browser can make such requests, so the Host must be ours (DNS
/// rebinding) and the page must not be another site's.
fn own_request(
    policy: &Policy,
    scope: &Scope,
    local: SocketAddr,
    parts: &Parts,
    stated_host: Option<(Host, u16)>,
) -> Result<Route, Refusal> {
    let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
    let own = stated_host.is_some_and(|(host, port)| is_own(local, &host, port));
    if !own {
        return Err(Reason::OwnHost.into());
    }
    check_web_page(local, &parts.headers)?;
    let rest = path
        .strip_prefix(PATH_PREFIX)
        .and_then(|rest| rest.strip_prefix('/'))
        .ok_or(Reason::NotFound)?;
    let rest = match &scope.token {
        None => rest,
        Some(token) => {
            let (segment, rest) = rest.split_once('/').unwrap_or((rest, ""));
            if !token.is(segment) {
                return Err(Reason::TokenRequired.into());
            }
            rest
        }
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = parse_authority(authority).map_err(bad_host)?;
    let path = if path.starts_with('/') {
        PathAndQuery::try_from(path).map_err(|_| Reason::BadTarget)?
    } else {
        with_slash(path)?
    };
    let target = Target {
        scheme: Scheme::Https,
        host,
        port: port.unwrap_or(443),
        path,
        rule: None,
        path_form: true,
    };
    forward(policy, scope, parts, target)
}

fn forward(policy: &Policy, scope: &Scope, parts: &Parts, target: Target) -> Result<Route, Refusal> {
    let rule = find(policy, scope, &target.host, target.port)?;
    if rule.is_some() && parts.method == Method::TRACE {
        return Err(Refusal::about(Reason::MethodRefused, &target.host));
    }
    Ok(Route::Forward(Target { rule, ..target }))
}

/// A rule, or none for a host that is only allowed.
fn find(policy: &Policy, scope: &Scope, host: &Host, port: u16) -> Result<Option<Arc<Rule>>, Refusal> {
    let mut known = false;
    match policy.rules.find(host, port) {
        Lookup::Found(rule) => return Ok(Some(rule.clone())),
        Lookup::OtherPort => known = true,
        Lookup::Unknown => {}
    }
    match scope.allow.find(host, port) {
        Lookup::Found(()) => return Ok(None),
        Lookup::OtherPort => known = true,
        Lookup::Unknown => {}
    }
    Err(Refusal::about(
        if known {
            Reason::PortRefused
        } else {
            Reason::HostRefused
        },
        host,
    ))
}

fn check_proxy_token(scope: &Scope, headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(token) = &scope.token else { return Ok(()) };
    let mut values = headers.get_all(header::PROXY_AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (Some(value), None) if token.is_basic(value.as_bytes()) => Ok(()),
        _ => Err(Reason::AuthRequired.into()),
    }
}

/// The listener's own names: its address, any loopback address, `localhost`; always with its port. A rebound DNS name
/// is none of them.
fn is_own(local: SocketAddr, host: &Host, port: u16) -> bool {
    let named = match host {
        Host::Name(name) => name == "localhost",
        Host::Ip(ip) => ip.is_loopback() || *ip == local.ip().to_canonical(),
    };
    named && port == local.port()
}

fn check_web_page(local: SocketAddr, headers: &HeaderMap) -> Result<(), Refusal> {
    let own_origin = |value: &http::HeaderValue| {
        let authority = value.to_str().ok().and_then(|text| text.strip_prefix("http://"));
        authority
            .and_then(|a| parse_authority(a).ok())
            .is_some_and(|(host, port)| is_own(local, &host, port.unwrap_or(80)))
    };
    let other_site = |value: &http::HeaderValue| match value.as_bytes() {
        b"same-origin" => false,
        b"none" => headers
            .get("sec-fetch-mode")
            .is_some_and(|mode| mode.as_bytes() == b"navigate"),
        _ => true,
    };
    let foreign = headers
        .get_all(header::ORIGIN)
        .iter()
        .any(|value| !own_origin(value));
    let cross = headers.get_all("sec-fetch-site").iter().any(other_site);
    if foreign || cross {
        Err(Reason::WebPage.into())
    } else {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::broker::policy::RuleConfig;
    use crate::broker::value::HeaderSource;
    use proptest::prelude::*;

    fn policy() -> Policy {
        let rule = |host: &str| RuleConfig {
            host: host.into(),
            headers: vec![(
                "authorization".into(),
                HeaderSource::fixed("Bearer s3cret").unwrap(),
            )],
            ports: vec![],
            cleartext: false,
            scrub: false,
        };
        Policy::new(
            vec![rule("api.test"), rule("*.svc.test"), rule("p.test:8443")],
            &[],
            &[],
        )
        .unwrap()
    }

    fn ask_with(
        token: Option<Token>,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<(Scheme, String, String, bool), (u16, &'static str)> {
        let policy = policy();
        let scope = Scope {
            allow: policy
                .allow_table(&["here.test".into(), "free.test".into()])
                .unwrap(),
            token,
        };
        let mut builder = http::Request::builder().method(method).uri(target);
        if !headers.iter().any(|(name, _)| *name == "host") {
            builder = builder.header("host", "127.0.0.1:4000");
        }
        for (name, value) in headers.iter().filter(|(_, value)| *value != "<none>") {
            builder = builder.header(*name, *value);
        }
        let (parts, ()) = builder.body(()).map_err(|_| (400, "not a request"))?.into_parts();
        match route(&policy, &scope, "127.0.0.1:4000".parse().unwrap(), &parts) {
            Ok(Route::Forward(t)) => Ok((t.scheme, t.authority(), t.path.to_string(), t.rule.is_some())),
            Ok(Route::Tunnel(t)) => Ok((
                t.scheme,
                format!("tunnel {}:{}", t.host, t.port),
                t.path.to_string(),
                t.rule.is_some(),
            )),
            Err(refusal) => Err((refusal.reason.status(), refusal.reason.code())),
        }
    }

    fn ask(
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<(Scheme, String, String, bool), (u16, &'static str)> {
        ask_with(None, method, target, headers)
    }

    #[test]
    fn the_target_alone_chooses_the_rule() {
        let http = |authority: &str, path: &str, rule| {
            Ok((Scheme::Http, authority.to_owned(), path.to_owned(), rule))
        };
        assert_eq!(
            ask("GET", "http://api.test/", &[("host", "evil.test")]),
            http("api.test", "/", true)
        );
        assert_eq!(
            ask("GET", "http://free.test/", &[("host", "api.test")]),
            http("free.test", "/", false)
        );
        assert_eq!(
            ask("GET", "http://here.test/x?y=%2F", &[]),
            http("here.test", "/x?y=%2F", false)
        );
        assert_eq!(ask("GET", "http://API.Test./", &[]), http("api.test", "/", true));
        assert_eq!(
            ask("GET", "http://p.test:8443/", &[]),
            http("p.test:8443", "/", true)
        );
        assert_eq!(
            ask("CONNECT", "free.test:443", &[("host", "api.test")]),
            Ok((Scheme::Https, "tunnel free.test:443".into(), "/".into(), false))
        );
        for (method, target, status) in [
            ("GET", "http://evil.test/", 403),
            ("CONNECT", "evil.test:443", 403),
            ("GET", "http://p.test/", 403),
            ("GET", "http://api.test:8443/", 403),
            ("CONNECT", "api.test:22", 403),
            ("CONNECT", "api.test", 400),
            ("CONNECT", "api.test:", 400),
            ("GET", "https://api.test/x", 400),
            ("GET", "http://0x7f.1/", 400),
            ("GET", "http://api.test:080/", 400),
            ("GET", "http://api.test:99999/", 400),
            ("TRACE", "http://api.test/", 405),
            ("GET", "http://a..test/", 400),
            ("GET", "http://127.0.0.1/", 403),
            ("GET", "http://svc.test/", 403),
        ] {
            assert_eq!(
                ask(method, target, &[]).map_err(|(status, _)| status),
                Err(status),
                "{method} {target}"
            );
        }
        assert!(ask("TRACE", "http://free.test/", &[]).is_ok());
    }

    #[test]
    fn the_path_form_goes_to_https_and_keeps_its_bytes() {
        let https =
            |authority: &str, path: &str| Ok((Scheme::Https, authority.to_owned(), path.to_owned(), true));
        assert_eq!(
            ask("GET", "/__broker/api.test/v1/x?q=%2F", &[]),
            https("api.test", "/v1/x?q=%2F")
        );
        assert_eq!(ask("GET", "/__broker/api.test", &[]), https("api.test", "/"));
        assert_eq!(ask("GET", "/__broker/api.test?x", &[]), https("api.test", "/?x"));
        assert_eq!(
            ask("GET", "/__broker/p.test:8443/x", &[]),
            https("p.test:8443", "/x")
        );
        assert_eq!(
            ask("GET", "http://127.0.0.1:4000/__broker/api.test/x", &[]),
            https("api.test", "/x")
        );
        assert_eq!(
            ask(
                "GET",
                "http://localhost:4000/__broker/api.test/x",
                &[("host", "localhost:4000")]
            ),
            https("api.test", "/x")
        );
        for (target, status) in [
            ("/__broker/", 400),
            ("/__broker//x", 400),
            ("/__broker", 404),
            ("/", 404),
            ("/__brokerx/api.test/", 404),
            ("/__broker/api.test%2f@evil.test/", 400),
            ("/__broker/api.test%40evil.test/", 400),
            ("/__broker/u:p@api.test/", 400),
            ("/__broker/api.test%3a8443/", 400),
            ("/__broker/api.test:8443/x", 403),
            ("/__broker/evil.test/x", 403),
            ("/__broker/a%70i.test/x", 400),
            ("/__broker/127.1/x", 400),
            ("*", 404),
        ] {
            assert_eq!(
                ask("GET", target, &[]).map_err(|(status, _)| status),
                Err(status),
                "{target}"
            );
        }
    }

    #[test]
    fn a_web_page_cannot_use_the_path_form() {
        let target = "/__broker/api.test/x";
        for headers in [
            &[("host", "rebind.evil.test:4000")][..],
            &[("host", "127.0.0.1")],
            &[("host", "127.0.0.1:4001")],
            &[("host", "<none>")],
            &[("origin", "https://evil.test")],
            &[("origin", "null")],
            &[("origin", "http://127.0.0.1:9")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
            &[
                ("origin", "http://127.0.0.1:4000"),
                ("sec-fetch-site", "cross-site"),
            ],
        ] {
            assert!(ask("GET", target, headers).is_err(), "{headers:?}");
            assert!(ask("OPTIONS", target, headers).is_err(), "{headers:?}");
        }
        for headers in [
            &[("host", "localhost:4000")][..],
            &[("host", "[::1]:4000")],
            &[("origin", "http://127.0.0.1:4000")],
            &[("sec-fetch-site", "same-origin")],
            &[("sec-fetch-mode", "cors")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(ask("GET", target, headers).is_ok(), "{headers:?}");
        }
    }

    #[test]
    fn with_a_token_nothing_is_answered_without_it() {
        let ask = |target: &str, headers: &[(&str, &str)], method: &str| {
            ask_with(Some(Token::from_text("abc123".into())), method, target, headers).map_err(|e| e.0)
        };
        let basic = ("proxy-authorization", "Basic Y3JvZnQ6YWJjMTIz");
        assert_eq!(ask("http://api.test/", &[], "GET"), Err(407));
        assert_eq!(ask("http://evil.test/", &[], "GET"), Err(407));
        assert_eq!(ask("http://evil.test/", &[basic], "GET"), Err(403));
        assert_eq!(
            ask(
                "api.test:443",
                &[("proxy-authorization", "Basic Y3JvZnQ6YWJjMTI0")],
                "CONNECT"
            ),
            Err(407)
        );
        assert_eq!(ask("api.test:443", &[basic, basic], "CONNECT"), Err(407));
        assert!(ask("api.test:443", &[basic], "CONNECT").is_ok());
        assert_eq!(ask("/__broker/api.test/x", &[], "GET"), Err(403));
        assert_eq!(ask("/__broker/abc124/api.test/x", &[], "GET"), Err(403));
        assert_eq!(
            ask("/__broker/abc123/api.test/x", &[], "GET").map(|t| t.2),
            Ok("/x".into())
        );
    }

    #[test]
    fn a_rule_of_two_spellings_or_a_bad_one_is_refused_with_its_place() {
        let rule = |host: &str, header: &str| RuleConfig {
            host: host.into(),
            headers: vec![(header.into(), HeaderSource::fixed("v").unwrap())],
            ports: vec![],
            cleartext: false,
            scrub: false,
        };
        for (rules, place) in [
            (
                vec![rule("a.test", "x"), rule("-b.test", "x")],
                "rules[1] \"-b.test\"",
            ),
            (
                vec![rule("a.test", "x"), rule("A.test.", "x")],
                "rules[1] \"A.test.\"",
            ),
            (vec![rule("a.test", "Host")], "rules[0] \"a.test\""),
        ] {
            let error = Policy::new(rules, &[], &[]).err().unwrap();
            assert!(error.message.starts_with(place), "{}", error.message);
            assert_eq!(error.code, crate::error::ErrorCode::InvalidArgument);
        }
    }

    proptest! {
        #[test]
        fn a_credential_goes_only_to_a_host_under_a_rule(target in "(http://|/__broker/)?[a-z0-9.:@%\\[\\]/?-]{0,20}(api|svc|evil)?\\.test[a-z0-9.:@%/?-]{0,12}") {
            if let Ok((_, authority, _, true)) = ask("GET", &target, &[]) {
                let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
                prop_assert!(host == "api.test" || host == "p.test" || host.ends_with(".svc.test"), "{} -> {}", target, authority);
            }
        }
    }
}
