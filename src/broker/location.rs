//! The `rewriteLocation` option (pure): a redirect within the same host leads back to the path form.

use crate::broker::host::parse_authority;
use crate::broker::route::{Scheme, Target};
use http::header::{HeaderMap, HeaderValue, LOCATION};

/// `prefix` is the base URL's path for this target, such as `/__broker/api.test`.
pub fn rewrite(headers: &mut HeaderMap, target: &Target, prefix: &str) {
    let Some(text) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) else {
        return;
    };
    if let Some(path) = same_host_path(text, target)
        && let Ok(value) = HeaderValue::try_from(format!("{prefix}{path}"))
    {
        headers.insert(LOCATION, value);
    }
}

/// The path of a Location that stays on the target's host; relative paths without a leading slash need no help.
fn same_host_path<'a>(text: &'a str, target: &Target) -> Option<&'a str> {
    if text.starts_with('/') && !text.starts_with("//") {
        return Some(text);
    }
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("//"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = parse_authority(authority).ok()?;
    let same = target.scheme == Scheme::Https && host == target.host && port.unwrap_or(443) == target.port;
    same.then_some(if path.is_empty() { "/" } else { path })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::broker::host::Host;

    #[test]
    fn only_a_redirect_within_the_host_is_rewritten() {
        let target = Target {
            scheme: Scheme::Https,
            host: Host::Name("api.test".into()),
            port: 443,
            path: http::uri::PathAndQuery::from_static("/"),
            rule: None,
            path_form: true,
        };
        for (from, to) in [
            ("/login?x", "/__broker/api.test/login?x"),
            ("https://api.test/y", "/__broker/api.test/y"),
            ("https://API.test:443", "/__broker/api.test/"),
            ("//api.test/y", "/__broker/api.test/y"),
            ("https://other.test/y", "https://other.test/y"),
            ("https://api.test:8443/y", "https://api.test:8443/y"),
            ("http://api.test/y", "http://api.test/y"),
            ("next", "next"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, HeaderValue::from_static(from));
            rewrite(&mut headers, &target, "/__broker/api.test");
            assert_eq!(headers[LOCATION], to);
        }
    }
}
