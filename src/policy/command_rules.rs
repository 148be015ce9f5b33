//! Command rules: how the words of a rule are compared with the words of a command. What follows from a match is
//! left to `decide`.

use super::command::{Simple, Word, is_loose};
use super::glob::{self, Token};
use super::path_rules::fold;
use super::verdict::Action;
use crate::error::{Error, ErrorCode, Result};

#[derive(Clone, Debug)]
pub struct CommandRule {
    /// As the user wrote it.
    pub pattern: String,
    /// Empty for `*`, which every command matches.
    pub words: Vec<String>,
    pub action: Action,
}

/// How sure a comparison is before the shell runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    No,
    /// A word that is known at run time only stands where the rule's word would.
    Maybe,
    Yes,
}

impl CommandRule {
    pub fn parse(pattern: &str, action: Action) -> Result<Self> {
        let refuse = |rule: &str| {
            Err(Error::new(
                ErrorCode::InvalidArgument,
                format!("commandRules: the pattern {pattern:?} {rule}"),
            ))
        };
        let mut words: Vec<String> = pattern.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            return refuse("is empty: write the first words of a command, or \"*\" for every command");
        }
        // `npm run *` is how other tools write a prefix; a pattern is one anyway.
        if words.last().is_some_and(|word| word == "*") {
            words.pop();
        }
        // Taken as a literal it would never match, and a deny rule that never matches is a hole.
        if words.iter().any(|word| word.contains('*')) {
            return refuse("holds a \"*\": a pattern is the first words of a command, each in full");
        }
        if words.iter().any(|word| word.contains(['\'', '"', '\\'])) {
            return refuse(
                "holds a quote or a backslash: write the words as they are after quotes are removed",
            );
        }
        Ok(Self {
            pattern: pattern.to_owned(),
            words,
            action,
        })
    }

    /// The rule's words are the first words of the command, each certain.
    pub fn is_prefix_of(&self, words: &[Word]) -> bool {
        self.words.len() <= words.len()
            && self
                .words
                .iter()
                .zip(words)
                .all(|(own, word)| word.literal().is_some_and(|text| text == *own))
    }

    /// For rules that restrict: also `/bin/rm` for `rm`, `git -C x push` and `git push x --force` for
    /// `git push --force`, options in any order, and words that may turn out to be the rule's.
    pub fn restricts(&self, command: &Simple) -> Match {
        let whole = self.meets(&command.words, command.open_ended);
        let name = command.words.first().and_then(Word::literal);
        if whole == Match::Yes || !name.is_some_and(|name| is_loose(&name)) {
            return whole;
        }
        // A wrapper whose options are not modelled: its command may begin at any argument.
        (1..command.words.len())
            .map(|at| self.meets(&command.words[at..], command.open_ended))
            .fold(whole, Match::max)
    }

    fn meets(&self, words: &[Word], open_ended: bool) -> Match {
        let Some((own_name, own_rest)) = self.words.split_first() else {
            return Match::Yes;
        };
        let Some(name) = words.first().and_then(Word::literal) else {
            return Match::No;
        };
        let base = name.rsplit(['/', '\\']).next().unwrap_or(&name);
        let base = if cfg!(windows) {
            base.trim_end_matches(".exe")
        } else {
            base
        };
        if fold(base) != fold(own_name) && fold(&name) != fold(own_name) {
            return Match::No;
        }
        let arguments = &words[1..];
        let (options, operands): (Vec<&String>, Vec<&String>) = own_rest
            .iter()
            .partition(|word| word.starts_with('-') && word.len() > 1);
        let more = if open_ended { Match::Maybe } else { Match::No };
        options
            .iter()
            .map(|option| has_option(arguments, option).max(more))
            .fold(in_order(base, arguments, &operands, more), Match::min)
    }
}

/// The operands one after the other, options and their values stepped over.
fn in_order(name: &str, arguments: &[Word], operands: &[&String], more: Match) -> Match {
    let mut sure = Match::Yes;
    let mut at = 0;
    for operand in operands {
        let mut may_be_value = false;
        loop {
            let Some(word) = arguments.get(at) else {
                return more;
            };
            at += 1;
            let start = word.fixed_start();
            if start.starts_with('-') && start.len() > 1 {
                if name == "git" && takes_value(&start) {
                    at += 1;
                } else {
                    may_be_value = !start.contains('=');
                }
                continue;
            }
            match equals(word, operand) {
                Match::No if may_be_value => may_be_value = false,
                Match::No => return Match::No,
                found => {
                    sure = sure.min(found);
                    break;
                }
            }
        }
    }
    sure
}

/// The options of git itself whose value is the next word.
fn takes_value(option: &str) -> bool {
    matches!(
        option,
        "-C" | "-c"
            | "--git-dir"
            | "--work-tree"
            | "--namespace"
            | "--super-prefix"
            | "--config-env"
            | "--exec-path"
            | "--attr-source"
    )
}

fn equals(word: &Word, own: &str) -> Match {
    match word.literal() {
        Some(text) if text == own => Match::Yes,
        Some(_) => Match::No,
        None => {
            let own: Vec<Token> = own.chars().map(Token::Char).collect();
            let may = word
                .brace_choices()
                .iter()
                .any(|choice| glob::intersect(&choice.pattern(), &own, false));
            if may { Match::Maybe } else { Match::No }
        }
    }
}

/// `--force` is also `--forc` and `--force=x`; the letters of `-rf` may come in any order and in several words.
fn has_option(arguments: &[Word], own: &str) -> Match {
    let texts = || arguments.iter().map(Word::fixed_start);
    let found = if let Some(long) = own.strip_prefix("--") {
        texts().any(|text| {
            let given = text.split('=').next().unwrap_or_default();
            text == own
                || given
                    .strip_prefix("--")
                    .is_some_and(|given| given.len() >= 3 && long.starts_with(given))
        })
    } else {
        let clusters: String = texts()
            .filter(|text| text.starts_with('-') && !text.starts_with("--"))
            .collect();
        texts().any(|text| text == own) || own.chars().skip(1).all(|letter| clusters.contains(letter))
    };
    if found {
        return Match::Yes;
    }
    // An unquoted unknown word may be an option, or several.
    let unknown = arguments
        .iter()
        .any(|word| word.fixed().is_none() && own.starts_with(&word.fixed_start()));
    if unknown { Match::Maybe } else { Match::No }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::super::command::{Item, read};
    use super::super::place::{Ground, Place};
    use super::*;

    fn command(line: &str) -> Simple {
        let reading = read(line, &Place::root(), &Ground::new("/w", None, None));
        reading
            .items
            .into_iter()
            .find_map(|item| match item {
                Item::Command(command) => Some(command),
                _ => None,
            })
            .unwrap()
    }

    #[test]
    fn a_prefix_is_whole_words_and_certain_ones() {
        for (pattern, line, expected) in [
            ("git status", "git status -s", true),
            ("git status", "git statusx", false),
            ("git status", "git", false),
            ("git status", "'git' \"status\"", true),
            ("git status", "git $x", false),
            ("git status", "git stat?s", false),
            ("git status", "git -C x status", false),
            ("git status", "/usr/bin/git status", false),
            ("npm run *", "npm run build", true),
            ("*", "anything", true),
        ] {
            let rule = CommandRule::parse(pattern, Action::Allow).unwrap();
            assert_eq!(
                rule.is_prefix_of(&command(line).words),
                expected,
                "{pattern} on {line}"
            );
        }
    }

    #[test]
    fn a_restricting_rule_meets_every_spelling_of_its_command() {
        use Match::{Maybe, No, Yes};
        for (pattern, line, expected) in [
            ("rm", "rm x", Yes),
            ("rm", "/bin/rm x", Yes),
            ("rm", "./rm x", Yes),
            ("rm", "rmdir x", No),
            ("rm -rf", "rm -fr x", Yes),
            ("rm -rf", "rm -r x -f", Yes),
            ("rm -rf", "rm -r x", No),
            ("rm -rf", "rm $x", Maybe),
            ("git reset --hard", "git -C /repo reset --hard", Yes),
            ("git reset --hard", "git --git-dir=x reset --hard", Yes),
            ("git reset --hard", "git --git-dir x reset --hard", Yes),
            ("git reset --hard", "git --no-pager reset --hard", Yes),
            ("git reset --hard", "git reset HEAD --hard", Yes),
            ("git reset --hard", "git reset --har", Yes),
            ("git reset --hard", "git reset --soft", No),
            ("git push", "git $x", Maybe),
            ("git push", "git pus[h]", Maybe),
            ("git push", "git {push,x}", Maybe),
            ("git push", "git commit -m \"$x\"", No),
            ("git push", "git -C \"$d\" status", No),
            ("npm publish", "npm --prefix x publish", Yes),
            ("npm publish", "npm run publish", No),
            ("git push --force", "git push origin main --force", Yes),
            ("git push --force", "git push --force-with-lease", No),
            ("rm", "strace -f rm x", Yes),
            ("rm", "strace -f ls rmx", No),
            ("rm", "$x", No),
        ] {
            let rule = CommandRule::parse(pattern, Action::Deny).unwrap();
            assert_eq!(rule.restricts(&command(line)), expected, "{pattern} on {line}");
        }
    }

    #[test]
    fn a_pattern_that_would_never_match_is_refused() {
        for pattern in ["", "  ", "git p*sh", "* x", "git 'push'", "a\\b"] {
            let error = CommandRule::parse(pattern, Action::Deny).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidArgument, "{pattern:?}");
        }
    }
}
