//! A commit of what is staged, or of named files only.

use super::repository::{Git, workspace_path};
use super::status::Status;
use crate::error::{Error, ErrorCode, Result};
use crate::path::quoted;
use std::collections::BTreeSet;

const MAX_MESSAGE_BYTES: usize = 64 * 1024;
const HOOKS: &str = ".git/hooks";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub hash: String,
    pub note: Option<String>,
}

impl Git {
    /// With `files` only those are committed, as they are in the working tree; the rest of the index stays.
    pub async fn commit(&self, message: &str, files: Option<&[String]>) -> Result<Committed> {
        check_message(message)?;
        let status = self.status().await?;
        if let Some(path) = status.conflicted.first() {
            return Err(failed(format!(
                "{} {} unmerged: resolve the conflicts and stage the files in a shell first",
                quoted(path),
                if status.conflicted.len() == 1 {
                    "is".to_owned()
                } else {
                    format!("and {} more are", status.conflicted.len() - 1)
                },
            )));
        }
        let commit = [
            "commit",
            "--quiet",
            "--file=-",
            "--cleanup=verbatim",
            "--no-gpg-sign",
        ];
        let mut words = commit.to_vec();
        if !self.options.run_hooks {
            words.push("--no-verify");
        }
        match files {
            None if status.staged.is_empty() => {
                return Err(failed(
                    "nothing to commit: nothing is staged; give files to commit them".into(),
                ));
            }
            None => {
                self.run("git commit", &words, Some(message.into())).await?;
            }
            Some(files) => self.commit_files(words, message, files, &status).await?,
        }
        let head = self
            .run("git rev-parse", &["rev-parse", "--verify", "HEAD"], None)
            .await?;
        Ok(Committed {
            hash: head.stdout.trim().to_owned(),
            note: self.hooks_note(),
        })
    }

    async fn commit_files(
        &self,
        mut words: Vec<&str>,
        message: &str,
        files: &[String],
        status: &Status,
    ) -> Result<()> {
        if files.is_empty() {
            let message =
                "files is empty: name the files to commit, or leave it out to commit what is staged";
            return Err(Error::new(ErrorCode::InvalidArgument, message));
        }
        let paths: Vec<String> = files
            .iter()
            .map(|path| workspace_path(path))
            .collect::<Result<_>>()?;
        let mut affected: BTreeSet<&str> = BTreeSet::new();
        for path in &paths {
            let before = affected.len();
            affected.extend(status.below(path));
            if affected.len() == before && !affected.contains(path.as_str()) {
                return Err(failed(format!(
                    "nothing to commit in {}: it does not differ from the last commit, is ignored, or is not there",
                    quoted(path)
                )));
            }
        }
        self.refuse_filtered(&affected).await?;
        let new: Vec<&str> = status
            .untracked
            .iter()
            .map(String::as_str)
            .filter(|path| affected.contains(path))
            .collect();
        if let Some(path) = new.iter().find(|path| path.ends_with('/')) {
            return Err(failed(format!("{} is a repository of its own", quoted(path))));
        }
        // Only a file that the index knows can be committed by name.
        if !new.is_empty() {
            let add = [&["add", "--intent-to-add", "--"][..], &new].concat();
            self.run("git add", &add, None).await?;
        }
        words.extend(["--only", "--"]);
        words.extend(paths.iter().map(String::as_str));
        let done = self.run("git commit", &words, Some(message.into())).await;
        if done.is_err() && !new.is_empty() {
            // Back to what it was; the commit's failure is what counts.
            let list = new.join("\0") + "\0";
            let forget = ["update-index", "--force-remove", "-z", "--stdin"];
            let _ = self.run("git update-index", &forget, Some(list.into())).await;
        }
        done.map(|_| ())
    }

    /// Filters are not run here. A file that needs one (Git LFS, git-crypt) would be committed as it is, which
    /// for an encrypting filter means in the clear.
    async fn refuse_filtered(&self, affected: &BTreeSet<&str>) -> Result<()> {
        if self.configured.filters.is_empty() {
            return Ok(());
        }
        let list: String = affected.iter().map(|path| format!("{path}\0")).collect();
        let words = ["check-attr", "-z", "--stdin", "filter"];
        let done = self.run("git check-attr", &words, Some(list.into())).await?;
        let mut fields = done.stdout.split('\0');
        while let (Some(path), Some(_), Some(filter)) = (fields.next(), fields.next(), fields.next()) {
            if self.configured.filters.iter().any(|name| name == filter) {
                return Err(failed(format!(
                    "{} goes through the filter {} on its way into the repository, and git tools run no programs: commit it in a shell",
                    quoted(path),
                    quoted(filter)
                )));
            }
        }
        Ok(())
    }

    fn hooks_note(&self) -> Option<String> {
        let has_hooks = || {
            let hooks = std::fs::read_dir(self.host.root().join(HOOKS)).ok()?;
            let named =
                hooks.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
            Some(named.into_iter().any(|name| !name.ends_with(".sample")))
        };
        let skipped =
            !self.options.run_hooks && (self.configured.has_hooks_path || has_hooks() == Some(true));
        skipped.then(|| "the repository's hooks were not run".to_owned())
    }
}

fn check_message(message: &str) -> Result<()> {
    let wrong = |message: &str| Err(Error::new(ErrorCode::InvalidArgument, message));
    if message.trim().is_empty() {
        return wrong("message is empty: say what the commit does");
    }
    if message.contains('\0') {
        return wrong("message contains a NUL character");
    }
    if message.len() > MAX_MESSAGE_BYTES {
        return wrong("message is over the limit of 65536 bytes");
    }
    Ok(())
}

fn failed(message: String) -> Error {
    Error::new(ErrorCode::GitFailed, format!("git commit: {message}"))
}
