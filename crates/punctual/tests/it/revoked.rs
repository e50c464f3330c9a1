//! A key that is revoked on one of two nodes: how soon the other refuses it, with hints and without.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::json;
use store::postgres::server::{Mode, PgServer};
use tempfile::TempDir;

use crate::support::{Answer, Http, KEYS, Receiver, Server, now, pause, skip, wait_for};

/// What is promised, in milliseconds.
const PROMISED: i64 = 1_000;
/// What a loaded machine may add to a round, and what calls and reads add: the promise is about the node.
const SLACK: i64 = 500;
/// All of them keep the promise but one at most, in which the machine may have stood still.
const ROUNDS: usize = 6;

fn private() -> Option<PgServer> {
    let found = PgServer::private(Mode::Fast);
    found.map_err(|why| skip(&why.to_string())).ok()
}

/// Two nodes on one database, the first with the root key.
struct Fleet {
    one: Server,
    other: Server,
    root: Http,
    _folders: [TempDir; 2],
}

impl Fleet {
    fn start(store: &str) -> Self {
        let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let node = |folder: &TempDir| Server::start_in(folder.path(), &[KEYS, "--store", store]);
        let (one, other) = (node(&folders[0]), node(&folders[1]));
        let root = one.http().with_key(&one.root_key());
        Self {
            one,
            other,
            root,
            _folders: folders,
        }
    }

    /// A key that was made on the first node, once the second lets it in: its id and its text.
    fn key(&self, role: &str) -> (String, String) {
        let made = self.root.post("/v1/keys", &json!({"role": role})).json();
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        let key = text("key");
        self.wait_for_status(&key, 200);
        (text("id"), key)
    }

    /// Queries the second node every few milliseconds.
    #[track_caller]
    fn wait_for_status(&self, key: &str, status: u16) {
        let http = self.other.http().with_key(key);
        let until = now() + 30_000;
        while http.get("/v1/jobs").status != status {
            assert!(now() < until, "waited in vain for {status}");
            pause(Duration::from_millis(3));
        }
    }

    fn revoke(&self, id: &str) {
        let path = format!("/v1/keys/{id}");
        assert_eq!(self.root.send("DELETE", &path, &[], b"").status, 200);
    }

    /// How long the second node lets a key in that was revoked on the first, in milliseconds. The second has just
    /// read the keys, so that its next read is as far away as it can be.
    fn round(&self) -> i64 {
        let (id, key) = self.key("reader");
        self.revoke(&id);
        let revoked_at = now();
        self.wait_for_status(&key, 401);
        now() - revoked_at
    }

    /// A run that somebody else works at, and says nothing of.
    fn silent_run(&self, target: &Receiver) -> String {
        let body =
            json!({"schedule": "@yearly", "completion": "callback", "target": target.url("/")});
        let job = self.root.post("/v1/jobs", &body).json();
        let path = format!("/v1/jobs/{}/run", job["id"].as_str().unwrap());
        let run = self.root.post(&path, &json!({})).json();
        let run = run["id"].as_str().unwrap().to_owned();
        wait_for("the run to be handed over", || {
            let shown = self.root.get(&format!("/v1/runs/{run}")).json();
            shown["handed_over"].is_object().then_some(())
        });
        run
    }

    /// Streams of the second node that wait for something to happen end within what is promised: that of changes, and the log
    /// of a run that is followed, by a client and by the command line.
    #[track_caller]
    fn ends_what_waits(&self) {
        let target = Receiver::answering(|_| Answer::status(202));
        let run = self.silent_run(&target);
        let paths = [
            "/v1/events".to_owned(),
            format!("/v1/runs/{run}/log?follow=true"),
        ];
        let mut took = Vec::new();
        for _ in 0..ROUNDS / 2 {
            let (id, key) = self.key("reader");
            let open = paths.each_ref().map(|path| begin(&self.other, &key, path));
            let reading = open.map(|open| thread::spawn(move || read_in_bits(open)));
            self.revoke(&id);
            let revoked_at = now();
            took.extend(reading.map(|it| it.join().unwrap().0 - revoked_at));
        }
        let late = took.iter().filter(|took| **took > PROMISED + SLACK);
        assert!(
            late.count() <= 1,
            "{took:?} ms, and {PROMISED} are promised"
        );
        let (id, key) = self.key("reader");
        let follow = format!("run log {run} --follow");
        let follower = self
            .other
            .cli_started_with(&[("PUNCTUAL_KEY", &key)], &follow);
        let other = self.other.http().with_key(&self.one.root_key());
        wait_for("the follower", || {
            let metrics = other.get("/metrics").body;
            let metrics = String::from_utf8_lossy(&metrics).into_owned();
            metrics
                .contains(
                    "
punctual_streams 1
",
                )
                .then_some(())
        });
        self.revoke(&id);
        let ended = follower.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(
            !ended.status.success() && error.contains("no valid key"),
            "{error}"
        );
    }

    /// All rounds but one at most keep within what is promised.
    #[track_caller]
    fn keeps_its_promise(&self) -> Vec<i64> {
        let took: Vec<i64> = (0..ROUNDS).map(|_| self.round()).collect();
        let late = took.iter().filter(|took| **took > PROMISED + SLACK);
        assert!(
            late.count() <= 1,
            "{took:?} ms, and {PROMISED} are promised"
        );
        took
    }
}

#[test]
fn a_key_revoked_on_one_node_is_refused_by_another_within_a_second() {
    let Some(database) = private() else { return };
    let fleet = Fleet::start(&database.address());
    let took = fleet.keeps_its_promise();
    // The next read of its own would be half a second away: it is the hint that ends the key.
    assert!(took.iter().any(|took| *took < 300), "{took:?} ms");
    let (id, key) = fleet.key("reader");
    fleet.revoke(&id);
    fleet.wait_for_status(&key, 401);
    pause(Duration::from_millis(700));
    let http = fleet.other.http().with_key(&key);
    assert_eq!(http.get("/v1/jobs").status, 401, "and it stays so");
}

/// Ends whatever listens or notifies, again and again until it is stopped; how often it found something.
const CUT_HINTS: &str = "
    SET client_min_messages TO notice;
    DO $$ DECLARE cut bigint; BEGIN
        FOR round IN 1..3000 LOOP
            PERFORM pg_stat_clear_snapshot();
            SELECT count(pg_terminate_backend(pid)) INTO cut FROM pg_stat_activity
             WHERE pid <> pg_backend_pid() AND query ~* '(listen |pg_notify)' AND application_name = 'punctual';
            INSERT INTO cuts VALUES (cut);
            EXIT WHEN EXISTS (SELECT FROM enough);
            PERFORM pg_sleep(0.02);
        END LOOP;
    END $$;
    SELECT sum(count) FROM cuts";

#[test]
fn a_key_is_refused_within_a_second_while_whoever_listens_is_cut_off() {
    let Some(database) = private() else { return };
    let (store, database) = (database.address(), Arc::new(database));
    let fleet = Fleet::start(&store);
    let tables = "CREATE TABLE cuts (count bigint); CREATE TABLE enough (it bigint)";
    database.query(tables).unwrap();
    let cutting = thread::spawn({
        let database = Arc::clone(&database);
        move || database.query(CUT_HINTS).unwrap()
    });
    let begun = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%INTO cuts%' AND pid <> pg_backend_pid()";
    wait_for("the cuts", || {
        (database.query(begun).unwrap() == "1").then_some(())
    });
    fleet.keeps_its_promise();
    database.query("INSERT INTO enough VALUES (1)").unwrap();
    let cuts: u64 = cutting.join().unwrap().parse().unwrap();
    assert!(cuts > 2, "hints were cut {cuts} times");
}

#[test]
fn a_key_is_refused_within_a_second_while_no_hint_is_sent() {
    let Some(database) = private() else { return };
    // A user of its own, who may not notify anybody.
    let set_up = "CREATE ROLE silent LOGIN; GRANT ALL ON DATABASE postgres TO silent;
                  REVOKE EXECUTE ON FUNCTION pg_catalog.pg_notify(text, text) FROM PUBLIC";
    database.query(set_up).unwrap();
    let store = database.address().replace("//postgres@", "//silent@");
    assert!(store.contains("//silent@"), "{store}");
    let fleet = Fleet::start(&store);
    fleet.keeps_its_promise();
    fleet.ends_what_waits();
}

/// More than fits between a node and a client that does not read: 40 MB.
const LONG_LOG: &str = "
    INSERT INTO punctual.audit (at, tenant, actor, action, subject, after)
    SELECT extract(epoch FROM now()) * 1000, '00000000-0000-0000-0000-000000000000', 'somebody', 'job.edit', 'job ' || n,
           '{\"note\": \"' || repeat('x', 2000) || '\"}'
      FROM generate_series(1, 20000) n";

/// A request whose answer is read only in part so far.
fn begin(node: &Server, key: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&node.address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\r\n",
        node.address
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

/// The rest of it: how many bytes, and whether it came to its end.
fn finish(mut stream: TcpStream) -> (usize, bool) {
    let mut rest = Vec::new();
    let _cut_off = stream.read_to_end(&mut rest);
    (rest.len(), rest.ends_with(b"0\r\n\r\n"))
}

/// Reads bit by bit until the other side ends it: when that was, and whether it was all.
fn read_in_bits(mut stream: TcpStream) -> (i64, bool) {
    let (mut buffer, mut end) = (vec![0; 64 * 1024], Vec::new());
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return (now(), end.ends_with(b"0\r\n\r\n")),
            Ok(count) => {
                end.extend_from_slice(&buffer[..count]);
                end.drain(..end.len().saturating_sub(8));
            }
        }
        pause(Duration::from_millis(3));
    }
}

/// A client that reads sees the end of its stream within what is promised, and the time that it takes to read what was on its
/// way already. One that does not read is cut off when it does.
#[test]
fn an_open_stream_ends_within_a_second_when_its_key_is_revoked_on_another_node() {
    let Some(database) = private() else { return };
    let fleet = Fleet::start(&database.address());
    fleet.ends_what_waits();
    database.query(LONG_LOG).unwrap();
    let (id, key) = fleet.key("root");
    let whole = finish(begin(&fleet.other, &key, "/v1/audit/export"));
    assert!(whole.0 > 40_000_000 && whole.1, "{whole:?}");
    let open = begin(&fleet.other, &key, "/v1/audit/export");
    fleet.revoke(&id);
    fleet.wait_for_status(&key, 401);
    let cut = finish(open);
    assert!(cut.0 < whole.0 && !cut.1, "{cut:?} of {whole:?}");

    let mut took = Vec::new();
    for _ in 0..ROUNDS / 2 {
        let (id, key) = fleet.key("root");
        let open = begin(&fleet.other, &key, "/v1/audit/export");
        let reading = thread::spawn(move || read_in_bits(open));
        fleet.revoke(&id);
        let revoked_at = now();
        let (ended_at, is_whole) = reading.join().unwrap();
        // One that came to its end was not cut off.
        took.push(if is_whole {
            i64::MAX
        } else {
            ended_at - revoked_at
        });
    }
    let late = took.iter().filter(|took| **took > PROMISED + SLACK);
    assert!(
        late.count() <= 1,
        "{took:?} ms, and {PROMISED} are promised"
    );
}
