//! Jobs in files, what stands beside them, and create-or-update.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CREATE, fails, value};
use crate::support::Server;

const URL: &str = "--url http://127.0.0.1:9/";

fn job(server: &Server, name: &str) -> Value {
    value(&server.printed(&format!("job show {name} --json")))
}

/// What a job is, without what only the server says of it.
fn definition(mut job: Value) -> Value {
    for name in ["id", "key", "version", "created_at", "updated_at"] {
        job.as_object_mut().unwrap().remove(name);
    }
    job
}

#[test]
fn what_show_prints_can_be_created_again() {
    let server = Server::start();
    server.printed(CREATE);
    server.printed(&format!(
        "job create --key ticks --every 15m --anchor 2026-01-01T00:05:00Z --overlap queue_all {URL}"
    ));
    for key in ["team/hello", "ticks"] {
        let copied = server.bash(&format!(
            "punctual job show {key} --json | punctual job create --file - --key copy-of-{key} --json"
        ));
        let note = String::from_utf8(copied.stderr).unwrap();
        assert!(copied.status.success(), "{note}");
        assert!(
            note.starts_with("note: ") && note.contains("id, next_slot"),
            "{note}"
        );
        let copy = value(&String::from_utf8(copied.stdout).unwrap());
        assert_eq!(copy["key"], format!("copy-of-{key}"));
        assert_eq!(definition(copy), definition(job(&server, key)));
    }
    let taken = server.bash("punctual job show ticks --json | punctual job create --file -");
    fails(&taken, 1, &["taken", "--or-update", "(key)"]);
    let same =
        server.bash("punctual job show ticks --json | punctual job create --file - --or-update");
    assert!(same.status.success(), "{same:?}");
    assert_eq!(job(&server, "ticks")["version"], 1, "nothing has changed");
}

#[test]
fn nothing_beside_a_file_is_ignored() {
    let server = Server::start();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("job.json");
    fs::write(
        &file,
        r#"{"key": "a", "schedule": "@daily", "target": "http://127.0.0.1:9/"}"#,
    )
    .unwrap();
    let file = file.display();
    server.printed(&format!("job create --file {file} --key b"));
    assert_eq!(
        job(&server, "b")["key"],
        "b",
        "the flag goes before the file"
    );
    for flag in [
        "--cron @hourly",
        "--tz UTC",
        "--dialect unix",
        "--anchor 0",
        "--runs-max 3",
        "--exclude x",
        URL,
        "--header 'A: b'",
        "--payload 1",
        "--attempts-max 3",
        "--retries 3",
        "--label a=b",
        "--timeout 5s",
        "--start-within 5s",
        "--output-max 5",
        "--dst-gap skip",
    ] {
        for line in [
            format!("job create --file {file} {flag}"),
            format!("job create --batch {file} {flag}"),
            format!("job edit b --file {file} {flag}"),
        ] {
            let name = flag.split(' ').next().unwrap();
            let name = match name {
                "--tz" => "--timezone",
                "--retries" => "--attempts-max",
                name => name,
            };
            let part = format!("{name} cannot be used with --");
            fails(&server.cli(&line), 2, &[&part]);
        }
    }
    for flag in ["--key c", "--or-update", "--idempotency-key k", "--dry-run"] {
        let refused = server.cli(&format!("job create --batch {file} {flag}"));
        assert_eq!(refused.status.code(), Some(2), "{flag}");
    }
    fs::write(folder.path().join("list.json"), "[{}]").unwrap();
    let list = format!("job create --file {}/list.json", folder.path().display());
    fails(&server.cli(&list), 2, &["list.json", "--batch"]);
}

#[test]
fn an_update_keeps_what_is_not_said() {
    let server = Server::start();
    let create = "job create --key k --or-update";
    let made = server.printed(&format!(
        "{create} --cron '0 9 * * *' --timezone Asia/Tokyo {URL} --header 'X-A: 1' --label a=1 --dst-gap skip"
    ));
    assert!(made.starts_with("created job_"), "{made}");
    let changed = server.printed(&format!(
        "{create} --cron '0 10 * * *' --header 'X-B: 2' --label b=2"
    ));
    assert!(changed.starts_with("changed job_"), "{changed}");
    let after = job(&server, "k");
    assert_eq!(after["schedule"]["cron"], "0 10 * * *");
    assert_eq!(after["schedule"]["timezone"], "Asia/Tokyo");
    assert_eq!(after["schedule"]["dst_gap"], "skip");
    assert_eq!(
        after["target"]["http"]["headers"],
        json!({"x-a": "1", "x-b": "2"})
    );
    assert_eq!(after["labels"], json!({"a": "1", "b": "2"}));
    server.printed("job edit k --timezone Europe/Berlin --label a= --header X-A:");
    let after = job(&server, "k");
    assert_eq!(after["schedule"]["timezone"], "Europe/Berlin");
    assert_eq!(after["target"]["http"]["headers"], json!({"x-b": "2"}));
    assert_eq!(after["labels"], json!({"b": "2"}));
    fails(
        &server.cli("job create --key new --or-update --lane batch"),
        2,
        &["--cron"],
    );
    fails(
        &server.cli("job create --or-update --lane batch"),
        2,
        &["--key"],
    );
}

#[test]
fn every_field_of_a_schedule_has_its_flag() {
    let server = Server::start();
    server.printed(&format!(
        "job create --key q --cron '0 30 2 ? * 2' --dialect quartz --dst-gap skip --dst-overlap both {URL}"
    ));
    let schedule = &job(&server, "q")["schedule"];
    assert_eq!(
        (
            &schedule["dialect"],
            &schedule["dst_gap"],
            &schedule["dst_overlap"]
        ),
        (&json!("quartz"), &json!("skip"), &json!("both"))
    );
    let refused = server.cli(&format!("job create --cron @daily --dst-gap never {URL}"));
    fails(&refused, 1, &["never", "(--dst-gap)"]);
    server.printed(&format!(
        "job create --key e --every 15m --anchor 2026-01-01T00:05:00Z {URL}"
    ));
    assert_eq!(
        job(&server, "e")["schedule"]["anchor"],
        "2026-01-01T00:05:00.000Z"
    );
    server.printed("job edit e --every 30m");
    assert_eq!(
        job(&server, "e")["schedule"]["anchor"],
        "2026-01-01T00:05:00.000Z"
    );
}
