//! Grep of one buffer: text or not, which lines match, what is shown of them. Pure; the same for a file on disk,
//! in memory, or handed over by somebody else's file system.

use super::budget::{Clock, Tick};
use super::regex::{LineMatch, Matcher};

/// A NUL this early makes a file binary, as for git and grep.
const BINARY_PROBE_BYTES: usize = 8192;
/// The backtracking engine may take long on a single line.
const HARD_LINES_PER_TICK: usize = 1;
/// How many matching lines go by between two looks at the clock.
const MATCHES_PER_TICK: usize = 256;
/// A large file is searched in stretches of lines of about this size, with a look at the clock between them: a
/// pattern that overflows the lazy DFA runs at some 100 KB a second.
const STRETCH_BYTES: usize = 64 * 1024;
/// Shown in place of what is cut off a long line.
const CUT: char = '…';

#[derive(Clone, Copy, Debug)]
pub struct LineOptions {
    /// Lines shown before and after each match.
    pub context: usize,
    /// A longer line is cut around its match, in characters.
    pub max_line_chars: usize,
    /// Matching lines wanted; one more is looked for, to know whether there are more.
    pub max_matches: usize,
}

/// A line of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLine {
    /// 1-based.
    pub line: usize,
    /// 1-based, in UTF-16 code units, of the first match; `None` for a context line.
    pub column: Option<usize>,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferMatches {
    pub lines: Vec<ShownLine>,
    /// Matching lines among them.
    pub matches: usize,
    /// Candidates too long for the backtracking engine.
    pub long_lines: usize,
    pub end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    #[default]
    Complete,
    Binary,
    Cancelled,
    Deadline,
    /// The step limit was hit on this line (1-based).
    StepLimit(usize),
}

/// Searches a file's bytes, which are made into clean lines in place.
pub fn search_buffer(
    matcher: &Matcher,
    buffer: &mut Vec<u8>,
    options: &LineOptions,
    clock: &Clock<'_>,
) -> BufferMatches {
    let Some(text) = clean(buffer) else {
        return BufferMatches {
            end: End::Binary,
            ..BufferMatches::default()
        };
    };
    let mut search = Search {
        matcher,
        text,
        options,
        found: BufferMatches::default(),
        at: Cursor::default(),
    };
    if !text.is_empty() {
        search.found.end = search.run(clock);
    }
    search.found
}

/// The lines, with LF between them and none after the last: no byte order mark, no CR before LF. `None`: binary.
fn clean(buffer: &mut Vec<u8>) -> Option<&[u8]> {
    if let Some(text) = from_utf16(buffer) {
        *buffer = text;
    }
    let probe = &buffer[..buffer.len().min(BINARY_PROBE_BYTES)];
    if memchr::memchr(0, probe).is_some() {
        return None;
    }
    if memchr::memchr(b'\r', buffer).is_some() {
        drop_carriage_returns(buffer);
    }
    let text = buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(buffer);
    Some(text)
}

fn from_utf16(buffer: &[u8]) -> Option<Vec<u8>> {
    let encoding = match buffer {
        [0xFF, 0xFE, ..] => encoding_rs::UTF_16LE,
        [0xFE, 0xFF, ..] => encoding_rs::UTF_16BE,
        _ => return None,
    };
    let (text, _, broken) = encoding.decode(buffer);
    (!broken).then(|| text.into_owned().into_bytes())
}

/// CR before LF belongs to the line ending; any other CR is data.
fn drop_carriage_returns(buffer: &mut Vec<u8>) {
    let mut kept = 0;
    for at in 0..buffer.len() {
        if buffer[at] == b'\r' && buffer.get(at + 1) == Some(&b'\n') {
            continue;
        }
        buffer[kept] = buffer[at];
        kept += 1;
    }
    buffer.truncate(kept);
}

struct Search<'a> {
    matcher: &'a Matcher,
    text: &'a [u8],
    options: &'a LineOptions,
    found: BufferMatches,
    at: Cursor,
}

/// How far line numbers are known, and what has been shown.
#[derive(Default)]
struct Cursor {
    /// Start of line number `line + 1`.
    offset: usize,
    line: usize,
    /// The last line shown (1-based), and where the next one starts.
    shown_line: usize,
    shown_end: usize,
}

impl Search<'_> {
    fn run(&mut self, clock: &Clock<'_>) -> End {
        // The final LF ends the last line; it does not begin another.
        let body = self.text.strip_suffix(b"\n").unwrap_or(self.text);
        let mut from = 0;
        loop {
            let stretch_end = match body.get(from + STRETCH_BYTES..) {
                Some(rest) => memchr::memchr(b'\n', rest).map_or(body.len(), |lf| from + STRETCH_BYTES + lf),
                None => body.len(),
            };
            if let Some(end) = self.stretch(body, from, stretch_end, clock) {
                return end;
            }
            if stretch_end == body.len() {
                self.after_context(body, body.len());
                return End::Complete;
            }
            from = stretch_end + 1;
            if let Some(end) = stopped(clock) {
                return end;
            }
        }
    }

    /// The lines from `from` to `stretch_end`, where a line ends. `None`: go on behind it.
    fn stretch(
        &mut self,
        body: &[u8],
        mut from: usize,
        stretch_end: usize,
        clock: &Clock<'_>,
    ) -> Option<End> {
        let mut since_tick = 0;
        while let Some((start, end)) = self.matcher.find_in_lines(&body[..stretch_end], from) {
            let line_start = memchr::memrchr(b'\n', &body[..start]).map_or(0, |lf| lf + 1);
            let line_end = memchr::memchr(b'\n', &body[start..]).map_or(body.len(), |at| start + at);
            let exact = if self.matcher.is_exact() {
                LineMatch::At {
                    start: start - line_start,
                    end: end - line_start,
                }
            } else {
                self.matcher
                    .match_line(&String::from_utf8_lossy(&body[line_start..line_end]))
            };
            match exact {
                LineMatch::At { start, .. } => {
                    if self.found.matches > self.options.max_matches {
                        return Some(End::Complete);
                    }
                    self.show(body, line_start, line_end, start);
                }
                LineMatch::No => {}
                LineMatch::TooLong => self.found.long_lines += 1,
                LineMatch::TooHard => return Some(End::StepLimit(self.number_of(line_start))),
            }
            if line_end >= stretch_end {
                return None;
            }
            from = line_end + 1;
            since_tick += 1;
            let every = if self.matcher.is_exact() {
                MATCHES_PER_TICK
            } else {
                HARD_LINES_PER_TICK
            };
            if since_tick == every {
                since_tick = 0;
                if let Some(end) = stopped(clock) {
                    return Some(end);
                }
            }
        }
        None
    }

    /// The 1-based number of the line that starts at `offset`; called with rising offsets.
    fn number_of(&mut self, offset: usize) -> usize {
        let lines = memchr::memchr_iter(b'\n', &self.text[self.at.offset..offset]).count();
        self.at.line += lines;
        self.at.offset = offset;
        self.at.line + 1
    }

    fn show(&mut self, body: &[u8], line_start: usize, line_end: usize, match_start: usize) {
        self.found.matches += 1;
        self.after_context(body, line_start);
        let number = self.number_of(line_start);
        self.before_context(body, line_start, number);
        let line = &body[line_start..line_end];
        let column = utf16_units(&line[..match_start.min(line.len())]) + 1;
        let text = cut_around(line, match_start, self.options.max_line_chars);
        self.found.lines.push(ShownLine {
            line: number,
            column: Some(column),
            text,
        });
        self.at.shown_line = number;
        self.at.shown_end = line_end + 1;
    }

    /// Context lines behind the last match, as far as `until`.
    fn after_context(&mut self, body: &[u8], until: usize) {
        let Some(last) = self.found.lines.iter().rposition(|line| line.column.is_some()) else {
            return;
        };
        let mut left = self
            .options
            .context
            .saturating_sub(self.found.lines.len() - 1 - last);
        while left > 0 && self.at.shown_end <= body.len() && self.at.shown_end < until {
            let start = self.at.shown_end;
            let end = memchr::memchr(b'\n', &body[start..]).map_or(body.len(), |at| start + at);
            self.push_context(&body[start..end], self.at.shown_line + 1, end);
            left -= 1;
        }
    }

    fn before_context(&mut self, body: &[u8], line_start: usize, number: usize) {
        let gap = number - 1 - self.at.shown_line;
        let wanted = self.options.context.min(gap);
        let mut start = line_start;
        for _ in 0..wanted {
            start = memchr::memrchr(b'\n', &body[..start - 1]).map_or(0, |lf| lf + 1);
        }
        for line in number - wanted..number {
            let end = memchr::memchr(b'\n', &body[start..]).map_or(body.len(), |at| start + at);
            self.push_context(&body[start..end], line, end);
            start = end + 1;
        }
    }

    fn push_context(&mut self, line: &[u8], number: usize, end: usize) {
        let text = cut_around(line, 0, self.options.max_line_chars);
        self.found.lines.push(ShownLine {
            line: number,
            column: None,
            text,
        });
        self.at.shown_line = number;
        self.at.shown_end = end + 1;
    }
}

fn stopped(clock: &Clock<'_>) -> Option<End> {
    match clock.tick() {
        Tick::GoOn => None,
        Tick::Cancelled => Some(End::Cancelled),
        Tick::DeadlinePassed => Some(End::Deadline),
    }
}

fn utf16_units(bytes: &[u8]) -> usize {
    String::from_utf8_lossy(bytes).encode_utf16().count()
}

/// At most `max_chars` characters of the line, with the match in sight: two thirds of the room are behind its
/// start.
fn cut_around(line: &[u8], match_start: usize, max_chars: usize) -> String {
    // A character has at most four bytes: this window holds every character that can be shown.
    let reach = max_chars.saturating_mul(4);
    let window_start = boundary(line, match_start.saturating_sub(reach));
    let window_end = boundary(line, match_start.saturating_add(reach).min(line.len()));
    let before = String::from_utf8_lossy(&line[window_start..match_start.clamp(window_start, window_end)]);
    let after = String::from_utf8_lossy(&line[match_start.clamp(window_start, window_end)..window_end]);
    let (before_chars, after_chars) = (before.chars().count(), after.chars().count());
    if window_start == 0 && window_end == line.len() && before_chars + after_chars <= max_chars {
        return before.into_owned() + &after;
    }
    let lead = before_chars.min((max_chars / 3).max(max_chars.saturating_sub(after_chars)));
    let mut text = String::with_capacity(max_chars + 8);
    if window_start > 0 || lead < before_chars {
        text.push(CUT);
    }
    text.extend(before.chars().skip(before_chars - lead));
    text.extend(after.chars().take(max_chars - lead));
    if window_end < line.len() || max_chars - lead < after_chars {
        text.push(CUT);
    }
    text
}

/// The nearest character boundary at or before `at`.
fn boundary(line: &[u8], at: usize) -> usize {
    let back = (0..4).find(|&back| back <= at && line.get(at - back).is_none_or(|byte| byte & 0xC0 != 0x80));
    at - back.unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::search::budget::NeverCancelled;

    fn search(pattern: &str, content: &[u8], context: usize) -> BufferMatches {
        let matcher = Matcher::javascript(pattern, false).unwrap();
        let options = LineOptions {
            context,
            max_line_chars: 500,
            max_matches: 1000,
        };
        search_buffer(
            &matcher,
            &mut content.to_vec(),
            &options,
            &Clock::new(&NeverCancelled, None),
        )
    }

    fn numbers(found: &BufferMatches) -> Vec<usize> {
        found
            .lines
            .iter()
            .filter(|line| line.column.is_some())
            .map(|line| line.line)
            .collect()
    }

    #[test]
    fn each_matching_line_is_found_once() {
        for (pattern, content, lines) in [
            ("fo", "foo\nfo", vec![1, 2]),
            ("foo", "foo\nfoo\nfoo foo\nfoo\n", vec![1, 2, 3, 4]),
            ("x*", "abc\n\nd", vec![1, 2, 3]),
            ("^$", "a\n\nb\n", vec![2]),
            ("^$", "a\n", vec![]),
            ("^$", "\n", vec![1]),
            ("^$", "", vec![]),
            ("$", "a\n\n", vec![1, 2]),
            ("foo$", "foo\r\nbar\r\n", vec![1]),
            ("^bar$", "foo\r\nbar\r\n", vec![2]),
            ("^end", "\u{feff}end\r\nnext\r\n", vec![1]),
            ("^.$", "a\n\rb\n", vec![1]),
            ("\\r", "a\rb\nc\r\n", vec![1]),
            ("a(?=b)", "ab\nac\nab", vec![1, 3]),
            ("(.)\\1", "ab\naa\n\nbb", vec![2, 4]),
            ("^(?!b)", "a\nb\n\nc", vec![1, 3, 4]),
        ] {
            assert_eq!(
                numbers(&search(pattern, content.as_bytes(), 0)),
                lines,
                "{pattern:?} {content:?}"
            );
        }
    }

    #[test]
    fn a_file_with_nul_is_binary_and_utf16_with_a_mark_is_text() {
        assert_eq!(search("a", b"a\0", 0).end, End::Binary);
        let mut late = vec![b'a'; BINARY_PROBE_BYTES];
        late.push(0);
        assert_eq!(search("a", &late, 0).end, End::Complete);
        let utf16: Vec<u8> = "\u{feff}x\nhéllo\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let found = search("h.llo", &utf16, 0);
        assert_eq!(
            found.lines,
            [ShownLine {
                line: 2,
                column: Some(1),
                text: "héllo".into()
            }]
        );
    }

    #[test]
    fn context_lines_are_shown_once_and_in_order() {
        let content = (1..=12).map(|n| format!("l{n}\n")).collect::<String>();
        let shown = |pattern: &str, context| {
            let found = search(pattern, content.as_bytes(), context);
            found
                .lines
                .iter()
                .map(|l| (l.line, l.column.is_some()))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown("^l1$", 1), [(1, true), (2, false)]);
        assert_eq!(
            shown("^l(3|5)$", 1),
            [(2, false), (3, true), (4, false), (5, true), (6, false)]
        );
        assert_eq!(shown("^l12$", 2), [(10, false), (11, false), (12, true)]);
        assert_eq!(
            shown("^l(2|9)$", 2),
            [
                (1, false),
                (2, true),
                (3, false),
                (4, false),
                (7, false),
                (8, false),
                (9, true),
                (10, false),
                (11, false)
            ]
        );
        let found = search("^l3$", content.as_bytes(), 1);
        assert_eq!(found.lines[0].text, "l2");
    }

    #[test]
    fn a_long_line_is_cut_around_its_match_on_character_boundaries() {
        let line = "x".repeat(100_000) + "NEEDLE" + &"📁".repeat(3000);
        let found = search("NEEDLE", line.as_bytes(), 0);
        let text = &found.lines[0].text;
        assert!(text.contains("NEEDLE") && text.starts_with(CUT) && text.ends_with(CUT));
        assert_eq!(text.chars().count(), 502);
        assert_eq!(found.lines[0].column, Some(100_001));
        assert_eq!(
            search("a", "a".repeat(500).as_bytes(), 0).lines[0].text,
            "a".repeat(500)
        );
        assert_eq!(
            search("a", "a".repeat(501).as_bytes(), 0).lines[0].text,
            "a".repeat(500) + "…"
        );
        let end = "é".repeat(600) + "Z";
        assert_eq!(
            search("Z", end.as_bytes(), 0).lines[0].text,
            "…".to_owned() + &"é".repeat(499) + "Z"
        );
    }

    #[test]
    fn the_column_counts_as_javascript_does() {
        assert_eq!(search("b", "📁éb".as_bytes(), 0).lines[0].column, Some(4));
    }

    #[test]
    fn a_large_file_is_searched_as_one() {
        let filler = "x".repeat(99) + "\n";
        for lines in [655, 656, 1310, 1311, 1400] {
            let content = filler.repeat(lines) + "needle\n\n" + &filler.repeat(700) + "needle";
            assert_eq!(
                numbers(&search("needle", content.as_bytes(), 0)),
                [lines + 1, lines + 703],
                "{lines}"
            );
            assert_eq!(
                numbers(&search("^$", content.as_bytes(), 0)),
                [lines + 2],
                "{lines}"
            );
            assert_eq!(search("x$", content.as_bytes(), 0).matches, 1001, "{lines}");
            let around = search("needle", content.as_bytes(), 1);
            assert_eq!(around.lines.len(), 5, "{lines}");
        }
        let cut = "x".repeat(STRETCH_BYTES) + "\n\n";
        assert_eq!(numbers(&search("^$", cut.as_bytes(), 0)), [2]);
    }

    #[test]
    fn one_match_more_than_wanted_is_looked_for() {
        let matcher = Matcher::javascript("a", false).unwrap();
        let options = LineOptions {
            context: 0,
            max_line_chars: 500,
            max_matches: 2,
        };
        let count = |text: &str| {
            search_buffer(
                &matcher,
                &mut text.into(),
                &options,
                &Clock::new(&NeverCancelled, None),
            )
            .matches
        };
        assert_eq!(
            (count("a\na"), count("a\na\na"), count("a\na\na\na\na")),
            (2, 3, 3)
        );
    }
}
