//! What a node knows of the runs it holds, before the store does: whether they were dispatched, and when they ended. Fire
//! tells the store, which has to know whether a run counts against a slot.

use model::view::{Known, grace};
use model::{JobId, RunId, Timestamp};

use crate::dispatch::{ClaimsOfJob, Dispatch, Stage};
use crate::lock;

impl Dispatch {
    /// What is known here of the job's runs: what fire tells the store.
    pub fn known(&self, job: JobId) -> Vec<Known> {
        let state = lock(&self.state);
        let runs = state
            .living
            .get(&job)
            .into_iter()
            .flat_map(ClaimsOfJob::iter);
        let known = runs.filter_map(|run| {
            let holding = state.claims.get(run)?;
            Some(Known {
                run: *run,
                dispatched_at: holding.dispatched_at,
                ended_at: holding.ended_at,
            })
        });
        known.collect()
    }

    /// When an attempt left that waits for its presence, once it has.
    pub fn set_dispatched(&self, run: RunId, at: Option<Timestamp>) {
        if let Some(holding) = lock(&self.state).claims.get_mut(&run) {
            holding.dispatched_at = at;
        }
    }

    /// When it shows whether the job's runs that are under way here count against a slot due at `due_at`.
    pub fn shows_at(&self, job: JobId, due_at: Timestamp) -> Timestamp {
        let state = lock(&self.state);
        let runs = state
            .living
            .get(&job)
            .into_iter()
            .flat_map(ClaimsOfJob::iter);
        let moments = runs.filter_map(|run| match &state.claims.get(run)?.stage {
            Stage::Running {
                work,
                dispatched_at,
            } if *dispatched_at < due_at => {
                Some(due_at.plus(grace(*dispatched_at, work.run.due_at)))
            }
            Stage::Held(_)
            | Stage::Queued(_)
            | Stage::Running { .. }
            | Stage::Ending
            | Stage::TakenBack(_) => None,
        });
        moments.max().unwrap_or(due_at)
    }
}
