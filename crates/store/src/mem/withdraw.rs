//! Withdrawal: runs that end before an end of their own. Only the holder of a claim knows what it dispatched,
//! so what is held is marked, and its holder answers.

use model::{Ask, PresenceId, Reason, RunId, TenantId, Timestamp};

use super::state::State;
use crate::{Cancelled, StoreError, Withdrawal};

impl State {
    /// Marks a run that someone holds. A wish to end it is never weakened to one to take it back.
    pub fn ask(&mut self, id: RunId, ask: Ask) {
        let Some(run) = self.live.runs.get_mut(&id) else {
            return;
        };
        run.ask = match (run.ask, ask) {
            (Some(Ask::Cancel(reason)), Ask::TakeBack | Ask::TooLate) => Some(Ask::Cancel(reason)),
            (Some(Ask::Cancel(_)), Ask::Cancel(_))
            | (None | Some(Ask::TakeBack | Ask::TooLate), _) => Some(ask),
        };
    }

    pub fn cancel_run(&mut self, tenant: TenantId, id: RunId, now: Timestamp) -> Cancelled {
        let Some(run) = self.live.runs.get(&id) else {
            let ended = self.history.get(&id).filter(|run| run.tenant == tenant);
            return ended.map_or(Cancelled::Missing, |run| Cancelled::Ended(run.state));
        };
        if run.tenant != tenant {
            return Cancelled::Missing;
        }
        if run.claim.is_some() {
            self.ask(id, Ask::Cancel(Reason::Asked));
            return Cancelled::Asked;
        }
        let Some(ended) = self.cancel(id, Reason::Asked, now) else {
            return Cancelled::Missing;
        };
        self.free(ended.job, now);
        Cancelled::Done(Box::new(ended))
    }

    pub fn withdraw(
        &mut self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.living(presence)?;
        for answer in answers {
            let asked = self
                .live
                .runs
                .get_mut(&answer.run)
                .filter(|run| run.claim == Some(presence) && run.ask == Some(Ask::TakeBack));
            let Some(run) = asked else { continue };
            if answer.taken_back {
                let (id, job) = (run.id, run.job);
                self.take_back(id, now);
                self.rest(job);
                self.free(job, now);
            } else {
                run.ask = Some(Ask::TooLate);
            }
        }
        Ok(())
    }
}
