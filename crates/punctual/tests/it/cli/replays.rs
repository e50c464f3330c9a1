//! Dead runs on the command line: found, counted by error, replayed in bulk; and past slots.

use super::{fails, value};
use crate::support::{Answer, Receiver, Server, wait_for};

#[test]
fn dead_runs_are_found_grouped_and_replayed() {
    let receiver = Receiver::answering(|delivery| {
        if delivery.body == b"[1]" {
            Answer::ok()
        } else {
            Answer::status(400)
        }
    });
    let server = Server::start();
    server.printed(&format!(
        "job create --key sad --cron '0 0 1 1 *' --overlap allow --label team=ops --url {}",
        receiver.url("/")
    ));
    for _ in 0..3 {
        server.printed("job run sad");
    }
    wait_for("dead runs", || {
        let runs =
            value(&server.printed("run list --state dead --since 1h --label team=ops --json"));
        (runs["items"].as_array().unwrap().len() == 3).then_some(())
    });
    let none = server.printed("run list --state dead --since 1h --target api.example.com");
    assert_eq!(none, "");
    let groups = server.printed("run groups --since 1h --error 400");
    let words: Vec<&str> = groups.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words.get(..2), Some(&["3", "1"][..]), "{groups}");
    fails(&server.cli("run list --since soon"), 2, &["--since"]);

    let done =
        server.printed("replay create --job sad --since 1h --payload '[1]' --rate 100 --wait");
    assert!(done.contains("is done: 3 started, 0 skipped"), "{done}");
    wait_for("the replays' end", || {
        let runs = value(&server.printed("run list --state succeeded --json"));
        (runs["items"].as_array().unwrap().len() == 3).then_some(())
    });
    let list = server.printed("replay list");
    assert!(list.contains("replay") && list.contains("done"), "{list}");
    let id = value(&server.printed("replay list --json"))["items"][0]["id"].to_string();
    let id = id.trim_matches('"');
    assert!(
        server
            .printed(&format!("replay show {id}"))
            .contains("started")
    );
    assert!(
        server
            .printed(&format!("replay cancel {id}"))
            .contains("is done")
    );
    fails(
        &server.cli("replay show replay_0192f0c1a2b37def8123456789abcdef"),
        1,
        &["replay"],
    );
    fails(&server.cli("replay create --state ready"), 1, &["ready"]);
}

#[test]
fn past_slots_are_run_on_purpose() {
    let receiver = Receiver::start();
    let server = Server::start();
    server.printed(&format!(
        "job create --key daily --cron '0 9 * * *' --url {}",
        receiver.url("/")
    ));
    let range = "--from 2024-01-01T00:00:00Z --to 2024-01-04T00:00:00Z";
    let dry = server.printed(&format!("job backfill daily {range} --dry-run"));
    assert!(dry.starts_with("3 slots from 2024-01-01"), "{dry}");
    let done = server.printed(&format!("job backfill daily {range} --rate 50 --wait"));
    assert!(done.contains("is done: 3 started"), "{done}");
    wait_for("three slots", || (receiver.count() == 3).then_some(()));
    let slots = receiver.deliveries();
    let slots: Vec<&str> = slots.iter().map(|it| it.header("punctual-slot")).collect();
    assert_eq!(
        slots,
        [
            "2024-01-01T09:00:00.000Z",
            "2024-01-02T09:00:00.000Z",
            "2024-01-03T09:00:00.000Z"
        ],
        "one after another"
    );
    fails(
        &server.cli("job backfill daily --from 2999-01-01T00:00:00Z"),
        1,
        &["from"],
    );
}
