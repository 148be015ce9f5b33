//! Finding files and lines: one walk over a `Tree`, globs, git's ignore rules, JavaScript regular expressions.
//! What a search may see is decided by the tree and by `WalkOptions`; nothing here opens a path.

pub mod budget;
pub mod glob;
pub mod ignore;
mod wildmatch;
