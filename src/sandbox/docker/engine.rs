//! A connection to an engine, and what kind of engine it is. Which places are tried is left to `discover`.

use super::discover::{Endpoint, Place};
use crate::error::{Error, ErrorCode, Result};
use bollard::errors::Error as ApiError;
use bollard::models::{SystemInfo, SystemVersion};
use bollard::{API_DEFAULT_VERSION, Docker};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Finding out that there is no usable engine takes less than 2 s.
const PATIENCE: Duration = Duration::from_millis(1800);
/// Any other call; an engine under load takes seconds to start a container.
const CALL_SECONDS: u64 = 60;
/// 19.03: the first with everything a container is given here.
const MIN_API: (u32, u32) = (1, 40);

/// Where the containers of an engine run, seen from this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On this kernel.
    Native,
    /// On this kernel, in namespaces of the user's.
    Rootless,
    /// In a virtual machine.
    Machine(String),
}

pub struct Engine {
    pub api: Docker,
    pub socket: PathBuf,
    pub kind: Kind,
    pub version: Version,
}

/// Of the engine, as far as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

pub fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::SandboxUnavailable, message)
}

/// The first place that answers. When none does, the most telling failure.
pub async fn connect(places: Vec<Place>) -> Result<Engine> {
    let tried: Vec<String> = places.iter().map(|place| describe(&place.endpoint)).collect();
    let chosen = places.len() == 1;
    let mut telling = None;
    for place in places {
        match try_place(&place).await {
            Ok(engine) => return Ok(engine),
            Err(Failure::Missing) if !chosen => {}
            Err(Failure::Missing) => {
                let place = format!("{} (from {})", describe(&place.endpoint), place.origin);
                return Err(unavailable(format!(
                    "no Docker engine: {place} does not exist. Start Docker, or name its socket with socketPath"
                )));
            }
            Err(Failure::Other(error)) if chosen => return Err(error),
            Err(Failure::Other(error)) => drop(telling.get_or_insert(error)),
        }
    }
    Err(telling.unwrap_or_else(|| {
        unavailable(format!(
            "no Docker engine was found: neither DOCKER_HOST nor a docker context is set, and none of these exists: \
             {}. Install or start Docker, or name its socket with socketPath",
            tried.join(", ")
        ))
    }))
}

fn describe(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Socket(path) => path.display().to_string(),
        Endpoint::Tcp(host) => format!("tcp://{host}"),
        Endpoint::Other(text) => text.clone(),
    }
}

enum Failure {
    Missing,
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}

async fn try_place(place: &Place) -> std::result::Result<Engine, Failure> {
    let path = match &place.endpoint {
        Endpoint::Socket(path) => path.clone(),
        Endpoint::Tcp(host) => return Err(elsewhere(host, &place.origin).await.into()),
        Endpoint::Other(text) => {
            return Err(unavailable(format!(
                "the Docker engine at \"{text}\" (from {}) is not on this machine, so it cannot mount a directory of \
                 this one: use an engine with a local socket, and name it with socketPath",
                place.origin
            ))
            .into());
        }
    };
    let shown = path.display().to_string();
    let no_answer = || {
        unavailable(format!(
            "the Docker engine at {shown} does not answer: restart it"
        ))
    };
    let connected = tokio::time::timeout(PATIENCE, tokio::net::UnixStream::connect(&path)).await;
    match connected.map_err(|_| no_answer())? {
        Ok(stream) => drop(stream),
        Err(error) => return Err(explain_connect(&error, &shown)),
    }
    let asked = tokio::time::timeout(PATIENCE, ask(&shown)).await;
    let (api, version, info) = asked.map_err(|_| no_answer())?.map_err(|error| {
        unavailable(format!(
            "the engine at {shown} does not speak Docker's API: {error}"
        ))
    })?;
    let (kind, version) = judge(&version, &info)?;
    Ok(Engine {
        api,
        socket: path,
        kind,
        version,
    })
}

/// A TCP endpoint is only told apart for its message: refused, or simply elsewhere.
async fn elsewhere(host: &str, origin: &str) -> Error {
    let connected = tokio::time::timeout(PATIENCE, tokio::net::TcpStream::connect(host)).await;
    match connected {
        Ok(Ok(_)) => unavailable(format!(
            "the Docker engine at tcp://{host} (from {origin}) is reached over the network, so it cannot mount a \
             directory of this machine: use an engine with a local socket, and name it with socketPath"
        )),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => unavailable(format!(
            "tcp://{host} (from {origin}) refused the connection: no Docker engine listens there. Correct {origin}, \
             or unset it to use the local engine"
        )),
        Ok(Err(error)) => unavailable(format!(
            "tcp://{host} (from {origin}) cannot be reached ({error}): correct {origin}, or unset it to use the local \
             engine"
        )),
        Err(_) => unavailable(format!(
            "tcp://{host} (from {origin}) does not answer: correct {origin}, or unset it to use the local engine"
        )),
    }
}

fn explain_connect(error: &io::Error, path: &str) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Failure::Missing,
        io::ErrorKind::ConnectionRefused => Failure::Other(unavailable(format!(
            "the Docker engine is not running: its socket {path} exists, but nobody listens. Start it \
             (systemctl start docker, or Docker Desktop)"
        ))),
        io::ErrorKind::PermissionDenied => Failure::Other(unavailable(format!(
            "this user has no permission to use the Docker engine at {path}: join the docker group (then log in \
             again), or use rootless Docker. Members of that group are root on this machine"
        ))),
        _ => Failure::Other(unavailable(format!(
            "the Docker engine at {path} cannot be reached: {error}"
        ))),
    }
}

async fn ask(path: &str) -> std::result::Result<(Docker, SystemVersion, SystemInfo), ApiError> {
    let api = Docker::connect_with_unix(path, CALL_SECONDS, API_DEFAULT_VERSION)?;
    // Unversioned calls do not exist in bollard: an engine answers any version it knows, so ask for its own first.
    let api = api.negotiate_version().await?;
    let (version, info) = tokio::join!(api.version(), api.info());
    Ok((api, version?, info?))
}

/// What kind of engine this is, or why it cannot be used.
pub fn judge(version: &SystemVersion, info: &SystemInfo) -> Result<(Kind, Version)> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    if text(&info.os_type) == "windows" {
        return Err(unavailable(
            "this Docker engine runs Windows containers: switch it to Linux containers",
        ));
    }
    let api_version = text(&version.api_version);
    if numbers(&api_version).is_some_and(|[major, minor, _]| (major, minor) < MIN_API) {
        return Err(unavailable(format!(
            "this Docker engine is too old (version {}, API {api_version}): 19.03 or later is needed",
            text(&version.version)
        )));
    }
    let [major, minor, patch] = numbers(&text(&version.version)).unwrap_or_default();
    let platform = version
        .platform
        .as_ref()
        .map(|platform| platform.name.clone())
        .unwrap_or_default();
    Ok((kind(info, &platform), Version(major, minor, patch)))
}

/// The engine's own words decide; that a container runs on this kernel is proved again when it starts.
fn kind(info: &SystemInfo, platform: &str) -> Kind {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let system = text(&info.operating_system);
    let kernel = text(&info.kernel_version).to_ascii_lowercase();
    let name = text(&info.name).to_ascii_lowercase();
    if system.contains("Docker Desktop") || platform.contains("Docker Desktop") {
        return Kind::Machine("Docker Desktop".into());
    }
    for machine in ["colima", "orbstack", "docker-desktop", "rancher-desktop", "lima"] {
        if name.starts_with(machine) || system.to_ascii_lowercase().contains(machine) {
            return Kind::Machine(machine.into());
        }
    }
    if kernel.contains("linuxkit") || kernel.contains("orbstack") {
        return Kind::Machine("a virtual machine".into());
    }
    if !cfg!(target_os = "linux") {
        return Kind::Machine("a virtual machine".into());
    }
    let rootless = info
        .security_options
        .iter()
        .flatten()
        .any(|option| option.contains("name=rootless"));
    if rootless { Kind::Rootless } else { Kind::Native }
}

/// `26.1.5+dfsg1` or `1.45` as numbers; a missing patch is 0.
fn numbers(text: &str) -> Option<[u32; 3]> {
    let plain = text.split(['+', '-', '~']).next()?;
    let mut parts = plain.split('.').map(|part| part.parse::<u32>());
    let major = parts.next()?.ok()?;
    let minor = parts.next().and_then(std::result::Result::ok).unwrap_or(0);
    let patch = parts.next().and_then(std::result::Result::ok).unwrap_or(0);
    Some([major, minor, patch])
}

/// The engine's status code and message, when it was the engine that spoke.
pub fn refusal(error: &ApiError) -> Option<(u16, &str)> {
    match error {
        ApiError::DockerResponseServerError { status_code, message } => Some((*status_code, message)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use bollard::models::SystemVersionPlatform;

    fn engine(version: &str, api: &str, platform: &str) -> SystemVersion {
        SystemVersion {
            version: Some(version.into()),
            api_version: Some(api.into()),
            platform: Some(SystemVersionPlatform {
                name: platform.into(),
            }),
            ..Default::default()
        }
    }

    fn info(system: &str, name: &str, kernel: &str, security: &[&str]) -> SystemInfo {
        SystemInfo {
            operating_system: Some(system.into()),
            name: Some(name.into()),
            kernel_version: Some(kernel.into()),
            os_type: Some("linux".into()),
            security_options: Some(security.iter().map(|option| option.to_string()).collect()),
            ..Default::default()
        }
    }

    #[test]
    fn an_engine_in_a_machine_or_without_root_is_told_from_its_own_words() {
        let community = engine("26.1.5+dfsg1", "1.45", "Docker Engine - Community");
        let debian = "Debian GNU/Linux 12 (bookworm)";
        let seccomp = ["name=seccomp,profile=builtin"];
        let cases = [
            (
                engine("27.0.3", "1.46", "Docker Desktop 4.32.0 (157355)"),
                info(debian, "x", "6.6.31", &[]),
                "Docker Desktop",
            ),
            (
                community.clone(),
                info("Docker Desktop", "docker-desktop", "6.6.31-linuxkit", &seccomp),
                "Docker Desktop",
            ),
            (
                community.clone(),
                info("Ubuntu 24.04 LTS", "colima", "6.8.0", &seccomp),
                "colima",
            ),
            (
                community.clone(),
                info("OrbStack", "orbstack", "6.9-orbstack", &seccomp),
                "orbstack",
            ),
        ];
        for (version, info, machine) in cases {
            assert_eq!(judge(&version, &info).unwrap().0, Kind::Machine(machine.into()));
        }
        if cfg!(target_os = "linux") {
            let rootless = info(
                debian,
                "host",
                "6.1.0",
                &["name=seccomp,profile=builtin", "name=rootless"],
            );
            assert_eq!(judge(&community, &rootless).unwrap().0, Kind::Rootless);
            let native = info(debian, "host", "6.1.0", &seccomp);
            assert_eq!(
                judge(&community, &native).unwrap(),
                (Kind::Native, Version(26, 1, 5))
            );
        }
    }

    #[test]
    fn an_old_engine_and_one_for_windows_containers_are_refused_with_the_remedy() {
        let plain = info("Debian", "host", "6.1.0", &[]);
        let old = judge(&engine("18.09.1", "1.39", ""), &plain).unwrap_err();
        assert!(
            old.message.contains("18.09.1") && old.message.contains("19.03"),
            "{}",
            old.message
        );
        let windows = SystemInfo {
            os_type: Some("windows".into()),
            ..plain
        };
        let error = judge(&engine("26.1.5", "1.45", ""), &windows).unwrap_err();
        assert_eq!(error.code, ErrorCode::SandboxUnavailable);
    }

    #[test]
    fn versions_compare_by_number() {
        assert!(Version(25, 0, 5) > Version(25, 0, 4) && Version(9, 0, 0) < Version(25, 0, 5));
        assert_eq!(numbers("25.0.5-ce"), Some([25, 0, 5]));
        assert_eq!(numbers("nonsense"), None);
    }
}
