//! The environment of a command (pure): what comes from the host, what is given, what is never let through.
//!
//! A host secret reaches a command only if somebody named it. This keeps honest programs from seeing secrets; on
//! the host it is no barrier, because a process of the same user can read `/proc/<pid>/environ` of Node.

use crate::error::{Error, ErrorCode, Result};
use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;

/// Which of the host's other variables a command gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inherit {
    Names(Vec<String>),
    All,
}

/// Environment variables as given by a caller: (name, value), validated.
pub type Variables = Vec<(String, String)>;

/// An active Python environment: its directory and its directory of programs, as host paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveVenv {
    pub directory: OsString,
    pub programs: OsString,
}

pub struct EnvRequest<'a> {
    pub host: &'a [(OsString, OsString)],
    pub inherit: &'a Inherit,
    /// The workspace's own variables.
    pub workspace: &'a [(String, String)],
    /// This call's.
    pub call: &'a [(String, String)],
    pub venv: Option<&'a ActiveVenv>,
    /// The working directory, as a host path.
    pub pwd: &'a OsString,
    /// Where `HOME` points when the host has none: git and npm fail without one.
    pub home: Option<&'a OsString>,
}

/// What every command may know of the host: where programs, the home and temporary files are, and the language.
const BASE: [&str; 8] = [
    "PATH",
    "HOME",
    "USERPROFILE",
    "TEMP",
    "TMP",
    "TMPDIR",
    "LANG",
    "TERM",
];

const FALLBACK_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Nothing that waits for a keyboard. A value the caller gave wins; the host's own does not.
const QUIET: [(&str, &str); 3] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Makes a shell, the dynamic loader or an interpreter run somebody's code before the command's first
/// instruction. A list of names to inherit never carries these; `env` may, because there the value is spelled out.
fn runs_code_at_start(name: &str) -> bool {
    const NAMES: [&str; 20] = [
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "PROMPT_COMMAND",
        "PS0",
        "PS4",
        "IFS",
        "ZDOTDIR",
        "NODE_OPTIONS",
        "NODE_REPL_EXTERNAL_MODULE",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PERL5OPT",
        "PERL5DB",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "GCONV_PATH",
    ];
    NAMES.contains(&name)
        || ["LD_", "DYLD_", "BASH_FUNC_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Whether a list of names to inherit may carry this variable.
pub fn inheritable(name: &str) -> bool {
    !runs_code_at_start(name)
}

/// Refuses what no environment can hold. `label` names the option in the message.
pub fn validate(variables: &[(String, String)], label: &str) -> Result<()> {
    for (name, value) in variables {
        let fault = if name.is_empty() {
            "the name is empty"
        } else if name.contains('=') {
            "the name contains \"=\""
        } else if name.contains('\0') {
            "the name contains a NUL character"
        } else if value.contains('\0') {
            // The value may be a secret and is not quoted.
            "the value contains a NUL character"
        } else {
            continue;
        };
        let name = name.escape_debug();
        return Err(Error::new(
            ErrorCode::InvalidArgument,
            format!("{label}: \"{name}\" is no environment variable: {fault}"),
        ));
    }
    Ok(())
}

/// `NAME=value` of each variable, sorted by name. Order of strength: host, `inheritEnv`, fallbacks, venv,
/// the workspace's `env`, the call's `env`.
pub fn build(request: &EnvRequest<'_>) -> Result<Vec<CString>> {
    validate(request.workspace, "env")?;
    validate(request.call, "env")?;
    let mut variables: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (name, value) in request.host {
        let name_text = name.to_str();
        let listed = match (request.inherit, name_text) {
            (Inherit::All, _) => true,
            (Inherit::Names(names), Some(name)) => {
                !runs_code_at_start(name) && names.iter().any(|listed| listed == name)
            }
            (Inherit::Names(_), None) => false,
        };
        let base = name_text.is_some_and(|name| BASE.contains(&name) || name.starts_with("LC_"));
        if listed || base {
            variables.insert(name.as_bytes().to_vec(), value.as_bytes().to_vec());
        }
    }
    let mut fallback = |name: &str, value: &[u8]| {
        variables.entry(name.into()).or_insert_with(|| value.to_vec());
    };
    fallback("LANG", b"C.UTF-8");
    fallback("PATH", FALLBACK_PATH.as_bytes());
    if let Some(home) = request.home {
        fallback("HOME", home.as_bytes());
    }
    for (name, value) in QUIET {
        let named =
            matches!(request.inherit, Inherit::Names(names) if names.iter().any(|listed| listed == name));
        if !named {
            variables.remove(name.as_bytes());
        }
        variables.entry(name.into()).or_insert_with(|| value.into());
    }
    variables.insert(b"PWD".to_vec(), request.pwd.as_bytes().to_vec());
    if let Some(venv) = request.venv {
        let path = variables.entry(b"PATH".to_vec()).or_default();
        *path = [venv.programs.as_bytes(), b":", path].concat();
        variables.insert(b"VIRTUAL_ENV".to_vec(), venv.directory.as_bytes().to_vec());
        variables.remove(&b"PYTHONHOME"[..]);
    }
    for (name, value) in request.workspace.iter().chain(request.call) {
        variables.insert(name.clone().into(), value.clone().into());
    }
    // Host entries come from C strings; the given ones were validated.
    let entries = variables
        .into_iter()
        .map(|(name, value)| CString::new([&name[..], b"=", &value].concat()));
    entries.collect::<std::result::Result<_, _>>().map_err(|_| {
        Error::new(
            ErrorCode::InvalidArgument,
            "env: a variable contains a NUL character",
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    struct Given<'a> {
        host: &'a [(&'a str, &'a str)],
        inherit: Inherit,
        workspace: &'a [(&'a str, &'a str)],
        call: &'a [(&'a str, &'a str)],
        venv: bool,
    }

    const NOTHING: Given<'static> = Given {
        host: &[],
        inherit: Inherit::Names(vec![]),
        workspace: &[],
        call: &[],
        venv: false,
    };

    fn names(list: &[&str]) -> Inherit {
        Inherit::Names(list.iter().map(|name| name.to_string()).collect())
    }

    fn pairs(list: &[(&str, &str)]) -> Variables {
        list.iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    fn built(given: &Given<'_>) -> BTreeMap<String, String> {
        let host: Vec<_> = given
            .host
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let venv = ActiveVenv {
            directory: "/w/.venv".into(),
            programs: "/w/.venv/bin".into(),
        };
        let entries = build(&EnvRequest {
            host: &host,
            inherit: &given.inherit,
            workspace: &pairs(given.workspace),
            call: &pairs(given.call),
            venv: given.venv.then_some(&venv),
            pwd: &"/w".into(),
            home: Some(&"/home/me".into()),
        });
        let split = |entry: CString| {
            let text = entry.into_string().unwrap();
            text.split_once('=')
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .unwrap()
        };
        entries.unwrap().into_iter().map(split).collect()
    }

    #[test]
    fn only_the_small_base_comes_from_the_host() {
        let host = [
            ("OPENAI_API_KEY", "k"),
            ("PATH", "/first:/bin"),
            ("LC_TIME", "de"),
            ("USER", "u"),
            ("PAGER", "less"),
        ];
        let env = built(&Given {
            host: &host,
            ..NOTHING
        });
        let expected = [
            ("GIT_PAGER", "cat"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("HOME", "/home/me"),
            ("LANG", "C.UTF-8"),
            ("LC_TIME", "de"),
            ("PAGER", "cat"),
            ("PATH", "/first:/bin"),
            ("PWD", "/w"),
        ];
        assert_eq!(env, pairs(&expected).into_iter().collect());
    }

    #[test]
    fn a_list_of_names_brings_what_it_names_but_nothing_that_runs_code_at_start() {
        let host = [
            ("CI", "1"),
            ("BASH_ENV", "/x"),
            ("LD_PRELOAD", "/x.so"),
            ("NODE_OPTIONS", "-r x"),
            ("PAGER", "most"),
        ];
        let inherit = names(&["CI", "BASH_ENV", "LD_PRELOAD", "NODE_OPTIONS", "PAGER"]);
        let env = built(&Given {
            host: &host,
            inherit,
            ..NOTHING
        });
        assert_eq!(env["CI"], "1");
        assert_eq!(env["PAGER"], "most");
        for name in ["BASH_ENV", "LD_PRELOAD", "NODE_OPTIONS"] {
            assert!(!env.contains_key(name), "{name}");
        }
        let given = built(&Given {
            workspace: &[("NODE_OPTIONS", "--trace-warnings")],
            ..NOTHING
        });
        assert_eq!(given["NODE_OPTIONS"], "--trace-warnings");
    }

    #[test]
    fn inherit_all_brings_the_host_but_not_its_pager() {
        let host = [("SECRET", "s"), ("PAGER", "less"), ("GIT_TERMINAL_PROMPT", "1")];
        let env = built(&Given {
            host: &host,
            inherit: Inherit::All,
            ..NOTHING
        });
        assert_eq!(
            (&*env["SECRET"], &*env["PAGER"], &*env["GIT_TERMINAL_PROMPT"]),
            ("s", "cat", "0")
        );
    }

    #[test]
    fn the_call_wins_over_the_workspace_and_the_workspace_over_the_host() {
        let given = Given {
            host: &[("A", "host"), ("B", "host"), ("C", "host")],
            inherit: Inherit::All,
            workspace: &[("B", "workspace"), ("C", "workspace"), ("PAGER", "less")],
            call: &[("C", "call")],
            ..NOTHING
        };
        let env = built(&given);
        assert_eq!(
            (&*env["A"], &*env["B"], &*env["C"], &*env["PAGER"]),
            ("host", "workspace", "call", "less")
        );
    }

    #[test]
    fn a_venv_comes_first_on_the_path_unless_the_path_is_given() {
        let host = [("PATH", "/bin"), ("PYTHONHOME", "/old")];
        let env = built(&Given {
            host: &host,
            inherit: Inherit::All,
            venv: true,
            ..NOTHING
        });
        assert_eq!(
            (&*env["PATH"], &*env["VIRTUAL_ENV"]),
            ("/w/.venv/bin:/bin", "/w/.venv")
        );
        assert!(!env.contains_key("PYTHONHOME"));
        let explicit = built(&Given {
            host: &host,
            venv: true,
            call: &[("PATH", "/mine")],
            ..NOTHING
        });
        assert_eq!(explicit["PATH"], "/mine");
    }

    #[test]
    fn names_and_values_that_no_environment_can_hold_are_refused() {
        for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0y")] {
            let error = validate(&pairs(&[(name, value)]), "env").unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument);
            assert!(!error.message.contains("x\0y"));
        }
        assert_eq!(validate(&pairs(&[("A b", "=\n€"), ("x", "")]), "env"), Ok(()));
    }
}
