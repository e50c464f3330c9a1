//! Several at once: nodes that do the same, and the clock that they share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::shard::ShardSet;
use model::{Definition, Lane, Overlap, RunKind, RunState, Verdict};

use super::{client, leader, on_time, put, read, store};
use crate::RunsOfChange;
use crate::conformance::{after_completion, at, job_with, node, settlement, slot, someone};
use crate::postgres::server::PgServer;
use crate::postgres::*;

/// Fires, settles, edits and cancels of the same few jobs, all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_everything_at_once_gets_in_nobodys_way() {
    let server = PgServer::shared().unwrap();
    let store = Arc::new(store(&server.fresh_schema()).await);
    let leases = leader(&store).await;
    let overlaps = [
        Overlap::Allow,
        Overlap::Skip,
        Overlap::QueueOne,
        Overlap::QueueAll { max: 3 },
        Overlap::CancelRunning,
    ];
    let mut ids = Vec::new();
    for (number, overlap) in (1..).zip(overlaps) {
        let job = job_with(number, |def| def.overlap = overlap).unwrap();
        ids.push(put(&store, job).await.id);
    }
    let rests = job_with(9, |def| {
        def.schedule = after_completion(60).unwrap();
        def.overlap = Overlap::QueueOne;
    });
    ids.push(put(&store, rests.unwrap()).await.id);
    let mut tasks = Vec::new();
    for task in 0..8_u64 {
        let (store, leases, ids) = (store.clone(), leases.clone(), ids.clone());
        tasks.push(tokio::spawn(async move {
            for round in 0..25 {
                crowd(&store, &leases, &ids, task + round).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    // What is left ends: then nobody may wait for anyone.
    for _ in 0..50 {
        settle_held(&store, &leases).await;
        let due = store
            .due_runs(&ShardSet::ALL, Timestamp::MAX, None, 1_000)
            .await
            .unwrap();
        let names: Vec<RunId> = due.iter().map(|due| due.run).collect();
        store.claim(&leases, &names).await.unwrap();
    }
    settle_held(&store, &leases).await;
    assert_eq!(store.count_live().await.unwrap(), 0, "a run waits for ever");
    for id in ids {
        let job = read(&store, id).await;
        assert!(job.next_slot.is_some(), "a job rests for ever: {job:?}");
    }
}

async fn settle_held(store: &PgStore, leases: &Leases) {
    let mut settlements = Vec::new();
    for claim in store.claims(leases.presence, None, 1_000).await.unwrap() {
        let run = store.get_run(TenantId::DEFAULT, claim.run).await.unwrap();
        settlements.extend(run.map(|run| settlement(&run, Verdict::Succeed)));
    }
    store.settle(leases.presence, &settlements).await.unwrap();
}

/// One of many who do everything.
async fn crowd(store: &PgStore, leases: &Leases, ids: &[JobId], turn: u64) {
    let mut firings = Vec::new();
    for id in ids {
        let job = store.get_job(TenantId::DEFAULT, *id).await.unwrap();
        firings.extend(job.and_then(|job| on_time(&Arc::new(job))));
    }
    if turn.is_multiple_of(2) {
        firings.reverse();
    }
    if turn.is_multiple_of(7) {
        for firing in &mut firings {
            firing.claim = false;
        }
    }
    store.fire(leases, &firings).await.unwrap();
    let room = DueRoom::for_earliest(Timestamp::MAX, [3; Lane::COUNT]);
    store
        .claim_due(leases.presence, &ShardSet::ALL, room)
        .await
        .unwrap();
    settle_held(store, leases).await;
    if turn.is_multiple_of(3) {
        edit(store, ids).await;
    }
    if turn.is_multiple_of(5) {
        start_and_withdraw(store, leases, ids, turn).await;
    }
    if turn.is_multiple_of(4) {
        cancel(store).await;
    }
}

async fn edit(store: &PgStore, ids: &[JobId]) {
    for id in ids {
        let before = read(store, *id).await;
        let def = Definition::clone(&before.def);
        let (after, skipped) =
            before.edited(before.key.clone(), def, before.updated_at, &someone());
        let change = JobChange {
            before,
            after: Arc::new(after),
            skipped,
            runs: RunsOfChange::TakeBack,
        };
        store.change_job(&change).await.unwrap();
    }
}

async fn start_and_withdraw(store: &PgStore, leases: &Leases, ids: &[JobId], turn: u64) {
    for (id, nonce) in ids.iter().zip(turn * 100..) {
        let job = read(store, *id).await;
        let run = Run {
            id: RunId::of_request(*id, at(1), nonce),
            kind: RunKind::Manual,
            slot: None,
            ..Run::of_slot(&job, slot(1))
        };
        store
            .start_run(&StartRun { run, force: false })
            .await
            .unwrap();
    }
    let marks = store
        .beat(leases.presence, &NodeStatus::default())
        .await
        .unwrap()
        .marks;
    let answers: Vec<Withdrawal> = marks
        .iter()
        .map(|(run, _)| Withdrawal {
            run: *run,
            taken_back: turn.is_multiple_of(2),
        })
        .collect();
    store
        .withdraw(leases.presence, &answers, at(9))
        .await
        .unwrap();
}

async fn cancel(store: &PgStore) {
    let page = Page {
        before: None,
        limit: 5,
    };
    let filter = RunFilter {
        job: None,
        states: vec![RunState::Ready],
        ..RunFilter::default()
    };
    let live = store
        .list_runs(TenantId::DEFAULT, &filter, page)
        .await
        .unwrap();
    for run in live {
        store
            .cancel_run(TenantId::DEFAULT, run.id, at(9))
            .await
            .unwrap();
    }
}

/// Runs that nobody holds, and eight who take them through two stores while their jobs are fired and edited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_at_once_are_of_different_runs() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let stores = [
        Arc::new(store(&address).await),
        Arc::new(store(&address).await),
    ];
    let leases = leader(&stores[0]).await;
    let mut ids = Vec::new();
    for number in 1..=60_u8 {
        let job = job_with(number, |def| {
            def.lane = Lane::ALL[usize::from(number) % Lane::COUNT];
        });
        ids.push(put(&stores[0], job.unwrap()).await.id);
    }
    let over = Arc::new(AtomicBool::new(false));
    let firing = tokio::spawn({
        let (store, leases, over) = (stores[1].clone(), leases.clone(), over.clone());
        async move {
            for round in 0..10 {
                fire_ready(&store, &leases, &ids).await;
                if round % 3 == 0 {
                    edit(&store, &ids[..9]).await;
                }
            }
            over.store(true, Ordering::Relaxed);
        }
    });
    let mut takers = Vec::new();
    for number in 0..8_usize {
        let (store, over) = (stores[number % 2].clone(), over.clone());
        takers.push(tokio::spawn(async move {
            let me = store.join(&node("taker")).await.unwrap();
            let mut mine = Vec::new();
            let mut idle = 0;
            while idle < 40 || !over.load(Ordering::Relaxed) {
                let room = DueRoom::for_earliest(Timestamp::MAX, [2, number, 3]);
                let taken = store.claim_due(me, &ShardSet::ALL, room).await.unwrap();
                idle = if taken.is_empty() { idle + 1 } else { 0 };
                for (run, job) in taken {
                    assert_eq!((run.claim, run.version), (Some(me), job.version));
                    mine.push((run.id, run.claim));
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            mine
        }));
    }
    firing.await.unwrap();
    let mut taken = Vec::new();
    for taker in takers {
        taken.extend(taker.await.unwrap());
    }
    let holders: BTreeMap<_, _> = taken.iter().copied().collect();
    assert_eq!(holders.len(), taken.len(), "a run was taken twice");
    assert_eq!(holders.len() as u64, stores[0].count_live().await.unwrap());
    for (run, holder) in holders {
        let run = stores[0].get_run(TenantId::DEFAULT, run).await.unwrap();
        assert_eq!(run.unwrap().claim, holder);
    }
}

/// Fires the next slot of each, claimed by nobody.
async fn fire_ready(store: &PgStore, leases: &Leases, ids: &[JobId]) {
    let mut firings = Vec::new();
    for id in ids {
        let firing = on_time(&read(store, *id).await).unwrap();
        firings.push(Firing {
            claim: false,
            ..firing
        });
    }
    store.fire(leases, &firings).await.unwrap();
}

/// Two nodes, each convinced that it has every shard; only one has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_fire_the_same_jobs_make_one_decision_each() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let (first, second) = (store(&address).await, store(&address).await);
    let ours = leader(&first).await;
    let theirs = Leases {
        presence: second.join(&node("second")).await.unwrap(),
        ..ours.clone()
    };
    let mut jobs = Vec::new();
    for number in 1..=40 {
        let job = job_with(number, |def| {
            if number % 2 == 0 {
                def.overlap = Overlap::Skip;
            }
        });
        jobs.push(put(&first, job.unwrap()).await);
    }
    let firings: Vec<_> = jobs.iter().filter_map(on_time).collect();
    let again: Vec<_> = firings.iter().rev().cloned().collect();
    let (a, b, c) = tokio::join!(
        first.fire(&ours, &firings),
        second.fire(&theirs, &again),
        second.fire(&ours, &again),
    );
    let claimed = |fired: &[Fired]| fired.iter().all(|it| matches!(it, Fired::Claimed(_)));
    let (a, c) = (a.unwrap(), c.unwrap());
    assert!(
        claimed(&a) && claimed(&c),
        "the same presence gets the same runs: {a:?} {c:?}"
    );
    assert!(b.unwrap().iter().all(|it| *it == Fired::LeaseLost));
    assert_eq!(first.count_live().await.unwrap(), 40);
}

/// A beat that waits for a lock is not written yet; one that is written before the fence gets the lock counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_waits_compares_with_the_row_as_it_is_then() {
    let server = PgServer::shared().unwrap();
    let config = PgConfig::parse(&server.fresh_schema()).unwrap();
    let schema = config.schema().to_owned();
    let store = Arc::new(PgStore::connect(config).await.unwrap());
    let me = store.join(&node("a")).await.unwrap();
    let other = store.join(&node("b")).await.unwrap();
    let living = store.beat(me, &NodeStatus::default()).await.unwrap().living;
    let peer = living.iter().find(|peer| peer.presence == other).unwrap();
    let last = (other, peer.mark);
    let holder = client(&server).await;
    let beat = format!(
        "BEGIN; UPDATE {schema}.presences SET beaten_at = beaten_at + 1 WHERE id = '{}'",
        other.0
    );
    holder.batch_execute(&beat).await.unwrap();
    let fencer = Arc::clone(&store);
    let fence = tokio::spawn(async move { fencer.fence(me, &[last]).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!fence.is_finished(), "it waits for the beat");
    holder.batch_execute("COMMIT").await.unwrap();
    assert_eq!(fence.await.unwrap().unwrap(), []);
    store.beat(other, &NodeStatus::default()).await.unwrap();
}

/// Two that find each other silent, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_fence_each_other_one_lives_on() {
    let server = PgServer::shared().unwrap();
    let config = PgConfig::parse(&server.fresh_schema()).unwrap();
    let schema = config.schema().to_owned();
    let store = Arc::new(PgStore::connect(config).await.unwrap());
    let first = store.join(&node("a")).await.unwrap();
    let second = store.join(&node("b")).await.unwrap();
    let living = store
        .beat(first, &NodeStatus::default())
        .await
        .unwrap()
        .living;
    let last = |of| {
        let peer = living.iter().find(|peer| peer.presence == of).unwrap();
        (of, peer.mark)
    };
    let holder = client(&server).await;
    let lock = format!("BEGIN; SELECT FROM {schema}.presences FOR UPDATE");
    holder.batch_execute(&lock).await.unwrap();
    let fence = |by, of| {
        let (fencer, of) = (Arc::clone(&store), last(of));
        tokio::spawn(async move { fencer.fence(by, &[of]).await })
    };
    let fences = [fence(first, second), fence(second, first)];
    tokio::time::sleep(Duration::from_millis(300)).await;
    holder.batch_execute("COMMIT").await.unwrap();
    let mut fenced = Vec::new();
    for fence in fences {
        fenced.extend(fence.await.unwrap().unwrap());
    }
    assert_eq!(fenced.len(), 1, "{fenced:?}");
}

#[tokio::test]
async fn beats_are_marked_and_timed_by_the_databases_clock() {
    let server = PgServer::shared().unwrap();
    let config = PgConfig::parse(&server.fresh_schema()).unwrap();
    let store = PgStore::connect(config).await.unwrap();
    let (first, second) = (
        store.join(&node("a")).await.unwrap(),
        store.join(&node("b")).await.unwrap(),
    );
    let (mut last, mut marks) = (0, std::collections::BTreeSet::new());
    let mut silent = None;
    for _ in 0..9 {
        let beat = store.beat(first, &NodeStatus::default()).await.unwrap();
        assert!(beat.now_micros > last);
        last = beat.now_micros;
        for peer in &beat.living {
            if peer.presence == first {
                assert!(marks.insert(peer.mark), "{marks:?}");
            } else {
                let mark = *silent.get_or_insert(peer.mark);
                assert_eq!(peer.mark, mark);
            }
        }
    }
    let lapsed = [(second, silent.unwrap())];
    assert_eq!(store.fence(first, &lapsed).await.unwrap(), [second]);
    assert!(matches!(
        store.beat(second, &NodeStatus::default()).await,
        Err(StoreError::Fenced)
    ));
}

/// What a lease does while its answer is on the way: a shard is given up, and another takes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firing_that_waits_while_its_lease_is_given_up_is_refused() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = Arc::new(store(&address).await);
    let leases = leader(&store).await;
    let skips = job_with(2, |def| def.overlap = Overlap::Skip);
    let jobs = [
        put(&store, job_with(1, |_| {}).unwrap()).await,
        put(&store, skips.unwrap()).await,
        put(&store, job_with(3, |_| {}).unwrap()).await,
    ];
    let mut firings: Vec<Firing> = jobs.iter().filter_map(on_time).collect();
    firings[2].claim = false;
    // Every connection knows its statements already.
    for firing in &firings {
        let nobody = Leases::none(leases.presence);
        let fired = store.fire(&nobody, std::slice::from_ref(firing)).await;
        assert_eq!(fired.unwrap(), [Fired::LeaseLost]);
    }
    let giver = super::client(&server).await;
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let path = format!("SET search_path TO {schema}; BEGIN");
    giver.batch_execute(&path).await.unwrap();
    let me = include_str!("sql/lease_me.sql");
    let row = giver.query_one(me, &[&leases.presence.0]).await.unwrap();
    let (no, none): (i32, Vec<i16>) = (row.get(0), Vec::new());
    let give_up = include_str!("sql/lease_give_up.sql");
    assert_eq!(giver.execute(give_up, &[&no, &none]).await.unwrap(), 256);
    let mut tasks = Vec::new();
    for firing in firings {
        let (store, leases) = (store.clone(), leases.clone());
        tasks.push(tokio::spawn(
            async move { store.fire(&leases, &[firing]).await },
        ));
    }
    until_waiting(&server, &giver, tasks.len()).await;
    giver.batch_execute("COMMIT").await.unwrap();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), [Fired::LeaseLost]);
    }
    for job in jobs {
        assert_eq!(read(&store, job.id).await, job, "nothing was written");
    }
    assert_eq!(store.count_live().await.unwrap(), 0);
}

/// The firing began before there was a run, and goes on after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firing_that_waits_while_a_run_is_started_by_hand_sees_it() {
    let server = PgServer::shared().unwrap();
    let address = server.fresh_schema();
    let store = Arc::new(store(&address).await);
    let leases = leader(&store).await;
    let locker = super::client(&server).await;
    let schema = PgConfig::parse(&address).unwrap().schema().to_owned();
    let path = format!("SET search_path TO {schema}");
    locker.batch_execute(&path).await.unwrap();
    for (no, claim) in [(1, true), (2, false)] {
        let skips = job_with(no, |def| def.overlap = Overlap::Skip);
        let job = put(&store, skips.unwrap()).await;
        let firing = Firing {
            claim,
            ..on_time(&job).unwrap()
        };
        let start = StartRun {
            run: Run {
                id: RunId::of_request(job.id, at(5), 5),
                kind: RunKind::Manual,
                slot: None,
                ..Run::of_slot(&job, slot(5))
            },
            force: false,
        };
        let lock = format!(
            "BEGIN; SELECT FROM jobs WHERE id = '{}' FOR UPDATE",
            job.id.0
        );
        locker.batch_execute(&lock).await.unwrap();
        let (starter, request) = (store.clone(), start.clone());
        let started = tokio::spawn(async move { starter.start_run(&request).await });
        until_waiting(&server, &locker, 1).await;
        let (firer, leases) = (store.clone(), leases.clone());
        let fired = tokio::spawn(async move { firer.fire(&leases, &[firing]).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        locker.batch_execute("COMMIT").await.unwrap();
        assert_eq!(started.await.unwrap().unwrap(), Started::Ready);
        let fired = fired.await.unwrap().unwrap();
        assert!(
            !matches!(fired[..], [Fired::Claimed(_) | Fired::Ready(_)]),
            "{fired:?}"
        );
    }
}

/// Until so many others wait for what a session has locked.
async fn until_waiting(server: &PgServer, session: &tokio_postgres::Client, expected: usize) {
    let me = session
        .query_one("SELECT pg_backend_pid()", &[])
        .await
        .unwrap();
    let me: i32 = me.get(0);
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND {me} = ANY (pg_blocking_pids(pid))"
    );
    let watcher = super::client(server).await;
    for tried in 0.. {
        let count: i64 = watcher.query_one(&waiting, &[]).await.unwrap().get(0);
        if usize::try_from(count).unwrap() == expected {
            break;
        }
        assert!(tried < 200, "{count} wait");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
