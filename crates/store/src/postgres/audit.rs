//! The audit log, and its seals.

use std::borrow::Cow;

use async_trait::async_trait;
use model::{JobId, KeyId, TenantId, Timestamp, Version};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::pool::{Conn, Params};
use super::put::{Param, columns};
use super::rows::{moment, read_text, text};
use super::store::{PgStore, limit};
use crate::audit::{Change, DROP_ENTRIES_MAX};
use crate::code::bad_row;
use crate::{
    Acting, AuditEntry, AuditRange, AuditStore, DroppedSeals, Gap, JobVersion, Page, Seal,
    StoreError,
};

columns! {
    /// Columns as `put_audit.sql` has them.
    EntryColumns<'a>(change: &'a Change, acting: &'a Acting) [
        tenant: Uuid = change.tenant.0,
        actor: Cow<'a, str> = text(&acting.name),
        key: Option<Uuid> = acting.key.map(|key| key.0),
        address: Option<Cow<'a, str>> = acting.address.as_deref().map(text),
        request: Option<Cow<'a, str>> = acting.request.as_deref().map(text),
        action: &'static str = change.action.as_str(),
        subject: Cow<'a, str> = text(&change.subject),
        before: Option<Cow<'a, str>> = change.before.as_deref().map(text),
        after: Option<Cow<'a, str>> = change.after.as_deref().map(text),
    ]
}

impl EntryColumns<'_> {
    /// Those that `create_plain.sql` does not know from the jobs themselves.
    pub(super) fn of_new(&self) -> [Param<'_>; 6] {
        [
            &self.actor,
            &self.key,
            &self.address,
            &self.request,
            &self.subject,
            &self.after,
        ]
    }
}

/// As PostgreSQL counts.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(row: &Row, column: usize) -> Done<u64> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

fn maybe_text(row: &Row, column: usize) -> Done<Option<String>> {
    Ok(row.try_get::<_, Option<String>>(column)?.map(read_text))
}

/// Columns as `list_audit.sql` has them.
fn read(row: &Row) -> Done<AuditEntry> {
    let key: Option<Uuid> = row.try_get(4)?;
    Ok(AuditEntry {
        seq: number(row, 0)?,
        at: moment(row, 1)?,
        tenant: TenantId(row.try_get(2)?),
        actor: read_text(row.try_get(3)?),
        key: key.map(KeyId),
        address: maybe_text(row, 5)?,
        request: maybe_text(row, 6)?,
        action: row.try_get(7)?,
        subject: read_text(row.try_get(8)?),
        before: maybe_text(row, 9)?,
        after: maybe_text(row, 10)?,
    })
}

/// Columns as `list_seals.sql` has them.
fn read_seal(row: &Row) -> Done<Seal> {
    let no = number(row, 0)?;
    let bad = |what: &str| bad_row(format!("seal {no}"), &format!("its {what} cannot be read"));
    let code = |column: usize, what: &str| -> Done<[u8; 32]> {
        let bytes: Vec<u8> = row.try_get(column)?;
        Ok(bytes.try_into().map_err(|_| bad(what))?)
    };
    let (gaps, late): (&str, &str) = (row.try_get(4)?, row.try_get(5)?);
    Ok(Seal {
        number: no,
        from: number(row, 1)?,
        to: number(row, 2)?,
        sealed_at: moment(row, 3)?,
        gaps: Seal::read_gaps(gaps).ok_or_else(|| bad("gaps"))?,
        late: Seal::read_late(late).ok_or_else(|| bad("late numbers"))?,
        count: number(row, 6)?,
        key: row.try_get(7)?,
        previous: code(8, "code before")?,
        mac: code(9, "code")?,
    })
}

async fn seals(conn: &Conn, sql: &'static str, params: &Params<'_>) -> Done<Vec<Seal>> {
    let rows = conn.rows(sql, params).await?;
    rows.iter().map(read_seal).collect()
}

/// Gaps as two columns.
fn ends(gaps: &[Gap]) -> (Vec<i64>, Vec<i64>) {
    let ends = gaps.iter().map(|gap| (signed(gap.first), signed(gap.last)));
    ends.unzip()
}

impl PgStore {
    /// Enters changes that are made in this transaction, by whoever acts.
    pub(super) async fn audit(&self, conn: &Conn, changes: &[Change]) -> Done<()> {
        let acting = Acting::now();
        let mut columns = EntryColumns::default();
        for change in changes {
            columns.push(change, &acting);
        }
        self.enter(conn, &columns).await
    }

    pub(super) async fn enter(&self, conn: &Conn, entries: &EntryColumns<'_>) -> Done<()> {
        if entries.tenant.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let mut params: Vec<Param<'_>> = vec![&now];
        params.extend(entries.params());
        conn.execute(include_str!("sql/put_audit.sql"), &params)
            .await?;
        Ok(())
    }

    async fn try_list_audit(&self, range: &AuditRange) -> Done<Vec<AuditEntry>> {
        let conn = self.readers.get().await?;
        let (after, before) = (signed(range.after), signed(range.before));
        let (count, tenant) = (limit(range.limit), range.tenant.map(|tenant| tenant.0));
        let sql = match (range.tenant, range.newest_first) {
            (None, false) => include_str!("sql/list_audit.sql"),
            (None, true) => include_str!("sql/list_audit_back.sql"),
            (Some(_), false) => include_str!("sql/list_audit_tenant.sql"),
            (Some(_), true) => include_str!("sql/list_audit_tenant_back.sql"),
        };
        let mut params: Vec<Param<'_>> = vec![&after, &before, &count];
        params.extend(tenant.as_ref().map(|tenant| tenant as Param<'_>));
        let rows = conn.rows(sql, &params).await?;
        rows.iter().map(read).collect()
    }

    async fn try_find_audit(&self, gaps: &[Gap], count: usize) -> Done<Vec<AuditEntry>> {
        let conn = self.clients.get().await?;
        let (first, last) = ends(gaps);
        let sql = include_str!("sql/find_audit.sql");
        let rows = conn.rows(sql, &[&first, &last, &limit(count)]).await?;
        rows.iter().map(read).collect()
    }

    async fn try_put_seal(&self, seal: &Seal) -> Done<bool> {
        let conn = self.clients.get().await?;
        let written = conn
            .execute(
                include_str!("sql/put_seal.sql"),
                &[
                    &signed(seal.number),
                    &signed(seal.from),
                    &signed(seal.to),
                    &seal.sealed_at.as_millis(),
                    &seal.gaps_text(),
                    &seal.late_text(),
                    &signed(seal.count),
                    &seal.key,
                    &seal.previous.as_slice(),
                    &seal.mac.as_slice(),
                ],
            )
            .await?;
        Ok(written == 1)
    }

    async fn try_list_seals(&self, after: u64, count: usize) -> Done<Vec<Seal>> {
        let conn = self.clients.get().await?;
        let params: &Params<'_> = &[&signed(after), &limit(count)];
        seals(&conn, include_str!("sql/list_seals.sql"), params).await
    }

    async fn try_last_seal(&self) -> Done<Option<Seal>> {
        let conn = self.clients.get().await?;
        let last = seals(&conn, include_str!("sql/last_seal.sql"), &[]).await?;
        Ok(last.into_iter().next())
    }

    async fn try_drop_sealed(&self, dropped: &[Seal], said: &DroppedSeals) -> Done<bool> {
        if dropped.is_empty() {
            return Ok(false);
        }
        let conn = self.clients.begin().await?;
        let numbers: Vec<i64> = dropped.iter().map(|seal| signed(seal.number)).collect();
        let sql = include_str!("sql/drop_seal.sql");
        if conn.execute(sql, &[&numbers]).await? != numbers.len() as u64 {
            // Another has dropped some of them.
            return Ok(false);
        }
        let spans: Vec<Gap> = dropped.iter().flat_map(Seal::spans).collect();
        let (first, last) = ends(&spans);
        let sql = include_str!("sql/drop_sealed.sql");
        conn.execute(sql, &[&first, &last]).await?;
        self.audit(&conn, &[Change::audit_dropped(said)]).await?;
        conn.commit().await?;
        Ok(true)
    }

    async fn try_drop_unsealed(&self, until: Timestamp) -> Done<u64> {
        let conn = self.clients.begin().await?;
        let sql = include_str!("sql/drop_unsealed.sql");
        let max = signed(DROP_ENTRIES_MAX);
        let rows = conn.rows(sql, &[&max, &until.as_millis()]).await?;
        let dropped: Vec<u64> = rows.iter().map(|row| number(row, 0)).collect::<Done<_>>()?;
        let Some(change) = Change::unsealed_dropped(&dropped) else {
            return Ok(0);
        };
        self.audit(&conn, &[change]).await?;
        conn.commit().await?;
        Ok(dropped.len() as u64)
    }
}

#[async_trait]
impl AuditStore for PgStore {
    async fn list_versions(
        &self,
        tenant: TenantId,
        job: JobId,
        page: Page<Version>,
    ) -> Result<Vec<JobVersion>, StoreError> {
        self.call(|| self.try_list_versions(tenant, job, page))
            .await
    }

    async fn get_version(
        &self,
        tenant: TenantId,
        job: JobId,
        version: Version,
    ) -> Result<Option<JobVersion>, StoreError> {
        self.call(|| self.try_get_version(tenant, job, version))
            .await
    }

    async fn list_audit(&self, range: &AuditRange) -> Result<Vec<AuditEntry>, StoreError> {
        self.call(|| self.try_list_audit(range)).await
    }

    async fn find_audit(&self, gaps: &[Gap], limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.call(|| self.try_find_audit(gaps, limit)).await
    }

    async fn put_seal(&self, seal: &Seal) -> Result<bool, StoreError> {
        self.call(|| self.try_put_seal(seal)).await
    }

    async fn list_seals(&self, after: u64, limit: usize) -> Result<Vec<Seal>, StoreError> {
        self.call(|| self.try_list_seals(after, limit)).await
    }

    async fn last_seal(&self) -> Result<Option<Seal>, StoreError> {
        self.call(|| self.try_last_seal()).await
    }

    async fn drop_sealed(&self, seals: &[Seal], said: &DroppedSeals) -> Result<bool, StoreError> {
        self.call(|| self.try_drop_sealed(seals, said)).await
    }

    async fn drop_unsealed(&self, until: Timestamp) -> Result<u64, StoreError> {
        self.call(|| self.try_drop_unsealed(until)).await
    }
}
