//! The watchdog: fences presences that have lapsed, ends the attempts they leave behind, compares the
//! store's claims with memory, and keeps the figure that health is judged by.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use model::retry::LostClaim;
use model::{
    Attempt, AttemptNo, Outcome, PresenceId, Report, RunId, RunState, Timestamp, Verdict, limits,
};
use store::{Claimed, HeldClaim, Hint, Orphan, Settlement, StoreError};
use tracing::{info, warn};

use crate::backlog::{Backlog, Count};
use crate::desk::Ending;
use crate::dispatch::Work;
use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::leases::cared_for;
use crate::lock;
use crate::node::Context;
use crate::settle::window_of;
use crate::wheel::Wheel;

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

pub struct Watchdog {
    context: Arc<Context>,
    /// By uptime.
    compare_at: Duration,
    count: Count,
    compare_whole_at: Duration,
    backlog: Backlog,
    /// Nodes by their presences, also of those that are not heard of any more.
    names: BTreeMap<PresenceId, String>,
}

impl Watchdog {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            compare_at: COMPARE,
            count: Count::default(),
            compare_whole_at: Duration::ZERO,
            backlog: Backlog::default(),
            names: BTreeMap::new(),
        }
    }

    fn learn_names(&mut self) {
        let peers = lock(&self.context.shared.peers);
        if self.names.len() > NAMES_MAX {
            self.names.clear();
        }
        for peer in peers.iter() {
            let name = || peer.node.name.clone();
            self.names.entry(peer.presence).or_insert_with(name);
        }
    }

    fn log_fenced(&mut self, fenced: &[PresenceId]) {
        let context = &self.context;
        context.shared.metrics.fenced.inc_by(fenced.len() as u64);
        for presence in fenced {
            let node = self.names.remove(presence);
            let reason = "it has not been heard of for as long as a presence lives";
            warn!(node, %presence, reason, by = &*context.node, "fenced a node");
        }
    }

    /// Fences whoever has been silent for a lifetime while this node was heard.
    async fn fence_lapsed(&mut self, uptime: Duration) -> Result<(), StoreError> {
        let context = Arc::clone(&self.context);
        let lapsed = lock(&context.observer).lapsed(uptime);
        if lapsed.is_empty() {
            return Ok(());
        }
        let fenced = context.store.fence(context.presence.id, &lapsed).await?;
        if !fenced.is_empty() {
            self.log_fenced(&fenced);
            // Their shards are free for whoever hears of it.
            context.shared.nudges.beat.now();
            context.store.hint(&[Hint::Leases]);
        }
        Ok(())
    }

    /// Ends what others left behind. Answers whether there may be more.
    async fn end_orphans(&self, now: Timestamp) -> Result<bool, StoreError> {
        let context = &self.context;
        let (me, held) = (context.presence.id, context.leases().shards());
        let shards = if context.has_heard() {
            cared_for(&lock(&context.shared.peers), me, held)
        } else {
            held
        };
        if shards.is_empty() {
            return Ok(false);
        }
        let orphans = context.store.orphans(&shards, PAGE).await?;
        let count = orphans.len();
        if count == 0 {
            return Ok(false);
        }
        info!(attempts = count, "ends attempts whose holder is gone");
        let settlements: Vec<Settlement> = orphans
            .into_iter()
            .map(|orphan| {
                let job = Arc::clone(&orphan.job);
                let settlement = context.config.flaw.settle(lost(orphan, now), now);
                context.observe_end(&job, &settlement);
                settlement
            })
            .collect();
        for settlement in settlements {
            if context
                .endings
                .send(Ending::settled(settlement))
                .await
                .is_err()
            {
                return Ok(false);
            }
        }
        // They are read again until settle has written them: give it time for that.
        context.shared.clock.sleep(Duration::from_millis(20)).await;
        // One that cannot be settled must not keep this busy.
        Ok(count == PAGE)
    }

    /// A claim under our presence that memory does not know was made by a write whose answer was lost. It never left
    /// this node, so it is taken up now.
    async fn compare_claims(&self, mut after: Option<RunId>) -> Result<(), StoreError> {
        let context = Arc::clone(&self.context);
        let me = context.presence.id;
        loop {
            let page = context.store.claims(me, after, PAGE).await?;
            let unknown: Vec<RunId> = {
                let wheel = lock(&context.wheel);
                let known = |claim: &HeldClaim| {
                    context.dispatch.knows(claim.run, claim.attempt) || wheel.knows_run(claim.run)
                };
                let strangers = page.iter().filter(|claim| !known(claim));
                strangers.map(|claim| claim.run).collect()
            };
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
        let context = &self.context;
        let leases = context.leases();
        let asked = Asked::begin(context, runs);
        // Asked again, claim answers what this presence holds already.
        let answer = context.store.claim(&leases, runs).await;
        let mut wheel = lock(&context.wheel);
        if asked.is_void(&wheel) {
            // Nobody knows what of it has ended meanwhile.
            context.shared.nudges.compare.store(true, Ordering::Release);
            context.shared.nudges.watchdog.now();
            return answer.map(|_| ());
        }
        let mut works = Vec::new();
        for claimed in answer.as_deref().unwrap_or_default() {
            if let Claimed::Ours(run, job) = claimed
                && !wheel.has_ended(run.id, run.attempt)
            {
                works.push(Work::new((**run).clone(), Arc::clone(job)));
            }
        }
        asked.end(&mut wheel);
        if !works.is_empty() {
            warn!(
                claims = works.len(),
                "takes up claims whose answer was lost"
            );
            // Still under the wheel's lock: settle must not end one of these in between.
            context.dispatch.take(works, context.now());
            context.shared.nudges.dispatch.now();
        }
        drop(wheel);
        answer.map(|_| ())
    }
}

/// Runs that a write under way claims. It ends also when that write panics.
struct Asked<'a> {
    context: &'a Context,
    runs: &'a [RunId],
    anew: u64,
}

impl<'a> Asked<'a> {
    fn begin(context: &'a Context, runs: &'a [RunId]) -> Self {
        let mut wheel = lock(&context.wheel);
        wheel.begin_asking(runs.iter().copied());
        Self {
            context,
            runs,
            anew: wheel.anew(),
        }
    }

    /// Whether the wheel has lost count of it.
    fn is_void(&self, wheel: &Wheel) -> bool {
        wheel.anew() != self.anew
    }

    fn end(mut self, wheel: &mut Wheel) {
        wheel.end_asking(std::mem::take(&mut self.runs).iter().copied());
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.runs.is_empty() {
            let mut wheel = lock(&self.context.wheel);
            if !self.is_void(&wheel) {
                wheel.end_asking(self.runs.iter().copied());
            }
        }
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
        ended_at,
        delivery: job.def.delivery,
        window: window_of(&job),
    };
    let verdict = claim.verdict(now);
    let attempt = (verdict != Verdict::Release).then(|| {
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

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.watchdog
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let context = Arc::clone(&self.context);
        let began = context.shared.clock.uptime();
        self.learn_names();
        self.fence_lapsed(began).await?;
        let more = self.end_orphans(now).await?;
        let uptime = context.shared.clock.uptime();
        let asked = context.shared.nudges.compare.swap(false, Ordering::AcqRel);
        if asked || uptime >= self.compare_at {
            self.compare_at = uptime + COMPARE;
            let whole = asked || uptime >= self.compare_whole_at;
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
        self.backlog.read(&context).await?;
        self.count.step(&context).await?;
        if more {
            return Ok(Wake::Now);
        }
        // Also one that has lapsed since this step looked.
        let lapse = lock(&context.observer).next_lapse(began);
        let uptime = context.shared.clock.uptime();
        let left = lapse.map_or(limits::SLEEP_MAX, |lapse| lapse.saturating_sub(uptime));
        // Wall time is whole milliseconds: anything less would be now.
        let left = left.clamp(Duration::from_millis(1), limits::SLEEP_MAX);
        Ok(Wake::At(context.now().plus(left)))
    }
}
