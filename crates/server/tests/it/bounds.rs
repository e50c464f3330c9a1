//! From when to when a job has slots, how many of them run, and what its run's end has to do with it.

use std::sync::Arc;

use engine::{Clock, SystemClock};
use serde_json::{Value, json};
use store::ClientStore;

use crate::world::{HANG, OK, World, pause};

#[tokio::test]
async fn bounds_are_answered_as_they_were_sent() {
    let world = World::new().await;
    let schedule = json!({"cron": "0 9 * * *", "timezone": "UTC", "starts_at": "2098-01-01T09:00:00+00:00",
        "ends_at": 4_102_444_800_i64, "runs_max": 3});
    let body = json!({"schedule": schedule, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).json();
    assert_eq!(job["schedule"]["starts_at"], "2098-01-01T09:00:00.000Z");
    assert_eq!(job["schedule"]["ends_at"], "2100-01-01T00:00:00.000Z");
    assert_eq!(job["schedule"]["runs_max"], 3);
    assert_eq!(
        (&job["runs_left"], &job["resting"]),
        (&json!(3), &json!(false))
    );
    assert_eq!(
        job["next_slot"], "2098-01-01T09:00:00.000Z",
        "a slot at its start is the first"
    );
    assert_eq!((&job["exclude"], &job["only"]), (&json!([]), &json!([])));
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    // Bounds stay until they are taken away.
    let patch = json!({"schedule": {"cron": "0 10 * * *"}});
    let still = world.patch(&path, patch).await.is(200).json();
    assert_eq!(still["schedule"]["starts_at"], "2098-01-01T09:00:00.000Z");
    let none = json!({"starts_at": null, "ends_at": null, "runs_max": null});
    let patch = json!({"schedule": none});
    let open = world.patch(&path, patch).await.is(200).json();
    assert_eq!(open["schedule"].get("starts_at"), None);
    assert_eq!(open["runs_left"], Value::Null);
    let every = json!({"schedule": {"every": "1h", "starts_at": "2098-01-01T00:10:00Z"}});
    let every = world.patch(&path, every).await.is(200).json();
    assert_eq!(every["schedule"]["anchor"], "2098-01-01T00:10:00.000Z");
    assert_eq!(every["next_slot"], "2098-01-01T00:10:00.000Z");
    assert_eq!(every["schedule"]["after_completion"], false);
}

/// A job under three calendars, by the key `k`.
async fn under_calendars(world: &World) -> Value {
    let never = json!({"dates": ["2001-01-01"]});
    for (name, calendar) in [
        ("a", never.clone()),
        ("b", never.clone()),
        ("c", never),
        ("always", json!({"weekly": ["MON-SUN"]})),
    ] {
        let path = format!("/v1/calendars/{name}");
        world.put(&path, calendar).await.is(201);
    }
    let made = world.put("/v1/jobs/by-key/k", named()).await;
    made.is(201).json()
}

fn named() -> Value {
    json!({"schedule": "@daily", "target": OK, "exclude": ["b", "a"], "only": ["always"]})
}

/// The names of both lists.
fn lists(job: &Value) -> Value {
    json!([job["exclude"], job["only"]])
}

#[tokio::test]
async fn calendars_of_a_job_keep_unless_they_are_spoken_of() {
    let world = World::new().await;
    let made = under_calendars(&world).await;
    assert_eq!(lists(&made), json!([["b", "a"], ["always"]]));
    let path = format!("/v1/jobs/{}", made["id"].as_str().unwrap());
    for (patch, expected) in [
        (
            json!({"schedule": "@hourly"}),
            json!([["b", "a"], ["always"]]),
        ),
        (json!({"exclude": ["c"]}), json!([["c"], ["always"]])),
        (json!({"only": null, "exclude": []}), json!([[], []])),
        (
            json!({"only": ["always", "a"]}),
            json!([[], ["always", "a"]]),
        ),
    ] {
        let changed = world.patch(&path, patch).await.is(200).json();
        assert_eq!(lists(&changed), expected);
    }
}

#[tokio::test]
async fn calendars_that_a_put_does_not_name_are_gone() {
    let world = World::new().await;
    under_calendars(&world).await;
    let same = world.put("/v1/jobs/by-key/k", named()).await.is(200);
    assert_eq!(same.get("version"), "1");
    let body = json!({"schedule": "@daily", "target": OK});
    let bare = world.put("/v1/jobs/by-key/k", body).await.is(200).json();
    assert_eq!(lists(&bare), json!([[], []]));
}

#[tokio::test]
async fn a_calendar_that_does_not_exist_is_refused_by_name() {
    let world = World::new().await;
    let body = json!({"schedule": "@daily", "target": OK, "exclude": ["holidays"]});
    let reply = world.post("/v1/jobs", body).await;
    reply.refused(422, "calendar-unknown");
    assert_eq!(reply.problem().1.as_deref(), Some("exclude"));
    let expected = "there is no calendar holidays: make it with PUT /v1/calendars/holidays";
    assert_eq!(reply.get("detail"), expected);
}

#[tokio::test]
async fn what_would_never_run_is_refused_with_its_reason() {
    let world = World::new().await;
    world
        .put("/v1/calendars/always", json!({"weekly": ["MON-SUN"]}))
        .await
        .is(201);
    world
        .put("/v1/calendars/once", json!({"dates": ["2001-01-01"]}))
        .await
        .is(201);
    world
        .put("/v1/calendars/eve", json!({"yearly": ["12-24"]}))
        .await
        .is(201);
    let check = async |body: Value, field: &str, part: &str| {
        let mut body = body;
        body["target"] = json!(OK);
        let reply = world.post("/v1/jobs", body).await;
        reply.refused(422, "schedule-never");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{}", reply.text);
        assert!(reply.get("detail").contains(part), "{}", reply.text);
    };
    let excluded = json!({"schedule": "@daily", "exclude": ["once", "always"]});
    check(
        excluded,
        "exclude",
        "calendar always leaves out every slot up to",
    )
    .await;
    let outside = json!({"schedule": "@daily", "only": ["once"]});
    check(outside, "only", "calendar once leaves out every slot up to").await;
    let once = json!({"schedule": {"at": "2098-12-24T12:00:00Z"}, "exclude": ["eve"]});
    check(once, "exclude", "up to 2098-12-24T12:00:00.000Z").await;
    let ended = json!({"schedule": {"cron": "@daily", "ends_at": "2001-01-01T00:00:00Z"}});
    check(ended, "schedule", "to its end, 2001-01-01T00:00:00.000Z").await;
    let backwards = json!({"schedule": {"every": "1h", "starts_at": "2098-01-02T00:00:00Z", "ends_at": "2098-01-01T00:00:00Z"}});
    check(backwards, "schedule", "lies before starts_at").await;
    assert!(world.store.all_jobs().is_empty());
    // A one-off that has just passed runs all the same.
    let now = SystemClock.now().to_string();
    let body = json!({"schedule": {"at": now}, "target": OK, "exclude": ["once"]});
    world.post("/v1/jobs", body).await.is(201);
}

#[tokio::test]
async fn a_finished_job_can_still_be_changed() {
    let world = World::new().await;
    let ends = SystemClock
        .now()
        .plus(std::time::Duration::from_millis(1_500));
    let body =
        json!({"schedule": {"cron": "* * * * * *", "ends_at": ends.to_string()}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    for _ in 0..500 {
        if world.get(&path).await.get("state") == "finished" {
            break;
        }
        pause(10).await;
    }
    let changed = world
        .patch(&path, json!({"labels": {"a": "b"}}))
        .await
        .is(200);
    assert_eq!(changed.get("state"), "finished", "{}", changed.text);
    world.patch(&path, json!({"exclude": []})).await.is(200);
}

#[tokio::test]
async fn a_job_is_finished_after_its_runs() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1s", "runs_max": 2}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let path = format!("/v1/jobs/{job}");
    let mut left = Vec::new();
    for _ in 0..500 {
        let job = world.get(&path).await.is(200).json();
        left.push(job["runs_left"].as_u64().unwrap());
        if job["state"] == "finished" {
            break;
        }
        pause(10).await;
    }
    left.dedup();
    assert_eq!(left, [2, 1, 0]);
    let runs = world.get(&format!("{path}/runs")).await.json();
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_job_rests_while_its_run_lives() {
    let world = World::new().await;
    let schedule = json!({"every": "1s", "after_completion": true});
    let body = json!({"schedule": schedule, "target": HANG, "timeout": "1h"});
    let job = world.post("/v1/jobs", body).await.is(201).json();
    assert_eq!(
        (&job["resting"], &job["schedule"]["after_completion"]),
        (&json!(false), &json!(true))
    );
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    for _ in 0..500 {
        if world.get(&path).await.json()["resting"] == json!(true) {
            break;
        }
        pause(10).await;
    }
    let resting = world.get(&path).await.json();
    assert_eq!(
        (
            &resting["resting"],
            &resting["next_slot"],
            &resting["state"]
        ),
        (&json!(true), &Value::Null, &json!("active"))
    );
    let dry = world
        .patch(
            &format!("{path}?dry_run=true"),
            json!({"schedule": {"every": "2s", "after_completion": true}}),
        )
        .await
        .is(200)
        .json();
    assert_eq!(
        (&dry["resting"], &dry["next_slot"]),
        (&json!(true), &Value::Null)
    );
    let runs = world.get(&format!("{path}/runs")).await.json();
    let run = runs["items"][0]["id"].as_str().unwrap();
    pause(300).await;
    world.post_empty(&format!("/v1/runs/{run}/cancel")).await;
    world.wait(run, &["cancelled"]).await;
    let ended = world
        .get(&format!("/v1/runs/{run}"))
        .await
        .get("settled_at");
    let next = world.get(&path).await.get("next_slot");
    let moment = |text: &str| model::Timestamp::parse(text).unwrap();
    let rest = moment(&next).since(moment(&ended));
    assert_eq!(rest.as_millis(), 1_000, "{ended} {next}");
}

#[tokio::test]
async fn who_paused_a_job_and_why_is_shown_until_it_is_resumed() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let path = format!("/v1/jobs/{job}");
    assert_eq!(world.get(&path).await.json()["paused_by"], Value::Null);
    let paused = world
        .post(&format!("{path}/pause"), json!({"note": "rain"}))
        .await
        .is(200)
        .json();
    assert_eq!(
        (&paused["paused_by"], &paused["note"]),
        (&json!("anonymous"), &json!("rain"))
    );
    let resumed = world
        .post(&format!("{path}/resume"), json!({}))
        .await
        .is(200)
        .json();
    assert_eq!(
        (&resumed["paused_by"], &resumed["note"]),
        (&Value::Null, &Value::Null)
    );
    for (body, field) in [
        (json!({"catch_up": "yes"}), "catch_up"),
        (json!({"catch_up": 1}), "catch_up"),
    ] {
        let reply = world.post(&format!("{path}/resume"), body).await;
        assert_eq!(
            reply.problem(),
            ("field-invalid".to_owned(), Some(field.to_owned()))
        );
    }
    let unknown = world
        .post(&format!("{path}/resume"), json!({"catchup": true}))
        .await;
    assert_eq!(
        unknown.problem(),
        ("field-unknown".to_owned(), Some("catchup".to_owned()))
    );
}

#[tokio::test]
async fn what_passed_during_a_pause_is_skipped_or_caught_up_with() {
    let world = World::new().await;
    for catch_up in [false, true] {
        let body = json!({"schedule": {"every": "1s"}, "target": OK, "catch_up": "all", "overlap": "allow"});
        let job = world.post("/v1/jobs", body).await.is(201).get("id");
        let path = format!("/v1/jobs/{job}");
        world.post_empty(&format!("{path}/pause")).await.is(200);
        pause(2_200).await;
        let body = json!({"catch_up": catch_up});
        world.post(&format!("{path}/resume"), body).await.is(200);
        pause(500).await;
        world.post_empty(&format!("{path}/pause")).await.is(200);
        let runs = world.get(&format!("{path}/runs")).await.json();
        let states: Vec<&str> = runs["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["state"].as_str().unwrap())
            .collect();
        let skipped = states.iter().filter(|state| **state == "skipped").count();
        let ran = states.iter().filter(|state| **state == "succeeded").count();
        if catch_up {
            assert!(ran >= 2, "{states:?}")
        } else {
            assert!(skipped == 1 && ran <= 1, "{states:?}")
        }
        world.delete(&path).await.is(200);
    }
}

#[tokio::test]
async fn a_schedule_that_cannot_be_read_any_more_is_shown_and_can_be_replaced() {
    let world = World::new().await;
    let now = SystemClock.now();
    let broken = model::schedule::Broken {
        stored: r#"{"cron": "@daily", "timezone": "Mars/Olympus"}"#.to_owned(),
        error: "there is no time zone Mars/Olympus".to_owned(),
        recurring: true,
    };
    let kind = model::schedule::Kind::Broken(Arc::new(broken));
    let target = model::target::HttpTarget::new(OK, None).unwrap();
    let def = model::Definition::new(kind.into(), model::Target::Http(target));
    let id = model::JobId::new(now, rand::random());
    let job = model::Job::new(id, model::TenantId::DEFAULT, None, def, now);
    let job = Arc::new(job.invalid(now, "there is no time zone Mars/Olympus".to_owned()));
    let new = store::NewJob {
        job,
        idempotency: None,
    };
    world.store.create_jobs(&[new]).await.unwrap();
    let path = format!("/v1/jobs/{id}");
    let shown = world.get(&path).await.is(200).json();
    let schedule = json!({"broken": {"cron": "@daily", "timezone": "Mars/Olympus"},
        "error": "there is no time zone Mars/Olympus"});
    assert_eq!(
        (&shown["schedule"], &shown["state"]),
        (&schedule, &json!("invalid"))
    );
    let page = world.get(&format!("{path}/slots")).await.is(200).json();
    assert_eq!(page["items"], json!([]));
    let reply = world.patch(&path, json!({"lane": "batch"})).await;
    reply.refused(422, "schedule-invalid");
    assert_eq!(reply.problem().1.as_deref(), Some("schedule"));
    let patch = json!({"schedule": "@daily", "lane": "batch"});
    let mended = world.patch(&path, patch).await.is(200).json();
    assert_eq!(
        (&mended["state"], &mended["note"]),
        (&json!("active"), &Value::Null)
    );
    world.delete(&path).await.is(200);
}

#[tokio::test]
async fn every_line_of_a_batch_may_name_calendars() {
    let world = World::new().await;
    under_calendars(&world).await;
    let body: String = [
        json!({"exclude": ["c"]}),
        json!({"exclude": ["none"]}),
        json!({}),
        json!({"only": ["always"]}),
        json!({"exclude": ["always"]}),
        json!({"exclude": ["c", "none"]}),
        json!({}),
    ]
    .into_iter()
    .map(|mut line| {
        (line["schedule"], line["target"]) = (json!("@daily"), json!(OK));
        format!("{line}\n")
    })
    .collect();
    let ndjson = [("content-type", "application/x-ndjson")];
    let reply = world.call("POST", "/v1/jobs/batch", &ndjson, body).await;
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let answers: Vec<Value> = reply.is(200).text.lines().map(read).collect();
    let kinds = |answer: &Value| {
        let problem = answer["error"]["type"].as_str().unwrap_or("made");
        problem.replace("/problems/", "")
    };
    let kinds: Vec<String> = answers.iter().map(kinds).collect();
    let (unknown, never) = ("calendar-unknown", "schedule-never");
    assert_eq!(
        kinds,
        ["made", unknown, "made", "made", never, unknown, "made"]
    );
    for (line, expected) in [
        (0, json!([["c"], []])),
        (2, json!([[], []])),
        (3, json!([[], ["always"]])),
    ] {
        let id = answers[line]["id"].as_str().unwrap();
        let job = world.get(&format!("/v1/jobs/{id}")).await.json();
        assert_eq!(lists(&job), expected);
    }
    assert_eq!(world.store.all_jobs().len(), 5);
    assert_eq!(world.get("/v1/calendars/c").await.json()["jobs"], 1);
}
