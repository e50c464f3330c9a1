//! What became of a job's slots, and what will.

use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, SystemClock};
use model::job::Definition;
use model::schedule::CronOptions;
use model::{Job, JobId, Schedule, Target, TenantId, Timestamp};
use serde_json::{Value, json};
use store::{ClientStore, NewJob};

use crate::world::{FAIL, HANG, OK, World, pause};

pub fn now() -> Timestamp {
    SystemClock.now()
}

pub fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}

/// Fates in order, each once.
fn fates(page: &Value) -> Vec<String> {
    let fate = |item: &Value| match item["reason"].as_str() {
        Some(reason) => format!("{} {reason}", item["fate"].as_str().unwrap()),
        None => item["fate"].as_str().unwrap().to_owned(),
    };
    let mut fates: Vec<String> = items(page).iter().map(fate).collect();
    fates.dedup();
    fates
}

/// Slots follow each other, and none is unknown.
fn check_sound(page: &Value) {
    let text = |item: &Value, name: &str| item[name].as_str().map(str::to_owned);
    let mut last = String::new();
    for item in items(page) {
        let first = text(item, "slot").unwrap();
        assert!(first > last, "{page}");
        assert_ne!(item["fate"], "unknown", "{page}");
        if item.get("count").is_some() {
            assert_eq!(text(item, "first").unwrap(), first);
        }
        last = text(item, "last").unwrap_or(first);
    }
}

pub async fn list(world: &World, job: &str, query: &str) -> Value {
    let path = format!("/v1/jobs/{job}/slots?{query}");
    let page = world.get(&path).await.is(200).json();
    check_sound(&page);
    page
}

/// A job as if it had been made a while ago, when no node ran.
async fn from_the_past(world: &World, text: &str, ago: Duration, catch_up: &str) -> String {
    let made = now().minus(ago);
    let schedule = Schedule::parse_text(text, CronOptions::default(), made).unwrap();
    let target = model::target::HttpTarget::new(OK, None).unwrap();
    let mut def = Definition::new(schedule, Target::Http(target));
    def.catch_up.policy = model::CatchUpPolicy::parse(catch_up).unwrap();
    let id = JobId::new(made, rand::random());
    let job = Arc::new(Job::new(id, TenantId::DEFAULT, None, def, made));
    let new = NewJob {
        job,
        idempotency: None,
    };
    world.store.create_jobs(&[new]).await.unwrap();
    id.to_string()
}

#[tokio::test]
async fn slots_run_and_are_planned() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1s"}, "target": OK, "spread": "100ms"});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let mut page = Value::Null;
    for _ in 0..500 {
        pause(20).await;
        page = list(&world, &job, "limit=1000").await;
        if items(&page)[0]["run"]["state"] == "succeeded" {
            break;
        }
    }
    assert_eq!(fates(&page), ["ran", "planned"]);
    assert!(page["next_cursor"].is_string());
    let first = &items(&page)[0];
    let run = &first["run"];
    assert_eq!(
        (&run["state"], &run["attempt"], &run["outcome"]),
        (&json!("succeeded"), &json!(1), &json!("succeeded"))
    );
    assert!(run["dispatched_at"].is_string() && run["settled_at"].is_string());
    let shown = world
        .get(&format!("/v1/runs/{}", run["id"].as_str().unwrap()))
        .await
        .is(200)
        .json();
    assert_eq!(
        (&shown["slot"], &shown["due_at"]),
        (&first["slot"], &first["due_at"])
    );
    let planned = items(&page).last().unwrap();
    assert!(planned["due_at"].as_str() >= planned["slot"].as_str());
    assert_eq!(
        (
            planned.get("run"),
            planned.get("reason"),
            planned.get("overdue")
        ),
        (None, None, None)
    );
    for name in ["from", "to", "history_from"] {
        assert!(page[name].is_string(), "{name}");
    }
    let moment = |name: &str| Timestamp::parse(page[name].as_str().unwrap()).unwrap();
    assert_eq!(moment("to").since(moment("from")).as_secs(), 2 * 86_400);
    world.delete(&format!("/v1/jobs/{job}")).await.is(200);
}

#[tokio::test]
async fn a_slot_whose_run_is_dead_ran() {
    let world = World::new().await;
    let dead = json!({"schedule": {"in": "0s"}, "target": FAIL});
    let dead = world.post("/v1/jobs", dead).await.is(201).get("id");
    let mut page = Value::Null;
    for _ in 0..500 {
        page = list(&world, &dead, "").await;
        if items(&page)
            .first()
            .is_some_and(|it| it["run"]["state"] == "dead")
        {
            break;
        }
        pause(20).await;
    }
    assert_eq!(fates(&page), ["ran"]);
    assert_eq!(
        (
            &items(&page)[0]["run"]["state"],
            &items(&page)[0]["run"]["outcome"]
        ),
        (&json!("dead"), &json!("failed"))
    );
}

#[tokio::test]
async fn a_slot_that_met_a_living_run_says_so() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1s"}, "target": HANG, "timeout": "1h"});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    pause(2_600).await;
    let page = list(&world, &job, "").await;
    assert_eq!(fates(&page), ["ran", "skipped overlap", "planned"]);
    assert_eq!(items(&page)[0]["run"]["outcome"], Value::Null);
    let skipped = &items(&page)[1];
    assert_eq!(
        (&skipped["actor"], &skipped["note"]),
        (&json!("punctual"), &Value::Null)
    );
    assert!(skipped["at"].is_string(), "{skipped}");
}

#[tokio::test]
async fn slots_that_passed_without_a_node_are_missed() {
    let world = World::new().await;
    let hour = Duration::from_secs(3_600);
    let job = from_the_past(&world, "* * * * *", hour, "none").await;
    let mut page = Value::Null;
    for _ in 0..500 {
        page = list(&world, &job, "").await;
        if fates(&page)
            .first()
            .is_some_and(|fate| fate == "missed missed")
        {
            break;
        }
        assert_eq!(fates(&page), ["planned"]);
        assert_eq!(items(&page)[0]["overdue"], true);
        pause(20).await;
    }
    let missed: Vec<&Value> = items(&page)
        .iter()
        .take_while(|item| item["reason"] == "missed")
        .collect();
    let count: u64 = missed.iter().filter_map(|it| it["count"].as_u64()).sum();
    assert!((58..=60).contains(&count), "{missed:?}");
    for item in &missed {
        assert_eq!(
            (&item["slot"], &item["actor"]),
            (&item["first"], &json!("punctual"))
        );
    }
    // A range within it shows the whole of it, as far as one day of history has it.
    let middle = now().minus(hour / 2);
    let query = format!("from={middle}&to={}", middle.plus(Duration::from_secs(1)));
    let within = list(&world, &job, &query).await;
    let [covers] = items(&within).as_slice() else {
        panic!("{within}");
    };
    let is_over = |at: &Value| at.as_str() <= Some(middle.to_string().as_str());
    assert!(
        is_over(&covers["first"]) && !is_over(&covers["last"]),
        "{within}"
    );
    assert_eq!(covers["fate"], "missed");
}

#[tokio::test]
async fn a_paused_job_shows_what_it_lets_pass() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1s"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    pause(1_500).await;
    let note = json!({"note": "rain"});
    world
        .post(&format!("/v1/jobs/{job}/pause"), note)
        .await
        .is(200);
    pause(2_200).await;
    let page = list(&world, &job, "").await;
    assert_eq!(fates(&page), ["ran", "skipped paused"]);
    let [.., passed, coming] = items(&page).as_slice() else {
        panic!("{page}");
    };
    for item in [passed, coming] {
        assert_eq!(
            (&item["note"], &item["actor"], &item["at"]),
            (&json!("rain"), &json!("anonymous"), &Value::Null)
        );
    }
    assert!(coming["count"].as_u64().unwrap() > 86_300, "{coming}");
    assert!(passed["slot"].as_str() < Some(&now().to_string()));
    assert!(coming["slot"].as_str() > passed["slot"].as_str());
    world
        .post_empty(&format!("/v1/jobs/{job}/resume"))
        .await
        .is(200);
    let page = list(&world, &job, "").await;
    assert_eq!(fates(&page), ["ran", "skipped paused", "planned"]);
    let written = items(&page)
        .iter()
        .find(|item| item["reason"] == "paused")
        .unwrap();
    assert!(written["at"].is_string(), "{written}");
}

#[tokio::test]
async fn what_calendars_leave_out_is_shown_ahead() {
    let world = World::new().await;
    // Three days, so that midnight may pass.
    let day = |days: u64| {
        let text = now().plus(Duration::from_secs(days * 86_400)).to_string();
        text.split_once('T').unwrap().0.to_owned()
    };
    let calendar = json!({"dates": [day(0), day(1)], "timezone": "UTC"});
    world.put("/v1/calendars/quiet", calendar).await.is(201);
    let body = json!({"schedule": "* * * * * *", "target": OK, "exclude": ["quiet"]});
    let job = world.post("/v1/jobs", body).await.is(201).json();
    assert_eq!(job["next_slot"], format!("{}T00:00:00.000Z", day(2)));
    let id = job["id"].as_str().unwrap();
    pause(1_100).await;
    let query = format!(
        "from={}&to={}T00:00:03Z",
        job["created_at"].as_str().unwrap(),
        day(2)
    );
    let page = list(&world, id, &query).await;
    assert_eq!(fates(&page), ["skipped calendar", "planned"]);
    assert_eq!(items(&page).len(), 4);
    let left = &items(&page)[0];
    assert_eq!(
        (&left["note"], &left["at"]),
        (&json!("quiet"), &Value::Null)
    );
    assert_eq!(left["last"], format!("{}T23:59:59.000Z", day(1)));
    // A pause writes down what had passed until then.
    world
        .post_empty(&format!("/v1/jobs/{id}/pause"))
        .await
        .is(200);
    let page = list(&world, id, &query).await;
    assert_eq!(fates(&page), ["skipped calendar", "skipped paused"]);
    assert!(items(&page)[0]["at"].is_string(), "{page}");
    assert_eq!(items(&page)[0]["actor"], "anonymous");
}

#[tokio::test]
async fn a_day_of_seconds_is_read_page_by_page() {
    let world = World::new().await;
    let body = json!({"schedule": "* * * * * *", "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    let mut query = "from=2098-12-24T00:00:00Z&to=2098-12-25T00:00:00Z&limit=1000".to_owned();
    let mut expected = Timestamp::parse("2098-12-24T00:00:00Z").unwrap();
    let mut pages = 0;
    loop {
        let page = world
            .get(&format!("/v1/jobs/{job}/slots?{query}"))
            .await
            .is(200)
            .json();
        for item in items(&page) {
            assert_eq!(item["slot"], expected.to_string());
            assert_eq!(item["fate"], "planned");
            expected = expected.plus(Duration::from_secs(1));
        }
        pages += 1;
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        query =
            format!("from=2098-12-24T00:00:00Z&to=2098-12-25T00:00:00Z&limit=1000&cursor={cursor}");
    }
    assert_eq!(expected, Timestamp::parse("2098-12-25T00:00:00Z").unwrap());
    assert_eq!(pages, 87);
    // A year of them is no more work than a page.
    let year = list(
        &world,
        &job,
        "from=2098-01-01T00:00:00Z&to=2099-01-01T00:00:00Z",
    )
    .await;
    assert_eq!(items(&year).len(), 100);
    assert!(year["next_cursor"].is_string());
}

#[tokio::test]
async fn a_range_has_a_beginning_and_an_end() {
    let world = World::new().await;
    let job = world.job(OK).await;
    for (query, field) in [
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("from=2026-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("from=1970-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", "to"),
        ("from=yesterday", "from"),
        ("from=-1", "from"),
        ("to=2026-01-01", "to"),
        ("to=99999999999999999999", "to"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("cursor=nonsense", "cursor"),
        ("cursor=c_________w", "cursor"),
        ("from=0&from=1", "from"),
        ("state=ran", "state"),
    ] {
        let reply = world.get(&format!("/v1/jobs/{job}/slots?{query}")).await;
        reply.refused(400, "parameter-invalid");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{query}");
    }
    // One end alone: a day from there.
    let ahead = list(&world, &job, "from=2098-12-31T23:00:00%2B00:00").await;
    assert_eq!(ahead["to"], "2099-01-01T23:00:00.000Z");
    assert_eq!(items(&ahead).len(), 1);
    let plus = list(&world, &job, "from=2098-12-31T23:00:00+00:00").await;
    assert_eq!(plus["items"], ahead["items"], "a plus that came as a space");
    let before = list(&world, &job, "to=2001-01-01T00:00:00Z").await;
    assert_eq!(
        (&before["from"], &before["items"]),
        (&json!("2000-12-31T00:00:00.000Z"), &json!([]))
    );
    let nobody = "job_0192f0c1a2b37def8123456789abcdef";
    world
        .get(&format!("/v1/jobs/{nobody}/slots"))
        .await
        .refused(404, "job-not-found");
}

#[tokio::test]
async fn an_edited_job_accounts_for_both_of_its_schedules() {
    let world = World::new().await;
    let body = json!({"schedule": {"every": "1s"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    pause(1_500).await;
    let path = format!("/v1/jobs/{job}");
    let two = json!({"schedule": {"every": "2s"}, "timeout": "1m"});
    world.patch(&path, two).await.is(200);
    pause(2_600).await;
    let page = list(&world, &job, "limit=20").await;
    assert_eq!(fates(&page), ["ran", "planned"]);
    let deleted = world.delete(&path).await.is(200);
    assert_eq!(deleted.get("state"), "deleted");
}
