//! The streaming form of a page: takes a file in chunks, keeps only what the page can show, counts and checks
//! the rest in passing. One read pass and a small buffer serve a page of a file of any size.

use super::layout::{self, Window};
use super::{Numbering, Page, PageRequest};
use crate::error::{Error, ErrorCode, Result};
use crate::text::clip::utf16_len_of_bytes;
use crate::text::encoding::{self, Encoding, Place};
use crate::text::ending::Endings;
use crate::text::{hash_line, lines};

/// Small enough that what was counted is still in the cache when it is validated and copied.
const STEP_BYTES: usize = 64 * 1024;
/// Kept for the magic number in a refusal.
const HEAD_BYTES: usize = 512;

pub struct PageReader {
    path: String,
    size_bytes: u64,
    request: PageRequest,
    head: Vec<u8>,
    /// `None` until the first bytes have shown which it is.
    encoding: Option<Encoding>,
    /// All of a UTF-16 file: it is rare, and the caller's size limit bounds it.
    utf16: Vec<u8>,
    scan: Scan,
}

impl PageReader {
    /// `size_bytes` is for messages. The path too.
    pub fn new(path: &str, size_bytes: u64, request: PageRequest) -> Result<Self> {
        request.check(path)?;
        if let Numbering::HashLines { hash_length } = request.numbering {
            hash_line::check_hash_length(hash_length)?;
        }
        let (head, utf16) = (Vec::new(), Vec::new());
        let scan = Scan::new(&request);
        Ok(Self {
            path: path.into(),
            size_bytes,
            request,
            head,
            encoding: None,
            utf16,
            scan,
        })
    }

    pub fn push(&mut self, mut chunk: &[u8]) -> Result<()> {
        if self.head.len() < HEAD_BYTES {
            let take = chunk.len().min(HEAD_BYTES - self.head.len());
            self.head.extend_from_slice(&chunk[..take]);
            if self.encoding.is_none() {
                let known = self.head.len() - take;
                if self.head.len() < Encoding::Utf8Bom.bom().len() {
                    return Ok(());
                }
                let encoding = Encoding::of(&self.head);
                self.encoding = Some(encoding);
                // A first chunk of one or two bytes is held back in `head` until its fellows come.
                let start = self.head[..known].to_vec();
                self.feed_start(&start)?;
                let skipped = encoding.bom().len().saturating_sub(known);
                chunk = &chunk[skipped..];
            }
        }
        self.feed(chunk)
    }

    fn feed_start(&mut self, held_back: &[u8]) -> Result<()> {
        let bom = self.encoding.unwrap_or_default().bom().len();
        self.scan.bom_bytes = bom as u64;
        let rest = held_back.get(bom..).unwrap_or_default().to_vec();
        self.feed(&rest)
    }

    fn feed(&mut self, chunk: &[u8]) -> Result<()> {
        if self.encoding.unwrap_or_default().is_utf16() {
            self.utf16.extend_from_slice(chunk);
            return Ok(());
        }
        for step in chunk.chunks(STEP_BYTES) {
            self.scan.step(step).map_err(|bad| self.refuse(bad))?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Page> {
        if self.encoding.is_none() {
            let encoding = Encoding::of(&self.head);
            self.encoding = Some(encoding);
            let held_back = std::mem::take(&mut self.head);
            self.feed_start(&held_back)?;
            self.head = held_back;
        }
        let encoding = self.encoding.unwrap_or_default();
        if encoding.is_utf16() {
            let file = [encoding.bom(), &self.utf16].concat();
            let decoded = encoding::decode(&file, &self.path)?;
            self.scan = Scan::new(&self.request);
            for step in decoded.text.as_bytes().chunks(STEP_BYTES) {
                self.scan.step(step).map_err(|bad| self.refuse(bad))?;
            }
        }
        self.scan.finish().map_err(|bad| self.refuse(bad))?;
        self.lay_out(encoding)
    }

    fn lay_out(self, encoding: Encoding) -> Result<Page> {
        let scan = &self.scan;
        let total_lines = scan.newlines + usize::from(scan.bytes > 0 && scan.last != b'\n');
        let endings = Endings {
            lf: scan.newlines - scan.crlf,
            crlf: scan.crlf,
        };
        let ends_with_newline = scan.last == b'\n';
        if self.request.offset > total_lines.max(1) {
            return Err(past_end(&self.path, self.request.offset, total_lines));
        }
        let mut notes: Vec<String> = endings.note().into_iter().collect();
        if encoding.is_utf16() {
            notes.push(format!("encoding: {}", encoding.name()));
        }
        if total_lines == 0 {
            notes.insert(0, "empty file".into());
        }
        let window = Window {
            text: valid_prefix(&scan.kept),
            total_lines,
            first_line_chars: scan.first_line_chars,
            notes: &notes,
        };
        let first_line = if total_lines == 0 { 0 } else { self.request.offset };
        let laid = layout::lay_out(&window, &self.request);
        let next_offset = (laid.last_line < total_lines).then_some(laid.last_line + 1);
        Ok(Page {
            text: laid.text,
            first_line,
            last_line: laid.last_line,
            total_lines,
            truncated: laid.truncated,
            next_offset,
            cut_line_chars: laid.cut_line_chars,
            endings,
            ends_with_newline,
            encoding,
        })
    }

    fn refuse(&self, bad: Bad) -> Error {
        match bad {
            Bad::Nul => encoding::binary(&self.path, &self.head, self.size_bytes),
            Bad::Utf8 { byte, place } => {
                encoding::not_utf8(&self.path, &self.head, self.size_bytes, byte, place)
            }
        }
    }
}

fn past_end(path: &str, offset: usize, total: usize) -> Error {
    let has = match total {
        0 => "it is empty".into(),
        1 => "it has 1 line".into(),
        total => format!("it has {total} lines"),
    };
    Error::new(
        ErrorCode::OffsetPastEnd,
        format!("offset {offset} is past the end of {path:?}: {has}"),
    )
    .at(path)
}

/// `kept` was validated in passing; its end may be cut inside a character.
fn valid_prefix(kept: &[u8]) -> &str {
    match simdutf8::compat::from_utf8(kept) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&kept[..error.valid_up_to()]).unwrap_or_default(),
    }
}

enum Bad {
    Nul,
    Utf8 { byte: u8, place: Place },
}

/// Where the scan stands towards the wanted lines.
enum Stage {
    /// Newlines still to pass.
    Before(usize),
    /// Lines still to keep.
    Keeping(usize),
    /// The first wanted line is longer than any budget: only its length so far matters now.
    Measuring(usize),
    Done,
}

struct Scan {
    bom_bytes: u64,
    bytes: u64,
    newlines: usize,
    crlf: usize,
    last: u8,
    /// The beginning of a character whose end is in the next step.
    partial: Vec<u8>,
    stage: Stage,
    kept: Vec<u8>,
    keep_bytes: usize,
    limit: usize,
    /// Length of the first wanted line, if only its beginning was kept.
    first_line_chars: Option<usize>,
}

impl Scan {
    fn new(request: &PageRequest) -> Self {
        let stage = if request.offset == 1 {
            Stage::Keeping(request.limit)
        } else {
            Stage::Before(request.offset - 1)
        };
        Self {
            bom_bytes: 0,
            bytes: 0,
            newlines: 0,
            crlf: 0,
            last: 0,
            partial: Vec::new(),
            stage,
            kept: Vec::new(),
            // A UTF-16 code unit takes at most 3 bytes of UTF-8, so no budget can show more; 2 for a CRLF.
            keep_bytes: request.max_chars.saturating_mul(3).saturating_add(2),
            limit: request.limit,
            first_line_chars: None,
        }
    }

    fn step(&mut self, step: &[u8]) -> std::result::Result<(), Bad> {
        let tally = lines::tally(step, self.last);
        if tally.has_nul {
            return Err(Bad::Nul);
        }
        if tally.has_non_ascii || !self.partial.is_empty() {
            self.check_utf8(step)?;
        }
        self.take(step, tally.newlines);
        self.newlines += tally.newlines;
        self.crlf += tally.crlf;
        self.bytes += step.len() as u64;
        self.last = step.last().copied().unwrap_or(self.last);
        Ok(())
    }

    fn check_utf8(&mut self, step: &[u8]) -> std::result::Result<(), Bad> {
        let mut start = 0;
        while !self.partial.is_empty() && start < step.len() {
            self.partial.push(step[start]);
            start += 1;
            match std::str::from_utf8(&self.partial) {
                Ok(_) => self.partial.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    let at = self.bytes + start as u64 - self.partial.len() as u64;
                    return Err(self.bad_byte(self.partial[0], at, self.newlines + 1));
                }
            }
        }
        if let Err(error) = simdutf8::compat::from_utf8(&step[start..]) {
            let valid = start + error.valid_up_to();
            if error.error_len().is_some() {
                let line = self.newlines + lines::number_at(step, valid);
                return Err(self.bad_byte(step[valid], self.bytes + valid as u64, line));
            }
            self.partial.extend_from_slice(&step[valid..]);
        }
        Ok(())
    }

    fn bad_byte(&self, byte: u8, at: u64, line: usize) -> Bad {
        Bad::Utf8 {
            byte,
            place: Place {
                offset: self.bom_bytes + at,
                line,
            },
        }
    }

    fn finish(&mut self) -> std::result::Result<(), Bad> {
        if let Stage::Measuring(chars) = self.stage {
            self.first_line_chars = Some(chars);
        }
        match self.partial.first() {
            Some(&byte) => {
                Err(self.bad_byte(byte, self.bytes - self.partial.len() as u64, self.newlines + 1))
            }
            None => Ok(()),
        }
    }

    fn take(&mut self, mut step: &[u8], newlines: usize) {
        if let Stage::Before(left) = self.stage {
            if newlines < left {
                self.stage = Stage::Before(left - newlines);
                return;
            }
            let start = memchr::memchr_iter(b'\n', step)
                .nth(left - 1)
                .map_or(step.len(), |at| at + 1);
            step = &step[start..];
            self.stage = Stage::Keeping(self.limit);
        }
        if let Stage::Keeping(left) = self.stage {
            step = self.keep(step, left);
        }
        if let Stage::Measuring(chars) = self.stage {
            self.measure(step, chars);
        }
    }

    /// Copies what can still be shown; returns what a line too long for any budget has left in this step.
    fn keep<'s>(&mut self, step: &'s [u8], left: usize) -> &'s [u8] {
        let room = self.keep_bytes - self.kept.len();
        let (part, rest) = step.split_at(room.min(step.len()));
        if let Some(end) = memchr::memchr_iter(b'\n', part).nth(left - 1) {
            self.kept.extend_from_slice(&part[..=end]);
            self.stage = Stage::Done;
            return &[];
        }
        self.kept.extend_from_slice(part);
        self.stage = Stage::Keeping(left - memchr::memchr_iter(b'\n', part).count());
        if rest.is_empty() {
            return rest;
        }
        let is_one_line = memchr::memchr(b'\n', &self.kept).is_none();
        self.stage = if is_one_line {
            Stage::Measuring(utf16_len_of_bytes(&self.kept))
        } else {
            Stage::Done
        };
        rest
    }

    fn measure(&mut self, step: &[u8], chars: usize) {
        let end = memchr::memchr(b'\n', step);
        let chars = chars + utf16_len_of_bytes(&step[..end.unwrap_or(step.len())]);
        let Some(end) = end else {
            self.stage = Stage::Measuring(chars);
            return;
        };
        let before = if end > 0 { step[end - 1] } else { self.last };
        self.first_line_chars = Some(chars - usize::from(before == b'\r'));
        self.stage = Stage::Done;
    }
}
