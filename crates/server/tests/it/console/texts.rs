//! What somebody typed is shown and never run; what is secret is not shown.

use model::{Role, TenantId};
use serde_json::{Value, json};

use super::{Browser, PAGES, encode, logged_in};
use crate::world::{FAIL, Reply, World};

const XSS: &str = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'";

fn is_clean(page: &Reply) {
    assert!(!page.text.contains("<script>alert"), "{}", page.text);
    assert!(!page.text.contains("<img"), "{}", page.text);
}

/// A world in which every text that somebody can choose is such a text; a job and its dead run.
async fn typed(world: &World) -> (String, String) {
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let label = json!({"role": "reader", "label": XSS});
    world.as_key(&root, "POST", "/v1/keys", label).await.is(201);
    let calendar = json!({"yearly": ["12-25"], "note": XSS});
    world
        .as_key(&root, "PUT", "/v1/calendars/holidays", calendar)
        .await
        .is(201);
    let secret = json!({"value": "a value", "hosts": ["a.example"], "note": XSS});
    world
        .as_key(&root, "PUT", "/v1/secrets/token", secret)
        .await
        .is(201);
    let tenant = json!({"name": "another", "note": XSS});
    world
        .as_key(&root, "POST", "/v1/tenants", tenant)
        .await
        .is(201);
    let body = json!({
        "key": "nightly", "schedule": "@yearly", "owner": XSS, "exclude": ["holidays"],
        "target": {"http": {"url": format!("{FAIL}?q=%22%3E%3Cscript%3Ealert(1)"), "headers": {"x-a": XSS}}},
        "payload": {"text": XSS}, "labels": {"a": XSS},
    });
    let job = world
        .as_key(&root, "POST", "/v1/jobs", body)
        .await
        .is(201)
        .get("id");
    let note = json!({"note": XSS});
    let path = format!("/v1/jobs/{job}/pause");
    world.as_key(&root, "POST", &path, note).await.is(200);
    let payload = json!({"payload": XSS});
    let path = format!("/v1/jobs/{job}/run");
    let run = world
        .as_key(&root, "POST", &path, payload)
        .await
        .is(201)
        .get("id");
    let bearer = format!("Bearer {root}");
    for _ in 0..500 {
        let headers = [("authorization", bearer.as_str())];
        let found = world
            .call("GET", &format!("/v1/runs/{run}"), &headers, "")
            .await;
        if found.get("state") == "dead" {
            break;
        }
        crate::world::pause(10).await;
    }
    (job, run)
}

#[tokio::test]
async fn nothing_that_somebody_typed_is_run() {
    let world = World::with_keys().await;
    let (job, run) = typed(&world).await;
    let browser = logged_in(&world, Role::Root).await;
    let far = encode(XSS);
    let mut paths: Vec<String> = PAGES.map(|(path, _)| path.to_owned()).to_vec();
    paths.extend(
        ["", "/versions", "/audit", "/json", "/slots", "/edit"]
            .map(|more| format!("/jobs/{job}{more}")),
    );
    paths.push(format!("/runs/{run}"));
    paths.push(format!(
        "/jobs?q={far}&label={far}%3D{far}&owner={far}&state={far}"
    ));
    paths.push(format!("/jobs/{job}?at={far}&done={far}"));
    paths.push(format!("/audit?actor={far}&subject={far}&action={far}"));
    paths.push(format!("/login?next={far}"));
    paths.push(format!("/login/link?token={far}"));
    for path in &paths {
        let page = browser.get(path).await;
        // A filter that means nothing is refused.
        let is_refused = page.status == 400 && page.text.contains("role=\"alert\"");
        assert!(
            page.status.is_success() || is_refused,
            "{path}: {} {}",
            page.status,
            page.text
        );
        is_clean(&page);
    }
    for path in [format!("/jobs/{far}"), format!("/runs/{far}")] {
        is_clean(&browser.get(&path).await.is(404));
    }
    let mut stranger = Browser::new(&world);
    is_clean(&stranger.login(XSS, XSS).await.is(401));
}

#[tokio::test]
async fn a_form_that_is_refused_shows_what_was_typed_and_runs_none_of_it() {
    let world = World::with_keys().await;
    let (job, _) = typed(&world).await;
    let browser = logged_in(&world, Role::Root).await;
    let typed: Vec<(&str, &str)> = [
        "key",
        "cron",
        "every",
        "at",
        "timezone",
        "exclude",
        "only",
        "spread",
        "url",
        "headers",
        "payload",
        "attempts",
        "timeout",
        "start_within",
        "finish_within",
        "labels",
        "lane",
        "overlap",
        "catch_up",
        "version",
        "id",
    ]
    .map(|name| (name, XSS))
    .to_vec();
    is_clean(&browser.post("/jobs/new", &typed).await.is(422));
    is_clean(
        &browser
            .post(&format!("/jobs/{job}/edit"), &typed)
            .await
            .is(422),
    );
}

#[tokio::test]
async fn no_page_shows_a_secret() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let secret = json!({"value": "a-value-of-a-secret", "hosts": ["target.example"]});
    world
        .as_key(&root, "PUT", "/v1/secrets/token", secret)
        .await
        .is(201);
    let body = json!({"key": "nightly", "schedule": "@yearly", "target": {"http": {
        "url": "http://target.example/ok?token=in-the-query",
        "headers": {"authorization": "Bearer in-the-header"},
    }}});
    let job = world
        .as_key(&root, "POST", "/v1/jobs", body)
        .await
        .is(201)
        .get("id");
    let path = format!("/v1/jobs/{job}/run");
    let run = world
        .as_key(&root, "POST", &path, Value::Null)
        .await
        .is(201)
        .get("id");
    let browser = logged_in(&world, Role::Root).await;
    let (_, key_secret) = root.rsplit_once('_').unwrap();
    let token = browser.cookie.split_once('=').unwrap().1;
    let mut paths: Vec<String> = PAGES.map(|(path, _)| path.to_owned()).to_vec();
    paths.extend(
        ["", "/versions", "/audit", "/json", "/slots", "/edit"]
            .map(|more| format!("/jobs/{job}{more}")),
    );
    paths.push(format!("/runs/{run}"));
    for path in &paths {
        let page = browser.get(path).await.is(200).text;
        for hidden in [
            "a-value-of-a-secret",
            "in-the-query",
            "in-the-header",
            key_secret,
            token,
            "argon2id",
        ] {
            assert!(!page.contains(hidden), "{path} shows {hidden}");
        }
    }
}
