//! A store that fails: answers say what clients can do about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::shard::ShardSet;
use model::{
    Calendar, CalendarName, Job, JobId, JobKey, Level, PresenceId, Role, Run, RunId, TenantId,
    Timestamp, Version, limits,
};
use serde_json::{Value, json};
use store::mem::MemStore;
use store::*;

use crate::world::{OK, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Full,
    Away,
    Damaged,
    Panic,
    /// One calendar, named b, cannot be read: lists leave it out.
    Unreadable,
    /// Jobs whose keys begin with b cannot be kept.
    Picky,
}

/// Fails when jobs are written or read; everything else reaches the store behind it.
struct Faulty {
    store: MemStore,
    fault: Fault,
    /// Calls that still succeed.
    left: AtomicUsize,
    /// Calls about who may do what.
    about_access: AtomicUsize,
}

impl Faulty {
    fn strike(&self) -> Result<(), StoreError> {
        let spend = |left: usize| left.checked_sub(1);
        if self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, spend)
            .is_ok()
        {
            return Ok(());
        }
        match self.fault {
            Fault::Full => Err(StoreError::Full),
            Fault::Away => Err(StoreError::unavailable("SECRET-CANARY")),
            Fault::Damaged => Err(StoreError::Unusable("SECRET-CANARY".to_owned())),
            Fault::Panic => panic!("SECRET-CANARY"),
            Fault::Unreadable | Fault::Picky => Ok(()),
        }
    }
}

macro_rules! faulty {
    (
        $trait:ident
        struck { $(fn $struck:ident($($a:ident: $at:ty),*) -> $ar:ty;)* }
        passed { $(fn $passed:ident($($b:ident: $bt:ty),*) -> $br:ty;)* }
        own { $($own:tt)* }
    ) => {
        #[async_trait]
        impl $trait for Faulty {
            $(async fn $struck(&self, $($a: $at),*) -> Result<$ar, StoreError> {
                self.strike()?;
                self.store.$struck($($a),*).await
            })*
            $(async fn $passed(&self, $($b: $bt),*) -> Result<$br, StoreError> {
                self.store.$passed($($b),*).await
            })*
            $($own)*
        }
    };
}

faulty! {
    WaitStore
    struck {
        fn wake_run(tenant: TenantId, run: RunId, now: Timestamp) -> Woken;
    }
    passed {
        fn wake_due(shards: &ShardSet, now: Timestamp, limit: usize) -> Vec<DueRun>;
        fn wake(runs: &[RunId], now: Timestamp) -> Vec<DueRun>;
        fn count_waiting() -> std::collections::BTreeMap<model::WaitReason, u64>;
    }
    own {}
}

faulty! {
    EngineStore
    struck {}
    passed {
        fn join(node: &NodeInfo) -> PresenceId;
        fn rules_changed() -> Vec<Rule>;
        fn jobs_under(rule: &Rule, after: Option<JobId>, limit: usize) -> Vec<(TenantId, JobId)>;
        fn rule_applied(rule: &Rule) -> ();
        fn beat(presence: PresenceId, node_status: &NodeStatus) -> Beat;
        fn lease(presence: PresenceId, wanted: &ShardSet) -> Leases;
        fn leave(presence: PresenceId) -> ();
        fn fence(by: PresenceId, lapsed: &[model::presence::LastBeat]) -> Vec<PresenceId>;
        fn orphans(shards: &ShardSet, limit: usize) -> Vec<Orphan>;
        fn claims(presence: PresenceId, after: Option<RunId>, limit: usize) -> Vec<HeldClaim>;
        fn due_jobs(shards: &ShardSet, up_to: Timestamp, after: Option<DueCursor>, limit: usize) -> DueJobs;
        fn due_runs(shards: &ShardSet, up_to: Timestamp, after: Option<(Timestamp, RunId)>, limit: usize) -> Vec<DueRun>;
        fn due_of(jobs: &[JobId], up_to: Timestamp) -> DueOf;
        fn payloads(of: &[PayloadOf]) -> Vec<Option<Bytes>>;
        fn park(jobs: &[(JobId, String)], now: Timestamp) -> ();
        fn fire(leases: &Leases, firings: &[Firing]) -> Vec<Fired>;
        fn claim(leases: &Leases, runs: &[RunId]) -> Vec<Claimed>;
        fn claim_due(presence: PresenceId, shards: &ShardSet, room: DueRoom) -> Vec<(Run, Arc<Job>)>;
        fn mark_running(presence: PresenceId, runs: &[(RunId, Timestamp)]) -> ();
        fn withdraw(presence: PresenceId, answers: &[Withdrawal], now: Timestamp) -> ();
        fn settle(by: PresenceId, settlements: &[Settlement]) -> Vec<Settled>;
        fn retain(keep: &Keep) -> Retained;
        fn oldest_due(shards: &ShardSet, from: Timestamp, up_to: Timestamp) -> Option<Timestamp>;
        fn count_jobs(after: Option<JobId>, limit: usize) -> JobCounts;
    }
    own {
        fn handed(&self) -> &dyn HandedStore {
            self.store.handed()
        }
    }
}

faulty! {
    ClientStore
    struck {
        fn get_jobs(jobs: &[(TenantId, JobId)]) -> Vec<Found<Job>>;
        fn find_job(tenant: TenantId, key: &JobKey) -> Option<Job>;
        fn list_jobs(tenant: TenantId, filter: &JobFilter, page: Page<JobId>) -> Vec<Job>;
        fn start_run(start: &StartRun) -> Started;
        fn cancel_run(tenant: TenantId, run: RunId, now: Timestamp) -> Cancelled;
        fn get_runs(runs: &[(TenantId, RunId)]) -> Vec<Found<Run>>;
        fn list_runs(tenant: TenantId, filter: &RunFilter, page: Page<RunId>) -> Vec<Run>;
        fn list_slots(tenant: TenantId, job: JobId, from: Timestamp, to: Timestamp, limit: usize) -> Vec<Run>;
        fn put_calendar(tenant: TenantId, calendar: &Calendar, before: Option<Version>) -> CalendarPut;
        fn get_calendars(tenant: TenantId, names: &[CalendarName]) -> Vec<Option<CalendarUse>>;
        fn drop_calendar(tenant: TenantId, name: &CalendarName, before: Option<Version>) -> CalendarDropped;
    }
    passed {
        fn raise_level(to: Level) -> Raised;
        fn count_live() -> u64;
    }
    own {
        fn access(&self) -> &dyn AccessStore {
            self.about_access.fetch_add(1, Ordering::SeqCst);
            self.store.access()
        }

        fn replays(&self) -> &dyn ReplayStore {
            self.store.replays()
        }

        fn alerts(&self) -> &dyn AlertStore {
            self.store.alerts()
        }

        async fn list_calendars(
            &self,
            tenant: TenantId,
            after: Option<&CalendarName>,
            limit: usize,
        ) -> Result<Vec<CalendarUse>, StoreError> {
            self.strike()?;
            let mut found = self.store.list_calendars(tenant, after, limit).await?;
            let hidden = |used: &CalendarUse| used.calendar.name.as_str().starts_with('b');
            found.retain(|used| self.fault != Fault::Unreadable || !hidden(used));
            Ok(found)
        }

        async fn create_jobs(&self, jobs: &[NewJob]) -> Result<Vec<Created>, StoreError> {
            self.strike()?;
            let mut created = Vec::new();
            for new in jobs {
                let key = new.job.key.as_ref().map_or("", |key| key.as_str());
                if self.fault == Fault::Picky && key.starts_with('b') { created.push(Created::Refused("SECRET-CANARY".to_owned())) } else { created.extend(self.store.create_jobs(std::slice::from_ref(new)).await?) }
            }
            Ok(created)
        }

        async fn change_job(&self, change: &JobChange) -> Result<JobChanged, StoreError> {
            self.strike()?;
            let key = change.after.key.as_ref().map_or("", |key| key.as_str());
            if self.fault == Fault::Picky && key.starts_with('b') { Ok(JobChanged::Refused("SECRET-CANARY".to_owned())) } else { self.store.change_job(change).await }
        }
    }
}

async fn world(fault: Fault, left: usize) -> World {
    let wrap = |store| {
        Arc::new(Faulty {
            store,
            fault,
            left: AtomicUsize::new(left),
            about_access: AtomicUsize::new(0),
        })
    };
    World::with_store(|store| wrap(store)).await
}

#[tokio::test]
async fn whoever_calls_is_known_without_a_call_of_the_store() {
    let mut counted = None;
    let world = World::with_keys_through(|store| {
        let faulty = Arc::new(Faulty {
            store,
            fault: Fault::Away,
            left: AtomicUsize::new(usize::MAX),
            about_access: AtomicUsize::new(0),
        });
        counted = Some(Arc::clone(&faulty));
        faulty
    })
    .await;
    let counted = counted.unwrap();
    let calls = || {
        let others = usize::MAX - counted.left.load(Ordering::SeqCst);
        (counted.about_access.load(Ordering::SeqCst), others)
    };
    let before = calls();
    let key = world.key(TenantId::DEFAULT, Role::Reader).await;
    assert_eq!(calls(), (before.0 + 1, before.1), "it is read once");
    for _ in 0..500 {
        let known = world.as_key(&key, "GET", "/version", Value::Null).await;
        known.is(200);
    }
    for _ in 0..10 {
        let wrong = world.as_key("punctual_x", "GET", "/version", Value::Null);
        wrong.await.refused(401, "unauthorized");
    }
    assert_eq!(calls(), (before.0 + 1, before.1), "and not again");

    // Ten minutes, with a request between any two reads of what has changed.
    let (mut uptime, mut written) = (Duration::ZERO, Duration::ZERO);
    let (before, mut reads) = (calls().0, 0);
    while uptime < 10 * limits::KEY_USE_EVERY {
        uptime += limits::KEYS_POLL;
        reads += 1;
        let known = world.as_key(&key, "GET", "/version", Value::Null).await;
        known.is(200);
        world.access.step(uptime, &mut written).await.unwrap();
    }
    assert_eq!(
        calls().0 - before,
        reads + 10,
        "its use is written once a minute"
    );
}

#[tokio::test]
async fn an_error_of_the_store_shows_none_of_its_secrets() {
    for (fault, status, problem, retry_after) in [
        (Fault::Full, 507, "storage-full", Some("30")),
        (Fault::Away, 503, "store-unavailable", Some("1")),
        (Fault::Damaged, 500, "internal", None),
        (Fault::Panic, 500, "internal", None),
    ] {
        let world = world(fault, 0).await;
        let job = "/v1/jobs/job_0192f0c1a2b37def8123456789abcdef";
        let run = "/v1/runs/run_0192f0c1a2b38def8123456789abcdef";
        let body = json!({"schedule": "@daily", "target": OK});
        let calendar = json!({"name": "c", "dates": ["2030-01-01"]});
        for reply in [
            world.post("/v1/jobs", body.clone()).await,
            world.put("/v1/jobs/by-key/a", body).await,
            world.patch(job, json!({"lane": "batch"})).await,
            world.get(job).await,
            world.delete(job).await,
            world.get("/v1/jobs").await,
            world.get("/v1/runs").await,
            world.get(run).await,
            world.post_empty(&format!("{job}/run")).await,
            world.post_empty(&format!("{job}/pause")).await,
            world.post_empty(&format!("{run}/cancel")).await,
            world.get(&format!("{job}/slots")).await,
            world.get(&format!("{job}/explain?at=0")).await,
            world.get("/v1/calendars").await,
            world.get("/v1/calendars/c").await,
            world.delete("/v1/calendars/c").await,
            world.put("/v1/calendars/c", calendar.clone()).await,
            world.post("/v1/calendars", calendar).await,
        ] {
            reply.refused(status, problem);
            assert_eq!(reply.header("retry-after"), retry_after);
            assert!(!reply.text.contains("CANARY"), "{}", reply.text);
        }
        world.get("/healthz").await.is(200);
    }
}

#[tokio::test]
async fn only_a_write_that_failed_may_have_been_written() {
    let (read, written) = ("nothing was changed", "is not known");
    let body = json!({"key": "a", "schedule": "@daily", "target": OK});
    let calendar = json!({"dates": ["2030-01-01"]});
    for left in 0..4 {
        let world = world(Fault::Away, left).await;
        let reply = world.get("/v1/jobs/key:a").await;
        if left == 0 {
            reply.refused(503, "store-unavailable");
            assert!(reply.get("detail").contains(read), "{}", reply.text);
        }
        // The calls before this one are spent: what is struck next is what the request writes.
        let (reply, expected) = match left {
            0 => (world.post("/v1/jobs", body.clone()).await, written),
            1 => (world.put("/v1/jobs/by-key/a", body.clone()).await, read),
            2 => (world.put("/v1/jobs/by-key/a", body.clone()).await, written),
            _ => {
                world.put("/v1/calendars/c", calendar.clone()).await.is(201);
                (world.delete("/v1/calendars/c").await, read)
            }
        };
        reply.refused(503, "store-unavailable");
        assert!(
            reply.get("detail").contains(expected),
            "{left}: {}",
            reply.text
        );
    }
}

#[tokio::test]
async fn a_job_that_the_store_refuses_is_refused_by_itself() {
    let world = world(Fault::Picky, 0).await;
    let body = |key: &str| json!({"key": key, "schedule": "@daily", "target": OK});
    for reply in [
        world.post("/v1/jobs", body("bad")).await,
        world.put("/v1/jobs/by-key/bad", body("bad")).await,
    ] {
        reply.refused(422, "job-refused");
        assert!(!reply.text.contains("CANARY"), "{}", reply.text);
    }
    let lines: Vec<String> = ["a", "bad", "c"].map(|key| body(key).to_string()).to_vec();
    let headers = [("content-type", "application/x-ndjson")];
    let reply = world
        .call("POST", "/v1/jobs/batch", &headers, lines.join("\n"))
        .await
        .is(200);
    let answers: Vec<&str> = reply.text.lines().collect();
    for (answer, status) in answers.iter().zip([201, 422, 201]) {
        assert!(answer.contains(&format!("\"status\":{status}")), "{answer}");
    }
    assert!(answers[1].contains("/problems/job-refused"), "{answers:?}");
    assert_eq!(world.store.all_jobs().len(), 2);
    let id = world.get("/v1/jobs/by-key/a").await.is(200).json()["id"].clone();
    let path = format!("/v1/jobs/{}", id.as_str().unwrap());
    let reply = world.patch(&path, json!({"key": "bad"})).await;
    reply.refused(422, "job-refused");
    world.patch(&path, json!({"key": "good"})).await.is(200);
}

#[tokio::test]
async fn a_batch_goes_on_when_the_store_fails_in_the_middle() {
    let world = world(Fault::Full, 1).await;
    let line = format!(r#"{{"schedule":"@daily","target":"{OK}"}}"#);
    let body = format!("{line}\n").repeat(2_000);
    let headers = [("content-type", "application/x-ndjson")];
    let reply = world
        .call("POST", "/v1/jobs/batch", &headers, body)
        .await
        .is(200);
    let made = reply.text.matches("\"status\":201").count();
    assert_eq!(made, world.store.all_jobs().len());
    assert_eq!(
        reply.text.matches("/problems/storage-full").count(),
        2_000 - made
    );
    assert!(made > 0 && made < 2_000, "{made}");
}

#[tokio::test]
async fn calendars_that_cannot_be_read_do_not_hide_those_after_them() {
    let world = world(Fault::Unreadable, 0).await;
    let all = ["a", "b1", "b2", "b3", "c", "d"];
    for name in all {
        let calendar = json!({"dates": ["2030-01-01"]});
        let path = format!("/v1/calendars/{name}");
        world.put(&path, calendar).await.is(201);
    }
    for limit in 1..=5 {
        let mut names = Vec::new();
        let mut path = format!("/v1/calendars?limit={limit}");
        loop {
            let page = world.get(&path).await.is(200).json();
            let items = page["items"].as_array().unwrap();
            names.extend(
                items
                    .iter()
                    .map(|it| it["name"].as_str().unwrap().to_owned()),
            );
            let Some(cursor) = page["next_cursor"].as_str() else {
                break;
            };
            path = format!("/v1/calendars?limit={limit}&cursor={cursor}");
        }
        assert_eq!(names, ["a", "c", "d"], "{limit} at once");
    }
}
