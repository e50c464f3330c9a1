//! Fire: slots become runs. Those that simply start take one statement together (the fast path); what that leaves over,
//! because something lives, was decided before or is skipped, takes the slow path: views are locked and loaded, the model
//! decides, and the effects are written, one statement for each table.

use std::collections::BTreeSet;

use model::view::PAST_MAX;
use model::{Job, JobState, Overlap, RunId, Shard, Version};
use tokio_postgres::Row;
use uuid::Uuid;

use super::batch::{Answers, fast, left, merged};
use super::fast_path::{FireColumns, PlainFireColumns, is_plain, past_ids};
use super::fault::Done;
use super::pool::{Conn, Params};
use super::presence::shard_of;
use super::put::Param;
use super::rows::LiveRow;
use super::store::{PgStore, limit};
use super::views::{Lock, Views};
use crate::row::Payloads;
use crate::{Fired, Firing, Leases, StoreError};

/// Whether a firing has to know what lives of its job. A job that was edited may have been anything before.
pub(super) fn needs_runs(job: &Job) -> bool {
    job.def.overlap != Overlap::Allow || is_exclusive(job) || job.version > Version::FIRST
}

/// Whether the end of any run may mean something to its job: others may wait for it, or the job rests for it or counts it
/// among its failures. Where this
/// says no a run may wait all the same, for an earlier definition's sake: then the living rows of the job say so
/// (`JobView::exclusive`).
pub(super) fn is_exclusive(job: &Job) -> bool {
    let waits = match job.def.overlap {
        Overlap::Allow | Overlap::Skip => false,
        Overlap::QueueOne | Overlap::QueueAll { .. } | Overlap::CancelRunning => true,
    };
    waits || job.def.schedule.after_completion() || job.def.pause_after_failures.is_some()
}

/// Whether one statement may decide it: it starts, skips nothing, begins no catch-up, and is not the end of a job that
/// recurs, which the audit log says.
fn is_simple(firing: &Firing) -> bool {
    let Firing { job, decision, .. } = firing;
    let stands = job.standing_after(decision, true);
    if stands.state != JobState::Active && job.def.schedule.is_recurring() {
        return false;
    }
    let starts = decision.start.is_some() && decision.passed.is_empty() && job.next_slot.is_some();
    starts && decision.catch_up_to.is_none()
}

impl PgStore {
    pub(super) async fn fire_all(
        &self,
        leases: &Leases,
        firings: &[Firing],
    ) -> Result<Vec<Fired>, StoreError> {
        self.now();
        let simple = firings.iter().enumerate();
        let mut simple: Vec<(usize, &Firing)> = simple
            .filter(|(_, it)| self.fast_paths && is_simple(it))
            .collect();
        // In the order of ids, as others lock them.
        simple.sort_by_key(|(_, firing)| firing.job.id);
        let (plain, others): (Vec<_>, Vec<_>) =
            simple.into_iter().partition(|(_, it)| is_plain(it));
        let mut columns = PlainFireColumns::default();
        plain.iter().for_each(|(_, firing)| columns.push(firing));
        let sql = include_str!("sql/fire_plain.sql");
        let params = columns.params();
        let mut done = fast(self.fire_fast_path(leases, &plain, sql, &params).await)?;
        let mut columns = FireColumns::default();
        others.iter().for_each(|(_, firing)| columns.push(firing));
        let sql = include_str!("sql/fire.sql");
        let params = columns.params();
        done.extend(fast(
            self.fire_fast_path(leases, &others, sql, &params).await,
        )?);
        let rest = left(firings, &done);
        if rest.is_empty() {
            return Ok(done.into_values().collect());
        }
        let slow = |batch| self.fire_slow_path(leases, batch);
        let slow = self.in_halves(&rest, slow, Fired::Refused).await?;
        Ok(merged(firings.len(), done, slow))
    }

    /// One statement decides; answers those that it moved.
    async fn fire_fast_path(
        &self,
        leases: &Leases,
        firings: &[(usize, &Firing)],
        sql: &'static str,
        columns: &Params<'_>,
    ) -> Done<Answers<Fired>> {
        if firings.is_empty() {
            return Ok(Answers::new());
        }
        let shards: BTreeSet<Shard> = firings.iter().map(|(_, it)| it.job.shard()).collect();
        let (numbers, epochs) = epochs(leases, shards.iter().copied());
        let wanted = limit(shards.len());
        let conn = self.pool.get().await?;
        let mut params: Vec<Param<'_>> = vec![&leases.presence.0, &numbers, &epochs, &wanted];
        params.extend(columns);
        let ((first, last), most) = (past_ids(firings), limit(PAST_MAX));
        let past: [Param<'_>; 3] = [&first, &last, &most];
        params.extend(past);
        let rows = fire_held(&conn, leases, sql, &params).await?;
        let moved = ids(&rows)?;
        let answer = |(place, firing): &(usize, &Firing)| {
            let id = firing.name().filter(|id| moved.contains(id))?;
            let fired = if firing.claim {
                Fired::Claimed(id)
            } else {
                Fired::Ready(id)
            };
            Some((*place, fired))
        };
        Ok(firings.iter().filter_map(answer).collect())
    }

    async fn fire_slow_path(&self, leases: &Leases, firings: &[&Firing]) -> Done<Vec<Fired>> {
        let conn = self.pool.begin().await?;
        let Some((no, _)) = self.hold(&conn, leases.presence).await? else {
            return Ok(firings.iter().map(|_| Fired::LeaseLost).collect());
        };
        let shards = firings.iter().map(|firing| firing.job.shard()).collect();
        let held = held(&conn, leases, &shards).await?;
        let mut views = views(&conn, no, firings).await?;
        let fired = firings.iter().map(|firing| {
            let held = held.contains(&firing.job.shard());
            let view = views.view(firing.job.id);
            view.fire(firing, leases.presence, held)
        });
        let answers = fired.collect();
        views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answers)
    }
}

/// Two statements and their commit under way at once. The presence is held by one of its own, because a statement sees
/// what was so when it began: one that waited for a lease to be given up would still see it held.
async fn fire_held(
    conn: &Conn,
    leases: &Leases,
    sql: &'static str,
    params: &Params<'_>,
) -> Done<Vec<Row>> {
    let hold = conn.prepare(include_str!("sql/fire_hold.sql")).await?;
    let fire = conn.prepare(sql).await?;
    let me: &Params<'_> = &[&leases.presence.0];
    conn.begin()?;
    let (_, rows, ()) = tokio::try_join!(
        biased;
        conn.query_prepared(&hold, me),
        conn.query_prepared(&fire, params),
        conn.commit(),
    )?;
    Ok(rows)
}

/// The leases on some shards as parameters; one that is not there has an epoch that never was.
pub(super) fn epochs(leases: &Leases, shards: impl Iterator<Item = Shard>) -> (Vec<i16>, Vec<i64>) {
    let epoch = |shard| {
        let epoch = leases.epoch(shard).map(|epoch| i64::try_from(epoch.0));
        epoch.and_then(Result::ok).unwrap_or(-1)
    };
    shards
        .map(|shard| (i16::from(shard.0), epoch(shard)))
        .unzip()
}

/// Which of these shards a presence has.
pub(super) async fn held(
    conn: &Conn,
    leases: &Leases,
    shards: &BTreeSet<Shard>,
) -> Done<BTreeSet<Shard>> {
    let (numbers, epochs) = epochs(leases, shards.iter().copied());
    let rows = conn
        .rows(
            include_str!("sql/held.sql"),
            &[&leases.presence.0, &numbers, &epochs],
        )
        .await?;
    let mut held = BTreeSet::new();
    for row in &rows {
        held.insert(shard_of(row.try_get(0)?));
    }
    Ok(held)
}

/// What decides a batch. Of jobs that let their runs overlap only the runs are read that are named.
async fn views(conn: &Conn, no: i32, firings: &[&Firing]) -> Done<Views> {
    let ids: Vec<Uuid> = firings.iter().map(|firing| firing.job.id.0).collect();
    let (alone, others): (Vec<&Firing>, Vec<&Firing>) =
        firings.iter().copied().partition(|it| needs_runs(&it.job));
    let alone: Vec<Uuid> = alone.iter().map(|firing| firing.job.id.0).collect();
    let lock = if alone.is_empty() {
        Lock::Jobs
    } else {
        Lock::JobsAndRuns
    };
    let mut views = Views::load_some(conn, &ids, &alone, lock).await?;
    views.no = Some(no);
    let names = others.iter().filter_map(|it| Some(it.name()?.0));
    let names: Vec<Uuid> = names.collect();
    for row in live_named(conn, &names, Payloads::All).await? {
        views.add(row)?;
    }
    let mut needs = Vec::with_capacity(firings.len());
    for firing in firings {
        views.know(&firing.job);
        let job = views.view(firing.job.id).job.as_ref();
        let stands = job.filter(|job| firing.stands(job));
        needs.push((firing.job.id, firing.needs(stands)));
    }
    views.read_history(conn, &needs).await?;
    Ok(views)
}

/// The runs that a statement names in one array.
pub(super) fn ids(rows: &[Row]) -> Done<BTreeSet<RunId>> {
    let mut ids = BTreeSet::new();
    for row in rows {
        let named: Option<Vec<Uuid>> = row.try_get(0)?;
        ids.extend(named.into_iter().flatten().map(RunId));
    }
    Ok(ids)
}

/// Live runs by their names.
pub(super) async fn live_named(
    conn: &Conn,
    names: &[Uuid],
    payloads: Payloads,
) -> Done<Vec<LiveRow>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let sql = include_str!("sql/get_run_live.sql");
    let rows = conn.rows(sql, &[&names, &payloads.max()]).await?;
    rows.iter().map(LiveRow::read).collect()
}
