//! Withdrawal: runs that end before an end of their own. Only the holder of a claim knows what it dispatched,
//! so what is held is marked, and its holder answers.

use model::view::Needs;
use model::{PresenceId, RunId, TenantId, Timestamp};

use super::state::State;
use crate::audit::Change;
use crate::{Cancelled, StoreError, Withdrawal};

impl State {
    pub(super) fn cancel_run(&mut self, tenant: TenantId, id: RunId, now: Timestamp) -> Cancelled {
        let ended = self.history.get(&id).filter(|run| run.tenant == tenant);
        let Some(job) = self.live.runs.get(&id).or(ended).map(|run| run.job) else {
            return Cancelled::Missing;
        };
        let mut view = self.view(job);
        let needs = Needs {
            named: Some(id),
            ..Needs::default()
        };
        view.history = self.read_history(job, needs);
        let cancelled = view.cancel_run(tenant, id, now);
        self.apply(job, view.effects);
        if matches!(cancelled, Cancelled::Done(_) | Cancelled::Marked) {
            self.audit(Change::run_cancelled(tenant, job, id));
        }
        cancelled
    }

    pub(super) fn withdraw(
        &mut self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.living(presence)?;
        for answer in answers {
            if let Some(job) = self.live.runs.get(&answer.run).map(|run| run.job) {
                let mut view = self.view(job);
                view.history = self.read_history(job, view.needs_to_take_back());
                view.withdraw(*answer, presence, now);
                self.apply(job, view.effects);
            }
        }
        Ok(())
    }
}
