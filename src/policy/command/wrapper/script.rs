//! Wrappers that read text as a script: `sh -c`, `eval`, `trap`.

use super::{Inner, Wrapped};
use crate::policy::command::word::Word;

pub(super) fn shell(name: &str, arguments: &[Word], open_ended: bool) -> Wrapped {
    let from_input = || Wrapped::doubtful(format!("lets {name} run what its input holds"));
    let unknown = || {
        Wrapped::doubtful(format!(
            "starts {name} with a script that is known at run time only"
        ))
    };
    let mut takes_script = false;
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let Some(text) = word.literal() else {
            // A file name with wildcards is an operand; an unknown word may be anything.
            return unknown();
        };
        if text == "-" || text == "--" {
            at += 1;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            at += match long {
                "rcfile" | "init-file" => 2,
                _ => 1,
            };
        } else if text.starts_with(['-', '+']) && text.len() > 1 {
            at += 1;
            takes_script |= text.starts_with('-') && text.contains('c');
            if text.contains('s') && text.starts_with('-') {
                return from_input();
            }
            at += text.chars().filter(|letter| matches!(letter, 'o' | 'O')).count();
        } else {
            break;
        }
    }
    let Some(operand) = arguments.get(at) else {
        return from_input();
    };
    if !takes_script {
        // A script file: judged as the command it is.
        return Wrapped {
            doubt: open_ended
                .then(|| format!("lets {name} run a file that its input names"))
                .filter(|_| operand.fixed().is_none()),
            ..Wrapped::default()
        };
    }
    let Some(script) = operand.literal() else {
        return unknown();
    };
    Wrapped {
        inner: vec![Inner::Script(script)],
        transparent: true,
        doubt: (name == "zsh").then(|| "runs a script in zsh, whose language is only partly read".to_owned()),
        ..Wrapped::default()
    }
}

pub(super) fn eval(arguments: &[Word], open_ended: bool) -> Wrapped {
    let literal: Option<Vec<String>> = arguments.iter().map(Word::literal).collect();
    match literal {
        Some(texts) if !open_ended => Wrapped {
            inner: vec![Inner::Script(texts.join(" "))],
            transparent: true,
            ..Wrapped::default()
        },
        _ => Wrapped::doubtful("evaluates text that is known at run time only"),
    }
}

pub(super) fn trap(arguments: &[Word]) -> Wrapped {
    let operands = match arguments.first().and_then(Word::fixed) {
        Some(first) if first == "--" => &arguments[1..],
        _ => arguments,
    };
    match operands {
        [] | [_] => Wrapped::default(),
        [action, ..] => match action.literal() {
            Some(text) if text == "-" || text.starts_with("-l") || text.starts_with("-p") => {
                Wrapped::default()
            }
            Some(script) => Wrapped {
                inner: vec![Inner::Script(script)],
                ..Wrapped::default()
            },
            None => Wrapped::doubtful("traps a signal with text that is known at run time only"),
        },
    }
}
