//! One simulated stretch of time: jobs, nodes that crash and come back, a store and targets that misbehave,
//! clocks that are stepped, people who edit, pause, cancel; then quiet, then checks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{Clock, ClockOf, Node, NodeConfig};
use executor::Registry;
use model::schedule::other_tables;
use model::{Calendar, Job, Parts, Run, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::mem::{Flaw, MemStore};
use store::{HandedStore, ReportKey, Store};

use crate::checks::{self, Broken};
use crate::clock::{NodeClock, Pause, SimClock, StoreTime};
use crate::faults::FaultStore;
use crate::ledger::Ledger;
use crate::origins::Origins;
use crate::outside::Doors;
use crate::requests::Requests;
use crate::spells::Spells;
use crate::story::{Delivery, Story};
use crate::target::SimTarget;

/// What a seed may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    pub seed: u64,
    /// How long things go wrong: in one burst, or in many with peace between them.
    pub trouble: Duration,
    /// How long they then may take to come right.
    pub quiet: Duration,
    pub flaw: Flaw,
    pub engine_flaw: engine::Flaw,
    /// One node has the store to itself and to its own clock; several share it, and its clock.
    pub nodes: usize,
}

/// The longest burst of trouble; a longer plan has several.
pub(crate) const BURST: Duration = Duration::from_secs(60);
/// How long late slots are given before everything that recurs is paused.
pub(crate) const DECIDE: Duration = Duration::from_secs(20);

/// The clocks change in Europe, ahead and back, in New York, and by half an hour on Lord Howe; a day ends, and a year.
const MOMENTS: [i64; 7] = [
    1_774_746_000,
    1_792_890_000,
    1_772_953_200,
    1_793_512_800,
    1_775_314_800,
    1_774_742_400,
    1_798_761_600,
];

impl Plan {
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            trouble: BURST,
            quiet: Duration::from_secs(90),
            flaw: Flaw::None,
            engine_flaw: engine::Flaw::None,
            nodes: 1,
        }
    }

    /// Several nodes over one store.
    pub fn fleet(seed: u64) -> Self {
        Self {
            nodes: 2 + (seed % 3) as usize,
            ..Self::new(seed)
        }
    }

    /// As `make sim` has it: three seeds of four are a fleet, and each lasts an hour.
    pub fn hour(seed: u64) -> Self {
        let plan = match seed % 4 {
            0 => Self::new(seed),
            _ => Self::fleet(seed),
        };
        plan.lasting(Duration::from_secs(3_600))
    }

    /// The same, so long from its beginning to its end.
    pub fn lasting(self, span: Duration) -> Self {
        Self {
            trouble: span.saturating_sub(self.quiet + DECIDE),
            ..self
        }
    }

    /// In every third of the larger fleets one node is only clock and another only hands.
    fn parts(&self, index: usize) -> Parts {
        let apart = self.nodes > 2 && (self.seed / 12).is_multiple_of(3);
        Parts {
            schedule: !(apart && index == 1),
            execute: !(apart && index == 0),
            ..Parts::default()
        }
    }

    /// Somewhat before a moment at which clocks change somewhere, or days and years do.
    fn start(&self, rng: &mut StdRng) -> Timestamp {
        let moment = MOMENTS[rng.random_range(0..MOMENTS.len())];
        let span = self.trouble.as_millis() as i64;
        Timestamp::from_millis(moment * 1_000 - rng.random_range(0..span.max(1)))
    }

    pub(crate) fn is_long(&self) -> bool {
        self.trouble > BURST
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Findings {
    pub broken: Vec<Broken>,
    pub deliveries: Vec<Delivery>,
    pub runs: Vec<Run>,
    /// Of everything that happened: the same seed gives the same one.
    pub digest: u64,
}

/// Runs one seed on a runtime of its own.
pub fn run(plan: Plan) -> Findings {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(async move { World::new(plan).live().await }),
        Err(error) => Findings {
            broken: vec![Broken::new("runtime", error.to_string())],
            deliveries: Vec::new(),
            runs: Vec::new(),
            digest: 0,
        },
    }
}

/// One machine of the fleet, and the node on it if it runs.
pub(crate) struct Member {
    pub clock: NodeClock,
    pub store: FaultStore,
    pub node: Option<Node>,
    /// When a node that crashed comes back, by uptime.
    pub back_at: Duration,
    /// Until when it stands still or is cut off.
    pub away_until: Duration,
}

pub(crate) struct World {
    pub plan: Plan,
    pub rng: StdRng,
    pub clock: SimClock,
    pub mem: MemStore,
    pub members: Vec<Member>,
    parts: Vec<Parts>,
    pub story: Story,
    pub ledger: Ledger,
    /// When which node was not at its best.
    pub spells: Spells,
    target_rng: Arc<Mutex<StdRng>>,
    quiet: Arc<AtomicBool>,
    /// How the outside reaches the nodes that run.
    pub doors: Doors,
    pub origins: Origins,
    starts: u32,
    /// Which node each start was of.
    pub started: BTreeMap<u32, usize>,
    /// Every job as it was accepted, and whether its definition was ever changed.
    pub accepted: Vec<(Arc<Job>, bool)>,
    pub calendars: Vec<Arc<Calendar>>,
    pub by: Arc<str>,
    /// The way that people have to the store.
    pub door: FaultStore,
    pub requests: Requests,
    /// When, by uptime, the wall clock was stepped: then lateness and order by it mean less.
    pub steps: Vec<Duration>,
    /// Attempts under way at once on one node.
    pub running_max: usize,
    /// The latest that the wall clock has shown.
    pub latest: Timestamp,
    /// When the nodes began to stop: what is due later is nobody's any more.
    pub ended_at: Timestamp,
    /// The same by uptime.
    pub ended: Duration,
}

impl World {
    fn new(plan: Plan) -> Self {
        // The story before may have ended with others.
        other_tables::set_used(false);
        let mut rng = StdRng::seed_from_u64(plan.seed);
        let clock = SimClock::at(plan.start(&mut rng));
        let time = StoreTime {
            clock: clock.clone(),
            by_wall: plan.nodes > 1 && rng.random_bool(0.5),
        };
        let mem = MemStore::new(Arc::new(time)).with_flaw(plan.flaw);
        let parts: Vec<Parts> = (0..plan.nodes).map(|index| plan.parts(index)).collect();
        let ledger = Ledger::traced();
        let door = FaultStore {
            rng: Arc::new(Mutex::new(StdRng::seed_from_u64(plan.seed ^ 0xd00c))),
            ledger: ledger.clone(),
            start: 0,
            ..FaultStore::at(Duration::ZERO, &mem, &clock, &Pause::new(plan.seed))
        };
        let mut world = Self {
            door,
            requests: Requests::default(),
            rng,
            target_rng: SimTarget::rng(plan.seed),
            clock,
            mem,
            members: Vec::new(),
            story: Story::default(),
            ledger,
            spells: Spells::new(parts.iter().map(|parts| parts.schedule).collect()),
            parts,
            quiet: Arc::default(),
            doors: Doors::default(),
            origins: Origins::default(),
            starts: 0,
            started: BTreeMap::new(),
            accepted: Vec::new(),
            calendars: Vec::new(),
            by: Arc::from("someone"),
            steps: Vec::new(),
            running_max: 8,
            latest: Timestamp::MIN,
            ended_at: Timestamp::MIN,
            ended: Duration::ZERO,
            plan,
        };
        world.running_max = world.rng.random_range(2..9);
        for index in 0..plan.nodes as u64 {
            let member = world.member(index);
            world.members.push(member);
        }
        world
    }

    fn member(&mut self, index: u64) -> Member {
        let seed = self.plan.seed ^ 0xfa17 ^ (index << 32);
        let mut distance = Duration::ZERO;
        let mut clock = NodeClock::new(self.clock.clone(), seed ^ 0x9a5e);
        if self.is_fleet() {
            distance = Duration::from_millis([0, 0, 1, 4][self.rng.random_range(0..4)]);
            clock.drift = self.rng.random_range(-50..50);
            clock
                .skew
                .store(self.rng.random_range(-30_000..30_000), Ordering::SeqCst);
        }
        let store = FaultStore {
            inner: self.mem.clone(),
            clock: self.clock.clone(),
            rng: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))),
            badness: Arc::default(),
            distance,
            cut: Arc::default(),
            pause: clock.pause.clone(),
            ledger: self.ledger.clone(),
            node: index as usize,
            start: 0,
        };
        Member {
            clock,
            store,
            node: None,
            back_at: Duration::ZERO,
            away_until: Duration::ZERO,
        }
    }

    async fn live(mut self) -> Findings {
        self.put_report_key().await;
        for name in ["one", "two"] {
            self.put_calendar(name).await;
        }
        for _ in 0..self.rng.random_range(3..12) {
            self.create().await;
        }
        for index in 0..self.plan.nodes {
            self.start(index).await;
        }
        self.go_wrong().await;
        self.come_right().await;
        self.quiet.store(true, Ordering::SeqCst);
        // Late slots are decided first, so that the end is the same for all.
        self.clock.sleep(DECIDE).await;
        let mut broken = checks::nothing_is_overdue(&self);
        match checks::jobs_follow_their_zones(&self).await {
            Ok(found) => broken.extend(found),
            Err(error) => broken.push(Broken::new("runtime", error.to_string())),
        }
        // What recurs would go on for ever: pause it, and let what lives end.
        self.pause_all().await;
        self.clock.sleep(self.plan.quiet).await;
        self.wait_for_origins().await;
        self.ended_at = Clock::now(&self.clock);
        self.ended = self.clock.uptime();
        self.latest = self.latest.max(self.ended_at);
        for (index, member) in self.members.iter_mut().enumerate() {
            self.doors.close(index);
            if let Some(node) = member.node.take() {
                node.stop(Duration::from_secs(5)).await;
            }
        }
        broken.append(&mut self.ledger.book().broken);
        broken.extend(checks::all(&self));
        let (deliveries, runs) = (self.story.deliveries(), self.mem.all_runs());
        let digest = checks::digest(&deliveries, &runs);
        Findings {
            broken,
            deliveries,
            runs,
            digest,
        }
    }

    /// What waits for an origin is given its time.
    async fn wait_for_origins(&self) {
        let until = checks::may_wait_until(self);
        let waits = || self.mem.live_runs().iter().any(Run::waits_outside);
        while self.uptime() < until && waits() {
            self.clock.sleep(Duration::from_secs(1)).await;
        }
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.clock.uptime()
    }

    pub(crate) fn clock_now(&self) -> Timestamp {
        Clock::now(&self.clock)
    }

    /// Tokens are made with a key that is here already: one that a node makes is chance, and no story repeats with it.
    async fn put_report_key(&self) {
        let key = ReportKey {
            id: "5eed".to_owned(),
            created_at: Clock::now(&self.clock),
            master_key: None,
            bytes: vec![7; 32],
        };
        let put = self.mem.put_report_key(&key).await;
        if let Err(error) = put {
            self.ledger.book().broken("runtime", error.to_string());
        }
    }

    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        self.ledger.book().note(self.clock.uptime(), what);
    }

    pub(crate) fn is_fleet(&self) -> bool {
        self.plan.nodes > 1
    }

    pub(crate) async fn start(&mut self, index: usize) {
        self.starts += 1;
        self.started.insert(self.starts, index);
        if !self.is_fleet() {
            self.mem.reopen();
            self.ledger.book().all_ended(self.clock.uptime());
        }
        let member = &mut self.members[index];
        member.store.start = self.starts;
        let target = SimTarget {
            clock: self.clock.clone(),
            story: self.story.clone(),
            ledger: self.ledger.clone(),
            rng: Arc::clone(&self.target_rng),
            node: self.starts,
            pause: member.clock.pause.clone(),
            quiet: Arc::clone(&self.quiet),
            doors: self.doors.clone(),
            origins: self.origins.clone(),
            sight: member.store.clone(),
        };
        let registry = Registry::default().with("http", Arc::new(target));
        let config = NodeConfig {
            name: format!("node-{index}"),
            parts: self.parts[index],
            running_max: self.running_max,
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
                self.doors.open(index, node.handle());
                self.members[index].node = Some(node);
                self.spells.up(index, self.clock.uptime());
                let start = self.starts;
                self.note(|| format!("node {index} starts, {start}"));
                return;
            }
            self.clock.sleep(Duration::from_millis(100)).await;
        }
    }
}
