//! Where files live. A [`Tree`] is confined by construction: whatever path it is given, it touches nothing
//! outside. Two implementations: a directory on disk and memory. What is done to text is left to `text`.

#[cfg(unix)]
mod disk;
#[cfg(not(unix))]
#[path = "disk_unsupported.rs"]
mod disk;
mod follow;
mod gate;
mod gated;
mod hint;
mod memory;
mod refusal;
mod routed;

pub use disk::{DiskTree, Resolver};
pub use follow::follow_links;
pub use gate::{Access, Gate, SharedGate};
pub use gated::GatedTree;
pub use memory::{MemoryFile, MemoryTree};
pub use routed::RoutedTree;

use crate::error::Result;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileType {
    File,
    Directory,
    Symlink,
    Other,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    pub file_type: FileType,
    pub size: u64,
    pub mtime_ms: f64,
    /// Permission bits (0o7777), without the file type.
    pub mode: u32,
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Bytes that are not UTF-8, and backslashes, are shown as `\xNN`.
    pub name: String,
    /// False when no path can name it (not UTF-8, or a backslash, which separates in every path).
    pub addressable: bool,
    /// The entry itself; links are not followed.
    pub file_type: FileType,
    /// For a link: the type of its target when the target is inside the workspace.
    pub link_target: Option<FileType>,
    /// Of the entry itself, in bytes; only when asked for, and not of directories.
    pub size: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Fail with `ALREADY_EXISTS` instead of replacing.
    pub create_only: bool,
    /// Create missing parent directories.
    pub create_parents: bool,
    /// Also fsync the directory.
    pub durable: bool,
    /// Looked at until the moment of the rename; a cancelled write changes nothing and fails with `ABORTED`.
    pub cancel: Option<CancellationToken>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            create_only: false,
            create_parents: true,
            durable: false,
            cancel: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct UpdateOptions {
    /// Bounds the file that is read.
    pub max_bytes: u64,
    pub durable: bool,
    pub cancel: Option<CancellationToken>,
}

impl Default for UpdateOptions {
    fn default() -> Self {
        Self {
            max_bytes: crate::limits::MAX_FILE_BYTES,
            durable: false,
            cancel: None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct RemoveOptions {
    pub recursive: bool,
    pub cancel: Option<CancellationToken>,
}

/// What a change makes of the current bytes: new bytes, or `None` to leave the file alone. It may be called
/// again when the file was replaced meanwhile by one with the same bytes.
pub type Change<'a> = dyn FnMut(&[u8]) -> Result<Option<Vec<u8>>> + 'a;

/// A regular file held open, for reading parts of it.
pub trait OpenFile: Send + Sync {
    /// In bytes, when it was opened.
    fn size(&self) -> u64;

    /// Fills as much of `buffer` as the file has from `offset` on; less than the buffer only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
}

/// Confined files. Paths are as the caller wrote them; each method normalises (`path::normalize`) and confines.
/// Methods may block on the disk, except the `_now` ones, which answer only when they cannot wait.
pub trait Tree: Send + Sync + 'static {
    /// The whole content of a regular file; `TOO_LARGE` above `max_bytes`.
    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>>;

    /// As `read`, or `None` when the answer might have to wait for a disk.
    fn read_now(&self, path: &str, max_bytes: u64) -> Option<Result<Vec<u8>>>;

    /// Replaces or creates a file atomically.
    fn write(&self, path: &str, content: &[u8], options: &WriteOptions) -> Result<()>;

    /// Reads, changes and atomically replaces one file under its lock; fails with `STALE` if another writer
    /// got in between. Returns whether anything was written.
    fn update(&self, path: &str, options: &UpdateOptions, change: &mut Change<'_>) -> Result<bool>;

    /// Opens a regular file of any size, to read parts of it.
    fn open_file(&self, path: &str) -> Result<Box<dyn OpenFile>>;

    /// `None` when nothing is there. A link is followed while it stays inside; one that may not be followed is
    /// reported as `Symlink`, and nothing is told about its target.
    fn stat(&self, path: &str) -> Result<Option<Stat>>;

    fn stat_now(&self, path: &str) -> Option<Result<Option<Stat>>>;

    /// Sorted by name (bytes). `sizes` costs one call for each file.
    fn read_dir(&self, path: &str, sizes: bool) -> Result<Vec<Entry>>;

    /// Recursive and idempotent.
    fn make_dir(&self, path: &str) -> Result<()>;

    /// A link is removed, never its target. The root, and a directory that holds a protected name, are refused.
    fn remove(&self, path: &str, options: &RemoveOptions) -> Result<()>;

    /// Missing parents of `to` are created. A link is renamed, never its target.
    fn rename(&self, from: &str, to: &str, overwrite: bool) -> Result<()>;

    /// Gives a regular file other permission bits. A link is followed as `write` follows it.
    fn set_mode(&self, path: &str, mode: u32) -> Result<()>;

    /// Opens a file or directory as the start of a walk.
    fn open_walk(&self, path: &str) -> Result<WalkStart>;

    /// The path that links lead to, as far as it exists now: for judging and for showing, never for opening.
    fn resolved(&self, path: &str) -> Result<String> {
        Ok(refusal::Target::parse(path)?.parsed.normalized())
    }
}

/// Where a walk begins.
pub enum WalkStart {
    /// A directory, and its normalised path (`.` for the root). `above` holds the folders from the root down
    /// to the start's parent, for the ignore files above the start: (normalised path, folder).
    Folder {
        folder: Box<dyn Folder>,
        path: String,
        above: Vec<(String, Box<dyn Folder>)>,
    },
    /// A single regular file: its parent, its name, and its normalised path.
    File {
        parent: Box<dyn Folder>,
        name: Vec<u8>,
        path: String,
    },
}

/// A directory held open by a walk. No method follows a link.
pub trait Folder: Send + Sync {
    /// Appends all entries, in no particular order, without `.` and `..`.
    fn entries(&self, out: &mut EntryList) -> Result<()>;

    fn open_folder(&self, name: &[u8]) -> Result<Box<dyn Folder>>;

    /// Reads a whole regular file into `buffer` (replacing what it held).
    fn read_file(&self, name: &[u8], max_bytes: u64, buffer: &mut Vec<u8>) -> Result<FileRead>;

    /// Device and inode, to recognise a directory seen before. `(0, n)` in memory.
    fn identity(&self) -> Result<(u64, u64)>;
}

/// The entries of one directory. All names share one buffer: a walk over 100,000 files must not allocate per name.
#[derive(Clone, Debug, Default)]
pub struct EntryList {
    names: Vec<u8>,
    entries: Vec<RawEntry>,
}

#[derive(Clone, Copy, Debug)]
struct RawEntry {
    start: u32,
    end: u32,
    file_type: FileType,
}

impl EntryList {
    pub fn clear(&mut self) {
        self.names.clear();
        self.entries.clear();
    }

    /// Ignored beyond 4 GiB of names, which no directory that can be listed reaches.
    pub fn push(&mut self, name: &[u8], file_type: FileType) {
        let (Ok(start), Ok(end)) = (
            u32::try_from(self.names.len()),
            u32::try_from(self.names.len() + name.len()),
        ) else {
            return;
        };
        self.names.extend_from_slice(name);
        self.entries.push(RawEntry {
            start,
            end,
            file_type,
        });
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        let names = &self.names;
        self.entries
            .retain(|entry| keep(&names[entry.start as usize..entry.end as usize]));
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The name (bytes) and type at `index`, which must be below `len()`.
    pub fn get(&self, index: usize) -> (&[u8], FileType) {
        let entry = self.entries[index];
        (
            &self.names[entry.start as usize..entry.end as usize],
            entry.file_type,
        )
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], FileType)> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Into the byte order of the names.
    pub fn sort_by_name(&mut self) {
        let names = &self.names;
        self.entries
            .sort_unstable_by_key(|entry| &names[entry.start as usize..entry.end as usize]);
    }

    /// Into the byte order of the paths below: a directory sorts as its name followed by `/`, so that a
    /// depth-first walk yields every path of the tree in order (`a.ts` before `a/b`, `a/b` before `a0`).
    pub fn sort_for_walk(&mut self) {
        let names = &self.names;
        let key = |entry: &RawEntry| {
            let slash: &[u8] = if entry.file_type == FileType::Directory {
                b"/"
            } else {
                b""
            };
            (&names[entry.start as usize..entry.end as usize], slash)
        };
        self.entries
            .sort_unstable_by(|a, b| compare_joined(key(a), key(b)));
    }
}

fn compare_joined(a: (&[u8], &[u8]), b: (&[u8], &[u8])) -> std::cmp::Ordering {
    let shared = a.0.len().min(b.0.len());
    a.0[..shared].cmp(&b.0[..shared]).then_with(|| {
        a.0[shared..]
            .iter()
            .chain(a.1)
            .cmp(b.0[shared..].iter().chain(b.1))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRead {
    Whole,
    /// Over `max_bytes`; the buffer is empty.
    TooLarge,
    /// A link, FIFO, socket, device or directory.
    NotRegular,
}

/// How a disk tree treats links and protected names.
#[derive(Clone, Debug, Default)]
pub struct DiskOptions {
    pub root: PathBuf,
    pub symlinks: Symlinks,
    /// Names protected beside `.git`.
    pub protect: Vec<String>,
    pub flush: Flush,
}

/// When the content of a written file is sent to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// Before the name is: after a power cut the name holds all of the new bytes or all of the old.
    #[default]
    BeforeRename,
    /// By the kernel, some time later, unless the write is to be durable.
    ByKernel,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Followed while the target stays inside the root.
    #[default]
    Inside,
    /// Any link in any component is refused.
    Deny,
}
