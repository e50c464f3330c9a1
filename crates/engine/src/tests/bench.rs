//! The bench: one presence of a node over the reference store, none of its duties running. A test builds the duties that
//! it is about and steps them.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use executor::{Executor, Registry};
use futures_util::{FutureExt, poll};
use model::schedule::tzdb_version;
use model::shard::ShardSet;
use model::{Job, JobId, Level, Parts, PresenceId, RunId, Slot, Timestamp};
use store::mem::MemStore;
use store::{EngineStore, Leases, NodeInfo, NodeStatus, Store, StoreError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::world::{Answering, Calls, HandClock, WrongClock, at};
use crate::alerts::Alerts;
use crate::beats::Beats;
use crate::claim_due::ClaimDue;
use crate::clock::Clock;
use crate::common::Common;
use crate::count_runs::CountRuns;
use crate::dispatch::Dispatch;
use crate::duty::{self, Builder, Duty, Wake};
use crate::fire::Fire;
use crate::flush::Flush;
use crate::hand_over::WriteHandOvers;
use crate::handed::EndSilent;
use crate::handle::Health;
use crate::hints::Hints;
use crate::leases::Hold;
use crate::marks::Marks;
use crate::metrics::Metrics;
use crate::node::NodeConfig;
use crate::nudge::{Nudge, Nudges};
use crate::offset::{OffsetClock, Skew};
use crate::outside::Outside;
use crate::payloads::ReadPayloads;
use crate::plan::Plan;
use crate::presence::Presence;
use crate::replays::Replays;
use crate::retention::Retention;
use crate::rooms::Rooms;
use crate::rules::Rules;
use crate::seal::Sealing;
use crate::settle::Settle;
use crate::shards::Shards;
use crate::timed::Between;
use crate::wake::WakeWaiting;
use crate::watchdog::Watchdog;

/// A step that waits for longer than this waits for ever.
const PATIENCE_MAX: Duration = Duration::from_secs(60);

pub(super) struct Bench {
    pub(super) clock: HandClock,
    /// What is in the store; calls by this way never fail.
    pub(super) mem: MemStore,
    /// The calls that duties make.
    pub(super) calls: Calls,
    pub(super) target: Answering,
    /// Set when the node begins to stop.
    stop: CancellationToken,
    rooms: Rooms,
}

/// What a node says of itself that has an executor for `kinds`.
pub(super) fn node(name: &str, kinds: &[&str]) -> NodeInfo {
    NodeInfo {
        name: name.to_owned(),
        version: "1".to_owned(),
        tables: tzdb_version().to_owned(),
        parts: Parts::default(),
        level: Level::OURS,
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
    }
}

/// One that schedules, and executes nothing.
pub(super) const SCHEDULES: NodeStatus = NodeStatus {
    schedules: true,
    executes: false,
    room: 0,
    lateness: 0,
    offset: None,
    low_water: None,
};

/// One that does everything and has room.
pub(super) const ABLE: NodeStatus = NodeStatus {
    executes: true,
    room: 100,
    ..SCHEDULES
};

impl Bench {
    /// A node that has joined and holds nothing.
    pub(super) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// The same, holding every shard.
    pub(super) async fn holding() -> Self {
        let bench = Self::new().await;
        bench.hold(&ShardSet::ALL).await;
        bench
    }

    pub(super) async fn with(change: impl FnOnce(&mut NodeConfig)) -> Self {
        let target = Answering::default();
        let registry = Registry::default().with("http", Arc::new(target.clone()));
        Self::of(change, registry, target).await
    }

    /// One with this executor.
    pub(super) async fn executing(executor: Arc<dyn Executor>) -> Self {
        let registry = Registry::default().with("http", executor);
        Self::of(|_| {}, registry, Answering::default()).await
    }

    /// One that has no executor for anything.
    pub(super) async fn without_executors() -> Self {
        Self::of(|_| {}, Registry::default(), Answering::default()).await
    }

    async fn of(
        change: impl FnOnce(&mut NodeConfig),
        registry: Registry,
        target: Answering,
    ) -> Self {
        let mut config = NodeConfig {
            name: "first".to_owned(),
            ..NodeConfig::default()
        };
        change(&mut config);
        let clock = HandClock::default();
        let mem = MemStore::new(Arc::new(clock.clone()));
        let time: Arc<dyn Clock> = Arc::new(clock.clone());
        let skew = Skew::new(None, config.clock_skew_max);
        Self::over((clock, mem), config, (time, skew), registry, target).await
    }

    /// Another node over the same store, whose wall clock is wrong by so many milliseconds, and which goes by the store's.
    pub(super) async fn beside(&self, wrong: i64) -> Self {
        let config = NodeConfig::default();
        let wall = Arc::new(WrongClock(self.clock.clone(), wrong));
        let time = Arc::new(OffsetClock::new(wall));
        let skew = Skew::new(Some(Arc::clone(&time)), config.clock_skew_max);
        let around = (self.clock.clone(), self.mem.clone());
        let target = Answering::default();
        Self::over(around, config, (time, skew), Registry::default(), target).await
    }

    async fn over(
        (clock, mem): (HandClock, MemStore),
        config: NodeConfig,
        (time, skew): (Arc<dyn Clock>, Skew),
        registry: Registry,
        target: Answering,
    ) -> Self {
        let calls = Calls::new(clock.clone());
        let store: Arc<dyn Store> = Arc::new(Between {
            inner: Arc::new(mem.clone()),
            around: calls.clone(),
        });
        let kinds: Vec<&str> = registry.kinds().collect();
        let id = mem.join(&node(&config.name, &kinds)).await.unwrap();
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let uptime = Clock::uptime(&clock);
        let tokens = (stop.clone(), kill);
        let presence = Presence::new(id, uptime, Arc::clone(&time), tokens, config.flaw);
        let common = Common::new(config, store, (time, skew), registry, Metrics::default());
        Self {
            clock,
            mem,
            calls,
            target,
            stop,
            rooms: Rooms::new(&common, presence),
        }
    }
}

/// The duties, each with its ports.
impl Bench {
    pub(super) fn beats(&self) -> Beats {
        self.rooms.beats()
    }

    pub(super) fn leases(&self) -> Hold {
        self.rooms.hold()
    }

    pub(super) fn plan(&self) -> Plan {
        self.rooms.plan()
    }

    pub(super) fn fire(&self) -> Fire {
        self.rooms.fire()
    }

    pub(super) fn claim_due(&self) -> ClaimDue {
        self.rooms.claim_due()
    }

    pub(super) fn dispatch(&self) -> Dispatch {
        self.rooms.dispatch()
    }

    pub(super) fn payloads(&self) -> ReadPayloads {
        self.rooms.payloads()
    }

    pub(super) fn settle(&self) -> Settle {
        self.rooms.settle()
    }

    pub(super) fn marks(&self) -> Marks {
        self.rooms.marks()
    }

    pub(super) fn watchdog(&self) -> Watchdog {
        self.rooms.watchdog()
    }

    pub(super) fn wake(&self) -> WakeWaiting {
        self.rooms.wake()
    }

    pub(super) fn flush(&self) -> Flush {
        self.rooms.flush()
    }

    pub(super) fn hand_over(&self) -> WriteHandOvers {
        self.rooms.hand_over()
    }

    pub(super) fn handed(&self) -> EndSilent {
        self.rooms.handed()
    }

    /// What those talk to who have handed-over attempts.
    pub(super) fn outside(&self) -> &Outside {
        &self.rooms.common.outside
    }

    pub(super) fn retention(&self) -> Retention {
        self.rooms.retention()
    }

    pub(super) fn sealing(&self) -> Sealing {
        self.rooms.seal()
    }

    pub(super) fn count_runs(&self) -> CountRuns {
        self.rooms.count_runs()
    }

    pub(super) fn rules(&self) -> Rules {
        self.rooms.rules()
    }

    pub(super) fn replays(&self) -> Replays {
        self.rooms.replays()
    }

    pub(super) fn alerts(&self) -> Alerts {
        self.rooms.alerts()
    }

    pub(super) fn hints(&self) -> Hints {
        self.rooms.hints()
    }

    /// Keeps up a duty.
    pub(super) fn keep(
        &self,
        duty: Builder,
        stop: CancellationToken,
    ) -> JoinHandle<Result<(), StoreError>> {
        tokio::spawn(duty::keep(duty, self.rooms.common.keeper(), stop))
    }

    pub(super) async fn wind_up(&self, grace: Duration) {
        self.rooms.stop().wind_up(grace).await;
    }

    pub(super) async fn leave(&self) {
        self.rooms.stop().leave().await;
    }
}

/// What the node is given to know, without a duty that hears of it.
impl Bench {
    /// Takes every one of these shards that is free, and gives up the others.
    pub(super) async fn hold(&self, shards: &ShardSet) {
        let leases = self.mem.lease(self.me(), shards).await.unwrap();
        self.rooms.leasing.hold(leases);
    }

    /// Others leave the runs of these shards.
    pub(super) fn are_left(&self, shards: ShardSet) {
        self.rooms.shards.set_left(shards);
    }

    /// Time passes, and the presence is kept all the while.
    pub(super) fn pass(&self, span: Duration) {
        self.clock.advance(span);
        self.rooms.presence.beaten(Clock::uptime(&self.clock));
    }

    /// Time passes up to this moment.
    pub(super) fn pass_to(&self, moment: Timestamp) {
        self.pass(moment.since(self.now()));
    }

    /// A beat was answered, and so late that it hardly says what time it is.
    pub(super) fn beat_late(&self) {
        let (received, common) = (Clock::uptime(&self.clock), &self.rooms.common);
        common.fleet.heard(self.me(), Vec::new(), received);
        let (sent, micros) = (
            received - PATIENCE_MAX,
            Clock::now(&self.clock).as_millis() * 1_000,
        );
        common.skew.observe(sent, received, Duration::ZERO, micros);
    }

    pub(super) fn offer(&self, job: &Job) {
        let offer = (job.tenant, job.id);
        self.rooms.common.offers.offer_here(offer);
    }

    pub(super) fn doubt_leases(&self) {
        self.rooms.shards.doubt.make();
    }

    /// Whether writes that rely on leases may not begin.
    pub(super) fn set_pausing(&self, pausing: bool) {
        self.rooms.shards.set_pausing(pausing);
    }

    pub(super) fn set_handing_over(&self) {
        self.rooms.presence.hand_over();
    }

    pub(super) fn begin_stopping(&self) {
        self.stop.cancel();
    }

    pub(super) fn compare_claims(&self) {
        self.rooms.compare.make();
    }

    pub(super) fn close(&self) {
        self.rooms.board.close();
    }
}

/// What the node knows.
impl Bench {
    pub(super) fn me(&self) -> PresenceId {
        self.rooms.presence.id
    }

    pub(super) fn now(&self) -> Timestamp {
        self.rooms.common.clock.now()
    }

    pub(super) fn is_present(&self) -> bool {
        self.rooms.presence.is_sure()
    }

    pub(super) fn leased(&self) -> Arc<Leases> {
        self.rooms.shards.leases()
    }

    pub(super) fn shards(&self) -> &Shards {
        &self.rooms.shards
    }

    pub(super) fn left(&self) -> ShardSet {
        self.rooms.shards.left()
    }

    /// How many slots and runs the wheel has.
    pub(super) fn in_wheel(&self) -> usize {
        self.rooms.board.in_wheel()
    }

    /// When the next of them is due.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.rooms.board.next_due()
    }

    /// Claims whose end is not written.
    pub(super) fn held(&self) -> usize {
        self.rooms.board.unwritten()
    }

    /// Attempts under way.
    pub(super) fn running(&self) -> usize {
        self.rooms.board.running()
    }

    /// Claims that origins keep.
    pub(super) fn queued(&self) -> usize {
        self.rooms.board.kept()
    }

    pub(super) fn health(&self) -> Health {
        self.rooms.common.handle().health()
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.rooms.common.metrics
    }

    pub(super) fn nudges(&self) -> &Nudges {
        &self.rooms.common.nudges
    }

    /// Whether somebody was nudged since the last call.
    pub(super) fn heard(&self, nudge: &Nudge) -> bool {
        nudge.heard().now_or_never().is_some()
    }

    /// The jobs that plan is offered, taken from it.
    pub(super) async fn offered(&self) -> Vec<JobId> {
        let mut offers = self.rooms.common.offered.lock().await;
        let mut jobs = Vec::new();
        while let Ok((_, job)) = offers.try_recv() {
            jobs.push(job);
        }
        jobs
    }
}

/// Steps.
impl Bench {
    /// One step; time passes for as long as it waits for that.
    pub(super) async fn step(&self, duty: &mut dyn Duty) -> Result<Wake, StoreError> {
        let begun = Clock::uptime(&self.clock);
        let mut step = pin!(duty.step(self.now()));
        loop {
            if let Poll::Ready(stepped) = poll!(&mut step) {
                return stepped;
            }
            self.quiet().await;
            if let Poll::Ready(stepped) = poll!(&mut step) {
                return stepped;
            }
            self.pass(Duration::from_millis(1));
            assert!(
                Clock::uptime(&self.clock) - begun < PATIENCE_MAX,
                "a step waits"
            );
        }
    }

    /// Steps until the duty wants to wait, and answers for what.
    pub(super) async fn rest(&self, duty: &mut dyn Duty) -> Wake {
        for _ in 0..100 {
            match self.step(duty).await.unwrap() {
                Wake::Now => {}
                Wake::At(moment) if moment <= self.now() => {}
                wake @ (Wake::At(_) | Wake::Nudged) => return wake,
            }
        }
        panic!("{} does not come to rest", duty.name());
    }

    /// Steps for as long as something happens without waiting: for duties that wait within a step.
    pub(super) async fn drain(&self, duty: &mut dyn Duty) {
        for _ in 0..100 {
            let stepped = duty.step(self.now()).now_or_never();
            self.quiet().await;
            match stepped {
                Some(stepped) => assert_eq!(stepped.unwrap(), Wake::Now),
                None => return,
            }
        }
        panic!("{} goes on for ever", duty.name());
    }

    /// Lets attempts under way go as far as they can.
    pub(super) async fn quiet(&self) {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
}

/// The name of the run of a slot.
pub(super) fn run_of(job: &Job, slot: i64) -> RunId {
    RunId::for_slot(job.id, Slot(at(slot)))
}
