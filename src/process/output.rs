//! Bounded capture of a command's output: head and tail in constant memory, an exact count of what was dropped,
//! and text that stays within the budget after invalid bytes have become U+FFFD. Reading pipes is left to `exec`.

use std::collections::VecDeque;

/// What is kept of an output over its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The start and the end, with a marker between them.
    HeadTail,
    /// The start only, without a marker.
    Head,
}

/// How much of stdout and stderr is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    pub max_bytes: usize,
    /// One budget for both streams, spent in order of arrival, instead of one each.
    pub shared: bool,
    pub keep: Keep,
}

/// `[... N bytes left out ...]` on a line of its own, N at most 20 digits.
const MARKER_ROOM: usize = 48;
/// Below this a marker would take the place of the output; only the head is kept then.
const MARKER_FROM: usize = 2 * MARKER_ROOM;
const REPLACEMENT_BYTES: usize = char::REPLACEMENT_CHARACTER.len_utf8();

/// One stream while it arrives.
struct Part {
    head: Vec<u8>,
    head_room: usize,
    tail: VecDeque<u8>,
    tail_room: usize,
    total: u64,
}

impl Part {
    fn new(head_room: usize, tail_room: usize) -> Self {
        Part {
            head: Vec::new(),
            head_room,
            tail: VecDeque::new(),
            tail_room,
            total: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let fits = bytes.len().min(self.head_room - self.head.len());
        let (head, rest) = bytes.split_at(fits);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_room)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_room);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Whether bytes between head and tail were already dropped.
    fn is_cut(&self) -> bool {
        self.total > (self.head.len() + self.tail.len()) as u64
    }

    /// At most `max_bytes` of text, and the number of bytes not in it.
    fn finish(mut self, max_bytes: usize) -> (String, u64) {
        let total = self.total;
        let cut = self.is_cut();
        if !cut {
            self.head.extend(self.tail.drain(..));
            match decode_within(std::mem::take(&mut self.head), max_bytes) {
                Ok(text) => return (text, 0),
                // Replacement characters made it longer than the budget.
                Err(bytes) => self.head = bytes,
            }
        }
        let with_marker = max_bytes >= MARKER_FROM && self.tail_room > 0;
        let room = if with_marker {
            max_bytes - MARKER_ROOM
        } else {
            max_bytes
        };
        let head_room = if with_marker { room / 2 } else { room };
        let (mut text, head_used) = decode_head(&self.head, head_room);
        if !with_marker {
            return (text, total - head_used as u64);
        }
        let rest = if cut {
            self.tail.make_contiguous()
        } else {
            &mut self.head[head_used..]
        };
        let (tail, tail_used) = decode_tail(rest, room - text.len());
        let dropped = total - (head_used + tail_used) as u64;
        let line_start = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        text.push_str(&format!("{line_start}[... {dropped} bytes left out ...]\n"));
        text.push_str(&tail);
        (text, dropped)
    }
}

/// The bytes as text when that fits, else the bytes back. Valid UTF-8 is not copied.
fn decode_within(bytes: Vec<u8>, max_bytes: usize) -> Result<String, Vec<u8>> {
    match String::from_utf8(bytes) {
        Ok(text) if text.len() <= max_bytes => Ok(text),
        Ok(text) => Err(text.into_bytes()),
        Err(error) => {
            let bytes = error.into_bytes();
            if decoded_length(&bytes) > max_bytes {
                return Err(bytes);
            }
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
    }
}

fn decoded_length(bytes: &[u8]) -> usize {
    let replaced = |invalid: &[u8]| if invalid.is_empty() { 0 } else { REPLACEMENT_BYTES };
    bytes
        .utf8_chunks()
        .map(|chunk| chunk.valid().len() + replaced(chunk.invalid()))
        .sum()
}

/// Whether these bytes are the start of a character, and could become one with more.
fn is_unfinished(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The longest start of `bytes`, known to go on, whose text fits `room`; and how many bytes it stands for.
/// A character that the end of `bytes` cuts is left out, not replaced.
fn decode_head(bytes: &[u8], room: usize) -> (String, usize) {
    let mut text = String::new();
    let mut used = 0;
    for chunk in bytes.utf8_chunks() {
        let left = room - text.len();
        let valid = chunk.valid();
        if valid.len() > left {
            let end = (0..=left)
                .rev()
                .find(|&at| valid.is_char_boundary(at))
                .unwrap_or(0);
            text.push_str(&valid[..end]);
            return (text, used + end);
        }
        text.push_str(valid);
        used += valid.len();
        let invalid = chunk.invalid();
        let unfinished = used + invalid.len() == bytes.len() && is_unfinished(invalid);
        if invalid.is_empty() || unfinished || room - text.len() < REPLACEMENT_BYTES {
            break;
        }
        text.push(char::REPLACEMENT_CHARACTER);
        used += invalid.len();
    }
    (text, used)
}

/// The longest end of `bytes` whose text fits `room`, and how many bytes it stands for. What is left of a
/// character that the start cut is left out.
fn decode_tail(bytes: &[u8], room: usize) -> (String, usize) {
    let torn = bytes
        .iter()
        .take(3)
        .take_while(|&&byte| byte & 0xC0 == 0x80)
        .count();
    let bytes = &bytes[torn..];
    // Two forward passes instead of one backward: where a UTF-8 sequence begins is only known from the front.
    let mut excess = decoded_length(bytes).saturating_sub(room);
    let mut skipped = 0;
    for chunk in bytes.utf8_chunks() {
        if excess == 0 {
            break;
        }
        let valid = chunk.valid();
        if excess < valid.len() {
            skipped += (excess..valid.len())
                .find(|&at| valid.is_char_boundary(at))
                .unwrap_or(valid.len());
            break;
        }
        excess -= valid.len();
        skipped += valid.len();
        if excess > 0 {
            excess = excess.saturating_sub(REPLACEMENT_BYTES);
            skipped += chunk.invalid().len();
        }
    }
    let kept = &bytes[skipped..];
    (String::from_utf8_lossy(kept).into_owned(), kept.len())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Both streams while they arrive.
pub struct Capture {
    options: CaptureOptions,
    parts: [Part; 2],
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    pub stdout: String,
    pub stderr: String,
    /// Bytes of both streams that are not in the text.
    pub dropped_bytes: u64,
}

impl Capture {
    pub fn new(options: CaptureOptions) -> Self {
        let (head, tail) = match options.keep {
            Keep::Head => (options.max_bytes, 0),
            // A shared budget is split at the end; until then each stream may need all of it.
            Keep::HeadTail => (options.max_bytes / 2, options.max_bytes - options.max_bytes / 2),
        };
        Capture {
            options,
            parts: [Part::new(head, tail), Part::new(head, tail)],
        }
    }

    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let CaptureOptions { shared, keep, .. } = self.options;
        let [stdout, stderr] = &mut self.parts;
        let (part, other) = match stream {
            Stream::Stdout => (stdout, stderr),
            Stream::Stderr => (stderr, stdout),
        };
        if shared && keep == Keep::Head {
            part.head_room = self.options.max_bytes - other.head.len();
        }
        part.push(bytes);
    }

    pub fn finish(self) -> Captured {
        let CaptureOptions {
            max_bytes, shared, ..
        } = self.options;
        let [stdout, stderr] = self.parts;
        let (for_stdout, for_stderr) = if shared {
            split(max_bytes, &stdout, &stderr)
        } else {
            (max_bytes, max_bytes)
        };
        let (stdout, dropped_stdout) = stdout.finish(for_stdout);
        let for_stderr = if shared {
            max_bytes - stdout.len()
        } else {
            for_stderr
        };
        let (stderr, dropped_stderr) = stderr.finish(for_stderr);
        Captured {
            stdout,
            stderr,
            dropped_bytes: dropped_stdout + dropped_stderr,
        }
    }
}

/// Shares one budget out: a stream that needs less than half leaves the rest to the other.
fn split(max_bytes: usize, stdout: &Part, stderr: &Part) -> (usize, usize) {
    let wanted = |part: &Part| (part.head.len() + part.tail.len()).min(max_bytes);
    let half = max_bytes / 2;
    let (out, err) = (wanted(stdout), wanted(stderr));
    match (out <= half, err <= half) {
        (_, true) => (max_bytes - err, err),
        (true, false) => (out, max_bytes - out),
        (false, false) => (half, max_bytes - half),
    }
}

/// Decodes a stream piece by piece: a character split over reads stays whole.
#[derive(Default)]
pub struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len() + self.pending.len());
        let joined;
        let bytes = if self.pending.is_empty() {
            bytes
        } else {
            joined = [&self.pending, bytes].concat();
            &joined
        };
        let mut pending: &[u8] = &[];
        let mut seen = 0;
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            seen += chunk.valid().len() + invalid.len();
            if seen == bytes.len() && is_unfinished(invalid) {
                pending = invalid;
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.pending = pending.to_vec();
        text
    }

    /// What a stream that ended inside a character still owes.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.pending).is_empty() {
            ""
        } else {
            "\u{FFFD}"
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn capture(max_bytes: usize, bytes: &[u8], piece: usize) -> Captured {
        let mut capture = Capture::new(CaptureOptions {
            max_bytes,
            shared: false,
            keep: Keep::HeadTail,
        });
        bytes
            .chunks(piece.max(1))
            .for_each(|piece| capture.push(Stream::Stdout, piece));
        capture.finish()
    }

    #[test]
    fn an_output_within_the_budget_is_whole() {
        let captured = capture(5, "a€b".as_bytes(), 1);
        assert_eq!((captured.stdout.as_str(), captured.dropped_bytes), ("a€b", 0));
    }

    #[test]
    fn an_output_over_the_budget_keeps_head_and_tail_and_counts_the_rest_exactly() {
        let input: String = (1..=200_000).map(|n| format!("{n}\n")).collect();
        for piece in [1, 7, 4096, input.len()] {
            let Captured {
                stdout,
                dropped_bytes,
                ..
            } = capture(4000, input.as_bytes(), piece);
            assert!(stdout.len() <= 4000 && stdout.starts_with("1\n2\n") && stdout.ends_with("200000\n"));
            let marker = format!("[... {dropped_bytes} bytes left out ...]\n");
            let (head, tail) = stdout.split_once(&marker).unwrap();
            let newline_added = usize::from(!input.starts_with(head));
            assert_eq!(
                input.len() as u64,
                (head.len() - newline_added + tail.len()) as u64 + dropped_bytes
            );
            assert_eq!(stdout.matches("left out").count(), 1);
        }
    }

    #[test]
    fn no_character_is_torn_at_either_cut() {
        for shift in 0..3 {
            let input = format!("{}{}", "x".repeat(shift), "你".repeat(5000));
            let captured = capture(1000, input.as_bytes(), 11);
            assert!(!captured.stdout.contains('\u{FFFD}'), "shift {shift}");
            assert!(captured.stdout.len() <= 1000);
            let kept = captured.stdout.matches('你').count() * 3 + captured.stdout.matches('x').count();
            assert_eq!(kept as u64 + captured.dropped_bytes, input.len() as u64);
        }
    }

    #[test]
    fn invalid_bytes_stay_within_the_budget_after_they_have_grown() {
        for length in [100, 400, 1000, 5000] {
            let captured = capture(1000, &vec![0xFF; length], 64);
            assert!(captured.stdout.len() <= 1000);
            let kept = captured.stdout.matches('\u{FFFD}').count() as u64;
            assert_eq!(kept + captured.dropped_bytes, length as u64);
        }
    }

    #[test]
    fn a_budget_too_small_for_a_marker_keeps_the_head() {
        let captured = capture(4, "ab€cd".as_bytes(), 2);
        assert_eq!((captured.stdout.as_str(), captured.dropped_bytes), ("ab", 5));
        assert_eq!(
            capture(0, b"abc", 1),
            Captured {
                stdout: "".into(),
                stderr: "".into(),
                dropped_bytes: 3
            }
        );
    }

    #[test]
    fn a_shared_budget_goes_to_whoever_writes_first() {
        let options = CaptureOptions {
            max_bytes: 6,
            shared: true,
            keep: Keep::Head,
        };
        let mut capture = Capture::new(options);
        capture.push(Stream::Stdout, b"abc");
        capture.push(Stream::Stderr, b"123456");
        capture.push(Stream::Stdout, b"def");
        let expected = Captured {
            stdout: "abc".into(),
            stderr: "123".into(),
            dropped_bytes: 6,
        };
        assert_eq!(capture.finish(), expected);
    }

    #[test]
    fn a_shared_budget_holds_after_replacement_too() {
        let options = CaptureOptions {
            max_bytes: 7,
            shared: true,
            keep: Keep::Head,
        };
        let mut capture = Capture::new(options);
        capture.push(Stream::Stdout, &[0xFF; 2]);
        capture.push(Stream::Stderr, b"123456");
        let captured = capture.finish();
        assert!(captured.stdout.len() + captured.stderr.len() <= 7);
        let kept = captured.stdout.chars().count() + captured.stderr.len();
        assert_eq!(kept as u64 + captured.dropped_bytes, 8);
    }

    #[test]
    fn a_shared_head_and_tail_budget_is_shared_out_by_need() {
        let options = CaptureOptions {
            max_bytes: 1000,
            shared: true,
            keep: Keep::HeadTail,
        };
        let mut capture = Capture::new(options);
        capture.push(Stream::Stdout, &[b'o'; 5000]);
        capture.push(Stream::Stderr, &[b'e'; 100]);
        let captured = capture.finish();
        assert_eq!(captured.stderr.len(), 100);
        assert!(captured.stdout.len() <= 900 && captured.stdout.len() > 800);
    }

    #[test]
    fn a_character_split_over_reads_stays_whole_and_an_unfinished_one_is_replaced() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"a\xe2\x82"), "a");
        assert_eq!(decoder.push(b"\xac\xff"), "€\u{FFFD}");
        assert_eq!(decoder.push(b"\xf0"), "");
        assert_eq!(decoder.push(b"x\xe2"), "\u{FFFD}x");
        assert_eq!(decoder.finish(), "\u{FFFD}");
        assert_eq!(decoder.finish(), "");
    }
}
