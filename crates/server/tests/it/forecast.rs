//! What comes: every slot of the next day is in the forecast, hot seconds are named, and their jobs can be spread.

use std::time::Duration;

use model::{Role, TenantId};
use serde_json::{Value, json};

use crate::access::now;
use crate::world::{OK, World};

async fn daily(world: &World, number: usize, more: Value) -> String {
    let mut body =
        json!({"key": format!("daily-{number}"), "schedule": "30 4 * * *", "target": OK});
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    world.post("/v1/jobs", body).await.is(201).get("id")
}

fn sum(forecast: &Value) -> f64 {
    let points = forecast["points"].as_array().unwrap();
    points.iter().map(|it| it["slots"].as_f64().unwrap()).sum()
}

#[tokio::test]
async fn every_slot_ahead_is_counted_and_the_hot_second_is_named() {
    let world = World::new().await;
    for number in 0..29 {
        daily(&world, number, json!({"lane": "batch"})).await;
    }
    let spread = daily(&world, 29, json!({"spread": "10m"})).await;
    let body = json!({"schedule": {"every": "1m"}, "target": OK, "lane": "critical"});
    world.post("/v1/jobs", body).await.is(201);
    let paused = daily(&world, 30, json!({})).await;
    world
        .post_empty(&format!("/v1/jobs/{paused}/pause"))
        .await
        .is(200);

    let day = world.get("/v1/forecast").await.is(200).json();
    assert_eq!(day["sampled"], false);
    // The first of its minutes begins when it is created.
    assert!([1_469.0, 1_470.0].contains(&sum(&day)), "{}", sum(&day));
    assert_eq!(day["points"].as_array().unwrap().len(), 288);
    let hot = day["hot"].as_array().unwrap();
    assert_eq!(hot.len(), 1, "{hot:?}");
    let at = hot[0]["at"].as_str().unwrap();
    assert!(at.ends_with("T04:30:00.000Z"), "{at}");
    // The job that is due each minute may be due in that second too.
    let slots = hot[0]["slots"].as_f64().unwrap();
    assert!([29.0, 30.0].contains(&slots), "{slots}");
    assert_eq!(hot[0]["may_spread"], hot[0]["slots"]);
    let lanes = |lane: usize| -> f64 {
        let points = day["points"].as_array().unwrap();
        let means = points
            .iter()
            .map(|it| it["lanes"][lane]["per_second"].as_f64());
        means.map(|mean| mean.unwrap() * 300.0).sum()
    };
    assert!((lanes(0) - 1_440.0).abs() < 50.0, "{}", lanes(0));
    assert!((lanes(2) - 29.0).abs() < 1.0, "{}", lanes(2));
    let hour = world.get("/v1/forecast?reach=1h").await.is(200).json();
    assert_eq!(hour["point_seconds"], 60);
    assert!(sum(&hour) >= 59.0, "{}", sum(&hour));
    // Its own moment is not this second.
    let second = world.get(&format!("/v1/forecast/second?at={at}")).await;
    let second = second.is(200).json();
    let items = second["items"].as_array().unwrap();
    assert!(!items.iter().any(|it| it["id"] == spread.as_str()));
    assert_eq!(items.len() as f64, slots);
}

#[tokio::test]
async fn jobs_of_a_second_are_spread_by_edits_of_the_version_that_was_shown() {
    let world = World::new().await;
    for number in 0..25 {
        daily(&world, number, json!({})).await;
    }
    let day = world.get("/v1/forecast").await.json();
    let at = day["hot"][0]["at"].as_str().unwrap().to_owned();
    let path = format!("/v1/forecast/second?at={at}&spread=5m");
    let second = world.get(&path).await.is(200).json();
    assert_eq!(
        (&second["peak_before"], &second["complete"]),
        (&json!(25), &json!(true))
    );
    let after = second["peak_after"].as_u64().unwrap();
    assert!(after < 6, "{after}");
    // Somebody edits one of them meanwhile.
    let items = second["items"].as_array().unwrap();
    let edited = items[3]["id"].as_str().unwrap();
    let path_of = |id: &str| format!("/v1/jobs/{id}");
    world
        .patch(&path_of(edited), json!({"timeout": "1m"}))
        .await
        .is(200);
    let mut refused = 0;
    for item in items {
        let (id, version) = (item["id"].as_str().unwrap(), item["version"].to_string());
        let body = json!({"spread": item["proposed"]}).to_string();
        let headers = [
            ("if-match", format!("\"{version}\"")),
            ("content-type", "application/json".to_owned()),
        ];
        let headers = headers
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        let reply = world.call("PATCH", &path_of(id), &headers, body).await;
        refused += usize::from(reply.status == 412);
    }
    assert_eq!(refused, 1);
    let left = world.get(&path).await.is(200).json();
    let left = left["items"].as_array().unwrap();
    assert!(
        left.iter()
            .any(|it| it["id"] == edited && it["proposed"] == "5m")
    );
    // The others have moved, but for one or another whose moment is the first second.
    assert!(left.len() <= 4, "{left:?}");
}

#[tokio::test]
async fn what_cannot_be_queried_is_refused_by_its_name() {
    let world = World::new().await;
    let far = now().plus(Duration::from_secs(90_000));
    let soon = now().plus(Duration::from_secs(60));
    for (query, field) in [
        ("?reach=2h".to_owned(), "reach"),
        ("?reach=1h&reach=24h".to_owned(), "reach"),
        ("?span=1h".to_owned(), "span"),
        ("/second".to_owned(), "at"),
        ("/second?at=soon".to_owned(), "at"),
        ("/second?at=0".to_owned(), "at"),
        (format!("/second?at={far}"), "at"),
        (format!("/second?at={soon}&spread=0s"), "spread"),
        (format!("/second?at={soon}&spread=900d"), "spread"),
        (format!("/second?at={soon}&spread=much"), "spread"),
    ] {
        let reply = world.get(&format!("/v1/forecast{query}")).await;
        reply.refused(400, "parameter-invalid");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{query}");
    }
}

#[tokio::test]
async fn a_forecast_is_of_one_tenant() {
    let world = World::with_keys().await;
    let ours = world.key(TenantId::DEFAULT, Role::Admin).await;
    for number in 0..12 {
        let body =
            json!({"key": format!("daily-{number}"), "schedule": "30 4 * * *", "target": OK});
        world.as_key(&ours, "POST", "/v1/jobs", body).await.is(201);
    }
    let theirs = world.key(TenantId::from_bytes([7; 16]), Role::Admin).await;
    let see = async |key: &str| {
        world
            .as_key(key, "GET", "/v1/forecast", Value::Null)
            .await
            .json()
    };
    let (our, their) = (see(&ours).await, see(&theirs).await);
    assert_eq!((sum(&our), sum(&their)), (12.0, 0.0));
    let path = format!(
        "/v1/forecast/second?at={}",
        our["hot"][0]["at"].as_str().unwrap()
    );
    let second = world
        .as_key(&theirs, "GET", &path, Value::Null)
        .await
        .is(200);
    assert_eq!(second.json()["items"], json!([]));
}
