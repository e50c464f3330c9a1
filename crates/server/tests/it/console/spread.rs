//! A hot second on the pages: proposed, previewed, spread, and said what stays.

use model::Role;
use serde_json::json;

use super::logged_in;
use crate::world::{OK, World};

#[tokio::test]
async fn a_hot_second_is_spread_and_what_was_changed_meanwhile_stays() {
    let world = World::with_keys().await;
    let key = world.key(model::TenantId::DEFAULT, Role::Admin).await;
    for number in 0..12 {
        let body =
            json!({"key": format!("nightly-{number}"), "schedule": "30 4 * * *", "target": OK});
        world.as_key(&key, "POST", "/v1/jobs", body).await.is(201);
    }
    let admin = logged_in(&world, Role::Admin).await;
    let page = admin.get("/").await.is(200).text;
    let (_, rest) = page.split_once("href=\"/spread?at=").unwrap();
    let at = rest.split('"').next().unwrap();
    let path = format!("/spread?at={at}&spread=10m");
    let page = admin.get(&path).await.is(200).text;
    assert!(page.contains("12 jobs") && page.contains("at most 12 in one second now"));
    let values = |page: &str| -> Vec<String> {
        let parts = page.split("name=\"job\" value=\"").skip(1);
        parts
            .map(|it| it.split('"').next().unwrap().to_owned())
            .collect()
    };
    let chosen = values(&page);
    assert_eq!(chosen.len(), 12);
    let changed = json!({"timeout": "1m"});
    world
        .as_key(&key, "PATCH", "/v1/jobs/key:nightly-3", changed)
        .await
        .is(200);
    // One is not chosen, and one says nothing that can be read.
    let changed = id(&world, &key, 3).await;
    let left_out = chosen.iter().position(|it| !it.starts_with(&changed));
    let mut fields = vec![("at", at), ("spread", "10m"), ("job", "nonsense")];
    let wanted = chosen.iter().enumerate();
    let wanted = wanted.filter(|(place, _)| Some(*place) != left_out);
    fields.extend(wanted.map(|(_, it)| ("job", it.as_str())));
    let done = admin.post("/spread", &fields).await.is(200).text;
    assert!(done.contains("10 jobs are spread now"), "{done}");
    assert!(
        done.contains("These stay as they were") && done.contains("nightly-3"),
        "{done}"
    );
    let jobs = world
        .as_key(&key, "GET", "/v1/jobs?limit=100", json!(null))
        .await
        .json();
    let spread = jobs["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["spread"] == "10m");
    assert_eq!(spread.count(), 10);
    let reader = logged_in(&world, Role::Reader).await;
    let page = reader.get("/").await.is(200).text;
    assert!(!page.contains("Propose spread"));
    reader.post("/spread", &fields).await.is(403);
}

#[tokio::test]
async fn a_second_that_cannot_be_read_is_refused_in_words() {
    let world = World::with_keys().await;
    let admin = logged_in(&world, Role::Admin).await;
    for path in [
        "/spread",
        "/spread?at=x",
        "/spread?at=0",
        "/spread?at=1&spread=-",
    ] {
        admin.get(path).await.is(400);
    }
}

async fn id(world: &World, key: &str, number: usize) -> String {
    let path = format!("/v1/jobs/key:nightly-{number}");
    world.as_key(key, "GET", &path, json!(null)).await.get("id")
}
