//! The watchdog: fences presences that have lapsed, ends the attempts they leave behind, compares the
//! store's claims with memory, and keeps the figure that health is computed from.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::retry::LostClaim;
use model::{
    Attempt, AttemptNo, Observer, Outcome, PresenceId, Report, RunId, RunState, Timestamp, limits,
};
use store::{Claimed, EngineStore, Hint, Orphan, Settlement, StoreError};
use tracing::{info, warn};

use crate::backlog::{Backlog, Count};
use crate::board::{Board, Work};
use crate::clock::Clock;
use crate::desk::{By, Endings};
use crate::duty::{Duty, Wake};
use crate::executors::Executors;
use crate::flaw::Flaw;
use crate::fleet::{Fleet, cared_for};
use crate::handle::HealthRecord;
use crate::lock;
use crate::metrics::Metrics;
use crate::nudge::{Nudge, Request};
use crate::offers::Offers;
use crate::presence::Presence;
use crate::shards::Shards;

/// How often claims are compared.
const COMPARE: Duration = Duration::from_secs(5);
const PAGE: usize = 1_000;
/// Nodes whose names are kept in mind; more than any fleet has.
const NAMES_MAX: usize = 10_000;
/// How often all claims are compared, however old: what lies behind is nearly always over, and costs much to look through
/// while somebody's transaction keeps it in the database.
const WHOLE: Duration = Duration::from_secs(30);
/// Claims are compared from this far back on, by the moments in their names, but for every `WHOLE`.
const COMPARE_FROM: Duration = Duration::from_secs(20);

pub(crate) struct Ports {
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub fleet: Arc<Fleet>,
    /// Since when which of the others are silent.
    pub observer: Arc<Mutex<Observer>>,
    pub offers: Offers,
    pub executors: Arc<Executors>,
    pub endings: Endings,
    pub by: By,
    pub metrics: Metrics,
    pub health: Arc<Mutex<HealthRecord>>,
    pub flaw: Flaw,
    /// Claims are to be compared now.
    pub compare: Request,
    pub nudge: Nudge,
    pub beat: Nudge,
    pub dispatch: Nudge,
}

pub(crate) struct Watchdog {
    ports: Ports,
    /// By uptime.
    compare_at: Duration,
    count: Count,
    compare_whole_at: Duration,
    backlog: Backlog,
    /// Nodes by their presences, also of those that are not heard of any more.
    names: BTreeMap<PresenceId, String>,
}

impl Watchdog {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            compare_at: COMPARE,
            count: Count::default(),
            compare_whole_at: Duration::ZERO,
            backlog: Backlog::default(),
            names: BTreeMap::new(),
        }
    }

    fn learn_names(&mut self) {
        if self.names.len() > NAMES_MAX {
            self.names.clear();
        }
        let names = &mut self.names;
        self.ports.fleet.with_peers(|peers| {
            for peer in peers {
                let name = || peer.node.name.clone();
                names.entry(peer.presence).or_insert_with(name);
            }
        });
    }

    fn log_fenced(&mut self, fenced: &[PresenceId]) {
        self.ports.metrics.fenced.inc_by(fenced.len() as u64);
        for presence in fenced {
            let node = self.names.remove(presence);
            let reason = "it has not been heard of for as long as a presence lives";
            warn!(node, %presence, reason, by = &*self.ports.by.node, "fenced a node");
        }
    }

    /// Fences whoever has been silent for a lifetime while this node was heard.
    async fn fence_lapsed(&mut self, uptime: Duration) -> Result<(), StoreError> {
        let Ports {
            store,
            presence,
            observer,
            ..
        } = &self.ports;
        let lapsed = lock(observer).lapsed(uptime);
        if lapsed.is_empty() {
            return Ok(());
        }
        let fenced = store.fence(presence.id, &lapsed).await?;
        if !fenced.is_empty() {
            self.log_fenced(&fenced);
            // Their shards are free for whoever hears of it.
            self.ports.beat.now();
            self.ports.store.hint(&[Hint::Leases]);
        }
        Ok(())
    }

    /// Ends what others left behind. Answers whether there may be more.
    async fn end_orphans(&self, now: Timestamp) -> Result<bool, StoreError> {
        let Ports {
            store,
            presence,
            fleet,
            by,
            ..
        } = &self.ports;
        let held = self.ports.shards.leases().shards();
        let shards = if fleet.has_heard(presence.id) {
            fleet.with_peers(|peers| cared_for(peers, presence.id, held))
        } else {
            held
        };
        if shards.is_empty() {
            return Ok(false);
        }
        let orphans = store.orphans(&shards, PAGE).await?;
        let count = orphans.len();
        if count == 0 {
            return Ok(false);
        }
        info!(attempts = count, "ends attempts whose holder is gone");
        let settlements = orphans.into_iter().map(|orphan| {
            let job = Arc::clone(&orphan.job);
            let settlement = self.ports.flaw.settle(lost(orphan, now), &job, now);
            by.trouble.observe_end(&job, &settlement);
            settlement
        });
        let settlements: Vec<Settlement> = settlements.collect();
        if self.ports.endings.send_all(settlements).await.is_err() {
            return Ok(false);
        }
        // They are read again until settle has written them: give it time for that.
        self.ports.clock.sleep(Duration::from_millis(20)).await;
        // One that cannot be settled must not keep this busy.
        Ok(count == PAGE)
    }

    /// A claim under our presence that memory does not know was made by a write whose answer was lost. It never left
    /// this node, so it is taken up now.
    async fn compare_claims(&self, mut after: Option<RunId>) -> Result<(), StoreError> {
        let Ports {
            board,
            store,
            presence,
            ..
        } = &self.ports;
        loop {
            let page = store.claims(presence.id, after, PAGE).await?;
            let unknown = board.unknown(page.iter().map(|claim| (claim.run, claim.attempt)));
            if !unknown.is_empty() {
                self.take_up(&unknown).await?;
            }
            after = page.last().map(|claim| claim.run);
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    async fn take_up(&self, runs: &[RunId]) -> Result<(), StoreError> {
        let leases = self.ports.shards.leases();
        let write = self.ports.board.begin_claiming(runs);
        // Called again, claim answers what this presence holds already.
        let answers = self.ports.store.claim(&leases, runs).await?;
        let now = self.ports.clock.now();
        let ours = answers.into_iter().filter_map(|claimed| match claimed {
            Claimed::Ours(run, job) => Some(Work::new(*run, job, now)),
            Claimed::Stale | Claimed::LeaseLost => None,
        });
        let (works, beyond) = self.ports.executors.sort(ours.collect());
        match write.take_up(works, beyond, now) {
            Some((claims, back)) => {
                if claims > 0 {
                    warn!(claims, "takes up claims whose answer was lost");
                    self.ports.dispatch.now();
                }
                // Settle is gone only with the presence.
                let _gone = self.ports.endings.send_all(back).await;
            }
            // Nobody knows what of it has ended meanwhile.
            None => self.ports.compare.make(),
        }
        Ok(())
    }
}

/// The end of an attempt whose holder is gone.
fn lost(orphan: Orphan, now: Timestamp) -> Settlement {
    let Orphan {
        run,
        job,
        ended_at,
        node,
    } = orphan;
    // One that was marked as running has left its holder, whatever its row says of when it is due: a retry may have been
    // made due sooner. It is never handed back under the same number.
    let due_at = if run.state == RunState::Running {
        run.due_at.min(ended_at)
    } else {
        run.due_at
    };
    // A run keeps its first dispatch: of a later attempt nothing is known.
    let first = run.attempt == AttemptNo::FIRST;
    let dispatched_at = run.dispatched_at.filter(|_| first);
    let claim = LostClaim {
        attempt: run.attempt,
        lost: run.lost,
        due_at,
        from: run.could_start_at(),
        ended_at,
        dispatched: run.state == RunState::Running,
        delivery: job.delivery_at(run.version),
        window: job.def.catch_up.window,
    };
    let verdict = claim.verdict(now);
    let attempt = (!verdict.is_release()).then(|| {
        let mut report = Report::of(Outcome::Lost);
        report.error = Some("the node that held the attempt is gone".to_owned());
        Attempt::new(run.attempt, dispatched_at, now, report).made_by(&node)
    });
    Settlement {
        run,
        verdict,
        attempt,
    }
}

#[async_trait]
impl Duty for Watchdog {
    fn name(&self) -> &'static str {
        "watchdog"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let clock = Arc::clone(&self.ports.clock);
        let began = clock.uptime();
        self.learn_names();
        self.fence_lapsed(began).await?;
        let more = self.end_orphans(now).await?;
        let uptime = clock.uptime();
        let requested = self.ports.compare.take();
        if requested || uptime >= self.compare_at {
            self.compare_at = uptime + COMPARE;
            let whole = requested || uptime >= self.compare_whole_at;
            let from = RunId::least_at(now.minus(COMPARE_FROM));
            if whole {
                // Until it is done.
                self.compare_whole_at = Duration::ZERO;
            }
            self.compare_claims(Some(from).filter(|_| !whole)).await?;
            if whole {
                self.compare_whole_at = uptime + WHOLE;
            }
        }
        self.backlog.read(&self.ports).await?;
        self.count.step(&self.ports).await?;
        if more {
            return Ok(Wake::Now);
        }
        // Also one that has lapsed since this step looked.
        let lapse = lock(&self.ports.observer).next_lapse(began);
        let left = lapse.map_or(limits::SLEEP_MAX, |it| it.saturating_sub(clock.uptime()));
        // Wall time is whole milliseconds: anything less would be now.
        let left = left.clamp(Duration::from_millis(1), limits::SLEEP_MAX);
        Ok(Wake::At(clock.now().plus(left)))
    }
}
