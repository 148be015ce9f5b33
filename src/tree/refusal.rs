//! The refusals that both trees share, so that the same call fails with the same code and words on each.

use super::hint;
use crate::error::{Error, ErrorCode, Result};
use crate::path::{ParsedPath, Platform, ProtectedNames, parse, quoted};
use tokio_util::sync::CancellationToken;

/// A path as the caller wrote it, beside what was parsed of it: every refusal names it.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    pub written: &'a str,
    pub parsed: ParsedPath<'a>,
}

impl<'a> Target<'a> {
    pub(crate) fn parse(path: &'a str) -> Result<Self> {
        Ok(Self {
            written: path,
            parsed: parse(path, Platform::HOST)?,
        })
    }

    /// For an operation that changes something: a protected name is refused before anything is looked at.
    /// Where links lead is checked again by the disk tree, on the resolved names.
    pub(crate) fn parse_for_change(path: &'a str, protected: &ProtectedNames) -> Result<Self> {
        let target = Self::parse(path)?;
        if target
            .parsed
            .collapsed()
            .iter()
            .any(|name| protected.covers(name))
        {
            return Err(target.protected());
        }
        Ok(target)
    }

    pub(crate) fn refuse(&self, code: ErrorCode, rule: &str) -> Error {
        Error::new(code, format!("{} {rule}", quoted(self.written))).at(self.written)
    }

    pub(crate) fn not_found(&self) -> Error {
        self.refuse(
            ErrorCode::NotFound,
            "was not found: list its directory to see what is there",
        )
    }

    /// `names`: what the directory holds where the last name was looked for.
    pub(crate) fn not_found_among<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Error {
        let wanted = self.parsed.components.last().copied().unwrap_or_default();
        match hint::nearest(wanted, names) {
            Some(hint) => self.refuse(ErrorCode::NotFound, &format!("was not found: {hint}")),
            None => self.not_found(),
        }
    }

    pub(crate) fn is_directory(&self) -> Error {
        self.refuse(
            ErrorCode::IsDirectory,
            "is a directory, not a file: give the path of a file in it",
        )
    }

    pub(crate) fn not_directory(&self) -> Error {
        self.refuse(
            ErrorCode::NotDirectory,
            "is used as a directory, but a part of it is not one",
        )
    }

    pub(crate) fn exists(&self) -> Error {
        self.refuse(
            ErrorCode::AlreadyExists,
            "exists already and was not replaced: choose another name",
        )
    }

    pub(crate) fn not_empty(&self) -> Error {
        self.refuse(
            ErrorCode::DirectoryNotEmpty,
            "is a directory with entries: set recursive to remove it",
        )
    }

    pub(crate) fn protected(&self) -> Error {
        self.refuse(
            ErrorCode::ProtectedPath,
            "has a protected name in it: file tools do not change .git or names listed in `protect`",
        )
    }

    pub(crate) fn holds_protected(&self) -> Error {
        self.refuse(
            ErrorCode::ProtectedPath,
            "holds .git or another protected name, which file tools do not remove: nothing was removed",
        )
    }

    pub(crate) fn is_root(&self, verb: &str) -> Error {
        let rule = format!("is the workspace root, which cannot be {verb}");
        self.refuse(ErrorCode::InvalidArgument, &rule)
    }

    pub(crate) fn too_large(&self, size: u64, max_bytes: u64) -> Error {
        let rule =
            format!("has {size} bytes and the limit is {max_bytes} bytes: read a part of it or search it");
        self.refuse(ErrorCode::TooLarge, &rule)
    }

    pub(crate) fn stale(&self) -> Error {
        self.refuse(
            ErrorCode::Stale,
            "was changed by another writer meanwhile, nothing was written: read it again",
        )
    }

    pub(crate) fn moved_into_itself(&self) -> Error {
        self.refuse(ErrorCode::InvalidArgument, "cannot be moved into itself")
    }

    pub(crate) fn replaces_directory(&self) -> Error {
        self.refuse(
            ErrorCode::IsDirectory,
            "is a directory and cannot be replaced by a file",
        )
    }

    pub(crate) fn replaces_file(&self) -> Error {
        self.refuse(
            ErrorCode::NotDirectory,
            "is not a directory and cannot be replaced by one",
        )
    }

    pub(crate) fn aborted(&self) -> Error {
        self.refuse(ErrorCode::Aborted, "was not changed: the call was aborted")
    }

    pub(crate) fn check_cancel(&self, cancel: Option<&CancellationToken>) -> Result<()> {
        match cancel {
            Some(token) if token.is_cancelled() => Err(self.aborted()),
            _ => Ok(()),
        }
    }
}
