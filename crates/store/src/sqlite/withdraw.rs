//! Withdrawal: runs that end before an end of their own. Only the holder of a claim knows what it
//! dispatched, so what is held is marked, and its holder answers.

use model::view::Needs;
use model::{PresenceId, RunId, TenantId, Timestamp};

use super::db::Db;
use super::fault::Done;
use super::history::{ended_row, live_row};
use crate::audit::Change;
use crate::row::Payloads;
use crate::{Cancelled, Withdrawal};

impl Db {
    pub(super) fn cancel_run(
        &mut self,
        tenant: TenantId,
        id: RunId,
        now: Timestamp,
    ) -> Done<Cancelled> {
        let found = match live_row(&self.conn, id, Payloads::Small)? {
            None => ended_row(&self.conn, &self.partitions, id)?,
            live => live,
        };
        let Some(run) = found.map(|row| row.run).filter(|run| run.tenant == tenant) else {
            return Ok(Cancelled::Missing);
        };
        let mut view = self.view(run.job)?;
        let needs = Needs {
            named: Some(id),
            ..Needs::default()
        };
        view.history = self.read_history(run.job, needs)?;
        let cancelled = view.cancel_run(tenant, id, now);
        self.apply(run.job, view.effects)?;
        if matches!(cancelled, Cancelled::Done(_) | Cancelled::Marked) {
            self.audit(&Change::run_cancelled(tenant, run.job, id))?;
        }
        Ok(cancelled)
    }

    pub(super) fn withdraw(
        &mut self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Done<()> {
        self.shared.presences().living(presence)?;
        for answer in answers {
            let Some(job) =
                live_row(&self.conn, answer.run, Payloads::Small)?.map(|row| row.run.job)
            else {
                continue;
            };
            let mut view = self.view(job)?;
            view.history = self.read_history(job, view.needs_to_take_back())?;
            view.withdraw(*answer, presence, now);
            self.apply(job, view.effects)?;
        }
        Ok(())
    }
}
