//! Hints: who is nudged by what other nodes say.

use model::Shard;
use model::shard::ShardSet;
use store::{EngineStore, Hint};

use super::bench::Bench;
use super::world::once;
use crate::duty::Wake;

/// Which of these was nudged: plan, take, beat, rules.
fn nudged(bench: &Bench) -> [bool; 4] {
    let nudges = bench.nudges();
    [&nudges.plan, &nudges.claim_due, &nudges.beat, &nudges.rules].map(|nudge| bench.heard(nudge))
}

#[tokio::test]
async fn what_others_say_is_heard_at_once() {
    let bench = Bench::new().await;
    let mut hints = bench.hints();
    bench.mem.hint(&[Hint::Rules, Hint::Marks]);
    assert_eq!(bench.step(&mut hints).await.unwrap(), Wake::Now);
    assert_eq!(nudged(&bench), [false, false, true, true]);
}

#[tokio::test]
async fn a_job_of_ours_is_offered_to_plan() {
    let bench = Bench::holding().await;
    nudged(&bench);
    let job = once(1, 1_000);
    bench.hints().pass_on(Hint::Job(job.tenant, job.id));
    assert_eq!(bench.offered().await, [job.id]);
    assert_eq!(nudged(&bench), [true, false, false, false]);
}

#[tokio::test]
async fn a_job_of_a_shard_that_is_left_is_for_claim_due() {
    let bench = Bench::new().await;
    let job = once(1, 1_000);
    bench.are_left(ShardSet::from_iter([job.shard()]));
    bench.hints().pass_on(Hint::Job(job.tenant, job.id));
    assert_eq!(bench.offered().await, []);
    assert_eq!(nudged(&bench), [false, true, false, false]);
}

#[tokio::test]
async fn a_job_of_others_is_nobodys_business_here() {
    let bench = Bench::new().await;
    let job = once(1, 1_000);
    bench.hints().pass_on(Hint::Job(job.tenant, job.id));
    assert_eq!(bench.offered().await, []);
    assert_eq!(nudged(&bench), [false; 4]);
}

#[tokio::test]
async fn something_in_a_shard_of_ours_has_it_read_again() {
    let bench = Bench::holding().await;
    let mut plan = bench.plan();
    bench.rest(&mut plan).await;
    bench.put(once(1, 5_000)).await;
    bench.hints().pass_on(Hint::Shard(Shard(7)));
    bench.rest(&mut plan).await;
    assert_eq!(bench.in_wheel(), 1);
}

#[tokio::test]
async fn runs_that_wait_and_leases_that_are_free_nudge_their_duties() {
    let bench = Bench::new().await;
    bench.hints().pass_on(Hint::Ready);
    assert_eq!(nudged(&bench), [false, true, false, false]);
    bench.hints().pass_on(Hint::Leases);
    assert_eq!(nudged(&bench), [false, false, true, false]);
}

#[tokio::test]
async fn hints_that_were_lost_may_have_been_any() {
    let bench = Bench::new().await;
    bench.hints().pass_on(Hint::Lost);
    assert_eq!(nudged(&bench), [true; 4]);
}
