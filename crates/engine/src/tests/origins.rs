//! Origins: an origin that is down makes its runs wait and nobody else's, and they start when it is back.

use std::sync::Arc;

use model::breaker::{FAILURES, OPEN_FIRST};
use model::shard::ShardSet;
use model::{
    AttemptNo, Job, JobId, Report, RunId, RunState, Slot, Target, TenantId, Verdict, WaitReason,
    limits,
};
use store::{ClientStore, DueRoom, EngineStore, NewJob};

use super::bench::{ABLE, Bench, run_of};

use super::marks::{answer, cancel};
use super::world::{at, job_with, once, seconds};
use crate::fire::Fire;
use crate::origins::QUEUE_MAX;

/// A one-off that calls a host, and is tried often.
fn to(number: u8, due: i64, host: &str) -> Job {
    job_with(number, once(number, due).def.schedule.clone(), |def| {
        def.target = Target::http(&format!("http://{host}/")).unwrap();
        def.retry.attempts_max = 9;
    })
}

fn down() -> Report {
    Report::failed("it cannot be reached").unreached()
}

/// So many runs have failed to reach the host at 1,000, and one more is due then.
async fn opened(bench: &Bench) -> Arc<Job> {
    bench.target.answers(down());
    for number in 1..=FAILURES as u8 {
        bench.started(to(number, 1_000, "down"), 1_000).await;
    }
    assert_eq!(bench.metrics().breakers_open.get(), 1);
    bench.put(to(99, 1_100, "down")).await
}

#[tokio::test]
async fn while_a_breaker_is_open_runs_wait_and_no_attempt_is_spent() {
    let bench = Bench::holding().await;
    let job = opened(&bench).await;
    let reached = bench.target.runs().len();
    bench.fire_for(&mut bench.fire(), 1_100).await;
    bench.pass_to(at(1_100));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let run = bench.mem.live_run(run_of(&job, 1_100)).unwrap();
    let wait = run.wait.unwrap();
    assert_eq!((wait.reason, run.claim), (WaitReason::Breaker, None));
    assert_eq!(
        (run.state, run.attempt),
        (RunState::Ready, AttemptNo::FIRST)
    );
    assert!(run.attempts.is_empty());
    assert!(wait.until.unwrap() <= at(1_100).plus(OPEN_FIRST + limits::BREAKER_WAIT_AFTER));
    assert_eq!(bench.target.runs().len(), reached);
    assert_eq!(bench.running(), 0);
    let elsewhere = bench.started(to(50, 1_200, "up"), 1_200).await;
    assert_eq!(
        bench.target.runs().last(),
        Some(&elsewhere),
        "nobody else waits"
    );
}

#[tokio::test]
async fn one_run_is_the_probe_and_when_it_succeeds_the_others_start() {
    let bench = Bench::holding().await;
    let job = opened(&bench).await;
    let other = bench.put(to(98, 1_100, "down")).await;
    bench.fire_for(&mut bench.fire(), 1_100).await;
    bench.pass_to(at(1_100));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let waits = |job| {
        bench
            .mem
            .live_run(run_of(job, 1_100))
            .is_some_and(|run| run.wait.is_some())
    };
    assert!(waits(&job) && waits(&other));
    bench.target.answers(Report::succeeded());
    bench.pass_to(at(1_100).plus(OPEN_FIRST));
    bench.rest(&mut bench.beats()).await;
    let mut wake = bench.wake();
    bench.rest(&mut wake).await;
    assert!(waits(&job) != waits(&other), "one is woken to be the probe");
    let mut fire = bench.fire();
    bench.rest(&mut fire).await;
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!(bench.metrics().breakers_open.get(), 0);
    bench.rest(&mut wake).await;
    assert!(!waits(&job) && !waits(&other));
    bench.rest(&mut fire).await;
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    for job in [&job, &other] {
        let run = bench.run(run_of(job, 1_100)).await.unwrap();
        assert_eq!(
            (run.state, run.attempt),
            (RunState::Succeeded, AttemptNo::FIRST)
        );
    }
}

/// The first run of a job that is due every second waits for its origin, and a slot that was missed meanwhile waits for it.
async fn missed_behind_a_wait(bench: &Bench) -> (Arc<Job>, Fire) {
    bench.target.answers(down());
    for number in 1..=FAILURES as u8 {
        let mut job = to(number, 900, "down");
        Arc::make_mut(&mut job.def).retry.attempts_max = 1;
        bench.started(job, 900).await;
    }
    let job = job_with(50, seconds(1).into(), |def| {
        def.target = Target::http("http://down/").unwrap();
    });
    let job = bench.put(job).await;
    let mut fire = bench.fire();
    bench.fire_for(&mut fire, 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let first = bench.slot(&job, 1_000).await.unwrap();
    assert!(first.waits_outside(), "{first:?}");
    bench.pass_to(at(15_500));
    bench.rest(&mut fire).await;
    let stands = bench.job(job.id).await;
    assert_eq!(stands.next_slot, Some(Slot(at(2_000))), "it waits");
    bench.target.answers(Report::succeeded());
    bench.rest(&mut bench.beats()).await;
    (job, fire)
}

#[tokio::test]
async fn a_missed_slot_goes_when_the_run_ends_that_waited_for_its_origin() {
    let bench = Bench::holding().await;
    let (job, mut fire) = missed_behind_a_wait(&bench).await;
    bench.rest(&mut bench.wake()).await;
    bench.rest(&mut fire).await;
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    bench.drain(&mut bench.settle()).await;
    let first = bench.slot(&job, 1_000).await.unwrap();
    assert_eq!(first.state, RunState::Succeeded);
    bench.rest(&mut fire).await;
    let stands = bench.job(job.id).await;
    assert!(stands.next_slot > Some(Slot(at(5_000))), "{stands:?}");
}

#[tokio::test]
async fn a_missed_slot_is_queried_when_the_run_that_waited_was_claimed_elsewhere() {
    let bench = Bench::holding().await;
    let (job, mut fire) = missed_behind_a_wait(&bench).await;
    let other = bench.other(ABLE).await;
    bench.rest(&mut bench.wake()).await;
    let taken = bench.mem.claim_due(
        other,
        &ShardSet::ALL,
        DueRoom::for_earliest(bench.now(), [9; 3]),
    );
    let [(run, _)] = &taken.await.unwrap()[..] else {
        panic!("one was woken");
    };
    bench.rest(&mut fire).await;
    let settlement = store::Settlement {
        run: run.clone(),
        verdict: Verdict::Succeed,
        attempt: None,
    };
    bench.mem.settle(other, &[settlement]).await.unwrap();
    bench.pass(limits::EARLY_AGAIN);
    bench.rest(&mut fire).await;
    let stands = bench.job(job.id).await;
    assert!(stands.next_slot > Some(Slot(at(5_000))), "{stands:?}");
}

#[tokio::test]
async fn more_calls_than_an_origin_may_have_wait_in_memory_and_hold_up_nobody() {
    let bench = Bench::with(|config| config.origin_calls_max = 1).await;
    bench.hold(&model::shard::ShardSet::ALL).await;
    bench.target.is_silent();
    for number in 1..=4 {
        bench.put(to(number, 1_000, "slow")).await;
    }
    let elsewhere = bench.put(to(5, 1_000, "quick")).await;
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!(bench.running(), 2, "one of each");
    assert!(bench.target.runs().contains(&run_of(&elsewhere, 1_000)));
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    assert_eq!((bench.target.runs().len(), bench.running()), (5, 0));
}

/// So many one-offs that call one origin are due, and its calls do not end.
async fn due_at_once(bench: &Bench, numbers: std::ops::Range<u8>, due: i64) {
    bench.target.is_silent();
    for number in numbers {
        let mut job = to(number, due, "busy");
        Arc::make_mut(&mut job.def).retry.attempts_max = 1;
        bench.put(job).await;
    }
    bench.fire_for(&mut bench.fire(), due).await;
    bench.pass_to(at(due));
    bench.rest(&mut bench.beats()).await;
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
}

#[tokio::test]
async fn an_origin_that_is_busy_gets_fewer_calls_at_once_and_more_with_each_success() {
    let bench = Bench::with(|config| config.origin_calls_max = 8).await;
    bench.hold(&ShardSet::ALL).await;
    due_at_once(&bench, 1..4, 1_000).await;
    assert_eq!((bench.running(), bench.queued()), (3, 0));
    bench
        .target
        .answers(Report::failed("not now").with_status(503));
    bench.quiet().await;
    // Eight were halved three times.
    due_at_once(&bench, 11..14, 2_000).await;
    assert_eq!((bench.running(), bench.queued()), (1, 2));
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    // One more with each of three successes.
    due_at_once(&bench, 21..27, 2_500).await;
    assert_eq!((bench.running(), bench.queued()), (4, 2));
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    assert_eq!((bench.running(), bench.queued()), (0, 0));
}

/// Four runs of one slow origin, of which one is called and the others wait in memory.
async fn crowded() -> (Bench, Vec<RunId>) {
    let bench = Bench::with(|config| config.origin_calls_max = 1).await;
    bench.hold(&model::shard::ShardSet::ALL).await;
    bench.target.is_silent();
    let mut runs = Vec::new();
    for number in 1..=4 {
        let job = bench.put(to(number, 1_000, "slow")).await;
        runs.push(run_of(&job, 1_000));
    }
    bench.fire_for(&mut bench.fire(), 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    let called = bench.target.runs();
    assert_eq!(called.len(), 1);
    runs.retain(|run| !called.contains(run));
    (bench, runs)
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_its_origin_keeps_it_gives_its_place_to_the_next() {
    for cancelled in [1, 2, 3] {
        let (bench, waiting) = crowded().await;
        assert_eq!(bench.queued(), 3);
        for run in waiting.iter().take(cancelled) {
            cancel(&bench, *run).await;
        }
        answer(&bench).await;
        assert_eq!(bench.queued(), 3 - cancelled);
        bench.target.answers(Report::succeeded());
        bench.quiet().await;
        assert_eq!((bench.queued(), bench.running()), (0, 0));
        let reached = bench.target.runs();
        assert_eq!(reached.len(), 4 - cancelled);
        for run in waiting.iter().skip(cancelled) {
            assert!(reached.contains(run));
        }
    }
}

#[tokio::test]
async fn a_run_that_is_cancelled_after_its_origin_gave_it_back_gives_its_place_to_the_next() {
    let (bench, waiting) = crowded().await;
    bench.clock.advance(limits::PRESENCE_TTL);
    bench.target.answers(Report::succeeded());
    bench.quiet().await;
    // The call has ended, and nothing starts: the next run stands in its lane.
    assert_eq!((bench.queued(), bench.target.runs().len()), (2, 1));
    let freed = waiting[0];
    cancel(&bench, freed).await;
    bench.rest(&mut bench.beats()).await;
    answer(&bench).await;
    assert!(bench.heard(&bench.nudges().dispatch), "the next one may");
    bench.rest(&mut bench.dispatch()).await;
    bench.quiet().await;
    assert_eq!((bench.queued(), bench.target.runs().len()), (0, 3));
    assert!(!bench.target.runs().contains(&freed));
}

/// As many one-offs for one origin as it keeps in memory, one that it is called for, and so many more.
async fn too_many(bench: &Bench, more: usize) -> Vec<RunId> {
    bench.target.is_silent();
    let (count, like) = (QUEUE_MAX + 1 + more, to(1, 1_000, "slow"));
    let mut news = Vec::with_capacity(count);
    for number in 0..count as u64 {
        let mut rest = [0; 10];
        rest[..8].copy_from_slice(&number.to_be_bytes());
        let id = JobId::new(at(0), rest);
        let def = model::Definition::clone(&like.def);
        let job = Job::new(id, TenantId::DEFAULT, None, def, at(0));
        news.push(NewJob {
            job: Arc::new(job),
            idempotency: None,
        });
    }
    bench.mem.create_jobs(&news).await.unwrap();
    let mut fire = bench.fire();
    bench.fire_for(&mut fire, 1_000).await;
    bench.pass_to(at(1_000));
    bench.rest(&mut bench.dispatch()).await;
    bench.drain(&mut bench.settle()).await;
    news.iter().map(|new| run_of(&new.job, 1_000)).collect()
}

#[tokio::test]
async fn more_runs_than_an_origin_keeps_in_memory_wait_in_the_store_and_are_woken() {
    const MORE: usize = 3;
    let bench = Bench::with(|config| config.origin_calls_max = 1).await;
    bench.hold(&ShardSet::ALL).await;
    let runs = too_many(&bench, MORE).await;
    assert_eq!((bench.running(), bench.queued()), (1, QUEUE_MAX));
    let waits = || {
        let live = runs.iter().filter_map(|run| bench.mem.live_run(*run));
        let waiting = live.filter(|run| run.wait.is_some());
        waiting.collect::<Vec<_>>()
    };
    let waiting = waits();
    assert_eq!(waiting.len(), MORE);
    for run in &waiting {
        let wait = run.wait.unwrap();
        assert_eq!((wait.reason, run.claim), (WaitReason::Concurrency, None));
        assert!(run.attempts.is_empty(), "no attempt is spent");
    }
    // Nobody is woken for an origin that has no room yet.
    let mut wake = bench.wake();
    bench.rest(&mut wake).await;
    assert_eq!(waits().len(), MORE);
    bench.target.answers(Report::succeeded());
    let (mut settle, mut dispatch) = (bench.settle(), bench.dispatch());
    for _ in 0..QUEUE_MAX {
        if bench.queued() == 0 {
            break;
        }
        bench.quiet().await;
        bench.rest(&mut dispatch).await;
        bench.drain(&mut settle).await;
    }
    assert_eq!((bench.running(), bench.queued()), (0, 0));
    bench.rest(&mut wake).await;
    assert_eq!(waits().len(), 0);
    bench.rest(&mut bench.fire()).await;
    bench.rest(&mut dispatch).await;
    bench.quiet().await;
    bench.drain(&mut settle).await;
    for run in &waiting {
        let ended = bench.run(run.id).await.unwrap();
        assert_eq!(ended.state, RunState::Succeeded);
    }
    assert_eq!(bench.target.runs().len(), runs.len(), "each is called once");
}

#[tokio::test]
async fn a_wait_that_is_over_is_noticed_whoever_made_it() {
    let bench = Bench::holding().await;
    let run = bench.claimed(once(1, 1_000), 1_000).await;
    let held = bench.mem.live_run(run).unwrap();
    let wait = model::Wait::until(WaitReason::Breaker, at(3_000));
    let settlement = store::Settlement {
        run: held,
        verdict: Verdict::Wait(wait),
        attempt: None,
    };
    bench.mem.settle(bench.me(), &[settlement]).await.unwrap();
    let mut wake = bench.wake();
    bench.rest(&mut wake).await;
    assert!(bench.mem.live_run(run).unwrap().wait.is_some());
    bench.pass_to(at(3_000));
    bench.rest(&mut bench.beats()).await;
    bench.rest(&mut wake).await;
    let woken = bench.mem.live_run(run).unwrap();
    assert_eq!((woken.wait, woken.woken_at), (None, Some(at(3_000))));
    assert_eq!(bench.in_wheel(), 1);
}
