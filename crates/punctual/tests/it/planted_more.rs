//! Still more doors for planted secrets: commands, alerts, templates that fail, and the ways by which runs are read in bulk or as
//! they go.

use std::fs;

use model::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::planted_doors::{Doors, dead, made, run};
use crate::secrets::text;
use crate::support::{Http, Receiver, Server, now, wait_for};

/// A variable of a command, and a parameter of an alert's address: kept in clear in the definition.
pub(crate) const IN_ENV: &str = "planted-in-env-6f0a";
pub(crate) const IN_ALERT: &str = "planted-in-alert-4c2d";
/// A command that was refused.
const REFUSED: &str = "planted-refused-env-1d9b";

/// What these doors are about: jobs with a run each.
pub(crate) fn open(doors: &mut Doors, http: &Http, server: &Server, receiver: &Receiver) {
    alert(doors, http, receiver);
    let of_command = command(doors, http);
    let unrendered = unrendered(http, receiver);
    let due_at = due(doors, http, receiver);
    delivered(doors, http, server);
    for (job, run) in [&of_command, &unrendered] {
        doors.read(http, job, run);
        as_it_goes(doors, http, server, run);
    }
    ahead(doors, http, server, due_at);
    exported(doors, server);
}

fn secret(http: &Http, name: &str, host: &str, value: &str) {
    let secret = json!({"name": name, "value": value, "hosts": [host]});
    assert_eq!(http.post("/v1/secrets", &secret).status, 201);
}

/// A rule whose address has a secret and a parameter that looks like one.
fn alert(doors: &mut Doors, http: &Http, receiver: &Receiver) {
    let address = |token: &str| {
        let url = receiver.url("/alert");
        format!("{url}?token={token}&key={{{{ secret('api') }}}}")
    };
    let put = |name: &str, url: String| {
        let rule = json!({"on": "dead", "url": url, "repeat": "1h"}).to_string();
        let kind = [("content-type", "application/json")];
        let path = format!("/v1/alerts/{name}");
        http.send("PUT", &path, &kind, rule.as_bytes())
    };
    let made = put("doors", address(IN_ALERT));
    let said = String::from_utf8_lossy(&made.body).into_owned();
    assert_eq!(made.status, 201, "{said}");
    assert!(said.contains("token=***"), "{said}");
    let refused = put("bad", format!("ftp://a.example/?token={REFUSED}"));
    assert_eq!(refused.status, 422);
    for reply in [made, refused] {
        doors
            .said
            .push(String::from_utf8_lossy(&reply.body).into_owned());
    }
    let tested = http.send("POST", "/v1/alerts/doors/test", &[], b"");
    doors
        .said
        .push(String::from_utf8_lossy(&tested.body).into_owned());
}

/// A command that says all it was given, on both of its streams.
fn command(doors: &mut Doors, http: &Http) -> (String, String) {
    secret(http, "of-command", "shell", &doors.secret);
    let say = "echo $TOKEN $API_KEY; echo $TOKEN $API_KEY >&2; env; exit 1";
    let env = json!({"TOKEN": "{{ secret('of-command') }}", "API_KEY": IN_ENV});
    let target = json!({"shell": {"command": ["/bin/sh", "-c", say], "env": env}});
    let job = made(http, target, json!({}));
    let run = run(http, &job);
    let ended = dead(http, &run);
    let output = ended["attempts"][0]["output"].as_str().unwrap();
    assert!(output.contains("*** ***\n"), "{output}");
    let env = json!({"API_KEY": format!("{REFUSED}\0")});
    let target = json!({"shell": {"command": ["/bin/sh"], "env": env}});
    let refused = http.post(
        "/v1/jobs",
        &json!({"schedule": "@yearly", "target": target}),
    );
    assert_eq!(refused.status, 422);
    let refused = String::from_utf8_lossy(&refused.body).into_owned();
    doors.said.push(refused);
    doors.nowhere.push(REFUSED.to_owned());
    (job, run)
}

/// A template that comes to nothing once the secret is in it.
fn unrendered(http: &Http, receiver: &Receiver) -> (String, String) {
    let url = receiver.url("/unrendered");
    let body = r#"{"a": {{ secret('api') }}, "b": {{ payload.nothing.here }}}"#;
    let job = made(http, json!({"http": {"url": url, "body": body}}), json!({}));
    let run = run(http, &job);
    dead(http, &run);
    (job, run)
}

/// A job that is due soon, as it is shown before it is made, and afterwards.
fn due(doors: &mut Doors, http: &Http, receiver: &Receiver) -> i64 {
    let due_at = (now() / 1_000 + 1_800) * 1_000;
    let headers = json!({"Authorization": "Bearer {{ secret('api') }}", "X-Api-Key": IN_ENV});
    let target = json!({"http": {"url": receiver.url("/due"), "headers": headers}});
    let schedule = json!({"at": Timestamp::from_millis(due_at).to_string()});
    let job = json!({"schedule": schedule, "target": target});
    let shown = http.post("/v1/jobs?dry_run=true", &job);
    doors.said.push(text(&shown));
    made(http, target, json!({"schedule": schedule}));
    due_at
}

/// What came of the alert, once its receiver has said back what it got.
fn delivered(doors: &mut Doors, http: &Http, server: &Server) {
    let path = "/v1/alerts/doors/deliveries";
    let output = wait_for("the deliveries", || {
        let all = http.get(path).json();
        let all = all["items"].as_array().unwrap().clone();
        let is_alert = |it: &Value| it["state"] == "dead";
        let (ended, open): (Vec<_>, Vec<_>) = all.into_iter().partition(is_alert);
        let id = ended.first().filter(|_| ended.len() > 1 && open.is_empty());
        id.map(|it| it["attempts"][0]["output"].clone())
    });
    let output = output.as_str().unwrap_or_default().to_owned();
    assert!(output.contains("token=***&key=***"), "{output}");
    for path in ["/v1/alerts", "/v1/alerts/doors", path] {
        doors.said.push(text(&http.get(path)));
    }
    for line in ["alert list", "alert show doors", "alert deliveries doors"] {
        doors.said.push(server.printed(line));
        doors.said.push(server.printed(&format!("{line} --json")));
    }
}

/// What streams say of a run, and of its tenant.
fn as_it_goes(doors: &mut Doors, http: &Http, server: &Server, run: &str) {
    for path in [
        format!("/v1/runs/{run}/log?follow=true"),
        format!("/v1/events?run={run}&events_max=1"),
        "/v1/events?events_max=1".to_owned(),
    ] {
        doors.said.push(text(&http.get(&path)));
    }
    for line in [
        format!("run log {run}"),
        format!("run log {run} --follow"),
        format!("run show {run}"),
        format!("run show {run} --json"),
        format!("events --run {run} --events-max 1 --json"),
    ] {
        doors.said.push(server.printed(&line));
    }
}

/// What is forecast, and who is due in one second of it.
fn ahead(doors: &mut Doors, http: &Http, server: &Server, due_at: i64) {
    let second = format!("/v1/forecast/second?at={}", Timestamp::from_millis(due_at));
    let listed = text(&http.get(&second));
    assert!(listed.contains("job_"), "{listed}");
    doors.said.push(listed);
    doors.said.push(text(&http.get("/v1/forecast")));
    let at = format!("forecast --at {}", Timestamp::from_millis(due_at));
    for line in ["forecast", &at] {
        doors.said.push(server.printed(line));
        doors.said.push(server.printed(&format!("{line} --json")));
    }
}

/// All runs, to a terminal and to a file.
fn exported(doors: &mut Doors, server: &Server) {
    let lines = server.printed("export runs --since 1d");
    assert!(lines.lines().count() > 3, "{lines}");
    doors.said.push(lines);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("runs.ndjson");
    let line = format!("export runs --since 1d --output {}", file.display());
    doors.said.push(server.printed(&line));
    doors.said.push(fs::read_to_string(&file).unwrap());
}
