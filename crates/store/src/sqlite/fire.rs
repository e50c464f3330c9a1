//! Fire: slots become runs. Most firings take the fast path: one insert and one compare-and-swap, and nothing is read
//! for jobs whose runs may overlap. All others are decided on a view.

use model::job::Standing;
use model::view::{PAST_BACK, PAST_MAX};
use model::{Job, JobId, JobState, Overlap, Run, RunId, Shard, Slot, Timestamp, Version, limits};
use rusqlite::{CachedStatement, Connection, params};

use super::archive::{OfPartition, Partitions};
use super::db::{Db, insert_first};
use super::fault::Done;
use super::rest::Resting;
use crate::code::Code;
use crate::{Fired, Firing, Leases};

/// A firing, worked out before it reaches the writer: that has no job in its cache, so its fast path looks at none.
pub(super) struct FiringRow {
    firing: Firing,
    shard: Shard,
    fast: Option<Fast>,
}

/// What the fast path writes.
struct Fast {
    run: Run,
    swap: Swap,
    /// A run of the job may live that is in its way.
    may_overlap: bool,
    /// A late slot of a job that skips overlaps: no run that has ended since may have been under way then.
    past: Option<Timestamp>,
}

/// Where a job goes, and where plan saw it, as columns.
struct Swap {
    next_slot: Option<i64>,
    due_at: Option<i64>,
    slot_last: Option<i64>,
    state: JobState,
    state_at: Option<i64>,
    runs_made: u32,
    version: Version,
    planned: Option<i64>,
    planned_last: Option<i64>,
    planned_made: u32,
    manual_runs: u32,
    /// The job never had a run.
    is_first: bool,
}

impl Swap {
    fn new(firing: &Firing, stands: Standing) -> Self {
        let job = &firing.job;
        let millis = |slot: Slot| slot.0.as_millis();
        let finished = stands.state == JobState::Finished;
        Self {
            next_slot: stands.next_slot.map(millis),
            due_at: stands.next_slot.map(|slot| job.due_at(slot).as_millis()),
            slot_last: stands.slot_last.map(Timestamp::as_millis),
            state: stands.state,
            state_at: finished.then_some(stands.state_at.as_millis()),
            runs_made: stands.runs_made,
            version: job.version,
            planned: job.next_slot.map(millis),
            planned_last: firing.slot_last().map(Timestamp::as_millis),
            planned_made: job.runs_made,
            manual_runs: job.manual_runs,
            is_first: job.version == Version::FIRST && !job.had_runs(),
        }
    }
}

impl FiringRow {
    pub(super) fn new(firing: &Firing) -> Self {
        let Firing { job, decision, .. } = firing;
        // One that begins a catch-up moves the cursor; the end of a job that recurs is entered in the audit log.
        let stands = job.standing_after(decision, true);
        let ends = stands.state != JobState::Active && job.def.schedule.is_recurring();
        let plain = !ends && decision.catch_up_to.is_none() && decision.passed.is_empty();
        let slot = decision.start.filter(|_| plain);
        let fast = slot.filter(|slot| !may_have_run(job, *slot)).map(|slot| {
            let run = Run::of_slot(job, slot);
            let swap = Swap::new(firing, stands);
            Fast {
                run,
                // Of a job that never had a run none lives; the swap compares that it still had none.
                may_overlap: job.def.overlap != Overlap::Allow && !swap.is_first,
                swap,
                past: firing.needs(Some(job)).past,
            }
        });
        Self {
            firing: firing.clone(),
            shard: job.shard(),
            fast,
        }
    }
}

/// Whether a slot may have had a run before its job was edited. An edit takes back runs that were fired at most so far
/// ahead; slots beyond had none.
fn may_have_run(job: &Job, slot: Slot) -> bool {
    let ahead = limits::LEAD_MAX + limits::BEAT_EVERY;
    job.version > Version::FIRST && slot.0 <= job.updated_at.plus(ahead)
}

/// The statements of one call.
struct Fire<'a> {
    conn: &'a Connection,
    swap: CachedStatement<'a>,
    /// The same for a job that goes on.
    swap_on: CachedStatement<'a>,
    insert: CachedStatement<'a>,
    has_live_run: CachedStatement<'a>,
    has_past: OfPartition<'a>,
    live: &'a mut u64,
    resting: &'a mut Resting,
    partitions: &'a Partitions,
    /// The number of the presence that fires.
    no: i64,
}

impl Db {
    pub(super) fn fire(&mut self, leases: &Leases, rows: &[FiringRow]) -> Done<Vec<Fired>> {
        let mut answers = Vec::with_capacity(rows.len());
        let Ok(no) = self.shared.presences().living(leases.presence) else {
            return Ok(rows.iter().map(|_| Fired::LeaseLost).collect());
        };
        while let Some(rest) = rows.get(answers.len()..).filter(|rest| !rest.is_empty()) {
            if let Some(row) = self.fire_fast_path(leases, no, rest, &mut answers)? {
                answers.push(self.fire_slow_path(leases, &row.firing)?);
            }
        }
        Ok(answers)
    }

    /// Fires up to the first one that takes a view to decide, which it answers.
    fn fire_fast_path<'r>(
        &mut self,
        leases: &Leases,
        no: i64,
        rows: &'r [FiringRow],
        answers: &mut Vec<Fired>,
    ) -> Done<Option<&'r FiringRow>> {
        let conn = &self.conn;
        let mut fire = Fire {
            conn,
            swap: conn.prepare_cached(include_str!("sql/fire.sql"))?,
            swap_on: conn.prepare_cached(include_str!("sql/fire_on.sql"))?,
            insert: conn.prepare_cached(include_str!("sql/put_first.sql"))?,
            has_live_run: conn.prepare_cached(include_str!("sql/has_live_run.sql"))?,
            has_past: OfPartition::new(conn, include_str!("sql/has_past_partition.sql")),
            live: &mut self.live,
            resting: &mut self.resting,
            partitions: &self.partitions,
            no,
        };
        for row in rows {
            if !self.leases.holds(no, leases, row.shard) {
                answers.push(Fired::LeaseLost);
                continue;
            }
            let fired = if self.fast_paths.are_on {
                fire.one(row)?
            } else {
                None
            };
            match fired {
                Some(fired) => {
                    self.fast_paths.wrote("fire", 1);
                    answers.push(fired);
                }
                None => return Ok(Some(row)),
            }
        }
        Ok(None)
    }

    fn fire_slow_path(&mut self, leases: &Leases, firing: &Firing) -> Done<Fired> {
        let id = firing.job.id;
        let mut view = self.view_as_planned(&firing.job)?;
        let stands = view.job.as_ref().filter(|job| firing.stands(job));
        view.history = self.read_history(id, firing.needs(stands))?;
        let fired = view.fire(firing, leases.presence, true);
        self.apply(id, view.effects)?;
        Ok(fired)
    }
}

impl Fire<'_> {
    /// Takes the views in which the job stands as planned, its slot starts, nothing is skipped, and overlap lets it in:
    /// `allow`, or no run of the job lives, nor was one under way that has ended since. Changes nothing in any other.
    ///
    /// The run first, then the job: a run of that name that is alive is seen before anything has changed, so that at
    /// most the insert has to be undone.
    fn one(&mut self, row: &FiringRow) -> Done<Option<Fired>> {
        let FiringRow { firing, fast, .. } = row;
        let Some(fast) = fast else {
            return Ok(None);
        };
        let job = fast.run.job;
        if fast.may_overlap && self.has_live_run.exists([job.as_bytes()])? {
            return Ok(None);
        }
        if let Some(moment) = fast.past
            && self.has_past(job, moment)?
        {
            return Ok(None);
        }
        let id = fast.run.id;
        let claim = firing.claim.then_some(self.no);
        if !insert_first(&mut self.insert, &fast.run, claim)? {
            return Ok(None);
        }
        if !self.swap(job, &fast.swap)? {
            let sql = include_str!("sql/remove_live.sql");
            self.conn.prepare_cached(sql)?.execute([id.as_bytes()])?;
            return Ok(None);
        }
        *self.live += 1;
        Ok(Some(match claim {
            Some(_) => Fired::Claimed(id),
            None => Fired::Ready(id),
        }))
    }

    fn has_past(&mut self, job: JobId, moment: Timestamp) -> Done<bool> {
        let first = RunId::least_at(moment.minus(PAST_BACK));
        let end = RunId::least_at(moment);
        let days = Partitions::partition_of(first)..=Partitions::partition_of(end);
        for day in self.partitions.days.range(days) {
            let (at, most) = (moment.as_millis(), PAST_MAX as u64);
            let ids = (job.as_bytes(), first.as_bytes(), end.as_bytes());
            let past = params![ids.0, ids.1, ids.2, at, most.cast_signed()];
            if self.has_past.get(*day)?.exists(past)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves the job onward; false if it is not where plan saw it.
    fn swap(&mut self, job: JobId, swap: &Swap) -> Done<bool> {
        if swap.state == JobState::Active && swap.next_slot.is_some() {
            return self.swap_on(job, swap);
        }
        let swapped = self.swap.execute(params![
            swap.next_slot,
            swap.due_at,
            swap.slot_last,
            swap.state.code(),
            swap.state_at,
            swap.runs_made,
            job.as_bytes(),
            swap.version.0,
            swap.planned,
            swap.planned_made,
            swap.planned_last,
            swap.manual_runs,
            swap.is_first,
        ])? == 1;
        if swapped && swap.state == JobState::Active {
            self.resting.insert(job);
        }
        Ok(swapped)
    }

    fn swap_on(&mut self, job: JobId, swap: &Swap) -> Done<bool> {
        let swapped = self.swap_on.execute(params![
            swap.next_slot,
            swap.due_at,
            swap.slot_last,
            swap.runs_made,
            job.as_bytes(),
            swap.version.0,
            swap.planned,
            swap.planned_made,
            swap.planned_last,
            swap.manual_runs,
            swap.is_first,
        ])?;
        Ok(swapped == 1)
    }
}
