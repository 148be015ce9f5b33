//! The server name a TLS client asks for (pure): read from its first bytes as they arrive, nothing decrypted. What
//! follows from it is left to `tunnel`.

use crate::broker::host::{Host, parse_host};
use crate::broker::limits::MAX_CLIENT_HELLO_BYTES;

#[derive(Debug, PartialEq, Eq)]
pub enum Hello {
    /// Could still become a ClientHello.
    Incomplete,
    /// Something else, or too malformed for a TLS server to accept.
    NotTls,
    NoName,
    Name(Host),
    /// A name no host can have, or a hello too large to read.
    BadName,
}

const RECORD_HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const EXTENSION_SERVER_NAME: u16 = 0;
const MAX_RECORD_BYTES: usize = 16 * 1024 + 256;

pub fn read(bytes: &[u8]) -> Hello {
    match handshake(bytes) {
        Err(other) => other,
        Ok(body) => server_name(&body).unwrap_or(Hello::NotTls),
    }
}

/// The body of the ClientHello, put together from however many records it was cut into: a check that read only the
/// first record could be passed with a name in the second.
fn handshake(mut bytes: &[u8]) -> Result<Vec<u8>, Hello> {
    if bytes.len() > MAX_CLIENT_HELLO_BYTES {
        return Err(Hello::BadName);
    }
    let mut message = Vec::new();
    loop {
        match bytes.first() {
            None => return Err(Hello::Incomplete),
            Some(&RECORD_HANDSHAKE) => {}
            Some(_) => return Err(Hello::NotTls),
        }
        if bytes.get(1).is_some_and(|&major| major != 3) {
            return Err(Hello::NotTls);
        }
        let Some((&[_, _, _, hi, lo], rest)) = bytes.split_first_chunk::<5>() else {
            return Err(Hello::Incomplete);
        };
        let length = usize::from(u16::from_be_bytes([hi, lo]));
        if length == 0 || length > MAX_RECORD_BYTES {
            return Err(Hello::NotTls);
        }
        let whole = rest.get(..length);
        message.extend_from_slice(whole.unwrap_or(rest));
        if message.first().is_some_and(|&kind| kind != CLIENT_HELLO) {
            return Err(Hello::NotTls);
        }
        if let Some((&[_, a, b, c], body)) = message.split_first_chunk::<4>() {
            let size = u32::from_be_bytes([0, a, b, c]) as usize;
            if size > MAX_CLIENT_HELLO_BYTES {
                return Err(Hello::BadName);
            }
            if let Some(body) = body.get(..size) {
                return Ok(body.to_vec());
            }
        }
        match whole {
            None => return Err(Hello::Incomplete),
            Some(_) => bytes = rest.get(length..).unwrap_or(&[]),
        }
    }
}

/// RFC 8446 4.1.2: version, random, session, ciphers, compression, extensions.
fn server_name(body: &[u8]) -> Option<Hello> {
    let mut at = Cursor(body);
    at.take(2 + 32)?;
    at.vector8()?;
    at.vector16()?;
    at.vector8()?;
    if at.0.is_empty() {
        return Some(Hello::NoName);
    }
    let mut extensions = Cursor(at.vector16()?);
    let mut found = Hello::NoName;
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let data = extensions.vector16()?;
        if kind == EXTENSION_SERVER_NAME {
            // A second one is forbidden (RFC 8446 4.2); servers differ in which they would use.
            found = match found {
                Hello::NoName => first_name(data)?,
                _ => Hello::BadName,
            };
        }
    }
    Some(found)
}

/// RFC 6066 3: a list that holds one host_name.
fn first_name(data: &[u8]) -> Option<Hello> {
    let mut list = Cursor(Cursor(data).vector16()?);
    let kind = list.take(1)?;
    let name = list.vector16()?;
    if kind != [0] || !list.0.is_empty() {
        return Some(Hello::BadName);
    }
    let host = std::str::from_utf8(name)
        .ok()
        .and_then(|text| parse_host(text).ok());
    Some(host.map_or(Hello::BadName, Hello::Name))
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let n = self.take(1)?[0];
        self.take(usize::from(n))
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let n = self.u16()?;
        self.take(usize::from(n))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extension(names: &[&str]) -> Vec<u8> {
        names
            .iter()
            .flat_map(|name| {
                let n = name.len() as u16;
                let mut out = vec![0, 0];
                for length in [n + 5, n + 3] {
                    out.extend(length.to_be_bytes());
                }
                out.push(0);
                out.extend(n.to_be_bytes());
                out.extend(name.bytes());
                out
            })
            .collect()
    }

    fn hello(names: &[&str]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        let mut extensions = vec![0, 23, 0, 0];
        extensions.extend(extension(names));
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let mut message = vec![1];
        message.extend(&(body.len() as u32).to_be_bytes()[1..]);
        message.extend(body);
        message
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message
            .chunks(size)
            .flat_map(|part| [&[22, 3, 1], &(part.len() as u16).to_be_bytes()[..], part].concat())
            .collect()
    }

    #[test]
    fn the_name_is_read_from_one_record_or_many() {
        let name = Hello::Name(Host::Name("api.test".into()));
        for size in [10_000, 50, 7, 1] {
            assert_eq!(read(&records(&hello(&["API.test"]), size)), name, "{size}");
        }
        let whole = records(&hello(&["api.test"]), 10_000);
        for n in 0..whole.len() {
            assert_eq!(read(&whole[..n]), Hello::Incomplete, "{n}");
        }
    }

    #[test]
    fn no_name_no_tls_and_a_doubtful_name_are_told_apart() {
        assert_eq!(read(&records(&hello(&[]), 10_000)), Hello::NoName);
        assert_eq!(
            read(&records(&hello(&["a.test", "b.test"]), 10_000)),
            Hello::BadName
        );
        assert_eq!(read(&records(&hello(&["a\0b.test"]), 10_000)), Hello::BadName);
        for bytes in [
            &b"GET / HTTP/1.1"[..],
            b"SSH-2.0",
            &[22, 2, 0],
            &[22, 3, 1, 0, 0],
            &[22, 3, 1, 0, 1, 2],
        ] {
            assert_eq!(read(bytes), Hello::NotTls, "{bytes:?}");
        }
        assert_eq!(read(&vec![22; MAX_CLIENT_HELLO_BYTES + 1]), Hello::BadName);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..200) {
            read(&bytes);
            let mut whole = records(&hello(&["api.test"]), 60);
            if let Some(byte) = whole.get_mut(cut) { *byte = bytes.first().copied().unwrap_or(0); }
            read(&whole);
        }
    }
}
