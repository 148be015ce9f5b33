//! One table of cases through every operation on every tree: the disk with `openat2`, the disk with the component
//! walk, and memory.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod confine;
mod denied;
mod race;
mod routed;
mod second_opinion;
mod special;
mod support;
mod unflushed;
mod write;
