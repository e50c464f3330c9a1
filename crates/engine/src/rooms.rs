//! The rooms of a node, and which duty is given which of them. Nobody else sees them together: a duty has its ports, and
//! nothing beyond.
//!
//! What always holds: a panic of a duty costs time and nothing else. Claims, leases and endings live in the rooms, not in
//! a duty; what a duty had taken and not passed on is forgotten here, so that plan or the watchdog finds it in the store.

use std::sync::{Arc, Mutex};

use executor::Registry;
use model::Observer;
use model::shard::ShardSet;
use store::{Hint, Store};

use crate::attempt::{Attempts, Chance, Lateness};
use crate::beats::{self, Beats};
use crate::board::Board;
use crate::clock::Clock;
use crate::desk::{By, Desk, Endings};
use crate::dispatch::{self, Dispatch};
use crate::duty::{Builder, Duty, Keeper};
use crate::executors::Executors;
use crate::fire::{self, Fire};
use crate::fleet::{Fleet, Marked};
use crate::handle::{self, Handle, HealthRecord};
use crate::hints::{self, Hints};
use crate::leases::{self, Hold};
use crate::lock;
use crate::marks::{self, Marks};
use crate::metrics::Metrics;
use crate::node::NodeConfig;
use crate::nudge::{Nudges, Request};
use crate::offers::{Offered, Offers};
use crate::offset::Skew;
use crate::payloads::{Payloads, ReadPayloads};
use crate::plan::{self, Plan};
use crate::presence::Presence;
use crate::retention::{self, Retention};
use crate::rules::{self, Rules};
use crate::settle::{self, Settle};
use crate::shards::{Leasing, Shards};
use crate::status::Status;
use crate::stop::Stop;
use crate::take::{self, Take};
use crate::trouble::Trouble;
use crate::watchdog::{self, Watchdog};

/// What a node has for as long as it runs, whatever its presence.
#[derive(Clone)]
pub struct Common {
    pub config: NodeConfig,
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Store>,
    pub registry: Registry,
    pub skew: Skew,
    pub metrics: Metrics,
    pub nudges: Nudges,
    pub fleet: Arc<Fleet>,
    pub health: Arc<Mutex<HealthRecord>>,
    pub offers: Offers,
    pub offered: Offered,
    by: By,
}

impl Common {
    /// Over a store, by a clock whose skew is known.
    pub fn new(
        config: NodeConfig,
        store: Arc<dyn Store>,
        (clock, skew): (Arc<dyn Clock>, Skew),
        registry: Registry,
        metrics: Metrics,
    ) -> Self {
        let nudges = Nudges::default();
        let (offers, offered) = Offers::new(store.clone(), &nudges.plan);
        let health = HealthRecord {
            looked_at: clock.uptime(),
            ..HealthRecord::default()
        };
        let trouble = Trouble::new(&config.name, Arc::clone(&clock), metrics.clone());
        Self {
            by: By {
                node: Arc::from(config.name.as_str()),
                trouble: Arc::new(trouble),
            },
            fleet: Arc::new(Fleet::new(clock.uptime())),
            health: Arc::new(Mutex::new(health)),
            config,
            clock,
            store,
            registry,
            skew,
            metrics,
            nudges,
            offers,
            offered,
        }
    }

    pub fn handle(&self) -> Handle {
        Handle::new(handle::Ports {
            clock: Arc::clone(&self.clock),
            store: Arc::clone(&self.store),
            metrics: self.metrics.clone(),
            parts: self.config.parts,
            fleet: Arc::clone(&self.fleet),
            offers: self.offers.clone(),
            skew: self.skew.clone(),
            health: Arc::clone(&self.health),
            health_bound: self.config.health_bound,
            hold: self.config.hold,
            beat: self.nudges.beat.clone(),
            rules: self.nudges.rules.clone(),
            keys: self.nudges.keys.clone(),
            take: self.nudges.take.clone(),
        })
    }

    pub fn keeper(&self) -> Keeper {
        Keeper {
            clock: Arc::clone(&self.clock),
            metrics: self.metrics.clone(),
        }
    }

    /// A presence is over: until the next, this node holds nothing.
    pub fn empty(&self) {
        self.offers.set_ours(ShardSet::default());
        let mut health = lock(&self.health);
        (health.present, health.planned) = (false, false);
    }
}

/// What one presence has. It lives and dies with it, so being fenced means starting over with empty hands.
pub struct Rooms {
    pub common: Common,
    pub presence: Arc<Presence>,
    pub board: Arc<Board>,
    pub shards: Arc<Shards>,
    pub leasing: Arc<Leasing>,
    /// Claims are to be compared: some may have been made that nobody here knows of.
    pub compare: Request,
    executors: Arc<Executors>,
    payloads: Arc<Payloads>,
    endings: Endings,
    desk: Arc<tokio::sync::Mutex<Desk>>,
    status: Arc<Status>,
    marked: Marked,
    observer: Arc<Mutex<Observer>>,
}

impl Rooms {
    pub fn new(common: &Common, presence: Presence) -> Self {
        let Common {
            config,
            clock,
            store,
            nudges,
            ..
        } = common;
        let presence = Arc::new(presence);
        let board = Arc::new(Board::new(config.running_max, &common.metrics));
        let shards = Arc::new(Shards::new(presence.id, &nudges.beat));
        let trouble = Arc::clone(&common.by.trouble);
        let registry = common.registry.clone();
        let executors = Arc::new(Executors::new(registry, Arc::clone(clock), trouble));
        let payloads = Arc::new(Payloads::new(nudges.payloads.clone()));
        let (endings, desk) = Desk::new();
        let leasing = Leasing {
            shards: Arc::clone(&shards),
            presence: Arc::clone(&presence),
            board: Arc::clone(&board),
            store: store.clone(),
            offers: common.offers.clone(),
            fire: nudges.fire.clone(),
            watchdog: nudges.watchdog.clone(),
            one: tokio::sync::Mutex::default(),
        };
        let status = Status {
            parts: config.parts,
            presence: Arc::clone(&presence),
            board: Arc::clone(&board),
            clock: Arc::clone(clock),
            skew: common.skew.clone(),
        };
        Self {
            common: common.clone(),
            presence,
            board,
            shards,
            leasing: Arc::new(leasing),
            compare: Request::to(&nudges.watchdog),
            executors,
            payloads,
            endings,
            desk: Arc::new(tokio::sync::Mutex::new(desk)),
            status: Arc::new(status),
            marked: Marked::default(),
            observer: Arc::new(Mutex::new(config.flaw.observer())),
        }
    }

    pub fn beats(&self) -> Beats {
        let Common { nudges, .. } = &self.common;
        Beats::new(beats::Ports {
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            status: Arc::clone(&self.status),
            skew: self.common.skew.clone(),
            fleet: Arc::clone(&self.common.fleet),
            observer: Arc::clone(&self.observer),
            marked: Arc::clone(&self.marked),
            health: Arc::clone(&self.common.health),
            offers: self.common.offers.clone(),
            metrics: self.common.metrics.clone(),
            flaw: self.common.config.flaw,
            nudge: nudges.beat.clone(),
            fire: nudges.fire.clone(),
            dispatch: nudges.dispatch.clone(),
            hold: nudges.hold.clone(),
            marks: nudges.marks.clone(),
            beaten: nudges.beaten.clone(),
        })
    }

    pub fn hold(&self) -> Hold {
        Hold::new(leases::Ports {
            leasing: Arc::clone(&self.leasing),
            clock: Arc::clone(&self.common.clock),
            fleet: Arc::clone(&self.common.fleet),
            status: Arc::clone(&self.status),
            health: Arc::clone(&self.common.health),
            nudge: self.common.nudges.hold.clone(),
        })
    }

    pub fn plan(&self) -> Plan {
        Plan::new(plan::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            shards: Arc::clone(&self.shards),
            offers: self.common.offers.clone(),
            offered: Arc::clone(&self.common.offered),
            executors: Arc::clone(&self.executors),
            executes: self.common.config.parts.execute,
            health: Arc::clone(&self.common.health),
            wheel: self.common.metrics.wheel.clone(),
            nudge: self.common.nudges.plan.clone(),
            fire: self.common.nudges.fire.clone(),
        })
    }

    pub fn fire(&self) -> Fire {
        Fire::new(fire::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            fleet: Arc::clone(&self.common.fleet),
            executors: Arc::clone(&self.executors),
            offers: self.common.offers.clone(),
            endings: self.endings.clone(),
            by: self.common.by.clone(),
            metrics: self.common.metrics.clone(),
            executes: self.common.config.parts.execute,
            flaw: self.common.config.flaw,
            nudge: self.common.nudges.fire.clone(),
            dispatch: self.common.nudges.dispatch.clone(),
            fired_out: self.common.nudges.fired_out.clone(),
        })
    }

    pub fn take(&self) -> Take {
        Take::new(take::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            fleet: Arc::clone(&self.common.fleet),
            status: Arc::clone(&self.status),
            executors: Arc::clone(&self.executors),
            endings: self.endings.clone(),
            compare: self.compare.clone(),
            nudge: self.common.nudges.take.clone(),
            dispatch: self.common.nudges.dispatch.clone(),
        })
    }

    pub fn dispatch(&self) -> Dispatch {
        let attempts = Attempts {
            board: Arc::clone(&self.board),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            executors: Arc::clone(&self.executors),
            payloads: Arc::clone(&self.payloads),
            endings: self.endings.clone(),
            by: self.common.by.clone(),
            metrics: self.common.metrics.clone(),
            lateness: Lateness::of(&self.common.metrics),
            chance: Chance::of_seed(self.common.config.seed),
            marks: self.common.nudges.marks.clone(),
        };
        Dispatch::new(dispatch::Ports {
            attempts: Arc::new(attempts),
            nudge: self.common.nudges.dispatch.clone(),
        })
    }

    pub fn payloads(&self) -> ReadPayloads {
        ReadPayloads::new(Arc::clone(&self.payloads), self.common.store.clone())
    }

    pub fn settle(&self) -> Settle {
        Settle::new(settle::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            executors: Arc::clone(&self.executors),
            offers: self.common.offers.clone(),
            desk: Arc::clone(&self.desk),
            by: self.common.by.clone(),
            metrics: self.common.metrics.clone(),
            executes: self.common.config.parts.execute,
            nudge: self.common.nudges.settle.clone(),
            fire: self.common.nudges.fire.clone(),
            take: self.common.nudges.take.clone(),
        })
    }

    pub fn marks(&self) -> Marks {
        Marks::new(marks::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            marked: Arc::clone(&self.marked),
            endings: self.endings.clone(),
            offers: self.common.offers.clone(),
            nudge: self.common.nudges.marks.clone(),
        })
    }

    pub fn watchdog(&self) -> Watchdog {
        Watchdog::new(watchdog::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            fleet: Arc::clone(&self.common.fleet),
            observer: Arc::clone(&self.observer),
            offers: self.common.offers.clone(),
            endings: self.endings.clone(),
            by: self.common.by.clone(),
            metrics: self.common.metrics.clone(),
            health: Arc::clone(&self.common.health),
            flaw: self.common.config.flaw,
            compare: self.compare.clone(),
            nudge: self.common.nudges.watchdog.clone(),
            beat: self.common.nudges.beat.clone(),
            dispatch: self.common.nudges.dispatch.clone(),
        })
    }

    pub fn retention(&self) -> Retention {
        Retention::new(retention::Ports {
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            history_keep: self.common.config.history_keep,
            finished_keep: self.common.config.finished_keep,
            hold: self.common.config.hold,
            nudge: self.common.nudges.retention.clone(),
        })
    }

    pub fn rules(&self) -> Rules {
        Rules::new(rules::Ports {
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            fleet: Arc::clone(&self.common.fleet),
            offers: self.common.offers.clone(),
            metrics: self.common.metrics.clone(),
            node: Arc::clone(&self.common.by.node),
            nudge: self.common.nudges.rules.clone(),
            beat: self.common.nudges.beat.clone(),
        })
    }

    pub fn hints(&self) -> Hints {
        Hints::new(hints::Ports {
            store: self.common.store.clone(),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            offers: self.common.offers.clone(),
            nudge: self.common.nudges.hints.clone(),
            take: self.common.nudges.take.clone(),
            beat: self.common.nudges.beat.clone(),
            rules: self.common.nudges.rules.clone(),
            keys: self.common.nudges.keys.clone(),
        })
    }

    pub fn stop(&self) -> Stop {
        Stop {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            fleet: Arc::clone(&self.common.fleet),
            leasing: Arc::clone(&self.leasing),
            endings: self.endings.clone(),
            by: self.common.by.clone(),
            fire: self.common.nudges.fire.clone(),
            fired_out: self.common.nudges.fired_out.clone(),
            beat: self.common.nudges.beat.clone(),
            beaten: self.common.nudges.beaten.clone(),
        }
    }
}

/// How each duty is built, and what becomes of its work when it panics.
impl Rooms {
    /// Those that end first when a node stops.
    pub fn planning(self: &Arc<Self>) -> Vec<Builder> {
        vec![
            // The offers that it had taken are in the store.
            self.builder(Self::plan, |it| it.common.offers.replan()),
            // Orphans are read again until they are settled; claims have to be compared after all.
            self.builder(Self::watchdog, |it| it.compare.make()),
            // Keeps nothing.
            self.builder(Self::retention, |_| {}),
            // Begins the rule again: rescheduling twice changes nothing.
            self.builder(Self::rules, |_| {}),
            // What it had heard is lost, so it may have been anything.
            self.builder(Self::hints, |it| it.hints().pass_on(Hint::Lost)),
        ]
    }

    /// Those that go on until everything is handed over; beats apart.
    pub fn ending(self: &Arc<Self>) -> Vec<Builder> {
        vec![
            // Its call may have been written: what the store has is asked for.
            self.builder(Self::hold, |it| it.shards.doubt.make()),
            // The next beat brings all marks again. A run that it was about to mark is shown as waiting for longer.
            self.builder(Self::marks, |_| {}),
            // What it had taken out of the wheel and what it waits for is forgotten: plan reads slots and runs again, and
            // asking for them twice is harmless. Claims that its writes make all the same are found by comparing.
            self.builder(Self::fire, |it| {
                it.board.forget_taken();
                it.common.offers.replan();
                it.compare.make();
            }),
            // The runs it took are ours, or are taken again.
            self.builder(Self::take, |it| {
                it.board
                    .taken(Vec::new(), Vec::new(), it.common.clock.now());
                it.compare.make();
            }),
            // Keeps nothing: claims are on the board.
            self.builder(Self::dispatch, |_| {}),
            // Whoever waits for what it was reading asks again.
            self.builder(Self::payloads, |_| {}),
            // Its desk stays: what was being written is written again. Of runs that follow from what was written before,
            // plan learns.
            self.builder(Self::settle, |it| it.common.offers.replan()),
        ]
    }

    /// Keeps only when it beat last.
    pub fn beating(self: &Arc<Self>) -> Builder {
        self.builder(Self::beats, |_| {})
    }

    fn builder<D: Duty + 'static>(
        self: &Arc<Self>,
        build: impl Fn(&Self) -> D + Send + 'static,
        recover: impl Fn(&Self) + Send + 'static,
    ) -> Builder {
        let (built, recovered) = (Arc::clone(self), Arc::clone(self));
        Builder::new(move || build(&built)).recover(move || recover(&recovered))
    }
}
