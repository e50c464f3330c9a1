//! The proxy of a tenant: root's to set, and shown without its password wherever it is shown.

use model::{Level, Role, TenantId};
use serde_json::{Value, json};
use store::{EngineStore, NodeInfo, NodeStatus};

use crate::world::{World, pause};

const PATH: &str = "/v1/tenants/team";
const PROXY: &str = "http://ann:s3cret@proxy.example:3128";
const SHOWN: &str = "http://ann:***@proxy.example:3128";

impl World {
    async fn proxy(&self) -> Value {
        self.get(PATH).await.is(200).json()["proxy"].clone()
    }

    async fn team(&self) {
        let body = json!({"name": "team"});
        self.post("/v1/tenants", body).await.is(201);
    }
}

#[tokio::test]
async fn a_proxy_is_set_kept_and_taken_away_and_its_password_is_shown_nowhere() {
    let world = World::new().await;
    let body = json!({"name": "team", "proxy": PROXY});
    let made = world.post("/v1/tenants", body).await.is(201);
    assert_eq!(made.get("proxy"), SHOWN);
    assert_eq!(world.proxy().await, SHOWN);
    // What is not mentioned stays, and so does a password that is written back as it was shown.
    let noted = world.patch(PATH, json!({"note": "a"})).await.is(200);
    assert_eq!(noted.get("proxy"), SHOWN);
    let again = world.patch(PATH, json!({"proxy": SHOWN})).await.is(200);
    assert_eq!(again.get("proxy"), SHOWN);
    for other in [
        "http://bob:***@proxy.example:3128",
        "http://ann:***@other.example:3128",
    ] {
        let refused = world.patch(PATH, json!({"proxy": other})).await;
        refused.refused(422, "field-invalid");
        assert_eq!(refused.problem().1.as_deref(), Some("proxy"));
    }
    let other = json!({"proxy": "http://other.example:80"});
    let other = world.patch(PATH, other).await.is(200);
    assert_eq!(other.get("proxy"), "http://other.example:80");
    let gone = world.patch(PATH, json!({"proxy": null})).await.is(200);
    assert_eq!(gone.json()["proxy"], Value::Null);
    world.patch(PATH, json!({"proxy": null})).await.is(200);
    let audit = world.get("/v1/audit?tenant=team&limit=1000").await.is(200);
    for part in [SHOWN, "http://other.example:80", r#""proxy":null"#] {
        assert!(audit.text.contains(part), "{}", audit.text);
    }
    let secrets = world.get("/v1/secrets").await.is(200);
    for answer in [made, noted, again, audit, secrets] {
        assert!(!answer.text.contains("s3cret"), "{}", answer.text);
    }
}

#[tokio::test]
async fn what_is_no_proxy_is_refused_by_field_and_not_repeated() {
    let world = World::new().await;
    world.team().await;
    for proxy in [
        json!("https://ann:s3cret@proxy.example:3128"),
        json!("http://ann:s3cret@proxy.example"),
        json!("http://ann:s3cret@proxy.example:3128/path"),
        json!("s3cret"),
        json!(7),
    ] {
        let edit = json!({"proxy": proxy, "note": "not written"});
        let edit = world.patch(PATH, edit).await;
        let create = json!({"name": "other", "proxy": proxy});
        for refused in [edit, world.post("/v1/tenants", create).await] {
            refused.refused(422, "field-invalid");
            assert_eq!(refused.problem().1.as_deref(), Some("proxy"));
            assert!(!refused.text.contains("s3cret"), "{}", refused.text);
        }
    }
    world
        .get("/v1/tenants/other")
        .await
        .refused(404, "tenant-not-found");
    assert_eq!(world.get(PATH).await.json()["note"], Value::Null);
    // What this node may never call, as for a target.
    let refused = world
        .patch(PATH, json!({"proxy": "http://10.0.0.1:3128"}))
        .await;
    refused.refused(422, "egress-refused");
    assert_eq!(refused.problem().1.as_deref(), Some("proxy"));
    // It is none of the secrets that jobs name.
    world.patch(PATH, json!({"proxy": PROXY})).await.is(200);
    let secret = world.get("/v1/secrets/$proxy").await;
    secret.refused(422, "field-invalid");
}

#[tokio::test]
async fn only_root_may_set_a_proxy() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let made = world.as_key(&root, "POST", "/v1/tenants", json!({"name": "team"}));
    made.await.is(201);
    let body = json!({"proxy": PROXY});
    for role in [Role::Admin, Role::Operator, Role::Reader] {
        let key = world.key(TenantId::DEFAULT, role).await;
        for path in [PATH, "/v1/tenants/default"] {
            let refused = world.as_key(&key, "PATCH", path, body.clone()).await;
            refused.refused(403, "role-insufficient");
        }
    }
    world.as_key(&root, "PATCH", PATH, body).await.is(200);
}

#[tokio::test]
async fn without_a_master_key_there_is_no_proxy() {
    let world = World::without_master_key().await;
    let body = json!({"name": "team", "proxy": PROXY});
    world
        .post("/v1/tenants", body)
        .await
        .refused(409, "master-key-missing");
    world.get(PATH).await.refused(404, "tenant-not-found");
    world.team().await;
    let refused = world.patch(PATH, json!({"proxy": PROXY})).await;
    refused.refused(409, "master-key-missing");
    world.patch(PATH, json!({"proxy": null})).await.is(200);
}

#[tokio::test]
async fn a_proxy_waits_until_no_living_node_would_call_past_it() {
    let world = World::new().await;
    world.team().await;
    let older = NodeInfo {
        name: "older".to_owned(),
        level: Level::FIRST,
        ..NodeInfo::default()
    };
    let older = world.store.join(&older).await.unwrap();
    let store = world.store.clone();
    let beats = async {
        loop {
            let beat = store.beat(older, &NodeStatus::default()).await;
            assert!(beat.is_ok(), "{beat:?}");
            pause(10).await;
        }
    };
    let reply = tokio::select! {
        reply = world.patch(PATH, json!({"proxy": PROXY})) => reply,
        () = beats => unreachable!(),
    };
    reply.refused(409, "node-too-old");
    assert_eq!(reply.problem().1.as_deref(), Some("proxy"));
    assert_eq!(world.proxy().await, Value::Null);
    world.store.leave(older).await.unwrap();
    world.patch(PATH, json!({"proxy": PROXY})).await.is(200);
}
