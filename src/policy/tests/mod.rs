//! The policy as a whole: the recorded cases, the observed examples, generated lines, and what the instructions
//! promise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod generated;
mod observed;
mod options;
mod paths;
mod promises;

use super::{Action, CommandRuleOptions, PathOp, PathRuleOptions, Policy, PolicyOptions};

pub fn options() -> PolicyOptions {
    PolicyOptions {
        root: "/w/proj".to_owned(),
        home: Some("/home/u".to_owned()),
        ..PolicyOptions::default()
    }
}

pub fn policy(options: PolicyOptions) -> Policy {
    Policy::new(options, &|_| None).unwrap()
}

pub fn mode(mode: &str) -> PolicyOptions {
    PolicyOptions {
        mode: Some(mode.to_owned()),
        ..options()
    }
}

/// `allow:ls`, `deny:git push`.
pub fn command_rules(rules: &[&str]) -> Option<Vec<CommandRuleOptions>> {
    let rule = |text: &&str| {
        let (action, pattern) = text.split_once(':').unwrap();
        CommandRuleOptions {
            pattern: pattern.to_owned(),
            action: action.to_owned(),
        }
    };
    Some(rules.iter().map(rule).collect())
}

/// `deny:secrets`, `ask:docs:read`.
pub fn path_rules(rules: &[&str]) -> Option<Vec<PathRuleOptions>> {
    let rule = |text: &&str| {
        let parts: Vec<&str> = text.split(':').collect();
        PathRuleOptions {
            action: parts[0].to_owned(),
            pattern: parts[1].to_owned(),
            ops: parts.get(2).map(|op| vec![(*op).to_owned()]),
        }
    };
    Some(rules.iter().map(rule).collect())
}

pub fn strings(list: &[&str]) -> Option<Vec<String>> {
    Some(list.iter().map(|text| (*text).to_owned()).collect())
}

pub fn with_rules(base: &str, rules: &[&str]) -> Policy {
    policy(PolicyOptions {
        command_rules: command_rules(rules),
        ..mode(base)
    })
}

pub fn denying(base: &str, paths: &[&str]) -> Policy {
    policy(PolicyOptions {
        denied_paths: strings(paths),
        ..mode(base)
    })
}

pub fn path(policy: &Policy, op: PathOp, path: &str) -> Action {
    let place = policy.locate(path, &super::Place::root());
    policy.decide_path(op, &place, &place).action
}

pub fn run(policy: &Policy, line: &str) -> Action {
    policy.decide_command(line, ".").action
}

#[track_caller]
pub fn assert_runs(policy: &Policy, line: &str, expected: Action) {
    let verdict = policy.decide_command(line, ".");
    assert_eq!(verdict.action, expected, "{line:?}: {}", verdict.reason);
}
