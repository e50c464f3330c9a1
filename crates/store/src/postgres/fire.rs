//! Fire: slots become runs. Those that simply start take one statement together (the fast path); what that leaves over,
//! because something lives, was decided before or is skipped, takes the slow path: views are locked and loaded, the model
//! decides, and the effects are written, one statement for each table.

use std::collections::BTreeSet;

use model::view::{PAST_BACK, PAST_MAX};
use model::{Job, JobState, Overlap, RunId, Shard, Slot, Timestamp, Version, limits};
use tokio_postgres::Row;
use uuid::Uuid;

use super::batch::{Answers, fast, left, merged};
use super::fault::Done;
use super::pool::{Conn, Params};
use super::presence::shard_of;
use super::put::{Param, columns};
use super::rows::LiveRow;
use super::store::{PgStore, limit};
use super::views::{Lock, Views};
use crate::code::Code;
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

/// The statement takes the job only if it is as plan saw it.
fn past(firing: &Firing) -> Option<Timestamp> {
    firing.needs(Some(&firing.job)).past
}

/// Where ids begin of runs that came too late to be in a slot's way, if one that has ended since may have been: the slot
/// is late, and skipped for it.
fn late(firing: &Firing) -> Option<Uuid> {
    Some(RunId::least_at(past(firing)?).0)
}

/// Between which ids lie the runs that may have been in the way of a batch: days are left out by them before any is read.
fn past_ids(firings: &[(usize, &Firing)]) -> (Uuid, Uuid) {
    let late = || firings.iter().filter_map(|(_, it)| past(it));
    let id = |at: Option<Timestamp>| at.map_or(Uuid::nil(), |at| RunId::least_at(at).0);
    let first = late().min().map(|at| at.minus(PAST_BACK));
    (id(first), id(late().max()))
}

columns! {
    /// Columns as `fire_plain.sql` has them.
    PlainFireColumns(firing: &Firing) {
        let Firing { job, decision, .. } = firing;
        let millis = |at: Timestamp| at.as_millis();
        let stands = job.standing_after(decision, true);
        let finished = stands.state == JobState::Finished;
    } [
        job: Uuid = job.id.0,
        version: i32 = job.version.0.cast_signed(),
        slot: Option<i64> = decision.start.map(|slot| millis(slot.0)),
        next_slot: Option<i64> = stands.next_slot.map(|slot| millis(slot.0)),
        finished_at: Option<i64> = finished.then(|| millis(stands.state_at)),
        run: Option<Uuid> = firing.name().map(|id| id.0),
        lane: i16 = job.def.lane.code(),
        needs_runs: bool = needs_runs(job),
        manual_runs: i32 = job.manual_runs.cast_signed(),
        late: Option<Uuid> = late(firing),
    ]
}

/// Whether so little is enough to decide it.
pub(super) fn is_plain(firing: &Firing) -> bool {
    let Firing {
        job,
        decision,
        claim,
        ..
    } = firing;
    let stands = job.standing_after(decision, true);
    let undelayed = |slot: Option<Slot>| slot.is_none_or(|slot| job.due_at(slot) == slot.0);
    let state = match stands.next_slot {
        Some(_) => JobState::Active,
        None => JobState::Finished,
    };
    *claim
        && !is_exclusive(job)
        && firing.slot_last().is_none()
        && !is_near_edit(firing)
        && (job.runs_made, stands.runs_made) == (0, 0)
        && decision.start == job.next_slot
        && stands.slot_last == decision.start.map(|slot| slot.0)
        && stands.state == state
        && undelayed(decision.start)
        && undelayed(stands.next_slot)
}

/// Whether the slot may have had a run before the job was edited: one was fired at most a lead ahead of the edit that
/// took it back. Then history has to be read.
fn is_near_edit(firing: &Firing) -> bool {
    let Firing { job, decision, .. } = firing;
    let lead = limits::LEAD_MAX + limits::BEAT_EVERY;
    let near = |slot: Slot| slot.0 <= job.updated_at.plus(lead);
    job.version > Version::FIRST && decision.start.is_none_or(near)
}

columns! {
    /// Columns as `fire.sql` has them.
    FireColumns(firing: &Firing) {
        let Firing {
            job,
            decision,
            claim,
            ..
        } = firing;
        let millis = |at: Timestamp| at.as_millis();
        let stands = job.standing_after(decision, true);
        let due_next = stands.next_slot.map(|slot| millis(job.due_at(slot)));
        let finished = stands.state == JobState::Finished;
    } [
        job: Uuid = job.id.0,
        shard: i16 = i16::from(job.shard().0),
        version: i32 = job.version.0.cast_signed(),
        was: Option<i64> = job.next_slot.map(|slot| millis(slot.0)),
        slot: Option<i64> = decision.start.map(|slot| millis(slot.0)),
        next_slot: Option<i64> = stands.next_slot.map(|slot| millis(slot.0)),
        due_next: Option<i64> = due_next,
        state: i16 = stands.state.code(),
        state_at: Option<i64> = finished.then(|| millis(stands.state_at)),
        runs_were: i64 = i64::from(job.runs_made),
        runs_made: i64 = i64::from(stands.runs_made),
        run: Option<Uuid> = firing.name().map(|id| id.0),
        due_at: Option<i64> = decision.start.map(|slot| millis(job.due_at(slot))),
        lane: i16 = job.def.lane.code(),
        claim: bool = *claim,
        needs_runs: bool = needs_runs(job),
        exclusive: bool = is_exclusive(job),
        slot_last: Option<i64> = firing.slot_last().map(millis),
        manual_runs: i32 = job.manual_runs.cast_signed(),
        late: Option<Uuid> = late(firing),
    ]
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
            .filter(|(_, it)| self.fast_paths.are_on && is_simple(it))
            .collect();
        // In the order of ids, as others lock them.
        simple.sort_by_key(|(_, firing)| firing.job.id);
        let (plain, others): (Vec<_>, Vec<_>) =
            simple.into_iter().partition(|(_, it)| is_plain(it));
        let mut columns = PlainFireColumns::default();
        plain.iter().for_each(|(_, firing)| columns.push(firing));
        let sql = include_str!("sql/fire_plain.sql");
        let params = columns.params();
        let mut done = fast(
            self.fire_fast_path(leases, &plain, ("fire_plain", sql), &params)
                .await,
        )?;
        let mut columns = FireColumns::default();
        others.iter().for_each(|(_, firing)| columns.push(firing));
        let sql = include_str!("sql/fire.sql");
        let params = columns.params();
        done.extend(fast(
            self.fire_fast_path(leases, &others, ("fire", sql), &params)
                .await,
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
        (name, sql): (&'static str, &'static str),
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
        self.fast_paths.wrote(name, moved.len());
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
