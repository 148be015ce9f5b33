//! Masks a credential that an upstream echoes (pure): raw, percent-encoded, JSON-escaped and base64, replaced by as
//! many `*`, so that no length changes. Best effort by nature: an upstream can always find a spelling nobody looks for.

use memchr::memmem;

/// Shorter secrets would mask ordinary text.
const MIN_SECRET_BYTES: usize = 6;

#[derive(Debug, Default)]
pub struct Scrubber {
    forms: Vec<Vec<u8>>,
    /// The longest form less one: what may still become a match with the next chunk.
    max_held_bytes: usize,
}

impl Scrubber {
    pub fn new<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut forms = Vec::new();
        for value in values {
            for secret in secrets_of(value) {
                add_forms(&mut forms, &secret);
            }
        }
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        let max_held_bytes = forms.first().map_or(0, |form| form.len() - 1);
        Self {
            forms,
            max_held_bytes,
        }
    }

    /// Masks every complete occurrence. Longest first, so a part never spoils the whole.
    pub fn mask(&self, bytes: &mut [u8]) -> bool {
        let mut masked = false;
        for form in &self.forms {
            let mut from = 0;
            while let Some(at) = bytes.get(from..).and_then(|rest| memmem::find(rest, form)) {
                let start = from + at;
                from = start + form.len();
                if let Some(hit) = bytes.get_mut(start..from) {
                    hit.fill(b'*');
                }
                masked = true;
            }
        }
        masked
    }

    /// How many bytes at the end may be the beginning of an occurrence. Zero for nearly every chunk, so an event
    /// stream is not held up.
    pub fn pending(&self, bytes: &[u8]) -> usize {
        let longest = self.max_held_bytes.min(bytes.len());
        (1..=longest)
            .rev()
            .find(|&n| {
                let tail = &bytes[bytes.len() - n..];
                self.forms
                    .iter()
                    .any(|form| form.len() > n && form.starts_with(tail))
            })
            .unwrap_or(0)
    }
}

/// The value itself, the token after its scheme, and what Basic wraps.
fn secrets_of(value: &[u8]) -> Vec<Vec<u8>> {
    let mut out = vec![value.to_vec()];
    if let Some(space) = memchr::memchr(b' ', value) {
        let (scheme, token) = value.split_at(space);
        let token = token.trim_ascii();
        out.push(token.to_vec());
        if scheme.eq_ignore_ascii_case(b"basic")
            && let Some(plain) = crate::broker::base64::decode(token)
        {
            if let Some(colon) = memchr::memchr(b':', &plain) {
                out.push(plain[colon + 1..].to_vec());
            }
            out.push(plain);
        }
    }
    out.retain(|secret| secret.len() >= MIN_SECRET_BYTES);
    out
}

fn add_forms(forms: &mut Vec<Vec<u8>>, secret: &[u8]) {
    forms.push(secret.to_vec());
    for upper in [true, false] {
        forms.push(percent(secret, upper));
    }
    forms.push(json(secret));
    // The three ways base64 can cut a secret inside longer text, without the characters its neighbours share.
    for skip in 0..3 {
        let mut shifted = vec![0; skip];
        shifted.extend(secret);
        let text = crate::broker::base64::encode(&shifted);
        let from = (skip * 8).div_ceil(6);
        let to = shifted.len() * 8 / 6;
        if let Some(inner) = text.get(from..to).filter(|inner| inner.len() >= MIN_SECRET_BYTES) {
            forms.push(inner.to_vec());
            forms.push(
                inner
                    .iter()
                    .map(|b| match b {
                        b'+' => b'-',
                        b'/' => b'_',
                        b => *b,
                    })
                    .collect(),
            );
        }
    }
}

fn percent(secret: &[u8], upper: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for &b in secret {
        if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~') {
            out.push(b);
        } else {
            out.extend(
                if upper {
                    format!("%{b:02X}")
                } else {
                    format!("%{b:02x}")
                }
                .into_bytes(),
            );
        }
    }
    out
}

fn json(secret: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for &b in secret {
        if matches!(b, b'"' | b'\\' | b'/') {
            out.push(b'\\');
        }
        out.push(b);
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn scrubber(value: &str) -> Scrubber {
        Scrubber::new([value.as_bytes()].into_iter())
    }

    #[test]
    fn an_echo_is_masked_in_each_spelling_and_nothing_beside_changes() {
        let secret = "tok/en+\"99=x";
        let scrubber = scrubber(&format!("Bearer {secret}"));
        for (text, kept) in [
            (format!("a {secret} b"), "a ************ b"),
            ("q=tok%2Fen%2B%2299%3Dx&r=1".into(), "q=********************&r=1"),
            ("q=tok%2fen%2b%2299%3dx&r=1".into(), "q=********************&r=1"),
            (r#"{"t":"tok\/en+\"99=x"}"#.into(), r#"{"t":"**************"}"#),
            ("nothing here".into(), "nothing here"),
        ] {
            let mut bytes = text.clone().into_bytes();
            scrubber.mask(&mut bytes);
            assert_eq!(String::from_utf8(bytes).unwrap(), kept, "{text}");
        }
    }

    #[test]
    fn an_echo_in_base64_is_masked_at_every_alignment() {
        let scrubber = scrubber("supersecretvalue");
        for before in ["", "x", "xy", "xyz"] {
            let mut text = crate::broker::base64::encode(format!("{before}supersecretvalue:tail").as_bytes());
            assert!(scrubber.mask(&mut text), "{before}");
        }
    }

    #[test]
    fn the_password_inside_basic_is_a_secret_too() {
        let value = format!(
            "Basic {}",
            String::from_utf8(crate::broker::base64::encode(b"user:hunter22")).unwrap()
        );
        let mut bytes = b"password hunter22 refused".to_vec();
        assert!(scrubber(&value).mask(&mut bytes));
        assert_eq!(bytes, b"password ******** refused");
    }

    #[test]
    fn only_a_beginning_of_the_secret_is_held_back() {
        let scrubber = scrubber("secret-value");
        assert_eq!(scrubber.pending(b"data: hello\n\n"), 0);
        assert_eq!(scrubber.pending(b"data: secret-v"), 8);
        assert_eq!(scrubber.pending(b"data: secret-value"), 0);
    }
}
