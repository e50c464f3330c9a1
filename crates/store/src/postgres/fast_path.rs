//! Firings gathered column by column for the statements that decide most of them.

use model::view::PAST_BACK;
use model::{JobState, RunId, Slot, Timestamp, Version, limits};
use uuid::Uuid;

use super::fire::{is_exclusive, needs_runs};
use super::put::columns;
use crate::Firing;
use crate::code::Code;

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
pub(super) fn past_ids(firings: &[(usize, &Firing)]) -> (Uuid, Uuid) {
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
