//! Edits, patches and images, for JavaScript.

use super::convert::whole;
use super::text::{NativeEditRequest, NativeEdits, apply_edits, apply_hash_edits};
use super::tree::NativeTree;
use super::{Answer, CancelHandle};
use crate::error::{Error, ErrorCode, Result};
use crate::limits;
use crate::patching::{self, PatchOptions};
use crate::path::quoted;
use crate::text::content_hash::{check_known, content_hash};
use crate::text::hash_edit::{HashEdited, Op};
use crate::text::patch::{PatchedFile, PlacedHunk};
use crate::text::sniff;
use crate::tree::{Tree, UpdateOptions};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;
use tokio_util::sync::CancellationToken;

/// How a change of one file is made.
#[napi(object, object_to_js = false)]
pub struct NativeChange {
    pub max_bytes: f64,
    /// Whether the answer has the hash of what the file holds now.
    pub track: bool,
    /// The hash of what the caller has seen; another content is refused.
    pub known: Option<String>,
}

#[napi(object, object_to_js = false)]
pub struct NativeHashEdit {
    pub line: f64,
    pub hash: String,
    pub end_line: Option<f64>,
    pub hashes: Option<Vec<String>>,
    #[napi(ts_type = "'replace' | 'insert_before' | 'insert_after' | 'delete'")]
    pub op: String,
    pub content: Option<String>,
}

#[napi(object, object_from_js = false)]
pub struct NativeHashEdited {
    pub changed: bool,
    pub first_line: u32,
    pub lines_added: u32,
    pub lines_removed: u32,
    pub hash: Option<String>,
    /// Set by `applyHashEdits` only.
    pub text: Option<String>,
}

#[napi(object)]
pub struct NativePathHash {
    pub path: String,
    pub hash: Option<String>,
}

#[napi(object, object_from_js = false)]
pub struct NativeHunk {
    pub hunk: u32,
    pub line: u32,
    pub offset: i32,
    pub fuzz: u32,
}

#[napi(object, object_from_js = false)]
pub struct NativePatchedFile {
    #[napi(ts_type = "'create' | 'update' | 'delete' | 'rename' | 'copy'")]
    pub action: &'static str,
    pub path: String,
    pub from: Option<String>,
    pub hunks: Vec<NativeHunk>,
    pub executable: Option<bool>,
}

#[napi(object, object_from_js = false)]
pub struct NativePatched {
    pub files: Vec<NativePatchedFile>,
    pub hashes: Vec<NativePathHash>,
}

#[napi(object, object_from_js = false)]
pub struct NativeImage {
    pub media_type: &'static str,
    pub data: Buffer,
}

#[napi]
impl NativeTree {
    #[napi(ts_return_type = "NativeEdits | Promise<NativeEdits>")]
    pub fn edit(
        &self,
        path: String,
        edits: Vec<NativeEditRequest>,
        strict_endings: bool,
        change: NativeChange,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<Answer<NativeEdits>> {
        let change = Checked::new(change, cancel)?;
        let tree = self.tree();
        Answer::run(self.instant(), move || {
            change.update(&*tree, &path, |bytes| {
                let mut edited = apply_edits(bytes, &path, &edits, strict_endings)?;
                let bytes = edited.bytes.take();
                Ok((NativeEdits::from(&edited, bytes.is_some()), bytes))
            })
        })
    }

    #[napi(ts_return_type = "NativeHashEdited | Promise<NativeHashEdited>")]
    pub fn edit_at_hash(
        &self,
        path: String,
        edits: Vec<NativeHashEdit>,
        hash_length: f64,
        change: NativeChange,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<Answer<NativeHashEdited>> {
        let change = Checked::new(change, cancel)?;
        let hash_length = whole("hashLength", hash_length, 1)? as usize;
        let tree = self.tree();
        Answer::run(self.instant(), move || {
            change.update(&*tree, &path, |bytes| {
                let mut edited = apply_hash_edits(bytes, &path, &edits, hash_length)?;
                let bytes = edited.bytes.take();
                Ok((NativeHashEdited::from(&edited, bytes.is_some()), bytes))
            })
        })
    }

    #[napi(ts_return_type = "NativePatched | Promise<NativePatched>")]
    pub fn apply_patch(
        &self,
        patch: String,
        fuzz: f64,
        known: Vec<NativePathHash>,
        max_bytes: f64,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<Answer<NativePatched>> {
        let known = known.into_iter();
        let options = PatchOptions {
            fuzz: u8::try_from(whole("fuzz", fuzz, 0)?).unwrap_or(u8::MAX),
            max_bytes: whole("maxFileBytes", max_bytes, 1)?,
            known: known.filter_map(|seen| Some((seen.path, seen.hash?))).collect(),
            cancel: cancel.map(CancelHandle::token),
        };
        let tree = self.tree();
        Answer::run(self.instant(), move || {
            let done = patching::apply_patch(&*tree, &patch, &options)?;
            let hashes = done.hashes.into_iter();
            Ok(NativePatched {
                files: done.files.into_iter().map(NativePatchedFile::from).collect(),
                hashes: hashes.map(|(path, hash)| NativePathHash { path, hash }).collect(),
            })
        })
    }

    /// An image that a model can be shown, by what its bytes are.
    #[napi(ts_return_type = "NativeImage | Promise<NativeImage>")]
    pub fn read_image(&self, path: String) -> napi::Result<Answer<NativeImage>> {
        let tree = self.tree();
        Answer::run(self.instant(), move || {
            let bytes = tree.read(&path, limits::MAX_IMAGE_BYTES)?;
            let refuse = |why: &str| {
                let message = format!("{} {why}", quoted(&path));
                Err(Error::new(ErrorCode::InvalidArgument, message).at(&*path))
            };
            match sniff::image(&bytes) {
                None => refuse("is not a PNG, JPEG, GIF or WebP image: read it with read_file"),
                Some(image) if !image.is_complete => {
                    refuse("is an image that is cut off before its end: get the whole file first")
                }
                Some(image) => Ok(NativeImage {
                    media_type: image.media_type,
                    data: bytes.into(),
                }),
            }
        })
    }
}

/// A [`NativeChange`] with its numbers checked.
pub(super) struct Checked {
    max_bytes: u64,
    track: bool,
    pub(super) known: Option<String>,
    pub(super) cancel: Option<CancellationToken>,
}

impl Checked {
    pub fn new(change: NativeChange, cancel: Option<&CancelHandle>) -> Result<Self> {
        Ok(Self {
            max_bytes: whole("maxFileBytes", change.max_bytes, 1)?,
            track: change.track,
            known: change.known,
            cancel: cancel.map(CancelHandle::token),
        })
    }

    /// Under the file's lock: what is there is what the caller has seen, or nothing is changed.
    pub fn update<R: Tracked>(
        &self,
        tree: &dyn Tree,
        path: &str,
        mut change: impl FnMut(&[u8]) -> Result<(R, Option<Vec<u8>>)>,
    ) -> Result<R> {
        let options = UpdateOptions {
            max_bytes: self.max_bytes,
            cancel: self.cancel.clone(),
            ..UpdateOptions::default()
        };
        let mut result = None;
        tree.update(path, &options, &mut |bytes| {
            check_known(bytes, path, self.known.as_deref())?;
            let (mut answer, after) = change(bytes)?;
            // A file that the caller has not seen stays unseen by an edit of a part of it.
            if self.track && self.known.is_some() {
                answer.set_hash(content_hash(after.as_deref().unwrap_or(bytes)));
            }
            result = Some(answer);
            Ok(after)
        })?;
        result.ok_or_else(|| Error::new(ErrorCode::Internal, "the edit was not applied"))
    }

    pub fn track(&self, bytes: &[u8]) -> Option<String> {
        self.track.then(|| content_hash(bytes))
    }
}

pub(super) trait Tracked {
    fn set_hash(&mut self, hash: String);
}

impl Tracked for NativeEdits {
    fn set_hash(&mut self, hash: String) {
        self.hash = Some(hash);
    }
}

impl Tracked for NativeHashEdited {
    fn set_hash(&mut self, hash: String) {
        self.hash = Some(hash);
    }
}

impl NativeHashEdit {
    pub(super) fn op(&self) -> Result<Op> {
        match self.op.as_str() {
            "replace" => Ok(Op::Replace),
            "insert_before" => Ok(Op::InsertBefore),
            "insert_after" => Ok(Op::InsertAfter),
            "delete" => Ok(Op::Delete),
            other => {
                let message = format!(
                    "op must be 'replace', 'insert_before', 'insert_after' or 'delete', not '{other}'"
                );
                Err(Error::new(ErrorCode::InvalidArgument, message))
            }
        }
    }
}

impl NativeHashEdited {
    pub(super) fn from(edited: &HashEdited, changed: bool) -> Self {
        Self {
            changed,
            first_line: edited.first_line.unwrap_or(0) as u32,
            lines_added: edited.lines_added as u32,
            lines_removed: edited.lines_removed as u32,
            hash: None,
            text: None,
        }
    }
}

impl From<PatchedFile> for NativePatchedFile {
    fn from(file: PatchedFile) -> Self {
        Self {
            action: file.action.as_str(),
            path: file.path,
            from: file.from,
            hunks: file.hunks.into_iter().map(NativeHunk::from).collect(),
            executable: file.executable,
        }
    }
}

impl From<PlacedHunk> for NativeHunk {
    fn from(placed: PlacedHunk) -> Self {
        Self {
            hunk: placed.hunk as u32,
            line: placed.line as u32,
            offset: placed.offset as i32,
            fuzz: placed.fuzz.into(),
        }
    }
}
