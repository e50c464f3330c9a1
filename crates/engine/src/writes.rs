//! Writes of fire that are under way, and whether more may begin. Those of a kind that takes long do not hold up others,
//! those of the backlog nothing that is on time.

use crate::age::{Age, ByAge};

/// Writes of a kind under way at once.
const DEPTH: usize = 2;
/// Writes of the backlog under way at once, of any kind.
const DEPTH_BACKLOG: usize = 2;

/// Writes of different kinds do not wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Slots that start, as far as is known.
    FastPath,
    /// Slots with skipped ones before them, that are due while a run lives, or whose job is being claimed from: the store
    /// decides each of them by its view, or has them wait.
    SlowPath,
    Claim,
}

/// How many are under way.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    counts: ByAge<[usize; 3]>,
}

impl Writes {
    fn count(&mut self, age: Age, kind: Kind) -> &mut usize {
        let [fast, slow, claim] = self.counts.get_mut(age);
        match kind {
            Kind::FastPath => fast,
            Kind::SlowPath => slow,
            Kind::Claim => claim,
        }
    }

    pub(crate) fn begin(&mut self, age: Age, kind: Kind) {
        *self.count(age, kind) += 1;
    }

    pub(crate) fn end(&mut self, age: Age, kind: Kind) {
        *self.count(age, kind) -= 1;
    }

    /// Whether another write may begin that the store takes its time for. There are few connections.
    pub(crate) fn has_patience(&self, age: Age) -> bool {
        let [fast, slow, claim] = *self.counts.get(age);
        match age {
            Age::OnTime => slow + claim < DEPTH,
            Age::Backlog => fast + slow + claim < DEPTH_BACKLOG,
        }
    }

    /// Whether the wheel may be taken from. What passes others over is only known when it has been.
    pub(crate) fn may_take(&self, age: Age) -> bool {
        let [fast, slow, claim] = *self.counts.get(age);
        match age {
            Age::OnTime => fast < DEPTH && slow <= DEPTH,
            Age::Backlog => fast + slow + claim < DEPTH_BACKLOG,
        }
    }
}
