//! What a tree may touch beyond being confined: a rule about names, asked with the path as written and with the
//! path that links resolved it to. The rule itself is somebody else's (`policy`); a tree only asks.

use crate::error::Result;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// Relative paths are below the workspace root, absolute ones below another root.
pub trait Gate: Send + Sync {
    /// Judges a path by its letters.
    fn check(&self, access: Access, written: &str) -> Result<()>;

    /// Judges where `written` turned out to lead: `resolved` is below the root of the tree that asks.
    fn check_resolved(&self, access: Access, resolved: &str, written: &str) -> Result<()>;

    /// Listings and walks leave it out.
    fn hides(&self, path: &str) -> bool;

    /// False: `hides` never says yes, and need not be asked.
    fn hides_something(&self) -> bool;
}

pub type SharedGate = Arc<dyn Gate>;
