//! Where the links of a path lead, asked of whoever holds the files. Only claims of commands need it: a tree hands in
//! what it resolved itself, and opens nothing by what is said here.

use super::place::Place;
use super::{PathOp, Policy, Verdict};
use std::fmt;
use std::sync::Arc;

/// The absolute path that an absolute path leads to, as far as it exists; `None` where nobody can tell.
type Follow = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Without a follower every path is taken by its letters.
#[derive(Clone, Default)]
pub(super) struct Links(Option<Arc<Follow>>);

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Links({})",
            if self.0.is_some() { "followed" } else { "unknown" }
        )
    }
}

impl Policy {
    /// Lets commands be judged by where the links of their paths lead, too.
    #[must_use]
    pub fn following(mut self, follow: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.links = Links(Some(Arc::new(follow)));
        self
    }

    /// `None`: nowhere else.
    pub(super) fn target_of(&self, place: &Place) -> Option<Place> {
        let follow = self.links.0.as_ref()?;
        let target = follow(&self.ground.absolute(place))?;
        let target = self.ground.locate(&target, &Place::root());
        (target != *place).then_some(target)
    }

    /// By its name and by where it leads now; the stricter wins.
    pub(super) fn judge_with_links(&self, op: PathOp, place: &Place) -> Verdict {
        let verdict = self.judge(op, place);
        match self.target_of(place) {
            Some(target) => verdict.stricter(self.judge_target(op, place, &target)),
            None => verdict,
        }
    }

    /// What is said about this very path or about where it leads, leaving the mode aside.
    pub(super) fn judge_explicit_with_links(&self, op: PathOp, place: &Place) -> Option<Verdict> {
        let named = self.judge_explicit(op, place);
        let target = self.target_of(place);
        let led = target
            .filter(|target| self.judge_explicit(op, target).is_some())
            .map(|target| self.judge_target(op, place, &target));
        named.into_iter().chain(led).reduce(Verdict::stricter)
    }
}
