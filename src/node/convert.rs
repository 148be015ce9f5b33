//! Core values as the objects JavaScript sees, and JavaScript numbers as checked core values.

use super::text::NativePageRequest;
use super::tree::{NativeEntry, NativeStat};
use crate::error::{Error, ErrorCode, Result};
use crate::text::page::{Numbering, PageRequest};
use crate::tree::{Entry, FileType, Stat};

fn file_type(file_type: FileType) -> &'static str {
    match file_type {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Other => "other",
    }
}

impl From<Stat> for NativeStat {
    fn from(stat: Stat) -> Self {
        Self {
            r#type: file_type(stat.file_type),
            size: stat.size as f64,
            mtime_ms: stat.mtime_ms,
            mode: stat.mode,
        }
    }
}

impl From<Entry> for NativeEntry {
    fn from(entry: Entry) -> Self {
        Self {
            name: entry.name,
            r#type: file_type(entry.file_type),
            target: entry.link_target.map(file_type),
            unreadable: (!entry.addressable).then_some(true),
        }
    }
}

/// A whole number of at least `min`. JavaScript numbers arrive as f64 because `u32` would turn -1 into
/// 4294967295 and NaN into 0.
pub(crate) fn whole(name: &str, value: f64, min: u64) -> Result<u64> {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    if value.fract() == 0.0 && value >= min as f64 && value <= MAX_SAFE_INTEGER {
        Ok(value as u64)
    } else {
        let message = format!("{name} must be a whole number of at least {min}, not {value}");
        Err(Error::new(ErrorCode::InvalidArgument, message))
    }
}

pub(crate) fn page_request(request: &NativePageRequest) -> Result<PageRequest> {
    Ok(PageRequest {
        offset: whole("offset", request.offset, 1)? as usize,
        limit: whole("limit", request.limit, 1)? as usize,
        max_chars: whole("maxChars", request.max_chars, 1)? as usize,
        numbering: match request.hash_length {
            None => Numbering::Gutter,
            Some(digits) => Numbering::HashLines {
                hash_length: whole("hashLength", digits, 1)? as usize,
            },
        },
    })
}
