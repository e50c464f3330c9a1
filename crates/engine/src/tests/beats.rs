//! Beats: what a node says of itself and hears with each.

use model::{Parts, limits};
use store::{EngineStore, NodeStatus, StoreError};

use super::bench::{Bench, SCHEDULES};
use super::world::{Fault, at, ms, once};
use crate::duty::Wake;

/// What others hear of this node.
async fn shown(bench: &Bench) -> NodeStatus {
    let other = bench.other(SCHEDULES).await;
    let living = bench.mem.beat(other, &SCHEDULES).await.unwrap().living;
    let me = living.iter().find(|peer| peer.presence == bench.me());
    me.unwrap().node_status
}

#[tokio::test]
async fn a_beat_hears_who_lives_and_comes_again_in_a_second() {
    let bench = Bench::new().await;
    bench.other(SCHEDULES).await;
    let wake = bench.step(&mut bench.beats()).await.unwrap();
    assert_eq!(wake, Wake::At(at(1_000)));
    assert_eq!(bench.metrics().nodes.get(), 2);
    let nudges = bench.nudges();
    let heard = [&nudges.hold, &nudges.marks, &nudges.beaten].map(|nudge| bench.heard(nudge));
    assert_eq!(heard, [true; 3], "whoever acts on what it brings");
}

#[tokio::test]
async fn a_beat_says_what_a_node_does_and_has_room_for() {
    let bench = Bench::with(|config| config.running_max = 10).await;
    bench.step(&mut bench.beats()).await.unwrap();
    let status = shown(&bench).await;
    assert_eq!(
        (status.schedules, status.executes, status.room),
        (true, true, 10)
    );
}

#[tokio::test]
async fn claims_take_from_the_room() {
    let bench = Bench::with(|config| config.running_max = 10).await;
    bench.hold(&model::shard::ShardSet::ALL).await;
    bench.claimed(once(1, 1_000), 1_000).await;
    bench.step(&mut bench.beats()).await.unwrap();
    assert_eq!(shown(&bench).await.room, 9);
}

#[tokio::test]
async fn a_node_that_only_executes_has_no_shards_fall_to_it() {
    let bench = Bench::with(|config| config.parts = Parts::from_code(4)).await;
    bench.step(&mut bench.beats()).await.unwrap();
    let status = shown(&bench).await;
    assert_eq!((status.schedules, status.executes), (false, true));
}

#[tokio::test]
async fn a_node_that_stops_says_so() {
    let bench = Bench::new().await;
    bench.begin_stopping();
    bench.step(&mut bench.beats()).await.unwrap();
    let status = shown(&bench).await;
    assert_eq!((status.schedules, status.room), (false, 0));
}

#[tokio::test]
async fn how_late_runs_wait_for_their_turn_is_said() {
    let bench = Bench::with(|config| config.running_max = 1).await;
    bench.hold(&model::shard::ShardSet::ALL).await;
    bench.target.is_silent();
    for number in 1..=2 {
        bench.put(once(number, 1_000)).await;
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.pass(ms(700));
    bench.step(&mut bench.beats()).await.unwrap();
    assert_eq!(shown(&bench).await.lateness, 700);
}

#[tokio::test]
async fn beats_that_are_requested_come_no_faster_than_they_may() {
    let bench = Bench::new().await;
    let mut beats = bench.beats();
    bench.step(&mut beats).await.unwrap();
    bench.pass(ms(5));
    assert_eq!(bench.step(&mut beats).await.unwrap(), Wake::At(at(20)));
    assert_eq!(bench.calls.count("beat"), 1);
    bench.pass(ms(15));
    bench.step(&mut beats).await.unwrap();
    assert_eq!(bench.calls.count("beat"), 2);
}

#[tokio::test]
async fn a_presence_counts_from_when_its_last_beat_was_sent() {
    let bench = Bench::new().await;
    let mut beats = bench.beats();
    bench.step(&mut beats).await.unwrap();
    let lasts = limits::PRESENCE_TTL - limits::PRESENCE_MARGIN;
    bench.clock.advance(lasts - ms(1));
    assert!(bench.is_present());
    bench.clock.advance(ms(1));
    assert!(!bench.is_present());
    bench.step(&mut beats).await.unwrap();
    assert!(bench.is_present());
    assert!(
        bench.heard(&bench.nudges().fire),
        "what waited for it goes on"
    );
}

#[tokio::test]
async fn a_beat_that_is_not_answered_within_a_second_has_failed() {
    let bench = Bench::new().await;
    bench.calls.spoil("beat", [Fault::Silence]);
    assert!(bench.step(&mut bench.beats()).await.is_err());
    assert_eq!(bench.now(), at(1_000));
}

#[tokio::test]
async fn a_presence_that_was_fenced_is_over() {
    let bench = Bench::new().await;
    bench.mem.leave(bench.me()).await.unwrap();
    let beat = bench.step(&mut bench.beats()).await;
    assert!(matches!(beat, Err(StoreError::Fenced)));
}

#[tokio::test]
async fn a_step_of_the_wall_clock_has_everything_read_again() {
    let bench = Bench::holding().await;
    let mut beats = bench.beats();
    bench.step(&mut beats).await.unwrap();
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    bench.put(once(1, 5_000)).await;
    bench.pass(ms(200));
    bench.clock.step_wall(500);
    bench.step(&mut beats).await.unwrap();
    assert_eq!(bench.metrics().clock_steps.get(), 1);
    let nudges = bench.nudges();
    let heard = [&nudges.plan, &nudges.fire, &nudges.dispatch].map(|nudge| bench.heard(nudge));
    assert_eq!(heard, [true; 3]);
    bench.rest(&mut plan).await;
    assert_eq!(bench.in_wheel(), 1, "the whole window was read");
}

#[tokio::test]
async fn a_clock_that_drifts_a_little_was_not_stepped() {
    let bench = Bench::new().await;
    let mut beats = bench.beats();
    bench.step(&mut beats).await.unwrap();
    bench.pass(ms(1_000));
    bench.clock.step_wall(499);
    bench.step(&mut beats).await.unwrap();
    assert_eq!(bench.metrics().clock_steps.get(), 0);
}

#[tokio::test]
async fn a_node_is_ready_when_it_is_present_and_has_planned() {
    let bench = Bench::holding().await;
    assert!(!bench.health().is_ready());
    bench.step(&mut bench.beats()).await.unwrap();
    assert!(!bench.health().is_ready());
    bench.rest(&mut bench.plan()).await;
    assert!(bench.health().is_ready());
}
