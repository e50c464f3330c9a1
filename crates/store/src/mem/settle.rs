//! Settle: how attempts end, and with them most runs.

use model::{PresenceId, Timestamp};

use super::Flaw;
use super::state::State;
use crate::{Settled, Settlement};

impl State {
    /// Ends one attempt. `now` stands in for the moment of an attempt that never was.
    pub(super) fn settle(
        &mut self,
        by: PresenceId,
        settlement: &Settlement,
        now: Timestamp,
        flaw: Flaw,
    ) -> Settled {
        let job = settlement.run.job;
        let mut view = self.view(job);
        view.history = self.read_history(job, view.needs_to_settle(settlement, now));
        let blind = flaw == Flaw::SkipClaimCheck;
        let settled = match view.live.get(&settlement.run.id).cloned() {
            Some(live) if blind => view.settle_held(settlement, live, now),
            Some(_) | None => {
                let has_ended = |holder| self.living(holder).is_err();
                view.settle(settlement, by, has_ended, now)
            }
        };
        self.apply(job, view.effects);
        settled
    }
}
