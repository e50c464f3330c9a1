//! What came of a job's slots: runs and skipped entries from the days of history and the live table, by the
//! moment in their ids, in one snapshot.

use std::collections::BTreeMap;

use model::{JobId, Run, RunId, TenantId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::archive::Partitions;
use super::fault::Done;
use super::history::{ended_run, live_run};
use super::rows::Tenant;
use crate::row::Payloads;

/// A job, and the ids of a span of its slots.
struct Slots<'a> {
    conn: &'a Connection,
    partitions: Partitions,
    tenant: TenantId,
    job: JobId,
    from: RunId,
    to: RunId,
}

pub(super) fn list_slots(
    conn: &Connection,
    tenant: TenantId,
    job: JobId,
    from: Timestamp,
    to: Timestamp,
    limit: usize,
) -> Done<Vec<Run>> {
    let slots = Slots {
        conn,
        partitions: Partitions::read(conn)?,
        tenant,
        job,
        from: RunId::least_at(from),
        to: RunId::least_at(to),
    };
    let mut runs = Vec::new();
    if limit > 0
        && let Some(id) = slots.covering(from)?
    {
        runs.extend(ended_run(conn, &slots.partitions, id)?);
    }
    let limit = limit.saturating_sub(runs.len());
    let mut found: BTreeMap<RunId, bool> = BTreeMap::new();
    found.extend(slots.ended(limit)?.into_iter().map(|id| (id, false)));
    let live = slots.ids(include_str!("sql/list_slots_live.sql"), limit)?;
    found.extend(live.into_iter().map(|id| (id, true)));
    for (id, alive) in found.into_iter().take(limit) {
        runs.extend(if alive {
            live_run(conn, id, Payloads::All)?
        } else {
            ended_run(conn, &slots.partitions, id)?
        });
    }
    Ok(runs)
}

impl Slots<'_> {
    /// Days from the oldest on, until there are enough.
    fn ended(&self, limit: usize) -> Done<Vec<RunId>> {
        let mut found = Vec::new();
        if self.from >= self.to {
            return Ok(found);
        }
        let days = Partitions::partition_of(self.from)..=Partitions::partition_of(self.to);
        for day in self.partitions.days.range(days) {
            let left = limit.saturating_sub(found.len());
            if left == 0 {
                break;
            }
            let sql = Partitions::sql(include_str!("sql/list_slots_partition.sql"), *day);
            found.extend(self.ids(&sql, left)?);
        }
        Ok(found)
    }

    fn ids(&self, sql: &str, limit: usize) -> Done<Vec<RunId>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut select = self.conn.prepare_cached(sql)?;
        let ids = select.query_map(
            params![
                self.job.as_bytes(),
                Tenant(self.tenant),
                self.from.as_bytes(),
                self.to.as_bytes(),
                limit
            ],
            |row| row.get(0).map(RunId::from_bytes),
        )?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// The last entry that began before the span, if it reaches into it.
    fn covering(&self, from: Timestamp) -> Done<Option<RunId>> {
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/list_slots_live_before.sql"))?;
        let before = params![
            self.job.as_bytes(),
            Tenant(self.tenant),
            self.from.as_bytes()
        ];
        let live = select.query_row(before, |row| row.get(0).map(RunId::from_bytes));
        let live = live.optional()?;
        for day in self
            .partitions
            .days
            .range(..=Partitions::partition_of(self.from))
            .rev()
        {
            if live.is_some_and(|live| *day < Partitions::partition_of(live)) {
                return Ok(None);
            }
            let sql = Partitions::sql(include_str!("sql/list_slots_partition_before.sql"), *day);
            let mut select = self.conn.prepare_cached(&sql)?;
            let last = select.query_row(before, |row| {
                Ok((RunId::from_bytes(row.get(0)?), row.get(1)?))
            });
            if let Some((id, reaches)) = last.optional()? {
                let reaches: Option<i64> = reaches;
                // A run alive under its name, or a later one, is the last that was decided.
                let covers = reaches.is_some_and(|last| last >= from.as_millis())
                    && live.is_none_or(|live| live < id);
                return Ok(covers.then_some(id));
            }
        }
        Ok(None)
    }
}
