//! Stopping in good order. Other nodes take over while this one still works: it says that it schedules no more,
//! fires and starts what is due within half a second, and gives up its shards at once, so that nothing is late.
//! Then nothing new starts, what runs gets its grace, and the rest is handed back.
//!
//! Nothing is decided further ahead: whether a slot overlaps with the run before it shows when it is due.
//!
//! All of it ends within the grace and a little more, whatever the store does: what it could not be told then is found
//! by others, or at the next start, when this presence has lapsed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use model::shard::ShardSet;
use model::{Attempt, AttemptNo, Outcome, Report, Verdict, limits};
use store::{Hint, Settlement, StoreError};
use tracing::{info, warn};

use crate::desk::Ending;
use crate::duty::describe;
use crate::lock;
use crate::node::Context;
use crate::settle::window_of;

/// How long the last writes of fire may take.
const FIRE_OUT: Duration = Duration::from_secs(2);

/// How long a beat may take that tells the others.
const TELL: Duration = Duration::from_millis(500);

/// What the last settlements may take beyond the grace, while the store answers.
const LAST: Duration = Duration::from_secs(2);

/// How much longer than the grace all of it takes at most, before the presence is given up; and what that may take.
const MARGIN: Duration = Duration::from_secs(3);
const LEAVE: Duration = Duration::from_secs(1);

/// Hands over, for as long as there is time.
pub async fn wind_up(context: &Arc<Context>, grace: Duration) {
    tokio::select! {
        biased;
        () = hand_over(context, grace) => {}
        () = context.shared.clock.sleep(grace + MARGIN) => {}
    }
}

/// Gives the presence up, so that nobody has to wait until it lapses, and says what the store was not told.
pub async fn leave(context: &Context) {
    let (presence, unwritten) = (context.presence.id, context.dispatch.unwritten());
    let answer = tokio::select! {
        biased;
        answer = context.store.leave(presence) => answer,
        () = context.shared.clock.sleep(LEAVE) => Err(StoreError::unavailable("no answer in time")),
    };
    match answer {
        Ok(()) if unwritten == 0 => info!(%presence, "left"),
        Ok(()) => warn!(
            %presence,
            runs = unwritten,
            "left, but how these runs went could not be written: others, or the next start, take them up as lost"
        ),
        Err(error) => warn!(
            %presence,
            runs = unwritten,
            error = %describe(&error),
            "stopped without the store: how these runs went is not written, and others, or the next start, take them up as lost once this presence has lapsed"
        ),
    }
}

async fn hand_over(context: &Arc<Context>, grace: Duration) {
    let clock = &context.shared.clock;
    let begun = clock.uptime();
    // One that the store has not answered for so long holds nothing any more that others could wait for.
    if others_schedule(context) && context.is_present() {
        tell(context).await;
        fire_out(context).await;
        give_up_shards(context).await;
        start_what_waits(context).await;
    }
    context.dispatch.close();
    // Fire hears of what it wrote before.
    fire_out(context).await;
    // Whoever came meanwhile is not kept waiting for attempts under way.
    give_up_shards(context).await;
    release(context).await;
    let mut told = false;
    while (context.dispatch.is_busy() || lock(&context.wheel).is_taking())
        && clock.uptime().saturating_sub(begun) < grace
    {
        if !told && context.dispatch.running() > 0 {
            info!(
                attempts = context.dispatch.running(),
                "waiting for attempts under way"
            );
            told = true;
        }
        release(context).await;
        clock.sleep(Duration::from_millis(5)).await;
    }
    for settlement in cut_off(context) {
        if context
            .endings
            .send(Ending::settled(settlement))
            .await
            .is_err()
        {
            break;
        }
    }
    // What was just sent must reach the store; it is quick or the store is down.
    let begun = clock.uptime();
    while context.dispatch.is_busy()
        && context.is_present()
        && clock.uptime().saturating_sub(begun) < LAST
    {
        release(context).await;
        clock.sleep(Duration::from_millis(5)).await;
    }
}

fn others_schedule(context: &Context) -> bool {
    let me = context.presence.id;
    let peers = lock(&context.shared.peers);
    let mut others = peers.iter().filter(|peer| peer.presence != me);
    others.any(|peer| peer.node_status.schedules)
}

async fn fire_out(context: &Context) {
    let (nudges, clock) = (&context.shared.nudges, &context.shared.clock);
    if !context.is_present() {
        return;
    }
    context.handing_over.store(true, Ordering::Release);
    // What was said before is not about now.
    let _before = nudges.fired_out.heard().now_or_never();
    nudges.fire.now();
    tokio::select! {
        biased;
        () = nudges.fired_out.heard() => {}
        () = clock.sleep(FIRE_OUT) => warn!("not everything due soon could be fired"),
    }
}

/// Says with a beat that shards do not fall to this node any more.
async fn tell(context: &Context) {
    let (nudges, clock) = (&context.shared.nudges, &context.shared.clock);
    // A beat under way may have been sent before the stop; the one after it says so.
    let told = lock(&context.heard).beats + 2;
    let begun = clock.uptime();
    while lock(&context.heard).beats < told && clock.uptime().saturating_sub(begun) < TELL {
        nudges.beat.now();
        tokio::select! {
            biased;
            () = nudges.beaten.heard() => {}
            () = clock.sleep(TELL) => {}
        }
    }
}

/// Lets the others have the shards, with as little of a gap as can be.
async fn give_up_shards(context: &Context) {
    if !context.is_present() {
        return;
    }
    let given_up = async {
        // Some may just be being asked for.
        let _one = context.leasing.lock().await;
        if context.leases().epochs.is_empty() {
            Ok(None)
        } else {
            context.lease(&ShardSet::default()).await.map(Some)
        }
    };
    let answer = tokio::select! {
        biased;
        answer = given_up => answer,
        () = context.shared.clock.sleep(FIRE_OUT) => Err(StoreError::unavailable("no answer in time")),
    };
    match answer {
        Ok(None) => return,
        Ok(Some(leases)) => context.hold(leases),
        Err(error) => warn!(error = %describe(&error), "could not give up its shards"),
    }
    context.pausing.store(false, Ordering::Release);
    context.store.hint(&[Hint::Leases]);
}

/// What is claimed and due in a moment starts here.
async fn start_what_waits(context: &Context) {
    let clock = &context.shared.clock;
    let begun = clock.uptime();
    while context.dispatch.is_waiting()
        && clock.uptime().saturating_sub(begun) < limits::LEAD_HAND_OVER * 2
    {
        clock.sleep(Duration::from_millis(5)).await;
    }
}

/// Hands back what has not been started, as soon as it is known: a write under way may still bring some.
async fn release(context: &Context) {
    for settlement in context.dispatch.release_waiting() {
        let ending = Ending::settled(settlement);
        if context.endings.send(ending).await.is_err() {
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
            let settlement = Settlement {
                run,
                verdict,
                attempt: Some(attempt.made_by(&context.node)),
            };
            context.observe_end(&job, &settlement);
            settlement
        })
        .collect()
}
