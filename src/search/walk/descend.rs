//! One thread's way through the tree: a stack of directories, each with what is still to be looked at in it.

use std::sync::Arc;

use super::output::Skip;
use super::share::Share;
use super::{Found, Output, Visitor, Walk, aborted, rules};
use crate::error::{Error, ErrorCode, Result};
use crate::search::budget::{Stop, Tick};
use crate::search::glob::Alive;
use crate::search::ignore::IgnoreStack;
use crate::tree::{EntryList, FileType, Folder};

/// A directory that was opened and listed.
pub(super) struct Directory {
    folder: Box<dyn Folder>,
    /// From the root of the tree, with a final slash; empty for the root.
    prefix: String,
    entries: EntryList,
    ignore: IgnoreStack,
    alive: Option<Alive>,
}

/// A stretch of a directory.
pub(super) struct Frame {
    directory: Arc<Directory>,
    next: usize,
    end: usize,
}

impl Frame {
    pub(super) fn whole(directory: Directory) -> Self {
        let end = directory.entries.len();
        Self {
            directory: Arc::new(directory),
            next: 0,
            end,
        }
    }

    fn left(&self) -> usize {
        self.end - self.next
    }
}

/// Work left for one thread; the last frame comes first.
pub(super) struct Task(Vec<Frame>);

/// A stretch of fewer entries is not worth handing over.
const MIN_SPLIT: usize = 4;
/// How many entries are looked at between two looks at the clock.
const ENTRIES_PER_TICK: usize = 64;

impl Task {
    pub(super) fn new(frame: Frame) -> Self {
        Self(vec![frame])
    }

    /// Cuts off what would be done last: half of what is left of the outermost directory with anything left.
    fn split(&mut self) -> Option<Task> {
        let last = self.0.len() - 1;
        let (index, frame) = self
            .0
            .iter_mut()
            .enumerate()
            .find(|(_, frame)| frame.left() > 0)?;
        let (keep, least) = if index == last {
            (frame.left().div_ceil(2), MIN_SPLIT)
        } else {
            (frame.left() / 2, 1)
        };
        if frame.left() < least {
            return None;
        }
        let middle = frame.next + keep;
        let given = Frame {
            directory: frame.directory.clone(),
            next: middle,
            end: frame.end,
        };
        frame.end = middle;
        Some(Task::new(given))
    }
}

/// What is kept from one entry to the next.
struct Hand<V: Visitor> {
    path: String,
    scratch: V::Scratch,
    out: Output<V::Hit>,
}

impl<V: Visitor> Walk<'_, V> {
    /// Works through a task; `share` is asked after every entry whether to hand some of it over or to end.
    pub(super) fn descend(&self, mut task: Task, share: &dyn Share) -> Result<Output<V::Hit>> {
        let mut hand: Hand<V> = Hand {
            path: String::new(),
            scratch: V::Scratch::default(),
            out: Output::default(),
        };
        let mut since_tick = 0;
        while let Some(frame) = task.0.last_mut() {
            if frame.next == frame.end {
                task.0.pop();
                continue;
            }
            since_tick += 1;
            if since_tick == ENTRIES_PER_TICK {
                since_tick = 0;
                if self.must_end(&mut hand.out)? {
                    break;
                }
            }
            let index = frame.next;
            frame.next += 1;
            let directory = frame.directory.clone();
            if frame.next == frame.end {
                // Closed before its last directory is entered: a long chain needs no pile of descriptors.
                task.0.pop();
            }
            if let Some(child) = self.entry(&directory, index, &mut hand)? {
                task.0.push(Frame::whole(child));
            }
            let full =
                hand.out.weight() > self.max_results || hand.out.files() > self.options.max_files_scanned;
            if full || hand.out.stop.is_some() || share.is_over() {
                break;
            }
            if share.wants_work() && !task.0.is_empty() {
                share.give(task.split());
            }
        }
        Ok(hand.out)
    }

    /// Looks at one entry; a directory that is to be entered comes back opened.
    fn entry(&self, directory: &Directory, index: usize, hand: &mut Hand<V>) -> Result<Option<Directory>> {
        let (name, file_type) = directory.entries.get(index);
        let everything = self.visitor.wants_everything();
        if self.is_skipped(name, file_type) {
            return Ok(None);
        }
        if !everything && matches!(file_type, FileType::Symlink | FileType::Other) {
            return Ok(None);
        }
        let Some(text) = std::str::from_utf8(name).ok().filter(|name| !name.contains('\\')) else {
            hand.out.skip(Skip::UnaddressableName);
            return Ok(None);
        };
        let is_directory = file_type == FileType::Directory;
        let mut alive = None;
        if let (Some(glob), Some(above), true) = (self.glob, &directory.alive, is_directory) {
            alive = glob.enter(above, text);
            if alive.is_none() {
                return Ok(None);
            }
        }
        hand.path.clear();
        hand.path.push_str(&directory.prefix);
        hand.path.push_str(text);
        if directory.ignore.excludes(hand.path.as_bytes(), is_directory) {
            return Ok(None);
        }
        let found = Found {
            folder: &*directory.folder,
            name,
            path: &hand.path,
            file_type,
        };
        if is_directory {
            if everything {
                self.visitor
                    .visit(&found, &self.clock, &mut hand.scratch, &mut hand.out)?;
            }
            return self.enter(directory, name, alive, hand);
        }
        hand.out.count_file();
        if hand.out.files() > self.options.max_files_scanned {
            return Ok(None);
        }
        if let (Some(glob), Some(above)) = (self.glob, &directory.alive)
            && !glob.matches_name(above, text)
        {
            return Ok(None);
        }
        self.visitor
            .visit(&found, &self.clock, &mut hand.scratch, &mut hand.out)?;
        Ok(None)
    }

    fn enter(
        &self,
        above: &Directory,
        name: &[u8],
        alive: Option<Alive>,
        hand: &mut Hand<V>,
    ) -> Result<Option<Directory>> {
        let opened = match above.folder.open_folder(name) {
            Ok(folder) => self.open(folder, format!("{}/", hand.path), &above.ignore, alive)?,
            Err(error) => {
                out_of_descriptors(error)?;
                None
            }
        };
        if opened.is_none() {
            hand.out.skip(Skip::UnreadableDirectory);
        }
        Ok(opened)
    }

    /// Lists a directory and adds its ignore rules. `None` when it cannot be listed.
    pub(super) fn open(
        &self,
        folder: Box<dyn Folder>,
        prefix: String,
        above: &IgnoreStack,
        alive: Option<Alive>,
    ) -> Result<Option<Directory>> {
        let mut entries = EntryList::default();
        if let Err(error) = folder.entries(&mut entries) {
            return out_of_descriptors(error).map(|()| None);
        }
        entries.sort_for_walk();
        let ignore = if self.options.gitignore {
            rules::inside(&*folder, &prefix, &entries, above)
        } else {
            rules::none()
        };
        Ok(Some(Directory {
            folder,
            prefix,
            entries,
            ignore,
            alive,
        }))
    }

    fn is_skipped(&self, name: &[u8], file_type: FileType) -> bool {
        let named = || self.options.skip_names.iter().any(|skip| skip.as_bytes() == name);
        name == b".git" || (file_type == FileType::Directory && named())
    }

    fn must_end(&self, out: &mut Output<V::Hit>) -> Result<bool> {
        match self.clock.tick() {
            Tick::GoOn => Ok(false),
            Tick::DeadlinePassed => {
                out.stop = Some(Stop::Deadline);
                Ok(true)
            }
            Tick::Cancelled => Err(aborted()),
        }
    }
}

/// A directory that is gone or shut is no reason to fail; running out of descriptors is, because the result
/// would be cut without a word about the cause.
fn out_of_descriptors(error: Error) -> Result<()> {
    if error.code == ErrorCode::TooManyOpenFiles {
        Err(error)
    } else {
        Ok(())
    }
}
