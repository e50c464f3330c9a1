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
async fn a_preview_has_ten_slots_unless_told() {
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
