//! Commands that run other commands: `env rm x`, `timeout 5 sh -c '...'`, `find -exec`. What they would run is
//! taken out of their arguments; how a wrapper itself is judged is left to `decide`.

mod argument;
mod option;
mod script;
#[cfg(test)]
mod tests;

use super::word::Word;
use argument::{command_builtin, find, has_short, without_number_flag, xargs};
use option::{
    COPROC, ENV, EXEC, IONICE, NICE, NO_OPTIONS, SETSID, STDBUF, SUDO, TASKSET, TIME, TIMEOUT, command_after,
};
use script::{eval, shell, trap};

/// What a wrapper would start.
#[derive(Clone, Debug, PartialEq)]
pub enum Inner {
    /// An argument list; `open_ended` when the wrapper adds more words at run time.
    Command { words: Vec<Word>, open_ended: bool },
    /// Text that a shell reads.
    Script(String),
}

#[derive(Clone, Debug, Default)]
pub struct Wrapped {
    pub inner: Vec<Inner>,
    /// The wrapper adds nothing but circumstances, so a rule for what it runs is enough.
    pub transparent: bool,
    /// What keeps the reading from being certain, in words that end "this line ...".
    pub doubt: Option<String>,
    /// Environment it sets: `env PATH=x cmd`.
    pub assignments: Vec<(String, Word)>,
    /// The folder the inner command starts in: `env -C`.
    pub folder: Option<Word>,
    /// Files it writes on its own account: `time -o`.
    pub writes: Vec<Word>,
}

impl Wrapped {
    fn doubtful(text: impl Into<String>) -> Self {
        Self {
            doubt: Some(text.into()),
            ..Self::default()
        }
    }
}

/// The name without its directory: `/bin/rm` is `rm`.
pub fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Taken as wrappers whose arguments may be a command from any position on; their options are not modelled.
const LOOSE: &[&str] = &[
    "arch",
    "bwrap",
    "caffeinate",
    "chpst",
    "chroot",
    "cpulimit",
    "dbus-run-session",
    "dumb-init",
    "entr",
    "expect",
    "fakeroot",
    "firejail",
    "flock",
    "gdb",
    "gosu",
    "hyperfine",
    "linux32",
    "linux64",
    "ltrace",
    "npx",
    "bunx",
    "pnpx",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "proot",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setuidgid",
    "softlimit",
    "strace",
    "su",
    "systemd-run",
    "tini",
    "tmux",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "xvfb-run",
];

/// Whether a denied command may hide anywhere among its arguments.
pub fn is_loose(name: &str) -> bool {
    LOOSE.contains(&base_name(name))
}

/// `None`: not a wrapper.
pub fn unwrap(words: &[Word], open_ended: bool) -> Option<Wrapped> {
    let name = words.first()?.literal()?;
    let arguments = &words[1..];
    let wrapped = match base_name(&name) {
        "env" => command_after(&name, arguments, open_ended, &ENV),
        "nice" => command_after(&name, &without_number_flag(arguments), open_ended, &NICE),
        // A keyword of bash: assignments may follow.
        "coproc" => Wrapped {
            doubt: Some("uses a keyword of bash that sh does not know".to_owned()),
            ..command_after(&name, arguments, open_ended, &COPROC)
        },
        "nohup" | "builtin" | "busybox" | "toybox" => {
            command_after(&name, arguments, open_ended, &NO_OPTIONS)
        }
        "time" => command_after(&name, arguments, open_ended, &TIME),
        "timeout" => command_after(&name, arguments, open_ended, &TIMEOUT),
        "stdbuf" => command_after(&name, arguments, open_ended, &STDBUF),
        "setsid" => command_after(&name, arguments, open_ended, &SETSID),
        "ionice" => command_after(&name, arguments, open_ended, &IONICE),
        "taskset" | "chrt" => command_after(&name, arguments, open_ended, &TASKSET),
        "exec" => command_after(&name, arguments, open_ended, &EXEC),
        "command" => command_builtin(&name, arguments, open_ended),
        "sudo" | "doas" => Wrapped {
            transparent: false,
            ..command_after(&name, arguments, open_ended, &SUDO)
        },
        "xargs" => xargs(&name, arguments),
        "find" | "gfind" => find(arguments, open_ended),
        "sh" | "dash" | "ash" | "bash" | "rbash" | "ksh" | "mksh" | "zsh" => {
            shell(base_name(&name), arguments, open_ended)
        }
        "fish" | "csh" | "tcsh" | "pwsh" | "powershell" | "cmd" | "cmd.exe" => {
            Wrapped::doubtful(format!("starts {name:?}, whose language is not read"))
        }
        "eval" => eval(arguments, open_ended),
        "trap" => trap(arguments),
        "." | "source" => Wrapped::doubtful("runs a file in this shell"),
        "alias"
            if arguments
                .iter()
                .any(|word| word.fixed().is_none_or(|text| text.contains('='))) =>
        {
            Wrapped::doubtful("gives a name another meaning")
        }
        "shopt" | "enable" | "bind" | "complete" | "compgen" | "fc" => {
            Wrapped::doubtful(format!("changes how the shell reads or runs commands ({name})"))
        }
        "hash" | "mapfile" | "readarray" if has_short(arguments, if name == "hash" { 'p' } else { 'C' }) => {
            Wrapped::doubtful(format!("names a program or a callback for {name}"))
        }
        loose if is_loose(loose) => loose_wrapper(arguments),
        _ => return None,
    };
    Some(wrapped)
}

/// Arguments that read like a script are read as one; the rest is compared word by word by the rules.
fn loose_wrapper(arguments: &[Word]) -> Wrapped {
    Wrapped {
        inner: arguments
            .iter()
            .filter_map(Word::literal)
            .filter(|text| text.contains([' ', '\t', '\n', ';']))
            .map(Inner::Script)
            .collect(),
        ..Wrapped::default()
    }
}
