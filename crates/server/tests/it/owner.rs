//! Owners: who made a job, and whose jobs there are.

use model::{Role, TenantId};
use serde_json::{Value, json};
use server::Minted;

use crate::access::now;
use crate::world::{OK, World};

fn job() -> Value {
    json!({"schedule": "@daily", "target": OK})
}

async fn labelled(world: &World, role: Role, label: &str) -> String {
    let mut minted = Minted::new(TenantId::DEFAULT, role, now());
    minted.key.label = Some(label.to_owned());
    world.put_key(minted).await
}

#[tokio::test]
async fn a_job_belongs_to_whoever_creates_it() {
    let world = World::with_keys().await;
    let ann = labelled(&world, Role::Admin, " Ann's laptop ").await;
    let nameless = Minted::new(TenantId::DEFAULT, Role::Admin, now());
    let id = nameless.key.id.to_string();
    let nameless = world.put_key(nameless).await;
    let long = labelled(&world, Role::Admin, &"ü".repeat(64)).await;
    for (key, owner) in [
        (&ann, "Ann's laptop".to_owned()),
        (&nameless, id),
        (&long, "ü".repeat(64)),
    ] {
        let made = world.as_key(key, "POST", "/v1/jobs", job()).await.is(201);
        assert_eq!(made.json()["owner"], owner.as_str());
        let path = format!("/v1/jobs/{}", made.get("id"));
        let shown = world.as_key(&ann, "GET", &path, Value::Null).await;
        assert_eq!(shown.json()["owner"], owner.as_str());
        let put = world.as_key(key, "PUT", "/v1/jobs/by-key/a", job()).await;
        // Whoever replaces it, it stays whose it was.
        assert_eq!(put.json()["owner"], "Ann's laptop");
    }
    let open = World::new().await;
    let made = open.post("/v1/jobs", job()).await.is(201);
    assert_eq!(made.json()["owner"], "anonymous");
}

#[tokio::test]
async fn a_job_can_be_given_to_another() {
    let world = World::with_keys().await;
    let ann = labelled(&world, Role::Admin, "Ann").await;
    let mut body = job();
    body["owner"] = "team-search".into();
    let made = world.as_key(&ann, "POST", "/v1/jobs", body).await.is(201);
    assert_eq!(made.json()["owner"], "team-search");
    let path = format!("/v1/jobs/{}", made.get("id"));
    let patch = async |body| {
        world
            .as_key(&ann, "PATCH", &path, body)
            .await
            .is(200)
            .json()
    };
    let kept = patch(json!({"timeout": "7s"})).await;
    assert_eq!(
        (&kept["owner"], &kept["version"]),
        (&json!("team-search"), &json!(2))
    );
    let given = patch(json!({"owner": "Ben"})).await;
    assert_eq!(
        (&given["owner"], &given["version"]),
        (&json!("Ben"), &json!(3))
    );
    let same = patch(json!({"owner": "Ben"})).await;
    assert_eq!(same["version"], 3);
    assert_eq!(patch(json!({"owner": null})).await["owner"], "Ann");
    let long = "x".repeat(101);
    for owner in [
        json!(""),
        json!(" a"),
        json!("a\nb"),
        json!(long),
        json!(7),
        json!(["a"]),
    ] {
        let reply = world
            .as_key(&ann, "PATCH", &path, json!({"owner": owner}))
            .await;
        let refused = ("field-invalid".to_owned(), Some("owner".to_owned()));
        assert_eq!(reply.problem(), refused, "{owner}");
    }
    let operator = labelled(&world, Role::Operator, "Olga").await;
    let reply = world
        .as_key(&operator, "PATCH", &path, json!({"owner": "Olga"}))
        .await;
    reply.refused(403, "role-insufficient");
}

#[tokio::test]
async fn whoever_changes_a_job_is_named() {
    let world = World::with_keys().await;
    let ann = labelled(&world, Role::Admin, "Ann").await;
    let olga = labelled(&world, Role::Operator, "Olga").await;
    let made = world.as_key(&ann, "POST", "/v1/jobs", job()).await.is(201);
    let path = format!("/v1/jobs/{}/pause", made.get("id"));
    let paused = world.as_key(&olga, "POST", &path, json!({})).await.is(200);
    assert_eq!(
        (paused.get("paused_by"), paused.get("owner")),
        ("Olga".to_owned(), "Ann".to_owned())
    );
}

#[tokio::test]
async fn jobs_are_listed_by_owner_past_those_of_others() {
    let world = World::new().await;
    let lines = |count: usize, owner: &str| {
        let line = json!({"schedule": "@daily", "target": OK, "owner": owner}).to_string();
        vec![line; count].join("\n")
    };
    let batch = async |lines: String| {
        let headers = [("content-type", "application/x-ndjson")];
        let reply = world.call("POST", "/v1/jobs/batch", &headers, lines).await;
        assert!(!reply.text.contains("error"), "{}", reply.text);
    };
    batch(lines(3, "Ann Ö.")).await;
    batch(lines(2_100, "Ben")).await;
    batch(lines(2, "Ann Ö.")).await;
    let list = async |query: &str| {
        let page = world
            .get(&format!("/v1/jobs?owner=Ann%20%C3%96.{query}"))
            .await
            .is(200)
            .json();
        let cursor = page["next_cursor"].as_str().map(str::to_owned);
        (page["items"].as_array().unwrap().len(), cursor)
    };
    assert_eq!(list("").await, (5, None));
    let (first, cursor) = list("&limit=3").await;
    assert_eq!(first, 3);
    let (second, end) = list(&format!("&cursor={}", cursor.unwrap())).await;
    assert_eq!((second, end), (2, None));
    let (one, cursor) = list("&limit=1").await;
    assert_eq!(one, 1);
    let (two, _) = list(&format!("&limit=1&cursor={}", cursor.unwrap())).await;
    assert_eq!(two, 1);
    assert_eq!(list("&state=paused").await, (0, None));
    let refused = world
        .get(&format!("/v1/jobs?owner={}", "x".repeat(101)))
        .await;
    assert_eq!(refused.problem().1.as_deref(), Some("owner"));
}
