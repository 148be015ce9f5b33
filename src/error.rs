//! What can go wrong: one error type, one stable code per cause, messages in workspace terms with a way out.

use std::fmt;

pub type Result<T> = std::result::Result<T, Error>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The stable `code` of a `WorkspaceError`. docs/errors.md explains each to users.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $name,)* }

        impl ErrorCode {
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];

            pub fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// An argument has the wrong type, range or form.
    InvalidArgument = "INVALID_ARGUMENT",
    /// The path itself is not acceptable (NUL, drive letter, too long, ...).
    InvalidPath = "INVALID_PATH",
    /// The path leads outside the workspace.
    OutsideWorkspace = "OUTSIDE_WORKSPACE",
    /// A symbolic link is refused: its target is outside, missing, or links are denied.
    LinkRefused = "LINK_REFUSED",
    NotFound = "NOT_FOUND",
    AlreadyExists = "ALREADY_EXISTS",
    IsDirectory = "IS_DIRECTORY",
    NotDirectory = "NOT_DIRECTORY",
    /// A FIFO, socket or device where a regular file is needed.
    NotRegularFile = "NOT_REGULAR_FILE",
    DirectoryNotEmpty = "DIRECTORY_NOT_EMPTY",
    /// `.git` and names listed in `protect` are not written by file tools.
    ProtectedPath = "PROTECTED_PATH",
    /// The operating system refused (EACCES, EPERM, a read-only file).
    AccessDenied = "ACCESS_DENIED",
    /// The file system is mounted read-only.
    ReadOnlyFileSystem = "READ_ONLY_FILE_SYSTEM",
    /// ENOSPC or EDQUOT.
    NoSpace = "NO_SPACE",
    /// EMFILE or ENFILE.
    TooManyOpenFiles = "TOO_MANY_OPEN_FILES",
    /// A file, an argument or a pattern is over its limit.
    TooLarge = "TOO_LARGE",
    /// NUL bytes: not a text file.
    BinaryFile = "BINARY_FILE",
    /// Not UTF-8 (or UTF-16 with a byte order mark): decoding would lose data.
    UnsupportedEncoding = "UNSUPPORTED_ENCODING",
    OffsetPastEnd = "OFFSET_PAST_END",
    /// `old_string` does not occur.
    EditNoMatch = "EDIT_NO_MATCH",
    /// `old_string` occurs more than once.
    EditAmbiguous = "EDIT_AMBIGUOUS",
    /// The file no longer holds what the caller read.
    Stale = "STALE",
    /// A line anchor does not match.
    AnchorMismatch = "ANCHOR_MISMATCH",
    PatchInvalid = "PATCH_INVALID",
    PatchConflict = "PATCH_CONFLICT",
    InvalidGlob = "INVALID_GLOB",
    InvalidRegex = "INVALID_REGEX",
    /// Valid JavaScript, but not translatable with the same meaning.
    UnsupportedRegex = "UNSUPPORTED_REGEX",
    /// A search hit its step limit or deadline.
    SearchLimit = "SEARCH_LIMIT",
    /// The policy says deny (`PermissionDeniedError`).
    PolicyDenied = "POLICY_DENIED",
    /// The workspace is closed (`WorkspaceClosedError`).
    Closed = "CLOSED",
    Aborted = "ABORTED",
    /// A command could not be started.
    SpawnFailed = "SPAWN_FAILED",
    ProcessNotFound = "PROCESS_NOT_FOUND",
    /// A git command failed or there is no repository.
    GitFailed = "GIT_FAILED",
    /// The sandbox cannot give what was asked.
    SandboxUnavailable = "SANDBOX_UNAVAILABLE",
    /// Allowlisted egress cannot be enforced here.
    EgressUnsupported = "LOUSHO_SANDBOX_EGRESS_UNSUPPORTED",
    /// The broker could not start or listen.
    BrokerFailed = "BROKER_FAILED",
    /// This platform or kernel cannot do it.
    Unsupported = "UNSUPPORTED",
    /// Any other failure of the operating system.
    Io = "IO",
    /// A defect of croft.
    Internal = "INTERNAL",
}

/// A refusal or failure. The message is for a model to act on: workspace paths only, never a host path or a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: ErrorCode,
    pub message: String,
    /// The workspace path concerned, as the caller wrote it.
    pub path: Option<String>,
}

impl Error {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            path: None,
        }
    }

    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn every_code_is_documented_for_users() {
        let docs = include_str!("../docs/errors.md");
        let types = include_str!("../index.d.ts");
        for code in ErrorCode::ALL {
            let code = code.as_str();
            assert!(
                docs.contains(&format!("| `{code}` |")),
                "docs/errors.md lacks {code}"
            );
            assert!(types.contains(&format!("'{code}'")), "index.d.ts lacks {code}");
        }
    }
}
