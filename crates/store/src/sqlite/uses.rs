//! What tenants use, as one call changes it: read when a tenant is first seen, written at the end.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use model::quota::{QuotaExceeded, Quotas, Usage};
use model::{Tenant, TenantId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::Done;
use super::rows::Tenant as TenantColumn;

/// A number that may be none; columns never have less than nothing.
pub(super) fn maybe_count(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    let stored: Option<i64> = row.get(column)?;
    Ok(stored.map(|count| u64::try_from(count).unwrap_or(0)))
}

/// A number as it is stored.
pub(super) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn read(conn: &Connection, tenant: TenantId) -> Done<Usage> {
    let mut select = conn.prepare_cached(include_str!("sql/tenant_use.sql"))?;
    let used = select.query_row([TenantColumn(tenant)], |row| {
        Ok(Usage {
            jobs: maybe_count(row, 0)?.unwrap_or(0),
            payload_bytes: maybe_count(row, 1)?.unwrap_or(0),
        })
    });
    Ok(used.optional()?.unwrap_or_default())
}

fn quotas(conn: &Connection, tenant: TenantId) -> Done<Quotas> {
    let tenant: Option<Tenant> = super::tenants::get(conn, tenant)?;
    Ok(tenant.map(|tenant| tenant.quotas).unwrap_or_default())
}

#[derive(Default)]
pub(super) struct Uses {
    seen: BTreeMap<TenantId, Seen>,
}

struct Seen {
    quotas: Quotas,
    was: Usage,
    used: Usage,
}

impl Uses {
    /// Counts what takes `after` instead of `before`, if the tenant may have it.
    pub(super) fn admit(
        &mut self,
        conn: &Connection,
        tenant: TenantId,
        before: Usage,
        after: Usage,
    ) -> Done<Result<(), QuotaExceeded>> {
        let seen = match self.seen.entry(tenant) {
            Entry::Occupied(seen) => seen.into_mut(),
            Entry::Vacant(place) => {
                let (quotas, was) = (quotas(conn, tenant)?, read(conn, tenant)?);
                place.insert(Seen {
                    quotas,
                    was,
                    used: was,
                })
            }
        };
        Ok(seen
            .quotas
            .admit(seen.used, before, after)
            .map(|used| seen.used = used))
    }

    /// What was counted and not written after all.
    pub(super) fn give_back(&mut self, tenant: TenantId, taken: Usage) {
        if let Some(seen) = self.seen.get_mut(&tenant) {
            seen.used = seen.used.less(taken);
        }
    }

    /// Writes what has changed.
    pub(super) fn write(self, conn: &Connection) -> Done<()> {
        for (tenant, Seen { was, used, .. }) in self.seen {
            if was != used {
                let mut put = conn.prepare_cached(include_str!("sql/put_use.sql"))?;
                put.execute(params![
                    TenantColumn(tenant),
                    count(used.jobs),
                    count(used.payload_bytes),
                ])?;
            }
        }
        Ok(())
    }
}
