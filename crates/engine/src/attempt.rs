//! One attempt after another: deliver, report, take the next. A task that ends an attempt starts
//! the next one itself, so that a busy lane needs no hand-over.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use executor::WorkOrder;
use futures_util::FutureExt;
use model::schedule::format_span;
use model::{Outcome, Report, Timestamp, Verdict, limits};
use prometheus_client::metrics::histogram::Histogram;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::age::Age;
use crate::board::{Board, Start, Work};
use crate::clock::Clock;
use crate::desk::{By, Ended, Ending, Endings, Gone};
use crate::executors::Executors;
use crate::lock;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::payloads::{Payloads, Unsent};
use crate::presence::Presence;
use crate::trouble::What;

/// What attempts work with.
pub struct Attempts {
    pub board: Arc<Board>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub executors: Arc<Executors>,
    pub payloads: Arc<Payloads>,
    pub endings: Endings,
    pub by: By,
    pub metrics: Metrics,
    pub lateness: Lateness,
    pub chance: Chance,
    /// Marks are written of runs that somebody asked for.
    pub marks: Nudge,
}

/// Where chance comes from.
pub struct Chance(Mutex<StdRng>);

impl Chance {
    pub fn of_seed(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

/// From a run's due time to its dispatch, by lane; apart for runs that were missed and caught up.
pub struct Lateness {
    on_time: [Histogram; 3],
    caught_up: [Histogram; 3],
}

impl Lateness {
    pub fn of(metrics: &Metrics) -> Self {
        Self {
            on_time: metrics.lateness_by_lane(),
            caught_up: metrics.caught_up_by_lane(),
        }
    }

    fn observe(&self, work: &Work, micros: i64) {
        let late = micros.saturating_sub(work.run.due_at.as_millis().saturating_mul(1_000));
        let histograms = if work.caught_up {
            &self.caught_up
        } else {
            &self.on_time
        };
        if let Some(histogram) = histograms.get(work.run.lane.index()) {
            histogram.observe(late.max(0) as f64 / 1e6);
        }
    }
}

impl Attempts {
    /// Starts as many tasks as there are attempts to start and room to run them. Answers when to look again.
    pub fn start_due(self: &Arc<Self>) -> Option<Timestamp> {
        let (now, uptime) = (self.clock.now(), self.clock.uptime());
        let is_sure = self.presence.is_sure_at(uptime);
        let (starts, next) = self.board.start_due(now, uptime, is_sure);
        for start in starts {
            self.show(&start);
            tokio::spawn(run(Arc::clone(self), start));
        }
        next
    }

    /// What a task that just ended an attempt does next.
    fn next(&self, ended: Age) -> Option<Start> {
        let (now, uptime) = (self.clock.now(), self.clock.uptime());
        let is_sure = self.presence.is_sure_at(uptime);
        let next = self.board.next(ended, now, uptime, is_sure);
        next.inspect(|start| self.show(start))
    }

    /// Whoever asked for a run may be looking.
    fn show(&self, start: &Start) {
        if start.is_requested() {
            self.marks.now();
        }
    }
}

async fn run(attempts: Arc<Attempts>, first: Start) {
    let mut next = Some(first);
    while let Some(Start { work, age, at }) = next.take() {
        let waits = work.payload_left().is_some();
        if waits {
            attempts.board.set_dispatched(work.run.id, None);
        }
        let kill = &attempts.presence.kill;
        let payload = match attempts.payloads.payload_of(&work, kill).await {
            Ok(payload) => payload,
            Err(Unsent::Killed) => return,
            Err(Unsent::HandedBack) => {
                if hand_back(&attempts, work).await.is_err() {
                    return;
                }
                next = attempts.next(age);
                continue;
            }
        };
        let Some(dispatched_at) = leaves(&attempts, &work, at, waits).await else {
            return;
        };
        if dispatched_at < work.run.due_at {
            // The clock went back while it waited: whoever claims it next starts it when it is due again.
            if hand_back(&attempts, work).await.is_err() {
                return;
            }
            next = attempts.next(age);
            continue;
        }
        attempts.metrics.dispatched.inc();
        watch_start(&attempts, &work, dispatched_at);
        let Some(report) = deliver(&attempts, &work, payload, dispatched_at).await else {
            return;
        };
        let settled_at = attempts.clock.now();
        let verdict = verdict(&attempts, &work, &report, settled_at);
        let Ok(room) = attempts.payloads.output_room(&report, kill).await else {
            return;
        };
        let ended = attempts.board.ended(work.run.id, verdict, settled_at, room);
        if let Some(verdict) = ended {
            let ended = Ended {
                work,
                report,
                verdict,
                dispatched_at,
                settled_at,
            };
            if attempts.endings.send(Ending::of(ended)).await.is_err() {
                return;
            }
        }
        next = attempts.next(age);
    }
}

/// The moment at which an attempt is dispatched: when its turn came, if nothing has kept it since. It may be before the run
/// is due, by a clock that went back meanwhile: then it is not dispatched. None when the presence has ended.
async fn leaves(
    attempts: &Attempts,
    work: &Work,
    at: Timestamp,
    mut waits: bool,
) -> Option<Timestamp> {
    if !attempts.presence.is_sure() {
        waits = true;
        attempts.board.set_dispatched(work.run.id, None);
        if !is_still_here(attempts).await {
            return None;
        }
    }
    if attempts.presence.kill.is_cancelled() {
        return None;
    }
    let micros = attempts.clock.now_micros();
    let left_at = if waits {
        Timestamp::from_millis(micros / 1_000)
    } else {
        at
    };
    if left_at < work.run.due_at {
        return Some(left_at);
    }
    attempts.lateness.observe(work, micros);
    if waits {
        attempts.board.set_dispatched(work.run.id, Some(left_at));
    }
    Some(left_at)
}

/// Gives up the claim of an attempt that did not leave: whoever claims its run next works on its job as it stands then.
async fn hand_back(attempts: &Attempts, work: Arc<Work>) -> Result<(), Gone> {
    let now = attempts.clock.now();
    let board = &attempts.board;
    match board.ended(work.run.id, Verdict::Release, now, None) {
        Some(verdict) => {
            let settlement = work.undispatched(verdict, now);
            attempts.endings.send(Ending::settled(settlement)).await
        }
        None => Ok(()),
    }
}

/// What follows from how the attempt ended, if it was not to be cancelled.
fn verdict(attempts: &Attempts, work: &Work, report: &Report, settled_at: Timestamp) -> Verdict {
    let (run, retry) = (&work.run, &work.job.def.retry);
    // Most succeed, and those need no chance.
    match report.outcome {
        Outcome::Succeeded => Verdict::Succeed,
        Outcome::Failed | Outcome::TimedOut | Outcome::Lost | Outcome::Cancelled => {
            let Chance(chance) = &attempts.chance;
            let chance = lock(chance).random::<f64>();
            retry.verdict(run.attempt, run.lost, report, settled_at, chance)
        }
    }
}

/// Right before something leaves the node: a machine that stood still may have lost its presence, and
/// does not know it yet. Waits for the next beat; false when the presence has ended.
async fn is_still_here(attempts: &Attempts) -> bool {
    let Attempts {
        presence, clock, ..
    } = attempts;
    while !presence.is_sure() {
        tokio::select! {
            biased;
            () = presence.kill.cancelled() => return false,
            () = clock.sleep(limits::LEAD_MIN) => {}
        }
    }
    !presence.kill.is_cancelled()
}

/// None when the presence ended first: then nobody may report.
async fn deliver(
    attempts: &Attempts,
    work: &Work,
    payload: Option<Bytes>,
    dispatched_at: Timestamp,
) -> Option<Report> {
    let Work { run, job, stop, .. } = work;
    let Some(executor) = attempts.executors.of(job) else {
        let kind = job.def.target.kind();
        return Some(Report::failed(format!(
            "this node has no executor for {kind} targets"
        )));
    };
    let order = WorkOrder {
        run: run.id,
        attempt: run.attempt,
        slot: run.slot,
        job: Arc::clone(job),
        payload,
        node: Arc::clone(&attempts.by.node),
    };
    let delivery = async move { executor.execute(order).await };
    let mut delivery = pin!(AssertUnwindSafe(delivery).catch_unwind());
    // Most that can end at once does: then no timer and no watch is set up.
    let done = match futures_util::poll!(&mut delivery) {
        Poll::Ready(done) => done,
        Poll::Pending => tokio::select! {
            biased;
            done = &mut delivery => done,
            () = attempts.presence.kill.cancelled() => return None,
            () = stop.notified() => return Some(Report::of(Outcome::Cancelled)),
            () = attempts.clock.sleep(job.def.timeout) => return Some(timed_out(job.def.timeout)),
            never = watch_length(attempts, work, dispatched_at) => match never {},
        },
    };
    Some(done.unwrap_or_else(|_| {
        attempts.metrics.panicked("executor");
        Report::failed("the executor failed on this attempt")
    }))
}

/// Says so when a run starts later than its job wants.
fn watch_start(attempts: &Attempts, work: &Work, dispatched_at: Timestamp) {
    let Work { run, job, .. } = work;
    if let Some(late_by) = job.late_by(run, dispatched_at) {
        attempts.metrics.late.inc();
        let late_by = format!("late by {}", format_span(late_by));
        attempts.by.trouble.log(What::Late, job, run.id, &late_by);
    }
}

/// Says so when a run takes longer than its job wants, while it still does. Its end is not waited for here.
async fn watch_length(attempts: &Attempts, work: &Work, dispatched_at: Timestamp) -> Infallible {
    let Work { run, job, .. } = work;
    if let Some(bound) = job.def.finish_within {
        let begun = run.dispatched_at.unwrap_or(dispatched_at);
        let left = bound.saturating_sub(attempts.clock.now().since(begun));
        attempts.clock.sleep(left).await;
        let reason = format!("has not ended within {}", format_span(bound));
        attempts.by.trouble.log(What::Long, job, run.id, &reason);
    }
    std::future::pending().await
}

fn timed_out(timeout: std::time::Duration) -> Report {
    let mut report = Report::of(Outcome::TimedOut);
    report.error = Some(format!("no answer within {}", format_span(timeout)));
    report
}
