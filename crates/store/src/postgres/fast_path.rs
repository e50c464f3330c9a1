//! Firings gathered column by column for the statements that decide most of them.

use model::view::PAST_BACK;
use model::{JobState, RunId, Slot, Timestamp, Version, limits};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::fire::{is_exclusive, looks};
use super::put::columns;
use crate::Firing;
use crate::code::Code;

/// Firings that one statement may decide.
pub(super) trait Columns: Default {
    const SQL: &'static str;
    fn push(&mut self, firing: &Firing);
    fn params(&self) -> Vec<&(dyn ToSql + Sync)>;
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
pub(super) fn past_ids(firings: &[&Firing]) -> (Uuid, Uuid) {
    let late = || firings.iter().filter_map(|it| past(it));
    let id = |at: Option<Timestamp>| at.map_or(Uuid::nil(), |at| RunId::least_at(at).0);
    let first = late().min().map(|at| at.minus(PAST_BACK));
    (id(first), id(late().max()))
}

columns! {
    /// Columns as `fire_plain.sql` has them.
    PlainColumns {
        job: Uuid,
        version: i32,
        slot: Option<i64>,
        next_slot: Option<i64>,
        finished_at: Option<i64>,
        run: Option<Uuid>,
        lane: i16,
        looks: bool,
        manual_runs: i32,
        late: Option<Uuid>,
    }
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
/// took it back. Then history has to be asked.
fn is_near_edit(firing: &Firing) -> bool {
    let Firing { job, decision, .. } = firing;
    let lead = limits::LEAD_MAX + limits::BEAT_EVERY;
    let near = |slot: Slot| slot.0 <= job.updated_at.plus(lead);
    job.version > Version::FIRST && decision.start.is_none_or(near)
}

impl Columns for PlainColumns {
    const SQL: &'static str = include_str!("sql/fire_plain.sql");

    fn push(&mut self, firing: &Firing) {
        let Firing { job, decision, .. } = firing;
        let millis = |at: Timestamp| at.as_millis();
        let stands = job.standing_after(decision, true);
        self.job.push(job.id.0);
        self.version.push(job.version.0.cast_signed());
        self.slot.push(decision.start.map(|slot| millis(slot.0)));
        self.next_slot
            .push(stands.next_slot.map(|slot| millis(slot.0)));
        let finished = stands.state == JobState::Finished;
        self.finished_at
            .push(finished.then(|| millis(stands.state_at)));
        self.run.push(firing.name().map(|id| id.0));
        self.lane.push(job.def.lane.code());
        self.looks.push(looks(job));
        self.manual_runs.push(job.manual_runs.cast_signed());
        self.late.push(late(firing));
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.params()
    }
}

columns! {
    /// Columns as `fire.sql` has them.
    StartColumns {
        job: Uuid,
        shard: i16,
        version: i32,
        was: Option<i64>,
        slot: Option<i64>,
        next_slot: Option<i64>,
        due_next: Option<i64>,
        state: i16,
        state_at: Option<i64>,
        runs_were: i64,
        runs_made: i64,
        run: Option<Uuid>,
        due_at: Option<i64>,
        lane: i16,
        claim: bool,
        looks: bool,
        exclusive: bool,
        slot_last: Option<i64>,
        manual_runs: i32,
        late: Option<Uuid>,
    }
}

impl Columns for StartColumns {
    const SQL: &'static str = include_str!("sql/fire.sql");

    fn push(&mut self, firing: &Firing) {
        let Firing {
            job,
            decision,
            claim,
            ..
        } = firing;
        let millis = |at: Timestamp| at.as_millis();
        let stands = job.standing_after(decision, true);
        self.job.push(job.id.0);
        self.shard.push(i16::from(job.shard().0));
        self.version.push(job.version.0.cast_signed());
        self.was.push(job.next_slot.map(|slot| millis(slot.0)));
        self.slot.push(decision.start.map(|slot| millis(slot.0)));
        self.next_slot
            .push(stands.next_slot.map(|slot| millis(slot.0)));
        let due_next = stands.next_slot.map(|slot| millis(job.due_at(slot)));
        self.due_next.push(due_next);
        self.state.push(stands.state.code());
        let finished = stands.state == JobState::Finished;
        self.state_at
            .push(finished.then(|| millis(stands.state_at)));
        self.runs_were.push(i64::from(job.runs_made));
        self.runs_made.push(i64::from(stands.runs_made));
        self.run.push(firing.name().map(|id| id.0));
        self.due_at
            .push(decision.start.map(|slot| millis(job.due_at(slot))));
        self.lane.push(job.def.lane.code());
        self.claim.push(*claim);
        self.looks.push(looks(job));
        self.exclusive.push(is_exclusive(job));
        self.slot_last.push(firing.slot_last().map(millis));
        self.manual_runs.push(job.manual_runs.cast_signed());
        self.late.push(late(firing));
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.params()
    }
}
