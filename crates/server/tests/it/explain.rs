//! Why a job is due at a moment, or why not.

use std::time::Duration;

use engine::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::world::{HANG, OK, World, pause};

pub async fn explain(world: &World, job: &str, at: &str) -> Value {
    let path = format!("/v1/jobs/{job}/explain?at={at}");
    let answer = world.get(&path).await.is(200).json();
    let steps = answer["steps"].as_array().unwrap();
    assert_eq!(steps.first().unwrap()["step"], "job", "{answer}");
    assert_eq!(steps.last().unwrap()["step"], "outcome", "{answer}");
    for step in steps {
        assert!(!step["says"].as_str().unwrap().is_empty(), "{answer}");
    }
    answer
}

/// What one step says, and whether it holds.
fn step(answer: &Value, name: &str) -> (bool, String) {
    let steps = answer["steps"].as_array().unwrap();
    let found = steps.iter().find(|step| step["step"] == name);
    let step = found.unwrap_or_else(|| panic!("no step {name} in {answer}"));
    (
        step["holds"].as_bool().unwrap(),
        step["says"].as_str().unwrap().to_owned(),
    )
}

#[track_caller]
pub fn says(answer: &Value, name: &str, holds: bool, part: &str) {
    let (found, text) = step(answer, name);
    assert!(
        found == holds && text.contains(part),
        "{name}: {text}: {answer:#}"
    );
}

async fn make(world: &World, body: Value) -> String {
    let mut body = body;
    body["target"] = json!(OK);
    world.post("/v1/jobs", body).await.is(201).get("id")
}

fn berlin(cron: &str) -> Value {
    json!({"schedule": {"cron": cron, "timezone": "Europe/Berlin"}})
}

#[tokio::test]
async fn a_slot_to_come_is_explained() {
    let world = World::new().await;
    let mut body = berlin("0 9 * * MON-FRI");
    body["spread"] = json!("30s");
    let job = make(&world, body).await;
    // A Monday, in each way that a moment may be written.
    for at in [
        "2098-12-22T09:00",
        "2098-12-22T08:00:00Z",
        "2098-12-22T09:00:00%2B01:00",
        "2098-12-22T09:00:00+01:00",
        "4070073600",
    ] {
        let answer = explain(&world, &job, at).await;
        assert_eq!(answer["at"], "2098-12-22T08:00:00.000Z", "{at}");
        assert_eq!(
            (&answer["zone"], &answer["slot"], &answer["fate"]),
            (&json!("Europe/Berlin"), &json!(true), &json!("planned")),
            "{answer}"
        );
        assert!(
            answer["local"]
                .as_str()
                .unwrap()
                .starts_with("2098-12-22T09:00"),
            "{answer}"
        );
        assert_eq!(answer["run"], Value::Null);
        says(&answer, "job", true, "version 1");
        says(&answer, "spread", true, "within a spread of 30s");
        says(&answer, "outcome", true, "planned");
    }
}

#[tokio::test]
async fn a_time_that_is_no_slot_is_explained() {
    let world = World::new().await;
    let job = make(&world, berlin("0 9 * * MON-FRI")).await;
    let answer = explain(&world, &job, "2098-12-22T10:00").await;
    assert_eq!(
        (&answer["slot"], &answer["fate"], &answer["run"]),
        (&json!(false), &Value::Null, &Value::Null)
    );
    let (holds, text) = step(&answer, "schedule");
    assert!(!holds && text.contains("hour"), "{text}");
    says(&answer, "outcome", false, "no slot");
    // A Sunday.
    let answer = explain(&world, &job, "2098-12-21T09:00").await;
    assert_eq!(answer["slot"], false);
    let ended = make(
        &world,
        json!({"schedule": {"cron": "@daily", "ends_at": "2098-01-01T00:00:00Z"}}),
    )
    .await;
    let answer = explain(&world, &ended, "2098-01-02T00:00:00Z").await;
    assert_eq!(answer["slot"], false);
    says(&answer, "ends_at", false, "1 January 2098");
}

#[tokio::test]
async fn a_time_that_the_clocks_skip_is_explained() {
    let world = World::new().await;
    // On the last Sunday of March 2098, the 30th.
    let job = make(&world, berlin("30 2 * * *")).await;
    let answer = explain(&world, &job, "2098-03-30T02:30").await;
    assert_eq!(answer["local"], "2098-03-30T02:30:00");
    assert_eq!(answer["at"], "2098-03-30T01:00:00.000Z", "{answer:#}");
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(true), &json!("planned")),
        "{answer:#}"
    );
    says(&answer, "zone", false, "does not exist");
    says(
        &answer,
        "daylight_saving",
        true,
        "runs once at its end, 03:00",
    );
    let mut skips = berlin("30 2 * * *");
    skips["schedule"]["dst_gap"] = json!("skip");
    let job = make(&world, skips).await;
    let answer = explain(&world, &job, "2098-03-30T02:30").await;
    assert_eq!(
        (&answer["at"], &answer["slot"], &answer["fate"]),
        (&Value::Null, &json!(false), &Value::Null),
        "{answer:#}"
    );
    says(&answer, "daylight_saving", false, "left out");
}

#[tokio::test]
async fn a_time_that_comes_twice_is_explained() {
    let world = World::new().await;
    // On the last Sunday of October 2098, the 26th.
    let job = make(&world, berlin("30 2 * * *")).await;
    let answer = explain(&world, &job, "2098-10-26T02:30").await;
    assert_eq!(
        (&answer["slot"], &answer["at"]),
        (&json!(true), &json!("2098-10-26T00:30:00.000Z")),
        "{answer:#}"
    );
    says(&answer, "zone", true, "comes twice");
    says(&answer, "daylight_saving", true, "the first time");
    let second = explain(&world, &job, "2098-10-26T01:30:00Z").await;
    assert_eq!(second["slot"], false, "{second:#}");
    says(&second, "daylight_saving", false, "the second time");
}

#[tokio::test]
async fn slots_that_runs_set_are_explained() {
    let world = World::new().await;
    let schedule = json!({"every": "1h", "after_completion": true});
    let job = make(&world, json!({"schedule": schedule})).await;
    let next = world.get(&format!("/v1/jobs/{job}")).await.get("next_slot");
    let answer = explain(&world, &job, &next).await;
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(true), &json!("planned")),
        "{answer:#}"
    );
    says(&answer, "schedule", true, "set by the end of a run");
    let answer = explain(&world, &job, "2098-10-26T01:30:00Z").await;
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(false), &Value::Null),
        "{answer:#}"
    );
    says(&answer, "schedule", false, "set by the end of a run");
}

#[tokio::test]
async fn a_day_that_a_calendar_leaves_out_is_explained() {
    let world = World::new().await;
    world
        .put("/v1/calendars/holidays", json!({"yearly": ["12-25"]}))
        .await
        .is(201);
    let mut body = berlin("0 9 * * *");
    body["exclude"] = json!(["holidays"]);
    let job = make(&world, body).await;
    let answer = explain(&world, &job, "2098-12-25T09:00").await;
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(true), &json!("skipped")),
        "{answer:#}"
    );
    assert_eq!(
        (&answer["run"]["reason"], &answer["run"]["note"]),
        (&json!("calendar"), &json!("holidays"))
    );
    says(&answer, "calendars", false, "holidays");
    says(&answer, "outcome", false, "skipped: calendar (holidays)");
    let next = explain(&world, &job, "2098-12-26T09:00").await;
    assert_eq!(next["fate"], "planned");
    says(&next, "calendars", true, "holidays");
}

#[tokio::test]
async fn a_paused_job_is_explained() {
    let world = World::new().await;
    let job = make(&world, berlin("0 9 * * *")).await;
    let note = json!({"note": "rain"});
    world
        .post(&format!("/v1/jobs/{job}/pause"), note)
        .await
        .is(200);
    let answer = explain(&world, &job, "2098-12-22T09:00").await;
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(true), &json!("skipped")),
        "{answer:#}"
    );
    assert_eq!(
        (&answer["run"]["reason"], &answer["run"]["actor"]),
        (&json!("paused"), &json!("anonymous"))
    );
    says(&answer, "job", false, "by anonymous: rain");
    says(&answer, "outcome", false, "skipped: paused (rain)");
}

#[tokio::test]
async fn a_moment_before_the_job_is_explained() {
    let world = World::new().await;
    let job = make(&world, berlin("0 9 * * *")).await;
    let answer = explain(&world, &job, "2020-01-06T09:00").await;
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(false), &Value::Null),
        "{answer:#}"
    );
    says(&answer, "job", false, "created");
}

#[tokio::test]
async fn what_became_of_a_slot_is_explained() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1s"}, "target": HANG, "timeout": "1h"});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    pause(2_500).await;
    let page = world.get(&format!("/v1/jobs/{job}/slots")).await.json();
    let slot = |index: usize| page["items"][index]["slot"].as_str().unwrap().to_owned();
    let ran = explain(&world, &job, &slot(0)).await;
    assert_eq!(
        (&ran["fate"], &ran["run"]["id"]),
        (&json!("ran"), &page["items"][0]["run"]["id"]),
        "{ran:#}"
    );
    says(&ran, "overlap", true, "skip");
    says(
        &ran,
        "outcome",
        true,
        page["items"][0]["run"]["id"].as_str().unwrap(),
    );
    let skipped = explain(&world, &job, &slot(1)).await;
    assert_eq!(
        (&skipped["fate"], &skipped["run"]["reason"]),
        (&json!("skipped"), &json!("overlap")),
        "{skipped:#}"
    );
    says(&skipped, "overlap", false, "still alive");
    says(&skipped, "outcome", false, "by punctual");
    // After an edit the steps are those of now, and the run is still found.
    world
        .patch(&format!("/v1/jobs/{job}"), json!({"schedule": "@yearly"}))
        .await
        .is(200);
    let old = explain(&world, &job, &slot(0)).await;
    assert_eq!(
        (&old["slot"], &old["fate"]),
        (&json!(true), &json!("ran")),
        "{old:#}"
    );
    says(&old, "job", true, "version 1 then");
}

#[tokio::test]
async fn a_finished_and_a_deleted_job_are_explained() {
    let world = World::new().await;
    let job = make(&world, json!({"schedule": {"in": "0s"}})).await;
    pause(500).await;
    let later = SystemClock
        .now()
        .plus(Duration::from_secs(3_600))
        .to_string();
    let answer = explain(&world, &job, &later).await;
    assert_eq!(answer["slot"], false);
    says(&answer, "job", false, "finished");
    let daily = make(
        &world,
        json!({"schedule": {"cron": "0 0 * * *", "runs_max": 2}}),
    )
    .await;
    let answer = explain(&world, &daily, "2098-01-01T00:00:00Z").await;
    assert_eq!(
        (&answer["slot"], &answer["fate"]),
        (&json!(false), &Value::Null),
        "{answer:#}"
    );
    says(&answer, "outcome", false, "2 runs are left");
}

#[tokio::test]
async fn what_cannot_be_explained_is_refused() {
    let world = World::new().await;
    let job = make(&world, json!({"schedule": "@daily"})).await;
    for query in [
        "",
        "at=",
        "at=soon",
        "at=2026-02-30T00:00",
        "at=25:00",
        "at=-1",
        "at=1&at=2",
        "at=2026-01-01T00:00:00Z&to=5",
    ] {
        let reply = world.get(&format!("/v1/jobs/{job}/explain?{query}")).await;
        reply.refused(400, "parameter-invalid");
        let field = if query.contains("to=") { "to" } else { "at" };
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{query}");
    }
    let nobody = "job_0192f0c1a2b37def8123456789abcdef";
    world
        .get(&format!("/v1/jobs/{nobody}/explain?at=0"))
        .await
        .refused(404, "job-not-found");
}
