//! What is said of moments that lie behind an edit, or at a job's beginning.

use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, SystemClock};
use model::job::Definition;
use model::schedule::CronOptions;
use model::{Job, JobId, Schedule, Target, TenantId, Timestamp};
use serde_json::{Value, json};
use store::{ClientStore, NewJob};

use crate::explain::{explain, says};
use crate::world::{OK, World};

/// A job as if it had been made at noon three days ago; perhaps paused since.
pub async fn from_noon(world: &World, text: &str, paused: bool) -> (String, Timestamp) {
    from_noon_ago(world, 3, text, paused).await
}

/// The same, so many days ago.
async fn from_noon_ago(world: &World, days: i64, text: &str, paused: bool) -> (String, Timestamp) {
    const DAY: i64 = 86_400_000;
    let today = SystemClock.now().as_millis() / DAY;
    let made = Timestamp::from_millis((today - days) * DAY + DAY / 2);
    let schedule = Schedule::parse_text(text, CronOptions::default(), made).unwrap();
    let target = model::target::HttpTarget::new(OK, None).unwrap();
    let def = Definition::new(schedule, Target::Http(target));
    let id = JobId::new(made, rand::random());
    let mut job = Job::new(id, TenantId::DEFAULT, None, def, made);
    if paused {
        let note = Some("rain".to_owned());
        job = job.paused(made, note, &Arc::from("someone")).0;
    }
    let new = NewJob {
        job: Arc::new(job),
        idempotency: None,
    };
    world.store.create_jobs(&[new]).await.unwrap();
    (id.to_string(), made)
}

#[tokio::test]
async fn a_moment_within_a_stretch_of_an_older_schedule_cannot_be_explained() {
    let world = World::new().await;
    let (job, made) = from_noon(&world, "* * * * *", true).await;
    let minute = |minutes: u64| made.plus(Duration::from_secs(minutes * 60)).to_string();
    // While the schedule stands it can.
    let within = explain(&world, &job, &minute(30)).await;
    assert_eq!(
        (&within["slot"], &within["fate"]),
        (&json!(true), &json!("skipped"))
    );
    let path = format!("/v1/jobs/{job}");
    world
        .patch(&path, json!({"schedule": "*/7 * * * *"}))
        .await
        .is(200);
    // A slot of today's schedule, and none of it.
    for minutes in [35, 36] {
        let answer = explain(&world, &job, &minute(minutes)).await;
        assert_eq!(
            (&answer["slot"], &answer["fate"], &answer["run"]["reason"]),
            (&Value::Null, &Value::Null, &json!("paused")),
            "{answer:#}"
        );
        says(&answer, "outcome", false, "within a stretch of ");
        says(
            &answer,
            "outcome",
            false,
            "skipped: paused (rain), by someone",
        );
        says(&answer, "outcome", false, "is not known");
        says(&answer, "job", true, "not of then");
    }
    let first = explain(&world, &job, &minute(1)).await;
    assert_eq!(
        (&first["slot"], &first["fate"]),
        (&json!(true), &json!("skipped")),
        "{first:#}"
    );
}

#[tokio::test]
async fn a_slot_of_todays_schedule_was_none_of_an_older_one() {
    let world = World::new().await;
    let (job, made) = from_noon(&world, "0 0 1 1 *", false).await;
    world
        .patch(&format!("/v1/jobs/{job}"), json!({"schedule": "* * * * *"}))
        .await
        .is(200);
    let at = made.plus(Duration::from_secs(3_600)).to_string();
    let answer = explain(&world, &job, &at).await;
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(false), &Value::Null),
        "{answer:#}"
    );
    says(&answer, "outcome", false, "it was no slot then");
}

#[tokio::test]
async fn what_an_interval_is_counted_from_is_no_slot_of_its_job() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1h"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).json();
    let (id, made) = (
        job["id"].as_str().unwrap(),
        job["created_at"].as_str().unwrap(),
    );
    let answer = explain(&world, id, made).await;
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(false), &Value::Null),
        "{answer:#}"
    );
    says(&answer, "job", false, "created");
    // Only a one-off may lie at its creation or before.
    let body = json!({"schedule": {"in": "0s"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).json();
    let (id, made) = (
        job["id"].as_str().unwrap(),
        job["created_at"].as_str().unwrap(),
    );
    let answer = explain(&world, id, made).await;
    assert_eq!(answer["slot"], true, "{answer:#}");
}

#[tokio::test]
async fn a_slot_that_an_edit_dropped_was_not_missed_by_a_node() {
    let world = World::new().await;
    let body = json!({"schedule": "0 0 1 1 *", "target": OK});
    let id = world.post("/v1/jobs", body).await.is(201).get("id");
    // As an edit of a job that was overdue writes it.
    let id: JobId = id.parse().unwrap();
    let job = world
        .store
        .get_job(TenantId::DEFAULT, id)
        .await
        .unwrap()
        .unwrap();
    let now = SystemClock.now();
    let (mut after, _) = job.edited(
        None,
        Definition::clone(&job.def),
        now,
        &Arc::from("anonymous"),
    );
    after.state = model::JobState::Paused;
    after.next_slot = None;
    let slot = model::Slot(now.minus(Duration::from_secs(5)));
    let skip = model::Skip {
        slots: model::Stretch::one(slot),
        reason: model::Reason::Missed,
        note: None,
        actor: Arc::from("anonymous"),
    };
    let change = store::JobChange {
        before: Arc::new(job),
        after: Arc::new(after),
        skipped: vec![skip],
        runs: store::RunsOfChange::Keep,
    };
    world.store.change_job(&change).await.unwrap();
    let answer = explain(&world, &id.to_string(), &slot.0.to_string()).await;
    assert_eq!(answer["fate"], "missed", "{answer:#}");
    says(
        &answer,
        "outcome",
        false,
        "passed undecided when the job was changed",
    );
    assert!(!answer.to_string().contains("no node"), "{answer:#}");
}

/// Every second for a year is some thirty million slots: counted, not walked.
#[tokio::test]
async fn a_years_pause_of_every_second_is_explained_as_it_is_listed() {
    let world = World::new().await;
    let (job, made) = from_noon_ago(&world, 365, "* * * * * *", true).await;
    let second = |seconds: u64| made.plus(Duration::from_secs(seconds));
    let hundred_days = 100 * 86_400;
    let agree = async || {
        let to = second(hundred_days * 3);
        let path = format!("/v1/jobs/{job}/slots?from={made}&to={to}&limit=1000");
        let page = world.get(&path).await.is(200).json();
        let mut explained = 0;
        for item in page["items"].as_array().unwrap() {
            let stretch = &item["run"]["stretch"];
            let bounds = if stretch.is_null() {
                [&item["slot"], &item["slot"]]
            } else {
                [&stretch["first"], &stretch["last"]]
            };
            let [first, last] = bounds.map(moment);
            // Every second from the first to the last, no more and no fewer.
            let count = item["run"]["stretch"]["count"].as_u64().unwrap_or(1);
            assert_eq!(count, last.since(first).as_secs() + 1, "{item:#}");
            for at in [first, first.plus(last.since(first) / 2), last] {
                let at = Timestamp::from_millis(at.as_millis() / 1_000 * 1_000);
                let answer = explain(&world, &job, &at.to_string()).await;
                assert_eq!(
                    (&answer["slot"], &answer["fate"], &answer["run"]["id"]),
                    (&json!(true), &item["fate"], &item["run"]["id"]),
                    "{answer:#}"
                );
                explained += 1;
            }
        }
        let odd = second(hundred_days).plus(Duration::from_millis(500));
        let answer = explain(&world, &job, &odd.to_string()).await;
        // After another version that may not be known.
        assert_ne!(answer["slot"], true, "{answer:#}");
        assert!(explained >= 3, "{page:#}");
    };
    agree().await;
    let resumed = world.post_empty(&format!("/v1/jobs/{job}/resume")).await;
    resumed.is(200);
    agree().await;
}

fn moment(text: &Value) -> Timestamp {
    Timestamp::parse(text.as_str().unwrap()).unwrap()
}
