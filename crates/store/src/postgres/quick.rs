//! Firings gathered column by column for the statement that decides most of them.

use model::{JobState, Slot, Timestamp, Version};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::fire::{is_exclusive, looks, name_of};
use crate::Firing;
use crate::code::Code;

/// Firings that one statement may decide.
pub(super) trait Columns: Default {
    const SQL: &'static str;
    fn push(&mut self, firing: &Firing);
    fn params(&self) -> Vec<&(dyn ToSql + Sync)>;
    /// Those of them that have to know what lives.
    fn alone(&self) -> &Alone;

    /// Their jobs and the runs they would have.
    fn names(&self) -> [&(dyn ToSql + Sync); 2] {
        let Alone { job, run } = self.alone();
        [job, run]
    }

    fn look(&self) -> bool {
        !self.alone().job.is_empty()
    }
}

/// Jobs that no other run may live of, and the runs they would have. A job that lets its runs overlap is not among
/// them: one that retries would have the whole batch looked at closely.
#[derive(Default)]
pub(super) struct Alone {
    job: Vec<Uuid>,
    run: Vec<Option<Uuid>>,
}

impl Alone {
    fn push(&mut self, firing: &Firing) {
        if looks(&firing.job) {
            self.job.push(firing.job.id.0);
            self.run.push(name_of(firing).map(|id| id.0));
        }
    }
}

/// Columns as `fire_plain.sql` has them.
#[derive(Default)]
pub(super) struct PlainColumns {
    job: Vec<Uuid>,
    slot: Vec<Option<i64>>,
    next_slot: Vec<Option<i64>>,
    finished_at: Vec<Option<i64>>,
    run: Vec<Option<Uuid>>,
    lane: Vec<i16>,
    looks: Vec<bool>,
    alone: Alone,
}

/// Whether so little is enough to decide it.
pub(super) fn is_plain(firing: &Firing) -> bool {
    let Firing {
        job,
        decision,
        claim,
    } = firing;
    let stands = job.standing_after(decision, true);
    let undelayed = |slot: Option<Slot>| slot.is_none_or(|slot| job.due_at(slot) == slot.0);
    let state = match stands.next_slot {
        Some(_) => JobState::Active,
        None => JobState::Finished,
    };
    *claim
        && !is_exclusive(job)
        && job.version == Version::FIRST
        && (job.runs_made, stands.runs_made) == (0, 0)
        && decision.start == job.next_slot
        && stands.slot_last == decision.start.map(|slot| slot.0)
        && stands.state == state
        && undelayed(decision.start)
        && undelayed(stands.next_slot)
}

impl Columns for PlainColumns {
    const SQL: &'static str = include_str!("sql/fire_plain.sql");

    fn push(&mut self, firing: &Firing) {
        let Firing { job, decision, .. } = firing;
        let millis = |at: Timestamp| at.as_millis();
        let stands = job.standing_after(decision, true);
        self.job.push(job.id.0);
        self.slot.push(decision.start.map(|slot| millis(slot.0)));
        self.next_slot
            .push(stands.next_slot.map(|slot| millis(slot.0)));
        let finished = stands.state == JobState::Finished;
        self.finished_at
            .push(finished.then(|| millis(stands.state_at)));
        self.run.push(name_of(firing).map(|id| id.0));
        self.lane.push(job.def.lane.code());
        self.looks.push(looks(job));
        self.alone.push(firing);
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.job,
            &self.slot,
            &self.next_slot,
            &self.finished_at,
            &self.run,
            &self.lane,
            &self.looks,
        ]
    }

    fn alone(&self) -> &Alone {
        &self.alone
    }
}

/// Columns as `fire.sql` has them.
#[derive(Default)]
pub(super) struct QuickColumns {
    job: Vec<Uuid>,
    shard: Vec<i16>,
    version: Vec<i32>,
    was: Vec<Option<i64>>,
    slot: Vec<Option<i64>>,
    next_slot: Vec<Option<i64>>,
    due_next: Vec<Option<i64>>,
    state: Vec<i16>,
    state_at: Vec<Option<i64>>,
    runs_were: Vec<i64>,
    runs_made: Vec<i64>,
    run: Vec<Option<Uuid>>,
    due_at: Vec<Option<i64>>,
    lane: Vec<i16>,
    claim: Vec<bool>,
    looks: Vec<bool>,
    exclusive: Vec<bool>,
    alone: Alone,
}

impl Columns for QuickColumns {
    const SQL: &'static str = include_str!("sql/fire.sql");

    fn push(&mut self, firing: &Firing) {
        let Firing {
            job,
            decision,
            claim,
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
        self.run.push(name_of(firing).map(|id| id.0));
        self.due_at
            .push(decision.start.map(|slot| millis(job.due_at(slot))));
        self.lane.push(job.def.lane.code());
        self.claim.push(*claim);
        self.looks.push(looks(job));
        self.alone.push(firing);
        self.exclusive.push(is_exclusive(job));
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &self.job,
            &self.shard,
            &self.version,
            &self.was,
            &self.slot,
            &self.next_slot,
            &self.due_next,
            &self.state,
            &self.state_at,
            &self.runs_were,
            &self.runs_made,
            &self.run,
            &self.due_at,
            &self.lane,
            &self.claim,
            &self.looks,
            &self.exclusive,
        ]
    }

    fn alone(&self) -> &Alone {
        &self.alone
    }
}
