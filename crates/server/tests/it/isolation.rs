//! The walk: every operation of the contract, called by everyone who may and by everyone who may not. What is expected
//! is in `isolation.txt`, and the guide's table is made from that.

use std::collections::BTreeMap;
use std::io::Write;

use futures_util::stream::{StreamExt, iter};
use model::{Role, TenantId};
use serde_json::{Value, json};
use server::Minted;
use store::postgres::server::PgServer;

use crate::access::{expired, now, revoked};
use crate::promised::contract;
use crate::world::{OK, Reply, World};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/access.md");

/// So many operations are walked side by side, each in a world of its own.
const AT_ONCE: usize = 8;

/// What an operation answers to whom.
struct Expected {
    operation: &'static str,
    needs: Needs,
    /// To an admin of another tenant.
    other: u16,
}

/// Whom an operation answers.
#[derive(Clone, Copy, PartialEq)]
enum Needs {
    /// Everyone, also without a key.
    Nothing,
    /// Whoever has a valid key, whatever its role.
    AnyKey,
    /// Whoever has the token of the attempt, which no key stands for.
    Token,
    /// Whoever has at least this role.
    Role(Role),
}

impl Needs {
    fn read(word: &str) -> Self {
        match word {
            "open" => Self::Nothing,
            "any" => Self::AnyKey,
            "token" => Self::Token,
            role => Self::Role(Role::parse(role).unwrap()),
        }
    }

    fn admits(self, role: Role) -> bool {
        match self {
            Self::Nothing | Self::AnyKey | Self::Token => true,
            Self::Role(needed) => role.allows(needed),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Nothing => "no key is needed",
            Self::AnyKey => "any key",
            Self::Token => "the token of the attempt, no key",
            Self::Role(role) => role.as_str(),
        }
    }
}

fn expected() -> Vec<Expected> {
    let lines = include_str!("isolation.txt").lines();
    let rows = lines.filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let [operation, needs, other] = *line.split_whitespace().collect::<Vec<_>>() else {
            panic!("{line}");
        };
        Expected {
            operation,
            needs: Needs::read(needs),
            other: other.parse().unwrap(),
        }
    };
    rows.map(read).collect()
}

/// Every operation of the contract by its name: method and path.
fn operations() -> BTreeMap<String, (String, String)> {
    let paths = contract()["paths"].as_object().unwrap();
    let of_path = paths.iter().flat_map(|(path, of_path)| {
        let methods = of_path.as_object().unwrap().iter();
        methods.map(move |(method, operation)| {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            (name, (method.to_uppercase(), path.clone()))
        })
    });
    of_path.collect()
}

/// One of everything that a path can name.
struct Things {
    job: String,
    run: String,
    key: String,
    signing: String,
    replay: String,
    /// The job's own key, and the name of a calendar, of an alert, of a secret and of a user.
    names: [&'static str; 2],
    tenant: &'static str,
}

const JOB_KEY: &str = "nightly";
const CALENDAR: &str = "holidays";

impl Things {
    async fn make(world: &World, admin: &str) -> Self {
        let make = async |path: &str, body: Value| {
            let reply = world.as_key(admin, "POST", path, body).await;
            reply.is(201).get("id")
        };
        let calendar = json!({"yearly": ["12-25"]});
        let path = format!("/v1/calendars/{CALENDAR}");
        world.as_key(admin, "PUT", &path, calendar).await.is(201);
        let alert = json!({"on": "dead", "url": OK});
        let path = format!("/v1/alerts/{CALENDAR}");
        world.as_key(admin, "PUT", &path, alert).await.is(201);
        let secret = json!({"value": "a value", "hosts": ["a.example"]});
        let path = format!("/v1/secrets/{CALENDAR}");
        world.as_key(admin, "PUT", &path, secret).await.is(201);
        let user = json!({"name": CALENDAR, "password": "correct horse battery", "role": "reader"});
        world.as_key(admin, "POST", "/v1/users", user).await.is(201);
        let job = json!({"key": JOB_KEY, "schedule": "@yearly", "target": OK});
        let job = make("/v1/jobs", job).await;
        let run = make(&format!("/v1/jobs/{job}/run"), Value::Null).await;
        let key = make("/v1/keys", json!({"role": "reader"})).await;
        let signing = make("/v1/signing-secrets", Value::Null).await;
        let body = json!({"filter": {"from": "2020-01-01T00:00:00Z"}});
        let replay = world.as_key(admin, "POST", "/v1/replays", body).await;
        let replay = replay.is(202).get("id");
        let names = [JOB_KEY, CALENDAR];
        Self {
            job,
            run,
            key,
            signing,
            replay,
            names,
            tenant: "default",
        }
    }

    /// What nobody has.
    fn nowhere() -> Self {
        let id = |kind: &str| format!("{kind}_0192f0c1a2b37def8123456789abcdef");
        Self {
            job: id("job"),
            run: id("run"),
            key: id("key"),
            signing: "sign_1_7".to_owned(),
            replay: id("replay"),
            names: ["nowhere", "nowhere"],
            tenant: "nowhere",
        }
    }

    /// The path with these in it; a job may be named by its key as well.
    fn paths(&self, template: &str) -> Vec<String> {
        let [job_key, calendar] = self.names;
        let id = if template.starts_with("/v1/jobs") {
            &self.job
        } else if template.starts_with("/v1/runs") {
            &self.run
        } else if template.starts_with("/v1/signing-secrets") {
            &self.signing
        } else if template.starts_with("/v1/replays") {
            &self.replay
        } else {
            &self.key
        };
        let name = if template.starts_with("/v1/tenants") {
            self.tenant
        } else {
            calendar
        };
        let path = template
            .replace("{key}", job_key)
            .replace("{name}", name)
            .replace("{version}", "1");
        let mut paths = vec![path.replace("{id}", id)];
        if template.starts_with("/v1/jobs/{id}") {
            paths.push(path.replace("{id}", &format!("key:{job_key}")));
        }
        if template.ends_with("/explain") {
            paths.iter_mut().for_each(|path| path.push_str("?at=0"));
        }
        if template.ends_with("/events") {
            // It goes on otherwise.
            paths
                .iter_mut()
                .for_each(|path| path.push_str("?events_max=1"));
        }
        if template.ends_with("/second") {
            let soon = now().plus(std::time::Duration::from_secs(60));
            paths
                .iter_mut()
                .for_each(|path| path.push_str(&format!("?at={soon}")));
        }
        paths
    }
}

/// What can be named besides in a path: operation, query, body, and what an admin of another tenant gets. None of them
/// shows anything of the tenant whose things these are, and all are answered as for what nobody has.
fn elsewhere(things: &Things) -> Vec<(&'static str, String, Value, u16)> {
    let Things { job, run, key, .. } = things;
    let [job_key, calendar] = things.names;
    let query = |name: &'static str, text: String, status| (name, text, Value::Null, status);
    let tenant = things.tenant;
    let for_tenant = json!({"role": "reader", "tenant": tenant});
    let with_calendar = json!({"schedule": "@daily", "target": OK, "exclude": [calendar]});
    let preview = json!({"schedule": "@daily", "exclude": [calendar]});
    let header = format!("{{{{ secret('{calendar}') }}}}");
    let with_secret = json!({
        "schedule": "@daily",
        "target": {"http": {"url": "https://a.example/", "headers": {"x-key": header}}},
    });
    let of_job = json!({"filter": {"job": job}});
    let of_key = json!({"filter": {"job": format!("key:{job_key}")}});
    vec![
        query("list_runs", format!("?job={job}"), 404),
        query("list_runs", format!("?job=key:{job_key}"), 404),
        query("group_runs", format!("?job={job}"), 404),
        query("watch_events", format!("?run={run}&events_max=1"), 404),
        query("group_runs", format!("?job=key:{job_key}"), 404),
        query("list_audit", format!("?subject={job}"), 200),
        query("list_audit", format!("?subject={run}"), 200),
        query("list_audit", format!("?key={key}"), 200),
        query("list_audit", format!("?tenant={tenant}"), 404),
        query("export_audit", format!("?subject={job}"), 200),
        query("export_audit", format!("?tenant={tenant}"), 404),
        query("list_keys", format!("?tenant={tenant}"), 404),
        query("get_key", format!("?tenant={tenant}"), 404),
        query("revoke_key", format!("?tenant={tenant}"), 404),
        ("create_key", String::new(), for_tenant, 404),
        query("list_jobs", format!("?q={job_key}"), 200),
        ("create_replay", String::new(), of_job, 404),
        ("create_replay", String::new(), of_key, 404),
        ("create_job", String::new(), with_calendar, 422),
        ("preview_schedule", String::new(), preview, 422),
        ("create_job", String::new(), with_secret, 422),
    ]
}

#[tokio::test]
async fn what_a_query_or_a_body_names_is_of_ones_own_tenant() {
    queries_and_bodies(World::with_keys().await).await;
    queries_and_bodies(World::with_keys_in_a_file().await).await;
    if let Some(database) = database() {
        queries_and_bodies(World::with_keys_in_a_database(&database).await).await;
    }
}

async fn queries_and_bodies(world: World) {
    let admin = world.key(TenantId::DEFAULT, Role::Admin).await;
    let things = Things::make(&world, &admin).await;
    let stranger = world.key(TenantId::from_bytes([7; 16]), Role::Admin).await;
    world.wait_ready().await;
    let (before, operations) = (world.all_of(&admin).await, operations());
    let nowhere = elsewhere(&Things::nowhere());
    for (theirs, nowhere) in elsewhere(&things).into_iter().zip(nowhere) {
        let (operation, query, body, status) = theirs;
        let (method, path) = &operations[operation];
        let call = async |query: &str, body: Value| {
            let path = path.replace("{id}", &things.key);
            let path = format!("{path}{query}");
            world.as_key(&stranger, method, &path, body).await
        };
        let reply = call(&query, body).await;
        let what = format!("{operation}{query}: {}", reply.text);
        assert_eq!(reply.status.as_u16(), status, "{what}");
        let none = call(&nowhere.1, nowhere.2).await;
        let plain = |reply: &Reply| {
            let names = [JOB_KEY, CALENDAR, "default"];
            let ids = [&things.job, &things.run, &things.key];
            let of_nobody = Things::nowhere();
            let nobody = [&of_nobody.job, &of_nobody.run, &of_nobody.key];
            let text = ids
                .iter()
                .zip(nobody)
                .fold(reply.text.clone(), |text, (id, none)| {
                    text.replace(id.as_str(), none)
                });
            names
                .iter()
                .fold(text, |text, name| text.replace(name, "nowhere"))
        };
        assert_eq!(plain(&reply), plain(&none), "{what}");
    }
    assert_eq!(world.all_of(&admin).await, before);
}

/// A body that the operation would take.
fn body(operation: &str) -> String {
    match operation {
        "create_job" | "create_jobs" | "put_job_by_key" => {
            json!({"schedule": "@yearly", "target": OK}).to_string()
        }
        "create_replay" => json!({"filter": {}}).to_string(),
        "backfill_job" => json!({"from": "2020-01-01T00:00:00Z"}).to_string(),
        "revert_job" => json!({"to": 1}).to_string(),
        "patch_job" => json!({"timeout": "9s"}).to_string(),
        "preview_schedule" => json!({"schedule": "@daily"}).to_string(),
        "create_calendar" => json!({"name": "other", "yearly": ["12-26"]}).to_string(),
        "put_calendar" => json!({"yearly": ["12-26"]}).to_string(),
        "put_alert" => json!({"on": "dead", "url": OK}).to_string(),
        "mute_alert" => json!({"until": null}).to_string(),
        "create_secret" => {
            json!({"name": "other", "value": "a value", "hosts": ["a.example"]}).to_string()
        }
        "put_secret" => json!({"value": "a value", "hosts": ["a.example"]}).to_string(),
        "create_tenant" => json!({"name": "another"}).to_string(),
        "patch_tenant" => json!({"note": "a"}).to_string(),
        "create_user" => {
            json!({"name": "other", "password": "correct horse battery", "role": "reader"})
                .to_string()
        }
        "patch_user" => json!({"role": "operator"}).to_string(),
        "create_key" => json!({"role": "reader"}).to_string(),
        "report_run" => json!({"outcome": "succeeded"}).to_string(),
        _ => String::new(),
    }
}

struct Walk {
    world: World,
    operation: String,
    method: String,
}

impl Walk {
    async fn call(&self, key: Option<&str>, path: &str) -> Reply {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let kind = if self.operation == "create_jobs" {
            "application/x-ndjson"
        } else {
            "application/json"
        };
        let mut headers = vec![("content-type", kind)];
        headers.extend(
            bearer
                .iter()
                .map(|bearer| ("authorization", bearer.as_str())),
        );
        let body = body(&self.operation);
        self.world.call(&self.method, path, &headers, body).await
    }

    /// Whoever has no valid key.
    async fn strangers(&self, path: &str, is_open: bool) {
        let keys = [
            None,
            Some(Minted::new(TenantId::DEFAULT, Role::Root, now()).text),
            Some(self.world.put_key(revoked(TenantId::DEFAULT)).await),
            Some(self.world.put_key(expired(TenantId::DEFAULT)).await),
        ];
        for key in keys {
            let reply = self.call(key.as_deref(), path).await;
            let operation = &self.operation;
            assert_eq!(reply.status == 401, !is_open, "{operation}: {}", reply.text);
        }
    }
}

async fn walk(world: World, expected: Expected, method: &str, template: &str) {
    let admin = world.key(TenantId::DEFAULT, Role::Admin).await;
    let things = Things::make(&world, &admin).await;
    let (other, operation) = (TenantId::from_bytes([7; 16]), expected.operation);
    let stranger = world.key(other, Role::Admin).await;
    world.wait_ready().await;
    let walk = Walk {
        world,
        operation: operation.to_owned(),
        method: method.to_owned(),
    };
    let before = walk.world.all_of(&admin).await;
    let nowhere = Things::nowhere().paths(template);
    for (path, nowhere) in things.paths(template).into_iter().zip(nowhere) {
        walk.strangers(&path, expected.needs == Needs::Nothing)
            .await;
        let reply = walk.call(Some(&stranger), &path).await;
        assert_eq!(reply.status, expected.other, "{operation}: {}", reply.text);
        if [403, 404].contains(&expected.other) {
            // What another has answers as what nobody has.
            let names = |text: &str| {
                text.replace(JOB_KEY, "nowhere")
                    .replace(CALENDAR, "nowhere")
            };
            let none = walk.call(Some(&stranger), &nowhere).await;
            assert_eq!(names(&reply.text), none.text, "{operation}");
        }
        for id in [&things.job, &things.run, &things.key, &things.replay] {
            assert!(
                !reply.text.contains(id.as_str()),
                "{operation}: {}",
                reply.text
            );
        }
    }
    // Those who may not come first: nothing has changed after them.
    let mut roles = Role::ALL;
    roles.sort_by_key(|role| expected.needs.admits(*role));
    for role in roles {
        let is_below = !expected.needs.admits(role);
        let key = walk.world.key(TenantId::DEFAULT, role).await;
        if is_below {
            assert_eq!(walk.world.all_of(&admin).await, before, "{operation}");
        }
        for path in things.paths(template) {
            let status = walk.call(Some(&key), &path).await.status.as_u16();
            assert_eq!(status == 403, is_below, "{operation} as {role}: {status}");
            assert!(
                (status == 401) == (expected.needs == Needs::Token) && status < 500,
                "{operation} as {role}: {status}"
            );
        }
    }
    // Its node would go on otherwise.
    drop(walk.world.crash());
}

impl World {
    async fn wait_ready(&self) {
        for _ in 0..500 {
            if self.get("/readyz").await.status == 200 {
                return;
            }
            crate::world::pause(10).await;
        }
        panic!("the node is not ready");
    }

    /// Jobs, calendars and runs as their tenant sees them.
    async fn all_of(&self, admin: &str) -> Vec<String> {
        let mut all = Vec::new();
        for path in ["/v1/jobs", "/v1/calendars", "/v1/alerts", "/v1/secrets"] {
            all.push(self.as_key(admin, "GET", path, Value::Null).await.text);
        }
        let runs = self.as_key(admin, "GET", "/v1/runs", Value::Null).await;
        let runs = runs.json()["items"].as_array().unwrap().len();
        all.push(runs.to_string());
        all
    }
}

#[tokio::test]
async fn every_operation_answers_to_everyone_as_the_table_says() {
    walk_all(World::with_keys).await;
}

#[tokio::test]
async fn every_operation_answers_so_over_a_file_too() {
    walk_all(World::with_keys_in_a_file).await;
}

#[tokio::test]
async fn every_operation_answers_so_over_a_database_too() {
    let Some(database) = database() else { return };
    walk_all(async || World::with_keys_in_a_database(&database).await).await;
}

/// The database that tests share. Where there can be none the test is skipped, but for a run that must be complete.
fn database() -> Option<PgServer> {
    let found = PgServer::shared();
    if let Err(why) = &found {
        assert!(
            std::env::var_os("PUNCTUAL_TEST_COMPLETE").is_none(),
            "{why}, and this run must be complete"
        );
        let said = format!("SKIPPED, {why}: isolation over a database\n");
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
    found.ok()
}

async fn walk_all(world: impl AsyncFn() -> World) {
    let mut operations = operations();
    let mut walks = Vec::new();
    for expected in expected() {
        let of = operations.remove(expected.operation);
        let (method, path) = of.unwrap_or_else(|| panic!("no {}", expected.operation));
        walks.push((expected, method, path));
    }
    // Most of the time a node waits for its first beats.
    let walk = async |(expected, method, path): (Expected, String, String)| {
        walk(world().await, expected, &method, &path).await;
    };
    iter(walks).for_each_concurrent(AT_ONCE, walk).await;
    assert!(
        operations.is_empty(),
        "not in isolation.txt: {operations:?}"
    );
}

fn table() -> String {
    let operations = operations();
    let mut table = "| operation | role | another tenant's |\n| --- | --- | --- |\n".to_owned();
    for Expected {
        operation,
        needs,
        other,
    } in expected()
    {
        let (method, path) = &operations[operation];
        let needs = needs.text();
        let other = match other {
            404 => "404",
            403 if path.contains('{') => "403",
            _ => "",
        };
        table.push_str(&format!("| `{method} {path}` | {needs} | {other} |\n"));
    }
    table
}

#[test]
fn the_guide_names_the_role_of_every_operation() {
    let guide = std::fs::read_to_string(GUIDE).unwrap();
    let (before, rest) = guide.split_once("isolation.txt -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    let made = format!("{before}isolation.txt -->\n{}<!-- end -->{after}", table());
    if std::env::var_os("PUNCTUAL_WRITE_DOCS").is_some() {
        std::fs::write(GUIDE, &made).unwrap();
    } else {
        assert!(
            guide == made,
            "docs/guides/access.md is not current: run make docs"
        );
    }
}
