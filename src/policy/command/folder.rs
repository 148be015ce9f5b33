//! Where a command is when it runs: what `cd` does to the words after it, as far as letters tell.

use super::walk::Walker;
use super::word::{Piece, Word};
use super::wrapper::base_name;
use super::{Folder, Folders};
use crate::policy::place::{Ground, Place};
use std::rc::Rc;

/// `cd a; cd a; ...`: longer folders, and more of them, count as unknown.
const MAX_FOLDER_BYTES: usize = 1024;
const MAX_FOLDERS: usize = 4;

impl Walker<'_> {
    /// Where we are after `kind` ends: a subshell takes its `cd` with it, a branch may not have been taken.
    pub(super) fn leave(&mut self, kind: &str, before: Folders) {
        match kind {
            "subshell"
            | "command_substitution"
            | "process_substitution"
            | "pipeline"
            | "function_definition" => {
                self.folders = before;
                self.before_cd = None;
            }
            "if_statement" | "while_statement" | "for_statement" | "case_statement" => {
                self.settle_cd(false);
                self.folders = union(&self.folders, &before);
            }
            _ => {}
        }
    }

    /// Follows `cd`.
    pub(super) fn moved(&mut self, words: &[Word]) {
        let name = words.first().and_then(Word::literal).unwrap_or_default();
        let target = match base_name(&name) {
            "cd" | "pushd" => words[1..].iter().find(|word| {
                let start = word.fixed_start();
                word.fixed().is_none() || !start.starts_with('-') || start == "-"
            }),
            "popd" => None,
            _ => return,
        };
        let folders = match target {
            Some(target) => self.joined(target),
            None if name == "cd" => self.joined(&Word {
                pieces: vec![Piece::Bare("~".to_owned())],
            }),
            None => vec![Folder {
                place: None,
                likely: true,
            }],
        };
        self.before_cd = Some(std::mem::replace(&mut self.folders, Rc::new(folders)));
        self.last_operator = "";
    }

    pub(super) fn joined(&self, target: &Word) -> Vec<Folder> {
        let home_or_text = known_text(target, self.ground);
        self.folders
            .iter()
            .map(|folder| {
                let place = match (&home_or_text, &folder.place) {
                    (Some(text), _) if text.starts_with('/') => {
                        Some(self.ground.locate(text, &Place::root()))
                    }
                    (Some(text), Some(place)) if text != "-" => Some(self.ground.locate(text, place)),
                    _ => None,
                };
                Folder {
                    place: place.filter(|place| place.shown().len() <= MAX_FOLDER_BYTES),
                    likely: folder.likely,
                }
            })
            .collect()
    }

    /// After `cd x &&` we are in x; after `cd x;` perhaps not.
    pub(super) fn settle_cd(&mut self, at_command: bool) {
        let Some(before) = self.before_cd.take() else {
            return;
        };
        if at_command && self.last_operator == "&&" {
            return;
        }
        self.folders = union(&self.folders, &before);
    }
}

/// The text of a word, with `~` and `$HOME` filled in.
fn known_text(word: &Word, ground: &Ground) -> Option<String> {
    if word.has_wildcard() {
        return None;
    }
    let mut text = String::new();
    for (index, piece) in word.pieces.iter().enumerate() {
        match piece {
            Piece::Bare(bare) if index == 0 && bare.starts_with('~') => {
                let rest = &bare[1..];
                if !(rest.is_empty() || rest.starts_with('/')) {
                    return None;
                }
                text.push_str(ground.home()?);
                text.push_str(rest);
            }
            Piece::Bare(fixed) | Piece::Quoted(fixed) => text.push_str(fixed),
            Piece::Variable(name) if name == "HOME" => text.push_str(ground.home()?),
            Piece::Variable(_) | Piece::Unknown => return None,
        }
    }
    Some(text)
}

fn union(now: &Folders, before: &Folders) -> Folders {
    if now == before {
        return now.clone();
    }
    let mut all: Vec<Folder> = now.to_vec();
    for folder in before.iter() {
        if !all.iter().any(|known| known.place == folder.place) {
            all.push(Folder {
                place: folder.place.clone(),
                likely: false,
            });
        }
    }
    // `cd a; cd b; ...` could double the list with each step.
    all.truncate(MAX_FOLDERS);
    Rc::new(all)
}
