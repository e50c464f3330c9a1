//! A node: one presence after another, each with its own duties. What a presence holds lives and
//! dies with it, so being fenced means starting over with empty hands.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::Registry;
use model::schedule::tzdb_version;
use model::{Level, Parts, PresenceId, limits};
use store::{NodeInfo, Store, StoreError};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use crate::clock::Clock;
use crate::common::Common;
use crate::duty::{self, Builder};
use crate::flaw::Flaw;
use crate::handle::Handle;
use crate::lock;
use crate::metrics::Metrics;
use crate::offset::{OffsetClock, Skew};
use crate::presence::Presence;
use crate::rooms::Rooms;
use crate::timed::{Between, Timed};
use crate::vault::MasterKeys;

/// Whose clock a node fires by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockOf {
    /// An embedded store has no other.
    #[default]
    Machine,
    /// Many nodes share a store, and its clock.
    Store,
}

#[derive(Debug, Clone)]
pub struct NodeConfig {
    /// For people, and for targets that want to know who called.
    pub name: String,
    /// What it does.
    pub parts: Parts,
    /// Nothing fires, starts or is forgotten here; everything else goes on. For a look at a copy of somebody's data.
    pub hold: bool,
    /// Of the binary; for people.
    pub version: String,
    /// Whose clock the node fires by.
    pub clock: ClockOf,
    /// How far its wall clock may be off the store's.
    pub clock_skew_max: Duration,
    /// Beats have a thread of their own, so that load on the others cannot starve them.
    pub beats_apart: bool,
    /// Attempts under way at once.
    pub running_max: usize,
    /// Calls to one origin that may be under way at once.
    pub origin_calls_max: usize,
    pub history_keep: Duration,
    pub finished_keep: Duration,
    /// How long the audit log is kept.
    pub audit_keep: Duration,
    /// How old the oldest due and unheld slot may be before the node calls itself ill.
    pub health_bound: Duration,
    /// Where whoever has a handed-over attempt reaches this node or its fleet, without a slash at the end.
    pub public_url: String,
    /// What secrets are sealed under; a node without one starts all the same.
    pub master_keys: Option<Arc<MasterKeys>>,
    /// Where chance comes from.
    pub seed: u64,
    pub flaw: Flaw,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            name: "punctual".to_owned(),
            parts: Parts::default(),
            hold: false,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            clock: ClockOf::Machine,
            clock_skew_max: limits::CLOCK_SKEW_MAX,
            beats_apart: false,
            running_max: limits::RUNNING_MAX,
            origin_calls_max: limits::ORIGIN_CALLS_MAX,
            history_keep: limits::HISTORY_KEEP,
            finished_keep: limits::FINISHED_KEEP,
            audit_keep: limits::AUDIT_KEEP,
            health_bound: Duration::from_secs(30),
            public_url: "http://127.0.0.1:8080".to_owned(),
            master_keys: None,
            seed: 0,
            flaw: Flaw::None,
        }
    }
}

/// A running node.
pub struct Node {
    handle: Handle,
    stop: CancellationToken,
    kill: CancellationToken,
    grace: Arc<Mutex<Duration>>,
    task: tokio::task::JoinHandle<()>,
}

impl Node {
    /// Joins the store and starts every duty.
    pub async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        registry: Registry,
        mut config: NodeConfig,
    ) -> Result<Self, StoreError> {
        if config.hold {
            (config.parts.schedule, config.parts.execute) = (false, false);
        }
        let metrics = Metrics::default();
        let timed = Timed {
            clock: Arc::clone(&clock),
            metrics: metrics.clone(),
        };
        let store: Arc<dyn Store> = Arc::new(Between {
            inner: store,
            around: timed,
        });
        let offset = match config.clock {
            ClockOf::Machine => None,
            ClockOf::Store => Some(Arc::new(OffsetClock::new(Arc::clone(&clock)))),
        };
        let clock = match &offset {
            None => clock,
            Some(offset) => Arc::clone(offset) as Arc<dyn Clock>,
        };
        let skew = Skew::new(offset, config.clock_skew_max);
        let common = Common::new(config, store, (clock, skew), registry, metrics);
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let grace = Arc::new(Mutex::new(Duration::ZERO));
        let handle = common.handle();
        let body = Body {
            common,
            stop: stop.clone(),
            kill: kill.clone(),
            grace: Arc::clone(&grace),
        };
        let first = body.join().await?;
        let task = tokio::spawn(body.live(first));
        Ok(Self {
            handle,
            stop,
            kill,
            grace,
            task,
        })
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops in good order: no new work, work under way gets `grace` to finish, the rest is handed back.
    pub async fn stop(self, grace: Duration) {
        *lock(&self.grace) = grace;
        self.stop.cancel();
        if let Err(error) = self.task.await {
            warn!(%error, "the node did not end in good order");
        }
    }

    /// Ends at once, as a crash would: nothing is written, nothing is handed back.
    pub fn crash(self) {
        self.kill.cancel();
        self.task.abort();
    }
}

/// How long a node waits before it joins again.
const REJOIN_AFTER: Duration = Duration::from_secs(1);

struct Body {
    common: Common,
    stop: CancellationToken,
    kill: CancellationToken,
    grace: Arc<Mutex<Duration>>,
}

impl Body {
    async fn join(&self) -> Result<Presence, StoreError> {
        let Common { config, clock, .. } = &self.common;
        let sent = clock.uptime();
        let info = NodeInfo {
            name: config.name.clone(),
            version: config.version.clone(),
            tables: tzdb_version().to_owned(),
            parts: config.parts,
            level: Level::OURS,
            kinds: self.common.registry.kinds().map(str::to_owned).collect(),
        };
        let id = self.common.store.join(&info).await?;
        let tokens = (self.stop.child_token(), self.kill.child_token());
        let clock = Arc::clone(clock);
        Ok(Presence::new(id, sent, clock, tokens, config.flaw))
    }

    async fn live(self, first: Presence) {
        let mut presence = Some(first);
        while !self.stop.is_cancelled() {
            let joined = match presence.take() {
                Some(presence) => Ok(presence),
                None => match self.stop.run_until_cancelled(self.join()).await {
                    Some(joined) => joined,
                    // Nobody acts as whatever it may have become; it lapses.
                    None => return,
                },
            };
            match joined {
                Ok(presence) => self.live_as(presence).await,
                Err(error) => {
                    self.common.metrics.store_errors.inc();
                    warn!(error = %duty::describe(&error), "cannot join");
                    self.common.clock.sleep(Duration::from_millis(500)).await;
                }
            }
        }
    }

    fn keep(&self, duties: impl IntoIterator<Item = Builder>) -> Kept {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for duty in duties {
            tasks.spawn(duty::keep(duty, self.common.keeper(), stop.clone()));
        }
        let _stopper = stop.clone().drop_guard();
        Kept {
            stop,
            tasks,
            _stopper,
        }
    }

    /// Beats with the others, or on a thread of their own.
    fn keep_beats(&self, kept: &mut Kept, beats: Builder) {
        let (keeper, stop) = (self.common.keeper(), kept.stop.clone());
        if self.common.config.beats_apart {
            kept.tasks.spawn(duty::keep_apart(beats, keeper, stop));
        } else {
            kept.tasks.spawn(duty::keep(beats, keeper, stop));
        }
    }

    fn log_fenced(&self, presence: PresenceId) {
        let reason = "the others have not heard of it for as long as a presence lives";
        let node = self.common.config.name.as_str();
        warn!(node, %presence, reason, "this node was fenced, and joins again");
    }

    /// One presence, from its first duty to its last.
    async fn live_as(&self, presence: Presence) {
        let rooms = Arc::new(Rooms::new(&self.common, presence));
        let (id, kill) = (rooms.presence.id, rooms.presence.kill.clone());
        // Whatever ends this future ends the attempts too: no attempt outlives its presence.
        let _killer = kill.clone().drop_guard();
        info!(presence = %id, "joined");
        let mut planning = self.keep(rooms.planning());
        let mut ending = self.keep(rooms.ending());
        self.keep_beats(&mut ending, rooms.beating());
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                planning.end().await;
                let (grace, stop) = (*lock(&self.grace), rooms.stop());
                stop.wind_up(grace).await;
                ending.end().await;
                rooms.count_runs().last().await;
                rooms.flush().last().await;
                stop.leave().await;
            }
            _ = planning.tasks.join_next() => self.log_fenced(id),
            _ = ending.tasks.join_next() => self.log_fenced(id),
        }
        kill.cancel();
        drop((planning, ending, rooms));
        self.common.empty();
        if !self.stop.is_cancelled() {
            // It was fenced: nobody should have to wait for it.
            let again = async {
                let _fenced = self.common.store.leave(id).await;
                self.common.clock.sleep(REJOIN_AFTER).await;
            };
            self.stop.run_until_cancelled(again).await;
        }
    }
}

/// Duties that are kept up together. Dropping them ends them where they stand.
struct Kept {
    stop: CancellationToken,
    tasks: JoinSet<Result<(), StoreError>>,
    /// What runs on a thread of its own is not ended with its task.
    _stopper: DropGuard,
}

impl Kept {
    async fn end(&mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
