//! Withdrawal: what becomes of claims that somebody wants back, and of those that a stop hands over. Only the holder knows
//! what it dispatched, so only it can say. And what readers are to be shown of runs under way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{AttemptNo, Job, Mark, Reason, Run, RunId, Timestamp, Verdict, limits};
use store::{Settlement, Withdrawal};

use super::Board;
use super::claims::{Claims, Holding, Stage};
use crate::offers::Offer;

/// What a holder answers to marks on its claims.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub withdrawals: Vec<Withdrawal>,
    pub settlements: Vec<Settlement>,
    /// Whether others may start in the place of these.
    pub frees: bool,
}

impl Answers {
    fn take_back(&mut self, holding: &mut Holding, run: RunId) {
        let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
        let (stage, taken_back) = match stage {
            Stage::Held(work) | Stage::Queued(work) | Stage::TakenBack(work) => {
                (Stage::TakenBack(work), true)
            }
            other @ (Stage::Running(_) | Stage::Ending) => (other, false),
        };
        holding.stage = stage;
        self.withdrawals.push(Withdrawal { run, taken_back });
    }

    fn cancel(&mut self, holding: &mut Holding, reason: Reason, now: Timestamp) {
        holding.reason = Some(reason);
        let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
        holding.stage = match stage {
            Stage::Held(work) | Stage::Queued(work) | Stage::TakenBack(work) => {
                let cancelled = work.undispatched(Verdict::Cancel(reason), now);
                self.settlements.push(cancelled);
                Stage::Ending
            }
            Stage::Running(work) => {
                work.stop.notify_one();
                Stage::Running(work)
            }
            other @ Stage::Ending => other,
        };
    }
}

impl Claims {
    /// The runs whose claims are at such a stage, by id.
    fn at(&self, is_there: impl Fn(&Stage) -> bool) -> BTreeSet<RunId> {
        let there = self.by_run.iter();
        let there = there.filter(|(_, holding)| is_there(&holding.stage));
        there.map(|(run, _)| *run).collect()
    }
}

impl Board {
    /// What becomes of marked claims. Whoever was dispatched is beyond taking back.
    pub(crate) fn answer(&self, marks: &[(RunId, Mark)], now: Timestamp) -> Answers {
        let mut answers = Answers::default();
        let mut state = self.state();
        for (run, mark) in marks {
            let Some(holding) = state.claims.by_run.get_mut(run) else {
                continue;
            };
            match mark {
                Mark::TakeBack => answers.take_back(holding, *run),
                Mark::Cancel(reason) => answers.cancel(holding, *reason, now),
                Mark::TooLate => {}
            }
            if !matches!(holding.stage, Stage::Queued(_)) {
                let kept_by = holding.kept_by.take();
                answers.frees |= kept_by.is_some();
                state.claims.give_up(kept_by, *run, Some(now));
            }
        }
        answers
    }

    /// What was taken back and is not known to be gone from the store.
    pub(crate) fn taken_back(&self) -> Vec<(Offer, RunId, AttemptNo)> {
        let state = self.state();
        let holdings = state.claims.by_run.values();
        let taken = holdings.filter_map(|holding| match &holding.stage {
            Stage::TakenBack(work) => {
                let run = &work.run;
                Some(((run.tenant, run.job), run.id, run.attempt))
            }
            Stage::Held(_) | Stage::Queued(_) | Stage::Running(_) | Stage::Ending => None,
        });
        let mut taken: Vec<_> = taken.collect();
        taken.sort_unstable();
        taken
    }

    /// What was taken back is ours after all.
    pub(crate) fn keep(&self, run: RunId) {
        let mut guard = self.state();
        let claims = &mut guard.claims;
        let Some(holding) = claims.by_run.get_mut(&run) else {
            return;
        };
        let stage = std::mem::replace(&mut holding.stage, Stage::Ending);
        holding.stage = match stage {
            Stage::TakenBack(work) => {
                claims.held.entry(work.run.due_at).or_default().push(run);
                Stage::Held(work)
            }
            other @ (Stage::Held(_) | Stage::Queued(_) | Stage::Running(_) | Stage::Ending) => {
                other
            }
        };
    }

    /// What has not been dispatched, to be handed back.
    pub(crate) fn release_waiting(&self) -> Vec<Settlement> {
        let mut state = self.state();
        let claims = &mut state.claims;
        let mut released = Vec::new();
        for run in claims.at(|stage| matches!(stage, Stage::Held(_) | Stage::Queued(_))) {
            let Some(holding) = claims.by_run.get_mut(&run) else {
                continue;
            };
            if let Stage::Held(work) | Stage::Queued(work) =
                std::mem::replace(&mut holding.stage, Stage::Ending)
            {
                released.push(work.undispatched(Verdict::Release, Timestamp::MIN));
            }
            if let Some(origin) = holding.kept_by.take() {
                // Whoever is next is released as well.
                origin.give_up(run);
            }
        }
        released
    }

    /// What is still under way, cut off where it stands.
    pub(crate) fn cut_off(&self) -> Vec<(Run, Arc<Job>, Option<Timestamp>)> {
        let mut state = self.state();
        let claims = &mut state.claims;
        let mut cut = Vec::new();
        for run in claims.at(|stage| matches!(stage, Stage::Running(_))) {
            let Some(holding) = claims.by_run.get_mut(&run) else {
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

    /// Runs under way that were asked for, or have been for a while, and that are not shown as `Running` yet.
    pub(crate) fn to_mark(&self, uptime: Duration) -> Vec<(RunId, Timestamp)> {
        let mut state = self.state();
        let claims = &mut state.claims;
        let mut runs = std::mem::take(&mut claims.requested);
        while let Some((since, run)) = claims.started.front().copied() {
            if uptime.saturating_sub(since) < limits::RUNNING_MARK_AFTER {
                break;
            }
            claims.started.pop_front();
            runs.push(run);
        }
        runs.retain(|run| {
            let holding = claims.by_run.get(run);
            holding.is_some_and(|holding| matches!(holding.stage, Stage::Running(_)))
        });
        let mut marks = Vec::with_capacity(runs.len());
        for run in runs {
            match claims.by_run.get(&run).and_then(|it| it.dispatched_at) {
                Some(dispatched_at) => marks.push((run, dispatched_at)),
                // It waits for its presence or its payload.
                None => claims.requested.push(run),
            }
        }
        marks
    }

    /// They could not be shown after all.
    pub(crate) fn mark_again(&self, marks: &[(RunId, Timestamp)]) {
        let mut state = self.state();
        for (run, _) in marks {
            state.claims.started.push_front((Duration::ZERO, *run));
        }
    }
}
