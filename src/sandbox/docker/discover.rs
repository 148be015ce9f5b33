//! Where an engine may listen, in the order in which the docker CLI and its users expect (pure). Trying the
//! places is left to `connect`.

use crate::error::{Error, ErrorCode, Result};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Socket(PathBuf),
    /// `host:port`.
    Tcp(String),
    /// Anything else, as written (ssh, npipe).
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub endpoint: Endpoint,
    /// Who named it, for messages.
    pub origin: String,
}

/// What discovery may look at.
pub struct Machine<'a> {
    pub env: &'a HashMap<String, String>,
    pub read: &'a dyn Fn(&Path) -> Option<String>,
}

impl Machine<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.env
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }
}

/// One place when somebody chose it, else all the known ones.
pub fn places(chosen: Option<&Path>, machine: &Machine<'_>) -> Result<Vec<Place>> {
    if let Some(path) = chosen {
        return Ok(vec![Place {
            endpoint: Endpoint::Socket(path.to_owned()),
            origin: "socketPath".into(),
        }]);
    }
    if let Some(host) = machine.variable("DOCKER_HOST") {
        return Ok(vec![Place {
            endpoint: endpoint(host),
            origin: "DOCKER_HOST".into(),
        }]);
    }
    if let Some(place) = context(machine)? {
        return Ok(vec![place]);
    }
    Ok(known(machine))
}

fn endpoint(text: &str) -> Endpoint {
    if let Some(path) = text.strip_prefix("unix://") {
        return Endpoint::Socket(path.into());
    }
    if text.starts_with('/') {
        return Endpoint::Socket(text.into());
    }
    match text
        .strip_prefix("tcp://")
        .or_else(|| text.strip_prefix("http://"))
    {
        Some(host) => Endpoint::Tcp(host.trim_end_matches('/').into()),
        None => Endpoint::Other(text.into()),
    }
}

/// The docker CLI's current context; `None` for its default one.
fn context(machine: &Machine<'_>) -> Result<Option<Place>> {
    let config = match machine.variable("DOCKER_CONFIG") {
        Some(folder) => Some(PathBuf::from(folder)),
        None => machine.home().map(|home| home.join(".docker")),
    };
    let Some(config) = config else { return Ok(None) };
    let from_file = || {
        let text = (machine.read)(&config.join("config.json"))?;
        let parsed: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(parsed.get("currentContext")?.as_str()?.to_owned())
    };
    let name = match machine.variable("DOCKER_CONTEXT") {
        Some(name) => name.to_owned(),
        None => from_file().unwrap_or_default(),
    };
    if name.is_empty() || name == "default" {
        return Ok(None);
    }
    let digest: String = Sha256::digest(name.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let meta = (machine.read)(&config.join("contexts/meta").join(digest).join("meta.json"));
    let host = meta.and_then(|text| {
        let parsed: serde_json::Value = serde_json::from_str(&text).ok()?;
        let host = parsed.get("Endpoints")?.get("docker")?.get("Host")?;
        Some(host.as_str()?.to_owned())
    });
    match host {
        Some(host) => Ok(Some(Place {
            endpoint: endpoint(&host),
            origin: format!("the docker context \"{name}\""),
        })),
        None => Err(Error::new(
            ErrorCode::SandboxUnavailable,
            format!(
                "the docker context \"{name}\" is selected but does not exist: run docker context use default, or \
                 set socketPath"
            ),
        )),
    }
}

fn known(machine: &Machine<'_>) -> Vec<Place> {
    let mut paths = Vec::new();
    if let Some(runtime) = machine.variable("XDG_RUNTIME_DIR") {
        paths.push(Path::new(runtime).join("docker.sock"));
    }
    if let Some(home) = machine.home() {
        for below in [
            ".docker/run/docker.sock",
            ".docker/desktop/docker.sock",
            ".colima/default/docker.sock",
            ".orbstack/run/docker.sock",
            ".rd/docker.sock",
        ] {
            paths.push(home.join(below));
        }
    }
    paths.push("/var/run/docker.sock".into());
    paths
        .into_iter()
        .map(|path| Place {
            endpoint: Endpoint::Socket(path),
            origin: "a known place".into(),
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn found(env: &[(&str, &str)], files: &[(&str, &str)]) -> Result<Vec<Place>> {
        let env = env
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        let files: HashMap<PathBuf, String> = files
            .iter()
            .map(|(path, text)| (path.into(), text.to_string()))
            .collect();
        let read = |path: &Path| files.get(path).cloned();
        places(
            None,
            &Machine {
                env: &env,
                read: &read,
            },
        )
    }

    fn socket(path: &str) -> Endpoint {
        Endpoint::Socket(path.into())
    }

    fn work_meta() -> String {
        let digest: String = Sha256::digest(b"work")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("/h/.docker/contexts/meta/{digest}/meta.json")
    }

    #[test]
    fn docker_host_wins_over_the_context_and_the_context_over_known_places() {
        let meta = work_meta();
        let files = [
            ("/h/.docker/config.json", r#"{"currentContext":"work"}"#),
            (
                meta.as_str(),
                r#"{"Endpoints":{"docker":{"Host":"unix:///ctx.sock"}}}"#,
            ),
        ];
        let both = found(&[("HOME", "/h"), ("DOCKER_HOST", "unix:///env.sock")], &files).unwrap();
        assert_eq!(both[0].endpoint, socket("/env.sock"));
        let context = found(&[("HOME", "/h")], &files).unwrap();
        assert_eq!((context.len(), &context[0].endpoint), (1, &socket("/ctx.sock")));
        let chosen = found(&[("HOME", "/h"), ("DOCKER_CONTEXT", "default")], &files).unwrap();
        assert_eq!(chosen.last().unwrap().endpoint, socket("/var/run/docker.sock"));
    }

    #[test]
    fn known_places_come_in_a_fixed_order_and_the_system_socket_last() {
        let all = found(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/run/user/7")], &[]).unwrap();
        let paths: Vec<_> = all.into_iter().map(|place| place.endpoint).collect();
        assert_eq!(paths.first(), Some(&socket("/run/user/7/docker.sock")));
        assert!(paths.contains(&socket("/h/.colima/default/docker.sock")));
        assert_eq!(paths.last(), Some(&socket("/var/run/docker.sock")));
    }

    #[test]
    fn a_context_that_does_not_exist_is_an_error_and_not_another_engine() {
        let error = found(&[("HOME", "/h"), ("DOCKER_CONTEXT", "gone")], &[]).unwrap_err();
        assert_eq!(error.code, ErrorCode::SandboxUnavailable);
        assert!(error.message.contains("\"gone\""), "{}", error.message);
    }

    #[test]
    fn endpoints_are_told_apart_by_their_scheme() {
        assert_eq!(endpoint("tcp://127.0.0.1:1"), Endpoint::Tcp("127.0.0.1:1".into()));
        assert_eq!(endpoint("/x/docker.sock"), socket("/x/docker.sock"));
        assert_eq!(
            endpoint("ssh://me@there"),
            Endpoint::Other("ssh://me@there".into())
        );
    }
}
