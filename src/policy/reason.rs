//! Small pieces of wording that several reasons share.

/// Commands may be long; a reason quotes their beginning.
pub fn clipped(text: &str) -> String {
    const MOST_CHARS: usize = 120;
    let mut out: String = text
        .chars()
        .take(MOST_CHARS)
        .flat_map(|c| {
            // A reason is shown to a person who decides: no terminal control, no hidden direction marks.
            let hidden = c.is_control()
                || matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
            if hidden {
                c.escape_unicode().collect()
            } else {
                vec![c]
            }
        })
        .collect();
    if text.chars().nth(MOST_CHARS).is_some() {
        out.push_str("...");
    }
    out
}
