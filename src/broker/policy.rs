//! What the caller configured, checked once and made fast to ask: rules, allowed hosts, private addresses. Asking is
//! left to `route` (names) and `resolve` (addresses).

use crate::broker::address::AllowPrivate;
use crate::broker::rules::{HostTable, Pattern};
use crate::broker::scrub::Scrubber;
use crate::broker::value::{HeaderSource, parse_name};
use crate::error::{Error, ErrorCode, Result};
use http::HeaderName;
use std::sync::Arc;

/// One rule as the caller wrote it.
pub struct RuleConfig {
    /// `host`, `*.suffix`, each with or without `:port`.
    pub host: String,
    pub headers: Vec<(String, HeaderSource)>,
    /// Ports beside the broker's.
    pub ports: Vec<u16>,
    /// Inject over plain HTTP to public addresses too.
    pub cleartext: bool,
    /// Mask the injected values where the upstream echoes them.
    pub scrub: bool,
}

pub struct Rule {
    /// Part of the key of a pooled connection.
    pub id: usize,
    pub headers: Vec<(HeaderName, HeaderSource)>,
    pub names: Vec<HeaderName>,
    pub cleartext: bool,
    pub scrub: bool,
}

pub struct Policy {
    pub rules: HostTable<Arc<Rule>>,
    pub allow_private: AllowPrivate,
    ports: Vec<u16>,
}

/// Ports of a host that names none.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

impl Policy {
    pub fn new(rules: Vec<RuleConfig>, allow_private: &[String], ports: &[u16]) -> Result<Self> {
        let mut all_ports = DEFAULT_PORTS.to_vec();
        all_ports.extend(ports);
        if all_ports.contains(&0) {
            return Err(invalid("ports: 0 is not a port (1 to 65535)".into()));
        }
        let mut table = HostTable::new(all_ports.clone());
        for (id, rule) in rules.into_iter().enumerate() {
            let named = format!("rules[{id}] {:?}", rule.host);
            let fail = |why: String| invalid(format!("{named}: {why}"));
            let pattern = Pattern::parse(&rule.host).map_err(fail)?;
            let ports = rule.ports.clone();
            let rule = Rule::new(id, rule).map_err(fail)?;
            table.insert(pattern, ports, Arc::new(rule)).map_err(fail)?;
        }
        let allow_private = AllowPrivate::parse(allow_private).map_err(|(index, why)| {
            invalid(format!("allowPrivate[{index}] {:?}: {why}", allow_private[index]))
        })?;
        Ok(Self {
            rules: table,
            allow_private,
            ports: all_ports,
        })
    }

    /// The hosts one listener reaches beside those of the rules.
    pub fn allow_table(&self, entries: &[String]) -> Result<HostTable<()>> {
        allow_table(entries, &self.ports)
    }
}

fn allow_table(entries: &[String], ports: &[u16]) -> Result<HostTable<()>> {
    let mut table = HostTable::new(ports.to_vec());
    for (index, entry) in entries.iter().enumerate() {
        let pattern =
            Pattern::parse(entry).map_err(|why| invalid(format!("allow[{index}] {entry:?}: {why}")))?;
        // The same host twice in a list that only allows is no contradiction.
        let _ = table.insert(pattern, Vec::new(), ());
    }
    Ok(table)
}

impl Rule {
    fn new(id: usize, config: RuleConfig) -> std::result::Result<Self, String> {
        if config.ports.contains(&0) {
            return Err("0 is not a port (1 to 65535)".into());
        }
        let mut headers: Vec<(HeaderName, HeaderSource)> = Vec::new();
        for (text, source) in config.headers {
            let name = parse_name(&text)?;
            if headers.iter().any(|(other, _)| *other == name) {
                return Err(format!("{name} is set twice"));
            }
            headers.push((name, source));
        }
        let names = headers.iter().map(|(name, _)| name.clone()).collect();
        Ok(Self {
            id,
            headers,
            names,
            cleartext: config.cleartext,
            scrub: config.scrub,
        })
    }

    /// Masks these values in an answer, if the rule asks for it.
    pub fn scrubber(&self, values: &[(HeaderName, http::HeaderValue)]) -> Option<Scrubber> {
        self.scrub
            .then(|| Scrubber::new(values.iter().map(|(_, value)| value.as_bytes())))
    }
}
