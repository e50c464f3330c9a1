//! Rules: jobs follow calendars and zones that have changed.

use std::sync::Arc;

use model::schedule::{Cron, CronOptions, Weekly, Zone};
use model::shard::ShardSet;
use model::{Calendar, CalendarName, Job, Schedule, Shard, TenantId, Version};
use store::{CalendarPut, ClientStore, EngineStore, NodeInfo, Rule};

use super::bench::{Bench, SCHEDULES, node};
use super::world::{Fault, at, every, job_with, seconds};
use crate::duty::Wake;

const HOUR: i64 = 3_600_000;

/// A version of the calendar. The second holds the hour in which the first slot lies.
fn calendar(version: u32) -> Calendar {
    let weekly = if version == 1 {
        "SUN"
    } else {
        "TUE 23:00-23:59"
    };
    Calendar {
        version: Version(version),
        weekly: vec![Weekly::parse(weekly).unwrap()],
        ..Calendar::new(CalendarName::new("holidays").unwrap(), at(0))
    }
}

async fn put(bench: &Bench, version: u32) {
    let before = (version > 1).then(|| Version(version - 1));
    let calendar = calendar(version);
    let put = bench.mem.put_calendar(TenantId::DEFAULT, &calendar, before);
    assert_eq!(put.await.unwrap(), CalendarPut::Done);
}

/// A job that is due every hour, but for what the calendar holds.
fn hourly(number: u8) -> Job {
    job_with(number, seconds(3_600).into(), |def| {
        def.schedule.calendars.exclude = vec![Arc::new(calendar(1))];
    })
}

/// Jobs under a calendar that has changed since they were scheduled by it.
async fn changed(bench: &Bench, jobs: u8) -> Vec<Arc<Job>> {
    put(bench, 1).await;
    let mut under = Vec::new();
    for number in 1..=jobs {
        under.push(bench.put(hourly(number)).await);
    }
    assert_eq!(under[0].next_due_at(), Some(at(HOUR)));
    put(bench, 2).await;
    under
}

#[tokio::test]
async fn without_a_changed_rule_it_reads_again_in_five_seconds() {
    let bench = Bench::holding().await;
    put(&bench, 1).await;
    bench.put(hourly(1)).await;
    assert_eq!(bench.rest(&mut bench.rules()).await, Wake::At(at(5_000)));
    assert_eq!(bench.calls.count("jobs_under"), 0);
}

#[tokio::test]
async fn jobs_under_a_changed_calendar_move_to_slots_that_it_leaves() {
    let bench = Bench::holding().await;
    let jobs = changed(&bench, 3).await;
    let mut rules = bench.rules();
    assert_eq!(bench.step(&mut rules).await.unwrap(), Wake::Now);
    for job in jobs {
        assert_eq!(bench.job(job.id).await.next_due_at(), Some(at(2 * HOUR)));
    }
    assert_eq!(bench.mem.rules_changed().await.unwrap(), []);
    assert_eq!(bench.rest(&mut rules).await, Wake::At(at(5_000)));
}

#[tokio::test]
async fn a_job_under_another_rule_is_left_alone() {
    let bench = Bench::holding().await;
    changed(&bench, 1).await;
    let other = bench.put(every(9, 3_600)).await;
    bench.rest(&mut bench.rules()).await;
    assert_eq!(bench.job(other.id).await, *other);
}

#[tokio::test]
async fn a_paused_job_is_left_alone() {
    let bench = Bench::holding().await;
    put(&bench, 1).await;
    let job = bench.put(hourly(1)).await;
    let now = bench.now();
    bench
        .change(bench.job(job.id).await, |job, by| job.paused(now, None, by))
        .await;
    let before = bench.job(job.id).await;
    put(&bench, 2).await;
    bench.rest(&mut bench.rules()).await;
    assert_eq!(bench.job(job.id).await.version, before.version);
}

#[tokio::test]
async fn only_the_holder_of_the_first_shard_applies_rules() {
    let bench = Bench::new().await;
    let jobs = changed(&bench, 1).await;
    bench.hold(&Shard::all().skip(1).collect()).await;
    let wake = bench.step(&mut bench.rules()).await.unwrap();
    assert_eq!(
        (wake, bench.calls.count("rules_changed")),
        (Wake::At(at(1_000)), 0)
    );
    assert_eq!(bench.job(jobs[0].id).await.version, jobs[0].version);
}

#[tokio::test]
async fn a_node_that_is_not_sure_of_its_presence_applies_none() {
    let bench = Bench::holding().await;
    changed(&bench, 1).await;
    bench.clock.advance(model::limits::PRESENCE_TTL);
    let wake = bench.step(&mut bench.rules()).await.unwrap();
    assert_eq!(
        (wake, bench.calls.count("rules_changed")),
        (Wake::At(at(4_000)), 0)
    );
}

#[tokio::test]
async fn an_error_costs_no_progress() {
    let bench = Bench::holding().await;
    let jobs = changed(&bench, 3).await;
    let mut rules = bench.rules();
    bench.calls.spoil("change_job", [Fault::Before]);
    assert!(bench.step(&mut rules).await.is_err());
    bench.rest(&mut rules).await;
    for job in jobs {
        assert_eq!(bench.job(job.id).await.next_due_at(), Some(at(2 * HOUR)));
    }
    assert_eq!(bench.mem.rules_changed().await.unwrap(), []);
}

#[tokio::test]
async fn a_rule_that_could_not_be_marked_is_marked_later_without_its_jobs() {
    let bench = Bench::holding().await;
    changed(&bench, 1).await;
    let mut rules = bench.rules();
    bench.calls.spoil("rule_applied", [Fault::Before]);
    assert!(bench.step(&mut rules).await.is_err());
    let read = bench.calls.count("jobs_under");
    bench.step(&mut rules).await.unwrap();
    assert_eq!(bench.calls.count("jobs_under"), read);
    assert_eq!(bench.mem.rules_changed().await.unwrap(), []);
}

#[tokio::test]
async fn a_job_that_is_due_soon_is_offered_to_plan() {
    let bench = Bench::holding().await;
    let jobs = changed(&bench, 1).await;
    bench.pass_to(at(2 * HOUR - 5_000));
    bench.rest(&mut bench.rules()).await;
    assert!(bench.offered().await.contains(&jobs[0].id));
}

/// A job by the clocks of Berlin, whose tables were others when it was scheduled.
async fn under_a_zone(bench: &Bench) {
    let options = CronOptions {
        zone: Some(Zone::get("Europe/Berlin").unwrap()),
        ..CronOptions::default()
    };
    let cron = Cron::parse(&["0 9 * * *".to_owned()], options).unwrap();
    bench.put(job_with(1, Schedule::from(cron), |_| {})).await;
    let before = Rule::Zone {
        name: "Europe/Berlin".to_owned(),
        digest: 1,
        known: Zone::get("Europe/Berlin").unwrap().digest(),
    };
    bench.mem.rule_applied(&before).await.unwrap();
    assert_eq!(bench.mem.rules_changed().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_zone_is_applied_where_every_node_has_the_same_tables() {
    let bench = Bench::holding().await;
    under_a_zone(&bench).await;
    let mut rules = bench.rules();
    assert_eq!(
        bench.rest(&mut rules).await,
        Wake::At(at(5_000)),
        "nobody was heard"
    );
    assert_eq!(bench.mem.rules_changed().await.unwrap().len(), 1);
    bench.rest(&mut bench.beats()).await;
    bench.rest(&mut rules).await;
    assert_eq!(bench.mem.rules_changed().await.unwrap(), []);
}

/// The store knows of every node at once, this one only with its next beat.
#[tokio::test]
async fn a_zone_that_the_store_does_not_take_as_applied_yet_is_tried_again_after_a_rest() {
    let bench = Bench::holding().await;
    under_a_zone(&bench).await;
    bench.rest(&mut bench.beats()).await;
    let older = NodeInfo {
        tables: "2019a".to_owned(),
        ..node("older", &["http"])
    };
    let older = bench.mem.join(&older).await.unwrap();
    let mut rules = bench.rules();
    assert_eq!(bench.rest(&mut rules).await, Wake::At(at(5_000)));
    assert_eq!(bench.calls.count("rule_applied"), 1);
    assert_eq!(bench.mem.rules_changed().await.unwrap().len(), 1);
    bench.mem.leave(older).await.unwrap();
    bench.rest(&mut rules).await;
    assert_eq!(bench.mem.rules_changed().await.unwrap(), []);
}

#[tokio::test]
async fn a_zone_waits_while_a_node_with_other_tables_lives() {
    let bench = Bench::holding().await;
    under_a_zone(&bench).await;
    let older = NodeInfo {
        tables: "2019a".to_owned(),
        ..node("older", &["http"])
    };
    let older = bench.mem.join(&older).await.unwrap();
    bench.mem.beat(older, &SCHEDULES).await.unwrap();
    bench.rest(&mut bench.beats()).await;
    assert_eq!(bench.rest(&mut bench.rules()).await, Wake::At(at(5_000)));
    assert_eq!(bench.mem.rules_changed().await.unwrap().len(), 1);
    assert!(bench.leased().shards() == ShardSet::ALL);
}
