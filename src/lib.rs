//! croft: a fenced plot for AI agents. The rooms, from the ground up (each uses only rooms above it):
//!
//! - `error`, `limits`: what can go wrong, and every default and ceiling
//! - `path`: what a path may be (pure)
//! - `tree`: where files live: a confined directory on disk, or memory
//! - `text`: what is done to text (pure)
//! - `search`: glob, grep and the walk over a tree
//! - `patching`: a patch carried out on a tree, whole or not at all
//! - `policy`: allow, ask, deny: pure decisions about paths and commands
//! - `process`: commands, supervised by `croft-exec`
//! - `git`: status, diff and commit through the hardened git command line
//! - `broker`: the credential broker
//! - `sandbox`: commands apart from the host, in containers
//! - `node`: the napi bindings, and nothing else

pub mod broker;
pub mod error;
pub mod git;
pub mod limits;
#[cfg(feature = "node")]
#[cfg_attr(test, allow(dead_code))] // napi registers no function in a test build
mod node;
pub mod patching;
pub mod path;
pub mod policy;
pub mod process;
pub mod sandbox;
pub mod search;
pub mod text;
pub mod tree;

pub use error::{Error, ErrorCode, Result};
