//! Alert rules over REST: what is stored is answered, and nonsense is refused with the field that is wrong.

use serde_json::{Value, json};

use crate::world::{OK, Reply, World};

async fn put(world: &World, name: &str, body: Value) -> Reply {
    world.put(&format!("/v1/alerts/{name}"), body).await
}

#[tokio::test]
async fn a_rule_is_answered_as_it_was_sent() {
    let world = World::new().await;
    let body = json!({
        "label": "team=ö=ps", "on": "skipped", "count": 3, "channel": "slack",
        "url": "http://target.example/T0/B0/x", "recovered": false, "repeat": "2h", "enabled": false,
    });
    let made = put(&world, "ops.1_x", body.clone()).await.is(201);
    assert_eq!(made.header("location"), Some("/v1/alerts/ops.1_x"));
    let alert = made.json();
    for field in [
        "label",
        "on",
        "count",
        "channel",
        "recovered",
        "repeat",
        "enabled",
    ] {
        assert_eq!(alert[field], body[field], "{field}");
    }
    // Whoever knows the path of such an address may write there.
    assert_eq!(alert["url"], "http://target.example/***");
    let nothing = (&alert["job"], &alert["owner"], &alert["muted_until"]);
    assert_eq!(nothing, (&Value::Null, &Value::Null, &Value::Null));
    let shown = world.get("/v1/alerts/ops.1_x").await.is(200).json();
    assert_eq!(shown["alerts"], json!([]));
    assert_eq!(shown["version"], 1);
    // The whole is written again, but for the address; and muting stays.
    let until = "2999-01-01T00:00:00.000Z";
    let muted = world.post("/v1/alerts/ops.1_x/mute", json!({"until": until}));
    assert_eq!(muted.await.is(200).json()["muted_until"], until);
    let again = put(&world, "ops.1_x", json!({"on": "dead", "channel": "slack"})).await;
    let again = again.is(200).json();
    assert_eq!(again["url"], "http://target.example/***");
    assert_eq!(
        (&again["label"], &again["count"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&again["recovered"], &again["enabled"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (&again["muted_until"], &again["version"]),
        (&json!(until), &json!(3))
    );
    let heard = world
        .post("/v1/alerts/ops.1_x/mute", json!({}))
        .await
        .is(200);
    assert_eq!(heard.json()["muted_until"], Value::Null);
    world.delete("/v1/alerts/ops.1_x").await.is(200);
    for path in ["", "/deliveries"] {
        let path = format!("/v1/alerts/ops.1_x{path}");
        world.get(&path).await.refused(404, "alert-not-found");
    }
    // Changes are in the audit log, without what is not shown.
    let audit = world.get("/v1/audit?subject=ops.1_x").await.is(200);
    for action in ["alert.create", "alert.edit", "alert.delete"] {
        assert!(audit.text.contains(action), "{}", audit.text);
    }
    assert!(!audit.text.contains("T0/B0"), "{}", audit.text);
}

#[tokio::test]
async fn what_delivers_is_nobody_s_to_see_or_change() {
    let world = World::new().await;
    put(&world, "a", json!({"on": "dead", "url": OK}))
        .await
        .is(201);
    let test = world.post_empty("/v1/alerts/a/test").await.is(202);
    let run = test.json();
    let (run, job) = (run["id"].as_str().unwrap(), run["job"].as_str().unwrap());
    world
        .get(&format!("/v1/runs/{run}"))
        .await
        .refused(404, "run-not-found");
    world
        .get(&format!("/v1/jobs/{job}"))
        .await
        .refused(404, "job-not-found");
    let pause = world.post_empty(&format!("/v1/jobs/{job}/pause")).await;
    pause.refused(404, "job-not-found");
    let sent = world.get("/v1/alerts/a/deliveries").await.is(200).json();
    assert_eq!(sent["items"][0]["id"], run);
    for path in ["/v1/jobs", "/v1/runs"] {
        assert_eq!(world.get(path).await.json()["items"], json!([]), "{path}");
    }
}

#[tokio::test]
async fn rules_are_listed_page_by_page() {
    let world = World::new().await;
    for name in ["c", "a", "b"] {
        put(&world, name, json!({"on": "dead", "url": OK}))
            .await
            .is(201);
    }
    let first = world.get("/v1/alerts?limit=2").await.is(200).json();
    let names = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|it| it["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&first), ["a", "b"]);
    let next = first["next_cursor"].as_str().unwrap();
    let rest = world
        .get(&format!("/v1/alerts?cursor={next}"))
        .await
        .is(200);
    assert_eq!(names(&rest.json()), ["c"]);
    assert_eq!(rest.json()["next_cursor"], Value::Null);
}

#[tokio::test]
async fn nonsense_is_refused_with_its_field() {
    let world = World::new().await;
    let check = async |body: Value, kind: &str, field: &str| {
        let reply = put(&world, "a", body.clone()).await;
        let problem = reply.json();
        let found = (
            reply.status.as_u16(),
            problem["type"].as_str(),
            &problem["field"],
        );
        let kind = format!("/problems/{kind}");
        let field = if field.is_empty() {
            Value::Null
        } else {
            json!(field)
        };
        assert_eq!(
            found,
            (422, Some(kind.as_str()), &field),
            "{body}: {}",
            reply.text
        );
    };
    let with = |name: &str, value: Value| {
        let mut body = json!({"on": "dead", "url": OK});
        body[name] = value;
        body
    };
    check(json!({"on": "dead"}), "field-missing", "url").await;
    check(json!({"url": OK}), "field-missing", "on").await;
    check(with("on", json!("late")), "field-invalid", "on").await;
    check(with("on", json!("skipped")), "field-missing", "count").await;
    check(with("count", json!(3)), "field-invalid", "count").await;
    check(with("chanel", json!("slack")), "field-unknown", "chanel").await;
    check(with("channel", json!("pager")), "field-invalid", "channel").await;
    check(with("label", json!("team")), "field-invalid", "label").await;
    check(with("repeat", json!("1s")), "field-invalid", "repeat").await;
    check(with("url", json!("ftp://a/")), "field-invalid", "url").await;
    check(
        with("url", json!("http://169.254.169.254/")),
        "egress-refused",
        "url",
    )
    .await;
    check(
        with("url", json!(format!("{OK}{{{{ secret('no') }}}}"))),
        "field-invalid",
        "url",
    )
    .await;
    check(with("job", json!("nowhere")), "field-invalid", "job").await;
    let two = json!({"on": "dead", "url": OK, "owner": "a", "label": "a=b"});
    check(two, "field-invalid", "").await;
    let reply = put(&world, "a%20b", json!({"on": "dead", "url": OK})).await;
    reply.refused(422, "field-invalid");
    let none = json!({"on": "dead", "url": OK, "job": "key:nowhere"});
    put(&world, "a", none).await.refused(404, "job-not-found");
    let none = json!({"on": "dead", "url": OK, "job": "job_0192f0c1a2b37def8123456789abcdef"});
    put(&world, "a", none).await.refused(404, "job-not-found");
    assert_eq!(world.get("/v1/alerts").await.json()["items"], json!([]));
}
