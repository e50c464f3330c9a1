//! Requests wrong as a whole, and the small ones wrong in every way.

use serde_json::{Value, json};

use crate::world::{OK, World};

#[tokio::test]
async fn bodies_of_another_type_are_refused() {
    let world = World::new().await;
    let body = json!({"schedule": "@daily", "target": OK}).to_string();
    for media_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonp",
        "application/json; charset=latin1",
        "",
        "application/x-ndjson",
        "\u{fc}",
    ] {
        let reply = world
            .call(
                "POST",
                "/v1/jobs",
                &[("content-type", media_type)],
                body.clone(),
            )
            .await;
        reply.refused(415, "media-type-unsupported");
        assert_eq!(reply.problem().1.as_deref(), Some("Content-Type"));
    }
    let gzip = [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
    ];
    world
        .call("POST", "/v1/jobs", &gzip, body.clone())
        .await
        .refused(415, "media-type-unsupported");
    let batch = world
        .call(
            "POST",
            "/v1/jobs/batch",
            &[("content-type", "application/json")],
            body.clone(),
        )
        .await;
    batch.refused(415, "media-type-unsupported");
    assert!(world.store.all_jobs().is_empty());
    for media_type in [
        "application/json",
        "Application/JSON; charset=UTF-8",
        "application/json;charset=\"utf-8\"",
    ] {
        world
            .call(
                "POST",
                "/v1/jobs",
                &[("content-type", media_type)],
                body.clone(),
            )
            .await
            .is(201);
    }
}

#[tokio::test]
async fn bodies_have_bounds_and_are_utf8() {
    let world = World::new().await;
    let large =
        json!({"schedule": "@daily", "target": OK, "payload": "x".repeat(1_100_000)}).to_string();
    world
        .call("POST", "/v1/jobs", &[], large.clone())
        .await
        .refused(413, "body-too-large");
    let announced = [("content-length", "99999999999")];
    world
        .call("POST", "/v1/jobs", &announced, "")
        .await
        .refused(413, "body-too-large");
    let chunks = futures_util::stream::iter(
        large
            .into_bytes()
            .chunks(10_000)
            .map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()))
            .collect::<Vec<_>>(),
    );
    let body = axum::body::Body::from_stream(chunks);
    world
        .call("POST", "/v1/jobs", &[], body)
        .await
        .refused(413, "body-too-large");
    let mut bytes = json!({"schedule": "@daily", "target": OK, "key": "aXb"})
        .to_string()
        .into_bytes();
    for byte in &mut bytes {
        if *byte == b'X' {
            *byte = 0xff;
        }
    }
    world
        .call("POST", "/v1/jobs", &[], bytes)
        .await
        .refused(400, "body-unreadable");
    let reply = world.call("POST", "/v1/jobs", &[], "").await;
    reply.refused(400, "body-unreadable");
    assert!(reply.get("detail").contains("empty"));
    let broken =
        futures_util::stream::iter([Ok(b"{".to_vec()), Err(std::io::Error::other("gone"))]);
    let reply = world
        .call(
            "POST",
            "/v1/jobs",
            &[],
            axum::body::Body::from_stream(broken),
        )
        .await;
    reply.refused(400, "body-unreadable");
    assert!(world.store.all_jobs().is_empty());
}

#[tokio::test]
async fn ids_and_keys_in_paths_are_checked() {
    let world = World::new().await;
    let nobody = "job_0192f0c1a2b37def8123456789abcdef";
    for id in [
        nobody,
        "x",
        "job_",
        "JOB_0192f0c1a2b37def8123456789abcdef",
        "run_0192f0c1a2b37def8123456789abcdef",
        "%00",
        "%ff",
        "'%20OR%201=1",
        &"9".repeat(5_000),
    ] {
        let path = format!("/v1/jobs/{id}");
        world.get(&path).await.refused(404, "job-not-found");
        world
            .patch(&path, json!({"timeout": "1s"}))
            .await
            .refused(404, "job-not-found");
        world.delete(&path).await.refused(404, "job-not-found");
        for verb in ["pause", "resume", "run", "retry"] {
            world
                .post_empty(&format!("{path}/{verb}"))
                .await
                .refused(404, "job-not-found");
        }
        world
            .get(&format!("{path}/runs"))
            .await
            .refused(404, "job-not-found");
    }
    for key in ["a%20b", "a%00", "job_x", &"k".repeat(129), "sch%C3%BCssel"] {
        let path = format!("/v1/jobs/by-key/{key}");
        let reply = world
            .put(&path, json!({"schedule": "@daily", "target": OK}))
            .await;
        assert_eq!(
            reply.problem(),
            ("field-invalid".to_owned(), Some("key".to_owned())),
            "{key}"
        );
        world.get(&path).await.refused(422, "field-invalid");
    }
    world
        .get("/v1/jobs/by-key/none")
        .await
        .refused(404, "job-not-found");
    assert!(world.store.all_jobs().is_empty());
}

async fn check(world: &World, path: &str, body: &Value, problem: &str, field: Option<&str>) {
    let before = world.snapshot();
    let reply = world.post(path, body.clone()).await;
    let found = reply.problem();
    assert_eq!(
        (found.0.as_str(), found.1.as_deref()),
        (problem, field),
        "{path} {body}: {}",
        reply.text
    );
    assert!(reply.status.is_client_error());
    assert_eq!(world.snapshot(), before);
}

#[tokio::test]
async fn small_requests_are_checked_as_well() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let run = world.run(&job).await;
    world.wait(&run, &["succeeded"]).await;
    let pause = format!("/v1/jobs/{job}/pause");
    for (body, problem, field) in [
        (json!({"note": 1}), "field-invalid", Some("note")),
        (
            json!({"note": "x".repeat(1_025)}),
            "field-invalid",
            Some("note"),
        ),
        (json!({"note": "\u{0}"}), "field-invalid", Some("note")),
        (json!({"reason": "x"}), "field-unknown", Some("reason")),
        (json!([]), "field-invalid", None),
    ] {
        check(&world, &pause, &body, problem, field).await;
    }
    for path in [
        format!("/v1/jobs/{job}/resume"),
        format!("/v1/runs/{run}/cancel"),
    ] {
        check(
            &world,
            &path,
            &json!({"note": "x"}),
            "field-unknown",
            Some("note"),
        )
        .await;
        check(&world, &path, &json!("x"), "field-invalid", None).await;
    }
    for path in [
        format!("/v1/jobs/{job}/run"),
        format!("/v1/jobs/{job}/retry"),
        format!("/v1/runs/{run}/replay"),
    ] {
        for (body, problem, field) in [
            (json!({"force": "yes"}), "field-invalid", Some("force")),
            (json!({"force": 1}), "field-invalid", Some("force")),
            (json!({"forced": true}), "field-unknown", Some("forced")),
            (
                json!({"payload": "x".repeat(300_000)}),
                "field-invalid",
                Some("payload"),
            ),
            (
                json!({"slot": "2026-01-01T00:00:00Z"}),
                "field-unknown",
                Some("slot"),
            ),
            (json!(7), "field-invalid", None),
        ] {
            check(&world, &path, &body, problem, field).await;
        }
    }
}

#[tokio::test]
async fn states_that_do_not_fit_are_named() {
    let world = World::new().await;
    let body = json!({"schedule": {"in": "0s"}, "target": OK});
    let job = world.post("/v1/jobs", body).await.is(201).get("id");
    for _ in 0..300 {
        if world.get(&format!("/v1/jobs/{job}")).await.get("state") == "finished" {
            break;
        }
        crate::world::pause(10).await;
    }
    for verb in ["pause", "resume"] {
        let reply = world.post_empty(&format!("/v1/jobs/{job}/{verb}")).await;
        reply.refused(409, "state-conflict");
        assert_eq!(reply.get("state"), "finished");
    }
    let run = world.run(&job).await;
    world.wait(&run, &["succeeded"]).await;
}

#[tokio::test]
async fn previews_are_checked_as_well() {
    let world = World::new().await;
    let path = "/v1/schedules/preview";
    for line in include_str!("refusals/preview.txt").lines() {
        let (body, expected) = line.split_once(" -> ").unwrap();
        let reply = world.call("POST", path, &[], body.to_owned()).await;
        reply.refused(422, expected.split_once(' ').unwrap().0);
        let field = expected.split_once(' ').map(|(_, field)| field.to_owned());
        assert_eq!(reply.problem().1, field, "{line}");
    }
    let reply = world.call("POST", path, &[], "").await;
    reply.refused(400, "body-unreadable");
}
