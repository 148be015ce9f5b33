//! A numbered page of a file: the lines a reader asked for, within a budget, and notes that say what was left
//! out. The whole file is checked and counted on the way, so that a page never comes from half a text.

mod layout;
mod reader;

pub use reader::PageReader;

use super::encoding::Encoding;
use super::ending::Endings;
use crate::error::{Error, ErrorCode, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// First line wanted, 1-based.
    pub offset: usize,
    /// Lines wanted at most, at least 1.
    pub limit: usize,
    /// UTF-16 code units of the whole answer, notes included.
    pub max_chars: usize,
    pub numbering: Numbering,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// `    12<TAB>text`
    Gutter,
    /// `L12:<hash>:text`, the hash shortened to this many hex digits.
    HashLines { hash_length: usize },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Lines separated by LF, then notes, each a line of its own in square brackets. No final LF.
    pub text: String,
    /// 1-based; 0 for an empty file.
    pub first_line: usize,
    pub last_line: usize,
    pub total_lines: usize,
    /// Something of the file from `offset` on is not shown.
    pub truncated: bool,
    /// The first line not shown, if there is one.
    pub next_offset: Option<usize>,
    /// Length in UTF-16 code units of the shown line that was cut inside.
    pub cut_line_chars: Option<usize>,
    pub endings: Endings,
    pub ends_with_newline: bool,
    pub encoding: Encoding,
}

/// A page of a file held in memory. `BINARY_FILE`, `UNSUPPORTED_ENCODING`, `OFFSET_PAST_END`.
pub fn page(bytes: &[u8], path: &str, request: &PageRequest) -> Result<Page> {
    let mut reader = PageReader::new(path, bytes.len() as u64, *request)?;
    reader.push(bytes)?;
    reader.finish()
}

impl PageRequest {
    fn check(&self, path: &str) -> Result<()> {
        let wrong = |message: String| Err(Error::new(ErrorCode::InvalidArgument, message).at(path));
        if self.offset == 0 {
            return wrong("offset is 0, but lines are numbered from 1".into());
        }
        if self.limit == 0 {
            return wrong("limit is 0, but a page has at least 1 line".into());
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests;
