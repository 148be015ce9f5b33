//! The credential broker: sandboxed code reaches listed hosts through it and never sees the credentials it adds.
//! The way of a request: `listen` -> `edge` (strict HTTP) -> `route` (may it go there) -> `resolve` (is the address fit)
//! -> `value` and `inject` (headers) -> `upstream` (the connection) -> back through `inject`.

pub mod address;
mod base64;
pub mod edge;
pub mod event;
pub mod host;
pub mod inject;
pub mod limits;
pub mod policy;
pub mod refusal;
pub mod route;
pub mod rules;
pub mod scrub;
pub mod token;
pub mod value;
