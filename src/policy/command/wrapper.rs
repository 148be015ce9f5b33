//! Commands that run other commands: `env rm x`, `timeout 5 sh -c '...'`, `find -exec`. What they would run is
//! taken out of their arguments; how a wrapper itself is judged is left to `decide`.

use super::word::{Piece, Word};

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

/// The options of a wrapper that matter for finding the command after them.
struct Options {
    /// Short options without and with a value.
    flags: &'static str,
    valued: &'static str,
    long_flags: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// Operands before the command: the duration of `timeout`.
    operands: usize,
    /// `NAME=value` may stand before the command.
    assignments: bool,
}

const NO_OPTIONS: Options = Options {
    flags: "",
    valued: "",
    long_flags: &[],
    long_valued: &[],
    operands: 0,
    assignments: false,
};

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

const ENV: Options = Options {
    flags: "iv0",
    valued: "uCa",
    long_flags: &["ignore-environment", "null", "debug"],
    long_valued: &["unset", "chdir", "argv0"],
    assignments: true,
    ..NO_OPTIONS
};
const COPROC: Options = Options {
    assignments: true,
    ..NO_OPTIONS
};
const NICE: Options = Options {
    valued: "n",
    long_valued: &["adjustment"],
    ..NO_OPTIONS
};
const TIME: Options = Options {
    flags: "pavV",
    valued: "fo",
    long_flags: &["portability", "append", "verbose"],
    long_valued: &["format", "output"],
    // In bash it is a keyword, and `time A=b cmd` runs cmd.
    assignments: true,
    ..NO_OPTIONS
};
const TIMEOUT: Options = Options {
    flags: "vfp",
    valued: "ks",
    long_flags: &["foreground", "preserve-status", "verbose"],
    long_valued: &["kill-after", "signal"],
    operands: 1,
    ..NO_OPTIONS
};
const STDBUF: Options = Options {
    valued: "ioe",
    long_valued: &["input", "output", "error"],
    ..NO_OPTIONS
};
const SETSID: Options = Options {
    flags: "cfw",
    long_flags: &["ctty", "fork", "wait"],
    ..NO_OPTIONS
};
const IONICE: Options = Options {
    flags: "t",
    valued: "cn",
    long_flags: &["ignore"],
    long_valued: &["class", "classdata"],
    ..NO_OPTIONS
};
const TASKSET: Options = Options {
    flags: "abcdfimorRv",
    valued: "TPD",
    operands: 1,
    ..NO_OPTIONS
};
const EXEC: Options = Options {
    flags: "cl",
    valued: "a",
    ..NO_OPTIONS
};
const SUDO: Options = Options {
    // -s, -i and -e are absent on purpose: they start a shell or an editor.
    flags: "AbEHKkNnPSBL",
    valued: "CDghpRrTtuU",
    long_flags: &[
        "askpass",
        "background",
        "preserve-env",
        "set-home",
        "non-interactive",
        "stdin",
        "reset-timestamp",
    ],
    long_valued: &[
        "user",
        "group",
        "host",
        "prompt",
        "chdir",
        "chroot",
        "close-from",
        "role",
        "type",
        "command-timeout",
        "other-user",
    ],
    assignments: true,
    ..NO_OPTIONS
};
const XARGS: Options = Options {
    flags: "0oprtx",
    valued: "adEILnPs",
    long_flags: &[
        "null",
        "interactive",
        "no-run-if-empty",
        "verbose",
        "exit",
        "open-tty",
    ],
    long_valued: &[
        "arg-file",
        "delimiter",
        "max-lines",
        "max-args",
        "max-procs",
        "max-chars",
        "process-slot-var",
        "eof",
        "replace",
    ],
    ..NO_OPTIONS
};

/// Where the options end, and what was seen on the way.
struct Passed {
    at: usize,
    seen: Vec<(String, Option<Word>)>,
}

/// Steps over the options of `arguments`; `None` at one that is not known or not literal.
fn pass_options(arguments: &[Word], options: &Options) -> Option<Passed> {
    let mut passed = Passed {
        at: 0,
        seen: Vec::new(),
    };
    while let Some(word) = arguments.get(passed.at) {
        let start = word.fixed_start();
        if !start.starts_with('-') || start == "-" {
            // A word that begins with an unknown part may be an option too, but then it is no literal command
            // name either, and that is a doubt of its own.
            break;
        }
        passed.at += 1;
        if start == "--" && word.fixed().is_some() {
            break;
        }
        let value_follows = if let Some(long) = start.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, _)) => (name, true),
                None => (long, false),
            };
            let valued = options.long_valued.contains(&name);
            if !attached && word.fixed().is_none() || !(valued || options.long_flags.contains(&name)) {
                return None;
            }
            let value = attached
                .then(|| word.without_start(name.chars().count() + 3))
                .flatten();
            passed.seen.push((name.to_owned(), value));
            // Optional values of long options are attached only.
            valued && !attached && !matches!(name, "eof" | "replace" | "max-lines")
        } else {
            short_cluster(word, &start, options, &mut passed.seen)?
        };
        if value_follows {
            let value = arguments.get(passed.at)?;
            if let Some(last) = passed.seen.last_mut() {
                last.1 = Some(value.clone());
            }
            passed.at += 1;
        }
    }
    Some(passed)
}

/// Reads `-abc`; whether the value of its last option is the next word.
fn short_cluster(
    word: &Word,
    start: &str,
    options: &Options,
    seen: &mut Vec<(String, Option<Word>)>,
) -> Option<bool> {
    for (index, letter) in start.chars().enumerate().skip(1) {
        if options.valued.contains(letter) {
            let value = word.without_start(index + 1);
            let follows = value.is_none() && word.fixed().is_some();
            seen.push((letter.to_string(), value));
            return Some(follows);
        }
        if !options.flags.contains(letter) {
            return None;
        }
        seen.push((letter.to_string(), None));
    }
    word.fixed().map(|_| false)
}

fn command_after(name: &str, arguments: &[Word], open_ended: bool, options: &Options) -> Wrapped {
    // `env - cmd` is `env -i cmd`.
    let arguments = match arguments.first().and_then(Word::fixed) {
        Some(first) if first == "-" && options.assignments => &arguments[1..],
        _ => arguments,
    };
    let Some(passed) = pass_options(arguments, options) else {
        let mut wrapped = loose_wrapper(arguments);
        wrapped.doubt = Some(format!("uses an option of {name:?} that is not known here"));
        return wrapped;
    };
    let mut wrapped = Wrapped {
        transparent: true,
        ..Wrapped::default()
    };
    for (option, value) in passed.seen {
        match (option.as_str(), value) {
            ("C" | "chdir" | "D", Some(value)) if options.assignments => wrapped.folder = Some(value),
            ("o" | "output", Some(value)) if base_name(name) == "time" => wrapped.writes.push(value),
            _ => {}
        }
    }
    let mut at = passed.at;
    while let Some((variable, value)) = arguments
        .get(at)
        .filter(|_| options.assignments)
        .and_then(assignment)
    {
        wrapped.assignments.push((variable, value));
        at += 1;
    }
    at += options.operands;
    let words: Vec<Word> = arguments.get(at..).unwrap_or_default().to_vec();
    if words.is_empty() {
        if open_ended {
            wrapped.doubt = Some("runs what its input names".to_owned());
        }
        return wrapped;
    }
    wrapped.inner.push(Inner::Command { words, open_ended });
    wrapped
}

/// The two sides of `NAME=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let start = word.fixed_start();
    let (name, _) = start.split_once('=')?;
    let value = word.without_start(name.chars().count() + 1);
    Some((name.to_owned(), value.unwrap_or_else(|| Word::quoted(""))))
}

/// `nice -5 cmd`, the old spelling.
fn without_number_flag(arguments: &[Word]) -> Vec<Word> {
    let is_number = arguments.first().and_then(Word::fixed).is_some_and(|text| {
        text.strip_prefix('-')
            .map(|rest| rest.trim_start_matches(['-', '+']))
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    });
    arguments[usize::from(is_number)..].to_vec()
}

fn has_short(arguments: &[Word], letter: char) -> bool {
    arguments.iter().any(|word| {
        let start = word.fixed_start();
        word.fixed().is_none()
            || (start.starts_with('-') && !start.starts_with("--") && start.contains(letter))
    })
}

fn command_builtin(name: &str, arguments: &[Word], open_ended: bool) -> Wrapped {
    let asks = |word: &Word| {
        word.fixed()
            .is_some_and(|text| text.starts_with('-') && text.contains(['v', 'V']))
    };
    if arguments.first().is_some_and(asks) {
        // `command -v git` only looks a name up.
        return Wrapped {
            transparent: true,
            ..Wrapped::default()
        };
    }
    let options = Options {
        flags: "p",
        ..NO_OPTIONS
    };
    command_after(name, arguments, open_ended, &options)
}

fn xargs(name: &str, arguments: &[Word]) -> Wrapped {
    // The old spellings -i, -e and -l take an optional attached value.
    let modern: Vec<Word> = arguments
        .iter()
        .map(|word| match word.fixed().as_deref() {
            Some("-i") => Word::quoted("-I{}"),
            Some("-e" | "-l") => Word::quoted("-x"),
            _ => word.clone(),
        })
        .collect();
    let Some(passed) = pass_options(&modern, &XARGS) else {
        return command_after(name, arguments, true, &XARGS);
    };
    let replaced = passed
        .seen
        .iter()
        .find_map(|(option, value)| match option.as_str() {
            "I" => Some(value.as_ref().and_then(Word::fixed).unwrap_or_default()),
            "replace" => Some(
                value
                    .as_ref()
                    .and_then(Word::fixed)
                    .unwrap_or_else(|| "{}".to_owned()),
            ),
            _ => None,
        });
    let mut words = modern[passed.at..].to_vec();
    let mut wrapped = Wrapped {
        transparent: true,
        ..Wrapped::default()
    };
    if words.is_empty() {
        return wrapped;
    }
    let open_ended = match &replaced {
        Some(mark) => {
            words = words.iter().map(|word| with_replaced(word, mark)).collect();
            false
        }
        None => true,
    };
    wrapped.inner.push(Inner::Command { words, open_ended });
    wrapped
}

/// The word, unknown as a whole if it holds the mark that the wrapper replaces.
fn with_replaced(word: &Word, mark: &str) -> Word {
    let holds = word
        .fixed()
        .is_none_or(|text| mark.is_empty() || text.contains(mark));
    if holds {
        Word {
            pieces: vec![Piece::Unknown],
        }
    } else {
        word.clone()
    }
}

/// `-exec cmd {} \;` and its kin. `find` itself stays visible: it walks and may delete.
fn find(arguments: &[Word], open_ended: bool) -> Wrapped {
    let mut wrapped = Wrapped::default();
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let Some(text) = word.fixed() else { continue };
        if !matches!(text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let start = at;
        while let Some(text) = arguments.get(at).map(Word::fixed) {
            let after_braces = at > start && arguments[at - 1].fixed().as_deref() == Some("{}");
            if text.as_deref() == Some(";") || (text.as_deref() == Some("+") && after_braces) {
                break;
            }
            at += 1;
        }
        let words: Vec<Word> = arguments[start..at]
            .iter()
            .map(|word| with_replaced(word, "{}"))
            .collect();
        if !words.is_empty() {
            wrapped.inner.push(Inner::Command {
                words,
                open_ended: false,
            });
        }
        at += 1;
    }
    wrapped.doubt = open_ended.then(|| "lets its input add actions to find".to_owned());
    wrapped
}

fn shell(name: &str, arguments: &[Word], open_ended: bool) -> Wrapped {
    let from_input = || Wrapped::doubtful(format!("lets {name} run what its input holds"));
    let unknown = || {
        Wrapped::doubtful(format!(
            "starts {name} with a script that is known at run time only"
        ))
    };
    let mut takes_script = false;
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.literal() else {
            // A file name with wildcards is an operand; an unknown word may be anything.
            return unknown();
        };
        if text == "-" || text == "--" {
            at += 1;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            at += match long {
                "rcfile" | "init-file" => 2,
                _ => 1,
            };
        } else if text.starts_with(['-', '+']) && text.len() > 1 {
            at += 1;
            takes_script |= text.starts_with('-') && text.contains('c');
            if text.contains('s') && text.starts_with('-') {
                return from_input();
            }
            at += text.chars().filter(|letter| matches!(letter, 'o' | 'O')).count();
        } else {
            break;
        }
    }
    let Some(operand) = arguments.get(at) else {
        return from_input();
    };
    if !takes_script {
        // A script file: judged as the command it is.
        return Wrapped {
            doubt: open_ended
                .then(|| format!("lets {name} run a file that its input names"))
                .filter(|_| operand.fixed().is_none()),
            ..Wrapped::default()
        };
    }
    let Some(script) = operand.literal() else {
        return unknown();
    };
    Wrapped {
        inner: vec![Inner::Script(script)],
        transparent: true,
        doubt: (name == "zsh").then(|| "runs a script in zsh, whose language is only partly read".to_owned()),
        ..Wrapped::default()
    }
}

fn eval(arguments: &[Word], open_ended: bool) -> Wrapped {
    let literal: Option<Vec<String>> = arguments.iter().map(Word::literal).collect();
    match literal {
        Some(texts) if !open_ended => Wrapped {
            inner: vec![Inner::Script(texts.join(" "))],
            transparent: true,
            ..Wrapped::default()
        },
        _ => Wrapped::doubtful("evaluates text that is known at run time only"),
    }
}

fn trap(arguments: &[Word]) -> Wrapped {
    let operands = match arguments.first().and_then(Word::fixed) {
        Some(first) if first == "--" => &arguments[1..],
        _ => arguments,
    };
    match operands {
        [] | [_] => Wrapped::default(),
        [action, ..] => match action.literal() {
            Some(text) if text == "-" || text.starts_with("-l") || text.starts_with("-p") => {
                Wrapped::default()
            }
            Some(script) => Wrapped {
                inner: vec![Inner::Script(script)],
                ..Wrapped::default()
            },
            None => Wrapped::doubtful("traps a signal with text that is known at run time only"),
        },
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Word> {
        line.split(' ')
            .map(|word| Word::quoted(&word.replace('_', " ")))
            .collect()
    }

    /// The inner commands, joined by ` ; `; scripts in brackets; `?` at the end for a doubt.
    fn inner(line: &str) -> String {
        let Some(wrapped) = unwrap(&words(line), false) else {
            return "no wrapper".to_owned();
        };
        let mut shown: Vec<String> = wrapped
            .inner
            .iter()
            .map(|inner| match inner {
                Inner::Script(text) => format!("[{text}]"),
                Inner::Command { words, open_ended } => {
                    let mut text: Vec<String> = words
                        .iter()
                        .map(|word| word.fixed().unwrap_or("*".to_owned()))
                        .collect();
                    if *open_ended {
                        text.push("...".to_owned());
                    }
                    text.join(" ")
                }
            })
            .collect();
        if wrapped.doubt.is_some() {
            shown.push("?".to_owned());
        }
        shown.join(" ; ")
    }

    #[test]
    fn the_command_behind_a_wrapper_is_found() {
        for (line, expected) in [
            ("env rm x", "rm x"),
            ("/usr/bin/env -i -u A FOO=1 BAR=2 rm x", "rm x"),
            ("env - rm x", "rm x"),
            ("env -C sub rm x", "rm x"),
            ("env -S rm_x", "[rm x] ; ?"),
            ("env", ""),
            ("nice rm x", "rm x"),
            ("nice -n 5 rm x", "rm x"),
            ("nice -5 rm x", "rm x"),
            ("nice --adjustment=5 rm", "rm"),
            ("nohup rm x", "rm x"),
            ("time -p rm x", "rm x"),
            ("timeout 5 rm x", "rm x"),
            ("timeout -k 1 --signal=KILL 5s rm x", "rm x"),
            ("timeout -s9 5 rm", "rm"),
            ("sudo -u root -n A=b rm x", "rm x"),
            ("sudo -s rm", "?"),
            ("xargs rm", "rm ..."),
            ("xargs -0 -n1 rm -f", "rm -f ..."),
            ("xargs -I {} mv {} x", "mv * x"),
            ("xargs -i rm {}", "rm *"),
            ("xargs -I% sh -c rm_%", "sh -c *"),
            ("xargs", ""),
            ("command rm x", "rm x"),
            ("command -v rm", ""),
            ("exec rm x", "rm x"),
            ("exec -a name rm", "rm"),
            ("builtin cd x", "cd x"),
            ("sh -c rm_x", "[rm x]"),
            ("bash -euxo pipefail -c rm_x arg0", "[rm x]"),
            ("bash -lc rm_x", "[rm x]"),
            ("sh", "?"),
            ("sh -s", "?"),
            ("bash script.sh", ""),
            ("sh -c", "?"),
            ("eval rm x", "[rm x]"),
            ("trap rm_x EXIT", "[rm x]"),
            ("trap - EXIT", ""),
            ("find . -exec rm {} ;", "rm *"),
            ("find . -exec a {} + -okdir b ;", "a * ; b"),
            ("find . -name x", ""),
            (". ./s", "?"),
            ("alias ls=rm", "?"),
            ("alias", "no wrapper"),
            ("busybox rm x", "rm x"),
            ("stdbuf -oL rm x", "rm x"),
            ("watch -n 1 rm_x", "[rm x]"),
            ("env --what rm", "?"),
            ("rm x", "no wrapper"),
        ] {
            assert_eq!(inner(line), expected, "{line}");
        }
    }

    #[test]
    fn a_wrapper_that_its_input_completes_is_a_doubt() {
        for line in ["env", "sh", "sh -c", "nice"] {
            assert!(unwrap(&words(line), true).unwrap().doubt.is_some(), "{line}");
        }
        assert!(unwrap(&words("env cat"), true).unwrap().doubt.is_none());
    }

    #[test]
    fn what_a_wrapper_sets_and_writes_is_kept() {
        let wrapped = unwrap(&words("env -C sub PATH=. rm"), false).unwrap();
        assert_eq!(wrapped.assignments, [("PATH".to_owned(), Word::quoted("."))]);
        assert_eq!(wrapped.folder, Some(Word::quoted("sub")));
        let wrapped = unwrap(&words("time -o out rm"), false).unwrap();
        assert_eq!(wrapped.writes, [Word::quoted("out")]);
    }
}
