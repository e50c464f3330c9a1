//! Workloads on the store and the engine alone: drain and repeat, hot-second, precision, recurring.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, SystemClock};
use model::{Job, Timestamp};

use super::figures::{Bar, Figures, percentile};
use super::floor_pg::{self, Onward};
use super::rig::{self, Base, Notes, Place};
use super::{floor, output};
use crate::failure::Failure;

/// How far ahead of the moment jobs are written, so that the writing is over when it comes.
const AHEAD: Duration = Duration::from_secs(3);
/// What is drained.
pub(super) const COUNT: usize = 100_000;

/// How fast a drain went, and what the database wrote for each run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drained {
    pub rate: f64,
    pub wal: f64,
    pub tuples: f64,
}

/// Due jobs, from the start of the node to the last run in history.
pub(super) async fn drain(place: &Place, jobs: Vec<Arc<Job>>) -> Result<Drained, Failure> {
    let count = jobs.len();
    let store = place.open().await?;
    rig::load(&*store, &jobs).await?;
    drop((jobs, store));
    let before = place.rest().await?;
    let store = place.open().await?;
    let notes = Notes::new(count);
    let begun = rig::uptime();
    let node = rig::start(place, &store, notes.registry()).await?;
    rig::wait("the drain", async || {
        notes.count() >= count && rig::is_settled(&*store).await
    })
    .await?;
    let took = rig::uptime().saturating_sub(begun);
    node.stop(Duration::from_secs(5)).await;
    drop(store);
    let after = place.rest().await?;
    let each = |before: i64, after: i64| (after - before) as f64 / count as f64;
    Ok(Drained {
        rate: count as f64 / took.as_secs_f64(),
        wal: each(before.wal, after.wal),
        tuples: each(before.tuples, after.tuples),
    })
}

/// What each run costs a database, held to its bars.
fn costs(figures: Figures, base: &Base, drained: Drained) -> Figures {
    if !base.is_database() {
        return figures;
    }
    figures
        .with("rows written", drained.tuples, " a run")
        .with("log", drained.wal, " B a run")
        .bar(Bar::at_most("rows written a run", drained.tuples, 4.1))
        .bar(Bar::at_most("log B a run", drained.wal, 1_100.0))
}

pub(super) async fn drain_round(base: &Base, with_floor: bool) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    let drained = drain(&place, rig::overdue(COUNT, &rig::no_op())).await?;
    let figures = Figures::new("drain").with("runs", drained.rate, "/s");
    let figures = costs(figures, base, drained);
    let figures = match (&place, with_floor) {
        (_, false) => figures,
        (Place::Folder(_), true) => {
            let Place::Folder(folder) = Place::new(base)? else {
                return Ok(figures);
            };
            figures.against(floor::drain(folder.path(), COUNT).await?, 0.6)
        }
        (Place::Schema(schema), true) => {
            figures.against(floor_pg::drain(schema, COUNT, Onward::Finished).await?, 0.6)
        }
    };
    place.end().await?;
    Ok(figures)
}

/// Recurring jobs with every default, each with a slot that is due: they move on to the next.
pub(super) async fn repeat_round(base: &Base, with_floor: bool) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    let drained = drain(&place, rig::overdue_recurring(COUNT, &rig::no_op())).await?;
    let figures = Figures::new("repeat").with("runs", drained.rate, "/s");
    let figures = costs(figures, base, drained);
    let figures = match (&place, with_floor) {
        (Place::Folder(_), _) | (_, false) => figures,
        (Place::Schema(schema), true) => {
            let onward = Onward::After(Duration::from_secs(3_600));
            figures.against(floor_pg::drain(schema, COUNT, onward).await?, 0.6)
        }
    };
    place.end().await?;
    Ok(figures)
}

/// Measures while the machine is quiet, as a bare timer shows before and after; three tries, the last one counts.
pub(super) async fn in_quiet(
    measure: impl AsyncFn() -> Result<Figures, Failure>,
) -> Result<Figures, Failure> {
    const QUIET: f64 = 1.0;
    let mut tries = 0;
    loop {
        let (_, before) = floor::timer(Duration::from_millis(2), 500).await?;
        let figures = measure().await?;
        let (_, after) = floor::timer(Duration::from_millis(2), 500).await?;
        tries += 1;
        let noise = before.max(after);
        if noise <= QUIET || tries == 3 {
            return Ok(figures.with("bare timer p99", noise, " ms"));
        }
        output::note(&format!(
            "the machine is busy (a bare timer is {noise:.1} ms late): again"
        ));
    }
}

/// Many one-offs due at one instant.
pub(super) async fn hot_second(place: &Place) -> Result<Figures, Failure> {
    const COUNT: usize = 20_000;
    let store = place.open().await?;
    let due_at = rig::now().plus(AHEAD + Duration::from_secs(2));
    let jobs: Vec<_> = (0..COUNT)
        .map(|_| rig::one_off(due_at, rig::no_op()))
        .collect();
    rig::load(&*store, &jobs).await?;
    let notes = Notes::new(COUNT);
    let node = rig::start(place, &store, notes.registry()).await?;
    rig::wait("the hot second", async || notes.count() >= COUNT).await?;
    node.stop(Duration::from_secs(5)).await;
    let mut late: Vec<f64> = lateness(&notes.take());
    let early = late.iter().filter(|late| **late < 0.0).count();
    let last = percentile(&mut late, 100.0);
    let middle = percentile(&mut late, 50.0);
    Ok(Figures::new("hot-second")
        .with("last", last, " ms")
        .with("p50", middle, " ms")
        .with("early", early as f64, "")
        .bar(Bar::at_most("last ms", last, 150.0))
        .bar(Bar::at_most("early", early as f64, 0.0)))
}

/// 500 slots a second at distinct milliseconds.
pub(super) async fn precision(place: &Place, p99_max: f64) -> Result<Figures, Failure> {
    const COUNT: usize = 10_000;
    const APART: Duration = Duration::from_millis(2);
    let (floor_middle, floor_high) = floor::timer(APART, 1_500).await?;
    let store = place.open().await?;
    let first = rig::now().plus(AHEAD);
    let jobs: Vec<_> = (0..COUNT)
        .map(|n| rig::one_off(first.plus(APART.saturating_mul(n as u32)), rig::no_op()))
        .collect();
    rig::load(&*store, &jobs).await?;
    let notes = Notes::new(COUNT);
    let node = rig::start(place, &store, notes.registry()).await?;
    rig::wait("the slots", async || notes.count() >= COUNT).await?;
    node.stop(Duration::from_secs(5)).await;
    let mut late = lateness(&notes.take());
    let early = late.iter().filter(|late| **late < 0.0).count();
    let (middle, high) = (percentile(&mut late, 50.0), percentile(&mut late, 99.0));
    Ok(Figures::new("precision")
        .with("p50", middle, " ms")
        .with("p99", high, " ms")
        .with("timer floor p50", floor_middle, " ms")
        .with("timer floor p99", floor_high, " ms")
        .with("early", early as f64, "")
        .bar(Bar::at_most(
            "p50 less floor ms",
            middle - floor_middle,
            0.5,
        ))
        .bar(Bar::at_most(
            "p99 less floor ms",
            high - floor_high,
            p99_max,
        ))
        .bar(Bar::at_most("early", early as f64, 0.0)))
}

/// Jobs that are due every second.
pub(super) async fn recurring(
    place: &Place,
    jobs: usize,
    p99_max: Option<f64>,
) -> Result<Figures, Failure> {
    const SECONDS: usize = 30;
    let store = place.open().await?;
    let ahead = AHEAD + Duration::from_micros(20 * jobs as u64);
    let anchor = Timestamp::from_millis(rig::now().plus(ahead).as_millis() / 1_000 * 1_000);
    let all: Vec<_> = (0..jobs)
        .map(|_| rig::every(Duration::from_secs(1), anchor, rig::no_op()))
        .collect();
    rig::load(&*store, &all).await?;
    let notes = Notes::new(jobs * (SECONDS + 5));
    let node = rig::start(place, &store, notes.registry()).await?;
    let end = anchor.plus(Duration::from_secs(SECONDS as u64));
    SystemClock
        .sleep(end.since(rig::now()) + Duration::from_millis(300))
        .await;
    node.stop(Duration::from_secs(5)).await;
    let mut seen = notes.take();
    seen.retain(|(_, slot, _)| *slot < end);
    let mut late = lateness(&seen);
    let mut times: BTreeMap<_, u32> = BTreeMap::new();
    for (job, slot, _) in &seen {
        *times.entry((*job, *slot)).or_default() += 1;
    }
    let missed = (jobs * SECONDS).saturating_sub(times.len());
    let twice = times.values().filter(|count| **count > 1).count();
    let (middle, high) = (percentile(&mut late, 50.0), percentile(&mut late, 99.0));
    let figures = Figures::new("recurring")
        .with("p50", middle, " ms")
        .with("p99", high, " ms")
        .with("missed", missed as f64, "")
        .with("twice", twice as f64, "");
    let figures = match p99_max {
        Some(bound) => figures.bar(Bar::at_most("p99 ms", high, bound)),
        None => figures,
    };
    Ok(figures
        .bar(Bar::at_most("missed", missed as f64, 0.0))
        .bar(Bar::at_most("twice", twice as f64, 0.0)))
}

/// How late each delivery was, in milliseconds; less than nothing is early.
pub(super) fn lateness(seen: &[(model::JobId, Timestamp, i64)]) -> Vec<f64> {
    seen.iter()
        .map(|(_, slot, at)| (at - slot.as_millis() * 1_000) as f64 / 1e3)
        .collect()
}
