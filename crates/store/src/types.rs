//! What goes into a store's methods and what comes out, in the order of the trait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::schedule::Calendars;
use model::{
    AttemptNo, BeatMark, Calendar, CalendarName, Job, JobId, JobState, Lane, Level, Mark, Parts,
    PresenceId, QuotaExceeded, Run, RunId, RunMatch, RunState, Shard, TenantId, Timestamp, Version,
    WaitReason, limits,
};

use crate::LowWater;

pub use model::view::{
    Cancelled, Fired, Firing, JobChange, RunsOfChange, Settled, Settlement, StartRun, Started,
    Withdrawal, Woken,
};

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeInfo {
    /// For people.
    pub name: String,
    /// Of the binary.
    pub version: String,
    /// The release of its time zone tables.
    pub tables: String,
    pub parts: Parts,
    /// What definitions it can read.
    pub level: Level,
    /// The kinds of targets that it has executors for.
    pub kinds: Vec<String>,
}

/// What became of a level that was to be raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raised {
    Done,
    /// This one lives, and does not know it.
    Below(Box<NodeInfo>),
}

/// What a node says of itself with every beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeStatus {
    /// Shards may fall to it: it has the part, its clock is fit, and it is not about to stop.
    pub schedules: bool,
    /// It takes runs that others leave.
    pub executes: bool,
    /// How many more runs it could take.
    pub room: u32,
    /// How late the oldest run that it holds and has not handed to its target is, in milliseconds.
    pub lateness: u32,
    /// Its clock against the store's, unless that is its own.
    pub offset: Option<Offset>,
    /// For whoever has its shards next. Its peers do not hear it.
    pub low_water: Option<LowWater>,
}

/// How a node's wall clock stands to the store's, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offset {
    /// What it is ahead.
    pub ahead: i64,
    /// How wrong that may be.
    pub uncertainty: i64,
}

/// A presence that lives, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub presence: PresenceId,
    pub node: NodeInfo,
    /// As of its last beat.
    pub node_status: NodeStatus,
    pub joined_at: Timestamp,
    /// Its last beat, and how long ago that was by the store's clock, for people.
    pub mark: BeatMark,
    pub beaten: Duration,
    /// How many shards it holds.
    pub shards: u16,
}

/// Numbers a shard's leases; only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// The right to fire jobs of some shards. Whoever holds it may fire; the epochs are checked in the write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leases {
    pub presence: PresenceId,
    pub epochs: BTreeMap<Shard, Epoch>,
    /// The lowest mark of these shards.
    pub low_water: LowWater,
}

/// When a presence that ends `now` ended, as far as its claims depend on it: what was due later
/// never left it. `seen` is the latest moment the store has seen; a clock that went back since then
/// does not know what was dispatched, and claims are made at most a lead ahead, so then all of them may have been.
pub fn presence_end(now: Timestamp, seen: Timestamp) -> Timestamp {
    if now >= seen {
        now
    } else {
        seen.plus(limits::LEAD_MAX + limits::BEAT_EVERY)
    }
}

/// The same of one that fell silent, and whose beats were answered with times up to `clock_read`: it may have gone on by
/// that for as long as it lived, without hearing that the clock has gone back.
pub fn silent_presence_end(now: Timestamp, seen: Timestamp, clock_read: Timestamp) -> Timestamp {
    presence_end(now, seen.max(clock_read.plus(limits::PRESENCE_TTL)))
}

/// What a beat brings back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The store's clock, in microseconds: the middle between two looks at it.
    pub now_micros: i64,
    /// What passed between the two: the store's own time, no doubt about its clock.
    pub took: Duration,
    /// Marks on claims of this presence, oldest run first.
    pub marks: Vec<(RunId, Mark)>,
    /// Every presence that lives, this one included.
    pub living: Vec<Peer>,
}

/// A nudge from one node to the others: look now instead of later. Everything is correct without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// A job was written that may be due soon.
    Job(TenantId, JobId),
    /// Something of a shard became due that its holder may not know of.
    Shard(Shard),
    /// Runs wait for whoever has room.
    Ready,
    /// Claims were marked.
    Marks,
    /// Shards were given up.
    Leases,
    /// A calendar was changed.
    Rules,
    /// A key was created or revoked.
    Keys,
    /// Hints were lost: it may have been any of them.
    Lost,
}

/// A claim whose holder is gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Orphan {
    pub run: Run,
    pub job: Arc<Job>,
    /// When the holder's presence ended.
    pub ended_at: Timestamp,
    /// The holder's name.
    pub node: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldClaim {
    pub run: RunId,
    pub attempt: AttemptNo,
    pub due_at: Timestamp,
    pub mark: Option<Mark>,
}

/// A job to be written, with what makes the request repeatable.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    pub job: Arc<Job>,
    pub idempotency: Option<Idempotency>,
}

/// A request's `Idempotency-Key` and a digest of its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    pub key: String,
    pub digest: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    Done,
    /// The same request was answered before, with this job.
    Repeated(JobId),
    /// The idempotency key was used for another body.
    Mismatch,
    /// Another job of the tenant has the key.
    KeyTaken(JobId),
    /// It names a calendar that is not there (any more).
    CalendarMissing(CalendarName),
    /// The tenant has as much as it may.
    QuotaExceeded(QuotaExceeded),
    /// This one cannot be written, ever.
    Refused(String),
}

/// The calendars that a job is scheduled by, by name; a deleted one names none.
pub(crate) fn calendars_of(job: &Job) -> BTreeMap<&CalendarName, Version> {
    let Calendars { exclude, only } = &job.def.schedule.calendars;
    let all = exclude.iter().chain(only);
    all.filter(|_| job.state != JobState::Deleted)
        .map(|calendar| (&calendar.name, calendar.version))
        .collect()
}

#[derive(Debug, Clone, PartialEq)]
pub enum JobChanged {
    /// Written. `job` is as it stands now; `marked` are the claimed runs that were marked; so many that nobody held were
    /// cancelled.
    Done {
        job: Box<Job>,
        marked: Vec<RunId>,
        cancelled: u64,
    },
    /// Someone was faster; this is how it stands.
    Conflict(Box<Job>),
    KeyTaken(JobId),
    /// It names a calendar that is not there (any more).
    CalendarMissing(CalendarName),
    /// The tenant would have more than it may.
    QuotaExceeded(QuotaExceeded),
    Missing,
    /// This one cannot be written, ever.
    Refused(String),
}

/// A job goes with its tenant.
pub(crate) fn swept(job: Job, now: Timestamp) -> JobChange {
    let (after, skipped) = job.deleted(now, &Arc::from(crate::acting::SYSTEM));
    JobChange {
        before: Arc::new(job),
        after: Arc::new(after),
        skipped,
        runs: RunsOfChange::Cancel,
    }
}

/// What a job was before it was changed: its key and its definition. Where it stands is as it is now.
#[derive(Debug, Clone, PartialEq)]
pub struct JobVersion {
    pub job: Arc<Job>,
    /// When it was changed, and by whom.
    pub ended_at: Timestamp,
    pub ended_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFilter {
    pub states: Vec<JobState>,
    /// All of these labels.
    pub labels: Vec<(String, String)>,
    /// A part of the key, in any case.
    pub q: Option<String>,
    /// Whoever they belong to.
    pub owner: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CalendarPut {
    Done,
    /// Someone was faster; this is how it stands, if it does.
    Conflict(Option<Arc<Calendar>>),
    /// The tenant has `CALENDARS_MAX` already.
    Full,
}

/// A calendar, and what hangs on it.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarUse {
    pub calendar: Arc<Calendar>,
    /// Jobs that name it, deleted ones not.
    pub jobs: u64,
    /// Whether all of them have been scheduled by it as it stands.
    pub applied: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum CalendarDropped {
    Done,
    /// Jobs name it: some of them, and how many there are.
    InUse(Vec<JobId>, u64),
    Conflict(Arc<Calendar>),
    Missing,
}

/// What slots depend on besides their job: when it changes, jobs under it are rescheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    Calendar {
        tenant: TenantId,
        name: CalendarName,
        version: Version,
        /// How many times a job was written that another version of it had scheduled.
        doubts: u32,
    },
    Zone {
        name: String,
        /// Of the tables in this binary; 0 if they do not have the zone any more.
        digest: u64,
        /// What stands instead: the digest of other tables, or one that means none, because nodes with different tables
        /// may both have scheduled jobs.
        known: u64,
    },
}

/// What stands for a zone, after this did, when nodes with different tables may both have scheduled jobs: each time another
/// number, so that who has seen one and applies the zone meanwhile comes too late.
pub(crate) const fn doubted(digest: u64) -> u64 {
    (digest & (u64::MAX >> 2)) + 1
}

/// A page of a listing that runs from the newest to the oldest: entries before `before`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<Id> {
    pub before: Option<Id>,
    pub limit: usize,
}

/// Where plan goes on: what is due later than one moment, if one is named, and not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueCursor {
    pub later_than: Option<Timestamp>,
    /// The job that was read last, and when it is due.
    pub last: Option<(Timestamp, JobId)>,
}

impl DueCursor {
    /// Everything that is due later than a moment.
    #[must_use]
    pub fn later_than(moment: Timestamp) -> Self {
        Self {
            later_than: Some(moment),
            last: None,
        }
    }

    /// Where a page goes on that was begun at `after` and ends with this job.
    #[must_use]
    pub fn behind(after: Option<Self>, due_at: Timestamp, job: JobId) -> Self {
        Self {
            later_than: after.and_then(|after| after.later_than),
            last: Some((due_at, job)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct DueJobs {
    pub jobs: Vec<Arc<Job>>,
    /// Rows that cannot be read, and why; to be parked.
    pub unreadable: Vec<(JobId, String)>,
    /// Where to go on; none when everything up to `up_to` was read.
    pub next: Option<DueCursor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRun {
    pub run: RunId,
    pub tenant: TenantId,
    pub job: JobId,
    pub due_at: Timestamp,
    pub state: RunState,
}

/// What is claimed of the runs that others left: so many of each lane, first those on time, then the backlog; the earliest
/// first in either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueRoom {
    /// What is due before this is backlog.
    pub on_time_from: Timestamp,
    /// What is due later stays where it is.
    pub up_to: Timestamp,
    pub room: [usize; Lane::COUNT],
    /// Of these, how many may be of the backlog.
    pub backlog: [usize; Lane::COUNT],
}

impl DueRoom {
    /// The earliest first, whatever their age.
    pub fn for_earliest(up_to: Timestamp, room: [usize; Lane::COUNT]) -> Self {
        Self {
            on_time_from: Timestamp::MIN,
            up_to,
            room,
            backlog: [0; Lane::COUNT],
        }
    }
}

/// What is due of some jobs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DueOf {
    pub jobs: Vec<Arc<Job>>,
    /// Rows that cannot be read, and why; to be parked.
    pub unreadable: Vec<(JobId, String)>,
    pub runs: Vec<DueRun>,
}

/// A payload that was left in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadOf {
    /// The run's own.
    Run(RunId),
    /// The job's, at this version.
    Job(JobId, Version),
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Claimed {
    /// Ours: the run as it stands, `attempt` being the one claimed, and its job.
    Ours(Box<Run>, Arc<Job>),
    /// Held by someone else, ended, waiting, or not there.
    Stale,
    LeaseLost,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    pub job: Option<JobId>,
    pub states: Vec<RunState>,
    /// Only those that wait for one of these.
    pub waiting: Vec<WaitReason>,
    /// By the moments in their ids: their slots, or when they were asked for. From this one on.
    pub from: Option<Timestamp>,
    /// And before this one.
    pub to: Option<Timestamp>,
}

impl RunFilter {
    /// Where a page begins: before this id, if any.
    pub(crate) fn before(&self, page: Page<RunId>) -> Option<RunId> {
        let to = self.to.map(RunId::least_at);
        match (page.before, to) {
            (Some(before), Some(to)) => Some(before.min(to)),
            (before, to) => before.or(to),
        }
    }

    /// The least id that is wanted.
    pub(crate) fn least(&self) -> RunId {
        self.from
            .map_or(RunId::from_bytes([0; 16]), RunId::least_at)
    }
}

/// Which runs are wanted: what a store looks up, and what is looked at in each of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFind {
    pub filter: RunFilter,
    pub matches: RunMatch,
}

/// What is kept how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub now: Timestamp,
    pub history: Duration,
    pub finished: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retained {
    /// Ranges of history dropped whole.
    pub partitions: u32,
    pub jobs: u32,
    pub more: bool,
}

/// A page of jobs, by state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobCounts {
    pub counts: BTreeMap<JobState, u64>,
    /// Where the next page begins; none on the last.
    pub next: Option<JobId>,
}

impl JobCounts {
    /// How many jobs of a page are in each state, with the last of them.
    pub fn of(page: impl IntoIterator<Item = (JobState, u64, JobId)>, limit: usize) -> Self {
        let (mut counts, mut last) = (BTreeMap::<_, u64>::new(), None);
        for (state, count, id) in page {
            *counts.entry(state).or_default() += count;
            last = last.max(Some(id));
        }
        let is_full = counts.values().sum::<u64>() == limit as u64;
        let next = last.filter(|_| is_full);
        Self { counts, next }
    }
}
