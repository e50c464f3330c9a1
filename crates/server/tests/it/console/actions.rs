//! Every action by its form, and who may not.

use std::io::Read;

use model::{Role, TenantId};
use serde_json::{Value, json};

use super::{Browser, logged_in};
use crate::world::{FAIL, HANG, LATER, OK, World, pause, token_of};

struct Made<'a> {
    world: &'a World,
    root: String,
}

impl<'a> Made<'a> {
    async fn new(world: &'a World) -> Self {
        Self {
            world,
            root: world.key(TenantId::DEFAULT, Role::Root).await,
        }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.world
            .as_key(&self.root, "POST", path, body)
            .await
            .json()
    }

    async fn get(&self, path: &str) -> Value {
        let bearer = format!("Bearer {}", self.root);
        let headers = [("authorization", bearer.as_str())];
        self.world.call("GET", path, &headers, "").await.json()
    }

    async fn job(&self, target: &str) -> String {
        let body = json!({"schedule": "@yearly", "target": target, "payload": {"n": 1}});
        let job = self.post("/v1/jobs", body).await;
        job["id"].as_str().unwrap().to_owned()
    }

    async fn run(&self, job: &str) -> String {
        let force = json!({"force": true});
        let run = self.post(&format!("/v1/jobs/{job}/run"), force).await;
        run["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{run}"))
            .to_owned()
    }

    async fn until(&self, path: &str, state: &str) -> Value {
        for _ in 0..2_000 {
            let found = self.get(path).await;
            if found["state"] == state {
                return found;
            }
            pause(10).await;
        }
        panic!("{path} is not {state}: {}", self.get(path).await);
    }
}

fn path_of(reply: &crate::world::Reply) -> String {
    let to = reply.header("location").unwrap();
    to.split('?').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_run_is_cancelled_and_replayed_with_another_payload() {
    let world = World::with_keys().await;
    let made = Made::new(&world).await;
    let operator = logged_in(&world, Role::Operator).await;
    let run = made.run(&made.job(HANG).await).await;
    operator
        .post(&format!("/runs/{run}/cancel"), &[])
        .await
        .is(303);
    made.until(&format!("/v1/runs/{run}"), "cancelled").await;
    let page = operator.get(&format!("/runs/{run}")).await.is(200).text;
    assert!(
        page.contains("Cancelled") && !page.contains("Cancel run"),
        "{page}"
    );
    let run = made.run(&made.job(OK).await).await;
    made.until(&format!("/v1/runs/{run}"), "succeeded").await;
    let payload = [("payload", "{\"n\": 12345678901234567890}")];
    let to = operator
        .post(&format!("/runs/{run}/replay"), &payload)
        .await
        .is(303);
    let new = path_of(&to);
    let found = made.until(&format!("/v1{new}"), "succeeded").await;
    assert_eq!(found["replay_of"], run.as_str());
    let output = found["attempts"][0]["output"].as_str().unwrap();
    assert_eq!(output, "{\"n\": 12345678901234567890}");
    let page = operator.get(&new).await.is(200).text;
    assert!(
        page.contains("A replay of") && page.contains("12345678901234567890"),
        "{page}"
    );
    let wrong = [("payload", "{n: 1}")];
    operator
        .post(&format!("/runs/{run}/replay"), &wrong)
        .await
        .is(400);
}

#[tokio::test]
async fn a_key_is_revoked_and_a_zone_is_chosen() {
    let world = World::with_keys().await;
    let made = Made::new(&world).await;
    let key = made
        .post("/v1/keys", json!({"role": "reader", "label": "laptop"}))
        .await;
    let (id, secret) = (key["id"].as_str().unwrap(), key["key"].as_str().unwrap());
    let admin = logged_in(&world, Role::Admin).await;
    assert!(admin.get("/keys").await.text.contains(id));
    admin.post("/keys/revoke", &[("of", id)]).await.is(303);
    let page = admin.get("/keys").await.is(200).text;
    assert!(page.contains("Revoked"), "{page}");
    let bearer = format!("Bearer {secret}");
    let headers = [("authorization", bearer.as_str())];
    world.call("GET", "/v1/jobs", &headers, "").await.is(401);
    admin
        .post("/keys/revoke", &[("of", "key_nonsense")])
        .await
        .is(404);
    let zone = [("zone", "Asia/Tokyo"), ("next", "/jobs?q=a")];
    let reply = admin.post("/zone", &zone).await.is(303);
    assert_eq!(reply.header("location"), Some("/jobs?q=a"));
    assert!(
        reply
            .header("set-cookie")
            .unwrap()
            .starts_with("punctual_zone=Asia/Tokyo")
    );
    admin
        .post("/zone", &[("zone", "Nowhere/At_All")])
        .await
        .is(400);
}

#[tokio::test]
async fn what_a_role_may_not_do_is_refused_whatever_the_action() {
    let world = World::with_keys().await;
    let made = Made::new(&world).await;
    let job = made.job(FAIL).await;
    let run = made.run(&job).await;
    made.until(&format!("/v1/runs/{run}"), "dead").await;
    let replay = made.post("/v1/replays", json!({"filter": {}})).await;
    let replay = replay["id"].as_str().unwrap().to_owned();
    let actions = [
        (format!("/jobs/{job}/pause"), Role::Operator),
        (format!("/jobs/{job}/resume"), Role::Operator),
        (format!("/jobs/{job}/run"), Role::Operator),
        (format!("/runs/{run}/cancel"), Role::Operator),
        (format!("/runs/{run}/replay"), Role::Operator),
        (format!("/runs/{run}/wake"), Role::Operator),
        ("/dead/replay".to_owned(), Role::Operator),
        (format!("/replays/{replay}/stop"), Role::Operator),
        ("/jobs/new".to_owned(), Role::Admin),
        ("/jobs/preview".to_owned(), Role::Admin),
        (format!("/jobs/{job}/edit"), Role::Admin),
        (format!("/jobs/{job}/delete"), Role::Admin),
        (format!("/jobs/{job}/revert"), Role::Admin),
        ("/keys/revoke".to_owned(), Role::Admin),
    ];
    for role in [Role::Reader, Role::Operator] {
        let browser = logged_in(&world, role).await;
        for (path, needed) in &actions {
            if role.allows(*needed) {
                continue;
            }
            let page = browser.post(path, &[]).await.is(403);
            assert!(page.text.contains("role-insufficient"), "{role} {path}");
        }
        let page = browser.get("/dead").await.is(200).text;
        assert_eq!(
            page.contains("/dead/replay"),
            role.allows(Role::Operator),
            "{role}"
        );
        let page = browser.get(&format!("/runs/{run}")).await.is(200).text;
        assert_eq!(
            page.contains(&format!("/runs/{run}/replay")),
            role.allows(Role::Operator)
        );
    }
}

#[tokio::test]
async fn all_dead_runs_are_in_groups_and_replayed_together_with_progress() {
    let world = World::with_keys().await;
    let made = Made::new(&world).await;
    let job = made.job(FAIL).await;
    let mut last = String::new();
    for _ in 0..60 {
        last = made.run(&job).await;
    }
    made.until(&format!("/v1/runs/{last}"), "dead").await;
    let operator = logged_in(&world, Role::Operator).await;
    let mut page = String::new();
    for _ in 0..200 {
        page = operator.get("/dead").await.is(200).text;
        if page.contains(">60<") || page.contains(">60</span>") {
            break;
        }
        pause(20).await;
    }
    assert!(
        page.contains("</svg>60</span>"),
        "more than a page has: {page}"
    );
    assert!(
        page.contains("1 job") && page.contains("status 400"),
        "{page}"
    );
    let group = operator.get("/dead?error=no").await.is(200).text;
    assert!(group.contains("Replay 60 runs"), "{group}");
    let none = operator
        .get("/dead?error=nothing+of+the+kind")
        .await
        .is(200)
        .text;
    assert!(
        none.contains("No dead runs match") && !none.contains("Replay "),
        "{none}"
    );
    operator.get("/dead?reason=nonsense").await.is(400);
    let to = operator
        .post("/dead/replay", &[("error", "no")])
        .await
        .is(303);
    let path = path_of(&to);
    let found = made.until(&format!("/v1{path}"), "done").await;
    assert_eq!(found["started"], 60);
    let page = operator.get(&path).await.is(200).text;
    assert!(
        page.contains("Done") && page.contains("<dd>60<small>new runs"),
        "{page}"
    );
    assert!(
        !page.contains("hx-trigger") && !page.contains("/stop"),
        "it has ended"
    );
    assert!(operator.get("/dead").await.text.contains(&path));
}

#[tokio::test]
async fn a_replay_that_goes_on_can_be_stopped() {
    let world = World::with_keys().await;
    let made = Made::new(&world).await;
    let job = made.job(FAIL).await;
    for _ in 0..20 {
        let run = made.run(&job).await;
        made.until(&format!("/v1/runs/{run}"), "dead").await;
    }
    let operator = logged_in(&world, Role::Operator).await;
    let slow = json!({"filter": {"job": job}, "rate": 1});
    let slow = made.post("/v1/replays", slow).await;
    let path = format!("/replays/{}", slow["id"].as_str().unwrap());
    let page = operator.get(&path).await.is(200).text;
    assert!(
        page.contains("Running") && page.contains("hx-trigger=\"every 2s\""),
        "{page}"
    );
    operator.post(&format!("{path}/stop"), &[]).await.is(303);
    made.until(&format!("/v1{path}"), "cancelled").await;
    assert!(operator.get(&path).await.text.contains("Stopped"));
    operator.get("/replays/nonsense").await.is(404);
}

#[tokio::test]
async fn a_run_that_its_target_took_over_shows_its_progress_and_its_log() {
    let world = World::with_keys().await;
    let made = Made::new(&world).await;
    let body =
        json!({"schedule": "@yearly", "target": LATER, "completion": "callback", "timeout": "10m"});
    let job = made.post("/v1/jobs", body).await["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let run = made.run(&job).await;
    for _ in 0..500 {
        if made.get(&format!("/v1/runs/{run}")).await["handed_over"].is_object() {
            break;
        }
        pause(10).await;
    }
    let token = token_of(&run);
    let headers = [("punctual-token", token.as_str())];
    let beat = json!({"progress": 0.42}).to_string();
    let path = format!("/v1/runs/{run}/heartbeat");
    world.call("POST", &path, &headers, beat).await.is(200);
    let path = format!("/v1/runs/{run}/log");
    let plain = [headers[0], ("content-type", "text/plain")];
    let said = world
        .call("POST", &path, &plain, "row 17 <b>done</b>\n")
        .await;
    assert!(said.status.is_success(), "{}", said.text);
    let reader = logged_in(&world, Role::Reader).await;
    let page = reader.get(&format!("/runs/{run}")).await.is(200).text;
    for part in [
        "With its target",
        "42 %",
        "Last heartbeat",
        "row 17 &#60;b&#62;done",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn a_page_is_compressed_for_whoever_takes_that() {
    let world = World::new().await;
    let headers = [("accept-encoding", "gzip, br")];
    let request = axum::http::Request::builder()
        .uri("/jobs")
        .header(headers[0].0, headers[0].1);
    let request = request.body(axum::body::Body::empty()).unwrap();
    let reply = tower::ServiceExt::oneshot(world.router.clone(), request)
        .await
        .unwrap();
    assert_eq!(reply.headers()["content-encoding"], "gzip");
    assert_eq!(reply.headers()["vary"], "accept-encoding");
    assert!(reply.headers().contains_key("content-security-policy"));
    let bytes = axum::body::to_bytes(reply.into_body(), usize::MAX)
        .await
        .unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .unwrap();
    assert!(text.contains("No jobs yet") && bytes.len() * 2 < text.len());
    let plain = Browser::new(&world).get("/jobs").await.is(200);
    assert!(plain.header("content-encoding").is_none());
    assert_eq!(plain.header("vary"), Some("accept-encoding"));
}

#[tokio::test]
async fn targets_that_were_called_are_listed_with_their_breakers() {
    let world = World::with_keys().await;
    let made = Made::new(&world).await;
    let run = made.run(&made.job(OK).await).await;
    made.until(&format!("/v1/runs/{run}"), "succeeded").await;
    let known = made.get("/v1/targets").await;
    let reader = logged_in(&world, Role::Reader).await;
    let page = reader.get("/targets").await.is(200).text;
    for target in known["items"].as_array().unwrap() {
        assert!(page.contains(target["origin"].as_str().unwrap()), "{page}");
    }
    assert!(page.contains("Targets"), "{page}");
}
