//! Calendars by the command line: written, read, named by jobs, deleted.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::{fails, value};
use crate::support::{Server, punctual};

const URL: &str = "--url http://127.0.0.1:9/";

#[test]
fn a_calendar_is_written_read_and_deleted() {
    let server = Server::start();
    let stored = server.printed(
        "calendar put holidays --yearly 12-25 --yearly 12-26 --date 2027-04-05 --weekly 'SAT-SUN' \
         --range 2026-12-24T18:00/2027-01-02 --timezone Europe/Berlin --note 'nobody works'",
    );
    assert_eq!(stored, "stored holidays, version 1: 5 entries\n");
    let shown = server.printed("calendar show holidays");
    for part in [
        "holidays",
        "nobody works",
        "Europe/Berlin",
        "2027-04-05",
        "12-25",
        "12-26",
        "SAT-SUN",
        "2026-12-24T18:00/2027-01-02",
    ] {
        assert!(shown.contains(part), "{shown} does not say {part:?}");
    }
    let listed = server.printed("calendar list");
    assert!(
        listed.starts_with("NAME") && listed.contains("holidays"),
        "{listed}"
    );

    // What the server says of it can be written again; only the parts that are the author's.
    let read = value(&server.printed("calendar show holidays --json"));
    let again =
        json!({ "weekly": read["weekly"], "ranges": read["ranges"], "timezone": read["timezone"] });
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("calendar.json");
    fs::write(&path, again.to_string()).unwrap();
    let put = format!("calendar put holidays --file {}", path.display());
    assert_eq!(
        server.printed(&put),
        "stored holidays, version 2: 2 entries\n"
    );
    let changed = value(&server.printed("calendar show holidays --json"));
    assert_eq!(changed["weekly"], read["weekly"]);
    assert_eq!(changed["ranges"], read["ranges"]);
    assert_eq!(changed["dates"], json!([]), "it is written as a whole");

    fails(&server.cli(&format!("{put} --if-match 1")), 1, &["version"]);
    fails(
        &server.cli("calendar delete holidays --if-match 1"),
        1,
        &["version"],
    );
    assert_eq!(
        server.printed("calendar delete holidays"),
        "deleted holidays\n"
    );
    fails(&server.cli("calendar show holidays"), 1, &["calendar"]);
    assert_eq!(server.printed("calendar list"), "");
}

#[test]
fn a_calendar_that_cannot_be_read_is_refused() {
    let server = Server::start();
    let refused = |line: &str, code, parts: &[&str]| fails(&server.cli(line), code, parts);
    refused(
        "calendar put x --date 2027-02-30",
        1,
        &["2027-02-30", "(--date)"],
    );
    refused(
        "calendar put x --weekly someday",
        1,
        &["someday", "(--weekly)"],
    );
    refused(
        "calendar put x --date 2027-01-01 --timezone Mars/Olympus",
        1,
        &["Mars/Olympus"],
    );
    refused("calendar put x", 2, &["--date", "--file"]);
    refused(
        "calendar put x --file /nowhere/x.json",
        2,
        &["/nowhere/x.json"],
    );
    assert_eq!(
        server
            .cli("calendar put x --file a --date 2027-01-01")
            .status
            .code(),
        Some(2)
    );
    assert_eq!(server.printed("calendar list"), "");
}

#[test]
fn a_calendar_that_jobs_name_stays() {
    let server = Server::start();
    let create = format!("job create --key daily --cron '0 12 * * *' --exclude weekend {URL}");
    fails(&server.cli(&create), 1, &["weekend", "(--exclude)"]);
    server.printed("calendar put weekend --weekly SAT-SUN");
    server.printed(&create);
    let job = value(&server.printed("job show daily --json"));
    assert_eq!(job["exclude"], json!(["weekend"]));
    let shown = server.printed("job show daily");
    assert!(
        shown
            .lines()
            .any(|line| line.starts_with("exclude ") && line.ends_with("weekend")),
        "{shown}"
    );
    let id = job["id"].as_str().unwrap();
    fails(&server.cli("calendar delete weekend"), 1, &["1 job", id]);
    assert_eq!(
        value(&server.printed("calendar show weekend --json"))["jobs"],
        1
    );

    server.printed("calendar put always --weekly MON-SUN");
    let never = server.cli("job edit daily --exclude always");
    fails(&never, 1, &["always", "leaves out every slot"]);
    server.printed("job edit daily --exclude ''");
    assert_eq!(
        value(&server.printed("job show daily --json"))["exclude"],
        json!([])
    );
    server.printed("calendar delete weekend");
}

#[test]
fn slots_ahead_know_calendars_by_the_server() {
    let server = Server::start();
    server.printed("calendar put weekend --weekly SAT-SUN");
    // The 3rd of January 2099 is a Saturday.
    let line = "next '0 12 * * *' --from 2099-01-01T13:00:00Z --count 2 --exclude weekend";
    let next = value(&server.printed(&format!("{line} --json")));
    assert_eq!(
        next["slots"],
        json!(["2099-01-02T12:00:00.000Z", "2099-01-05T12:00:00.000Z"])
    );
    let shown = server.printed(line);
    assert!(
        shown.contains("LEFT OUT") && shown.contains("2099-01-03T12:00:00.000Z"),
        "{shown}"
    );
    fails(
        &server.cli("next @daily --only nowhere"),
        1,
        &["nowhere", "(--only)"],
    );
    fails(
        &server.cli("next '75 * * * *' --only weekend"),
        2,
        &["minute 75"],
    );
    let absent = punctual("next @daily --exclude weekend --server http://127.0.0.1:1");
    fails(&absent, 3, &["punctual serve"]);

    let slots = {
        server.printed(&format!(
            "job create --key noon --cron '0 12 * * *' --exclude weekend {URL}"
        ));
        server.printed("job slots noon --from 2099-01-02T00:00:00Z --to 2099-01-06T00:00:00Z")
    };
    let rows: Vec<&str> = slots.lines().skip(1).collect();
    assert_eq!(rows.len(), 3, "{slots}");
    assert!(
        rows[1].contains("(2)") && rows[1].contains("calendar") && rows[1].contains("weekend"),
        "{slots}"
    );
}
