//! Runs as readers see them: the live table and the days of history. Live runs are read first: one that ends
//! meanwhile is seen twice rather than not at all, and what is alive counts.

use std::collections::BTreeMap;

use model::{Run, RunId, RunState, TenantId};
use uuid::Uuid;

use super::fault::Done;
use super::fire::live_named;
use super::pool::Conn;
use super::rows::{EndedRow, LiveRow, Payloads};
use super::store::{PgStore, limit};
use crate::code::Code;
use crate::{Page, RunFilter};

/// Ended runs by their names.
pub(super) async fn ended_runs(conn: &Conn, names: &[Uuid]) -> Done<BTreeMap<RunId, Run>> {
    let mut ended = BTreeMap::new();
    if names.is_empty() {
        return Ok(ended);
    }
    let sql = include_str!("sql/get_run_ended.sql");
    for row in &conn.rows(sql, &[&names]).await? {
        let run = EndedRow::read(row)?;
        ended.insert(run.id, run);
    }
    Ok(ended)
}

impl PgStore {
    pub(super) async fn try_get_run(&self, tenant: TenantId, id: RunId) -> Done<Option<Run>> {
        let conn = self.clients.get().await?;
        let live = live_named(&conn, &[id.0], Payloads::All).await?;
        let run = match live.first() {
            Some(row) => Some(row.decode()?),
            None => ended_runs(&conn, &[id.0]).await?.remove(&id),
        };
        Ok(run.filter(|run| run.tenant == tenant))
    }

    pub(super) async fn try_list_runs(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Done<Vec<Run>> {
        let wanted = |state: &RunState| filter.states.is_empty() || filter.states.contains(state);
        let (living, ended): (Vec<RunState>, Vec<RunState>) = RunState::ALL
            .into_iter()
            .filter(wanted)
            .partition(|state| state.is_live());
        let conn = self.readers.get().await?;
        let job = filter.job.map(|job| job.0);
        let before = page.before.map_or(Uuid::max(), |before| before.0);
        let count = limit(page.limit);
        let mut found: BTreeMap<RunId, Run> = BTreeMap::new();
        // All that live under their names, wanted or not, hide what has ended under the same.
        let live = match job {
            None => include_str!("sql/list_runs_live.sql"),
            Some(_) => include_str!("sql/list_runs_live_job.sql"),
        };
        let codes: Vec<i16> = living.iter().map(|state| state.code()).collect();
        for row in &conn
            .rows(live, &[&tenant.0, &before, &codes, &count, &job])
            .await?
        {
            let run = LiveRow::read(row)?.decode()?;
            found.insert(run.id, run);
        }
        let codes: Vec<i16> = ended.iter().map(|state| state.code()).collect();
        let sql = match (job, ended.contains(&RunState::Succeeded)) {
            (Some(_), _) => include_str!("sql/list_runs_job.sql"),
            (None, true) => include_str!("sql/list_runs.sql"),
            (None, false) => include_str!("sql/list_runs_rare.sql"),
        };
        if !codes.is_empty() {
            let rows = conn
                .rows(sql, &[&tenant.0, &before, &codes, &count, &job])
                .await?;
            for row in &rows {
                let run = EndedRow::read(row)?;
                found.entry(run.id).or_insert(run);
            }
        }
        Ok(found.into_values().rev().take(page.limit).collect())
    }
}
