//! Names that Windows gives a meaning of its own: drives, streams, devices, and dots and spaces it drops.

/// `C:` and `C:x` alike: the latter is relative to the current directory of drive C.
pub(super) fn has_drive_letter(name: &str) -> bool {
    matches!(name.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// Why Windows would not take `name` as the plain name of a file, if so.
pub(super) fn refusal(name: &str) -> Option<&'static str> {
    if name.contains(':') {
        return Some("\":\" names an alternate data stream on Windows");
    }
    if name.chars().all(|c| c == '.' || c == ' ') {
        return Some("a name of only dots and spaces is dropped or climbs on Windows");
    }
    is_device(name).then_some("it names a reserved Windows device")
}

/// `NUL`, `nul.txt`, `aux .c`, `COM¹`: Windows looks at the part before the first dot, without trailing spaces.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ');
    let upper = stem.to_uppercase();
    if matches!(
        upper.as_str(),
        "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$"
    ) {
        return true;
    }
    let Some(digit) = upper.strip_prefix("COM").or_else(|| upper.strip_prefix("LPT")) else {
        return false;
    };
    // The superscripts are digits to Windows (CVE-2024-51756).
    matches!(
        digit,
        "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"
    )
}
