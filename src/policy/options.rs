//! The options as they were written, checked and turned into a [`Policy`].

use super::Policy;
use super::command_rules::CommandRule;
use super::mode::{Defaults, Mode};
use super::path_rules::{Canonicalize, PathOp, PathPattern, PathRule};
use super::place::Ground;
use super::verdict::Action;
use crate::error::{Error, ErrorCode, Result};
use serde::Deserialize;

/// Which language the shell of the workspace reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShellKind {
    /// sh, dash, bash.
    #[default]
    Posix,
    /// cmd.exe: only plain words are read.
    Cmd,
    /// Any other: nothing is certain.
    Other,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyOptions {
    /// The real absolute path of the root.
    pub root: String,
    /// The root as the user wrote it, where links make it differ.
    pub root_alias: Option<String>,
    /// What `~` stands for.
    pub home: Option<String>,
    pub roots: Vec<String>,
    pub shell_kind: ShellKind,
    pub mode: Option<String>,
    pub readable: Option<Vec<String>>,
    pub writable: Option<Vec<String>>,
    pub denied_paths: Option<Vec<String>>,
    pub path_rules: Option<Vec<PathRuleOptions>>,
    pub command_rules: Option<Vec<CommandRuleOptions>>,
    pub policy: Option<CustomPolicy>,
    /// `'prompt'` (default) or `'deny'`: what becomes of `ask`.
    pub asks: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PathRuleOptions {
    pub pattern: String,
    pub action: String,
    pub ops: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandRuleOptions {
    pub pattern: String,
    pub action: String,
}

/// A policy spelled out instead of a mode. Left out: as without a mode.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CustomPolicy {
    pub write_inside: Option<String>,
    pub read_outside: Option<String>,
    pub write_outside: Option<String>,
    /// An action, or `'none'` for no shell at all.
    pub shell: Option<String>,
    pub readable: Option<Vec<String>>,
    pub writable: Option<Vec<String>>,
    pub denied_paths: Option<Vec<String>>,
    pub path_rules: Option<Vec<PathRuleOptions>>,
    pub command_rules: Option<Vec<CommandRuleOptions>>,
}

fn invalid<T>(message: String) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidArgument, message))
}

fn action(text: &str, option: &str) -> Result<Action> {
    match Action::parse(text) {
        Some(action) => Ok(action),
        None => invalid(format!(
            "{option}: the action {text:?} is not one of 'allow', 'ask', 'deny'"
        )),
    }
}

impl Policy {
    /// `canonicalize` resolves the links of an absolute path that exists (only patterns are asked about).
    pub fn new(options: PolicyOptions, canonicalize: Canonicalize<'_>) -> Result<Self> {
        let shorthands = [
            ("mode", options.mode.is_some()),
            ("readable", options.readable.is_some()),
            ("writable", options.writable.is_some()),
            ("deniedPaths", options.denied_paths.is_some()),
            ("pathRules", options.path_rules.is_some()),
            ("commandRules", options.command_rules.is_some()),
        ];
        let given = shorthands.iter().find(|(_, given)| *given).map(|(name, _)| *name);
        let configured = given.is_some() || options.policy.is_some() || options.asks.is_some();
        let ground = Ground::new(
            &options.root,
            options.root_alias.as_deref(),
            options.home.as_deref(),
        );
        let (mode, defaults, rules) = match options.policy {
            Some(custom) => {
                if let Some(name) = given {
                    return invalid(format!("policy replaces {name}: give one of the two, not both"));
                }
                let defaults = custom_defaults(&custom)?;
                (None, defaults, custom)
            }
            None => {
                let mode = parse_mode(options.mode.as_deref())?;
                let rules = CustomPolicy {
                    readable: options.readable,
                    writable: options.writable,
                    denied_paths: options.denied_paths,
                    path_rules: options.path_rules,
                    command_rules: options.command_rules,
                    ..CustomPolicy::default()
                };
                (mode, Defaults::of(mode), rules)
            }
        };
        let command_rules = command_rules(rules.command_rules.unwrap_or_default())?;
        if mode == Some(Mode::Readonly) && !command_rules.is_empty() {
            return invalid("mode 'readonly' has no shell, so commandRules have no meaning there: use 'coding' or leave them out".to_owned());
        }
        let patterns = |list: Option<Vec<String>>, option: &str| -> Result<Vec<PathPattern>> {
            list.unwrap_or_default()
                .iter()
                .map(|pattern| PathPattern::parse(pattern, option, &ground, canonicalize))
                .collect()
        };
        let unattended = match options.asks.as_deref() {
            None | Some("prompt") => false,
            Some("deny") => true,
            Some(other) => return invalid(format!("asks: {other:?} is not 'prompt' or 'deny'")),
        };
        let path_rules = rules
            .path_rules
            .unwrap_or_default()
            .into_iter()
            .map(|rule| path_rule(rule, &ground, canonicalize))
            .collect::<Result<_>>()?;
        let extra_roots: Vec<String> = options
            .roots
            .iter()
            .map(|root| ground.absolute(&ground.locate(root, &super::Place::root())))
            .collect();
        let mut policy = Self {
            extra_real_roots: extra_roots.iter().filter_map(|root| canonicalize(root)).collect(),
            extra_roots,
            mode,
            defaults,
            denied: patterns(rules.denied_paths, "deniedPaths")?,
            path_rules,
            readable: patterns(rules.readable, "readable")?,
            writable: patterns(rules.writable, "writable")?,
            command_rules,
            shell_kind: options.shell_kind,
            unattended,
            configured,
            links: super::links::Links::default(),
            ground,
        };
        policy.settle_shell_default();
        Ok(policy)
    }

    /// Without a mode commands are allowed. But who allows some commands by name does not mean "and all others".
    fn settle_shell_default(&mut self) {
        let allows_some = self
            .command_rules
            .iter()
            .any(|rule| rule.action == Action::Allow && !rule.words.is_empty());
        if self.mode.is_none() && self.defaults == Defaults::of(None) && allows_some {
            self.defaults.shell = Some(Action::Ask);
        }
    }
}

fn parse_mode(text: Option<&str>) -> Result<Option<Mode>> {
    match text {
        None => Ok(None),
        Some(text) => match Mode::parse(text) {
            Some(mode) => Ok(Some(mode)),
            None => invalid(format!("mode: {text:?} is not one of {}", Mode::NAMES)),
        },
    }
}

fn custom_defaults(custom: &CustomPolicy) -> Result<Defaults> {
    let base = Defaults::of(None);
    let read = |text: &Option<String>, option: &str, default: Action| match text {
        Some(text) => action(text, option),
        None => Ok(default),
    };
    Ok(Defaults {
        write_inside: read(&custom.write_inside, "policy.writeInside", base.write_inside)?,
        read_outside: read(&custom.read_outside, "policy.readOutside", base.read_outside)?,
        write_outside: read(&custom.write_outside, "policy.writeOutside", base.write_outside)?,
        shell: match custom.shell.as_deref() {
            None => base.shell,
            Some("none") => None,
            Some(text) => Some(action(text, "policy.shell")?),
        },
    })
}

fn path_rule(rule: PathRuleOptions, ground: &Ground, canonicalize: Canonicalize<'_>) -> Result<PathRule> {
    let ops = match rule.ops {
        None => vec![PathOp::Read, PathOp::Write],
        Some(names) if names.is_empty() => {
            return invalid("pathRules: ops is empty: leave it out for both 'read' and 'write'".to_owned());
        }
        Some(names) => names
            .iter()
            .map(|name| match PathOp::parse(name) {
                Some(op) => Ok(op),
                None => invalid(format!("pathRules: the op {name:?} is not 'read' or 'write'")),
            })
            .collect::<Result<_>>()?,
    };
    Ok(PathRule {
        pattern: PathPattern::parse(&rule.pattern, "pathRules", ground, canonicalize)?,
        action: action(&rule.action, "pathRules")?,
        reads: ops.contains(&PathOp::Read),
        writes: ops.contains(&PathOp::Write),
    })
}

fn command_rules(rules: Vec<CommandRuleOptions>) -> Result<Vec<CommandRule>> {
    rules
        .into_iter()
        .map(|rule| CommandRule::parse(&rule.pattern, action(&rule.action, "commandRules")?))
        .collect()
}
