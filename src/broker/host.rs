//! What a host is (pure): one canonical form for names and addresses, from rules and from the wire. Who may be
//! reached is left to `rules`, what an address is to `address`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A canonical host: lower-case ASCII without a trailing dot, or an address (IPv4-mapped IPv6 unmapped).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    Name(String),
    Ip(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

/// Why a text is no host. The text itself is for the caller to quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostError {
    Empty,
    BadCharacter,
    EmptyLabel,
    LabelTooLong,
    NameTooLong,
    Hyphen,
    /// `127.1`, `0x7f.1`, `2130706433`, `00.0.0.0`: getaddrinfo would connect to them, Rust's parser calls them names.
    AddressSpelling,
    BadIpv6,
    BadPort,
    Idna,
}

impl HostError {
    pub fn rule(self) -> &'static str {
        match self {
            HostError::Empty => "the host is empty",
            HostError::BadCharacter => "a host holds only letters, digits, '-', '_' and '.'",
            HostError::EmptyLabel => "a host has no empty label",
            HostError::LabelTooLong => "a label is at most 63 characters",
            HostError::NameTooLong => "a host is at most 253 characters",
            HostError::Hyphen => "a label neither begins nor ends with '-'",
            HostError::AddressSpelling => "an address is written as four decimal numbers or as [IPv6]",
            HostError::BadIpv6 => "an IPv6 address is written in brackets, without a zone",
            HostError::BadPort => "a port is 1 to 65535, without sign or leading zero",
            HostError::Idna => "the name has no valid ASCII form (IDNA)",
        }
    }
}

const MAX_LABEL_BYTES: usize = 63;
const MAX_NAME_BYTES: usize = 253;

/// A host as the wire may carry it. Non-ASCII and `%xx` are refused, not decoded: two readers of one text must
/// never see two hosts.
pub fn parse_host(text: &str) -> Result<Host, HostError> {
    if let Some(rest) = text.strip_prefix('[') {
        let inner = rest.strip_suffix(']').ok_or(HostError::BadIpv6)?;
        let ip: Ipv6Addr = inner.parse().map_err(|_| HostError::BadIpv6)?;
        return Ok(Host::Ip(IpAddr::V6(ip).to_canonical()));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return Err(if text.is_empty() {
            HostError::Empty
        } else {
            HostError::EmptyLabel
        });
    }
    check_name(name)?;
    if ends_in_number(name) {
        let ip: Ipv4Addr = name.parse().map_err(|_| HostError::AddressSpelling)?;
        return Ok(Host::Ip(IpAddr::V4(ip)));
    }
    Ok(Host::Name(name.to_ascii_lowercase()))
}

fn check_name(name: &str) -> Result<(), HostError> {
    if !name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    {
        return Err(HostError::BadCharacter);
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(HostError::NameTooLong);
    }
    for label in name.split('.') {
        if label.is_empty() {
            return Err(HostError::EmptyLabel);
        }
        if label.len() > MAX_LABEL_BYTES {
            return Err(HostError::LabelTooLong);
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(HostError::Hyphen);
        }
    }
    Ok(())
}

/// The WHATWG URL rule: a last label of digits, or `0x` and hex digits, makes the whole an IPv4 address. There is no
/// numeric top-level domain, so no name is lost.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    if last.bytes().all(|b| b.is_ascii_digit()) {
        return true;
    }
    match last.strip_prefix("0x").or_else(|| last.strip_prefix("0X")) {
        Some(hex) => hex.bytes().all(|b| b.is_ascii_hexdigit()),
        None => false,
    }
}

/// `host`, `host:` or `host:port`. No userinfo: `@` is a bad character of the host. An empty port is none.
pub fn parse_authority(text: &str) -> Result<(Host, Option<u16>), HostError> {
    let (host, port) = split_port(text)?;
    let port = match port {
        None | Some("") => None,
        Some(digits) => Some(parse_port(digits)?),
    };
    Ok((parse_host(host)?, port))
}

fn split_port(text: &str) -> Result<(&str, Option<&str>), HostError> {
    if text.starts_with('[') {
        let end = text.find(']').ok_or(HostError::BadIpv6)? + 1;
        let (host, rest) = text.split_at(end);
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, Some(port))),
            None if rest.is_empty() => Ok((host, None)),
            None => Err(HostError::BadIpv6),
        };
    }
    match text.split_once(':') {
        None => Ok((text, None)),
        Some((_, rest)) if rest.contains(':') => Err(HostError::BadIpv6),
        Some((host, port)) => Ok((host, Some(port))),
    }
}

pub fn parse_port(digits: &str) -> Result<u16, HostError> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    match digits.parse::<u16>() {
        Ok(port) if plain => Ok(port),
        _ => Err(HostError::BadPort),
    }
}

/// A host as configuration writes it: also Unicode (to its ASCII form) and IPv6 without brackets.
pub fn parse_configured(text: &str) -> Result<(Host, Option<u16>), HostError> {
    if let Ok(ip) = text.parse::<Ipv6Addr>() {
        return Ok((Host::Ip(IpAddr::V6(ip).to_canonical()), None));
    }
    let (host, port) = split_port(text)?;
    let port = port.map(parse_port).transpose()?;
    if host.is_ascii() {
        return Ok((parse_host(host)?, port));
    }
    let ascii = idna::domain_to_ascii(host).map_err(|_| HostError::Idna)?;
    Ok((parse_host(&ascii)?, port))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_compared_in_lower_case_without_its_trailing_dot() {
        for text in ["api.test", "API.Test", "api.test.", "aPi.TEST."] {
            assert_eq!(parse_host(text), Ok(Host::Name("api.test".into())), "{text}");
        }
        assert_eq!(parse_host("a_b.test").unwrap().to_string(), "a_b.test");
    }

    #[test]
    fn what_is_no_host_is_refused_and_never_decoded() {
        for text in [
            "",
            ".",
            "api.test..",
            "a..test",
            ".api.test",
            "a%70i.test",
            "api.test%00.evil.test",
            "api.test\\",
            "api.test%5c@evil.test",
            "u:pw@api.test",
            "a b",
            "a\0b",
            "tést.example",
            "-a.test",
            "a-.test",
            "*.test",
            "api.test/x",
            "a,b",
        ] {
            assert!(parse_host(text).is_err(), "{text:?}");
        }
        assert_eq!(parse_host(&"a".repeat(64)), Err(HostError::LabelTooLong));
        assert!(parse_host(&"a".repeat(63)).is_ok());
        assert_eq!(
            parse_host(&["a".repeat(60).as_str(); 5].join(".")),
            Err(HostError::NameTooLong)
        );
    }

    #[test]
    fn an_address_in_an_odd_spelling_is_no_name() {
        for text in [
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "017700000001",
            "2130706433",
            "0",
            "0x0",
            "00.0.0.0",
            "127.000.000.001",
            "0x",
            "1.2.3.4.5",
            "a.0x1F",
            "foo.1",
        ] {
            assert_eq!(parse_host(text), Err(HostError::AddressSpelling), "{text}");
        }
        for text in ["127.0.0.1", "127.0.0.1."] {
            assert_eq!(
                parse_host(text),
                Ok(Host::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST))),
                "{text}"
            );
        }
        assert_eq!(
            parse_host("10.0.0.1.svc.test"),
            Ok(Host::Name("10.0.0.1.svc.test".into()))
        );
    }

    #[test]
    fn ipv6_is_known_by_address_and_carries_no_zone() {
        for text in ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]"] {
            assert_eq!(
                parse_host(text),
                Ok(Host::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST))),
                "{text}"
            );
        }
        for text in [
            "[fe80::1%25eth0]",
            "[::1%25.api.test]",
            "[::ffff:1.2.3.4%25x.svc.test]",
            "[::1",
            "::1",
            "[]",
            "[::1]x",
        ] {
            assert!(parse_host(text).is_err(), "{text}");
        }
        assert_eq!(parse_host("[::1]").unwrap().to_string(), "[::1]");
    }

    #[test]
    fn a_port_is_plain_decimal_or_refused() {
        for port in ["99999", "65536", "-1", "0", "080", "8a", "+80", " 80"] {
            assert!(parse_authority(&format!("api.test:{port}")).is_err(), "{port}");
        }
        assert_eq!(parse_authority("api.test:").unwrap().1, None);
        assert_eq!(parse_authority("api.test:8443").unwrap().1, Some(8443));
        assert_eq!(parse_authority("[::1]:65535").unwrap().1, Some(65535));
        assert!(parse_authority("a:1:2").is_err());
    }

    #[test]
    fn configuration_may_write_unicode() {
        assert_eq!(
            parse_configured("Tést.example").unwrap().0,
            Host::Name("xn--tst-bma.example".into())
        );
        assert_eq!(parse_configured("::1").unwrap().0, parse_host("[::1]").unwrap());
        assert_eq!(
            parse_configured("api.test:8443").unwrap(),
            (Host::Name("api.test".into()), Some(8443))
        );
        for text in [
            "https://api.test",
            "api.test/x",
            "api.test:",
            "api.test:70000",
            "a@b",
            "é\u{0}.test",
        ] {
            assert!(parse_configured(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_parses_to_a_canonical_host_or_is_refused(text in "[a-zA-Z0-9.%:@\\[\\]_é\\\\-]{0,40}") {
            if let Ok(host) = parse_host(&text) {
                let shown = host.to_string();
                prop_assert_eq!(parse_host(&shown), Ok(host.clone()));
                prop_assert_eq!(shown.to_ascii_lowercase(), shown);
                if let Host::Name(name) = host {
                    // What the resolver would read as an address never counts as a name.
                    prop_assert!(name.parse::<IpAddr>().is_err());
                    prop_assert!(!ends_in_number(&name));
                }
            }
        }
    }
}
