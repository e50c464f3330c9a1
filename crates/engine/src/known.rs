//! What a node knows of the runs it holds, before the store does: whether they were dispatched, and when they ended. Fire
//! tells the store, which has to know whether a run counts against a slot.

use model::view::{Known, grace};
use model::{JobId, RunId, Timestamp};

use crate::dispatch::{ClaimsOfJob, Dispatch, Holding, Stage, State};
use crate::lock;

impl State {
    /// The claims of a job.
    fn held_of(&self, job: JobId) -> impl Iterator<Item = (RunId, &Holding)> {
        let runs = self.living.get(&job).into_iter();
        let runs = runs.flat_map(ClaimsOfJob::iter);
        runs.filter_map(|run| Some((*run, self.claims.get(run)?)))
    }
}

impl Dispatch {
    /// What is known here of the job's runs: what fire tells the store.
    pub fn known(&self, job: JobId) -> Vec<Known> {
        let state = lock(&self.state);
        let known = state.held_of(job).map(|(run, holding)| Known {
            run,
            dispatched_at: holding.dispatched_at,
            ended_at: holding.ended_at,
        });
        known.collect()
    }

    /// When an attempt left that had to wait for its presence or its payload, once it has.
    pub fn set_dispatched(&self, run: RunId, at: Option<Timestamp>) {
        if let Some(holding) = lock(&self.state).claims.get_mut(&run) {
            holding.dispatched_at = at;
        }
    }

    /// When it shows whether the job's runs that are under way here count against a slot due at `due_at`.
    pub fn shows_at(&self, job: JobId, due_at: Timestamp) -> Timestamp {
        let state = lock(&self.state);
        let moments = state
            .held_of(job)
            .filter_map(|(_, holding)| match &holding.stage {
                Stage::Running(work) => {
                    let dispatched_at = holding.dispatched_at.filter(|at| *at < due_at)?;
                    Some(due_at.plus(grace(dispatched_at, work.run.due_at)))
                }
                Stage::Held(_) | Stage::Queued(_) | Stage::Ending | Stage::TakenBack(_) => None,
            });
        moments.max().unwrap_or(due_at)
    }
}
