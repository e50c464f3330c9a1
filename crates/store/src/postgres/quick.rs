//! Firings gathered column by column for the statement that decides most of them.

use model::{JobState, Timestamp};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::fire::{is_exclusive, name_of};
use crate::Firing;
use crate::code::Code;

/// Firings that one statement may decide; columns as `fire.sql` has them.
#[derive(Default)]
pub(super) struct QuickColumns {
    pub job: Vec<Uuid>,
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
    pub run: Vec<Option<Uuid>>,
    due_at: Vec<Option<i64>>,
    lane: Vec<i16>,
    claim: Vec<bool>,
    pub exclusive: Vec<bool>,
}

impl QuickColumns {
    pub fn push(&mut self, firing: &Firing) {
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
        self.exclusive.push(is_exclusive(job));
    }

    pub fn params(&self) -> [&(dyn ToSql + Sync); 16] {
        [
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
            &self.exclusive,
        ]
    }
}
