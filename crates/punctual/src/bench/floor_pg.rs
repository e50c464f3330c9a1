//! Floors on PostgreSQL: the rows that the store writes, in its own tables, written by hand.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use model::{Job, JobId, RunId, Slot, Timestamp};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use super::database::{Schema, failed};
use super::rig;
use crate::failure::Failure;

const BATCH: usize = 1_000;
const DAY: i64 = 24 * 3_600 * 1_000;

type Params<'a> = [&'a (dyn ToSql + Sync)];

/// What is due, with all that is needed to run it, for this connection alone.
const FETCH: &str = "
    SELECT j.id, j.next_slot, j.shard, d.doc, d.payload FROM jobs j JOIN defs d ON d.id = j.id
    WHERE j.due_at IS NOT NULL AND j.due_at <= $1
    ORDER BY j.due_at, j.id LIMIT 1000 FOR UPDATE OF j SKIP LOCKED";

/// Jobs move on, and their runs come to life, claimed.
const FIRE: &str = "
    WITH moved AS (
        UPDATE jobs j SET next_slot = n.next, due_at = n.next, slot_last = n.slot, state = n.state, state_at = n.slot
        FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::smallint[], $5::uuid[], $6::smallint[])
             n(id, slot, next, state, run, shard)
        WHERE j.id = n.id RETURNING n.run, j.id, j.tenant, n.slot, j.version, n.shard)
    INSERT INTO live (id, job, tenant, due_at, version, attempt, lost, claim, shard, kind, lane, state, waiting, exclusive)
    SELECT run, id, tenant, slot, version, 1, 0, 1, shard, 0, 1, 0, false, false FROM moved";

/// Runs go to history.
const SETTLE: &str = "
    WITH gone AS (
        DELETE FROM live l USING unnest($1::uuid[], $2::bigint[]) n(id, at)
        WHERE l.id = n.id AND l.claim = 1 AND l.attempt = 1 RETURNING l.*, n.at)
    INSERT INTO history (id, job, tenant, version, attempt, lost, kind, lane, state, outcome, due_at, dispatched_at,
                         settled_at)
    SELECT id, job, tenant, version, attempt, lost, kind, lane, 3, 0, due_at, at, at FROM gone";

/// How jobs move on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Onward {
    /// They were one-offs.
    Finished,
    /// Their next slot is so much later.
    After(Duration),
}

/// The best of one to four connections.
pub(super) async fn drain(schema: &Schema, count: usize, onward: Onward) -> Result<f64, Failure> {
    let mut best: f64 = 0.0;
    for connections in 1..=4 {
        let place = Schema::new(schema.server());
        best = best.max(drain_with(&place, count, onward, connections).await?);
        place.end().await?;
    }
    Ok(best)
}

async fn drain_with(
    schema: &Schema,
    count: usize,
    onward: Onward,
    connections: usize,
) -> Result<f64, Failure> {
    let jobs = match onward {
        Onward::Finished => rig::overdue(count, &rig::no_op()),
        Onward::After(_) => rig::overdue_recurring(count, &rig::no_op()),
    };
    let store = schema.open().await?;
    rig::load(&*store, &jobs).await?;
    drop(store);
    make_days(schema, &jobs).await?;
    schema.rest().await?;
    let until = rig::now();
    let mut lanes = Vec::new();
    for _ in 0..connections {
        lanes.push(Lane::new(schema, onward).await?);
    }
    let begun = rig::uptime();
    let lanes: Vec<_> = lanes
        .into_iter()
        .map(|lane| tokio::spawn(lane.drain(until)))
        .collect();
    let mut done = 0;
    for lane in lanes {
        done += lane
            .await
            .map_err(|error| Failure::refused(error.to_string()))?
            .map_err(failed)?;
    }
    let took = rig::uptime().saturating_sub(begun);
    if done != count {
        return Err(Failure::refused(format!("the floor ran {done} of {count}")));
    }
    Ok(count as f64 / took.as_secs_f64())
}

/// One connection, which takes a thousand after another from due to history.
struct Lane {
    client: Client,
    fetch: Statement,
    fire: Statement,
    settle: Statement,
    onward: Onward,
}

impl Lane {
    async fn new(schema: &Schema, onward: Onward) -> Result<Self, Failure> {
        let client = schema.client().await?;
        let prepare = async |sql| client.prepare(sql).await.map_err(failed);
        let (fetch, fire, settle) = (
            prepare(FETCH).await?,
            prepare(FIRE).await?,
            prepare(SETTLE).await?,
        );
        Ok(Self {
            client,
            fetch,
            fire,
            settle,
            onward,
        })
    }

    async fn drain(self, until: Timestamp) -> Result<usize, tokio_postgres::Error> {
        let mut done = 0;
        loop {
            let count = self.step(until.as_millis()).await?;
            if count == 0 {
                return Ok(done);
            }
            done += count;
        }
    }

    async fn step(&self, until: i64) -> Result<usize, tokio_postgres::Error> {
        let until: &Params<'_> = &[&until];
        let begin = self.client.batch_execute("BEGIN");
        let ((), rows) = tokio::try_join!(biased; begin, self.client.query(&self.fetch, until))?;
        let mut jobs: Vec<Uuid> = Vec::with_capacity(BATCH);
        let (mut slots, mut nexts, mut states) = (vec![], vec![], vec![]);
        let (mut runs, mut shards): (Vec<Uuid>, Vec<i16>) = (vec![], vec![]);
        for row in &rows {
            let (job, slot): (Uuid, i64) = (row.try_get(0)?, row.try_get(1)?);
            let (next, state) = match self.onward {
                Onward::Finished => (None, 2),
                Onward::After(period) => (Some(slot + period.as_millis() as i64), 0),
            };
            jobs.push(job);
            slots.push(slot);
            nexts.push(next);
            states.push(state as i16);
            runs.push(RunId::for_slot(JobId(job), Slot(Timestamp::from_millis(slot))).0);
            shards.push(row.try_get(2)?);
        }
        let fire: &Params<'_> = &[&jobs, &slots, &nexts, &states, &runs, &shards];
        let commit = self.client.batch_execute("COMMIT");
        tokio::try_join!(biased; self.client.execute(&self.fire, fire), commit)?;
        let settle: &Params<'_> = &[&runs, &slots];
        self.client.execute(&self.settle, settle).await?;
        Ok(rows.len())
    }
}

/// The days of history that the jobs' runs belong to.
async fn make_days(schema: &Schema, jobs: &[Arc<Job>]) -> Result<(), Failure> {
    let slots = jobs.iter().filter_map(|job| job.next_slot);
    let days: std::collections::BTreeSet<i64> = slots
        .map(|slot| slot.0.as_millis().div_euclid(DAY))
        .collect();
    let client = schema.client().await?;
    for day in days {
        let bound = |day: i64| RunId::least_at(Timestamp::from_millis(day * DAY)).0;
        let sql = format!(
            "CREATE TABLE IF NOT EXISTS history_{day} PARTITION OF history FOR VALUES FROM ('{}') TO ('{}')",
            bound(day),
            bound(day + 1)
        );
        client.batch_execute(&sql).await.map_err(failed)?;
    }
    Ok(())
}

/// Rows of jobs, a thousand to a commit, by one connection.
pub(super) async fn insert_jobs(schema: &Schema, count: usize) -> Result<f64, Failure> {
    const JOBS: &str = "
        INSERT INTO jobs (id, tenant, shard, version, state, state_at, next_slot, due_at)
        SELECT id, '00000000-0000-0000-0000-000000000000', shard, 1, 0, made, due, due
        FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bigint[]) n(id, shard, made, due)";
    const DEFS: &str = "
        INSERT INTO defs (id, tenant, gone, created_at, updated_at, doc, payload)
        SELECT id, '00000000-0000-0000-0000-000000000000', false, made, made, doc, payload
        FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bytea[]) n(id, made, doc, payload)";
    drop(schema.open().await?);
    schema.rest().await?;
    let due_at = rig::now().plus(Duration::from_secs(3_600));
    let mut jobs: Vec<_> = (0..count)
        .map(|_| rig::one_off(due_at, rig::no_op()))
        .collect();
    jobs.sort_by_key(|job| job.id);
    let client = schema.client().await?;
    let (narrow, wide) = (
        client.prepare(JOBS).await.map_err(failed)?,
        client.prepare(DEFS).await.map_err(failed)?,
    );
    let begun = rig::uptime();
    for chunk in jobs.chunks(BATCH) {
        let ids: Vec<Uuid> = chunk.iter().map(|job| job.id.0).collect();
        let shards: Vec<i16> = chunk.iter().map(|job| i16::from(job.shard().0)).collect();
        let made: Vec<i64> = chunk.iter().map(|job| job.created_at.as_millis()).collect();
        let due = vec![due_at.as_millis(); chunk.len()];
        let docs = vec![super::floor::DOC; chunk.len()];
        let payloads: Vec<Option<&[u8]>> =
            chunk.iter().map(|job| job.def.payload.as_deref()).collect();
        let jobs: &Params<'_> = &[&ids, &shards, &made, &due];
        let defs: &Params<'_> = &[&ids, &made, &docs, &payloads];
        tokio::try_join!(
            biased;
            client.batch_execute("BEGIN"),
            client.execute(&narrow, jobs),
            client.execute(&wide, defs),
            client.batch_execute("COMMIT"),
        )
        .map_err(failed)?;
    }
    let took = rig::uptime().saturating_sub(begun);
    Ok(count as f64 / took.as_secs_f64())
}

/// Single durable inserts of a row as large as a job, by pgbench, which comes with the server.
pub(super) async fn pgbench(schema: &Schema, clients: usize, seconds: u32) -> Result<f64, Failure> {
    const TABLE: &str =
        "CREATE TABLE single (id uuid PRIMARY KEY, due_at bigint, doc bytea, payload bytea);
                         CREATE INDEX ON single (due_at, id)";
    drop(schema.open().await?);
    schema
        .client()
        .await?
        .batch_execute(TABLE)
        .await
        .map_err(failed)?;
    schema.rest().await?;
    let cannot_run =
        |error: std::io::Error| Failure::refused(format!("cannot run pgbench: {error}"));
    let script = std::env::temp_dir().join(format!("punctual-bench-{}.sql", std::process::id()));
    let text = format!(
        "INSERT INTO {}.single VALUES (gen_random_uuid(), (extract(epoch FROM now()) * 1000)::bigint, \
         decode(repeat('78', 100), 'hex'), decode(repeat('79', 60), 'hex'));\n",
        schema.name()
    );
    std::fs::write(&script, text).map_err(cannot_run)?;
    let output = Command::new("pgbench")
        .args(["-n", "-M", "prepared", "-j", "2"])
        .args(["-c", &clients.to_string(), "-T", &seconds.to_string(), "-f"])
        .arg(&script)
        .arg(schema.server())
        .stdin(Stdio::null())
        .output();
    let _gone = std::fs::remove_file(&script);
    let output = output.map_err(cannot_run)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = rate.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    rate.ok_or_else(|| Failure::refused(format!("pgbench: {said}")))
}
