//! Changes that are only looked at, bounds, and pauses that end with a catch-up.

use std::time::Duration;

use serde_json::{Value, json};

use super::{CREATE, fails, value};
use crate::support::{Answer, Receiver, Server, punctual, wait_for};

const URL: &str = "--url http://127.0.0.1:9/";

fn job(server: &Server, name: &str) -> Value {
    value(&server.printed(&format!("job show {name} --json")))
}

#[test]
fn a_dry_run_shows_what_would_change_and_changes_nothing() {
    let server = Server::start();
    server.printed(CREATE);
    let before = job(&server, "team/hello");
    let edit = "job edit team/hello --cron '0 10 * * MON-FRI' --lane critical --ends-at 2099-01-01T00:00:00Z --dry-run";
    let shown = server.printed(edit);
    assert!(shown.starts_with("would change job_"), "{shown}");
    for part in [
        "0 9 * * MON-FRI → 0 10 * * MON-FRI",
        "batch → critical",
        "schedule.ends_at",
        "nothing → 2099-01-01T00:00:00.000Z",
        "SLOTS REMOVED",
        "SLOTS ADDED",
    ] {
        assert!(shown.contains(part), "{shown} does not say {part:?}");
    }
    assert!(!shown.contains("timezone"), "it stays: {shown}");
    assert!(shown.ends_with("\nnothing was changed\n"), "{shown}");
    assert_eq!(job(&server, "team/hello"), before);

    let same = server.printed("job edit team/hello --lane batch --dry-run");
    assert!(same.contains("no field would change"), "{same}");
    let json = value(&server.printed(&format!("{edit} --json")));
    assert_eq!(json["dry_run"], true);
    assert_eq!(json["lane"], "critical");
    assert_eq!(job(&server, "team/hello"), before);
    let stale = server.cli("job edit team/hello --lane critical --if-match 7 --dry-run");
    fails(&stale, 1, &["version"]);
}

#[test]
fn a_dry_run_creates_nothing() {
    let server = Server::start();
    let shown = server.printed(&format!(
        "job create --key dry --cron @daily {URL} --dry-run"
    ));
    assert!(
        shown.starts_with("would create a job (dry), next due "),
        "{shown}"
    );
    assert!(shown.contains("@daily"), "{shown}");
    assert!(shown.ends_with("nothing was changed\n"), "{shown}");
    let put = format!("job create --key dry --or-update --every 1h {URL}");
    let shown = server.printed(&format!("{put} --dry-run"));
    assert!(shown.starts_with("would create a job (dry)"), "{shown}");
    assert_eq!(server.printed("job list"), "");

    server.printed(&put);
    let shown = server.printed(&format!("{put} --lane batch --dry-run"));
    assert!(shown.starts_with("would change job_"), "{shown}");
    assert!(shown.contains("standard → batch"), "{shown}");
    assert_eq!(job(&server, "dry")["lane"], "standard");
    let taken = server.cli(&format!("job create --key dry --every 1h {URL} --dry-run"));
    fails(&taken, 1, &["taken", "--or-update", "(--key)"]);
    let refused = server.cli(&format!("job create --cron '75 * * * *' {URL} --dry-run"));
    fails(&refused, 1, &["75", "(--cron)"]);
}

#[test]
fn bounds_reach_the_job_and_can_be_taken_away() {
    let server = Server::start();
    server.printed(&format!(
        "job create --key bounded --every 1h --after-completion --runs-max 3 --tz Europe/Berlin {URL} \
         --starts-at 2098-01-01T00:00:00Z --ends-at 2099-01-01T00:00:00Z"
    ));
    let shown = server.printed("job show bounded");
    for part in [
        "starts_at",
        "2099-01-01T00:00:00.000Z",
        "runs_left",
        "after_completion",
    ] {
        assert!(shown.contains(part), "{shown} does not say {part:?}");
    }
    let bounded = job(&server, "bounded");
    assert_eq!(bounded["next_slot"], "2098-01-01T00:00:00.000Z");
    assert_eq!(bounded["runs_left"], 3);
    assert_eq!(bounded["schedule"]["after_completion"], true);

    server.printed("job edit bounded --every 2h --runs-max '' --after-completion=false");
    let schedule = &job(&server, "bounded")["schedule"];
    assert_eq!(schedule["every"], "2h");
    assert_eq!(
        schedule["timezone"], "Europe/Berlin",
        "not mentioned: it stays"
    );
    assert_eq!(
        schedule["ends_at"], "2099-01-01T00:00:00.000Z",
        "not mentioned: it stays"
    );
    assert!(schedule["runs_max"].is_null(), "{schedule}");
    assert_ne!(schedule["after_completion"], true, "{schedule}");

    let never = format!("job create --cron @daily --ends-at 2020-01-01T00:00:00Z {URL}");
    fails(&server.cli(&never), 1, &["(--cron"]);
    let cron = format!("job create --cron @daily --after-completion {URL}");
    fails(&server.cli(&cron), 1, &["(--after-completion)"]);
}

#[test]
fn a_job_that_waits_for_its_run_says_so() {
    let receiver = Receiver::answering(|_| Answer::ok().after(Duration::from_secs(20)));
    let server = Server::start();
    server.printed(&format!(
        "job create --key slow --every 1s --after-completion --url {}",
        receiver.url("/")
    ));
    wait_for("the delivery", || (receiver.count() == 1).then_some(()));
    let shown = server.printed("job show slow");
    let resting = shown.lines().find(|line| line.starts_with("resting"));
    assert!(resting.unwrap().contains("the end of its run"), "{shown}");
    let listed = server.printed("job list");
    assert!(listed.contains("after its run"), "{listed}");
    let edited = server.printed("job edit slow --lane batch");
    assert!(edited.contains("next due after its run"), "{edited}");
}

#[test]
fn what_a_pause_let_pass_is_caught_up_when_requested() {
    let receiver = Receiver::start();
    let server = Server::start();
    server.printed(&format!(
        "job create --key tick --every 1s --catch-up all --overlap allow --url {}",
        receiver.url("/")
    ));
    server.printed("job pause tick --note 'until noon'");
    let paused = server.printed("job show tick");
    assert!(
        paused.contains("until noon") && paused.contains("paused_by"),
        "{paused}"
    );
    let before = receiver.count();
    let passed = wait_for("three slots to pass", || {
        let slots = value(&server.printed("job slots tick --json"));
        let items = slots["items"].as_array().unwrap();
        let paused: Vec<_> = items
            .iter()
            .filter(|slot| slot["reason"] == "paused")
            .collect();
        // Two entries: what has passed, and what will if nothing changes.
        let [passed, _] = *paused else { return None };
        (passed["count"].as_u64()? >= 3).then(|| passed["first"].clone())
    });
    assert_eq!(receiver.count(), before, "a paused job does not run");

    let resumed = server.printed("job resume tick --catch-up");
    assert!(resumed.starts_with("resumed"), "{resumed}");
    wait_for("the slots that passed", || {
        (receiver.count() >= before + 3).then_some(())
    });
    let delivered = receiver.deliveries();
    assert!(
        delivered
            .iter()
            .any(|delivery| passed == delivery.header("punctual-slot")),
        "{passed} has not run"
    );
    let listed = server.printed("run list --job tick --state skipped --json");
    assert_eq!(value(&listed)["items"], json!([]), "nothing was skipped");
}

#[test]
fn bounds_are_worked_out_without_a_server() {
    let slots = |line: &str| {
        let output = punctual(&format!("next {line} --json"));
        value(&String::from_utf8(output.stdout).unwrap())["slots"].clone()
    };
    assert_eq!(
        slots("'@every P1W' --starts-at 2097-01-04T08:00:00Z --ends-at 2097-01-11T08:00:00Z"),
        json!(["2097-01-04T08:00:00.000Z", "2097-01-11T08:00:00.000Z"])
    );
    let from = "--from 2027-01-01T00:00:00Z";
    assert_eq!(
        slots(&format!("@daily --runs-max 1 {from}")),
        json!(["2027-01-02T00:00:00.000Z"])
    );
    assert_eq!(
        slots(&format!("'@every 90s' --after-completion --count 1 {from}")),
        json!(["2027-01-01T00:01:30.000Z"])
    );
    assert_eq!(
        slots(&format!("@daily --ends-at 2020-01-01T00:00:00Z {from}")),
        json!([])
    );
    fails(
        &punctual("next @daily --after-completion"),
        2,
        &["interval"],
    );
    fails(&punctual("next @daily --runs-max never"), 2, &["never"]);
}
