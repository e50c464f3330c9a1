//! How the statements that run all the time find their rows, whatever the statistics say: after somebody's long
//! transaction they say that tables which are full of dead rows are empty.

use model::Partition;
use tokio_postgres::Client;

use super::super::PgConfig;
use super::super::pool::settings;
use super::super::server::{Mode, PgServer};
use super::client;
use super::opening::{LARGE, plan, scans};

macro_rules! hot {
    ($($name:literal: $($index:literal)+,)+) => {
        [$(($name, include_str!(concat!("sql/", $name, ".sql")), &[$($index),+] as &[&str])),+]
    };
}

/// Statements, and the indexes that they may look rows of jobs and runs up by.
const HOT: [(&str, &str, &[&str]); 26] = hot! {
    "fire_plain": "jobs_pkey" "live_job" "history_1_job_id_idx",
    "fire": "jobs_pkey" "live_job" "history_1_job_id_idx",
    "settle_plain": "live_pkey",
    "settle": "live_pkey" "live_job" "jobs_pkey",
    "settle_lock": "live_pkey" "jobs_pkey",
    "lock_jobs": "jobs_pkey",
    "live_of_jobs": "live_job",
    "lock_live_of_jobs": "live_job",
    "get_run_live": "live_pkey",
    "get_job": "jobs_pkey",
    "share_jobs": "jobs_pkey",
    "take_jobs": "jobs_pkey",
    "put_jobs": "jobs_pkey",
    "park": "jobs_pkey",
    "gone_live": "live_pkey",
    "change_live": "live_pkey",
    "set_exclusive": "live_pkey",
    "mark_running": "live_pkey",
    "claim": "live_pkey" "jobs_pkey",
    "claims": "live_pkey",
    "take_claim": "live_pkey" "jobs_pkey",
    "due_jobs": "jobs_due",
    "due_jobs_shards": "jobs_due",
    "due_runs": "live_due",
    "oldest_due": "jobs_due" "live_due",
    "past": "history_1_job_id_idx",
};

/// Runs in every state of claim, and jobs with their definitions; all of history is one job's, so that any order seems to
/// find a job's runs at once.
const FILL: &str = "
    INSERT INTO jobs (id, tenant, shard, version, state, state_at, next_slot, due_at)
    SELECT gen_random_uuid(), gen_random_uuid(), n % 256, 1, 0, 0, n, n FROM generate_series(1, $n) n;
    INSERT INTO defs (id, tenant, gone, created_at, updated_at, doc)
    SELECT id, tenant, false, 0, 0, '' FROM jobs ON CONFLICT DO NOTHING;
    INSERT INTO live (id, job, tenant, due_at, version, attempt, lost, claim, shard, kind, lane, state, waiting, exclusive)
    SELECT gen_random_uuid(), j.id, j.tenant, j.due_at, 1, 1, 0, CASE WHEN j.due_at % 3 = 0 THEN 1 END, j.shard, 0,
           (j.due_at % 3)::smallint, 0, j.due_at % 7 = 0, false
    FROM jobs j;
    INSERT INTO history (id, job, tenant, version, attempt, lost, kind, lane, state)
    SELECT (lpad(to_hex(86400000 + n), 12, '0') || substr(md5(random()::text), 1, 20))::uuid,
           '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000000', 1, 1, 0, 0, 0, 3
    FROM generate_series(1, $n) n;";

/// Everything moves on, several times, while somebody looks at how it was.
const BLOAT: &str = "
    UPDATE jobs SET due_at = due_at + 1000, next_slot = next_slot + 1000;
    UPDATE jobs SET due_at = due_at + 1000, next_slot = next_slot + 1000;
    UPDATE live SET claim = 2;
    DELETE FROM live;";

async fn check_all(client: &Client, when: &str) {
    for (name, text, indexes) in HOT {
        let plan = plan(client, text).await;
        let scans = scans(&plan);
        // Both have what nobody holds, and nothing else.
        let by = |scan: &String, index: &str| {
            let names = match index {
                "live_due" => vec!["live_due", "live_lane"],
                index => vec![index],
            };
            names.iter().any(|name| {
                let plain = scan.contains(&format!(" using {name} on "));
                plain || scan.contains(&format!("Index Scan on {name} "))
            })
        };
        for scan in &scans {
            // Others ask days by job and id: each of their keys will do.
            let large = LARGE
                .iter()
                .filter(|it| name == "past" || !it.starts_with("history"));
            let large = large
                .copied()
                .any(|it| scan.contains(&format!(" on {it} ")));
            let bits = scan.contains("Bitmap Index Scan");
            let meant = indexes.iter().any(|index| by(scan, index));
            // By what is asked for, not by what all of the index is.
            let condition = scan.split_once("Index Cond: ").map_or("", |(_, it)| it);
            let bounded = meant && condition.contains(['$', '.']);
            // Definitions are asked for by tenant and id: each of their keys will do.
            let bounded = bounded || by(scan, "defs_pkey") || condition.contains("tenant = ");
            assert!(
                bounded
                    || scan.contains("Recheck Cond")
                    || scan.contains("TID Cond")
                    || !large && !bits,
                "{when}, {name}: {scan}\n{plan}"
            );
        }
        // What is sorted is read whole first, however little is wanted of it.
        assert!(!plan.contains("Sort Key: h"), "{when}, {name}:\n{plan}");
        for index in indexes {
            let used = scans.iter().any(|scan| by(scan, index));
            assert!(used, "{when}, {name} does not use {index}:\n{plan}");
        }
    }
}

#[tokio::test]
async fn what_runs_all_the_time_finds_its_rows_by_the_index_meant_for_it() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let store = super::store(&address).await;
    let day = Partition(1);
    let entry = (day, day.ends_at());
    store.open_days([entry].into_iter()).await.unwrap();
    let (ours, other) = (client(&server).await, client(&server).await);
    ours.batch_execute(&settings(&schema)).await.unwrap();
    ours.batch_execute("SET statement_timeout = 0")
        .await
        .unwrap();
    check_all(&ours, "before anyone has counted").await;
    ours.batch_execute("ANALYZE").await.unwrap();
    check_all(&ours, "counted while empty").await;
    let few = FILL.replace("$n", "30");
    ours.batch_execute(&few).await.unwrap();
    ours.batch_execute("ANALYZE").await.unwrap();
    check_all(&ours, "with a few rows").await;
    ours.batch_execute(&FILL.replace("$n", "30000"))
        .await
        .unwrap();
    ours.batch_execute("ANALYZE").await.unwrap();
    check_all(&ours, "with many rows").await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    other.batch_execute(begin).await.unwrap();
    ours.batch_execute(BLOAT).await.unwrap();
    ours.batch_execute("ANALYZE").await.unwrap();
    check_all(&ours, "with nothing but dead rows").await;
    ours.batch_execute("VACUUM").await.unwrap();
    check_all(&ours, "after a vacuum that could remove nothing").await;
    ours.batch_execute(&few).await.unwrap();
    ours.batch_execute("ANALYZE").await.unwrap();
    check_all(&ours, "with a few rows among dead ones").await;
}
