//! Planted secrets, through every door, on both stores: targets that fail and targets that do not send them back, and then
//! logs, every answer, the command line and the data itself are searched for them.
//!
//! What is kept in clear by design is named here, and in SECURITY.md: values that somebody writes into a header or an address
//! of a target stand in the job's definition and in its versions, masked wherever they are shown; and the first key and
//! the master key stand in files of their own, which only their owner can read.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use store::postgres::server::{Mode, PgServer};
use tempfile::TempDir;

use crate::planted_doors::{Doors, IN_PATH};
use crate::planted_more::{IN_ALERT, IN_ENV};
use crate::secrets::{dead, files_with, holds, root, set, text};
use crate::shell::allowing;
use crate::support::{Answer, Http, KEYS, Receiver, Server, skip, wait_for};

/// The value of a secret: kept sealed, and nowhere else.
const SECRET: &str = "planted+vault/secret=1";
/// The same as others may send it back.
const FORMS: [&str; 2] = [
    "planted%2Bvault%2Fsecret%3D1",
    "cGxhbnRlZCt2YXVsdC9zZWNyZXQ9",
];
/// What stands in a target: kept in clear in its definition.
const BEARER: &str = "planted-bearer-7c1f";
const HEADER: &str = "planted-header-9f2e";
const PARAMETER: &str = "planted-parameter-5d3b";
/// What somebody sent that was refused.
const REFUSED: &str = "planted-refused-4a6d";
const MASTER: &str = "beefcafe00112233445566778899aabbccddeeff00112233445566778899aabb";

/// The tables that hold definitions.
const CLEAR: [&str; 2] = ["defs", "job_versions"];

/// Says back all that it was sent, in more than one form.
fn parrot(status: u16) -> Receiver {
    Receiver::answering(move |delivery| {
        let sent = |name: &str| delivery.headers.get(name).cloned().unwrap_or_default();
        let all = [
            sent("authorization"),
            sent("x-api-key"),
            delivery.path.clone(),
        ]
        .join(" ");
        let percent = all
            .replace('+', "%2B")
            .replace('/', "%2F")
            .replace('=', "%3D");
        Answer::status(status).saying(&format!("got {all} and {percent}"))
    })
}

fn job(url: &str, authorization: &str) -> Value {
    json!({"schedule": "@yearly", "retry": {"attempts_max": 1}, "overlap": "allow",
        "target": {"http": {"url": format!("{url}?token={PARAMETER}"), "headers": {
            "Authorization": authorization, "X-Api-Key": HEADER}}}})
}

/// A job with secrets in all places, and a run of it that has ended.
fn ended(http: &Http, url: &str, authorization: &str) -> (String, String) {
    let made = http.post("/v1/jobs", &job(url, authorization));
    assert_eq!(made.status, 201, "{}", String::from_utf8_lossy(&made.body));
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let run = http.post(&format!("/v1/jobs/{id}/run"), &json!({})).json();
    let run = run["id"].as_str().unwrap().to_owned();
    wait_for("the run to end", || {
        let state = http.get(&format!("/v1/runs/{run}")).json()["state"].clone();
        (state == "dead" || state == "succeeded").then_some(())
    });
    (id, run)
}

/// What is refused is not repeated.
fn refused(http: &Http) -> Vec<String> {
    let secret = json!({"name": "bad", "value": REFUSED, "hosts": ["not a host"]});
    let key = json!({"role": "reader", "label": "a", "key": REFUSED});
    let mut header = job("http://127.0.0.1:9/", BEARER);
    header["target"]["http"]["headers"]["Authorization"] = format!("Bearer {REFUSED}\n").into();
    let mut answers = Vec::new();
    for (path, body) in [
        ("/v1/secrets", secret),
        ("/v1/keys", key),
        ("/v1/jobs", header),
    ] {
        let reply = http.post(path, &body);
        assert_eq!(reply.status, 422, "{path}");
        answers.push(String::from_utf8_lossy(&reply.body).into_owned());
    }
    answers
}

/// Every answer that can be had about a job and a run, and what goes around them.
fn answers(http: &Http, (job, run): (&str, &str)) -> Vec<String> {
    let of_job = [
        "",
        "/versions",
        "/versions/1",
        "/runs",
        "/slots",
        "/explain?at=2030-01-01T00:00:00Z",
    ];
    let mut paths = of_job.map(|rest| format!("/v1/jobs/{job}{rest}")).to_vec();
    paths.push(format!("/v1/runs/{run}"));
    let all = [
        "/v1/jobs",
        "/v1/runs",
        "/v1/audit?limit=1000",
        "/v1/audit/export",
        "/v1/keys",
        "/v1/secrets",
        "/v1/secrets/api",
        "/v1/tenants",
        "/v1/tenants/default",
        "/v1/calendars",
        "/v1/nodes",
        "/metrics",
        "/version",
        "/healthz",
    ];
    paths.extend(all.map(str::to_owned));
    paths.iter().map(|path| text(&http.get(path))).collect()
}

/// The same from a terminal, for people and for programs.
fn printed(server: &Server, (job, run): (&str, &str)) -> Vec<String> {
    let lines = [
        "job list".to_owned(),
        format!("job show {job}"),
        format!("job show {job} --version 1"),
        format!("job versions {job}"),
        format!("job slots {job}"),
        format!("run show {run}"),
        "run list".to_owned(),
        "audit list".to_owned(),
        "key list".to_owned(),
        "secret list".to_owned(),
        "secret show api".to_owned(),
        "tenant show default".to_owned(),
        "node list".to_owned(),
    ];
    let mut printed = Vec::new();
    for line in lines {
        printed.push(server.printed(&line));
        printed.push(server.printed(&format!("{line} --json")));
    }
    printed
}

/// What is planted, and then all that was said, and what must be found nowhere.
fn plant(server: &Server) -> (Vec<String>, Vec<String>) {
    let http = root(server);
    set(
        server,
        &["api", "--host", "127.0.0.1"],
        &format!("{SECRET}\n"),
    );
    let key = server.printed("key create --role reader --label 'a label'");
    let key = key.trim().to_owned();
    assert_eq!(server.http().with_key(&key).get("/v1/jobs").status, 200);
    let (fails, succeeds) = (parrot(400), parrot(200));
    let mut said = refused(&http);
    for (target, authorization) in [
        (&fails, "Bearer {{ secret('api') }}".to_owned()),
        (&succeeds, "Bearer {{ secret('api') }}".to_owned()),
        (&fails, format!("Bearer {BEARER}")),
        (&succeeds, format!("Bearer {BEARER}")),
    ] {
        let (job, run) = ended(&http, &target.url("/hook"), &authorization);
        assert!(
            target
                .deliveries()
                .iter()
                .any(|it| it.path.contains(PARAMETER))
        );
        let patch = json!({"timeout": "9s"}).to_string();
        let kind = [("content-type", "application/json")];
        let path = format!("/v1/jobs/{job}");
        said.push(text(&http.send("PATCH", &path, &kind, patch.as_bytes())));
        said.extend(answers(&http, (&job, &run)));
        said.extend(printed(server, (&job, &run)));
        let output = http.get(&format!("/v1/runs/{run}")).json()["attempts"][0]["output"].clone();
        let output = output.as_str().unwrap().to_owned();
        assert!(
            output.starts_with("got ") && output.contains("***"),
            "{output}"
        );
    }
    dead(&http, &ended(&http, &fails.url("/hook"), BEARER).0);
    let Doors {
        said: more,
        mut nowhere,
        secret: _,
    } = Doors::open(server, SECRET);
    said.extend(more);
    said.push(server.log());
    let (_, secret) = key.rsplit_once('_').unwrap();
    nowhere.push(secret.to_owned());
    nowhere.extend([SECRET, FORMS[0], FORMS[1], REFUSED, MASTER].map(str::to_owned));
    (said, nowhere)
}

/// Nothing that was planted is in what was said.
fn check(said: &[String], nowhere: &[String]) {
    let planted = nowhere.iter().map(String::as_str).chain(["planted"]);
    let planted: Vec<&str> = planted.collect();
    for (text, word) in said
        .iter()
        .flat_map(|text| planted.iter().map(move |word| (text, *word)))
    {
        let at = text.find(word);
        assert!(at.is_none(), "{word} in {}", near(text, at.unwrap_or(0)));
    }
}

fn near(text: &str, at: usize) -> String {
    text.chars()
        .skip(at.saturating_sub(300))
        .take(600)
        .collect()
}

fn start(own: &Path, more: &[&str]) -> Server {
    let master = own.join("master");
    fs::write(&master, MASTER).unwrap();
    let master = master.to_str().unwrap().to_owned();
    let arguments = [KEYS, "--log", "trace", "--master-key-file", &master];
    let commands = allowing("/bin/sh");
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let arguments = [&arguments[..], &commands, more].concat();
    Server::start_in(&own.join("data"), &arguments)
}

#[test]
fn what_is_planted_is_found_nowhere_on_sqlite() {
    let own = TempDir::new().unwrap();
    let server = start(own.path(), &[]);
    let (said, nowhere) = plant(&server);
    let log = server.log_handle();
    assert_eq!(server.stop().code(), Some(0));
    check(&said, &nowhere);
    check(&[log.read()], &nowhere);
    let data = own.path().join("data");
    for word in &nowhere {
        assert_eq!(files_with(&data, word), Vec::<String>::new(), "{word}");
    }
    // By design: what somebody writes into a target stands in its definition.
    for word in [BEARER, HEADER, PARAMETER, IN_PATH, IN_ENV, IN_ALERT] {
        assert_eq!(files_with(&data, word), ["punctual.db"], "{word}");
    }
}

/// Every table of the database that holds a text, as it is or in the digits of its bytes.
fn tables_with(database: &PgServer, word: &str) -> Vec<String> {
    let query = "SELECT string_agg(format('%I.%I', schemaname, tablename), ' ') FROM pg_tables
        WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
    let tables = database.query(query).unwrap();
    let digits: String = word.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut found = Vec::new();
    for table in tables.split_whitespace() {
        let query = format!("SELECT string_agg(t::text, ' ') FROM {table} t");
        let rows = database.query(&query).unwrap();
        if rows.contains(word) || holds(rows.as_bytes(), &digits) {
            let (_, name) = table.split_once('.').unwrap();
            found.push(name.to_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn what_is_planted_is_found_nowhere_on_postgres() {
    let database = match PgServer::private(Mode::Fast) {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let own = TempDir::new().unwrap();
    let server = start(own.path(), &["--store", &database.address()]);
    let (said, nowhere) = plant(&server);
    let log = server.log_handle();
    assert_eq!(server.stop().code(), Some(0));
    check(&said, &nowhere);
    check(&[log.read()], &nowhere);
    for word in &nowhere {
        assert_eq!(tables_with(&database, word), Vec::<String>::new(), "{word}");
    }
    for word in [BEARER, HEADER, PARAMETER, IN_PATH, IN_ENV] {
        assert_eq!(tables_with(&database, word), CLEAR, "{word}");
    }
    // Of the rule, and of the job that delivers what it says.
    assert_eq!(tables_with(&database, IN_ALERT), ["alerts", "defs"]);
}
