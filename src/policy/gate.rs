//! The policy as the gate of a tree: `deny` is refused whoever calls, `ask` passes, because asking is the tools' part.

use super::path_rules::PathOp;
use super::place::is_absolute;
use super::{Action, Place, Policy};
use crate::error::{Error, ErrorCode, Result};
use crate::path::{Platform, parse};
use crate::tree::{Access, Gate};
use std::sync::Arc;

pub struct PolicyGate {
    policy: Arc<Policy>,
    /// The absolute path of the tree that asks; `None` for the workspace root.
    root: Option<String>,
}

impl PolicyGate {
    pub fn new(policy: Arc<Policy>, root: Option<String>) -> Self {
        Self { policy, root }
    }

    fn judge(&self, access: Access, asked: &Place, resolved: &Place, written: &str) -> Result<()> {
        let op = match access {
            Access::Read => PathOp::Read,
            Access::Write => PathOp::Write,
        };
        let verdict = self.policy.decide_path(op, asked, resolved);
        if verdict.action == Action::Deny {
            return Err(Error::new(ErrorCode::PolicyDenied, verdict.reason).at(written));
        }
        Ok(())
    }

    fn locate(&self, path: &str) -> Place {
        self.policy.locate(path, &Place::root())
    }
}

impl Gate for PolicyGate {
    fn check(&self, access: Access, written: &str) -> Result<()> {
        let plain = written.replace('\\', "/");
        // The lexical rules come first; an absolute path is the policy's question, because a grant may open it.
        if !is_absolute(&plain) {
            parse(written, Platform::HOST)?;
        }
        let place = self.locate(&plain);
        self.judge(access, &place, &place, written)
    }

    fn check_resolved(&self, access: Access, resolved: &str, written: &str) -> Result<()> {
        let (asked, resolved) = match &self.root {
            None => (self.locate(written), Place::Inside(resolved.to_owned())),
            Some(root) => (
                self.locate(&format!("{root}/{written}")),
                self.locate(&format!("{root}/{resolved}")),
            ),
        };
        self.judge(access, &asked, &resolved, written)
    }

    fn hides(&self, path: &str) -> bool {
        self.policy.is_denied(&self.locate(path))
    }

    fn hides_something(&self) -> bool {
        self.policy.hides_something()
    }
}
