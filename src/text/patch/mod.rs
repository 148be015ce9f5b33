//! Patches: unified diffs as `git apply` reads them, and the `*** Begin Patch` envelope (V4A). Pure: a patch and a
//! look-up of present files go in, a plan of file operations comes out; carrying it out whole or not at all is
//! the caller's.
//!
//! `git apply` is the reference. Stricter here: a hunk that fits at several places other than the named one is
//! refused (git takes the nearest), lines beyond a hunk's counts are an error (git ignores them), a name may not
//! contain `..`. Wider: names without `a/` and `b/`, and a patch and a file that differ in CRLF against LF alone.

mod file_diff;
mod hunk;
mod image;
mod name;
mod place;
mod plan;
mod unified;
mod v4a;

pub use plan::{Action, Operation, PatchedFile, Plan};

use crate::error::{Error, ErrorCode, Result};

/// Context lines that a hunk may lose at each end, at most.
pub const MAX_FUZZ: u8 = 2;

/// Reads a present file: `None` when nothing is there, an error for anything but a regular file. The path is
/// normalised.
pub type Lookup<'l> = dyn FnMut(&str) -> Result<Option<Vec<u8>>> + 'l;

/// Where a hunk went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedHunk {
    /// 1-based, within its file.
    pub hunk: usize,
    /// 1-based first line of the place, as the file was numbered before the patch.
    pub line: usize,
    /// Lines between the place the patch names and the one that was found.
    pub offset: isize,
    /// Context lines left out at each end to make it fit.
    pub fuzz: u8,
}

/// What a patch makes of the files it names. `PATCH_INVALID`, `PATCH_CONFLICT`, `NOT_FOUND`, `ALREADY_EXISTS`,
/// `PROTECTED_PATH`, `OUTSIDE_WORKSPACE`, and what the look-up and [`super::encoding::decode`] refuse.
pub fn plan_patch(patch: &str, fuzz: u8, lookup: &mut Lookup<'_>) -> Result<Plan> {
    if fuzz > MAX_FUZZ {
        let message = format!("fuzz is {fuzz}: use 0 to {MAX_FUZZ}");
        return Err(Error::new(ErrorCode::InvalidArgument, message));
    }
    match v4a::envelope(patch) {
        Some(body) => plan::plan_v4a(&v4a::parse(body)?, lookup),
        None => plan::plan_unified(&unified::parse(patch)?, fuzz, lookup),
    }
}

/// One file of a headerless V4A diff, as the OpenAI Agents SDK hands it to an `Editor`: `None` creates the file
/// from lines that all begin with `+`. Returns the new bytes.
pub fn apply_v4a_diff(bytes: Option<&[u8]>, path: &str, diff: &str) -> Result<Vec<u8>> {
    match bytes {
        None => v4a::created(diff).map(String::into_bytes),
        Some(bytes) => {
            file_diff::update_v4a(bytes, path, &v4a::parse_chunks(diff)?, false).map(|done| done.bytes)
        }
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::PatchInvalid, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
