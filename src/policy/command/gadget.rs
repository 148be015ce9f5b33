//! Options by which an ordinary command writes a file or runs a program of the caller's choice. An allow rule for
//! `find` is meant for looking, not for `find -delete`; so such an option turns "allow by rule" into "ask", unless
//! the rule names it.

use super::Simple;
use super::sed::only_edits_the_stream;
use super::word::Word;
use super::wrapper::base_name;

/// What is wrong with the arguments, in words that follow the command's name. The first `covered` words are named
/// by the rule itself.
pub fn gadget(command: &Simple, covered: usize) -> Option<String> {
    let name = command.words.first()?.literal()?;
    let table = base_name(&name);
    let arguments = &command.words[1..];
    let rules = options_of(table);
    let has_gadgets = !rules.is_empty() || matches!(table, "sed" | "awk" | "gawk" | "mawk" | "nawk" | "git");
    if command.open_ended && has_gadgets {
        return Some("gets more arguments from its input".to_owned());
    }
    let open = arguments.get(covered.saturating_sub(1)..).unwrap_or_default();
    if let Some(option) = open.iter().find_map(|word| matching(word, rules)) {
        return Some(format!("may write or run something through {option}"));
    }
    match table {
        "sed" | "gsed" => sed(arguments, covered),
        "awk" | "gawk" | "mawk" | "nawk" => awk(arguments),
        "git" => git(arguments, covered),
        // `sh -c '...'` is read like the line itself; the commands of a file are not seen.
        "sh" | "dash" | "ash" | "bash" | "rbash" | "ksh" | "mksh" | "zsh"
            if !command.transparent && covered < 2 =>
        {
            Some("runs a file whose commands are not seen here".to_owned())
        }
        _ => None,
    }
}

/// Short options as `-x`, long ones as `--name`, others (find) as a whole word.
fn options_of(name: &str) -> &'static [&'static str] {
    match name {
        "find" | "gfind" => &[
            "=-delete",
            "=-fprint",
            "=-fprint0",
            "=-fprintf",
            "=-fls",
            "=-exec",
            "=-execdir",
            "=-ok",
            "=-okdir",
        ],
        "sort" | "gsort" => &["-o", "--output", "--compress-program"],
        "tar" | "gtar" | "bsdtar" => &[
            "-I",
            "-F",
            "--checkpoint-action",
            "--use-compress-program",
            "--to-command",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
        "man" => &["-P", "-H", "--pager", "--html"],
        "rg" => &["-z", "--pre", "--hostname-bin", "--search-zip"],
        "ag" => &["--pager"],
        "fd" | "fdfind" => &["-x", "-X", "--exec", "--exec-batch"],
        "tree" => &["-o"],
        "rsync" => &["-e", "--rsh", "--rsync-path"],
        "scp" | "sftp" | "ssh" => &["-S", "-o", "-D", "-F", "-J", "-L", "-R", "-W"],
        "zip" => &["-T", "--unzip-command"],
        "cargo" => &["--config"],
        "go" => &["=-exec", "=-toolexec"],
        "jq" | "yq" => &["-i", "--in-place", "--inplace"],
        "less" | "more" | "most" => &["-o", "-O", "-k", "--log-file", "--lesskey-file"],
        "date" => &["-s", "--set"],
        "uniq" | "cut" | "tr" | "wc" | "head" | "tail" | "cat" | "ls" | "grep" => &[],
        _ => &[],
    }
}

fn matching(word: &Word, rules: &[&str]) -> Option<String> {
    let text = word.fixed_start();
    if !text.starts_with('-') {
        return None;
    }
    rules
        .iter()
        .find(|rule| match rule.strip_prefix('=') {
            Some(whole) => text == whole,
            None => is_option(&text, rule),
        })
        .map(|rule| rule.trim_start_matches('=').to_owned())
}

/// Clusters (`-no`), attached values (`-ofile`), `--name=value` and the abbreviations that getopt_long takes.
fn is_option(text: &str, rule: &str) -> bool {
    if let Some(long) = rule.strip_prefix("--") {
        let Some(given) = text.strip_prefix("--") else {
            return false;
        };
        let given = given.split('=').next().unwrap_or(given);
        return given.len() >= 2 && long.starts_with(given);
    }
    let letter = rule.chars().nth(1).unwrap_or('\0');
    !text.starts_with("--") && text.chars().skip(1).any(|c| c == letter)
}

fn sed(arguments: &[Word], covered: usize) -> Option<String> {
    let mut scripts: Vec<Option<String>> = Vec::new();
    let mut operands: Vec<&Word> = Vec::new();
    let mut named_expression = false;
    let mut words = arguments.iter().enumerate();
    while let Some((index, word)) = words.next() {
        let text = word.fixed_start();
        if !text.starts_with('-') || text == "-" {
            operands.push(word);
            continue;
        }
        let allowed = index + 1 < covered;
        if let Some(long) = text.strip_prefix("--") {
            match long.split('=').next().unwrap_or(long) {
                "expression" => {
                    named_expression = true;
                    let own = word.without_start("--expression=".len());
                    scripts.push(own.and_then(|word| word.fixed()));
                }
                "quiet" | "silent" | "regexp-extended" | "posix" | "unbuffered" | "separate"
                | "null-data" | "debug" | "sandbox" => {}
                _ if allowed => {}
                _ => return Some(format!("may write or run something through {long:?}")),
            }
            continue;
        }
        for (place, letter) in text.chars().enumerate().skip(1) {
            match letter {
                'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
                'e' => {
                    named_expression = true;
                    let attached = word.without_start(place + 1);
                    let script = attached.or_else(|| words.next().map(|(_, next)| next.clone()));
                    scripts.push(script.and_then(|word| word.fixed()));
                    break;
                }
                'i' if allowed => break,
                _ => return Some(format!("may write or run something through -{letter}")),
            }
        }
    }
    if !named_expression {
        scripts.push(operands.first().and_then(|word| word.fixed()));
    }
    let plain = scripts
        .iter()
        .all(|script| script.as_deref().is_some_and(only_edits_the_stream));
    (!plain).then(|| "has a script that may write files or run commands".to_owned())
}

fn awk(arguments: &[Word]) -> Option<String> {
    let risky = "has a program that may write files or run commands";
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = word.fixed_start();
        match text.as_str() {
            "-F" | "-v" => drop(words.next()),
            _ if text.starts_with("-F") || text.starts_with("-v") => {}
            _ if text.starts_with('-') => return Some(risky.to_owned()),
            _ => {
                let program = word.fixed();
                // `system(`, `"cmd" | getline`, `print > f`, `@load`: by their marks, comparisons with > included.
                let plain = program.is_some_and(|program| {
                    !program.contains(['|', '>', '@', '<'])
                        && !program.contains("system")
                        && !program.contains("getline")
                });
                return (!plain).then(|| risky.to_owned());
            }
        }
    }
    None
}

/// git runs programs that its options, its configuration and some of its commands name.
fn git(arguments: &[Word], covered: usize) -> Option<String> {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.fixed_start();
        if !text.starts_with('-') {
            break;
        }
        let option = text.split('=').next().unwrap_or(&text);
        match option {
            "-c" | "-p" | "--paginate" | "--config-env" | "--exec-path" if at + 1 >= covered => {
                return Some(format!("may run something through {option}"));
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" if !text.contains('=') => {
                at += 1
            }
            _ => {}
        }
        at += 1;
    }
    let command = arguments.get(at).and_then(Word::fixed)?;
    let rest = &arguments[at + 1..];
    if at + 2 > covered
        && matches!(
            command.as_str(),
            "config"
                | "filter-branch"
                | "difftool"
                | "mergetool"
                | "bisect"
                | "submodule"
                | "daemon"
                | "shell"
                | "upload-pack"
                | "instaweb"
                | "web--browse"
                | "var"
                | "credential"
                | "maintenance"
                | "hook"
                | "send-email"
                | "help"
        )
    {
        return Some(format!("may run programs through \"git {command}\""));
    }
    let rules: &[&str] = match command.as_str() {
        "fetch" | "pull" | "clone" | "ls-remote" | "push" | "archive" | "fetch-pack" | "send-pack" => &[
            "-u",
            "-c",
            "-o",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "--output",
            "--config",
        ],
        "grep" => &["-O", "--open-files-in-pager", "--textconv"],
        "log" | "diff" | "show" | "format-patch" | "blame" | "diff-tree" | "diff-index" | "diff-files"
        | "shortlog" => &["-o", "--output", "--output-directory", "--ext-diff", "--textconv"],
        "rebase" => &["-x", "-i", "--exec", "--interactive"],
        "commit" | "merge" | "tag" | "revert" | "cherry-pick" => &["-S", "--gpg-sign"],
        "branch" => &["--edit-description"],
        "init" => &["--template"],
        _ => &[],
    };
    // `-u` of push and `-o` of diff-like commands mean other things.
    let tolerated: &[&str] = match command.as_str() {
        "push" | "pull" | "fetch" => &["-u", "-c", "-o"],
        "log" | "diff" | "show" | "blame" | "shortlog" => &["-o"],
        _ => &[],
    };
    let in_rule = covered.saturating_sub(at + 2);
    for word in rest.get(in_rule..).unwrap_or_default() {
        let text = word.fixed_start();
        if text.contains("ext::") {
            return Some("may run something through an ext:: address".to_owned());
        }
        if let Some(rule) = rules
            .iter()
            .find(|rule| !tolerated.contains(rule) && is_option(&text, rule))
        {
            return Some(format!("may write or run something through {rule}"));
        }
    }
    None
}

/// Variables whose value decides which program runs, or makes an ordinary program run one.
pub fn code_variable(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "IFS",
        "ENV",
        "BASH_ENV",
        "SHELL",
        "SHELLOPTS",
        "BASHOPTS",
        "CDPATH",
        "PS4",
        "PROMPT_COMMAND",
        "PAGER",
        "MANPAGER",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "LESSOPEN",
        "LESSCLOSE",
        "LESS",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONWARNINGS",
        "PYTHONBREAKPOINT",
        "PERL5OPT",
        "PERL5LIB",
        "PERL5DB",
        "RUBYOPT",
        "RUBYLIB",
        "TAR_OPTIONS",
        "RIPGREP_CONFIG_PATH",
        "RUSTC_WRAPPER",
        "RUSTC",
        "CC",
        "CXX",
        "MAKEFLAGS",
        "MAKEFILES",
        "GREP_OPTIONS",
        "HOME",
        "XDG_CONFIG_HOME",
        "TERMINFO",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "OPENSSL_CONF",
        "GCONV_PATH",
        "LOCPATH",
        "NLSPATH",
        "HOSTALIASES",
        "TMPDIR",
        "EXECIGNORE",
        "GLOBIGNORE",
        "FPATH",
        "ZDOTDIR",
    ];
    NAMES.contains(&name)
        || [
            "LD_",
            "DYLD_",
            "GIT_",
            "BASH_FUNC_",
            "CARGO_",
            "NPM_CONFIG_",
            "npm_config_",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::super::{Item, read};
    use super::*;
    use crate::policy::place::{Ground, Place};

    fn of(line: &str, covered: usize) -> Option<String> {
        let reading = read(line, &Place::root(), &Ground::new("/w", None, None));
        let command = reading.items.iter().find_map(|item| match item {
            Item::Command(command) => Some(command.clone()),
            _ => None,
        });
        gadget(&command.unwrap(), covered)
    }

    #[test]
    fn options_that_write_or_run_are_found_and_their_harmless_twins_are_not() {
        for line in [
            "find . -delete",
            "find . -fprint f",
            "find . -fprintf f x",
            "find . -fls f",
            "sort -o M f",
            "sort -nroM f",
            "sort --compress-program=./c f",
            "sort --comp ./c f",
            "tar --checkpoint-action=exec=x -cf a b",
            "tar -I x -xf a",
            "man -P x ls",
            "rg --pre x y",
            "sed -n 'w M' f",
            "sed 's/./x/w M' f",
            "sed -n '1e touch M' f",
            "sed 's/x/y/e' f",
            "sed -i s/a/b/ f",
            "sed -f script f",
            "sed -ni s/a/b/ f",
            "sed -e p -e 'w M' f",
            "sed --in-place s/a/b/ f",
            "sed \"$x\" f",
            "awk 'BEGIN{system(\"x\")}'",
            "awk -f s",
            "awk '{print > \"f\"}' x",
            "awk 'BEGIN{\"x\" | getline}'",
            "git -c alias.x=y x",
            "git -c core.fsmonitor=x status",
            "git --exec-path=. status",
            "git -p status",
            "git --paginate log",
            "git ls-remote --upload-pack=x y",
            "git ls-remote --upload-pa x y",
            "git log --output=f",
            "git grep -Ox y",
            "git grep --open-files-in-pager=x y",
            "git config core.pager x",
            "git clone ext::sh x",
            "git diff --ext-diff",
            "git -C x -c a=b log",
            "git rebase -x ls",
            "git archive -o f HEAD",
        ] {
            assert!(of(line, 1).is_some(), "{line}");
        }
        for line in [
            "find . -name x",
            "find . -type f -newer y",
            "sort -n f",
            "sort -k2 -u f",
            "tar -tf a",
            "man ls",
            "rg -n x",
            "sed -n 1,5p f",
            "sed 's/a/b/g' f",
            "sed -E -e 's/a/b/' -e p f",
            "awk '{print $1}' f",
            "awk -F: '{print $1}' f",
            "awk -v x=1 '{print x}' f",
            "git status",
            "git log -p",
            "git log --oneline -n 3",
            "git diff --no-index -- a b",
            "git -C x status",
            "git --no-pager log",
            "git push -u origin x",
            "git commit -m x",
            "ls -la",
            "cat f",
        ] {
            assert_eq!(of(line, 1), None, "{line}");
        }
    }

    #[test]
    fn an_option_that_the_rule_names_is_meant() {
        assert_eq!(of("sed -i s/a/b/ f", 2), None);
        assert!(of("sed -i 's/a/b/w x' f", 2).is_some());
        assert_eq!(of("find -delete", 2), None);
        assert_eq!(of("git config user.name x", 2), None);
    }

    #[test]
    fn variables_that_choose_programs_are_known() {
        for name in ["PATH", "GIT_PAGER", "LD_PRELOAD", "BASH_ENV", "NODE_OPTIONS"] {
            assert!(code_variable(name), "{name}");
        }
        for name in ["FOO", "CI", "DEBUG", "NODE_ENV", "LANG"] {
            assert!(!code_variable(name), "{name}");
        }
    }
}
