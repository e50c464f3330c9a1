//! Alerts: rules, ends that were noted, and where each alert stands. Whose ends are noted is known by heart, so that the end of
//! a run of any other writes nothing more.

use std::collections::BTreeSet;

use async_trait::async_trait;
use model::{
    Alert, AlertName, AlertState, Cause, Job, JobId, Partition, Run, RunId, TenantId, Timestamp,
    Version, limits,
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::access::number;
use super::archive::Partitions;
use super::db::Db;
use super::fault::Done;
use super::history::ended_row;
use super::jobs::{get_jobs, load_job};
use super::rows::{Tenant, maybe_moment, moment, word};
use super::store::SqliteStore;
use super::tenants;
use super::writer::By;
use crate::audit::Change;
use crate::code::{Code, bad_row};
use crate::doc::AlertColumns;
use crate::statement::statement;
use crate::{
    AlertKey, AlertMoves, AlertPut, AlertStore, AlertsMoved, FiringAlert, QueueRun, Queued,
    StoreError, doc,
};

/// Whose ends are noted: of some tenants all, of others those of some jobs.
#[derive(Default)]
pub(super) struct Watched {
    tenants: BTreeSet<TenantId>,
    jobs: BTreeSet<(TenantId, JobId)>,
}

impl Watched {
    pub(super) fn read(conn: &Connection) -> Done<Self> {
        let mut select = conn.prepare_cached(include_str!("sql/watched.sql"))?;
        let mut watched = Self::default();
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let Tenant(tenant) = row.get(0)?;
            let only: Option<[u8; 16]> = row.get(1)?;
            match only.map(JobId::from_bytes) {
                Some(job) => watched.jobs.insert((tenant, job)),
                None => watched.tenants.insert(tenant),
            };
        }
        Ok(watched)
    }

    fn contains(&self, run: &Run) -> bool {
        self.tenants.contains(&run.tenant) || self.jobs.contains(&(run.tenant, run.job))
    }

    /// Notes an end if a rule may be about it.
    pub(super) fn note(&self, conn: &Connection, run: &Run) -> Done<()> {
        if self.tenants.is_empty() && self.jobs.is_empty() || !self.contains(run) {
            return Ok(());
        }
        let Some(cause) = Cause::of(run) else {
            return Ok(());
        };
        let mut insert = conn.prepare_cached(include_str!("sql/put_cause.sql"))?;
        insert.execute(params![
            Tenant(cause.tenant),
            cause.job.as_bytes(),
            cause.run.as_bytes(),
            cause.state.code(),
            cause.reason.map(Code::code),
            signed(cause.count),
            cause.at.as_millis(),
        ])?;
        Ok(())
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn rows_of(limit: usize) -> i64 {
    signed(limit as u64)
}

/// Columns as `get_alert.sql` has them.
fn read_alert(row: &Row<'_>) -> rusqlite::Result<(AlertColumns, Vec<u8>)> {
    let Tenant(tenant) = row.get(0)?;
    let name: String = row.get(1)?;
    let columns = AlertColumns {
        tenant,
        name: AlertName::new(&name).map_err(|_| rusqlite::Error::InvalidQuery)?,
        version: Version(row.get(2)?),
        job: JobId::from_bytes(row.get(3)?),
        created_at: moment(row, 4)?,
        updated_at: moment(row, 5)?,
    };
    Ok((columns, row.get(6)?))
}

fn select_alerts(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<Alert>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read_alert)?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let decode = |(columns, stored): (AlertColumns, Vec<u8>)| {
        let what = format!("alert {}", columns.name);
        doc::decode_alert(columns, &stored).map_err(|error| bad_row(what, &error))
    };
    Ok(rows.into_iter().map(decode).collect::<Result<_, _>>()?)
}

fn get(conn: &Connection, tenant: TenantId, name: &AlertName) -> Done<Option<Alert>> {
    let params = params![Tenant(tenant), name.as_str()];
    let found = select_alerts(conn, statement!("sql/get_alert.sql"), params)?;
    Ok(found.into_iter().next())
}

fn list(conn: &Connection, tenant: TenantId, after: &str, limit: usize) -> Done<Vec<Alert>> {
    let params = params![Tenant(tenant), after, rows_of(limit)];
    select_alerts(conn, statement!("sql/list_alerts.sql"), params)
}

/// Columns as `alerts_of.sql` has them.
fn read_state(row: &Row<'_>) -> rusqlite::Result<AlertState> {
    let Tenant(tenant) = row.get(0)?;
    let name: String = row.get(1)?;
    let reason: Option<i16> = row.get(8)?;
    let ended_by: Option<[u8; 16]> = row.get(13)?;
    Ok(AlertState {
        tenant,
        alert: AlertName::new(&name).map_err(|_| rusqlite::Error::InvalidQuery)?,
        job: JobId::from_bytes(row.get(2)?),
        step: row.get(3)?,
        firing: row.get(4)?,
        since: moment(row, 5)?,
        run: RunId::from_bytes(row.get(6)?),
        state: word(row, 7)?,
        reason: reason.and_then(Code::from_code),
        at: moment(row, 9)?,
        causes: row.get::<_, i64>(10)?.unsigned_abs(),
        sent: row.get(11)?,
        send_at: maybe_moment(row, 12)?,
        ended: ended_by.map(RunId::from_bytes).zip(maybe_moment(row, 14)?),
    })
}

fn select_states(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<AlertState>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read_state)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn read_cause(row: &Row<'_>) -> rusqlite::Result<Cause> {
    let Tenant(tenant) = row.get(1)?;
    let reason: Option<i16> = row.get(5)?;
    Ok(Cause {
        no: row.get::<_, i64>(0)?.unsigned_abs(),
        tenant,
        job: JobId::from_bytes(row.get(2)?),
        run: RunId::from_bytes(row.get(3)?),
        state: word(row, 4)?,
        reason: reason.and_then(Code::from_code),
        count: row.get::<_, i64>(6)?.unsigned_abs(),
        at: moment(row, 7)?,
    })
}

/// The run that has recovered an alert, if one has.
fn recovered(
    conn: &Connection,
    days: &Partitions,
    state: &AlertState,
) -> Done<Option<(RunId, Timestamp)>> {
    let Partition(first) = Partition::of(state.run);
    for day in days.days.range(first..) {
        let sql = Partitions::sql(include_str!("sql/recovered.sql"), *day);
        let mut select = conn.prepare_cached(&sql)?;
        let params = params![
            state.job.as_bytes(),
            state.run.as_bytes(),
            state.at.as_millis()
        ];
        let found = select.query_row(params, |row| {
            Ok((RunId::from_bytes(row.get(0)?), moment(row, 1)?))
        });
        if let Some(found) = found.optional()? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

impl Db {
    fn put_alert(&mut self, alert: &Alert, before: Option<Version>) -> Done<AlertPut> {
        let tenant = tenants::get(&self.conn, alert.tenant)?;
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return Ok(AlertPut::NoTenant);
        }
        let stands = get(&self.conn, alert.tenant, &alert.name)?;
        if stands.as_ref().map(|stands| stands.version) != before {
            return Ok(AlertPut::Conflict);
        }
        let sql = include_str!("sql/count_alerts.sql");
        let theirs = number(&self.conn, sql, [Tenant(alert.tenant)])?;
        if stands.is_none() && theirs >= rows_of(limits::ALERTS_MAX) {
            return Ok(AlertPut::Full);
        }
        let stored = doc::encode_alert(alert);
        let stored = stored.map_err(|error| bad_row(format!("alert {}", alert.name), &error))?;
        let only = alert.scope.only_job();
        let columns = params![
            Tenant(alert.tenant),
            alert.name.as_str(),
            alert.version.0,
            alert.job.as_bytes(),
            alert.created_at.as_millis(),
            alert.updated_at.as_millis(),
            stored,
            only.as_ref().map(|job| job.as_bytes()),
        ];
        if let Some(before) = before {
            let sql = include_str!("sql/change_alert.sql");
            let mut update = self.conn.prepare_cached(sql)?;
            let columns = [columns, params![before.0]].concat();
            update.execute(&*columns)?;
        } else {
            let sql = statement!("sql/create_alert.sql");
            self.conn.prepare_cached(sql)?.execute(columns)?;
        }
        self.audit(&Change::alert(stands.as_ref(), Some(alert)))?;
        self.watch_again()?;
        Ok(AlertPut::Done)
    }

    fn drop_alert(&mut self, tenant: TenantId, name: &AlertName, before: Version) -> Done<bool> {
        let stands = get(&self.conn, tenant, name)?.filter(|alert| alert.version == before);
        let Some(stands) = stands else {
            return Ok(false);
        };
        let sql = include_str!("sql/drop_alert.sql");
        let named = params![Tenant(tenant), name.as_str(), before.0];
        self.conn.prepare_cached(sql)?.execute(named)?;
        let sql = include_str!("sql/drop_alert_states.sql");
        let named = params![Tenant(tenant), name.as_str()];
        self.conn.prepare_cached(sql)?.execute(named)?;
        self.audit(&Change::alert(Some(&stands), None))?;
        self.watch_again()?;
        Ok(true)
    }

    /// Follows the rules to what they are now.
    pub(super) fn watch_again(&mut self) -> Done<()> {
        self.watched = Watched::read(&self.conn)?;
        Ok(())
    }

    /// The jobs that deliver a tenant's alerts.
    pub(super) fn channels_of(&self, tenant: TenantId) -> Done<Vec<Job>> {
        let rules = list(&self.conn, tenant, "", limits::ALERTS_MAX)?;
        let named = rules.iter().map(|rule| (TenantId::SYSTEM, rule.job));
        let found = get_jobs(&self.conn, &named.collect::<Vec<_>>())?;
        Ok(found
            .into_iter()
            .filter_map(|job| job.ok().flatten())
            .collect())
    }

    /// Looks before it writes: what was written for a call that is refused would be committed with the others.
    fn move_alerts(&mut self, moves: &AlertMoves) -> Done<AlertsMoved> {
        if !self.is_current(moves)? {
            return Ok(AlertsMoved::Stale);
        }
        if let Some(run) = &moves.run {
            match self.deliver(run)? {
                Queued::Ready(_) | Queued::Waiting(_) | Queued::Repeated => {}
                Queued::Full => return Ok(AlertsMoved::Full),
                Queued::Undecided | Queued::Undivided | Queued::Missing => {
                    return Ok(AlertsMoved::Missing);
                }
            }
        }
        let sql = include_str!("sql/drop_cause.sql");
        let mut delete = self.conn.prepare_cached(sql)?;
        for no in &moves.causes {
            delete.execute([signed(*no)])?;
        }
        for it in &moves.moves {
            if it.is_over {
                self.end_state(&it.state)?;
            } else {
                self.put_state(&it.state)?;
            }
        }
        Ok(AlertsMoved::Done)
    }

    fn is_current(&self, moves: &AlertMoves) -> Done<bool> {
        let mut has = self
            .conn
            .prepare_cached(include_str!("sql/has_cause.sql"))?;
        for no in &moves.causes {
            if !has.exists([signed(*no)])? {
                return Ok(false);
            }
        }
        let sql = include_str!("sql/alert_step.sql");
        let mut select = self.conn.prepare_cached(sql)?;
        for it in &moves.moves {
            let AlertState {
                tenant, alert, job, ..
            } = &it.state;
            let key = params![Tenant(*tenant), alert.as_str(), job.as_bytes()];
            let step: Option<u32> = select.query_row(key, |row| row.get(0)).optional()?;
            if step.unwrap_or(0) != it.before() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn put_state(&self, it: &AlertState) -> Done<()> {
        let sql = statement!("sql/put_alert_state.sql");
        self.conn.prepare_cached(sql)?.execute(params![
            Tenant(it.tenant),
            it.alert.as_str(),
            it.job.as_bytes(),
            it.step,
            it.firing,
            it.since.as_millis(),
            it.run.as_bytes(),
            it.state.code(),
            it.reason.map(Code::code),
            it.at.as_millis(),
            signed(it.causes),
            it.sent,
            it.send_at.map(Timestamp::as_millis),
            it.ended.as_ref().map(|(run, _)| run.as_bytes()),
            it.ended.map(|(_, at)| at.as_millis()),
        ])?;
        Ok(())
    }

    fn end_state(&self, it: &AlertState) -> Done<()> {
        let sql = include_str!("sql/drop_alert_state.sql");
        let key = params![Tenant(it.tenant), it.alert.as_str(), it.job.as_bytes()];
        self.conn.prepare_cached(sql)?.execute(key)?;
        Ok(())
    }

    fn deliver(&mut self, run: &QueueRun) -> Done<Queued> {
        let job = run.run.job;
        let mut view = self.view_of_runs(job)?;
        view.job = load_job(&self.conn, job)?;
        if ended_row(&self.conn, &self.partitions, run.run.id)?.is_some() {
            view.history.ended.insert(run.run.id);
        }
        let queued = view.queue(run);
        self.apply(job, view.effects)?;
        Ok(queued)
    }
}

#[async_trait]
impl AlertStore for SqliteStore {
    async fn put_alert(
        &self,
        alert: &Alert,
        before: Option<Version>,
    ) -> Result<AlertPut, StoreError> {
        let it = alert.clone();
        let put = move |db: &mut Db| db.put_alert(&it, before);
        self.write(By::Client, 1, put).await
    }

    async fn get_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
    ) -> Result<Option<Alert>, StoreError> {
        let name = name.clone();
        self.read(By::Client, move |conn| get(conn, tenant, &name))
            .await
    }

    async fn list_alerts(
        &self,
        tenant: TenantId,
        after: Option<&AlertName>,
        limit: usize,
    ) -> Result<Vec<Alert>, StoreError> {
        // Every name is greater than no text at all.
        let after = after.map_or(String::new(), |name| name.as_str().to_owned());
        self.read(By::Client, move |conn| list(conn, tenant, &after, limit))
            .await
    }

    async fn drop_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
        before: Version,
    ) -> Result<bool, StoreError> {
        let name = name.clone();
        let delete = move |db: &mut Db| db.drop_alert(tenant, &name, before);
        self.write(By::Client, 1, delete).await
    }

    async fn alert_causes(&self, limit: usize) -> Result<Vec<Cause>, StoreError> {
        self.read(By::Engine, move |conn| {
            let mut select = conn.prepare_cached(include_str!("sql/alert_causes.sql"))?;
            let rows = select.query_map([rows_of(limit)], read_cause)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn alert_states(&self, keys: &[AlertKey]) -> Result<Vec<Option<AlertState>>, StoreError> {
        let keys = keys.to_vec();
        self.read(By::Engine, move |conn| {
            let sql = statement!("sql/get_alert_state.sql");
            let mut select = conn.prepare_cached(sql)?;
            let mut read = |(tenant, alert, job): &AlertKey| {
                let key = params![Tenant(*tenant), alert.as_str(), job.as_bytes()];
                select.query_row(key, read_state).optional()
            };
            let found = keys.iter().map(&mut read);
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    async fn alerts_of(
        &self,
        tenant: TenantId,
        name: &AlertName,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<AlertState>, StoreError> {
        let name = name.clone();
        self.read(By::Client, move |conn| {
            let after = after.map_or(Vec::new(), |job| job.as_bytes().to_vec());
            let params = params![Tenant(tenant), name.as_str(), after, rows_of(limit)];
            select_states(conn, statement!("sql/alerts_of.sql"), params)
        })
        .await
    }

    async fn due_alerts(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<AlertState>, StoreError> {
        self.read(By::Engine, move |conn| {
            let params = params![now.as_millis(), rows_of(limit)];
            select_states(conn, statement!("sql/due_alerts.sql"), params)
        })
        .await
    }

    async fn firing_alerts(
        &self,
        after: Option<&AlertKey>,
        limit: usize,
    ) -> Result<Vec<FiringAlert>, StoreError> {
        let after = after.cloned();
        self.read(By::Engine, move |conn| {
            let least = || (TenantId::DEFAULT, String::new(), Vec::new());
            let (tenant, name, job) = after.as_ref().map_or_else(least, |(tenant, name, job)| {
                let job = job.as_bytes().to_vec();
                (*tenant, name.as_str().to_owned(), job)
            });
            let params = params![Tenant(tenant), name, job, rows_of(limit)];
            let states = select_states(conn, statement!("sql/firing_alerts.sql"), params)?;
            let days = Partitions::read(conn)?;
            let with = |state: AlertState| {
                let by = recovered(conn, &days, &state)?;
                Ok((state, by))
            };
            states.into_iter().map(with).collect()
        })
        .await
    }

    async fn move_alerts(&self, moves: &AlertMoves) -> Result<AlertsMoved, StoreError> {
        let moves = moves.clone();
        let rows = moves.moves.len() + 1;
        self.write(By::Client, rows, move |db| db.move_alerts(&moves))
            .await
    }
}
