//! What a shell line would run: its simple commands, wherever the shell would find them, and every doubt about
//! the reading. Judging them is left to `decide`.
//!
//! The grammar proposes, a strict check disposes. tree-sitter-bash gives the structure; it is made for editors and
//! is lenient where a shell is not (it reads `tou\<newline>ch M` as two words, `a >f b` as two targets). So each
//! node is compared with what the shell's own rules make of the bytes under it (`scan`), and gaps between nodes
//! may hold blanks only (`walk`). What fails the check, and what dash and bash read differently, is a doubt, and
//! a line with a doubt is never allowed without a person.

mod folder;
mod gadget;
mod grammar;
mod heredoc;
mod operand;
mod redirect;
mod rough;
mod scan;
mod sed;
mod simple;
mod walk;
mod word;
mod wrapper;

pub use gadget::{code_variable, gadget};
pub use operand::written_operands;
pub use rough::rough_commands;
pub use word::{Piece, Word};
pub use wrapper::is_loose;

use super::place::{Ground, Place};
use std::rc::Rc;

/// The kernel takes no longer argument (MAX_ARG_STRLEN), so no longer line reaches `sh -c` anyway.
pub const MAX_LINE_BYTES: usize = 128 * 1024;
/// Scripts in scripts: `sh -c 'sh -c ...'`.
pub const MAX_SCRIPT_DEPTH: usize = 8;
/// Commands of one line; each may be compared with each rule.
pub const MAX_COMMANDS: usize = 4096;

/// One command as the shell would start it.
#[derive(Clone, Debug)]
pub struct Simple {
    /// The name and its arguments, after quotes and backslashes are removed. Never empty.
    pub words: Vec<Word>,
    /// Where it may run, as far as the letters tell.
    pub folders: Folders,
    /// It is an argument list that something else completes (xargs): more words follow.
    pub open_ended: bool,
    /// It only passes on to the next item what to run (`env`, `timeout`): rules may name it, no rule has to.
    pub transparent: bool,
}

/// A redirection, here-documents aside.
#[derive(Clone, Debug)]
pub struct Redirect {
    pub target: Word,
    pub writes: bool,
    pub reads: bool,
    pub folders: Folders,
}

#[derive(Clone, Debug)]
pub enum Item {
    Command(Simple),
    Redirect(Redirect),
    /// `NAME=value`, alone or before a command.
    Assignment {
        name: String,
        value: Word,
        folders: Folders,
    },
}

/// Where the words of a command may be relative to: `cd` moves, and may fail.
pub type Folders = Rc<Vec<Folder>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// `None`: known at run time only.
    pub place: Option<Place>,
    /// False for the branch in which an earlier `cd` failed.
    pub likely: bool,
}

/// A reason why the reading may not be what the shell does. In words that end "this line ...".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt(pub String);

#[derive(Debug, Default)]
pub struct Reading {
    /// In the order of the line.
    pub items: Vec<Item>,
    pub doubts: Vec<Doubt>,
}

/// Reads `line` as a POSIX shell (dash) and as bash, started in `folder`.
pub fn read(line: &str, folder: &Place, ground: &Ground) -> Reading {
    walk::read(line, started_in(folder), ground)
}

/// Reads an argument list, which no shell touches.
pub fn read_arguments(words: &[String], folder: &Place, ground: &Ground) -> Reading {
    walk::read_arguments(words, started_in(folder), ground)
}

fn started_in(folder: &Place) -> Folders {
    Rc::new(vec![Folder {
        place: Some(folder.clone()),
        likely: true,
    }])
}

/// Whether the grammar takes the line without an error, for tests that compare this with a verdict.
#[cfg(test)]
pub fn parses(line: &str) -> bool {
    grammar::parses(line)
}
