//! A listener's credential: random, carried in the proxy URL and the base URL, compared in constant time.

use crate::broker::base64;
use crate::error::{Error, ErrorCode, Result};
use std::fmt;

/// The user name in the proxy URL; clients insist on one.
pub const USER: &str = "croft";

#[derive(Clone)]
pub struct Token {
    text: String,
    basic: Vec<u8>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// 192 random bits in hexadecimal: no character that a URL, a shell or a client would escape.
    pub fn random() -> Result<Self> {
        let mut bytes = [0u8; 24];
        getrandom::fill(&mut bytes).map_err(|_| {
            Error::new(
                ErrorCode::BrokerFailed,
                "the system gave no random bytes for the credential",
            )
        })?;
        Ok(Self::from_text(
            bytes.iter().map(|b| format!("{b:02x}")).collect(),
        ))
    }

    pub fn from_text(text: String) -> Self {
        let basic = base64::encode(format!("{USER}:{text}").as_bytes());
        Self { text, basic }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// A path segment.
    pub fn is(&self, text: &str) -> bool {
        same(self.text.as_bytes(), text.as_bytes())
    }

    /// A `Proxy-Authorization` value.
    pub fn is_basic(&self, value: &[u8]) -> bool {
        let Some((scheme, rest)) = value.split_at_checked(6) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"basic ") && same(&self.basic, rest.trim_ascii())
    }
}

/// Time depends on the lengths only.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y));
    a.len() == b.len() && std::hint::black_box(differing) == 0
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::from_text("abc123".into());
        assert!(token.is("abc123"));
        assert!(token.is_basic(b"Basic Y3JvZnQ6YWJjMTIz"));
        assert!(token.is_basic(b"basic Y3JvZnQ6YWJjMTIz"));
        for wrong in ["", "abc12", "abc1234", "abc124", "ABC123"] {
            assert!(!token.is(wrong), "{wrong}");
        }
        for wrong in [
            &b""[..],
            b"Basic",
            b"Basic ",
            b"Bearer Y3JvZnQ6YWJjMTIz",
            b"Basic Y3JvZnQ6YWJjMTI0",
        ] {
            assert!(!token.is_basic(wrong));
        }
        assert_eq!(format!("{:?}", Token::random().unwrap()), "Token");
        assert_eq!(Token::random().unwrap().text().len(), 48);
    }
}
