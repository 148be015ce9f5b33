//! `.git` in every spelling that a file system or git itself would take for it, and further protected names.
//! Where such a name sits in a resolved path is looked at by `tree`.

use unicode_normalization::UnicodeNormalization;

/// Names whose content file tools do not write: `.git` and the ones the user added.
///
/// A write into `.git` is code execution at the next git command (hooks, `core.fsmonitor`), so the test errs
/// on the side of refusal: a spelling that only some file system would fold is refused on all.
#[derive(Clone, Debug, Default)]
pub struct ProtectedNames {
    /// Folded.
    added: Vec<String>,
}

impl ProtectedNames {
    pub fn new<S: AsRef<str>>(added: &[S]) -> Self {
        Self {
            added: added.iter().map(|name| fold(name.as_ref())).collect(),
        }
    }

    /// Whether this one component is protected.
    pub fn covers(&self, component: &str) -> bool {
        // Most names: decided without an allocation.
        let plain = component.bytes().all(|byte| (b' '..0x7f).contains(&byte));
        if self.added.is_empty() && plain && !component.starts_with(['.', 'g', 'G']) {
            return false;
        }
        let folded = fold(component);
        folded == ".git" || is_short_name_of_git(&folded) || self.added.contains(&folded)
    }

    /// As `covers`, for a name as the file system gave it.
    pub fn covers_bytes(&self, component: &[u8]) -> bool {
        // Bytes that are not UTF-8 are ignorable for no file system; U+FFFD in their place keeps the names apart.
        self.covers(&String::from_utf8_lossy(component))
    }
}

/// NTFS keeps an 8.3 name `GIT~1` for `.git`; the digit depends on what else the directory held.
fn is_short_name_of_git(folded: &str) -> bool {
    folded
        .strip_prefix("git~")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// What is left of a name after a case-insensitive, normalising file system has read it (HFS+, APFS, NTFS,
/// ext4 with casefold): no stream suffix, no ignorable code points, no trailing dots and spaces, one case.
fn fold(name: &str) -> String {
    let without_stream = name.split(':').next().unwrap_or_default();
    let mut folded: String = without_stream
        .nfd()
        .filter(|&c| !is_ignorable(c))
        // Upper case first, so that the dotless i arrives at `i` too.
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    folded.truncate(folded.trim_end_matches(['.', ' ']).len());
    folded
}

/// Default_Ignorable_Code_Point of Unicode (what ext4 and HFS+ skip), and the C0 controls besides.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{1}'..='\u{1f}' | '\u{7f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}
