//! Pages of slots: what grows between two of them, and what a store keeps in pieces.

use std::sync::Arc;
use std::time::Duration;

use model::job::Definition;
use model::schedule::CronOptions;
use model::{Job, JobId, Schedule, Target, TenantId, Timestamp};
use serde_json::{Value, json};
use store::{ClientStore, NewJob};

use crate::slots::{items, list, now};
use crate::world::{OK, World, pause};

/// A page, and the query of the one after it.
async fn page_after(world: &World, job: &str, query: &str, page: Option<&Value>) -> Value {
    let cursor = page.map(|page| page["next_cursor"].as_str().unwrap());
    let cursor = cursor.map(|cursor| format!("&cursor={cursor}"));
    list(
        world,
        job,
        &format!("{query}{}", cursor.unwrap_or_default()),
    )
    .await
}

fn moment(value: &Value) -> Timestamp {
    Timestamp::parse(value.as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_stretch_that_grows_between_two_pages_loses_no_slot() {
    let world = World::new().await;
    let body = json!({"schedule": "* * * * * *", "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    world
        .post_empty(&format!("/v1/jobs/{job}/pause"))
        .await
        .is(200);
    pause(2_100).await;
    let first = page_after(&world, &job, "limit=1", None).await;
    let shown = items(&first)[0]
        .get("last")
        .unwrap_or(&items(&first)[0]["slot"]);
    // What was still to come has passed when the next page is asked for.
    pause(2_100).await;
    let second = page_after(&world, &job, "limit=1", Some(&first)).await;
    let next = moment(shown).plus(Duration::from_secs(1));
    assert_eq!(moment(&items(&second)[0]["slot"]), next, "{first} {second}");
    let (last, count) = (&items(&second)[0]["last"], &items(&second)[0]["count"]);
    let seconds = moment(last).since(next).as_secs();
    assert_eq!(count.as_u64(), Some(seconds + 1), "{second}");
    let third = page_after(&world, &job, "limit=1", Some(&second)).await;
    let next = moment(last).plus(Duration::from_secs(1));
    assert_eq!(moment(&items(&third)[0]["slot"]), next, "{second} {third}");
}

/// A job that was paused for some days, as a store keeps it: one piece for each day.
async fn paused_for_days(world: &World, days: u64) -> (String, Timestamp) {
    const DAY: u64 = 86_400_000;
    let today = now().as_millis() as u64 / DAY;
    let midnight = |day: u64| Timestamp::from_millis((day * DAY) as i64);
    let begin = today - days - 2;
    let made = midnight(begin);
    let schedule = Schedule::parse_text("0 * * * *", CronOptions::default(), made).unwrap();
    let target = model::target::HttpTarget::new(OK, None).unwrap();
    let def = Definition::new(schedule.clone(), Target::Http(target));
    let id = JobId::new(made, rand::random());
    let by: Arc<str> = Arc::from("someone");
    let paused_at = made.plus(Duration::from_secs(12 * 3_600 + 60));
    let (job, _) = Job::new(id, TenantId::DEFAULT, None, def, made).paused(
        paused_at,
        Some("rain".to_owned()),
        &by,
    );
    let new = NewJob {
        job: Arc::new(job.clone()),
        idempotency: None,
    };
    world.store.create_jobs(&[new]).await.unwrap();
    let resumed_at = midnight(begin + days).plus(Duration::from_secs(60));
    let (after, skips) = job.resumed(resumed_at, false, &by);
    let whole = skips.first().unwrap().clone();
    let pieces = (begin..=begin + days).map(|day| {
        let first =
            schedule.next_after(midnight(day).max(paused_at).minus(Duration::from_millis(1)));
        let end = midnight(day + 1)
            .minus(Duration::from_millis(1))
            .min(resumed_at);
        model::Skip {
            slots: schedule.stretch(first.unwrap(), end),
            ..whole.clone()
        }
    });
    // It stays paused again from there on, so that no node touches it.
    let (after, _) = after.paused(resumed_at, None, &by);
    let change = store::JobChange {
        before: Arc::new(job),
        after: Arc::new(after),
        skipped: pieces.collect(),
        runs: store::RunsOfChange::Keep,
    };
    world.store.change_job(&change).await.unwrap();
    (id.to_string(), made)
}

#[tokio::test]
async fn a_pause_of_many_days_is_one_entry() {
    let world = World::new().await;
    let (job, made) = paused_for_days(&world, 5).await;
    for limit in [1, 2, 100] {
        let to = made.plus(Duration::from_secs(5 * 86_400 + 600));
        let query = format!("from={made}&to={to}&limit={limit}");
        let page = list(&world, &job, &query).await;
        assert_eq!(items(&page).len(), 1, "{page}");
        let entry = &items(&page)[0];
        let hours = |hours: u64| made.plus(Duration::from_secs(hours * 3_600)).to_string();
        assert_eq!(
            (&entry["first"], &entry["last"], &entry["count"]),
            (
                &json!(hours(13)),
                &json!(hours(5 * 24)),
                &json!(5 * 24 - 12)
            )
        );
        assert_eq!(
            (&entry["reason"], &entry["note"], &entry["actor"]),
            (&json!("paused"), &json!("rain"), &json!("someone"))
        );
        assert_eq!(page["next_cursor"], Value::Null, "{page}");
    }
    // Some of its days only.
    let from = made.plus(Duration::from_secs(86_400));
    let to = made.plus(Duration::from_secs(3 * 86_400));
    let page = list(&world, &job, &format!("from={from}&to={to}&limit=1")).await;
    assert_eq!(items(&page)[0]["count"], 48, "{page}");
}
