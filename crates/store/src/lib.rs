//! What survives a crash: two traits, one for nodes and one for clients, each in the order of a run's life, and every
//! store that implements them.
//!
//! Methods take batches and answer each item; an `Err` means that nothing of the call is known to
//! have been written, and that calling again is safe. Moments come from callers; only presences and leases are measured by
//! the store's own clock.

#![deny(unreachable_pub)]

mod access;
mod acting;
mod alerts;
mod audit;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod budget;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod code;
mod error;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod fast_path;
mod find;
mod handed;
mod low_water;
mod overview;
mod replays;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod row;
mod run_counts;
mod secrets;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod statement;
mod types;
mod users;
mod waits;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod doc;
#[cfg(any(test, feature = "mem"))]
pub mod mem;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use model::presence::LastBeat;
use model::shard::ShardSet;
use model::{
    Calendar, CalendarName, Job, JobId, JobKey, Level, PresenceId, Run, RunId, Shard, TenantId,
    Timestamp, Version,
};

pub use access::*;
pub use acting::{Acting, SYSTEM};
pub use alerts::*;
pub use audit::{
    Action, AuditEntry, AuditRange, AuditStore, DROP_SEALS_MAX, DroppedSeals, FirstLast, Gap, Seal,
};
pub use error::{BadRow, BoxError, Found, StoreError};
pub use find::Finder;
pub use handed::*;
pub use low_water::LowWater;
pub use overview::{DuePage, DueSpan, LiveCount, OverviewStore, StandingCounts};
pub use replays::*;
pub use run_counts::RunCountStore;
pub use secrets::*;
pub use types::*;
pub use users::*;
pub use waits::WaitStore;

/// What nodes call: the engine's duties. What they write carries their presence, the epochs of their leases, or their
/// claims, and is refused when those are not current any more.
#[async_trait]
pub trait EngineStore: WaitStore {
    // Presence and leases: who may write as an engine.

    /// A new presence. It lives until it leaves or is fenced. A node that does not know the store's level is refused with
    /// `StoreError::Unusable`. Beside one that lives with other tables of time zones, no zone counts as applied any more.
    async fn join(&self, node: &NodeInfo) -> Result<PresenceId, StoreError>;

    /// Shows that the presence lives, and brings what its holder should know. A presence that was
    /// fenced gets `StoreError::Fenced`: it must join again as another. The low-water mark in `node_status` becomes that of
    /// its shards, if it has taken none since.
    async fn beat(
        &self,
        presence: PresenceId,
        node_status: &NodeStatus,
    ) -> Result<Beat, StoreError>;

    /// Takes every shard of `wanted` that nobody living holds, keeps those already held, gives up
    /// the others. Every change of hands raises the shard's epoch. A shard's low-water mark stays with it: the answer has the
    /// lowest of all that are held, the earliest moment if one is not known.
    async fn lease(&self, presence: PresenceId, wanted: &ShardSet) -> Result<Leases, StoreError>;

    /// Ends the presence in good order: its leases are free at once, claims it still has are
    /// treated as those of a fenced presence.
    async fn leave(&self, presence: PresenceId) -> Result<(), StoreError>;

    /// Fences each of these presences whose last beat is still the one that is named: its leases are free, its tokens
    /// match no more. By the word of `by`, which lives and has watched them (`model::presence`); the store's clock has
    /// no say in it. Answers who was fenced.
    async fn fence(
        &self,
        by: PresenceId,
        lapsed: &[LastBeat],
    ) -> Result<Vec<PresenceId>, StoreError>;

    /// Claims of presences that were fenced or have left, for settle as `Lost`; with the moment
    /// each presence ended and the job as it stands. Runs of `shards` only.
    async fn orphans(&self, shards: &ShardSet, limit: usize) -> Result<Vec<Orphan>, StoreError>;

    /// Every claim under a presence, by run id after `after`: compared with memory every few seconds.
    async fn claims(
        &self,
        presence: PresenceId,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<HeldClaim>, StoreError>;

    // Hints: nudges between nodes. An embedded store has one node, which needs none.

    /// Sends hints to the other nodes. Waits for nothing, and promises nothing.
    fn hint(&self, _hints: &[Hint]) {}

    /// Waits for hints from other nodes.
    async fn hints(&self, _presence: PresenceId) -> Result<Vec<Hint>, StoreError> {
        std::future::pending().await
    }

    // Plan: what is due.

    /// Active jobs of `shards` due at or before `up_to`, after `after`. A page is in the order of (`due_at`, id). Pages follow
    /// each other in the order of steps of `PLAN_STEP`; how those of one step are divided between them is the store's
    /// affair. Here, in `due_of`, `claim`, `claim_due` and `orphans` payloads larger than `PAYLOAD_INLINE_MAX` are left in
    /// the store.
    async fn due_jobs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<DueCursor>,
        limit: usize,
    ) -> Result<DueJobs, StoreError>;

    /// Runs of `shards` that nobody holds, that wait for no other, due at or before `up_to`:
    /// `Ready` ones and retries, in the order of (`due_at`, id), after `after`.
    async fn due_runs(
        &self,
        shards: &ShardSet,
        up_to: Timestamp,
        after: Option<(Timestamp, RunId)>,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError>;

    /// The same of some jobs: the active ones that are due by then, in the order of ids, and runs that anyone may claim.
    async fn due_of(&self, jobs: &[JobId], up_to: Timestamp) -> Result<DueOf, StoreError>;

    /// When the oldest slot or run of `shards` is due that nobody holds, of those due at `from` or later and by `up_to`.
    async fn oldest_due(
        &self,
        shards: &ShardSet,
        from: Timestamp,
        up_to: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError>;

    /// Takes jobs whose rows cannot be read out of the plan, with the error as their note.
    async fn park(&self, jobs: &[(JobId, String)], now: Timestamp) -> Result<(), StoreError>;

    // Fire and claim: slots become runs, runs get a holder.

    /// One decision per slot. Each firing moves its job onward if the job is active, at the firing's
    /// version and next slot, and its shard's lease has the epoch in `leases`; the overlap rule is
    /// applied to the runs alive in the same write. Where the job goes on is
    /// [`Job::standing_after`], by whether a run was inserted. A run that overlap does not let start or wait is decided
    /// when it is due, not before: until then the answer is `Early`. Called again by the same presence, it answers
    /// as it did. A batch holds a job once at most.
    async fn fire(&self, leases: &Leases, firings: &[Firing]) -> Result<Vec<Fired>, StoreError>;

    /// Takes the next attempt of named runs that nobody holds, under the leases of their shards. Called
    /// again, it answers the same, also when a shard has gone to someone else meanwhile.
    async fn claim(&self, leases: &Leases, runs: &[RunId]) -> Result<Vec<Claimed>, StoreError>;

    /// Takes the next attempt of runs of `shards` that nobody holds and that wait for no other, as many as there is room for.
    /// Needs no lease; what others are taking at this moment is left out.
    async fn claim_due(
        &self,
        presence: PresenceId,
        shards: &ShardSet,
        room: DueRoom,
    ) -> Result<Vec<(Run, Arc<Job>)>, StoreError>;

    /// Payloads that were left in the store. None where a run is gone, or a job at another version.
    async fn payloads(&self, of: &[PayloadOf]) -> Result<Vec<Option<Bytes>>, StoreError>;

    /// Runs that have been under way for a while: `Running`, for readers.
    async fn mark_running(
        &self,
        presence: PresenceId,
        runs: &[(RunId, Timestamp)],
    ) -> Result<(), StoreError>;

    // Withdraw and settle: how runs end.

    /// The holder's answer to `Mark::TakeBack`: taken back as if never fired, or too late.
    async fn withdraw(
        &self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Ends attempts. The end of a run of a job that rests sets its next slot. Each is written if the run's claim is still the one in the settlement, and
    /// that claim's presence is `by` itself or one that has ended. Called again, it answers `Stale`.
    async fn settle(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError>;

    /// Attempts whose work is with the outside.
    fn handed(&self) -> &dyn HandedStore;

    // Rules that jobs follow, retention, and what there is.

    /// Rules that have changed since all jobs under them were rescheduled: calendars by their version, and
    /// zones that jobs follow by the digest of their tables, compared with those of this binary.
    async fn rules_changed(&self) -> Result<Vec<Rule>, StoreError>;

    /// Jobs under a rule, deleted ones not, by id after `after`.
    async fn jobs_under(
        &self,
        rule: &Rule,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<(TenantId, JobId)>, StoreError>;

    /// All jobs under it have been scheduled by it. One that has changed again stays changed, and so does one that there
    /// is another doubt about: of a zone, also as long as a node with other tables lives.
    async fn rule_applied(&self, rule: &Rule) -> Result<(), StoreError>;

    /// One bounded step of forgetting: whole ranges of history, finished one-offs, deleted jobs
    /// whose runs have ended, idempotency keys, what tenants have that are being deleted. `more` says whether to come back at
    /// once.
    async fn retain(&self, keep: &Keep) -> Result<Retained, StoreError>;

    /// How many of the `limit` jobs after `after`, by id, are in each state: all of them are counted page by page.
    async fn count_jobs(&self, after: Option<JobId>, limit: usize)
    -> Result<JobCounts, StoreError>;

    /// How many calls have had to wait for a connection so far; an embedded store has none.
    fn waits(&self) -> u64 {
        0
    }
}

/// What clients' requests need: `server` calls it, with the tenant that the request is from. Three methods are the
/// engine's too: a duty reads jobs and runs by their ids, and reschedules a job, as a client does.
#[async_trait]
pub trait ClientStore: WaitStore {
    // Jobs.

    /// Raises the store's level, if every presence that lives knows it; from then on none below it joins. One that the
    /// store has already is answered as raised. Whoever writes a definition that needs more than the first level calls it
    /// before (`model::level`).
    async fn raise_level(&self, to: Level) -> Result<Raised, StoreError>;

    /// A job that was scheduled by another version of a calendar than the one that stands has `rules_changed` name
    /// that calendar. One that cannot be kept is refused by itself.
    async fn create_jobs(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError>;

    /// Writes a job as changed if nobody changed or fired it since it was read (`JobChange::before`
    /// is compared by version, `next_slot` and `slot_last`). Runs of slots after the change that
    /// nobody claimed are taken back (or cancelled) in the same write; claimed ones are marked. A job
    /// whose next slot is set by the end of its run rests while one of its slots' runs lives. Slots that have a run
    /// are not written as skipped. Calendars are looked at as by `create_jobs`; a job that cannot be kept is refused.
    async fn change_job(&self, change: &JobChange) -> Result<JobChanged, StoreError>;

    /// Jobs by id, each with the tenant that it belongs to; deleted ones are not found. They come with their payloads, so
    /// callers keep batches small.
    async fn get_jobs(&self, jobs: &[(TenantId, JobId)]) -> Result<Vec<Found<Job>>, StoreError>;

    /// A batch of one.
    async fn get_job(&self, tenant: TenantId, id: JobId) -> Result<Option<Job>, StoreError> {
        let found = self.get_jobs(&[(tenant, id)]).await?.pop();
        Ok(found.transpose()?.flatten())
    }

    async fn find_job(&self, tenant: TenantId, key: &JobKey) -> Result<Option<Job>, StoreError>;

    /// Newest first; deleted jobs only when asked for by state.
    async fn list_jobs(
        &self,
        tenant: TenantId,
        filter: &JobFilter,
        page: Page<JobId>,
    ) -> Result<Vec<Job>, StoreError>;

    // Calendars.

    /// Writes a calendar if it still stands at `before` (none: there is none of that name yet). Jobs
    /// that name it read it as it is now from the next read on; `rules_changed` names it until they
    /// have all been rescheduled.
    async fn put_calendar(
        &self,
        tenant: TenantId,
        calendar: &Calendar,
        before: Option<Version>,
    ) -> Result<CalendarPut, StoreError>;

    /// Those that exist, in the order of `names`.
    async fn get_calendars(
        &self,
        tenant: TenantId,
        names: &[CalendarName],
    ) -> Result<Vec<Option<CalendarUse>>, StoreError>;

    /// By name, after `after`.
    async fn list_calendars(
        &self,
        tenant: TenantId,
        after: Option<&CalendarName>,
        limit: usize,
    ) -> Result<Vec<CalendarUse>, StoreError>;

    /// Only one that no job names goes; deleted jobs name none.
    async fn drop_calendar(
        &self,
        tenant: TenantId,
        name: &CalendarName,
        before: Option<Version>,
    ) -> Result<CalendarDropped, StoreError>;

    /// Keys and tenants, which are no part of a run's life.
    fn access(&self) -> &dyn AccessStore;

    /// Runs that are wanted in bulk.
    fn replays(&self) -> &dyn ReplayStore;

    /// Who is to hear of which ends.
    fn alerts(&self) -> &dyn AlertStore;

    // Runs, live and history in one.

    /// A manual run or a replay, inserted `Ready` (or waiting, as overlap says).
    async fn start_run(&self, start: &StartRun) -> Result<Started, StoreError>;

    /// Ends a run that nobody holds; marks one that is held.
    async fn cancel_run(
        &self,
        tenant: TenantId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Cancelled, StoreError>;

    /// Runs by id, likewise.
    async fn get_runs(&self, runs: &[(TenantId, RunId)]) -> Result<Vec<Found<Run>>, StoreError>;

    /// A batch of one.
    async fn get_run(&self, tenant: TenantId, id: RunId) -> Result<Option<Run>, StoreError> {
        let found = self.get_runs(&[(tenant, id)]).await?.pop();
        Ok(found.transpose()?.flatten())
    }

    /// Newest first, live and history in one.
    async fn list_runs(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Result<Vec<Run>, StoreError>;

    /// What came of a job's slots from `from` up to but not including `to`, oldest first: runs of kind
    /// `Slot`, live and ended, and skipped entries; also the entry that began before `from` and covers it.
    async fn list_slots(
        &self,
        tenant: TenantId,
        job: JobId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<Run>, StoreError>;

    /// How many runs are alive. Takes as long as there are many: for tests and benches.
    async fn count_live(&self) -> Result<u64, StoreError>;
}

/// A whole store: what is opened, and handed to a node.
pub trait Store: EngineStore + ClientStore {}

impl<S: EngineStore + ClientStore> Store for S {}

/// The clock of an embedded store: whoever opens it says what time it is.
pub trait StoreClock: Send + Sync + 'static {
    /// Wall time.
    fn now(&self) -> Timestamp;
    fn now_micros(&self) -> i64 {
        self.now().as_millis().saturating_mul(1_000)
    }
    /// Time that only ever grows, also while the machine sleeps; beats are marked by it.
    fn uptime(&self) -> std::time::Duration;
}

/// The shard of a firing's job must be among the leases at the epoch they were taken with.
impl Leases {
    /// Those of a presence that holds nothing.
    pub fn none(presence: PresenceId) -> Self {
        Self {
            presence,
            epochs: BTreeMap::new(),
            low_water: LowWater::HIGHEST,
        }
    }

    pub fn epoch(&self, shard: Shard) -> Option<Epoch> {
        self.epochs.get(&shard).copied()
    }

    pub fn shards(&self) -> ShardSet {
        self.epochs.keys().copied().collect()
    }
}
