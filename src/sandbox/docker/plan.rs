//! One container in the engine's terms: what it may, what it may not, what it sees (pure).
//!
//! Mounts and not Binds: a bind with a colon in its path is refused by the engine, and one whose source is missing
//! is created as root on the host.

use super::mounts::Root;
use super::options::{Options, User};
use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountBindOptions,
    MountBindOptionsPropagationEnum, MountType, ResourcesUlimits, RestartPolicy, RestartPolicyNameEnum,
};
use std::collections::HashMap;
use std::path::Path;

/// Where the container sees croft-exec and its socket.
pub const HELPER_INSIDE: &str = "/.croft-exec";
pub const SOCKET_INSIDE: &str = "/.croft-socket";
/// Where the proxy listens on the container's loopback.
pub const PROXY_PORT: u16 = 3128;
/// The home of a user the image does not know.
pub const HOME_INSIDE: &str = "/home/croft";

/// How the container's first process is reached.
pub enum Entry<'a> {
    /// Our init, over a mounted socket.
    Init {
        helper: &'a Path,
        socket: &'a Path,
        listen: bool,
    },
    /// The command itself, read through the engine's attach call.
    Attach {
        command: &'a [String],
        env: Vec<String>,
        cwd: &'a str,
        open_stdin: bool,
    },
}

pub struct Plan<'a> {
    pub options: &'a Options,
    pub root: &'a Root,
    pub entry: Entry<'a>,
    /// `none`, `default`, or a network's id.
    pub network: &'a str,
    pub labels: HashMap<String, String>,
    /// Of this process.
    pub caller: (u32, u32),
}

pub fn body(plan: &Plan<'_>) -> ContainerCreateBody {
    let options = plan.options;
    let mut mounts = vec![bind(&plan.root.source, &plan.root.target, false)];
    let mut create = ContainerCreateBody {
        image: Some(options.image.clone()),
        hostname: Some("sandbox".into()),
        user: user(options, plan.caller),
        labels: Some(plan.labels.clone()),
        // An image's own health check would run beside the command.
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".into()]),
            ..Default::default()
        }),
        tty: Some(false),
        ..Default::default()
    };
    match &plan.entry {
        Entry::Init {
            helper,
            socket,
            listen,
        } => {
            mounts.push(bind(helper, HELPER_INSIDE, true));
            mounts.push(bind(socket, SOCKET_INSIDE, false));
            create.entrypoint = Some(vec![HELPER_INSIDE.into()]);
            let mut arguments = vec!["init".to_owned(), SOCKET_INSIDE.to_owned()];
            arguments.extend(listen.then(|| PROXY_PORT.to_string()));
            create.cmd = Some(arguments);
            // The init has nothing to do with the image's directory, which may not be readable for the user.
            create.working_dir = Some("/".into());
        }
        Entry::Attach {
            command,
            env,
            cwd,
            open_stdin,
        } => {
            let (program, arguments) = command.split_at(command.len().min(1));
            create.entrypoint = Some(program.to_vec());
            create.cmd = Some(arguments.to_vec());
            create.env = Some(env.clone());
            create.working_dir = Some((*cwd).to_owned());
            create.attach_stdout = Some(true);
            create.attach_stderr = Some(true);
            create.attach_stdin = Some(*open_stdin);
            create.open_stdin = Some(*open_stdin);
            create.stdin_once = Some(*open_stdin);
        }
    }
    create.host_config = Some(host_config(plan, mounts));
    create
}

fn user(options: &Options, caller: (u32, u32)) -> Option<String> {
    match &options.user {
        User::Image => None,
        User::Caller => Some(format!("{}:{}", caller.0, caller.1)),
        User::Named(name) => Some(name.clone()),
    }
}

fn bind(source: &Path, target: &str, read_only: bool) -> Mount {
    Mount {
        target: Some(target.to_owned()),
        source: Some(source.to_string_lossy().into_owned()),
        typ: Some(MountType::BIND),
        read_only: Some(read_only),
        bind_options: Some(MountBindOptions {
            // What is mounted later, on either side, stays on that side.
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn host_config(plan: &Plan<'_>, mounts: Vec<Mount>) -> HostConfig {
    let options = plan.options;
    let memory = options.memory.map(|bytes| bytes as i64);
    HostConfig {
        mounts: Some(mounts),
        network_mode: Some(plan.network.to_owned()),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec!["no-new-privileges".into()]),
        privileged: Some(false),
        pids_limit: Some(options.pids_limit.into()),
        memory,
        // Equal: no swap on top.
        memory_swap: memory,
        nano_cpus: options.cpus.map(|cpus| (cpus * 1e9) as i64),
        ipc_mode: Some("private".into()),
        readonly_rootfs: Some(options.read_only_root),
        tmpfs: tmpfs(options, plan.caller),
        ulimits: Some(vec![ResourcesUlimits {
            // A core of a command can hold what it was given, and fill the disk.
            name: Some("core".into()),
            soft: Some(0),
            hard: Some(0),
        }]),
        // Output does not pass through a log file: a chatty command is several times faster, and nothing of it
        // stays on the host's disk.
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".into()),
            config: None,
        }),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        // We remove it ourselves. The engine does when we cannot: its init exits with the lifeline. Not with
        // attach, where an engine that removes at once can take the last output along.
        auto_remove: Some(matches!(plan.entry, Entry::Init { .. })),
        // The engine's `docker-init` is not installed everywhere; where it is wanted and missing, start fails.
        init: Some(false),
        ..Default::default()
    }
}

/// A user of the caller's choice finds neither a home nor, in small images, a place for temporary files.
fn tmpfs(options: &Options, caller: (u32, u32)) -> Option<HashMap<String, String>> {
    let mut all = HashMap::new();
    if options.user != User::Image || options.read_only_root {
        all.insert("/tmp".to_owned(), "rw,exec,nosuid,nodev,mode=1777".to_owned());
    }
    if options.user == User::Caller {
        let (uid, gid) = caller;
        let home = format!("rw,exec,nosuid,nodev,mode=0700,uid={uid},gid={gid}");
        all.insert(HOME_INSIDE.to_owned(), home);
    }
    all.extend(options.tmpfs.iter().cloned());
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::options::{Network, Reuse};
    use super::*;

    fn options() -> Options {
        Options {
            image: "busybox".into(),
            network: Network::None,
            egress: None,
            network_name: None,
            socket_path: None,
            user: User::Image,
            memory: None,
            cpus: None,
            pids_limit: 512,
            read_only_root: false,
            tmpfs: vec![],
            labels: vec![],
            reuse: Reuse::Command,
            transport: None,
        }
    }

    fn planned(options: &Options) -> ContainerCreateBody {
        let root = Root {
            source: "/real/with:colon".into(),
            target: "/work/with:colon".into(),
        };
        body(&Plan {
            options,
            root: &root,
            entry: Entry::Init {
                helper: Path::new("/pkg/croft-exec"),
                socket: Path::new("/tmp/s"),
                listen: false,
            },
            network: "none",
            labels: HashMap::new(),
            caller: (1234, 1235),
        })
    }

    #[test]
    fn a_container_is_hardened_and_sees_its_directory_the_helper_and_the_socket_only() {
        let create = planned(&options());
        let host = create.host_config.unwrap();
        assert_eq!(host.cap_drop, Some(vec!["ALL".into()]));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".into()]));
        assert_eq!(
            (host.pids_limit, host.ipc_mode.as_deref()),
            (Some(512), Some("private"))
        );
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(
            (host.privileged, host.auto_remove, host.init),
            (Some(false), Some(true), Some(false))
        );
        assert_eq!(host.binds, None);
        assert_eq!(host.pid_mode.or(host.userns_mode).or(host.uts_mode), None);
        let seen: Vec<_> = host
            .mounts
            .unwrap()
            .into_iter()
            .map(|mount| {
                (
                    mount.source.unwrap(),
                    mount.target.unwrap(),
                    mount.read_only.unwrap(),
                )
            })
            .collect();
        let expected = [
            ("/real/with:colon", "/work/with:colon", false),
            ("/pkg/croft-exec", HELPER_INSIDE, true),
            ("/tmp/s", SOCKET_INSIDE, false),
        ];
        assert_eq!(
            seen,
            expected.map(|(source, target, ro)| (source.to_owned(), target.to_owned(), ro))
        );
        assert_eq!(create.env, None);
    }

    #[test]
    fn the_callers_user_gets_a_home_and_a_tmp_and_a_memory_limit_no_swap() {
        let asked = Options {
            user: User::Caller,
            memory: Some(1 << 30),
            cpus: Some(0.5),
            ..options()
        };
        let create = planned(&asked);
        assert_eq!(create.user.as_deref(), Some("1234:1235"));
        let host = create.host_config.unwrap();
        assert_eq!(
            (host.memory, host.memory_swap, host.nano_cpus),
            (Some(1 << 30), Some(1 << 30), Some(500_000_000))
        );
        let tmpfs = host.tmpfs.unwrap();
        assert!(tmpfs["/tmp"].contains("mode=1777") && tmpfs[HOME_INSIDE].contains("uid=1234,gid=1235"));
    }
}
