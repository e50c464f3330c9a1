use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::{FAIL, OK, World};

async fn pages(world: &World, path: &str) -> Vec<String> {
    let mut ids = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = world.get(&format!("{path}{cursor}")).await.is(200).json();
        ids.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn pages_neither_repeat_nor_lose() {
    let world = World::new().await;
    let mut made = BTreeSet::new();
    for _ in 0..53 {
        made.insert(world.job(OK).await);
    }
    for limit in [1, 7, 10, 52, 53, 54, 1_000] {
        let ids = pages(&world, &format!("/v1/jobs?limit={limit}")).await;
        assert_eq!(ids.len(), 53, "{limit}");
        assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), made);
        assert!(ids.is_sorted_by(|a, b| a > b), "newest first");
    }
    let first = world.get("/v1/jobs").await.is(200).json();
    assert_eq!(first["items"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn a_page_of_large_jobs_ends_early_and_goes_on() {
    let world = World::new().await;
    let payload = "x".repeat(250 * 1024);
    for _ in 0..40 {
        let body = json!({"schedule": "@yearly", "target": OK, "payload": payload});
        world.post("/v1/jobs", body).await.is(201);
    }
    let first = world.get("/v1/jobs?limit=1000").await.is(200).json();
    assert!(first["items"].as_array().unwrap().len() < 40);
    assert_eq!(pages(&world, "/v1/jobs?limit=1000").await.len(), 40);
}

#[tokio::test]
async fn jobs_are_found_by_state_label_and_part_of_the_key() {
    let world = World::new().await;
    for (key, team) in [("alpha-one", "ops"), ("alpha-two", "dev"), ("beta", "ops")] {
        let body = json!({"key": key, "schedule": "@daily", "target": OK, "labels": {"team": team, "a/b.c": "x:y"}});
        world.post("/v1/jobs", body).await.is(201);
    }
    let beta = world.get("/v1/jobs/by-key/beta").await.get("id");
    world
        .post_empty(&format!("/v1/jobs/{beta}/pause"))
        .await
        .is(200);
    let keys = async |query: &str| -> Vec<String> {
        let page = world.get(&format!("/v1/jobs?{query}")).await.is(200).json();
        let items = page["items"].as_array().unwrap().iter();
        let keys = items.map(|item| item["key"].as_str().unwrap().to_owned());
        // Ids made within one millisecond have no order among them.
        let mut keys: Vec<_> = keys.collect();
        keys.sort();
        keys
    };
    assert_eq!(keys("label=team=ops").await, ["alpha-one", "beta"]);
    assert_eq!(
        keys("label=team%3Dops&label=a/b.c=x:y&q=ALPHA").await,
        ["alpha-one"]
    );
    assert_eq!(keys("q=alpha").await, ["alpha-one", "alpha-two"]);
    assert_eq!(keys("state=paused").await, ["beta"]);
    assert_eq!(keys("state=paused,active").await.len(), 3);
    assert_eq!(keys("state=active&state=paused").await.len(), 3);
    assert!(keys("state=deleted").await.is_empty());
    assert!(keys("label=team=none").await.is_empty());
    assert_eq!(
        keys("q=&cursor=&limit=").await.len(),
        3,
        "an empty parameter is none"
    );
}

#[tokio::test]
async fn runs_are_listed_by_job_and_by_state() {
    let world = World::new().await;
    let good = world.job(OK).await;
    let bad = world.job(FAIL).await;
    let mut runs = Vec::new();
    for job in [&good, &bad, &good] {
        let run = world.run(job).await;
        world.wait(&run, &["succeeded", "dead"]).await;
        runs.push(run);
    }
    let ids = |page: Value| -> Vec<String> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let list = async |path: String| ids(world.get(&path).await.is(200).json());
    assert_eq!(list("/v1/runs".to_owned()).await.len(), 3);
    assert_eq!(
        list("/v1/runs?state=dead".to_owned()).await,
        [runs[1].clone()]
    );
    assert_eq!(
        list(format!("/v1/runs?job={good}&state=succeeded,dead"))
            .await
            .len(),
        2
    );
    assert_eq!(list(format!("/v1/jobs/{good}/runs")).await.len(), 2);
    assert_eq!(
        list(format!("/v1/jobs/{bad}/runs?state=succeeded"))
            .await
            .len(),
        0
    );
    assert_eq!(pages(&world, "/v1/runs?limit=1").await.len(), 3);
    let nobody = "job_0192f0c1a2b37def8123456789abcdef";
    world
        .get(&format!("/v1/jobs/{nobody}/runs"))
        .await
        .refused(404, "job-not-found");
}

#[tokio::test]
async fn parameters_that_cannot_be_used_are_named() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let cursor_of_runs = {
        let run = world.run(&job).await;
        world.wait(&run, &["succeeded"]).await;
        world.run(&job).await;
        let page = world.get("/v1/runs?limit=1").await.json();
        page["next_cursor"].as_str().unwrap().to_owned()
    };
    let long = "q".repeat(129);
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("limit=ten", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("limit=1&limit=2", "limit"),
        ("cursor=nonsense", "cursor"),
        ("cursor=%00", "cursor"),
        ("cursor=AAAA", "cursor"),
        (&format!("cursor={cursor_of_runs}"), "cursor"),
        ("state=running", "state"),
        ("state=active,", "state"),
        ("state=%27%20OR%201=1--", "state"),
        ("label=team", "label"),
        ("label=:ops", "label"),
        ("label==ops", "label"),
        (&format!("q={long}"), "q"),
        ("sort=name", "sort"),
        ("tenant=x", "tenant"),
    ] {
        let reply = world.get(&format!("/v1/jobs?{query}")).await;
        reply.refused(400, "parameter-invalid");
        assert_eq!(reply.problem().1.as_deref(), Some(field), "{query}");
    }
    for (query, field) in [
        ("job=x", "job"),
        ("state=active", "state"),
        ("q=x", "q"),
        ("job=run_0192f0c1a2b37def8123456789abcdef", "job"),
    ] {
        let reply = world.get(&format!("/v1/runs?{query}")).await;
        assert_eq!(
            reply.problem(),
            ("parameter-invalid".to_owned(), Some(field.to_owned())),
            "{query}"
        );
    }
    let reply = world.get(&format!("/v1/jobs/{job}/runs?job=x")).await;
    assert_eq!(
        reply.problem(),
        ("parameter-invalid".to_owned(), Some("job".to_owned()))
    );
}
