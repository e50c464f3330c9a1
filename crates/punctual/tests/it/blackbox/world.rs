//! Jobs by the hundred, and what became of them.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use model::Timestamp;
use serde_json::{Value, json};

use super::ledger::Entry;
use crate::support::{Delivery, Http, Receiver, Reply, wait_for};
pub use crate::support::{list, moment, now, pause};

/// Jobs are made this long before their first slot, so that none is made after it.
pub const HEAD_START: Duration = Duration::from_secs(4);

/// How far a job may be behind, on a busy machine, before it is paused.
const BEHIND: i64 = 1_500;

fn text(millis: i64) -> String {
    Timestamp::from_millis(millis).to_string()
}

/// A job and the slots that it must have.
#[derive(Debug, Clone)]
pub struct Planned {
    pub id: String,
    pub first: i64,
    /// How far its slots are apart; a one-off has one.
    pub every: Option<i64>,
    /// Slots up to here must have been decided.
    pub until: i64,
    body: Value,
}

impl Planned {
    pub fn one_off(at: i64, url: &str) -> Self {
        Self {
            id: String::new(),
            first: at,
            every: None,
            until: at,
            body: json!({ "schedule": { "at": text(at) }, "target": url }),
        }
    }

    /// Every second, with every slot that can be made up for.
    pub fn every_second(first: i64, url: &str) -> Self {
        let body = json!({
            "schedule": { "every": "1s", "anchor": text(first) }, "target": url,
            "catch_up": { "policy": "all" }, "overlap": "allow",
        });
        Self {
            id: String::new(),
            first,
            every: Some(1_000),
            until: first,
            body,
        }
    }

    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.body[name] = value;
        self
    }

    /// One that is there already.
    pub fn named(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The slots from the first up to a moment.
    pub fn slots(&self, until: i64) -> Vec<i64> {
        self.slots_between(self.first, until)
    }

    /// The same, from one of them on.
    pub fn slots_between(&self, first: i64, last: i64) -> Vec<i64> {
        match self.every {
            None => vec![first],
            Some(period) => (0..)
                .map(|n| first + n * period)
                .take_while(|slot| *slot <= last)
                .collect(),
        }
    }
}

/// Makes all of them in one request.
#[track_caller]
pub fn create(http: &Http, planned: &mut [Planned]) {
    let lines: Vec<String> = planned.iter().map(|job| job.body.to_string()).collect();
    let ndjson = [("content-type", "application/x-ndjson")];
    let reply = http.send(
        "POST",
        "/v1/jobs/batch",
        &ndjson,
        lines.join("\n").as_bytes(),
    );
    let answers = String::from_utf8(reply.body).unwrap();
    assert_eq!(answers.lines().count(), planned.len(), "{answers}");
    for (job, line) in planned.iter_mut().zip(answers.lines()) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["status"], 201, "{line}");
        job.id = line["id"].as_str().unwrap().to_owned();
    }
}

/// Every run there is, once none of them moves any more.
#[track_caller]
pub fn history(http: &Http) -> Vec<Entry> {
    wait_for("every run's end", || {
        let alive = http
            .get("/v1/runs?state=ready,running,retrying&limit=1")
            .json();
        (alive["items"] == json!([])).then_some(())
    });
    list(http, "/v1/runs?").iter().map(Entry::of).collect()
}

/// Posts something to each job, several at a time; the answers are in the jobs' order.
#[track_caller]
pub fn post_each(http: &Http, planned: &[Planned], verb: &str) -> Vec<Reply> {
    let share = planned.len().div_ceil(4).max(1);
    thread::scope(|scope| {
        let threads: Vec<_> = planned
            .chunks(share)
            .map(|jobs| {
                let post = |job: &Planned| {
                    let path = format!("/v1/jobs/{}/{verb}", job.id);
                    http.send("POST", &path, &[], b"")
                };
                scope.spawn(move || jobs.iter().map(post).collect::<Vec<_>>())
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// Waits until every recurring job is about where the server's clock is, and pauses them all.
#[track_caller]
pub fn stop_all(http: &Http, receiver: &Receiver, planned: &mut [Planned], ahead: i64) {
    for _ in 0..200 {
        if has_caught_up(receiver, planned, now() + ahead - BEHIND) {
            break;
        }
        pause(Duration::from_millis(200));
    }
    let last = now() + ahead;
    let replies = post_each(http, planned, "pause");
    for (reply, job) in replies.iter().zip(planned.iter_mut()) {
        let body = String::from_utf8_lossy(&reply.body);
        assert_eq!(reply.status, 200, "{body}");
        job.until = last - 2 * BEHIND;
    }
}

/// Whether each job has delivered a slot as young as that.
fn has_caught_up(receiver: &Receiver, planned: &[Planned], moment: i64) -> bool {
    let mut behind: BTreeSet<&str> = planned.iter().map(|job| job.id.as_str()).collect();
    for delivery in receiver.deliveries().iter().rev() {
        if slot_of(delivery) >= moment {
            behind.remove(delivery.header("punctual-job"));
        }
    }
    behind.is_empty()
}

pub fn slot_of(delivery: &Delivery) -> i64 {
    Timestamp::parse(delivery.header("punctual-slot"))
        .unwrap()
        .as_millis()
}
