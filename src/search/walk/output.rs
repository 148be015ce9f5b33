//! What comes out of a walk: stretches of it, in order, joined and cut to the limits so that neither the number
//! of threads nor their luck shows in the result.

use crate::search::budget::Stop;

/// What a walk left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    pub binary_files: usize,
    /// Over the size that grep reads.
    pub large_files: usize,
    /// Could not be opened, or turned out to be no regular file.
    pub unreadable_files: usize,
    pub unreadable_directories: usize,
    /// Names that no path can spell (not UTF-8, or with a backslash).
    pub unaddressable_names: usize,
    /// Lines too long for a pattern with look-around or back-references.
    pub long_lines: usize,
}

/// Why something was left out.
#[derive(Clone, Copy, Debug)]
pub(in crate::search) enum Skip {
    BinaryFile,
    LargeFile,
    UnreadableFile,
    UnreadableDirectory,
    UnaddressableName,
    LongLines(usize),
}

impl Skipped {
    fn add(&mut self, skip: Skip) {
        match skip {
            Skip::BinaryFile => self.binary_files += 1,
            Skip::LargeFile => self.large_files += 1,
            Skip::UnreadableFile => self.unreadable_files += 1,
            Skip::UnreadableDirectory => self.unreadable_directories += 1,
            Skip::UnaddressableName => self.unaddressable_names += 1,
            Skip::LongLines(lines) => self.long_lines += lines,
        }
    }
}

struct Hit<H> {
    value: H,
    weight: usize,
    /// Files, and skips, up to and with this hit: a result that is cut here counts what belongs to it and no
    /// more, however far the walk had gone.
    files: usize,
    skips: usize,
}

/// What came out of a stretch of the walk, in order.
pub(in crate::search) struct Output<H> {
    hits: Vec<Hit<H>>,
    weight: usize,
    files: usize,
    /// Each with the number of files before it.
    skips: Vec<(usize, Skip)>,
    pub stop: Option<Stop>,
}

impl<H> Default for Output<H> {
    fn default() -> Self {
        Self {
            hits: Vec::new(),
            weight: 0,
            files: 0,
            skips: Vec::new(),
            stop: None,
        }
    }
}

impl<H> Output<H> {
    /// Results so far.
    pub(in crate::search) fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn files(&self) -> usize {
        self.files
    }

    pub(super) fn count_file(&mut self) {
        self.files += 1;
    }

    /// A hit that counts as `weight` results.
    pub(in crate::search) fn push(&mut self, value: H, weight: usize) {
        self.weight += weight;
        self.hits.push(Hit {
            value,
            weight,
            files: self.files,
            skips: self.skips.len(),
        });
    }

    pub(in crate::search) fn skip(&mut self, skip: Skip) {
        self.skips.push((self.files, skip));
    }
}

/// The whole result.
pub(in crate::search) struct Walked<H> {
    pub hits: Vec<H>,
    pub weight: usize,
    pub files: usize,
    pub skipped: Skipped,
    pub stop: Option<Stop>,
}

/// Joins stretches that follow each other. One that stopped early ends the result.
pub(super) fn join<H>(
    outputs: Vec<Output<H>>,
    max_results: usize,
    max_files: usize,
    cut: fn(&mut H, usize),
) -> Walked<H> {
    let mut walked = Walked {
        hits: Vec::new(),
        weight: 0,
        files: 0,
        skipped: Skipped::default(),
        stop: None,
    };
    for output in outputs {
        walked.append(output, max_results, max_files, cut);
        if walked.stop.is_some() {
            break;
        }
    }
    walked
}

impl<H> Walked<H> {
    fn append(&mut self, output: Output<H>, max_results: usize, max_files: usize, cut: fn(&mut H, usize)) {
        let files_left = max_files - self.files;
        for mut hit in output.hits {
            if hit.files > files_left {
                break;
            }
            let room = max_results - self.weight;
            if hit.weight > room {
                self.stop = Some(Stop::MaxResults);
                if room > 0 {
                    cut(&mut hit.value, room);
                    self.hits.push(hit.value);
                    self.weight += room;
                }
                self.files += hit.files;
                output.skips[..hit.skips]
                    .iter()
                    .for_each(|&(_, skip)| self.skipped.add(skip));
                return;
            }
            self.weight += hit.weight;
            self.hits.push(hit.value);
        }
        let seen = output.skips.iter().filter(|&&(files, _)| files <= files_left);
        seen.for_each(|&(_, skip)| self.skipped.add(skip));
        self.files += output.files.min(files_left);
        self.stop = if output.files > files_left {
            Some(Stop::MaxFiles)
        } else {
            output.stop
        };
    }
}
