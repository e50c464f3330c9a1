//! Settle: from outcomes to verdicts, written in batches. Every outcome, also a lost one, leaves
//! through here; nothing else ends an attempt. It never waits for the presence: every settlement
//! carries its claim, the store refuses what is not ours any more, and beats may wait for settle.
//!
//! Ends from which nothing follows are written apart from those that the store has to look at closely: a job that skips
//! overlaps waits for its run's end to be written, and should not wait for what takes others longer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use model::{
    Attempt, Job, Outcome, Overlap, Reason, Report, RunId, RunState, Timestamp, Verdict, limits,
};
use store::{DueRun, Hint, Settled, Settlement, StoreError};
use tokio::sync::{Mutex, mpsc};
use tracing::debug;

use crate::dispatch::Work;
use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::lock;
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

/// An attempt that has ended.
#[derive(Debug)]
pub struct Ended {
    pub work: Arc<Work>,
    pub report: Report,
    /// Why it was to be cancelled, when it was.
    pub cancelled: Option<Reason>,
    pub dispatched_at: Timestamp,
    pub settled_at: Timestamp,
}

/// What settle is given: the end of an attempt, with its verdict.
#[derive(Debug)]
pub struct Ending {
    kind: Kind,
    settlement: Settlement,
}

impl Ending {
    /// Its verdict is known already: lost, cancelled before it started, handed back.
    pub fn judged(settlement: Settlement) -> Self {
        let kind = Kind::Close;
        Self { kind, settlement }
    }

    /// An attempt that was delivered, or was tried to be.
    pub fn of(ended: Ended, context: &Context) -> Self {
        let Ended {
            work,
            report,
            cancelled,
            dispatched_at,
            settled_at,
        } = ended;
        let (run, job) = work.into_parts();
        let verdict = match cancelled {
            // It succeeded before it could be stopped: then it did.
            Some(reason) if report.outcome != Outcome::Succeeded => Verdict::Cancel(reason),
            Some(_) | None if report.outcome == Outcome::Succeeded => Verdict::Succeed,
            Some(_) | None => {
                let (retry, chance) = (&job.def.retry, context.chance());
                retry.verdict(run.attempt, run.lost, &report, settled_at, chance)
            }
        };
        context.shared.metrics.settled_with(report.outcome);
        let attempt = Attempt::new(run.attempt, Some(dispatched_at), settled_at, report);
        let kind = kind(&job, verdict);
        let settlement = Settlement {
            run,
            verdict,
            attempt: Some(attempt),
        };
        Self { kind, settlement }
    }
}

/// Where endings go. Each kind has a way of its own, so that one that is full holds up nothing else.
#[derive(Debug, Clone)]
pub struct Endings {
    simple: mpsc::Sender<Settlement>,
    close: mpsc::Sender<Settlement>,
}

/// Settle is gone, and the presence with it.
#[derive(Debug)]
pub struct Gone;

impl Endings {
    pub async fn send(&self, ending: Ending) -> Result<(), Gone> {
        let way = match ending.kind {
            Kind::Simple => &self.simple,
            Kind::Close => &self.close,
        };
        way.send(ending.settlement).await.map_err(|_| Gone)
    }
}

/// How late a first attempt of the job may be tried again.
pub fn window_of(job: &Job) -> Duration {
    job.def.catch_up.window
}

/// Writes of different kinds do not wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The run ends, and nothing else happens.
    Simple,
    /// It goes on, or its job or another run may wait for its end.
    Close,
}

const KINDS: [Kind; 2] = [Kind::Simple, Kind::Close];

/// Settlements of one kind.
struct Line {
    ended: mpsc::Receiver<Settlement>,
    waiting: Vec<Settlement>,
    /// Batches whose write failed; they go again first.
    again: Vec<Arc<Vec<Settlement>>>,
    under_way: usize,
}

impl Line {
    fn new(ended: mpsc::Receiver<Settlement>) -> Self {
        Self {
            ended,
            waiting: Vec::new(),
            again: Vec::new(),
            under_way: 0,
        }
    }

    /// Takes what has come, up to what one write may hold.
    fn take(&mut self) {
        while self.waiting.len() < limits::SETTLE_BATCH_MAX
            && let Ok(settlement) = self.ended.try_recv()
        {
            self.waiting.push(settlement);
        }
    }

    /// What is to be written next, if anything is.
    fn next(&mut self) -> Option<Arc<Vec<Settlement>>> {
        let mut waiting = || Some(std::mem::take(&mut self.waiting)).filter(|it| !it.is_empty());
        self.again.pop().or_else(|| waiting().map(Arc::new))
    }
}

/// What settle was given and the store has not answered. It outlives a settle that panicked, or ends would be lost.
pub struct Desk {
    simple: Line,
    close: Line,
    /// What is being written, by the number of its write.
    writing: BTreeMap<u64, (Kind, Arc<Vec<Settlement>>)>,
    writes: u64,
}

impl Desk {
    /// An empty one, and the way to it.
    pub fn new() -> (Endings, Self) {
        let (simple, simple_ended) = mpsc::channel(limits::SETTLE_QUEUE_MAX);
        let (close, close_ended) = mpsc::channel(limits::SETTLE_QUEUE_MAX);
        let desk = Self {
            simple: Line::new(simple_ended),
            close: Line::new(close_ended),
            writing: BTreeMap::new(),
            writes: 0,
        };
        (Endings { simple, close }, desk)
    }

    /// Waits for the next ending, of whichever kind.
    async fn next(&mut self) {
        let (simple, close) = (&mut self.simple, &mut self.close);
        tokio::select! {
            biased;
            Some(settlement) = simple.ended.recv() => simple.waiting.push(settlement),
            Some(settlement) = close.ended.recv() => close.waiting.push(settlement),
            else => {}
        }
    }

    fn line(&mut self, kind: Kind) -> &mut Line {
        match kind {
            Kind::Simple => &mut self.simple,
            Kind::Close => &mut self.close,
        }
    }

    /// A write begins; its number.
    fn begin(&mut self, kind: Kind, batch: &Arc<Vec<Settlement>>) -> u64 {
        self.writes += 1;
        self.line(kind).under_way += 1;
        self.writing.insert(self.writes, (kind, Arc::clone(batch)));
        self.writes
    }

    /// It has been answered, and nothing more is to be done about it.
    fn end(&mut self, write: u64) {
        if let Some((kind, _)) = self.writing.remove(&write) {
            self.line(kind).under_way -= 1;
        }
    }

    /// It may have been written: asked again, those are answered as stale.
    fn again(&mut self, write: u64) {
        if let Some((kind, batch)) = self.writing.remove(&write) {
            let line = self.line(kind);
            line.under_way -= 1;
            line.again.push(batch);
        }
    }
}

/// The number of a write, and what was answered.
type Done = (u64, Result<Vec<Settled>, StoreError>);

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

    fn write(&mut self, desk: &mut Desk, kind: Kind, batch: Arc<Vec<Settlement>>) {
        let context = Arc::clone(&self.context);
        let metrics = &context.shared.metrics;
        metrics.settle_batch.observe(batch.len() as f64);
        let write = desk.begin(kind, &batch);
        self.in_flight.push(Box::pin(async move {
            let answer = context.store.settle(context.presence.id, &batch).await;
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
                line.take();
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
        let answers = match answer {
            Ok(answers) => answers,
            Err(error) => {
                desk.again(write);
                return Err(error);
            }
        };
        if let Some((_, batch)) = desk.writing.get(&write) {
            self.settled(batch, answers);
        }
        desk.end(write);
        Ok(())
    }

    /// What was settled is held no more, and what follows from it is passed on.
    fn settled(&self, batch: &[Settlement], answers: Vec<Settled>) {
        let context = &self.context;
        let horizon = context.now().plus(limits::HORIZON);
        let mut wheel = lock(&context.wheel);
        forget(context, &mut wheel, batch);
        let mut nudge = false;
        let mut elsewhere = BTreeSet::new();
        for (settlement, answer) in batch.iter().zip(answers) {
            let run = &settlement.run;
            let (freed, due_at) = match answer {
                Settled::Done { freed, due_at } => (freed, due_at),
                Settled::Stale => {
                    debug!(run = %run.id, attempt = %run.attempt, "was not ours to settle any more");
                    continue;
                }
            };
            for next in next_runs(settlement, freed, horizon) {
                if context.config.parts.execute && context.shared.is_ours(run.shard()) {
                    nudge |= wheel.insert_run(next, next.due_at);
                } else {
                    elsewhere.insert(Hint::Shard(run.shard()));
                }
            }
            if due_at.is_some_and(|due_at| due_at <= horizon) {
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

/// What a verdict on a run of this job asks of the store.
fn kind(job: &Job, verdict: Verdict) -> Kind {
    let waits = match job.def.overlap {
        Overlap::Allow | Overlap::Skip => false,
        Overlap::QueueOne | Overlap::QueueAll { .. } | Overlap::CancelRunning => true,
    };
    match verdict {
        Verdict::Succeed | Verdict::Bury(_) | Verdict::Cancel(_)
            if !waits && !job.def.schedule.after_completion() =>
        {
            Kind::Simple
        }
        Verdict::Succeed
        | Verdict::Bury(_)
        | Verdict::Cancel(_)
        | Verdict::RetryAt(_)
        | Verdict::Release => Kind::Close,
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
fn forget(context: &Context, wheel: &mut Wheel, batch: &[Settlement]) {
    // Before dispatch forgets them: nobody may find such a run neither known nor ended.
    let me = context.presence.id;
    for Settlement { run, verdict, .. } in batch {
        if run.claim == Some(me) && *verdict != Verdict::Release {
            wheel.end_claim(run.id, run.attempt);
        }
    }
    let ours = batch
        .iter()
        .filter(|settlement| settlement.run.claim == Some(me));
    context
        .dispatch
        .forget(ours.map(|settlement| (settlement.run.id, settlement.run.attempt)));
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
            let left: Vec<u64> = desk.writing.keys().copied().collect();
            for write in left {
                desk.again(write);
            }
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
                desk.next().await;
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
