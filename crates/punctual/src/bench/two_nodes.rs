//! Two nodes on one database and the same cores: what the second one costs, and whether they get in each other's way.

use std::time::Duration;

use engine::Node;

use super::database::{Schema, failed};
use super::figures::{Bar, Figures};
use super::rig::{self, Base, Notes, Place};
use crate::failure::Failure;

const COUNT: usize = 100_000;

/// What so many nodes reached, and how many firings and claims met another's.
struct Reached {
    rate: f64,
    collisions: u64,
}

pub(super) async fn two_nodes(base: &Base) -> Result<Figures, Failure> {
    let one = reach(base, 1).await?;
    let two = reach(base, 2).await?;
    let ratio = two.rate / one.rate;
    let collisions = (one.collisions + two.collisions) as f64;
    Ok(Figures::new("two-nodes")
        .with("runs", two.rate, "/s")
        .with("one node", one.rate, "/s")
        .with("collisions", collisions, "")
        .bar(Bar::at_least("ratio to one node", ratio, 0.8))
        .bar(Bar::at_most("collisions", collisions, 0.0)))
}

async fn reach(base: &Base, nodes: usize) -> Result<Reached, Failure> {
    let place = Place::new(base)?;
    let Place::Schema(schema) = &place else {
        return Err(Failure::usage(
            "two nodes need a database: give one with --store",
        ));
    };
    let reached = drain(&place, schema, nodes).await?;
    place.end().await?;
    Ok(reached)
}

/// The jobs are there from the beginning, but put aside until every node has its share of the shards.
async fn drain(place: &Place, schema: &Schema, count: usize) -> Result<Reached, Failure> {
    let store = place.open().await?;
    let jobs = rig::overdue(COUNT, &rig::no_op());
    rig::load(&*store, &jobs).await?;
    drop(store);
    let client = schema.client().await?;
    let aside = "CREATE TABLE aside AS TABLE jobs; TRUNCATE jobs";
    client.batch_execute(aside).await.map_err(failed)?;
    schema.rest().await?;
    let notes = Notes::new(COUNT);
    let (mut stores, mut nodes) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let store = place.open().await?;
        nodes.push(rig::start(place, &store, notes.registry()).await?);
        stores.push(store);
    }
    balanced(schema, count).await?;
    let back = "BEGIN; INSERT INTO jobs TABLE aside";
    client.batch_execute(back).await.map_err(failed)?;
    let begun = rig::uptime();
    client.batch_execute("COMMIT").await.map_err(failed)?;
    // Nobody knows of any of them: every node reads all that is due.
    let lost = "SELECT pg_notify($1, 'lost')";
    let channel = schema.name();
    client.execute(lost, &[&channel]).await.map_err(failed)?;
    rig::wait("the drain", async || {
        let settled = async || match stores.first() {
            Some(store) => rig::is_settled(&**store).await,
            None => true,
        };
        notes.count() >= COUNT && settled().await
    })
    .await?;
    let took = rig::uptime().saturating_sub(begun);
    let collisions = nodes.iter().map(collisions).sum();
    for node in nodes {
        node.stop(Duration::from_secs(5)).await;
    }
    drop(stores);
    schema.rest().await?;
    Ok(Reached {
        rate: COUNT as f64 / took.as_secs_f64(),
        collisions,
    })
}

fn collisions(node: &Node) -> u64 {
    node.handle().metrics().collided.get()
}

/// Waits until all shards are held, by so many nodes about evenly, and a little longer.
pub(super) async fn balanced(schema: &Schema, nodes: usize) -> Result<(), Failure> {
    const HELD: &str = "SELECT count(*) FROM leases WHERE holder IS NOT NULL GROUP BY holder";
    let client = schema.client().await?;
    rig::wait("the shards", async || {
        let held = client.query(HELD, &[]).await.unwrap_or_default();
        let shares = held.iter().filter_map(|row| row.try_get::<_, i64>(0).ok());
        let shares: Vec<i64> = shares.collect();
        let fair = |share: &i64| *share >= 256 / nodes as i64 / 2;
        shares.len() == nodes && shares.iter().sum::<i64>() == 256 && shares.iter().all(fair)
    })
    .await?;
    rig::pause(Duration::from_millis(2_500)).await;
    Ok(())
}
