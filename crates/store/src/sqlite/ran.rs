//! Slots that have a run: they are not decided again, nor told as skipped, when one after them is taken back.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{Job, JobId, RunId, Slot, Stretch, Timestamp};
use rusqlite::{Connection, params};

use super::archive::{Archive, Ranges, ended};
use super::db::Db;
use super::fault::Done;
use super::rows::EndedRow;
use crate::code::{read_told, stretch_columns};

const MILLISECOND: Duration = Duration::from_millis(1);

/// The slots of a job from `first` up to but not including `end` that have a run, live or ended, oldest first.
fn ran(
    conn: &Connection,
    ranges: &Ranges,
    job: JobId,
    first: Timestamp,
    end: Timestamp,
) -> Done<Vec<Slot>> {
    let (first, end) = (RunId::least_at(first), RunId::least_at(end));
    if first >= end {
        return Ok(Vec::new());
    }
    let mut found = BTreeSet::new();
    let mut look = |sql: &str| -> Done<()> {
        let mut select = conn.prepare_cached(sql)?;
        let ids = select.query_map(
            params![job.as_bytes(), first.as_bytes(), end.as_bytes()],
            |row| row.get(0).map(RunId::from_bytes),
        )?;
        for id in ids {
            found.insert(Slot(id?.at()));
        }
        Ok(())
    };
    look(include_str!("sql/ran_live.sql"))?;
    let days = Ranges::day_of(first)..=Ranges::day_of(end);
    for day in ranges.0.range(days) {
        look(&Ranges::sql(include_str!("sql/ran_day.sql"), *day))?;
    }
    Ok(found.into_iter().collect())
}

/// Writes a skipped entry around the slots that have a run; they are slots of `job`.
pub(super) fn put_skipped(archive: &mut Archive<'_>, entry: &EndedRow, job: &Job) -> Done<()> {
    let run = &entry.run;
    let Some(slots) = run.slots() else {
        return archive.put(entry);
    };
    let end = slots.last.0.plus(MILLISECOND);
    let found = ran(
        archive.conn(),
        archive.ranges(),
        run.job,
        slots.first.0,
        end,
    )?;
    if found.is_empty() {
        return archive.put(entry);
    }
    for run in run.clone().around(&job.def.schedule, &found) {
        archive.put(&ended(run)?)?;
    }
    Ok(())
}

impl Db {
    /// The slots before that of a run which have one too, as far as they may be decided anew with it.
    pub fn ran_before(&self, job: &Job, slot: Slot) -> Done<Vec<Slot>> {
        let first = job.decided_before(slot).plus(MILLISECOND);
        ran(&self.conn, &self.ranges, job.id, first, slot.0)
    }

    /// What was passed over after the job's last decided slot is not told any more: it is decided anew. Of entries
    /// that begin before it only the last can reach beyond, and none beyond its day.
    pub fn untell(&mut self, job: &Job) -> Done<()> {
        let last = job.slot_last.unwrap_or(Timestamp::MIN);
        let after = RunId::least_at(last.plus(MILLISECOND));
        let today = Ranges::day_of(RunId::least_at(last));
        for day in self.ranges.0.range(today..) {
            let mut told = self.told(include_str!("sql/told_day.sql"), *day, job.id, after)?;
            if *day == today {
                let sql = include_str!("sql/told_day_before.sql");
                told.extend(self.told(sql, *day, job.id, after)?);
            }
            for (id, slots) in told {
                match job.still_recorded(slots) {
                    None => {
                        let sql = Ranges::sql(include_str!("sql/untell_day.sql"), *day);
                        self.conn.prepare_cached(&sql)?.execute([id.as_bytes()])?;
                    }
                    Some(slots) => {
                        let sql = Ranges::sql(include_str!("sql/cut_day.sql"), *day);
                        let (last, count) = stretch_columns(slots.several());
                        let row = params![id.as_bytes(), last, count];
                        self.conn.prepare_cached(&sql)?.execute(row)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Slots that were passed over, as a day of history tells them.
    fn told(
        &self,
        sql: &'static str,
        day: i64,
        job: JobId,
        after: RunId,
    ) -> Done<Vec<(RunId, Stretch)>> {
        let mut select = self.conn.prepare_cached(&Ranges::sql(sql, day))?;
        let rows = select.query_map(params![job.as_bytes(), after.as_bytes()], |row| {
            let id = RunId::from_bytes(row.get(0)?);
            let told = read_told(id, row.get(1)?, row.get(2)?);
            Ok(row.get::<_, bool>(3)?.then_some((id, told)))
        })?;
        let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Writes slots of a job that will not run.
    pub fn put_skipped(&mut self, entries: &[EndedRow], job: &Job) -> Done<()> {
        let mut archive = Archive::new(&self.conn, &mut self.ranges);
        for entry in entries {
            put_skipped(&mut archive, entry, job)?;
        }
        Ok(())
    }
}
