//! Stopping in good order: nothing new starts, what is due in a moment is left for whoever comes,
//! what runs gets its grace, the rest is handed back.

use std::sync::Arc;
use std::time::Duration;

use model::{Attempt, AttemptNo, Outcome, Report, Verdict};
use store::Settlement;
use tracing::{info, warn};

use crate::node::Context;
use crate::settle::{Ending, window_of};

/// How long the last writes of fire may take.
const FIRE_OUT: Duration = Duration::from_secs(2);

pub async fn hand_over(context: &Arc<Context>, grace: Duration) {
    context.dispatch.close();
    let clock = &context.shared.clock;
    // Fire writes what is due soon, for whoever comes, and hears of what it wrote before.
    context.shared.nudges.fire.now();
    tokio::select! {
        biased;
        () = context.shared.nudges.fired_out.heard() => {}
        () = clock.sleep(FIRE_OUT) => warn!("not everything due soon could be fired"),
    }
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
