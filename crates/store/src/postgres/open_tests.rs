//! Opening: the schema, and who is refused.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use model::Partition;

use super::{client, store};
use crate::postgres::server::{Mode, PgServer, Stop};
use crate::postgres::*;

/// Every statement that stands in a file.
fn statements() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres/sql");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("-- "),
            "{name} says for which method it is"
        );
        found.push((name, text));
    }
    found.sort();
    found
}

#[tokio::test]
async fn every_statement_fits_the_schema_and_is_used() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let client = client(&server).await;
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let path = format!("SET search_path TO {schema}");
    client.batch_execute(&path).await.unwrap();
    let sources: String =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/postgres"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
            .map(|path| std::fs::read_to_string(path).unwrap())
            .collect();
    for (name, text) in statements() {
        assert!(
            sources.contains(&format!("sql/{name}.sql")),
            "{name} is not used"
        );
        for column in ["state", "kind", "lane", "outcome", "reason"] {
            let compared = ["=", "<>", "IN ("].map(|it| format!("{column} {it} "));
            let compared = compared
                .iter()
                .flat_map(|it| text.split(it.trim_end()).skip(1));
            let mut compared = compared.map(str::trim_start);
            let literal = compared.find(|it| it.starts_with(|it: char| it.is_ascii_digit()));
            assert_eq!(literal, None, "{name} has a number that has a name");
        }
        let text = statement::filled(&text);
        if !text.contains('{') {
            let prepared = client.prepare(&text).await;
            prepared.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        }
    }
    drop(store);
}

/// Tables that may be large; a day of history stands for all of them.
pub(super) const LARGE: [&str; 8] = [
    "jobs",
    "defs",
    "labels",
    "idempotency",
    "calendar_jobs",
    "history",
    "history_1",
    "live",
];

/// Queries of the live table, which is small, and not often: all of it, or so many from the first on.
const THROUGH_LIVE: [&str; 4] = [
    "count_live",
    "count_standing_live",
    "orphans",
    "retain_presences",
];

#[tokio::test]
async fn no_statement_reads_a_table_that_may_be_large_from_end_to_end() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    store
        .open_partitions([(Partition(1), Partition(1).ends_at())].into_iter())
        .await
        .unwrap();
    let client = client(&server).await;
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let settings = include_str!("sql/settings.sql").replace("{schema}", &schema);
    client.batch_execute(&settings).await.unwrap();
    let mut found = Vec::new();
    for (name, text) in statements() {
        let plain = !text.contains('{') && !text.contains("pg_");
        if !plain || THROUGH_LIVE.contains(&name.as_str()) {
            continue;
        }
        let plan = plan(&client, &text).await;
        for scan in scans(&plan) {
            let table = LARGE
                .iter()
                .find(|table| scan.contains(&format!(" on {table} ")));
            let bounds = ["Index Cond", "Recheck Cond", "TID Cond"];
            let bounded = bounds.iter().any(|bound| scan.contains(bound));
            if table.is_some() && !bounded {
                found.push(format!("{name}: {scan}\n{plan}"));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// A worker takes milliseconds to start: with a million jobs that was most of the time that plan took.
#[tokio::test]
async fn no_statement_waits_for_workers() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let client = client(&server).await;
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    // As if every table were large.
    let eager = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
                 SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;";
    let settings = include_str!("sql/settings.sql").replace("{schema}", &schema);
    client.batch_execute(&settings).await.unwrap();
    client.batch_execute(eager).await.unwrap();
    for (name, text) in statements() {
        if !text.contains('{') && !text.contains("pg_") {
            let plan = plan(&client, &text).await;
            assert!(!plan.contains("Gather"), "{name}:\n{plan}");
        }
    }
    let usual = "RESET max_parallel_workers_per_gather";
    client.batch_execute(usual).await.unwrap();
    let plan = plan(&client, include_str!("sql/count_live.sql")).await;
    assert!(plan.contains("Gather"), "this test sees nothing:\n{plan}");
    drop(store);
}

pub(super) async fn plan(client: &tokio_postgres::Client, text: &str) -> String {
    let text = statement::filled(text);
    let parameters = (1..40).rev().find(|no| text.contains(&format!("${no}")));
    let nothing = vec!["NULL"; parameters.unwrap_or(0)].join(", ");
    plan_of(client, &text, &nothing).await
}

/// The same of a statement whose parameters say which days are read.
pub(super) async fn plan_of(client: &tokio_postgres::Client, text: &str, nothing: &str) -> String {
    let text = statement::filled(text);
    let call = if nothing.is_empty() {
        "q".to_owned()
    } else {
        format!("q ({nothing})")
    };
    let prepare = format!("DEALLOCATE ALL; PREPARE q AS {text}");
    client.batch_execute(&prepare).await.unwrap();
    let explain = format!("EXPLAIN (COSTS OFF) EXECUTE {call}");
    let mut lines = Vec::new();
    for message in client.simple_query(&explain).await.unwrap() {
        if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
            lines.push(row.get(0).unwrap_or_default().to_owned());
        }
    }
    lines.join("\n")
}

/// Every scan of a plan, with what follows up to the next node.
pub(super) fn scans(plan: &str) -> Vec<String> {
    let mut nodes: Vec<String> = Vec::new();
    for line in plan.lines() {
        let starts = line.contains("->") || !line.starts_with(' ');
        match nodes.last_mut() {
            Some(node) if !starts => node.push_str(&format!(" {} ", line.trim())),
            Some(_) | None => nodes.push(format!("{} ", line.trim())),
        }
    }
    nodes.retain(|node| node.contains(" Scan"));
    nodes
}

#[tokio::test]
async fn two_that_open_at_once_make_one_schema() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let opened: Vec<_> = (0..6)
        .map(|_| tokio::spawn(PgStore::connect(PgConfig::parse(&address).unwrap())))
        .collect();
    for store in opened {
        store.await.unwrap().unwrap().count_live().await.unwrap();
    }
}

#[tokio::test]
async fn a_schema_of_a_newer_version_is_refused() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let config = PgConfig::parse(&address).unwrap();
    drop(store(&address).await);
    let client = client(&server).await;
    let newer = format!(
        "INSERT INTO {}.schema_migrations (number) VALUES (99)",
        config.schema()
    );
    client.batch_execute(&newer).await.unwrap();
    let error = PgStore::connect(config).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unusable(_)), "{error:?}");
    assert!(error.to_string().contains("newer version"), "{error}");
}

/// In any other, texts that others write, and some of ours, would be refused one by one.
#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let client = client(&server).await;
    for (encoding, usable) in [("LATIN1", false), ("SQL_ASCII", true), ("UTF8", true)] {
        let name = encoding.to_lowercase();
        let make =
            format!("CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        client.batch_execute(&make).await.unwrap();
        let address = server.address().replace("/postgres?", &format!("/{name}?"));
        let opened = PgStore::connect(PgConfig::parse(&address).unwrap()).await;
        match (opened, usable) {
            (Ok(store), true) => drop(store),
            (Err(StoreError::Unusable(why)), false) => {
                assert!(why.contains(encoding) && why.contains("UTF8"), "{why}");
            }
            (opened, _) => panic!("{encoding}: {opened:?}"),
        }
    }
}

#[tokio::test]
async fn a_password_that_is_refused_is_not_shown() {
    let server = PgServer::shared().unwrap();
    let address = format!(
        "postgres://nobody:s3cret@127.0.0.1:{}/postgres?sslmode=disable",
        server.port()
    );
    let error = PgStore::connect(PgConfig::parse(&address).unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error:?}");
    assert!(
        !format!("{error} {error:?}").contains("s3cret"),
        "{error:?}"
    );
    let store = store(&server.fresh_schema()).await;
    assert!(format!("{store:?}").starts_with("PgStore(postgres://127.0.0.1"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_store_that_cannot_be_reached() {
    let address = "postgres://nobody@127.0.0.1:1/postgres?sslmode=disable";
    let error = PgStore::connect(PgConfig::parse(address).unwrap())
        .await
        .unwrap_err();
    assert!(error.is_transient(), "{error:?}");
}

/// A certificate for 127.0.0.1 in the server's folder, and `ca.crt`, which signed it.
pub(super) fn set_up_tls(server: &PgServer) {
    let folder = server.folder();
    let new = "req -x509 -newkey rsa:2048 -nodes -days 30";
    let root = format!("{new} -subj /CN=tests -keyout ca.key -out ca.crt");
    let own = format!(
        "{new} -subj /CN=127.0.0.1 -CA ca.crt -CAkey ca.key -addext subjectAltName=IP:127.0.0.1 \
         -addext basicConstraints=critical,CA:FALSE -keyout server.key -out server.crt"
    );
    for arguments in [root, own] {
        let made = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(folder)
            .output()
            .expect("openssl is not on this machine: it comes with the Debian package openssl");
        assert!(made.status.success(), "{made:?}");
    }
    // The server wants its key to be its own.
    let key = folder.join("server.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let owner = std::fs::metadata(folder).unwrap();
    std::os::unix::fs::chown(&key, Some(owner.uid()), Some(owner.gid())).unwrap();
    std::fs::write(folder.join("postgresql.auto.conf"), "ssl = on\n").unwrap();
    let rules = "hostnossl all all all reject\nhostssl all all all trust\n";
    std::fs::write(folder.join("pg_hba.conf"), rules).unwrap();
}

#[tokio::test]
async fn tls_is_used_and_the_certificate_checked_as_configured() {
    let server = PgServer::private(Mode::Fast).unwrap();
    server.stop(Stop::Fast).unwrap();
    set_up_tls(&server);
    server.start().unwrap();
    let open = async |mode: &str| {
        let address = server.address().replace("sslmode=disable", mode);
        PgStore::connect(PgConfig::parse(&address).unwrap()).await
    };
    let root = server.folder().join("ca.crt");
    let trusted = format!("sslmode=verify-full&sslrootcert={}", root.display());
    for mode in ["sslmode=require", "sslmode=prefer", &trusted] {
        let store = open(mode)
            .await
            .unwrap_or_else(|error| panic!("{mode}: {error:?}"));
        store.count_live().await.unwrap();
    }
    let plain = open("sslmode=disable").await.unwrap_err();
    assert!(matches!(plain, StoreError::Unusable(_)), "{plain:?}");
    assert!(
        open("sslmode=verify-full").await.is_err(),
        "nobody we know signed it"
    );
}

/// A schema as version 2 left it, and what its nodes go on to write while others are newer.
#[tokio::test]
async fn nodes_of_the_version_before_may_go_on() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let client = client(&server).await;
    let before = [
        &format!("CREATE SCHEMA {schema}; SET search_path TO {schema}"),
        "CREATE TABLE schema_migrations (number integer PRIMARY KEY, applied_at timestamptz DEFAULT now())",
        include_str!("migrations/0001_init.sql"),
        include_str!("migrations/0002_time.sql"),
        "INSERT INTO schema_migrations (number) VALUES (1), (2)",
    ];
    for sql in before {
        client.batch_execute(sql).await.unwrap();
    }
    let join = "INSERT INTO presences (id, node, version, tables, joined_at, seen_at, beaten_at, unbroken_at, expires_at)
                SELECT gen_random_uuid(), $1, '0.1', '2026a', now_ms(), now_ms(), now_ms(), now_ms(), now_ms() + 60000";
    client.execute(join, &[&"there before"]).await.unwrap();
    let store = PgStore::connect(PgConfig::parse(&address).unwrap())
        .await
        .unwrap();
    client.execute(join, &[&"joined later"]).await.unwrap();
    let beat = "UPDATE presences SET beaten_at = now_ms(), expires_at = now_ms() + 60000";
    client.batch_execute(beat).await.unwrap();
    let me = store.join(&crate::conformance::node("new")).await.unwrap();
    let node_status = NodeStatus::default();
    let living = store.beat(me, &node_status).await.unwrap().living;
    let (old, new): (Vec<_>, Vec<_>) = living.iter().partition(|peer| peer.presence != me);
    assert_eq!((old.len(), new.len()), (2, 1));
    for peer in old {
        let all = model::Parts::default();
        assert_eq!(peer.node.parts, all, "it does everything");
        assert!(peer.node_status.schedules && peer.node_status.executes);
    }
    assert!(!new.iter().any(|peer| peer.node_status.schedules));
}

/// What is due is found by an index of its own, for everyone and lane by lane.
#[tokio::test]
async fn every_search_for_runs_walks_along_an_index() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = store(&address).await;
    let client = client(&server).await;
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let settings = include_str!("sql/settings.sql").replace("{schema}", &schema);
    client.batch_execute(&settings).await.unwrap();
    for (text, index) in [
        (include_str!("sql/claim_due.sql"), "live_lane"),
        (include_str!("sql/due_runs.sql"), "live_due"),
    ] {
        let plan = plan(&client, text).await;
        assert!(plan.contains(&format!("using {index} ")), "{plan}");
        assert!(!plan.contains("Sort"), "{plan}");
    }
    drop(store);
}
