//! Settle: from outcomes to verdicts, written in batches. Every outcome, also a lost one, leaves
//! through here; nothing else ends an attempt. It never waits for the presence: every settlement
//! carries its claim, the store refuses what is not ours any more, and beats may wait for settle.
//!
//! Ends from which nothing follows are written apart from those that the store has to look at closely: a job that skips
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
use model::{Attempt, AttemptNo, Job, RunId, RunState, Timestamp, Verdict, limits};
use store::{DueRun, Hint, Settled, Settlement, StoreError};
use tokio::sync::Mutex;
use tracing::{debug, error};

use crate::desk::{Batch, Desk, KINDS, Kind};
use crate::duty::{Duty, Wake, describe, text_of};
use crate::handle::{Nudge, Shared};
use crate::lock;
use crate::metrics::Metrics;
use crate::node::Context;
use crate::wheel::Wheel;

/// Writes under way at once: of ends from which nothing follows, and of the others, which take longer. There are few
/// connections.
const DEPTH: usize = 2;
const DEPTH_CLOSE: usize = 1;
/// The next write begins with the answer to one before, or when none has come for so long: the store may be far.
const GATHER: Duration = Duration::from_millis(15);
/// How often to look whether writes may begin again.
const PAUSE: Duration = Duration::from_millis(1);

/// How late a first attempt of the job may be tried again.
pub fn window_of(job: &Job) -> Duration {
    job.def.catch_up.window
}

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

pub struct Settle {
    context: Arc<Context>,
    desk: Arc<Mutex<Desk>>,
    /// Whether it has looked for what one before it left under way.
    begun: bool,
    in_flight: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl Settle {
    pub fn new(context: Arc<Context>, desk: Arc<Mutex<Desk>>) -> Self {
        Self {
            context,
            desk,
            begun: false,
            in_flight: FuturesUnordered::new(),
        }
    }

    fn write(&mut self, desk: &mut Desk, kind: Kind, batch: Arc<Batch>) {
        let context = Arc::clone(&self.context);
        let metrics = &context.shared.metrics;
        metrics.settle_batch.observe(batch.settlements.len() as f64);
        let write = desk.begin(kind, &batch);
        self.in_flight.push(Box::pin(async move {
            let (me, settlements) = (context.presence.id, &batch.settlements);
            let settled = async { context.store.settle(me, settlements).await };
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
                    Kind::Simple => DEPTH,
                    Kind::Close => DEPTH_CLOSE,
                };
                let line = desk.line(kind);
                line.take(&self.context);
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
            Answer::Failed(error @ StoreError::BadRow { .. }) if is_one => {
                vec![Settled::Refused(describe(&error))]
            }
            Answer::Failed(StoreError::BadRow { .. }) => {
                desk.again_in_halves(write);
                return Ok(());
            }
            Answer::Failed(error) => {
                desk.again(write);
                return Err(error);
            }
            Answer::Panicked(panic) => {
                self.context.shared.metrics.duty_panicked(self.name());
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
            self.context.shared.metrics.refused.inc();
            if batch.is_bare {
                error!(%run, %attempt, error = why, "the end of an attempt cannot be written at all");
            } else {
                error!(%run, %attempt, error = why, "the end of an attempt is refused, and is written without what it said");
                again.push(bare(settlement));
            }
        }
        again
    }

    /// What was settled is held no more, and what follows from it is passed on.
    fn settled(&self, batch: &[Settlement], answers: &[Settled]) {
        let context = &self.context;
        let horizon = context.now().plus(limits::HORIZON);
        let mut wheel = lock(&context.wheel);
        let answered = || batch.iter().zip(answers);
        let gone = answered().filter(|(_, answer)| match answer {
            Settled::Done { .. } | Settled::Stale => true,
            Settled::Refused(_) => false,
        });
        forget(context, &mut wheel, gone.map(|(settlement, _)| settlement));
        let mut nudge = false;
        let mut elsewhere = BTreeSet::new();
        for (settlement, answer) in answered() {
            let run = &settlement.run;
            let (freed, due_at) = match answer {
                Settled::Done { freed, due_at } => {
                    observe(&context.shared.metrics, settlement);
                    (*freed, *due_at)
                }
                Settled::Refused(_) => continue,
                Settled::Stale => {
                    debug!(run = %run.id, attempt = %run.attempt, "was not ours to settle any more");
                    continue;
                }
            };
            for next in next_runs(settlement, freed, horizon) {
                if context.config.parts.execute && context.shared.is_ours(run.shard()) {
                    nudge |= wheel.insert_run(next, next.due_at);
                } else {
                    elsewhere.insert(Hint::Job(run.tenant, run.job));
                }
            }
            // What is beyond this node is looked for by others, in their own time.
            let released = settlement.verdict == Verdict::Release
                && !context.is_stopping()
                && !context.is_beyond(run.id);
            if released || due_at.is_some_and(|due_at| due_at <= horizon) {
                context.shared.offer((run.tenant, run.job));
            }
        }
        drop(wheel);
        if !elsewhere.is_empty() {
            let hints: Vec<Hint> = elsewhere.into_iter().collect();
            context.store.hint(&hints);
            context.shared.nudges.take.now();
        }
        if nudge
            || context
                .shared
                .nudges
                .postponing
                .load(std::sync::atomic::Ordering::Acquire)
        {
            context.shared.nudges.fire.now();
        }
    }
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
        Verdict::Succeed | Verdict::Bury(_) | Verdict::Cancel(_) | Verdict::Release => None,
    };
    let retry = retry.map(|at| due(run.id, at, RunState::Retrying));
    let freed = freed.map(|freed| due(freed, freed.at(), RunState::Ready));
    retry.into_iter().chain(freed)
}

/// What was settled is held no more.
fn forget<'a>(
    context: &Context,
    wheel: &mut Wheel,
    settlements: impl Iterator<Item = &'a Settlement>,
) {
    let me = context.presence.id;
    let ours = settlements.filter(|settlement| settlement.run.claim == Some(me));
    let claims: Vec<(RunId, AttemptNo)> = ours
        .map(|Settlement { run, verdict, .. }| {
            // Before dispatch forgets them: nobody may find such a run neither known nor ended.
            if *verdict != Verdict::Release {
                wheel.end_claim(run.id, run.attempt);
            }
            (run.id, run.attempt)
        })
        .collect();
    context.dispatch.forget(claims.into_iter());
}

/// All that is said of an attempt whose own words were refused.
const UNSAID: &str = "the store refused what was reported of this attempt";

/// The same end in a form that any store can take: with nothing in it that came from outside. What the attempt came to
/// stays as it was: one that succeeded did.
fn bare(settlement: &Settlement) -> Settlement {
    let mut run = settlement.run.clone();
    for former in &mut run.attempts {
        (former.error, former.output) = (None, Bytes::new());
    }
    let attempt = settlement.attempt.clone().map(|attempt| Attempt {
        error: Some(UNSAID.to_owned()),
        output: Bytes::new(),
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

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.settle
    }

    async fn step(&mut self, _now: Timestamp) -> Result<Wake, StoreError> {
        let clock = Arc::clone(&self.context.shared.clock);
        // Nobody else has it: it is kept here so that it stays when this duty panics.
        let desk = Arc::clone(&self.desk);
        let mut desk = desk.lock().await;
        if !std::mem::replace(&mut self.begun, true) {
            desk.recover();
        }
        loop {
            let pausing = self.context.is_pausing();
            if pausing && self.in_flight.is_empty() {
                clock.sleep(PAUSE).await;
                return Ok(Wake::Now);
            }
            if !pausing {
                self.fill(&mut desk);
            }
            if self.in_flight.is_empty() {
                // Nothing to write: wait for the next ending; whatever came with it is taken along.
                desk.next(&self.context).await;
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
