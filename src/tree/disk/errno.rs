//! What the operating system said, as a refusal in workspace terms.

use crate::error::{Error, ErrorCode};
use crate::tree::refusal::Target;
use rustix::io::Errno;

impl Target<'_> {
    /// `verb` completes "could not be ...".
    pub(super) fn os_error(&self, errno: Errno, verb: &str) -> Error {
        match errno {
            Errno::NOENT => self.not_found(),
            Errno::NOTDIR => self.not_directory(),
            Errno::ISDIR => self.is_directory(),
            Errno::EXIST => self.exists(),
            Errno::NOTEMPTY => self.not_empty(),
            Errno::LOOP => self.too_many_links(),
            Errno::ACCESS | Errno::PERM | Errno::TXTBSY | Errno::BUSY => self.refuse(
                ErrorCode::AccessDenied,
                &format!("could not be {verb}: {errno}; its permissions or those of its directory forbid it"),
            ),
            Errno::ROFS => self.refuse(
                ErrorCode::ReadOnlyFileSystem,
                &format!("could not be {verb}: its file system is read-only"),
            ),
            Errno::NOSPC | Errno::DQUOT => self.refuse(
                ErrorCode::NoSpace,
                &format!("could not be {verb}: {errno}; free some space first, the old content is intact"),
            ),
            Errno::FBIG => self.refuse(
                ErrorCode::TooLarge,
                &format!(
                    "could not be {verb}: the file would be larger than its file system or limit allows"
                ),
            ),
            Errno::MFILE | Errno::NFILE => self.refuse(
                ErrorCode::TooManyOpenFiles,
                &format!("could not be {verb}: {errno}; try again when fewer files are open"),
            ),
            Errno::NAMETOOLONG => self.refuse(
                ErrorCode::InvalidPath,
                "is too long for its file system: use a shorter name",
            ),
            Errno::NXIO | Errno::NODEV => self.not_regular(),
            _ => self.refuse(ErrorCode::Io, &format!("could not be {verb}: {errno}")),
        }
    }

    pub(super) fn not_regular(&self) -> Error {
        self.refuse(
            ErrorCode::NotRegularFile,
            "is not a regular file (a FIFO, a socket, a device, or a file of procfs and the like)",
        )
    }

    pub(super) fn link_outside(&self) -> Error {
        self.refuse(
            ErrorCode::LinkRefused,
            "leads through a link to a place outside the workspace",
        )
    }

    pub(super) fn link_dangling(&self) -> Error {
        self.refuse(
            ErrorCode::LinkRefused,
            "leads through a link whose target is missing: remove the link or name the target itself",
        )
    }

    pub(super) fn link_denied(&self) -> Error {
        self.refuse(
            ErrorCode::LinkRefused,
            "leads through a link, and links are denied in this workspace",
        )
    }

    pub(super) fn too_many_links(&self) -> Error {
        self.refuse(
            ErrorCode::LinkRefused,
            "leads through too many links, or links that form a circle",
        )
    }

    pub(super) fn crosses_mount(&self) -> Error {
        self.refuse(
            ErrorCode::Io,
            "cannot be renamed across file systems: write the new file and remove this one",
        )
    }

    pub(super) fn kept_moving(&self) -> Error {
        self.refuse(
            ErrorCode::Io,
            "could not be opened: directories kept moving meanwhile; try again",
        )
    }
}
