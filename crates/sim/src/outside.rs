//! Targets that take an attempt over and report later: in time, before they have answered, twice, too late, never; with
//! heartbeats, without, and with some that stop; with the token of an attempt before. They outlive the nodes that called
//! them, and call whichever node runs.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use engine::{Clock, Handle, OutsideError};
use model::{AttemptNo, JobId, Outcome, Report, RetryHint, RunId};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::clock::SimClock;
use crate::faults::FaultStore;
use crate::handed::Kept;
use crate::story::Story;

/// How long a target waits for an answer, and how long it goes on calling.
const PATIENCE: Duration = Duration::from_secs(2);
const TRIES_FOR: Duration = Duration::from_secs(240);
/// How long it waits before it calls again.
const AGAIN: Duration = Duration::from_millis(200);

/// The nodes that run, by which the outside can reach them.
#[derive(Clone, Default)]
pub struct Doors {
    inner: Arc<Mutex<BTreeMap<usize, Handle>>>,
}

impl Doors {
    pub fn open(&self, node: usize, handle: Handle) {
        let mut doors = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        doors.insert(node, handle);
    }

    pub fn close(&self, node: usize) {
        let mut doors = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        doors.remove(&node);
    }

    fn any(&self, rng: &mut StdRng) -> Option<Handle> {
        let doors = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let which = rng.random_range(0..doors.len().max(1));
        doors.values().nth(which).cloned()
    }
}

/// What a target does with an attempt that it takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Works, is heard of meanwhile, and reports.
    InTime,
    /// Reports before it has answered.
    Early,
    /// Reports, and reports the same again.
    Twice,
    /// Reports, and then reports something else.
    Contradicts,
    /// Is silent for too long, and reports then.
    Late,
    /// Is heard of for a while, and then no more.
    Stops,
    /// Is never heard of.
    Silent,
    /// Is heard of all the time, and never reports.
    Hangs,
}

const MANNERS: [Manner; 12] = [
    Manner::InTime,
    Manner::InTime,
    Manner::InTime,
    Manner::InTime,
    Manner::Early,
    Manner::Early,
    Manner::Twice,
    Manner::Contradicts,
    Manner::Late,
    Manner::Stops,
    Manner::Silent,
    Manner::Hangs,
];

/// An attempt that a target has taken over.
#[derive(Clone)]
pub(crate) struct TakenOver {
    pub clock: SimClock,
    pub story: Story,
    pub rng: Arc<Mutex<StdRng>>,
    pub doors: Doors,
    /// A way to see what really stands.
    pub sight: FaultStore,
    pub run: RunId,
    pub job: JobId,
    pub attempt: AttemptNo,
    pub within: Duration,
    pub timeout: Duration,
    pub token: String,
    /// Its place in the story.
    pub index: usize,
}

impl TakenOver {
    /// Begins to work. Answers how long the target takes until it says that it does.
    pub(crate) fn begin(self) -> Duration {
        let (manner, answer) = self.chance(|rng| {
            let manner = MANNERS[rng.random_range(0..MANNERS.len())];
            (manner, Duration::from_millis(rng.random_range(0..800)))
        });
        self.note(|| format!("is taken over: {manner:?}"));
        // A target that is early has an answer that is slow, or it would not be.
        let (wait, answer) = match manner {
            Manner::Early => (Duration::ZERO, answer * 3),
            Manner::InTime
            | Manner::Twice
            | Manner::Contradicts
            | Manner::Late
            | Manner::Stops
            | Manner::Silent
            | Manner::Hangs => (answer, answer),
        };
        tokio::spawn(async move {
            self.clock.sleep(wait).await;
            self.work(manner).await;
        });
        answer
    }

    fn chance<T>(&self, of: impl FnOnce(&mut StdRng) -> T) -> T {
        of(&mut self.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, what: impl FnOnce() -> String) {
        let at = Clock::uptime(&self.clock);
        let book = self.sight.ledger.book();
        book.note_of(self.job, at, || {
            format!("{} {} {}", self.run, self.attempt, what())
        });
    }

    async fn work(&self, manner: Manner) {
        self.use_old_token().await;
        self.read_checkpoint().await;
        let (share, report) = self.chance(|rng| {
            let report = match rng.random_range(0..20) {
                0..13 => Report::succeeded(),
                13..19 => Report::failed("the work failed"),
                _ => Report::failed("never").with_retry(RetryHint::Never),
            };
            (rng.random_range(0.0..3.0), report)
        });
        let span = self.within.mul_f64(share);
        match manner {
            Manner::Silent => {}
            Manner::Early => self.report(report).await,
            Manner::InTime => {
                if self.beat_for(span).await {
                    self.report(report).await;
                }
            }
            Manner::Twice => {
                self.clock.sleep(span / 4).await;
                self.report(report.clone()).await;
                self.report(report).await;
            }
            Manner::Contradicts => {
                self.clock.sleep(span / 4).await;
                let other = match report.outcome {
                    Outcome::Succeeded => Report::failed("it failed after all"),
                    Outcome::Failed | Outcome::TimedOut | Outcome::Lost | Outcome::Cancelled => {
                        Report::succeeded()
                    }
                };
                self.report(report).await;
                self.report(other).await;
            }
            Manner::Late => {
                self.clock.sleep(self.within + span).await;
                self.report(report).await;
            }
            Manner::Stops => {
                self.beat_for(span).await;
            }
            Manner::Hangs => {
                self.beat_for(self.timeout * 3).await;
            }
        }
    }

    /// What an attempt before was given is of no use any more.
    async fn use_old_token(&self) {
        let new = (self.attempt, self.token.clone());
        let old = {
            let tokens = &mut self.sight.ledger.book().handed.tokens;
            tokens.insert(self.run, new)
        };
        let uses = self.chance(|rng| rng.random_bool(0.7));
        let Some((_, token)) = old.filter(|(attempt, _)| uses && *attempt < self.attempt) else {
            return;
        };
        let answer = self.try_once(|door| {
            let token = token.clone();
            async move { door.outside().heartbeat(self.run, &token, None, None).await }
        });
        let beaten = answer.await.is_some_and(|answer| answer.is_ok());
        let report = |door: Handle| {
            let (token, report) = (token.clone(), Report::succeeded());
            async move { door.outside().report(self.run, &token, report).await }
        };
        let answer = self.try_once(report).await;
        let taken = matches!(answer, Some(Ok(taken)) if !taken.repeated);
        self.note(|| format!("an old token is used: {beaten} {taken}"));
        if beaten || taken {
            let seen = format!("{} before attempt {}", self.run, self.attempt);
            let mut book = self.sight.ledger.book();
            book.broken("old_token_changes_nothing", seen);
        }
    }

    /// Who goes on with a run gets what the attempt before has left.
    async fn read_checkpoint(&self) {
        if self.attempt == AttemptNo::FIRST {
            return;
        }
        let answer = self.try_once(|door| async move {
            let outside = door.outside();
            outside.checkpoint(self.run, &self.token).await
        });
        let Some(Ok(found)) = answer.await else {
            return;
        };
        let live = self.sight.inner.live_run(self.run);
        let is_ours = live.is_some_and(|run| run.attempt == self.attempt && run.claim.is_some());
        let mut book = self.sight.ledger.book();
        let left = book.handed.checkpoints.get(&self.run).cloned();
        if is_ours && found != left {
            let seen = format!("{} of {}: {found:?} for {left:?}", self.attempt, self.run);
            book.broken("checkpoints_are_passed_on", seen);
        }
    }

    /// Is heard of for so long. False when the attempt is over, and when it ends because it is to.
    async fn beat_for(&self, span: Duration) -> bool {
        let of = (self.run, self.attempt);
        let until = Clock::uptime(&self.clock) + span;
        let heeds = self.chance(|rng| rng.random_bool(0.5));
        let mut goes_on = true;
        while goes_on && Clock::uptime(&self.clock) < until {
            let at = Clock::uptime(&self.clock);
            self.sight.ledger.book().handed.beats(of, at);
            goes_on = self.beat(heeds).await;
            let every = (self.within / 3).min(until.saturating_sub(at));
            self.clock.sleep(every.max(Duration::from_millis(1))).await;
        }
        self.sight.ledger.book().handed.stops(of);
        goes_on
    }

    /// One heartbeat, which may get lost.
    async fn beat(&self, heeds: bool) -> bool {
        let checkpoint = self.chance(|rng| {
            let some = rng.random_bool(0.5);
            some.then(|| Bytes::from(vec![rng.random::<u8>(); rng.random_range(1..20)]))
        });
        let answer = self.try_once(|door| {
            let checkpoint = checkpoint.clone();
            async move {
                let outside = door.outside();
                let (run, token) = (self.run, &self.token);
                outside.heartbeat(run, token, None, checkpoint).await
            }
        });
        match answer.await {
            Some(Ok(heard)) if heard.cancel && heeds => {
                self.report(Report::of(Outcome::Cancelled)).await;
                false
            }
            Some(
                Ok(_) | Err(OutsideError::Token | OutsideError::Unready | OutsideError::Store(_)),
            )
            | None => true,
            Some(Err(OutsideError::Ended(_) | OutsideError::Missing)) => false,
        }
    }

    /// Reports until there is an answer, word for word the same.
    async fn report(&self, report: Report) {
        let outcome = report.outcome;
        if outcome == Outcome::Succeeded {
            self.story.done(self.index);
        }
        let until = Clock::uptime(&self.clock) + TRIES_FOR;
        while Clock::uptime(&self.clock) < until {
            let answer = self.try_once(|door| {
                let report = report.clone();
                async move {
                    let outside = door.outside();
                    outside.report(self.run, &self.token, report).await
                }
            });
            match answer.await {
                None
                | Some(Err(OutsideError::Token | OutsideError::Unready | OutsideError::Store(_))) =>
                    {}
                Some(Ok(taken)) => {
                    self.note(|| format!("reports {outcome:?}: {taken:?}"));
                    let kept = Kept {
                        run: self.run,
                        attempt: self.attempt,
                        outcome,
                        at: Clock::uptime(&self.clock),
                    };
                    self.sight.ledger.book().handed.kept.push(kept);
                    return;
                }
                Some(Err(error @ (OutsideError::Ended(_) | OutsideError::Missing))) => {
                    self.note(|| format!("reports {outcome:?}: {error:?}"));
                    return;
                }
            }
            self.clock.sleep(AGAIN).await;
        }
    }

    /// Calls a node. None when there is none, or it is silent.
    async fn try_once<T, F>(&self, call: impl FnOnce(Handle) -> F) -> Option<T>
    where
        F: Future<Output = T>,
    {
        let door = self.chance(|rng| self.doors.any(rng))?;
        tokio::select! {
            biased;
            answer = call(door) => Some(answer),
            () = self.clock.sleep(PATIENCE) => None,
        }
    }
}
