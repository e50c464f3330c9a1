//! Runs: what came of one slot, or of one request to run a job now.
//!
//! ```text
//!            ┌────────────────────────────────────────┐ released
//!            ▼                                        │
//!   (fire) Ready ──claimed──▶ Ready+claim ──1 s──▶ Running
//!            ▲                    │   ╲               │
//!            │ due                │    ╲ settled      │ settled
//!         Retrying ◀──────────────┴─────╲─────────────┤
//!                                        ▼            ▼
//!                          Succeeded · Dead · Cancelled      (Skipped is inserted ended)
//! ```
//!
//! A run that nobody holds may wait besides (`wait`): then nobody claims it before it is freed or woken.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::attempt::{Attempt, AttemptNo};
use crate::id::{JobId, PresenceId, RunId, TenantId};
use crate::job::{Job, Version, large};
use crate::lane::Lane;
use crate::limits;
use crate::retry::Verdict;
use crate::shard::Shard;
use crate::time::{Slot, Timestamp};
use crate::trace::Trace;
use crate::wait::Wait;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunState {
    Ready,
    Running,
    Retrying,
    Succeeded,
    Dead,
    Cancelled,
    Skipped,
}

/// What can happen to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// A node took the next attempt.
    Claimed,
    /// It has been under way for a while.
    Marked,
    /// Its attempt ended; the number is that of the attempt to come, if one does.
    Settled(Verdict, AttemptNo),
    /// Taken out before anyone claimed it.
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {from} cannot be {event:?}")]
pub struct IllegalMove {
    pub from: RunState,
    pub event: RunEvent,
}

impl RunState {
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Running,
        Self::Retrying,
        Self::Succeeded,
        Self::Dead,
        Self::Cancelled,
        Self::Skipped,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Succeeded => "succeeded",
            Self::Dead => "dead",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether it still moves.
    pub fn is_live(self) -> bool {
        match self {
            Self::Ready | Self::Running | Self::Retrying => true,
            Self::Succeeded | Self::Dead | Self::Cancelled | Self::Skipped => false,
        }
    }

    pub fn after(self, event: RunEvent) -> Result<Self, IllegalMove> {
        use RunEvent as E;
        use RunState as S;
        match (self, event) {
            (S::Ready | S::Retrying, E::Claimed) => Ok(S::Ready),
            (S::Ready | S::Running, E::Marked) => Ok(S::Running),
            (S::Ready | S::Running, E::Settled(verdict, attempt)) => {
                Ok(Self::settled(verdict, attempt))
            }
            (S::Ready | S::Retrying, E::Cancelled) => Ok(S::Cancelled),
            (S::Running, E::Claimed | E::Cancelled)
            | (S::Retrying, E::Marked | E::Settled(..))
            | (S::Succeeded | S::Dead | S::Cancelled | S::Skipped, _) => {
                Err(IllegalMove { from: self, event })
            }
        }
    }

    /// Where a verdict leads.
    fn settled(verdict: Verdict, attempt: AttemptNo) -> Self {
        match verdict {
            Verdict::Succeed => Self::Succeeded,
            Verdict::Release | Verdict::Wait(_) if attempt == AttemptNo::FIRST => Self::Ready,
            Verdict::RetryAt(_) | Verdict::Release | Verdict::Wait(_) => Self::Retrying,
            Verdict::Bury(_) => Self::Dead,
            Verdict::Cancel(_) => Self::Cancelled,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunKind {
    Slot,
    Manual,
    Replay,
}

impl RunKind {
    pub const ALL: [Self; 3] = [Self::Slot, Self::Manual, Self::Replay];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Manual => "manual",
            Self::Replay => "replay",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Why a run ended without success, or never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The job's last run was still alive.
    Overlap,
    /// As many runs as allowed were waiting already.
    QueueFull,
    /// The job was paused.
    Paused,
    /// No node could fire it in time.
    Missed,
    /// Every attempt allowed was made.
    AttemptsSpent,
    /// The target said that trying again cannot help.
    Refused,
    /// Its holder was gone, and the job wants no second delivery.
    Lost,
    /// Its holders were lost again and again.
    Poison,
    /// A client asked for it.
    Requested,
    /// A newer run of the same job took its place.
    Replaced,
    /// Its job was deleted.
    JobDeleted,
    /// The row could not be processed.
    Unreadable,
    /// A calendar of the job left it out; the note names it.
    Calendar,
    /// The job could not be planned; its note said why.
    Invalid,
    /// As many late slots of the job as may wait were waiting for their turn already.
    Overload,
    /// The tenant had had all its runs of the day.
    Quota,
}

impl Reason {
    pub const ALL: [Self; 16] = [
        Self::Overlap,
        Self::QueueFull,
        Self::Paused,
        Self::Missed,
        Self::AttemptsSpent,
        Self::Refused,
        Self::Lost,
        Self::Poison,
        Self::Requested,
        Self::Replaced,
        Self::JobDeleted,
        Self::Unreadable,
        Self::Calendar,
        Self::Invalid,
        Self::Overload,
        Self::Quota,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overlap => "overlap",
            Self::QueueFull => "queue_full",
            Self::Paused => "paused",
            Self::Missed => "missed",
            Self::AttemptsSpent => "attempts_spent",
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::Poison => "poison",
            Self::Requested => "requested",
            Self::Replaced => "replaced",
            Self::JobDeleted => "job_deleted",
            Self::Unreadable => "unreadable",
            Self::Calendar => "calendar",
            Self::Invalid => "invalid",
            Self::Overload => "overload",
            Self::Quota => "quota",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// The sole right to work on one attempt. Presence and number together are its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    pub presence: PresenceId,
    pub attempt: AttemptNo,
}

/// What a mark wants of the holder of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Take it back as if it had never been fired: its job was paused or edited.
    TakeBack,
    /// End it.
    Cancel(Reason),
    /// The holder had dispatched it before it was marked.
    TooLate,
}

/// One entry that covers several slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stretch {
    pub first: Slot,
    pub last: Slot,
    pub count: u64,
}

impl Stretch {
    pub fn one(slot: Slot) -> Self {
        Self {
            first: slot,
            last: slot,
            count: 1,
        }
    }

    /// As an entry has it, which says nothing of a single slot.
    pub fn several(self) -> Option<Self> {
        (self.count > 1).then_some(self)
    }
}

/// Slots that will not run: why, what stands behind it, and who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    pub slots: Stretch,
    pub reason: Reason,
    /// The calendar's name, or what was said when the job was paused.
    pub note: Option<String>,
    /// A node, or whoever changed the job.
    pub actor: Arc<str>,
}

/// A run, live or ended, as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub id: RunId,
    pub tenant: TenantId,
    pub job: JobId,
    pub kind: RunKind,
    /// None for a manual run.
    pub slot: Option<Slot>,
    pub replay_of: Option<RunId>,
    pub due_at: Timestamp,
    pub lane: Lane,
    pub state: RunState,
    pub reason: Option<Reason>,
    /// The attempt under way or coming next; the last one, once ended.
    pub attempt: AttemptNo,
    /// How many of the attempts were lost.
    pub lost: u32,
    /// The job's version at the attempt's claim.
    pub version: Version,
    pub claim: Option<PresenceId>,
    pub mark: Option<Mark>,
    /// Why it may not start yet.
    pub wait: Option<Wait>,
    /// When it last stopped waiting for something outside of its job.
    pub woken_at: Option<Timestamp>,
    /// When its first attempt was, as far as is known; each attempt has its own.
    pub dispatched_at: Option<Timestamp>,
    pub settled_at: Option<Timestamp>,
    /// Only of a manual run or a replay that carries its own.
    pub payload: Option<Bytes>,
    /// The size of that payload, where it is left in the store: claims read no large ones.
    pub payload_left: Option<u32>,
    /// Whose trace it goes on with: only of a live manual run that somebody started so.
    pub trace: Option<Box<Trace>>,
    /// Only of a `Skipped` entry that covers more than its own slot.
    pub stretch: Option<Stretch>,
    /// Only of a `Skipped` entry: what stands behind its reason.
    pub note: Option<String>,
    /// Only of a `Skipped` entry: who decided it.
    pub actor: Option<Arc<str>>,
    /// Ended attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

impl Run {
    /// The run of a slot as it is inserted: `Ready`, its first attempt to come, held by nobody.
    pub fn of_slot(job: &Job, slot: Slot) -> Self {
        Self {
            id: RunId::for_slot(job.id, slot),
            tenant: job.tenant,
            job: job.id,
            kind: RunKind::Slot,
            slot: Some(slot),
            replay_of: None,
            due_at: job.due_at(slot),
            lane: job.def.lane,
            state: RunState::Ready,
            reason: None,
            attempt: AttemptNo::FIRST,
            lost: 0,
            version: job.version,
            claim: None,
            mark: None,
            wait: None,
            woken_at: None,
            dispatched_at: None,
            settled_at: None,
            payload: None,
            payload_left: None,
            trace: None,
            stretch: None,
            note: None,
            actor: None,
            attempts: Vec::new(),
        }
    }

    /// A run that somebody asked for, as it is inserted: due now.
    pub fn of_request(job: &Job, id: RunId, kind: RunKind, now: Timestamp) -> Self {
        Self {
            id,
            kind,
            slot: None,
            due_at: now,
            ..Self::of_slot(job, Slot(now))
        }
    }

    /// The entry of slots that will not run, under the name of the first; decided at `settled_at`.
    pub fn skipped(job: &Job, skip: &Skip, settled_at: Timestamp) -> Self {
        let Skip {
            slots,
            reason,
            note,
            actor: by,
        } = skip;
        Self {
            state: RunState::Skipped,
            reason: Some(*reason),
            settled_at: Some(settled_at),
            stretch: slots.several(),
            note: note.clone(),
            actor: Some(Arc::clone(by)),
            ..Self::of_slot(job, slots.first)
        }
    }

    /// The slots it stands for.
    pub fn slots(&self) -> Option<Stretch> {
        self.stretch.or(self.slot.map(Stretch::one))
    }

    /// Whether it was fired ahead of its slot, as seen at `now`, and no attempt of it has begun. More
    /// than a lead away it was not: then the clock has gone back, and the run belongs to the past.
    ///
    /// The slot counts, not `due_at`: a slot that has come belongs to the definition and the state the job had
    /// then, also while a spread still holds its run back. A pause or an edit explains the slots after it, so one
    /// taken back from before it would be nobody's.
    pub fn is_ahead(&self, now: Timestamp) -> bool {
        let lead = limits::LEAD_MAX + limits::BEAT_EVERY;
        let slot = self.slot.map_or(now, |slot| slot.0);
        self.kind == RunKind::Slot
            && self.attempt == AttemptNo::FIRST
            && self.state == RunState::Ready
            && slot > now
            && slot.since(now) <= lead
    }

    pub fn shard(&self) -> Shard {
        Shard::of(self.job)
    }

    /// The same as claims read it: a large payload of its own is left in the store.
    pub fn without_large_payload(mut self) -> Self {
        self.payload_left = large(self.payload.as_ref()).or(self.payload_left);
        self.payload = self.payload.filter(|_| self.payload_left.is_none());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for state in RunState::ALL {
            assert_eq!(RunState::parse(state.as_str()), Some(state));
        }
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
    }

    #[test]
    fn nothing_moves_a_run_that_has_ended() {
        let events = [
            RunEvent::Claimed,
            RunEvent::Marked,
            RunEvent::Cancelled,
            RunEvent::Settled(Verdict::Succeed, AttemptNo::FIRST),
        ];
        for state in RunState::ALL.into_iter().filter(|state| !state.is_live()) {
            for event in events {
                assert!(state.after(event).is_err(), "{state} {event:?}");
            }
        }
    }

    #[test]
    fn a_retry_is_claimed_again_before_it_can_settle() {
        let second = AttemptNo::FIRST.next();
        let succeeds = RunEvent::Settled(Verdict::Succeed, second);
        let retrying = RunState::Ready
            .after(RunEvent::Settled(Verdict::RetryAt(Timestamp::MIN), second))
            .unwrap();
        assert_eq!(retrying, RunState::Retrying);
        assert!(retrying.after(succeeds).is_err());
        let again = retrying.after(RunEvent::Claimed).unwrap();
        assert_eq!(again.after(succeeds), Ok(RunState::Succeeded));
    }

    #[test]
    fn a_released_attempt_waits_as_it_did_before() {
        let released =
            |attempt| RunState::Ready.after(RunEvent::Settled(Verdict::Release, attempt));
        assert_eq!(released(AttemptNo::FIRST), Ok(RunState::Ready));
        assert_eq!(released(AttemptNo(2)), Ok(RunState::Retrying));
    }
}
