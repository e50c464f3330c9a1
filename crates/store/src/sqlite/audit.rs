//! The audit log, and its seals.

use async_trait::async_trait;
use model::{Job, JobId, JobState, KeyId, Tenant, TenantId, Timestamp, Version};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::db::Db;
use super::fault::Done;
use super::rows::{Tenant as TenantColumn, moment};
use super::store::SqliteStore;
use super::versions;
use super::writer::By;
use crate::audit::{Change, DROP_ENTRIES_MAX, is_end};
use crate::code::bad_row;
use crate::statement::statement;
use crate::{
    Acting, AuditEntry, AuditRange, AuditStore, DroppedSeals, Gap, JobVersion, Page, Seal,
    StoreError,
};

/// As SQLite counts.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Columns as `list_audit.sql` has them.
fn read(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let TenantColumn(tenant) = row.get(2)?;
    let key: Option<[u8; 16]> = row.get(4)?;
    Ok(AuditEntry {
        seq: row.get::<_, i64>(0)?.unsigned_abs(),
        at: moment(row, 1)?,
        tenant,
        actor: row.get(3)?,
        key: key.map(KeyId::from_bytes),
        address: row.get(5)?,
        request: row.get(6)?,
        action: row.get(7)?,
        subject: row.get(8)?,
        before: row.get(9)?,
        after: row.get(10)?,
    })
}

fn select(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<AuditEntry>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn list(conn: &Connection, range: &AuditRange) -> Done<Vec<AuditEntry>> {
    let (after, before) = (signed(range.after), signed(range.before));
    let limit = i64::try_from(range.limit).unwrap_or(i64::MAX);
    match (range.tenant, range.newest_first) {
        (None, false) => {
            let sql = statement!("sql/list_audit.sql");
            select(conn, sql, params![after, before, limit])
        }
        (None, true) => {
            let sql = statement!("sql/list_audit_back.sql");
            select(conn, sql, params![after, before, limit])
        }
        (Some(tenant), newest_first) => {
            let sql = match (tenant == TenantId::DEFAULT, newest_first) {
                (true, false) => statement!("sql/list_audit_default.sql"),
                (true, true) => statement!("sql/list_audit_default_back.sql"),
                (false, false) => statement!("sql/list_audit_tenant.sql"),
                (false, true) => statement!("sql/list_audit_tenant_back.sql"),
            };
            let params = params![after, before, limit, TenantColumn(tenant)];
            select(conn, sql, params)
        }
    }
}

fn find(conn: &Connection, gaps: &[Gap], limit: usize) -> Done<Vec<AuditEntry>> {
    let mut found: Vec<AuditEntry> = Vec::new();
    for gap in gaps {
        let left = limit.saturating_sub(found.len());
        let left = i64::try_from(left).unwrap_or(i64::MAX);
        let params = params![signed(gap.first), signed(gap.last), left];
        found.extend(select(conn, statement!("sql/find_audit.sql"), params)?);
    }
    Ok(found)
}

/// A seal as its row has it; the texts are still to be read.
type SealRow = (Seal, String, String);

/// Columns as `list_seals.sql` has them.
fn read_seal(row: &Row<'_>) -> rusqlite::Result<SealRow> {
    let number = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let seal = Seal {
        number: number(0)?,
        from: number(1)?,
        to: number(2)?,
        sealed_at: moment(row, 3)?,
        gaps: Vec::new(),
        late: Vec::new(),
        count: number(6)?,
        key: row.get(7)?,
        previous: row.get(8)?,
        mac: row.get(9)?,
    };
    Ok((seal, row.get(4)?, row.get(5)?))
}

fn decode((mut seal, gaps, late): SealRow) -> Result<Seal, StoreError> {
    let bad = |what: &str| {
        bad_row(
            format!("seal {}", seal.number),
            &format!("its {what} cannot be read"),
        )
    };
    let gaps = Seal::read_gaps(&gaps).ok_or_else(|| bad("gaps"))?;
    let late = Seal::read_late(&late).ok_or_else(|| bad("late numbers"))?;
    (seal.gaps, seal.late) = (gaps, late);
    Ok(seal)
}

fn seals(conn: &Connection, sql: &str, params: impl Params) -> Done<Vec<Seal>> {
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params, read_seal)?;
    let mut found = Vec::new();
    for row in rows {
        found.push(decode(row?)?);
    }
    Ok(found)
}

fn list_seals(conn: &Connection, after: u64, limit: usize) -> Done<Vec<Seal>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let sql = statement!("sql/list_seals.sql");
    seals(conn, sql, params![signed(after), limit])
}

fn last_seal(conn: &Connection) -> Done<Option<Seal>> {
    let last = seals(conn, statement!("sql/last_seal.sql"), [])?;
    Ok(last.into_iter().next())
}

impl Db {
    /// Enters a change that is made in this transaction.
    pub(super) fn audit(&self, change: &Change) -> Done<()> {
        self.audit_as(&self.acting, change)
    }

    /// Whoever asked for what it follows from.
    pub(super) fn audit_as(&self, acting: &Acting, change: &Change) -> Done<()> {
        let mut insert = self.conn.prepare_cached(statement!("sql/put_audit.sql"))?;
        insert.execute(params![
            self.shared.clock.now().as_millis(),
            TenantColumn(change.tenant),
            &*acting.name,
            acting.key.as_ref().map(|key| key.as_bytes()),
            acting.address.as_deref(),
            acting.request.as_deref(),
            change.action.as_str(),
            change.subject,
            change.before,
            change.after,
        ])?;
        Ok(())
    }

    pub(super) fn audit_tenant(&self, before: Option<&Tenant>, after: Option<&Tenant>) -> Done<()> {
        match Change::tenant(before, after) {
            Some(change) => self.audit(&change),
            None => Ok(()),
        }
    }

    /// A job that recurs and has come to its end is entered; a one-off says so by its run.
    pub(super) fn audit_end(&self, job: &Job) -> Done<()> {
        if is_end(job) && self.is_active(job.id)?.is_some() {
            let note = job.note.as_deref();
            self.audit(&Change::job_moved(job.tenant, job.id, job.state, note))?;
        }
        Ok(())
    }

    /// The tenant of a job that is active.
    pub(super) fn is_active(&self, job: JobId) -> Done<Option<TenantId>> {
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/is_active.sql"))?;
        let found = select.query_row([job.as_bytes()], |row| {
            row.get(0).map(|TenantColumn(tenant)| tenant)
        });
        Ok(found.optional()?)
    }

    /// A job that cannot be planned any more.
    pub(super) fn audit_parked(&self, tenant: TenantId, job: JobId, why: &str) -> Done<()> {
        let change = Change::job_moved(tenant, job, JobState::Invalid, Some(why));
        self.audit(&change)
    }

    fn put_seal(&self, seal: &Seal) -> Done<bool> {
        let mut insert = self.conn.prepare_cached(statement!("sql/put_seal.sql"))?;
        let written = insert.execute(params![
            signed(seal.number),
            signed(seal.from),
            signed(seal.to),
            seal.sealed_at.as_millis(),
            seal.gaps_text(),
            seal.late_text(),
            signed(seal.count),
            seal.key,
            seal.previous,
            seal.mac,
        ])?;
        Ok(written == 1)
    }

    fn drop_sealed(&self, dropped: &[Seal], said: &DroppedSeals) -> Done<bool> {
        let conn = &self.conn;
        let (Some(first), Some(last)) = (dropped.first(), dropped.last()) else {
            return Ok(false);
        };
        let there = list_seals(conn, first.number.saturating_sub(1), dropped.len())?;
        if there.last().map(|seal| seal.number) != Some(last.number) {
            return Ok(false);
        }
        let mut entries = conn.prepare_cached(include_str!("sql/drop_sealed.sql"))?;
        let mut seals = conn.prepare_cached(include_str!("sql/drop_seal.sql"))?;
        for seal in dropped {
            for span in seal.spans() {
                entries.execute(params![signed(span.first), signed(span.last)])?;
            }
            seals.execute([signed(seal.number)])?;
        }
        self.audit(&Change::audit_dropped(said))?;
        Ok(true)
    }

    fn drop_unsealed(&self, until: Timestamp) -> Done<u64> {
        let sealed = last_seal(&self.conn)?.map_or(0, |seal| seal.to);
        let sql = include_str!("sql/drop_unsealed.sql");
        let mut delete = self.conn.prepare_cached(sql)?;
        let params = params![signed(sealed), signed(DROP_ENTRIES_MAX), until.as_millis()];
        let rows = delete.query_map(params, |row| row.get(0).map(i64::unsigned_abs))?;
        let dropped = rows.collect::<rusqlite::Result<Vec<u64>>>()?;
        if let Some(change) = Change::unsealed_dropped(&dropped) {
            self.audit(&change)?;
        }
        Ok(dropped.len() as u64)
    }
}

#[async_trait]
impl AuditStore for SqliteStore {
    async fn list_versions(
        &self,
        tenant: TenantId,
        job: JobId,
        page: Page<Version>,
    ) -> Result<Vec<JobVersion>, StoreError> {
        let read = move |conn: &_| versions::list(conn, tenant, job, page);
        self.read(By::Client, read).await
    }

    async fn get_version(
        &self,
        tenant: TenantId,
        job: JobId,
        version: Version,
    ) -> Result<Option<JobVersion>, StoreError> {
        let read = move |conn: &_| versions::get(conn, tenant, job, version);
        self.read(By::Client, read).await
    }

    async fn list_audit(&self, range: &AuditRange) -> Result<Vec<AuditEntry>, StoreError> {
        let range = *range;
        self.read(By::Client, move |conn| list(conn, &range)).await
    }

    async fn find_audit(&self, gaps: &[Gap], limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let gaps = gaps.to_vec();
        self.read(By::Client, move |conn| find(conn, &gaps, limit))
            .await
    }

    async fn put_seal(&self, seal: &Seal) -> Result<bool, StoreError> {
        let seal = seal.clone();
        self.write(By::Client, 1, move |db| db.put_seal(&seal))
            .await
    }

    async fn list_seals(&self, after: u64, limit: usize) -> Result<Vec<Seal>, StoreError> {
        self.read(By::Client, move |conn| list_seals(conn, after, limit))
            .await
    }

    async fn last_seal(&self) -> Result<Option<Seal>, StoreError> {
        self.read(By::Client, last_seal).await
    }

    async fn drop_sealed(&self, seals: &[Seal], said: &DroppedSeals) -> Result<bool, StoreError> {
        let (seals, said) = (seals.to_vec(), said.clone());
        self.write(By::Client, 1, move |db| db.drop_sealed(&seals, &said))
            .await
    }

    async fn drop_unsealed(&self, until: Timestamp) -> Result<u64, StoreError> {
        self.write(By::Client, 1, move |db| db.drop_unsealed(until))
            .await
    }
}
