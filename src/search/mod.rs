//! Finding files and lines: one walk over a `Tree`, globs, git's ignore rules, JavaScript regular expressions.
//! What a search may see is decided by the tree and by `WalkOptions`; nothing here opens a path.

pub mod budget;
mod find;
pub mod glob;
mod grep;
pub mod ignore;
pub mod lines;
mod mirror;
pub mod regex;
mod render;
mod walk;
mod wildmatch;

pub use budget::{Cancel, NeverCancelled, Stop};
pub use find::{GlobRequest, GlobResult, ListEntry, ListRequest, ListResult, glob, list};
pub use grep::{FileMatches, GrepRequest, GrepResult, grep};
pub use lines::ShownLine;
pub use mirror::{Mirror, Missing};
pub use render::{glob_text, grep_text, list_text, step_limit_error};
pub use walk::{Skipped, WalkOptions, Walkable};

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
