//! Withdrawal: runs that end before an end of their own. Only the holder of a claim knows what it dispatched, so what
//! is held is marked, and its holder answers.

use std::collections::BTreeSet;

use model::view::View;
use model::{PresenceId, RunId, TenantId, Timestamp};
use uuid::Uuid;

use super::fault::Done;
use super::fire::live_named;
use super::needs::ended_named;
use super::store::PgStore;
use super::views::{Lock, Views};
use crate::row::Payloads;
use crate::{Cancelled, StoreError, Withdrawal};

impl PgStore {
    pub(super) async fn try_cancel_run(
        &self,
        tenant: TenantId,
        id: RunId,
        now: Timestamp,
    ) -> Done<Cancelled> {
        let conn = self.clients.begin().await?;
        let live = live_named(&conn, &[id.0], Payloads::Small).await?;
        if let Some(job) = live.first().map(|row| row.run.job) {
            let mut views = Views::load(&conn, &[job.0], Lock::JobsAndRuns).await?;
            if views.run(job, id).is_some() {
                views.read_resting(&conn).await?;
                let answer = views.view(job).cancel_run(tenant, id, now);
                views.flush(self, &conn).await?;
                conn.commit().await?;
                return Ok(answer);
            }
        }
        let ended = ended_named(&conn, &[id.0]).await?.remove(&id);
        let mut view = View::default();
        view.history.named = ended.filter(|(of, _)| *of == tenant).map(|(_, how)| how);
        Ok(view.cancel_run(tenant, id, now))
    }

    pub(super) async fn try_withdraw(
        &self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Done<()> {
        let conn = self.pool.begin().await?;
        self.hold(&conn, presence)
            .await?
            .ok_or(StoreError::Fenced)?;
        let names: Vec<Uuid> = answers.iter().map(|answer| answer.run.0).collect();
        let live = live_named(&conn, &names, Payloads::Small).await?;
        let marked = live
            .iter()
            .filter(|row| row.run.claim == Some(presence) && row.run.mark.is_some());
        let jobs: BTreeSet<Uuid> = marked.map(|row| row.run.job.0).collect();
        let jobs: Vec<Uuid> = jobs.into_iter().collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let mut views = Views::load(&conn, &jobs, Lock::JobsAndRuns).await?;
        views.read_jobs(&conn, &jobs, Payloads::Small).await?;
        let needs = views.jobs.iter();
        let needs = needs.map(|(job, held)| (*job, held.view.needs_to_take_back()));
        let needs: Vec<_> = needs.collect();
        views.read_history(&conn, &needs).await?;
        for answer in answers {
            let job = live.iter().find(|row| row.run.id == answer.run);
            if let Some(job) = job.map(|row| row.run.job) {
                views.view(job).withdraw(*answer, presence, now);
            }
        }
        views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(())
    }
}
