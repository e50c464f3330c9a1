//! Runs as readers see them: the live table and the days of history. Live runs are read first: one that ends
//! meanwhile is seen twice rather than not at all, and what is alive counts.

use std::collections::BTreeMap;

use model::view::Span;
use model::{JobId, Run, RunId, RunState, TenantId, Timestamp};
use uuid::Uuid;

use super::fault::Done;
use super::pool::Conn;
use super::rows::{LiveRow, read_ended};
use super::store::{PgStore, limit};
use crate::code::{Code, of_row};
use crate::row::Payloads;
use crate::{BadRow, Found, Page, RunFilter};

impl PgStore {
    pub(super) async fn try_get_runs(&self, wanted: &[(TenantId, RunId)]) -> Done<Vec<Found<Run>>> {
        let conn = self.clients.get().await?;
        let mut names: Vec<Uuid> = wanted.iter().map(|(_, id)| id.0).collect();
        let mut runs: BTreeMap<RunId, Result<Run, BadRow>> = BTreeMap::new();
        let live = include_str!("sql/get_run_live.sql");
        for row in &conn.rows(live, &[&names, &Payloads::All.max()]).await? {
            let run = LiveRow::read(row).and_then(|row| Ok(row.decode()?));
            runs.insert(RunId(row.try_get(0)?), of_row(run)?);
        }
        names.retain(|name| !runs.contains_key(&RunId(*name)));
        if !names.is_empty() {
            let ended = include_str!("sql/get_run_ended.sql");
            for row in &conn.rows(ended, &[&names]).await? {
                runs.insert(RunId(row.try_get(0)?), of_row(read_ended(row))?);
            }
        }
        let found = |(tenant, id): &(TenantId, RunId)| {
            let run = runs.get(id).cloned().transpose()?;
            Ok(run.filter(|run| run.tenant == *tenant))
        };
        Ok(wanted.iter().map(found).collect())
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
        let before = filter.before(page).map_or(Uuid::max(), |before| before.0);
        let least = filter.least().0;
        let count = limit(page.limit);
        let mut found: BTreeMap<RunId, Run> = BTreeMap::new();
        // All that live under their names, wanted or not, hide what has ended under the same.
        let live = match job {
            None => include_str!("sql/list_runs_live.sql"),
            Some(_) => include_str!("sql/list_runs_live_job.sql"),
        };
        let waiting: Vec<i16> = filter.waiting.iter().map(|it| it.code()).collect();
        let waiting = Some(waiting).filter(|it| !it.is_empty());
        let codes: Vec<i16> = living.iter().map(|state| state.code()).collect();
        for row in &conn
            .rows(
                live,
                &[&tenant.0, &before, &codes, &count, &job, &least, &waiting],
            )
            .await?
        {
            let run = LiveRow::read(row)?.decode()?;
            found.insert(run.id, run);
        }
        let codes: Vec<i16> = ended.iter().map(|state| state.code()).collect();
        let sql = match (job, ended.contains(&RunState::Succeeded)) {
            (Some(_), _) => include_str!("sql/list_runs_job.sql"),
            (None, true) if tenant == TenantId::DEFAULT => {
                include_str!("sql/list_runs_default.sql")
            }
            (None, true) => include_str!("sql/list_runs.sql"),
            (None, false) => include_str!("sql/list_runs_rare.sql"),
        };
        // What has ended waits for nothing.
        if !codes.is_empty() && waiting.is_none() {
            let rows = conn
                .rows(sql, &[&tenant.0, &before, &codes, &count, &job, &least])
                .await?;
            for row in &rows {
                let run = read_ended(row)?;
                found.entry(run.id).or_insert(run);
            }
        }
        Ok(found.into_values().rev().take(page.limit).collect())
    }
}

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
        self.slots_on(&conn, tenant, job, (from, to), count).await
    }

    /// The same on a connection of one's own. Live runs come first: what ends meanwhile is seen in one place or the other.
    pub(super) async fn slots_on(
        &self,
        conn: &Conn,
        tenant: TenantId,
        job: JobId,
        (from, to): Span,
        count: usize,
    ) -> Done<Vec<Run>> {
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
        let begun = covering(conn, tenant, job, from).await?;
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
