//! Allow, ask, deny: pure decisions about paths and commands, with the reason in words. Nothing here touches a disk
//! or a process; `gate` hands the denials to the trees, asking is left to the tools.
//!
//! For commands it is a lexical gate, not a sandbox: it judges the text of a line. A program that an allowed
//! command starts may do anything its user may.

mod claims;
mod command;
mod command_rules;
mod decide;
mod gate;
mod glob;
mod instructions;
mod links;
mod mode;
mod offers;
mod options;
mod path_rules;
mod place;
mod reason;
mod snapshot;
#[cfg(test)]
mod tests;
mod verdict;

pub use command::MAX_LINE_BYTES;
pub use gate::PolicyGate;
pub use instructions::Surroundings;
pub use mode::Mode;
pub use options::{CommandRuleOptions, CustomPolicy, PathRuleOptions, PolicyOptions, ShellKind};
pub use path_rules::PathOp;
pub use place::Place;
pub use snapshot::PolicySnapshot;
pub use verdict::{Action, Verdict};

use command_rules::CommandRule;
use mode::Defaults;
use path_rules::{PathPattern, PathRule};
use place::Ground;

/// The simple commands that a line would start, wrappers looked through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCommands {
    /// The words of each command; a word known at run time only is `None`.
    pub commands: Vec<Vec<Option<String>>>,
    /// False: the line cannot be read with certainty, and what a cruder reading finds is listed too.
    pub certain: bool,
}

/// Everything that decides, checked once.
#[derive(Clone, Debug)]
pub struct Policy {
    ground: Ground,
    /// More directories that count as inside (`roots`), as the user wrote them.
    extra_roots: Vec<String>,
    /// The same with links resolved: what a root tells of its files is below this name.
    extra_real_roots: Vec<String>,
    mode: Option<Mode>,
    defaults: Defaults,
    denied: Vec<PathPattern>,
    path_rules: Vec<PathRule>,
    readable: Vec<PathPattern>,
    writable: Vec<PathPattern>,
    command_rules: Vec<CommandRule>,
    shell_kind: ShellKind,
    /// Nobody answers: ask means deny.
    unattended: bool,
    /// Some policy option was given. Without any, commands are not looked at.
    configured: bool,
    links: links::Links,
}
