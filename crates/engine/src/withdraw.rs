//! Withdrawal: what becomes of claims that somebody wants back, and of those that a stop hands
//! over. Only the holder knows what it dispatched, so only it can say.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{
    Attempt, AttemptNo, Job, Mark, Outcome, Reason, Report, Run, RunId, Timestamp, Verdict,
};
use store::Settlement;

use crate::dispatch::{Dispatch, Holding, Stage, Work};
use crate::handle::Offer;
use crate::lock;

/// What a holder answers to marks on its claims.
#[derive(Debug, Default)]
pub struct Answers {
    pub withdrawals: Vec<store::Withdrawal>,
    pub settlements: Vec<Settlement>,
}

impl Work {
    /// The end of an attempt that never left us.
    pub fn undispatched(self: Arc<Self>, verdict: Verdict, now: Timestamp) -> Settlement {
        let outcome = match verdict {
            Verdict::Release => None,
            Verdict::Succeed | Verdict::RetryAt(_) | Verdict::Bury(_) | Verdict::Cancel(_) => {
                Some(Outcome::Cancelled)
            }
        };
        let (run, _) = self.into_parts();
        let attempt =
            outcome.map(|outcome| Attempt::new(run.attempt, None, now, Report::of(outcome)));
        Settlement {
            run,
            verdict,
            attempt,
        }
    }
}

impl Dispatch {
    /// What becomes of marked claims. Whoever was dispatched is beyond taking back.
    pub fn answer(&self, marks: &[(RunId, Mark)], now: Timestamp) -> Answers {
        let mut answers = Answers::default();
        let mut state = lock(&self.state);
        for (run, mark) in marks {
            let Some(holding) = state.claims.get_mut(run) else {
                continue;
            };
            match mark {
                Mark::TakeBack => Self::take_back(holding, *run, &mut answers),
                Mark::Cancel(reason) => Self::cancel(holding, *reason, now, &mut answers),
                Mark::TooLate => {}
            }
        }
        answers
    }

    fn take_back(holding: &mut Holding, run: RunId, answers: &mut Answers) {
        let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
        let (stage, taken_back) = match stage {
            Stage::Held(work) | Stage::Queued(work) | Stage::TakenBack(work) => {
                (Stage::TakenBack(work), true)
            }
            other @ (Stage::Running(_) | Stage::Ending) => (other, false),
        };
        holding.stage = stage;
        answers
            .withdrawals
            .push(store::Withdrawal { run, taken_back });
    }

    fn cancel(holding: &mut Holding, reason: Reason, now: Timestamp, answers: &mut Answers) {
        holding.reason = Some(reason);
        let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
        holding.stage = match stage {
            Stage::Held(work) | Stage::Queued(work) | Stage::TakenBack(work) => {
                answers
                    .settlements
                    .push(work.undispatched(Verdict::Cancel(reason), now));
                Stage::Ending
            }
            Stage::Running(work) => {
                work.stop.notify_one();
                Stage::Running(work)
            }
            other @ Stage::Ending => other,
        };
    }

    /// What was taken back and is not known to be gone from the store.
    pub fn taken_back(&self) -> Vec<(Offer, RunId, AttemptNo)> {
        let state = lock(&self.state);
        let mut taken: Vec<_> = state
            .claims
            .values()
            .filter_map(|holding| match &holding.stage {
                Stage::TakenBack(work) => {
                    let run = &work.run;
                    Some(((run.tenant, run.job), run.id, run.attempt))
                }
                Stage::Held(_) | Stage::Queued(_) | Stage::Running(_) | Stage::Ending => None,
            })
            .collect();
        taken.sort_unstable();
        taken
    }

    /// What was taken back is ours after all.
    pub fn keep(&self, run: RunId) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        let Some(holding) = state.claims.get_mut(&run) else {
            return;
        };
        let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
        holding.stage = match stage {
            Stage::TakenBack(work) => {
                state.held.entry(work.run.due_at).or_default().push(run);
                Stage::Held(work)
            }
            other @ (Stage::Held(_) | Stage::Queued(_) | Stage::Running(_) | Stage::Ending) => {
                other
            }
        };
    }

    /// No attempt starts any more.
    pub fn close(&self) {
        lock(&self.state).closed = true;
    }

    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// What has not been dispatched, to be handed back.
    pub fn release_waiting(&self) -> Vec<Settlement> {
        let mut guard = lock(&self.state);
        let mut released = Vec::new();
        let waiting: BTreeSet<RunId> = guard
            .claims
            .iter()
            .filter(|(_, holding)| matches!(holding.stage, Stage::Held(_) | Stage::Queued(_)))
            .map(|(run, _)| *run)
            .collect();
        for run in waiting {
            let Some(holding) = guard.claims.get_mut(&run) else {
                continue;
            };
            if let Stage::Held(work) | Stage::Queued(work) =
                std::mem::replace(&mut holding.stage, Stage::Ending)
            {
                released.push(work.undispatched(Verdict::Release, Timestamp::MIN));
            }
        }
        released
    }

    /// What is still under way, cut off where it stands.
    pub fn cut_off(&self) -> Vec<(Run, Arc<Job>, Option<Timestamp>)> {
        let mut guard = lock(&self.state);
        let running: BTreeSet<RunId> = guard
            .claims
            .iter()
            .filter(|(_, holding)| matches!(holding.stage, Stage::Running(_)))
            .map(|(run, _)| *run)
            .collect();
        let mut cut = Vec::new();
        for run in running {
            let Some(holding) = guard.claims.get_mut(&run) else {
                continue;
            };
            let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
            if let Stage::Running(work) = stage {
                work.stop.notify_one();
                let (run, job) = work.into_parts();
                cut.push((run, job, holding.dispatched_at));
            }
        }
        cut
    }
}
