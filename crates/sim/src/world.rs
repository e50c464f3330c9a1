//! One simulated stretch of time: jobs, a node that crashes and comes back, a store and targets
//! that misbehave, clocks that are stepped, people who edit, pause, cancel; then quiet, then checks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{Clock, ClockOf, Node, NodeConfig};
use executor::Registry;
use model::{
    Calendar, Job, JobState, Run, RunId, RunKind, RunState, Skip, TenantId, Timestamp, Version,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::mem::{Flaw, MemStore};
use store::{JobChange, NewJob, RunsOfChange, StartRun, Store};

use crate::checks::{self, Broken};
use crate::clock::{NodeClock, SimClock};
use crate::faults::{Badness, FaultStore};
use crate::jobs;
use crate::story::{Delivery, Story};
use crate::target::SimTarget;

/// What a seed may do.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    /// How long things go wrong.
    pub trouble: Duration,
    /// How long they then may take to come right.
    pub quiet: Duration,
    pub flaw: Flaw,
    pub engine_flaw: engine::Flaw,
    /// One node has the store to itself and to its own clock; several share it, and its clock.
    pub nodes: usize,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            trouble: Duration::from_secs(60),
            quiet: Duration::from_secs(90),
            flaw: Flaw::None,
            engine_flaw: engine::Flaw::None,
            nodes: 1,
        }
    }

    /// Several nodes over one store.
    pub fn fleet(seed: u64) -> Self {
        Self {
            nodes: 2 + (seed % 2) as usize,
            ..Self::new(seed)
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Told {
    pub broken: Vec<Broken>,
    pub deliveries: Vec<Delivery>,
    pub runs: Vec<Run>,
    /// Of everything that happened: the same seed gives the same one.
    pub digest: u64,
}

/// Runs one seed on a runtime of its own.
pub fn run(plan: Plan) -> Told {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(async {
            // On a tick of the runtime's timers: from here on all time is whole milliseconds.
            SimClock::new().sleep(Duration::from_millis(1)).await;
            World::new(plan).live().await
        }),
        Err(error) => Told {
            broken: vec![Broken::new("runtime", error.to_string())],
            deliveries: Vec::new(),
            runs: Vec::new(),
            digest: 0,
        },
    }
}

/// One machine of the fleet, and the node on it if it runs.
struct Member {
    clock: NodeClock,
    store: FaultStore,
    node: Option<Node>,
}

pub(crate) struct World {
    plan: Plan,
    rng: StdRng,
    pub clock: SimClock,
    pub mem: MemStore,
    members: Vec<Member>,
    pub story: Story,
    target_rng: Arc<Mutex<StdRng>>,
    quiet: Arc<AtomicBool>,
    starts: u32,
    /// Every job as it was accepted, and whether its definition was ever changed.
    pub accepted: Vec<(Arc<Job>, bool)>,
    calendars: Vec<Arc<Calendar>>,
    by: Arc<str>,
    /// When, by uptime, the wall clock was stepped: then lateness and order by it mean less.
    pub steps: Vec<Duration>,
    /// When the nodes began to stop: what is due later is nobody's any more.
    pub ended_at: Timestamp,
}

/// Attempts under way at once on one node.
pub(crate) const RUNNING_MAX: usize = 8;

fn member(plan: &Plan, index: u64, clock: &SimClock, mem: &MemStore, rng: &mut StdRng) -> Member {
    let mut own = NodeClock::new(clock.clone());
    if plan.nodes > 1 {
        own.drift = rng.random_range(-50..50);
        own.skew
            .store(rng.random_range(-30_000..30_000), Ordering::SeqCst);
    }
    let seed = plan.seed ^ 0xfa17 ^ (index << 32);
    Member {
        store: FaultStore {
            inner: mem.clone(),
            clock: clock.clone(),
            rng: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
            badness: Arc::default(),
            down: Arc::default(),
            pause: own.pause.clone(),
            seen: Arc::default(),
        },
        clock: own,
        node: None,
    }
}

impl World {
    fn new(plan: Plan) -> Self {
        let clock = SimClock::new();
        let mem = MemStore::new(Arc::new(clock.clone())).with_flaw(plan.flaw);
        let mut rng = StdRng::seed_from_u64(plan.seed);
        let members = (0..plan.nodes)
            .map(|index| member(&plan, index as u64, &clock, &mem, &mut rng))
            .collect();
        Self {
            rng,
            target_rng: SimTarget::rng(plan.seed),
            clock,
            mem,
            members,
            story: Story::default(),
            quiet: Arc::default(),
            starts: 0,
            accepted: Vec::new(),
            calendars: Vec::new(),
            by: Arc::from("someone"),
            steps: Vec::new(),
            ended_at: Timestamp::MIN,
            plan,
        }
    }

    async fn live(mut self) -> Told {
        for name in ["one", "two"] {
            self.put_calendar(name).await;
        }
        for _ in 0..self.rng.random_range(3..12) {
            self.create().await;
        }
        for index in 0..self.plan.nodes {
            self.start(index).await;
        }
        let begun = self.clock.uptime();
        while self.clock.uptime().saturating_sub(begun) < self.plan.trouble {
            let wait = self.rng.random_range(1..3_000);
            self.clock.sleep(Duration::from_millis(wait)).await;
            self.trouble().await;
        }
        self.calm().await;
        for index in 0..self.plan.nodes {
            if self.members[index].node.is_none() {
                self.start(index).await;
            }
        }
        // What recurs would go on for ever: pause it, and let what lives end.
        self.pause_all().await;
        self.clock.sleep(self.plan.quiet).await;
        self.ended_at = Clock::now(&self.clock);
        for member in &mut self.members {
            if let Some(node) = member.node.take() {
                node.stop(Duration::from_secs(5)).await;
            }
        }
        let mut broken = checks::all(&self);
        for member in &self.members {
            let seen = member.store.seen.lock();
            broken.extend(seen.unwrap_or_else(PoisonError::into_inner).clone());
        }
        let (deliveries, runs) = (self.story.deliveries(), self.mem.all_runs());
        let digest = checks::digest(&deliveries, &runs);
        Told {
            broken,
            deliveries,
            runs,
            digest,
        }
    }

    pub fn is_fleet(&self) -> bool {
        self.plan.nodes > 1
    }

    async fn start(&mut self, index: usize) {
        self.starts += 1;
        if self.plan.nodes == 1 {
            self.mem.reopen();
        }
        let member = &self.members[index];
        let target = SimTarget {
            clock: self.clock.clone(),
            story: self.story.clone(),
            rng: Arc::clone(&self.target_rng),
            node: self.starts,
            pause: member.clock.pause.clone(),
            quiet: Arc::clone(&self.quiet),
        };
        let registry = Registry::default().with("fake", Arc::new(target));
        let config = NodeConfig {
            name: format!("node-{index}"),
            running_max: RUNNING_MAX,
            clock: match self.plan.nodes {
                1 => ClockOf::Machine,
                _ => ClockOf::Store,
            },
            seed: self.plan.seed ^ u64::from(self.starts),
            flaw: self.plan.engine_flaw,
            ..NodeConfig::default()
        };
        let store: Arc<dyn Store> = Arc::new(member.store.clone());
        let clock: Arc<dyn Clock> = Arc::new(member.clock.clone());
        for _ in 0..100 {
            let (store, clock) = (Arc::clone(&store), Arc::clone(&clock));
            if let Ok(node) = Node::start(store, clock, registry.clone(), config.clone()).await {
                self.members[index].node = Some(node);
                return;
            }
            self.clock.sleep(Duration::from_millis(100)).await;
        }
    }

    /// One thing goes wrong, or somebody does something.
    async fn trouble(&mut self) {
        let index = self.rng.random_range(0..self.members.len());
        match self.rng.random_range(0..100) {
            0..15 => {
                if let Some(node) = self.members[index].node.take() {
                    node.crash();
                }
                let away = self.rng.random_range(0..15_000);
                self.clock.sleep(Duration::from_millis(away)).await;
                self.start(index).await;
            }
            15..20 => {
                if let Some(node) = self.members[index].node.take() {
                    node.stop(Duration::from_secs(1)).await;
                }
                self.start(index).await;
            }
            20..35 => self.spoil_store(index),
            35..40 => {
                let down = Arc::clone(&self.members[index].store.down);
                down.store(true, Ordering::SeqCst);
                let span = self.rng.random_range(100..8_000);
                self.clock.sleep(Duration::from_millis(span)).await;
                down.store(false, Ordering::SeqCst);
            }
            40..46 => {
                self.steps.push(self.clock.uptime());
                let back = self.rng.random_bool(0.5);
                let step = self.rng.random_range(1..90_000);
                self.clock.step(if back { -step } else { step });
            }
            46..60 => self.create().await,
            60..80 => self.meddle(index).await,
            80..93 if self.plan.nodes > 1 => {
                // Suspended: nothing of it moves, for longer than its presence lasts or not. Worst just
                // before something is due, when it is claimed and not yet dispatched.
                if self.rng.random_bool(0.7) {
                    let past = Clock::now(&self.clock).as_millis() % 1_000;
                    let wait = (1_975 - past) % 1_000;
                    self.clock
                        .sleep(Duration::from_millis(wait.unsigned_abs()))
                        .await;
                }
                let span = self.rng.random_range(500..15_000);
                let until = self.clock.uptime() + Duration::from_millis(span);
                self.members[index].clock.pause.until(until);
            }
            93..97 if self.plan.nodes > 1 => {
                let skew = self.rng.random_range(-60_000..60_000);
                let clock = &self.members[index].clock;
                clock.skew.store(skew, Ordering::SeqCst);
            }
            _ => {}
        }
    }

    fn spoil_store(&mut self, index: usize) {
        let badness = Badness {
            before: self.rng.random_range(0..200),
            after: self.rng.random_range(0..200),
            slow: Duration::from_millis([0, 1, 20, 700][self.rng.random_range(0..4)]),
        };
        *self.members[index]
            .store
            .badness
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = badness;
    }

    async fn create(&mut self) {
        let job = Arc::new(jobs::job(
            &mut self.rng,
            Clock::now(&self.clock),
            &self.calendars,
        ));
        let new = NewJob {
            job: Arc::clone(&job),
            idempotency: None,
        };
        // What is accepted is what the store says it is: an answer that was lost is asked for again.
        if self.mem.create_jobs(&[new]).await.is_ok() {
            self.accepted.push((job, false));
        }
    }

    /// A calendar is made, or changed.
    async fn put_calendar(&mut self, name: &str) {
        let now = Clock::now(&self.clock);
        let Some(mut calendar) = jobs::calendar(&mut self.rng, name, now) else {
            return;
        };
        let place = self
            .calendars
            .iter()
            .position(|calendar| calendar.name.as_str() == name);
        let before = place.map(|place| self.calendars.remove(place).version);
        calendar.version = before.map_or(Version::FIRST, Version::next);
        let _ = self
            .mem
            .put_calendar(TenantId::DEFAULT, &calendar, before)
            .await;
        self.calendars.push(Arc::new(calendar));
    }

    /// Somebody edits, pauses, resumes, deletes, runs by hand or cancels.
    async fn meddle(&mut self, at: usize) {
        if self.accepted.is_empty() {
            return;
        }
        let index = self.rng.random_range(0..self.accepted.len());
        let id = self.accepted[index].0.id;
        let Ok(Some(job)) = self.mem.get_job(TenantId::DEFAULT, id).await else {
            return;
        };
        let now = Clock::now(&self.clock);
        let by = Arc::clone(&self.by);
        match self.rng.random_range(0..7) {
            0 if job.state == JobState::Active => {
                let after = job.paused(now, None, &by);
                self.change(&job, after, RunsOfChange::TakeBack).await;
            }
            1 if job.state == JobState::Paused => {
                let after = job.resumed(now, self.rng.random_bool(0.3), &by);
                self.change(&job, after, RunsOfChange::Keep).await;
            }
            2 => {
                self.accepted[index].1 = true;
                let def = jobs::definition(&mut self.rng, now, &self.calendars);
                let after = job.edited(job.key.clone(), def, now, &by);
                self.change(&job, after, RunsOfChange::TakeBack).await;
            }
            3 => self.run_by_hand(&job, now).await,
            4 => self.cancel_one(now).await,
            5 if self.rng.random_bool(0.3) => {
                let after = job.deleted(now, &by);
                self.change(&job, after, RunsOfChange::Cancel).await;
            }
            6 => {
                let name = ["one", "two"][self.rng.random_range(0..2)];
                self.put_calendar(name).await;
                let told = self.rng.random_bool(0.5);
                if let Some(node) = self.members[at].node.as_ref().filter(|_| told) {
                    node.handle().nudge_rules();
                }
            }
            _ => {}
        }
        if let Some(node) = &self.members[at].node {
            node.handle().nudge_plan();
            node.handle().nudge_holder();
        }
    }

    async fn change(&self, before: &Job, (after, skipped): (Job, Vec<Skip>), runs: RunsOfChange) {
        let change = JobChange {
            before: Arc::new(before.clone()),
            after: Arc::new(after),
            skipped,
            runs,
        };
        let _ = self.mem.change_job(&change).await;
    }

    async fn run_by_hand(&mut self, job: &Job, now: Timestamp) {
        let id = RunId::asked(job.id, now, self.rng.random());
        let run = Run {
            id,
            tenant: job.tenant,
            job: job.id,
            kind: RunKind::Manual,
            slot: None,
            replay_of: None,
            due_at: now,
            lane: job.def.lane,
            state: RunState::Ready,
            reason: None,
            attempt: model::AttemptNo::FIRST,
            lost: 0,
            version: job.version,
            claim: None,
            ask: None,
            waiting: false,
            dispatched_at: None,
            settled_at: None,
            payload: None,
            stretch: None,
            note: None,
            by: None,
            attempts: Vec::new(),
        };
        let force = self.rng.random_bool(0.2);
        let _ = self.mem.start_run(&StartRun { run, force }).await;
    }

    async fn cancel_one(&mut self, now: Timestamp) {
        let live: Vec<RunId> = self
            .mem
            .all_runs()
            .into_iter()
            .filter(|run| run.state.is_live())
            .map(|run| run.id)
            .collect();
        if !live.is_empty() {
            let run = live[self.rng.random_range(0..live.len())];
            let _ = self.mem.cancel_run(TenantId::DEFAULT, run, now).await;
        }
    }

    async fn calm(&mut self) {
        for member in &self.members {
            *member
                .store
                .badness
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Badness::default();
            member.store.down.store(false, Ordering::SeqCst);
        }
        self.quiet.store(true, Ordering::SeqCst);
    }

    async fn pause_all(&mut self) {
        // Late slots are decided first, so that the end is the same for all.
        self.clock.sleep(Duration::from_secs(20)).await;
        for (job, _) in self.accepted.clone() {
            for _ in 0..10 {
                let Ok(Some(job)) = self.mem.get_job(TenantId::DEFAULT, job.id).await else {
                    break;
                };
                if job.state != JobState::Active || !job.def.schedule.is_recurring() {
                    break;
                }
                let now = Clock::now(&self.clock);
                let after = job.paused(now, None, &self.by);
                self.change(&job, after, RunsOfChange::TakeBack).await;
            }
        }
    }
}
