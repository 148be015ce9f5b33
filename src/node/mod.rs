//! The napi bindings, and nothing else: convert the arguments, call the core, settle the answer.
//! Failures cross as an error whose reason is `croft:` + JSON (see `failure`); ts/call.ts makes the classes.

#[cfg(unix)]
mod attended;
mod broker;
mod cancel;
mod change;
mod convert;
mod failure;
#[cfg(unix)]
mod git;
mod mirror;
mod policy;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod sandbox;
mod search;
mod text;
mod tree;
mod work;

pub(crate) use cancel::CancelHandle;
pub(crate) use work::Answer;
