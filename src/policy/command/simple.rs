//! One simple command: what it is called, what it runs if it is a wrapper, and the builtins of bash that run text
//! which looks like data.

use super::grammar::RESERVED;
use super::walk::Walker;
use super::word::{Piece, Word};
use super::wrapper::{Inner, Wrapped, unwrap};
use super::{Doubt, Item, Redirect, Simple};
use std::rc::Rc;

/// Wrappers in wrappers: `env env env ...`.
const MAX_WRAPPER_DEPTH: usize = 16;

impl Walker<'_> {
    pub(super) fn assigned(&mut self, name: String, value: Word) {
        self.reading.items.push(Item::Assignment {
            name,
            value,
            folders: self.folders.clone(),
        });
    }

    /// One command, and what it runs if it is a wrapper.
    pub(super) fn simple(
        &mut self,
        words: Vec<Word>,
        open_ended: bool,
        script_depth: usize,
        wrapper_depth: usize,
    ) {
        let Some(first) = words.first() else { return };
        match self.budget.commands.checked_sub(1) {
            Some(left) => self.budget.commands = left,
            None => return self.note("holds more commands than can be judged"),
        }
        if wrapper_depth > MAX_WRAPPER_DEPTH {
            return self.note("nests commands in commands too deeply");
        }
        match first.literal() {
            None => self.note("has a command name that is known at run time only"),
            Some(name) => {
                let bare = matches!(first.pieces.as_slice(), [Piece::Bare(_)]);
                // `[[` is a command of its own kind in bash and no command at all in dash.
                if bare && RESERVED.contains(&name.as_str()) && name != "[[" {
                    self.note("holds a keyword where the grammar saw a command");
                }
                if evaluates_text(&name, &words[1..]) {
                    self.note("hands text to a builtin of bash that may run what the text holds");
                }
            }
        }
        let wrapped = unwrap(&words, open_ended);
        self.reading.items.push(Item::Command(Simple {
            words: words.clone(),
            folders: self.folders.clone(),
            open_ended,
            transparent: wrapped.as_ref().is_some_and(|wrapped| wrapped.transparent),
        }));
        match wrapped {
            Some(wrapped) => self.wrapped(wrapped, script_depth, wrapper_depth),
            None => self.moved(&words),
        }
    }

    pub(super) fn wrapped(&mut self, wrapped: Wrapped, script_depth: usize, wrapper_depth: usize) {
        if let Some(text) = wrapped.doubt {
            self.doubt(Doubt(text));
        }
        let before = self.folders.clone();
        if let Some(folder) = &wrapped.folder {
            let folders = self.joined(folder);
            self.folders = Rc::new(folders);
        }
        for (name, value) in wrapped.assignments {
            self.assigned(name, value);
        }
        for target in wrapped.writes {
            self.reading.items.push(Item::Redirect(Redirect {
                target,
                writes: true,
                reads: false,
                folders: self.folders.clone(),
            }));
        }
        let in_other_folder = wrapped.folder.is_some();
        for inner in wrapped.inner {
            match inner {
                Inner::Command { words, open_ended } => {
                    self.simple(words, open_ended, script_depth, wrapper_depth + 1)
                }
                Inner::Script(text) => {
                    let (folders, operator) = (self.folders.clone(), self.last_operator);
                    self.script(&text, script_depth + 1);
                    self.leave("subshell", folders);
                    self.last_operator = operator;
                }
            }
        }
        if in_other_folder {
            self.folders = before;
        }
    }
}

/// Builtins of bash that evaluate a name, its subscript included, or arithmetic: `test -v 'a[$(cmd)]'` runs cmd.
fn evaluates_text(name: &str, arguments: &[Word]) -> bool {
    let has = |wanted: &[&str]| {
        arguments
            .iter()
            .any(|word| wanted.contains(&word.fixed_start().as_str()))
    };
    // A word is as good as its variable: x='a[$(cmd)]'; read "$x".
    let unknown_name = || {
        arguments
            .iter()
            .any(|word| word.fixed().is_none() && !word.fixed_start().contains('='))
    };
    let marked = || arguments.iter().any(holds_substitution_text);
    let integer = || {
        arguments
            .iter()
            .any(|word| is_short_with(&word.fixed_start(), 'i'))
    };
    match name {
        "let" => true,
        "[[" => marked() || has(&["-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"]),
        "test" | "[" => has(&["-v", "-R"]) && (marked() || unknown_name()),
        "printf" => {
            arguments
                .iter()
                .any(|word| is_short_with(&word.fixed_start(), 'v'))
                && (marked() || unknown_name())
        }
        "read" | "unset" | "mapfile" | "readarray" | "getopts" | "wait" => marked() || unknown_name(),
        "declare" | "typeset" | "local" | "readonly" | "export" => {
            marked_name(arguments) || unknown_name() || integer()
        }
        _ => false,
    }
}

fn is_short_with(text: &str, letter: char) -> bool {
    text.starts_with(['-', '+']) && !text.starts_with("--") && text.contains(letter)
}

fn holds_substitution_text(word: &Word) -> bool {
    word.fixed_start().contains(['$', '`'])
}

/// The value of a declaration is data; its name is not.
fn marked_name(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let start = word.fixed_start();
        start
            .split('=')
            .next()
            .is_some_and(|name| name.contains(['$', '`', '[']))
    })
}
