//! One store and whoever uses it: what they know, and what they would call next. They know only what the
//! store answered, and may know it from long ago.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::limits::OUTPUT_EARLIER_MAX;
use model::retry::LostClaim;
use model::shard::ShardSet;
use model::{
    Attempt, Job, Outcome, PresenceId, Reason, Report, Run, RunId, RunKind, Shard, Slot, TenantId,
    Timestamp, Verdict,
};

use super::calls::Call;
use super::ops::{By, Change, End, Op, Step, Want};
use super::people::{edited, new_job, renamed};
use crate::conformance::{Reopen, Subject, TestClock, at, firing};
use crate::{
    Firing, JobChange, Keep, Leases, RunsOfChange, Settlement, StartRun, Store, StoreClock,
    Withdrawal,
};

pub(super) const STRANGER: TenantId = TenantId(uuid::Uuid::from_u128(7));

pub(super) struct World {
    pub store: Arc<dyn Store>,
    pub clock: TestClock,
    reopen: Option<Reopen>,
    _guard: Box<dyn std::any::Any + Send + Sync>,
    /// Presences and the leases they think they have.
    pub presences: Vec<Leases>,
    /// Every presence there ever was, also those whose join was never answered.
    pub joined: Vec<PresenceId>,
    /// Jobs by number, as they were read last.
    pub jobs: BTreeMap<u8, Arc<Job>>,
    pub created: BTreeSet<u8>,
    /// Runs, as their holders know them.
    pub runs: BTreeMap<RunId, Run>,
    last: Call,
}

impl World {
    pub fn new(subject: Subject) -> Self {
        let Subject { store, clock, leases, other, reopen, guard } = subject;
        let joined = vec![leases.presence, other.presence];
        Self {
            store,
            clock,
            reopen,
            _guard: guard,
            presences: vec![leases, other],
            joined,
            jobs: BTreeMap::new(),
            created: BTreeSet::new(),
            runs: BTreeMap::new(),
            last: Call::Nothing,
        }
    }

    /// Takes a step; answers what was answered.
    pub async fn take(&mut self, step: &Step) -> Vec<String> {
        let call = self.call(&step.op).await;
        let mut answers = Vec::new();
        if step.lost {
            answers.push(self.make(&call, false).await);
        }
        answers.push(self.make(&call, true).await);
        self.last = call;
        answers
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn leases(&self, by: By) -> &Leases {
        match by {
            By::One(number) => &self.presences[usize::from(number) % self.presences.len()],
            By::Leader => self.presences.iter().max_by_key(|it| it.epochs.len()).unwrap(),
        }
    }

    fn presence(&self, by: By) -> PresenceId {
        self.leases(by).presence
    }

    /// Runs by number, as someone knew them once.
    fn known(&self, numbers: &[u8]) -> Vec<Run> {
        pick(numbers, self.runs.values().cloned().collect())
    }

    /// Runs that a presence holds, as they stand.
    async fn held(&self, by: PresenceId, numbers: &[u8]) -> Vec<Run> {
        let claims = self.store.claims(by, None, 1_000).await.unwrap();
        let mut runs = Vec::new();
        for claim in pick(numbers, claims) {
            runs.extend(self.read(claim.run).await);
        }
        runs
    }

    pub async fn read(&self, id: RunId) -> Option<Run> {
        let ours = self.store.get_run(TenantId::DEFAULT, id).await.unwrap();
        let theirs = self.store.get_run(STRANGER, id).await.unwrap();
        ours.or(theirs)
    }

    /// The job of a number, read again if `fresh`, and if there is one.
    async fn job(&mut self, number: u8, fresh: bool) -> Option<Arc<Job>> {
        let index = usize::from(number) % self.jobs.len().max(1);
        let (number, job) = self.jobs.iter().nth(index).map(|(key, job)| (*key, job.clone()))?;
        if !fresh {
            return Some(job);
        }
        let read = self.store.get_job(job.tenant, job.id).await.unwrap().map(Arc::new);
        let job = read.unwrap_or(job);
        self.jobs.insert(number, job.clone());
        Some(job)
    }

    async fn call(&mut self, op: &Op) -> Call {
        match op {
            Op::Again => self.last.clone(),
            Op::Advance { millis } => {
                self.clock.advance(Duration::from_millis(u64::from(*millis)));
                Call::Nothing
            }
            Op::StepWall { millis } => {
                self.clock.step_wall(i64::from(*millis));
                Call::Nothing
            }
            Op::Reopen => {
                self.reopen().await;
                Call::Nothing
            }
            Op::Join => Call::Join,
            Op::Beat(by) => Call::Beat(self.presence(*by)),
            Op::Lease(by, want) => Call::Lease(self.presence(*by), wanted(*want)),
            Op::Leave(by) => Call::Leave(self.presence(*by)),
            Op::Bar(by) => Call::Bar(self.presence(*by)),
            Op::Outlive(by) => self.outlive(*by).await,
            Op::Create(numbers) => self.create(numbers),
            Op::Change { job, kind, fresh } => self.change(*job, *kind, *fresh).await,
            Op::Park(job) => match self.job(*job, false).await {
                Some(job) => Call::Park(job.id, self.now()),
                None => Call::Nothing,
            },
            Op::Fire { by, jobs, claim, fresh, late } => {
                let late = Duration::from_millis(u64::from(*late));
                let firings = self.firings(jobs, *claim, *fresh, late).await;
                Call::Fire(self.leases(*by).clone(), firings)
            }
            Op::Claim { by, runs, fresh } => {
                let runs = self.claimable(runs, *fresh).await;
                Call::Claim(self.leases(*by).clone(), runs)
            }
            Op::Start { job, nonce, force } => self.start(*job, *nonce, *force).await,
            Op::Mark { by, runs, fresh } => {
                let by = self.presence(*by);
                let runs = if *fresh { self.held(by, runs).await } else { self.known(runs) };
                Call::Mark(by, runs.iter().map(|run| (run.id, self.now())).collect())
            }
            Op::Cancel { run, own } => self.cancel(*run, *own),
            Op::Withdraw { by, taken_back } => self.withdraw(*by, *taken_back).await,
            Op::Settle { by, runs, fresh, end, queues } => {
                let by = self.presence(*by);
                let runs = if *fresh { self.held(by, runs).await } else { self.known(runs) };
                self.settle(by, runs, *end, *queues)
            }
            Op::Recover(by) => self.recover(*by).await,
            Op::Retain => {
                let (day, hour) = (Duration::from_secs(86_400), Duration::from_secs(3_600));
                Call::Retain(Keep { now: self.now(), history: day, finished: hour })
            }
        }
    }

    async fn reopen(&mut self) {
        let Some(reopen) = self.reopen.clone() else { return };
        let nowhere = Arc::new(crate::mem::MemStore::new(Arc::new(self.clock.clone())));
        let store = std::mem::replace(&mut self.store, nowhere);
        self.store = reopen(store).await.unwrap();
    }

    /// Each number is one job, created once: ids are never used twice.
    fn create(&mut self, numbers: &[u8]) -> Call {
        let mut batch = Vec::new();
        for number in numbers {
            if self.created.insert(*number) {
                let new = new_job(*number, self.now());
                self.jobs.insert(*number, new.job.clone());
                batch.push(new);
            }
        }
        Call::Create(batch)
    }

    async fn change(&mut self, number: u8, kind: Change, fresh: bool) -> Call {
        let Some(before) = self.job(number, fresh).await else { return Call::Nothing };
        let now = self.now();
        let mut skipped = None;
        let (after, runs) = match kind {
            Change::Pause => (before.paused(now, Some("why".to_owned())), RunsOfChange::TakeBack),
            Change::Resume => {
                let (resumed, passed) = before.resumed(now);
                skipped = passed.map(|stretch| (stretch, Reason::Paused));
                (resumed, RunsOfChange::Keep)
            }
            Change::Edit { overlap, every } => {
                (edited(&before, overlap, every, now), RunsOfChange::TakeBack)
            }
            Change::Rename(key) => (renamed(&before, key, now), RunsOfChange::TakeBack),
            Change::Delete => (before.deleted(now), RunsOfChange::Cancel),
        };
        Call::Change(Box::new(JobChange { before, after: Arc::new(after), skipped, runs }))
    }

    /// Decides slots ahead of their time, on time, or late: whatever comes first.
    async fn firings(
        &mut self,
        numbers: &[u8],
        claim: bool,
        fresh: bool,
        late: Duration,
    ) -> Vec<Firing> {
        let mut firings: BTreeMap<_, Firing> = BTreeMap::new();
        for number in numbers {
            let Some(job) = self.job(*number, fresh).await else { continue };
            let Some(due_at) = job.next_due_at() else { continue };
            firings.insert(job.id, Firing { claim, ..firing(&job, due_at.plus(late)) });
        }
        firings.into_values().collect()
    }

    async fn start(&mut self, number: u8, nonce: u8, force: bool) -> Call {
        let Some(job) = self.job(number, false).await else { return Call::Nothing };
        // From a handful of moments, so that some ids come twice.
        let asked_at = at(i64::from(nonce) * 30);
        let id = RunId::asked(job.id, asked_at, u64::from(nonce));
        let born = Run::of_slot(&job, Slot(asked_at));
        let payload = Some(Bytes::from(vec![0, nonce, 0]));
        let run = Run { id, kind: RunKind::Manual, slot: None, due_at: asked_at, payload, ..born };
        Call::Start(Box::new(StartRun { run, force }))
    }

    fn cancel(&self, number: u8, own: bool) -> Call {
        match self.known(&[number]).first() {
            Some(run) if own => Call::Cancel(run.tenant, run.id, self.now()),
            Some(run) => Call::Cancel(TenantId(uuid::Uuid::max()), run.id, self.now()),
            None => Call::Nothing,
        }
    }

    async fn outlive(&mut self, by: By) -> Call {
        let by = self.presence(by);
        for _ in 0..7 {
            self.clock.advance(Duration::from_secs(1));
            // Whether it may is for the call that follows to find out.
            let _heard = self.store.beat(by).await;
        }
        Call::Bar(by)
    }

    async fn claimable(&self, numbers: &[u8], fresh: bool) -> Vec<RunId> {
        if !fresh {
            return self.known(numbers).iter().map(|run| run.id).collect();
        }
        let due = self.store.due_runs(&ShardSet::ALL, Timestamp::MAX, None, 1_000).await.unwrap();
        pick(numbers, due).iter().map(|due| due.run).collect()
    }

    async fn withdraw(&self, by: By, taken_back: bool) -> Call {
        let by = self.presence(by);
        let claims = self.store.claims(by, None, 100).await.unwrap();
        let answers = claims.iter().map(|claim| Withdrawal { run: claim.run, taken_back });
        Call::Withdraw(by, answers.collect(), self.now())
    }

    fn settle(&self, by: PresenceId, runs: Vec<Run>, end: End, queues: bool) -> Call {
        let now = self.now();
        let settlements = runs.into_iter().map(|run| {
            let (verdict, outcome) = match end {
                End::Succeed => (Verdict::Succeed, Some(Outcome::Succeeded)),
                End::Retry { lost: true } => (Verdict::RetryAt(now), Some(Outcome::Lost)),
                End::Retry { lost: false } => {
                    (Verdict::RetryAt(now.plus(Duration::from_secs(5))), Some(Outcome::Failed))
                }
                End::Bury => (Verdict::Bury(Reason::Refused), Some(Outcome::TimedOut)),
                End::Cancel => (Verdict::Cancel(Reason::Asked), Some(Outcome::Cancelled)),
                End::Release => (Verdict::Release, None),
            };
            let attempt = outcome.map(|outcome| tried(&run, outcome, now));
            Settlement { run, verdict, attempt, queues }
        });
        Call::Settle(by, settlements.collect())
    }

    async fn recover(&self, by: By) -> Call {
        let by = self.presence(by);
        let now = self.now();
        let orphans = self.store.orphans(&ShardSet::ALL, 100).await.unwrap();
        let settlements = orphans.into_iter().map(|orphan| {
            let run = orphan.run;
            let verdict = LostClaim {
                attempt: run.attempt,
                lost: run.lost,
                due_at: run.due_at,
                ended_at: orphan.ended_at,
                delivery: orphan.job.def.delivery,
                window: orphan.job.def.catch_up.window,
            }
            .verdict(now);
            let attempt = (verdict != Verdict::Release).then(|| tried(&run, Outcome::Lost, now));
            Settlement { run, verdict, attempt, queues: true }
        });
        Call::Settle(by, settlements.collect())
    }
}

/// Each number picks one, and none is picked twice.
fn pick<T>(numbers: &[u8], from: Vec<T>) -> Vec<T> {
    let len = from.len().max(1);
    let picks: BTreeSet<_> = numbers.iter().map(|number| usize::from(*number) % len).collect();
    let numbered = from.into_iter().enumerate();
    numbered.filter(|(index, _)| picks.contains(index)).map(|(_, it)| it).collect()
}

fn wanted(want: Want) -> ShardSet {
    match want {
        Want::All => ShardSet::ALL,
        Want::Odd => Shard::all().filter(|shard| shard.0 % 2 == 1).collect(),
        Want::Nothing => ShardSet::default(),
    }
}

/// An attempt with an output that is too long to be kept, and not a text.
fn tried(run: &Run, outcome: Outcome, now: Timestamp) -> Attempt {
    let output = Bytes::from([0, 255, b'a'].repeat(OUTPUT_EARLIER_MAX / 2));
    let report = Report { error: Some("so it is".to_owned()), ..Report::of(outcome) };
    let dispatched_at = (outcome != Outcome::Lost).then_some(now);
    Attempt::new(run.attempt, dispatched_at, now, report.with_status(-1).with_output(output))
}
