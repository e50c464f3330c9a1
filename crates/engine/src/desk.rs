//! Settle's desk: what it was given and the store has not answered. Ends from which nothing follows lie apart from those
//! that take the store's slow path. Every way to it and every line on it has a bound.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use model::{Attempt, Job, Overlap, Report, Timestamp, Verdict, limits};
use store::Settlement;
use tokio::sync::mpsc;

use crate::board::Work;
use crate::trouble::Trouble;

/// An attempt that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub work: Arc<Work>,
    pub report: Report,
    /// What follows.
    pub verdict: Verdict,
    pub dispatched_at: Timestamp,
    pub settled_at: Timestamp,
}

impl Ended {
    fn settlement(self, by: &By) -> Settlement {
        let (dispatched_at, settled_at) = (self.dispatched_at, self.settled_at);
        let (run, job) = self.work.into_parts();
        let marks = job.marks(&run, dispatched_at, settled_at);
        let attempt = Attempt::new(run.attempt, Some(dispatched_at), settled_at, self.report)
            .made_by(&by.node)
            .marked(marks);
        let settlement = Settlement {
            run,
            verdict: self.verdict,
            attempt: Some(attempt),
        };
        by.trouble.observe_end(&job, &settlement);
        settlement
    }
}

/// Who says how an attempt ended, and to whom it is said that should know.
#[derive(Clone)]
pub(crate) struct By {
    pub node: Arc<str>,
    pub trouble: Arc<Trouble>,
}

/// What settle is given. It is put together there: the task that ran the attempt has the next one to start.
#[derive(Debug)]
pub(crate) enum Ending {
    Attempt(Box<Ended>),
    /// It did not come from an attempt that ended here: lost, cancelled before it started, handed back.
    Decided(Box<Settlement>),
}

impl Ending {
    pub(crate) fn settled(settlement: Settlement) -> Self {
        Self::Decided(Box::new(settlement))
    }

    /// An attempt that was delivered, or was tried to be.
    pub(crate) fn of(ended: Ended) -> Self {
        Self::Attempt(Box::new(ended))
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Attempt(ended) => kind(&ended.work.job, ended.verdict),
            Self::Decided(_) => Kind::SlowPath,
        }
    }

    fn settlement(self, by: &By) -> Settlement {
        match self {
            Self::Attempt(ended) => ended.settlement(by),
            Self::Decided(settlement) => *settlement,
        }
    }
}

/// Where endings go. Each kind has a way of its own, so that one that is full holds up nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Endings {
    fast: mpsc::Sender<Ending>,
    slow: mpsc::Sender<Ending>,
}

/// Settle is gone, and the presence with it.
#[derive(Debug)]
pub(crate) struct Gone;

impl Endings {
    pub(crate) async fn send(&self, ending: Ending) -> Result<(), Gone> {
        let way = match ending.kind() {
            Kind::FastPath => &self.fast,
            Kind::SlowPath => &self.slow,
        };
        way.send(ending).await.map_err(|_| Gone)
    }

    /// Ends that did not come from attempts that ended here.
    pub(crate) async fn send_all(&self, settlements: Vec<Settlement>) -> Result<(), Gone> {
        for settlement in settlements {
            self.send(Ending::settled(settlement)).await?;
        }
        Ok(())
    }
}

/// Writes of different kinds do not wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The run ends, and nothing else happens.
    FastPath,
    /// It goes on, or its job or another run may wait for its end.
    SlowPath,
}

pub(crate) const KINDS: [Kind; 2] = [Kind::FastPath, Kind::SlowPath];

/// Settlements of one write.
pub(crate) struct Batch {
    pub settlements: Vec<Settlement>,
    /// They were refused as they came, and say as little as they can.
    pub is_bare: bool,
    /// How often the store has panicked over it.
    pub panics: u32,
}

impl Batch {
    fn new(settlements: Vec<Settlement>, is_bare: bool) -> Arc<Self> {
        let panics = 0;
        Arc::new(Self {
            settlements,
            is_bare,
            panics,
        })
    }

    /// Two of half the size.
    fn halves(&self) -> [Arc<Self>; 2] {
        let (first, second) = self.settlements.split_at(self.settlements.len() / 2);
        [first, second].map(|half| Self::new(half.to_vec(), self.is_bare))
    }

    fn panicked(&self) -> Arc<Self> {
        Arc::new(Self {
            settlements: self.settlements.clone(),
            is_bare: self.is_bare,
            panics: self.panics + 1,
        })
    }
}

/// Settlements of one kind.
pub(crate) struct Line {
    ended: mpsc::Receiver<Ending>,
    waiting: Vec<Settlement>,
    /// Batches that are to be written again; they go first.
    again: VecDeque<Arc<Batch>>,
    pub under_way: usize,
}

impl Line {
    fn new(ended: mpsc::Receiver<Ending>) -> Self {
        Self {
            ended,
            waiting: Vec::new(),
            again: VecDeque::new(),
            under_way: 0,
        }
    }

    /// Takes what has come, up to what one write may hold.
    pub(crate) fn take(&mut self, by: &By) {
        while self.waiting.len() < limits::SETTLE_BATCH_MAX
            && let Ok(ending) = self.ended.try_recv()
        {
            self.waiting.push(ending.settlement(by));
        }
    }

    /// What is to be written next, if anything is.
    pub(crate) fn next(&mut self) -> Option<Arc<Batch>> {
        if let Some(batch) = self.again.pop_front() {
            return Some(batch);
        }
        let settlements = std::mem::take(&mut self.waiting);
        (!settlements.is_empty()).then(|| Batch::new(settlements, false))
    }
}

/// What settle was given and the store has not answered. It outlives a settle that panicked, or ends would be lost.
pub(crate) struct Desk {
    fast: Line,
    slow: Line,
    /// What is being written, by the number of its write.
    writing: BTreeMap<u64, (Kind, Arc<Batch>)>,
    writes: u64,
}

impl Desk {
    /// An empty one, and the way to it.
    pub(crate) fn new() -> (Endings, Self) {
        let (fast, fast_ended) = mpsc::channel(limits::SETTLE_QUEUE_MAX);
        let (slow, slow_ended) = mpsc::channel(limits::SETTLE_QUEUE_MAX);
        let desk = Self {
            fast: Line::new(fast_ended),
            slow: Line::new(slow_ended),
            writing: BTreeMap::new(),
            writes: 0,
        };
        (Endings { fast, slow }, desk)
    }

    /// Waits for the next ending, of whichever kind.
    pub(crate) async fn next(&mut self, by: &By) {
        let (fast, slow) = (&mut self.fast, &mut self.slow);
        tokio::select! {
            biased;
            Some(ending) = fast.ended.recv() => fast.waiting.push(ending.settlement(by)),
            Some(ending) = slow.ended.recv() => slow.waiting.push(ending.settlement(by)),
            else => {}
        }
    }

    pub(crate) fn line(&mut self, kind: Kind) -> &mut Line {
        match kind {
            Kind::FastPath => &mut self.fast,
            Kind::SlowPath => &mut self.slow,
        }
    }

    /// A write begins; its number.
    pub(crate) fn begin(&mut self, kind: Kind, batch: &Arc<Batch>) -> u64 {
        self.writes += 1;
        self.line(kind).under_way += 1;
        self.writing.insert(self.writes, (kind, Arc::clone(batch)));
        self.writes
    }

    /// What a write under way is about.
    pub(crate) fn batch(&self, write: u64) -> Option<Arc<Batch>> {
        self.writing.get(&write).map(|(_, batch)| Arc::clone(batch))
    }

    /// A write is over; these are to be written instead.
    fn end(&mut self, write: u64, instead: impl FnOnce(Arc<Batch>) -> Vec<Arc<Batch>>) {
        if let Some((kind, batch)) = self.writing.remove(&write) {
            let line = self.line(kind);
            line.under_way -= 1;
            line.again.extend(instead(batch));
        }
    }

    /// It has been answered: what was refused is written again, bare.
    pub(crate) fn answered(&mut self, write: u64, refused: Vec<Settlement>) {
        self.end(write, |_| {
            if refused.is_empty() {
                Vec::new()
            } else {
                vec![Batch::new(refused, true)]
            }
        });
    }

    /// It may have been written: sent again, those are answered as stale.
    pub(crate) fn again(&mut self, write: u64) {
        self.end(write, |batch| vec![batch]);
    }

    /// The store has panicked over it.
    pub(crate) fn again_after_panic(&mut self, write: u64) {
        self.end(write, |batch| vec![batch.panicked()]);
    }

    /// The same in two writes, so that one that cannot be written comes to stand alone.
    pub(crate) fn again_in_halves(&mut self, write: u64) {
        self.end(write, |batch| batch.halves().to_vec());
    }

    /// A settle that panicked has left these under way.
    pub(crate) fn recover(&mut self) {
        let left: Vec<u64> = self.writing.keys().copied().collect();
        for write in left {
            self.again(write);
        }
    }
}

/// What the store does for a verdict on a run of this job.
fn kind(job: &Job, verdict: Verdict) -> Kind {
    let waits = match job.def.overlap {
        Overlap::Allow | Overlap::Skip => false,
        Overlap::QueueOne | Overlap::QueueAll { .. } | Overlap::CancelRunning => true,
    };
    match verdict {
        Verdict::Succeed | Verdict::Bury(_) | Verdict::Cancel(_)
            if !waits && !job.def.schedule.after_completion() =>
        {
            Kind::FastPath
        }
        Verdict::Succeed
        | Verdict::Bury(_)
        | Verdict::Cancel(_)
        | Verdict::RetryAt(_)
        | Verdict::Release
        | Verdict::Wait(_) => Kind::SlowPath,
    }
}

#[cfg(test)]
mod tests {
    use model::{Definition, JobId, Run, Schedule, Slot, Target, TenantId};

    use super::*;

    fn settlement(number: u8) -> Settlement {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let def = Definition::new(
            Schedule::from(Slot(now)),
            Target::http("http://localhost/").unwrap(),
        );
        let id = JobId::new(now, [number; 10]);
        let job = Job::new(id, TenantId::DEFAULT, None, def, now);
        Settlement {
            run: Run::of_slot(&job, Slot(now)),
            verdict: Verdict::Release,
            attempt: None,
        }
    }

    #[test]
    fn what_is_being_written_when_settle_panics_is_written_again() {
        let (_endings, mut desk) = Desk::new();
        let ended = (0..5).map(settlement);
        desk.line(Kind::SlowPath).waiting.extend(ended);
        let batch = desk.line(Kind::SlowPath).next();
        assert!(batch.is_some_and(|batch| desk.begin(Kind::SlowPath, &batch) == 1));
        assert!(desk.line(Kind::SlowPath).next().is_none());
        desk.recover();
        assert_eq!(desk.line(Kind::SlowPath).under_way, 0);
        let again = desk.line(Kind::SlowPath).next();
        assert_eq!(again.map(|batch| batch.settlements.len()), Some(5));
    }

    #[test]
    fn halves_lose_nothing() {
        let batch = Batch::new((0..5).map(settlement).collect(), false);
        let [first, second] = batch.halves();
        let both = [&first.settlements[..], &second.settlements[..]].concat();
        assert_eq!(
            (first.settlements.len(), both),
            (2, batch.settlements.clone())
        );
    }
}
