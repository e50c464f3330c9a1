use serde_json::{Value, json};

use crate::world::{BINARY, FAIL, HANG, OK, World};

const NOBODY: &str = "run_0192f0c1a2b38def8123456789abcdef";

#[tokio::test]
async fn a_manual_run_is_shown_from_its_first_breath_to_its_last() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let reply = world
        .post(
            &format!("/v1/jobs/{job}/run"),
            json!({"payload": {"own": true}}),
        )
        .await
        .is(201);
    let run = reply.json();
    let id = run["id"].as_str().unwrap();
    assert_eq!(
        reply.header("location"),
        Some(format!("/v1/runs/{id}").as_str())
    );
    assert_eq!(
        (&run["job"], &run["kind"], &run["slot"]),
        (&json!(job), &json!("manual"), &Value::Null)
    );
    assert_eq!(
        (&run["state"], &run["attempt"], &run["attempts"]),
        (&json!("ready"), &json!(1), &json!([]))
    );
    let ended = world.wait(id, &["succeeded"]).await;
    assert_eq!(
        (&ended["outcome"], &ended["reason"]),
        (&json!("succeeded"), &Value::Null)
    );
    let attempt = &ended["attempts"][0];
    assert_eq!(
        (&attempt["no"], &attempt["status"], &attempt["error"]),
        (&json!(1), &json!(200), &Value::Null)
    );
    assert_eq!(
        (&attempt["output"], &attempt["output_encoding"]),
        (&json!("{\"own\":true}"), &json!("utf8"))
    );
    assert!(
        ended["settled_at"].is_string() && ended["dispatched_at"].is_string(),
        "{ended}"
    );
    assert_eq!(
        (&ended["lane"], &ended["version"]),
        (&json!("standard"), &json!(1))
    );
}

#[tokio::test]
async fn output_that_is_no_text_is_base64() {
    let world = World::new().await;
    let job = world.job(BINARY).await;
    let run = world.run(&job).await;
    let run = world.wait(&run, &["succeeded"]).await;
    let attempt = &run["attempts"][0];
    assert_eq!(
        (&attempt["output"], &attempt["output_encoding"]),
        (&json!("/wD+"), &json!("base64"))
    );
}

#[tokio::test]
async fn a_dead_run_is_replayed_and_stays_as_it_was() {
    let world = World::new().await;
    let job = world.job(FAIL).await;
    let retry = format!("/v1/jobs/{job}/replay");
    world.post_empty(&retry).await.refused(409, "no-dead-run");
    let run = world.run(&job).await;
    let dead = world.wait(&run, &["dead"]).await;
    assert_eq!(
        (&dead["reason"], &dead["outcome"]),
        (&json!("refused"), &json!("failed"))
    );
    world
        .patch(&format!("/v1/jobs/{job}"), json!({"target": OK}))
        .await
        .is(200);
    let replay = world
        .post(
            &format!("/v1/runs/{run}/replay"),
            json!({"payload": "again"}),
        )
        .await
        .is(201)
        .json();
    assert_eq!(
        (&replay["replay_of"], &replay["kind"]),
        (&json!(run), &json!("replay"))
    );
    let ended = world
        .wait(replay["id"].as_str().unwrap(), &["succeeded"])
        .await;
    assert_eq!(ended["attempts"][0]["output"], "\"again\"");
    assert_eq!(ended["version"], 2);
    assert_eq!(world.get(&format!("/v1/runs/{run}")).await.json(), dead);
    let again = world.post_empty(&retry).await.is(201).json();
    assert_eq!(again["replay_of"], run);
    world
        .wait(again["id"].as_str().unwrap(), &["succeeded"])
        .await;
}

#[tokio::test]
async fn overlap_holds_for_runs_by_hand_unless_forced() {
    let world = World::new().await;
    let job = world.job(HANG).await;
    let first = world.run(&job).await;
    let path = format!("/v1/jobs/{job}/run");
    let refused = world.post_empty(&path).await;
    refused.refused(409, "overlap-refused");
    assert_eq!(refused.get("reason"), "overlap");
    let forced = world
        .post(&path, json!({"force": true}))
        .await
        .is(201)
        .get("id");
    world
        .post_empty(&format!("/v1/runs/{first}/replay"))
        .await
        .refused(409, "run-alive");
    for run in [first, forced] {
        world.wait(&run, &["running"]).await;
        let cancelled = world.post_empty(&format!("/v1/runs/{run}/cancel")).await;
        let cancelled = cancelled.is(200).json();
        assert_eq!(cancelled["state"], "cancelled");
        assert_eq!(cancelled["runs"]["dispatched"], json!([run]));
        let again = world
            .post_empty(&format!("/v1/runs/{run}/cancel"))
            .await
            .is(200);
        assert_eq!(again.get("state"), "cancelled");
    }
}

#[tokio::test]
async fn what_has_ended_cannot_be_cancelled() {
    let world = World::new().await;
    let job = world.job(OK).await;
    let run = world.run(&job).await;
    world.wait(&run, &["succeeded"]).await;
    let reply = world.post_empty(&format!("/v1/runs/{run}/cancel")).await;
    reply.refused(409, "run-ended");
    assert_eq!(reply.get("state"), "succeeded");
}

#[tokio::test]
async fn deleting_a_job_ends_its_runs() {
    let world = World::new().await;
    let job = world.job(HANG).await;
    let run = world.run(&job).await;
    world.wait(&run, &["running"]).await;
    let deleted = world
        .delete(&format!("/v1/jobs/{job}"))
        .await
        .is(200)
        .json();
    assert_eq!(
        deleted["runs"],
        json!({"withdrawn": [], "dispatched": [run], "unconfirmed": []})
    );
    let ended = world.get(&format!("/v1/runs/{run}")).await.is(200).json();
    assert_eq!(
        (&ended["state"], &ended["reason"]),
        (&json!("cancelled"), &json!("job_deleted"))
    );
    world
        .post_empty(&format!("/v1/runs/{run}/replay"))
        .await
        .refused(410, "job-gone");
    world
        .post_empty(&format!("/v1/jobs/{job}/run"))
        .await
        .refused(404, "job-not-found");
    world
        .post_empty(&format!("/v1/jobs/{job}/retry"))
        .await
        .refused(404, "job-not-found");
}

#[tokio::test]
async fn runs_that_are_not_there_are_not_found() {
    let world = World::new().await;
    for id in [
        NOBODY,
        "x",
        "job_0192f0c1a2b37def8123456789abcdef",
        "%00",
        "%ff",
        "run_",
        "..%2F..",
    ] {
        world
            .get(&format!("/v1/runs/{id}"))
            .await
            .refused(404, "run-not-found");
        world
            .post_empty(&format!("/v1/runs/{id}/cancel"))
            .await
            .refused(404, "run-not-found");
        world
            .post_empty(&format!("/v1/runs/{id}/replay"))
            .await
            .refused(404, "run-not-found");
    }
}
