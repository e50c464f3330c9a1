//! The rooms of a node, and which duty is given which of them. Nobody else sees them together: a duty has its ports, and
//! nothing beyond.
//!
//! What always holds: a panic of a duty costs time and nothing else. Claims, leases and endings live in the rooms, not in
//! a duty; what a duty had taken and not passed on is forgotten here, so that plan or the watchdog finds it in the store.

use std::sync::{Arc, Mutex};

use model::Observer;
use rand::SeedableRng;
use rand::rngs::StdRng;
use store::HandOver;
use tokio::sync::mpsc;

use crate::alerts::{self, Alerts};
use crate::attempt::{Attempts, Chance};
use crate::beats::{self, Beats};
use crate::board::Board;
use crate::claim_due::{self, ClaimDue};
use crate::clock::Measure;
use crate::common::Common;
use crate::count_runs::{self, CountRuns};
use crate::desk::{Desk, Endings};
use crate::dispatch::{self, Dispatch};
use crate::executors::Executors;
use crate::fire::{self, Fire};
use crate::fleet::Marked;
use crate::flush::{self, Flush};
use crate::hand_over::{self, HandOvers, WriteHandOvers};
use crate::handed::{self, EndSilent};
use crate::hints::{self, Hints};
use crate::lateness::Lateness;
use crate::leases::{self, Hold};
use crate::lock;
use crate::marks::{self, Marks};
use crate::nudge::Request;
use crate::origins::Origins;
use crate::payloads::{Payloads, ReadPayloads};
use crate::plan::{self, Plan};
use crate::presence::Presence;
use crate::replays::{self, Replays};
use crate::retention::{self, Retention};
use crate::rules::{self, Rules};
use crate::seal::{self, Sealing};
use crate::secrets::{self, Secrets};
use crate::settle::{self, Settle};
use crate::shards::{Leasing, Shards};
use crate::status::Status;
use crate::stop::Stop;
use crate::wake::{self, WakeWaiting};
use crate::watchdog::{self, Watchdog};

/// What one presence has. It lives and dies with it, so being fenced means starting over with empty hands.
pub(crate) struct Rooms {
    pub common: Common,
    pub presence: Arc<Presence>,
    pub board: Arc<Board>,
    pub shards: Arc<Shards>,
    pub leasing: Arc<Leasing>,
    /// Claims are to be compared: some may have been made that nobody here knows of.
    pub compare: Request,
    origins: Arc<Origins>,
    executors: Arc<Executors>,
    payloads: Arc<Payloads>,
    endings: Endings,
    desk: Arc<tokio::sync::Mutex<Desk>>,
    taken_over: mpsc::Sender<HandOver>,
    hand_overs: Arc<tokio::sync::Mutex<HandOvers>>,
    status: Arc<Status>,
    marked: Marked,
    observer: Arc<Mutex<Observer>>,
}

/// What takes, keeps and gives up the leases of this presence.
fn leasing(
    common: &Common,
    presence: &Arc<Presence>,
    board: &Arc<Board>,
    shards: &Arc<Shards>,
) -> Leasing {
    Leasing {
        shards: Arc::clone(shards),
        presence: Arc::clone(presence),
        board: Arc::clone(board),
        store: common.store.clone(),
        offers: common.offers.clone(),
        fire: common.nudges.fire.clone(),
        watchdog: common.nudges.watchdog.clone(),
        gauges: common.metrics.gauges.clone(),
        one: tokio::sync::Mutex::default(),
    }
}

impl Rooms {
    pub(crate) fn new(common: &Common, presence: Presence) -> Self {
        let Common {
            config,
            clock,
            nudges,
            ..
        } = common;
        let presence = Arc::new(presence);
        common.metrics.rollups.name(presence.id);
        let origins = Arc::new(Origins::new(config.origin_calls_max, &common.metrics));
        *lock(&common.origins) = Some(Arc::clone(&origins));
        let compare = Request::to(&nudges.watchdog);
        let board = Board::new(
            config.running_max,
            Arc::clone(&origins),
            compare.clone(),
            &common.metrics,
        );
        let board = Arc::new(board);
        let shards = Arc::new(Shards::new(presence.id, &nudges.beat));
        let trouble = Arc::clone(&common.by.trouble);
        let registry = common.registry.clone();
        let executed = common.metrics.gauges.executed_by(registry.kinds());
        let executors = Executors::new(registry, Arc::clone(clock), trouble, executed);
        let executors = Arc::new(executors);
        let payloads = Arc::new(Payloads::new(nudges.payloads.clone()));
        let (endings, desk) = Desk::new();
        let (taken_over, hand_overs) = HandOvers::new();
        let leasing = leasing(common, &presence, &board, &shards);
        let status = Status {
            parts: config.parts,
            presence: Arc::clone(&presence),
            board: Arc::clone(&board),
            shards: Arc::clone(&shards),
            clock: Arc::clone(clock),
            skew: common.skew.clone(),
        };
        Self {
            common: common.clone(),
            presence,
            board,
            shards,
            leasing: Arc::new(leasing),
            compare,
            origins,
            executors,
            payloads,
            endings,
            desk: Arc::new(tokio::sync::Mutex::new(desk)),
            taken_over,
            hand_overs: Arc::new(tokio::sync::Mutex::new(hand_overs)),
            status: Arc::new(status),
            marked: Marked::default(),
            observer: Arc::new(Mutex::new(config.flaw.observer())),
        }
    }

    pub(crate) fn beats(&self) -> Beats {
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

    pub(crate) fn hold(&self) -> Hold {
        Hold::new(leases::Ports {
            leasing: Arc::clone(&self.leasing),
            clock: Arc::clone(&self.common.clock),
            fleet: Arc::clone(&self.common.fleet),
            status: Arc::clone(&self.status),
            health: Arc::clone(&self.common.health),
            nudge: self.common.nudges.hold.clone(),
        })
    }

    pub(crate) fn plan(&self) -> Plan {
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

    pub(crate) fn fire(&self) -> Fire {
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
            runs: Arc::clone(&self.common.runs),
            executes: self.common.config.parts.execute,
            flaw: self.common.config.flaw,
            nudge: self.common.nudges.fire.clone(),
            dispatch: self.common.nudges.dispatch.clone(),
            fired_out: self.common.nudges.fired_out.clone(),
        })
    }

    pub(crate) fn claim_due(&self) -> ClaimDue {
        ClaimDue::new(claim_due::Ports {
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
            nudge: self.common.nudges.claim_due.clone(),
            dispatch: self.common.nudges.dispatch.clone(),
        })
    }

    pub(crate) fn dispatch(&self) -> Dispatch {
        let attempts = Attempts {
            board: Arc::clone(&self.board),
            clock: Arc::clone(&self.common.clock),
            stopwatch: Arc::new(Measure(Arc::clone(&self.common.clock))),
            presence: Arc::clone(&self.presence),
            executors: Arc::clone(&self.executors),
            payloads: Arc::clone(&self.payloads),
            vault: Arc::clone(&self.common.vault),
            endings: self.endings.clone(),
            taken_over: self.taken_over.clone(),
            tokens: Arc::clone(&self.common.tokens),
            logs: Arc::clone(&self.common.logs),
            public_url: Arc::from(self.common.config.public_url.as_str()),
            by: self.common.by.clone(),
            metrics: self.common.metrics.clone(),
            lateness: Lateness::of(&self.common.metrics),
            chance: Chance::of_seed(self.common.config.seed),
            marks: self.common.nudges.marks.clone(),
            dispatch: self.common.nudges.dispatch.clone(),
            wake: self.common.nudges.wake.clone(),
        };
        Dispatch::new(dispatch::Ports {
            attempts: Arc::new(attempts),
            nudge: self.common.nudges.dispatch.clone(),
        })
    }

    pub(crate) fn payloads(&self) -> ReadPayloads {
        ReadPayloads::new(Arc::clone(&self.payloads), self.common.store.clone())
    }

    pub(crate) fn settle(&self) -> Settle {
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
            claim_due: self.common.nudges.claim_due.clone(),
            beat: self.common.nudges.beat.clone(),
        })
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks::new(marks::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            runs: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            marked: Arc::clone(&self.marked),
            endings: self.endings.clone(),
            offers: self.common.offers.clone(),
            nudge: self.common.nudges.marks.clone(),
            dispatch: self.common.nudges.dispatch.clone(),
        })
    }

    pub(crate) fn watchdog(&self) -> Watchdog {
        Watchdog::new(watchdog::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            fleet: Arc::clone(&self.common.fleet),
            observer: Arc::clone(&self.observer),
            offers: self.common.offers.clone(),
            executors: Arc::clone(&self.executors),
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

    pub(crate) fn wake(&self) -> WakeWaiting {
        WakeWaiting::new(wake::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            origins: Arc::clone(&self.origins),
            offers: self.common.offers.clone(),
            metrics: self.common.metrics.clone(),
            executes: self.common.config.parts.execute,
            nudge: self.common.nudges.wake.clone(),
            fire: self.common.nudges.fire.clone(),
            claim_due: self.common.nudges.claim_due.clone(),
        })
    }

    pub(crate) fn hand_over(&self) -> WriteHandOvers {
        WriteHandOvers::new(hand_over::Ports {
            board: Arc::clone(&self.board),
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            hand_overs: Arc::clone(&self.hand_overs),
            nudge: self.common.nudges.hand_over.clone(),
            fire: self.common.nudges.fire.clone(),
        })
    }

    pub(crate) fn handed(&self) -> EndSilent {
        let it = &self.common;
        EndSilent::new(handed::Ports {
            store: it.store.clone(),
            clock: Arc::clone(&it.clock),
            presence: Arc::clone(&self.presence),
            skew: it.skew.clone(),
            shards: Arc::clone(&self.shards),
            observer: Arc::clone(&self.observer),
            followed: it.outside.followed(),
            chance: StdRng::seed_from_u64(it.config.seed),
            flaw: it.config.flaw,
            nudge: it.nudges.handed.clone(),
        })
    }

    pub(crate) fn retention(&self) -> Retention {
        Retention::new(retention::Ports {
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            history_keep: self.common.config.history_keep,
            finished_keep: self.common.config.finished_keep,
            hold: self.common.config.hold,
            nudge: self.common.nudges.retention.clone(),
        })
    }

    pub(crate) fn flush(&self) -> Flush {
        Flush::new(flush::Ports {
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            rollups: self.common.metrics.rollups.clone(),
            nudge: self.common.nudges.flush.clone(),
        })
    }

    pub(crate) fn seal(&self) -> Sealing {
        let it = &self.common;
        let held = (Arc::clone(&self.presence), Arc::clone(&self.shards));
        let ways = (it.store.clone(), Arc::clone(&it.clock));
        Sealing::new(seal::Ports::new(
            ways,
            held,
            (&it.config, &it.master_keys),
            &it.nudges.seal,
        ))
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules::new(rules::Ports {
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            fleet: Arc::clone(&self.common.fleet),
            offers: self.common.offers.clone(),
            metrics: self.common.metrics.clone(),
            node: Arc::clone(&self.common.by.node),
            flaw: self.common.config.flaw,
            nudge: self.common.nudges.rules.clone(),
            beat: self.common.nudges.beat.clone(),
        })
    }

    pub(crate) fn replays(&self) -> Replays {
        Replays::new(replays::Ports {
            store: self.common.store.clone(),
            clock: Arc::clone(&self.common.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            offers: self.common.offers.clone(),
            runs: Arc::clone(&self.common.runs),
            hold: self.common.config.hold,
            nudge: self.common.nudges.replays.clone(),
        })
    }

    pub(crate) fn alerts(&self) -> Alerts {
        let it = &self.common;
        Alerts::new(alerts::Ports {
            store: it.store.clone(),
            clock: Arc::clone(&it.clock),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            offers: it.offers.clone(),
            hold: it.config.hold,
            nudge: it.nudges.alerts.clone(),
        })
    }

    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::new(secrets::Ports {
            vault: Arc::clone(&self.common.vault),
            nudge: self.common.nudges.secrets.clone(),
        })
    }

    pub(crate) fn count_runs(&self) -> CountRuns {
        let it = &self.common;
        CountRuns::new(count_runs::Ports {
            counts: Arc::clone(&it.runs),
            store: it.store.clone(),
            clock: Arc::clone(&it.clock),
            counter: *it.counter.get_or_init(|| self.presence.id),
            nudge: it.nudges.count_runs.clone(),
        })
    }

    pub(crate) fn hints(&self) -> Hints {
        Hints::new(hints::Ports {
            store: self.common.store.clone(),
            presence: Arc::clone(&self.presence),
            shards: Arc::clone(&self.shards),
            offers: self.common.offers.clone(),
            nudge: self.common.nudges.hints.clone(),
            claim_due: self.common.nudges.claim_due.clone(),
            beat: self.common.nudges.beat.clone(),
            rules: self.common.nudges.rules.clone(),
            keys: self.common.nudges.keys.clone(),
        })
    }

    pub(crate) fn stop(&self) -> Stop {
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
