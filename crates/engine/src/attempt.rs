//! One attempt after another: deliver, report, take the next. A task that ends an attempt starts
//! the next one itself, so that a busy lane needs no hand-over.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use executor::WorkOrder;
use futures_util::FutureExt;
use model::schedule::format_span;
use model::{Outcome, Report, Timestamp, Verdict, limits};

use crate::desk::{Ended, Ending, Gone};
use crate::dispatch::{Start, Work};
use crate::node::Context;
use crate::payloads::Unsent;
use crate::trouble::What;

pub async fn run(context: Arc<Context>, first: Start) {
    let mut next = Some(first);
    while let Some(Start { work, age, at }) = next.take() {
        let waits = work.payload_left().is_some();
        if waits {
            context.dispatch.set_dispatched(work.run.id, None);
        }
        let payload = match context.payload_of(&work).await {
            Ok(payload) => payload,
            Err(Unsent::Killed) => return,
            Err(Unsent::HandedBack) => {
                if hand_back(&context, work).await.is_err() {
                    return;
                }
                next = context.dispatch.next(&context, age);
                continue;
            }
        };
        let Some(dispatched_at) = leaves(&context, &work, at, waits).await else {
            return;
        };
        context.shared.metrics.dispatched.inc();
        watch_start(&context, &work, dispatched_at);
        let Some(report) = deliver(&context, &work, payload, dispatched_at).await else {
            return;
        };
        let settled_at = context.now();
        let verdict = verdict(&context, &work, &report, settled_at);
        let Ok(room) = context.output_room(&report).await else {
            return;
        };
        if let Some(verdict) = context
            .dispatch
            .ended(work.run.id, verdict, settled_at, room)
        {
            let ended = Ended {
                work,
                report,
                verdict,
                dispatched_at,
                settled_at,
            };
            if context.endings.send(Ending::of(ended)).await.is_err() {
                return;
            }
        }
        next = context.dispatch.next(&context, age);
    }
}

/// The moment at which an attempt is dispatched: when its turn came, if nothing has kept it since. None when the presence
/// has ended.
async fn leaves(
    context: &Context,
    work: &Work,
    at: Timestamp,
    mut waits: bool,
) -> Option<Timestamp> {
    if !context.is_present() {
        waits = true;
        context.dispatch.set_dispatched(work.run.id, None);
        if !is_still_here(context).await {
            return None;
        }
    }
    if context.kill.is_cancelled() {
        return None;
    }
    let micros = context.shared.clock.now_micros();
    context.dispatch.lateness(work, micros);
    if !waits {
        return Some(at);
    }
    let left_at = Some(Timestamp::from_millis(micros / 1_000));
    context.dispatch.set_dispatched(work.run.id, left_at);
    left_at
}

/// Gives up the claim of an attempt that did not leave: whoever claims its run next works on its job as it stands then.
async fn hand_back(context: &Context, work: Arc<Work>) -> Result<(), Gone> {
    let now = context.now();
    match context
        .dispatch
        .ended(work.run.id, Verdict::Release, now, None)
    {
        Some(verdict) => {
            let settlement = work.undispatched(verdict, now);
            context.endings.send(Ending::settled(settlement)).await
        }
        None => Ok(()),
    }
}

/// What follows from how the attempt ended, if it was not to be cancelled.
fn verdict(context: &Context, work: &Work, report: &Report, settled_at: Timestamp) -> Verdict {
    let (run, retry) = (&work.run, &work.job.def.retry);
    // Most succeed, and those need no chance.
    match report.outcome {
        Outcome::Succeeded => Verdict::Succeed,
        Outcome::Failed | Outcome::TimedOut | Outcome::Lost | Outcome::Cancelled => {
            retry.verdict(run.attempt, run.lost, report, settled_at, context.chance())
        }
    }
}

/// Right before something leaves the node: a machine that stood still may have lost its presence, and
/// does not know it yet. Waits for the next beat; false when the presence has ended.
async fn is_still_here(context: &Context) -> bool {
    while !context.is_present() {
        tokio::select! {
            biased;
            () = context.kill.cancelled() => return false,
            () = context.shared.clock.sleep(limits::LEAD_MIN) => {}
        }
    }
    !context.kill.is_cancelled()
}

/// None when the presence ended first: then nobody may report.
async fn deliver(
    context: &Arc<Context>,
    work: &Work,
    payload: Option<Bytes>,
    dispatched_at: Timestamp,
) -> Option<Report> {
    let Work { run, job, stop, .. } = work;
    let kind = job.def.target.kind();
    let Some(executor) = context.registry.get(kind) else {
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
        node: Arc::clone(&context.node),
    };
    let delivery = async move { executor.execute(order).await };
    let mut delivery = pin!(AssertUnwindSafe(delivery).catch_unwind());
    // Most that can end at once does: then no timer and no watch is set up.
    let done = match futures_util::poll!(&mut delivery) {
        Poll::Ready(done) => done,
        Poll::Pending => tokio::select! {
            biased;
            done = &mut delivery => done,
            () = context.kill.cancelled() => return None,
            () = stop.notified() => return Some(Report::of(Outcome::Cancelled)),
            () = context.shared.clock.sleep(job.def.timeout) => return Some(timed_out(job.def.timeout)),
            never = watch_length(context, work, dispatched_at) => match never {},
        },
    };
    Some(done.unwrap_or_else(|_| {
        context.shared.metrics.panicked("executor");
        Report::failed("the executor failed on this attempt")
    }))
}

/// Says so when a run starts later than its job wants.
fn watch_start(context: &Context, work: &Work, dispatched_at: Timestamp) {
    let Work { run, job, .. } = work;
    if let Some(late_by) = job.late_by(run, dispatched_at) {
        let shared = &context.shared;
        shared.metrics.late.inc();
        let late_by = format!("late by {}", format_span(late_by));
        let uptime = shared.clock.uptime();
        shared
            .trouble
            .log(uptime, What::Late, job, run.id, &late_by);
    }
}

/// Says so when a run takes longer than its job wants, while it still does. Its end is not waited for here.
async fn watch_length(context: &Context, work: &Work, dispatched_at: Timestamp) -> Infallible {
    let Work { run, job, .. } = work;
    if let Some(bound) = job.def.finish_within {
        let shared = &context.shared;
        let begun = run.dispatched_at.unwrap_or(dispatched_at);
        let left = bound.saturating_sub(context.now().since(begun));
        shared.clock.sleep(left).await;
        let reason = format!("has not ended within {}", format_span(bound));
        let uptime = shared.clock.uptime();
        shared.trouble.log(uptime, What::Long, job, run.id, &reason);
    }
    std::future::pending().await
}

fn timed_out(timeout: std::time::Duration) -> Report {
    let mut report = Report::of(Outcome::TimedOut);
    report.error = Some(format!("no answer within {}", format_span(timeout)));
    report
}
