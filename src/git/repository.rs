//! The repository in a workspace's root: what is refused about it, and one hardened run of git in it.

use super::explain;
use super::settings::{self, Configured, Settings};
use super::status::Status;
use crate::error::{Error, ErrorCode, Result};
use crate::process::exec::{Ended, ExecResult};
use crate::process::host::{Host, ProgramCall};
use crate::process::output::{CaptureOptions, Keep};
use crate::text::clip;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::ffi::{CString, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Enough for about 50,000 names.
const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;

#[derive(Clone, Debug)]
pub struct GitOptions {
    /// For each run of git; an operation needs up to six.
    pub timeout: Duration,
    pub run_hooks: bool,
    /// Of a diff, in UTF-16 code units.
    pub max_output_chars: usize,
}

/// One operation on the repository.
pub struct Git {
    pub(super) host: Arc<Host>,
    /// The host's variables at this moment.
    pub host_env: Vec<(OsString, OsString)>,
    pub options: GitOptions,
    pub cancel: CancellationToken,
    pub(super) configured: Configured,
}

impl Git {
    /// Looks at the repository before git does.
    pub async fn open(
        host: Arc<Host>,
        host_env: Vec<(OsString, OsString)>,
        options: GitOptions,
        cancel: CancellationToken,
    ) -> Result<Self> {
        let is_foreign = check_repository(&host)?;
        let mut git = Git {
            host,
            host_env,
            options,
            cancel,
            configured: Configured::default(),
        };
        if is_foreign {
            git.ask_about_ownership().await?;
        }
        let listing = git.run("git config", &["config", "--list", "-z"], None).await?;
        git.configured = settings::configured(&listing.stdout);
        Ok(git)
    }

    pub async fn status(&self) -> Result<Status> {
        let words = [
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--untracked-files=all",
            "--ignore-submodules=all",
            "--no-renames",
        ];
        let done = self.run("git status", &words, None).await?;
        if done.dropped_bytes > 0 {
            let message =
                "git status: more names than an answer can hold: add what is not source to .gitignore";
            return Err(Error::new(ErrorCode::TooLarge, message));
        }
        Status::parse(&done.stdout)
    }

    /// Of the working tree against the index, or of the index against HEAD.
    pub async fn diff(&self, path: Option<&str>, staged: bool) -> Result<String> {
        let mut words = vec![
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--ignore-submodules=all",
        ];
        if staged {
            words.push("--cached");
        }
        let path = path.map(workspace_path).transpose()?;
        if let Some(path) = &path {
            words.extend(["--", path]);
        }
        let done = self.run("git diff", &words, None).await?;
        let clipped = clip::clip(&done.stdout, self.options.max_output_chars);
        Ok(if done.dropped_bytes > 0 {
            format!(
                "{}\n[{} more bytes were left out: give a path]",
                clipped.text, done.dropped_bytes
            )
        } else {
            clipped.text
        })
    }

    /// Runs git on this repository and nothing else; a failure of git is an error.
    pub(super) async fn run(&self, what: &str, words: &[&str], input: Option<Vec<u8>>) -> Result<ExecResult> {
        let place = [
            "git",
            "--no-pager",
            "--no-optional-locks",
            "--literal-pathspecs",
            "--git-dir=.git",
            "--work-tree=.",
        ];
        let words = [&place[..], words].concat();
        let done = self.run_words(what, &words, input, &[]).await?;
        if done.exit_code == 0 {
            return Ok(done);
        }
        let said = if done.stderr.trim().is_empty() {
            &done.stdout
        } else {
            &done.stderr
        };
        Err(explain::failed(what, said, &self.host.root().to_string_lossy()))
    }

    async fn run_words(
        &self,
        what: &str,
        words: &[&str],
        input: Option<Vec<u8>>,
        more_env: &[(OsString, OsString)],
    ) -> Result<ExecResult> {
        let settings = Settings {
            host: &self.host_env,
            root: self.host.root(),
            run_hooks: self.options.run_hooks,
            filters: &self.configured.filters,
        };
        let variables = settings.environment();
        let call = ProgramCall {
            words: words.iter().map(ToString::to_string).collect(),
            env: variables
                .iter()
                .chain(more_env)
                .map(variable)
                .collect::<Result<_>>()?,
            input,
            timeout: self.options.timeout,
            capture: CaptureOptions {
                max_bytes: MAX_OUTPUT_BYTES,
                shared: false,
                keep: Keep::Head,
            },
        };
        let done = self.host.run_program(call, &self.cancel).await?;
        match done.ended {
            Ended::ByItself => Ok(done),
            Ended::ByAbort => Err(Error::new(ErrorCode::Aborted, "the call was aborted")),
            Ended::ByTimeout => {
                let message = format!(
                    "{what}: git did not end within {} ms and was ended: look for something in the workspace that is no regular file where git reads one, such as a FIFO named .gitignore",
                    self.options.timeout.as_millis()
                );
                Err(Error::new(ErrorCode::GitFailed, message))
            }
        }
    }

    /// A repository that is named outright is not checked by git, so git is asked to find it by itself.
    async fn ask_about_ownership(&self) -> Result<()> {
        let above = self.host.root().parent().map(OsString::from).unwrap_or_default();
        let ceiling = [("GIT_CEILING_DIRECTORIES".into(), above)];
        let words = ["git", "rev-parse", "--git-dir"];
        let done = self.run_words("git", &words, None, &ceiling).await?;
        if done.exit_code == 0 {
            return Ok(());
        }
        let root = self.host.root().to_string_lossy();
        Err(explain::failed("git", &done.stderr, &root))
    }
}

fn variable((name, value): &(OsString, OsString)) -> Result<CString> {
    let mut bytes = name.clone().into_vec();
    bytes.push(b'=');
    bytes.extend(value.clone().into_vec());
    CString::new(bytes).map_err(|_| {
        let message = format!("the variable {} contains a NUL character", name.to_string_lossy());
        Error::new(ErrorCode::InvalidArgument, message)
    })
}

/// As git takes it: literal, relative to the root.
pub(super) fn workspace_path(path: &str) -> Result<String> {
    crate::path::normalize(path, crate::path::Platform::HOST)
}

/// `.git` is a directory of the root itself, with its own objects and references. Whether it, or the root, belongs
/// to another user.
fn check_repository(host: &Host) -> Result<bool> {
    let refuse = |message: &str| Err(Error::new(ErrorCode::GitFailed, message));
    let root = host.open_root()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let git = match rustix::fs::openat(&root, ".git", flags, rustix::fs::Mode::empty()) {
        Ok(git) => git,
        Err(Errno::NOENT) => {
            return refuse(
                "there is no git repository in the workspace's root: make one in a shell with git init",
            );
        }
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return refuse(
                ".git is a file or a link that names a repository elsewhere (a worktree or a submodule): croft's git tools do not leave the workspace, open the repository's own directory instead",
            );
        }
        Err(errno) => return refuse(&format!(".git cannot be opened: {errno}")),
    };
    super::own::check(git.as_fd())?;
    let user = rustix::process::geteuid().as_raw();
    let is_foreign = [root.as_fd(), git.as_fd()]
        .into_iter()
        .any(|fd| rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_uid != user));
    Ok(is_foreign)
}
