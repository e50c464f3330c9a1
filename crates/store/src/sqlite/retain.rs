//! Retention: one bounded step of forgetting. What is to go is looked for by a reader; the writer
//! only removes it, and looks once more before it does.

use model::limits::{IDEMPOTENCY_KEEP, RETENTION_BATCH_MAX};
use model::{JobId, RunId, Timestamp};
use rusqlite::{Connection, params};

use super::archive::Ranges;
use super::calendars::unname_calendars;
use super::db::Db;
use super::fault::Done;
use super::jobs::drop_labels;
use crate::{Keep, Retained};

/// Jobs looked at by one step.
const LOOK_MAX: i64 = 20_000;
/// Pages given back by one step: about what a writer can do without anyone noticing.
const PAGES_MAX: i64 = 20_000;

/// What a look at the jobs found.
pub(super) struct Over {
    jobs: Vec<JobId>,
    /// Where the next look goes on; from the start when there is nothing more.
    pub next: Option<JobId>,
    /// Whether more than one step can remove was found.
    full: bool,
}

/// Jobs that are over, from `from` on: deleted ones first, since they are few and have an index.
pub(super) fn look(conn: &Connection, from: Option<JobId>, until: Timestamp) -> Done<Over> {
    let batch = i64::try_from(RETENTION_BATCH_MAX).unwrap_or(i64::MAX);
    let mut select = conn.prepare_cached(include_str!("sql/retain_deleted.sql"))?;
    let deleted = select.query_map([batch], |row| row.get(0).map(JobId::from_bytes))?;
    let mut over = Over {
        jobs: deleted.collect::<rusqlite::Result<_>>()?,
        next: None,
        full: false,
    };
    let mut select = conn.prepare_cached(include_str!("sql/retain_finished.sql"))?;
    let from = from.map_or(Vec::new(), |from| from.as_bytes().to_vec());
    let mut rows = select.query(params![from, until.as_millis(), LOOK_MAX])?;
    let (mut looked, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        let (id, finished) = (JobId::from_bytes(row.get(0)?), row.get(1)?);
        if over.jobs.len() == RETENTION_BATCH_MAX {
            (over.next, over.full) = (last, true);
            return Ok(over);
        }
        if finished {
            over.jobs.push(id);
        }
        looked += 1;
        last = Some(id);
    }
    over.next = last.filter(|_| looked == LOOK_MAX);
    over.full = over.jobs.len() == RETENTION_BATCH_MAX;
    Ok(over)
}

impl Db {
    pub fn retain(&mut self, keep: &Keep, over: &Over) -> Done<Retained> {
        let (ranges, more_ranges) = self.drop_ranges(keep.now.minus(keep.history))?;
        let more_requests = self.drop_requests(keep.now.minus(IDEMPOTENCY_KEEP))?;
        let jobs = self.drop_jobs(&over.jobs, keep.now.minus(keep.finished))?;
        self.forget_presences()?;
        let more = over.full || over.next.is_some() || more_ranges || more_requests;
        Ok(Retained { ranges, jobs, more })
    }

    /// Drops the days that ended at or before `until`, and before the oldest run that lives.
    fn drop_ranges(&mut self, until: Timestamp) -> Done<(u32, bool)> {
        let oldest: Option<[u8; 16]> =
            self.conn
                .query_row(include_str!("sql/oldest_live.sql"), [], |row| row.get(0))?;
        let oldest = oldest.map(|id| RunId::from_bytes(id).at());
        let until = oldest.map_or(until, |oldest| oldest.min(until));
        let days: Vec<i64> = self
            .ranges
            .0
            .iter()
            .copied()
            .filter(|day| Ranges::ends_at(*day) <= until)
            .collect();
        let (mut dropped, free) = (0, self.free_pages(&days)?);
        for day in &days {
            if dropped > 0 && self.free_pages(&days)? - free > PAGES_MAX {
                return Ok((dropped, true));
            }
            self.conn
                .execute_batch(&Ranges::sql(include_str!("sql/drop_range.sql"), *day))?;
            self.ranges.0.remove(day);
            dropped += 1;
        }
        Ok((dropped, false))
    }

    fn free_pages(&self, days: &[i64]) -> Done<i64> {
        if days.is_empty() {
            return Ok(0);
        }
        Ok(self
            .conn
            .query_row("PRAGMA freelist_count", [], |row| row.get(0))?)
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
        let mut dropped = 0;
        for id in jobs {
            if narrow.execute(params![id.as_bytes(), finished.as_millis()])? == 1 {
                wide.execute([id.as_bytes()])?;
                drop_labels(conn, *id)?;
                unname_calendars(conn, *id)?;
                dropped += 1;
            }
        }
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
