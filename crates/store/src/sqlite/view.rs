//! What a decision sees of one job, and how its effects are written.

use std::time::Duration;

use model::job::Standing;
use model::view::{Changed, Effects, History, Needs, PAST_BACK, PAST_MAX, Past, Span, View};
use model::{Job, JobId, PresenceId, Run, RunId, Slot, Stretch, Timestamp, Version};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::archive::Partitions;
use super::db::{Db, insert_live, waiting_column};
use super::fault::{Done, Fault};
use super::history::ended_row;
use super::jobs::load_job;
use super::rows::{LiveRow, RunRow, Word};
use crate::code::{Code, bad_row, read_stretch, stretch_columns, wait_columns};
use crate::row::EndedRow;
use crate::{StoreError, doc};

const MILLISECOND: Duration = Duration::from_millis(1);

impl Db {
    /// A job as it stands, and its living runs.
    pub(super) fn view(&self, id: JobId) -> Done<View> {
        let mut view = self.view_of_runs(id)?;
        self.read_job(id, &mut view)?;
        Ok(view)
    }

    /// The same for a firing. A job of the version that plan has read has the definition that plan has read, so only
    /// where it stands is looked up.
    pub(super) fn view_as_planned(&self, planned: &Job) -> Done<View> {
        let mut view = self.view_of_runs(planned.id)?;
        match standing(&self.conn, planned.id)? {
            Some((version, stands)) if version == planned.version => {
                view.job = Some(planned.at_standing(stands));
            }
            Some(_) | None => self.read_job(planned.id, &mut view)?,
        }
        Ok(view)
    }

    /// The living runs alone, for decisions that the job does not matter to. Attempts that cannot be read are left out,
    /// so that one bad row does not stand in the way of the job's other runs.
    pub(super) fn view_of_runs(&self, id: JobId) -> Done<View> {
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/live_of_job.sql"))?;
        let mut rows = select.query([id.as_bytes()])?;
        let mut view = View::default();
        while let Some(row) = rows.next()? {
            let run = RunRow::read_live(row)?.decode_or_head();
            view.live.insert(run.id, run);
        }
        Ok(view)
    }

    /// Adds the job. One that cannot be read is none; if it rests, the view says why.
    pub(super) fn read_job(&self, id: JobId, view: &mut View) -> Done<()> {
        match load_job(&self.conn, id) {
            Err(Fault::Store(StoreError::BadRow(bad))) => {
                view.unreadable = Some(bad.detail).filter(|_| self.resting.contains(id));
            }
            read => view.job = read?,
        }
        Ok(())
    }

    /// Reads what a decision needs of history.
    pub(super) fn read_history(&self, job: JobId, needs: Needs) -> Done<History> {
        let Needs {
            ran,
            skips,
            named,
            past,
        } = needs;
        let mut history = History::default();
        if let Some(id) = named {
            let found = ended_row(&self.conn, &self.partitions, id)?;
            history.named = found.map(|row| (row.run.state, row.run.reason));
        }
        if let Some(moment) = past {
            history.past = self.past(job, moment)?;
        }
        if let Some(span) = ran {
            history.ran = self.ran(job, span)?.into_iter().collect();
        }
        if let Some((first, _)) = ran.filter(|_| skips) {
            history.skips = self.skips(job, first)?.into_iter().collect();
        }
        Ok(history)
    }

    /// Slots of a span whose runs have ended.
    fn ran(&self, job: JobId, (first, end): Span) -> Done<Vec<Slot>> {
        let (first, end) = (RunId::least_at(first), RunId::least_at(end));
        let mut found = Vec::new();
        if first >= end {
            return Ok(found);
        }
        for day in self.days(first, end) {
            let sql = Partitions::sql(include_str!("sql/ran_partition.sql"), day);
            let mut select = self.conn.prepare_cached(&sql)?;
            let span = params![job.as_bytes(), first.as_bytes(), end.as_bytes()];
            let ids = select.query_map(span, |row| row.get(0).map(RunId::from_bytes))?;
            for id in ids {
                found.push(Slot(id?.at()));
            }
        }
        Ok(found)
    }

    /// Skip records that reach beyond a moment. Of those that begin before it only the last can, and none beyond its
    /// day.
    fn skips(&self, job: JobId, first: Timestamp) -> Done<Vec<(RunId, Stretch)>> {
        let after = RunId::least_at(first.plus(MILLISECOND));
        let today = Partitions::partition_of(RunId::least_at(first));
        let mut found = Vec::new();
        let mut read = |sql, day| -> Done<()> {
            let mut select = self.conn.prepare_cached(&Partitions::sql(sql, day))?;
            let mut rows = select.query(params![job.as_bytes(), after.as_bytes()])?;
            while let Some(row) = rows.next()? {
                let id = RunId::from_bytes(row.get(0)?);
                if row.get(3)? {
                    found.push((id, read_stretch(id, row.get(1)?, row.get(2)?)));
                }
            }
            Ok(())
        };
        for day in self.partitions.days.range(today..) {
            read(include_str!("sql/skips_partition.sql"), *day)?;
            if *day == today {
                read(include_str!("sql/skips_partition_before.sql"), *day)?;
            }
        }
        Ok(found)
    }

    /// Runs that were under way at a moment and have ended since, the newest first.
    fn past(&self, job: JobId, moment: Timestamp) -> Done<Vec<Past>> {
        let first = RunId::least_at(moment.minus(PAST_BACK));
        let end = RunId::least_at(moment);
        let mut read: Vec<Option<Past>> = Vec::new();
        for day in self.days(first, end).into_iter().rev() {
            let sql = Partitions::sql(include_str!("sql/past_partition.sql"), day);
            let mut select = self.conn.prepare_cached(&sql)?;
            let left = PAST_MAX.saturating_sub(read.len()) as u64;
            let span = params![
                job.as_bytes(),
                first.as_bytes(),
                end.as_bytes(),
                left.cast_signed()
            ];
            let runs = select.query_map(span, read_past)?;
            read.extend(runs.collect::<rusqlite::Result<Vec<_>>>()?);
        }
        let under_way = |run: &Past| run.dispatched_at < moment && run.settled_at > moment;
        Ok(read.into_iter().flatten().filter(under_way).collect())
    }

    /// The days of history that ids of a span belong to, oldest first.
    fn days(&self, first: RunId, end: RunId) -> Vec<i64> {
        let days = Partitions::partition_of(first)..=Partitions::partition_of(end);
        self.partitions.days.range(days).copied().collect()
    }

    /// Writes what was decided about a job.
    pub(super) fn apply(&mut self, id: JobId, effects: Effects) -> Done<()> {
        if let Some(job) = &effects.job {
            self.audit_end(job)?;
            self.put_standing(job)?;
            if let Some(before) = &effects.paused {
                self.pause(before, job)?;
            }
        }
        if let Some((why, at)) = effects.park {
            self.park(&[(id, why)], at)?;
        }
        for run in effects.remove {
            self.remove_live(run.id)?;
        }
        for changed in effects.change.values() {
            self.change_live(changed)?;
        }
        for (id, left) in effects.skips {
            self.shorten_skip(id, left)?;
        }
        for run in effects.history.into_values() {
            self.put_ended(&EndedRow::new(run)?)?;
        }
        for run in effects.insert {
            self.insert_run(run)?;
        }
        self.change_handed(effects.handed)?;
        Ok(())
    }

    fn insert_run(&mut self, run: Run) -> Done<()> {
        let number = |holder| self.shared.presences().number(holder);
        let claim = run.claim.and_then(number);
        let row = LiveRow::new(run)?;
        let mut insert = self.conn.prepare_cached(include_str!("sql/put_live.sql"))?;
        self.live += u64::from(insert_live(&mut insert, &row, claim)?);
        self.crowded |= row.run.waits_for_turn();
        Ok(())
    }

    /// Attempts that stay as they are stay as they are written: they may not have been readable.
    fn change_live(&self, Changed { was, now }: &Changed) -> Done<()> {
        let tried = was.attempts != now.attempts;
        let attempts = doc::encode_live(now.trace.as_deref(), &now.attempts)
            .map_err(|e| bad_row(now.id, &e))?;
        let mut update = self
            .conn
            .prepare_cached(include_str!("sql/change_live.sql"))?;
        update.execute(params![
            now.id.as_bytes(),
            now.state.code(),
            now.attempt.0,
            now.due_at.as_millis(),
            now.lost,
            claim_code(now.claim),
            now.mark.map(Code::code),
            waiting_column(now),
            now.dispatched_at.map(Timestamp::as_millis),
            tried,
            attempts,
            wait_columns(now).0,
            wait_columns(now).1,
        ])?;
        Ok(())
    }

    /// A skip record goes, or ends earlier.
    fn shorten_skip(&self, id: RunId, left: Option<Stretch>) -> Done<()> {
        let day = Partitions::partition_of(id);
        if let Some(left) = left {
            let sql = Partitions::sql(include_str!("sql/shorten_skip_partition.sql"), day);
            let (last, count) = stretch_columns(left.several());
            let row = params![id.as_bytes(), last, count];
            self.conn.prepare_cached(&sql)?.execute(row)?;
        } else {
            let sql = Partitions::sql(include_str!("sql/delete_skip_partition.sql"), day);
            self.conn.prepare_cached(&sql)?.execute([id.as_bytes()])?;
        }
        Ok(())
    }
}

/// Where a job stands, and at which version.
fn standing(conn: &Connection, id: JobId) -> Done<Option<(Version, Standing)>> {
    let mut select = conn.prepare_cached(include_str!("sql/standing.sql"))?;
    let moment = |at: Option<i64>| at.map(Timestamp::from_millis);
    let found = select.query_row([id.as_bytes()], |row| {
        let stands = Standing {
            state: row.get::<_, Word<_>>(1)?.0,
            state_at: Timestamp::from_millis(row.get(2)?),
            next_slot: moment(row.get(3)?).map(Slot),
            slot_last: moment(row.get(4)?),
            runs_made: row.get(5)?,
            catch_up_to: moment(row.get(6)?),
            manual_runs: row.get(7)?,
            failures: row.get(8)?,
        };
        Ok((Version(row.get(0)?), stands))
    });
    Ok(found.optional()?)
}

/// A claim goes, goes to the outside, or stays.
fn claim_code(claim: Option<PresenceId>) -> i8 {
    match claim {
        None => 0,
        Some(PresenceId::OUTSIDE) => -1,
        Some(_) => 1,
    }
}

/// None for one that was never dispatched.
fn read_past(row: &Row<'_>) -> rusqlite::Result<Option<Past>> {
    let (id, kind) = (RunId::from_bytes(row.get(0)?), row.get::<_, Word<_>>(1)?.0);
    let moments: (Option<i64>, Option<i64>) = (row.get(2)?, row.get(3)?);
    let moments = moments.0.zip(moments.1);
    Ok(moments.map(|(dispatched_at, settled_at)| Past {
        id,
        kind,
        dispatched_at: Timestamp::from_millis(dispatched_at),
        settled_at: Timestamp::from_millis(settled_at),
    }))
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
