//! Tenants that are deleted with all that they have.

use std::sync::Arc;
use std::time::Duration;

use model::schedule::Schedule;
use model::{Definition, Job, JobId, Role, Slot, Target, Tenant, TenantId, TenantName, Timestamp};
use serde_json::{Value, json};
use store::{AccessStore, ClientStore, EngineStore};

use crate::access::now;
use crate::world::{OK, World};

const OTHER: &str = "/v1/tenants/other";

#[tokio::test]
async fn a_tenant_goes_with_everything_in_the_background() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let theirs = world.key(TenantId::from_bytes([7; 16]), Role::Admin).await;
    let root = async |method, path: &str, body| world.as_key(&root, method, path, body).await;
    let job = json!({"schedule": "@daily", "target": OK});
    for _ in 0..3 {
        world
            .as_key(&theirs, "POST", "/v1/jobs", job.clone())
            .await
            .is(201);
    }
    let refused = root("DELETE", OTHER, Value::Null).await;
    refused.refused(409, "tenant-in-use");
    for wrong in [
        "?with_everything=yes",
        "?with_everything=true&with_everything=true",
    ] {
        let reply = root("DELETE", &format!("{OTHER}{wrong}"), Value::Null).await;
        assert_eq!(reply.problem().1.as_deref(), Some("with_everything"));
    }
    let everything = format!("{OTHER}?with_everything=true");
    let marked = root("DELETE", &everything, Value::Null)
        .await
        .is(202)
        .json();
    assert!(marked["deleting_at"].is_string(), "{marked}");
    assert_eq!(marked["used"]["jobs"], 3);
    // Sent again, it is the same, in either way.
    for path in [OTHER, &everything] {
        let again = root("DELETE", path, Value::Null).await.is(202).json();
        assert_eq!(again["deleting_at"], marked["deleting_at"]);
    }
    let reply = world.as_key(&theirs, "GET", "/v1/jobs", Value::Null).await;
    reply.refused(401, "unauthorized");
    let key = json!({"tenant": "other", "role": "admin"});
    root("POST", "/v1/keys", key)
        .await
        .refused(404, "tenant-not-found");
    retain(&world, now()).await;
    let shown = root("GET", OTHER, Value::Null).await.is(200).json();
    assert_eq!(shown["used"]["jobs"], 0);
    retain(&world, now().plus(model::limits::TENANT_DRAIN)).await;
    root("GET", OTHER, Value::Null)
        .await
        .refused(404, "tenant-not-found");
    let name = json!({"name": "other"});
    root("POST", "/v1/tenants", name).await.is(201);
    let always = "/v1/tenants/default?with_everything=true";
    root("DELETE", always, Value::Null)
        .await
        .refused(409, "tenant-in-use");
}

async fn retain(world: &World, now: Timestamp) {
    let keep = store::Keep {
        now,
        history: model::limits::HISTORY_KEEP,
        finished: model::limits::HISTORY_KEEP,
    };
    while world.store.retain(&keep).await.unwrap().more {}
}

#[tokio::test]
async fn a_job_that_is_being_created_while_its_tenant_is_deleted_goes_with_it() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let tenant = Tenant::new(
        TenantId::from_bytes([9; 16]),
        TenantName::new("going").unwrap(),
        now(),
    );
    world.store.create_tenant(&tenant).await.unwrap();
    let going = "/v1/tenants/going";
    let gone = world.as_key(&root, "DELETE", going, Value::Null).await;
    let marked = gone.is(202).json();
    assert!(marked["deleting_at"].is_string(), "{marked}");
    // A request that was let in before that, and is written only now.
    let url = Target::http("http://127.0.0.1:9/").unwrap();
    let schedule = Schedule::from(Slot(now().plus(Duration::from_secs(3_600))));
    let id = JobId::new(now(), [1; 10]);
    let def = Definition::new(schedule, url);
    let late = Job::new(id, tenant.id, None, def, now());
    let late = store::NewJob {
        job: Arc::new(late),
        idempotency: None,
    };
    let created = world.store.create_jobs(&[late]).await.unwrap();
    assert_eq!(created, [store::Created::Done]);
    retain(&world, now().plus(model::limits::TENANT_DRAIN)).await;
    assert_eq!(world.store.get_job(tenant.id, id).await.unwrap(), None);
    let shown = world.as_key(&root, "GET", going, Value::Null).await;
    shown.refused(404, "tenant-not-found");
    assert!(
        world
            .store
            .count_jobs(None, 9)
            .await
            .unwrap()
            .counts
            .is_empty()
    );
}
