//! Lines into numbered text within a budget of UTF-16 code units.

use super::{Numbering, PageRequest};
use crate::text::clip::{self, utf16_len_of_bytes as utf16_len};
use crate::text::hash_line;
use crate::text::lines::{Line, pieces};

/// What the reader kept: the wanted lines, or as much of them as any budget could show.
pub(super) struct Window<'a> {
    pub text: &'a str,
    pub total_lines: usize,
    /// Full length of the first line, if the window holds only its beginning.
    pub first_line_chars: Option<usize>,
    /// Notes that are given in any case.
    pub notes: &'a [String],
}

pub(super) struct Laid {
    pub text: String,
    pub last_line: usize,
    pub truncated: bool,
    pub cut_line_chars: Option<usize>,
}

pub(super) fn lay_out(window: &Window<'_>, request: &PageRequest) -> Laid {
    let total = window.total_lines;
    let fixed: usize = window.notes.iter().map(|note| bracketed_len(note)).sum();
    let whole = request.max_chars.saturating_sub(fixed);
    // The widest the last note can get, so that the lines can be chosen before it is written.
    let with_cut_note = whole.saturating_sub(bracketed_len(&cut_note(request.offset, total, total)));
    let mut page = Writer::new(request, window.text);
    let (mut fitting_bytes, mut fitting_lines, mut lines) = (0, 0, 0);
    let is_ascii = window.text.is_ascii();
    let mut overflowed = window.first_line_chars.is_some();
    let available = if overflowed { 0 } else { request.limit };
    for line in texts(window.text).take(available) {
        page.push_line(line, is_ascii);
        if page.chars > whole {
            overflowed = true;
            break;
        }
        lines += 1;
        if page.chars <= with_cut_note {
            (fitting_bytes, fitting_lines) = (page.out.len(), lines);
        }
    }
    let mut laid = Laid {
        text: page.out,
        last_line: 0,
        truncated: false,
        cut_line_chars: None,
    };
    let all_shown = !overflowed && (request.offset - 1).saturating_add(lines) >= total;
    if !all_shown {
        laid.text.truncate(fitting_bytes);
        lines = fitting_lines;
        laid.truncated = true;
        if lines == 0 {
            laid = cut_first_line(window, request, with_cut_note);
            lines = 1;
        }
    }
    laid.last_line = request.offset + lines - 1;
    window
        .notes
        .iter()
        .for_each(|note| push_note(&mut laid.text, note));
    if laid.truncated {
        push_note(&mut laid.text, &cut_note(request.offset, laid.last_line, total));
    }
    laid
}

/// The first line is longer than the budget: show its beginning and say how long it is.
fn cut_first_line(window: &Window<'_>, request: &PageRequest, budget: usize) -> Laid {
    let line = texts(window.text).next().unwrap_or_default();
    let full = window
        .first_line_chars
        .unwrap_or_else(|| utf16_len(line.as_bytes()));
    let note = |shown| {
        format!(
            "line {} is {full} characters long, the first {shown} are shown",
            request.offset
        )
    };
    let budget = budget.saturating_sub(bracketed_len(&note(full)));
    let mut page = Writer::new(request, "");
    page.push_prefix(None);
    let shown = clip::head(line, budget.saturating_sub(page.chars));
    page.out.push_str(shown);
    push_note(&mut page.out, &note(utf16_len(shown.as_bytes())));
    Laid {
        text: page.out,
        last_line: request.offset,
        truncated: true,
        cut_line_chars: Some(full),
    }
}

fn cut_note(first: usize, last: usize, total: usize) -> String {
    let shown = if first == last {
        format!("line {first}")
    } else {
        format!("lines {first}-{last}")
    };
    match total.saturating_sub(last) {
        // Also written with last = total to measure: it is longer than any other note of this page.
        0 => format!("{shown} of {total} shown, the end of the file; nothing follows"),
        _ => format!("{shown} of {total} shown; continue with offset {}", last + 1),
    }
}

fn bracketed_len(note: &str) -> usize {
    utf16_len(note.as_bytes()) + "\n[]".len()
}

fn push_note(out: &mut String, note: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push('[');
    out.push_str(note);
    out.push(']');
}

struct Writer<'r> {
    out: String,
    chars: usize,
    request: &'r PageRequest,
    number: Number,
}

impl<'r> Writer<'r> {
    fn new(request: &'r PageRequest, text: &str) -> Self {
        // Reserved for lines of 28 bytes and more; shorter ones make it grow.
        let out = String::with_capacity(text.len() + text.len() / 4 + 512);
        Self {
            out,
            chars: 0,
            request,
            number: Number::new(request.offset),
        }
    }

    fn push_line(&mut self, text: &str, is_ascii: bool) {
        if !self.out.is_empty() {
            self.out.push('\n');
            self.chars += 1;
        }
        self.push_prefix(Some(text));
        self.out.push_str(text);
        self.chars += if is_ascii {
            text.len()
        } else {
            utf16_len(text.as_bytes())
        };
        self.number.increment();
    }

    /// `text` is the whole line, or `None` when it is not at hand: then it gets no anchor.
    fn push_prefix(&mut self, text: Option<&str>) {
        let before = self.out.len();
        match (self.request.numbering, text) {
            (Numbering::Gutter, _) => self.out.push_str(self.number.gutter()),
            (Numbering::HashLines { hash_length }, Some(text)) => {
                hash_line::push_anchor(&mut self.out, self.number.value, text.as_bytes(), hash_length);
            }
            // Nobody should replace a line by an anchor without having seen all of it.
            (Numbering::HashLines { .. }, None) => {
                self.out.push_str(&format!("L{}::", self.number.value));
            }
        }
        self.chars += self.out.len() - before;
    }
}

/// A line number that counts in decimal digits, because formatting each number costs more than its line does.
struct Number {
    value: usize,
    /// Right-aligned, then the TAB of the gutter.
    digits: [u8; Self::WIDTH],
    start: usize,
}

impl Number {
    const WIDTH: usize = 21;
    const GUTTER_WIDTH: usize = 7;

    fn new(value: usize) -> Self {
        let mut digits = [b' '; Self::WIDTH];
        digits[Self::WIDTH - 1] = b'\t';
        let text = value.to_string();
        let start = (Self::WIDTH - 1).saturating_sub(text.len());
        for (digit, byte) in digits[start..Self::WIDTH - 1].iter_mut().zip(text.bytes()) {
            *digit = byte;
        }
        Self {
            value,
            digits,
            start: start.min(Self::WIDTH - Self::GUTTER_WIDTH),
        }
    }

    fn increment(&mut self) {
        self.value += 1;
        let mut at = Self::WIDTH - 2;
        while at > 0 && self.digits[at] == b'9' {
            self.digits[at] = b'0';
            at -= 1;
        }
        self.digits[at] = if self.digits[at] == b' ' {
            b'1'
        } else {
            self.digits[at] + 1
        };
        self.start = self.start.min(at);
    }

    fn gutter(&self) -> &str {
        std::str::from_utf8(&self.digits[self.start..]).unwrap_or_default()
    }
}

/// The lines of `text` without their endings.
fn texts(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    pieces(text.as_bytes()).map(move |piece| {
        let start = at;
        at += piece.len();
        &text[start..start + Line::of(piece).text.len()]
    })
}
