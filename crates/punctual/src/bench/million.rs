//! One million registered jobs: how soon a server is ready, what memory it takes, and whether the
//! other workloads still hold beside them.

use std::time::Duration;

use model::shard::ShardSet;

use super::child::Server;
use super::figures::{Bar, Figures, median, percentile};
use super::rig::{self, Base, Place};
use super::{floor, workloads};
use crate::failure::Failure;

const JOBS: usize = 1_000_000;
/// How often a workload runs beside them, in turn with itself alone.
const TURNS: usize = 5;

/// Fills a store with jobs that are due over the coming year.
async fn fill(place: &Place, progress: &dyn Fn(u64, u64)) -> Result<(), Failure> {
    let store = place.open().await?;
    let from = rig::now().plus(Duration::from_secs(3_600));
    let target = rig::callback("http://127.0.0.1:9/hook")?;
    for part in 0..JOBS / 10_000 {
        let jobs: Vec<_> = (0..10_000)
            .map(|n| {
                let ahead = Duration::from_secs((part * 10_000 + n) as u64 * 31);
                rig::one_off(from.plus(ahead), target.clone())
            })
            .collect();
        rig::load(&*store, &jobs).await?;
        progress(((part + 1) * 10_000) as u64, JOBS as u64);
    }
    Ok(())
}

/// How long a server on the store took until it said that it is ready, and its memory in megabytes a few seconds later.
async fn serve(place: &Place) -> Result<(f64, f64), Failure> {
    let server = Server::start(place, &[])?;
    rig::pause(Duration::from_secs(5)).await;
    Ok((server.ready, server.resident()?))
}

pub(super) async fn million(
    base: &Base,
    with_floor: bool,
    progress: &dyn Fn(u64, u64),
) -> Result<Vec<Figures>, Failure> {
    let place = Place::new(base)?;
    fill(&place, progress).await?;
    place.rest().await?;
    let (ready, resident) = serve(&place).await?;
    let registered = Figures::new("million")
        .with("ready", ready, " s")
        .with("memory", resident, " MB");
    let all = match &place {
        Place::Folder(folder) => {
            let registered = registered
                .bar(Bar::at_most("ready s", ready, 2.0))
                .bar(Bar::at_most("memory MB", resident, 250.0));
            let rate = workloads::drain(&place, rig::overdue(100_000, &rig::no_op()))
                .await?
                .rate;
            let mut drain = Figures::new("drain beside a million").with("runs", rate, "/s");
            if with_floor {
                drain = drain.against(floor::drain(folder.path(), 100_000).await?, 0.6);
            }
            let mut hot = workloads::hot_second(&place).await?;
            hot.workload = "hot-second beside a million";
            let mut precision = workloads::precision(&place, 4.0).await?;
            precision.workload = "precision beside a million";
            let mut recurring = workloads::recurring(&place, 2_000, Some(15.0)).await?;
            recurring.workload = "recurring beside a million";
            vec![registered, drain, hot, precision, recurring]
        }
        Place::Schema(_) => {
            let (middle, high) = plan(&place).await?;
            let beside = beside(base, &place).await?;
            let registered = registered
                .with("plan p50", middle, " ms")
                .with("plan p99", high, " ms")
                .bar(Bar::at_most("memory MB", resident, 300.0))
                .bar(Bar::at_most("plan p99 ms", high, 5.0));
            let mut all = vec![registered];
            all.extend(beside);
            all
        }
    };
    place.end().await?;
    Ok(all)
}

/// Workloads beside a million jobs, in turn with the same alone; bars may be missed by a quarter.
async fn beside(base: &Base, place: &Place) -> Result<Vec<Figures>, Failure> {
    let (mut with, mut alone) = (Vec::new(), Vec::new());
    let mut hot = Vec::new();
    for _ in 0..TURNS {
        with.push(
            workloads::drain(place, rig::overdue(100_000, &rig::no_op()))
                .await?
                .rate,
        );
        let bare = Place::new(base)?;
        alone.push(
            workloads::drain(&bare, rig::overdue(100_000, &rig::no_op()))
                .await?
                .rate,
        );
        bare.end().await?;
        let figures = workloads::in_quiet(async || workloads::hot_second(place).await).await?;
        hot.push(figures.measured.first().map_or(0.0, |(_, value, _)| *value));
    }
    let (with, alone) = (median(with.into_iter()), median(alone.into_iter()));
    let hot = median(hot.into_iter());
    let mut precision =
        workloads::in_quiet(async || workloads::precision(place, 6.0 * 1.25).await).await?;
    precision.workload = "precision beside a million";
    let mut recurring =
        workloads::in_quiet(async || workloads::recurring(place, 1_000, Some(25.0 * 1.25)).await)
            .await?;
    recurring.workload = "recurring beside a million";
    Ok(vec![
        Figures::new("drain beside a million")
            .with("runs", with, "/s")
            .with("alone", alone, "/s")
            .bar(Bar::at_least("ratio to alone", with / alone, 0.75)),
        Figures::new("hot-second beside a million")
            .with("last", hot, " ms")
            .bar(Bar::at_most("last ms", hot, 150.0 * 1.25)),
        precision,
        recurring,
    ])
}

/// How long plan's query takes, in milliseconds, with as much in its window as half a thousand slots a second bring:
/// the middle and the 99th of a hundred, for all shards and for half of them in turn.
async fn plan(place: &Place) -> Result<(f64, f64), Failure> {
    let store = place.open().await?;
    let from = rig::now().plus(Duration::from_secs(30));
    let jobs: Vec<_> = (0..500)
        .map(|n| rig::one_off(from.plus(Duration::from_millis(n * 2)), rig::no_op()))
        .collect();
    rig::load(&*store, &jobs).await?;
    // What one of two nodes has.
    let half: ShardSet = model::Shard::all().step_by(2).collect();
    let mut took = Vec::new();
    for turn in 0..1_000 {
        let shards = if turn % 2 == 0 { ShardSet::ALL } else { half };
        let begun = rig::uptime();
        store
            .due_jobs(&shards, from.plus(Duration::from_secs(1)), None, 4_000)
            .await
            .map_err(rig::failed)?;
        took.push(rig::uptime().saturating_sub(begun).as_secs_f64() * 1e3);
    }
    Ok((percentile(&mut took, 50.0), percentile(&mut took, 99.0)))
}
