//! git, for JavaScript.

use super::CancelHandle;
use super::convert::whole;
use super::process::{NativeCommands, host_env};
use crate::git::{Committed, Git, GitOptions, Status};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use std::time::Duration;

#[napi(object, object_to_js = false)]
pub struct NativeGitOptions {
    /// `process.env` as JSON.
    pub host_env: String,
    pub timeout_ms: f64,
    pub run_hooks: bool,
    pub max_output_chars: f64,
}

#[napi(object, object_from_js = false)]
pub struct NativeGitStatus {
    pub branch: Option<String>,
    pub staged: Vec<String>,
    pub unstaged: Vec<String>,
    pub untracked: Vec<String>,
    pub conflicted: Vec<String>,
}

#[napi(object, object_from_js = false)]
pub struct NativeCommitted {
    pub hash: String,
    pub note: Option<String>,
}

#[napi]
impl NativeCommands {
    #[napi]
    pub fn git_status<'env>(
        &self,
        env: &'env Env,
        options: NativeGitOptions,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeGitStatus>> {
        let opening = self.git(options, cancel)?;
        env.spawn_future(async move { Ok(opening.await?.status().await?.into()) })
    }

    #[napi]
    pub fn git_diff<'env>(
        &self,
        env: &'env Env,
        path: Option<String>,
        staged: bool,
        options: NativeGitOptions,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, String>> {
        let opening = self.git(options, cancel)?;
        env.spawn_future(async move { Ok(opening.await?.diff(path.as_deref(), staged).await?) })
    }

    #[napi]
    pub fn git_commit<'env>(
        &self,
        env: &'env Env,
        message: String,
        files: Option<Vec<String>>,
        options: NativeGitOptions,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeCommitted>> {
        let opening = self.git(options, cancel)?;
        env.spawn_future(async move {
            let git = opening.await?;
            Ok(git.commit(&message, files.as_deref()).await?.into())
        })
    }
}

impl NativeCommands {
    fn git(
        &self,
        options: NativeGitOptions,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<impl Future<Output = crate::error::Result<Git>> + use<>> {
        let checked = GitOptions {
            timeout: Duration::from_millis(whole("timeoutMs", options.timeout_ms, 1)?),
            run_hooks: options.run_hooks,
            max_output_chars: whole("maxOutputChars", options.max_output_chars, 1)? as usize,
        };
        let token = cancel.map(CancelHandle::token).unwrap_or_default();
        Ok(Git::open(
            self.host(),
            host_env(&options.host_env)?,
            checked,
            token,
        ))
    }
}

impl From<Status> for NativeGitStatus {
    fn from(status: Status) -> Self {
        Self {
            branch: status.branch,
            staged: status.staged,
            unstaged: status.unstaged,
            untracked: status.untracked,
            conflicted: status.conflicted,
        }
    }
}

impl From<Committed> for NativeCommitted {
    fn from(committed: Committed) -> Self {
        Self {
            hash: committed.hash,
            note: committed.note,
        }
    }
}
