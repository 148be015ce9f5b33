//! The napi bindings, and nothing else: convert the arguments, call the core, settle the answer.
//! Failures cross as an error whose reason is `croft:` + JSON (see `failure`); ts/call.ts makes the classes.

mod cancel;
mod failure;
#[allow(dead_code)] // the bindings that use it follow
mod work;

#[allow(unused_imports)]
pub(crate) use cancel::CancelHandle;
#[allow(unused_imports)]
pub(crate) use work::{Answer, off_thread};
