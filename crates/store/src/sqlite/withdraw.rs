//! Withdrawal: runs that end before an end of their own. Only the holder of a claim knows what it
//! dispatched, so what is held is marked, and its holder answers.

use model::{Ask, JobId, PresenceId, Reason, Run, RunId, TenantId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::db::Db;
use super::fault::Done;
use super::history::{ended_run, live_run};
use crate::code::Code;
use crate::{Cancelled, Withdrawal};

impl Db {
    /// Marks a run that someone holds. A wish to end it is never weakened to one to take it back.
    pub fn ask(&mut self, run: &Run, ask: Ask) -> Done<()> {
        let ask = match (run.ask, ask) {
            (Some(Ask::Cancel(reason)), Ask::TakeBack | Ask::TooLate) => Ask::Cancel(reason),
            (Some(Ask::Cancel(_)), Ask::Cancel(_))
            | (None | Some(Ask::TakeBack | Ask::TooLate), _) => ask,
        };
        let mut update = self.conn.prepare_cached(include_str!("sql/ask.sql"))?;
        update.execute(params![run.id.as_bytes(), ask.code()])?;
        Ok(())
    }

    /// A job's live runs, oldest first.
    pub fn live_of_job(&self, job: JobId) -> Done<Vec<Run>> {
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/live_of_job.sql"))?;
        let ids = select.query_map([job.as_bytes()], |row| row.get(0))?;
        let ids = ids.collect::<rusqlite::Result<Vec<[u8; 16]>>>()?;
        let mut runs = Vec::with_capacity(ids.len());
        for id in ids {
            runs.extend(live_run(&self.conn, RunId::from_bytes(id))?);
        }
        Ok(runs)
    }

    /// Lets the oldest waiting run of a job go when no other moves.
    pub fn free_waiting(&mut self, job: JobId) -> Done<Option<RunId>> {
        free_waiting(&self.conn, job)
    }

    /// Takes a run back as its holder says so; others of its job may live on.
    pub fn take_back_alone(&mut self, run: &Run, now: Timestamp) -> Done<()> {
        if let Some(job) = self.take_back(run, now)? {
            self.rest(job)?;
        }
        Ok(())
    }

    pub fn cancel_run(&mut self, tenant: TenantId, id: RunId, now: Timestamp) -> Done<Cancelled> {
        let Some(run) = live_run(&self.conn, id)? else {
            let found = ended_run(&self.conn, &self.ranges, id)?;
            let found = found.filter(|run| run.tenant == tenant);
            return Ok(found.map_or(Cancelled::Missing, |run| Cancelled::Ended(run.state)));
        };
        if run.tenant != tenant {
            return Ok(Cancelled::Missing);
        }
        if run.claim.is_some() {
            self.ask(&run, Ask::Cancel(Reason::Asked))?;
            return Ok(Cancelled::Asked);
        }
        let run = self.cancel(run, Reason::Asked, now)?;
        self.free_waiting(run.job)?;
        self.wake(run.job, now)?;
        Ok(Cancelled::Done(Box::new(run)))
    }

    pub fn withdraw(
        &mut self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Done<()> {
        self.shared.presences().living(presence)?;
        for answer in answers {
            let run = live_run(&self.conn, answer.run)?
                .filter(|run| run.claim == Some(presence) && run.ask == Some(Ask::TakeBack));
            let Some(run) = run else { continue };
            if answer.taken_back {
                self.take_back_alone(&run, now)?;
                self.free_waiting(run.job)?;
                self.wake(run.job, now)?;
            } else {
                self.ask(&run, Ask::TooLate)?;
            }
        }
        Ok(())
    }
}

pub(super) fn free_waiting(conn: &Connection, job: JobId) -> Done<Option<RunId>> {
    let mut update = conn.prepare_cached(include_str!("sql/free_waiting.sql"))?;
    let freed = update
        .query_row([job.as_bytes()], |row| row.get(0))
        .optional()?;
    Ok(freed.map(RunId::from_bytes))
}
