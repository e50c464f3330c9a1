use serde_json::{Value, json};

use crate::world::World;

async fn slots(world: &World, body: Value) -> Vec<String> {
    let reply = world
        .post("/v1/schedules/preview", body)
        .await
        .is(200)
        .json();
    assert!(reply["words"].is_string() && reply["notes"].is_array());
    reply["slots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|slot| slot.as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn slots_lie_strictly_after_from() {
    let world = World::new().await;
    let body = json!({"schedule": "0 9 * * *", "from": "2026-01-01T09:00:00Z", "count": 2});
    let expected = ["2026-01-02T09:00:00.000Z", "2026-01-03T09:00:00.000Z"];
    assert_eq!(slots(&world, body).await, expected);
    let body = json!({"schedule": {"cron": "0 9 * * *"}, "from": 1_767_258_000, "count": 1});
    assert_eq!(slots(&world, body).await, ["2026-01-02T09:00:00.000Z"]);
}

#[tokio::test]
async fn options_stand_within_the_schedule_or_beside_it() {
    let world = World::new().await;
    // The clocks jump from 02:00 to 03:00 on this day.
    let from = "2026-03-28T12:00:00Z";
    let gap =
        json!({"schedule": "30 2 * * *", "timezone": "Europe/Berlin", "from": from, "count": 1});
    assert_eq!(
        slots(&world, gap.clone()).await,
        ["2026-03-29T01:00:00.000Z"]
    );
    let mut skip = gap;
    skip["dst_gap"] = json!("skip");
    assert_eq!(
        slots(&world, skip.clone()).await,
        ["2026-03-30T00:30:00.000Z"]
    );
    skip["schedule"] = json!({"cron": "30 2 * * *"});
    assert_eq!(
        slots(&world, skip.clone()).await,
        ["2026-03-30T00:30:00.000Z"]
    );
    skip["schedule"] = json!({"cron": "30 2 * * *", "timezone": "Europe/Paris"});
    let reply = world.post("/v1/schedules/preview", skip).await;
    assert_eq!(
        reply.problem(),
        ("field-invalid".to_owned(), Some("timezone".to_owned()))
    );
    let every = json!({"schedule": {"every": "P1D"}, "timezone": "Europe/Berlin", "from": from, "count": 2});
    assert_eq!(
        slots(&world, every).await,
        ["2026-03-29T11:00:00.000Z", "2026-03-30T11:00:00.000Z"]
    );
}

#[tokio::test]
async fn a_preview_has_ten_slots_by_default() {
    let world = World::new().await;
    assert_eq!(
        slots(&world, json!({"schedule": "@hourly"})).await.len(),
        10
    );
    assert_eq!(
        slots(&world, json!({"schedule": "@minutely", "count": 1000}))
            .await
            .len(),
        1_000
    );
    assert_eq!(
        slots(&world, json!({"schedule": {"at": "2099-01-01T00:00:00Z"}}))
            .await
            .len(),
        1
    );
    assert_eq!(
        slots(&world, json!({"schedule": {"in": "1h"}})).await.len(),
        1
    );
    assert_eq!(
        slots(
            &world,
            json!({"schedule": "@every 1h", "from": 0, "count": 1})
        )
        .await,
        ["1970-01-01T01:00:00.000Z"]
    );
}

#[tokio::test]
async fn bounds_stand_within_the_schedule_or_beside_it() {
    let world = World::new().await;
    let (from, to) = ("2026-01-01T00:00:00Z", "2026-01-03T09:00:00Z");
    let within = json!({"schedule": {"cron": "0 9 * * *", "ends_at": to}, "from": from});
    let beside = json!({"schedule": "0 9 * * *", "ends_at": to, "from": from});
    let expected = [
        "2026-01-01T09:00:00.000Z",
        "2026-01-02T09:00:00.000Z",
        "2026-01-03T09:00:00.000Z",
    ];
    assert_eq!(slots(&world, within).await, expected);
    assert_eq!(slots(&world, beside.clone()).await, expected);
    let mut some = beside;
    some["runs_max"] = json!(2);
    assert_eq!(slots(&world, some.clone()).await, expected[..2]);
    some["starts_at"] = json!("2026-01-02T09:00:00Z");
    assert_eq!(slots(&world, some).await, expected[1..]);
    // An interval without an anchor is counted from its start.
    let every =
        json!({"schedule": {"every": "90m"}, "starts_at": "2026-01-01T10:00:00Z", "from": from});
    let expected = ["2026-01-01T10:00:00.000Z", "2026-01-01T11:30:00.000Z"];
    assert_eq!(slots(&world, every).await[..2], expected);
}

#[tokio::test]
async fn what_calendars_leave_out_is_named() {
    let world = World::new().await;
    let holidays = json!({"dates": ["2026-01-02"], "yearly": ["01-04"]});
    world.put("/v1/calendars/holidays", holidays).await.is(201);
    let weekends = json!({"weekly": ["SAT-SUN"]});
    world.put("/v1/calendars/weekends", weekends).await.is(201);
    let body = json!({"schedule": "0 9,10 * * *", "from": "2026-01-01T09:30:00Z", "count": 3,
        "exclude": ["holidays", "weekends"]});
    let reply = world
        .post("/v1/schedules/preview", body)
        .await
        .is(200)
        .json();
    assert_eq!(
        reply["slots"],
        json!([
            "2026-01-01T10:00:00.000Z",
            "2026-01-05T09:00:00.000Z",
            "2026-01-05T10:00:00.000Z"
        ])
    );
    let left = |day: u32, hour: &str, calendar: &str| json!({"slot": format!("2026-01-{day:02}T{hour}:00:00.000Z"), "calendar": calendar});
    assert_eq!(
        reply["excluded"],
        json!([
            left(2, "09", "holidays"),
            left(2, "10", "holidays"),
            left(3, "09", "weekends"),
            left(3, "10", "weekends"),
            left(4, "09", "holidays"),
            left(4, "10", "holidays"),
        ])
    );
    let only = json!({"schedule": "0 9 * * *", "from": "2026-01-01T00:00:00Z", "count": 2, "only": ["weekends"]});
    let reply = world
        .post("/v1/schedules/preview", only)
        .await
        .is(200)
        .json();
    assert_eq!(
        reply["slots"],
        json!(["2026-01-03T09:00:00.000Z", "2026-01-04T09:00:00.000Z"])
    );
    assert_eq!(reply["excluded"].as_array().unwrap().len(), 2);
    let none = json!({"schedule": "0 9 * * *", "exclude": ["weekends"], "only": ["weekends"]});
    let reply = world
        .post("/v1/schedules/preview", none)
        .await
        .is(200)
        .json();
    assert_eq!(reply["slots"], json!([]));
    assert_eq!(reply["excluded"].as_array().unwrap().len(), 20);
    let notes = reply["notes"].to_string();
    assert!(notes.contains("calendars leave out every slot"), "{notes}");
}

#[tokio::test]
async fn slots_that_follow_runs_are_said_to() {
    let world = World::new().await;
    let body =
        json!({"schedule": {"every": "1h", "after_completion": true}, "from": 0, "count": 2});
    let reply = world
        .post("/v1/schedules/preview", body)
        .await
        .is(200)
        .json();
    assert_eq!(
        reply["slots"],
        json!(["1970-01-01T01:00:00.000Z", "1970-01-01T02:00:00.000Z"])
    );
    let notes = reply["notes"].to_string();
    assert!(notes.contains("follows the end of the run"), "{notes}");
}
