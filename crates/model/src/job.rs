//! Jobs: the durable definition, and what is to be done about a slot of one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::failures::FailuresMax;
use crate::handed::Completion;
use crate::id::{JobId, TenantId};
use crate::lane::Lane;
use crate::limits;
use crate::policy::{CatchUp, Delivery, Overlap};
use crate::retry::RetryPolicy;
use crate::schedule::{Kind, Schedule};
use crate::shard::Shard;
use crate::target::Target;
use crate::time::{Slot, Timestamp};

pub use crate::decide::Decision;

/// Counts a job's edits from 1; what `If-Match` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    pub const FIRST: Self = Self(1);

    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A name that a tenant gives a job; unique within the tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a key has 1 to {max} letters, digits or any of . _ : / @ + = - and does not begin with job_", max = limits::NAME_MAX)]
pub struct KeyError;

impl JobKey {
    /// A key stands in paths and on command lines, so its alphabet is small; it cannot be taken
    /// for an id.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@+=-".contains(&byte);
        let ok = (1..=limits::NAME_MAX).contains(&text.len())
            && text.bytes().all(fits)
            && !text.starts_with("job_");
        if ok {
            Ok(Self(text.to_owned()))
        } else {
            Err(KeyError)
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    Active,
    Paused,
    Finished,
    /// It cannot be read or planned any more; the note says why.
    Invalid,
    Deleted,
}

impl JobState {
    pub const ALL: [Self; 5] = [
        Self::Active,
        Self::Paused,
        Self::Finished,
        Self::Invalid,
        Self::Deleted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Invalid => "invalid",
            Self::Deleted => "deleted",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a client says about a job. It changes by edits only.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub schedule: Schedule,
    pub target: Target,
    /// JSON as it was sent, byte for byte.
    pub payload: Option<Bytes>,
    pub retry: RetryPolicy,
    /// Of one attempt.
    pub timeout: Duration,
    pub lane: Lane,
    pub overlap: Overlap,
    pub catch_up: CatchUp,
    pub spread: Duration,
    pub delivery: Delivery,
    /// What completes an attempt.
    pub completion: Completion,
    pub start_within: Option<Duration>,
    pub finish_within: Option<Duration>,
    /// Pauses the job after so many runs in a row that ended dead.
    pub pause_after_failures: Option<FailuresMax>,
    pub labels: BTreeMap<String, String>,
}

impl Definition {
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(300);

    /// A definition with every default.
    pub fn new(schedule: Schedule, target: Target) -> Self {
        let overlap = if schedule.is_recurring() {
            Overlap::Skip
        } else {
            Overlap::Allow
        };
        let catch_up = CatchUp::default_for(schedule.shortest_period());
        Self {
            schedule,
            target,
            payload: None,
            retry: RetryPolicy::default(),
            timeout: Self::TIMEOUT_DEFAULT,
            lane: Lane::default(),
            overlap,
            catch_up,
            spread: Duration::ZERO,
            delivery: Delivery::default(),
            completion: Completion::default(),
            start_within: None,
            finish_within: None,
            pause_after_failures: None,
            labels: BTreeMap::new(),
        }
    }
}

/// The size of a payload that is too large to be read ahead.
pub(crate) fn large(payload: Option<&Bytes>) -> Option<u32> {
    let len = payload.map_or(0, Bytes::len);
    let left = (len > limits::PAYLOAD_INLINE_MAX).then_some(len)?;
    Some(u32::try_from(left).unwrap_or(u32::MAX))
}

/// Where a job stands: what firing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub state: JobState,
    pub state_at: Timestamp,
    pub next_slot: Option<Slot>,
    pub slot_last: Option<Timestamp>,
    pub runs_made: u32,
    pub catch_up_to: Option<Timestamp>,
    pub manual_runs: u32,
    pub failures: Option<u32>,
}

/// A job: its definition and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: JobId,
    pub tenant: TenantId,
    pub key: Option<JobKey>,
    /// Who made it, or whoever it was given to; none if that was before owners were kept.
    pub owner: Option<Arc<str>>,
    pub version: Version,
    pub state: JobState,
    /// When it came into this state.
    pub state_at: Timestamp,
    /// Why, if someone said so.
    pub note: Option<String>,
    /// Who paused it.
    pub paused_by: Option<Arc<str>>,
    /// The next slot to be decided; none unless active. An active job without one rests: the end of
    /// its run sets it.
    pub next_slot: Option<Slot>,
    /// Every slot up to here, itself included, has been decided.
    pub slot_last: Option<Timestamp>,
    /// Runs of slots since they are bounded; not counted while they are not.
    pub runs_made: u32,
    /// Missed slots up to here were counted, and all of them are to run; it means nothing once they have.
    pub catch_up_to: Option<Timestamp>,
    /// Manual runs and replays, ever. A firing sees by it that one was started since plan looked.
    pub manual_runs: u32,
    /// Runs in a row that have ended dead, up to now; none unless its definition bounds them.
    pub failures: Option<u32>,
    /// The last version that wanted no second delivery, if this one does not mind.
    pub once_until: Option<Version>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The size of its payload, where that is left in the store: plan and claims read no large ones.
    pub payload_left: Option<u32>,
    pub def: Arc<Definition>,
}

impl Job {
    pub fn new(
        id: JobId,
        tenant: TenantId,
        key: Option<JobKey>,
        def: Definition,
        now: Timestamp,
    ) -> Self {
        let failures = def.pause_after_failures.map(|_| 0);
        let mut job = Self {
            id,
            tenant,
            key,
            owner: None,
            version: Version::FIRST,
            state: JobState::Active,
            state_at: now,
            note: None,
            paused_by: None,
            next_slot: None,
            slot_last: None,
            runs_made: 0,
            catch_up_to: None,
            manual_runs: 0,
            failures,
            once_until: None,
            created_at: now,
            updated_at: now,
            payload_left: None,
            def: Arc::new(def),
        };
        job.compute_next(now);
        job
    }

    pub fn shard(&self) -> Shard {
        Shard::of(self.id)
    }

    /// Whose secrets, signature and proxy its attempts are sent with: the system's jobs belong to the tenant they serve.
    pub fn sends_for(&self) -> TenantId {
        let served = self
            .owner
            .as_deref()
            .filter(|_| self.tenant == TenantId::SYSTEM);
        served.and_then(|id| id.parse().ok()).unwrap_or(self.tenant)
    }

    /// The same as plan and claims read it: a large payload is left in the store.
    pub fn without_large_payload(self: &Arc<Self>) -> Arc<Self> {
        let Some(left) = large(self.def.payload.as_ref()) else {
            return Arc::clone(self);
        };
        let mut job = Self::clone(self);
        job.payload_left = Some(left);
        Arc::make_mut(&mut job.def).payload = None;
        Arc::new(job)
    }

    /// The slot, and this job's own fixed offset.
    pub fn due_at(&self, slot: Slot) -> Timestamp {
        slot.0.plus(self.id.offset_within(self.def.spread))
    }

    /// What an attempt was promised that was claimed at a version: what was to be delivered once is not delivered again
    /// because the job has been edited since.
    pub fn delivery_at(&self, version: Version) -> Delivery {
        if self.once_until.is_some_and(|until| version <= until) {
            Delivery::AtMostOnce
        } else {
            self.def.delivery
        }
    }

    /// Whether its schedule has this slot.
    pub fn has_slot(&self, slot: Slot) -> bool {
        let before = slot.0.minus(Duration::from_millis(1));
        self.def.schedule.next_after(before) == Some(slot)
    }

    /// When the next slot is to be planned; what stores index.
    pub fn next_due_at(&self) -> Option<Timestamp> {
        self.next_slot.map(|slot| self.due_at(slot))
    }

    /// Whether it may have had a run: one of its slots is decided, or somebody asked for one.
    pub fn had_runs(&self) -> bool {
        self.slot_last.is_some() || self.manual_runs > 0
    }

    /// Whether it waits for its run to end, which sets the next slot.
    pub fn is_resting(&self) -> bool {
        self.state == JobState::Active && self.next_slot.is_none()
    }

    /// Runs of slots that are still to come, if they are bounded.
    pub fn runs_left(&self) -> Option<u32> {
        self.left_after(self.runs_made)
    }

    pub(crate) fn left_after(&self, made: u32) -> Option<u32> {
        let max = self.def.schedule.bounds.runs_max;
        max.map(|max| max.saturating_sub(made))
    }

    pub fn standing(&self) -> Standing {
        Standing {
            state: self.state,
            state_at: self.state_at,
            next_slot: self.next_slot,
            slot_last: self.slot_last,
            runs_made: self.runs_made,
            catch_up_to: self.catch_up_to,
            manual_runs: self.manual_runs,
            failures: self.failures,
        }
    }

    /// The same job, standing elsewhere.
    pub fn at_standing(&self, stands: Standing) -> Self {
        Self {
            state: stands.state,
            state_at: stands.state_at,
            next_slot: stands.next_slot,
            slot_last: stands.slot_last,
            runs_made: stands.runs_made,
            catch_up_to: stands.catch_up_to,
            manual_runs: stands.manual_runs,
            failures: stands.failures,
            ..self.clone()
        }
    }

    /// Points an active job at its first slot after both `from` and the last decided one. A one-off
    /// that lies in the past is still due: whoever accepted it decided that it may.
    pub(crate) fn compute_next(&mut self, from: Timestamp) {
        let after = self.slot_last.map_or(from, |last| last.max(from));
        self.catch_up_to = None;
        let schedule = &self.def.schedule;
        if let Kind::Broken(broken) = &schedule.kind {
            (self.state, self.next_slot) = (JobState::Invalid, None);
            self.note = Some(broken.error.clone());
            return;
        }
        self.next_slot = match &schedule.kind {
            Kind::Once(slot) => {
                Some(*slot).filter(|slot| self.slot_last.is_none_or(|last| slot.0 > last))
            }
            Kind::Cron(_) | Kind::Every(_) | Kind::Broken(_) => schedule.next_to_decide(after),
        };
        if schedule.leaves_out() && schedule.is_recurring() {
            // What calendars leave out up to the next slot is written down with it, from here on.
            self.slot_last = Some(after);
        }
        if self.runs_left() == Some(0) {
            self.next_slot = None;
        }
        self.state = match self.next_slot {
            Some(_) => JobState::Active,
            None => JobState::Finished,
        };
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
