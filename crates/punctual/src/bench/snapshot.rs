//! A long transaction beside us, as a dump or a standby's feedback has one open: nothing that is written over or taken out
//! meanwhile can be cleaned up. Whether slots stay on time all the same, and what that costs the server.

use std::time::Duration;

use clap::ValueEnum;
use model::Timestamp;
use tokio_postgres::Client;

use super::database::{Schema, Spent, failed};
use super::figures::{Bar, Figures, percentile};
use super::output;
use super::rig::{self, Base, Notes, Place};
use super::workloads::lateness;
use crate::failure::Failure;

/// How often the jobs are due while the snapshot is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Beside {
    /// 3,000 jobs every second, for two minutes
    Second,
    /// 240,000 jobs every minute, for ten
    Minute,
}

impl Beside {
    fn jobs(self) -> usize {
        match self {
            Self::Second => 3_000,
            Self::Minute => 240_000,
        }
    }

    fn period(self) -> Duration {
        match self {
            Self::Second => Duration::from_secs(1),
            Self::Minute => Duration::from_secs(60),
        }
    }

    /// How long it goes on before, and how long the snapshot is open.
    fn lasts(self) -> (u32, u32) {
        match self {
            Self::Second => (30, 120),
            Self::Minute => (90, 600),
        }
    }

    /// How much later slots may be, and how much more the server may spend.
    fn bars(self) -> (f64, f64) {
        match self {
            Self::Second => (1.5, 4.0),
            Self::Minute => (1.2, 1.5),
        }
    }
}

/// What a stretch of time was like.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    middle: f64,
    high: f64,
    cores: f64,
}

pub(super) async fn snapshot(base: &Base, beside: Beside) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    let Place::Schema(schema) = &place else {
        return Err(Failure::usage(
            "an open snapshot needs a database: give one with --store",
        ));
    };
    let (before, during) = run(&place, schema, beside).await?;
    place.end().await?;
    Ok(figures(beside, before, during))
}

/// Jobs all over the period, as those of many people are.
async fn run(
    place: &Place,
    schema: &Schema,
    beside: Beside,
) -> Result<(Stretch, Stretch), Failure> {
    let store = place.open().await?;
    let anchor = rig::now().plus(Duration::from_secs(3)).as_millis() / 1_000 * 1_000;
    let anchor = Timestamp::from_millis(anchor);
    let (count, period) = (beside.jobs(), beside.period());
    let jobs: Vec<_> = (0..count)
        .map(|n| {
            let anchor = anchor.plus(period.mul_f64(n as f64 / count as f64));
            rig::every(period, anchor, rig::no_op())
        })
        .collect();
    rig::load(&*store, &jobs).await?;
    drop(jobs);
    let notes = Notes::new(0);
    let node = rig::start(place, &store, notes.registry()).await?;
    // What was written while they were loaded comes to rest.
    rig::pause(Duration::from_secs(20)).await;
    let reader = schema.client().await?;
    let (alone, open) = beside.lasts();
    let before = stretch(&reader, &notes, alone).await?;
    let neighbour = schema.client().await?;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM live";
    neighbour.batch_execute(begin).await.map_err(failed)?;
    let during = stretch(&reader, &notes, open).await?;
    neighbour.batch_execute("COMMIT").await.map_err(failed)?;
    node.stop(Duration::from_secs(5)).await;
    Ok((before, during))
}

/// How late slots were for so many seconds, and what the server spent.
async fn stretch(reader: &Client, notes: &Notes, seconds: u32) -> Result<Stretch, Failure> {
    const STEP: u32 = 10;
    drop(notes.take());
    let (begun, spent) = (rig::uptime(), Spent::by_now(reader).await?);
    let (mut last, mut late) = (spent, Vec::new());
    for _ in 0..seconds / STEP {
        rig::pause(Duration::from_secs(u64::from(STEP))).await;
        let now = Spent::by_now(reader).await?;
        let mut these = lateness(&notes.take());
        output::note(&format!(
            "  {} runs, p99 {:.1} ms, {:.2} cores",
            these.len(),
            percentile(&mut these, 99.0),
            now.since(last).as_secs_f64() / f64::from(STEP),
        ));
        late.append(&mut these);
        last = now;
    }
    let took = rig::uptime().saturating_sub(begun);
    Ok(Stretch {
        middle: percentile(&mut late, 50.0),
        high: percentile(&mut late, 99.0),
        cores: last.since(spent).as_secs_f64() / took.as_secs_f64(),
    })
}

fn figures(beside: Beside, before: Stretch, during: Stretch) -> Figures {
    let (later, more) = beside.bars();
    Figures::new("snapshot")
        .with("p99", during.high, " ms")
        .with("p99 before", before.high, " ms")
        .with("p50", during.middle, " ms")
        .with("p50 before", before.middle, " ms")
        .with("server", during.cores, " cores")
        .with("server before", before.cores, " cores")
        .bar(Bar::at_most("p99", during.high / before.high, later))
        .bar(Bar::at_most("cores", during.cores / before.cores, more))
}
