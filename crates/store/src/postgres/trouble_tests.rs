//! Trouble that a database makes while it is up: too few connections, slow statements, collisions, and answers that
//! never come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use model::shard::ShardSet;
use model::{Lane, Overlap, RunKind, RunState, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::{client, leader, on_time, put, read};
use crate::conformance::{DONE, TestClock, at, job, job_with, node, settlement, slot};
use crate::postgres::server::{Mode, PgServer};
use crate::postgres::*;

/// A store with so many connections.
async fn small(address: &str, connections: usize) -> PgStore {
    let config = PgConfig::parse(address).unwrap();
    let config = config.with_connections(connections);
    let clock = Arc::new(TestClock::default());
    PgStore::with_clock(config, clock).await.unwrap()
}

fn schema(address: &str) -> String {
    PgConfig::parse(address).unwrap().schema().to_owned()
}

#[tokio::test]
async fn a_call_without_a_connection_is_answered_and_beats_go_on() {
    let server = PgServer::shared().unwrap();
    let store = small(&server.fresh_schema(), 2).await;
    let me = store.join(&node("a")).await.unwrap();
    let held = [store.pool.get().await, store.pool.get().await];
    let over = AtomicBool::new(false);
    let waits = async {
        let waited = store.count_live().await.unwrap_err();
        over.store(true, Ordering::Relaxed);
        waited
    };
    let beats = async {
        let mut beats = 0;
        while !over.load(Ordering::Relaxed) {
            store.beat(me, &NodeStatus::default()).await.unwrap();
            beats += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        beats
    };
    let (waited, beats) = tokio::join!(waits, beats);
    assert!(waited.is_transient(), "{waited:?}");
    assert!(beats > 10, "{beats}");
    drop(held);
    store.count_live().await.unwrap();
}

#[tokio::test]
async fn clients_that_have_taken_all_their_connections_hold_up_nothing_else() {
    let server = PgServer::shared().unwrap();
    let store = small(&server.fresh_schema(), 2).await;
    let leases = leader(&store).await;
    let job = put(&store, job(1).unwrap()).await;
    let _held = store.clients.get().await.unwrap();
    let refused = store.get_job(job.tenant, job.id).await.unwrap_err();
    assert!(refused.is_transient(), "{refused:?}");
    let fired = store
        .fire(&leases, &[on_time(&job).unwrap()])
        .await
        .unwrap();
    assert!(matches!(fired[..], [Fired::Claimed(_)]), "{fired:?}");
    store
        .oldest_due(&ShardSet::ALL, Timestamp::MIN, Timestamp::MAX)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_row_that_another_session_holds_delays_only_its_own_calls() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = small(&address, 4).await;
    let leases = leader(&store).await;
    let slow = put(&store, job(1).unwrap()).await;
    let skips = job_with(2, |def| def.overlap = Overlap::Skip);
    let slow_too = put(&store, skips.unwrap()).await;
    let quick = put(&store, job(3).unwrap()).await;
    let holder = client(&server).await;
    let hold = format!(
        "BEGIN; SELECT FROM {}.jobs WHERE id IN ('{}', '{}') FOR UPDATE",
        schema(&address),
        slow.id.0,
        slow_too.id.0
    );
    holder.batch_execute(&hold).await.unwrap();
    let begun = Instant::now();
    let over = AtomicBool::new(false);
    let waits = async {
        let batches = [[on_time(&slow).unwrap()], [on_time(&slow_too).unwrap()]];
        let (first, second) = tokio::join!(
            store.fire(&leases, &batches[0]),
            store.fire(&leases, &batches[1]),
        );
        over.store(true, Ordering::Relaxed);
        [first.unwrap_err(), second.unwrap_err()]
    };
    let others = async {
        let mut fired = 0;
        while !over.load(Ordering::Relaxed) {
            let firing = on_time(&read(&store, quick.id).await).unwrap();
            let answer = store.fire(&leases, &[firing]).await.unwrap();
            assert!(matches!(answer[0], Fired::Claimed(_)), "{answer:?}");
            fired += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        fired
    };
    let (errors, fired) = tokio::join!(waits, others);
    assert!(errors.iter().all(StoreError::is_transient), "{errors:?}");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(fired > 10, "{fired}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    for job in [&slow, &slow_too] {
        assert_eq!(read(&store, job.id).await, *job, "nothing was written");
        let batch = [on_time(job).unwrap()];
        let answer = store.fire(&leases, &batch).await.unwrap();
        assert!(matches!(answer[0], Fired::Claimed(_)), "{answer:?}");
    }
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_given_up() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = small(&address, 1).await;
    let leases = leader(&store).await;
    let job = put(&store, job(1).unwrap()).await;
    let conn = store.pool.get().await.unwrap();
    let patience = "SET statement_timeout = '200ms'; SET lock_timeout = 0";
    conn.run(patience).await.unwrap();
    drop(conn);
    let holder = client(&server).await;
    let hold = format!("BEGIN; SELECT FROM {}.jobs FOR UPDATE", schema(&address));
    holder.batch_execute(&hold).await.unwrap();
    let batch = [on_time(&job).unwrap()];
    let error = store.fire(&leases, &batch).await.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    holder.batch_execute("ROLLBACK").await.unwrap();
    let answer = store.fire(&leases, &batch).await.unwrap();
    assert!(matches!(answer[0], Fired::Claimed(_)), "{answer:?}");
}

/// The first few writes to a table fail with this state.
async fn collide(client: &tokio_postgres::Client, schema: &str, table: &str, state: &str) {
    let trap = format!(
        "SET search_path TO {schema};
         DROP SEQUENCE IF EXISTS collisions; CREATE SEQUENCE collisions;
         CREATE OR REPLACE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('collisions') <= 3 THEN RAISE EXCEPTION 'collided' USING ERRCODE = '{state}'; END IF;
            RETURN coalesce(NEW, OLD); END $$;
         CREATE OR REPLACE TRIGGER collide BEFORE INSERT OR UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION collide();"
    );
    client.batch_execute(&trap).await.unwrap();
}

#[tokio::test]
async fn collisions_are_tried_again() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let schema = schema(&address);
    let store = small(&address, 2).await;
    let leases = leader(&store).await;
    let client = client(&server).await;
    for (number, state) in [(1, "40001"), (2, "40P01")] {
        for overlap in [Overlap::Allow, Overlap::Skip] {
            let number = number * 2 + u8::from(overlap == Overlap::Allow);
            collide(&client, &schema, "jobs", state).await;
            let job = job_with(number, |def| def.overlap = overlap).unwrap();
            let job = put(&store, job).await;
            collide(&client, &schema, "live", state).await;
            let batch = [Firing {
                claim: false,
                ..on_time(&job).unwrap()
            }];
            let answer = store.fire(&leases, &batch).await.unwrap();
            let [Fired::Ready(id)] = answer[..] else {
                panic!("{answer:?}")
            };
            collide(&client, &schema, "live", state).await;
            let by = leases.presence;
            let taken = store.claim_due(
                by,
                &ShardSet::ALL,
                DueRoom::for_earliest(at(60), [1; Lane::COUNT]),
            );
            let taken = taken.await.unwrap();
            assert_eq!(taken[0].0.id, id);
            collide(&client, &schema, "live", state).await;
            let end = [settlement(&taken[0].0, Verdict::Succeed)];
            assert_eq!(store.settle(by, &end).await.unwrap(), [DONE]);
        }
    }
}

/// When answers are cut off.
const NEVER: u8 = 0;
const AT_ONCE: u8 = 1;
const AT_COMMIT: u8 = 2;

/// Stands before a server. When armed, it lets a query through, waits for the answer, keeps it and hangs up.
struct Proxy {
    port: u16,
    cut: Arc<AtomicU8>,
}

impl Proxy {
    async fn before(server: &PgServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicU8::new(NEVER));
        let (to, armed) = (server.port(), Arc::clone(&cut));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", to)).await;
                let Ok(server) = server else { continue };
                let (armed, deaf) = (Arc::clone(&armed), Arc::new(AtomicBool::new(false)));
                let (from_client, hears) = client.into_split();
                let (answers, to_server) = server.into_split();
                let passed_on = questions(
                    from_client,
                    to_server,
                    Arc::clone(&armed),
                    Arc::clone(&deaf),
                );
                tokio::spawn(async move {
                    tokio::select! { () = passed_on => {}, () = passed_back(answers, hears, deaf) => {} }
                });
            }
        });
        Self { port, cut }
    }

    fn arm(&self, when: u8) {
        self.cut.store(when, Ordering::SeqCst);
    }
}

async fn questions(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    armed: Arc<AtomicU8>,
    deaf: Arc<AtomicBool>,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let said = &buffer[..count];
        let is_commit = said.windows(7).any(|it| it == b"COMMIT\0");
        let when = armed.load(Ordering::SeqCst);
        if when == AT_ONCE || when == AT_COMMIT && is_commit {
            deaf.store(true, Ordering::SeqCst);
        }
        if to.write_all(said).await.is_err() {
            return;
        }
    }
}

async fn passed_back(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, deaf: Arc<AtomicBool>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if deaf.load(Ordering::SeqCst) {
            // Whatever else the server has to say is said by then.
            let more = tokio::time::timeout(Duration::from_millis(200), async {
                while let Ok(1..) = from.read(&mut buffer).await {}
            });
            let _over = more.await;
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// A store whose answers can be cut off, and one that sees what was written.
async fn behind_a_proxy(server: &PgServer) -> (Proxy, PgStore, PgStore) {
    let proxy = Proxy::before(server).await;
    let direct = server.fresh_schema();
    let through = direct.replace(&server.port().to_string(), &proxy.port.to_string());
    let (store, witness) = (small(&through, 1).await, small(&direct, 1).await);
    (proxy, store, witness)
}

/// A call whose answer is lost is one that cannot be reached.
async fn unanswered<T: std::fmt::Debug>(
    proxy: &Proxy,
    when: u8,
    call: impl Future<Output = Result<T, StoreError>>,
) {
    proxy.arm(when);
    let error = call.await.unwrap_err();
    proxy.arm(NEVER);
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

/// One job from its making to its end: statements are prepared then, and the day is made.
async fn warm(store: &PgStore, leases: &Leases, number: u8) {
    let job = put(store, job(number).unwrap()).await;
    let firing = on_time(&job).unwrap();
    store.fire(leases, &[firing]).await.unwrap();
    let id = RunId::for_slot(job.id, slot(60));
    let run = store.get_run(TenantId::DEFAULT, id).await.unwrap();
    let end = [settlement(&run.unwrap(), Verdict::Succeed)];
    let settled = store.settle(leases.presence, &end).await.unwrap();
    assert_eq!(settled, [DONE]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_unanswered_is_not_written_twice() {
    let server = PgServer::shared().unwrap();
    let (proxy, store, witness) = behind_a_proxy(&server).await;
    let leases = leader(&store).await;
    let by = leases.presence;
    let jobs = [
        Arc::new(job(1).unwrap()),
        Arc::new(job_with(2, |def| def.overlap = Overlap::Skip).unwrap()),
    ];
    let new = jobs.each_ref().map(|job| NewJob {
        job: Arc::clone(job),
        idempotency: None,
    });
    warm(&store, &leases, 3).await;
    unanswered(&proxy, AT_ONCE, store.create_jobs(&new)).await;
    assert_eq!(read(&witness, jobs[0].id).await, jobs[0]);
    let again = store.create_jobs(&new).await.unwrap();
    let same = jobs.each_ref().map(|job| Created::Repeated(job.id));
    assert_eq!(again, same);
    for (job, when, number) in [(&jobs[0], AT_ONCE, 4), (&jobs[1], AT_COMMIT, 6)] {
        warm(&store, &leases, number).await;
        let batch = [on_time(job).unwrap()];
        unanswered(&proxy, when, store.fire(&leases, &batch)).await;
        let id = RunId::for_slot(job.id, slot(60));
        let run = witness.get_run(TenantId::DEFAULT, id).await.unwrap();
        let run = run.expect("it was written");
        assert_eq!(
            store.fire(&leases, &batch).await.unwrap(),
            [Fired::Claimed(id)]
        );
        warm(&store, &leases, number + 1).await;
        let end = [settlement(&run, Verdict::Succeed)];
        unanswered(&proxy, AT_ONCE, store.settle(by, &end)).await;
        assert_eq!(store.settle(by, &end).await.unwrap(), [Settled::Stale]);
        let run = witness.get_run(TenantId::DEFAULT, id).await.unwrap();
        assert_eq!(run.unwrap().state, RunState::Succeeded);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_started_or_claimed_unanswered_is_there_when_repeated() {
    let server = PgServer::shared().unwrap();
    let (proxy, store, _) = behind_a_proxy(&server).await;
    let leases = leader(&store).await;
    let by = leases.presence;
    let job = put(&store, job(1).unwrap()).await;
    let manual = Run {
        id: RunId::of_request(job.id, at(5), 5),
        kind: RunKind::Manual,
        slot: None,
        ..Run::of_slot(&job, slot(5))
    };
    let start = StartRun {
        run: manual.clone(),
        force: false,
    };
    unanswered(&proxy, AT_COMMIT, store.start_run(&start)).await;
    let again = store.start_run(&start).await.unwrap();
    assert_eq!(again, Started::Repeated);
    let take = store.claim_due(
        by,
        &ShardSet::ALL,
        DueRoom::for_earliest(at(60), [9; Lane::COUNT]),
    );
    unanswered(&proxy, AT_COMMIT, take).await;
    let held = store.claims(by, None, 9).await.unwrap();
    assert!(
        held.iter().any(|claim| claim.run == manual.id),
        "it is ours"
    );
    let claimed = store.claim(&leases, &[manual.id]).await.unwrap();
    assert!(matches!(&claimed[..], [Claimed::Ours(..)]), "{claimed:?}");
}

#[tokio::test]
async fn one_bad_end_spoils_no_batch() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = small(&address, 2).await;
    let leases = leader(&store).await;
    let mut ends = Vec::new();
    for number in 1..=7 {
        let job = put(&store, job(number).unwrap()).await;
        let fired = store.fire(&leases, &[on_time(&job).unwrap()]).await;
        let [Fired::Claimed(id)] = fired.unwrap()[..] else {
            panic!("not fired")
        };
        let run = store.get_run(TenantId::DEFAULT, id).await.unwrap();
        ends.push(settlement(&run.unwrap(), Verdict::Succeed));
    }
    let trap = format!(
        "SET search_path TO {};
         CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.job = '{}' THEN RAISE numeric_value_out_of_range; END IF; RETURN NEW; END $$;
         CREATE TRIGGER trap BEFORE INSERT ON history FOR EACH ROW EXECUTE FUNCTION trap();",
        schema(&address),
        ends[4].run.job.0
    );
    client(&server).await.batch_execute(&trap).await.unwrap();
    let settled = store.settle(leases.presence, &ends).await.unwrap();
    for (index, settled) in settled.iter().enumerate() {
        match settled {
            Settled::Refused(_) => assert_eq!(index, 4),
            Settled::Done { .. } => assert_ne!(index, 4),
            Settled::Stale => panic!("{index} is stale"),
        }
    }
    let left = store.claims(leases.presence, None, 9).await.unwrap();
    let left: Vec<_> = left.iter().map(|claim| claim.run).collect();
    assert_eq!(left, [ends[4].run.id], "all others have ended");
}

/// Everything that is logged, fields and all.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<String>>);

impl tracing::field::Visit for Log {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        let line = format!("{}={value:?} ", field.name());
        self.0.lock().unwrap().push_str(&line);
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        attributes.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// All on one thread, so that all of it is seen.
#[tokio::test]
async fn no_line_of_the_log_shows_the_password() {
    let server = PgServer::private(Mode::Fast).unwrap();
    let root = client(&server).await;
    let user = "CREATE ROLE ann LOGIN SUPERUSER PASSWORD 's3cret'";
    root.batch_execute(user).await.unwrap();
    let log = Log::default();
    let _heard = tracing::subscriber::set_default(log.clone());
    let address = format!("postgres://ann:s3cret@127.0.0.1:{}/postgres", server.port());
    let config = PgConfig::parse(&format!("{address}?sslmode=disable")).unwrap();
    let store = PgStore::connect(config).await.unwrap();
    store.hint(&[Hint::Ready]);
    let me = store.join(&node("a")).await.unwrap();
    let rules = server.folder().join("pg_hba.conf");
    std::fs::write(rules, "host all ann all reject\nhost all all all trust\n").unwrap();
    let refuse = "SELECT pg_reload_conf(); SELECT pg_sleep(0.3); \
                  SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'ann'";
    root.batch_execute(refuse).await.unwrap();
    for _ in 0..5 {
        let error = store.beat(me, &NodeStatus::default()).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let log = log.0.lock().unwrap().clone();
    assert!(log.contains("no hints between nodes"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
}
