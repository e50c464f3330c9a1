//! Pause, edit, delete and cancel, while the job fires.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::ledger::Ledger;
use super::world::{HEAD_START, Planned, create, history, moment, now, pause, slot_of, stop_all};
use crate::support::{Answer, Delivery, Http, Receiver, Server, seed, wait_for};

const JOBS: usize = 50;

/// A change that was acknowledged: when, and what it said about runs on their way.
struct Acknowledged {
    at: i64,
    withdrawn: BTreeSet<String>,
    /// On their way before they were marked, or perhaps so.
    excused: BTreeSet<String>,
}

impl Acknowledged {
    fn of(answer: &Value) -> Self {
        let names = |kind: &str| -> Vec<String> {
            let names = answer["runs"][kind].as_array().unwrap();
            names
                .iter()
                .map(|name| name.as_str().unwrap().to_owned())
                .collect()
        };
        Self {
            at: now(),
            withdrawn: names("withdrawn").into_iter().collect(),
            excused: [names("dispatched"), names("unconfirmed")]
                .concat()
                .into_iter()
                .collect(),
        }
    }

    /// Nothing came after it, up to some moment, but what it spoke of.
    #[track_caller]
    fn holds(&self, job: &Planned, deliveries: &[Delivery], until: i64) {
        for delivery in deliveries {
            let run = delivery.header("punctual-run");
            let at = delivery.at_micros / 1_000;
            if delivery.header("punctual-job") != job.id || at > until {
                continue;
            }
            assert!(!self.withdrawn.contains(run), "{run} was withdrawn");
            let after = at > self.at;
            assert!(
                !after || self.excused.contains(run) && slot_of(delivery) <= self.at,
                "{run} of slot {} came at {at}, after {}",
                slot_of(delivery),
                self.at
            );
        }
    }
}

/// Requests a change of every job, each at a moment around one of its slots, which is when it is hardest.
fn change_each(
    jobs: &[Planned],
    seed: u64,
    request: impl Fn(&Planned) -> Value + Sync,
) -> Vec<Acknowledged> {
    let request = &request;
    thread::scope(|scope| {
        let threads: Vec<_> = jobs
            .iter()
            .enumerate()
            .map(|(n, job)| {
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(seed + n as u64);
                    let slot = job.first + (now() - job.first) / 1_000 * 1_000 + 2_000;
                    let moment = slot + random.random_range(-70..10);
                    pause(Duration::from_millis((moment - now()).max(0) as u64));
                    Acknowledged::of(&request(job))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

#[track_caller]
fn send(http: &Http, method: &str, path: &str, body: &Value) -> Value {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let json = [("content-type", "application/json")];
    let reply = http.send(method, path, &json, body.as_bytes());
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    reply.json()
}

fn recurring(receiver: &Receiver, server: &Server, count: usize) -> Vec<Planned> {
    let start = now() + HEAD_START.as_millis() as i64;
    let mut jobs: Vec<Planned> = (0..count as i64)
        .map(|n| Planned::every_second(start + n * 17, &receiver.url("/")))
        .collect();
    create(&server.http(), &mut jobs);
    wait_for("deliveries", || {
        (receiver.count() > count * 2).then_some(())
    });
    jobs
}

#[track_caller]
fn all_hold(acknowledged: &[Acknowledged], jobs: &[Planned], receiver: &Receiver, until: i64) {
    let deliveries = receiver.deliveries();
    for (change, job) in acknowledged.iter().zip(jobs) {
        change.holds(job, &deliveries, until);
    }
    let count = |of: fn(&Acknowledged) -> usize| acknowledged.iter().map(of).sum::<usize>();
    eprintln!(
        "{} changes, {} runs withdrawn, {} excused",
        acknowledged.len(),
        count(|change| change.withdrawn.len()),
        count(|change| change.excused.len())
    );
}

#[test]
fn nothing_is_delivered_for_slots_after_an_acknowledged_pause_or_delete() {
    let seed = seed();
    let receiver = Receiver::start();
    let server = Server::start();
    let http = server.http();
    let mut jobs = recurring(&receiver, &server, JOBS);
    let post = |job: &Planned, verb: &str| {
        send(
            &http,
            "POST",
            &format!("/v1/jobs/{}/{verb}", job.id),
            &Value::Null,
        )
    };
    let paused = change_each(&jobs, seed, |job| post(job, "pause"));
    pause(Duration::from_secs(3));
    all_hold(&paused, &jobs, &receiver, now());

    // The pause's slots become skipped ones, and it goes on.
    change_each(&jobs, seed, |job| post(job, "resume"));
    pause(Duration::from_secs(2));
    let mut kept = jobs.split_off(JOBS / 2);
    let deleted = change_each(&jobs, seed, |job| {
        send(
            &http,
            "DELETE",
            &format!("/v1/jobs/{}", job.id),
            &Value::Null,
        )
    });
    for (job, change) in jobs.iter_mut().zip(&deleted) {
        job.until = change.at - 3_000;
    }
    pause(Duration::from_secs(3));
    all_hold(&deleted, &jobs, &receiver, now());

    stop_all(&http, &receiver, &mut kept, 0);
    let history = history(&http);
    let figures = Ledger::new(&[jobs, kept].concat(), &history, receiver.deliveries()).check();
    eprintln!("{figures:?}");
    assert_eq!(figures.repeats, 0);
    assert!(
        figures.skipped_slots >= 2 * JOBS as u64,
        "paused for seconds"
    );
}

#[test]
fn edits_neither_lose_nor_double_a_slot() {
    let seed = seed();
    let receiver = Receiver::start();
    let server = Server::start();
    let mut jobs = recurring(&receiver, &server, 30);
    for round in 0..4 {
        // The same slots, written again; every other time in the schedule itself.
        change_each(&jobs, seed + round, |job| {
            let schedule = json!({ "schedule": job.body()["schedule"], "payload": round });
            let payload = json!({ "payload": round });
            let body = if round % 2 == 0 { payload } else { schedule };
            send(
                &server.http(),
                "PATCH",
                &format!("/v1/jobs/{}", job.id),
                &body,
            )
        });
    }
    stop_all(&server.http(), &receiver, &mut jobs, 0);
    let history = history(&server.http());
    let figures = Ledger::new(&jobs, &history, receiver.deliveries()).check();
    eprintln!("{figures:?}");
    assert_eq!((figures.repeats, figures.skipped_slots), (0, 0));
}

#[test]
fn an_edit_after_an_outage_drops_no_missed_slot() {
    let receiver = Receiver::start();
    let folder = TempDir::new().unwrap();
    let server = Server::start_in(folder.path(), &[]);
    let mut kept = recurring(&receiver, &server, 20);
    server.kill();
    pause(Duration::from_secs(3));
    let server = Server::start_in(folder.path(), &[]);
    let http = server.http();
    let path = |job: &Planned| format!("/v1/jobs/{}", job.id);
    let mut moved = kept.split_off(10);
    let mut after = Vec::new();
    for job in &mut moved {
        // Half a second beside the old slots, so that they can be told apart.
        let aside = Planned::every_second(job.first + 500, &receiver.url("/"));
        job.until = now();
        let body = json!({ "schedule": aside.body()["schedule"] });
        let answer = send(&http, "PATCH", &path(job), &body);
        let mut aside = aside.named(&job.id);
        aside.first = moment(&answer["next_slot"]);
        after.push(aside);
    }
    for job in &kept {
        send(&http, "PATCH", &path(job), &json!({ "payload": "new" }));
    }
    pause(Duration::from_secs(2));
    stop_all(&http, &receiver, &mut kept, 0);
    stop_all(&http, &receiver, &mut after, 0);

    let is_new = |job: &str, slot: i64| {
        let job = after.iter().find(|moved| moved.id == job);
        job.is_some_and(|job| (slot - job.first) % 1_000 == 0)
    };
    let (new, old): (Vec<_>, Vec<_>) = history(&http)
        .into_iter()
        .partition(|entry| is_new(&entry.job, entry.slot.unwrap()));
    let (new_deliveries, old_deliveries): (Vec<_>, Vec<_>) = receiver
        .deliveries()
        .into_iter()
        .partition(|delivery| is_new(delivery.header("punctual-job"), slot_of(delivery)));
    let before = Ledger::new(&[kept, moved].concat(), &old, old_deliveries).check();
    eprintln!("{before:?}");
    Ledger::new(&after, &new, new_deliveries).check();
}

#[test]
fn a_cancelled_run_ends_and_does_not_come_again() {
    let receiver = Receiver::answering(|delivery| match delivery.path.as_str() {
        "/slow" => Answer::ok().after(Duration::from_secs(30)),
        _ => Answer::status(500),
    });
    let server = Server::start();
    let http = server.http();
    let mut jobs: Vec<Planned> = ["/slow", "/failing", "/slow"]
        .iter()
        .map(|path| Planned::one_off(now() + 500, &receiver.url(path)))
        .map(|job| job.with("retry", json!({ "delay_first": "2s", "attempts_max": 9 })))
        .collect();
    create(&http, &mut jobs);
    wait_for("deliveries", || (receiver.count() == 3).then_some(()));
    pause(Duration::from_millis(500));
    let run_of = |job: &Planned| {
        let deliveries = receiver.deliveries();
        let of_job = |delivery: &&Delivery| delivery.header("punctual-job") == job.id;
        let delivery = deliveries.iter().find(of_job).unwrap();
        delivery.header("punctual-run").to_owned()
    };
    for job in &jobs[..2] {
        send(
            &http,
            "POST",
            &format!("/v1/runs/{}/cancel", run_of(job)),
            &Value::Null,
        );
    }
    send(
        &http,
        "DELETE",
        &format!("/v1/jobs/{}", jobs[2].id),
        &Value::Null,
    );
    pause(Duration::from_secs(4));
    assert_eq!(receiver.count(), 3, "none of them came again");
    for job in &jobs {
        let run = http.get(&format!("/v1/runs/{}", run_of(job))).json();
        assert_eq!(run["state"], "cancelled", "{run}");
    }
}
