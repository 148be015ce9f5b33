//! The broker over real sockets, one file per area of the cases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod mutate;
mod support;
