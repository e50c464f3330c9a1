//! The outside: what whoever has a handed-over attempt says of it. Requests that come while a write is under way share the
//! next one. Heartbeats are many and can wait a moment: so that one write serves many of them, writes keep a distance.
//! Texts are kept without the secrets that the attempt was sent (`vault/said.rs`).

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use model::{Attempt, Progress, Report, RunId, Timestamp, Verdict, limits};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::{
    Beaten, EndedHanded, HandedEnd, Heartbeat, LogAppend, Reported, Settled, Store, StoreError,
};
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot};

use crate::clock::Clock;
use crate::desk::By;
use crate::fleet::Fleet;
use crate::lock;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::offset::Skew;
use crate::tokens::{Token, Tokens};
use crate::vault::Vault;

/// Writes of reports, and of logs, under way at once. Of heartbeats there is one.
const DEPTH: usize = 2;

/// Why nothing was taken of what the outside says.
#[derive(Debug, thiserror::Error)]
pub enum OutsideError {
    #[error("the token is not good for this run")]
    Token,
    #[error("there is no such run")]
    Missing,
    /// The attempt has ended; its record, if it is kept.
    #[error("the attempt has ended")]
    Ended(Option<Box<Attempt>>),
    /// This node has no presence just now: nothing was written, and another node may do it.
    #[error("this node does not know the store's time")]
    Unready,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a heartbeat brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// It is to end.
    pub cancel: bool,
    /// Up to when it is trusted.
    pub until: Timestamp,
}

/// What a report came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken {
    pub verdict: Option<Verdict>,
    /// It was taken before, with the same outcome.
    pub repeated: bool,
}

type Waiting<Q, A> = (Q, oneshot::Sender<Result<A, StoreError>>);

/// Requests of one kind.
struct Gather<Q, A> {
    waiting: Mutex<Vec<Waiting<Q, A>>>,
    permits: Semaphore,
    /// How long after a write the next one begins, at least.
    apart: Duration,
    /// When a write last began, by uptime.
    last: Mutex<Option<Duration>>,
}

/// What a request is about, and what it takes.
trait About: Clone {
    fn run(&self) -> RunId;
    fn bytes(&self) -> usize;
}

impl<Q: About, A> Gather<Q, A> {
    fn new(depth: usize, apart: Duration) -> Self {
        Self {
            waiting: Mutex::default(),
            permits: Semaphore::new(depth),
            apart,
            last: Mutex::default(),
        }
    }

    /// Waits until the next write may begin: whoever comes meanwhile shares it.
    async fn pace(&self, clock: &dyn Clock) {
        if self.apart.is_zero() {
            return;
        }
        let now = clock.uptime();
        let next = lock(&self.last).map_or(now, |last| last + self.apart);
        let early = next.saturating_sub(now);
        if !early.is_zero() {
            clock.sleep(early).await;
        }
        *lock(&self.last) = Some(now + early);
    }

    fn enter(&self, request: &Q) -> Result<oneshot::Receiver<Result<A, StoreError>>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let bytes: usize = waiting.iter().map(|(it, _)| it.bytes()).sum();
        if waiting.len() >= limits::HANDED_CALLS_MAX || bytes > limits::HANDED_BYTES_MAX {
            return Err(StoreError::Slow("too many reports wait".to_owned()));
        }
        waiting.push((request.clone(), answer));
        Ok(answered)
    }

    /// Those who wait, in the order they came: as many as fit in one write, and of each run one.
    fn take(&self) -> Vec<Waiting<Q, A>> {
        let mut waiting = lock(&self.waiting);
        let (mut runs, mut taken, mut left) = (BTreeSet::new(), Vec::new(), Vec::new());
        for it in waiting.drain(..) {
            // A client that is gone may have been heard: what it asked for is done all the same.
            if taken.len() < limits::HANDED_BATCH_MAX && runs.insert(it.0.run()) {
                taken.push(it);
            } else {
                left.push(it);
            }
        }
        *waiting = left;
        taken
    }

    /// Makes a request, together with those of others. If whoever writes for us is cut off, we ask again.
    async fn call<W, F>(&self, clock: &dyn Clock, request: Q, write: W) -> Result<A, StoreError>
    where
        W: Fn(Vec<Q>) -> F,
        F: Future<Output = Result<Vec<A>, StoreError>>,
    {
        let mut answered = self.enter(&request)?;
        loop {
            let permit = tokio::select! {
                biased;
                answer = &mut answered => match answer {
                    Ok(answer) => return answer,
                    Err(_) => {
                        answered = self.enter(&request)?;
                        continue;
                    }
                },
                permit = self.permits.acquire() => permit,
            };
            self.pace(clock).await;
            let (requests, callers): (Vec<Q>, Vec<_>) = self.take().into_iter().unzip();
            if requests.is_empty() {
                // Another writes for us: to look for more to write until that is done would be all that this task does.
                drop(permit);
                match (&mut answered).await {
                    Ok(answer) => return answer,
                    Err(_) => answered = self.enter(&request)?,
                }
                continue;
            }
            answer(callers, write(requests).await);
            drop(permit);
            match answered.try_recv() {
                Ok(answer) => return answer,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Closed) => answered = self.enter(&request)?,
            }
        }
    }
}

fn answer<A>(
    callers: Vec<oneshot::Sender<Result<A, StoreError>>>,
    answers: Result<Vec<A>, StoreError>,
) {
    match answers {
        Ok(answers) => {
            for (caller, answer) in callers.into_iter().zip(answers) {
                let _gone = caller.send(Ok(answer));
            }
        }
        Err(error) => {
            let why = error.to_string();
            for caller in callers {
                let _gone = caller.send(Err(StoreError::unavailable(why.clone())));
            }
        }
    }
}

impl About for Heartbeat {
    fn run(&self) -> RunId {
        self.run
    }

    fn bytes(&self) -> usize {
        self.checkpoint.as_ref().map_or(0, Bytes::len)
    }
}

impl About for Reported {
    fn run(&self) -> RunId {
        self.run
    }

    fn bytes(&self) -> usize {
        self.report.output.len()
    }
}

impl About for LogAppend {
    fn run(&self) -> RunId {
        self.run
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// What ends outside is counted, and what follows from it is passed on.
#[derive(Clone)]
pub(crate) struct Followed {
    pub offers: Offers,
    pub metrics: Metrics,
    pub by: By,
    pub claim_due: Nudge,
    pub fire: Nudge,
    pub beat: Nudge,
}

impl Followed {
    pub(crate) fn follow(&self, ended: &EndedHanded) {
        let EndedHanded {
            settlement,
            settled,
            job,
        } = ended;
        if let Some(attempt) = &settlement.attempt {
            self.metrics.settled_with(attempt.outcome);
            if let Some(dispatched_at) = attempt.dispatched_at {
                let took = attempt.settled_at.since(dispatched_at);
                self.metrics.attempt_took(attempt.outcome, took);
            }
        }
        if let Some((state, _)) = settlement.end() {
            self.metrics.run_ended(state);
        }
        if let Some(job) = job {
            self.by.trouble.observe_end(job, settlement);
        }
        let run = &settlement.run;
        let goes_on = settlement.end().is_none();
        let freed = match settled {
            Settled::Done {
                freed,
                due_at,
                paused,
            } => {
                if let Some(paused) = paused {
                    self.by.trouble.observe_paused(run, paused);
                    self.beat.now();
                    self.offers.hint_marks();
                }
                freed.is_some() || due_at.is_some() || paused.is_some()
            }
            Settled::Stale | Settled::Refused(_) => false,
        };
        if goes_on || freed {
            self.offers.offer((run.tenant, run.job));
            if !self.offers.is_ours(run.shard()) {
                self.claim_due.now();
            }
        }
        // A slot of its job may have waited for that.
        self.fire.now();
    }
}

/// What of a node the outside talks to.
pub struct Outside {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    skew: Skew,
    fleet: Arc<Fleet>,
    tokens: Arc<Tokens>,
    vault: Arc<Vault>,
    followed: Followed,
    chance: Mutex<StdRng>,
    beats: Gather<Heartbeat, Beaten>,
    reports: Gather<Reported, HandedEnd>,
    logs: Gather<LogAppend, Beaten>,
}

impl Outside {
    pub(crate) fn new(
        (store, clock, skew): (Arc<dyn Store>, Arc<dyn Clock>, Skew),
        (fleet, tokens, vault): (Arc<Fleet>, Arc<Tokens>, Arc<Vault>),
        followed: Followed,
        seed: u64,
    ) -> Self {
        Self {
            store,
            clock,
            skew,
            fleet,
            tokens,
            vault,
            followed,
            chance: Mutex::new(StdRng::seed_from_u64(seed)),
            beats: Gather::new(1, limits::HEARTBEATS_APART),
            reports: Gather::new(DEPTH, Duration::ZERO),
            logs: Gather::new(DEPTH, Duration::ZERO),
        }
    }

    pub(crate) fn followed(&self) -> Followed {
        self.followed.clone()
    }

    /// Whether this node has heard of the store lately.
    fn is_ready(&self) -> bool {
        let silent = self.fleet.silent_for(self.clock.uptime());
        let is_recent = silent < limits::PRESENCE_TTL - limits::PRESENCE_MARGIN;
        is_recent && self.fleet.beats() > 0
    }

    /// The store's time, for what is written now: who waited for a write may have lost it meanwhile.
    fn now(&self) -> Result<Timestamp, StoreError> {
        if self.is_ready() {
            Ok(self.clock.now())
        } else {
            Err(StoreError::unavailable("this node has no presence"))
        }
    }

    /// The same for what is trusted from then on: by a time that lies behind, a heartbeat would be answered and move nothing.
    fn known_now(&self) -> Result<Timestamp, StoreError> {
        if self.skew.is_known() {
            self.now()
        } else {
            Err(StoreError::unavailable("this node does not know the time"))
        }
    }

    /// The attempt that a token is good for.
    async fn may_write(&self, run: RunId, token: &str) -> Result<Token, OutsideError> {
        let token = self.token(run, token).await?;
        if self.is_ready() {
            Ok(token)
        } else {
            Err(OutsideError::Unready)
        }
    }

    async fn token(&self, run: RunId, token: &str) -> Result<Token, OutsideError> {
        let good = self.tokens.check(run, token).await?;
        good.ok_or(OutsideError::Token)
    }

    /// Whoever has the attempt lives.
    pub async fn heartbeat(
        &self,
        run: RunId,
        token: &str,
        mut progress: Option<Progress>,
        mut checkpoint: Option<Bytes>,
    ) -> Result<Heard, OutsideError> {
        let Token {
            attempt,
            dispatched_at,
        } = self.may_write(run, token).await?;
        if !self.skew.is_known() {
            return Err(OutsideError::Unready);
        }
        if matches!(progress, Some(Progress::Text(_))) || checkpoint.is_some() {
            let said = self.vault.said((run, attempt)).await?;
            progress = progress.map(|it| said.progress(it));
            checkpoint = checkpoint.map(|it| said.checkpoint(it)).transpose()?;
        }
        let beat = Heartbeat {
            run,
            attempt,
            dispatched_at,
            progress,
            checkpoint,
        };
        let write = |beats: Vec<Heartbeat>| async move {
            let now = self.known_now()?;
            self.store.handed().heartbeat(&beats, now).await
        };
        heard(self.beats.call(&*self.clock, beat, write).await?)
    }

    /// The attempt has ended so. Asked again with the same outcome, it is answered as before.
    pub async fn report(
        &self,
        run: RunId,
        token: &str,
        report: Report,
    ) -> Result<Taken, OutsideError> {
        let Token {
            attempt,
            dispatched_at,
        } = self.may_write(run, token).await?;
        let report = if report.output.is_empty() && report.error.is_none() {
            report
        } else {
            self.vault.said((run, attempt)).await?.report(report)
        };
        let (outcome, chance) = (report.outcome, lock(&self.chance).random::<f64>());
        let reported = Reported {
            run,
            attempt,
            dispatched_at,
            report,
            chance,
        };
        let write = |reports: Vec<Reported>| async move {
            let now = self.now()?;
            let ends = self.store.handed().report(&reports, now).await?;
            for end in &ends {
                if let HandedEnd::Done(ended) = end {
                    self.followed.follow(ended);
                }
            }
            Ok(ends)
        };
        match self.reports.call(&*self.clock, reported, write).await? {
            HandedEnd::Done(ended) => Ok(Taken {
                verdict: Some(ended.settlement.verdict),
                repeated: false,
            }),
            HandedEnd::Ended(Some(record)) if record.outcome == outcome => Ok(Taken {
                verdict: None,
                repeated: true,
            }),
            HandedEnd::Ended(record) => Err(OutsideError::Ended(record)),
            HandedEnd::Stale | HandedEnd::Missing => Err(OutsideError::Missing),
        }
    }

    /// Text for the run's log.
    pub async fn append_log(
        &self,
        run: RunId,
        token: &str,
        bytes: Bytes,
    ) -> Result<Heard, OutsideError> {
        let Token { attempt, .. } = self.token(run, token).await?;
        let bytes = self.vault.said((run, attempt)).await?.log(bytes);
        let append = LogAppend {
            run,
            attempt,
            bytes,
        };
        let write =
            |appends: Vec<LogAppend>| async move { self.store.handed().append_log(&appends).await };
        heard(self.logs.call(&*self.clock, append, write).await?)
    }

    /// The last checkpoint of the run, by this attempt or one before.
    pub async fn checkpoint(&self, run: RunId, token: &str) -> Result<Option<Bytes>, OutsideError> {
        let Token { attempt, .. } = self.token(run, token).await?;
        let store = self.store.handed();
        let checkpoint = store.get_checkpoint(run).await?;
        // Only now: what a later attempt has written meanwhile is not for this one.
        if store.is_current(run, attempt).await? {
            Ok(checkpoint)
        } else {
            Err(OutsideError::Ended(None))
        }
    }
}

fn heard(beaten: Beaten) -> Result<Heard, OutsideError> {
    match beaten {
        Beaten::Done { cancel, until } => Ok(Heard { cancel, until }),
        Beaten::Ended(record) => Err(OutsideError::Ended(record)),
        Beaten::Missing => Err(OutsideError::Missing),
    }
}

#[cfg(test)]
#[path = "outside_tests.rs"]
mod tests;
