//! What a path may be: the lexical rules, before any file system is asked. Where links lead is left to `tree`.
//!
//! Everything here tests whole components, never substrings: `[...slug]`, `a..b` and `..foo` are ordinary names.

mod git;
mod windows;

pub use git::ProtectedNames;

use crate::error::{Error, ErrorCode, Result};
use crate::limits::{MAX_NAME_BYTES, MAX_PATH_BYTES};

/// Whose naming rules apply beside the common ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Posix,
    Win32,
}

impl Platform {
    pub const HOST: Platform = if cfg!(windows) {
        Platform::Win32
    } else {
        Platform::Posix
    };
}

/// A path that passed the lexical rules, still in the order in which it was written.
///
/// `..` is kept, because on disk it is taken after links are followed: with a link `a -> b/c`, `a/../x` is
/// `b/x`. Collapsing first would open another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedPath<'a> {
    /// Names and `..`; no empty parts and no `.`.
    pub components: Vec<&'a str>,
    /// The path ended in a separator or `.`: only a directory may answer to it.
    pub must_be_directory: bool,
    pub has_parent_steps: bool,
}

impl ParsedPath<'_> {
    /// The components with `..` taken lexically.
    pub fn collapsed(&self) -> Vec<&str> {
        let mut names = Vec::with_capacity(self.components.len());
        for &component in &self.components {
            if component == ".." {
                names.pop();
            } else {
                names.push(component);
            }
        }
        names
    }

    /// `a/b`, or `.` for the root.
    pub fn normalized(&self) -> String {
        let names = self.collapsed();
        if names.is_empty() {
            ".".to_owned()
        } else {
            names.join("/")
        }
    }
}

/// The path relative to the workspace root, with `/` between names and `..` taken lexically; `.` for the root.
pub fn normalize(path: &str, platform: Platform) -> Result<String> {
    parse(path, platform).map(|parsed| parsed.normalized())
}

/// Applies every lexical rule and splits the path. Backslash separates on every platform: otherwise a path
/// checked on one and used on the other (`src\..\..\x`) would change its meaning.
pub fn parse(path: &str, platform: Platform) -> Result<ParsedPath<'_>> {
    if path.contains('\0') {
        return Err(invalid(path, "it holds a NUL character", "remove it"));
    }
    // Measured as written: the kernel counts before it collapses, and so do both trees.
    if path.len() > MAX_PATH_BYTES {
        let rule = format!(
            "it has {} bytes and the limit is {MAX_PATH_BYTES} bytes",
            path.len()
        );
        return Err(invalid(path, &rule, "use a shorter path"));
    }
    if path.starts_with(['/', '\\']) {
        return Err(outside(path, "is absolute"));
    }
    let mut parsed = ParsedPath {
        components: Vec::with_capacity(8),
        must_be_directory: true,
        has_parent_steps: false,
    };
    let mut depth = 0_usize;
    for component in path.split(['/', '\\']) {
        parsed.must_be_directory = matches!(component, "" | ".");
        match component {
            "" | "." => continue,
            ".." => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| outside(path, "climbs above the root"))?;
                parsed.has_parent_steps = true;
            }
            name => {
                check_name(path, name, depth == 0, platform)?;
                depth += 1;
            }
        }
        parsed.components.push(component);
    }
    Ok(parsed)
}

fn check_name(path: &str, name: &str, first: bool, platform: Platform) -> Result<()> {
    let length = match platform {
        Platform::Posix => name.len(),
        Platform::Win32 => name.encode_utf16().count(),
    };
    if length > MAX_NAME_BYTES {
        let unit = if platform == Platform::Posix {
            "bytes"
        } else {
            "UTF-16 units"
        };
        let rule = format!("a name in it has {length} {unit} and the limit is {MAX_NAME_BYTES}");
        return Err(invalid(path, &rule, "use a shorter name"));
    }
    // At every place that can become the first name of the result (`a/../C:x`), so that the result is never
    // a drive path when it is joined to a Windows root.
    if first && windows::has_drive_letter(name) {
        return Err(invalid(
            path,
            "it starts with a drive letter",
            "give a path relative to the workspace root",
        ));
    }
    if platform == Platform::Win32
        && let Some(rule) = windows::refusal(name)
    {
        return Err(invalid(path, rule, "choose another name"));
    }
    Ok(())
}

/// As JSON writes it, so that a model can use the value again. Long values are cut.
pub(crate) fn quoted(value: &str) -> String {
    const MAX_QUOTED_CHARS: usize = 200;
    let mut out = String::with_capacity(value.len().min(4 * MAX_QUOTED_CHARS) + 2);
    out.push('"');
    for (index, c) in value.chars().enumerate() {
        match c {
            _ if index == MAX_QUOTED_CHARS => {
                out.push_str("\" (cut)");
                return out;
            }
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn invalid(path: &str, rule: &str, way_out: &str) -> Error {
    let message = format!("path {} is not usable: {rule}; {way_out}", quoted(path));
    Error::new(ErrorCode::InvalidPath, message).at(path)
}

fn outside(path: &str, rule: &str) -> Error {
    let message = format!(
        "path {} {rule}: only paths relative to the workspace root are allowed, such as \"src/main.ts\" or \".\"",
        quoted(path)
    );
    Error::new(ErrorCode::OutsideWorkspace, message).at(path)
}

#[cfg(test)]
mod tests;
