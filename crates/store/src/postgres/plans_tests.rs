//! How the statements that run all the time find their rows, whatever the statistics say: after somebody's long
//! transaction they say that tables which are full of dead rows are empty.

use model::Partition;
use tokio_postgres::Client;

use super::super::PgConfig;
use super::super::pool::settings;
use super::super::server::{Mode, PgServer};
use super::client;
use super::opening::{LARGE, plan, plan_of, scans};

macro_rules! hot {
    ($($name:literal: $($index:literal)+,)+) => {
        [$(($name, include_str!(concat!("sql/", $name, ".sql")), &[$($index),+] as &[&str])),+]
    };
}

/// Statements, and the indexes that they may look rows of jobs and runs up by.
const HOT: [(&str, &str, &[&str]); 40] = hot! {
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
    "claim_due_jobs": "jobs_pkey",
    "put_jobs": "jobs_pkey",
    "park": "jobs_pkey",
    "gone_live": "live_pkey",
    "change_live": "live_pkey",
    "set_exclusive": "live_pkey",
    "mark_running": "live_pkey",
    "claim": "live_pkey" "jobs_pkey",
    "claims": "live_pkey",
    "claim_due_claim": "live_pkey" "jobs_pkey",
    "due_jobs": "jobs_steps",
    "due_jobs_shards": "jobs_steps",
    "due_jobs_steps": "jobs_steps",
    "list_due": "jobs_steps",
    "due_runs": "live_due",
    "oldest_due": "jobs_steps" "live_due",
    "oldest_due_shards": "jobs_steps" "live_due",
    "past": "history_1_job_id_idx",
    "orphans": "live_pkey",
    "beat_marks": "live_ask",
    "claim_due": "live_lane",
    "due_of": "jobs_pkey",
    "due_of_runs": "live_job",
    "payloads_of_jobs": "jobs_pkey",
    "payloads_of_runs": "live_pkey",
    "lapsing": "handed_until",
    "heartbeat": "handed_pkey",
    "hand_over": "live_pkey",
    "wake_due": "live_wait" "live_pkey",
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

pub(super) async fn check_all(client: &Client, when: &str) {
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
            // Others query partitions by job and id: each of their keys will do.
            let large = LARGE
                .iter()
                .filter(|it| name == "past" || !it.starts_with("history"));
            let large = large
                .copied()
                .any(|it| scan.contains(&format!(" on {it} ")));
            let bits = scan.contains("Bitmap Index Scan");
            let meant = indexes.iter().any(|index| by(scan, index));
            // By what is queried, not by what all of the index is.
            let condition = scan.split_once("Index Cond: ").map_or("", |(_, it)| it);
            let bounded = meant && condition.contains(['$', '.']);
            // Definitions are queried by tenant and id: each of their keys will do.
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
    store.open_partitions([entry].into_iter()).await.unwrap();
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

/// History is that of a hundred jobs.
const JOBS: &str = "
    UPDATE history SET job = ('00000000-0000-0000-0000-0000000000' || substr(id::text, 35, 2))::uuid;";

/// Every third run is dead.
const DEAD: &str = "UPDATE history SET state = 4 WHERE get_byte(uuid_send(id), 15) % 3 = 0";

#[tokio::test]
async fn no_list_of_runs_reads_all_of_history() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let store = super::store(&address).await;
    let days = [Partition(1), Partition(2)];
    let entries = days.map(|day| (day, day.ends_at()));
    store.open_partitions(entries.into_iter()).await.unwrap();
    let ours = client(&server).await;
    ours.batch_execute(&settings(&schema)).await.unwrap();
    ours.batch_execute("SET statement_timeout = 0")
        .await
        .unwrap();
    let lists = [
        (
            "list_runs_default",
            include_str!("sql/list_runs_default.sql"),
            "history_1_pkey",
        ),
        (
            "list_runs_job",
            include_str!("sql/list_runs_job.sql"),
            "history_1_job_id_idx",
        ),
        (
            "list_runs_rare",
            include_str!("sql/list_runs_rare.sql"),
            "history_1_tenant_state_id_idx",
        ),
    ];
    let [least, most] = [uuid::Uuid::nil(), uuid::Uuid::max()].map(|id| id.to_string());
    let every_run = format!("'{least}', '{most}', '{{3,4}}', 50, NULL, '{least}'");
    let fill = FILL.replace("$n", "30000") + JOBS;
    for (when, sql) in [
        ("empty", "SELECT 1"),
        ("with many runs", fill.as_str()),
        ("with many dead ones", DEAD),
    ] {
        ours.batch_execute(sql).await.unwrap();
        ours.batch_execute("ANALYZE").await.unwrap();
        for (name, text, index) in &lists {
            let plan = plan_of(&ours, text, &every_run).await;
            let scans = scans(&plan);
            let of_history = scans.iter().filter(|scan| scan.contains(" on history_"));
            for scan in of_history {
                // From a cursor to where the list ends, in the order of ids, so that its limit stops it.
                let bounded = scan.contains("id < $2") && scan.contains("id >= $6");
                assert!(
                    scan.contains("Index Scan") && bounded,
                    "{when}, {name}: {scan}\n{plan}"
                );
            }
            assert!(plan.contains(index), "{when}, {name}, {index}:\n{plan}");
            // What each state has is cut to the limit before it is sorted.
            let sorted = plan
                .split_once("Sort Key: h")
                .is_some_and(|(_, rest)| !rest.contains("Limit"));
            assert!(!sorted, "{when}, {name}:\n{plan}");
        }
    }
}

/// Eight days of rollups of many tenants, and jobs of which some are paused, finished or invalid.
const COUNTED: &str = "
    INSERT INTO tenants (id, name, created_at)
    SELECT gen_random_uuid(), 'c' || n, 0 FROM generate_series(1, 100) n;
    INSERT INTO rollups (tenant, step, at, counter, expires_at, doc)
    SELECT t.id, n % 2, n * 60000, gen_random_uuid(), n * 70000, '{}' FROM generate_series(1, 1000) n, tenants t;
    UPDATE jobs SET state = 2, due_at = NULL, next_slot = NULL WHERE due_at % 2 = 0;
    UPDATE jobs SET state = 1, due_at = NULL, next_slot = NULL WHERE due_at % 5 = 0;
    UPDATE jobs SET state = 3, due_at = NULL, next_slot = NULL WHERE due_at % 7 = 0;";

#[tokio::test]
async fn what_overviews_read_grows_with_neither_history_nor_other_tenants() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let store = super::store(&address).await;
    let day = Partition(1);
    let entry = (day, day.ends_at());
    store.open_partitions([entry].into_iter()).await.unwrap();
    let ours = client(&server).await;
    ours.batch_execute(&settings(&schema)).await.unwrap();
    for fill in ["", &FILL.replace("$n", "30000"), COUNTED] {
        ours.batch_execute(fill).await.unwrap();
        ours.batch_execute("ANALYZE").await.unwrap();
        for (text, indexes) in [
            (include_str!("sql/read_rollups.sql"), &["rollups_pkey"][..]),
            (include_str!("sql/retain_rollups.sql"), &["rollups_age"]),
            (include_str!("sql/count_standing_live.sql"), &[]),
            (
                include_str!("sql/count_standing_jobs.sql"),
                &["jobs_rare", "jobs_finished"],
            ),
        ] {
            let plan = plan(&ours, text).await;
            for index in indexes {
                assert!(plan.contains(index), "not by {index}:\n{plan}");
            }
            assert!(!plan.contains("history"), "{plan}");
            assert!(!plan.contains("Seq Scan on jobs"), "{plan}");
            if text.contains("count_standing") {
                // Whatever is counted is cut off where it is read, before anything is sorted or grouped.
                let scans = plan.matches(" on jobs").count() + plan.matches(" on live").count();
                assert_eq!(plan.matches("Limit").count(), scans, "{plan}");
            }
        }
    }
}

/// Many jobs of one tenant, nearly all of them finished.
const FINISHED: &str = "
    INSERT INTO tenants (id, name, created_at) VALUES ('00000000-0000-0000-0000-00000000000a', 'a', 0) ON CONFLICT DO NOTHING;
    UPDATE jobs SET tenant = '00000000-0000-0000-0000-00000000000a', state = 2, due_at = NULL, next_slot = NULL
    WHERE due_at % 50 <> 0;";

#[tokio::test]
async fn jobs_of_an_owner_are_found_by_their_index_however_many_belong_to_one() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let store = super::store(&address).await;
    let day = Partition(1);
    let entry = (day, day.ends_at());
    store.open_partitions([entry].into_iter()).await.unwrap();
    let ours = client(&server).await;
    ours.batch_execute(&settings(&schema)).await.unwrap();
    for fill in [
        "",
        &FILL.replace("$n", "30000"),
        "UPDATE defs SET owner = 'ann'",
        "UPDATE defs SET tenant = '00000000-0000-0000-0000-000000000000'",
    ] {
        ours.batch_execute(fill).await.unwrap();
        ours.batch_execute("ANALYZE").await.unwrap();
        let plan = plan(&ours, include_str!("sql/list_jobs_owner.sql")).await;
        assert!(
            plan.contains("Index Scan Backward using defs_owner on defs d"),
            "{plan}"
        );
        assert!(!plan.contains("Sort"), "{plan}");
    }
}

#[tokio::test]
async fn open_jobs_of_a_tenant_are_found_among_any_number_of_finished_ones() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let store = super::store(&address).await;
    let day = Partition(1);
    let entry = (day, day.ends_at());
    store.open_partitions([entry].into_iter()).await.unwrap();
    let ours = client(&server).await;
    ours.batch_execute(&settings(&schema)).await.unwrap();
    for fill in ["", &FILL.replace("$n", "30000"), FINISHED] {
        ours.batch_execute(fill).await.unwrap();
        ours.batch_execute("ANALYZE").await.unwrap();
        let plan = plan(&ours, include_str!("sql/list_jobs_open.sql")).await;
        assert!(
            plan.contains("Index Scan Backward using jobs_open on jobs j"),
            "{plan}"
        );
        assert!(!plan.contains("Sort"), "{plan}");
    }
}
