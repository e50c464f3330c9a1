//! What became of slots, and why a moment is one.

use model::Timestamp;
use serde_json::json;

use super::{fails, value};
use crate::support::{Answer, Receiver, Server, punctual, wait_for};

const URL: &str = "--url http://127.0.0.1:9/";

#[test]
fn a_gap_of_daylight_saving_is_explained() {
    let server = Server::start();
    server.printed(&format!(
        "job create --key night --cron '30 2 * * *' --tz Europe/Berlin {URL}"
    ));
    let explain = |at: &str| server.printed(&format!("job explain night --at {at}"));
    // The clocks go from 02:00 to 03:00: 02:30 does not exist, and the slot is where the gap ends.
    let gap = explain("2099-03-29T02:30");
    let first = gap.lines().next().unwrap();
    assert!(first.starts_with("2099-03-29T01:00:00.000Z"), "{gap}");
    assert!(first.contains("Europe/Berlin"), "{gap}");
    assert!(first.ends_with("is a slot: planned"), "{gap}");
    assert!(gap.contains("does not exist"), "{gap}");
    assert!(
        gap.contains("HOLDS") && gap.contains("daylight_saving"),
        "{gap}"
    );
    let end = explain("2099-03-29T01:00:00Z");
    assert!(
        end.lines().next().unwrap().contains("is a slot: planned"),
        "{end}"
    );
    assert!(end.contains("\nyes "), "words where nobody looks: {end}");
    let day = explain("2099-03-30T02:30");
    assert!(day.starts_with("2099-03-30T00:30:00.000Z"), "{day}");
    assert!(day.contains("is a slot: planned"), "{day}");
    let no = explain("2099-03-30T02:31");
    assert!(no.lines().next().unwrap().ends_with("is no slot"), "{no}");
    assert!(no.contains("\nno "), "{no}");

    let json = value(&server.printed("job explain night --at 2099-03-30T02:31 --json"));
    assert_eq!(json["slot"], false);
    assert!(json["steps"].is_array());
    fails(
        &server.cli("job explain night --at someday"),
        1,
        &["someday", "(--at)"],
    );
    fails(
        &server.cli("job explain nobody --at 2099-03-30T02:31"),
        1,
        &[],
    );
}

#[test]
fn the_slots_of_a_paused_job_are_one_line_that_says_why() {
    let receiver = Receiver::start();
    let server = Server::start();
    server.printed(&format!(
        "job create --key tick --every 1s --url {}",
        receiver.url("/")
    ));
    let settled = wait_for("a run", || {
        let runs = value(&server.printed("run list --job tick --state succeeded --json"));
        runs["items"][0]["id"].as_str().map(str::to_owned)
    });
    server.printed("job pause tick --note 'new database'");
    let paused = wait_for("two slots to pass", || {
        let slots = server.printed("job slots tick");
        let is_stretch = |line: &&str| line.contains(" … ") && line.contains(" paused ");
        // Two stretches: what has passed, and what will if nothing changes.
        let passed = slots.lines().filter(is_stretch).count() == 2;
        passed.then_some(slots)
    });
    for line in paused.lines().filter(|line| line.contains(" … ")) {
        assert!(
            line.contains("new database") && line.contains("anonymous"),
            "{line}"
        );
    }
    assert!(paused.starts_with("SLOT"), "{paused}");
    let ran = paused.lines().find(|line| line.contains(&settled)).unwrap();
    assert!(ran.contains(" ran ") && ran.contains("succeeded"), "{ran}");
    assert!(!paused.contains("unknown"), "{paused}");

    server.printed("job resume tick");
    let listed = wait_for("the skipped entry", || {
        let runs = server.printed("run list --job tick --state skipped");
        runs.contains("paused: new database, by anonymous")
            .then_some(runs)
    });
    let id = listed.lines().nth(1).unwrap().split(' ').next().unwrap();
    let shown = server.printed(&format!("run show {id}"));
    let says = |name: &str, what: &str| {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains(what), "{shown}");
    };
    says("note ", "new database");
    says("actor ", "anonymous");
}

#[test]
fn slots_come_page_by_page_up_to_the_limit() {
    let server = Server::start();
    server.printed(&format!("job create --key often --cron '* * * * *' {URL}"));
    let from = Timestamp::parse("2099-01-01T00:00:00Z").unwrap();
    let range = "--from 2099-01-01T00:00:00Z --to 2099-01-02T12:00:00Z";
    let many = server.printed(&format!("job slots often {range} --limit 1500"));
    let slots: Vec<&str> = many.lines().skip(1).collect();
    assert_eq!(slots.len(), 1_500);
    assert!(
        slots.first().unwrap().contains("planned"),
        "{:?}",
        slots.first()
    );
    let moment = |line: &str| Timestamp::parse(line.split(' ').next().unwrap()).unwrap();
    let apart = |pair: &[&str]| moment(pair[1]).since(moment(pair[0])).as_secs() == 60;
    assert!(slots.windows(2).all(apart), "each once, in order");
    assert!(moment(slots.first().unwrap()) >= from);

    let few = server.cli(&format!("job slots often {range} --limit 5"));
    assert_eq!(String::from_utf8_lossy(&few.stdout).lines().count(), 6);
    assert!(String::from_utf8_lossy(&few.stderr).contains("there are more"));
    let pages = server.printed(&format!("job slots often {range} --limit 1500 --json"));
    assert_eq!(pages.lines().count(), 2);
    let backwards =
        server.cli("job slots often --from 2099-01-02T00:00:00Z --to 2099-01-01T00:00:00Z");
    fails(&backwards, 1, &["from"]);
    assert_eq!(
        server.cli("job slots often --limit 0").status.code(),
        Some(2)
    );
}

#[test]
fn slots_of_every_fate_have_their_line() {
    let moment = |minute: u32| format!("2027-01-01T00:{minute:02}:00.000Z");
    let page = json!({
        "items": [
            { "slot": moment(1), "fate": "ran", "run": { "id": "run_1", "state": "dead" } },
            { "slot": moment(2), "fate": "skipped", "reason": "calendar", "note": "holi\u{1b}days", "actor": "node-1",
              "first": moment(2), "last": moment(4), "count": 3 },
            { "slot": moment(5), "fate": "missed", "reason": "missed", "actor": "node-1" },
            { "slot": moment(6), "fate": "planned", "overdue": true },
        ],
        "next_cursor": null, "from": moment(0), "to": moment(9), "history_from": moment(1),
    });
    let stranger = Receiver::answering(move |_| Answer::ok().saying(&page.to_string()));
    let output = punctual(&format!("job slots job_1 --server {}", stranger.url("")));
    let table = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect())
        .collect();
    let (second, fourth) = (moment(2), moment(4));
    assert_eq!(rows[0], [&moment(1), "ran", "run_1", "dead"]);
    let stretch = [
        &second,
        "…",
        &fourth,
        "(3)",
        "skipped",
        "calendar",
        "holi\\u{1b}days",
        "node-1",
    ];
    assert_eq!(rows[1], stretch);
    assert_eq!(rows[2], [&moment(5), "missed", "missed", "node-1"]);
    assert_eq!(rows[3], [&moment(6), "planned", "overdue"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains(&moment(1)) && said.contains("no longer kept"),
        "{said}"
    );
}
