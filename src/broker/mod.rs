//! The credential broker: sandboxed code reaches listed hosts through it and never sees the credentials it adds.
//! The way of a request: `listen` -> `edge` (strict HTTP) -> `route` (may it go there) -> `resolve` (is the address fit)
//! -> `value` and `inject` (headers) -> `upstream` (the connection) -> back through `inject`.

pub mod address;
mod base64;
pub mod body;
pub mod edge;
pub mod event;
pub mod exchange;
pub mod host;
pub mod inject;
pub mod limits;
pub mod listen;
mod location;
pub mod peer;
pub mod policy;
pub mod proxy;
pub mod refusal;
pub mod relay;
pub mod resolve;
pub mod route;
pub mod rules;
pub mod runtime;
pub mod scrub;
mod seldom;
pub mod sni;
pub mod start;
mod tls;
pub mod token;
pub mod tunnel;
pub mod upstream;
pub mod value;

pub use start::{Broker, BrokerConfig, ListenConfig, Listener};
