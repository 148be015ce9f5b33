//! The options of wrappers that stand before the command they run, and the command after them.

use super::{Inner, Wrapped, base_name, loose_wrapper};
use crate::policy::command::word::Word;

/// The options of a wrapper that matter for finding the command after them.
pub(super) struct Options {
    /// Short options without and with a value.
    pub(super) flags: &'static str,
    pub(super) valued: &'static str,
    pub(super) long_flags: &'static [&'static str],
    pub(super) long_valued: &'static [&'static str],
    /// Operands before the command: the duration of `timeout`.
    pub(super) operands: usize,
    /// `NAME=value` may stand before the command.
    pub(super) assignments: bool,
}

pub(super) const NO_OPTIONS: Options = Options {
    flags: "",
    valued: "",
    long_flags: &[],
    long_valued: &[],
    operands: 0,
    assignments: false,
};

pub(super) const ENV: Options = Options {
    flags: "iv0",
    valued: "uCa",
    long_flags: &["ignore-environment", "null", "debug"],
    long_valued: &["unset", "chdir", "argv0"],
    assignments: true,
    ..NO_OPTIONS
};
pub(super) const COPROC: Options = Options {
    assignments: true,
    ..NO_OPTIONS
};
pub(super) const NICE: Options = Options {
    valued: "n",
    long_valued: &["adjustment"],
    ..NO_OPTIONS
};
pub(super) const TIME: Options = Options {
    flags: "pavV",
    valued: "fo",
    long_flags: &["portability", "append", "verbose"],
    long_valued: &["format", "output"],
    // In bash it is a keyword, and `time A=b cmd` runs cmd.
    assignments: true,
    ..NO_OPTIONS
};
pub(super) const TIMEOUT: Options = Options {
    flags: "vfp",
    valued: "ks",
    long_flags: &["foreground", "preserve-status", "verbose"],
    long_valued: &["kill-after", "signal"],
    operands: 1,
    ..NO_OPTIONS
};
pub(super) const STDBUF: Options = Options {
    valued: "ioe",
    long_valued: &["input", "output", "error"],
    ..NO_OPTIONS
};
pub(super) const SETSID: Options = Options {
    flags: "cfw",
    long_flags: &["ctty", "fork", "wait"],
    ..NO_OPTIONS
};
pub(super) const IONICE: Options = Options {
    flags: "t",
    valued: "cn",
    long_flags: &["ignore"],
    long_valued: &["class", "classdata"],
    ..NO_OPTIONS
};
pub(super) const TASKSET: Options = Options {
    flags: "abcdfimorRv",
    valued: "TPD",
    operands: 1,
    ..NO_OPTIONS
};
pub(super) const EXEC: Options = Options {
    flags: "cl",
    valued: "a",
    ..NO_OPTIONS
};
pub(super) const SUDO: Options = Options {
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
pub(super) const XARGS: Options = Options {
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
pub(super) struct Passed {
    pub(super) at: usize,
    pub(super) seen: Vec<(String, Option<Word>)>,
}

/// Steps over the options of `arguments`; `None` at one that is not known or not literal.
pub(super) fn pass_options(arguments: &[Word], options: &Options) -> Option<Passed> {
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
pub(super) fn short_cluster(
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

pub(super) fn command_after(name: &str, arguments: &[Word], open_ended: bool, options: &Options) -> Wrapped {
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
