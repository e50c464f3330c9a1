//! Workers' keys: they name the queues that work comes from, and open nothing else.

use model::{Role, TenantId};
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test]
async fn a_worker_s_key_names_its_queues_and_opens_nothing_but_the_version() {
    let world = World::with_keys().await;
    let admin = world.key(TenantId::DEFAULT, Role::Admin).await;
    let body = json!({"role": "worker", "queues": ["mail", "gpu", "mail"]});
    let made = world.as_key(&admin, "POST", "/v1/keys", body).await.is(201);
    assert_eq!(made.json()["queues"], json!(["gpu", "mail"]));
    let listed = world.as_key(&admin, "GET", "/v1/keys", Value::Null).await;
    let (listed, id) = (listed.json(), made.get("id"));
    let items = listed["items"].as_array().unwrap();
    let own = items.iter().find(|key| key["id"] == *id).unwrap();
    assert_eq!(own["queues"], json!(["gpu", "mail"]));
    let worker = made.get("key");
    let get = async |path: &str| world.as_key(&worker, "GET", path, Value::Null).await;
    get("/version").await.is(200);
    for path in ["/v1/jobs", "/v1/runs", "/v1/keys", "/v1/nodes"] {
        let refused = get(path).await;
        refused.refused(403, "role-insufficient");
        assert_eq!(refused.get("role"), "worker");
        assert!(refused.get("detail").contains("queues"), "{}", refused.text);
    }
    let audit = world.as_key(&admin, "GET", "/v1/audit", Value::Null).await;
    assert!(
        audit.text.contains(r#""queues":["gpu","mail"]"#),
        "{}",
        audit.text
    );
}

#[tokio::test]
async fn queues_are_for_workers_and_a_worker_has_some() {
    let world = World::new().await;
    let check = async |body: Value, problem: &str, field: &str| {
        let reply = world.post("/v1/keys", body.clone()).await;
        let expected = (problem.to_owned(), Some(field.to_owned()));
        assert_eq!(reply.problem(), expected, "{body}");
    };
    check(json!({"role": "worker"}), "field-missing", "queues").await;
    let of = |queues: Value| json!({"role": "worker", "queues": queues});
    check(of(json!([])), "field-invalid", "queues").await;
    check(of(json!("mail")), "field-invalid", "queues").await;
    check(of(json!(["mail", "Mail"])), "field-invalid", "queues").await;
    check(of(json!([7])), "field-invalid", "queues").await;
    check(of(json!(["a".repeat(65)])), "field-invalid", "queues").await;
    let names: Vec<String> = (0..17).map(|number| format!("q{number}")).collect();
    check(of(json!(names)), "field-invalid", "queues").await;
    world.post("/v1/keys", of(json!(names[..16]))).await.is(201);
    for role in ["reader", "operator", "admin", "root"] {
        for queues in [json!(["mail"]), json!([])] {
            let body = json!({"role": role, "queues": queues});
            check(body, "field-invalid", "queues").await;
        }
    }
}
