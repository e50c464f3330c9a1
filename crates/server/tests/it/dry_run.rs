use serde_json::{Value, json};

use crate::world::{OK, World};

/// Everything a client can see, for before and after.
async fn seen(world: &World) -> String {
    let jobs = world.get("/v1/jobs").await.is(200).text;
    let calendars = world.get("/v1/calendars").await.is(200).text;
    format!("{jobs} {calendars} {}", world.snapshot())
}

#[tokio::test]
async fn a_job_that_would_be_created_is_shown_and_not_written() {
    let world = World::new().await;
    let before = seen(&world).await;
    let body = json!({"key": "k", "schedule": "0 9 * * *", "target": OK, "timeout": "10s"});
    let reply = world
        .post("/v1/jobs?dry_run=true", body.clone())
        .await
        .is(200);
    let job = reply.json();
    assert_eq!(
        (&job["dry_run"], &job["key"], &job["timeout"]),
        (&json!(true), &json!("k"), &json!("10s"))
    );
    assert!(
        job["next_slot"]
            .as_str()
            .unwrap()
            .ends_with("T09:00:00.000Z")
    );
    assert_eq!(
        (reply.header("etag"), reply.header("location")),
        (None, None)
    );
    let added = job["slots"]["added"].as_array().unwrap();
    assert_eq!((added.len(), &added[0]), (20, &job["next_slot"]));
    let put = world
        .put(
            "/v1/jobs/by-key/p?dry_run=true",
            json!({"schedule": "@daily", "target": OK}),
        )
        .await
        .is(200);
    assert_eq!(put.get("dry_run"), "true");
    assert_eq!(put.get("key"), "p");
    assert_eq!(seen(&world).await, before);
    let key = [("idempotency-key", "one")];
    let path = "/v1/jobs?dry_run=true";
    world
        .call("POST", path, &key, body.to_string())
        .await
        .is(200);
    assert_eq!(seen(&world).await, before);
    let made = world
        .call("POST", "/v1/jobs?dry_run=false", &key, body.to_string())
        .await
        .is(201);
    assert_eq!(
        made.header("idempotency-replayed"),
        None,
        "a rehearsal spends no key"
    );
    assert_eq!(made.json().get("dry_run"), None);
    world
        .post("/v1/jobs?dry_run=true", body)
        .await
        .refused(409, "key-taken");
}

#[tokio::test]
async fn an_edit_that_would_be_made_is_shown_and_not_written() {
    let world = World::new().await;
    let body = json!({"schedule": "0 9 * * *", "target": OK});
    let job = world
        .put("/v1/jobs/by-key/k", body.clone())
        .await
        .is(201)
        .json();
    world
        .put("/v1/jobs/by-key/other", body.clone())
        .await
        .is(201);
    let path = format!("/v1/jobs/{}?dry_run=true", job["id"].as_str().unwrap());
    let before = seen(&world).await;
    let patch = json!({"schedule": "0 9,21 * * *", "timeout": "7s"});
    let shown = world.patch(&path, patch).await.is(200).json();
    assert_eq!(
        (&shown["dry_run"], &shown["version"], &shown["timeout"]),
        (&json!(true), &json!(2), &json!("7s"))
    );
    assert_eq!(shown["slots"]["removed"], json!([]));
    assert_eq!(shown["slots"]["added"].as_array().unwrap().len(), 20);
    assert_eq!(shown["runs"]["withdrawn"], json!([]));
    let put = json!({"schedule": {"at": "2099-01-01T00:00:00Z"}, "target": OK});
    let shown = world
        .put("/v1/jobs/by-key/k?dry_run=true", put)
        .await
        .is(200)
        .json();
    assert_eq!(shown["id"], job["id"]);
    assert_eq!(shown["slots"]["added"], json!(["2099-01-01T00:00:00.000Z"]));
    assert_eq!(shown["slots"]["removed"].as_array().unwrap().len(), 20);
    let same = world
        .patch(&path, json!({"timeout": "5m"}))
        .await
        .is(200)
        .json();
    assert_eq!(
        (&same["dry_run"], &same["version"], same.get("slots")),
        (&json!(true), &json!(1), None)
    );
    let label = world
        .patch(&path, json!({"labels": {"a": "b"}}))
        .await
        .is(200)
        .json();
    assert_eq!((&label["version"], label.get("slots")), (&json!(2), None));
    assert_eq!(seen(&world).await, before);
}

#[tokio::test]
async fn a_rehearsal_meets_every_refusal() {
    let world = World::new().await;
    let body = json!({"schedule": "0 9 * * *", "target": OK});
    let made = world.put("/v1/jobs/by-key/k", body.clone()).await;
    world.put("/v1/jobs/by-key/other", body).await.is(201);
    let before = seen(&world).await;
    for line in include_str!("refusals/dry_run.txt").lines() {
        let (request, expected) = line.split_once(" -> ").unwrap();
        let (head, body) = request.split_once(" | ").unwrap();
        let [method, path, name, value] = head.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let path = format!("{path}?dry_run=true").replace("ID", &made.get("id"));
        let headers = [(name, value)];
        let reply = world.call(method, &path, &headers, body.to_owned()).await;
        let (status, problem) = expected.split_once(' ').unwrap();
        reply.refused(status.parse().unwrap(), problem);
    }
    assert_eq!(seen(&world).await, before);
}

#[tokio::test]
async fn nobody_guesses_whether_something_was_to_be_written() {
    let world = World::new().await;
    let body = json!({"key": "k", "schedule": "@daily", "target": OK});
    let job = world.post("/v1/jobs", body.clone()).await.is(201).get("id");
    let before = seen(&world).await;
    let job = format!("/v1/jobs/{job}");
    for query in [
        "dry_run=yes",
        "dry_run=1",
        "dry_run=TRUE",
        "dry_run=",
        "dry_run",
        "dry_run=true&dry_run=false",
        "dry-run=true",
        "dryrun=true",
    ] {
        for (method, path) in [
            ("POST", "/v1/jobs"),
            ("PATCH", job.as_str()),
            ("PUT", "/v1/jobs/by-key/k"),
        ] {
            let reply = world
                .call(method, &format!("{path}?{query}"), &[], body.to_string())
                .await;
            reply.refused(400, "parameter-invalid");
            let field = query.split_once('=').map_or(query, |(name, _)| name);
            assert_eq!(reply.problem().1.as_deref(), Some(field));
        }
    }
    // Where there is no rehearsal, asking for one is refused.
    let line = format!("{}\n", json!({"schedule": "@daily", "target": OK}));
    let ndjson = [("content-type", "application/x-ndjson")];
    let replies = [
        world
            .call("POST", "/v1/jobs/batch?dry_run=true", &ndjson, line)
            .await,
        world.delete(&format!("{job}?dry_run=true")).await,
        world.delete("/v1/jobs/by-key/k?dry_run=true").await,
        world.post_empty(&format!("{job}/pause?dry_run=true")).await,
        world
            .post_empty(&format!("{job}/resume?dry_run=true"))
            .await,
        world.post_empty(&format!("{job}/run?dry_run=true")).await,
        world
            .put("/v1/calendars/c?dry_run=true", json!({"weekly": ["SUN"]}))
            .await,
        world
            .post(
                "/v1/calendars?dry_run=true",
                json!({"name": "c", "weekly": ["SUN"]}),
            )
            .await,
    ];
    for reply in replies {
        reply.refused(400, "parameter-invalid");
    }
    assert_eq!(seen(&world).await, before);
}

#[tokio::test]
async fn a_rehearsal_shows_a_paused_job_paused_and_a_resting_one_resting() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let path = format!("/v1/jobs/{job}");
    world.post_empty(&format!("{path}/pause")).await.is(200);
    let shown = world
        .patch(
            &format!("{path}?dry_run=true"),
            json!({"schedule": "@hourly"}),
        )
        .await
        .is(200)
        .json();
    assert_eq!(
        (&shown["state"], &shown["next_slot"]),
        (&json!("paused"), &Value::Null)
    );
    assert_eq!(shown["slots"]["added"].as_array().unwrap().len(), 20);
}
