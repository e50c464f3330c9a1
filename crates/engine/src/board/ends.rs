//! What settle does to the board: what has ended is held no more, and what follows from it waits.

use model::{AttemptNo, RunId};
use store::DueRun;

use super::wheel::LastEnd;
use super::{Board, State};

/// A claim of ours whose end is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedClaim {
    pub run: RunId,
    pub attempt: AttemptNo,
    /// The run is anyone's again, under the same number.
    pub released: bool,
    /// And it waits for its origin.
    pub waits: bool,
}

impl State {
    /// A claim has ended: a slot of its job may have waited for that.
    fn forget(&mut self, run: RunId, attempt: AttemptNo) {
        if let Some(job) = self.claims.remove(run, attempt) {
            self.postponed.stir(job);
        }
    }
}

impl Board {
    /// These claims have ended, and these runs may be claimed next. Answers whether fire has something to look at.
    pub(crate) fn settled(&self, ended: &[EndedClaim], next: &[DueRun]) -> bool {
        let mut guard = self.state();
        let state = &mut *guard;
        for claim in ended {
            // A write that is under way may answer the run as ours although it has ended.
            let end = LastEnd {
                attempt: claim.attempt,
                released: claim.released,
            };
            state.wheel.end_claim(claim.run, end);
            if claim.waits
                && let Some(holding) = state.claims.by_run.get_mut(&claim.run)
                && let Some(origin) = holding.origin.take()
            {
                origin.waits(&[claim.run]);
            }
            state.forget(claim.run, claim.attempt);
        }
        let mut inserted = false;
        for run in next {
            inserted |= state.wheel.insert_run(*run, run.due_at);
        }
        inserted || state.fire_waits()
    }

    /// The store has let go of these claims.
    pub(crate) fn forget(&self, claims: impl Iterator<Item = (RunId, AttemptNo)>) {
        let mut state = self.state();
        for (run, attempt) in claims {
            state.forget(run, attempt);
        }
    }
}
