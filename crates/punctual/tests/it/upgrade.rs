//! Stores from before there were keys: what they hold is still there afterwards, and behind a key.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use store::postgres::server::PgServer;
use tempfile::TempDir;

use crate::support::{KEYS, Server, skip};

/// The last version without keys.
const BEFORE_KEYS: usize = 8;
/// What is said of every day of history; there is none yet.
const OF_DAYS: &str = "-- For every day of history:\n";
/// What holds a job.
const TABLES: [&str; 2] = ["jobs", "defs"];

/// The migrations up to that version.
fn migrations(store: &str) -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = crates.join(format!("store/src/{store}/migrations"));
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let texts = files.iter().take(BEFORE_KEYS);
    texts
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// A server on such a store has made a key, and everything is behind it.
#[track_caller]
fn is_behind_a_key(server: &Server) {
    assert!(server.log().contains("The root key, shown this once: "));
    assert_eq!(server.http().get("/v1/jobs/by-key/kept").status, 401);
    let root = server.http().with_key(&server.root_key());
    assert_eq!(root.get("/v1/jobs/by-key/kept").status, 200);
    assert_eq!(root.get("/v1/tenants/default").status, 200);
    assert!(server.printed("job list").contains("kept"));
}

const CREATE: &str = "job create --key kept --every 1h --url http://127.0.0.1:9/";

#[test]
fn a_file_from_before_there_were_keys() {
    let (new, old) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = Server::start_in(new.path(), &[]);
    server.printed(CREATE);
    assert_eq!(server.stop().code(), Some(0));
    let conn = Connection::open(old.path().join("punctual.db")).unwrap();
    for text in migrations("sqlite") {
        let once = text.split(OF_DAYS).next().unwrap();
        conn.execute_batch(once).unwrap();
    }
    let path = new.path().join("punctual.db");
    conn.execute("ATTACH ?1 AS new", [path.to_str().unwrap()])
        .unwrap();
    for table in TABLES {
        let columns = format!("SELECT group_concat(name) FROM pragma_table_info('{table}')");
        let columns: String = conn.query_row(&columns, [], |row| row.get(0)).unwrap();
        let copy = format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}");
        assert_eq!(conn.execute(&copy, []).unwrap(), 1, "{table}");
    }
    let id: i64 = conn
        .query_row("PRAGMA new.application_id", [], |row| row.get(0))
        .unwrap();
    conn.pragma_update(None, "application_id", id).unwrap();
    conn.pragma_update(None, "user_version", BEFORE_KEYS as i64)
        .unwrap();
    drop(conn);
    is_behind_a_key(&Server::start_in(old.path(), &[KEYS]));
}

#[test]
fn a_database_from_before_there_were_keys() {
    let database = match PgServer::shared() {
        Ok(database) => database,
        Err(why) => return skip(&why.to_string()),
    };
    let (new, old) = (database.fresh_schema(), database.fresh_schema());
    let name = |address: &str| address.rsplit_once("schema=").unwrap().1.to_owned();
    let (new_name, old_name) = (name(&new), name(&old));
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let server = Server::start_in(folders[0].path(), &["--store", &new]);
    server.printed(CREATE);
    assert_eq!(server.stop().code(), Some(0));
    let mut script = format!(
        "CREATE SCHEMA {old_name}; SET search_path TO {old_name}; CREATE TABLE schema_migrations \
         (number integer PRIMARY KEY, applied_at timestamptz DEFAULT now());"
    );
    for (number, text) in (1..).zip(migrations("postgres")) {
        script.push_str(&text.replace("CREATE INDEX CONCURRENTLY", "CREATE INDEX"));
        script.push_str(&format!(
            "; INSERT INTO schema_migrations (number) VALUES ({number});"
        ));
    }
    database.query(&script).unwrap();
    for table in TABLES {
        let columns = format!(
            "SELECT string_agg(column_name, ',') FROM information_schema.columns \
             WHERE table_schema = '{old_name}' AND table_name = '{table}'"
        );
        let columns = database.query(&columns).unwrap();
        let copy = format!(
            "INSERT INTO {old_name}.{table} ({columns}) SELECT {columns} FROM {new_name}.{table}"
        );
        database.query(&copy).unwrap();
    }
    is_behind_a_key(&Server::start_in(
        folders[1].path(),
        &[KEYS, "--store", &old],
    ));
}
