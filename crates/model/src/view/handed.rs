//! Handed over: what becomes of an attempt whose work is with the outside.
//!
//! A report or a heartbeat whose token is good may come before the hand-over is written, and is itself the hand-over,
//! whoever holds the row. What its holder writes later is stale.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::View;
use super::settle::{Settled, Settlement};
use crate::attempt::{Attempt, AttemptNo, Outcome, Report};
use crate::handed::{Completion, Handed, Progress};
use crate::id::{JobId, PresenceId, RunId};
use crate::job::{Definition, Job};
use crate::retry::{LostClaim, RetryPolicy, Verdict};
use crate::run::{Mark, Run, RunState};
use crate::time::Timestamp;

/// A target has taken an attempt over, says the node that delivered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOver {
    pub run: RunId,
    pub job: JobId,
    pub attempt: AttemptNo,
    pub node: Arc<str>,
    pub dispatched_at: Timestamp,
    /// As the definition has it that the attempt runs.
    pub within: Duration,
    pub timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandedOver {
    Done,
    /// The claim is not the node's any more: the outside was heard of before, or the attempt has ended.
    Stale,
}

/// Whoever has the attempt lives.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    pub run: RunId,
    pub attempt: AttemptNo,
    /// As the token says.
    pub dispatched_at: Timestamp,
    pub progress: Option<Progress>,
    pub checkpoint: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Beaten {
    Done {
        /// It is to end.
        cancel: bool,
        /// Up to when it is trusted.
        until: Timestamp,
    },
    /// The attempt has ended; its record, if it is kept.
    Ended(Option<Box<Attempt>>),
    /// There is no such run.
    Missing,
}

/// What became of text for a run's log.
pub type Appended = Beaten;

/// How the attempt went, says whoever had it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    pub run: RunId,
    pub attempt: AttemptNo,
    /// As the token says.
    pub dispatched_at: Timestamp,
    pub report: Report,
    /// In 0..1, for the delay of a retry.
    pub chance: f64,
}

/// Nothing was heard of an attempt for too long, or its time is up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lapse {
    pub run: RunId,
    pub job: JobId,
    pub attempt: AttemptNo,
    /// Up to when it was trusted, as it was read: a heartbeat since then has moved it.
    pub until: Timestamp,
    /// In 0..1, for the delay of a retry.
    pub chance: f64,
}

/// What a report or a lapse came to.
#[derive(Debug, Clone, PartialEq)]
pub enum HandedEnd {
    Done(Box<EndedHanded>),
    /// The attempt has ended before; its record, if it is kept.
    Ended(Option<Box<Attempt>>),
    /// It was heard of meanwhile, or this is not for the caller to say.
    Stale,
    /// There is no such run.
    Missing,
}

/// An attempt that has ended outside. Large payloads are left in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedHanded {
    pub settlement: Settlement,
    pub settled: Settled,
    /// None if it cannot be read.
    pub job: Option<Job>,
}

/// What becomes of what is kept of a handed-over attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum HandedChange {
    /// As it stands now, with a checkpoint if there is a new one.
    Put(Box<Handed>, Option<Bytes>),
    /// It is to end, from this moment on: [`Handed::cancel`].
    Cancel(Timestamp),
    /// The attempt has ended, and the run goes on: its checkpoint stays.
    Rest,
    /// The run has ended.
    Gone,
}

/// Why there is nothing to say of an attempt.
enum NotOurs {
    Ended(Option<Box<Attempt>>),
    Missing,
}

impl View {
    /// The claim goes from the node that delivered it to the outside.
    pub fn hand_over(&mut self, it: &HandOver, by: PresenceId, now: Timestamp) -> HandedOver {
        let live = self.live.get(&it.run).cloned();
        let held = |run: &Run| run.claim == Some(by) && run.attempt == it.attempt;
        let Some(live) = live.filter(held) else {
            return HandedOver::Stale;
        };
        let handed = Handed {
            run: it.run,
            job: live.job,
            attempt: it.attempt,
            node: Some(Arc::clone(&it.node)),
            dispatched_at: it.dispatched_at,
            within: it.within,
            timeout_at: it.dispatched_at.plus(it.timeout),
            until: None,
            cancelled: false,
            beaten_at: None,
            progress: None,
        };
        self.put_handed(live, handed, None, now);
        HandedOver::Done
    }

    /// Trusted again. A cancel is announced, and then nothing moves.
    pub fn heartbeat(&mut self, beat: &Heartbeat, now: Timestamp) -> Beaten {
        let (live, mut handed) = match self.outside(beat.run, beat.attempt, beat.dispatched_at) {
            Ok(found) => found,
            Err(NotOurs::Ended(attempt)) => return Beaten::Ended(attempt),
            Err(NotOurs::Missing) => return Beaten::Missing,
        };
        handed.beaten_at = Some(now);
        if beat.progress.is_some() {
            handed.progress = beat.progress.clone();
        }
        let (cancel, until) = self.put_handed(live, handed, beat.checkpoint.clone(), now);
        Beaten::Done { cancel, until }
    }

    /// Whether text may be appended to the log of an attempt.
    pub fn may_append(&self, run: RunId, attempt: AttemptNo) -> Appended {
        match self.outside(run, attempt, Timestamp::MIN) {
            Ok((live, handed)) => Beaten::Done {
                cancel: is_cancelled(&live),
                until: handed.until.unwrap_or(Timestamp::MIN),
            },
            Err(NotOurs::Ended(attempt)) => Beaten::Ended(attempt),
            Err(NotOurs::Missing) => Beaten::Missing,
        }
    }

    /// The attempt has ended as whoever had it says.
    pub fn report(&mut self, it: &Reported, now: Timestamp) -> HandedEnd {
        let (live, handed) = match self.outside(it.run, it.attempt, it.dispatched_at) {
            Ok(found) => found,
            Err(NotOurs::Ended(attempt)) => return HandedEnd::Ended(attempt),
            Err(NotOurs::Missing) => return HandedEnd::Missing,
        };
        let verdict = self.verdict(&live, &it.report, now, it.chance);
        self.end_handed(live, &handed, it.report.clone(), verdict, now)
    }

    /// The attempt has ended in silence, or its time is up. What is kept of one that nobody has outside goes, but for the
    /// checkpoint of a run that goes on.
    pub fn lapse(&mut self, lapse: &Lapse, now: Timestamp) -> HandedEnd {
        let Some(handed) = self.handed.get(&lapse.run).cloned() else {
            return HandedEnd::Stale;
        };
        let live = self.live.get(&lapse.run).cloned();
        let outside =
            |run: &Run| run.claim == Some(PresenceId::OUTSIDE) && run.attempt == handed.attempt;
        let Some(live) = live.filter(outside) else {
            let lives = self.live.contains_key(&lapse.run);
            let change = match (lives, handed.until) {
                // It has ended before, perhaps by this very lapse.
                (true, None) => return HandedEnd::Stale,
                (true, Some(_)) => HandedChange::Rest,
                (false, _) => HandedChange::Gone,
            };
            self.effects.handed.insert(lapse.run, change);
            return HandedEnd::Stale;
        };
        let is_same = handed.attempt == lapse.attempt && handed.until == Some(lapse.until);
        if !is_same || lapse.until > now {
            return HandedEnd::Stale;
        }
        let (report, verdict) = self.lapsed(&live, &handed, lapse.chance, now);
        self.end_handed(live, &handed, report, verdict, now)
    }

    /// How an attempt ends that is trusted no more.
    fn lapsed(
        &self,
        live: &Run,
        handed: &Handed,
        chance: f64,
        now: Timestamp,
    ) -> (Report, Verdict) {
        if let Some(Mark::Cancel(reason)) = live.mark {
            let mut report = Report::of(Outcome::Cancelled);
            report.error = Some("it was cancelled, and its target did not report".to_owned());
            return (report, Verdict::Cancel(reason));
        }
        if handed.has_timed_out(now) {
            let mut report = Report::of(Outcome::TimedOut);
            report.error = Some("its target did not report within the timeout".to_owned());
            let verdict = self.verdict(live, &report, now, chance);
            return (report, verdict);
        }
        let mut report = Report::of(Outcome::Lost);
        report.error = Some("its target was silent for too long".to_owned());
        let job = self.job.as_ref();
        let lost = LostClaim {
            attempt: live.attempt,
            lost: live.lost,
            due_at: live.due_at.min(now),
            from: live.due_at.min(now),
            ended_at: now,
            dispatched: true,
            delivery: job
                .map(|job| job.delivery_at(live.version))
                .unwrap_or_default(),
            window: job.map(|job| job.def.catch_up.window).unwrap_or_default(),
        };
        (report, lost.verdict(now))
    }

    /// What follows from a report, by the policy of the job as it stands.
    fn verdict(&self, live: &Run, report: &Report, now: Timestamp, chance: f64) -> Verdict {
        let retry = self.job.as_ref().map(|job| job.def.retry);
        let retry: RetryPolicy = retry.unwrap_or_default();
        match (report.outcome, live.mark) {
            (Outcome::Cancelled, Some(Mark::Cancel(reason))) => Verdict::Cancel(reason),
            (
                Outcome::Cancelled
                | Outcome::Succeeded
                | Outcome::Failed
                | Outcome::TimedOut
                | Outcome::Lost,
                _,
            ) => retry.verdict(live.attempt, live.lost, report, now, chance),
        }
    }

    /// The living run of a token that is good, and what is kept of its attempt. If no hand-over is written yet, it is now.
    fn outside(
        &self,
        run: RunId,
        attempt: AttemptNo,
        dispatched_at: Timestamp,
    ) -> Result<(Run, Handed), NotOurs> {
        let Some(live) = self.live.get(&run) else {
            let ended = self.history.outside.as_deref();
            return Err(ended.map_or(NotOurs::Missing, |run| record_of(run, attempt)));
        };
        if live.claim.is_none() || live.attempt != attempt {
            return Err(record_of(live, attempt));
        }
        let kept = self.handed.get(&run);
        let handed = kept.filter(|it| it.attempt == attempt && it.until.is_some());
        let handed = handed.cloned();
        let handed = handed.unwrap_or_else(|| self.unwritten(live, dispatched_at));
        Ok((live.clone(), handed))
    }

    /// What is known of an attempt whose hand-over is not written.
    fn unwritten(&self, live: &Run, dispatched_at: Timestamp) -> Handed {
        let def = self.job.as_ref().map(|job| &job.def);
        let within = def.and_then(|def| def.completion.heartbeat_within());
        let timeout = def.map_or(Definition::TIMEOUT_DEFAULT, |def| def.timeout);
        Handed {
            run: live.id,
            job: live.job,
            attempt: live.attempt,
            node: None,
            dispatched_at,
            within: within.unwrap_or(Completion::HEARTBEAT_WITHIN_DEFAULT),
            timeout_at: dispatched_at.plus(timeout),
            until: None,
            cancelled: false,
            beaten_at: None,
            progress: None,
        }
    }

    /// The row says that the outside has it. Answers whether it is to end, and up to when it is trusted.
    fn put_handed(
        &mut self,
        live: Run,
        mut handed: Handed,
        checkpoint: Option<Bytes>,
        now: Timestamp,
    ) -> (bool, Timestamp) {
        handed.trust(now);
        if is_cancelled(&live) {
            handed.cancel(now);
        }
        let answer = (handed.cancelled, handed.until.unwrap_or(now));
        let outside = Some(PresenceId::OUTSIDE);
        if live.claim != outside {
            self.change_run(Run {
                state: RunState::Running,
                claim: outside,
                dispatched_at: live.dispatched_at.or(Some(handed.dispatched_at)),
                // It has left: nobody takes it back.
                mark: live.mark.filter(|mark| matches!(mark, Mark::Cancel(_))),
                ..live
            });
        }
        self.handed.insert(handed.run, handed.clone());
        let put = HandedChange::Put(Box::new(handed), checkpoint);
        self.effects.handed.insert(live.id, put);
        answer
    }

    /// Every end leaves through settle.
    fn end_handed(
        &mut self,
        live: Run,
        handed: &Handed,
        report: Report,
        verdict: Verdict,
        now: Timestamp,
    ) -> HandedEnd {
        let id = live.id;
        let dispatched_at = handed.dispatched_at.min(now);
        let mut attempt = Attempt::new(live.attempt, Some(dispatched_at), now, report);
        attempt.node = handed.node.clone();
        if let Some(job) = &self.job {
            attempt = attempt.marked(job.marks(&live, dispatched_at, now));
        }
        let settlement = Settlement {
            run: live.clone(),
            verdict,
            attempt: Some(attempt),
        };
        // A run that is read as ready may be under way: only its holder knew.
        let running = Run {
            state: RunState::Running,
            ..live
        };
        let job = self.job.clone();
        let settled = self.settle_held(&settlement, running, now);
        self.handed.remove(&id);
        let change = if self.live.contains_key(&id) {
            HandedChange::Rest
        } else {
            HandedChange::Gone
        };
        self.effects.handed.insert(id, change);
        HandedEnd::Done(Box::new(EndedHanded {
            settlement: Settlement {
                run: settlement.run.without_large_payload(),
                ..settlement
            },
            settled,
            job: job.map(|job| Arc::unwrap_or_clone(Arc::new(job).without_large_payload())),
        }))
    }
}

fn is_cancelled(run: &Run) -> bool {
    match run.mark {
        Some(Mark::Cancel(_)) => true,
        Some(Mark::TakeBack | Mark::TooLate) | None => false,
    }
}

/// The record of an attempt that has ended.
fn record_of(run: &Run, attempt: AttemptNo) -> NotOurs {
    let record = run.attempts.iter().find(|it| it.no == attempt);
    NotOurs::Ended(record.cloned().map(Box::new))
}

#[cfg(test)]
#[path = "handed_tests.rs"]
mod tests;
