//! What the policy answers: an action and the reason in words.

/// Ordered by strictness, so that the stricter of two is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    Allow,
    Ask,
    Deny,
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Allow => "allow",
            Action::Ask => "ask",
            Action::Deny => "deny",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "allow" => Some(Action::Allow),
            "ask" => Some(Action::Ask),
            "deny" => Some(Action::Deny),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub action: Action,
    pub reason: String,
}

impl Verdict {
    pub fn new(action: Action, reason: impl Into<String>) -> Self {
        Self {
            action,
            reason: reason.into(),
        }
    }

    /// The stricter of the two; of equals the first, whose reason is the nearer one.
    #[must_use]
    pub fn stricter(self, other: Verdict) -> Verdict {
        if other.action > self.action { other } else { self }
    }

    /// At most `action`: for what is only possible, not certain.
    #[must_use]
    pub fn at_most(mut self, action: Action) -> Verdict {
        self.action = self.action.min(action);
        self
    }
}
