//! For a name that was not found: the name that was probably meant. It is told, never opened in its place.

use unicode_normalization::UnicodeNormalization;

/// The first of `names` that looks like `wanted` to a person: other case, other spaces (a NO-BREAK SPACE in a
/// screenshot's name), composed against decomposed letters, or characters that do not show.
pub(super) fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let looks = look(wanted);
    let near = names
        .into_iter()
        .find(|name| *name != wanted && look(name) == looks)?;
    let unusual: Vec<String> = near
        .chars()
        .filter(|c| !c.is_ascii_graphic() && *c != ' ' && !wanted.contains(*c))
        .take(4)
        .map(|c| format!("U+{:04X}", u32::from(c)))
        .collect();
    let named = crate::path::quoted(near);
    Some(if unusual.is_empty() {
        format!("the directory has {named}")
    } else {
        format!("the directory has {named}, with {}", unusual.join(" "))
    })
}

fn look(name: &str) -> String {
    name.nfkc()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}'))
        .map(|c| match c {
            c if c.is_whitespace() => ' ',
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{201c}' | '\u{201d}' => '"',
            '\u{2010}'..='\u{2015}' => '-',
            c => c,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::nearest;

    #[test]
    fn names_that_look_alike_are_told() {
        for (wanted, present, hint) in [
            (
                "v 13.txt",
                "v\u{a0}13.txt",
                Some("the directory has \"v\u{a0}13.txt\", with U+00A0"),
            ),
            (
                "caf\u{e9}",
                "cafe\u{301}",
                Some("the directory has \"cafe\u{301}\", with U+0301"),
            ),
            ("readme.md", "README.md", Some("the directory has \"README.md\"")),
            (
                "it's",
                "it\u{2019}s",
                Some("the directory has \"it\u{2019}s\", with U+2019"),
            ),
            ("a.txt", "b.txt", None),
            ("a.txt", "a.txt", None),
        ] {
            assert_eq!(nearest(wanted, [present]).as_deref(), hint, "{wanted:?}");
        }
    }
}
