//! One store and whoever uses it: what they know. They know only what the store answered, and may know it
//! from long ago.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::presence::LastBeat;
use model::schedule::Bounds;
use model::{
    Handed, Job, JobId, JobState, PresenceId, Run, RunId, RunKind, RunState, TenantId, Timestamp,
};

use super::calls::Call;
use super::ops::{By, Step};
use crate::conformance::{Reopen, Rows, Subject, TestClock};
use crate::{JobFilter, Leases, Page, RunFilter, Store, StoreClock};

pub(super) const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));

const FENCED: &str = "Err(Fenced)";

pub(super) struct World {
    pub store: Arc<dyn Store>,
    pub clock: TestClock,
    pub reopen: Option<Reopen>,
    rows: Option<Rows>,
    _guard: Box<dyn std::any::Any + Send + Sync>,
    /// Presences and the leases they think they have, the newest first.
    pub presences: Vec<Leases>,
    /// Every presence there ever was, also those whose join was never answered.
    pub joined: Vec<PresenceId>,
    /// Jobs by number, as they were read last.
    pub jobs: BTreeMap<u8, Arc<Job>>,
    pub created: BTreeSet<u8>,
    /// Runs, as their holders know them.
    pub runs: BTreeMap<RunId, Run>,
    pub last: Call,
    /// The last beats of everyone, as somebody heard them.
    pub heard: Vec<LastBeat>,
    /// What was silent when somebody last searched.
    pub silent: Vec<Handed>,
}

impl World {
    pub(super) fn new(subject: Subject) -> Self {
        let Subject {
            store,
            clock,
            leases,
            other,
            reopen,
            rows,
            guard,
        } = subject;
        let joined = vec![leases.presence, other.presence];
        Self {
            store,
            clock,
            reopen,
            rows,
            _guard: guard,
            presences: vec![leases, other],
            joined,
            jobs: BTreeMap::new(),
            created: BTreeSet::new(),
            runs: BTreeMap::new(),
            last: Call::Nothing,
            heard: Vec::new(),
            silent: Vec::new(),
        }
    }

    /// Takes a step; answers what was answered.
    pub(super) async fn take(&mut self, step: &Step) -> Vec<String> {
        let call = self.call(&step.op).await;
        let mut answers = Vec::new();
        if step.lost {
            answers.push(self.make(&call, false).await);
        }
        answers.push(self.make(&call, true).await);
        if let Call::Presence(by, _) = &call
            && answers.last().is_some_and(|answer| answer == FENCED)
        {
            // It knows now that it has nothing any more.
            for it in self.presences.iter_mut().filter(|it| it.presence == *by) {
                it.epochs.clear();
            }
        }
        self.last = call;
        answers
    }

    /// Every row that decisions write, where the store has rows.
    pub(super) async fn rows(&self) -> Vec<String> {
        match &self.rows {
            Some(rows) => rows().await,
            None => Vec::new(),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn leases(&self, by: By) -> &Leases {
        match by {
            By::One(number) => &self.presences[usize::from(number) % self.presences.len()],
            // The newest of those who have equally many.
            By::Leader => self
                .presences
                .iter()
                .rev()
                .max_by_key(|it| it.epochs.len())
                .unwrap(),
        }
    }

    /// Runs by number, as someone knew them once.
    pub(super) fn known(&self, numbers: &[u8]) -> Vec<Run> {
        pick(numbers, self.runs.values().cloned().collect())
    }

    /// Runs that a presence holds, as they stand; or any, as they once were.
    pub(super) async fn held(&self, by: PresenceId, numbers: &[u8], fresh: bool) -> Vec<Run> {
        if !fresh {
            return self.known(numbers);
        }
        let claims = self.store.claims(by, None, 1_000).await.unwrap();
        let mut runs = Vec::new();
        for claim in pick(numbers, claims) {
            runs.extend(self.read(claim.run).await);
        }
        runs
    }

    pub(super) async fn read(&self, id: RunId) -> Option<Run> {
        let ours = self.store.get_run(TenantId::DEFAULT, id).await.unwrap();
        let theirs = self.store.get_run(STRANGER, id).await.unwrap();
        ours.or(theirs)
    }

    /// The job of a number, read again if `fresh`, and if there is one.
    pub(super) async fn job(&mut self, number: u8, fresh: bool) -> Option<Arc<Job>> {
        let index = usize::from(number) % self.jobs.len().max(1);
        let (number, job) = self
            .jobs
            .iter()
            .nth(index)
            .map(|(key, job)| (*key, job.clone()))?;
        if !fresh {
            return Some(job);
        }
        let read = self
            .store
            .get_job(job.tenant, job.id)
            .await
            .unwrap()
            .map(Arc::new);
        let job = read.unwrap_or(job);
        self.jobs.insert(number, job.clone());
        Some(job)
    }
}

/// What holds whatever happens.
impl World {
    /// A job that would never be due again without having ended, or be due while it should rest.
    pub(super) async fn unsound(&self) -> Option<Job> {
        let live: BTreeSet<JobId> = self.live_slots().await;
        for tenant in [TenantId::DEFAULT, STRANGER] {
            let page = Page {
                before: None,
                limit: 1_000,
            };
            let filter = JobFilter::default();
            let jobs = self.store.list_jobs(tenant, &filter, page).await.unwrap();
            let fails = |job: &Job| {
                let Bounds { runs_max, .. } = job.def.schedule.bounds;
                let moves = job.next_slot.is_some();
                let rests = job.def.schedule.after_completion() && live.contains(&job.id);
                let stands = match job.state {
                    JobState::Active => moves != rests && (moves || live.contains(&job.id)),
                    JobState::Paused
                    | JobState::Finished
                    | JobState::Invalid
                    | JobState::Deleted => !moves,
                };
                !stands || (runs_max.is_none() && job.runs_made > 0)
            };
            if let Some(job) = jobs.into_iter().find(fails) {
                return Some(job);
            }
        }
        None
    }

    /// Jobs that have a run of a slot alive.
    async fn live_slots(&self) -> BTreeSet<JobId> {
        let states = RunState::ALL.into_iter().filter(|state| state.is_live());
        let filter = RunFilter {
            states: states.collect(),
            ..RunFilter::default()
        };
        let mut jobs = BTreeSet::new();
        for tenant in [TenantId::DEFAULT, STRANGER] {
            let page = Page {
                before: None,
                limit: 10_000,
            };
            let runs = self.store.list_runs(tenant, &filter, page).await.unwrap();
            let slots = runs.iter().filter(|run| run.kind == RunKind::Slot);
            jobs.extend(slots.map(|run| run.job));
        }
        jobs
    }
}

/// Each number picks one, and none is picked twice.
pub(super) fn pick<T>(numbers: &[u8], from: Vec<T>) -> Vec<T> {
    let len = from.len().max(1);
    let picks: BTreeSet<_> = numbers
        .iter()
        .map(|number| usize::from(*number) % len)
        .collect();
    let numbered = from.into_iter().enumerate();
    numbered
        .filter(|(index, _)| picks.contains(index))
        .map(|(_, it)| it)
        .collect()
}
