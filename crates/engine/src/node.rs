//! A node: one presence after another, each with its own duties. What a presence holds lives and
//! dies with it, so being fenced means starting over with empty hands.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use executor::Registry;
use model::schedule::tzdb_version;
use model::shard::ShardSet;
use model::{Level, Observer, Parts, PresenceId, Timestamp, limits};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::{Leases, NodeInfo, Store, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use crate::beats::Heard;
use crate::beyond::Beyond;
use crate::clock::Clock;
use crate::desk::{Desk, Endings};
use crate::dispatch::Dispatch;
use crate::duties;
use crate::duty::{self, Builder};
use crate::flaw::Flaw;
use crate::handle::{Handle, Offer, Shared};
use crate::lock;
use crate::metrics::Metrics;
use crate::offset::OffsetClock;
use crate::payloads::Payloads;
use crate::timed::{Between, Timed};
use crate::wheel::Wheel;

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
    /// For people, and for targets that ask who called.
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
    pub history_keep: Duration,
    pub finished_keep: Duration,
    /// How old the oldest due and unheld slot may be before the node calls itself ill.
    pub health_bound: Duration,
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
            history_keep: limits::HISTORY_KEEP,
            finished_keep: limits::FINISHED_KEEP,
            health_bound: Duration::from_secs(30),
            seed: 0,
            flaw: Flaw::None,
        }
    }
}

/// What a presence's duties share.
pub struct Context {
    pub shared: Arc<Shared>,
    pub store: Arc<dyn Store>,
    pub registry: Registry,
    pub config: NodeConfig,
    pub node: Arc<str>,
    pub presence: Presence,
    pub leases: Mutex<Arc<Leases>>,
    /// What the last beat brought.
    pub heard: Mutex<Heard>,
    /// Since when which of the others are silent.
    pub observer: Mutex<Observer>,
    /// Shards whose runs others leave.
    pub left: Mutex<ShardSet>,
    /// Set when the node begins to stop: shards do not fall to it any more.
    pub stopping: CancellationToken,
    /// Shards are asked for and given up one call at a time; nothing else is written meanwhile.
    pub leasing: tokio::sync::Mutex<()>,
    pub pausing: AtomicBool,
    /// Set while what is due soon is fired before the shards are given up.
    pub handing_over: AtomicBool,
    pub wheel: Mutex<Wheel>,
    pub dispatch: Dispatch,
    pub beyond: Beyond,
    pub endings: Endings,
    pub payloads: Payloads,
    /// Ends every attempt where it stands: the presence is gone.
    pub kill: CancellationToken,
    pub rng: Mutex<StdRng>,
}

impl Context {
    /// Of a presence that was just joined, with an executor for nothing.
    pub fn new(
        shared: &Arc<Shared>,
        config: &NodeConfig,
        presence: Presence,
        endings: Endings,
        (stopping, kill): (CancellationToken, CancellationToken),
    ) -> Self {
        let leases = Leases {
            presence: presence.id,
            epochs: BTreeMap::new(),
        };
        Self {
            shared: Arc::clone(shared),
            store: Arc::clone(&shared.store),
            registry: Registry::default(),
            config: config.clone(),
            node: Arc::from(config.name.as_str()),
            leases: Mutex::new(Arc::new(leases)),
            heard: Mutex::default(),
            observer: Mutex::new(config.flaw.observer()),
            left: Mutex::default(),
            stopping,
            leasing: tokio::sync::Mutex::default(),
            pausing: AtomicBool::new(false),
            handing_over: AtomicBool::new(false),
            presence,
            wheel: Mutex::new(Wheel::default()),
            dispatch: Dispatch::new(&shared.metrics),
            beyond: Beyond::default(),
            endings,
            payloads: Payloads::default(),
            kill,
            rng: Mutex::new(StdRng::seed_from_u64(config.seed)),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub fn leases(&self) -> Arc<Leases> {
        Arc::clone(&lock(&self.leases))
    }

    pub fn chance(&self) -> f64 {
        lock(&self.rng).random::<f64>()
    }

    /// Whether this node may still act, by its own count.
    pub fn is_present(&self) -> bool {
        self.presence.holds(self.shared.clock.uptime())
    }

    /// Whether a beat of this presence has been answered: only then it knows who lives and what time it is.
    pub fn has_heard(&self) -> bool {
        lock(&self.heard).beats > 0
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    pub fn is_handing_over(&self) -> bool {
        self.handing_over.load(Ordering::Acquire)
    }

    /// Whether attempts may start here.
    pub fn may_start(&self) -> bool {
        self.config.parts.execute && !self.is_stopping() && self.is_present()
    }

    /// How many more attempts could start here.
    pub fn free(&self) -> usize {
        if self.config.parts.execute && !self.is_stopping() {
            self.dispatch.free(self.config.running_max)
        } else {
            0
        }
    }

    /// Whether another node would take what this one leaves.
    pub fn others_have_room(&self) -> bool {
        let me = self.presence.id;
        let peers = lock(&self.shared.peers);
        let mut others = peers.iter().filter(|peer| peer.presence != me);
        others.any(|peer| peer.node_status.executes && peer.node_status.room > 0)
    }
}

/// A presence as its own node counts it: from when the last successful beat was *sent*, less a
/// margin, on a clock that nobody can step.
#[derive(Debug)]
pub struct Presence {
    pub id: PresenceId,
    until: AtomicU64,
    flaw: Flaw,
}

impl Presence {
    pub fn new(id: PresenceId, joined: Duration, flaw: Flaw) -> Self {
        let presence = Self {
            id,
            until: AtomicU64::new(0),
            flaw,
        };
        presence.beaten(joined);
        presence
    }

    pub fn beaten(&self, sent: Duration) {
        let until = sent + limits::PRESENCE_TTL - limits::PRESENCE_MARGIN;
        self.until
            .store(until.as_millis() as u64, Ordering::Release);
    }

    pub fn holds(&self, uptime: Duration) -> bool {
        (uptime.as_millis() as u64) < self.until.load(Ordering::Acquire)
            || self.flaw == Flaw::SkipPresenceCheck
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
        let (shared, offered) = Shared::new(&config, Arc::clone(&store), clock, offset, metrics);
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let grace = Arc::new(Mutex::new(Duration::ZERO));
        let body = Body {
            shared: Arc::clone(&shared),
            store,
            registry,
            config,
            stop: stop.clone(),
            kill: kill.clone(),
            grace: Arc::clone(&grace),
        };
        let first = body.join().await?;
        let task = tokio::spawn(body.live(first, offered));
        Ok(Self {
            handle: Handle::new(shared),
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
    shared: Arc<Shared>,
    store: Arc<dyn Store>,
    registry: Registry,
    config: NodeConfig,
    stop: CancellationToken,
    kill: CancellationToken,
    grace: Arc<Mutex<Duration>>,
}

impl Body {
    async fn join(&self) -> Result<Presence, StoreError> {
        let sent = self.shared.clock.uptime();
        let info = NodeInfo {
            name: self.config.name.clone(),
            version: self.config.version.clone(),
            tables: tzdb_version().to_owned(),
            parts: self.config.parts,
            level: Level::OURS,
            kinds: self.registry.kinds().map(str::to_owned).collect(),
        };
        let id = self.store.join(&info).await?;
        Ok(Presence::new(id, sent, self.config.flaw))
    }

    async fn live(self, first: Presence, mut offered: mpsc::Receiver<Offer>) {
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
                Ok(presence) => offered = self.live_as(presence, offered).await,
                Err(error) => {
                    self.shared.metrics.store_errors.inc();
                    warn!(error = %duty::describe(&error), "cannot join");
                    self.shared.clock.sleep(Duration::from_millis(500)).await;
                }
            }
        }
    }

    fn keep(&self, duties: impl IntoIterator<Item = Builder>) -> Kept {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        for duty in duties {
            tasks.spawn(duty::keep(duty, Arc::clone(&self.shared), stop.clone()));
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
        let (shared, stop) = (Arc::clone(&self.shared), kept.stop.clone());
        if self.config.beats_apart {
            kept.tasks.spawn(duty::keep_apart(beats, shared, stop));
        } else {
            kept.tasks.spawn(duty::keep(beats, shared, stop));
        }
    }

    fn log_fenced(&self, presence: PresenceId) {
        let reason = "the others have not heard of it for as long as a presence lives";
        let node = self.config.name.as_str();
        warn!(node, %presence, reason, "this node was fenced, and joins again");
    }

    /// One presence, from its first duty to its last.
    async fn live_as(
        &self,
        presence: Presence,
        offered: mpsc::Receiver<Offer>,
    ) -> mpsc::Receiver<Offer> {
        let (endings, desk) = Desk::new();
        let tokens = (self.stop.child_token(), self.kill.child_token());
        let context = Arc::new(Context {
            registry: self.registry.clone(),
            ..Context::new(&self.shared, &self.config, presence, endings, tokens)
        });
        let id = context.presence.id;
        // Whatever ends this future ends the attempts too: no attempt outlives its presence.
        let _killer = context.kill.clone().drop_guard();
        info!(presence = %id, "joined");
        let offers = Arc::new(tokio::sync::Mutex::new(offered));
        let mut planning = self.keep(duties::planning(&context, &offers));
        let mut ending = self.keep(duties::ending(&context, desk));
        self.keep_beats(&mut ending, duties::beats(&context));
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {
                planning.end().await;
                let grace = *lock(&self.grace);
                crate::stop::wind_up(&context, grace).await;
                ending.end().await;
                crate::stop::leave(&context).await;
            }
            _ = planning.tasks.join_next() => self.log_fenced(id),
            _ = ending.tasks.join_next() => self.log_fenced(id),
        }
        context.kill.cancel();
        drop((planning, ending, context));
        *lock(&self.shared.shards) = ShardSet::default();
        {
            let mut health = lock(&self.shared.health);
            (health.present, health.planned) = (false, false);
        }
        if !self.stop.is_cancelled() {
            // It was fenced: nobody should have to wait for it.
            let again = async {
                let _fenced = self.store.leave(id).await;
                self.shared.clock.sleep(REJOIN_AFTER).await;
            };
            self.stop.run_until_cancelled(again).await;
        }
        match Arc::try_unwrap(offers) {
            Ok(offers) => offers.into_inner(),
            // Plan is still being dropped; offers are only nudges, so an empty line will do.
            Err(_) => mpsc::channel(1).1,
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
