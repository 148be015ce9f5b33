//! The lines of a hunk, common to both patch formats.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Context.
    Both,
    /// Removed.
    Old,
    /// Added.
    New,
}

/// Whether a line ends with a newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newline {
    Yes,
    /// Marked `\ No newline at end of file`.
    No,
    /// V4A does not say.
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HunkLine<'p> {
    pub side: Side,
    /// Without the LF; with its CR, if the patch has one there.
    pub text: &'p str,
    pub newline: Newline,
}

impl<'p> HunkLine<'p> {
    pub fn is_old(&self) -> bool {
        self.side != Side::New
    }

    pub fn is_new(&self) -> bool {
        self.side != Side::Old
    }
}

/// A hunk of a unified diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hunk<'p> {
    /// 1-based line of its header in the patch.
    pub patch_line: usize,
    pub old: Span,
    pub new: Span,
    pub lines: Vec<HunkLine<'p>>,
}

/// `start,count` of a hunk header, numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub start: usize,
    pub count: usize,
}

impl Span {
    /// 0-based. An empty span names the line before it.
    pub fn index(self) -> usize {
        if self.count == 0 {
            self.start
        } else {
            self.start.saturating_sub(1)
        }
    }
}

impl Hunk<'_> {
    /// Context lines before the first change, and after the last.
    pub fn context(&self) -> (usize, usize) {
        let is_context = |line: &&HunkLine<'_>| line.side == Side::Both;
        let leading = self.lines.iter().take_while(is_context).count();
        let trailing = self.lines.iter().rev().take_while(is_context).count();
        (leading, trailing)
    }

    /// The hunk that would undo this one.
    pub fn reversed(&self) -> Self {
        let turned = |line: &HunkLine<'_>| match line.side {
            Side::Both => Side::Both,
            Side::Old => Side::New,
            Side::New => Side::Old,
        };
        let lines = self
            .lines
            .iter()
            .map(|line| HunkLine {
                side: turned(line),
                ..*line
            })
            .collect();
        Hunk {
            patch_line: self.patch_line,
            old: self.new,
            new: self.old,
            lines,
        }
    }
}
