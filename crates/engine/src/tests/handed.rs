//! Handed over: what a node writes after a 202, and when it takes silence for an end.

use std::time::Duration;

use model::shard::ShardSet;
use model::{
    AttemptNo, Completion, Job, Outcome, PresenceId, Report, RunId, RunState, Slot, limits,
};
use store::{EngineStore, HandedStore};

use super::bench::Bench;
use super::world::{Fault, at, job_with};
use crate::OutsideError;

const WITHIN: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn callback() -> Job {
    job_with(1, Slot(at(1_000)).into(), |def| {
        def.timeout = Duration::from_secs(600);
        def.completion = Completion::Callback {
            heartbeat_within: WITHIN,
        };
    })
}

impl Bench {
    /// A run whose target has taken it over at 1 s; and its token.
    async fn taken_over(&self) -> (RunId, String) {
        self.target.answers(Report::succeeded().with_status(202));
        self.step(&mut self.beats()).await.unwrap();
        let run = self.started(callback(), 1_000).await;
        let orders = self.target.orders();
        let callback = orders.last().and_then(|order| order.callback.clone());
        let callback = callback.unwrap();
        let url = format!("http://127.0.0.1:8080/v1/runs/{run}/report");
        assert_eq!(callback.report_url, url);
        (run, callback.token)
    }

    /// The same, written.
    async fn handed_over(&self) -> (RunId, String) {
        let taken_over = self.taken_over().await;
        self.drain(&mut self.hand_over()).await;
        taken_over
    }

    /// Seconds pass, with a beat and a look at what is silent in each.
    async fn watch(&self, seconds: u32) {
        let (mut beats, mut handed) = (self.beats(), self.handed());
        self.watch_by(&mut beats, &mut handed, seconds).await;
    }

    async fn watch_by(
        &self,
        beats: &mut crate::beats::Beats,
        handed: &mut crate::handed::EndSilent,
        seconds: u32,
    ) {
        for _ in 0..seconds {
            self.step(beats).await.unwrap();
            self.step(handed).await.unwrap();
            self.pass(SECOND);
        }
        self.step(beats).await.unwrap();
        self.step(handed).await.unwrap();
    }
}

#[tokio::test]
async fn after_a_202_the_outside_has_it_and_the_node_holds_nothing() {
    let bench = Bench::holding().await;
    let (run, _) = bench.taken_over().await;
    assert_eq!(bench.held(), 1, "until it is written");
    bench.drain(&mut bench.hand_over()).await;
    assert_eq!(bench.held(), 0);
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.claim, Some(PresenceId::OUTSIDE));
    assert_eq!(stands.state, RunState::Running);
    assert_eq!(stands.dispatched_at, Some(at(1_000)));
    bench.drain(&mut bench.settle()).await;
    assert_eq!(bench.calls.count("settle"), 0);
}

#[tokio::test]
async fn any_other_answer_completes_it() {
    let bench = Bench::holding().await;
    bench.target.answers(Report::succeeded().with_status(200));
    let run = bench.started(callback(), 1_000).await;
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(ended.state, RunState::Succeeded);
}

#[tokio::test]
async fn a_202_without_callback_is_an_answer_as_any_other() {
    let bench = Bench::holding().await;
    bench.target.answers(Report::succeeded().with_status(202));
    let run = bench.started(super::world::once(1, 1_000), 1_000).await;
    assert!(bench.target.orders()[0].callback.is_none());
    bench.drain(&mut bench.settle()).await;
    let ended = bench.run(run).await.unwrap();
    assert_eq!(ended.state, RunState::Succeeded);
}

#[tokio::test]
async fn a_report_before_the_hand_over_ends_it_and_the_node_lets_go() {
    let bench = Bench::holding().await;
    let (run, token) = bench.taken_over().await;
    let taken = bench.outside().report(run, &token, Report::succeeded());
    assert!(!taken.await.unwrap().repeated);
    bench.drain(&mut bench.hand_over()).await;
    assert_eq!(bench.held(), 0);
    let again = bench.outside().report(run, &token, Report::succeeded());
    assert!(again.await.unwrap().repeated);
    let other = bench.outside().report(run, &token, Report::failed("no"));
    assert!(matches!(other.await, Err(OutsideError::Ended(Some(_)))));
}

#[tokio::test]
async fn a_token_opens_its_own_run_and_nothing_else() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let mut changed = token.clone();
    let last = changed.pop().unwrap();
    changed.push(if last == '0' { '1' } else { '0' });
    let second = token.replacen("_1_", "_2_", 1);
    for wrong in ["", "pt1", "pt1_00000000_1_0_00", &changed, &second] {
        let beaten = bench.outside().heartbeat(run, wrong, None, None).await;
        assert!(matches!(beaten, Err(OutsideError::Token)), "{wrong}");
    }
    let other = RunId::from_bytes([7; 16]);
    let beaten = bench.outside().heartbeat(other, &token, None, None).await;
    assert!(matches!(beaten, Err(OutsideError::Token)));
    let heard = bench.outside().heartbeat(run, &token, None, None).await;
    assert!(!heard.unwrap().cancel);
    assert!(bench.calls.count("report_keys") <= 3, "looked up once");
}

#[tokio::test]
async fn silence_ends_it_when_the_node_has_watched_for_that_long() {
    let bench = Bench::holding().await;
    let (run, _) = bench.handed_over().await;
    bench.watch(59).await;
    assert!(bench.mem.live_run(run).unwrap().claim.is_some());
    bench.watch(61).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.lost), (RunState::Retrying, 1));
    assert_eq!(stands.attempt, AttemptNo(2));
    assert_eq!(stands.attempts[0].outcome, Outcome::Lost);
}

#[tokio::test]
async fn writes_of_heartbeats_keep_a_distance_so_that_many_share_one() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let outside = bench.outside();
    let first = outside.heartbeat(run, &token, None, None).await;
    first.expect("the first one is written at once");
    let mut second = Box::pin(outside.heartbeat(run, &token, None, None));
    for _ in 0..10 {
        tokio::select! {
            biased;
            _ = &mut second => panic!("written at once"),
            () = tokio::task::yield_now() => {}
        }
    }
    bench.pass(limits::HEARTBEATS_APART);
    second.await.expect("written in its time");
}

#[tokio::test]
async fn heartbeats_keep_it() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let (mut beats, mut handed) = (bench.beats(), bench.handed());
    for _ in 0..5 {
        bench.watch_by(&mut beats, &mut handed, 50).await;
        let heard = bench.outside().heartbeat(run, &token, None, None).await;
        assert!(!heard.unwrap().cancel);
    }
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.claim, Some(PresenceId::OUTSIDE));
}

#[tokio::test]
async fn a_node_without_its_presence_takes_neither_heartbeats_nor_reports() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let mut beats = bench.beats();
    bench.pass(limits::PRESENCE_TTL);
    let outside = bench.outside();
    let heard = outside.heartbeat(run, &token, None, None).await;
    assert!(matches!(heard, Err(OutsideError::Unready)), "{heard:?}");
    let report = Report::succeeded();
    let taken = outside.report(run, &token, report.clone()).await;
    assert!(matches!(taken, Err(OutsideError::Unready)), "{taken:?}");
    bench.step(&mut beats).await.unwrap();
    outside.report(run, &token, report).await.unwrap();
}

#[tokio::test]
async fn a_node_that_stood_still_takes_no_heartbeats_by_an_answer_from_before() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let mut beats = bench.beats();
    // What it knows of the store's clock is from before, too: that may have been stepped since.
    let late = Fault::Late(limits::PRESENCE_TTL);
    bench.calls.spoil("beat", [late]);
    bench.step(&mut beats).await.unwrap();
    let outside = bench.outside();
    let heard = outside.heartbeat(run, &token, None, None).await;
    assert!(matches!(heard, Err(OutsideError::Unready)), "{heard:?}");
    bench.step(&mut beats).await.unwrap();
    outside.heartbeat(run, &token, None, None).await.unwrap();
}

#[tokio::test]
async fn a_node_that_knows_the_time_badly_takes_no_heartbeats() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let other = bench.beside(0).await;
    other.beat_late();
    let outside = other.outside();
    let heard = outside.heartbeat(run, &token, None, None).await;
    assert!(matches!(heard, Err(OutsideError::Unready)), "{heard:?}");
    other.step(&mut other.beats()).await.unwrap();
    outside.heartbeat(run, &token, None, None).await.unwrap();
}

#[tokio::test]
async fn a_node_that_was_not_there_begins_its_watch_again() {
    let bench = Bench::holding().await;
    let (run, _) = bench.handed_over().await;
    let (mut beats, mut handed) = (bench.beats(), bench.handed());
    bench.watch_by(&mut beats, &mut handed, 30).await;
    // Its beats break.
    bench.pass(Duration::from_secs(40));
    bench.watch_by(&mut beats, &mut handed, 58).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(
        stands.claim,
        Some(PresenceId::OUTSIDE),
        "trusted for longer"
    );
    // Somebody else has the shards for a moment.
    bench.hold(&ShardSet::default()).await;
    bench.watch_by(&mut beats, &mut handed, 1).await;
    bench.hold(&ShardSet::ALL).await;
    bench.watch_by(&mut beats, &mut handed, 58).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.claim, Some(PresenceId::OUTSIDE));
    bench.watch_by(&mut beats, &mut handed, 4).await;
    assert_eq!(bench.mem.live_run(run).unwrap().lost, 1);
}

#[tokio::test]
async fn a_clock_that_steps_loses_nothing() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let (mut beats, mut handed) = (bench.beats(), bench.handed());
    bench.watch_by(&mut beats, &mut handed, 65 - 10).await;
    bench.clock.step_wall(300_000);
    bench.watch_by(&mut beats, &mut handed, 50).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.claim, Some(PresenceId::OUTSIDE));
    let heard = bench.outside().heartbeat(run, &token, None, None).await;
    assert!(heard.unwrap().until > bench.now());
}

#[tokio::test]
async fn its_timeout_ends_it_at_once() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    for _ in 0..11 {
        bench.pass(Duration::from_secs(54));
        let _heard = bench.outside().heartbeat(run, &token, None, None).await;
    }
    bench.pass(Duration::from_secs(10));
    bench.watch(29).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.claim, Some(PresenceId::OUTSIDE), "by a new clock");
    bench.watch(30).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.attempts[0].outcome, Outcome::TimedOut);
}

/// Seconds pass, with a heartbeat in each half minute.
async fn beats_on(bench: &Bench, (run, token): (RunId, &str), by: &mut Watching, seconds: u32) {
    for _ in 0..seconds / 30 {
        bench.watch_by(&mut by.0, &mut by.1, 30).await;
        let heard = bench.outside().heartbeat(run, token, None, None).await;
        assert!(!heard.unwrap().cancel);
    }
}

type Watching = (crate::beats::Beats, crate::handed::EndSilent);

#[tokio::test]
async fn a_clock_that_is_put_forward_ends_nobodys_time() {
    const HOUR: i64 = 3_600_000;
    for undone in [false, true] {
        let bench = Bench::holding().await;
        let (run, token) = bench.handed_over().await;
        let mut by = (bench.beats(), bench.handed());
        let is_there = || {
            let stands = bench.mem.live_run(run).unwrap();
            assert_eq!(stands.claim, Some(PresenceId::OUTSIDE), "{undone}");
        };
        beats_on(&bench, (run, &token), &mut by, 60).await;
        bench.clock.step_wall(HOUR);
        beats_on(&bench, (run, &token), &mut by, 120).await;
        is_there();
        if undone {
            bench.clock.step_wall(-HOUR);
        }
        beats_on(&bench, (run, &token), &mut by, 390).await;
        is_there();
        bench.watch_by(&mut by.0, &mut by.1, 60).await;
        let stands = bench.mem.live_run(run).unwrap();
        assert_eq!(stands.attempts[0].outcome, Outcome::TimedOut, "{undone}");
    }
}

#[tokio::test]
async fn a_clock_that_was_put_forward_before_an_attempt_began_does_not_put_off_its_timeout() {
    let bench = Bench::holding().await;
    let mut by = (bench.beats(), bench.handed());
    bench.watch_by(&mut by.0, &mut by.1, 60).await;
    // The attempt begins before this node looks at the clock again.
    bench.clock.step_wall(3_600_000);
    bench.target.answers(Report::succeeded().with_status(202));
    bench.step(&mut by.0).await.unwrap();
    let due = bench.now().plus(SECOND);
    let mut job = callback();
    job.def = std::sync::Arc::new(model::Definition {
        schedule: Slot(due).into(),
        ..(*job.def).clone()
    });
    job.next_slot = Some(Slot(due));
    let run = bench
        .started(job, due.since(at(0)).as_millis() as i64)
        .await;
    bench.drain(&mut bench.hand_over()).await;
    bench.pass(SECOND / 2);
    let order = bench.target.orders().pop().unwrap();
    let token = order.callback.unwrap().token;
    beats_on(&bench, (run, &token), &mut by, 570).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.claim, Some(PresenceId::OUTSIDE));
    bench.watch_by(&mut by.0, &mut by.1, 35).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.attempts[0].outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn a_clock_that_is_put_right_by_the_first_beat_puts_off_nothing() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let mut by = (bench.beats(), bench.handed());
    beats_on(&bench, (run, &token), &mut by, 60).await;
    bench.hold(&ShardSet::default()).await;
    let other = bench.beside(-20_000).await;
    let mut others = (other.beats(), other.handed());
    other.step(&mut others.1).await.unwrap();
    other.step(&mut others.0).await.unwrap();
    other.hold(&ShardSet::ALL).await;
    for _ in 0..17 {
        other.watch_by(&mut others.0, &mut others.1, 30).await;
        bench.step(&mut by.0).await.unwrap();
        let heard = bench.outside().heartbeat(run, &token, None, None).await;
        assert!(!heard.unwrap().cancel);
    }
    other.watch_by(&mut others.0, &mut others.1, 29).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.claim, Some(PresenceId::OUTSIDE));
    other.watch_by(&mut others.0, &mut others.1, 4).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!(stands.attempts[0].outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn those_that_may_not_be_ended_yet_hide_nobody() {
    let bench = Bench::holding().await;
    bench.target.answers(Report::succeeded().with_status(202));
    let many = limits::HANDED_BATCH_MAX + 1;
    for number in 1..=many {
        let bytes = u64::try_from(number).unwrap().to_be_bytes();
        let mut job = callback();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&bytes);
        job.id = model::JobId::new(at(0), random);
        bench.put(job).await;
    }
    let short = job_with(2, Slot(at(1_000)).into(), |def| {
        def.timeout = Duration::from_secs(600);
        def.completion = Completion::Callback {
            heartbeat_within: Duration::from_secs(20),
        };
    });
    let run = bench.started(short, 1_000).await;
    bench.drain(&mut bench.hand_over()).await;
    let orders = bench.target.orders();
    assert_eq!(orders.len(), many + 1);
    let order = orders.iter().find(|order| order.run == run).unwrap();
    let token = order.callback.clone().unwrap().token;
    bench.pass_to(at(45_000));
    bench.rest(&mut bench.beats()).await;
    let heard = bench.outside().heartbeat(run, &token, None, None).await;
    heard.unwrap();
    // All of them are trusted no more, the others for longer, and this node has watched for less than a minute.
    bench.watch(25).await;
    let stands = bench.mem.live_run(run).unwrap();
    assert_eq!((stands.state, stands.lost), (RunState::Retrying, 1));
    let others = orders.iter().filter(|order| order.run != run);
    for other in others {
        let stands = bench.mem.live_run(other.run).unwrap();
        assert_eq!(stands.claim, Some(PresenceId::OUTSIDE));
    }
}

#[tokio::test]
async fn a_token_of_an_attempt_that_is_over_reads_no_checkpoint() {
    let bench = Bench::holding().await;
    let (run, token) = bench.handed_over().await;
    let outside = bench.outside();
    let left = bytes::Bytes::from_static(b"row 40");
    let beaten = outside.heartbeat(run, &token, None, Some(left.clone()));
    beaten.await.unwrap();
    assert_eq!(outside.checkpoint(run, &token).await.unwrap(), Some(left));
    let failed = outside.report(run, &token, Report::failed("no")).await;
    failed.unwrap();
    let read = outside.checkpoint(run, &token).await;
    assert!(matches!(read, Err(OutsideError::Ended(_))), "{read:?}");
}

#[tokio::test]
async fn an_answer_that_is_lost_is_requested_again() {
    let bench = Bench::holding().await;
    let (run, _) = bench.taken_over().await;
    bench.calls.spoil("hand_over", [super::world::Fault::After]);
    let mut hand_over = bench.hand_over();
    assert!(bench.step(&mut hand_over).await.is_err());
    assert_eq!(bench.held(), 1);
    bench.drain(&mut hand_over).await;
    assert_eq!(bench.held(), 0);
    let kept = bench.mem.get_handed(&[run]).await.unwrap();
    assert!(kept[0].is_some());
}

#[tokio::test]
async fn a_node_that_stops_does_not_wait_for_it_and_its_end_does_not_touch_it() {
    let bench = Bench::holding().await;
    let (run, _) = bench.handed_over().await;
    let before = bench.mem.live_run(run);
    bench.leave().await;
    let orphans = bench.mem.orphans(&ShardSet::ALL, 9).await.unwrap();
    assert!(orphans.is_empty());
    assert_eq!(bench.mem.live_run(run), before);
}
