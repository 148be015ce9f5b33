//! Wrappers whose command is found by more than their options: `xargs`, `find -exec`, `command -v`.

use super::option::{NO_OPTIONS, Options, XARGS, command_after, pass_options};
use super::{Inner, Wrapped};
use crate::policy::command::word::{Piece, Word};

/// `nice -5 cmd`, the old spelling.
pub(super) fn without_number_flag(arguments: &[Word]) -> Vec<Word> {
    let is_number = arguments.first().and_then(Word::fixed).is_some_and(|text| {
        text.strip_prefix('-')
            .map(|rest| rest.trim_start_matches(['-', '+']))
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    });
    arguments[usize::from(is_number)..].to_vec()
}

pub(super) fn has_short(arguments: &[Word], letter: char) -> bool {
    arguments.iter().any(|word| {
        let start = word.fixed_start();
        word.fixed().is_none()
            || (start.starts_with('-') && !start.starts_with("--") && start.contains(letter))
    })
}

pub(super) fn command_builtin(name: &str, arguments: &[Word], open_ended: bool) -> Wrapped {
    let asks = |word: &Word| {
        word.fixed()
            .is_some_and(|text| text.starts_with('-') && text.contains(['v', 'V']))
    };
    if arguments.first().is_some_and(asks) {
        // `command -v git` only looks a name up.
        return Wrapped {
            transparent: true,
            ..Wrapped::default()
        };
    }
    let options = Options {
        flags: "p",
        ..NO_OPTIONS
    };
    command_after(name, arguments, open_ended, &options)
}

pub(super) fn xargs(name: &str, arguments: &[Word]) -> Wrapped {
    // The old spellings -i, -e and -l take an optional attached value.
    let modern: Vec<Word> = arguments
        .iter()
        .map(|word| match word.fixed().as_deref() {
            Some("-i") => Word::quoted("-I{}"),
            Some("-e" | "-l") => Word::quoted("-x"),
            _ => word.clone(),
        })
        .collect();
    let Some(passed) = pass_options(&modern, &XARGS) else {
        return command_after(name, arguments, true, &XARGS);
    };
    let replaced = passed
        .seen
        .iter()
        .find_map(|(option, value)| match option.as_str() {
            "I" => Some(value.as_ref().and_then(Word::fixed).unwrap_or_default()),
            "replace" => Some(
                value
                    .as_ref()
                    .and_then(Word::fixed)
                    .unwrap_or_else(|| "{}".to_owned()),
            ),
            _ => None,
        });
    let mut words = modern[passed.at..].to_vec();
    let mut wrapped = Wrapped {
        transparent: true,
        ..Wrapped::default()
    };
    if words.is_empty() {
        return wrapped;
    }
    let open_ended = match &replaced {
        Some(mark) => {
            words = words.iter().map(|word| with_replaced(word, mark)).collect();
            false
        }
        None => true,
    };
    wrapped.inner.push(Inner::Command { words, open_ended });
    wrapped
}

/// The word, unknown as a whole if it holds the mark that the wrapper replaces.
fn with_replaced(word: &Word, mark: &str) -> Word {
    let holds = word
        .fixed()
        .is_none_or(|text| mark.is_empty() || text.contains(mark));
    if holds {
        Word {
            pieces: vec![Piece::Unknown],
        }
    } else {
        word.clone()
    }
}

/// `-exec cmd {} \;` and its kin. `find` itself stays visible: it walks and may delete.
pub(super) fn find(arguments: &[Word], open_ended: bool) -> Wrapped {
    let mut wrapped = Wrapped::default();
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let Some(text) = word.fixed() else { continue };
        if !matches!(text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let start = at;
        while let Some(text) = arguments.get(at).map(Word::fixed) {
            let after_braces = at > start && arguments[at - 1].fixed().as_deref() == Some("{}");
            if text.as_deref() == Some(";") || (text.as_deref() == Some("+") && after_braces) {
                break;
            }
            at += 1;
        }
        let words: Vec<Word> = arguments[start..at]
            .iter()
            .map(|word| with_replaced(word, "{}"))
            .collect();
        if !words.is_empty() {
            wrapped.inner.push(Inner::Command {
                words,
                open_ended: false,
            });
        }
        at += 1;
    }
    wrapped.doubt = open_ended.then(|| "lets its input add actions to find".to_owned());
    wrapped
}
