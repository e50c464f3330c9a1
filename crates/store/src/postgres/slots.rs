//! What came of a job's slots: runs and skipped entries from history and the live table, by the moment in their ids.

use std::collections::BTreeMap;

use model::{JobId, Run, RunId, TenantId, Timestamp};

use super::fault::Done;
use super::pool::Conn;
use super::rows::{LiveRow, read_ended};
use super::store::{PgStore, limit};

impl PgStore {
    pub(super) async fn try_list_slots(
        &self,
        tenant: TenantId,
        job: JobId,
        from: Timestamp,
        to: Timestamp,
        count: usize,
    ) -> Done<Vec<Run>> {
        let conn = self.readers.get().await?;
        let (first, last, max) = (RunId::least_at(from).0, RunId::least_at(to).0, limit(count));
        let mut found: BTreeMap<RunId, Run> = BTreeMap::new();
        let sql = include_str!("sql/list_slots_live.sql");
        let rows = conn
            .rows(sql, &[&job.0, &tenant.0, &first, &last, &max])
            .await?;
        for row in &rows {
            let run = LiveRow::read(row)?.decode()?;
            found.insert(run.id, run);
        }
        let sql = include_str!("sql/list_slots.sql");
        let rows = conn
            .rows(sql, &[&job.0, &tenant.0, &first, &last, &max])
            .await?;
        for row in &rows {
            let run = read_ended(row)?;
            found.entry(run.id).or_insert(run);
        }
        let begun = covering(&conn, tenant, job, from).await?;
        let all = begun.into_iter().chain(found.into_values());
        Ok(all.take(count).collect())
    }
}

/// The last entry that began before the span, if it reaches into it. A run alive under its name, or a later one, is the
/// last that was decided.
async fn covering(conn: &Conn, tenant: TenantId, job: JobId, from: Timestamp) -> Done<Option<Run>> {
    let first = RunId::least_at(from).0;
    let sql = include_str!("sql/list_slots_live_before.sql");
    let row = conn.row(sql, &[&job.0, &tenant.0, &first]).await?;
    let live = row.map(|row| row.try_get(0)).transpose()?.map(RunId);
    let sql = include_str!("sql/list_slots_before.sql");
    let row = conn.row(sql, &[&job.0, &tenant.0, &first]).await?;
    let last = row.as_ref().map(read_ended).transpose()?;
    Ok(last.filter(|run| {
        let reaches = run.stretch.is_some_and(|stretch| stretch.last.0 >= from);
        reaches && live.is_none_or(|live| live < run.id)
    }))
}
