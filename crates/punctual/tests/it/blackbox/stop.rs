//! A stop in good order, in the middle of everything.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::ledger::Ledger;
use super::world::{HEAD_START, Planned, create, history, list, now, pause, stop_all};
use crate::support::{Answer, Receiver, Server, wait_for};

const GRACE: Duration = Duration::from_secs(4);
/// What closing the store may take beyond the grace, on a busy machine.
const MARGIN: Duration = Duration::from_secs(6);

/// Two seconds for slow ones; endless ones answer at their second attempt only.
fn slow_receiver() -> Receiver {
    Receiver::answering(|delivery| match delivery.path.as_str() {
        "/slow" => Answer::ok().after(Duration::from_secs(2)),
        _ if delivery.header("punctual-attempt") == "1" => {
            Answer::ok().after(Duration::from_secs(40))
        }
        _ => Answer::ok(),
    })
}

#[test]
fn a_stop_lets_work_finish_and_hands_back_what_does_not() {
    let receiver = slow_receiver();
    let folder = TempDir::new().unwrap();
    let grace = format!("{}s", GRACE.as_secs());
    let server = Server::start_in(folder.path(), &["--grace", &grace]);
    let due = now() + 2_000;
    let jobs = |count: i64, path: &str| -> Vec<Planned> {
        (0..count)
            .map(|n| Planned::one_off(due + n, &receiver.url(path)))
            .collect()
    };
    let mut fragile = jobs(5, "/fragile")
        .into_iter()
        .map(|job| job.with("delivery", json!("at_most_once")))
        .collect::<Vec<_>>();
    let mut sturdy = [jobs(40, "/slow"), jobs(20, "/endless")].concat();
    create(&server.http(), &mut fragile);
    create(&server.http(), &mut sturdy);
    wait_for("deliveries", || (receiver.count() == 65).then_some(()));

    let stopped_at = now();
    assert_eq!(server.stop().code(), Some(0));
    let took = Duration::from_millis((now() - stopped_at).unsigned_abs());
    eprintln!("stopped within {took:?}");
    assert!(took >= GRACE, "{took:?}");
    assert!(took < GRACE + MARGIN, "{took:?}");
    assert_eq!(receiver.count(), 65);

    let server = Server::start_in(folder.path(), &[]);
    wait_for("second attempts", || (receiver.count() >= 85).then_some(()));
    let mut history = history(&server.http());
    for job in &fragile {
        let runs = list(&server.http(), &format!("/v1/jobs/{}/runs?", job.id));
        let (state, outcome) = (&runs[0]["state"], &runs[0]["outcome"]);
        assert_eq!(
            (state, outcome),
            (&json!("dead"), &json!("lost")),
            "{runs:?}"
        );
    }
    history.retain(|entry| fragile.iter().all(|job| job.id != entry.job));
    let mut deliveries = receiver.deliveries();
    deliveries.retain(|delivery| delivery.path != "/fragile");
    assert_eq!(
        deliveries.len(),
        80,
        "what may run once only did not run again"
    );
    let figures = Ledger::new(&sturdy, &history, deliveries).check();
    assert_eq!(figures.repeats, 20, "{figures:?}");
}

#[test]
fn stops_and_starts_lose_and_double_no_slot() {
    let receiver = Receiver::start();
    let folder = TempDir::new().unwrap();
    let mut server = Server::start_in(folder.path(), &[]);
    let start = now() + HEAD_START.as_millis() as i64;
    let mut jobs: Vec<Planned> = (0..200)
        .map(|n| Planned::every_second(start + n * 5, &receiver.url("/")))
        .collect();
    create(&server.http(), &mut jobs);
    for _ in 0..3 {
        let before = receiver.count();
        wait_for("deliveries", || {
            (receiver.count() > before + 300).then_some(())
        });
        assert_eq!(server.stop().code(), Some(0));
        server = Server::start_in(folder.path(), &[]);
    }
    pause(Duration::from_secs(2));
    stop_all(&server.http(), &receiver, &mut jobs, 0);
    let history = history(&server.http());
    let figures = Ledger::new(&jobs, &history, receiver.deliveries()).check();
    eprintln!("{figures:?}");
    assert_eq!((figures.repeats, figures.skipped_slots), (0, 0));
}
