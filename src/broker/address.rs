//! What an address is (pure): public, or of a kind that a brokered name must not lead to. The table follows the IANA
//! special-purpose registries; the standard library mixes mapped and compatible IPv6 forms and has no stable answer.

use crate::broker::host::{Host, HostError, parse_configured};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Public,
    Loopback,
    /// Private, link-local, shared, multicast, documentation, ...: the kind, for the operator.
    Special(&'static str),
    /// Gives credentials of the machine to whoever asks; reachable only when that exact address is listed.
    Metadata,
}

type V4Row = (u32, u8, &'static str);

const fn v4(a: u8, b: u8, c: u8, d: u8) -> u32 {
    u32::from_be_bytes([a, b, c, d])
}

const V4: &[V4Row] = &[
    (v4(0, 0, 0, 0), 8, "unspecified"),
    (v4(10, 0, 0, 0), 8, "private"),
    (v4(100, 64, 0, 0), 10, "shared (CGNAT)"),
    (v4(169, 254, 0, 0), 16, "link-local"),
    (v4(172, 16, 0, 0), 12, "private"),
    (v4(192, 0, 0, 0), 24, "protocol assignments"),
    (v4(192, 0, 2, 0), 24, "documentation"),
    (v4(192, 31, 196, 0), 24, "AS112"),
    (v4(192, 52, 193, 0), 24, "AMT"),
    (v4(192, 88, 99, 0), 24, "6to4 relay"),
    (v4(192, 168, 0, 0), 16, "private"),
    (v4(192, 175, 48, 0), 24, "AS112"),
    (v4(198, 18, 0, 0), 15, "benchmark"),
    (v4(198, 51, 100, 0), 24, "documentation"),
    (v4(203, 0, 113, 0), 24, "documentation"),
    (v4(224, 0, 0, 0), 4, "multicast"),
    (v4(240, 0, 0, 0), 4, "reserved"),
];

type V6Row = ([u16; 8], u8, &'static str);

const V6: &[V6Row] = &[
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified"),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "local translation (NAT64)"),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discard"),
    ([0x100, 0, 0, 1, 0, 0, 0, 0], 64, "dummy"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48, "AS112"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, "segment routing"),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "unique-local"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local"),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "site-local"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
];

/// Metadata and platform services of the large clouds, inside and outside link-local.
const METADATA_V4: &[u32] = &[
    v4(169, 254, 169, 254),
    v4(169, 254, 170, 2),
    v4(168, 63, 129, 16),
    v4(100, 100, 100, 200),
    v4(192, 0, 0, 192),
];

const METADATA_V6: &[V6Row] = &[
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32, ""),
    ([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, ""),
    ([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128, ""),
    ([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128, ""),
    ([0xfd00, 0, 0, 0, 0, 0, 0, 0x42], 128, ""),
    ([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1], 128, ""),
    ([0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200], 128, ""),
    ([0xfd00, 0x100, 0, 0, 0, 0, 0, 0x200], 128, ""),
];

pub fn classify(ip: IpAddr) -> Class {
    match ip.to_canonical() {
        IpAddr::V4(ip) => classify_v4(ip),
        IpAddr::V6(ip) => classify_v6(ip),
    }
}

fn classify_v4(ip: Ipv4Addr) -> Class {
    let bits = u32::from(ip);
    if METADATA_V4.contains(&bits) {
        return Class::Metadata;
    }
    if ip.is_loopback() {
        return Class::Loopback;
    }
    match V4.iter().find(|(net, len, _)| (bits ^ net) >> (32 - len) == 0) {
        Some((_, _, kind)) => Class::Special(kind),
        None => Class::Public,
    }
}

fn classify_v6(ip: Ipv6Addr) -> Class {
    if ip == Ipv6Addr::LOCALHOST {
        return Class::Loopback;
    }
    if METADATA_V6.iter().any(|row| within(ip, row)) {
        return Class::Metadata;
    }
    if let Some((_, _, kind)) = V6.iter().find(|row| within(ip, row)) {
        return Class::Special(kind);
    }
    match embedded_v4(ip).map(classify_v4) {
        None | Some(Class::Public) => Class::Public,
        Some(Class::Loopback) => Class::Special("loopback in IPv6"),
        Some(class) => class,
    }
}

fn within(ip: Ipv6Addr, (net, len, _): &V6Row) -> bool {
    let net = u128::from(Ipv6Addr::from(*net));
    (u128::from(ip) ^ net) >> (128 - u32::from(*len)) == 0
}

/// The IPv4 address a gateway or tunnel would deliver to: compatible, translated, NAT64, 6to4, ISATAP. (Mapped is
/// unmapped before; Teredo is refused whole with 2001::/23.)
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = ip.segments();
    let last = |hi: u16, lo: u16| Some(Ipv4Addr::from((u32::from(hi) << 16) | u32::from(lo)));
    match s {
        [0, 0, 0, 0, 0, 0, hi, lo] => last(hi, lo),
        [0, 0, 0, 0, 0xffff, 0, hi, lo] => last(hi, lo),
        [0x64, 0xff9b, 0, 0, 0, 0, hi, lo] => last(hi, lo),
        [0x2002, hi, lo, ..] => last(hi, lo),
        [_, _, _, _, 0 | 0x200, 0x5efe, hi, lo] => last(hi, lo),
        _ => None,
    }
}

/// What `allowPrivate` opens: names (whatever they resolve to, metadata excepted), networks, single addresses.
#[derive(Clone, Debug, Default)]
pub struct AllowPrivate {
    names: Vec<(String, bool)>,
    nets: Vec<IpNet>,
    exact: Vec<IpAddr>,
}

impl AllowPrivate {
    /// Each entry: `host`, `*.suffix`, an address, a CIDR.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, (usize, String)> {
        let mut out = Self::default();
        for (index, entry) in entries.iter().enumerate() {
            out.add(entry.as_ref()).map_err(|why| (index, why))?;
        }
        Ok(out)
    }

    fn add(&mut self, entry: &str) -> Result<(), String> {
        if let Ok(net) = entry.parse::<IpNet>() {
            if net.prefix_len() == 0 {
                return Err(
                    "a prefix of 0 bits would switch the address check off; name the networks".into(),
                );
            }
            match net.prefix_len() == net.max_prefix_len() {
                true => self.exact.push(net.addr().to_canonical()),
                false => self.nets.push(net.trunc()),
            }
            return Ok(());
        }
        let (text, suffix) = match entry.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (entry, false),
        };
        match parse_configured(text) {
            Ok((Host::Ip(ip), None)) if !suffix => self.exact.push(ip),
            Ok((Host::Name(name), None)) => self.names.push((name, suffix)),
            Ok(_) => return Err("an entry is a host, *.suffix, an address or a CIDR, without a port".into()),
            Err(why) => return Err(HostError::rule(why).into()),
        }
        Ok(())
    }

    pub fn permits(&self, host: &Host, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        if self.exact.contains(&ip) {
            return true;
        }
        if classify(ip) == Class::Metadata {
            return false;
        }
        self.nets.iter().any(|net| net.contains(&ip))
            || matches!(host, Host::Name(name) if self.names_match(name))
    }

    /// Whether the host itself is listed: a private name or a listed address.
    pub fn names(&self, host: &Host) -> bool {
        match host {
            Host::Name(name) => self.names_match(name),
            Host::Ip(ip) => self.exact.contains(ip) || self.nets.iter().any(|net| net.contains(ip)),
        }
    }

    fn names_match(&self, name: &str) -> bool {
        self.names.iter().any(|(entry, suffix)| match suffix {
            false => entry == name,
            true => name
                .strip_suffix(entry.as_str())
                .is_some_and(|head| head.len() > 1 && head.ends_with('.')),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn class(text: &str) -> Class {
        classify(text.parse().unwrap())
    }

    #[test]
    fn each_special_network_is_known_at_both_ends_and_its_neighbours_are_public() {
        for (first, last, below, above) in [
            ("0.0.0.0", "0.255.255.255", "", "1.0.0.0"),
            ("10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"),
            ("127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"),
            ("169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"),
            ("172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"),
            ("192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"),
            ("192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"),
            ("192.31.196.0", "192.31.196.255", "192.31.195.255", "192.31.197.0"),
            ("192.52.193.0", "192.52.193.255", "192.52.192.255", "192.52.194.0"),
            ("192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"),
            ("192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"),
            ("192.175.48.0", "192.175.48.255", "192.175.47.255", "192.175.49.0"),
            ("198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"),
            ("198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"),
            ("203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"),
            ("224.0.0.0", "255.255.255.255", "223.255.255.255", ""),
            ("::", "::1", "", ""),
            (
                "64:ff9b:1::",
                "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
                "",
                "64:ff9b:2::",
            ),
            ("100::", "100::ffff:ffff:ffff:ffff", "ff:ffff::", "100:0:0:2::"),
            ("100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff", "", "100:0:0:2::"),
            (
                "2001::",
                "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff",
                "2000:ffff::",
                "2001:200::",
            ),
            (
                "2001:db8::",
                "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
                "2001:db7::",
                "2001:db9::",
            ),
            (
                "2620:4f:8000::",
                "2620:4f:8000:ffff::",
                "2620:4f:7fff::",
                "2620:4f:8001::",
            ),
            ("3fff::", "3fff:fff:ffff::", "3ffe::", "3fff:1000::"),
            ("5f00::", "5f00:ffff::", "5eff::", "5f01::"),
            ("fc00::", "fdff:ffff::", "fbff::", "fe00::"),
            ("fe80::", "febf:ffff::", "fe7f::", ""),
            ("fec0::", "feff:ffff::", "", ""),
            ("ff00::", "ffff:ffff::", "", ""),
        ] {
            for inside in [first, last] {
                assert_ne!(class(inside), Class::Public, "{inside}");
            }
            for outside in [below, above].into_iter().filter(|text| !text.is_empty()) {
                assert_eq!(class(outside), Class::Public, "{outside}");
            }
        }
    }

    #[test]
    fn an_ipv4_address_inside_ipv6_counts_as_itself() {
        for text in [
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:a00:1::",
            "2001:0:a00:1::1",
            "2a00:1450::5efe:10.0.0.1",
            "2a00:1450::200:5efe:192.168.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
        ] {
            assert_ne!(class(text), Class::Public, "{text}");
        }
        for text in [
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::",
            "2a00:1450::5efe:8.8.8.8",
            "2606:4700::1111",
            "8.8.8.8",
        ] {
            assert_eq!(class(text), Class::Public, "{text}");
        }
    }

    #[test]
    fn metadata_opens_only_by_its_exact_address() {
        let host = Host::Name("m.test".into());
        let wide = AllowPrivate::parse(&[
            "169.254.0.0/16",
            "fd00::/8",
            "100.64.0.0/10",
            "168.0.0.0/8",
            "192.0.0.0/24",
            "m.test",
        ])
        .unwrap();
        for text in [
            "169.254.169.254",
            "fd00:ec2::254",
            "fd20:ce::254",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:c1::a9fe:a9fe",
            "::ffff:169.254.169.254",
        ] {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(classify(ip), Class::Metadata, "{text}");
            assert!(!wide.permits(&host, ip), "{text}");
            assert!(AllowPrivate::parse(&[text]).unwrap().permits(&host, ip), "{text}");
        }
        assert!(wide.permits(&host, "169.254.1.1".parse().unwrap()));
    }

    #[test]
    fn allow_private_opens_what_it_names_and_nothing_beside() {
        let open = AllowPrivate::parse(&[
            "localhost",
            "10.1.0.0/16",
            "*.corp.test",
            "192.168.1.7",
            "fd12::/16",
        ])
        .unwrap();
        let name = |text: &str| Host::Name(text.into());
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(open.permits(&name("localhost"), ip("127.0.0.1")));
        assert!(!open.permits(&name("other.test"), ip("127.0.0.1")));
        assert!(open.permits(&name("other.test"), ip("10.1.255.255")));
        assert!(!open.permits(&name("other.test"), ip("10.2.0.0")));
        assert!(open.permits(&name("a.corp.test"), ip("10.9.9.9")));
        assert!(!open.permits(&name("corp.test"), ip("10.9.9.9")));
        assert!(!open.permits(&name("evilcorp.test"), ip("10.9.9.9")));
        assert!(open.permits(&Host::Ip(ip("192.168.1.7")), ip("192.168.1.7")));
        assert!(!open.permits(&Host::Ip(ip("192.168.1.8")), ip("192.168.1.8")));
        assert!(open.permits(&name("x"), ip("fd12:1::1")));
        for bad in [
            "0.0.0.0/0",
            "::/0",
            "http://x",
            "a:80",
            "",
            "10.0.0.0/33",
            "*.10.0.0.1",
        ] {
            assert!(AllowPrivate::parse(&[bad]).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn the_class_of_an_ipv4_address_does_not_depend_on_its_wrapping(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let plain = classify(IpAddr::V4(v4));
            prop_assert_eq!(classify(IpAddr::V6(v4.to_ipv6_mapped())), plain);
            let [hi, lo] = [(bits >> 16) as u16, bits as u16];
            let nat64 = classify(IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, hi, lo)));
            prop_assert_eq!(nat64 == Class::Public, plain == Class::Public);
        }
    }
}
