//! Whether a sed script only prints and edits the stream. sed can write files (`w`) and run commands (`e`), so
//! everything that is not understood here counts as if it did.

pub fn only_edits_the_stream(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';', '\n', '}']);
        if rest.is_empty() {
            return true;
        }
        if let Some(comment) = rest.strip_prefix('#') {
            rest = comment.find('\n').map_or("", |at| &comment[at..]);
            continue;
        }
        match command(rest) {
            Some(after) => rest = after,
            None => return false,
        }
    }
}

/// One command with its addresses; the text after it.
fn command(text: &str) -> Option<&str> {
    let mut rest = address(text)?;
    rest = rest.trim_start_matches(' ');
    if let Some(second) = rest.strip_prefix(',') {
        rest = address(second.trim_start_matches(' '))?;
    }
    rest = rest.trim_start_matches([' ', '!']);
    let name = rest.chars().next()?;
    let after = &rest[name.len_utf8()..];
    match name {
        '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'F' | 'z' => {
            ended(after).or((name == '{').then_some(after))
        }
        'q' | 'Q' | 'l' | 'L' => ended(
            after
                .trim_start_matches(' ')
                .trim_start_matches(|c: char| c.is_ascii_digit()),
        ),
        'b' | 't' | 'T' | ':' => Some(after.find([';', '\n']).map_or("", |at| &after[at..])),
        // Text up to the end of the line, or of the script.
        'a' | 'i' | 'c' => Some(after.find('\n').map_or("", |at| &after[at..])),
        's' => {
            let after = delimited(after, 2)?;
            let flags = after.trim_start_matches(|c: char| {
                c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M')
            });
            ended(flags)
        }
        'y' => ended(delimited(after, 2)?),
        _ => None,
    }
}

fn ended(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']);
    (text.is_empty() || text.starts_with([';', '\n', '}', '#'])).then_some(text)
}

fn address(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('$') {
        return Some(rest);
    }
    if text.starts_with('/') {
        return delimited(text, 1).map(|rest| rest.trim_start_matches(['I', 'M']));
    }
    if let Some(rest) = text.strip_prefix('\\') {
        return delimited(rest, 1).map(|rest| rest.trim_start_matches(['I', 'M']));
    }
    Some(text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '~' | '+')))
}

/// `parts` runs of text, each ended by the delimiter that `text` starts with.
fn delimited(text: &str, parts: usize) -> Option<&str> {
    let delimiter = text.chars().next().filter(|c| !matches!(c, '\\' | '\n'))?;
    let mut left = parts;
    let mut chars = text.char_indices().skip(1);
    let mut in_class = false;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            // In a bracket expression GNU sed takes the delimiter literally, others do not: give up on it.
            '[' => in_class = true,
            ']' => in_class = false,
            '\n' if left == parts => return None,
            c if c == delimiter => {
                if in_class {
                    return None;
                }
                left -= 1;
                if left == 0 {
                    return Some(&text[at + c.len_utf8()..]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::only_edits_the_stream;

    #[test]
    fn scripts_that_print_and_edit_pass_and_the_rest_does_not() {
        for script in [
            "",
            "p",
            "1,5p",
            "10q",
            "$d",
            "/a/d",
            "/a/,/b/p",
            "s/a/b/",
            "s/a/b/g",
            "s|a/b|c|2p",
            "s/a/b/;s/c/d/",
            "y/ab/cd/",
            "/^$/d",
            "1!G;h;$!d",
            "s/a\\/b/c/g",
            "/x/{s/a/b/;p}",
            ":a;N;$!ba;s/\\n/ /g",
            "5i text",
            "# note\np",
            "1~2p",
        ] {
            assert!(only_edits_the_stream(script), "{script:?}");
        }
        for script in [
            "w MARK",
            "s/./x/w MARK",
            "1e touch MARK",
            "e",
            "s/x/touch MARK/e",
            "s/x/y/ge",
            "/a/w f",
            "W f",
            "r f",
            "R f",
            "s/a",
            "{w f",
            "p;w f",
            "p\nw f",
            "s/[/]/x/w f",
            "1,5!w f",
            "v",
            "s/a/b/ w f",
            "y/a/b/w f",
            "\\,a,w f",
            "s/a/b/pw f",
        ] {
            assert!(!only_edits_the_stream(script), "{script:?}");
        }
    }
}
