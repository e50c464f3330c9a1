//! What lists read of a store that many tenants share: what is theirs, however much others have.

use std::collections::BTreeMap;
use std::path::Path;

use model::TenantId;
use rusqlite::types::Value;
use rusqlite::{Connection, StatementStatus, params_from_iter};

use super::alerts::Watched;
use super::archive::{Archive, Partitions};
use super::tests::{OF_DAYS, statements};
use crate::statement::{columns, filled};

const DAY: i64 = 19_675;

/// A thousand tenants with ten runs and ten entries each, one of each dead; and one with many more, later ones, half of them dead.
const FILL: &str = "
    WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10000)
    INSERT INTO history_19675 (id, job, tenant, kind, lane, state, attempt, lost, version)
    SELECT unhex(printf('%032x', n)), unhex(printf('%032x', n)),
           CASE n % 1000 WHEN 0 THEN 0 ELSE unhex(printf('%032x', n % 1000)) END, 0, 0, iif(n <= 1000, 4, 3), 1, 0, 1
    FROM t;
    WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 50000)
    INSERT INTO history_19675 (id, job, tenant, kind, lane, state, attempt, lost, version)
    SELECT unhex(printf('%032x', 100000 + n)), unhex(printf('%032x', n)), unhex(printf('%032x', 1000)), 0, 0,
           iif(n % 2, 4, 3), 1, 0, 1
    FROM t;
    INSERT INTO audit (at, tenant, actor, action, subject)
    SELECT 0, tenant, 'someone', 'job.created', 'job' FROM history_19675 ORDER BY id;";

fn tenant(number: u8) -> TenantId {
    let mut bytes = [0; 16];
    bytes[15] = number;
    if number == 0 {
        return TenantId::DEFAULT;
    }
    TenantId::from_bytes(bytes)
}

/// How it is found, how many there are, and how many steps that took.
fn read(conn: &Connection, text: &str, of: TenantId, states: i64) -> (String, usize, i32) {
    let text = filled(text, columns).replace("{day}", &DAY.to_string());
    let tenant = if of == TenantId::DEFAULT {
        Value::Integer(0)
    } else {
        Value::Blob(of.as_bytes().to_vec())
    };
    let (least, most) = (Value::Blob(vec![0; 16]), Value::Blob(vec![255; 17]));
    let values = if text.contains("FROM audit") {
        let [from, to, limit] = [0, i64::MAX, 100].map(Value::Integer);
        vec![from, to, limit, tenant]
    } else {
        let [states, limit] = [states, 100].map(Value::Integer);
        vec![tenant, most, states, limit, Value::Null, least]
    };
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
    let plan = explain.query_map(params_from_iter(&values), |row| row.get(3));
    let plan: Vec<String> = plan.unwrap().map(Result::unwrap).collect();
    let mut select = conn.prepare(&text).unwrap();
    let rows = select.query_map(params_from_iter(&values), |_| Ok(()));
    let count = rows.unwrap().count();
    (
        plan.join("; "),
        count,
        select.get_status(StatementStatus::VmStep),
    )
}

/// A statement, who lists, which states, the index that it is found by, and how many there are.
const LISTS: [(&str, u8, i64, &str, usize); 8] = [
    (
        include_str!("sql/list_runs_partition_tenant.sql"),
        7,
        255,
        "history_19675_tenant",
        10,
    ),
    (
        include_str!("sql/list_runs_partition.sql"),
        0,
        255,
        "history_19675_default",
        10,
    ),
    (
        include_str!("sql/list_runs_partition_rare.sql"),
        7,
        4,
        "history_19675_rare",
        1,
    ),
    (
        include_str!("sql/list_runs_partition_rare.sql"),
        0,
        4,
        "history_19675_rare",
        1,
    ),
    (
        include_str!("sql/list_audit_tenant.sql"),
        7,
        0,
        "audit_tenant",
        10,
    ),
    (
        include_str!("sql/list_audit_tenant_back.sql"),
        7,
        0,
        "audit_tenant",
        10,
    ),
    (
        include_str!("sql/list_audit_default.sql"),
        0,
        0,
        "audit_default",
        10,
    ),
    (
        include_str!("sql/list_audit_default_back.sql"),
        0,
        0,
        "audit_default",
        10,
    ),
];

#[test]
fn what_a_tenant_lists_is_read_past_nobody_elses() {
    let conn = super::tests::fresh_schema();
    let schema = Partitions::sql(include_str!("sql/index_default.sql"), DAY);
    conn.execute_batch(&schema).unwrap();
    conn.execute_batch(include_str!("sql/index_default_audit.sql"))
        .unwrap();
    for filled in [false, true] {
        if filled {
            conn.execute_batch(FILL).unwrap();
        }
        for (text, of, states, index, count) in LISTS {
            let of = tenant(of);
            let (plan, found, steps) = read(&conn, text, of, states);
            assert!(plan.contains(index), "{text}: {plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{text}: {plan}");
            assert_eq!(found, if filled { count } else { 0 }, "{text}");
            assert!(steps < 1_000, "{text}: {steps} steps");
        }
    }
}

/// Ten thousand tenants with ten jobs each.
const JOBS: &str = "
    WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 100000)
    INSERT INTO jobs (id, tenant, state, version, next_slot, due_at, state_at)
    SELECT unhex(printf('%032x', n)), unhex(printf('%032x', 1 + n % 10000)), 0, 1, n, n, 0 FROM t;
    INSERT INTO defs (id, tenant, gone, created_at, updated_at, doc, owner)
    SELECT id, tenant, 0, 0, 0, x'', 'ann' FROM jobs;
    INSERT INTO labels (tenant, name, value, job) SELECT tenant, 'team', 'ops', id FROM jobs;
    INSERT INTO tenants (id, name, created_at)
    SELECT DISTINCT tenant, 't' || lower(hex(tenant)), 0 FROM jobs;";

/// How every statement finds its rows.
fn plans(conn: &Connection) -> BTreeMap<String, String> {
    let statements = statements().into_iter();
    let statements = statements.filter(|(name, _)| !OF_DAYS.contains(&name.as_str()));
    let plans = statements.map(|(name, text)| {
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
        let plan = explain.raw_query().mapped(|row| row.get(3));
        let plan: Vec<String> = plan.map(Result::unwrap).collect();
        (name, plan.join("; "))
    });
    plans.collect()
}

/// A plan depends on statistics alone, and SQLite has them only after ANALYZE, which nobody does.
#[test]
fn no_statement_finds_its_rows_in_another_way_when_there_are_many_tenants() {
    let conn = super::tests::fresh_schema();
    let before = plans(&conn);
    for fill in [FILL, JOBS] {
        conn.execute_batch(fill).unwrap();
    }
    assert_eq!(plans(&conn), before);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite");
    for folder in ["", "sql", "migrations"].map(|it| folder.join(it)) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_file() && !name.ends_with("_tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let says = text.contains("ANALYZE") || text.contains("PRAGMA optimize");
                assert!(!says, "{name} makes statistics");
            }
        }
    }
}

/// Most stores have one tenant, and pay nothing for an index.
#[test]
fn a_partition_has_an_index_of_the_first_tenant_once_there_are_others() {
    let conn = super::tests::fresh_schema();
    let mut partitions = Partitions::default();
    let indexes = |day: i64| -> Vec<String> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL ORDER BY 1";
        let mut select = conn.prepare(sql).unwrap();
        let names = select.query_map([format!("history_{day}")], |row| row.get(0));
        names.unwrap().map(Result::unwrap).collect()
    };
    Archive::new(&conn, &mut partitions, &Watched::default())
        .make(1)
        .unwrap();
    assert_eq!(
        indexes(1),
        ["history_1_job", "history_1_rare", "history_1_tenant"]
    );
    let other = "INSERT INTO tenants (id, name, created_at) VALUES (x'01', 'other', 0)";
    conn.execute_batch(other).unwrap();
    Archive::new(&conn, &mut partitions, &Watched::default())
        .make(2)
        .unwrap();
    assert_eq!(
        indexes(2),
        [
            "history_2_default",
            "history_2_job",
            "history_2_rare",
            "history_2_tenant"
        ]
    );
}

#[test]
fn jobs_of_the_first_tenant_are_listed_by_indexes_of_its_own_once_there_are_others() {
    let conn = super::tests::fresh_schema();
    let other = "INSERT INTO tenants (id, name, created_at) VALUES (x'01', 'other', 0)";
    conn.execute_batch(other).unwrap();
    super::tenants::index_default(&conn).unwrap();
    for (text, index) in [
        (include_str!("sql/list_jobs_near.sql"), "jobs_default "),
        (include_str!("sql/list_jobs.sql"), "jobs_default "),
        (
            include_str!("sql/list_jobs_rare_default.sql"),
            "jobs_default_rare ",
        ),
        (
            include_str!("sql/list_jobs_open_default.sql"),
            "jobs_default_open ",
        ),
        (include_str!("sql/list_jobs_open.sql"), "jobs_open "),
    ] {
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
        let plan = explain.raw_query().mapped(|row| row.get(3));
        let plan: Vec<String> = plan.map(Result::unwrap).collect();
        let plan = plan.join("; ");
        assert!(plan.contains(index), "{text}: {plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{text}: {plan}");
    }
}

/// A tenant with many finished jobs that have no key, and a few older ones that have: they are found without the others.
#[test]
fn a_part_of_a_key_is_found_among_keys_alone() {
    let conn = super::tests::fresh_schema();
    let fill = "
        WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 20000)
        INSERT INTO jobs (id, tenant, state, version, state_at)
        SELECT unhex(printf('%032x', n)), unhex(printf('%032x', 7)), 2, 1, 0 FROM t;
        INSERT INTO defs (id, tenant, gone, key, created_at, updated_at, doc)
        SELECT id, tenant, 0, iif(unhex(printf('%032x', 3)) >= id, 'Nightly-' || hex(id), NULL), 0, 0, x'' FROM jobs;";
    for filled in [false, true] {
        if filled {
            conn.execute_batch(fill).unwrap();
        }
        for (text, index, found, steps_max) in [
            (
                include_str!("sql/list_jobs_near_tenant.sql"),
                "defs_tenant ",
                100,
                5_000,
            ),
            (include_str!("sql/list_jobs_key.sql"), "defs_key ", 3, 1_000),
        ] {
            let of = Value::Blob(tenant(7).as_bytes().to_vec());
            let most = Value::Blob(vec![255; 17]);
            let (states, part, limit) = (255.into(), "ightly".to_owned().into(), 100.into());
            let values: [Value; 5] = [of, most, states, part, limit];
            let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {text}")).unwrap();
            let plan = explain.query_map(params_from_iter(&values), |row| row.get(3));
            let plan: Vec<String> = plan.unwrap().map(Result::unwrap).collect();
            assert!(plan.join("; ").contains(index), "{text}: {plan:?}");
            let mut select = conn.prepare(text).unwrap();
            let rows = select.query_map(params_from_iter(&values), |_| Ok(()));
            assert_eq!(
                rows.unwrap().count(),
                if filled { found } else { 0 },
                "{text}"
            );
            let steps = select.get_status(StatementStatus::VmStep);
            assert!(steps < steps_max, "{text}: {steps} steps");
        }
    }
}
