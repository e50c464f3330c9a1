use serde_json::{Value, json};

use crate::world::{OK, World, pause};

fn full() -> Value {
    json!({
        "note": "what the office keeps", "timezone": "Europe/Berlin", "dates": ["2026-12-25", "2027-01-01"],
        "yearly": ["02-29"], "weekly": ["SAT-SUN", "MON-FRI 17:00-09:00"],
        "ranges": ["2026-12-24/2027-01-02", {"from": "2026-12-24T18:00", "to": "2026-12-27T06:00"}],
    })
}

#[tokio::test]
async fn a_calendar_is_answered_as_it_was_sent() {
    let world = World::new().await;
    let mut body = full();
    body["name"] = json!("office.hours-2_x");
    let made = world.post("/v1/calendars", body).await.is(201);
    let path = "/v1/calendars/office.hours-2_x";
    assert_eq!(made.header("location"), Some(path));
    assert_eq!(made.header("etag"), Some("\"1\""));
    let calendar = made.json();
    for field in ["note", "timezone", "dates", "yearly", "weekly"] {
        assert_eq!(calendar[field], full()[field], "{field}");
    }
    let ranges = json!(["2026-12-24/2027-01-02", "2026-12-24T18:00/2026-12-27T06:00"]);
    assert_eq!(calendar["ranges"], ranges);
    assert_eq!(calendar["version"], 1);
    assert_eq!(
        (&calendar["jobs"], &calendar["applied"]),
        (&json!(0), &json!(true))
    );
    assert!(calendar["updated_at"].is_string());
    let shown = world.get(path).await.is(200);
    assert_eq!(shown.json(), calendar);
    assert_eq!(shown.header("etag"), Some("\"1\""));
    // In short: what is not said is empty.
    let short = json!({"name": "s", "yearly": ["12-25"]});
    let short = world.post("/v1/calendars", short).await.is(201).json();
    assert_eq!(
        (&short["dates"], &short["ranges"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(
        (&short["note"], &short["timezone"]),
        (&Value::Null, &Value::Null)
    );
    world
        .post("/v1/calendars", json!({"name": "s", "yearly": ["12-26"]}))
        .await
        .refused(409, "calendar-exists");
    assert_eq!(world.get("/v1/calendars/s").await.json(), short);
}

#[tokio::test]
async fn put_creates_then_replaces() {
    let world = World::new().await;
    let path = "/v1/calendars/c";
    let put = async |header: Option<(&str, &str)>, body: Value| {
        let headers: Vec<_> = header.into_iter().collect();
        world.call("PUT", path, &headers, body.to_string()).await
    };
    let (first, second) = (json!({"dates": ["2026-12-25"]}), json!({"weekly": ["SUN"]}));
    put(Some(("if-match", "\"1\"")), first.clone())
        .await
        .refused(412, "version-conflict");
    put(Some(("if-match", "*")), first.clone())
        .await
        .refused(412, "version-conflict");
    let made = put(Some(("if-none-match", "*")), first.clone())
        .await
        .is(201);
    assert_eq!(made.header("location"), Some(path));
    let again = put(Some(("if-none-match", "*")), first.clone()).await;
    again.refused(412, "version-conflict");
    assert_eq!(again.problem().1.as_deref(), Some("If-None-Match"));
    let same = put(None, first.clone()).await.is(200);
    assert_eq!(same.json(), made.json(), "saying it twice writes nothing");
    let changed = put(Some(("if-match", "\"1\"")), second.clone())
        .await
        .is(200);
    assert_eq!(changed.header("etag"), Some("\"2\""));
    assert_eq!(changed.json()["dates"], json!([]), "it is replaced whole");
    let late = put(Some(("if-match", "\"1\"")), first.clone()).await;
    late.refused(412, "version-conflict");
    assert_eq!(
        (late.problem().1.as_deref(), &late.json()["version"]),
        (Some("If-Match"), &json!(2))
    );
    put(Some(("if-match", "\"1\", \"2\"")), first).await.is(200);
    let other = put(None, json!({"name": "d", "weekly": ["SUN"]})).await;
    assert_eq!(
        other.problem(),
        ("field-invalid".to_owned(), Some("name".to_owned()))
    );
    put(None, json!({"name": "c", "weekly": ["SUN"]}))
        .await
        .is(200);
    let etag = [("if-match", "\"9\"")];
    world
        .call("DELETE", path, &etag, "")
        .await
        .refused(412, "version-conflict");
    world.delete(path).await.is(200);
    world.delete(path).await.refused(404, "calendar-not-found");
    let gone = world.get(path).await;
    gone.refused(404, "calendar-not-found");
    assert!(gone.get("detail").contains("calendar c"), "{}", gone.text);
}

#[tokio::test]
async fn a_calendar_in_use_stays() {
    let world = World::new().await;
    world.put("/v1/calendars/c", full()).await.is(201);
    let mut jobs = Vec::new();
    for _ in 0..7 {
        let body = json!({"schedule": "@hourly", "target": OK, "exclude": ["c"]});
        jobs.push(world.post("/v1/jobs", body).await.is(201).get("id"));
    }
    assert_eq!(world.get("/v1/calendars/c").await.json()["jobs"], 7);
    let kept = world.delete("/v1/calendars/c").await;
    kept.refused(409, "calendar-in-use");
    assert!(kept.get("detail").contains("calendar c"), "{}", kept.text);
    let named = kept.json()["jobs"].as_array().unwrap().clone();
    assert_eq!((named.len(), &kept.json()["count"]), (5, &json!(7)));
    for id in &named {
        assert!(jobs.contains(&id.as_str().unwrap().to_owned()));
        assert!(kept.get("detail").contains(id.as_str().unwrap()));
    }
    for (number, job) in jobs.iter().enumerate() {
        let path = format!("/v1/jobs/{job}");
        match number % 3 {
            0 => world.delete(&path).await.is(200),
            1 => world.patch(&path, json!({"exclude": []})).await.is(200),
            _ => world.patch(&path, json!({"exclude": null})).await.is(200),
        };
    }
    world.delete("/v1/calendars/c").await.is(200);
}

#[tokio::test]
async fn calendars_are_listed_by_name() {
    let world = World::new().await;
    for name in ["b", "a", "c", "B", "a.1"] {
        let path = format!("/v1/calendars/{name}");
        world.put(&path, full()).await.is(201);
    }
    let mut names = Vec::new();
    let mut path = "/v1/calendars?limit=2".to_owned();
    loop {
        let page = world.get(&path).await.is(200).json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        names.extend(
            items
                .iter()
                .map(|item| item["name"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/calendars?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(names, ["B", "a", "a.1", "b", "c"]);
    for (query, field) in [
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
        ("name=a", "name"),
        ("cursor=agAA", "cursor"),
    ] {
        let reply = world.get(&format!("/v1/calendars?{query}")).await;
        assert_eq!(
            reply.problem(),
            ("parameter-invalid".to_owned(), Some(field.to_owned()))
        );
    }
}

#[tokio::test]
async fn calendars_that_cannot_be_are_refused() {
    let world = World::new().await;
    for line in include_str!("refusals/calendar.txt").lines() {
        let (body, expected) = line.split_once(" -> ").unwrap();
        let (problem, field) = expected.split_once(' ').unwrap_or((expected, ""));
        for (method, path) in [("PUT", "/v1/calendars/c"), ("POST", "/v1/calendars")] {
            let reply = world.call(method, path, &[], body.to_owned()).await;
            let found = reply.problem();
            let found = (found.0.as_str(), found.1.as_deref().unwrap_or(""));
            assert_eq!(found, (problem, field), "{method} {body}: {}", reply.text);
        }
    }
    let many: Vec<String> = (0..2_001)
        .map(|n| format!("MON {:02}:{:02}-24:00", n / 60 % 24, n % 60))
        .collect();
    let reply = world
        .put("/v1/calendars/c", json!({"weekly": many[..2_001]}))
        .await;
    assert_eq!(
        reply.problem(),
        ("field-invalid".to_owned(), Some("weekly".to_owned()))
    );
    let both = json!({"weekly": many[..2_000], "yearly": ["12-25"]});
    let reply = world.put("/v1/calendars/c", both).await;
    assert_eq!(reply.problem(), ("field-invalid".to_owned(), None));
    world
        .put("/v1/calendars/c", json!({"weekly": many[..2_000]}))
        .await
        .is(201);
    let missing = world.post("/v1/calendars", full()).await;
    assert_eq!(
        missing.problem(),
        ("field-missing".to_owned(), Some("name".to_owned()))
    );
    let long = "x".repeat(129);
    for name in ["a%20b", "a%2Fb", "%C3%B6", "%00", "a:b", long.as_str()] {
        let path = format!("/v1/calendars/{name}");
        let reply = world.put(&path, full()).await;
        assert_eq!(
            reply.problem(),
            ("field-invalid".to_owned(), Some("name".to_owned())),
            "{name}"
        );
        let reply = world.get(&path).await;
        assert_eq!(
            reply.problem(),
            ("field-invalid".to_owned(), Some("name".to_owned())),
            "{name}"
        );
    }
    let listed = world.get("/v1/calendars").await.json();
    assert_eq!(
        listed["items"].as_array().unwrap().len(),
        1,
        "nothing else was written"
    );
}

#[tokio::test]
async fn a_tenant_has_so_many_calendars_and_no_more() {
    let world = World::new().await;
    for number in 0..1_000 {
        let path = format!("/v1/calendars/c{number}");
        world
            .put(&path, json!({"dates": ["2030-01-01"]}))
            .await
            .is(201);
    }
    let path = "/v1/calendars/one-more";
    world.put(path, full()).await.refused(409, "calendars-full");
    let body = json!({"name": "one-more", "dates": ["2030-01-01"]});
    world
        .post("/v1/calendars", body)
        .await
        .refused(409, "calendars-full");
    world.put("/v1/calendars/c5", full()).await.is(200);
}

#[tokio::test]
async fn a_change_reaches_the_jobs_that_name_it() {
    let world = World::new().await;
    world
        .put("/v1/calendars/c", json!({"dates": ["2001-01-01"]}))
        .await
        .is(201);
    let body = json!({"schedule": "0 12 1 1 *", "target": OK, "exclude": ["c"]});
    let job = world.post("/v1/jobs", body).await.is(201).json();
    let next = job["next_slot"].as_str().unwrap().to_owned();
    let path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    let date = next.split_once('T').unwrap().0;
    let put = world
        .put("/v1/calendars/c", json!({"dates": [date]}))
        .await
        .is(200)
        .json();
    assert_eq!((&put["jobs"], &put["version"]), (&json!(1), &json!(2)));
    let mut tries = 0;
    while world.get("/v1/calendars/c").await.json()["applied"] != json!(true) {
        tries += 1;
        assert!(tries < 500, "it is applied");
        pause(10).await;
    }
    let moved = world.get(&path).await.json();
    let year: u32 = next.split_once('-').unwrap().0.parse().unwrap();
    assert_eq!(
        moved["next_slot"],
        format!("{}-01-01T12:00:00.000Z", year + 1)
    );
    assert_eq!(moved["version"], 2);
    // All of them gone: it says so, and is not refused.
    world
        .put("/v1/calendars/c", json!({"yearly": ["01-01"]}))
        .await
        .is(200);
    while world.get("/v1/calendars/c").await.json()["applied"] != json!(true) {
        pause(10).await;
    }
    let never = world.get(&path).await.json();
    assert_eq!(
        (&never["next_slot"], &never["due_at"]),
        (&Value::Null, &Value::Null)
    );
    let warning = never["warning"].as_str().unwrap();
    assert!(
        warning.starts_with("calendars leave out every slot up to 7"),
        "{warning}"
    );
    assert_eq!(never["state"], "active");
    // What stands may be said again, and other fields may change.
    let patch = json!({"labels": {"a": "b"}});
    world.patch(&path, patch).await.is(200);
    let same = world
        .patch(&path, json!({"exclude": ["c"]}))
        .await
        .is(200)
        .json();
    assert_eq!(same["version"], 4);
}
