//! Which directory of the host a container may have. Mounting it is left to `plan`.

use crate::error::{Error, ErrorCode, Result};
use std::path::{Component, Path, PathBuf};

/// Whole trees that configure or control the host: nothing in them, and not they themselves.
const CLOSED: [&str; 14] = [
    "/proc",
    "/sys",
    "/dev",
    "/etc",
    "/boot",
    "/run",
    "/var/run",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/kubelet",
];
/// Too much at once; a directory inside is fine.
const TOO_WIDE: [&str; 14] = [
    "/",
    "/home",
    "/root",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/sbin",
    "/usr/local",
    "/var",
    "/var/lib",
    "/tmp",
    "/opt",
    "/srv",
    "/mnt",
];
/// Below a home directory: what logs in elsewhere.
const SECRET: [&str; 7] = [".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config"];

/// A directory that a container gets: where it is, and where the container sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Root {
    /// With links resolved: what was judged is what is mounted.
    pub source: PathBuf,
    /// As the caller wrote it.
    pub target: String,
}

/// Judges `path`, which must exist, by its resolved form.
pub fn check(path: &str, home: Option<&Path>, engine_socket: &Path) -> Result<Root> {
    let given = Path::new(path);
    let plain = given.is_absolute()
        && given
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !plain || path.contains('\0') {
        return Err(refuse(path, "it is no absolute path without \"..\"", "give one"));
    }
    let source = given.canonicalize().map_err(|error| {
        let message = format!("cwd \"{path}\" cannot be mounted: {error}. Make the directory first");
        Error::new(ErrorCode::NotFound, message).at(path)
    })?;
    if !source.is_dir() {
        return Err(Error::new(ErrorCode::NotDirectory, format!("cwd \"{path}\" is no directory")).at(path));
    }
    if let Some(reason) = danger(&source, home, engine_socket).or_else(|| danger(given, home, engine_socket))
    {
        return Err(refuse(path, &reason, "use a project's own directory"));
    }
    Ok(Root {
        source,
        target: path.trim_end_matches('/').to_owned(),
    })
}

fn refuse(path: &str, reason: &str, way_out: &str) -> Error {
    let message = format!("cwd \"{path}\" is not mounted into a sandbox: {reason}. {way_out}");
    Error::new(ErrorCode::InvalidArgument, message).at(path)
}

/// Why a directory must not be given to a container. Pure.
fn danger(path: &Path, home: Option<&Path>, engine_socket: &Path) -> Option<String> {
    if let Some(closed) = CLOSED.iter().find(|closed| path.starts_with(closed)) {
        return Some(format!("{closed} belongs to the system"));
    }
    if TOO_WIDE.iter().any(|wide| path == Path::new(wide)) {
        return Some("it holds much more than one project".into());
    }
    if engine_socket.starts_with(path) {
        return Some("the engine's socket lies in it, and who has that is root on this machine".into());
    }
    if let Some(home) = home {
        if home.starts_with(path) {
            return Some("a home directory holds secrets and start-up files".into());
        }
        if let Some(secret) = SECRET.iter().find(|secret| path.starts_with(home.join(secret))) {
            return Some(format!("~/{secret} holds credentials"));
        }
    }
    // Somebody else's home.
    let mut parts = path.components().skip(1);
    if parts.next() == Some(Component::Normal("home".as_ref())) && parts.nth(1).is_none() {
        return Some("a home directory holds secrets and start-up files".into());
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn judged(path: &str) -> Option<String> {
        danger(
            Path::new(path),
            Some(Path::new("/home/me")),
            Path::new("/srv/engine/docker.sock"),
        )
    }

    #[test]
    fn system_directories_homes_and_parents_of_the_engines_socket_are_refused() {
        for path in [
            "/",
            "/etc",
            "/etc/ssl",
            "/proc",
            "/proc/1/root",
            "/var/run",
            "/run/user/1",
            "/dev/shm",
            "/home",
            "/home/me",
            "/home/you",
            "/home/me/.ssh",
            "/home/me/.config/gh",
            "/srv/engine",
            "/srv",
            "/usr/bin",
            "/tmp",
            "/var/lib/docker/volumes",
        ] {
            assert!(judged(path).is_some(), "{path}");
        }
    }

    #[test]
    fn a_projects_directory_is_allowed_wherever_projects_are_kept() {
        for path in [
            "/home/me/project",
            "/tmp/x",
            "/root/work",
            "/srv/engine-data",
            "/opt/app",
            "/usr/src/app",
            "/var/www",
            "/homework",
            "/etcetera",
            "/home/me/.sshd",
        ] {
            assert_eq!(judged(path), None, "{path}");
        }
    }

    #[test]
    fn a_link_is_judged_by_where_it_leads_and_seen_under_its_own_name() {
        let scratch = tempfile::tempdir().unwrap();
        let real = scratch.path().join("plain");
        std::fs::create_dir(&real).unwrap();
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let socket = Path::new("/var/run/docker.sock");
        let root = check(link.to_str().unwrap(), None, socket).unwrap();
        assert_eq!(
            (root.source, root.target.as_str()),
            (real.canonicalize().unwrap(), link.to_str().unwrap())
        );
        let trap = scratch.path().join("trap");
        std::os::unix::fs::symlink("/etc", &trap).unwrap();
        assert_eq!(
            check(trap.to_str().unwrap(), None, socket).unwrap_err().code,
            ErrorCode::InvalidArgument
        );
        let missing = scratch.path().join("missing");
        assert_eq!(
            check(missing.to_str().unwrap(), None, socket).unwrap_err().code,
            ErrorCode::NotFound
        );
        assert!(!missing.exists());
    }
}
