//! Which hosts are known and with what headers (pure): exact and `*.suffix` entries, most specific first. What is
//! sent to them is left to `inject`, whether their address is fit to `address`.

use crate::broker::host::{Host, parse_configured};
use std::collections::HashMap;

/// `host`, `*.suffix`, each with or without `:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub host: Host,
    pub suffix: bool,
    pub port: Option<u16>,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, suffix) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (host, port) = parse_configured(rest).map_err(|why| why.rule().to_string())?;
        if suffix && matches!(host, Host::Ip(_)) {
            return Err("a suffix is a name, not an address".into());
        }
        Ok(Self { host, suffix, port })
    }
}

struct Entry<T> {
    /// The one port of a `host:port` entry.
    port: Option<u16>,
    /// Ports beside the table's own.
    extra_ports: Vec<u16>,
    value: T,
}

/// Hosts to values. A lookup costs one hash per label, whatever the number of entries.
pub struct HostTable<T> {
    ports: Vec<u16>,
    exact: HashMap<Host, Vec<Entry<T>>>,
    suffix: HashMap<String, Vec<Entry<T>>>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    Found(T),
    /// The host is known, but with other ports only.
    OtherPort,
    Unknown,
}

impl<T> HostTable<T> {
    /// `ports` are those of an entry that names none.
    pub fn new(ports: Vec<u16>) -> Self {
        Self {
            ports,
            exact: HashMap::new(),
            suffix: HashMap::new(),
        }
    }

    /// Refuses a second entry for the same host and port: which of the two would win is nobody's to guess.
    pub fn insert(&mut self, pattern: Pattern, extra_ports: Vec<u16>, value: T) -> Result<(), String> {
        let entries = match (pattern.suffix, pattern.host) {
            (true, Host::Name(name)) => self.suffix.entry(name).or_default(),
            (_, host) => self.exact.entry(host).or_default(),
        };
        if entries.iter().any(|entry| entry.port == pattern.port) {
            return Err("the same host and port is given twice".into());
        }
        entries.push(Entry {
            port: pattern.port,
            extra_ports,
            value,
        });
        Ok(())
    }

    /// The most specific entry that takes the port: exact before suffix, a longer suffix before a shorter one,
    /// `host:port` before `host`.
    pub fn find(&self, host: &Host, port: u16) -> Lookup<&T> {
        let mut known = false;
        if let Some(entries) = self.exact.get(host) {
            known = true;
            if let Some(value) = self.pick(entries, port) {
                return Lookup::Found(value);
            }
        }
        if let Host::Name(name) = host {
            let mut rest = name.as_str();
            while let Some((_, parent)) = rest.split_once('.') {
                if let Some(entries) = self.suffix.get(parent) {
                    known = true;
                    if let Some(value) = self.pick(entries, port) {
                        return Lookup::Found(value);
                    }
                }
                rest = parent;
            }
        }
        if known { Lookup::OtherPort } else { Lookup::Unknown }
    }

    fn pick<'a>(&self, entries: &'a [Entry<T>], port: u16) -> Option<&'a T> {
        let named = entries.iter().find(|entry| entry.port == Some(port));
        let open = || {
            entries
                .iter()
                .find(|e| e.port.is_none() && (self.ports.contains(&port) || e.extra_ports.contains(&port)))
        };
        named.or_else(open).map(|entry| &entry.value)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn table(entries: &[&str]) -> HostTable<String> {
        let mut table = HostTable::new(vec![80, 443]);
        for entry in entries {
            table
                .insert(Pattern::parse(entry).unwrap(), vec![], entry.to_string())
                .unwrap();
        }
        table
    }

    fn found(table: &HostTable<String>, host: &str, port: u16) -> String {
        match table.find(&crate::broker::host::parse_host(host).unwrap(), port) {
            Lookup::Found(value) => value.clone(),
            Lookup::OtherPort => "other port".into(),
            Lookup::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn a_suffix_covers_any_depth_below_and_never_the_apex_or_a_part_of_a_label() {
        let table = table(&["*.svc.test"]);
        for (host, expected) in [
            ("svc.test", "unknown"),
            ("a.svc.test", "*.svc.test"),
            ("a.b.svc.test", "*.svc.test"),
            ("evilsvc.test", "unknown"),
            ("svc.test.evil.com", "unknown"),
            ("1.2.3.4", "unknown"),
            ("10.0.0.1.svc.test", "*.svc.test"),
        ] {
            assert_eq!(found(&table, host, 443), expected, "{host}");
        }
    }

    #[test]
    fn the_most_specific_entry_wins() {
        let table = table(&[
            "*.test",
            "*.svc.test",
            "a.svc.test",
            "a.svc.test:8443",
            "*.test:9000",
        ]);
        for (host, port, expected) in [
            ("a.svc.test", 443, "a.svc.test"),
            ("a.svc.test", 8443, "a.svc.test:8443"),
            ("b.svc.test", 443, "*.svc.test"),
            ("a.svc.test", 9000, "*.test:9000"),
            ("svc.test", 80, "*.test"),
            ("b.svc.test", 8443, "other port"),
            ("test", 80, "unknown"),
        ] {
            assert_eq!(found(&table, host, port), expected, "{host}:{port}");
        }
    }

    #[test]
    fn a_port_in_an_entry_is_its_only_port_and_extra_ports_are_added() {
        let mut table = table(&["api.test:8443"]);
        assert_eq!(found(&table, "api.test", 8443), "api.test:8443");
        assert_eq!(found(&table, "api.test", 443), "other port");
        table
            .insert(Pattern::parse("b.test").unwrap(), vec![8080], "b".into())
            .unwrap();
        assert_eq!(found(&table, "b.test", 8080), "b");
        assert_eq!(found(&table, "b.test", 443), "b");
    }

    #[test]
    fn one_host_in_two_spellings_is_refused() {
        let mut table = table(&["api.test", "[::1]:443"]);
        for again in ["API.test.", "api.test", "[0::1]:443"] {
            assert!(
                table
                    .insert(Pattern::parse(again).unwrap(), vec![], "x".into())
                    .is_err(),
                "{again}"
            );
        }
    }

    #[test]
    fn a_pattern_is_a_host_and_nothing_more() {
        assert_eq!(
            Pattern::parse("*.Tést.example").unwrap().host,
            Host::Name("xn--tst-bma.example".into())
        );
        for bad in [
            "*",
            "*.",
            "a.*.test",
            "*a.test",
            "https://api.test",
            "api.test/x",
            "api.test:0",
            "api.test:70000",
            "*.1.2.3.4",
            "-a.test",
            "",
        ] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
    }
}
