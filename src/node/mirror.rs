//! Searches over somebody else's provider, for JavaScript: each answer says what was missing from the copy.

use super::CancelHandle;
use super::search::{self as bind, NativeSearchRequest};
use crate::error::{Error, ErrorCode};
use crate::search::Mirror;
use crate::tree::FileType;
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw, Uint8Array};
use napi_derive::napi;
use std::sync::Arc;

#[napi]
pub struct NativeMirror {
    mirror: Arc<Mirror>,
}

#[napi(object, object_to_js = false)]
pub struct NativeMirrorEntry {
    pub name: String,
    #[napi(ts_type = "'file' | 'directory' | 'symlink' | 'other'")]
    pub r#type: String,
}

/// An answer that holds once nothing is missing any more.
#[napi(object, object_from_js = false)]
pub struct NativeMirrorAnswer {
    pub text: String,
    /// Directories that were entered and not listed, files that were read and not filled; in order.
    pub directories: Vec<String>,
    pub files: Vec<String>,
}

#[napi]
impl NativeMirror {
    #[napi(constructor)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self {
            mirror: Arc::default(),
        }
    }

    #[napi]
    pub fn list(&self, path: String, entries: Vec<NativeMirrorEntry>) -> napi::Result<()> {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|entry| (entry.name, file_type(&entry.r#type)))
            .collect();
        Ok(self.mirror.list(&path, &entries)?)
    }

    /// The directory cannot be listed.
    #[napi]
    pub fn shut(&self, path: String) -> napi::Result<()> {
        Ok(self.mirror.shut(&path)?)
    }

    /// `null`: the file cannot be read.
    #[napi]
    pub fn fill(&self, path: String, content: Option<Either<String, Uint8Array>>) -> napi::Result<()> {
        let bytes = content.as_ref().map(|content| match content {
            Either::A(text) => text.as_bytes(),
            Either::B(bytes) => bytes,
        });
        Ok(self.mirror.fill(&path, bytes)?)
    }

    #[napi(ts_return_type = "Promise<NativeMirrorAnswer>")]
    pub fn glob_text<'env>(
        &self,
        env: &'env Env,
        request: NativeSearchRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeMirrorAnswer>> {
        bind::run(
            env,
            self.mirror.clone(),
            request,
            cancel,
            |mirror, request, cancel| Ok(with_missing(mirror, bind::glob_text(mirror, request, cancel)?)),
        )
    }

    /// A step limit counts only when nothing is missing: the line may lie behind what comes in later.
    #[napi(ts_return_type = "Promise<NativeMirrorAnswer>")]
    pub fn grep_text<'env>(
        &self,
        env: &'env Env,
        request: NativeSearchRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeMirrorAnswer>> {
        bind::run(
            env,
            self.mirror.clone(),
            request,
            cancel,
            |mirror, request, cancel| {
                let found = bind::grep_text(mirror, request, cancel);
                let limited = matches!(
                    &found,
                    Err(Error {
                        code: ErrorCode::SearchLimit,
                        ..
                    })
                );
                let answer = with_missing(mirror, if limited { String::new() } else { found.clone()? });
                if answer.directories.is_empty() && answer.files.is_empty() {
                    found?;
                }
                Ok(answer)
            },
        )
    }

    #[napi(ts_return_type = "Promise<NativeMirrorAnswer>")]
    pub fn list_text<'env>(
        &self,
        env: &'env Env,
        request: NativeSearchRequest,
        cancel: Option<&CancelHandle>,
    ) -> napi::Result<PromiseRaw<'env, NativeMirrorAnswer>> {
        bind::run(
            env,
            self.mirror.clone(),
            request,
            cancel,
            |mirror, request, cancel| Ok(with_missing(mirror, bind::list_text(mirror, request, cancel)?)),
        )
    }
}

fn with_missing(mirror: &Mirror, text: String) -> NativeMirrorAnswer {
    let missing = mirror.take_missing();
    NativeMirrorAnswer {
        text,
        directories: missing.directories,
        files: missing.files,
    }
}

/// One directory as a provider lists it, in the words of `list_dir`.
#[napi]
pub fn listing_text(
    entries: Vec<NativeMirrorEntry>,
    max_results: f64,
    max_chars: f64,
) -> napi::Result<String> {
    let entries = entries
        .into_iter()
        .map(|entry| (entry.name, file_type(&entry.r#type)))
        .collect();
    Ok(bind::listing_text(entries, max_results, max_chars)?)
}

fn file_type(name: &str) -> FileType {
    match name {
        "file" => FileType::File,
        "directory" => FileType::Directory,
        "symlink" => FileType::Symlink,
        _ => FileType::Other,
    }
}
