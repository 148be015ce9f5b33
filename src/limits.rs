//! Every default and ceiling, with its unit in the name. A user-facing limit is documented in index.d.ts too.

/// `read_file` refuses larger files.
pub const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;
/// `write_file` refuses larger contents.
pub const MAX_WRITE_BYTES: u64 = 10 * 1024 * 1024;
/// An edit that makes a file larger by more than this is refused before the memory is taken.
pub const MAX_EDIT_GROWTH_BYTES: usize = 64 * 1024 * 1024;
/// The files that one patch reads and makes, together.
pub const MAX_PATCH_BYTES: usize = 256 * 1024 * 1024;
/// `view_image` refuses larger files.
pub const MAX_IMAGE_BYTES: u64 = 5 * 1024 * 1024;
/// Lines of one page.
pub const MAX_READ_LINES: usize = 2000;
/// Characters (UTF-16 code units, as JavaScript counts) of one tool answer.
pub const MAX_OUTPUT_CHARS: usize = 50_000;
/// Paths, matches or entries of one answer.
pub const MAX_RESULTS: usize = 200;
/// Files one walk visits.
pub const MAX_FILES_SCANNED: usize = 20_000;
/// Larger files are skipped by grep.
pub const MAX_GREP_FILE_BYTES: u64 = 2 * 1024 * 1024;
/// Longest path a tree accepts, in bytes (PATH_MAX on Linux less the final NUL).
pub const MAX_PATH_BYTES: usize = 4095;
/// Longest name in a path, in bytes (NAME_MAX on Linux).
pub const MAX_NAME_BYTES: usize = 255;
/// Symbolic links followed in one resolution, as the kernel allows (path_resolution(7)).
pub const MAX_LINKS_FOLLOWED: u32 = 40;
/// Characters of one line in an answer of grep; a longer line is cut around its match.
pub const MAX_GREP_LINE_CHARS: usize = 500;
/// Lines that grep shows before and after a match.
pub const MAX_GREP_CONTEXT_LINES: usize = 50;
/// A search gives what it has after this time.
pub const SEARCH_TIMEOUT_MS: u64 = 30_000;
/// Directory names that glob, grep and recursive listing skip at any depth.
pub const SKIP_NAMES: &[&str] = &[".git", "node_modules"];
