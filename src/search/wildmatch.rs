//! How git matches one ignore pattern against a name or a path (gitignore(5)). Bytes, because git's paths are.

/// What `*` may cross.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The text is a single name; `*` takes anything.
    Name,
    /// `*` and `?` and classes stop at `/`; `**` between slashes crosses.
    Path,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Match,
    NoMatch,
    /// No other place of any star can help: without this, `*a*a*a*b` takes exponential time.
    Hopeless,
    /// Only a `**` further out can help.
    OnlyStarStar,
}

pub(super) fn wildmatch(pattern: &[u8], text: &[u8], scope: Scope) -> bool {
    run(pattern, text, scope) == Outcome::Match
}

fn run(pattern: &[u8], text: &[u8], scope: Scope) -> Outcome {
    let mut p = 0;
    let mut t = 0;
    while p < pattern.len() {
        let byte = pattern[p];
        if byte == b'*' {
            return star(pattern, p, &text[t..], scope);
        }
        let Some(&seen) = text.get(t) else {
            return Outcome::Hopeless;
        };
        match byte {
            b'?' => {
                if scope == Scope::Path && seen == b'/' {
                    return Outcome::NoMatch;
                }
                p += 1;
            }
            b'[' => match class(&pattern[p + 1..], seen) {
                // git: a class that does not close makes the whole pattern useless.
                None => return Outcome::Hopeless,
                Some((inside, length)) => {
                    if !inside || (scope == Scope::Path && seen == b'/') {
                        return Outcome::NoMatch;
                    }
                    p += 1 + length;
                }
            },
            b'\\' => {
                if pattern.get(p + 1) != Some(&seen) {
                    return Outcome::NoMatch;
                }
                p += 2;
            }
            _ => {
                if byte != seen {
                    return Outcome::NoMatch;
                }
                p += 1;
            }
        }
        t += 1;
    }
    if t == text.len() {
        Outcome::Match
    } else {
        Outcome::NoMatch
    }
}

/// `pattern[p]` is a star.
fn star(pattern: &[u8], p: usize, text: &[u8], scope: Scope) -> Outcome {
    let stars = pattern[p..].iter().take_while(|&&byte| byte == b'*').count();
    let rest = &pattern[p + stars..];
    let mut crosses = scope == Scope::Name;
    if stars > 1 && scope == Scope::Path {
        // "foo/" is behind us (or nothing is) and "/" or the end follows: the star-star of gitignore(5).
        let opens = p == 0 || pattern[p - 1] == b'/';
        let closes = matches!(rest, [] | [b'/', ..] | [b'\\', b'/', ..]);
        crosses = opens && closes;
        if crosses && rest.first() == Some(&b'/') {
            // No directory at all. A hopeless rest is hopeless further on too: trying it again at every
            // level would double the time with each star-star.
            let outcome = run(&rest[1..], text, scope);
            if matches!(outcome, Outcome::Match | Outcome::Hopeless) {
                return outcome;
            }
        }
    }
    if rest.is_empty() {
        return if crosses || !text.contains(&b'/') {
            Outcome::Match
        } else {
            Outcome::OnlyStarStar
        };
    }
    if !crosses && rest[0] == b'/' {
        // One star and a slash: the next directory, whole.
        return match text.iter().position(|&byte| byte == b'/') {
            Some(slash) => run(rest, &text[slash..], scope),
            None => Outcome::Hopeless,
        };
    }
    for start in 0..text.len() {
        match run(rest, &text[start..], scope) {
            Outcome::NoMatch => {
                if !crosses && text[start] == b'/' {
                    return Outcome::OnlyStarStar;
                }
            }
            Outcome::OnlyStarStar if crosses => {}
            other => return other,
        }
    }
    Outcome::Hopeless
}

/// Whether `byte` is in the class behind its `[`, and the class's length with its `]`. `None`: it does not close.
fn class(class: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(class.first(), Some(b'!' | b'^'));
    let first = usize::from(negated);
    let mut inside = false;
    let mut at = first;
    let mut previous: Option<u8> = None;
    loop {
        let mut low = *class.get(at)?;
        match low {
            b']' if at > first => return Some((inside != negated, at + 1)),
            b'-' if previous.is_some() && !matches!(class.get(at + 1), None | Some(b']')) => {
                at += 1;
                let mut high = class[at];
                if high == b'\\' {
                    at += 1;
                    high = *class.get(at)?;
                }
                inside |= previous.is_some_and(|low| low <= byte && byte <= high);
                previous = None;
                at += 1;
                continue;
            }
            b'[' if class.get(at + 1) == Some(&b':') => {
                let name = &class[at + 2..];
                let end = name.iter().position(|&byte| byte == b']')?;
                if let Some(name) = name[..end].strip_suffix(b":") {
                    inside |= posix(name, byte)?;
                    at += 2 + end + 1;
                    previous = None;
                    continue;
                }
            }
            b'\\' => {
                at += 1;
                low = *class.get(at)?;
            }
            _ => {}
        }
        inside |= low == byte;
        previous = Some(low);
        at += 1;
    }
}

/// `None` for a name git does not know, which makes the pattern useless.
fn posix(name: &[u8], byte: u8) -> Option<bool> {
    Some(match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => matches!(byte, b' ' | b'\t'..=b'\r'),
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "*a".repeat(40) + "b";
        assert!(!wildmatch(
            pattern.as_bytes(),
            "a".repeat(5000).as_bytes(),
            Scope::Name
        ));
        let pattern = "**/a/".repeat(20) + "b";
        assert!(!wildmatch(
            pattern.as_bytes(),
            "a/".repeat(200).as_bytes(),
            Scope::Path
        ));
    }
}
