//! One attempt after another: deliver, report, take the next. A task that ends an attempt starts
//! the next one itself, so that a busy lane needs no hand-over.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use executor::WorkOrder;
use futures_util::FutureExt;
use model::{Outcome, Report, Timestamp, Verdict, limits};

use crate::desk::{Ended, Ending};
use crate::dispatch::{Start, Work};
use crate::node::Context;

pub async fn run(context: Arc<Context>, first: Start) {
    let mut next = Some(first);
    while let Some(Start { work, age }) = next.take() {
        if !is_still_here(&context).await {
            return;
        }
        let micros = context.shared.clock.now_micros();
        let dispatched_at = Timestamp::from_millis(micros / 1_000);
        context.dispatch.lateness(&work, micros);
        context.shared.metrics.dispatched.inc();
        let Some(report) = deliver(&context, &work).await else {
            return;
        };
        let settled_at = context.now();
        let verdict = verdict(&context, &work, &report, settled_at);
        if let Some(verdict) = context.dispatch.ended(work.run.id, verdict, settled_at) {
            context.shared.metrics.settled_with(report.outcome);
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
async fn deliver(context: &Arc<Context>, work: &Work) -> Option<Report> {
    let Work { run, job, stop } = work;
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
        payload: run.payload.clone(),
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
        },
    };
    Some(done.unwrap_or_else(|_| Report::failed("the executor failed on this attempt")))
}

fn timed_out(timeout: std::time::Duration) -> Report {
    let mut report = Report::of(Outcome::TimedOut);
    report.error = Some(format!(
        "no answer within {}",
        model::schedule::format_span(timeout)
    ));
    report
}
