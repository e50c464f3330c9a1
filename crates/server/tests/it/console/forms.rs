//! Jobs by forms, and explanations.

use model::{Role, TenantId};
use serde_json::json;

use super::logged_in;
use crate::world::{OK, World};

/// A job as a form says it.
const TYPED: [(&str, &str); 14] = [
    ("key", "nightly"),
    ("kind", "cron"),
    ("cron", "0 9 * * *"),
    ("timezone", "Europe/Berlin"),
    ("url", OK),
    ("method", "POST"),
    ("headers", "x-a: 1\r\nx-b: 2"),
    ("payload", "{\"n\": 12345678901234567890}"),
    ("attempts", "3"),
    ("timeout", "10s"),
    ("lane", "batch"),
    ("overlap", "skip"),
    ("catch_up", "latest"),
    ("labels", "team=a\r\ntier=1"),
];

#[tokio::test]
async fn a_job_is_made_and_changed_by_forms() {
    let world = World::with_keys().await;
    let admin = logged_in(&world, Role::Admin).await;
    let bad: Vec<(&str, &str)> = TYPED
        .iter()
        .map(|(name, value)| (*name, if *name == "cron" { "75 9 * * *" } else { value }))
        .collect();
    let refused = admin.post("/jobs/new", &bad).await.is(422);
    assert!(
        refused.text.contains("75") && refused.text.contains("aria-invalid"),
        "{}",
        refused.text
    );
    let made = admin.post("/jobs/new", &TYPED).await.is(303);
    let path = made
        .header("location")
        .unwrap()
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    let page = admin.get(&path).await.is(200).text;
    assert!(page.contains("09:00") || page.contains("9:00"), "{page}");
    let json = admin.get(&format!("{path}/json")).await.is(200).text;
    assert!(json.contains("12345678901234567890"), "{json}");
    let mut edited = TYPED.to_vec();
    edited.retain(|(name, _)| !["cron", "labels", "headers"].contains(name));
    edited.extend([
        ("cron", "0 10 * * *"),
        ("labels", "team=a"),
        ("headers", "x-b: 3"),
        ("version", "1"),
    ]);
    admin.post(&format!("{path}/edit"), &edited).await.is(303);
    let stale = admin.post(&format!("{path}/edit"), &edited).await.is(412);
    assert!(stale.text.contains("0 10 * * *"), "what was typed is kept");
    let versions = admin.get(&format!("{path}/versions")).await.is(200).text;
    for line in [
        "labels.tier: 1",
        "schedule.cron: 0 10 * * *",
        "target.http.headers.x-a: 1",
    ] {
        assert!(versions.contains(line), "{line}: {versions}");
    }
}

#[tokio::test]
async fn a_job_is_paused_run_reverted_and_deleted_by_forms_under_the_user_s_name() {
    let world = World::with_keys().await;
    let admin = logged_in(&world, Role::Admin).await;
    let made = admin.post("/jobs/new", &TYPED).await.is(303);
    let path = made.header("location").unwrap();
    let path = path.split('?').next().unwrap().to_owned();
    let mut edited = TYPED.to_vec();
    edited.push(("version", "1"));
    edited.retain(|(name, _)| *name != "lane");
    edited.push(("lane", "critical"));
    admin.post(&format!("{path}/edit"), &edited).await.is(303);
    admin
        .post(&format!("{path}/revert"), &[("to", "1"), ("version", "2")])
        .await
        .is(303);
    admin.post(&format!("{path}/pause"), &[]).await.is(303);
    assert!(admin.get(&path).await.text.contains("Paused"));
    admin.post(&format!("{path}/resume"), &[]).await.is(303);
    let run = admin.post(&format!("{path}/run"), &[]).await.is(303);
    let run = run
        .header("location")
        .unwrap()
        .split('?')
        .next()
        .unwrap()
        .to_owned();
    admin.get(&run).await.is(200);
    let trail = admin.get(&format!("{path}/audit")).await.is(200).text;
    for action in [
        "job.create",
        "job.edit",
        "job.pause",
        "job.resume",
        "run.start",
    ] {
        assert!(trail.contains(action), "{action}");
    }
    assert!(trail.contains("<b>admin</b>"), "{trail}");
    admin
        .post(&format!("{path}/delete"), &[("sure", "no")])
        .await
        .is(400);
    admin
        .post(&format!("{path}/delete"), &[("sure", "nightly")])
        .await
        .is(303);
    admin.get(&path).await.is(404);
}

#[tokio::test]
async fn explain_says_why_and_moments_are_in_the_viewer_s_zone() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"key": "nightly", "schedule": {"cron": "0 9 * * *", "timezone": "UTC"}, "target": OK});
    let job = world
        .as_key(&root, "POST", "/v1/jobs", body)
        .await
        .is(201)
        .get("id");
    let mut browser = logged_in(&world, Role::Reader).await;
    let page = browser
        .get(&format!("/jobs/{job}?at=2030-01-01T09:00:00Z"))
        .await
        .is(200)
        .text;
    assert!(
        page.contains("Planned") && page.contains("class=\"chain\""),
        "{page}"
    );
    browser.cookie = format!("{}; punctual_zone=Asia%2FTokyo", browser.cookie);
    let page = browser.get(&format!("/jobs/{job}")).await.is(200).text;
    assert!(
        page.contains("18:00:00") && page.contains("Tokyo, +09:00"),
        "{page}"
    );
}
