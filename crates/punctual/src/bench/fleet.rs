//! Many light nodes on one database: what a node reads grows with its own shards, not with the fleet.

use std::time::Duration;

use tokio_postgres::Client;

use super::database::{Schema, failed};
use super::figures::{Bar, Figures, percentile};
use super::output;
use super::rig::{self, Base, Notes, Place};
use super::two_nodes::balanced;
use super::workloads::lateness;
use crate::failure::Failure;

/// A million jobs, a thousand of them due each second.
const JOBS: usize = 1_000_000;
const PERIOD: Duration = Duration::from_secs(1_000);
const FEW: usize = 2;
const MANY: usize = 50;
/// How long rows are counted. What a connection has read is counted a second later, or ten if it is idle.
const MEASURED_FOR: Duration = Duration::from_secs(30);

/// What so many nodes did in a second.
struct Fleet {
    rows: f64,
    runs: f64,
    high: f64,
}

pub(super) async fn fleet(base: &Base, progress: &dyn Fn(u64, u64)) -> Result<Figures, Failure> {
    let place = Place::new(base)?;
    let Place::Schema(schema) = &place else {
        return Err(Failure::usage(
            "a fleet needs a database: give one with --store",
        ));
    };
    load(&place, progress).await?;
    schema.rest().await?;
    let few = run(&place, schema, FEW).await?;
    let many = run(&place, schema, MANY).await?;
    place.end().await?;
    Ok(Figures::new("fleet")
        .with("rows read", many.rows, "/s")
        .with("by two nodes", few.rows, "/s")
        .with("runs", many.runs, "/s")
        .with("p99", many.high, " ms")
        .with("p99 of two nodes", few.high, " ms")
        .bar(Bar::at_most(
            "ratio to two nodes",
            many.rows / few.rows,
            3.0,
        )))
}

async fn load(place: &Place, progress: &dyn Fn(u64, u64)) -> Result<(), Failure> {
    const PART: usize = 20_000;
    let store = place.open().await?;
    // Due all the time from now on.
    let anchor = rig::now().minus(PERIOD);
    for from in (0..JOBS).step_by(PART) {
        let one = |n: usize| {
            let anchor = anchor.plus(PERIOD.mul_f64(n as f64 / JOBS as f64));
            rig::every(PERIOD, anchor, rig::no_op())
        };
        let jobs: Vec<_> = (from..from + PART).map(one).collect();
        rig::load(&*store, &jobs).await?;
        progress((from + PART) as u64, JOBS as u64);
    }
    Ok(())
}

async fn run(place: &Place, schema: &Schema, count: usize) -> Result<Fleet, Failure> {
    let notes = Notes::new(0);
    let (mut stores, mut nodes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let store = schema.open_light().await?;
        nodes.push(rig::start(place, &store, notes.registry()).await?);
        stores.push(store);
    }
    balanced(schema, count).await?;
    // What was due meanwhile is over, and what was read for that is counted.
    rig::pause(Duration::from_secs(15)).await;
    drop(notes.take());
    let client = schema.client().await?;
    let (begun, before) = (rig::uptime(), rows(&client, schema).await?);
    rig::pause(MEASURED_FOR).await;
    let read = rows(&client, schema).await? - before;
    let seconds = rig::uptime().saturating_sub(begun).as_secs_f64();
    let mut late = lateness(&notes.take());
    for node in nodes {
        node.stop(Duration::from_secs(5)).await;
    }
    drop(stores);
    let fleet = Fleet {
        rows: read as f64 / seconds,
        runs: late.len() as f64 / seconds,
        high: percentile(&mut late, 99.0),
    };
    output::note(&format!(
        "  {count} nodes: {:.0} rows and {:.0} runs a second, p99 {:.1} ms",
        fleet.rows, fleet.runs, fleet.high
    ));
    Ok(fleet)
}

/// Rows that were read in the schema so far.
async fn rows(client: &Client, schema: &Schema) -> Result<i64, Failure> {
    const ROWS: &str = "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
        FROM pg_stat_user_tables WHERE schemaname = $1";
    let row = client.query_one(ROWS, &[&schema.name()]).await;
    row.and_then(|row| row.try_get(0)).map_err(failed)
}
