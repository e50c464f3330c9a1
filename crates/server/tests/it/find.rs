//! Runs by what they are like, and their errors in groups.

use serde_json::{Value, json};

use crate::world::{FAIL, OK, World};

async fn job(world: &World, target: &str, team: &str) -> String {
    let body = json!({
        "schedule": "@yearly", "target": target, "labels": {"team": team},
        "retry": {"attempts_max": 1}, "overlap": "allow",
    });
    world.post("/v1/jobs", body).await.is(201).get("id")
}

async fn ended(world: &World, job: &str, state: &str) -> String {
    let run = world.run(job).await;
    world.wait(&run, &[state]).await;
    run
}

async fn ids(world: &World, query: &str) -> Vec<String> {
    let page = world.get(&format!("/v1/runs?{query}")).await.is(200).json();
    let items = page["items"].as_array().unwrap().iter();
    items
        .map(|run| run["id"].as_str().unwrap().to_owned())
        .collect()
}

const ECHO: &str = "http://echo.example:8080/echo";

#[tokio::test]
async fn dead_runs_are_found_by_time_label_error_target_and_reason() {
    let world = World::new().await;
    let (ops, dev) = (
        job(&world, FAIL, "ops").await,
        job(&world, ECHO, "dev").await,
    );
    let fine = job(&world, OK, "ops").await;
    let refused = ended(&world, &ops, "dead").await;
    let spent = ended(&world, &dev, "dead").await;
    let succeeded = ended(&world, &fine, "succeeded").await;
    let check = async |query: &str, expected: &[&String]| {
        let found = ids(&world, query).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    };
    check("state=dead", &[&spent, &refused]).await;
    check("state=dead&label=team=ops", &[&refused]).await;
    check("label=team%3Dops", &[&succeeded, &refused]).await;
    check("state=dead&error=NO", &[&refused]).await;
    check("state=dead&target=echo.example", &[&spent]).await;
    check("target=echo.example:8080", &[&spent]).await;
    check("target=echo.example:80", &[]).await;
    check("reason=refused", &[&refused]).await;
    check("reason=refused,attempts_spent", &[&spent, &refused]).await;
    check("state=dead&label=team=ops&target=echo.example", &[]).await;
    let at = world.get(&format!("/v1/runs/{spent}")).await.json();
    let at = at["due_at"].as_str().unwrap();
    check(&format!("from={at}&state=dead"), &[&spent]).await;
    check(&format!("to={at}"), &[&refused]).await;
    check(
        &format!("to={at}&from=2020-01-01T00:00:00Z&reason=refused"),
        &[&refused],
    )
    .await;
    let path = format!("/v1/jobs/{ops}/runs?error=no&state=dead");
    let of_job = world.get(&path);
    assert_eq!(of_job.await.is(200).json()["items"][0]["id"], refused);
    for (query, field) in [
        (format!("from={at}&to={at}"), "to"),
        ("reason=sad".to_owned(), "reason"),
        ("label=team".to_owned(), "label"),
        ("from=yesterday".to_owned(), "from"),
        (format!("error={}", "x".repeat(2_000)), "error"),
        (format!("target={}", "x".repeat(3_000)), "target"),
        ("errors=x".to_owned(), "errors"),
    ] {
        let reply = world.get(&format!("/v1/runs?{query}")).await;
        reply.refused(400, "parameter-invalid");
        assert_eq!(reply.problem().1.as_deref(), Some(field));
    }
}

#[tokio::test]
async fn a_page_of_runs_that_are_filtered_may_be_short_and_goes_on() {
    let world = World::new().await;
    let (ops, dev) = (
        job(&world, FAIL, "ops").await,
        job(&world, FAIL, "dev").await,
    );
    let mut wanted = Vec::new();
    for n in 0..6 {
        let run = ended(&world, if n % 2 == 0 { &ops } else { &dev }, "dead").await;
        if n % 2 == 0 {
            wanted.insert(0, run);
        }
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/runs?label=team=ops&limit=1{cursor}");
        let page = world.get(&path).await.is(200).json();
        let items = page["items"].as_array().unwrap();
        found.extend(
            items
                .iter()
                .map(|run| run["id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, wanted);
}

#[tokio::test]
async fn errors_that_are_alike_are_one_group() {
    let world = World::new().await;
    let echo = |header: &str| {
        json!({
            "schedule": "@yearly", "retry": {"attempts_max": 1}, "overlap": "allow",
            "target": {"http": {"url": ECHO, "headers": {"x": header}}},
        })
    };
    let mut newest = String::new();
    let mut jobs = Vec::new();
    for header in ["order 4711 is gone", "order 12 is gone"] {
        let id = world.post("/v1/jobs", echo(header)).await.is(201).get("id");
        newest = ended(&world, &id, "dead").await;
        jobs.push(id);
    }
    let other = job(&world, FAIL, "ops").await;
    ended(&world, &other, "dead").await;
    let groups = world.get("/v1/runs/groups").await.is(200).json();
    assert_eq!(
        (&groups["scanned"], &groups["complete"]),
        (&json!(3), &json!(true))
    );
    let largest = &groups["items"][0];
    assert_eq!(largest["error"], "order <n> is gone");
    assert_eq!(
        (&largest["count"], &largest["jobs_count"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(
        (&largest["jobs"], &largest["example"]),
        (&json!(jobs), &json!(newest))
    );
    assert!(largest["first_at"].as_str() < largest["last_at"].as_str());
    let second = &groups["items"][1];
    assert_eq!(
        (&second["error"], &second["status"]),
        (&json!("no"), &json!(400))
    );
    let some = world
        .get("/v1/runs/groups?error=order&state=dead")
        .await
        .json();
    assert_eq!(some["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(some["scanned"], 3);
    let none = world
        .get("/v1/runs/groups?state=cancelled")
        .await
        .is(200)
        .json();
    assert_eq!(
        (&none["items"], &none["scanned_to"]),
        (&json!([]), &Value::Null)
    );
    world
        .get("/v1/runs/groups?limit=3")
        .await
        .refused(400, "parameter-invalid");
    world
        .get("/v1/runs/groups?job=job_0192f0c1a2b37def8123456789abcdef")
        .await
        .refused(404, "job-not-found");
}
