//! What somebody typed is text in a real browser too: nothing of it is run, drawn or fetched.

use serde_json::{Value, json};

use super::driver::Browser;
use super::{World, check};

/// Each of these would run where the text before it ends early.
const XSS: &str = "\"'></textarea><script>window.ran=1</script><img src=x onerror=window.ran=1>";

/// A job, a run and more, of which every text is such a text. Answers the ids of both.
fn typed(world: &World) -> (String, String) {
    let http = world.server.http().with_key(&world.server.root_key());
    let put = |path: &str, body: Value| {
        let json = [("content-type", "application/json")];
        let answer = http.send("PUT", path, &json, body.to_string().as_bytes());
        let status = answer.status;
        assert!(status < 300, "{path}: {status}");
    };
    put(
        "/v1/calendars/typed",
        json!({"yearly": ["12-25"], "note": XSS}),
    );
    put(
        "/v1/secrets/typed",
        json!({"value": "a value", "hosts": ["a.example"], "note": XSS}),
    );
    put(
        "/v1/jobs/by-key/typed",
        json!({
            "schedule": "@yearly", "owner": XSS, "exclude": ["typed"], "labels": {"a": XSS},
            "target": {"http": {"url": world.receiver.url("/dead"), "headers": {"x-a": XSS}}},
            "payload": {"text": XSS},
        }),
    );
    let job = world.id("typed");
    let post = |path: &str, body: Value| http.post(path, &body);
    post("/v1/keys", json!({"role": "reader", "label": XSS}));
    post("/v1/tenants", json!({"name": "another", "note": XSS}));
    let run = post(&format!("/v1/jobs/{job}/run"), json!({"payload": XSS})).json();
    let run = run["id"].as_str().unwrap().to_owned();
    post(&format!("/v1/jobs/{job}/pause"), json!({"note": XSS}));
    (job, run)
}

/// Pages on which it is shown, and addresses that have it.
fn paths(job: &str, run: &str) -> Vec<String> {
    let far = "%22%27%3E%3Cscript%3Ewindow.ran%3D1%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Dwindow.ran%3D1%3E";
    let mut paths: Vec<String> = ["", "/versions", "/audit", "/json", "/slots", "/edit"]
        .map(|more| format!("/jobs/{job}{more}"))
        .to_vec();
    paths.push(format!("/jobs/{job}/edit?as=json"));
    paths.push(format!("/jobs/new?from={job}"));
    paths.push(format!("/runs/{run}"));
    for page in [
        "/",
        "/jobs",
        "/dead",
        "/runs",
        "/calendars",
        "/secrets",
        "/keys",
        "/tenants",
        "/audit",
        "/users",
    ] {
        paths.push(page.to_owned());
    }
    for query in [
        "/jobs?q=",
        "/jobs?label=",
        "/dead?error=",
        "/audit?who=",
        "/login?next=",
    ] {
        paths.push(format!("{query}{far}"));
    }
    paths.push(format!("/jobs/{job}?at={far}"));
    paths
}

#[test]
fn nothing_that_somebody_typed_is_run() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let world = World::new();
    let (job, run) = typed(&world);
    let link = world.server.printed("console");
    browser.resize(1200, 900, "light");
    browser.go(link.trim());
    browser.wait_text("Overview");
    for path in &paths(&job, &run) {
        browser.go(&world.url(path));
        let seen = browser.js("return [window.ran ?? null, document.querySelectorAll('img, svg[onload], script:not([src])').length]");
        assert_eq!(seen, json!([null, 0]), "{path}");
    }
    // It is shown as it was typed.
    browser.go(&world.url(&format!("/jobs/{job}")));
    browser.wait_text("onerror=window.ran=1");
    check(&browser, "job-typed", 1200);
    // What cannot be a filter is refused; nothing else is complained about.
    let complaints = browser.complaints();
    let others = complaints
        .iter()
        .filter(|it| !it.contains("responded with a status of 4"));
    assert_eq!(others.count(), 0, "{complaints:?}");
}
