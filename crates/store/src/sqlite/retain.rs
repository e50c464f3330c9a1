//! Retention: one bounded step of forgetting. What is to go is looked for by a reader; the writer
//! only removes it, and looks once more before it does.
//!
//! A day of history is too much to drop at once, since SQLite reads every page that it gives up. So it goes in steps, each a
//! transaction that holds the writer for some milliseconds, and what is left says which is next:
//!
//! ```text
//!   history_19675 ──▶ fewer rows, if they are many ──▶ gone_19675, out of history, without indexes ──▶ fewer rows ──▶ nothing
//! ```
//!
//! Rows go in the order of the table, so that whole pages are given up; an index is in another order, and would be written
//! all over. That is why indexes go first, whole, and why a day must not have too many rows for that.

use std::time::Duration;

use model::limits::{IDEMPOTENCY_KEEP, RETENTION_BATCH_MAX};
use model::runs_day::Day as RunsDay;
use model::{JobId, TenantId, Timestamp, Usage};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::archive::Partitions;
use super::calendars::unname_calendars;
use super::db::Db;
use super::fault::Done;
use super::jobs::drop_labels;
use super::rows::Tenant;
use super::uses::Uses;
use crate::{Keep, Retained};

/// Rows of a day whose indexes may go at once.
const ROWS_MAX: i64 = if cfg!(test) { 3_000 } else { 250_000 };
/// Rows that go together, at most 128 KiB each; and while they are in indexes, where each is in a page of its own.
const ROWS: u16 = 200;
const ROWS_INDEXED: u16 = 500;
/// For so long rows go, before the writer does something else.
const STEP: Duration = Duration::from_millis(10);

/// What is over, as a reader found it.
pub(super) struct Over {
    jobs: Vec<JobId>,
    day: Option<Day>,
}

/// The oldest day whose keep time is over.
#[derive(Clone, Copy)]
struct Day {
    day: i64,
    is_large: bool,
}

pub(super) fn find_over(conn: &Connection, keep: &Keep) -> Done<Over> {
    let batch = i64::try_from(RETENTION_BATCH_MAX).unwrap_or(i64::MAX);
    let mut select = conn.prepare_cached(include_str!("sql/retain_deleted.sql"))?;
    let deleted = select.query_map([batch], |row| row.get(0).map(JobId::from_bytes))?;
    let mut jobs: Vec<JobId> = deleted.collect::<rusqlite::Result<_>>()?;
    let left = batch.saturating_sub(i64::try_from(jobs.len()).unwrap_or(i64::MAX));
    let mut select = conn.prepare_cached(include_str!("sql/retain_finished.sql"))?;
    let until = keep.now.minus(keep.finished).as_millis();
    for id in select.query_map([until, left], |row| row.get(0).map(JobId::from_bytes))? {
        jobs.push(id?);
    }
    let until = keep.now.minus(keep.history);
    let day = Partitions::read(conn)?.oldest_over(until);
    let day = day.map(|day| measure(conn, day)).transpose()?;
    Ok(Over { jobs, day })
}

fn measure(conn: &Connection, day: i64) -> Done<Day> {
    let sql = Partitions::sql(include_str!("sql/is_large.sql"), day);
    let is_large = conn.prepare(&sql)?.exists([ROWS_MAX])?;
    Ok(Day { day, is_large })
}

/// Deletes so many of the oldest rows of a table. Answers whether it had as many.
fn shrink(conn: &Connection, table: &str, rows: u16) -> Done<bool> {
    let sql = include_str!("sql/shrink_partition.sql").replace("{table}", table);
    Ok(conn.prepare_cached(&sql)?.execute([rows])? == usize::from(rows))
}

/// What a job took; one that was deleted had given it back.
fn read_gone(row: &Row<'_>) -> rusqlite::Result<(TenantId, Usage)> {
    let Tenant(tenant) = row.get(0)?;
    let taken = Usage {
        jobs: 1,
        payload_bytes: row.get::<_, i64>(2)?.unsigned_abs(),
    };
    let is_gone: bool = row.get(1)?;
    Ok((tenant, if is_gone { Usage::default() } else { taken }))
}

impl Db {
    pub(super) fn retain(&mut self, keep: &Keep, over: &Over) -> Done<Retained> {
        let history = self.drop_history(keep.now.minus(keep.history), over.day)?;
        if let Some(history) = history {
            return Ok(history);
        }
        let more_requests = self.drop_requests(keep.now.minus(IDEMPOTENCY_KEEP))?;
        let jobs = self.drop_jobs(&over.jobs, keep.now.minus(keep.finished))?;
        self.drop_replays(keep.now.minus(keep.finished))?;
        let swept = self.sweep_tenants(keep.now)?;
        let more_rollups = self.drop_rollups(keep.now)?;
        self.sweep_outside(keep)?;
        self.forget_presences()?;
        self.drop_run_counts(RunsDay::of(keep.now).before())?;
        Ok(Retained {
            partitions: 0,
            jobs,
            more: more_requests || more_rollups || swept || over.jobs.len() == RETENTION_BATCH_MAX,
        })
    }

    /// One step of dropping a day; none if there is nothing to drop.
    fn drop_history(&mut self, until: Timestamp, over: Option<Day>) -> Done<Option<Retained>> {
        let mut step = Retained {
            more: true,
            ..Retained::default()
        };
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/gone_partition.sql"))?;
        let gone = select.query_row([], |row| row.get(0)).optional()?;
        drop(select);
        if let Some(day) = gone {
            self.drop_rows(day)?;
            return Ok(Some(step));
        }
        // Only now: a straggler may have come since it was found.
        let over = over.filter(|it| self.partitions.oldest_over(until) == Some(it.day));
        let Some(Day { day, is_large }) = over else {
            return Ok(None);
        };
        if is_large {
            let table = Partitions::sql("history_{day}", day);
            shrink(&self.conn, &table, ROWS_INDEXED)?;
        } else {
            let sql = Partitions::sql(include_str!("sql/detach_partition.sql"), day);
            self.conn.execute_batch(&sql)?;
            self.partitions.remove(day);
            step.partitions = 1;
        }
        Ok(Some(step))
    }

    /// What is left of a day that has left history goes, as far as there is time.
    fn drop_rows(&mut self, day: i64) -> Done<()> {
        let clock = self.shared.clock.clone();
        let begun = clock.uptime();
        let table = Partitions::sql("gone_{day}", day);
        while shrink(&self.conn, &table, ROWS)? {
            if clock.uptime().saturating_sub(begun) >= STEP {
                return Ok(());
            }
        }
        let sql = Partitions::sql(include_str!("sql/drop_partition.sql"), day);
        self.conn.execute_batch(&sql)?;
        Ok(())
    }

    fn drop_requests(&mut self, until: Timestamp) -> Done<bool> {
        let mut delete = self
            .conn
            .prepare_cached(include_str!("sql/retain_requests.sql"))?;
        let batch = i64::try_from(RETENTION_BATCH_MAX).unwrap_or(i64::MAX);
        Ok(delete.execute(params![until.as_millis(), batch])? == RETENTION_BATCH_MAX)
    }

    fn drop_jobs(&mut self, jobs: &[JobId], finished: Timestamp) -> Done<u32> {
        let conn = &self.conn;
        let mut narrow = conn.prepare_cached(include_str!("sql/retain_job.sql"))?;
        let mut wide = conn.prepare_cached(include_str!("sql/retain_def.sql"))?;
        let mut versions = conn.prepare_cached(include_str!("sql/retain_versions.sql"))?;
        let (mut dropped, mut uses) = (0, Uses::default());
        for id in jobs {
            if narrow.execute(params![id.as_bytes(), finished.as_millis()])? == 1 {
                let gone = wide.query_row([id.as_bytes()], read_gone).optional()?;
                if let Some((tenant, taken)) = gone {
                    // Less is always admitted.
                    let _admitted = uses.admit(conn, tenant, taken, Usage::default())?;
                }
                versions.execute([id.as_bytes()])?;
                drop_labels(conn, *id)?;
                unname_calendars(conn, *id)?;
                dropped += 1;
            }
        }
        uses.write(conn)?;
        Ok(dropped)
    }

    fn forget_presences(&mut self) -> Done<()> {
        let mut delete = self
            .conn
            .prepare_cached(include_str!("sql/retain_presence.sql"))?;
        let mut presences = self.shared.presences();
        for (id, no) in presences.forgettable() {
            delete.execute([no])?;
            presences.forget(id);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "retain_tests.rs"]
mod tests;
