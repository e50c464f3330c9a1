//! What statements read of a store that many tenants share: what is theirs, however much others have.

use model::Partition;
use tokio_postgres::Client;

use super::super::PgConfig;
use super::super::pool::settings;
use super::super::server::{Mode, PgServer};
use super::super::statement;
use super::client;
use super::opening::plan;
use super::plans::check_all;

/// Ten thousand tenants with a hundred jobs, ten runs and ten entries of the audit log each.
const TENANTS: &str = "
    INSERT INTO tenants (id, name, created_at)
    SELECT ('00000000-0000-0000-0001-' || lpad(to_hex(n), 12, '0'))::uuid, 't' || n, 0 FROM generate_series(1, 10000) n;
    INSERT INTO tenant_use (tenant, part, jobs, payload_bytes)
    SELECT t.id, part, 10, 0 FROM tenants t, generate_series(0, 9) part;
    INSERT INTO jobs (id, tenant, shard, version, state, state_at, next_slot, due_at)
    SELECT (lpad(to_hex(n), 12, '0') || '0000' || right(t.id::text, 12) || '0000')::uuid, t.id, n % 256, 1, 0, 0, n, n
    FROM generate_series(1, 100) n, tenants t WHERE t.created_at = 0 AND t.name <> 'default';
    INSERT INTO defs (id, tenant, gone, created_at, updated_at, doc, owner)
    SELECT id, tenant, false, 0, 0, '', 'ann' FROM jobs;
    INSERT INTO history (id, job, tenant, version, attempt, lost, kind, lane, state)
    SELECT (lpad(to_hex(86400000 + n), 12, '0') || '0000' || right(t.id::text, 12) || '0000')::uuid,
           (lpad(to_hex(n), 12, '0') || '0000' || right(t.id::text, 12) || '0000')::uuid, t.id, 1, 1, 0, 0, 0,
           CASE WHEN n = 1 THEN 4 ELSE 3 END
    FROM generate_series(1, 10) n, tenants t;
    INSERT INTO audit (at, tenant, actor, action, subject)
    SELECT n, t.id, 'someone', 'job.created', 'job' FROM generate_series(1, 10) n, tenants t;";

/// One of them has far more runs than the others, later ones and dead.
const UNEVEN: &str = "
    INSERT INTO history (id, job, tenant, version, attempt, lost, kind, lane, state)
    SELECT (lpad(to_hex(86400100 + n), 12, '0') || substr(md5(random()::text), 1, 20))::uuid, gen_random_uuid(),
           '00000000-0000-0000-0001-000000000001', 1, 1, 0, 0, 0, CASE WHEN n % 2 = 0 THEN 4 ELSE 3 END
    FROM generate_series(1, 50000) n;
    INSERT INTO audit (at, tenant, actor, action, subject)
    SELECT n, '00000000-0000-0000-0001-000000000001', 'someone', 'job.created', 'job' FROM generate_series(1, 50000) n;";

const DEFAULT: &str = "00000000-0000-0000-0000-000000000000";
const ONE: &str = "00000000-0000-0000-0001-000000000007";
const LATEST: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/// What a statement read, as the server counts it.
async fn analyzed(client: &Client, text: &str, arguments: &str) -> String {
    let text = statement::filled(text);
    let prepare = format!("DEALLOCATE ALL; PREPARE q AS {text}");
    client.batch_execute(&prepare).await.unwrap();
    let explain =
        format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) EXECUTE q ({arguments})");
    let mut lines = Vec::new();
    for message in client.simple_query(&explain).await.unwrap() {
        if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
            lines.push(row.get(0).unwrap_or_default().to_owned());
        }
    }
    lines.join("\n")
}

/// Lists of one tenant's runs and of its audit log: by the index, and past nobody else's.
async fn check_lists(client: &Client) {
    let runs =
        |tenant, states| format!("'{tenant}', '{LATEST}', '{states}', 100, NULL, '{DEFAULT}'");
    let entries = format!("0, 1000000000, 100, '{ONE}'");
    for (name, text, arguments, index) in [
        (
            "list_runs",
            include_str!("sql/list_runs.sql"),
            runs(ONE, "{3,4,5,6}"),
            "history_1_tenant_id_idx",
        ),
        (
            "list_runs_default",
            include_str!("sql/list_runs_default.sql"),
            runs(DEFAULT, "{3,4,5,6}"),
            "history_1_default",
        ),
        (
            "list_runs_rare",
            include_str!("sql/list_runs_rare.sql"),
            runs(ONE, "{4}"),
            "history_1_tenant_state_id_idx",
        ),
        (
            "list_runs_rare of the first tenant",
            include_str!("sql/list_runs_rare.sql"),
            runs(DEFAULT, "{4}"),
            "history_1_tenant_state_id_idx",
        ),
        (
            "list_audit_tenant",
            include_str!("sql/list_audit_tenant.sql"),
            entries.clone(),
            "audit_tenant",
        ),
        (
            "list_audit_tenant_back",
            include_str!("sql/list_audit_tenant_back.sql"),
            entries.clone(),
            "audit_tenant",
        ),
    ] {
        let plan = analyzed(client, text, &arguments).await;
        assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
        assert!(!plan.contains("Rows Removed"), "{name}:\n{plan}");
    }
}

/// Jobs of one tenant, and what it has: by the index.
async fn check_jobs(client: &Client) {
    for (name, text, index) in [
        (
            "list_jobs",
            include_str!("sql/list_jobs.sql"),
            "defs_tenant",
        ),
        (
            "list_jobs_owner",
            include_str!("sql/list_jobs_owner.sql"),
            "defs_owner",
        ),
        (
            "list_jobs_near",
            include_str!("sql/list_jobs_near.sql"),
            "defs_tenant",
        ),
        (
            "list_jobs_key",
            include_str!("sql/list_jobs_key.sql"),
            "defs_key",
        ),
        (
            "tenant_jobs",
            include_str!("sql/tenant_jobs.sql"),
            "defs_tenant",
        ),
        (
            "tenant_rooms",
            include_str!("sql/tenant_rooms.sql"),
            "tenant_use_pkey",
        ),
        (
            "create_plain",
            include_str!("sql/create_plain.sql"),
            "tenant_use_pkey",
        ),
    ] {
        let plan = plan(client, text).await;
        assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
    }
}

#[tokio::test]
async fn with_many_tenants_rows_are_found_by_the_same_indexes() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let store = super::store(&address).await;
    let ours = client(&server).await;
    ours.batch_execute(&settings(&schema)).await.unwrap();
    ours.batch_execute("SET statement_timeout = 0")
        .await
        .unwrap();
    // Days that are made from now on have several tenants.
    let first = "INSERT INTO tenants (id, name, created_at) VALUES (gen_random_uuid(), 'first', 1)";
    ours.batch_execute(first).await.unwrap();
    let day = Partition(1);
    store
        .open_partitions([(day, day.ends_at())].into_iter())
        .await
        .unwrap();
    ours.batch_execute(TENANTS).await.unwrap();
    check_lists(&ours).await;
    ours.batch_execute("ANALYZE").await.unwrap();
    check_all(&ours, "with many tenants").await;
    check_lists(&ours).await;
    check_jobs(&ours).await;
    ours.batch_execute(UNEVEN).await.unwrap();
    check_lists(&ours).await;
    ours.batch_execute("ANALYZE").await.unwrap();
    check_lists(&ours).await;
}
