//! git's ignore rules (gitignore(5)), fed with the bytes of the files that hold them; finding and reading those
//! files is left to the walk. The `ignore` crate was weighed and left out: it matches through globs on UTF-8
//! paths, and git's own byte-wise matching is small enough to follow exactly.

use std::sync::Arc;

use super::wildmatch::{Scope, wildmatch};

/// Larger ignore files are not read: no hand-written one is.
pub const MAX_IGNORE_FILE_BYTES: u64 = 512 * 1024;

/// Longer patterns are left out: none can name a path of a real tree, and matching recurses on stars.
const MAX_PATTERN_BYTES: usize = 1024;

/// The rules in force in one directory: those of its own file first, then those of the directories above.
#[derive(Clone, Debug, Default)]
pub struct IgnoreStack(Option<Arc<Level>>);

#[derive(Debug)]
struct Level {
    rules: Vec<Rule>,
    /// Length of the directory's path with its final slash: what to cut from a path to match the rules.
    base_bytes: usize,
    above: IgnoreStack,
}

#[derive(Debug)]
struct Rule {
    pattern: Box<[u8]>,
    /// Bytes at the start without any special character.
    literal_bytes: usize,
    /// `!pattern`
    negated: bool,
    /// `pattern/`
    only_directories: bool,
    form: Form,
}

#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// No slash: the name, at any depth below.
    Name,
    /// `*.log`: only the end of the name counts.
    NameEnd,
    /// A slash at the start or inside: the path from the file's directory.
    Path,
}

impl IgnoreStack {
    /// No rules: the start of a search, or of a repository inside another one.
    pub fn none() -> Self {
        Self(None)
    }

    /// Adds the rules of an ignore file in the directory `base` (`""` for the root, else with a final `/`).
    #[must_use]
    pub fn with_file(&self, content: &[u8], base: &str) -> Self {
        let rules: Vec<Rule> = lines(content).filter_map(Rule::parse).collect();
        if rules.is_empty() {
            return self.clone();
        }
        Self(Some(Arc::new(Level {
            rules,
            base_bytes: base.len(),
            above: self.clone(),
        })))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether `path` itself is excluded. The caller does not enter an excluded directory, so nothing below it
    /// can come back, as in git.
    pub fn excludes(&self, path: &[u8], is_directory: bool) -> bool {
        let name_start = path
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |slash| slash + 1);
        let mut level = self.0.as_deref();
        while let Some(Level {
            rules,
            base_bytes,
            above,
        }) = level
        {
            let below = path.get(*base_bytes..).unwrap_or_default();
            let name = &path[name_start..];
            if let Some(rule) = rules
                .iter()
                .rev()
                .find(|rule| rule.matches(below, name, is_directory))
            {
                return !rule.negated;
            }
            level = above.0.as_deref();
        }
        false
    }
}

/// Lines without their ending (LF, or CRLF) and without a byte order mark before the first.
fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    content
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

impl Rule {
    fn parse(line: &[u8]) -> Option<Self> {
        if line.first() == Some(&b'#') {
            return None;
        }
        let line = trim_trailing_spaces(line);
        let (negated, line) = match line.strip_prefix(b"!") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (only_directories, pattern) = match line.strip_suffix(b"/") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        if pattern.is_empty() || pattern.len() > MAX_PATTERN_BYTES {
            return None;
        }
        let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
        let has_slash = pattern.contains(&b'/');
        let pattern = if has_slash {
            pattern.strip_prefix(b"/").unwrap_or(pattern)
        } else {
            pattern
        };
        let literal_bytes = pattern.iter().position(special).unwrap_or(pattern.len());
        let form = match pattern {
            _ if has_slash => Form::Path,
            [b'*', end @ ..] if !end.iter().any(special) => Form::NameEnd,
            _ => Form::Name,
        };
        Some(Self {
            pattern: pattern.into(),
            literal_bytes,
            negated,
            only_directories,
            form,
        })
    }

    /// `below` is the path from the rule's directory, `name` its last part.
    fn matches(&self, below: &[u8], name: &[u8], is_directory: bool) -> bool {
        if self.only_directories && !is_directory {
            return false;
        }
        match self.form {
            Form::NameEnd => name.ends_with(&self.pattern[1..]),
            Form::Name if self.literal_bytes == self.pattern.len() => name == &*self.pattern,
            Form::Name => wildmatch(&self.pattern, name, Scope::Name),
            Form::Path => {
                let (literal, rest) = self.pattern.split_at(self.literal_bytes);
                let Some(below) = below.strip_prefix(literal) else {
                    return false;
                };
                // git cuts the literal part off before it matches the rest; `foo**/bar` depends on it.
                if rest.is_empty() {
                    below.is_empty()
                } else {
                    wildmatch(rest, below, Scope::Path)
                }
            }
        }
    }
}

/// Trailing spaces go unless escaped; the escape stays, as it is part of the pattern.
fn trim_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b' ' => at += 1,
            b'\\' => {
                at = (at + 2).min(line.len());
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (ignore file at the root, path, is a directory, excluded). Expectations are git check-ignore's.
    const TABLE: &[(&str, &str, bool, bool)] = &[
        ("*.log", "a.log", false, true),
        ("*.log", "d/a.log", false, true),
        ("*.log", "a.logs", false, false),
        ("*.log\n!b.log", "b.log", false, false),
        ("!b.log\n*.log", "b.log", false, true),
        ("build/", "build", true, true),
        ("build/", "build", false, false),
        ("build/", "x/build", true, true),
        ("/build", "build", false, true),
        ("/build", "x/build", false, false),
        ("doc/f", "doc/f", false, true),
        ("doc/f", "x/doc/f", false, false),
        ("/a/**", "a/a/t", false, true),
        ("/a/**", "b/a/t", false, false),
        ("/a/**", "a", true, false),
        ("a/**/b", "a/b", false, true),
        ("a/**/b", "a/x/y/b", false, true),
        ("**/foo", "foo", false, true),
        ("**/foo", "x/y/foo", false, true),
        ("foo/*", "foo/a", false, true),
        ("foo/*", "foo/a/b", false, false),
        ("\\#a", "#a", false, true),
        ("# c", "# c", false, false),
        ("\\!b", "!b", false, true),
        ("a ", "a", false, true),
        ("a\\ ", "a ", false, true),
        ("a\\ ", "a", false, false),
        ("a\r\nb", "a", false, true),
        ("\u{feff}a", "a", false, true),
        ("[abc", "[abc", false, false),
        ("[abc", "a", false, false),
        ("[!a]x", "bx", false, true),
        ("[!a]x", "ax", false, false),
        ("[[:digit:]]", "7", false, true),
        ("[]-]x", "-x", false, true),
        ("/", "a", true, false),
        ("", "a", false, false),
        ("!", "a", false, false),
        ("*", "a", true, true),
        ("*\n!*/\n!*.c", "d", true, false),
        ("*\n!*/\n!*.c", "x.c", false, false),
        ("foo**/bar", "foo/x/bar", false, true),
        ("foo**/bar", "foox/bar", false, true),
        ("?at", "cat", false, true),
        ("a?b/c", "a/b/c", false, false),
    ];

    #[test]
    fn the_table_of_rules_holds() {
        for &(file, path, is_directory, excluded) in TABLE {
            let stack = IgnoreStack::none().with_file(file.as_bytes(), "");
            assert_eq!(
                stack.excludes(path.as_bytes(), is_directory),
                excluded,
                "{file:?} on {path:?}"
            );
        }
    }

    #[test]
    fn a_nested_file_wins_and_speaks_only_of_its_own_directory() {
        let root = IgnoreStack::none().with_file(b"*.log\n/top\n", "");
        let nested = root.with_file(b"!x.log\n/top\n", "a/");
        assert!(!nested.excludes(b"a/x.log", false));
        assert!(nested.excludes(b"a/y.log", false));
        assert!(root.excludes(b"x.log", false));
        assert!(nested.excludes(b"a/top", false));
        assert!(!nested.excludes(b"a/b/top", false));
    }
}
