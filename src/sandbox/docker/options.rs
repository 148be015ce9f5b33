//! What a sandbox was asked to be, checked (pure). Turning it into an engine's terms is left to `plan`.

use crate::broker::rules::Pattern;
use crate::error::{Error, ErrorCode, Result};
use std::path::PathBuf;

/// What the containers of one sandbox have in common.
#[derive(Clone, Debug)]
pub struct Options {
    pub image: String,
    pub network: Network,
    /// `None`: the tightest that works here.
    pub egress: Option<EgressMode>,
    pub network_name: Option<String>,
    pub socket_path: Option<PathBuf>,
    pub user: User,
    /// Bytes; swap is not given on top.
    pub memory: Option<u64>,
    pub cpus: Option<f64>,
    pub pids_limit: u32,
    pub read_only_root: bool,
    /// (path, mount options).
    pub tmpfs: Vec<(String, String)>,
    pub labels: Vec<(String, String)>,
    pub reuse: Reuse,
    /// How commands and their output travel; `None`: as the engine allows.
    pub transport: Option<Transport>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    None,
    /// The engine's own default network, unrestricted.
    Default,
    /// Only these hosts, through a broker.
    Allow(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EgressMode {
    /// No network at all; a listener made inside is handed to the broker.
    Socket,
    /// An internal network with the broker on its gateway address.
    Network,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// A container for each command, started when it is asked for.
    Command,
    /// The same, started ahead of need.
    Pool,
    /// One container for all commands of a directory.
    Session,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Over a mounted socket, to an init of our own.
    Socket,
    /// Through the engine's attach call: the only way into an engine in a virtual machine.
    Attach,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// As the image says.
    Image,
    /// The user and group of this process.
    Caller,
    Named(String),
}

/// Engines refuse less (6 MiB).
const MIN_MEMORY_BYTES: u64 = 6 * 1024 * 1024;

/// `536870912`, `512m`, `2g`: bytes with Docker's suffixes.
pub fn parse_memory(text: &str) -> Result<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &lower[digits.len()..] {
        "" | "b" => Some(1),
        "k" | "kb" => Some(1 << 10),
        "m" | "mb" => Some(1 << 20),
        "g" | "gb" => Some(1 << 30),
        _ => None,
    };
    let bytes = unit.and_then(|unit: u64| digits.parse::<u64>().ok()?.checked_mul(unit));
    match bytes {
        Some(bytes) if (MIN_MEMORY_BYTES..=i64::MAX as u64).contains(&bytes) => Ok(bytes),
        Some(bytes) => Err(invalid(format!(
            "memory: \"{text}\" is {bytes} bytes, and an engine takes no less than 6m"
        ))),
        None => Err(invalid(format!(
            "memory: \"{text}\" is no size: write bytes, or a number with k, m or g, such as 512m"
        ))),
    }
}

/// The hosts of an allow list, as they are compared: lower case, ASCII, without a trailing dot.
pub fn check_hosts(hosts: &[String]) -> Result<Vec<String>> {
    hosts
        .iter()
        .map(|host| {
            let pattern = Pattern::parse(host).map_err(|why| {
                let shown: String = host.escape_debug().take(200).collect();
                invalid(format!(
                    "network.allow: \"{shown}\" is no host: {why}. Write a name, *.suffix or name:port, without a \
                     scheme or a path"
                ))
            })?;
            let star = if pattern.suffix { "*." } else { "" };
            let port = pattern.port.map(|port| format!(":{port}")).unwrap_or_default();
            Ok(format!("{star}{}{port}", pattern.host))
        })
        .collect()
}

pub fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_size_is_bytes_or_a_number_with_a_unit_of_at_least_six_mebibytes() {
        for (text, bytes) in [
            ("20m", 20 << 20),
            ("1G", 1 << 30),
            ("6291456", 6 << 20),
            ("8192kb", 8 << 20),
        ] {
            assert_eq!(parse_memory(text).unwrap(), bytes, "{text}");
        }
        for text in [
            "",
            "m",
            "1.5g",
            "-1",
            "20x",
            "5m",
            "99999999999999999999",
            "20 m b",
        ] {
            assert_eq!(
                parse_memory(text).unwrap_err().code,
                ErrorCode::InvalidArgument,
                "{text}"
            );
        }
    }

    #[test]
    fn an_allow_list_holds_names_suffixes_and_ports_and_nothing_else() {
        let hosts =
            |list: &[&str]| check_hosts(&list.iter().map(|host| host.to_string()).collect::<Vec<_>>());
        let given = hosts(&["API.GitHub.com.", "*.Example.org", "example.net:8443"]).unwrap();
        assert_eq!(given, ["api.github.com", "*.example.org", "example.net:8443"]);
        for bad in [
            "https://example.org",
            "example.org/path",
            "example.org:0",
            "example.org:70000",
            "",
            "*.",
            "a b",
            "ex\0ample.org",
            "user@example.org",
            "*",
        ] {
            assert_eq!(
                hosts(&[bad]).unwrap_err().code,
                ErrorCode::InvalidArgument,
                "{bad}"
            );
        }
    }
}
