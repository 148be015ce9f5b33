//! The modes: what is allowed where no rule, grant or denial says otherwise.

use super::verdict::Action;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Readonly,
    Coding,
    Trusted,
}

impl Mode {
    pub const NAMES: &'static str = "'readonly', 'coding' or 'trusted'";

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "readonly" => Some(Mode::Readonly),
            "coding" => Some(Mode::Coding),
            "trusted" => Some(Mode::Trusted),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Readonly => "readonly",
            Mode::Coding => "coding",
            Mode::Trusted => "trusted",
        }
    }
}

/// One column per question a mode answers. Reads inside are allowed in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    pub write_inside: Action,
    pub read_outside: Action,
    pub write_outside: Action,
    /// `None`: there is no shell.
    pub shell: Option<Action>,
}

impl Defaults {
    /// `None` is a workspace without a mode: all of the inside, nothing outside, and commands.
    pub fn of(mode: Option<Mode>) -> Self {
        use Action::{Allow, Ask, Deny};
        let (write_inside, read_outside, write_outside, shell) = match mode {
            None => (Allow, Deny, Deny, Some(Allow)),
            Some(Mode::Readonly) => (Deny, Deny, Deny, None),
            Some(Mode::Coding) => (Allow, Ask, Deny, Some(Ask)),
            Some(Mode::Trusted) => (Allow, Allow, Ask, Some(Allow)),
        };
        Self {
            write_inside,
            read_outside,
            write_outside,
            shell,
        }
    }
}
