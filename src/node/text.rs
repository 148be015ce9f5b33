//! The pure text functions, for JavaScript: pages, edits, clipping, paths.

use super::change::{NativeHashEdit, NativeHashEdited};
use super::convert::{page_request, whole};
use super::work::guard;
use crate::error::{Error, ErrorCode, Result};
use crate::path::{self, Platform};
use crate::text::edit::{self, Edit, Edited, LineEndings};
use crate::text::hash_edit::{self, HashEdit, HashEdited};
use crate::text::page::{self, Page};
use crate::text::{clip, hash_line, patch, strip_ansi};
use napi_derive::napi;

#[napi(object)]
pub struct NativePageRequest {
    pub offset: f64,
    pub limit: f64,
    pub max_chars: f64,
    /// Digits of the hash that each line gets instead of its number in a column.
    pub hash_length: Option<f64>,
}

#[napi(object)]
pub struct NativePage {
    pub text: String,
    pub first_line: u32,
    pub last_line: u32,
    pub total_lines: u32,
    pub truncated: bool,
    pub next_offset: Option<u32>,
    /// Of the whole file, when it was asked for.
    pub hash: Option<String>,
}

impl NativePage {
    pub(crate) fn new(page: Page, hash: Option<String>) -> Self {
        Self {
            text: page.text,
            first_line: page.first_line as u32,
            last_line: page.last_line as u32,
            total_lines: page.total_lines as u32,
            truncated: page.truncated,
            next_offset: page.next_offset.map(|line| line as u32),
            hash,
        }
    }
}

#[napi(object)]
pub struct NativeEditRequest {
    pub old_string: String,
    pub new_string: String,
    pub replace_all: bool,
}

#[napi(object)]
pub struct NativeApplied {
    pub replacements: u32,
    /// 0 without a change.
    pub first_line: u32,
}

#[napi(object)]
pub struct NativeEdits {
    pub edits: Vec<NativeApplied>,
    pub changed: bool,
    pub note: Option<String>,
    /// Of what the file holds now, when it was asked for.
    pub hash: Option<String>,
    /// Set by `applyEdits` only: a file's new content stays in the file.
    pub text: Option<String>,
}

#[napi]
pub fn normalize_path(path: String, platform: Option<String>) -> napi::Result<String> {
    let platform = match platform.as_deref() {
        None => Platform::HOST,
        Some("posix") => Platform::Posix,
        Some("win32") => Platform::Win32,
        Some(other) => {
            let message = format!("platform must be 'posix' or 'win32', not '{other}'");
            return Err(Error::new(ErrorCode::InvalidArgument, message).into());
        }
    };
    Ok(path::normalize(&path, platform)?)
}

#[napi]
pub fn format_page(text: String, request: NativePageRequest) -> napi::Result<NativePage> {
    Ok(NativePage::new(
        page::page(text.as_bytes(), "text", &page_request(&request)?)?,
        None,
    ))
}

pub(crate) fn apply_edits(
    bytes: &[u8],
    path: &str,
    edits: &[NativeEditRequest],
    strict_endings: bool,
) -> Result<Edited> {
    let edits: Vec<_> = edits
        .iter()
        .map(|edit| Edit {
            old: &edit.old_string,
            new: &edit.new_string,
            replace_all: edit.replace_all,
        })
        .collect();
    let endings = if strict_endings {
        LineEndings::Strict
    } else {
        LineEndings::Preserve
    };
    edit::edit_many(bytes, path, &edits, endings)
}

impl NativeEdits {
    pub(crate) fn from(edited: &Edited, changed: bool) -> Self {
        let applied = edited.applied.iter();
        Self {
            edits: applied
                .map(|applied| NativeApplied {
                    replacements: applied.replacements as u32,
                    first_line: applied.first_line.map_or(0, |line| line as u32),
                })
                .collect(),
            changed,
            note: (!edited.notes.is_empty()).then(|| edited.notes.join("; ")),
            hash: None,
            text: None,
        }
    }
}

#[napi(js_name = "applyEdits")]
pub fn apply_edits_to_text(
    text: String,
    edits: Vec<NativeEditRequest>,
    strict_endings: bool,
) -> napi::Result<NativeEdits> {
    let edited = apply_edits(text.as_bytes(), "text", &edits, strict_endings)?;
    let mut result = NativeEdits::from(&edited, edited.bytes.is_some());
    result.text = Some(text_of(edited.bytes, text));
    Ok(result)
}

pub(crate) fn apply_hash_edits(
    bytes: &[u8],
    path: &str,
    edits: &[NativeHashEdit],
    hash_length: usize,
) -> Result<HashEdited> {
    let hashes: Vec<Vec<&str>> = edits
        .iter()
        .map(|edit| edit.hashes.iter().flatten().map(String::as_str).collect())
        .collect();
    let mut checked = Vec::with_capacity(edits.len());
    for (edit, hashes) in edits.iter().zip(&hashes) {
        let end_line = edit.end_line.map(|line| whole("end_line", line, 1)).transpose()?;
        checked.push(HashEdit {
            line: whole("line", edit.line, 0)? as usize,
            hash: &edit.hash,
            end_line: end_line.map(|line| line as usize),
            hashes,
            op: edit.op()?,
            content: edit.content.as_deref(),
        });
    }
    hash_edit::edit_at_hashes(bytes, path, &checked, hash_length)
}

#[napi(js_name = "applyV4aDiff")]
pub fn apply_v4a_diff(text: Option<String>, diff: String) -> napi::Result<String> {
    Ok(guard(|| {
        let bytes = patch::apply_v4a_diff(text.as_deref().map(str::as_bytes), "text", &diff)?;
        String::from_utf8(bytes).map_err(|_| Error::new(ErrorCode::Internal, "patched text is not UTF-8"))
    })?)
}

#[napi(js_name = "applyHashEdits")]
pub fn apply_hash_edits_to_text(
    text: String,
    edits: Vec<NativeHashEdit>,
    hash_length: f64,
) -> napi::Result<NativeHashEdited> {
    let hash_length = whole("hashLength", hash_length, 1)? as usize;
    let edited = apply_hash_edits(text.as_bytes(), "text", &edits, hash_length)?;
    let mut result = NativeHashEdited::from(&edited, edited.bytes.is_some());
    result.text = Some(text_of(edited.bytes, text));
    Ok(result)
}

/// The edited text, which came from a text.
fn text_of(bytes: Option<Vec<u8>>, unchanged: String) -> String {
    match bytes {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => unchanged,
    }
}

#[napi(js_name = "hashLine")]
pub fn hash_line_text(line: String) -> String {
    hash_line::hash_line(line.as_bytes())
}

#[napi]
pub fn clip_text(text: String, max_chars: f64) -> napi::Result<String> {
    Ok(clip::clip(&text, whole("maxChars", max_chars, 1)? as usize).text)
}

#[napi(js_name = "stripAnsi")]
pub fn strip_ansi_text(text: String) -> String {
    strip_ansi::strip_ansi(&text)
}
