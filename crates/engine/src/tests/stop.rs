//! Stop: what a node that stops in good order hands over, finishes, and gives up.

use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt, poll};
use model::shard::ShardSet;
use model::{Outcome, Report, RunState};
use store::{EngineStore, StoreError};

use super::bench::{Bench, SCHEDULES, run_of};
use super::world::{Fault, at, ms, once};
use crate::clock::Clock;
use crate::duty::Duty;

/// Stops the node while the duties that end last go on, and says how long that took.
async fn stop(bench: &Bench, grace: Duration, mut meanwhile: impl FnMut(Duration)) -> Duration {
    bench.begin_stopping();
    let (mut fire, mut settle) = (bench.fire(), bench.settle());
    let (mut dispatch, mut beats) = (bench.dispatch(), bench.beats());
    let begun = Clock::uptime(&bench.clock);
    let mut stopping = pin!(bench.wind_up(grace));
    loop {
        let took = Clock::uptime(&bench.clock) - begun;
        if poll!(&mut stopping).is_ready() {
            return took;
        }
        let duties: [&mut dyn Duty; 4] = [&mut fire, &mut dispatch, &mut settle, &mut beats];
        for duty in duties {
            // An error is waited out, as ever.
            let _stepped = duty.step(bench.now()).now_or_never();
        }
        bench.quiet().await;
        meanwhile(took);
        bench.clock.advance(ms(1));
        assert!(took < Duration::from_secs(60), "it does not end");
    }
}

#[tokio::test]
async fn a_node_with_nothing_to_do_stops_at_once() {
    let bench = Bench::holding().await;
    let took = stop(&bench, ms(10_000), |_| {}).await;
    assert!(took < ms(100), "{took:?}");
}

#[tokio::test]
async fn its_shards_are_free_for_others() {
    let bench = Bench::holding().await;
    stop(&bench, ms(1_000), |_| {}).await;
    assert!(bench.leased().shards().is_empty());
    let other = bench.other(SCHEDULES).await;
    let leases = bench.mem.lease(other, &ShardSet::ALL).await.unwrap();
    assert!(leases.shards().is_all());
}

#[tokio::test]
async fn what_was_not_started_is_handed_back_under_the_same_number() {
    let bench = Bench::holding().await;
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    stop(&bench, ms(1_000), |_| {}).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.claim), (RunState::Ready, None));
    assert_eq!((stands.attempt.0, bench.held()), (1, 0));
    assert!(bench.target.runs().is_empty());
}

#[tokio::test]
async fn what_runs_is_given_its_grace() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let run = bench.started(once(1, 1_000), 1_000).await;
    let target = bench.target.clone();
    let took = stop(&bench, ms(1_000), |took| {
        if took == ms(300) {
            target.answers(Report::succeeded());
        }
    })
    .await;
    assert!((ms(300)..ms(400)).contains(&took), "{took:?}");
    assert_eq!(bench.run(run).await.unwrap().state, RunState::Succeeded);
}

#[tokio::test]
async fn what_does_not_end_within_its_grace_is_lost() {
    let bench = Bench::holding().await;
    bench.target.is_silent();
    let run = bench.started(once(1, 1_000), 1_000).await;
    let took = stop(&bench, ms(500), |_| {}).await;
    assert!((ms(500)..ms(700)).contains(&took), "{took:?}");
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.claim), (RunState::Retrying, None));
    let attempt = &stands.attempts[0];
    assert_eq!(attempt.outcome, Outcome::Lost);
    assert_eq!(attempt.dispatched_at, Some(at(1_000)));
    assert_eq!(bench.held(), 0);
}

#[tokio::test]
async fn with_another_to_take_over_what_is_due_in_a_moment_starts_here() {
    let bench = Bench::holding().await;
    bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    let (soon, later) = (once(1, 400), once(2, 2_000));
    let (soon, later) = (bench.put(soon).await, bench.put(later).await);
    bench.rest(&mut bench.plan()).await;
    stop(&bench, ms(1_000), |_| {}).await;
    assert_eq!(bench.target.runs(), [run_of(&soon, 400)]);
    assert_eq!(bench.state(&soon, 400).await, Some(RunState::Succeeded));
    assert_eq!(bench.state(&later, 2_000).await, None, "the other fires it");
}

#[tokio::test]
async fn without_another_nothing_is_fired_ahead() {
    let bench = Bench::holding().await;
    bench.rest(&mut bench.beats()).await;
    let soon = bench.put(once(1, 400)).await;
    bench.rest(&mut bench.plan()).await;
    stop(&bench, ms(1_000), |_| {}).await;
    assert_eq!(bench.state(&soon, 400).await, None);
    assert!(bench.target.runs().is_empty());
}

#[tokio::test]
async fn others_hear_that_it_schedules_no_more() {
    let bench = Bench::holding().await;
    let other = bench.other(SCHEDULES).await;
    bench.rest(&mut bench.beats()).await;
    stop(&bench, ms(1_000), |_| {}).await;
    let living = bench.mem.beat(other, &SCHEDULES).await.unwrap().living;
    let me = living.iter().find(|peer| peer.presence == bench.me());
    assert!(!me.unwrap().node_status.schedules);
}

#[tokio::test]
async fn a_store_that_is_away_does_not_keep_it() {
    let bench = Bench::holding().await;
    bench.claimed(once(1, 1_000), 1_000).await;
    for call in ["settle", "lease", "beat", "fire"] {
        bench.calls.spoil(call, [Fault::Silence; 50]);
    }
    let took = stop(&bench, ms(500), |_| {}).await;
    assert!(took <= ms(3_600), "{took:?}: the grace and a margin");
    assert_eq!(bench.held(), 1, "the next start finds it");
}

#[tokio::test]
async fn leaving_ends_the_presence() {
    let bench = Bench::holding().await;
    bench.leave().await;
    let beat = bench.mem.beat(bench.me(), &SCHEDULES).await;
    assert!(matches!(beat, Err(StoreError::Fenced)));
}
