//! Withdrawal: runs that end before an end of their own. Only the holder of a claim knows what it dispatched, so what
//! is held is marked, and its holder answers.

use std::collections::BTreeSet;

use model::{Ask, JobId, PresenceId, Reason, RunId, TenantId, Timestamp};
use uuid::Uuid;

use super::fault::{Done, bad_row};
use super::fire::live_named;
use super::rows::word;
use super::scene::{Lock, Scene};
use super::store::PgStore;
use crate::doc;
use crate::{Cancelled, StoreError, Withdrawal};

impl PgStore {
    pub(super) async fn try_cancel_run(
        &self,
        tenant: TenantId,
        id: RunId,
        now: Timestamp,
    ) -> Done<Cancelled> {
        let conn = self.pool.begin().await?;
        let live = live_named(&conn, &[id.0]).await?;
        let job = live.get(&id).map(|row| row.run.job);
        let mut scene = match job {
            Some(job) => Scene::load(&conn, &[job.0], Lock::JobsAndRuns).await?,
            None => Scene::default(),
        };
        let Some((job, run)) = job.and_then(|job| Some((job, scene.run(job, id)?.run.clone())))
        else {
            let sql = include_str!("sql/named_ended.sql");
            let row = conn.row(sql, &[&[id.0].as_slice()]).await?;
            let Some(row) = row.filter(|row| row.get::<_, Uuid>(3) == tenant.0) else {
                return Ok(Cancelled::Missing);
            };
            return Ok(Cancelled::Ended(word(&row, 1)?));
        };
        if run.tenant != tenant {
            return Ok(Cancelled::Missing);
        }
        let resting = scene.resting();
        scene.read_full(&conn, &resting).await?;
        let answer = match run.claim {
            Some(_) => {
                scene.ask(job, id, Ask::Cancel(Reason::Asked));
                Cancelled::Asked
            }
            None => {
                let Some(row) = scene.cancel(job, id, Reason::Asked, now) else {
                    return Ok(Cancelled::Missing);
                };
                scene.free(job, now);
                let attempts = doc::decode_attempts(row.attempts.as_deref());
                let mut run = row.run;
                run.attempts = attempts.map_err(|error| bad_row(id, &error))?;
                Cancelled::Done(Box::new(run))
            }
        };
        scene.writes.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answer)
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
            .ok_or(StoreError::Barred)?;
        let names: Vec<Uuid> = answers.iter().map(|answer| answer.run.0).collect();
        let live = live_named(&conn, &names).await?;
        let asked = live
            .values()
            .filter(|row| row.run.claim == Some(presence) && row.run.ask.is_some());
        let jobs: BTreeSet<Uuid> = asked.map(|row| row.run.job.0).collect();
        let jobs: Vec<Uuid> = jobs.into_iter().collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let mut scene = Scene::load(&conn, &jobs, Lock::JobsAndRuns).await?;
        scene.read_full(&conn, &jobs).await?;
        let ids: Vec<JobId> = jobs.iter().copied().map(JobId).collect();
        scene.read_ran_before(&conn, &ids).await?;
        for answer in answers {
            let Some(job) = live.get(&answer.run).map(|row| row.run.job) else {
                continue;
            };
            let asked = scene.run(job, answer.run).is_some_and(|row| {
                row.run.claim == Some(presence) && row.run.ask == Some(Ask::TakeBack)
            });
            match (asked, answer.taken_back) {
                (false, _) => {}
                (true, false) => scene.ask(job, answer.run, Ask::TooLate),
                (true, true) => {
                    scene.take_back(job, answer.run, now);
                    scene.rest(job);
                    scene.free(job, now);
                }
            }
        }
        scene.writes.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(())
    }
}
