//! Replays: runs that somebody wants in bulk are started at the pace that was asked for, and none twice.

use std::sync::Arc;
use std::time::Duration;

use model::runs_day::Day;
use model::shard::ShardSet;
use model::{Job, Reason, ReplayId, RunId, RunState, TenantId, Timestamp, Verdict};
use store::{
    ClientStore, EngineStore, Page, Progress, Replay, ReplayCreated, ReplayState, ReplayStore,
    ReplayWork, RunCountStore, RunFilter, RunFind, Settlement,
};

use super::bench::{Bench, run_of};
use super::world::{Fault, at, job_with, seconds};
use crate::duty::Wake;

const ME: TenantId = TenantId::DEFAULT;
const TICK: Duration = Duration::from_millis(100);

/// A job that is due every second, with so many dead runs.
async fn dead(bench: &Bench, runs: i64) -> Arc<Job> {
    let job = bench.put(job_with(1, seconds(1).into(), |def| {
        def.overlap = model::Overlap::Allow;
    }));
    let job = job.await;
    let (mut plan, mut fire) = (bench.plan(), bench.fire());
    for n in 1..=runs {
        bench.pass_to(at(n * 1_000));
        bench.step(&mut plan).await.unwrap();
        bench.step(&mut fire).await.unwrap();
        let run = bench.mem.live_run(run_of(&job, n * 1_000)).unwrap();
        let settlement = Settlement {
            attempt: Some(model::Attempt::new(
                run.attempt,
                Some(bench.now()),
                bench.now(),
                model::Report::failed("no"),
            )),
            verdict: Verdict::Bury(Reason::Refused),
            run,
        };
        bench.mem.settle(bench.me(), &[settlement]).await.unwrap();
    }
    bench.pass(TICK);
    job
}

fn wanted(now: Timestamp, work: ReplayWork, rate: u32) -> Replay {
    Replay {
        id: ReplayId::new(now, [3; 10]),
        tenant: ME,
        work,
        rate,
        limit: 1_000,
        created_at: now,
        actor: Arc::from("Ana"),
        progress: Progress {
            updated_at: now,
            ..Progress::default()
        },
    }
}

/// Every dead run there is by now.
fn all_dead(now: Timestamp) -> ReplayWork {
    let filter = RunFilter {
        states: vec![RunState::Dead],
        to: Some(now),
        ..RunFilter::default()
    };
    let find = RunFind {
        filter,
        ..RunFind::default()
    };
    ReplayWork::Runs(find, None)
}

async fn put(bench: &Bench, replay: &Replay) {
    let created = bench.mem.create_replay(replay).await.unwrap();
    assert_eq!(created, ReplayCreated::Done);
}

async fn progress(bench: &Bench, replay: &Replay) -> Progress {
    let read = bench.mem.get_replay(ME, replay.id).await.unwrap();
    read.unwrap().progress
}

/// What was made from which run.
async fn replayed(bench: &Bench) -> Vec<RunId> {
    let page = Page {
        before: None,
        limit: 1_000,
    };
    let every = RunFilter::default();
    let runs = bench.mem.list_runs(ME, &every, page).await.unwrap();
    let mut of: Vec<RunId> = runs.iter().filter_map(|run| run.replay_of).collect();
    of.sort_unstable();
    of
}

#[tokio::test]
async fn without_a_replay_it_reads_again_in_a_second() {
    let bench = Bench::holding().await;
    let wake = bench.step(&mut bench.replays()).await.unwrap();
    assert_eq!(wake, Wake::At(at(1_000)));
}

#[tokio::test]
async fn dead_runs_are_started_again_at_the_pace_requested() {
    let bench = Bench::holding().await;
    dead(&bench, 25).await;
    let replay = wanted(bench.now(), all_dead(bench.now()), 10);
    put(&bench, &replay).await;
    let mut replays = bench.replays();
    bench.step(&mut replays).await.unwrap();
    for _ in 0..10 {
        bench.pass(TICK);
        bench.step(&mut replays).await.unwrap();
    }
    let started = progress(&bench, &replay).await.started;
    assert!((10..=11).contains(&started), "{started} in a second");
    for _ in 0..20 {
        bench.pass(TICK);
        bench.step(&mut replays).await.unwrap();
    }
    let done = progress(&bench, &replay).await;
    assert_eq!((done.state, done.started), (ReplayState::Done, 25));
    assert_eq!((done.scanned, done.skipped), (25, 0));
    assert!(done.ended_at.is_some());
    let of = replayed(&bench).await;
    assert_eq!(of.len(), 25);
    assert!(of.windows(2).all(|two| two[0] != two[1]), "each once");
}

#[tokio::test]
async fn whoever_goes_on_after_a_crash_starts_nothing_twice() {
    let bench = Bench::holding().await;
    dead(&bench, 9).await;
    let replay = wanted(bench.now(), all_dead(bench.now()), 1_000);
    put(&bench, &replay).await;
    // One bit is started, and its progress is not written.
    let mut lost = bench.replays();
    bench.step(&mut lost).await.unwrap();
    let first = progress(&bench, &replay).await;
    assert_eq!(first.started, 1);
    bench.mem.forget_replay_steps(replay.id);
    let mut replays = bench.replays();
    for _ in 0..5 {
        bench.pass(TICK);
        bench.step(&mut replays).await.unwrap();
    }
    let done = progress(&bench, &replay).await;
    assert_eq!((done.state, done.started), (ReplayState::Done, 9));
    assert_eq!(replayed(&bench).await.len(), 9);
}

#[tokio::test]
async fn a_node_works_on_replays_of_its_own_shards_only() {
    let bench = Bench::holding().await;
    dead(&bench, 3).await;
    let replay = wanted(bench.now(), all_dead(bench.now()), 10);
    put(&bench, &replay).await;
    bench.hold(&ShardSet::default()).await;
    bench.step(&mut bench.replays()).await.unwrap();
    assert_eq!(progress(&bench, &replay).await, replay.progress);
    assert_eq!(replayed(&bench).await, []);
}

#[tokio::test]
async fn a_replay_that_reached_its_limit_or_was_cancelled_starts_no_more() {
    let bench = Bench::holding().await;
    dead(&bench, 9).await;
    let replay = Replay {
        limit: 4,
        ..wanted(bench.now(), all_dead(bench.now()), 1_000)
    };
    put(&bench, &replay).await;
    let mut replays = bench.replays();
    for _ in 0..5 {
        bench.pass(TICK);
        bench.step(&mut replays).await.unwrap();
    }
    let done = progress(&bench, &replay).await;
    assert_eq!((done.state, done.started), (ReplayState::Done, 4));
    let other = Replay {
        id: ReplayId::new(bench.now(), [4; 10]),
        ..wanted(bench.now(), all_dead(bench.now()), 1)
    };
    put(&bench, &other).await;
    bench
        .mem
        .cancel_replay(ME, other.id, bench.now())
        .await
        .unwrap();
    bench.pass(TICK);
    bench.step(&mut replays).await.unwrap();
    assert_eq!(progress(&bench, &other).await.started, 0);
}

#[tokio::test]
async fn past_slots_are_run_in_their_order_and_what_is_not_decided_is_left() {
    let bench = Bench::holding().await;
    let job = dead(&bench, 3).await;
    let work = ReplayWork::Slots(job.id, at(0), at(10_000));
    let replay = wanted(bench.now(), work, 1_000);
    put(&bench, &replay).await;
    let mut replays = bench.replays();
    bench.step(&mut replays).await.unwrap();
    assert_eq!(progress(&bench, &replay).await.started, 0, "a moment later");
    for _ in 0..25 {
        bench.pass(TICK);
        bench.step(&mut replays).await.unwrap();
    }
    let done = progress(&bench, &replay).await;
    assert_eq!(done.state, ReplayState::Done);
    // The three that ran are replayed; the others are left to fire.
    assert_eq!(replayed(&bench).await.len(), 3);
    assert_eq!(bench.state(&job, 5_000).await, None);
    assert_eq!(done.started + done.skipped, done.scanned);
}

#[tokio::test]
async fn an_error_of_the_store_costs_time_and_nothing_else() {
    let bench = Bench::holding().await;
    dead(&bench, 3).await;
    let replay = wanted(bench.now(), all_dead(bench.now()), 1_000);
    put(&bench, &replay).await;
    let mut replays = bench.replays();
    bench.calls.spoil("list_runs", [Fault::Before]);
    bench.step(&mut replays).await.unwrap_err();
    for _ in 0..3 {
        bench.pass(TICK);
        bench.step(&mut replays).await.unwrap();
    }
    let done = progress(&bench, &replay).await;
    assert_eq!((done.state, done.started), (ReplayState::Done, 3));
}

/// In milliseconds of these tests' time.
fn midnight() -> i64 {
    let day = 86_400_000;
    day - at(0).as_millis().rem_euclid(day)
}

/// What the tenant has had of today's runs, as the store knows it.
async fn had(bench: &Bench) -> u64 {
    bench.pass(Duration::from_secs(1));
    bench.rest(&mut bench.count_runs()).await;
    let day = Day::of(bench.now());
    bench.mem.runs_of_day(ME, day).await.unwrap()
}

#[tokio::test]
async fn a_replay_takes_no_more_than_the_runs_of_the_day_and_goes_on_the_next() {
    let bench = Bench::holding().await;
    dead(&bench, 9).await;
    // The runs that died have been counted: five more.
    bench.bound(14).await;
    assert_eq!(had(&bench).await, 9);
    let replay = wanted(bench.now(), all_dead(bench.now()), 1_000);
    put(&bench, &replay).await;
    let mut replays = bench.replays();
    for _ in 0..10 {
        bench.pass(TICK);
        bench.step(&mut replays).await.unwrap();
    }
    let waits = progress(&bench, &replay).await;
    assert_eq!((waits.state, waits.started), (ReplayState::Running, 5));
    assert_eq!(
        waits.note.as_deref(),
        Some(
            "waits for the next day (UTC): the tenant has had its 14 runs of today (runs_day_max)"
        )
    );
    assert_eq!(had(&bench).await, 14);
    // It says so once, reads nothing, and is looked at once a second.
    let reads = bench.calls.count("list_runs");
    let wake = bench.step(&mut replays).await.unwrap();
    assert_eq!(wake, Wake::At(bench.now().plus(Duration::from_secs(1))));
    assert_eq!(progress(&bench, &replay).await, waits);
    assert_eq!(bench.calls.count("list_runs"), reads);
    bench.pass_to(at(midnight() + 1_000));
    bench.rest(&mut bench.count_runs()).await;
    for _ in 0..5 {
        bench.pass(TICK);
        bench.step(&mut replays).await.unwrap();
    }
    let done = progress(&bench, &replay).await;
    assert_eq!((done.state, done.started), (ReplayState::Done, 9));
    assert_eq!((done.note, replayed(&bench).await.len()), (None, 9));
    assert_eq!(had(&bench).await, 4, "of the new day");
}

#[tokio::test]
async fn a_backfill_minds_the_runs_of_the_day_and_counts_only_what_it_starts() {
    for (max, started, state) in [(5, 2, ReplayState::Running), (7, 3, ReplayState::Done)] {
        let bench = Bench::holding().await;
        let job = dead(&bench, 3).await;
        bench.bound(max).await;
        assert_eq!(had(&bench).await, 3);
        // Slots from the fourth on are not decided yet, and are left.
        let work = ReplayWork::Slots(job.id, at(1), at(10_000));
        let replay = wanted(bench.now(), work, 1_000);
        put(&bench, &replay).await;
        let mut replays = bench.replays();
        for _ in 0..40 {
            bench.pass(TICK);
            bench.step(&mut replays).await.unwrap();
        }
        let progress = progress(&bench, &replay).await;
        assert_eq!((progress.state, progress.started), (state, started));
        assert_eq!(progress.note.is_some(), state == ReplayState::Running);
        assert_eq!(had(&bench).await, 3 + started);
    }
}
