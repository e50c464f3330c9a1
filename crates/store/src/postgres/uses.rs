//! What tenants use. It is counted in several rows for each tenant, one for each of some backends, so that those who write
//! for one tenant do not wait for each other; their sum is what counts.

use std::collections::BTreeMap;

use model::quota::{Quota, QuotaExceeded, Quotas, Usage};
use model::{Job, TenantId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::fault::Done;
use super::pool::Conn;
use super::store::PgStore;

/// A number as it is stored.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that may be none; a sum is never less than nothing but for a moment.
pub(super) fn maybe_count(row: &Row, column: usize) -> Done<Option<u64>> {
    let stored: Option<i64> = row.try_get(column)?;
    Ok(stored.map(|count| u64::try_from(count).unwrap_or(0)))
}

/// What a quota is where nothing is said of it.
pub(super) fn defaults() -> [i64; 2] {
    Quota::COUNTED.map(|quota| count(quota.default_max().unwrap_or(u64::MAX)))
}

/// What one call changes, by tenant; columns as `count_use.sql` has them. In the order of tenants, so that calls which meet
/// do not wait for each other in a circle.
#[derive(Default)]
pub(super) struct UseColumns {
    pub tenants: Vec<Uuid>,
    pub jobs: Vec<i64>,
    pub bytes: Vec<i64>,
}

impl UseColumns {
    pub(super) fn new(changes: impl IntoIterator<Item = (TenantId, Usage, Usage)>) -> Self {
        let mut sums: BTreeMap<TenantId, (i64, i64)> = BTreeMap::new();
        for (tenant, before, after) in changes {
            let (jobs, bytes) = sums.entry(tenant).or_default();
            *jobs += count(after.jobs) - count(before.jobs);
            *bytes += count(after.payload_bytes) - count(before.payload_bytes);
        }
        let mut columns = Self::default();
        for (tenant, (jobs, bytes)) in sums {
            if (jobs, bytes) != (0, 0) {
                columns.tenants.push(tenant.0);
                columns.jobs.push(jobs);
                columns.bytes.push(bytes);
            }
        }
        columns
    }

    /// New jobs.
    pub(super) fn of_new<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Self {
        let new = |job: &Job| (job.tenant, Usage::default(), Usage::by(job));
        Self::new(jobs.into_iter().map(new))
    }

    pub(super) async fn write(&self, conn: &Conn) -> Done<()> {
        if !self.tenants.is_empty() {
            let sql = include_str!("sql/count_use.sql");
            conn.execute(sql, &[&self.tenants, &self.jobs, &self.bytes])
                .await?;
        }
        Ok(())
    }
}

/// What some tenants may have, and what they have, as one call looks at it.
#[derive(Default)]
pub(super) struct Rooms(BTreeMap<TenantId, (Quotas, Usage)>);

impl Rooms {
    pub(super) async fn read(conn: &Conn, tenants: &[Uuid]) -> Done<Self> {
        let mut rooms = Self::default();
        let sql = include_str!("sql/tenant_rooms.sql");
        for row in &conn.rows(sql, &[&tenants]).await? {
            let quotas = Quotas {
                jobs_max: maybe_count(row, 1)?,
                payload_bytes_max: maybe_count(row, 2)?,
                ..Quotas::default()
            };
            let used = Usage {
                jobs: maybe_count(row, 3)?.unwrap_or(0),
                payload_bytes: maybe_count(row, 4)?.unwrap_or(0),
            };
            rooms.0.insert(TenantId(row.try_get(0)?), (quotas, used));
        }
        Ok(rooms)
    }

    pub(super) fn admit(
        &mut self,
        tenant: TenantId,
        before: Usage,
        after: Usage,
    ) -> Result<(), QuotaExceeded> {
        let (quotas, used) = self.0.entry(tenant).or_default();
        *used = quotas.admit(*used, before, after)?;
        Ok(())
    }
}

impl PgStore {
    pub(super) async fn try_tenant_use(&self, tenant: TenantId) -> Done<Usage> {
        let conn = self.clients.get().await?;
        let rooms = Rooms::read(&conn, &[tenant.0]).await?;
        Ok(rooms
            .0
            .get(&tenant)
            .map(|(_, used)| *used)
            .unwrap_or_default())
    }
}
