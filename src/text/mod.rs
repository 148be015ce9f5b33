//! What is done to text: pages, edits, clipping. Pure functions over bytes; where files live is left to `tree`,
//! who may touch them to `policy`. A `path` argument is for messages only.

pub mod clip;
pub mod content_hash;
pub mod edit;
pub mod encoding;
pub mod ending;
pub mod hash_edit;
pub mod hash_line;
pub mod lines;
pub mod overwrite;
pub mod page;
pub mod patch;
pub mod sniff;
pub mod strip_ansi;
