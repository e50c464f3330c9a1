//! Alerts: rules, ends that were noted, and where each alert stands. A trigger notes ends (see `migrations/0029_alerts.sql`), so
//! that no way into history is forgotten.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{
    Alert, AlertMove, AlertName, AlertState, Cause, Job, JobId, RunId, TenantId, Timestamp,
    Version, limits,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::access::number as count;
use super::fault::Done;
use super::pool::{Conn, Params};
use super::put::columns;
use super::rows::{maybe_moment, maybe_word, moment, number, word};
use super::store::{PgStore, limit};
use super::tenants;
use super::views::{Lock, Views, ended_named};
use crate::audit::Change;
use crate::code::{Code, bad_row};
use crate::doc::AlertColumns;
use crate::row::Payloads;
use crate::{
    AlertKey, AlertMoves, AlertPut, AlertStore, AlertsMoved, FiringAlert, QueueRun, Queued,
    StoreError, doc,
};

fn name_of(row: &Row, column: usize) -> Done<AlertName> {
    let name: String = row.try_get(column)?;
    Ok(AlertName::new(&name).map_err(|error| bad_row(format!("alert {name}"), &error))?)
}

/// Columns as `get_alert.sql` has them.
fn read_alert(row: &Row) -> Done<Alert> {
    let columns = AlertColumns {
        tenant: TenantId(row.try_get(0)?),
        name: name_of(row, 1)?,
        version: Version(number(row, 2)?),
        job: JobId(row.try_get(3)?),
        created_at: moment(row, 4)?,
        updated_at: moment(row, 5)?,
    };
    let what = format!("alert {}", columns.name);
    let stored: Vec<u8> = row.try_get(6)?;
    Ok(doc::decode_alert(columns, &stored).map_err(|error| bad_row(what, &error))?)
}

async fn get(conn: &Conn, tenant: TenantId, name: &AlertName) -> Done<Option<Alert>> {
    let sql = include_str!("sql/get_alert.sql");
    let row = conn.row(sql, &[&tenant.0, &name.as_str()]).await?;
    row.as_ref().map(read_alert).transpose()
}

async fn list(conn: &Conn, tenant: TenantId, after: &str, most: usize) -> Done<Vec<Alert>> {
    let sql = include_str!("sql/list_alerts.sql");
    let rows = conn.rows(sql, &[&tenant.0, &after, &limit(most)]).await?;
    rows.iter().map(read_alert).collect()
}

/// Columns as `alerts_of.sql` has them.
fn read_state(row: &Row) -> Done<AlertState> {
    let ended_by: Option<Uuid> = row.try_get(13)?;
    Ok(AlertState {
        tenant: TenantId(row.try_get(0)?),
        alert: name_of(row, 1)?,
        job: JobId(row.try_get(2)?),
        step: number(row, 3)?,
        firing: row.try_get(4)?,
        since: moment(row, 5)?,
        run: RunId(row.try_get(6)?),
        state: word(row, 7)?,
        reason: maybe_word(row, 8)?,
        at: moment(row, 9)?,
        causes: row.try_get::<_, i64>(10)?.unsigned_abs(),
        sent: number(row, 11)?,
        send_at: maybe_moment(row, 12)?,
        ended: ended_by.map(RunId).zip(maybe_moment(row, 14)?),
    })
}

fn read_cause(row: &Row) -> Done<Cause> {
    Ok(Cause {
        no: row.try_get::<_, i64>(0)?.unsigned_abs(),
        tenant: TenantId(row.try_get(1)?),
        job: JobId(row.try_get(2)?),
        run: RunId(row.try_get(3)?),
        state: word(row, 4)?,
        reason: maybe_word(row, 5)?,
        count: row.try_get::<_, i64>(6)?.unsigned_abs(),
        at: moment(row, 7)?,
    })
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

columns! {
    /// Where alerts stand; columns as `create_alert_states.sql` has them.
    StateColumns<'a>(it: &'a AlertState) [
        tenant: Uuid = it.tenant.0,
        alert: &'a str = it.alert.as_str(),
        job: Uuid = it.job.0,
        step: i32 = it.step.cast_signed(),
        firing: bool = it.firing,
        since: i64 = it.since.as_millis(),
        run: Uuid = it.run.0,
        state: i16 = it.state.code(),
        reason: Option<i16> = it.reason.map(Code::code),
        at: i64 = it.at.as_millis(),
        causes: i64 = signed(it.causes),
        sent: i32 = it.sent.cast_signed(),
        send_at: Option<i64> = it.send_at.map(Timestamp::as_millis),
        ended_by: Option<Uuid> = it.ended.map(|(run, _)| run.0),
        ended_at: Option<i64> = it.ended.map(|(_, at)| at.as_millis()),
    ]
}

impl StateColumns<'_> {
    /// Writes them; whether all were where they were expected.
    async fn write(&self, conn: &Conn, sql: &'static str, columns: usize) -> Done<bool> {
        if self.tenant.is_empty() {
            return Ok(true);
        }
        let params = self.params();
        let params = params.get(..columns).unwrap_or_default();
        Ok(conn.execute(sql, params).await? == self.tenant.len() as u64)
    }
}

/// Each kind of move in the order of keys, so that those who meet do not wait for each other in a circle.
async fn write_states(conn: &Conn, moves: &[AlertMove]) -> Done<bool> {
    let mut sorted: Vec<&AlertMove> = moves.iter().collect();
    sorted.sort_by_key(|it| (it.state.tenant, it.state.alert.clone(), it.state.job));
    let [mut new, mut changed, mut over] = [(); 3].map(|()| StateColumns::default());
    for it in sorted {
        let columns = match (it.is_over, it.before()) {
            (true, _) => &mut over,
            (false, 0) => &mut new,
            (false, _) => &mut changed,
        };
        columns.push(&it.state);
    }
    let create = include_str!("sql/create_alert_states.sql");
    let change = include_str!("sql/change_alert_states.sql");
    let end = include_str!("sql/end_alert_states.sql");
    Ok(new.write(conn, create, 15).await?
        && changed.write(conn, change, 15).await?
        && over.write(conn, end, 4).await?)
}

impl PgStore {
    async fn try_put_alert(&self, alert: &Alert, before: Option<Version>) -> Done<AlertPut> {
        let conn = self.clients.begin().await?;
        let tenant = tenants::get(&conn, alert.tenant).await?;
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return Ok(AlertPut::NoTenant);
        }
        let stands = get(&conn, alert.tenant, &alert.name).await?;
        if stands.as_ref().map(|stands| stands.version) != before {
            return Ok(AlertPut::Conflict);
        }
        let sql = include_str!("sql/count_alerts.sql");
        let theirs = count(&conn, sql, &[&alert.tenant.0]).await?;
        if stands.is_none() && theirs >= limit(limits::ALERTS_MAX) {
            return Ok(AlertPut::Full);
        }
        let stored = doc::encode_alert(alert);
        let stored = stored.map_err(|error| bad_row(format!("alert {}", alert.name), &error))?;
        let (version, only) = (
            alert.version.0.cast_signed(),
            alert.scope.only_job().map(|it| it.0),
        );
        let (name, was) = (
            alert.name.as_str(),
            before.map(|before| before.0.cast_signed()),
        );
        let (created, updated) = (alert.created_at.as_millis(), alert.updated_at.as_millis());
        let params: &Params<'_> = &[
            &alert.tenant.0,
            &name,
            &version,
            &alert.job.0,
            &created,
            &updated,
            &stored,
            &only,
            &was,
        ];
        let written = if was.is_some() {
            let sql = include_str!("sql/change_alert.sql");
            conn.execute(sql, params).await?
        } else {
            let sql = include_str!("sql/create_alert.sql");
            let params = params.get(..8).unwrap_or_default();
            conn.execute(sql, params).await?
        };
        if written == 0 {
            return Ok(AlertPut::Conflict);
        }
        let change = Change::alert(stands.as_ref(), Some(alert));
        self.audit(&conn, &[change]).await?;
        conn.commit().await?;
        Ok(AlertPut::Done)
    }

    async fn try_drop_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
        before: Version,
    ) -> Done<bool> {
        let conn = self.clients.begin().await?;
        let Some(stands) = get(&conn, tenant, name).await? else {
            return Ok(false);
        };
        let version = before.0.cast_signed();
        let sql = include_str!("sql/drop_alert.sql");
        let params: &Params<'_> = &[&tenant.0, &name.as_str(), &version];
        if conn.execute(sql, params).await? == 0 {
            return Ok(false);
        }
        let sql = include_str!("sql/drop_alert_states.sql");
        conn.execute(sql, &[&tenant.0, &name.as_str()]).await?;
        self.audit(&conn, &[Change::alert(Some(&stands), None)])
            .await?;
        conn.commit().await?;
        Ok(true)
    }

    /// The jobs that deliver a tenant's alerts.
    pub(super) async fn channels_of(&self, tenant: TenantId) -> Done<Vec<Job>> {
        let conn = self.clients.get().await?;
        let rules = list(&conn, tenant, "", limits::ALERTS_MAX).await?;
        drop(conn);
        let named = rules.iter().map(|rule| (TenantId::SYSTEM, rule.job));
        let found = self.try_get_jobs(&named.collect::<Vec<_>>()).await?;
        let found = found.into_iter().filter_map(|job| job.ok().flatten());
        Ok(found.collect())
    }

    async fn try_alert_states(&self, keys: &[AlertKey]) -> Done<Vec<Option<AlertState>>> {
        let (mut tenants, mut names, mut jobs) = (Vec::new(), Vec::new(), Vec::new());
        for (tenant, name, job) in keys {
            tenants.push(tenant.0);
            names.push(name.as_str());
            jobs.push(job.0);
        }
        let conn = self.clients.get().await?;
        let sql = include_str!("sql/alert_states.sql");
        let rows = conn.rows(sql, &[&tenants, &names, &jobs]).await?;
        let mut found = BTreeMap::new();
        for row in &rows {
            let state = read_state(row)?;
            found.insert((state.tenant, state.alert.clone(), state.job), state);
        }
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    async fn try_firing_alerts(
        &self,
        after: Option<&AlertKey>,
        most: usize,
    ) -> Done<Vec<FiringAlert>> {
        let conn = self.readers.get().await?;
        let (tenant, name, job) = match after {
            Some((tenant, name, job)) => (tenant.0, name.as_str(), job.0),
            // Every name is greater than no text at all.
            None => (Uuid::nil(), "", Uuid::nil()),
        };
        let sql = include_str!("sql/firing_alerts.sql");
        let rows = conn
            .rows(sql, &[&tenant, &name, &job, &limit(most)])
            .await?;
        let read = |row: &Row| {
            let run: Option<Uuid> = row.try_get(15)?;
            Ok((read_state(row)?, run.map(RunId).zip(maybe_moment(row, 16)?)))
        };
        rows.iter().map(read).collect()
    }

    /// What is written before a refusal goes with the transaction, which is not committed then.
    async fn try_move_alerts(&self, moves: &AlertMoves) -> Done<AlertsMoved> {
        let conn = self.clients.begin().await?;
        let nos: Vec<i64> = moves.causes.iter().map(|no| signed(*no)).collect();
        if !nos.is_empty() {
            let sql = include_str!("sql/drop_causes.sql");
            if conn.execute(sql, &[&nos]).await? != nos.len() as u64 {
                return Ok(AlertsMoved::Stale);
            }
        }
        if !write_states(&conn, &moves.moves).await? {
            return Ok(AlertsMoved::Stale);
        }
        if let Some(run) = &moves.run {
            match self.deliver(&conn, run).await? {
                Queued::Ready(_) | Queued::Waiting(_) | Queued::Repeated => {}
                Queued::Full => return Ok(AlertsMoved::Full),
                Queued::Undecided | Queued::Undivided | Queued::Missing => {
                    return Ok(AlertsMoved::Missing);
                }
            }
        }
        conn.commit().await?;
        Ok(AlertsMoved::Done)
    }

    async fn deliver(&self, conn: &Conn, run: &QueueRun) -> Done<Queued> {
        let (job, id) = (run.run.job, run.run.id);
        let mut views = Views::load(conn, &[job.0], Lock::JobsAndRuns).await?;
        views.read_jobs(conn, &[job.0], Payloads::Small).await?;
        views.job(job)?;
        let ended = ended_named(conn, &[id.0]).await?;
        let view = views.view(job);
        view.history.ended = ended.into_keys().collect();
        let queued = view.queue(run);
        views.flush(self, conn).await?;
        Ok(queued)
    }
}

#[async_trait]
impl AlertStore for PgStore {
    async fn put_alert(
        &self,
        alert: &Alert,
        before: Option<Version>,
    ) -> Result<AlertPut, StoreError> {
        self.call(|| self.try_put_alert(alert, before)).await
    }

    async fn get_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
    ) -> Result<Option<Alert>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            get(&conn, tenant, name).await
        })
        .await
    }

    async fn list_alerts(
        &self,
        tenant: TenantId,
        after: Option<&AlertName>,
        most: usize,
    ) -> Result<Vec<Alert>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            // Every name is greater than no text at all.
            let after = after.map_or("", AlertName::as_str);
            list(&conn, tenant, after, most).await
        })
        .await
    }

    async fn drop_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
        before: Version,
    ) -> Result<bool, StoreError> {
        self.call(|| self.try_drop_alert(tenant, name, before))
            .await
    }

    async fn alert_causes(&self, most: usize) -> Result<Vec<Cause>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            let sql = include_str!("sql/alert_causes.sql");
            let rows = conn.rows(sql, &[&limit(most)]).await?;
            rows.iter().map(read_cause).collect()
        })
        .await
    }

    async fn alert_states(&self, keys: &[AlertKey]) -> Result<Vec<Option<AlertState>>, StoreError> {
        self.call(|| self.try_alert_states(keys)).await
    }

    async fn alerts_of(
        &self,
        tenant: TenantId,
        name: &AlertName,
        after: Option<JobId>,
        most: usize,
    ) -> Result<Vec<AlertState>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            let after = after.map(|job| job.0);
            let params: &Params<'_> = &[&tenant.0, &name.as_str(), &after, &limit(most)];
            let rows = conn.rows(include_str!("sql/alerts_of.sql"), params).await?;
            rows.iter().map(read_state).collect()
        })
        .await
    }

    async fn due_alerts(&self, now: Timestamp, most: usize) -> Result<Vec<AlertState>, StoreError> {
        self.call(|| async {
            let conn = self.clients.get().await?;
            let params: &Params<'_> = &[&now.as_millis(), &limit(most)];
            let rows = conn
                .rows(include_str!("sql/due_alerts.sql"), params)
                .await?;
            rows.iter().map(read_state).collect()
        })
        .await
    }

    async fn firing_alerts(
        &self,
        after: Option<&AlertKey>,
        most: usize,
    ) -> Result<Vec<FiringAlert>, StoreError> {
        self.call(|| self.try_firing_alerts(after, most)).await
    }

    async fn move_alerts(&self, moves: &AlertMoves) -> Result<AlertsMoved, StoreError> {
        self.call(|| self.try_move_alerts(moves)).await
    }
}
