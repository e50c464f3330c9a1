//! Settle: from outcomes to verdicts, written in batches. Every outcome, also a lost one, leaves
//! through here; nothing else ends an attempt. It never waits for the presence: every settlement
//! carries its claim, the store refuses what is not ours any more, and beats may wait for settle.
//!
//! Ends from which nothing follows are written apart from those that take the store's slow path: a job that skips
//! overlaps waits for its run's end to be written, and should not wait for what takes others longer.
//!
//! One that the store will not have for its data is written once more without what it said; a batch that fails
//! for data is halved until such a one stands alone.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::rollup::Count;
use model::view::PausedJob;
use model::{Attempt, Run, RunId, RunState, TenantId, Timestamp, Verdict, limits};
use store::{DueRun, EngineStore, Hint, Settled, Settlement, StoreError};
use tokio::sync::Mutex;
use tracing::{debug, error};

use crate::board::{Board, EndedClaim};
use crate::clock::Clock;
use crate::desk::{Batch, By, Desk, KINDS, Kind};
use crate::duty::{Duty, Wake, describe, text_of};
use crate::executors::Executors;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::presence::Presence;
use crate::shards::Shards;

/// Writes under way at once: of ends from which nothing follows, and of the others, which take longer. There are few
/// connections.
const DEPTH: usize = 2;
const DEPTH_SLOW_PATH: usize = 1;
/// The next write begins with the answer to one before, or when none has come for so long: the store may be far.
const GATHER: Duration = Duration::from_millis(15);
/// How often to look whether writes may begin again.
const PAUSE: Duration = Duration::from_millis(1);

/// A batch over which the store panicked so often is taken for one that it cannot write.
const PANICS_MAX: u32 = 3;

/// What came of a write.
enum Answer {
    Settled(Vec<Settled>),
    Failed(StoreError),
    /// The store panicked. Other writes are not to end with this one.
    Panicked(String),
}

/// The number of a write, and what came of it.
type Done = (u64, Answer);

pub(crate) struct Ports {
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub executors: Arc<Executors>,
    pub offers: Offers,
    /// It outlives a settle that panicked.
    pub desk: Arc<Mutex<Desk>>,
    pub by: By,
    pub metrics: Metrics,
    /// Whether this node executes.
    pub executes: bool,
    pub nudge: Nudge,
    pub fire: Nudge,
    pub claim_due: Nudge,
    pub beat: Nudge,
}

pub(crate) struct Settle {
    ports: Ports,
    /// Whether it has looked for what one before it left under way.
    begun: bool,
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl Settle {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            begun: false,
            in_flight: FuturesUnordered::new(),
        }
    }

    fn write(&mut self, desk: &mut Desk, kind: Kind, batch: Arc<Batch>) {
        let metrics = &self.ports.metrics;
        metrics.settle_batch.observe(batch.settlements.len() as f64);
        let write = desk.begin(kind, &batch);
        let (me, store) = (self.ports.presence.id, Arc::clone(&self.ports.store));
        self.in_flight.push(Box::pin(async move {
            let settled = async { store.settle(me, &batch.settlements).await };
            let answer = match AssertUnwindSafe(settled).catch_unwind().await {
                Ok(Ok(answers)) => Answer::Settled(answers),
                Ok(Err(error)) => Answer::Failed(error),
                Err(panic) => Answer::Panicked(text_of(panic.as_ref()).to_owned()),
            };
            (write, answer)
        }));
    }

    /// Puts writes under way while there is something to write. An executor that is faster waits.
    fn fill(&mut self, desk: &mut Desk) {
        loop {
            let mut written = false;
            for kind in KINDS {
                let depth = match kind {
                    Kind::FastPath => DEPTH,
                    Kind::SlowPath => DEPTH_SLOW_PATH,
                };
                let line = desk.line(kind);
                line.take(&self.ports.by);
                let has_place = line.under_way < depth;
                if let Some(batch) = has_place.then(|| line.next()).flatten() {
                    self.write(desk, kind, batch);
                    written = true;
                }
            }
            if !written {
                return;
            }
        }
    }

    fn absorb(&self, desk: &mut Desk, (write, answer): Done) -> Result<(), StoreError> {
        let Some(batch) = desk.batch(write) else {
            return Ok(());
        };
        let is_one = batch.settlements.len() == 1;
        let answers = match answer {
            Answer::Settled(answers) => answers,
            Answer::Failed(error @ StoreError::BadRow(_)) if is_one => {
                vec![Settled::Refused(describe(&error))]
            }
            Answer::Failed(StoreError::BadRow(_)) => {
                desk.again_in_halves(write);
                return Ok(());
            }
            Answer::Failed(error) => {
                desk.again(write);
                return Err(error);
            }
            Answer::Panicked(panic) => {
                self.ports.metrics.duty_panicked(self.name());
                error!(duty = self.name(), panic, "the store panicked over a batch");
                if batch.panics + 1 < PANICS_MAX {
                    desk.again_after_panic(write);
                    return Err(StoreError::unavailable(panic));
                } else if !is_one {
                    desk.again_in_halves(write);
                    return Err(StoreError::unavailable(panic));
                }
                vec![Settled::Refused(panic)]
            }
        };
        self.settled(&batch.settlements, &answers);
        let refused = self.refused(&batch, answers);
        desk.answered(write, refused);
        Ok(())
    }

    /// What the store will not have, as it is to be written then. One that was bare already is given up: its claim stays
    /// known here, or it would be taken for one that never started, and is ended as lost when this presence is gone.
    fn refused(&self, batch: &Batch, answers: Vec<Settled>) -> Vec<Settlement> {
        let mut again = Vec::new();
        for (settlement, answer) in batch.settlements.iter().zip(answers) {
            let Settled::Refused(why) = answer else {
                continue;
            };
            let (run, attempt) = (settlement.run.id, settlement.run.attempt);
            self.ports.metrics.refused.inc();
            if batch.is_bare {
                error!(%run, %attempt, error = why, "the end of an attempt cannot be written at all");
            } else {
                error!(%run, %attempt, error = why, "the end of an attempt is refused, and is written without what it said");
                again.push(bare(settlement));
            }
        }
        again
    }

    /// Counts what was written for overviews, all of it at once.
    fn count(&self, batch: &[Settlement], answers: &[Settled]) {
        let written = batch.iter().zip(answers);
        let written = written.filter(|(_, answer)| matches!(answer, Settled::Done { .. }));
        let counts = written.flat_map(|(settlement, _)| counts(settlement));
        let counts: Vec<(TenantId, Count)> = counts.collect();
        let now = self.ports.clock.now();
        self.ports.metrics.rollups.count(now, &counts);
    }

    /// An end may have paused its job. Whoever holds runs of slots ahead looks at its marks at once.
    fn paused(&self, run: &Run, paused: Option<&PausedJob>) {
        let Some(paused) = paused else {
            return;
        };
        self.ports.by.trouble.observe_paused(run, paused);
        self.ports.offers.offer((run.tenant, run.job));
        if paused.marked {
            self.ports.beat.now();
            self.ports.offers.hint_marks();
        }
    }

    /// What was settled is held no more, and what follows from it is passed on.
    fn settled(&self, batch: &[Settlement], answers: &[Settled]) {
        let Ports {
            offers,
            presence,
            executors,
            ..
        } = &self.ports;
        let horizon = self.ports.clock.now().plus(limits::HORIZON);
        let (mut ended, mut next) = (Vec::with_capacity(batch.len()), Vec::new());
        let (mut offered, mut elsewhere) = (Vec::new(), BTreeSet::new());
        for (settlement, answer) in batch.iter().zip(answers) {
            let (run, gone) = (&settlement.run, ended_claim(settlement));
            let (freed, due_at) = match answer {
                Settled::Done {
                    freed,
                    due_at,
                    paused,
                } => {
                    observe(&self.ports.metrics, settlement);
                    self.paused(run, paused.as_deref());
                    (*freed, *due_at)
                }
                Settled::Refused(_) => continue,
                Settled::Stale => {
                    debug!(run = %run.id, attempt = %run.attempt, "was not ours to settle any more");
                    ended.extend((run.claim == Some(presence.id)).then_some(gone));
                    continue;
                }
            };
            ended.extend((run.claim == Some(presence.id)).then_some(gone));
            for due in next_runs(settlement, freed, horizon) {
                if self.ports.executes && offers.is_ours(run.shard()) {
                    next.push(due);
                } else {
                    elsewhere.insert(Hint::Job(run.tenant, run.job));
                }
            }
            // What is beyond this node is looked for by others, in their own time.
            let again = settlement.verdict == Verdict::Release
                && !presence.is_stopping()
                && !executors.is_beyond(run.id);
            if again || due_at.is_some_and(|due_at| due_at <= horizon) {
                offered.push((run.tenant, run.job));
            }
        }
        self.count(batch, answers);
        let nudges_fire = self.ports.board.settled(&ended, &next);
        offered.into_iter().for_each(|offer| offers.offer(offer));
        if !elsewhere.is_empty() {
            let hints: Vec<Hint> = elsewhere.into_iter().collect();
            self.ports.store.hint(&hints);
            self.ports.claim_due.now();
        }
        if nudges_fire {
            self.ports.fire.now();
        }
    }
}

fn ended_claim(settlement: &Settlement) -> EndedClaim {
    EndedClaim {
        run: settlement.run.id,
        attempt: settlement.run.attempt,
        released: settlement.verdict.is_release(),
        waits: matches!(settlement.verdict, Verdict::Wait(_)),
    }
}

/// What an end that is written is counted as, by tenant.
fn counts(settlement: &Settlement) -> impl Iterator<Item = (TenantId, Count)> {
    let attempt = settlement.attempt.as_ref();
    let took = attempt.and_then(|it| Some(it.settled_at.since(it.dispatched_at?)));
    let retried = match settlement.verdict {
        Verdict::RetryAt(_) => Some(Count::Retried),
        Verdict::Succeed
        | Verdict::Bury(_)
        | Verdict::Cancel(_)
        | Verdict::Release
        | Verdict::Wait(_) => None,
    };
    let ended = settlement.end();
    let ended = ended.map(|(state, _)| Count::Ended(state, 1));
    let counts = took.map(Count::Took).into_iter().chain(retried);
    let tenant = settlement.run.tenant;
    counts.chain(ended).map(move |count| (tenant, count))
}

/// Counts an end that is written.
fn observe(metrics: &Metrics, settlement: &Settlement) {
    if let Some(attempt) = &settlement.attempt {
        metrics.settled_with(attempt.outcome);
        if let Some(dispatched_at) = attempt.dispatched_at {
            let took = attempt.settled_at.since(dispatched_at);
            metrics.attempt_took(attempt.outcome, took);
        }
    }
    if let Some((state, _)) = settlement.end() {
        metrics.run_ended(state);
    }
}

/// What may be claimed next after a run was settled: its own retry, and the run that waited for its end.
fn next_runs(
    settlement: &Settlement,
    freed: Option<RunId>,
    horizon: Timestamp,
) -> impl Iterator<Item = DueRun> {
    let run = &settlement.run;
    let due = |id, due_at, state| DueRun {
        run: id,
        tenant: run.tenant,
        job: run.job,
        due_at,
        state,
    };
    let retry = match settlement.verdict {
        Verdict::RetryAt(at) => Some(at).filter(|at| *at <= horizon),
        Verdict::Succeed
        | Verdict::Bury(_)
        | Verdict::Cancel(_)
        | Verdict::Release
        | Verdict::Wait(_) => None,
    };
    let retry = retry.map(|at| due(run.id, at, RunState::Retrying));
    let freed = freed.map(|freed| due(freed, freed.at(), RunState::Ready));
    retry.into_iter().chain(freed)
}

/// All that is said of an attempt whose own words were refused.
const UNSAID: &str = "the store refused what was reported of this attempt";

/// The same end in a form that any store can take: with nothing in it that came from outside. What the attempt came to
/// stays as it was: one that succeeded did.
fn bare(settlement: &Settlement) -> Settlement {
    let mut run = settlement.run.clone();
    for former in &mut run.attempts {
        (former.error, former.output, former.exchange) = (None, Bytes::new(), None);
    }
    let attempt = settlement.attempt.clone().map(|attempt| Attempt {
        error: Some(UNSAID.to_owned()),
        output: Bytes::new(),
        exchange: None,
        ..attempt
    });
    Settlement {
        run,
        verdict: settlement.verdict,
        attempt,
    }
}

#[async_trait]
impl Duty for Settle {
    fn name(&self) -> &'static str {
        "settle"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, _now: Timestamp) -> Result<Wake, StoreError> {
        let clock = Arc::clone(&self.ports.clock);
        // Nobody else has it: it is kept here so that it stays when this duty panics.
        let desk = Arc::clone(&self.ports.desk);
        let mut desk = desk.lock().await;
        if !std::mem::replace(&mut self.begun, true) {
            desk.recover();
        }
        loop {
            let pausing = self.ports.shards.is_pausing();
            if pausing && self.in_flight.is_empty() {
                clock.sleep(PAUSE).await;
                return Ok(Wake::Now);
            }
            if !pausing {
                self.fill(&mut desk);
            }
            if self.in_flight.is_empty() {
                // Nothing to write: wait for the next ending; whatever came with it is taken along.
                desk.next(&self.ports.by).await;
                return Ok(Wake::Now);
            }
            tokio::select! {
                biased;
                Some(done) = self.in_flight.next() => {
                    self.absorb(&mut desk, done)?;
                    return Ok(Wake::Now);
                }
                () = clock.sleep(GATHER) => {}
            }
        }
    }
}
