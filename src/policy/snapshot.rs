//! What the policy allows, as data for an executor that derives mounts and rules from it.

use super::path_rules::PathRule;
use super::{Action, Policy};
use serde::Serialize;

/// A rule as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleSnapshot {
    pub pattern: String,
    pub action: &'static str,
    pub ops: Vec<&'static str>,
}

/// Absolute paths are host paths: for executors, never for messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicySnapshot {
    pub mode: Option<&'static str>,
    pub root: String,
    /// More roots and granted folders that exist under an absolute name without wildcards.
    pub readable: Vec<String>,
    pub writable: Vec<String>,
    /// As written; absolute ones and names hold outside too.
    pub denied: Vec<String>,
    pub path_rules: Vec<RuleSnapshot>,
    pub write_inside: &'static str,
    pub read_outside: &'static str,
    pub write_outside: &'static str,
    /// An action, or `none`.
    pub shell: &'static str,
}

fn rule(rule: &PathRule) -> RuleSnapshot {
    let ops = [("read", rule.reads), ("write", rule.writes)];
    RuleSnapshot {
        pattern: rule.pattern.source().to_owned(),
        action: rule.action.as_str(),
        ops: ops
            .iter()
            .filter(|(_, applies)| *applies)
            .map(|(op, _)| *op)
            .collect(),
    }
}

impl Policy {
    pub fn snapshot(&self) -> PolicySnapshot {
        let literal = |patterns: &[super::PathPattern]| -> Vec<String> {
            patterns
                .iter()
                .filter_map(|pattern| pattern.literal_absolute().map(str::to_owned))
                .collect()
        };
        let mut writable = literal(&self.writable);
        if self.defaults.write_inside == Action::Allow {
            writable.extend(self.extra_roots.iter().cloned());
        }
        let mut readable = literal(&self.readable);
        readable.extend(self.extra_roots.iter().cloned());
        PolicySnapshot {
            mode: self.mode.map(super::Mode::as_str),
            root: self.ground.root().to_owned(),
            readable,
            writable,
            denied: self
                .denied
                .iter()
                .map(|pattern| pattern.source().to_owned())
                .collect(),
            path_rules: self.path_rules.iter().map(rule).collect(),
            write_inside: self.defaults.write_inside.as_str(),
            read_outside: self.defaults.read_outside.as_str(),
            write_outside: self.defaults.write_outside.as_str(),
            shell: self.defaults.shell.map_or("none", Action::as_str),
        }
    }

    /// Folders outside the root that file operations may reach: grants and, where a mode lets reads or writes
    /// outside happen at all, the top of the file system.
    pub fn outside_folders(&self) -> Vec<String> {
        let mut folders: Vec<String> = self
            .readable
            .iter()
            .chain(&self.writable)
            .filter_map(|pattern| pattern.literal_absolute().map(str::to_owned))
            .filter(|folder| super::place::below(folder, self.ground.root()).is_none())
            .collect();
        let opens_all = self.defaults.read_outside < Action::Deny
            || self.defaults.write_outside < Action::Deny
            || self
                .path_rules
                .iter()
                .any(|rule| rule.action < Action::Deny && rule.pattern.is_absolute())
            || self
                .readable
                .iter()
                .chain(&self.writable)
                .any(|pattern| pattern.is_absolute() && pattern.literal_absolute().is_none());
        if opens_all && !self.unattended_outside() {
            folders.push("/".to_owned());
        }
        folders.dedup();
        folders
    }

    /// Everything that has to be opened beside the root.
    pub fn more_roots(&self) -> Vec<String> {
        let mut folders = self.extra_roots.clone();
        folders.extend(self.outside_folders());
        folders
    }

    /// `roots` must exist; a grant may name what does not.
    pub fn requires_root(&self, folder: &str) -> bool {
        self.extra_roots.iter().any(|root| root == folder)
    }

    /// Whether everything that is not allowed outright outside ends in a refusal.
    fn unattended_outside(&self) -> bool {
        self.unattended
            && self.defaults.read_outside > Action::Allow
            && self.defaults.write_outside > Action::Allow
            && self
                .path_rules
                .iter()
                .all(|rule| rule.action > Action::Allow || !rule.pattern.is_absolute())
            && self
                .readable
                .iter()
                .chain(&self.writable)
                .all(|pattern| !pattern.is_absolute() || pattern.literal_absolute().is_some())
    }
}
