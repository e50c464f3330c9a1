//! Stopping in good order: nothing new starts, what is due in a moment is left for whoever comes,
//! what runs gets its grace, the rest is handed back.

use std::sync::Arc;
use std::time::Duration;

use model::{Attempt, AttemptNo, Outcome, Report, Verdict, limits};
use store::Settlement;
use tracing::{info, warn};

use crate::duty::describe;
use crate::fire;
use crate::lock;
use crate::node::Context;
use crate::settle::{Ending, window_of};

/// Slots due this soon are fired before leaving, so that they are not late for the hand-over.
const SOON: Duration = limits::LEAD_MAX;

pub async fn hand_over(context: &Arc<Context>, grace: Duration) {
    context.dispatch.close();
    fire_soon(context).await;
    for settlement in context.dispatch.release_waiting() {
        if context
            .endings
            .send(Ending::Judged(Box::new(settlement)))
            .await
            .is_err()
        {
            break;
        }
    }
    let clock = &context.shared.clock;
    let begun = clock.uptime();
    let mut told = false;
    while context.dispatch.is_busy() && clock.uptime().saturating_sub(begun) < grace {
        if !told && context.dispatch.running() > 0 {
            info!(
                attempts = context.dispatch.running(),
                "waiting for attempts under way"
            );
            told = true;
        }
        clock.sleep(Duration::from_millis(5)).await;
    }
    for settlement in cut_off(context) {
        if context
            .endings
            .send(Ending::Judged(Box::new(settlement)))
            .await
            .is_err()
        {
            break;
        }
    }
    // What was just sent must reach the store; it is quick or the store is down.
    let begun = clock.uptime();
    while context.dispatch.is_busy()
        && clock.uptime().saturating_sub(begun) < Duration::from_secs(2)
    {
        clock.sleep(Duration::from_millis(5)).await;
    }
}

/// Fires what is due soon, for others to claim.
async fn fire_soon(context: &Arc<Context>) {
    let until = context.now().plus(SOON);
    loop {
        let taken = lock(&context.wheel).take(until, limits::FIRE_BATCH_MAX);
        if taken.is_empty() || !context.is_present() {
            return;
        }
        let firings: Vec<_> = taken
            .into_iter()
            .filter_map(|(_, entry)| fire::firing(entry, context.now(), false))
            .collect();
        let leases = context.leases();
        if let Err(error) = context.store.fire(&leases, &firings).await {
            warn!(error = %describe(&error), "could not fire what is due soon");
            return;
        }
    }
}

/// Attempts that did not finish in time: they may have run, so they are lost.
fn cut_off(context: &Arc<Context>) -> Vec<Settlement> {
    let now = context.now();
    context
        .dispatch
        .cut_off()
        .into_iter()
        .map(|(run, job, dispatched_at)| {
            let claim = model::retry::LostClaim {
                attempt: AttemptNo(run.attempt.0),
                lost: run.lost,
                due_at: run.due_at.min(now),
                ended_at: now,
                delivery: job.def.delivery,
                window: window_of(&job),
            };
            let mut report = Report::of(Outcome::Lost);
            report.error = Some("the node stopped before the attempt ended".to_owned());
            let attempt = Attempt::new(run.attempt, dispatched_at, now, report);
            let verdict: Verdict = claim.verdict(now);
            Settlement {
                run,
                verdict,
                attempt: Some(attempt),
            }
        })
        .collect()
}
