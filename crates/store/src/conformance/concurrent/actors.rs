//! Nodes and clients: each picks what to call next by chance, from what it reads or what someone read before.

use std::sync::Arc;
use std::time::Duration;

use model::shard::ShardSet;
use model::{BeatMark, Job, JobId, Mark, PresenceId, Reason, Run, RunId, RunKind, Slot, Verdict};

use super::calls::{Answer, Call, Named, firing_of};
use super::chance::Chance;
use super::jobs::change;
use super::replay::TENANT;
use super::stage::{Stage, locked, runs_of};
use crate::conformance::{NODE, settlement};
use crate::{Claimed, Fired, JobChanged, Leases, LowWater, NewJob, StartRun, Store, StoreError};

/// How often something is read again before it is acted on, and how often a call is made again.
const FRESH: usize = 75;
const AGAIN: usize = 15;

pub(super) struct Actor {
    pub stage: Arc<Stage>,
    pub store: Arc<dyn Store>,
    /// Which node it belongs to; none for a client.
    node: Option<usize>,
    pub chance: Chance,
    last: Option<Call>,
}

impl Actor {
    pub(super) fn new(
        stage: Arc<Stage>,
        store: Arc<dyn Store>,
        node: Option<usize>,
        seed: u64,
    ) -> Self {
        Self {
            stage,
            store,
            node,
            chance: Chance(seed),
            last: None,
        }
    }

    /// Makes one call, and remembers what it learnt.
    pub(super) async fn act(&mut self) -> Result<(), StoreError> {
        let again = self.last.clone().filter(|_| self.chance.percent(AGAIN));
        let call = match (again, self.node) {
            (Some(call), _) => Some(call),
            (None, Some(node)) => self.node_call(node).await?,
            (None, None) => self.client_call().await?,
        };
        let Some(call) = call else { return Ok(()) };
        for (call, answer) in self.stage.recorder.make(&*self.store, &call).await {
            self.learn(&call, &answer);
        }
        self.last = Some(call);
        Ok(())
    }

    async fn node_call(&mut self, node: usize) -> Result<Option<Call>, StoreError> {
        let leases = self.leases(node);
        let me = leases.presence;
        let call = match self.chance.below(27) {
            0..=7 => self.fire(leases).await?,
            8..=10 => {
                let ours = |run: &Run| leases.epoch(run.shard()).is_some();
                let anyones = self.chance.percent(20);
                let free = |run: &Run| run.claim.is_none() && (anyones || ours(run));
                let free = self.runs(free).await?;
                let named: Vec<Named> = free.iter().map(Named::of).collect();
                Call::Claim(leases, self.chance.some(&named, 2))
            }
            11 => {
                let up_to = self.stage.now.plus(Duration::from_secs(600));
                Call::ClaimDue(me, self.stage.shards, up_to, 2)
            }
            12..=17 => self.settle(me).await?,
            18 => {
                let held = self.runs(|run| run.claim == Some(me)).await?;
                Call::Mark(me, held.iter().map(Named::of).collect())
            }
            19..=21 => {
                let back = self.chance.percent(70);
                // Others too: the mark may be on its way.
                let others = self.chance.percent(50);
                let marked = |run: &Run| others || run.mark == Some(Mark::TakeBack);
                let held = self
                    .runs(|run| run.claim == Some(me) && marked(run))
                    .await?;
                let before = held.first().map_or(self.stage.now, |run| run.due_at);
                let named = held.iter().map(|run| (Named::of(run), back));
                let now = before.minus(Duration::from_secs(1));
                Call::Withdraw(me, named.collect(), now)
            }
            22 => {
                let shards: Vec<_> = self.stage.shards.iter().collect();
                let wanted: ShardSet = self.chance.some(&shards, 4).into_iter().collect();
                Call::Lease(me, wanted)
            }
            23..=24 => self.hand_over(me).await?,
            25 => self.lapse(leases).await?,
            _ => match self.chance.below(4) {
                0 => Call::Leave(me),
                1 => Call::Beat(me),
                _ => {
                    // It may be the silent one, one that has beaten since, or one that beats right now.
                    let beats = &self.stage.beats;
                    let (other, mark) = beats[self.chance.below(beats.len())];
                    let later = self.chance.below(3) as i64;
                    Call::Fence(me, (other, BeatMark(mark.0 + later)))
                }
            },
        };
        Ok(has_items(&call).then_some(call))
    }

    async fn client_call(&mut self) -> Result<Option<Call>, StoreError> {
        let now = self.stage.now;
        let Some(job) = self.job().await? else {
            return Ok(None);
        };
        let call = match self.chance.below(20) {
            0..=5 => Call::Change(Box::new(change(&mut self.chance, &job, now))),
            6..=7 => Call::Start(Box::new(self.start(&job))),
            8..=10 => {
                let runs = self.runs_of(Some(job.id)).await?;
                let Some(run) = self.chance.pick(&runs) else {
                    return Ok(None);
                };
                Call::Cancel(run.job, run.id, now)
            }
            11 => Call::ReadJob(job.id),
            12..=15 => self.say(&job).await?,
            16..=17 => self.queue(&job),
            _ => Call::Create(vec![NewJob {
                job,
                idempotency: None,
            }]),
        };
        Ok(has_items(&call).then_some(call))
    }

    fn leases(&self, node: usize) -> Leases {
        locked(&self.stage.nodes[node]).clone()
    }

    /// Decides the next slots of a few jobs: on time, ahead, late, or so late that some were missed.
    async fn fire(&mut self, leases: Leases) -> Result<Call, StoreError> {
        let is_ours = |job: &&JobId| leases.epoch(model::Shard::of(**job)).is_some();
        let ours: Vec<JobId> = self.stage.jobs.iter().filter(is_ours).copied().collect();
        let from = if self.chance.percent(85) {
            ours
        } else {
            self.stage.jobs.clone()
        };
        let mut firings = Vec::new();
        for id in self.chance.some(&from, 2) {
            let Some(job) = self.read(id).await? else {
                continue;
            };
            let (Some(slot), Some(due_at)) = (job.next_slot, job.next_due_at()) else {
                continue;
            };
            let late = self.chance.pick(&[0, 0, 5, 150]).unwrap_or(0);
            let at = if self.chance.percent(40) {
                due_at.minus(Duration::from_secs(1))
            } else {
                due_at.plus(Duration::from_secs(late))
            };
            let mut decision = job.decide(slot, at, &Arc::from(NODE));
            if self.chance.percent(10) {
                decision = decision.over_quota();
            }
            firings.push(firing_of(&job, decision, self.chance.percent(60)));
        }
        Ok(Call::Fire(leases, firings))
    }

    async fn settle(&mut self, me: PresenceId) -> Result<Call, StoreError> {
        let anyones = self.chance.percent(20);
        let held = |run: &Run| run.claim == Some(me) || (anyones && run.claim.is_some());
        let runs = self.runs(held).await?;
        let mut settlements = Vec::new();
        for run in self.chance.some(&runs, 2) {
            let verdict = match self.chance.below(10) {
                0..=3 => Verdict::Succeed,
                4..=5 => Verdict::RetryAt(run.due_at.plus(Duration::from_secs(5))),
                6 => Verdict::Bury(Reason::Refused),
                7 => Verdict::Cancel(Reason::Requested),
                _ => Verdict::Release,
            };
            settlements.push(settlement(&run, verdict));
        }
        Ok(Call::Settle(me, settlements))
    }

    /// By hand, from a handful of names, so that some come twice.
    fn start(&mut self, job: &Arc<Job>) -> StartRun {
        let now = self.stage.now;
        let nonce = self.chance.below(3) as u64;
        let run = Run {
            id: RunId::of_request(job.id, now, nonce),
            kind: RunKind::Manual,
            slot: None,
            due_at: now,
            ..Run::of_slot(job, Slot(now))
        };
        StartRun {
            run,
            force: self.chance.percent(20),
        }
    }
}

/// What it knows.
impl Actor {
    async fn job(&mut self) -> Result<Option<Arc<Job>>, StoreError> {
        match self.chance.pick(&self.stage.jobs) {
            Some(id) => self.read(id).await,
            None => Ok(None),
        }
    }

    /// A job as it stands, or as someone knew it.
    async fn read(&mut self, id: JobId) -> Result<Option<Arc<Job>>, StoreError> {
        if self.chance.percent(FRESH)
            && let Some(job) = self.store.get_job(TENANT, id).await?
        {
            let job = Arc::new(job);
            locked(&self.stage.known_jobs).insert(id, job.clone());
            return Ok(Some(job));
        }
        Ok(locked(&self.stage.known_jobs).get(&id).cloned())
    }

    /// Runs of a job, or of all.
    pub(super) async fn runs_of(&mut self, job: Option<JobId>) -> Result<Vec<Run>, StoreError> {
        if self.chance.percent(FRESH) {
            let runs = runs_of(&*self.store, job, true).await?;
            let mut known = locked(&self.stage.known_runs);
            known.extend(runs.iter().map(|run| (run.id, run.clone())));
            return Ok(runs);
        }
        let known = locked(&self.stage.known_runs);
        let of_job = known
            .values()
            .filter(|run| job.is_none_or(|job| run.job == job));
        Ok(of_job.cloned().collect())
    }

    /// Runs that are alive, as they stand or as someone knew them.
    pub(super) async fn runs(
        &mut self,
        fits: impl Fn(&Run) -> bool,
    ) -> Result<Vec<Run>, StoreError> {
        self.runs_of(None).await.map(|mut runs| {
            runs.retain(fits);
            runs
        })
    }

    fn learn(&self, call: &Call, answer: &Answer) {
        match (call, answer) {
            (Call::Fire(leases, firings), Answer::Fired(Fired::Claimed(_))) => {
                let firing = firings.first();
                let inserted =
                    firing.and_then(|it| Some(Run::of_slot(&it.job, it.decision.start?)));
                let claim = Some(leases.presence);
                self.learn_run(inserted.map(|run| Run { claim, ..run }));
            }
            (_, Answer::Claimed(Claimed::Ours(run, _))) => self.learn_run(Some(*run.clone())),
            (_, Answer::Taken(taken)) => {
                for (run, _) in taken {
                    self.learn_run(Some(run.clone()));
                }
            }
            (_, Answer::Changed(JobChanged::Done { job, .. } | JobChanged::Conflict(job))) => {
                let job = Arc::new(*job.clone());
                locked(&self.stage.known_jobs).insert(job.id, job);
            }
            (Call::Lease(by, _), Answer::Leased(leases)) => {
                let epochs = leases.iter().copied().collect();
                self.become_node(Leases {
                    presence: *by,
                    epochs,
                    low_water: LowWater::HIGHEST,
                });
            }
            (Call::Leave(_), _) | (_, Answer::Fenced | Answer::Unknown) => self.start_over(),
            (_, _) => {}
        }
    }

    fn learn_run(&self, run: Option<Run>) {
        let mut known = locked(&self.stage.known_runs);
        known.extend(run.map(|run| (run.id, run)));
    }

    fn become_node(&self, leases: Leases) {
        if let Some(node) = self.node {
            *locked(&self.stage.nodes[node]) = leases;
        }
    }

    /// As another presence, if there is one left.
    fn start_over(&self) {
        if let Some(presence) = locked(&self.stage.spares).pop() {
            self.become_node(Leases::none(presence));
        }
    }
}

/// Whether there is anything to call about.
fn has_items(call: &Call) -> bool {
    match call {
        Call::Fire(_, firings) => !firings.is_empty(),
        Call::Claim(_, runs) | Call::Mark(_, runs) => !runs.is_empty(),
        Call::Withdraw(_, runs, _) => !runs.is_empty(),
        Call::Settle(_, settlements) => !settlements.is_empty(),
        Call::HandOver(_, items, _) => !items.is_empty(),
        Call::Heartbeat(items, _) => !items.is_empty(),
        Call::Report(items, _) => !items.is_empty(),
        Call::Lapse(_, items, _) => !items.is_empty(),
        Call::Queue(_)
        | Call::Create(_)
        | Call::Change(_)
        | Call::Start(_)
        | Call::Cancel(..)
        | Call::ClaimDue(..)
        | Call::Lease(..)
        | Call::Leave(_)
        | Call::Beat(_)
        | Call::Fence(..)
        | Call::ReadJob(_)
        | Call::ReadRuns(_)
        | Call::ReadSlots(_) => true,
    }
}
