//! A scripted day, in short: after it, every number of the overview is what happened, on either store, also after a restart.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use store::postgres::server::PgServer;
use tempfile::TempDir;

use crate::support::{Answer, Http, Receiver, Server, list, moment, now, pause, skip, wait_within};

/// Answers by the path: well, with an error, or late.
fn target() -> Receiver {
    Receiver::answering(|delivery| match delivery.path.as_str() {
        "/fail" => Answer::status(500),
        "/slow" => Answer::ok().after(Duration::from_millis(2_500)),
        "/hang" => Answer::ok().after(Duration::from_secs(600)),
        _ => Answer::ok(),
    })
}

fn create(http: &Http, body: &Value) -> String {
    let reply = http.post("/v1/jobs", body);
    assert_eq!(
        reply.status,
        201,
        "{}",
        String::from_utf8_lossy(&reply.body)
    );
    reply.json()["id"].as_str().unwrap().to_owned()
}

fn post(http: &Http, path: &str) -> Value {
    let reply = http.post(path, &json!({}));
    let text = String::from_utf8_lossy(&reply.body);
    assert!(reply.status < 300, "{path}: {text}");
    reply.json()
}

fn delete(http: &Http, id: &str) {
    let reply = http.send("DELETE", &format!("/v1/jobs/{id}"), &[], b"");
    assert!(
        reply.status < 300,
        "{}",
        String::from_utf8_lossy(&reply.body)
    );
}

/// What history and live runs say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Happened {
    fired: u64,
    ended: BTreeMap<String, u64>,
    retried: u64,
    skipped: BTreeMap<String, u64>,
    ended_attempts: u64,
    /// Attempts that left, also those under way.
    dispatched: u64,
    live: u64,
}

fn happened(http: &Http) -> Happened {
    let mut all = Happened::default();
    for run in list(http, "/v1/runs?") {
        let word = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
        let state = word("state");
        if state == "skipped" {
            let slots = run["stretch"]["count"].as_u64().unwrap_or(1);
            *all.skipped.entry(word("reason")).or_default() += slots;
            continue;
        }
        let attempts = run["attempts"].as_array().unwrap();
        let left = attempts.iter().filter(|it| !it["dispatched_at"].is_null());
        let left = left.count() as u64;
        all.ended_attempts += left;
        all.dispatched += left;
        all.fired += u64::from(run["kind"] == "slot");
        if ["ready", "running", "retrying"].contains(&state.as_str()) {
            all.live += 1;
            all.dispatched += u64::from(state == "running");
            all.retried += attempts.len() as u64;
        } else {
            *all.ended.entry(state).or_default() += 1;
            all.retried += (attempts.len() as u64).saturating_sub(1);
        }
    }
    all
}

/// The same by the overview, of a span.
fn counted(overview: &Value) -> Happened {
    let total = &overview["total"];
    let count = |name: &str| total[name].as_u64().unwrap();
    let states = ["succeeded", "dead", "cancelled"];
    let ended = states.map(|state| (state.to_owned(), count(state)));
    let skipped = total["skipped_by_reason"].as_object().unwrap();
    let skipped = skipped
        .iter()
        .map(|(why, it)| (why.clone(), it.as_u64().unwrap()));
    Happened {
        fired: count("fired"),
        ended: ended.into_iter().filter(|(_, count)| *count > 0).collect(),
        retried: count("retried"),
        skipped: skipped.collect(),
        ended_attempts: total["duration"]["count"].as_u64().unwrap(),
        dispatched: total["lateness"]["count"].as_u64().unwrap(),
        live: overview["live"]["live"].as_u64().unwrap(),
    }
}

fn overview(http: &Http, span: &str) -> Value {
    let reply = http.get(&format!("/v1/overview?span={span}"));
    assert_eq!(
        reply.status,
        200,
        "{}",
        String::from_utf8_lossy(&reply.body)
    );
    reply.json()
}

/// Until what is counted is what happened: it may be two seconds behind. Where slots were caught up, fewer are counted by
/// their lateness than left.
#[track_caller]
fn agree(http: &Http, caught_up: bool) -> (Happened, Value) {
    let mut last = String::new();
    let agreed = (0..100).find_map(|_| {
        let (mut truth, shown) = (happened(http), overview(http, "1h"));
        let counted = counted(&shown);
        if caught_up && counted.dispatched <= truth.dispatched {
            truth.dispatched = counted.dispatched;
        }
        last = format!("{truth:#?} but {counted:#?}");
        pause(Duration::from_millis(100));
        (truth == counted).then_some((truth, shown))
    });
    agreed.unwrap_or_else(|| panic!("{last}"))
}

/// Runs that succeed, fail and are tried again, are cancelled in three ways, are skipped for an overlap and for a pause.
fn day(http: &Http, target: &Receiver) {
    let soon = || format_moment(now() + 800);
    for number in 0..5 {
        let lane = if number == 0 { "critical" } else { "standard" };
        create(
            http,
            &json!({"schedule": {"at": soon()}, "target": target.url("/ok"), "lane": lane}),
        );
    }
    let retry = json!({"attempts_max": 3, "delay_first": "100ms", "jitter": 0});
    for _ in 0..2 {
        let body =
            json!({"schedule": {"at": soon()}, "target": target.url("/fail"), "retry": retry});
        create(http, &body);
    }
    // Ends by itself, while one of its runs is under way.
    let often = json!({
        "schedule": {"every": "1s", "ends_at": format_moment(now() + 6_000)},
        "target": target.url("/slow"), "overlap": "skip",
    });
    let often = create(http, &often);
    let paused = seldom(http, target);
    wait_within(60, "runs", || {
        let seen = happened(http);
        let of = |map: &BTreeMap<String, u64>, word: &str| map.get(word).copied().unwrap_or(0);
        let state = http.get(&format!("/v1/jobs/{often}")).json()["state"].clone();
        let enough = of(&seen.ended, "succeeded") >= 8 && of(&seen.ended, "dead") == 2;
        (enough && of(&seen.skipped, "overlap") >= 2 && state == "finished").then_some(())
    });
    between_slots();
    post(http, &format!("/v1/jobs/{paused}/pause"));
    pause(Duration::from_millis(8_000));
    // What the pause passed is recorded when it ends.
    between_slots();
    post(http, &format!("/v1/jobs/{paused}/resume"));
    post(http, &format!("/v1/jobs/{paused}/pause"));
    let never = format_moment(now() + 86_400_000);
    let hangs =
        json!({"schedule": {"at": never}, "target": target.url("/hang"), "overlap": "queue_one"});
    let (one, other) = (create(http, &hangs), create(http, &hangs));
    let run = |job: &str| {
        let run = post(http, &format!("/v1/jobs/{job}/run"));
        run["id"].as_str().unwrap().to_owned()
    };
    let (first, waits) = (run(&one), run(&one));
    post(http, &format!("/v1/runs/{waits}/cancel"));
    post(http, &format!("/v1/runs/{first}/cancel"));
    // One that runs and one that waits go with their job.
    run(&other);
    run(&other);
    delete(http, &other);
    // And one that goes on.
    run(&one);
    wait_within(30, "it to be marked as running", || {
        let live = overview(http, "1h")["live"].clone();
        (live["running"] == 1 && live["live"] == 1).then_some(())
    });
}

const PERIOD: i64 = 4_000;

/// Every four seconds, by the clock.
fn seldom(http: &Http, target: &Receiver) -> String {
    let anchor = format_moment(now() / PERIOD * PERIOD);
    let body = json!({
        "schedule": {"every": "4s", "anchor": anchor}, "target": target.url("/ok"), "catch_up": "none",
    });
    create(http, &body)
}

/// Waits until no slot of such a job is near: none is fired ahead, to be taken back by a pause.
fn between_slots() {
    while !(1_000..1_500).contains(&(now() % PERIOD)) {
        pause(Duration::from_millis(20));
    }
}

fn format_moment(millis: i64) -> String {
    model::Timestamp::from_millis(millis).to_string()
}

fn check_overview(start: impl Fn() -> Server) {
    let target = target();
    let server = start();
    let http = server.http();
    day(&http, &target);
    let (truth, shown) = agree(&http, false);
    let ended = |state: &str| truth.ended.get(state).copied();
    assert_eq!((ended("dead"), truth.retried), (Some(2), 4), "{truth:#?}");
    assert_eq!(ended("cancelled"), Some(4), "{truth:#?}");
    assert!(truth.skipped["paused"] >= 1, "{truth:#?}");
    check_shape(&shown, &truth);
    for run in list(&http, "/v1/runs?state=running&") {
        let id = run["id"].as_str().unwrap();
        post(&http, &format!("/v1/runs/{id}/cancel"));
    }
    // Nobody fires for longer than what is only late.
    let id = seldom(&http, &target);
    pause(Duration::from_millis(4_500));
    between_slots();
    assert!(server.stop().success());
    pause(Duration::from_secs(18));
    let server = start();
    let http = server.http();
    wait_within(30, "missed slots", || {
        happened(&http).skipped.contains_key("missed").then_some(())
    });
    between_slots();
    post(&http, &format!("/v1/jobs/{id}/pause"));
    let (truth, shown) = agree(&http, true);
    assert!(truth.skipped["missed"] >= 1, "{truth:#?}");
    let attention = shown["attention"].as_array().unwrap().iter();
    let codes: Vec<_> = attention.map(|it| it["code"].as_str().unwrap()).collect();
    assert!(
        codes.starts_with(&["dead-runs", "missed-slots"]),
        "{codes:?}"
    );
    for span in ["6h", "24h", "7d"] {
        assert_eq!(counted(&overview(&http, span)), truth, "{span}");
    }
    let said = server.printed("overview --span 24h");
    let line = format!("fired      {}, ", truth.fired);
    assert!(said.contains(&line), "{said}");
    assert!(server.stop().success());
}

/// What does not follow from the counts alone.
fn check_shape(shown: &Value, truth: &Happened) {
    let points = shown["points"].as_array().unwrap();
    assert_eq!((points.len(), &shown["point_seconds"]), (60, &json!(60)));
    let (from, to) = (moment(&shown["from"]), moment(&shown["to"]));
    assert_eq!(to - from, 3_600_000);
    assert_eq!(moment(&points[0]["at"]), from);
    let fired = points.iter().map(|point| point["fired"].as_u64().unwrap());
    assert_eq!(fired.sum::<u64>(), truth.fired, "points add up");
    let dead = shown["attention"][0].clone();
    assert_eq!(
        (&dead["code"], &dead["count"]),
        (&json!("dead-runs"), &json!(2))
    );
    let (well, dead) = (truth.ended["succeeded"] as f64, truth.ended["dead"] as f64);
    assert_eq!(shown["total"]["success_ratio"], json!(well / (well + dead)));
    let p99 = shown["total"]["duration"]["p99_ms"].as_f64().unwrap();
    assert!(
        (1_700.0..4_000.0).contains(&p99),
        "/slow takes 2.5 s: {p99}"
    );
    let jobs = &shown["jobs"];
    let of = |state: &str| jobs[state].as_u64().unwrap();
    assert_eq!(
        (of("paused"), of("finished"), of("invalid")),
        (1, 8, 0),
        "{jobs}"
    );
    assert_eq!((of("total"), of("active")), (10, 1), "{jobs}");
    assert_eq!(jobs["complete"], true);
    let standard = &shown["live"]["lanes"][1];
    assert_eq!(
        (&standard["lane"], &standard["running"]),
        (&json!("standard"), &json!(1))
    );
    assert_eq!(
        shown["nodes"].as_array().unwrap().len(),
        1,
        "root sees nodes"
    );
}

#[test]
fn every_number_of_the_overview_is_what_happened() {
    let folder = TempDir::new().unwrap();
    check_overview(|| Server::start_in(folder.path(), &[]));
}

#[test]
fn every_number_of_the_overview_is_what_happened_over_postgres() {
    let database = match PgServer::shared() {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let (store, folder) = (database.fresh_schema(), TempDir::new().unwrap());
    check_overview(|| Server::start_in(folder.path(), &["--store", &store]));
}
