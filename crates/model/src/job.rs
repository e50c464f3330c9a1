//! Jobs: the durable definition, and what is to be done about a slot of one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::hash::hash;
use crate::id::{JobId, TenantId};
use crate::lane::Lane;
use crate::limits;
use crate::policy::{CatchUp, Delivery, Overlap};
use crate::retry::RetryPolicy;
use crate::run::Stretch;
use crate::schedule::Schedule;
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
    pub start_within: Option<Duration>,
    pub finish_within: Option<Duration>,
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
            start_within: None,
            finish_within: None,
            labels: BTreeMap::new(),
        }
    }
}

/// A job: its definition and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: JobId,
    pub tenant: TenantId,
    pub key: Option<JobKey>,
    pub version: Version,
    pub state: JobState,
    /// When it came into this state.
    pub state_at: Timestamp,
    /// Why, if someone said so.
    pub note: Option<String>,
    /// The next slot to be decided; none unless active.
    pub next_slot: Option<Slot>,
    /// Every slot up to here, itself included, has been decided.
    pub slot_last: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
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
        let mut job = Self {
            id,
            tenant,
            key,
            version: Version::FIRST,
            state: JobState::Active,
            state_at: now,
            note: None,
            next_slot: None,
            slot_last: None,
            created_at: now,
            updated_at: now,
            def: Arc::new(def),
        };
        job.aim(now);
        job
    }

    pub fn shard(&self) -> Shard {
        Shard::of(self.id)
    }

    /// The slot, and this job's own fixed offset.
    pub fn due_at(&self, slot: Slot) -> Timestamp {
        let spread = self.def.spread.as_millis() as u64;
        if spread == 0 {
            return slot.0;
        }
        slot.0.plus(Duration::from_millis(
            hash(0x0073_7072_6561_6400, &[self.id.hash()]) % spread,
        ))
    }

    /// When the next slot is to be planned; what stores index.
    pub fn next_due_at(&self) -> Option<Timestamp> {
        self.next_slot.map(|slot| self.due_at(slot))
    }

    /// Points an active job at its first slot after both `from` and the last decided one. A one-off
    /// that lies in the past is still due: whoever accepted it decided that it may.
    fn aim(&mut self, from: Timestamp) {
        let after = self.slot_last.map_or(from, |last| last.max(from));
        self.next_slot = match &self.def.schedule {
            Schedule::Once(slot) => {
                Some(*slot).filter(|slot| self.slot_last.is_none_or(|last| slot.0 > last))
            }
            Schedule::Cron(_) | Schedule::Every(_) => self.def.schedule.next_after(after),
        };
        self.state = match self.next_slot {
            Some(_) => JobState::Active,
            None => JobState::Finished,
        };
    }

    fn turn(&mut self, now: Timestamp, note: Option<String>) {
        self.version = self.version.next();
        self.updated_at = now;
        self.state_at = now;
        self.note = note;
    }

    /// Another definition from `now` on. It never creates a slot in the past, nor one that was
    /// decided. A slot that is overdue stays so under the same schedule; another one drops it, and
    /// [`Self::dropped_by`] says so. A paused job stays paused.
    pub fn edited(&self, key: Option<JobKey>, def: Definition, now: Timestamp) -> Self {
        let dropped = self.dropped_by(&def, now);
        let mut job = Self {
            def: Arc::new(def),
            key,
            ..self.clone()
        };
        let (state_at, note) = (job.state_at, job.note.clone());
        job.turn(now, None);
        match self.state {
            JobState::Paused => {
                (job.state_at, job.note) = (state_at, note);
            }
            JobState::Active
                if self.overdue(now).is_some() && job.def.schedule == self.def.schedule =>
            {
                job.state_at = state_at;
            }
            JobState::Active | JobState::Finished | JobState::Invalid | JobState::Deleted => {
                if let Some(stretch) = dropped {
                    job.slot_last = job.slot_last.max(Some(stretch.last.0));
                }
                job.aim(now);
                if job.state == self.state {
                    job.state_at = state_at;
                }
            }
        }
        job
    }

    /// The slots that an edit drops: overdue, not decided, and of a schedule that goes.
    pub fn dropped_by(&self, def: &Definition, now: Timestamp) -> Option<Stretch> {
        self.undecided(now)
            .filter(|_| def.schedule != self.def.schedule)
    }

    /// The slots up to `now` that have passed without being decided.
    pub fn undecided(&self, now: Timestamp) -> Option<Stretch> {
        self.overdue(now)
            .map(|first| self.stretch_until(first, now))
    }

    /// The next slot, if it has passed without being decided.
    fn overdue(&self, now: Timestamp) -> Option<Slot> {
        self.next_slot.filter(|slot| slot.0 <= now)
    }

    pub fn paused(&self, now: Timestamp, note: Option<String>) -> Self {
        let mut job = Self {
            state: JobState::Paused,
            next_slot: None,
            ..self.clone()
        };
        // What came before the pause is decided or missed as ever; what follows is the pause's.
        job.slot_last = Some(self.slot_last.map_or(now, |last| last.max(now)));
        if let Some(slot) = self.overdue(now) {
            // Overdue at this very moment: it belongs to the pause, so that it is not lost.
            job.slot_last = Some(slot.0.minus(Duration::from_millis(1)));
        }
        job.turn(now, note);
        job
    }

    /// Goes on from `now`. Also says which slots passed while it was paused.
    pub fn resumed(&self, now: Timestamp) -> (Self, Option<Stretch>) {
        let mut job = self.clone();
        job.turn(now, None);
        let passed = self.passed_while_paused(now);
        if let Some(stretch) = passed {
            job.slot_last = Some(stretch.last.0);
        }
        job.aim(now);
        (job, passed)
    }

    /// The slots a paused job has let pass up to `now`.
    pub fn passed_while_paused(&self, now: Timestamp) -> Option<Stretch> {
        let from = self.slot_last.unwrap_or(self.state_at);
        let first = match &self.def.schedule {
            Schedule::Once(slot) => Some(*slot).filter(|slot| slot.0 > from),
            Schedule::Cron(_) | Schedule::Every(_) => self.def.schedule.next_after(from),
        }?;
        (first.0 <= now).then(|| self.stretch_until(first, now))
    }

    pub fn deleted(&self, now: Timestamp) -> Self {
        let mut job = Self {
            state: JobState::Deleted,
            next_slot: None,
            ..self.clone()
        };
        job.turn(now, None);
        job
    }

    /// Parked: it cannot be planned, and says why.
    pub fn invalid(&self, now: Timestamp, error: String) -> Self {
        let mut job = Self {
            state: JobState::Invalid,
            next_slot: None,
            ..self.clone()
        };
        job.turn(now, Some(error));
        job
    }

    /// A run of `slot` was taken back before it was dispatched, at `now`: as if never fired. The
    /// slot is decided anew, by the definition as it stands.
    pub fn taken_back(&self, slot: Slot, now: Timestamp) -> Self {
        let mut job = self.clone();
        let mut before = slot.0.minus(Duration::from_millis(1));
        if self.version > Version::FIRST {
            // A new definition counts from its edit on: slots of its own may lie before this one.
            before = before.min(self.updated_at);
        }
        let decided = self.slot_last.map_or(before, |last| last.min(before));
        job.slot_last = Some(decided);
        match self.state {
            JobState::Active | JobState::Finished => {
                // From the last decided slot, not from `now`: an earlier one may have been taken
                // back before this one, and must not be passed over.
                job.aim(now.min(decided));
            }
            JobState::Paused | JobState::Invalid | JobState::Deleted => {}
        }
        job
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
