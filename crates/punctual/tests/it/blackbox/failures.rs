//! A job whose target is broken pauses itself, and says why wherever somebody looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::world::{list, pause};
use crate::support::{Answer, Receiver, Server, wait_for};

/// The runs of a job that ended so.
fn ended(server: &Server, job: &str, state: &str) -> Vec<Value> {
    list(
        &server.http(),
        &format!("/v1/jobs/{job}/runs?state={state}&"),
    )
}

fn metric(server: &Server) -> String {
    let text = String::from_utf8(server.http().get("/metrics").body).unwrap();
    let name = "punctual_failed_jobs_paused_total ";
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().to_owned()
}

#[test]
fn a_job_that_fails_three_times_in_a_row_is_paused_and_a_resume_begins_again() {
    let healthy = Arc::new(AtomicBool::new(false));
    let is_healthy = Arc::clone(&healthy);
    let target = Receiver::answering(move |_| {
        if is_healthy.load(Ordering::SeqCst) {
            Answer::ok()
        } else {
            Answer::status(503).saying("closed for repairs")
        }
    });
    let server = Server::start();
    server.printed(&format!(
        "job create --key broken --every 1s --url {} --attempts-max 1 --pause-after-failures 3",
        target.url("/")
    ));
    let paused = |times: usize| {
        wait_for("a pause", || {
            let job = server.http().get("/v1/jobs/key:broken").json();
            let dead = ended(&server, "key:broken", "dead").len();
            (job["state"] == "paused" && dead >= 3 * times).then_some(job)
        })
    };
    let job = paused(1);
    let note = job["note"].as_str().unwrap();
    let why = "paused after 3 failed runs in a row, the last: ";
    assert!(note.starts_with(why) && note.contains("503"), "{job}");
    assert_eq!(job["paused_by"], "system", "{job}");
    assert_eq!(job["pause_after_failures"], 3, "{job}");
    let shown = server.printed("job show broken");
    assert!(shown.contains(why), "{shown}");
    let audit = server.http().get("/v1/audit?action=job.pause").json();
    assert_eq!(audit["items"][0]["actor"], "system", "{audit}");
    assert_eq!(audit["items"].as_array().unwrap().len(), 1, "{audit}");
    assert_eq!(metric(&server), "1");
    let said = server
        .log()
        .matches("a job is paused for its failures")
        .count();
    assert_eq!(said, 1, "{}", server.log());
    // Nothing is sent any more, but what was on its way when the third failed.
    let dead = ended(&server, "key:broken", "dead").len();
    pause(Duration::from_millis(2_500));
    assert_eq!(ended(&server, "key:broken", "dead").len(), dead);
    assert!((3..=4).contains(&dead), "{dead}");

    server.printed("job resume broken");
    let job = paused(2);
    assert!(job["note"].as_str().unwrap().starts_with(why), "{job}");

    healthy.store(true, Ordering::SeqCst);
    server.printed("job resume broken");
    wait_for("three successes", || {
        (ended(&server, "key:broken", "succeeded").len() >= 3).then_some(())
    });
    let job = server.http().get("/v1/jobs/key:broken").json();
    assert_eq!(job["state"], "active", "{job}");
}
