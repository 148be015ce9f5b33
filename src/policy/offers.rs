//! Whether the tool set has writing tools and a shell: only where they could do something that is not refused. Each
//! answer asks the very decision it is about.

use super::path_rules::{PathOp, PathPattern};
use super::place::Place;
use super::{Action, Mode, Policy};

/// Paths that stand for "anything inside" and "anything outside".
pub(super) const SAMPLE_FILE: &str = "croft-sample/notes.txt";
pub(super) const SAMPLE_OUTSIDE: &str = "/croft-sample/notes.txt";
/// A command that no rule names.
pub(super) const SAMPLE_COMMAND: &str = "croft-sample-command";

impl Policy {
    /// `readonly` has none, whatever is granted: its grants are for reading.
    pub fn offers_writes(&self) -> bool {
        let named = self.writable.iter().chain(
            self.path_rules
                .iter()
                .filter(|rule| rule.writes && rule.action < Action::Deny)
                .map(|rule| &rule.pattern),
        );
        self.mode != Some(Mode::Readonly)
            && [SAMPLE_FILE, SAMPLE_OUTSIDE]
                .map(str::to_owned)
                .into_iter()
                .chain(named.map(sample_of))
                .any(|path| self.action_on(PathOp::Write, &path) < Action::Deny)
    }

    pub fn offers_shell(&self) -> bool {
        let named = self.command_rules.iter().map(|rule| rule.pattern.as_str());
        self.defaults.shell.is_some()
            && named
                .chain([SAMPLE_COMMAND])
                .any(|line| self.action_of(line) < Action::Deny)
    }

    pub(super) fn action_on(&self, op: PathOp, path: &str) -> Action {
        let place = self.ground.locate(path, &Place::root());
        self.decide_path(op, &place, &place).action
    }

    pub(super) fn action_of(&self, line: &str) -> Action {
        self.decide_command(line, ".").action
    }
}

/// A path that the pattern matches.
pub(super) fn sample_of(pattern: &PathPattern) -> String {
    let source = pattern.source().trim_end_matches('/');
    source.replace("**", "x").replace(['*', '?'], "x")
}
