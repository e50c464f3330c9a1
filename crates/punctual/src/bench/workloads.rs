//! Workloads on the store and the engine alone: drain, hot-second, precision, recurring.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use engine::{Clock, SystemClock};
use model::schedule::{Every, Period, Zone};
use model::{Schedule, Timestamp};

use super::figures::{Bar, Figures, percentile};
use super::floor;
use super::rig::{self, Folder, Notes};
use crate::failure::Failure;

/// How far ahead of the moment jobs are written, so that the writing is over when it comes.
const AHEAD: Duration = Duration::from_secs(3);

/// Due one-offs, from the start of the node to the last run in history.
pub async fn drain(folder: &Path, count: usize) -> Result<f64, Failure> {
    let store = rig::open(folder)?;
    let jobs = rig::overdue(count, &rig::no_op());
    rig::load(&store, &jobs).await?;
    drop(jobs);
    let notes = Notes::new(count);
    let begun = rig::uptime();
    let node = rig::start(&store, notes.registry()).await?;
    rig::wait("the drain", async || {
        notes.count() >= count && rig::is_settled(&store).await
    })
    .await?;
    let took = rig::uptime().saturating_sub(begun);
    node.stop(Duration::from_secs(5)).await;
    Ok(count as f64 / took.as_secs_f64())
}

pub async fn drain_round(base: &Path, with_floor: bool) -> Result<Figures, Failure> {
    const COUNT: usize = 100_000;
    let folder = Folder::new(base)?;
    let rate = drain(folder.path(), COUNT).await?;
    drop(folder);
    let figures = Figures::new("drain").with("runs", rate, "/s");
    if !with_floor {
        return Ok(figures);
    }
    let folder = Folder::new(base)?;
    let floor = floor::drain(folder.path(), COUNT).await?;
    Ok(figures.against(floor, 0.6))
}

/// Many one-offs due at one instant.
pub async fn hot_second(folder: &Path) -> Result<Figures, Failure> {
    const COUNT: usize = 20_000;
    let store = rig::open(folder)?;
    let due_at = rig::now().plus(AHEAD + Duration::from_secs(2));
    let jobs: Vec<_> = (0..COUNT)
        .map(|_| rig::one_off(due_at, rig::no_op()))
        .collect();
    rig::load(&store, &jobs).await?;
    let notes = Notes::new(COUNT);
    let node = rig::start(&store, notes.registry()).await?;
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
pub async fn precision(folder: &Path) -> Result<Figures, Failure> {
    const COUNT: usize = 10_000;
    const APART: Duration = Duration::from_millis(2);
    let (floor_middle, floor_high) = floor::timer(APART, 1_500).await?;
    let store = rig::open(folder)?;
    let first = rig::now().plus(AHEAD);
    let jobs: Vec<_> = (0..COUNT)
        .map(|n| rig::one_off(first.plus(APART.saturating_mul(n as u32)), rig::no_op()))
        .collect();
    rig::load(&store, &jobs).await?;
    let notes = Notes::new(COUNT);
    let node = rig::start(&store, notes.registry()).await?;
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
        .bar(Bar::at_most("p99 less floor ms", high - floor_high, 4.0))
        .bar(Bar::at_most("early", early as f64, 0.0)))
}

/// Jobs that are due every second.
pub async fn recurring(folder: &Path) -> Result<Figures, Failure> {
    const JOBS: usize = 2_000;
    const SECONDS: usize = 30;
    let store = rig::open(folder)?;
    let anchor = Timestamp::from_millis(rig::now().plus(AHEAD).as_millis() / 1_000 * 1_000);
    let period = Period::Elapsed(Duration::from_secs(1));
    let jobs: Vec<_> = (0..JOBS)
        .map(|_| {
            let every = Every {
                period,
                anchor,
                zone: Zone::utc(),
                after_completion: false,
            };
            rig::job(Schedule::from(every), rig::no_op())
        })
        .collect();
    rig::load(&store, &jobs).await?;
    let notes = Notes::new(JOBS * (SECONDS + 5));
    let node = rig::start(&store, notes.registry()).await?;
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
    let missed = (JOBS * SECONDS).saturating_sub(times.len());
    let twice = times.values().filter(|count| **count > 1).count();
    let (middle, high) = (percentile(&mut late, 50.0), percentile(&mut late, 99.0));
    Ok(Figures::new("recurring")
        .with("p50", middle, " ms")
        .with("p99", high, " ms")
        .with("missed", missed as f64, "")
        .with("twice", twice as f64, "")
        .bar(Bar::at_most("p99 ms", high, 15.0))
        .bar(Bar::at_most("missed", missed as f64, 0.0))
        .bar(Bar::at_most("twice", twice as f64, 0.0)))
}

/// How late each delivery was, in milliseconds; less than nothing is early.
fn lateness(seen: &[(model::JobId, Timestamp, i64)]) -> Vec<f64> {
    seen.iter()
        .map(|(_, slot, at)| (at - slot.as_millis() * 1_000) as f64 / 1e3)
        .collect()
}
