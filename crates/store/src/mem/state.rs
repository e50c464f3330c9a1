//! The maps, and what several steps share: how a run leaves the live set, and who may start after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use model::policy::Living;
use model::{
    Calendar, CalendarName, Job, JobId, JobKey, PresenceId, Reason, Run, RunId, RunKind, RunState,
    Shard, Slot, TenantId, Timestamp, Version,
};

use crate::{Epoch, Hint, Leases, NodeInfo, StoreError, Vitals};

/// Everything the store knows. What always holds: `keys` names jobs that are not deleted; a live run's job
/// is in `jobs`; an id that is in both `live` and `history` was decided again, and `live` is what counts.
#[derive(Default)]
pub(super) struct State {
    /// The latest moment seen; a clock may go back.
    pub seen: Timestamp,
    pub presences: BTreeMap<PresenceId, Presence>,
    pub leases: BTreeMap<Shard, Lease>,
    pub jobs: BTreeMap<JobId, Arc<Job>>,
    pub keys: BTreeMap<(TenantId, JobKey), JobId>,
    pub calendars: BTreeMap<(TenantId, CalendarName), Kept>,
    /// Zones that jobs follow, with the digest of the tables they were aimed by.
    pub zones: BTreeMap<String, u64>,
    pub requests: BTreeMap<(TenantId, String), Request>,
    pub live: Live,
    pub history: BTreeMap<RunId, Run>,
}

/// A node that lives, or has lived. Expiry is uptime; the end is wall time, for readers and verdicts.
pub(super) struct Presence {
    pub node: NodeInfo,
    pub vitals: Vitals,
    pub joined_at: Timestamp,
    /// What others told it since it last asked.
    pub hints: Vec<Hint>,
    pub expires: Duration,
    /// Its last beat, and since when no gap between beats was longer than its time to live.
    pub beaten: Duration,
    pub unbroken: Duration,
    /// The latest moment that its beats were told.
    pub told: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// A calendar, and the version that all jobs which name it were aimed by.
pub(super) struct Kept {
    pub calendar: Arc<Calendar>,
    pub applied: Version,
    pub doubts: u32,
}

/// Who holds a shard; nobody after it was given up.
pub(super) struct Lease {
    pub holder: Option<PresenceId>,
    pub epoch: Epoch,
}

/// A create that was answered, under its idempotency key.
pub(super) struct Request {
    pub digest: [u8; 32],
    pub job: JobId,
    pub at: Timestamp,
}

/// The runs that still move, by id and by job.
#[derive(Default)]
pub(super) struct Live {
    pub runs: BTreeMap<RunId, Run>,
    by_job: BTreeSet<(JobId, RunId)>,
}

impl Live {
    pub fn insert(&mut self, run: Run) {
        self.by_job.insert((run.job, run.id));
        self.runs.insert(run.id, run);
    }

    pub fn remove(&mut self, id: RunId) -> Option<Run> {
        let run = self.runs.remove(&id)?;
        self.by_job.remove(&(run.job, id));
        Some(run)
    }

    /// A job's runs, oldest first.
    pub fn of_job(&self, job: JobId) -> impl DoubleEndedIterator<Item = &Run> {
        let first = RunId::from_bytes([0; 16]);
        let last = RunId::from_bytes([u8::MAX; 16]);
        let ids = self.by_job.range((job, first)..=(job, last));
        ids.filter_map(|(_, id)| self.runs.get(id))
    }

    pub fn living(&self, job: JobId) -> Living {
        let mut living = Living::default();
        for run in self.of_job(job) {
            match run.waiting {
                true => living.waiting += 1,
                false => living.moving += 1,
            }
        }
        living
    }
}

impl State {
    /// The presence, unless it has ended or was never there.
    pub fn living(&self, id: PresenceId) -> Result<&Presence, StoreError> {
        let presence = self
            .presences
            .get(&id)
            .filter(|presence| presence.ended_at.is_none());
        presence.ok_or(StoreError::Barred)
    }

    /// Whether the leases still give the right to write about a shard.
    pub fn holds(&self, leases: &Leases, shard: Shard) -> bool {
        let held = self.leases.get(&shard).is_some_and(|lease| {
            lease.holder == Some(leases.presence) && leases.epoch(shard) == Some(lease.epoch)
        });
        held && self.living(leases.presence).is_ok()
    }

    /// Ends a live run before anyone took its next attempt, and keeps it as cancelled.
    pub fn cancel(&mut self, id: RunId, reason: Reason, at: Timestamp) -> Option<Run> {
        let run = self.live.remove(id)?;
        let ended = Run {
            state: RunState::Cancelled,
            reason: Some(reason),
            settled_at: Some(at),
            claim: None,
            ask: None,
            waiting: false,
            ..run
        };
        self.history.insert(id, ended.clone());
        Some(ended)
    }

    /// Takes a run back as if it had never been fired: its job decides the slot anew.
    pub fn take_back(&mut self, id: RunId, now: Timestamp) {
        let Some(run) = self.live.remove(id) else {
            return;
        };
        let job = self.jobs.get(&run.job).cloned();
        if let (Some(slot), Some(job)) = (run.slot, job) {
            let first = job.decided_before(slot).plus(Duration::from_millis(1));
            let ran = self.ran(job.id, first, slot.0);
            let job = job.taken_back(slot, now, &ran);
            self.untell(&job);
            self.jobs.insert(job.id, Arc::new(job));
        }
    }

    /// What was passed over after the job's last decided slot is not told any more: it is decided anew. Of entries
    /// that begin before it only the last can reach beyond.
    fn untell(&mut self, job: &Job) {
        let last = job.slot_last.unwrap_or(Timestamp::MIN);
        let after = RunId::least_at(last.plus(Duration::from_millis(1)));
        let of_job = |run: &&Run| run.job == job.id && run.kind == RunKind::Slot;
        let earlier = self.history.range(..after).rev().map(|(_, run)| run);
        let later = self.history.range(after..).map(|(_, run)| run);
        let told = earlier.filter(of_job).take(1).chain(later.filter(of_job));
        let told = told.filter(|run| run.state == RunState::Skipped);
        let told: Vec<RunId> = told.map(|run| run.id).collect();
        for id in told {
            let slots = self.history.get(&id).and_then(Run::slots);
            match slots.and_then(|slots| job.still_told(slots)) {
                None => {
                    self.history.remove(&id);
                }
                Some(slots) => {
                    if let Some(run) = self.history.get_mut(&id) {
                        run.stretch = slots.several();
                    }
                }
            }
        }
    }

    /// The slots of a job from `first` up to but not including `end` that have a run, live or ended, oldest first.
    pub fn ran(&self, job: JobId, first: Timestamp, end: Timestamp) -> Vec<Slot> {
        let ids = RunId::least_at(first)..RunId::least_at(end);
        if ids.is_empty() {
            return Vec::new();
        }
        let live = self.live.runs.range(ids.clone());
        let ended = self.history.range(ids);
        let ran = live.chain(ended).map(|(_, run)| run).filter(|run| {
            run.job == job && run.kind == RunKind::Slot && run.state != RunState::Skipped
        });
        let slots: BTreeSet<Slot> = ran.filter_map(|run| run.slot).collect();
        slots.into_iter().collect()
    }

    /// What the end of a run at `ended_at` means for its job: the oldest waiting run may go when no
    /// other moves, and a job that rests gets its next slot when no slot's run is left.
    pub fn free(&mut self, job: JobId, ended_at: Timestamp) -> (Option<RunId>, Option<Timestamp>) {
        (self.free_waiting(job), self.wake(job, ended_at))
    }

    fn free_waiting(&mut self, job: JobId) -> Option<RunId> {
        if self.live.living(job).moving > 0 {
            return None;
        }
        let id = self.live.of_job(job).find(|run| run.waiting)?.id;
        let run = self.live.runs.get_mut(&id)?;
        run.waiting = false;
        Some(id)
    }

    /// A job that rests gets its next slot when no run of its slots is left.
    pub fn wake(&mut self, id: JobId, ended_at: Timestamp) -> Option<Timestamp> {
        if self.has_slot_run(id) {
            return None;
        }
        let job = self.jobs.get_mut(&id).filter(|job| job.is_resting())?;
        *job = Arc::new(job.rested(ended_at));
        job.next_due_at()
    }

    /// A job whose next slot is set by the end of its run rests while one lives.
    pub fn rest(&mut self, id: JobId) {
        if self.has_slot_run(id)
            && let Some(job) = self.jobs.get_mut(&id)
        {
            *job = Arc::new(job.resting());
        }
    }

    fn has_slot_run(&self, id: JobId) -> bool {
        let mut runs = self.live.of_job(id);
        runs.any(|run| run.kind == RunKind::Slot)
    }

    /// Live and history in one.
    pub fn all_runs(&self) -> BTreeMap<RunId, Run> {
        let mut runs = self.history.clone();
        runs.extend(self.live.runs.iter().map(|(id, run)| (*id, run.clone())));
        runs
    }
}
