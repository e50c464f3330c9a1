//! Runs as readers see them: the live table and the days of history, in one snapshot.

use std::collections::BTreeMap;

use model::{JobId, Run, RunId, RunState, TenantId};
use rusqlite::{Connection, OptionalExtension, params};

use super::archive::Partitions;
use super::fault::Done;
use super::rows::{RunRow, Tenant};
use crate::code::{Code, of_row};
use crate::row::Payloads;
use crate::{Found, Page, RunFilter};

/// Greater than any id: ids are 16 bytes.
pub(super) const AFTER_ALL: [u8; 17] = [u8::MAX; 17];

pub(super) fn live_row(conn: &Connection, id: RunId, payloads: Payloads) -> Done<Option<RunRow>> {
    let mut select = conn.prepare_cached(include_str!("sql/get_run_live.sql"))?;
    let row = select.query_row(params![id.as_bytes(), payloads.max()], RunRow::read_live);
    Ok(row.optional()?)
}

pub(super) fn live_run(conn: &Connection, id: RunId, payloads: Payloads) -> Done<Option<Run>> {
    let row = live_row(conn, id, payloads)?;
    Ok(row.map(RunRow::decode).transpose()?)
}

pub(super) fn ended_row(
    conn: &Connection,
    partitions: &Partitions,
    id: RunId,
) -> Done<Option<RunRow>> {
    let day = Partitions::partition_of(id);
    if !partitions.days.contains(&day) {
        return Ok(None);
    }
    let sql = Partitions::sql(include_str!("sql/get_run_ended.sql"), day);
    let mut select = conn.prepare_cached(&sql)?;
    let row = select
        .query_row([id.as_bytes()], RunRow::read_ended)
        .optional()?;
    Ok(row)
}

pub(super) fn ended_run(
    conn: &Connection,
    partitions: &Partitions,
    id: RunId,
) -> Done<Option<Run>> {
    Ok(ended_row(conn, partitions, id)?
        .map(RunRow::decode)
        .transpose()?)
}

/// A slot that was decided again is alive and in history; what is alive counts.
fn any_run(conn: &Connection, partitions: &Partitions, id: RunId) -> Done<Option<Run>> {
    match live_run(conn, id, Payloads::All)? {
        Some(run) => Ok(Some(run)),
        None => ended_run(conn, partitions, id),
    }
}

pub(super) fn get_runs(conn: &Connection, wanted: &[(TenantId, RunId)]) -> Done<Vec<Found<Run>>> {
    let partitions = Partitions::read(conn)?;
    let read = |(tenant, id): &(TenantId, RunId)| {
        let run = of_row(any_run(conn, &partitions, *id))?;
        Ok(run.map(|run| run.filter(|run| run.tenant == *tenant)))
    };
    wanted.iter().map(read).collect()
}

/// What is queried from every table of a listing.
struct Listing {
    tenant: TenantId,
    before: Vec<u8>,
    least: RunId,
    job: Option<JobId>,
    /// A bit for every state that is wanted.
    states: i64,
    /// A bit for everything that is to be waited for; none where that does not matter.
    waiting: Option<i64>,
    limit: usize,
}

pub(super) fn list_runs(
    conn: &Connection,
    tenant: TenantId,
    filter: &RunFilter,
    page: Page<RunId>,
) -> Done<Vec<Run>> {
    let wanted = |state: &RunState| filter.states.is_empty() || filter.states.contains(state);
    let states = RunState::ALL.into_iter().filter(wanted);
    let before = filter.before(page);
    let waiting = filter.waiting.iter();
    let waiting = waiting.fold(0, |bits, reason| bits | 1 << reason.code());
    let listing = Listing {
        tenant,
        before: before.map_or(AFTER_ALL.to_vec(), |id| id.as_bytes().to_vec()),
        least: filter.least(),
        job: filter.job,
        states: states.fold(0, |bits, state| bits | 1 << state.code()),
        waiting: Some(waiting).filter(|bits| *bits != 0),
        limit: page.limit,
    };
    let partitions = Partitions::read(conn)?;
    let live = listing.live(conn)?;
    let ended = listing.ended(conn, &partitions, before)?;
    let mut found: BTreeMap<RunId, bool> = ended.into_iter().map(|id| (id, false)).collect();
    found.extend(live.into_iter().map(|id| (id, true)));
    let mut runs = Vec::new();
    for (id, alive) in found.into_iter().rev().take(page.limit) {
        let run = if alive {
            live_run(conn, id, Payloads::All)?
        } else {
            ended_run(conn, &partitions, id)?
        };
        runs.extend(run);
    }
    Ok(runs)
}

impl Listing {
    fn wants(&self, state: RunState) -> bool {
        self.states >> state.code() & 1 == 1
    }

    fn live(&self, conn: &Connection) -> Done<Vec<RunId>> {
        if !RunState::ALL
            .into_iter()
            .any(|state| state.is_live() && self.wants(state))
        {
            return Ok(Vec::new());
        }
        let sql = match self.job {
            None => include_str!("sql/list_runs_live.sql"),
            Some(_) => include_str!("sql/list_runs_live_job.sql"),
        };
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let job = self.job.as_ref().map(|job| job.as_bytes());
        let wanted = params![
            Tenant(self.tenant),
            self.before,
            self.states,
            limit,
            job,
            self.least.as_bytes(),
            self.waiting
        ];
        let mut select = conn.prepare_cached(sql)?;
        let ids = select.query_map(wanted, |row| row.get(0).map(RunId::from_bytes))?;
        Ok(ids.collect::<rusqlite::Result<_>>()?)
    }

    /// Days from the newest on, until the page is full.
    fn ended(
        &self,
        conn: &Connection,
        partitions: &Partitions,
        before: Option<RunId>,
    ) -> Done<Vec<RunId>> {
        let ended: Vec<_> = RunState::ALL
            .into_iter()
            .filter(|s| !s.is_live() && self.wants(*s))
            .collect();
        let mut found = Vec::new();
        let newest = before.map_or(i64::MAX, Partitions::partition_of);
        let oldest = Partitions::partition_of(self.least);
        for day in partitions.days.iter().rev() {
            if !(oldest..=newest).contains(day) {
                continue;
            }
            let left = self.limit.saturating_sub(found.len());
            // What has ended waits for nothing.
            if left == 0 || ended.is_empty() || self.waiting.is_some() {
                break;
            }
            found.extend(self.ended_on(conn, *day, &ended, left)?);
        }
        Ok(found)
    }

    fn ended_on(
        &self,
        conn: &Connection,
        day: i64,
        states: &[RunState],
        limit: usize,
    ) -> Done<Vec<RunId>> {
        let sql = |template| Partitions::sql(template, day);
        if self.job.is_some() {
            let sql = sql(include_str!("sql/list_runs_partition_job.sql"));
            return self.ids(conn, &sql, self.states, limit);
        }
        if states.contains(&RunState::Succeeded) {
            let sql = if self.tenant == TenantId::DEFAULT {
                sql(include_str!("sql/list_runs_partition.sql"))
            } else {
                sql(include_str!("sql/list_runs_partition_tenant.sql"))
            };
            return self.ids(conn, &sql, self.states, limit);
        }
        let sql = sql(include_str!("sql/list_runs_partition_rare.sql"));
        let mut found = Vec::new();
        for state in states {
            found.extend(self.ids(conn, &sql, state.code().into(), limit)?);
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.truncate(limit);
        Ok(found)
    }

    fn ids(&self, conn: &Connection, sql: &str, states: i64, limit: usize) -> Done<Vec<RunId>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut select = conn.prepare_cached(sql)?;
        let tenant = Tenant(self.tenant);
        let mut found = Vec::new();
        let job = self.job.as_ref().map(JobId::as_bytes);
        let least = self.least.as_bytes();
        let mut rows = select.query(params![tenant, self.before, states, limit, job, least])?;
        while let Some(row) = rows.next()? {
            found.push(RunId::from_bytes(row.get(0)?));
        }
        Ok(found)
    }
}
