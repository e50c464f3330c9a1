//! Fleets of a few nodes in simulated time, one behaviour at a time: hand-over, parts, hints.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use engine::{Clock, ClockOf, Node, NodeConfig};
use executor::{Executor, Registry, WorkOrder};
use model::schedule::{Every, Zone};
use model::{
    Definition, Job, JobId, Outcome, Overlap, Parts, Report, RunId, RunState, Schedule, Slot,
    Target, TenantId, Timestamp,
};
use sim::clock::{NodeClock, SimClock};
use store::mem::MemStore;
use store::{ClientStore, NewJob};

/// An attempt that started: whose, on which node, and how late.
#[derive(Debug, Clone)]
struct Started {
    run: RunId,
    node: String,
    due_at: Timestamp,
    late: Duration,
}

/// Takes its time, and remembers.
#[derive(Clone)]
struct Recorder {
    clock: SimClock,
    takes: Duration,
    started: Arc<Mutex<Vec<Started>>>,
}

#[async_trait]
impl Executor for Recorder {
    async fn execute(&self, order: WorkOrder) -> Report {
        let now = Clock::now(&self.clock);
        let due_at = order.slot.map_or(now, |slot| order.job.due_at(slot));
        assert!(now >= due_at, "{} started early", order.run);
        self.started.lock().unwrap().push(Started {
            run: order.run,
            node: order.node.to_string(),
            due_at,
            late: now.since(due_at),
        });
        self.clock.sleep(self.takes).await;
        Report::of(Outcome::Succeeded)
    }
}

struct Fleet {
    clock: SimClock,
    mem: MemStore,
    target: Recorder,
}

impl Fleet {
    fn new(takes: Duration) -> Self {
        let clock = SimClock::new();
        let target = Recorder {
            clock: clock.clone(),
            takes,
            started: Arc::default(),
        };
        Self {
            mem: MemStore::new(Arc::new(clock.clone())),
            clock,
            target,
        }
    }

    async fn node(&self, name: &str, parts: &str) -> Node {
        self.node_with(NodeConfig {
            name: name.to_owned(),
            parts: parts.parse().unwrap(),
            ..NodeConfig::default()
        })
        .await
    }

    async fn node_with(&self, config: NodeConfig) -> Node {
        self.node_by(NodeClock::new(self.clock.clone(), 1), config)
            .await
    }

    async fn node_by(&self, clock: NodeClock, config: NodeConfig) -> Node {
        let config = NodeConfig {
            clock: ClockOf::Store,
            ..config
        };
        let registry = Registry::default().with("http", Arc::new(self.target.clone()));
        let store = Arc::new(self.mem.clone());
        let started = Node::start(store, Arc::new(clock), registry, config).await;
        started.unwrap()
    }

    async fn create(&self, number: u8, schedule: Schedule, overlap: Overlap) -> Arc<Job> {
        let now = Clock::now(&self.clock);
        let def = Definition {
            overlap,
            ..Definition::new(schedule, Target::http("http://localhost/").unwrap())
        };
        let job = Job::new(
            JobId::new(now, [number; 10]),
            TenantId::DEFAULT,
            None,
            def,
            now,
        );
        let job = Arc::new(job);
        let new = NewJob {
            job: Arc::clone(&job),
            idempotency: None,
        };
        self.mem.create_jobs(&[new]).await.unwrap();
        job
    }

    /// So many jobs that run every second, each at its own milliseconds.
    async fn every_second(&self, count: u8, overlap: Overlap) {
        for number in 0..count {
            let now = Clock::now(&self.clock);
            let anchor = now.plus(Duration::from_millis(7 * u64::from(number)));
            let every = Every::parse("PT1S", anchor, Zone::get("UTC").unwrap()).unwrap();
            self.create(number, every.into(), overlap).await;
        }
    }

    async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// What started since the last call.
    fn started(&self) -> Vec<Started> {
        std::mem::take(&mut self.target.started.lock().unwrap())
    }

    /// No slot between two moments is without its run, and none has two.
    fn assert_whole(&self, started: &[Started], jobs: usize, from: Timestamp, to: Timestamp) {
        let within = |it: &&Started| it.due_at >= from && it.due_at < to;
        let mut runs: Vec<RunId> = started.iter().filter(within).map(|it| it.run).collect();
        let count = runs.len();
        runs.sort_unstable();
        runs.dedup();
        assert_eq!(runs.len(), count, "started twice");
        let seconds = usize::try_from(to.since(from).as_secs()).unwrap();
        assert_eq!(count, jobs * seconds);
        let all = self.mem.all_runs();
        let skipped = all
            .iter()
            .filter(|run| run.state == RunState::Skipped && run.due_at >= from && run.due_at < to);
        assert_eq!(skipped.count(), 0);
    }
}

fn latest(started: &[Started]) -> Duration {
    started.iter().map(|it| it.late).max().unwrap_or_default()
}

const SHORT: Duration = Duration::from_millis(20);
const HAND_OVER: Duration = Duration::from_millis(250);

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_hands_over_without_a_gap() {
    for overlap in [Overlap::Allow, Overlap::Skip] {
        let fleet = Fleet::new(SHORT);
        let (one, two) = (
            fleet.node("one", "schedule,execute").await,
            fleet.node("two", "schedule,execute").await,
        );
        fleet.pass(2).await;
        fleet.every_second(120, overlap).await;
        fleet.pass(10).await;
        let begun = Clock::now(&fleet.clock);
        fleet.started();
        fleet.pass(2).await;
        one.stop(Duration::from_secs(5)).await;
        fleet.pass(5).await;
        let end = Timestamp::from_millis(begun.as_millis() + 6_000);
        let started = fleet.started();
        fleet.assert_whole(&started, 120, begun, end);
        assert!(latest(&started) <= HAND_OVER, "{:?}", latest(&started));
        assert!(started.iter().any(|it| it.node == "one"));
        two.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_takes_its_share_without_a_gap() {
    let fleet = Fleet::new(SHORT);
    let one = fleet.node("one", "schedule,execute").await;
    fleet.pass(2).await;
    fleet.every_second(120, Overlap::Skip).await;
    fleet.pass(10).await;
    let begun = Clock::now(&fleet.clock);
    fleet.started();
    let two = fleet.node("two", "schedule,execute").await;
    fleet.pass(7).await;
    let started = fleet.started();
    let end = Timestamp::from_millis(begun.as_millis() + 6_000);
    fleet.assert_whole(&started, 120, begun, end);
    assert!(latest(&started) <= HAND_OVER, "{:?}", latest(&started));
    assert!(started.iter().filter(|it| it.node == "two").count() > 100);
    one.stop(Duration::ZERO).await;
    two.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_a_node_whose_clock_is_wrong_go_to_others() {
    let fleet = Fleet::new(SHORT);
    let good = fleet.node("good", "schedule,execute").await;
    let clock = NodeClock::new(fleet.clock.clone(), 2);
    let skew = Arc::clone(&clock.skew);
    let config = NodeConfig {
        name: "bad".to_owned(),
        ..NodeConfig::default()
    };
    let bad = fleet.node_by(clock, config).await;
    fleet.pass(3).await;
    fleet.every_second(100, Overlap::Allow).await;
    let shards = |name: &str| {
        let nodes = good.handle().nodes().peers;
        let peer = nodes.into_iter().find(|peer| peer.node.name == name);
        peer.unwrap().shards
    };
    for (off, fires) in [(30_000, true), (600_000, false), (-30_000, true)] {
        skew.store(off, Ordering::SeqCst);
        fleet.pass(5).await;
        let begun = Clock::now(&fleet.clock);
        fleet.started();
        fleet.pass(6).await;
        let started = fleet.started();
        let end = Timestamp::from_millis(begun.as_millis() + 5_000);
        fleet.assert_whole(&started, 100, begun, end);
        assert!(latest(&started) <= SHORT, "{off}: {:?}", latest(&started));
        assert_eq!(started.iter().any(|it| it.node == "bad"), fires, "{off}");
        assert_eq!(shards("bad") > 0, fires, "{off}");
        assert_eq!(shards("good") + shards("bad"), 256);
        assert_eq!(bad.handle().health().clock.is_none(), fires);
    }
    good.stop(Duration::ZERO).await;
    bad.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn clock_and_hands_may_be_apart() {
    let fleet = Fleet::new(SHORT);
    let clock = fleet.node("clock", "schedule").await;
    let hands = [
        fleet.node("left", "execute").await,
        fleet.node("right", "execute").await,
    ];
    let door = fleet.node("door", "api").await;
    fleet.pass(3).await;
    fleet.every_second(100, Overlap::Skip).await;
    fleet.pass(5).await;
    let begun = Clock::now(&fleet.clock);
    fleet.started();
    fleet.pass(12).await;
    let started = fleet.started();
    let end = Timestamp::from_millis(begun.as_millis() + 10_000);
    fleet.assert_whole(&started, 100, begun, end);
    assert!(
        latest(&started) <= Duration::from_millis(5),
        "{:?}",
        latest(&started)
    );
    let of = |name: &str| started.iter().filter(|it| it.node == name).count();
    assert_eq!((of("clock"), of("door")), (0, 0));
    assert!(
        of("left") > 100 && of("right") > 100,
        "both have hands: {} {}",
        of("left"),
        of("right")
    );
    let nodes = door.handle().nodes().peers;
    let held = nodes
        .iter()
        .map(|peer| (peer.node.name.as_str(), peer.shards));
    let mut held: Vec<_> = held.filter(|(_, shards)| *shards > 0).collect();
    held.sort_unstable();
    assert_eq!(held, [("clock", 256)]);
    for node in hands.into_iter().chain([clock, door]) {
        node.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_busy_node_cannot_start_is_claimed_by_one_with_hands_free() {
    let fleet = Fleet::new(Duration::from_secs(3));
    let busy = fleet
        .node_with(NodeConfig {
            name: "busy".to_owned(),
            parts: "schedule,execute".parse().unwrap(),
            running_max: 2,
            ..NodeConfig::default()
        })
        .await;
    let free = fleet.node("free", "execute").await;
    fleet.pass(3).await;
    let at = Clock::now(&fleet.clock).plus(Duration::from_secs(3));
    for number in 0..100 {
        let moment = at.plus(Duration::from_millis(50 * u64::from(number)));
        let once = Schedule::from(Slot(moment));
        fleet.create(number, once, Overlap::Allow).await;
    }
    fleet.pass(25).await;
    let started = fleet.started();
    assert_eq!(started.len(), 100);
    let helped = started.iter().filter(|it| it.node == "free").count();
    assert!(helped > 50, "{helped} were taken");
    for node in [busy, free] {
        node.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_made_at_one_node_is_known_to_the_one_that_fires_it() {
    let fleet = Fleet::new(SHORT);
    let door = fleet.node("door", "api").await;
    let works = fleet.node("works", "schedule,execute").await;
    // Long enough for plan to have looked at everything, and not to look again soon.
    fleet.clock.sleep(Duration::from_millis(10_400)).await;
    for number in 0..20 {
        let at = Clock::now(&fleet.clock).plus(Duration::from_millis(200));
        let job = fleet
            .create(number, Schedule::from(Slot(at)), Overlap::Allow)
            .await;
        door.handle().offer(&job);
        fleet.clock.sleep(Duration::from_millis(300)).await;
    }
    let started = fleet.started();
    assert_eq!(started.len(), 20);
    assert!(
        latest(&started) <= Duration::from_millis(5),
        "{:?}",
        latest(&started)
    );
    door.stop(Duration::ZERO).await;
    works.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_just_in_time_elsewhere_does_not_cost_the_next_slot() {
    // It ends 5 ms before the next slot is due, and after that slot would be fired.
    let fleet = Fleet::new(Duration::from_millis(995));
    let clock = fleet.node("clock", "schedule").await;
    let hands = fleet.node("hands", "execute").await;
    fleet.pass(3).await;
    fleet.every_second(5, Overlap::Skip).await;
    fleet.pass(5).await;
    let begun = Clock::now(&fleet.clock);
    fleet.started();
    fleet.pass(12).await;
    let end = Timestamp::from_millis(begun.as_millis() + 10_000);
    fleet.assert_whole(&fleet.started(), 5, begun, end);
    clock.stop(Duration::ZERO).await;
    hands.stop(Duration::ZERO).await;
}

#[test]
fn all_parts_are_the_default() {
    assert_eq!(NodeConfig::default().parts, Parts::default());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_beside_one_that_just_came_keeps_no_shards_while_its_attempts_end() {
    let fleet = Fleet::new(Duration::from_secs(8));
    let one = fleet.node("one", "schedule,execute").await;
    fleet.pass(3).await;
    fleet.every_second(20, Overlap::Allow).await;
    fleet.clock.sleep(Duration::from_millis(5_300)).await;
    fleet.started();
    let two = fleet.node("two", "schedule,execute").await;
    one.stop(Duration::from_secs(10)).await;
    fleet.pass(15).await;
    let started = fleet.started();
    assert!(
        latest(&started) < Duration::from_secs(2),
        "{:?}",
        latest(&started)
    );
    two.stop(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn long_attempts_on_one_node_do_not_keep_runs_from_another() {
    let fleet = Fleet::new(Duration::from_secs(60));
    let config = NodeConfig {
        name: "busy".to_owned(),
        parts: "schedule,execute".parse().unwrap(),
        running_max: 100,
        ..NodeConfig::default()
    };
    let busy = fleet.node_with(config).await;
    let free = fleet.node("free", "execute").await;
    fleet.pass(3).await;
    let now = Clock::now(&fleet.clock);
    for number in 0..150 {
        let after = if number < 100 { 3 } else { 8 };
        let once = Schedule::from(Slot(now.plus(Duration::from_secs(after))));
        fleet.create(number, once, Overlap::Allow).await;
    }
    fleet.pass(100).await;
    let started = fleet.started();
    assert_eq!(started.len(), 150);
    assert!(
        latest(&started) < Duration::from_secs(2),
        "{:?}",
        latest(&started)
    );
    assert!(started.iter().any(|it| it.node == "free"));
    for node in [busy, free] {
        node.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_ready_before_shards_can_fall_to_it() {
    let fleet = Fleet::new(SHORT);
    let node = fleet.node("one", "schedule,execute").await;
    let handle = node.handle().clone();
    for _ in 0..10_000 {
        let peers = handle.nodes().peers;
        let said = peers.iter().any(|peer| peer.node_status.schedules);
        assert!(said || !handle.health().is_ready());
        fleet.clock.sleep(Duration::from_micros(200)).await;
    }
    assert!(handle.health().is_ready());
    node.stop(Duration::ZERO).await;
    for parts in ["api", "execute"] {
        let apart = fleet.node("apart", parts).await;
        fleet.pass(3).await;
        assert!(apart.handle().health().is_ready(), "{parts}");
        apart.stop(Duration::ZERO).await;
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_of_the_gone_are_ended_where_nobody_schedules() {
    let fleet = Fleet::new(Duration::from_secs(5));
    let clock = fleet.node("clock", "schedule").await;
    let gone = fleet.node("gone", "execute").await;
    fleet.pass(2).await;
    let due = Slot(Clock::now(&fleet.clock).plus(Duration::from_secs(3)));
    fleet.create(1, due.into(), Overlap::Allow).await;
    fleet.pass(4).await;
    assert_eq!(fleet.started().len(), 1);
    gone.crash();
    clock.stop(Duration::ZERO).await;
    let hands = [
        fleet.node("left", "execute").await,
        fleet.node("right", "execute").await,
    ];
    fleet.pass(20).await;
    let again = fleet.started();
    assert_eq!(again.len(), 1, "{again:?}");
    let all = fleet.mem.all_runs();
    let [run] = all.as_slice() else {
        panic!("{all:?}")
    };
    let outcomes: Vec<Outcome> = run.attempts.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [Outcome::Lost, Outcome::Succeeded]);
    for node in hands {
        node.stop(Duration::ZERO).await;
    }
}
