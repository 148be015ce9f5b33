//! A glob and its meaning: which paths match, and below which directories nothing can. Pure; the walk feeds it
//! one name at a time.
//!
//! `*`, `?` and classes stay inside one name and count characters, not bytes; `**` as a whole segment is any
//! number of directories, none included; `{a,b}` nests; `\` escapes; a leading dot is nothing special. What does
//! not close (`[a`, `{a,b`) and parentheses are plain text, and a path spelled exactly like the pattern always
//! matches: `app/[slug]/page.tsx` must find the file of that name.
//!
//! Segments are matched one by one instead of one regex over the whole path, because the set of segments still
//! alive at a directory is what tells a walk not to enter it.

use regex::Regex;

use crate::error::{Error, ErrorCode, Result};

/// Longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;
/// Most patterns one pattern with `{…/…}` may stand for.
const MAX_ALTERNATIVES: usize = 256;
/// Most alternatives inside one segment that are compared one by one; more become a regex.
const MAX_SIMPLE_ALTERNATIVES: usize = 16;
/// Deepest nesting of braces.
const MAX_BRACE_DEPTH: usize = 32;

#[derive(Debug)]
pub struct Glob {
    steps: Vec<Step>,
    /// The first step of each alternative.
    starts: Vec<u16>,
}

#[derive(Debug)]
struct Step {
    segment: Segment,
    /// The last of its alternative: it names the file.
    last: bool,
}

#[derive(Debug)]
enum Segment {
    AnyDirectories,
    OneOf(Vec<Name>),
    Regex(Regex),
}

/// A segment that needs no regex.
#[derive(Debug)]
enum Name {
    Any,
    Exact(String),
    StartsWith(String),
    EndsWith(String),
}

/// The segments that the next name may match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alive(Vec<u16>);

impl Glob {
    /// A pattern for paths below the start of a search.
    pub fn new(pattern: &str) -> Result<Self> {
        Self::compile(pattern, false)
    }

    /// A filter on the files of a search: without a `/` it is about the name, at any depth.
    pub fn filter(pattern: &str) -> Result<Self> {
        Self::compile(pattern, !pattern.contains('/'))
    }

    fn compile(pattern: &str, any_depth: bool) -> Result<Self> {
        check(pattern)?;
        // No name holds a slash, so an escaped one is a slash.
        let chars: Vec<char> = unescape_slashes(pattern);
        let mut alternatives = Vec::new();
        expand_paths(&chars, 0, pattern, &mut alternatives)?;
        let mut glob = Glob {
            steps: Vec::new(),
            starts: Vec::new(),
        };
        for alternative in &alternatives {
            let mut segments = split_segments(alternative, pattern)?;
            if any_depth {
                segments.insert(0, Segment::AnyDirectories);
            }
            glob.push_alternative(segments, pattern)?;
        }
        if pattern.contains(['[', '{', '*', '?', '\\']) {
            let names = pattern.split('/').filter(|name| !matches!(*name, "" | "."));
            let mut segments: Vec<_> = names
                .map(|name| Segment::OneOf(vec![Name::Exact(name.to_owned())]))
                .collect();
            if any_depth {
                segments.insert(0, Segment::AnyDirectories);
            }
            glob.push_alternative(segments, pattern)?;
        }
        Ok(glob)
    }

    fn push_alternative(&mut self, segments: Vec<Segment>, pattern: &str) -> Result<()> {
        let start = u16::try_from(self.steps.len()).ok();
        let end = u16::try_from(self.steps.len() + segments.len()).ok();
        let (Some(start), Some(_)) = (start, end) else {
            return Err(too_many(pattern));
        };
        let count = segments.len();
        if count == 0 {
            return Ok(());
        }
        self.starts.push(start);
        let steps = segments.into_iter().enumerate();
        self.steps.extend(steps.map(|(index, segment)| Step {
            segment,
            last: index + 1 == count,
        }));
        Ok(())
    }

    /// What is alive at the start of a search.
    pub fn start(&self) -> Alive {
        let mut alive = Vec::new();
        for &start in &self.starts {
            self.add(&mut alive, start);
        }
        Alive(alive)
    }

    /// What is alive inside the directory `name`; `None` when no path below it can match.
    pub fn enter(&self, alive: &Alive, name: &str) -> Option<Alive> {
        let mut next = Vec::new();
        for &position in &alive.0 {
            let step = &self.steps[usize::from(position)];
            match &step.segment {
                Segment::AnyDirectories => self.add(&mut next, position),
                segment if !step.last && segment.matches(name) => self.add(&mut next, position + 1),
                _ => {}
            }
        }
        if next.is_empty() { None } else { Some(Alive(next)) }
    }

    /// Whether the file `name` in the directory of `alive` matches.
    pub fn matches_name(&self, alive: &Alive, name: &str) -> bool {
        alive.0.iter().any(|&position| {
            let step = &self.steps[usize::from(position)];
            step.last && step.segment.matches(name)
        })
    }

    /// Whether a whole path (relative, `/` between names) matches.
    pub fn matches(&self, path: &str) -> bool {
        let (folders, name) = path
            .rsplit_once('/')
            .map_or((None, path), |(f, name)| (Some(f), name));
        let mut alive = self.start();
        for folder in folders.into_iter().flat_map(|folders| folders.split('/')) {
            match self.enter(&alive, folder) {
                Some(next) => alive = next,
                None => return false,
            }
        }
        self.matches_name(&alive, name)
    }

    /// Adds a position and, since `**` may stand for nothing, those after it.
    fn add(&self, alive: &mut Vec<u16>, position: u16) {
        if alive.contains(&position) {
            return;
        }
        alive.push(position);
        let step = &self.steps[usize::from(position)];
        if matches!(step.segment, Segment::AnyDirectories) && !step.last {
            self.add(alive, position + 1);
        }
    }
}

impl Segment {
    fn matches(&self, name: &str) -> bool {
        match self {
            Segment::AnyDirectories => true,
            Segment::OneOf(names) => names.iter().any(|one| one.matches(name)),
            Segment::Regex(regex) => regex.is_match(name),
        }
    }
}

impl Name {
    fn matches(&self, name: &str) -> bool {
        match self {
            Name::Any => true,
            Name::Exact(text) => name == text,
            Name::StartsWith(text) => name.starts_with(text.as_str()),
            Name::EndsWith(text) => name.ends_with(text.as_str()),
        }
    }
}

fn check(pattern: &str) -> Result<()> {
    let refuse = |rule: &str| {
        Err(Error::new(
            ErrorCode::InvalidGlob,
            format!("glob pattern {pattern:?} {rule}"),
        ))
    };
    if pattern.is_empty() {
        return refuse("is empty: use **/* for every file");
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        let message = format!(
            "glob pattern is {} bytes long, at most {MAX_PATTERN_BYTES}",
            pattern.len()
        );
        return Err(Error::new(ErrorCode::InvalidGlob, message));
    }
    if pattern.contains('\0') {
        return refuse("contains a NUL character, which no file name can");
    }
    let bytes = pattern.as_bytes();
    let drive = bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    if bytes[0] == b'/' || (drive && matches!(bytes.get(2), None | Some(b'/' | b'\\'))) {
        return refuse("is absolute: write it relative, and give the directory as path");
    }
    if pattern.split(['/', '{', '}', ',']).any(|piece| piece == "..") {
        return refuse("contains \"..\": a search looks only below its path, so give that directory as path");
    }
    if pattern.split('/').all(|name| matches!(name, "" | ".")) {
        return refuse("names the directory itself, but only files are listed: use ** for everything below");
    }
    if pattern.ends_with('/') {
        return refuse("ends with \"/\", but only files are listed: add ** for everything below");
    }
    Ok(())
}

fn too_many(pattern: &str) -> Error {
    let message = format!("glob pattern {pattern:?} stands for more than {MAX_ALTERNATIVES} patterns");
    Error::new(ErrorCode::InvalidGlob, message)
}

/// Writes out the braces that reach over `/` or hold `**`; the others stay, as they fit into one segment.
fn expand_paths(pattern: &[char], depth: usize, whole: &str, out: &mut Vec<Vec<char>>) -> Result<()> {
    if depth > MAX_BRACE_DEPTH || out.len() >= MAX_ALTERNATIVES {
        return Err(too_many(whole));
    }
    let mut index = 0;
    let mut name_start = 0;
    while index < pattern.len() {
        if let Some(group) = brace_group(pattern, index) {
            let inside = &pattern[index..group.end];
            let crosses = inside.contains(&'/') || inside.windows(2).any(|pair| pair == ['*', '*']);
            if crosses || (index == name_start && folder_may_be_left_out(&pattern[index..])) {
                for alternative in group.alternatives(pattern) {
                    let joined = [&pattern[..index], alternative, &pattern[group.end..]].concat();
                    expand_paths(&joined, depth + 1, whole, out)?;
                }
                return Ok(());
            }
        }
        if pattern[index] == '/' {
            name_start = index + 1;
        }
        index = token_end(pattern, index);
    }
    out.push(pattern.to_vec());
    Ok(())
}

/// Whether the braces at the start can come to nothing, or to `.`, with a `/` behind them: `src/{lib,}/*` is about
/// `src/*` too. At the end of a pattern it would be about a directory, which is no result.
fn folder_may_be_left_out(pattern: &[char]) -> bool {
    let mut index = 0;
    while let Some(group) = pattern.get(index).and_then(|_| brace_group(pattern, index)) {
        let empty = |alternative: &[char]| alternative.is_empty() || alternative == ['.'];
        if !group.alternatives(pattern).any(empty) {
            return false;
        }
        index = group.end;
    }
    pattern.get(index) == Some(&'/')
}

/// The index behind the escape, class or character at `index`.
fn token_end(pattern: &[char], index: usize) -> usize {
    match pattern[index] {
        '\\' => (index + 2).min(pattern.len()),
        '[' => class_end(pattern, index).unwrap_or(index + 1),
        _ => index + 1,
    }
}

/// `{a,b}`: where it ends (behind the `}`), and its commas.
struct BraceGroup {
    start: usize,
    end: usize,
    commas: Vec<usize>,
}

impl BraceGroup {
    fn alternatives<'a>(&'a self, pattern: &'a [char]) -> impl Iterator<Item = &'a [char]> {
        let starts = std::iter::once(self.start).chain(self.commas.iter().copied());
        let ends = self.commas.iter().copied().chain(std::iter::once(self.end - 1));
        starts.zip(ends).map(|(start, end)| &pattern[start + 1..end])
    }
}

/// The group that opens at `index`. One without a comma is plain text, as in every shell.
fn brace_group(pattern: &[char], index: usize) -> Option<BraceGroup> {
    if pattern[index] != '{' {
        return None;
    }
    let mut commas = Vec::new();
    let mut depth = 0;
    let mut at = index;
    while at < pattern.len() {
        match pattern[at] {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => commas.push(at),
            _ => {}
        }
        if depth == 0 {
            let group = BraceGroup {
                start: index,
                end: at + 1,
                commas,
            };
            return if group.commas.is_empty() {
                None
            } else {
                Some(group)
            };
        }
        at = token_end(pattern, at);
    }
    None
}

/// Where the class that opens at `index` ends (behind the `]`). A `/` inside means it is no class.
fn class_end(pattern: &[char], index: usize) -> Option<usize> {
    let mut at = index + 1;
    if matches!(pattern.get(at), Some('!' | '^')) {
        at += 1;
    }
    let first = at;
    while at < pattern.len() {
        match pattern[at] {
            ']' if at > first => return Some(at + 1),
            '/' => return None,
            '[' if pattern.get(at + 1) == Some(&':') => at = posix_end(pattern, at).unwrap_or(at + 1),
            '\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// Behind `[:name:]`, if it is a name that is known.
fn posix_end(pattern: &[char], index: usize) -> Option<usize> {
    let end = (index + 2..pattern.len()).find(|&at| !pattern[at].is_ascii_lowercase())?;
    let closed = pattern[end] == ':' && pattern.get(end + 1) == Some(&']');
    (closed && posix_class(&pattern[index + 2..end]).is_some()).then_some(end + 2)
}

fn split_segments(alternative: &[char], whole: &str) -> Result<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    for segment in alternative.split(|&c| c == '/') {
        match segment {
            [] | ['.'] => {}
            ['*', '*'] => {
                if !matches!(segments.last(), Some(Segment::AnyDirectories)) {
                    segments.push(Segment::AnyDirectories);
                }
            }
            _ => segments.push(compile_segment(segment, whole)?),
        }
    }
    Ok(segments)
}

fn unescape_slashes(pattern: &str) -> Vec<char> {
    let mut chars = Vec::with_capacity(pattern.len());
    for c in pattern.chars() {
        if c == '/' && ends_in_escape(&chars) {
            chars.pop();
        }
        chars.push(c);
    }
    chars
}

/// Whether the next character is escaped.
fn ends_in_escape(before: &[char]) -> bool {
    before.iter().rev().take_while(|&&c| c == '\\').count() % 2 == 1
}

fn compile_segment(segment: &[char], whole: &str) -> Result<Segment> {
    let mut spelled = Vec::new();
    if expand_names(segment, 0, &mut spelled) {
        let names: Option<Vec<Name>> = spelled.iter().map(|one| simple_name(one)).collect();
        if let Some(names) = names {
            return Ok(Segment::OneOf(names));
        }
    }
    let mut source = String::from("\\A(?s:");
    translate(segment, 0, &mut source);
    source.push_str(")\\z");
    let regex = regex::RegexBuilder::new(&source)
        .size_limit(16 << 20)
        .build()
        .map_err(|_| {
            Error::new(
                ErrorCode::InvalidGlob,
                format!("glob pattern {whole:?} is too large or nested too deeply"),
            )
        })?;
    Ok(Segment::Regex(regex))
}

/// Writes out the braces of a segment; false when there are too many to compare one by one.
fn expand_names(segment: &[char], depth: usize, out: &mut Vec<Vec<char>>) -> bool {
    if depth > MAX_BRACE_DEPTH {
        return false;
    }
    let mut index = 0;
    while index < segment.len() {
        if let Some(group) = brace_group(segment, index) {
            return group.alternatives(segment).all(|alternative| {
                let joined = [&segment[..index], alternative, &segment[group.end..]].concat();
                out.len() < MAX_SIMPLE_ALTERNATIVES && expand_names(&joined, depth + 1, out)
            });
        }
        index = token_end(segment, index);
    }
    out.push(segment.to_vec());
    out.len() <= MAX_SIMPLE_ALTERNATIVES
}

/// `None` when the name needs a regex.
fn simple_name(segment: &[char]) -> Option<Name> {
    let stars_at_start = segment.iter().take_while(|&&c| c == '*').count();
    if stars_at_start == segment.len() {
        return if segment.is_empty() {
            Some(Name::Exact(String::new()))
        } else {
            Some(Name::Any)
        };
    }
    let rest = &segment[stars_at_start..];
    let stars_at_end = rest.iter().rev().take_while(|&&c| c == '*').count();
    let middle = &rest[..rest.len() - stars_at_end];
    let escaped_star = stars_at_end > 0 && ends_in_escape(middle);
    let text = plain_text(middle)?;
    match (stars_at_start > 0, stars_at_end > 0) {
        _ if escaped_star => None,
        (false, false) => Some(Name::Exact(text)),
        (true, false) => Some(Name::EndsWith(text)),
        (false, true) => Some(Name::StartsWith(text)),
        (true, true) => None,
    }
}

/// The text without its escapes, if there is nothing but text.
fn plain_text(segment: &[char]) -> Option<String> {
    let mut text = String::new();
    let mut index = 0;
    while index < segment.len() {
        match segment[index] {
            '*' | '?' => return None,
            '[' if class_end(segment, index).is_some() => return None,
            '\\' if index + 1 < segment.len() => text.push(segment[index + 1]),
            c => text.push(c),
        }
        index = token_end(segment, index);
    }
    Some(text)
}

fn translate(segment: &[char], depth: usize, out: &mut String) {
    let mut index = 0;
    while index < segment.len() {
        if let Some(group) = brace_group(segment, index).filter(|_| depth <= MAX_BRACE_DEPTH) {
            let mut opening = "(?:";
            for alternative in group.alternatives(segment) {
                out.push_str(opening);
                translate(alternative, depth + 1, out);
                opening = "|";
            }
            out.push(')');
            index = group.end;
            continue;
        }
        let end = token_end(segment, index);
        match segment[index] {
            '*' if out.ends_with(".*") => {}
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' if end > index + 1 => translate_class(&segment[index + 1..end - 1], out),
            '\\' if index + 1 < segment.len() => push_literal(segment[index + 1], out),
            c => push_literal(c, out),
        }
        index = end;
    }
}

fn push_literal(c: char, out: &mut String) {
    use std::fmt::Write;
    // Spelled as a code point, so that no character can become syntax.
    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
}

fn translate_class(inside: &[char], out: &mut String) {
    let (negated, items) = match inside {
        ['!' | '^', rest @ ..] => (true, rest),
        _ => (false, inside),
    };
    let mut body = String::new();
    let mut index = 0;
    while index < items.len() {
        if items[index] == '['
            && items.get(index + 1) == Some(&':')
            && let Some(end) = posix_end(items, index)
            && let Some(class) = posix_class(&items[index + 2..end - 2])
        {
            body.push_str(class);
            index = end;
            continue;
        }
        let (low, next) = class_char(items, index);
        index = next;
        let mut high = low;
        if items.get(index) == Some(&'-') && index + 1 < items.len() {
            (high, index) = class_char(items, index + 1);
        }
        // A range that runs backwards holds nothing.
        if low <= high {
            push_literal(low, &mut body);
            body.push('-');
            push_literal(high, &mut body);
        }
    }
    match (negated, body.is_empty()) {
        (false, true) => out.push_str("[^\\u{0}-\\u{10ffff}]"),
        (true, true) => out.push('.'),
        (false, false) => out.extend(["[", &body, "]"]),
        (true, false) => out.extend(["[^", &body, "]"]),
    }
}

fn class_char(items: &[char], index: usize) -> (char, usize) {
    match items[index] {
        '\\' if index + 1 < items.len() => (items[index + 1], index + 2),
        c => (c, index + 1),
    }
}

fn posix_class(name: &[char]) -> Option<&'static str> {
    match name.iter().collect::<String>().as_str() {
        "alnum" => Some("\\p{Alphabetic}\\p{Nd}"),
        "alpha" => Some("\\p{Alphabetic}"),
        "blank" => Some("\\x20\\t"),
        "cntrl" => Some("\\p{Cc}"),
        "digit" => Some("0-9"),
        "graph" => Some("\\x21-\\x7e\\u{a1}-\\u{10ffff}"),
        "lower" => Some("\\p{Lowercase}"),
        "print" => Some("\\x20-\\x7e\\u{a0}-\\u{10ffff}"),
        "punct" => Some("\\p{P}\\p{S}"),
        "space" => Some("\\s"),
        "upper" => Some("\\p{Uppercase}"),
        "xdigit" => Some("0-9A-Fa-f"),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    /// (pattern, paths that match, paths that do not)
    const TABLE: &[(&str, &[&str], &[&str])] = &[
        ("*.ts", &["a.ts", ".ts", ".b.ts"], &["src/b.ts", "a.tsx", "a_ts"]),
        ("**/*.ts", &["a.ts", "src/x/b.ts", ".d/.e.ts"], &["a.js"]),
        (
            "a/**/b",
            &["a/b", "a/x/b", "a/x/y/b"],
            &["axxb", "b", "a/b/c", "x/a/b"],
        ),
        ("a/**", &["a/b", "a/b/c", "a/.d"], &["a", "b/a"]),
        ("**", &["a", "a/b", ".a/.b"], &[]),
        ("**/*", &["a", ".env", ".cfg/x.json"], &[]),
        ("**/**/x", &["x", "a/x"], &["x/a"]),
        ("a**b", &["ab", "axxb", "a**b"], &["a/b", "a/x/b"]),
        (
            "app/[slug]/page.tsx",
            &["app/[slug]/page.tsx", "app/s/page.tsx"],
            &["app/x/page.tsx"],
        ),
        ("app/(auth)/*", &["app/(auth)/p.tsx"], &["app/auth/p.tsx"]),
        ("\\[id\\].tsx", &["[id].tsx"], &["i.tsx"]),
        ("\\*", &["*"], &["a"]),
        ("a\\**", &["a*", "a*b"], &["ab"]),
        ("*.{ts,tsx}", &["a.ts", "b.tsx"], &["c.js", "a.{ts,tsx"]),
        ("test{,2}", &["test", "test2"], &["test3"]),
        ("{a,{b,c}d}e", &["ae", "bde", "cde"], &["be", "ade"]),
        (
            "{src,lib/**}/*.rs",
            &["src/a.rs", "lib/b.rs", "lib/x/y/b.rs"],
            &["src/x/a.rs", "lib/a.c"],
        ),
        ("{**/a,b}", &["a", "x/a", "b"], &["x/b"]),
        ("src/{lib,}/*.c", &["src/a.c", "src/lib/a.c"], &["src/x/a.c"]),
        ("{,src}{,s}/a", &["a", "src/a", "srcs/a", "s/a"], &["x/a"]),
        ("{.,src}/a", &["a", "src/a"], &["x/a"]),
        ("src/{lib,}", &["src/lib"], &["src"]),
        ("*{*,x}", &["a", "ax"], &["a/b"]),
        (
            "src/{a,b}/**/*.{js,ts}",
            &["src/a/x.js", "src/b/c/d.ts"],
            &["src/c/x.js"],
        ),
        (
            ".opencode/**/*.md",
            &[".opencode/a/b.md", ".opencode/b.md"],
            &["x/c.md"],
        ),
        ("?", &["a", "é", "📁"], &["ab", "a/b", ""]),
        ("caf[ée]", &["café", "cafe"], &["cafo"]),
        ("[!a]", &["b", "é"], &["a", "ab"]),
        ("[^a-c]x", &["dx"], &["ax", "cx"]),
        ("[]a]", &["]", "a"], &["b"]),
        ("[!]a]", &["b"], &["]", "a"]),
        ("[a-]", &["a", "-"], &["b"]),
        ("[z-a]", &["[z-a]"], &["m"]),
        ("[[:digit:]]x", &["1x"], &["ax", "٣x"]),
        ("[[:nope:]]", &["[]", ":]", "n]"], &["x]"]),
        ("[\\]]", &["]"], &["\\"]),
        ("[a-z", &["[a-z"], &["b"]),
        ("{a,b", &["{a,b"], &["a"]),
        ("a}", &["a}"], &["a"]),
        ("{a}", &["{a}"], &["a"]),
        ("[a/b]", &["[a/b]"], &["a", "b"]),
        ("[!a]/b", &["x/b"], &["a/b"]),
        ("./a//b/./c", &["a/b/c"], &["a/c"]),
        ("...", &["..."], &["a"]),
        ("a..b", &["a..b"], &[]),
        ("..foo", &["..foo"], &[]),
        ("+(a|b)", &["+(a|b)"], &["a"]),
        ("!a", &["!a"], &["b"]),
        ("a+b.$^()|", &["a+b.$^()|"], &["aab.$^()|"]),
        ("*a*", &["a", "xax"], &["x"]),
        ("f*o", &["fo", "foo", "fxo"], &["of"]),
        ("*.", &["a."], &["a"]),
        ("a\\/b", &["a/b"], &["a\\/b.c"]),
        ("a\\", &["a\\"], &["a"]),
    ];

    #[test]
    fn the_table_of_patterns_holds() {
        for (pattern, yes, no) in TABLE {
            let glob = Glob::new(pattern).unwrap();
            for path in *yes {
                assert!(glob.matches(path), "{pattern:?} should match {path:?}: {glob:?}");
            }
            for path in *no {
                assert!(
                    !glob.matches(path),
                    "{pattern:?} should not match {path:?}: {glob:?}"
                );
            }
        }
    }

    #[test]
    fn what_leads_out_or_cannot_be_is_refused_and_its_neighbour_is_not() {
        let refused = [
            "",
            "/",
            "/a",
            "../a",
            "a/../b",
            "**/../../x",
            "..",
            "{..,a}/b",
            "a\0b",
            "C:/x",
            "c:\\x",
            "C:",
            ".",
            "./.",
            "src/",
        ];
        for pattern in refused {
            let error = Glob::new(pattern).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidGlob, "{pattern:?}");
        }
        for pattern in ["...", "./a", "..a", "a..", "a/..b/c", "C:x", "[/]", "{a,b}/c"] {
            assert!(Glob::new(pattern).is_ok(), "{pattern:?}");
        }
        assert!(Glob::new(&"a".repeat(4096)).is_ok());
        assert_eq!(
            Glob::new(&"a".repeat(4097)).unwrap_err().code,
            ErrorCode::InvalidGlob
        );
    }

    #[test]
    fn a_brace_bomb_answers_at_once() {
        let glob = Glob::new(&"{a,b}".repeat(25)).unwrap();
        assert!(glob.matches(&"ab".repeat(12).chars().chain(['a']).collect::<String>()));
        assert!(!glob.matches("a"));
        assert_eq!(
            Glob::new(&"{a/,b}".repeat(25)).unwrap_err().code,
            ErrorCode::InvalidGlob
        );
        assert!(Glob::new(&("{".repeat(2000) + &",a}".repeat(2000))[..4000]).is_ok_and(|g| !g.matches("b")));
    }

    #[test]
    fn a_directory_that_cannot_hold_a_match_is_not_entered() {
        let enters = |pattern: &str, folders: &str| {
            let glob = Glob::new(pattern).unwrap();
            folders
                .split('/')
                .try_fold(glob.start(), |alive, name| glob.enter(&alive, name))
                .is_some()
        };
        assert!(enters("src/**/*.ts", "src"));
        assert!(enters("src/**/*.ts", "src/a/b"));
        assert!(!enters("src/**/*.ts", "lib"));
        assert!(!enters("*.ts", "src"));
        assert!(enters("a/*/c/d", "a/x/c"));
        assert!(!enters("a/*/c/d", "a/x/b"));
        assert!(!enters("a/*/c/d", "a/x/c/d"));
        assert!(enters("{src,test}/x/*", "test/x"));
        assert!(!enters("{src,test}/x/*", "lib"));
    }

    #[test]
    fn a_filter_without_a_slash_is_about_the_name() {
        let filter = Glob::filter("*.{ts,tsx}").unwrap();
        assert!(filter.matches("a.ts") && filter.matches("src/deep/c.tsx"));
        let filter = Glob::filter("src/**").unwrap();
        assert!(filter.matches("src/b.ts") && !filter.matches("x/src/b.ts"));
        assert!(Glob::filter("src/\\[id\\].ts").unwrap().matches("src/[id].ts"));
    }
}
