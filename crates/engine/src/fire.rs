//! Fire: a lead before they are due, slots become runs and each job moves to its next slot, in one
//! write under the leases' epochs; and due runs that nobody holds are claimed.
//!
//! Batches are natural: whatever became due while the writes before were under way goes next. Slots that simply
//! start, slots that take the slow path, and claims are written apart, so that none waits for what takes
//! others longer; two writes of each are under way at most, so that the store never waits for us. The backlog is written
//! apart from what is on time, a few writes at a time, so that a slot that is on time waits for those at most.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::job::Decision;
use model::view::Known;
use model::{Job, RunId, Timestamp, limits};
use store::{Claimed, DueRun, EngineStore, Fired, Firing, StoreError};
use tracing::error;

use crate::age::Age;
use crate::board::{Board, Due, Scope};
use crate::clock::Clock;
use crate::desk::{By, Endings};
use crate::duty::{Duty, Wake};
use crate::executors::Executors;
use crate::fired;
use crate::flaw::Flaw;
use crate::fleet::Fleet;
use crate::lead::Lead;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::presence::Presence;
use crate::run_counts::RunCounts;
use crate::shards::Shards;
use crate::writes::{Kind, Writes};

/// What a write under way was about, and what became of it.
enum Answer {
    Fired {
        firings: Vec<Firing>,
        answer: Result<Vec<Fired>, StoreError>,
    },
    Claimed {
        runs: Vec<(Timestamp, DueRun)>,
        answer: Result<Vec<Claimed>, StoreError>,
    },
}

/// A write that was answered.
struct Done {
    age: Age,
    kind: Kind,
    took: Duration,
    answer: Answer,
}

pub(crate) struct Ports {
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub fleet: Arc<Fleet>,
    pub executors: Arc<Executors>,
    pub offers: Offers,
    pub endings: Endings,
    pub by: By,
    pub metrics: Metrics,
    pub runs: Arc<RunCounts>,
    /// Whether this node executes.
    pub executes: bool,
    pub flaw: Flaw,
    pub nudge: Nudge,
    pub dispatch: Nudge,
    pub fired_out: Nudge,
}

pub(crate) struct Fire {
    ports: Ports,
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
    writes: Writes,
    lead: Lead,
}

impl Ports {
    /// The firing of a job's next slot, if it has one; `knows` is what is known here of its runs.
    fn firing(
        &self,
        job: Arc<Job>,
        knows: Vec<Known>,
        now: Timestamp,
        room: usize,
    ) -> Option<Firing> {
        let decision = job.decide(job.next_slot?, now, &self.by.node);
        Some(Firing {
            decision: self.count(&job, decision),
            claim: room > 0 && self.executors.can_execute(&job),
            job,
            knows,
        })
    }

    /// Counts the run of a decision; the slot of a tenant that has had all its runs of the day is skipped.
    fn count(&self, job: &Job, decision: Decision) -> Decision {
        let Some(day) = job.run_day(&decision) else {
            return decision;
        };
        let Err(over) = self.runs.begin(job.tenant, day) else {
            return decision;
        };
        if over.is_new && self.by.trouble.log_quota(job.tenant, &over) {
            self.runs.was_said(job.tenant, day);
        }
        decision.over_quota()
    }

    /// The run of a decision was counted, and not inserted.
    pub(crate) fn take_out(&self, job: &Job, decision: &Decision) {
        if let Some(day) = job.run_day(decision) {
            self.runs.take_out(job.tenant, day);
        }
    }
}

impl Fire {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            in_flight: FuturesUnordered::new(),
            writes: Writes::default(),
            lead: Lead::default(),
        }
    }

    /// How far ahead slots are fired: more when much is due soon, so that all of it is written in time.
    fn lead(&self, now: Timestamp) -> Duration {
        let until = now.plus(limits::LEAD_MAX);
        let due = self.ports.board.count_until(until);
        let least = if self.ports.presence.is_handing_over() {
            limits::LEAD_HAND_OVER
        } else if self.ports.executes {
            limits::LEAD_MIN
        } else {
            limits::LEAD_APART
        };
        self.lead.of(least, due)
    }

    /// Whether writes may begin at all.
    fn may_write(&self) -> bool {
        let Ports {
            presence,
            board,
            shards,
            ..
        } = &self.ports;
        presence.is_sure() && !board.is_closed() && !shards.is_pausing()
    }

    /// Puts writes under way while there is something to write.
    fn fill(&mut self, now: Timestamp, lead: Duration) {
        while self.may_write() {
            let begun = Age::ALL.map(|age| self.fill_with(age, now, lead));
            if begun == [false; 2] {
                return;
            }
        }
    }

    fn scope(&self, age: Age, now: Timestamp, lead: Duration) -> Scope {
        Scope {
            age,
            now,
            lead,
            has_patience: self.writes.has_patience(age),
            may_take: self.writes.may_take(age),
        }
    }

    /// Puts one write of each kind under way, if there is something to write. Answers whether there was.
    fn fill_with(&mut self, age: Age, now: Timestamp, lead: Duration) -> bool {
        let (scope, mut room) = (self.scope(age, now, lead), self.room(age));
        let Due {
            fast: starts,
            slow: beside,
        } = self.ports.board.take_due(scope);
        let claims = if scope.has_patience {
            room.min(limits::FIRE_BATCH_MAX)
        } else {
            0
        };
        let runs = self.ports.board.take_crowd(age, claims);
        if starts.is_empty() && beside.is_empty() && runs.is_empty() {
            return false;
        }
        room -= runs.len();
        let (mut fast, mut slow) = (Vec::with_capacity(starts.len()), Vec::new());
        for (job, knows) in beside {
            slow.extend(self.ports.firing(job, knows, now, room));
            room = room.saturating_sub(1);
        }
        for job in starts {
            let firing = self.ports.firing(job, Vec::new(), now, room);
            if firing.as_ref().is_some_and(takes_fast_path) {
                fast.extend(firing)
            } else {
                slow.extend(firing)
            }
            room = room.saturating_sub(1);
        }
        self.fire(age, Kind::FastPath, fast);
        self.fire(age, Kind::SlowPath, slow);
        self.claim(age, runs);
        true
    }

    /// How many runs may be claimed. What is due while no more can start is left to others, if they can.
    fn room(&self, age: Age) -> usize {
        let Ports {
            board,
            fleet,
            presence,
            ..
        } = &self.ports;
        let crowded = board.is_crowded(age) && fleet.others_have_room(presence.id);
        let room = if self.ports.executes && !crowded {
            board.room()
        } else {
            0
        };
        match age {
            Age::OnTime => room,
            Age::Backlog => room.saturating_sub(limits::HELD_ON_TIME),
        }
    }

    fn begin(
        &mut self,
        (age, kind): (Age, Kind),
        write: impl Future<Output = Answer> + Send + 'static,
    ) {
        self.writes.begin(age, kind);
        let clock = Arc::clone(&self.ports.clock);
        self.in_flight.push(Box::pin(async move {
            let begun = clock.uptime();
            let answer = write.await;
            let took = clock.uptime().saturating_sub(begun);
            Done {
                age,
                kind,
                took,
                answer,
            }
        }));
    }

    fn fire(&mut self, age: Age, kind: Kind, mut firings: Vec<Firing>) {
        if firings.is_empty() {
            return;
        }
        let flaw = self.ports.flaw;
        firings.iter_mut().for_each(|firing| flaw.spoil(firing));
        let metrics = &self.ports.metrics;
        metrics.fire_batch.observe(firings.len() as f64);
        self.ports.board.begin_writing(runs_of(&firings));
        let (store, shards) = self.ways();
        self.begin((age, kind), async move {
            let leases = shards.leases();
            let answer = store.fire(&leases, &firings).await;
            Answer::Fired { firings, answer }
        });
    }

    fn claim(&mut self, age: Age, runs: Vec<(Timestamp, DueRun)>) {
        if runs.is_empty() {
            return;
        }
        let ids: Vec<RunId> = runs.iter().map(|(_, run)| run.run).collect();
        self.ports.board.begin_writing(ids.iter().copied());
        let (store, shards) = self.ways();
        self.begin((age, Kind::Claim), async move {
            let leases = shards.leases();
            let answer = store.claim(&leases, &ids).await;
            Answer::Claimed { runs, answer }
        });
    }

    /// What a write goes by.
    fn ways(&self) -> (Arc<dyn EngineStore>, Arc<Shards>) {
        let Ports { store, shards, .. } = &self.ports;
        (Arc::clone(store), Arc::clone(shards))
    }

    /// What a write took, if that says how far ahead the next ones are to begin. One on the slow path takes its
    /// time, and begins when its slots are due; the backlog is late whatever it takes. What others wait for behind it
    /// shows in theirs.
    fn learn(&mut self, done: &Done) {
        if done.age == Age::Backlog {
            return;
        }
        let count = match (&done.answer, done.kind) {
            (_, Kind::SlowPath) => return,
            (Answer::Fired { answer, .. }, _) => answer.as_ref().map(Vec::len),
            (Answer::Claimed { answer, .. }, _) => answer.as_ref().map(Vec::len),
        };
        if let Ok(count) = count {
            let uptime = self.ports.clock.uptime();
            self.lead.learn(count, done.took, uptime);
        }
    }

    async fn absorb(&mut self, done: Done, now: Timestamp) -> Result<(), StoreError> {
        self.writes.end(done.age, done.kind);
        self.learn(&done);
        let Ports {
            board,
            store,
            endings,
            ..
        } = &self.ports;
        match done.answer {
            Answer::Fired {
                firings,
                answer: Ok(answers),
            } => {
                let refused = fired::fired(&self.ports, firings, answers, now);
                for (job, why) in &refused {
                    error!(%job, error = %why, "cannot be fired and is parked");
                }
                if refused.is_empty() {
                    Ok(())
                } else {
                    store.park(&refused, now).await
                }
            }
            Answer::Claimed {
                runs,
                answer: Ok(answers),
            } => {
                let beyond = fired::claimed(&self.ports, &runs, answers, now);
                // Settle is gone only with the presence.
                let _gone = endings.send_all(beyond).await;
                Ok(())
            }
            Answer::Fired {
                firings,
                answer: Err(error),
            } => {
                let runs: Vec<RunId> = runs_of(&firings).collect();
                for firing in &firings {
                    self.ports.take_out(&firing.job, &firing.decision);
                }
                let jobs = firings.into_iter().map(|firing| firing.job);
                board.put_back_slots(runs.into_iter(), jobs.collect());
                Err(error)
            }
            Answer::Claimed {
                runs,
                answer: Err(error),
            } => {
                board.put_back_runs(runs);
                Err(error)
            }
        }
    }

    /// When the next write may begin: a good part of the lead before the next is due, so that a few of them go in one.
    /// None while that takes an answer first.
    fn next_write(&self, now: Timestamp, lead: Duration) -> Option<Timestamp> {
        if !self.may_write() {
            return None;
        }
        let ahead = lead.saturating_sub(self.lead.gather(lead));
        let next = |age: Age| {
            let scope = self.scope(age, now, lead);
            self.ports.board.next_write(scope, ahead)
        };
        Age::ALL.into_iter().filter_map(next).min()
    }

    /// When to look again while nothing is under way.
    fn wake(&self, now: Timestamp, lead: Duration) -> Wake {
        let Ports {
            presence,
            board,
            shards,
            ..
        } = &self.ports;
        if presence.is_handing_over() {
            self.ports.fired_out.now();
        }
        if board.is_closed() || shards.is_pausing() {
            return Wake::Nudged;
        }
        let latest = now.plus(limits::SLEEP_MAX);
        let next = self.next_write(now, lead).map(|moment| moment.max(now));
        Wake::At(next.unwrap_or(latest))
    }

    /// Waits for an answer; none when something may be written first.
    async fn answered(&mut self, now: Timestamp, lead: Duration) -> Option<Done> {
        let latest = now.plus(limits::SLEEP_MAX);
        let next = self.next_write(now, lead).unwrap_or(latest).min(latest);
        let Ports { nudge, clock, .. } = &self.ports;
        tokio::select! {
            biased;
            done = self.in_flight.next() => done,
            () = nudge.heard() => None,
            () = clock.sleep(next.since(now)) => None,
        }
    }
}

/// Whether a firing starts a run and does nothing else.
fn takes_fast_path(firing: &Firing) -> bool {
    firing.decision.start.is_some() && firing.decision.passed.is_empty()
}

/// The runs that firings would make.
pub(crate) fn runs_of(firings: &[Firing]) -> impl Iterator<Item = RunId> + '_ {
    firings.iter().filter_map(|firing| {
        firing
            .decision
            .start
            .map(|slot| RunId::for_slot(firing.job.id, slot))
    })
}

#[async_trait]
impl Duty for Fire {
    fn name(&self) -> &'static str {
        "fire"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, mut now: Timestamp) -> Result<Wake, StoreError> {
        loop {
            let lead = self.lead(now);
            self.fill(now, lead);
            if self.in_flight.is_empty() {
                return Ok(self.wake(now, lead));
            }
            let done = self.answered(now, lead).await;
            now = self.ports.clock.now();
            if let Some(done) = done {
                self.absorb(done, now).await?;
                return Ok(Wake::Now);
            }
        }
    }
}
