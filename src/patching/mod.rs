//! Carries a patch out on a tree: all of its files or none. What the patch means is left to `text::patch`, where
//! each change happens to `tree`.
//!
//! A file system has no transaction over several files: the steps are made one by one, each refused when its
//! file no longer holds what was planned on, and a failure undoes the steps before it. A process that is killed
//! in between leaves the files that were done; each of them is whole.

mod undo;

use crate::error::{Error, ErrorCode, Result};
use crate::path::quoted;
use crate::text::content_hash::{check_known, content_hash};
use crate::text::patch::{Operation, PatchedFile, plan_patch};
use crate::tree::{RemoveOptions, Tree, UpdateOptions, WriteOptions};
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;
use undo::Journal;

#[derive(Clone, Debug, Default)]
pub struct PatchOptions {
    pub fuzz: u8,
    /// Larger files are refused.
    pub max_bytes: u64,
    /// Content hashes that the caller has seen, by normalised path: a file that differs is refused.
    pub known: HashMap<String, String>,
    /// Looked at between the steps; a cancelled patch is undone.
    pub cancel: Option<CancellationToken>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    pub files: Vec<PatchedFile>,
    /// Each path that changed, and the hash of what it holds now; `None` where nothing is any more.
    pub hashes: Vec<(String, Option<String>)>,
}

/// Applies `patch` to `tree`. The errors are those of [`plan_patch`] and of the tree; after any of them the files
/// are as they were, or the message says which are not.
pub fn apply_patch(tree: &dyn Tree, patch: &str, options: &PatchOptions) -> Result<Patched> {
    let mut lookup = |path: &str| match tree.read(path, options.max_bytes) {
        Ok(bytes) => {
            check_known(&bytes, path, options.known.get(path).map(String::as_str))?;
            Ok(Some(bytes))
        }
        Err(error) if error.code == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let plan = plan_patch(patch, options.fuzz, &mut lookup)?;
    let mut run = Run {
        tree,
        options,
        journal: Journal::default(),
        hashes: Vec::new(),
    };
    for operation in plan.operations {
        if let Err(error) = run.step(operation) {
            return Err(run.journal.roll_back(tree, error));
        }
    }
    Ok(Patched {
        files: plan.files,
        hashes: run.hashes,
    })
}

struct Run<'r> {
    tree: &'r dyn Tree,
    options: &'r PatchOptions,
    journal: Journal,
    hashes: Vec<(String, Option<String>)>,
}

impl Run<'_> {
    fn step(&mut self, operation: Operation) -> Result<()> {
        if self
            .options
            .cancel
            .as_ref()
            .is_some_and(CancellationToken::is_cancelled)
        {
            return Err(Error::new(ErrorCode::Aborted, "the call was aborted"));
        }
        match operation {
            Operation::Write {
                path,
                before,
                content,
                executable,
                mode_from,
            } => {
                let mode = mode_from.and_then(|from| self.mode(&from));
                self.hashes.push((path.clone(), Some(content_hash(&content))));
                match before {
                    None => self.create(&path, content)?,
                    Some(before) if before == content => {}
                    Some(before) => self.replace(&path, before, content)?,
                }
                self.set_mode(&path, mode, executable)
            }
            Operation::Rename {
                from,
                to,
                before,
                content,
                executable,
            } => {
                self.check_holds(&from, &before)?;
                self.make_parents(&to)?;
                self.tree.rename(&from, &to, false)?;
                self.journal.renamed(&from, &to);
                let now = content.as_ref().unwrap_or(&before);
                self.hashes.push((to.clone(), Some(content_hash(now))));
                self.hashes.push((from, None));
                if let Some(content) = content {
                    self.replace(&to, before, content)?;
                }
                self.set_mode(&to, None, executable)
            }
            Operation::Remove { path, before } => {
                let mode = self.mode(&path);
                self.check_holds(&path, &before)?;
                self.tree.remove(&path, &RemoveOptions::default())?;
                self.hashes.push((path.clone(), None));
                self.journal.removed(path, before, mode);
                Ok(())
            }
        }
    }

    fn create(&mut self, path: &str, content: Vec<u8>) -> Result<()> {
        self.make_parents(path)?;
        let options = WriteOptions {
            create_only: true,
            ..WriteOptions::default()
        };
        self.tree.write(path, &content, &options)?;
        self.journal.created(path, content);
        Ok(())
    }

    fn replace(&mut self, path: &str, before: Vec<u8>, content: Vec<u8>) -> Result<()> {
        replace(self.tree, path, &before, &content, self.options.max_bytes)?;
        self.journal.replaced(path, before, content);
        Ok(())
    }

    fn set_mode(&mut self, path: &str, mode: Option<u32>, executable: Option<bool>) -> Result<()> {
        let Some(old) = self.mode(path) else {
            return Ok(());
        };
        let base = mode.unwrap_or(old);
        let new = match executable {
            // Who may read it may run it.
            Some(true) => base | (base & 0o444) >> 2,
            Some(false) => base & !0o111,
            None => base,
        };
        if new == old {
            return Ok(());
        }
        self.tree.set_mode(path, new)?;
        self.journal.changed_mode(path, old);
        Ok(())
    }

    fn mode(&self, path: &str) -> Option<u32> {
        self.tree.stat(path).ok().flatten().map(|stat| stat.mode)
    }

    /// One by one, so that undoing takes away exactly those that were missing.
    fn make_parents(&mut self, path: &str) -> Result<()> {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for parent in ends.map(|end| &path[..end]).filter(|parent| !parent.is_empty()) {
            if self.tree.stat(parent)?.is_none() {
                self.tree.make_dir(parent)?;
                self.journal.made_directory(parent);
            }
        }
        Ok(())
    }

    fn check_holds(&self, path: &str, before: &[u8]) -> Result<()> {
        match self.tree.read(path, self.options.max_bytes) {
            Ok(now) if now == before => Ok(()),
            Ok(_) => Err(stale(path)),
            Err(error) => Err(error),
        }
    }
}

/// Puts `content` where `before` is; `STALE` when something else is there.
fn replace(tree: &dyn Tree, path: &str, before: &[u8], content: &[u8], max_bytes: u64) -> Result<()> {
    let options = UpdateOptions {
        max_bytes,
        ..UpdateOptions::default()
    };
    let changed = tree.update(path, &options, &mut |now| {
        if now == before {
            Ok(Some(content.to_vec()))
        } else {
            Err(stale(path))
        }
    });
    changed.map(|_| ())
}

fn stale(path: &str) -> Error {
    let message = format!(
        "{} changed while the patch was applied: read it again and make a new patch",
        quoted(path)
    );
    Error::new(ErrorCode::Stale, message).at(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
