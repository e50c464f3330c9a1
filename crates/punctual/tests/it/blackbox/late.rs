//! Late is not lost: what the system delays is made up for, under every overlap policy. Where the target answers at once, no
//! slot overlaps with anything. The columns of the table in `docs/guides/schedules.md` are tests here.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use store::postgres::server::{Mode, PgServer, Stop};
use tempfile::TempDir;

use super::world::{Planned, create, list, moment, now, pause, slot_of};
use crate::support::{Answer, Delivery, Http, Receiver, Server, skip, wait_for};

const POLICIES: [&str; 5] = ["skip", "queue_one", "queue_all", "cancel_running", "allow"];
/// A slot younger than this is only late.
const LATE_MAX: i64 = 10_000;

fn jobs(first: i64, every: &str, catch_up: &str, url: &str) -> Vec<Planned> {
    let of = |overlap: &&str| {
        Planned::every_second(first, url)
            .with("overlap", json!(overlap))
            .with("catch_up", json!({ "policy": catch_up, "max": 1_000 }))
            .with(
                "schedule",
                json!({ "every": every, "anchor": model::Timestamp::from_millis(first).to_string() }),
            )
    };
    POLICIES.iter().map(of).collect()
}

/// What became of each slot of a job, by the slot: its state, and why it was skipped.
fn fates(http: &Http, job: &Planned) -> BTreeMap<i64, (String, Option<String>)> {
    let mut fates = BTreeMap::new();
    for run in list(http, &format!("/v1/jobs/{}/runs?", job.id)) {
        let text = |name: &str| run[name].as_str().map(str::to_owned);
        let fate = (text("state").unwrap(), text("reason"));
        let stretch: &Value = &run["stretch"];
        let slots = if stretch.is_null() {
            vec![moment(&run["slot"])]
        } else {
            job.slots_between(moment(&stretch["first"]), moment(&stretch["last"]))
        };
        fates.extend(slots.into_iter().map(|slot| (slot, fate.clone())));
    }
    fates
}

/// Slots of a range that did not run, and why.
fn not_run(http: &Http, job: &Planned, first: i64, last: i64) -> Vec<(i64, String)> {
    let fates = fates(http, job);
    let slots = job.slots_between(job.first, last);
    let slots = slots.into_iter().filter(|slot| *slot >= first);
    let odd = slots.filter_map(|slot| match fates.get(&slot) {
        Some((state, _)) if state == "succeeded" => None,
        fate => Some((slot - first, format!("{fate:?}"))),
    });
    odd.collect()
}

/// The last slot of a job that was missed, and when that was decided.
fn last_missed(http: &Http, job: &Planned) -> (i64, i64) {
    let runs = list(http, &format!("/v1/jobs/{}/runs?", job.id));
    let missed = runs.iter().filter(|run| run["reason"] == "missed");
    let last = missed.map(|run| {
        let stretch = &run["stretch"];
        let last = if stretch.is_null() {
            &run["slot"]
        } else {
            &stretch["last"]
        };
        (moment(last), moment(&run["settled_at"]))
    });
    last.max().unwrap()
}

/// Waits until each job has delivered a slot as young as that.
fn caught_up(target: &Receiver, planned: &[Planned], slot: i64) {
    for job in planned {
        wait_for("a young slot", || {
            let deliveries = target.deliveries();
            let of = |job: &Planned| {
                let mine = deliveries
                    .iter()
                    .filter(|it| it.header("punctual-job") == job.id);
                mine.map(slot_of).max()
            };
            (of(job) >= Some(slot)).then_some(())
        });
    }
    pause(Duration::from_millis(300));
}

fn sleep_until(moment: i64) {
    pause(Duration::from_millis(
        (moment - now()).max(0).unsigned_abs(),
    ));
}

#[test]
fn what_a_node_missed_is_caught_up_one_after_another() {
    let target = Receiver::start();
    let folder = TempDir::new().unwrap();
    let mut server = Server::start_in(folder.path(), &[]);
    let first = now() / 1_000 * 1_000 + 3_000;
    let mut all = jobs(first, "1s", "all", &target.url("/"));
    create(&server.http(), &mut all);
    let mut latest = jobs(first, "1s", "latest", &target.url("/"));
    create(&server.http(), &mut latest);
    caught_up(&target, &all, first + 1_000);
    server.signal(nix::sys::signal::Signal::SIGKILL);
    server.wait();
    let down = now();
    pause(Duration::from_secs(20));
    let server = Server::start_in(folder.path(), &[]);
    let up = now();
    caught_up(&target, &all, up + 2_000);
    caught_up(&target, &latest, up + 2_000);
    let http = server.http();
    // What was under way at the kill is another matter.
    let first = (down / 1_000 + 2) * 1_000;
    for (job, policy) in all.iter().zip(POLICIES) {
        assert_eq!(not_run(&http, job, first, up + 1_000), [], "all, {policy}");
    }
    for (job, policy) in latest.iter().zip(POLICIES) {
        let (last, decided_at) = last_missed(&http, job);
        // Of those that were missed when that was decided, the newest runs, and so does all that was only late.
        let newest = (decided_at - LATE_MAX - 1) / 1_000 * 1_000;
        assert_eq!(last + 1_000, newest, "latest, {policy}: at {decided_at}");
        assert_eq!(
            not_run(&http, job, newest, up + 1_000),
            [],
            "latest, {policy}"
        );
        let odd = not_run(&http, job, first, last);
        let missed = |(_, fate): &(i64, String)| fate.contains("missed");
        assert_eq!(odd.len() as i64, (last - first) / 1_000 + 1);
        assert!(odd.iter().all(missed), "{policy}: {odd:?}");
    }
}

#[test]
fn what_a_pause_held_back_is_caught_up() {
    let target = Receiver::start();
    let server = Server::start();
    let http = server.http();
    let first = now() / 1_000 * 1_000 + 3_000;
    let mut all = jobs(first, "1s", "all", &target.url("/"));
    create(&http, &mut all);
    caught_up(&target, &all, first + 1_000);
    for job in &all {
        let paused = http.send("POST", &format!("/v1/jobs/{}/pause", job.id), &[], b"");
        assert_eq!(paused.status, 200);
    }
    let from = (now() / 1_000 + 1) * 1_000;
    pause(Duration::from_secs(16));
    for job in &all {
        let path = format!("/v1/jobs/{}/resume", job.id);
        let resumed = http.post(&path, &json!({ "catch_up": true }));
        assert_eq!(resumed.status, 200);
    }
    let to = now();
    caught_up(&target, &all, to + 2_000);
    for (job, policy) in all.iter().zip(POLICIES) {
        assert_eq!(not_run(&http, job, from, to + 1_000), [], "{policy}");
    }
}

#[test]
fn a_store_that_was_away_costs_no_slot() {
    let database = match PgServer::private(Mode::Durable) {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let (folder, store) = (TempDir::new().unwrap(), database.address());
    let server = Server::start_in(folder.path(), &["--store", &store]);
    let target = Receiver::start();
    let http = server.http();
    let first = now() / 1_000 * 1_000 + 3_000;
    let mut all = jobs(first, "2s", "latest", &target.url("/"));
    for job in &mut all {
        job.every = Some(2_000);
    }
    create(&http, &mut all);
    caught_up(&target, &all, first + 2_000);
    database.stop(Stop::Fast).unwrap();
    pause(Duration::from_secs(6));
    database.start().unwrap();
    let back = now();
    caught_up(&target, &all, back + 5_000);
    for (job, policy) in all.iter().zip(POLICIES) {
        assert_eq!(not_run(&http, job, first, back + 3_000), [], "{policy}");
    }
}

#[test]
fn a_run_that_is_under_way_counts_and_what_waits_for_a_permit_does_not() {
    // One attempt at a time: the slow job's runs keep those of the others waiting for a second and more.
    let target = Receiver::answering(|delivery| match delivery.header("punctual-lane") {
        "critical" => Answer::ok().after(Duration::from_millis(2_500)),
        _ => Answer::ok(),
    });
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &["--running-max", "1"]);
    let http = server.http();
    let first = now() / 1_000 * 1_000 + 3_000;
    let mut slow = [Planned::every_second(first, &target.url("/"))
        .with("overlap", json!("skip"))
        .with("lane", json!("critical"))];
    create(&http, &mut slow);
    let mut quick = [Planned::every_second(first, &target.url("/")).with("overlap", json!("skip"))];
    create(&http, &mut quick);
    sleep_until(first + 9_000);
    let reasons = |job: &Planned| -> Vec<Option<String>> {
        let fates = fates(&http, job).into_values();
        let skipped = fates.filter(|(state, _)| state == "skipped");
        skipped.map(|(_, reason)| reason).collect()
    };
    let of_slow = reasons(&slow[0]);
    assert!(of_slow.contains(&Some("overlap".to_owned())), "{of_slow:?}");
    let of_quick = reasons(&quick[0]);
    let overlap = Some("overlap".to_owned());
    assert!(!of_quick.contains(&overlap), "{of_quick:?}");
}

/// One job for each policy, by its word; `queue_all` has room for two.
fn of_each_policy(first: i64, url: &str) -> Vec<Planned> {
    let mut jobs = jobs(first, "1s", "all", url);
    let full = json!({ "policy": "queue_all", "max": 2 });
    jobs[2] = jobs[2].clone().with("overlap", full);
    jobs
}

#[test]
fn a_run_that_counts_has_the_policy_decide() {
    let slow = |_: &Delivery| Answer::ok().after(Duration::from_millis(2_500));
    let target = Receiver::answering(slow);
    let server = Server::start();
    let http = server.http();
    let first = now() / 1_000 * 1_000 + 3_000;
    let mut planned = of_each_policy(first, &target.url("/"));
    create(&http, &mut planned);
    sleep_until(first + 9_000);
    for (job, policy) in planned.iter().zip(POLICIES) {
        let fates: Vec<_> = fates(&http, job).into_values().collect();
        let of = |state: &str, reason: Option<&str>| {
            let same = fates.iter().filter(|it| it.0 == state);
            same.filter(|it| it.1.as_deref() == reason).count()
        };
        let skipped = fates.iter().filter(|it| it.0 == "skipped").count();
        let expected = match policy {
            "skip" | "queue_one" => of("skipped", Some("overlap")),
            "queue_all" => of("skipped", Some("queue_full")),
            "cancel_running" | "allow" => 0,
            other => panic!("{other}"),
        };
        assert_eq!(skipped, expected, "{policy}: {fates:?}");
        let (begins, replaced) = match policy {
            "cancel_running" => (0, of("cancelled", Some("replaced"))),
            _ => (of("succeeded", None), 0),
        };
        // In nine seconds runs of two and a half end three times, one after another; with `allow` one each second.
        let enough = match policy {
            "cancel_running" => replaced >= 4,
            "allow" => begins >= 5,
            _ => begins >= 2 && skipped >= 2,
        };
        assert!(enough, "{policy}: {fates:?}");
    }
}

#[test]
fn what_an_overloaded_node_cannot_start_waits_and_beyond_ten_seconds_is_overload() {
    // One attempt at a time, and the first takes fifteen seconds.
    let target = Receiver::answering(|delivery| match delivery.header("punctual-lane") {
        "critical" => Answer::ok().after(Duration::from_secs(15)),
        _ => Answer::ok(),
    });
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &["--running-max", "1"]);
    let http = server.http();
    let first = now() / 1_000 * 1_000 + 4_000;
    let busy = Planned::one_off(first - 1_000, &target.url("/")).with("lane", json!("critical"));
    create(&http, &mut [busy]);
    let mut planned = of_each_policy(first, &target.url("/"));
    create(&http, &mut planned);
    caught_up(&target, &planned, first + 11_000);
    // Ten seconds' worth of slots wait behind the first of each job.
    let (waited, beyond) = (first + 11_000, first + 13_000);
    for (job, policy) in planned.iter().zip(POLICIES) {
        wait_for("the end of what waited", || {
            let odd = not_run(&http, job, first, waited);
            odd.is_empty().then_some(())
        });
        let fates = fates(&http, job);
        let fate = |slot: i64| fates.get(&slot).map(|it| it.1.as_deref());
        let expected = Some((policy != "allow").then_some("overload"));
        for slot in job.slots_between(waited + 1_000, beyond) {
            assert_eq!(
                fate(slot),
                expected,
                "{policy}, {}: {fates:?}",
                slot - first
            );
        }
        let odd = fates.values().filter(|it| it.0 == "skipped");
        let odd: Vec<_> = odd
            .filter(|it| it.1.as_deref() != Some("overload"))
            .collect();
        assert!(odd.is_empty(), "{policy}: {odd:?}");
    }
}
