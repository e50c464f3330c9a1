//! A process that is stopped for a while, as a debugger or a suspended machine would.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::ledger::Ledger;
use super::world::{HEAD_START, Planned, create, history, now, pause, stop_all};
use crate::support::{Receiver, Server, wait_for};

const RECURRING: i64 = 50;
const ONE_OFFS: i64 = 200;
const FROZEN: Duration = Duration::from_secs(10);
/// How long there is something to do.
const SPAN: i64 = 15_000;

#[test]
fn ten_seconds_of_sigstop_lose_and_double_nothing() {
    let receiver = Receiver::start();
    let server = Server::start();
    let url = receiver.url("/");
    let start = now() + HEAD_START.as_millis() as i64;
    let mut one_offs: Vec<Planned> = (0..ONE_OFFS)
        .map(|n| Planned::one_off(start + n * SPAN / ONE_OFFS, &url))
        .collect();
    let mut recurring: Vec<Planned> = (0..RECURRING)
        .map(|n| Planned::every_second(start + n * 20, &url))
        .collect();
    create(&server.http(), &mut recurring);
    create(&server.http(), &mut one_offs);
    wait_for("deliveries", || (receiver.count() > 100).then_some(()));

    server.signal(Signal::SIGSTOP);
    // What was on its way arrives.
    pause(Duration::from_millis(500));
    let before = receiver.count();
    pause(FROZEN);
    assert_eq!(receiver.count(), before, "it was not frozen");
    server.signal(Signal::SIGCONT);

    pause(Duration::from_millis((start + SPAN - now()).max(0) as u64));
    pause(Duration::from_secs(2));
    stop_all(&server.http(), &receiver, &mut recurring, 0);
    let history = history(&server.http());
    let planned = [recurring, one_offs].concat();
    let figures = Ledger::new(&planned, &history, receiver.deliveries()).check();
    eprintln!("{figures:?}");
    assert_eq!(figures.skipped_slots, 0, "all of it could be caught up");
    assert_eq!(figures.repeats, 0);
    assert_eq!(server.http().get("/healthz").status, 200);
    assert_eq!(server.stop().code(), Some(0));
}
