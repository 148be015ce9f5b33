//! What git is told before each command (pure): the configuration that switches off whatever runs programs or
//! leaves the repository, and the environment.
//!
//! Settings travel in GIT_CONFIG_KEY_n and not as `-c`, because the name of a filter may contain `=`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Wins over every configuration file. A repository can name a program in each of these.
const OFF: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.editor", "false"),
    ("sequence.editor", "false"),
    ("core.pager", "cat"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", ""),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("interactive.diffFilter", ""),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("commit.gpgSign", "false"),
    ("log.showSignature", "false"),
    // After a commit git would start a repack, with a hook of its own.
    ("maintenance.auto", "false"),
    ("gc.auto", "0"),
    // A partial clone fetches what is missing, over whatever transport its configuration names.
    ("protocol.allow", "never"),
    // A submodule's own configuration counts in the git that would look into it.
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("diff.submodule", "short"),
    // What answers look like.
    ("core.quotePath", "false"),
    ("color.ui", "false"),
    ("diff.noprefix", "false"),
    ("diff.mnemonicPrefix", "false"),
    ("status.showStash", "false"),
    ("commit.verbose", "false"),
    ("commit.status", "false"),
    ("commit.template", ""),
    // No address made up from the host's name.
    ("user.useConfigOnly", "true"),
];

const NO_HOOKS: (&str, &str) = ("core.hooksPath", "/dev/null");

/// Of the host, by name; everything else stays behind, GIT_* above all.
const KEPT: [&str; 5] = ["HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME"];
const FALLBACK_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(super) struct Settings<'s> {
    pub host: &'s [(OsString, OsString)],
    pub root: &'s Path,
    pub run_hooks: bool,
    /// Names of filters that some configuration file defines: they are emptied.
    pub filters: &'s [String],
}

impl Settings<'_> {
    /// `NAME=value`, complete.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> = vec![("PATH".into(), self.path())];
        variables.extend(
            self.host
                .iter()
                .filter(|(name, _)| KEPT.iter().any(|kept| name == kept))
                .cloned(),
        );
        let fixed = [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_EDITOR", "false"),
            ("GIT_ASKPASS", "false"),
            ("SSH_ASKPASS", "false"),
            ("GIT_PAGER", "cat"),
        ];
        variables.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        let config = self.config();
        variables.push(("GIT_CONFIG_COUNT".into(), config.len().to_string().into()));
        for (index, (key, value)) in config.into_iter().enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{index}").into(), key.into()));
            variables.push((format!("GIT_CONFIG_VALUE_{index}").into(), value.into()));
        }
        variables
    }

    fn config(&self) -> Vec<(String, String)> {
        let own = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
        let mut config: Vec<_> = OFF.iter().map(own).collect();
        if !self.run_hooks {
            config.push(own(&NO_HOOKS));
        }
        for name in self.filters {
            for (key, value) in [
                ("clean", ""),
                ("smudge", ""),
                ("process", ""),
                ("required", "false"),
            ] {
                config.push((format!("filter.{name}.{key}"), value.to_owned()));
            }
        }
        config
    }

    /// A relative entry, or one below the root, would run a `git` that lies in the workspace.
    fn path(&self) -> OsString {
        let host = self.host.iter().find(|(name, _)| name == "PATH");
        let path = host.map_or(OsStr::new(FALLBACK_PATH), |(_, value)| value.as_os_str());
        let entries =
            std::env::split_paths(path).filter(|entry| entry.is_absolute() && !entry.starts_with(self.root));
        std::env::join_paths(entries)
            .ok()
            .filter(|path| !path.is_empty())
            .unwrap_or_else(|| FALLBACK_PATH.into())
    }
}

/// What the output of `git config --list -z` says that matters here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Configured {
    pub filters: Vec<String>,
    pub has_hooks_path: bool,
}

pub(super) fn configured(listing: &str) -> Configured {
    let mut found = Configured::default();
    for record in listing.split('\0') {
        // The value follows after a newline; a key holds none.
        let key = record.split('\n').next().unwrap_or_default();
        found.has_hooks_path |= key.eq_ignore_ascii_case("core.hookspath");
        let Some((name, _)) = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.')) else {
            continue;
        };
        if !found.filters.iter().any(|known| known == name) {
            found.filters.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn value(settings: &Settings<'_>, name: &str) -> Option<String> {
        let variables = settings.environment();
        let found = variables.into_iter().find(|(one, _)| one == name)?;
        Some(found.1.to_string_lossy().into_owned())
    }

    fn host(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        variables
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn the_hosts_git_variables_and_secrets_stay_behind_and_its_home_does_not() {
        let host = host(&[
            ("GIT_DIR", "/x"),
            ("GIT_CONFIG_COUNT", "9"),
            ("TOKEN", "s"),
            ("HOME", "/home/u"),
        ]);
        let settings = Settings {
            host: &host,
            root: Path::new("/ws"),
            run_hooks: false,
            filters: &[],
        };
        assert_eq!(value(&settings, "GIT_DIR"), None);
        assert_eq!(value(&settings, "TOKEN"), None);
        assert_eq!(value(&settings, "HOME").as_deref(), Some("/home/u"));
        let count = (OFF.len() + 1).to_string();
        assert_eq!(value(&settings, "GIT_CONFIG_COUNT"), Some(count));
    }

    #[test]
    fn no_program_is_looked_for_in_the_workspace() {
        let table = [
            (".:/usr/bin:bin", "/usr/bin"),
            ("/ws/bin:/usr/bin:/ws", "/usr/bin"),
            ("/wsx/bin:/usr/bin", "/wsx/bin:/usr/bin"),
            ("", FALLBACK_PATH),
        ];
        for (path, expected) in table {
            let host = host(&[("PATH", path)]);
            let settings = Settings {
                host: &host,
                root: Path::new("/ws"),
                run_hooks: false,
                filters: &[],
            };
            assert_eq!(value(&settings, "PATH").as_deref(), Some(expected), "{path}");
        }
    }

    #[test]
    fn filters_are_found_by_their_whole_name_and_emptied() {
        let listing = "filter.a.b=c.clean\nx\0filter.lfs.process\ny\0filter.lfs.clean\nz\0core.hooksPath\n.h\0user.name\nfilter.no.clean\0";
        let found = configured(listing);
        assert_eq!(found.filters, ["a.b=c", "lfs"]);
        assert!(found.has_hooks_path);
        let settings = Settings {
            host: &[],
            root: Path::new("/ws"),
            run_hooks: true,
            filters: &found.filters,
        };
        let config = settings.config();
        assert!(config.contains(&("filter.a.b=c.clean".into(), String::new())));
        assert!(config.contains(&("filter.lfs.required".into(), "false".into())));
        assert!(!config.iter().any(|(key, _)| key == "core.hooksPath"));
    }
}
