//! A long time at a high rate: whether the tables that are written over and over keep their size.

use std::time::Duration;

use model::Timestamp;

use super::database::{Schema, failed};
use super::figures::{Bar, Figures};
use super::output;
use super::rig::{self, Base, Notes, Place};
use crate::failure::Failure;

/// Jobs that are due every second.
const JOBS: usize = 4_000;

/// Sizes in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    jobs: i64,
    jobs_indexes: i64,
    live: i64,
    live_indexes: i64,
    history: i64,
    runs: usize,
}

pub(super) async fn soak(base: &Base, minutes: u32) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    let Place::Schema(schema) = &place else {
        return Err(Failure::usage(
            "the soak needs a database: give one with --store",
        ));
    };
    let samples = run(&place, schema, minutes).await?;
    place.end().await?;
    Ok(figures(&samples))
}

async fn run(place: &Place, schema: &Schema, minutes: u32) -> Result<Vec<Sizes>, Failure> {
    let store = place.open().await?;
    let anchor = rig::now().plus(Duration::from_secs(3)).as_millis() / 1_000 * 1_000;
    let anchor = Timestamp::from_millis(anchor);
    let jobs: Vec<_> = (0..JOBS)
        // Over the whole second, as jobs of many people are.
        .map(|n| {
            let anchor = anchor.plus(Duration::from_millis(n as u64 % 1_000));
            rig::every(Duration::from_secs(1), anchor, rig::no_op())
        })
        .collect();
    rig::load(&*store, &jobs).await?;
    let notes = Notes::new(0);
    let node = rig::start(place, &store, notes.registry()).await?;
    let mut samples = Vec::new();
    for minute in 1..=minutes {
        rig::pause(Duration::from_secs(60)).await;
        // Kept in memory only to be counted.
        drop(notes.take());
        let sizes = sizes(schema, notes.count()).await?;
        output::note(&format!(
            "minute {minute}: {} runs, jobs {} + {} kB, live {} + {} kB, history {} MB",
            sizes.runs,
            sizes.jobs / 1_024,
            sizes.jobs_indexes / 1_024,
            sizes.live / 1_024,
            sizes.live_indexes / 1_024,
            sizes.history / 1_048_576,
        ));
        samples.push(sizes);
    }
    node.stop(Duration::from_secs(5)).await;
    Ok(samples)
}

async fn sizes(schema: &Schema, runs: usize) -> Result<Sizes, Failure> {
    const SIZES: &str =
        "SELECT pg_table_size('jobs'), pg_indexes_size('jobs'), pg_table_size('live'),
        pg_indexes_size('live'),
        (SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint FROM pg_inherits
         WHERE inhparent = 'history'::regclass)";
    let client = schema.client().await?;
    let row = client.query_one(SIZES, &[]).await.map_err(failed)?;
    let size = |index: usize| row.try_get::<_, i64>(index).map_err(failed);
    Ok(Sizes {
        jobs: size(0)?,
        jobs_indexes: size(1)?,
        live: size(2)?,
        live_indexes: size(3)?,
        history: size(4)?,
        runs,
    })
}

/// One of the sizes.
type Of = fn(&Sizes) -> i64;

/// A table keeps its size when the last third of the time shows none that the third before did not.
fn figures(samples: &[Sizes]) -> Figures {
    let last = samples.last().copied().unwrap_or_default();
    let third = (samples.len() / 3).max(1);
    let most = |part: &[Sizes], of: Of| part.iter().map(of).max().unwrap_or(0);
    let growth = |of: Of| {
        let (earlier, later) = samples.split_at(samples.len().saturating_sub(third));
        let before = earlier
            .get(earlier.len().saturating_sub(third)..)
            .unwrap_or_default();
        most(later, of) as f64 / most(before, of).max(1) as f64
    };
    let mut figures = Figures::new("soak")
        .with("runs", last.runs as f64, "")
        .with(
            "history",
            last.history as f64 / last.runs.max(1) as f64,
            " B a run",
        );
    let parts: [(&'static str, Of); 4] = [
        ("jobs", |it| it.jobs),
        ("indexes of jobs", |it| it.jobs_indexes),
        ("live", |it| it.live),
        ("indexes of live", |it| it.live_indexes),
    ];
    for (what, of) in parts {
        figures = figures.with(what, of(&last) as f64 / 1_024.0, " kB");
        figures = figures.bar(Bar::at_most(&format!("growth of {what}"), growth(of), 1.1));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(live: i64) -> Sizes {
        Sizes {
            live,
            jobs: 10,
            jobs_indexes: 10,
            live_indexes: 10,
            ..Sizes::default()
        }
    }

    #[test]
    fn a_table_that_grows_is_not_level() {
        let level = figures(&[
            sample(50),
            sample(90),
            sample(100),
            sample(80),
            sample(100),
            sample(90),
        ]);
        assert!(level.bars.iter().all(|bar| bar.met));
        let growing = figures(&[
            sample(10),
            sample(20),
            sample(30),
            sample(40),
            sample(50),
            sample(60),
        ]);
        assert!(growing.bars.iter().any(|bar| !bar.met));
    }
}
