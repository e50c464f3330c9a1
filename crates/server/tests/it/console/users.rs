//! Users over the API.

use model::{Role, TenantId};
use serde_json::{Value, json};

use super::PASSWORD;
use crate::world::World;

#[tokio::test]
async fn an_admin_manages_the_users_of_its_tenant_and_no_others() {
    let world = World::with_keys().await;
    let other = TenantId::from_bytes([7; 16]);
    let (root, theirs) = (
        world.key(TenantId::DEFAULT, Role::Root).await,
        world.key(other, Role::Admin).await,
    );
    let body = json!({"name": "ours", "password": PASSWORD, "role": "admin"});
    world.as_key(&root, "POST", "/v1/users", body).await.is(201);
    let body = json!({"name": "both", "password": PASSWORD, "roles": {"default": "reader", "other": "reader"}});
    world.as_key(&root, "POST", "/v1/users", body).await.is(201);
    let as_theirs = async |method: &str, path: &str, body: Value| {
        world.as_key(&theirs, method, path, body).await
    };
    as_theirs("GET", "/v1/users/ours", Value::Null)
        .await
        .refused(404, "user-not-found");
    let both = as_theirs("GET", "/v1/users/both", Value::Null)
        .await
        .is(200);
    assert_eq!(both.json()["roles"], json!({"other": "reader"}));
    let password = json!({"password": "another horse battery"});
    as_theirs("PATCH", "/v1/users/both", password)
        .await
        .refused(403, "role-insufficient");
    as_theirs("DELETE", "/v1/users/both", Value::Null)
        .await
        .refused(403, "role-insufficient");
}

#[tokio::test]
async fn nobody_makes_a_user_who_may_do_more_or_elsewhere() {
    let world = World::with_keys().await;
    let theirs = world.key(TenantId::from_bytes([7; 16]), Role::Admin).await;
    let as_theirs = async |method: &str, path: &str, body: Value| {
        world.as_key(&theirs, method, path, body).await
    };
    let above = json!({"name": "x", "password": PASSWORD, "role": "root"});
    as_theirs("POST", "/v1/users", above)
        .await
        .refused(403, "role-insufficient");
    let elsewhere = json!({"name": "x", "password": PASSWORD, "roles": {"default": "reader"}});
    as_theirs("POST", "/v1/users", elsewhere)
        .await
        .refused(422, "field-invalid");
    let own = json!({"name": "x", "password": PASSWORD, "role": "reader"});
    as_theirs("POST", "/v1/users", own.clone()).await.is(201);
    as_theirs("POST", "/v1/users", own)
        .await
        .refused(409, "user-exists");
    let listed = as_theirs("GET", "/v1/users", Value::Null)
        .await
        .is(200)
        .json();
    let names: Vec<&str> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["x"]);
    as_theirs("DELETE", "/v1/users/x", Value::Null)
        .await
        .is(200);
    for (field, body) in [
        (
            "password",
            json!({"name": "y", "password": "short", "role": "reader"}),
        ),
        (
            "name",
            json!({"name": "<y>", "password": PASSWORD, "role": "reader"}),
        ),
        ("role", json!({"name": "y", "password": PASSWORD})),
        (
            "roles",
            json!({"name": "y", "password": PASSWORD, "roles": {"nowhere": "reader"}}),
        ),
    ] {
        let refused = as_theirs("POST", "/v1/users", body).await;
        assert_eq!(refused.status, 422, "{}", refused.text);
        assert_eq!(
            refused.problem().1.as_deref(),
            Some(field),
            "{}",
            refused.text
        );
        assert!(!refused.text.contains("short\""), "{}", refused.text);
    }
}
