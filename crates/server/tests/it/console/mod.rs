//! The console: who gets in, what its forms need, what each role sees, and that nothing somebody typed is ever run.

mod actions;
mod edits;
mod filters;
mod forms;
mod loads;
mod numbers;
mod overview;
mod sessions;
mod spread;
mod texts;
mod users;

use std::time::Duration;

use axum::http::StatusCode;
use model::{Holder, Role, Session, Tenant, TenantId, TenantName, limits};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::{AccessStore, UserStore};

use crate::access::now;
use crate::world::{OK, Reply, World};

pub const PASSWORD: &str = "correct horse battery";

/// A browser: it keeps its cookie, and reads the token of forms.
pub struct Browser<'a> {
    world: &'a World,
    pub cookie: String,
}

pub fn encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn form(pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{}={}", encode(name), encode(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

fn cookie_of(reply: &Reply) -> Option<String> {
    let set = reply.header("set-cookie")?;
    set.split(';').next().map(str::to_owned)
}

fn csrf_of(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

impl<'a> Browser<'a> {
    pub fn new(world: &'a World) -> Self {
        Self {
            world,
            cookie: String::new(),
        }
    }

    pub async fn get(&self, path: &str) -> Reply {
        let headers = [("cookie", self.cookie.as_str())];
        self.world.call("GET", path, &headers, "").await
    }

    async fn post_raw(&self, path: &str, body: String, more: &[(&str, &str)]) -> Reply {
        let mut headers = vec![
            ("cookie", self.cookie.as_str()),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        headers.extend(more);
        self.world.call("POST", path, &headers, body).await
    }

    /// Sends a form as a page of ours would.
    pub async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> Reply {
        let token = csrf_of(&self.get("/jobs").await.text);
        let mut all = pairs.to_vec();
        all.push(("csrf", &token));
        self.post_raw(path, form(&all), &[]).await
    }

    pub async fn login(&mut self, name: &str, password: &str) -> Reply {
        let body = form(&[("name", name), ("password", password)]);
        let reply = self.post_raw("/login", body, &[]).await;
        if let Some(cookie) = cookie_of(&reply) {
            self.cookie = cookie;
        }
        reply
    }
}

async fn user(world: &World, name: &str, role: Role) {
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"name": name, "password": PASSWORD, "role": role.as_str()});
    world.as_key(&root, "POST", "/v1/users", body).await.is(201);
}

pub async fn logged_in(world: &World, role: Role) -> Browser<'_> {
    let name = role.as_str();
    user(world, name, role).await;
    let mut browser = Browser::new(world);
    browser.login(name, PASSWORD).await.is(303);
    browser
}

pub const PAGES: [(&str, Role); 15] = [
    ("/", Role::Reader),
    ("/jobs", Role::Reader),
    ("/runs", Role::Reader),
    ("/dead", Role::Reader),
    ("/calendars", Role::Reader),
    ("/targets", Role::Reader),
    ("/lanes", Role::Reader),
    ("/settings", Role::Reader),
    ("/jobs/new", Role::Admin),
    ("/users", Role::Admin),
    ("/keys", Role::Admin),
    ("/secrets", Role::Admin),
    ("/audit", Role::Admin),
    ("/nodes", Role::Root),
    ("/tenants", Role::Root),
];

#[tokio::test]
async fn nobody_sees_a_page_before_logging_in_and_everything_leads_back() {
    let world = World::with_keys().await;
    let stranger = Browser::new(&world);
    for (path, _) in PAGES {
        let reply = stranger.get(path).await.is(303);
        assert!(
            reply.header("location").unwrap().starts_with("/login"),
            "{path}"
        );
    }
    let to = stranger.get("/jobs?q=a").await.is(303);
    assert_eq!(to.header("location"), Some("/login?next=%2Fjobs%3Fq%3Da"));
    user(&world, "ada", Role::Reader).await;
    let mut ada = Browser::new(&world);
    let body = form(&[
        ("name", "ada"),
        ("password", PASSWORD),
        ("next", "/jobs?q=a"),
    ]);
    let reply = ada.post_raw("/login", body, &[]).await.is(303);
    assert_eq!(reply.header("location"), Some("/jobs?q=a"));
    let set = reply.header("set-cookie").unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    ada.cookie = cookie_of(&reply).unwrap();
    let page = ada.get("/jobs").await.is(200);
    assert!(page.text.contains("No jobs yet"), "{}", page.text);
}

#[tokio::test]
async fn every_page_has_its_policy_and_neither_scripts_nor_styles_of_its_own() {
    let world = World::with_keys().await;
    let root = logged_in(&world, Role::Root).await;
    for (path, _) in PAGES.into_iter().chain([("/login", Role::Reader)]) {
        let page = root.get(path).await.is(200);
        let policy = page.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(!page.text.contains(" style="), "{path}");
        assert!(!page.text.contains("<style"), "{path}");
        assert!(!page.text.contains(" onclick"), "{path}");
        let scripts = page.text.matches("<script").count();
        assert_eq!(
            scripts,
            page.text.matches("<script src=\"/assets/").count(),
            "{path}"
        );
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(page.text.matches("<h1").count(), 1, "{path}");
    }
    let page = root.get("/jobs").await.text;
    let (_, style) = page.split_once("stylesheet\" href=\"").unwrap();
    let style = style.split('"').next().unwrap();
    let asset = Browser::new(&world).get(style).await.is(200);
    assert!(asset.header("cache-control").unwrap().contains("immutable"));
    Browser::new(&world)
        .get("/assets/console.css")
        .await
        .is(404);
}

#[tokio::test]
async fn a_wrong_password_and_a_name_that_nobody_has_are_answered_alike_and_slowed_down() {
    let world = World::with_keys().await;
    user(&world, "ada", Role::Reader).await;
    let mut browser = Browser::new(&world);
    let wrong = browser.login("ada", "not her password").await.is(401);
    let nobody = browser.login("bob", "not her password").await.is(401);
    assert_eq!(
        wrong.text.replace("ada", ""),
        nobody.text.replace("bob", "")
    );
    assert!(browser.cookie.is_empty());
    let mut locked = None;
    for _ in 0..10 {
        let reply = browser.login("ada", "not her password").await;
        if reply.status == StatusCode::TOO_MANY_REQUESTS {
            locked = Some(reply);
            break;
        }
    }
    let locked = locked.unwrap();
    assert!(
        locked.text.contains("Too many wrong passwords"),
        "{}",
        locked.text
    );
    // Not even the right one is looked at now.
    browser.login("ada", PASSWORD).await.is(429);
    browser.login("ada\r\nx", PASSWORD).await.is(401);
}

#[tokio::test]
async fn no_form_counts_without_the_token_of_its_session_or_from_another_origin() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"key": "nightly", "schedule": "@yearly", "target": OK});
    let job = world
        .as_key(&root, "POST", "/v1/jobs", body)
        .await
        .is(201)
        .get("id");
    let run = world
        .as_key(&root, "POST", &format!("/v1/jobs/{job}/run"), Value::Null)
        .await;
    let run = run.is(201).get("id");
    let admin = logged_in(&world, Role::Root).await;
    let token = csrf_of(&admin.get("/jobs").await.text);
    let before = world.snapshot();
    let mut paths: Vec<String> = ["pause", "resume", "run", "delete", "revert", "edit"]
        .map(|verb| format!("/jobs/{job}/{verb}"))
        .to_vec();
    paths.extend(["cancel", "replay", "wake"].map(|verb| format!("/runs/{run}/{verb}")));
    let others = [
        "/jobs/new",
        "/jobs/preview",
        "/dead/replay",
        "/replays/replay_0192f0c1a2b37def8123456789abcdef/stop",
        "/keys/revoke",
        "/logout",
        "/tenant",
        "/zone",
    ];
    paths.extend(others.map(str::to_owned));
    for path in &paths {
        for wrong in ["", "0", &"0".repeat(64)] {
            let reply = admin.post_raw(path, form(&[("csrf", wrong)]), &[]).await;
            assert_eq!(reply.status, 403, "{path}: {}", reply.text);
        }
        for far in [
            ("origin", "https://evil.example"),
            ("sec-fetch-site", "cross-site"),
        ] {
            let headers = [far, ("host", "127.0.0.1")];
            let reply = admin
                .post_raw(path, form(&[("csrf", &token)]), &headers)
                .await;
            assert_eq!(reply.status, 403, "{path}: {}", reply.text);
        }
    }
    let login = form(&[("name", "root"), ("password", PASSWORD)]);
    let headers = [("sec-fetch-site", "cross-site")];
    let reply = Browser::new(&world)
        .post_raw("/login", login, &headers)
        .await;
    assert_eq!(reply.status, 403);
    admin.get("/jobs").await.is(200);
    let settled = |text: &str| text.matches("Paused").count();
    assert_eq!(settled(&world.snapshot()), settled(&before));
}

#[tokio::test]
async fn a_browser_that_speaks_tls_gets_a_cookie_for_nothing_else() {
    let world = World::with_keys().await;
    user(&world, "ada", Role::Reader).await;
    let body = form(&[("name", "ada"), ("password", PASSWORD)]);
    let headers = [("origin", "https://a.example"), ("host", "a.example")];
    let browser = Browser::new(&world);
    let reply = browser.post_raw("/login", body, &headers).await.is(303);
    let set = reply.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-punctual_session="), "{set}");
    assert!(set.ends_with("; Secure"), "{set}");
    let secure = Browser {
        world: &world,
        cookie: cookie_of(&reply).unwrap(),
    };
    secure.get("/jobs").await.is(200);
}

#[tokio::test]
async fn a_login_makes_a_new_session_and_ends_the_one_before() {
    let world = World::with_keys().await;
    user(&world, "ada", Role::Reader).await;
    let mut ada = Browser::new(&world);
    ada.login("ada", PASSWORD).await.is(303);
    let first = ada.cookie.clone();
    ada.login("ada", PASSWORD).await.is(303);
    assert_ne!(ada.cookie, first);
    ada.get("/jobs").await.is(200);
    let old = Browser {
        world: &world,
        cookie: first,
    };
    old.get("/jobs").await.is(303);
    ada.post("/logout", &[]).await.is(303);
    ada.get("/jobs").await.is(303);
}

#[tokio::test]
async fn a_session_ends_when_it_is_idle_when_it_is_old_and_with_another_password() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    user(&world, "ada", Role::Reader).await;
    let ada = world
        .store
        .find_user(&model::UserName::new("ada").unwrap())
        .await
        .unwrap()
        .unwrap();
    let begin = async |number: u8, created: Duration, used: Duration| {
        let token = format!("{number:02x}").repeat(32);
        let session = Session {
            digest: Sha256::digest(token.as_bytes()).into(),
            holder: Holder::User(ada.id),
            tenant: TenantId::DEFAULT,
            created_at: now().minus(created),
            used_at: now().minus(used),
        };
        world.store.begin_session(&session, None).await.unwrap();
        Browser {
            world: &world,
            cookie: format!("punctual_session={token}"),
        }
    };
    let minute = Duration::from_secs(60);
    let idle = begin(1, limits::SESSION_IDLE, limits::SESSION_IDLE).await;
    idle.get("/jobs").await.is(303);
    let old = begin(2, limits::SESSION_KEEP, minute).await;
    old.get("/jobs").await.is(303);
    let good = begin(
        3,
        limits::SESSION_KEEP - minute,
        limits::SESSION_IDLE - minute,
    )
    .await;
    good.get("/jobs").await.is(200);
    // It was used, so that it is not idle any more.
    let kept = world
        .store
        .get_session(Sha256::digest("03".repeat(32)).into())
        .await
        .unwrap();
    assert!(kept.unwrap().used_at > now().minus(minute));
    let body = json!({"password": "another horse battery"});
    world
        .as_key(&root, "PATCH", "/v1/users/ada", body)
        .await
        .is(200);
    good.get("/jobs").await.is(303);
}

#[tokio::test]
async fn what_one_may_not_do_is_not_shown_and_is_refused() {
    let world = World::with_keys().await;
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"key": "nightly", "schedule": "@yearly", "target": OK});
    let job = world
        .as_key(&root, "POST", "/v1/jobs", body)
        .await
        .is(201)
        .get("id");
    let verbs = [
        ("pause", Role::Operator),
        ("run", Role::Operator),
        ("delete", Role::Admin),
        ("revert", Role::Admin),
    ];
    for role in model::user::USER_ROLES {
        let browser = logged_in(&world, role).await;
        for (path, needed) in PAGES {
            let expected = if role.allows(needed) { 200 } else { 403 };
            let page = browser.get(path).await.is(expected);
            if expected == 403 {
                assert!(page.text.contains("role-insufficient"), "{}", page.text);
            }
        }
        let home = browser.get("/").await.text;
        for (path, needed) in PAGES.into_iter().filter(|(path, _)| *path != "/jobs/new") {
            let link = format!("<a href=\"{path}\"");
            assert_eq!(home.contains(&link), role.allows(needed), "{role} {path}");
        }
        let page = browser.get(&format!("/jobs/{job}")).await.is(200).text;
        assert_eq!(
            page.contains("Run now"),
            role.allows(Role::Operator),
            "{role}"
        );
        assert_eq!(
            page.contains(&format!("/jobs/{job}/edit")),
            role.allows(Role::Admin),
            "{role}"
        );
        for (verb, needed) in verbs {
            if !role.allows(needed) {
                let path = format!("/jobs/{job}/{verb}");
                browser.post(&path, &[]).await.is(403);
            }
        }
    }
}

#[tokio::test]
async fn another_tenant_s_things_are_not_there_and_a_user_of_two_switches() {
    let world = World::with_keys().await;
    let other = TenantId::from_bytes([7; 16]);
    let theirs = world.key(other, Role::Admin).await;
    let body = json!({"key": "theirs", "schedule": "@yearly", "target": OK});
    let job = world
        .as_key(&theirs, "POST", "/v1/jobs", body)
        .await
        .is(201)
        .get("id");
    let run = world
        .as_key(&theirs, "POST", &format!("/v1/jobs/{job}/run"), Value::Null)
        .await;
    let run = run.is(201).get("id");
    let ours = logged_in(&world, Role::Root).await;
    for path in [
        format!("/jobs/{job}"),
        format!("/jobs/{job}/json"),
        format!("/runs/{run}"),
    ] {
        let page = ours.get(&path).await.is(404);
        assert!(!page.text.contains("theirs"), "{}", page.text);
    }
    ours.post(&format!("/jobs/{job}/pause"), &[]).await.is(404);
    assert!(!ours.get("/jobs").await.text.contains("theirs"));
    let key = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"name": "both", "password": PASSWORD, "roles": {"default": "reader", "other": "operator"}});
    world.as_key(&key, "POST", "/v1/users", body).await.is(201);
    let mut both = Browser::new(&world);
    both.login("both", PASSWORD).await.is(303);
    assert!(!both.get("/jobs").await.text.contains("theirs"));
    both.post("/tenant", &[("tenant", "other")]).await.is(303);
    assert!(both.get("/jobs").await.text.contains("theirs"));
    both.post(&format!("/jobs/{job}/pause"), &[]).await.is(303);
    both.post("/tenant", &[("tenant", "default")]).await.is(303);
    both.get(&format!("/jobs/{job}")).await.is(404);
    both.post("/tenant", &[("tenant", "nowhere")]).await.is(303);
    both.get("/jobs").await.is(200);
}

#[tokio::test]
async fn a_link_logs_in_once_as_the_holder_of_its_key() {
    let world = World::with_keys().await;
    let operator = world.key(TenantId::DEFAULT, Role::Operator).await;
    let link = world
        .as_key(&operator, "POST", "/v1/console/links", Value::Null)
        .await
        .is(201);
    let path = link.get("path");
    let token = path.split_once("token=").unwrap().1.to_owned();
    let mut browser = Browser::new(&world);
    // Who only looks at it does not use it up.
    for _ in 0..2 {
        let opened = [("sec-fetch-site", "none")];
        let page = world.call("GET", &path, &opened, "").await.is(200);
        assert!(page.header("set-cookie").is_none() && page.text.contains("data-auto"));
    }
    let body = form(&[("token", &token)]);
    let opened = browser
        .post_raw("/login/link", body.clone(), &[])
        .await
        .is(303);
    browser.cookie = cookie_of(&opened).unwrap();
    assert!(!browser.cookie.contains(&token));
    let home = browser.get("/jobs").await.is(200);
    assert!(home.text.contains("operator of default"), "{}", home.text);
    browser.get("/keys").await.is(403);
    let again = Browser::new(&world)
        .post_raw("/login/link", body, &[])
        .await
        .is(401);
    assert!(again.text.contains("has been used"), "{}", again.text);
    // With the key goes the session.
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let id = operator.split('_').nth(1).unwrap();
    world
        .as_key(&root, "DELETE", &format!("/v1/keys/key_{id}"), Value::Null)
        .await
        .is(200);
    browser.get("/jobs").await.is(303);
}

#[tokio::test]
async fn where_no_key_is_required_the_console_is_open_but_to_other_origins() {
    let world = World::new().await;
    let browser = Browser::new(&world);
    browser.get("/").await.is(200);
    let to = browser.get("/login").await.is(303);
    assert_eq!(to.header("location"), Some("/"));
    let link = world.post_empty("/v1/console/links").await.is(201);
    assert_eq!(link.get("path"), "/");
    let job = world.job(OK).await;
    let headers = [("origin", "https://evil.example"), ("host", "127.0.0.1")];
    let path = format!("/jobs/{job}/pause");
    let far = browser.post_raw(&path, form(&[]), &headers).await;
    assert_eq!(far.status, 403);
    browser.post_raw(&path, form(&[]), &[]).await.is(303);
}

#[tokio::test]
async fn a_user_of_a_tenant_that_goes_is_not_let_in() {
    let world = World::with_keys().await;
    let tenant = Tenant::new(
        TenantId::from_bytes([9; 16]),
        TenantName::new("going").unwrap(),
        now(),
    );
    world.store.create_tenant(&tenant).await.unwrap();
    let root = world.key(TenantId::DEFAULT, Role::Root).await;
    let body = json!({"name": "ada", "password": PASSWORD, "roles": {"going": "admin"}});
    world.as_key(&root, "POST", "/v1/users", body).await.is(201);
    let mut ada = Browser::new(&world);
    ada.login("ada", PASSWORD).await.is(303);
    ada.get("/jobs").await.is(200);
    let keys = store::ValidKeys::Revoke;
    let marked = world.store.delete_tenant(tenant.id, now(), keys).await;
    marked.unwrap();
    ada.get("/jobs").await.is(303);
    ada.login("ada", PASSWORD).await.is(401);
}

#[tokio::test]
async fn links_logins_and_logouts_are_in_the_audit_log() {
    let world = World::with_keys().await;
    let admin = world.key(TenantId::DEFAULT, Role::Admin).await;
    let link = world
        .as_key(&admin, "POST", "/v1/console/links", Value::Null)
        .await
        .is(201);
    let token = link.get("path").split_once("token=").unwrap().1.to_owned();
    let mut browser = Browser::new(&world);
    let body = form(&[("token", &token)]);
    let opened = browser.post_raw("/login/link", body, &[]).await.is(303);
    browser.cookie = cookie_of(&opened).unwrap();
    browser.post("/logout", &[]).await.is(303);
    let log = world
        .as_key(&admin, "GET", "/v1/audit", Value::Null)
        .await
        .is(200);
    let key = format!("key_{}", admin.split('_').nth(1).unwrap());
    let entries = log.json()["items"].as_array().unwrap().clone();
    let of_key = |it: &&Value| it["subject"] == key && it["action"] != "key.create";
    let entries = entries.iter().rev().filter(of_key);
    let done: Vec<_> = entries.map(|it| (&it["action"], &it["key"])).collect();
    let expected = ["user.link", "user.login", "user.logout"].map(Value::from);
    let key = Value::from(key);
    assert_eq!(done, expected.each_ref().map(|action| (action, &key)));
    assert!(!log.text.contains(&token), "{}", log.text);
}
