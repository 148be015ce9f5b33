//! Wildcards of policy patterns and of shell words, and one question about two of them: is there a name that
//! both match? (A word such as `.e*` reaches a denied `.env` although it is not equal to it.) The glob of the
//! search tools is another language and lives in `search`.

/// One step of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    Char(char),
    /// Exactly one character of the set.
    One(Set),
    /// Any number of characters of the set.
    Many(Set),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Set {
    /// Policy patterns: `*` and `?` cross `/`, as fnmatch(3) without flags.
    Any,
    /// Shell words: not `/`, and not a `.` at the start of a name.
    InName,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
        /// As `InName`.
        in_name: bool,
    },
}

impl Set {
    fn has(&self, c: char, fresh: bool) -> bool {
        match self {
            Set::Any => true,
            Set::InName => c != '/' && !(fresh && c == '.'),
            Set::Class {
                negated,
                ranges,
                in_name,
            } => {
                if *in_name && (c == '/' || (fresh && c == '.')) {
                    return false;
                }
                ranges.iter().any(|&(low, high)| low <= c && c <= high) != *negated
            }
        }
    }

    /// Characters worth trying when two sets are intersected: the ends of every range and their neighbours
    /// decide, since between them membership does not change.
    fn samples(&self, out: &mut Vec<char>) {
        if let Set::Class { ranges, .. } = self {
            for &(low, high) in ranges {
                for c in [low, high] {
                    out.push(c);
                    out.extend(char::from_u32(u32::from(c).wrapping_add(1)));
                    out.extend(u32::from(c).checked_sub(1).and_then(char::from_u32));
                }
            }
        }
    }
}

/// Reads a policy pattern: `*` and `**` alike, `?`, `[abc]`, `[a-z]`, `[!abc]`. An unclosed `[` is itself.
pub fn parse(pattern: &str) -> Vec<Token> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::with_capacity(chars.len());
    let mut at = 0;
    while at < chars.len() {
        at = push_wild(&chars, at, false, &mut tokens);
    }
    tokens
}

/// Pushes the token at `at` and returns the position after it.
pub fn push_wild(chars: &[char], at: usize, in_name: bool, tokens: &mut Vec<Token>) -> usize {
    let set = || if in_name { Set::InName } else { Set::Any };
    match chars[at] {
        '*' => {
            if !matches!(tokens.last(), Some(Token::Many(_))) {
                tokens.push(Token::Many(set()));
            }
        }
        '?' => tokens.push(Token::One(set())),
        '[' => {
            if let Some((class, end)) = class(chars, at, in_name) {
                tokens.push(Token::One(class));
                return end;
            }
            tokens.push(Token::Char('['));
        }
        c => tokens.push(Token::Char(c)),
    }
    at + 1
}

fn class(chars: &[char], open: usize, in_name: bool) -> Option<(Set, usize)> {
    let mut at = open + 1;
    let negated = matches!(chars.get(at), Some('!' | '^'));
    at += usize::from(negated);
    let first = at;
    let mut ranges = Vec::new();
    loop {
        let low = *chars.get(at)?;
        if low == ']' && at > first {
            break;
        }
        if low == '[' && chars.get(at + 1) == Some(&':') {
            // A named class: anything may be meant, so nothing is ruled out.
            return named_class_end(chars, at).map(|end| (if in_name { Set::InName } else { Set::Any }, end));
        }
        match (chars.get(at + 1), chars.get(at + 2)) {
            (Some('-'), Some(&high)) if high != ']' => {
                ranges.push((low, high));
                at += 3;
            }
            _ => {
                ranges.push((low, low));
                at += 1;
            }
        }
    }
    Some((
        Set::Class {
            negated,
            ranges,
            in_name,
        },
        at + 1,
    ))
}

fn named_class_end(chars: &[char], from: usize) -> Option<usize> {
    let close = chars[from..].windows(2).position(|pair| pair == [':', ']'])?;
    let rest = from + close + 2;
    chars[rest..]
        .iter()
        .position(|&c| c == ']')
        .map(|at| rest + at + 1)
}

pub fn is_literal(tokens: &[Token]) -> bool {
    tokens.iter().all(|token| matches!(token, Token::Char(_)))
}

/// Whether `pattern` matches the whole of `text`.
pub fn matches(pattern: &[Token], text: &str) -> bool {
    // The classic two-pointer match: only the last star is ever retried, so the cost is bounded by the product.
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        let fresh = t == 0 || text[t - 1] == '/';
        let step = match pattern.get(p) {
            Some(Token::Char(c)) => *c == text[t],
            Some(Token::One(set)) => set.has(text[t], fresh),
            Some(Token::Many(_)) => {
                retry = Some((p, t));
                p += 1;
                continue;
            }
            None => false,
        };
        if step {
            p += 1;
            t += 1;
            continue;
        }
        match retry {
            Some((star, from)) if star_has(&pattern[star], &text, from) => {
                retry = Some((star, from + 1));
                p = star + 1;
                t = from + 1;
            }
            _ => return false,
        }
    }
    pattern[p..].iter().all(|token| matches!(token, Token::Many(_)))
}

fn star_has(star: &Token, text: &[char], at: usize) -> bool {
    let fresh = at == 0 || text[at - 1] == '/';
    matches!(star, Token::Many(set) if set.has(text[at], fresh))
}

/// Whether some text is matched by both. `below` also accepts texts that `b` matches followed by `/` and more:
/// a denied directory is met by everything in it.
pub fn intersect(a: &[Token], b: &[Token], below: bool) -> bool {
    let mut b = b.to_vec();
    if !below {
        return meet(a, &b);
    }
    if meet(a, &b) {
        return true;
    }
    b.push(Token::Char('/'));
    b.push(Token::Many(Set::Any));
    meet(a, &b)
}

/// Reachability in the product of the two automata. A state is a position in each, and whether a name starts here.
fn meet(a: &[Token], b: &[Token]) -> bool {
    let width = b.len() + 1;
    let index = |i: usize, j: usize, fresh: bool| (i * width + j) * 2 + usize::from(fresh);
    let mut seen = vec![false; (a.len() + 1) * width * 2];
    let mut open = vec![(0usize, 0usize, true)];
    while let Some((i, j, fresh)) = open.pop() {
        if std::mem::replace(&mut seen[index(i, j, fresh)], true) {
            continue;
        }
        if i == a.len() && j == b.len() {
            return true;
        }
        // A star may match nothing.
        if matches!(a.get(i), Some(Token::Many(_))) {
            open.push((i + 1, j, fresh));
        }
        if matches!(b.get(j), Some(Token::Many(_))) {
            open.push((i, j + 1, fresh));
        }
        let (Some(left), Some(right)) = (a.get(i), b.get(j)) else {
            continue;
        };
        let next = |token: &Token, at: usize| at + usize::from(!matches!(token, Token::Many(_)));
        let (slash, other) = shared_step(left, right, fresh);
        if slash {
            open.push((next(left, i), next(right, j), true));
        }
        if other {
            open.push((next(left, i), next(right, j), false));
        }
    }
    false
}

/// Whether both can take a `/`, and whether both can take some other character.
fn shared_step(left: &Token, right: &Token, fresh: bool) -> (bool, bool) {
    let takes = |token: &Token, c: char| match token {
        Token::Char(own) => *own == c,
        Token::One(set) | Token::Many(set) => set.has(c, fresh),
    };
    let mut samples = vec!['a', '.', '\u{1F33F}'];
    for token in [left, right] {
        match token {
            Token::Char(c) => samples.push(*c),
            Token::One(set) | Token::Many(set) => set.samples(&mut samples),
        }
    }
    let both = |c: char| takes(left, c) && takes(right, c);
    (both('/'), samples.into_iter().any(|c| c != '/' && both(c)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn shell(word: &str) -> Vec<Token> {
        let chars: Vec<char> = word.chars().collect();
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < chars.len() {
            at = push_wild(&chars, at, true, &mut tokens);
        }
        tokens
    }

    #[test]
    fn a_policy_pattern_matches_as_fnmatch_does() {
        for (pattern, text, expected) in [
            ("*.py", "a.py", true),
            ("*.py", "x/a.py", true),
            ("**/*.py", "a.py", false),
            ("**/*.py", "x/a.py", true),
            ("src/a?c", "src/a/c", true),
            (".env*", ".env", true),
            (".env*", ".env.local", true),
            (".env*", "x.env", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]x]", "]", true),
            ("[ab", "[ab", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(&parse(pattern), text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_shell_glob_meets_exactly_the_patterns_it_can_expand_into() {
        for (word, pattern, expected) in [
            (".e*", ".env*", true),
            (".e*", "secrets", false),
            ("*", ".env*", false),
            ("*", "secrets", true),
            ("?ecrets", "secrets", true),
            ("[!s]ecrets", "secrets", false),
            ("[r-t]ecrets", "secrets", true),
            ("s*", "secrets", true),
            (".*", ".env", true),
            (".[de]nv", ".env", true),
            ("*nv", ".env", false),
            ("[[:alpha:]]ecrets", "secrets", true),
        ] {
            assert_eq!(
                intersect(&shell(word), &parse(pattern), false),
                expected,
                "{word} with {pattern}"
            );
        }
    }

    #[test]
    fn what_lies_below_a_denied_directory_is_met_too() {
        assert!(intersect(&shell("build/*/z"), &parse("build/out"), true));
        assert!(!intersect(&shell("build/*/z"), &parse("build/out"), false));
        assert!(!intersect(&shell("built/*/z"), &parse("build/out"), true));
    }
}
