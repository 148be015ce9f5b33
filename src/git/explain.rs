//! git's complaints as errors that say what to do (pure). Its words are passed on, without the host's paths.

use crate::error::{Error, ErrorCode};

const MAX_CHARS: usize = 1000;

/// Part of what git says (with LC_ALL=C), and what to tell instead.
const KNOWN: &[(&str, &str)] = &[
    (
        "index.lock",
        "the index is locked (.git/index.lock): another git command is running, or one has died. Try again; if none runs, have the lock removed in a shell",
    ),
    (
        "dubious ownership",
        "the repository belongs to another user, which git calls dubious ownership: if it is to be trusted, its user adds the workspace to safe.directory (git config --global --add safe.directory <path>)",
    ),
    (
        "Please tell me who you are",
        "nobody is named as the author: set user.name and user.email (git config user.name ..., git config user.email ...)",
    ),
    (
        "auto-detection is disabled",
        "nobody is named as the author: set user.name and user.email (git config user.name ..., git config user.email ...)",
    ),
    (
        "empty ident name",
        "nobody is named as the author: set user.name and user.email (git config user.name ..., git config user.email ...)",
    ),
    (
        "partial commit during a",
        "a merge or the like is under way, in which git commits everything or nothing: commit without files, once all conflicts are resolved and staged",
    ),
    (
        "not a git repository",
        "there is no git repository in the workspace's root: make one in a shell with git init",
    ),
];

/// `what` is the command, such as "git commit".
pub(super) fn failed(what: &str, said: &str, root: &str) -> Error {
    let known = KNOWN.iter().find(|(part, _)| said.contains(part));
    let message = match known {
        Some((_, tell)) => format!("{what}: {tell}"),
        None => {
            let said = without_root(said, root);
            let short: String = said.trim().chars().take(MAX_CHARS).collect();
            let short = if short.is_empty() {
                "git failed and said nothing"
            } else {
                &short
            };
            format!("{what}: {short}")
        }
    };
    Error::new(ErrorCode::GitFailed, message)
}

fn without_root(said: &str, root: &str) -> String {
    if root.len() < 2 {
        return said.to_owned();
    }
    said.replace(&format!("{root}/"), "").replace(root, ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_gets_a_way_out_and_the_rest_is_passed_on_without_the_root() {
        let table = [
            (
                "fatal: Unable to create '/ws/.git/index.lock': File exists.",
                "index is locked",
            ),
            ("*** Please tell me who you are.", "user.email"),
            ("error: '/ws/a b' is odd in /ws", "error: 'a b' is odd in ."),
            ("", "said nothing"),
        ];
        for (said, expected) in table {
            let error = failed("git commit", said, "/ws");
            assert_eq!(error.code, ErrorCode::GitFailed);
            assert!(error.message.contains(expected), "{}", error.message);
            assert!(!error.message.contains("/ws"), "{}", error.message);
        }
    }
}
