//! Where the hunks of a unified diff go, by git's rules: a hunk that names line 1 begins the file, one without
//! trailing context ends it, any other may have moved.

use super::PlacedHunk;
use super::hunk::{Hunk, HunkLine, Side};
use super::image::{Image, Placed};

/// Places that an ambiguity names.
const PLACES_NAMED: usize = 5;

pub(super) enum Misfit {
    Nowhere {
        hunk: usize,
        /// 0-based, where the hunk was expected.
        expected: usize,
    },
    Several {
        hunk: usize,
        /// 0-based.
        places: Vec<usize>,
    },
}

/// How much of a hunk must fit.
#[derive(Clone, Copy)]
struct Looseness {
    /// A hunk without leading (trailing) context must be at the file's beginning (end).
    is_anchored: bool,
    /// Context lines left out at each end.
    dropped: usize,
}

pub(super) fn place_all<'h, 'p>(
    image: &mut Image<'_>,
    hunks: &'h [Hunk<'p>],
    fuzz: u8,
) -> Result<(Vec<Placed<'h, 'p>>, Vec<PlacedHunk>), Misfit> {
    let mut placed: Vec<Placed<'h, 'p>> = Vec::with_capacity(hunks.len());
    let mut reports: Vec<PlacedHunk> = Vec::with_capacity(hunks.len());
    let mut shifts = Shifts::default();
    for (index, hunk) in hunks.iter().enumerate() {
        let expected = hunk.old.index();
        // The number is believed when both sides of the header agree and no hunk before had moved: a hunk
        // behind one that moved most likely moved too.
        let is_trusted =
            expected as isize + shifts.before(expected) == hunk.new.index() as isize && !shifts.any_moved;
        let mut found = None;
        for looseness in loosenesses(hunk, fuzz) {
            let (lines, skipped) = core(hunk, looseness.dropped);
            match position(image, hunk, lines, (expected + skipped, is_trusted), looseness) {
                Position::At(start) => {
                    found = Some((start, skipped, lines, looseness.dropped));
                    break;
                }
                Position::Several(places) => {
                    return Err(Misfit::Several {
                        hunk: index + 1,
                        places,
                    });
                }
                Position::Nowhere => {}
            }
        }
        let Some((start, skipped, lines, dropped)) = found else {
            return Err(Misfit::Nowhere {
                hunk: index + 1,
                expected,
            });
        };
        let offset = start as isize - (expected + skipped) as isize;
        shifts.add(start, hunk, offset);
        image.occupy(lines, start);
        placed.push(Placed { start, lines });
        let line = start.saturating_sub(skipped) + 1;
        reports.push(PlacedHunk {
            hunk: index + 1,
            line,
            offset,
            fuzz: dropped as u8,
        });
    }
    Ok((placed, reports))
}

fn loosenesses(hunk: &Hunk<'_>, fuzz: u8) -> impl Iterator<Item = Looseness> {
    let (leading, trailing) = hunk.context();
    let most = leading.max(trailing).min(usize::from(fuzz));
    let strict = Looseness {
        is_anchored: true,
        dropped: 0,
    };
    let loose = (0..=most).filter(move |_| fuzz > 0).map(|dropped| Looseness {
        is_anchored: false,
        dropped,
    });
    std::iter::once(strict).chain(loose)
}

/// The hunk less `dropped` context lines at each end, and how many went at the beginning.
fn core<'h, 'p>(hunk: &'h Hunk<'p>, dropped: usize) -> (&'h [HunkLine<'p>], usize) {
    let (leading, trailing) = hunk.context();
    let start = leading.min(dropped);
    (
        &hunk.lines[start..hunk.lines.len() - trailing.min(dropped)],
        start,
    )
}

enum Position {
    At(usize),
    Several(Vec<usize>),
    Nowhere,
}

fn position(
    image: &Image<'_>,
    hunk: &Hunk<'_>,
    lines: &[HunkLine<'_>],
    (expected, is_trusted): (usize, bool),
    looseness: Looseness,
) -> Position {
    let olds = lines.iter().filter(|line| line.is_old()).count();
    let must_begin = looseness.is_anchored && hunk.old.start <= 1;
    let must_end = looseness.is_anchored && lines.last().is_none_or(|line| line.side != Side::Both);
    if must_begin || must_end {
        let Some(at_end) = image.len().checked_sub(olds) else {
            return Position::Nowhere;
        };
        let start = if must_begin { 0 } else { at_end };
        let is_beginning = !must_begin || !image.has_insertion(0);
        // Lines can be appended again behind appended ones.
        let is_end = !must_end || start == at_end && (olds == 0 || !image.has_insertion(image.len()));
        // git would glue the new line to a last line without newline.
        let is_glued = olds == 0 && !image.ends_with_newline();
        let fits = is_beginning && is_end && !is_glued && image.fits(lines, start);
        return if fits {
            Position::At(start)
        } else {
            Position::Nowhere
        };
    }
    if is_trusted && olds > 0 && image.fits(lines, expected) {
        return Position::At(expected);
    }
    let places: Vec<usize> = image.places(lines, 0).take(PLACES_NAMED + 1).collect();
    match places.as_slice() {
        [] => Position::Nowhere,
        [only] => Position::At(*only),
        _ => Position::Several(places),
    }
}

/// How the hunks placed so far shift the lines behind them.
#[derive(Default)]
struct Shifts {
    /// (0-based place, lines added less lines removed), in the order of placing.
    hunks: Vec<(usize, isize)>,
    /// The sum, when every hunk so far was behind the one before it: the usual case, and no list to walk.
    total: isize,
    last: usize,
    is_unordered: bool,
    any_moved: bool,
}

impl Shifts {
    fn before(&self, at: usize) -> isize {
        if !self.is_unordered && at >= self.last {
            return self.total;
        }
        self.hunks
            .iter()
            .filter(|(place, _)| *place < at)
            .map(|(_, delta)| delta)
            .sum()
    }

    fn add(&mut self, at: usize, hunk: &Hunk<'_>, offset: isize) {
        let delta = hunk.new.count as isize - hunk.old.count as isize;
        self.is_unordered |= at < self.last;
        self.any_moved |= offset != 0;
        self.hunks.push((at, delta));
        self.total += delta;
        self.last = self.last.max(at);
    }
}

/// Whether the patch is in the file already: its reverse fits.
pub(super) fn is_applied(image: &mut Image<'_>, hunks: &[Hunk<'_>]) -> bool {
    let reversed: Vec<Hunk<'_>> = hunks.iter().map(Hunk::reversed).collect();
    place_all(image, &reversed, 0).is_ok()
}
