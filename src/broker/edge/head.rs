//! The strict check of a request head (pure): stricter than hyper in every point, so that hyper's reading of an
//! accepted head and ours cannot differ.

use crate::broker::refusal::Reason;
use memchr::memchr;

/// How the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
}

#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    pub max_head_bytes: usize,
    pub max_target_bytes: usize,
    pub max_headers: usize,
}

/// Where a head ends in the bytes so far; remembers what it has seen, so a head that drips in costs no rescans.
#[derive(Debug, Default)]
pub struct HeadScan {
    line_start: usize,
    scanned: usize,
}

impl HeadScan {
    pub fn is_fresh(&self) -> bool {
        self.scanned == 0
    }

    pub fn in_first_line(&self) -> bool {
        self.line_start == 0
    }

    /// The length of the complete head, or none yet. A line that ends in a bare LF is refused at once: waiting for
    /// a CRLF that never comes would turn the refusal into a timeout.
    pub fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Reason> {
        while let Some(at) = bytes.get(self.scanned..).and_then(|rest| memchr(b'\n', rest)) {
            let lf = self.scanned + at;
            if lf == self.line_start || bytes.get(lf.wrapping_sub(1)) != Some(&b'\r') {
                return Err(Reason::BadRequest);
            }
            let empty_line = lf == self.line_start + 1;
            self.line_start = lf + 1;
            self.scanned = lf + 1;
            if empty_line {
                *self = Self::default();
                return Ok(Some(lf + 1));
            }
        }
        self.scanned = bytes.len();
        Ok(None)
    }
}

/// RFC 9112 2.2: a server should ignore at least one empty line before the request line. Four are.
pub fn leading_empty_lines(bytes: &[u8]) -> usize {
    const MAX_EMPTY_LINES: usize = 4;
    bytes
        .chunks(2)
        .take(MAX_EMPTY_LINES)
        .take_while(|pair| *pair == b"\r\n")
        .count()
        * 2
}

/// Checks a complete head (through its empty line). Lines are known to end in CRLF.
pub fn check(head: &[u8], limits: &HeadLimits) -> Result<Framing, Reason> {
    let (line, mut rest) = next_line(head);
    let request = check_request_line(line, limits)?;
    if head.len() > limits.max_head_bytes {
        return Err(Reason::HeadTooLarge);
    }
    let mut fields = Fields::default();
    let mut count = 0;
    loop {
        let (line, after) = next_line(rest);
        if line.is_empty() {
            break;
        }
        count += 1;
        if count > limits.max_headers {
            return Err(Reason::HeadTooLarge);
        }
        fields.take(line)?;
        rest = after;
    }
    fields.judge(&request)
}

fn next_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', bytes) {
        Some(lf) => (
            bytes.get(..lf.saturating_sub(1)).unwrap_or(&[]),
            bytes.get(lf + 1..).unwrap_or(&[]),
        ),
        None => (&[], &[]),
    }
}

struct RequestLine {
    connect: bool,
    http_1_0: bool,
}

fn check_request_line(line: &[u8], limits: &HeadLimits) -> Result<RequestLine, Reason> {
    let mut parts = line.split(|&b| b == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Reason::BadRequest);
    };
    if method.is_empty() || !method.iter().all(|&b| is_token(b)) {
        return Err(Reason::BadRequest);
    }
    let http_1_0 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        _ => return Err(Reason::BadRequest),
    };
    if target.len() > limits.max_target_bytes {
        return Err(Reason::TargetTooLong);
    }
    check_target(method, target)?;
    Ok(RequestLine {
        connect: method == b"CONNECT",
        http_1_0,
    })
}

/// A fragment is dropped by hyper without a word, so `http://evil.test#.api.test/` must die before. An absolute
/// `OPTIONS` without a path means `OPTIONS *` (RFC 9112 3.2.4) and hyper would send `OPTIONS /`.
fn check_target(method: &[u8], target: &[u8]) -> Result<(), Reason> {
    // Without a way out at the first bad byte, here and below, so that many bytes are compared at once.
    let bad = target
        .iter()
        .fold(false, |bad, &b| bad | !(0x21..=0x7e).contains(&b) | (b == b'#'));
    if target.is_empty() || bad {
        return Err(Reason::BadTarget);
    }
    if method == b"CONNECT" {
        let plain = target.iter().all(|&b| is_host_byte(b));
        let form = if target.first() == Some(&b'/') || target.windows(3).any(|w| w == b"://") {
            Reason::ConnectForm
        } else {
            Reason::BadHost
        };
        return if plain { Ok(()) } else { Err(form) };
    }
    match target {
        [b'/', ..] => Ok(()),
        b"*" if method == b"OPTIONS" => Ok(()),
        b"*" => Err(Reason::BadTarget),
        _ => check_absolute(method, target),
    }
}

fn check_absolute(method: &[u8], target: &[u8]) -> Result<(), Reason> {
    let colon = memchr(b':', target).ok_or(Reason::BadTarget)?;
    let (scheme, rest) = target.split_at(colon);
    let known = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
    let Some(rest) = rest.strip_prefix(b"://").filter(|_| known) else {
        return Err(Reason::BadTarget);
    };
    let end = rest
        .iter()
        .position(|&b| matches!(b, b'/' | b'?'))
        .unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() || !authority.iter().all(|&b| is_host_byte(b)) {
        return Err(Reason::BadHost);
    }
    if method == b"OPTIONS" && path.is_empty() {
        return Err(Reason::BadTarget);
    }
    Ok(())
}

fn is_host_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':' | b'[' | b']')
}

fn is_token(b: u8) -> bool {
    TOKEN[usize::from(b)]
}

/// RFC 9110 5.6.2, as a table: it is asked for every byte of every header name.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0u8;
    while b < 0x80 {
        table[b as usize] = b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        b += 1;
    }
    table
};

/// `name: value` with nothing a second parser could read otherwise. Bytes above 0x7f pass: they are somebody's Latin-1.
pub fn split_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    let (name, value) = line.split_at(colon);
    let clean = !name.is_empty()
        && name.iter().all(|&b| is_token(b))
        && !value
            .iter()
            .fold(false, |bad, &b| bad | ((b < 0x20) & (b != b'\t')) | (b == 0x7f));
    clean.then(|| (name, value.get(1..).unwrap_or(&[]).trim_ascii()))
}

#[derive(Default)]
struct Fields {
    hosts: usize,
    length: Option<u64>,
    chunked: bool,
}

impl Fields {
    fn take(&mut self, line: &[u8]) -> Result<(), Reason> {
        let (name, value) = split_field(line).ok_or(Reason::BadRequest)?;
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => self.hosts += 1,
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                // Even an equal second one is refused: there is no honest sender of it.
                if self.length.is_some() {
                    return Err(Reason::BadFraming);
                }
                self.length = Some(parse_length(value).ok_or(Reason::BadFraming)?);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Reason::BadFraming);
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn judge(&self, request: &RequestLine) -> Result<Framing, Reason> {
        // CONNECT says its host in the target; some clients leave the header out, and nothing here would use it.
        let host_missing = self.hosts == 0 && !request.http_1_0 && !request.connect;
        if self.hosts > 1 || host_missing {
            return Err(Reason::BadRequest);
        }
        match (self.length, self.chunked) {
            (Some(_), true) => Err(Reason::BadFraming),
            (_, true) if request.http_1_0 => Err(Reason::BadFraming),
            (None, false) => Ok(Framing::None),
            _ if request.connect => Err(Reason::ConnectForm),
            (Some(length), false) => Ok(Framing::Length(length)),
            (None, true) => Ok(Framing::Chunked),
        }
    }
}

/// Digits only; 2^63 and above is nobody's body.
fn parse_length(value: &[u8]) -> Option<u64> {
    const MAX_DIGITS: usize = 18;
    if value.is_empty() || value.len() > MAX_DIGITS || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |n, b| n * 10 + u64::from(b - b'0')))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    const LIMITS: HeadLimits = HeadLimits {
        max_head_bytes: 65536,
        max_target_bytes: 16384,
        max_headers: 100,
    };

    fn verdict(text: &str) -> Result<Framing, Reason> {
        let mut scan = HeadScan::default();
        let end = scan.find_end(text.as_bytes())?.expect("complete");
        check(&text.as_bytes()[..end], &LIMITS)
    }

    fn with(lines: &str) -> Result<Framing, Reason> {
        verdict(&format!(
            "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n"
        ))
    }

    #[test]
    fn a_plain_head_passes_with_its_framing() {
        assert_eq!(with(""), Ok(Framing::None));
        assert_eq!(with("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
        assert_eq!(with("Content-Length:0\r\n"), Ok(Framing::Length(0)));
        assert_eq!(with("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
        assert_eq!(
            with("X-Bytes: \u{fc}\r\nX-Empty:\r\nX-Tab: a\tb\r\n"),
            Ok(Framing::None)
        );
        assert_eq!(verdict("GET / HTTP/1.0\r\n\r\n"), Ok(Framing::None));
        assert_eq!(verdict("CONNECT a.test:443 HTTP/1.1\r\n\r\n"), Ok(Framing::None));
        assert_eq!(
            verdict("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
            Ok(Framing::None)
        );
        assert_eq!(
            verdict("GET HTTP://[::1]:80/?a={b}|c HTTP/1.1\r\nHost: a\r\n\r\n"),
            Ok(Framing::None)
        );
    }

    #[test]
    fn a_body_of_doubtful_length_is_refused() {
        for lines in [
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
            "Content-Length: 3\r\nContent-Length: 4\r\n",
            "Content-Length: 3\r\nContent-Length: 3\r\n",
            "Content-Length: 3, 3\r\n",
            "Content-Length: +3\r\n",
            "Content-Length: -1\r\n",
            "Content-Length: 0x3\r\n",
            "Content-Length: 18446744073709551616\r\n",
            "Content-Length:\r\n",
            "Content-Length: 3 4\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: identity\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding:\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            assert_eq!(with(lines), Err(Reason::BadFraming), "{lines:?}");
        }
        assert_eq!(
            verdict("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Err(Reason::BadFraming)
        );
        assert_eq!(
            verdict("CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\n"),
            Err(Reason::ConnectForm)
        );
        assert_eq!(
            verdict("CONNECT a.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Err(Reason::ConnectForm)
        );
    }

    #[test]
    fn a_line_that_two_parsers_would_read_differently_is_refused() {
        for lines in [
            "X: a\r\n b\r\n",
            "X: a\r\n\tb\r\n",
            " X: a\r\n",
            "X : a\r\n",
            ": a\r\n",
            "X\r\n",
            "X: a\rb\r\n",
            "X: a\0b\r\n",
            "X: a\nY: b\r\n",
            "X: a\n\r\n",
            "Host: b.test\r\n",
            "X\u{fc}: a\r\n",
            "X: \u{7f}\r\n",
        ] {
            assert_eq!(with(lines), Err(Reason::BadRequest), "{lines:?}");
        }
        for head in [
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
            "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            "GET /\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
            "\n",
        ] {
            assert_eq!(verdict(head), Err(Reason::BadRequest), "{head:?}");
        }
    }

    #[test]
    fn a_target_that_is_no_plain_one_is_refused() {
        for (target, reason) in [
            ("http://evil.test#.api.test/", Reason::BadTarget),
            ("/a#b", Reason::BadTarget),
            ("api.test:443", Reason::BadTarget),
            ("ftp://a.test/", Reason::BadTarget),
            ("http:/a.test/", Reason::BadTarget),
            ("http:///x", Reason::BadHost),
            ("http://u:pw@api.test/", Reason::BadHost),
            ("http://api.test\\@evil.test/", Reason::BadHost),
            ("http://api.test%5c@evil.test/", Reason::BadHost),
            ("http://a%70i.test/", Reason::BadHost),
            ("http://t\u{e9}st/", Reason::BadTarget),
            ("*", Reason::BadTarget),
        ] {
            assert_eq!(
                verdict(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")),
                Err(reason),
                "{target}"
            );
        }
        for target in ["/x", "http://api.test:443/", "u@a.test:443", "a%00.test:443"] {
            assert!(
                verdict(&format!("CONNECT {target} HTTP/1.1\r\nHost: a\r\n\r\n")).is_err(),
                "{target}"
            );
        }
        assert_eq!(
            verdict("OPTIONS http://a.test HTTP/1.1\r\nHost: a\r\n\r\n"),
            Err(Reason::BadTarget)
        );
        assert_eq!(
            verdict("OPTIONS http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n"),
            Ok(Framing::None)
        );
    }

    #[test]
    fn size_has_a_limit_in_bytes_headers_and_target() {
        assert_eq!(
            with(&format!("X: {}\r\n", "a".repeat(65536))),
            Err(Reason::HeadTooLarge)
        );
        assert_eq!(with(&"X: a\r\n".repeat(150)), Err(Reason::HeadTooLarge));
        assert_eq!(with(&"X: a\r\n".repeat(99)), Ok(Framing::None));
        assert_eq!(
            verdict(&format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(20000))),
            Err(Reason::TargetTooLong)
        );
    }

    #[test]
    fn a_head_that_drips_in_is_found_where_a_whole_one_is() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        let mut scan = HeadScan::default();
        for n in 0..27 {
            assert_eq!(scan.find_end(&text[..n]), Ok(None), "{n}");
        }
        assert_eq!(scan.find_end(text), Ok(Some(27)));
    }

    #[test]
    fn a_few_empty_lines_may_come_first() {
        assert_eq!(leading_empty_lines(b"\r\n\r\nGET"), 4);
        assert_eq!(leading_empty_lines(b"GET"), 0);
        assert_eq!(leading_empty_lines(&b"\r\n".repeat(9)), 8);
    }
}
