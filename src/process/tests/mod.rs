//! Real processes, through the real helper.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod alone;
mod background;
mod ending;
mod harness;
mod output;
mod ready;
mod starting;
