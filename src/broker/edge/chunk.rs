//! The strict check of a chunked body (pure): it passes bytes on unchanged or fails, and knows where the message ends.

use crate::broker::edge::head::split_field;

const MAX_SIZE_DIGITS: usize = 15;
/// Chunk extensions mean nothing to anybody; long ones are an attack on somebody's buffer.
const MAX_LINE_BYTES: usize = 1024;
const MAX_TRAILER_BYTES: usize = 8 * 1024;

#[derive(Debug, PartialEq, Eq)]
enum State {
    Line,
    Data(u64),
    DataCr,
    DataLf,
    Trailer,
    Done,
}

#[derive(Debug)]
pub struct ChunkCheck {
    state: State,
    /// The line so far when it came in pieces.
    line: Vec<u8>,
    trailer_bytes: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub struct BadChunk;

impl Default for ChunkCheck {
    fn default() -> Self {
        Self {
            state: State::Line,
            line: Vec::new(),
            trailer_bytes: 0,
        }
    }
}

impl ChunkCheck {
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// How many of `bytes` belong to this body; fewer than all only when it ended.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, BadChunk> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self.state {
                State::Done => break,
                State::Data(left) => {
                    let here = left.min((bytes.len() - at) as u64);
                    at += here as usize;
                    self.state = if here == left {
                        State::DataCr
                    } else {
                        State::Data(left - here)
                    };
                    continue;
                }
                State::DataCr if byte == b'\r' => self.state = State::DataLf,
                State::DataLf if byte == b'\n' => self.state = State::Line,
                State::DataCr | State::DataLf => return Err(BadChunk),
                State::Line | State::Trailer => self.line_byte(byte)?,
            }
            at += 1;
        }
        Ok(at)
    }

    fn line_byte(&mut self, byte: u8) -> Result<(), BadChunk> {
        if byte != b'\n' {
            if self.line.last() == Some(&b'\r') || self.line.len() >= MAX_LINE_BYTES {
                return Err(BadChunk);
            }
            self.line.push(byte);
            return Ok(());
        }
        if self.line.pop() != Some(b'\r') {
            return Err(BadChunk);
        }
        match self.state {
            State::Trailer => self.end_trailer_line()?,
            _ => self.end_size_line()?,
        }
        self.line.clear();
        Ok(())
    }

    fn end_size_line(&mut self) -> Result<(), BadChunk> {
        let digits = self.line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        if digits == 0 || digits > MAX_SIZE_DIGITS {
            return Err(BadChunk);
        }
        let (size, extension) = self.line.split_at(digits);
        let clean = extension.iter().all(|&b| (0x21..0x7f).contains(&b));
        if !clean || !(extension.is_empty() || extension.starts_with(b";")) {
            return Err(BadChunk);
        }
        let size = size.iter().fold(0u64, |n, &b| {
            n * 16 + u64::from((b as char).to_digit(16).unwrap_or(0))
        });
        self.state = if size == 0 {
            State::Trailer
        } else {
            State::Data(size)
        };
        Ok(())
    }

    fn end_trailer_line(&mut self) -> Result<(), BadChunk> {
        if self.line.is_empty() {
            self.state = State::Done;
            return Ok(());
        }
        self.trailer_bytes += self.line.len();
        match split_field(&self.line) {
            Some(_) if self.trailer_bytes <= MAX_TRAILER_BYTES => Ok(()),
            _ => Err(BadChunk),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_body_passes_whole_or_byte_by_byte_and_ends_where_it_ends() {
        let body = b"5\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nX-T: v\r\n\r\nGET /next";
        let mut whole = ChunkCheck::default();
        assert_eq!(whole.feed(body), Ok(body.len() - 9));
        assert!(whole.is_done());
        let mut dripped = ChunkCheck::default();
        for &byte in &body[..body.len() - 9] {
            assert_eq!(dripped.feed(&[byte]), Ok(1));
        }
        assert!(dripped.is_done());
        assert_eq!(dripped.feed(b"GET"), Ok(0));
    }

    #[test]
    fn an_unclean_body_is_refused() {
        for body in [
            "5\nhello\r\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n",
            "5\r\nhelloX\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "0x5\r\n",
            "-5\r\n",
            "+5\r\n",
            " 5\r\n",
            "5 \r\n",
            "\r\n",
            ";x\r\n",
            "FFFFFFFFFFFFFFFF\r\n",
            "5\rhello",
            "0\r\nX : a\r\n",
            "0\r\n a\r\n",
            "0\r\nX: a\n",
            "5;\u{7f}\r\n",
            "g\r\n",
        ] {
            assert!(ChunkCheck::default().feed(body.as_bytes()).is_err(), "{body:?}");
        }
        assert!(ChunkCheck::default().feed(&[b'1'; 2000]).is_err());
        assert!(
            ChunkCheck::default()
                .feed(format!("0\r\n{}", "X: abcdefgh\r\n".repeat(1000)).as_bytes())
                .is_err()
        );
    }
}
