//! What a patch has done so far, and the way back.

use super::replace;
use crate::error::{Error, Result};
use crate::path::quoted;
use crate::tree::{RemoveOptions, Tree, WriteOptions};

enum Done {
    MadeDirectory(String),
    Created {
        path: String,
        content: Vec<u8>,
    },
    Replaced {
        path: String,
        before: Vec<u8>,
        content: Vec<u8>,
    },
    Renamed {
        from: String,
        to: String,
    },
    Removed {
        path: String,
        before: Vec<u8>,
        mode: Option<u32>,
    },
    ChangedMode {
        path: String,
        mode: u32,
    },
}

#[derive(Default)]
pub(super) struct Journal(Vec<Done>);

impl Journal {
    pub fn made_directory(&mut self, path: &str) {
        self.0.push(Done::MadeDirectory(path.to_owned()));
    }

    pub fn created(&mut self, path: &str, content: Vec<u8>) {
        let path = path.to_owned();
        self.0.push(Done::Created { path, content });
    }

    pub fn replaced(&mut self, path: &str, before: Vec<u8>, content: Vec<u8>) {
        let path = path.to_owned();
        self.0.push(Done::Replaced {
            path,
            before,
            content,
        });
    }

    pub fn renamed(&mut self, from: &str, to: &str) {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.0.push(Done::Renamed { from, to });
    }

    pub fn removed(&mut self, path: String, before: Vec<u8>, mode: Option<u32>) {
        self.0.push(Done::Removed { path, before, mode });
    }

    pub fn changed_mode(&mut self, path: &str, mode: u32) {
        let path = path.to_owned();
        self.0.push(Done::ChangedMode { path, mode });
    }

    /// Undoes the latest first. What another writer has changed since stays as it is, and `error` says so.
    pub fn roll_back(self, tree: &dyn Tree, error: Error) -> Error {
        let mut stuck = Vec::new();
        for done in self.0.into_iter().rev() {
            if let Err(path) = done.undo(tree) {
                stuck.push(quoted(&path));
            }
        }
        let message = if stuck.is_empty() {
            format!("{}. No file was changed", error.message)
        } else {
            format!(
                "{}. The rest was undone, except in {}: look at what they hold now",
                error.message,
                stuck.join(", ")
            )
        };
        Error { message, ..error }
    }
}

impl Done {
    /// The path, when it could not be put back.
    fn undo(self, tree: &dyn Tree) -> std::result::Result<(), String> {
        let (path, undone) = match self {
            // Somebody may have put a file into it; then it stays, and that is no loss.
            Done::MadeDirectory(path) => {
                let _ = tree.remove(&path, &RemoveOptions::default());
                return Ok(());
            }
            Done::Created { path, content } => {
                let undone = remove_created(tree, &path, &content);
                (path, undone)
            }
            Done::Replaced {
                path,
                before,
                content,
            } => {
                let undone = replace(tree, &path, &content, &before, u64::MAX);
                (path, undone)
            }
            Done::Renamed { from, to } => {
                let undone = tree.rename(&to, &from, false);
                (from, undone)
            }
            Done::Removed { path, before, mode } => {
                let undone = restore(tree, &path, &before, mode);
                (path, undone)
            }
            Done::ChangedMode { path, mode } => {
                let undone = tree.set_mode(&path, mode);
                (path, undone)
            }
        };
        undone.map_err(|_| path)
    }
}

fn remove_created(tree: &dyn Tree, path: &str, content: &[u8]) -> Result<()> {
    if tree.read(path, content.len() as u64)? != content {
        return Err(super::stale(path));
    }
    tree.remove(path, &RemoveOptions::default())
}

fn restore(tree: &dyn Tree, path: &str, before: &[u8], mode: Option<u32>) -> Result<()> {
    let options = WriteOptions {
        create_only: true,
        ..WriteOptions::default()
    };
    tree.write(path, before, &options)?;
    match mode {
        Some(mode) => tree.set_mode(path, mode),
        None => Ok(()),
    }
}
