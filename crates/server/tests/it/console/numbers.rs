//! What the heat map counts.

use std::sync::Arc;
use std::time::Duration;

use model::{JobId, JobState, Slot, Timestamp};
use serde_json::json;
use store::{ClientStore, NewJob};

use super::Browser;
use crate::access::now;
use crate::world::{HANG, OK, World, pause};

/// The share that ran, and how many of how many did not, as the page of a job says it.
async fn counted(world: &World, job: &str) -> (String, String) {
    let page = Browser::new(world)
        .get(&format!("/jobs/{job}"))
        .await
        .is(200);
    let (_, fact) = page.text.split_once("Ran, on this map</dt><dd>").unwrap();
    let (share, rest) = fact.split_once("<small>").unwrap();
    let not = rest.split("</small>").next().unwrap();
    (share.replace('\u{2009}', " "), not.to_owned())
}

async fn until(world: &World, job: &str, state: &str) {
    for _ in 0..500 {
        let runs = world.get(&format!("/v1/jobs/{job}/runs")).await.json();
        let items = runs["items"].as_array().unwrap().clone();
        if items.iter().any(|run| run["state"] == state) {
            return;
        }
        pause(20).await;
    }
    panic!("no run is {state}");
}

#[tokio::test]
async fn what_has_not_ended_neither_ran_nor_failed_to() {
    let world = World::new().await;
    for (target, state) in [
        (HANG, "running"),
        ("http://target.example/echo", "retrying"),
    ] {
        let body = json!({"schedule": {"every": "1s"}, "target": target, "overlap": "allow",
            "retry": {"delay_first": "1h", "delay_max": "1h"}});
        let job = world.post("/v1/jobs", body).await.is(201).get("id");
        until(&world, &job, state).await;
        let (share, not) = counted(&world, &job).await;
        assert_eq!(
            (share.as_str(), not.as_str()),
            ("—", "0 of 0 slots did not")
        );
    }
}

/// A job that has been paused for some time.
async fn paused(world: &World, every: &str, since: Timestamp) -> String {
    let body =
        json!({"schedule": {"every": every, "anchor": "2026-01-01T00:00:00Z"}, "target": OK});
    let id = world.post("/v1/jobs", body).await.is(201).get("id");
    let like = world.store.all_jobs();
    let like = like.iter().find(|job| job.id.to_string() == id).unwrap();
    let mut job = (**like).clone();
    job.id = JobId::new(since, [9; 10]);
    job.state = JobState::Paused;
    job.next_slot = None::<Slot>;
    (job.state_at, job.created_at, job.updated_at) = (since, since, since);
    let id = job.id.to_string();
    let new = NewJob {
        job: Arc::new(job),
        idempotency: None,
    };
    world.store.create_jobs(&[new]).await.unwrap();
    id
}

#[tokio::test]
async fn a_long_pause_is_counted_in_full_and_what_lies_ahead_not_at_all() {
    let world = World::new().await;
    let since = now().minus(Duration::from_secs(86_400));
    let job = paused(&world, "1s", since).await;
    let (share, not) = counted(&world, &job).await;
    assert_eq!(share, "0 %");
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let mut words = not.split(' ');
    let (of, all) = (words.next().unwrap(), words.nth(1).unwrap());
    assert_eq!(of, all, "{not}");
    assert!((86_390..=86_410).contains(&number(of)), "{not}");
    // Over several days, and none of it twice.
    let since = now().minus(Duration::from_secs(5 * 86_400));
    let job = paused(&world, "1m", since).await;
    let (_, not) = counted(&world, &job).await;
    let of = number(not.split(' ').next().unwrap());
    assert!((7_195..=7_205).contains(&of), "{not}");
}
