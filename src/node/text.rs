//! The pure text functions, for JavaScript: pages, edits, clipping, paths.

use super::convert::{page_request, whole};
use crate::error::{Error, ErrorCode, Result};
use crate::path::{self, Platform};
use crate::text::edit::{self, Edit, Edited, LineEndings};
use crate::text::page::{self, Page};
use crate::text::{clip, strip_ansi};
use napi_derive::napi;

#[napi(object)]
pub struct NativePageRequest {
    pub offset: f64,
    pub limit: f64,
    pub max_chars: f64,
}

#[napi(object)]
pub struct NativePage {
    pub text: String,
    pub first_line: u32,
    pub last_line: u32,
    pub total_lines: u32,
    pub truncated: bool,
    pub next_offset: Option<u32>,
}

impl From<Page> for NativePage {
    fn from(page: Page) -> Self {
        Self {
            text: page.text,
            first_line: page.first_line as u32,
            last_line: page.last_line as u32,
            total_lines: page.total_lines as u32,
            truncated: page.truncated,
            next_offset: page.next_offset.map(|line| line as u32),
        }
    }
}

#[napi(object)]
pub struct NativeEditRequest {
    pub old_string: String,
    pub new_string: String,
    pub replace_all: bool,
    pub strict_endings: bool,
}

#[napi(object)]
pub struct NativeEditResult {
    pub replacements: u32,
    pub first_line: u32,
    pub changed: bool,
    pub note: Option<String>,
    /// Set by `applyEdit` only: a file's new content stays in the file.
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
    Ok(page::page(text.as_bytes(), "text", &page_request(&request)?)?.into())
}

impl NativeEditRequest {
    pub(crate) fn apply(&self, bytes: &[u8], path: &str) -> Result<Edited> {
        let edit = Edit {
            old: &self.old_string,
            new: &self.new_string,
            replace_all: self.replace_all,
        };
        let endings = if self.strict_endings {
            LineEndings::Strict
        } else {
            LineEndings::Preserve
        };
        edit::edit(bytes, path, &edit, endings)
    }
}

impl NativeEditResult {
    pub(crate) fn from(edited: &Edited, changed: bool) -> Self {
        let applied = edited.applied.first();
        Self {
            replacements: applied.map_or(0, |applied| applied.replacements as u32),
            first_line: applied
                .and_then(|applied| applied.first_line)
                .map_or(0, |line| line as u32),
            changed,
            note: (!edited.notes.is_empty()).then(|| edited.notes.join("; ")),
            text: None,
        }
    }
}

#[napi]
pub fn apply_edit(text: String, request: NativeEditRequest) -> napi::Result<NativeEditResult> {
    let edited = request.apply(text.as_bytes(), "text")?;
    let mut result = NativeEditResult::from(&edited, edited.bytes.is_some());
    result.text = Some(match edited.bytes {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => text,
    });
    Ok(result)
}

#[napi]
pub fn clip_text(text: String, max_chars: f64) -> napi::Result<String> {
    Ok(clip::clip(&text, whole("maxChars", max_chars, 1)? as usize).text)
}

#[napi(js_name = "stripAnsi")]
pub fn strip_ansi_text(text: String) -> String {
    strip_ansi::strip_ansi(&text)
}
