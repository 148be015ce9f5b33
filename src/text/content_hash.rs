//! The hash of a whole file, by which a tool knows whether it still holds what was read.

use crate::error::{Error, ErrorCode, Result};
use crate::path::quoted;
use sha2::{Digest, Sha256};

/// Lower-case SHA-256 hex.
pub fn content_hash(bytes: &[u8]) -> String {
    let mut hasher = ContentHasher::default();
    hasher.push(bytes);
    hasher.finish()
}

/// The same over parts.
#[derive(Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> String {
        let digest = self.0.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// `STALE` unless `bytes` are those whose hash is `known`; without one, anything goes.
pub fn check_known(bytes: &[u8], path: &str, known: Option<&str>) -> Result<()> {
    match known {
        Some(known) if content_hash(bytes) != known => {
            let message = format!(
                "{} changed since you last read it: read it again, then make the change on what it holds now. Nothing was changed",
                quoted(path)
            );
            Err(Error::new(ErrorCode::Stale, message).at(path))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn other_bytes_are_stale_and_the_same_bytes_are_not() {
        let known = content_hash(b"a");
        assert_eq!(
            known,
            "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
        );
        assert_eq!(check_known(b"a", "f", Some(&known)), Ok(()));
        assert_eq!(check_known(b"b", "f", None), Ok(()));
        let refused = check_known(b"b", "f", Some(&known)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Stale);
    }
}
