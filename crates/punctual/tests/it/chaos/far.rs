//! A database far away: every word to it takes a while, and slots are on time all the same.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::Overlap;
use store::postgres::server::{Mode, PgServer, address_at};
use tempfile::TempDir;

use super::load::{self, LoadJob, Manner};
use super::proxy::Proxy;
use super::recording::Arrival;
use super::{HEAD_START, create, setting};
use crate::support::{BINARY, Server, now, pause, skip};

/// What each direction takes.
const DELAY: Duration = Duration::from_millis(30);
/// What the node has to learn how far it is.
const LEARNING: i64 = 5_000;
const MEASURED: i64 = 12_000;
const RATE: f64 = 100.0;
/// The time of the database is known to half a round trip, and nothing starts before it is certain; the rest is for
/// a busy machine. A node that does not fire as much sooner as it is far has a median of nearly a second. What is beyond
/// the median is printed and not bounded: it says more about the machine than about the node.
const LATE_MEDIAN_MAX: i64 = 150;

/// How late the first attempts of these slots were, in order.
fn lateness<'a>(
    jobs: impl Iterator<Item = &'a LoadJob>,
    arrivals: &[Arrival],
    from: i64,
) -> Vec<i64> {
    let offsets: BTreeMap<&str, i64> = jobs.map(|job| (job.id.as_str(), job.offset)).collect();
    let first = arrivals.iter().filter(|it| it.attempt == 1);
    let late = first.filter_map(|it| {
        let due_at = it.slot + offsets.get(&*it.job)?;
        (due_at >= from).then_some(it.at_micros / 1_000 - due_at)
    });
    let mut late: Vec<i64> = late.collect();
    late.sort_unstable();
    late
}

fn quantile(sorted: &[i64], part: f64) -> i64 {
    let at = (sorted.len().saturating_sub(1) as f64 * part) as usize;
    sorted.get(at).copied().expect("some slots")
}

/// Whether nothing but time decides when its runs start.
fn is_free(job: &&LoadJob) -> bool {
    let waits = job.manner == Manner::Slow && job.overlap != Overlap::Allow;
    !waits && job.link().is_none()
}

#[test]
fn slots_are_on_time_although_the_database_is_far() {
    let database = match PgServer::private(Mode::Durable) {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let delay = setting("FAR_DELAY").map_or(DELAY, Duration::from_millis);
    let binary: PathBuf = setting("CHAOS_BINARY").unwrap_or_else(|| PathBuf::from(BINARY));
    let link = Proxy::to(database.port());
    let folder = TempDir::new().unwrap();
    let store = address_at(link.port());
    let server = Server::start_from(&binary, folder.path(), &["--store", &store]);
    let (target, arrivals) = load::target();
    let from = now() + HEAD_START;
    let until = from + LEARNING + MEASURED;
    let rate = setting("CHAOS_RATE").unwrap_or(RATE);
    let mut jobs = load::recurring(rate, from, until, 1);
    create(&server.http(), &target, &mut jobs);
    link.delay(delay);
    pause(Duration::from_millis((until - now()) as u64) + Duration::from_secs(3));

    let arrivals = arrivals.lock().unwrap().clone();
    let exclusive = |job: &&LoadJob| job.overlap != Overlap::Allow;
    let free = || jobs.iter().filter(is_free);
    for (name, late) in [
        ("all", lateness(free(), &arrivals, from + LEARNING)),
        ("from the first on", lateness(free(), &arrivals, from)),
        (
            "one at a time",
            lateness(free().filter(exclusive), &arrivals, from + LEARNING),
        ),
    ] {
        let [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1.0].map(|part| quantile(&late, part));
        let count = late.len();
        eprintln!("{name}: {count} slots, late by {p50} / {p90} / {p99} / {max} ms");
    }
    let late = lateness(free(), &arrivals, from + LEARNING);
    let p50 = quantile(&late, 0.5);
    assert!(p50 <= LATE_MEDIAN_MAX, "{p50} ms late");
    // Those that run one at a time may be skipped on a busy machine.
    let due = |job: &LoadJob| {
        let slots = job.slots().into_iter().map(|slot| slot + job.offset);
        slots.filter(|due_at| *due_at >= from + LEARNING).count()
    };
    let all = || free().filter(|job| !exclusive(job));
    let expected: usize = all().map(due).sum();
    let came = lateness(all(), &arrivals, from + LEARNING).len();
    assert_eq!(came, expected, "every slot once");
}
