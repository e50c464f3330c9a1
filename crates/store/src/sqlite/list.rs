//! Listing jobs, by keyset on the id: a page costs the same at the end of a million as at the start.

use model::{Job, JobId, JobState, TenantId};
use rusqlite::{Connection, ToSql, params};

use super::calendars::Lookup;
use super::fault::Done;
use super::history::AFTER_ALL;
use super::rows::Tenant;
use super::tenants::has_others;
use crate::code::Code;
use crate::row::Payloads;
use crate::{JobFilter, Page};

/// States that have an index of their own.
const RARE: [JobState; 3] = [JobState::Paused, JobState::Invalid, JobState::Deleted];

/// How many of the newest jobs are looked at before an index is read; few in tests, so that both happen.
const SCAN_MIN: usize = if cfg!(test) { 8 } else { 2_000 };

/// A filter as the statements want it.
struct Listing<'a> {
    tenant: Tenant,
    before: Vec<u8>,
    states: Vec<JobState>,
    /// A bit for every state that is wanted.
    bits: i64,
    labels: &'a [(String, String)],
    owner: Option<&'a str>,
    /// A part of the key, in lower case.
    part: Option<String>,
    limit: usize,
}

pub(super) fn list_jobs(
    conn: &Connection,
    tenant: TenantId,
    filter: &JobFilter,
    page: Page<JobId>,
) -> Done<Vec<Job>> {
    let wanted = |state: &JobState| {
        if filter.states.is_empty() {
            *state != JobState::Deleted
        } else {
            filter.states.contains(state)
        }
    };
    let states: Vec<_> = JobState::ALL.into_iter().filter(wanted).collect();
    let listing = Listing {
        tenant: Tenant(tenant),
        before: page
            .before
            .map_or(AFTER_ALL.to_vec(), |id| id.as_bytes().to_vec()),
        bits: states
            .iter()
            .fold(0, |bits, state| bits | 1 << state.code()),
        states,
        labels: &filter.labels,
        owner: filter.owner.as_deref(),
        part: filter.q.as_ref().map(|part| part.to_ascii_lowercase()),
        limit: page.limit,
    };
    let lookup = Lookup::new(conn, Payloads::All);
    let mut jobs = Vec::new();
    for id in listing.ids(conn)? {
        let row = lookup.row(id)?;
        match row.map(|row| lookup.decode(row)).transpose()? {
            Some(Ok(job)) => jobs.push(job),
            // One row that cannot be read must not hide all others.
            Some(Err(bad)) => tracing::warn!(job = %bad.job, error = bad.detail, "unreadable job"),
            None => {}
        }
    }
    Ok(jobs)
}

impl Listing<'_> {
    fn ids(&self, conn: &Connection) -> Done<Vec<JobId>> {
        let (tenant, before, bits, part) = (&self.tenant, &self.before, self.bits, &self.part);
        if let Some(owner) = self.owner {
            let sql = include_str!("sql/list_jobs_owner.sql");
            let params = params![tenant, before, bits, part, owner];
            return self.labelled(conn, sql, params, self.labels);
        }
        if let Some(((name, value), others)) = self.labels.split_first() {
            let sql = include_str!("sql/list_jobs_label.sql");
            let params = params![tenant, before, bits, part, name, value];
            return self.labelled(conn, sql, params, others);
        }
        let is_default = self.tenant.0 == TenantId::DEFAULT;
        if !is_default && !self.is_by_key() {
            return self.by_tenant(conn);
        }
        if is_default && self.states.iter().all(|state| RARE.contains(state)) {
            return self.by_rare_state(conn);
        }
        // Nearly always the newest jobs fill the page. When they do not, what fits may be anywhere, and
        // the smallest index that has it is read instead of every job.
        let (mut found, last) = self.near(conn)?;
        if let Some(last) = last {
            found.extend(self.far(conn, last, self.limit.saturating_sub(found.len()))?);
        }
        Ok(found)
    }

    /// Whether what fits has a key, and is in the index of keys: deleted jobs are not.
    fn is_by_key(&self) -> bool {
        self.part.is_some() && !self.states.contains(&JobState::Deleted)
    }

    fn by_tenant(&self, conn: &Connection) -> Done<Vec<JobId>> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let params = params![self.tenant, self.before, self.bits, self.part, limit];
        let sql = if self.wants_finished() {
            include_str!("sql/list_jobs_tenant.sql")
        } else {
            include_str!("sql/list_jobs_open.sql")
        };
        query(conn, sql, params)
    }

    /// What is finished is kept a while: there may be far more of it than of all the rest.
    fn wants_finished(&self) -> bool {
        self.states.contains(&JobState::Finished)
    }

    /// Fitting ones among the newest jobs; and the last one looked at, if there may be more.
    fn near(&self, conn: &Connection) -> Done<(Vec<JobId>, Option<JobId>)> {
        let scan = i64::try_from(self.limit.max(SCAN_MIN)).unwrap_or(i64::MAX);
        let sql = if self.tenant.0 == TenantId::DEFAULT {
            include_str!("sql/list_jobs_near.sql")
        } else {
            include_str!("sql/list_jobs_near_tenant.sql")
        };
        let mut select = conn.prepare_cached(sql)?;
        let mut rows = select.query(params![
            self.tenant,
            self.before,
            self.bits,
            self.part,
            scan
        ])?;
        let (mut found, mut scanned, mut last) = (Vec::new(), 0, None);
        while let Some(row) = rows.next()? {
            if found.len() == self.limit {
                return Ok((found, None));
            }
            let (id, fits): (_, Option<bool>) = (JobId::from_bytes(row.get(0)?), row.get(1)?);
            if fits == Some(true) {
                found.push(id);
            }
            scanned += 1;
            last = Some(id);
        }
        let full = found.len() == self.limit;
        Ok((found, last.filter(|_| scanned == scan && !full)))
    }

    fn far(&self, conn: &Connection, before: JobId, limit: usize) -> Done<Vec<JobId>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let before = before.as_bytes();
        let all = params![self.tenant, before, self.bits, self.part, limit];
        if self.is_by_key() {
            return query(conn, include_str!("sql/list_jobs_key.sql"), all);
        }
        // The indexes of what is active have everybody's.
        let is_alone = !has_others(conn)?;
        match (&self.part, self.states.as_slice()) {
            (None, [JobState::Active]) if is_alone => {
                let sql = include_str!("sql/list_jobs_active.sql");
                query(conn, sql, params![self.tenant, before, limit])
            }
            (Some(_) | None, _) if !is_alone && !self.wants_finished() => {
                query(conn, include_str!("sql/list_jobs_open_default.sql"), all)
            }
            (Some(_) | None, _) => query(conn, include_str!("sql/list_jobs.sql"), all),
        }
    }

    fn by_rare_state(&self, conn: &Connection) -> Done<Vec<JobId>> {
        let limit = i64::try_from(self.limit).unwrap_or(i64::MAX);
        let sql = if has_others(conn)? {
            include_str!("sql/list_jobs_rare_default.sql")
        } else {
            include_str!("sql/list_jobs_rare.sql")
        };
        let mut found = Vec::new();
        for state in &self.states {
            let state = state.code();
            let params = params![self.tenant, self.before, state, self.part, limit];
            found.extend(query(conn, sql, params)?);
        }
        found.sort_unstable_by(|a: &JobId, b| b.cmp(a));
        found.truncate(self.limit);
        Ok(found)
    }

    /// What a statement finds that has these labels.
    fn labelled(
        &self,
        conn: &Connection,
        sql: &str,
        params: &[&dyn ToSql],
        labels: &[(String, String)],
    ) -> Done<Vec<JobId>> {
        let mut select = conn.prepare_cached(sql)?;
        let mut has = conn.prepare_cached(include_str!("sql/has_label.sql"))?;
        let mut rows = select.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            if found.len() == self.limit {
                break;
            }
            let id = JobId::from_bytes(row.get(0)?);
            let mut fits = true;
            for (name, value) in labels {
                fits = fits && has.exists(params![self.tenant, name, value, id.as_bytes()])?;
            }
            if fits {
                found.push(id);
            }
        }
        Ok(found)
    }
}

fn query(conn: &Connection, sql: &str, params: &[&dyn ToSql]) -> Done<Vec<JobId>> {
    let mut select = conn.prepare_cached(sql)?;
    let ids = select.query_map(params, |row| row.get(0).map(JobId::from_bytes))?;
    Ok(ids.collect::<rusqlite::Result<_>>()?)
}
