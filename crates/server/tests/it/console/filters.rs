//! What a filter cannot mean is said, not left out.

use model::{Role, TenantId};
use serde_json::json;

use super::logged_in;
use crate::world::{OK, World};

#[tokio::test]
async fn a_filter_that_means_nothing_is_refused_beside_what_was_typed() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"key": "nightly", "schedule": "@yearly", "target": OK, "labels": {"my_team": "a_b"}});
    world.as_key(&root, "POST", "/v1/jobs", body).await.is(201);
    let admin = logged_in(&world, Role::Admin).await;
    for (path, says) in [
        ("/jobs?label=team", "name=value"),
        ("/jobs?label=%3Da", "name=value"),
        ("/jobs?state=resting", "active"),
        ("/jobs?before=nonsense", "Clear"),
        ("/runs?state=resting", "succeeded"),
        ("/runs?before=nonsense", "Clear"),
        ("/audit?action=job.nothing", "job.create"),
    ] {
        let page = admin.get(path).await.is(400).text;
        assert!(page.contains("role=\"alert\""), "{path}: {page}");
        let (_, alert) = page.split_once("role=\"alert\"").unwrap();
        let alert = alert.split("</div>").next().unwrap();
        assert!(alert.contains(says), "{path}: {alert}");
        assert!(
            !page.contains("nightly</a>"),
            "{path} shows what was not wanted"
        );
    }
    let page = admin.get("/jobs?label=my_team%3Da_b").await.is(200).text;
    assert!(page.contains("nightly"), "{page}");
    assert!(
        page.contains("label <b>my_team=a_b</b>"),
        "a chip says what is filtered: {page}"
    );
    let page = admin.get("/jobs?label=my_team%3Dnone").await.is(200).text;
    assert!(page.contains("No job matches"), "{page}");
}
