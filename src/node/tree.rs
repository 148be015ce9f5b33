//! Files, for JavaScript: a confined directory or a tree in memory.

use super::CancelHandle;
use super::change::{Checked, NativeChange, Tracked};
use super::convert::{page_request, whole};
use super::policy::{self, NativePolicy};
use super::text::{NativePage, NativePageRequest};
use super::work::{Answer, Work, off_thread};
use crate::error::{Error, ErrorCode, Result};
use crate::limits;
use crate::text::content_hash::{ContentHasher, content_hash};
use crate::text::encoding::{self, Encoding};
use crate::text::overwrite;
use crate::text::page::{self, PageReader, PageRequest};
use crate::tree::{
    DiskOptions, DiskTree, Flush, MemoryTree, RemoveOptions, Resolver, Symlinks, Tree, WriteOptions,
};
use napi::bindgen_prelude::{AsyncTask, Buffer, Either, Float64Array, Uint8Array};
use napi_derive::napi;
use std::path::PathBuf;
use std::sync::Arc;

#[napi]
pub struct NativeTree {
    tree: Arc<dyn Tree>,
    /// Set for a tree in memory, which answers on the spot.
    memory: Option<Arc<MemoryTree>>,
    disk: Option<Arc<DiskTree>>,
    pub(super) policy: NativePolicy,
}

#[napi(object, object_to_js = false)]
pub struct NativeDiskOptions {
    pub root: String,
    #[napi(ts_type = "'inside' | 'deny'")]
    pub symlinks: Option<String>,
    pub protect: Option<Vec<String>>,
    /// Default true.
    pub fsync: Option<bool>,
    /// JSON, see `policy::PolicyOptions`; without `root`.
    pub policy: Option<String>,
}

#[napi(object, object_from_js = false)]
pub struct NativeStat {
    #[napi(ts_type = "'file' | 'directory' | 'symlink' | 'other'")]
    pub r#type: &'static str,
    pub size: f64,
    pub mtime_ms: f64,
    pub mode: u32,
}

#[napi(object, object_from_js = false)]
pub struct NativeEntry {
    pub name: String,
    #[napi(ts_type = "'file' | 'directory' | 'symlink' | 'other'")]
    pub r#type: &'static str,
    /// Links only: the type of a target that is inside the workspace.
    #[napi(ts_type = "'file' | 'directory' | 'symlink' | 'other'")]
    pub target: Option<&'static str>,
    /// Set when the name is not UTF-8 and is shown escaped.
    pub unreadable: Option<bool>,
}

#[napi(object, object_from_js = false)]
pub struct NativeWritten {
    pub created: bool,
    pub note: Option<String>,
    pub hash: Option<String>,
}

#[napi(object, object_from_js = false)]
pub struct NativeSnapshotFile {
    pub path: String,
    pub content: Buffer,
}

#[napi]
impl NativeTree {
    #[napi(factory)]
    pub fn disk(options: NativeDiskOptions) -> napi::Result<Self> {
        let symlinks = match options.symlinks.as_deref() {
            None | Some("inside") => Symlinks::Inside,
            Some("deny") => Symlinks::Deny,
            Some(other) => {
                return Err(invalid(format!("symlinks must be 'inside' or 'deny', not '{other}'")).into());
            }
        };
        let policy = options.policy;
        let options = DiskOptions {
            root: PathBuf::from(options.root),
            symlinks,
            protect: options.protect.unwrap_or_default(),
            flush: match options.fsync {
                Some(false) => Flush::ByKernel,
                Some(true) | None => Flush::BeforeRename,
            },
        };
        let disk = DiskTree::open(&options)?;
        let (guarded, disk) = policy::guard_disk(disk, &options, policy.as_deref())?;
        Ok(Self {
            tree: guarded.tree,
            memory: None,
            disk: Some(disk),
            policy: guarded.policy,
        })
    }

    #[napi(factory)]
    pub fn memory(protect: Option<Vec<String>>, policy: Option<String>) -> napi::Result<Self> {
        let memory = Arc::new(MemoryTree::new(&protect.unwrap_or_default()));
        let guarded = policy::guard_memory(memory.clone(), policy.as_deref())?;
        Ok(Self {
            tree: guarded.tree,
            memory: Some(memory),
            disk: None,
            policy: guarded.policy,
        })
    }

    /// The real absolute path of a tree on disk.
    #[napi(getter)]
    pub fn root(&self) -> Option<String> {
        self.disk
            .as_ref()
            .map(|disk| disk.real_path().to_string_lossy().into_owned())
    }

    /// How paths of a tree on disk are confined here: `openat2` or `walk`.
    #[napi]
    pub fn resolver(&self) -> Option<&'static str> {
        self.disk.as_ref().map(|disk| match disk.resolver_in_force() {
            Resolver::Kernel => "openat2",
            Resolver::Walk => "walk",
        })
    }

    #[napi(ts_return_type = "string | Promise<string>")]
    pub fn read_text(&self, path: String, max_bytes: f64) -> napi::Result<Answer<String>> {
        let max_bytes = whole("maxFileBytes", max_bytes, 1)?;
        let now = self
            .tree
            .read_now(&path, max_bytes)
            .map(|read| decode(read?, &path));
        let tree = self.tree.clone();
        Answer::or_later(now, move || decode(tree.read(&path, max_bytes)?, &path))
    }

    #[napi(ts_return_type = "Buffer | Promise<Buffer>")]
    pub fn read_bytes(&self, path: String, max_bytes: f64) -> napi::Result<Answer<Buffer>> {
        let max_bytes = whole("maxFileBytes", max_bytes, 1)?;
        let now = self
            .tree
            .read_now(&path, max_bytes)
            .map(|read| read.map(Buffer::from));
        let tree = self.tree.clone();
        Answer::or_later(now, move || tree.read(&path, max_bytes).map(Buffer::from))
    }

    #[napi(ts_return_type = "NativePage | Promise<NativePage>")]
    pub fn read_page(
        &self,
        path: String,
        request: NativePageRequest,
        max_bytes: f64,
        track: bool,
    ) -> napi::Result<Answer<NativePage>> {
        let max_bytes = whole("maxFileBytes", max_bytes, 1)?;
        let request = page_request(&request)?;
        let now = self.tree.read_now(&path, max_bytes);
        let now = now.map(|read| {
            let bytes = read?;
            let hash = track.then(|| content_hash(&bytes));
            Ok(NativePage::new(page::page(&bytes, &path, &request)?, hash))
        });
        let tree = self.tree.clone();
        Answer::or_later(now, move || read_page(&*tree, &path, &request, max_bytes, track))
    }

    #[napi(ts_return_type = "void | Promise<void>")]
    pub fn write(
        &self,
        path: String,
        content: Either<String, Uint8Array>,
        create_only: bool,
        create_parents: bool,
        durable: bool,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<Answer<()>> {
        let cancel = cancel.map(CancelHandle::token);
        let options = WriteOptions {
            create_only,
            create_parents,
            durable,
            cancel,
        };
        let tree = self.tree.clone();
        let content = Content::from(content);
        Answer::run(self.instant(), move || {
            tree.write(&path, &encode_as(&*tree, &path, content), &options)
        })
    }

    /// As `write`, and tells what `write_file` says: whether the file is new, whether line endings changed.
    #[napi(ts_return_type = "NativeWritten | Promise<NativeWritten>")]
    pub fn write_noted(
        &self,
        path: String,
        content: String,
        create_only: bool,
        change: NativeChange,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<Answer<NativeWritten>> {
        let change = Checked::new(change, cancel)?;
        let tree = self.tree.clone();
        Answer::run(self.instant(), move || {
            if change.known.is_some() && !create_only {
                overwrite_known(&*tree, &path, &content, &change)
            } else {
                write_noted(&*tree, &path, &content, create_only, &change)
            }
        })
    }

    /// A stat that needs no waiting: size, modification time and mode go into `fields`, the type is returned; -1
    /// when nothing is there, -2 when only `stat` can tell. Building an object here would cost more than the stat.
    #[napi]
    pub fn stat_now(&self, path: String, mut fields: Float64Array) -> napi::Result<i32> {
        let Some(answer) = self.tree.stat_now(&path) else {
            return Ok(-2);
        };
        let Some(stat) = answer? else { return Ok(-1) };
        // SAFETY: JavaScript is in this call and cannot read the array meanwhile.
        let fields = unsafe { fields.as_mut() };
        if let [size, mtime_ms, mode] = fields {
            (*size, *mtime_ms, *mode) = (stat.size as f64, stat.mtime_ms, f64::from(stat.mode));
        }
        Ok(stat.file_type as i32)
    }

    #[napi(ts_return_type = "Promise<NativeStat | null>")]
    pub fn stat(&self, path: String) -> AsyncTask<Work<Option<NativeStat>>> {
        let tree = self.tree.clone();
        off_thread(move || Ok(tree.stat(&path)?.map(NativeStat::from)))
    }

    #[napi(ts_return_type = "NativeEntry[] | Promise<NativeEntry[]>")]
    pub fn read_dir(&self, path: String) -> napi::Result<Answer<Vec<NativeEntry>>> {
        let tree = self.tree.clone();
        Answer::run(self.instant(), move || {
            Ok(tree
                .read_dir(&path, false)?
                .into_iter()
                .map(NativeEntry::from)
                .collect())
        })
    }

    #[napi(ts_return_type = "void | Promise<void>")]
    pub fn make_dir(&self, path: String) -> napi::Result<Answer<()>> {
        let tree = self.tree.clone();
        Answer::run(self.instant(), move || tree.make_dir(&path))
    }

    #[napi(ts_return_type = "void | Promise<void>")]
    pub fn remove(
        &self,
        path: String,
        recursive: bool,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<Answer<()>> {
        let options = RemoveOptions {
            recursive,
            cancel: cancel.map(CancelHandle::token),
        };
        let tree = self.tree.clone();
        Answer::run(self.instant(), move || tree.remove(&path, &options))
    }

    #[napi(ts_return_type = "void | Promise<void>")]
    pub fn rename(&self, from: String, to: String, overwrite: bool) -> napi::Result<Answer<()>> {
        let tree = self.tree.clone();
        Answer::run(self.instant(), move || tree.rename(&from, &to, overwrite))
    }

    /// Lets go of the root: its descriptor is closed once the calls under way have ended.
    #[napi]
    pub fn close(&mut self) {
        self.tree = Arc::new(MemoryTree::new(&[]));
        self.disk = None;
    }

    /// Puts a file into a tree in memory as its owner: protected names are allowed.
    #[napi]
    pub fn insert(&self, path: String, content: Either<String, Uint8Array>) -> napi::Result<()> {
        let Some(memory) = &self.memory else {
            return Err(invalid("only a tree in memory takes inserts").into());
        };
        Ok(memory.insert(&path, Content::from(content).into_bytes())?)
    }

    /// Every file of a tree in memory.
    #[napi]
    pub fn snapshot(&self) -> Vec<NativeSnapshotFile> {
        let Some(memory) = &self.memory else {
            return Vec::new();
        };
        let files = memory.snapshot().into_iter();
        files
            .map(|(path, file)| NativeSnapshotFile {
                path,
                content: file.content().to_vec().into(),
            })
            .collect()
    }
}

impl NativeTree {
    pub(crate) fn instant(&self) -> bool {
        self.memory.is_some()
    }

    pub(crate) fn tree(&self) -> Arc<dyn Tree> {
        self.tree.clone()
    }

    /// For a command's working directory.
    #[allow(dead_code)]
    pub(crate) fn disk_tree(&self) -> Option<Arc<DiskTree>> {
        self.disk.clone()
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Either<String, Uint8Array>> for Content {
    /// A Uint8Array is copied: JavaScript could change it while the pool writes.
    fn from(content: Either<String, Uint8Array>) -> Self {
        match content {
            Either::A(text) => Self::Text(text),
            Either::B(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

impl Content {
    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

fn decode(bytes: Vec<u8>, path: &str) -> Result<String> {
    let decoded = encoding::decode(&bytes, path)?;
    if decoded.encoding == Encoding::Utf8 {
        // Checked just now; the bytes are the text.
        return String::from_utf8(bytes)
            .map_err(|_| Error::new(ErrorCode::Internal, "decoded text is not UTF-8"));
    }
    Ok(decoded.text.into_owned())
}

/// A part of a file at a time: a page of a large file costs one small buffer.
fn read_page(
    tree: &dyn Tree,
    path: &str,
    request: &PageRequest,
    max_bytes: u64,
    track: bool,
) -> Result<NativePage> {
    const CHUNK_BYTES: usize = 256 * 1024;
    let file = tree.open_file(path)?;
    if file.size() > max_bytes {
        // Refuses, in its own words; or the file shrank just now.
        let bytes = tree.read(path, max_bytes)?;
        let hash = track.then(|| content_hash(&bytes));
        return Ok(NativePage::new(page::page(&bytes, path, request)?, hash));
    }
    let mut hasher = track.then(ContentHasher::default);
    let mut reader = PageReader::new(path, file.size(), *request)?;
    let mut buffer = vec![0; CHUNK_BYTES.min(file.size() as usize + 1)];
    let mut offset = 0;
    loop {
        let read = file.read_at(offset, &mut buffer)?;
        if read == 0 {
            let hash = hasher.map(ContentHasher::finish);
            return Ok(NativePage::new(reader.finish()?, hash));
        }
        if let Some(hasher) = &mut hasher {
            hasher.push(&buffer[..read]);
        }
        reader.push(&buffer[..read])?;
        offset += read as u64;
    }
}

/// Text goes back in the encoding the file has: what was read of it showed no byte order mark.
fn encode_as(tree: &dyn Tree, path: &str, content: Content) -> Vec<u8> {
    let Content::Text(text) = content else {
        return content.into_bytes();
    };
    let mut head = [0; 3];
    let read = tree
        .open_file(path)
        .and_then(|file| file.read_at(0, &mut head))
        .unwrap_or(0);
    match Encoding::of(&head[..read]) {
        Encoding::Utf8 => text.into_bytes(),
        other => encoding::encode(&text, other),
    }
}

fn write_noted(
    tree: &dyn Tree,
    path: &str,
    text: &str,
    create_only: bool,
    change: &Checked,
) -> Result<NativeWritten> {
    // Read only to keep its encoding and to tell what changed: a file too large for that is simply replaced.
    let before = tree.read(path, limits::MAX_FILE_BYTES);
    let overwrite = overwrite::overwrite(before.as_deref().ok(), text);
    let options = WriteOptions {
        create_only,
        cancel: change.cancel.clone(),
        ..WriteOptions::default()
    };
    tree.write(path, &overwrite.bytes, &options)?;
    Ok(NativeWritten {
        created: before.is_err_and(|error| error.code == ErrorCode::NotFound),
        note: note(&overwrite.notes),
        hash: change.track(&overwrite.bytes),
    })
}

/// Replaces a file that holds what the caller has seen. One that is gone is made again: nothing is lost by that,
/// unless somebody makes it at the same moment.
fn overwrite_known(tree: &dyn Tree, path: &str, text: &str, change: &Checked) -> Result<NativeWritten> {
    let replaced = change.update(tree, path, |bytes| {
        let overwrite = overwrite::overwrite(Some(bytes), text);
        let written = NativeWritten {
            created: false,
            note: note(&overwrite.notes),
            hash: None,
        };
        Ok((written, Some(overwrite.bytes)))
    });
    match replaced {
        Err(error) if error.code == ErrorCode::NotFound => write_noted(tree, path, text, true, change),
        replaced => replaced,
    }
}

fn note(notes: &[String]) -> Option<String> {
    (!notes.is_empty()).then(|| notes.join("; "))
}

impl Tracked for NativeWritten {
    fn set_hash(&mut self, hash: String) {
        self.hash = Some(hash);
    }
}
