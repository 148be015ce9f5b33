//! The `upstreamProxy` option (pure): `http://[user:password@]host[:port]`.

use crate::broker::base64;
use crate::broker::host::parse_configured;
use crate::error::{Error, ErrorCode, Result};
use http::HeaderValue;

pub struct UpstreamProxy {
    pub host: String,
    pub port: u16,
    pub authorization: Option<HeaderValue>,
}

impl UpstreamProxy {
    /// The text may hold a password, so no error repeats it.
    pub fn parse(url: &str) -> Result<Self> {
        let invalid = || {
            Error::new(
                ErrorCode::InvalidArgument,
                "upstreamProxy is not of the form http://[user:password@]host[:port]",
            )
        };
        let rest = url.strip_prefix("http://").ok_or_else(invalid)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credential, authority) = match rest.rsplit_once('@') {
            Some((credential, authority)) => (Some(credential), authority),
            None => (None, rest),
        };
        let (host, port) = parse_configured(authority).map_err(|_| invalid())?;
        let authorization = match credential {
            None => None,
            Some(text) => Some(basic(text).ok_or_else(invalid)?),
        };
        let host = host.to_string().trim_matches(['[', ']']).to_owned();
        Ok(Self {
            host,
            port: port.unwrap_or(80),
            authorization,
        })
    }
}

fn basic(credential: &str) -> Option<HeaderValue> {
    let plain = percent_decode(credential)?;
    let mut value = b"Basic ".to_vec();
    value.extend(base64::encode(&plain));
    let mut value = HeaderValue::from_bytes(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let hex = [bytes.next()?, bytes.next()?];
        out.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
    }
    Some(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_url_is_read_and_never_repeated() {
        let proxy = UpstreamProxy::parse("http://us%40er:pa%3Ass@proxy.test:3128/").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("proxy.test", 3128));
        assert_eq!(proxy.authorization.unwrap(), "Basic dXNAZXI6cGE6c3M=");
        assert_eq!(UpstreamProxy::parse("http://[::1]:8080").unwrap().host, "::1");
        for bad in [
            "https://p.test",
            "socks5://p.test",
            "p.test:3128",
            "http://a:s3cret@",
            "http://a:%zz@p.test",
            "http://p.test/x",
        ] {
            let error = UpstreamProxy::parse(bad).err().unwrap();
            assert!(!error.message.contains("s3cret"), "{bad}");
        }
    }
}
