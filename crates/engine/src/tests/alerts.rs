//! Alerts: an end becomes an alert, an alert a delivery, and a success ends it; whatever is done twice is done once.

use std::sync::Arc;
use std::time::Duration;

use model::{
    Alert, AlertName, Attempt, Channel, Condition, Job, Reason, Report, Run, Scope, TenantId,
    Verdict, Version,
};
use serde_json::Value;
use store::{
    AlertPut, AlertStore, ClientStore, Created, EngineStore, NewJob, Page, RunFilter, Settlement,
};

use super::bench::{Bench, run_of};
use super::world::{at, job_with, seconds};
use crate::duty::Wake;

const ME: TenantId = TenantId::DEFAULT;
const TICK: Duration = Duration::from_secs(1);

struct Desk {
    bench: Bench,
    job: Arc<Job>,
    slot: i64,
}

impl Desk {
    /// A job that is due every second, and a rule about all jobs.
    async fn new(change: impl FnOnce(&mut Alert)) -> Self {
        let bench = Bench::holding().await;
        let job = job_with(1, seconds(1).into(), |def| {
            def.overlap = model::Overlap::Allow;
        });
        let job = bench.put(job).await;
        let channel = Arc::new(Job {
            tenant: TenantId::SYSTEM,
            ..job_with(2, model::Slot(at(1_000_000_000)).into(), |_| {})
        });
        let new = NewJob {
            job: Arc::clone(&channel),
            idempotency: None,
        };
        let created = bench.mem.create_jobs(&[new]).await;
        assert_eq!(created.unwrap(), [Created::Done]);
        let mut alert = Alert {
            tenant: ME,
            name: AlertName::new("ops").unwrap(),
            version: Version::FIRST,
            scope: Scope::Tenant,
            condition: Condition::Dead,
            channel: Channel::Webhook,
            url: "http://127.0.0.1/".to_owned(),
            job: channel.id,
            recovered: true,
            repeat: None,
            enabled: true,
            muted_until: None,
            created_at: bench.now(),
            updated_at: bench.now(),
        };
        change(&mut alert);
        let put = bench.mem.put_alert(&alert, None).await.unwrap();
        assert_eq!(put, AlertPut::Done);
        Self {
            bench,
            job,
            slot: 0,
        }
    }

    /// The job's next run ends so.
    async fn ends(&mut self, verdict: Verdict) -> Run {
        let (mut plan, mut fire) = (self.bench.plan(), self.bench.fire());
        self.slot += 1;
        self.bench.pass_to(at(self.slot * 1_000));
        self.bench.step(&mut plan).await.unwrap();
        self.bench.step(&mut fire).await.unwrap();
        let id = run_of(&self.job, self.slot * 1_000);
        let run = self.bench.mem.live_run(id).unwrap();
        let report = if verdict == Verdict::Succeed {
            Report::of(model::Outcome::Succeeded)
        } else {
            Report::failed("no")
        };
        let now = self.bench.now();
        let settlement = Settlement {
            attempt: Some(Attempt::new(run.attempt, Some(now), now, report)),
            verdict,
            run,
        };
        let me = self.bench.me();
        self.bench.mem.settle(me, &[settlement]).await.unwrap();
        self.bench.mem.get_run(ME, id).await.unwrap().unwrap()
    }

    async fn dies(&mut self) -> Run {
        self.ends(Verdict::Bury(Reason::Refused)).await
    }

    /// A step of a duty that keeps nothing of the one before.
    async fn step(&self) {
        let mut alerts = self.bench.alerts();
        self.bench.step(&mut alerts).await.unwrap();
    }

    /// What was sent, the oldest first.
    async fn sent(&self) -> Vec<Value> {
        let page = Page {
            before: None,
            limit: 100,
        };
        let all = RunFilter::default();
        let runs = self.bench.mem.list_runs(TenantId::SYSTEM, &all, page).await;
        let bodies = runs
            .unwrap()
            .into_iter()
            .rev()
            .filter_map(|run| run.payload);
        bodies
            .map(|body| serde_json::from_slice(&body).unwrap())
            .collect()
    }

    async fn states(&self) -> Vec<String> {
        let sent = self.sent().await;
        let state = |it: &Value| it["state"].as_str().unwrap().to_owned();
        sent.iter().map(state).collect()
    }
}

#[tokio::test]
async fn it_fires_once_and_recovers_once() {
    let mut desk = Desk::new(|_| {}).await;
    desk.step().await;
    assert!(desk.states().await.is_empty());
    let dead = desk.dies().await;
    desk.step().await;
    let sent = desk.sent().await;
    assert_eq!(desk.states().await, ["firing"]);
    assert_eq!(sent[0]["jobs"][0]["run"], dead.id.to_string());
    assert_eq!(sent[0]["jobs"][0]["reason"], "refused");
    // It fires already.
    desk.dies().await;
    desk.step().await;
    desk.step().await;
    assert_eq!(desk.states().await, ["firing"]);
    let healed = desk.ends(Verdict::Succeed).await;
    desk.step().await;
    desk.step().await;
    assert_eq!(desk.states().await, ["firing", "recovered"]);
    let sent = desk.sent().await;
    assert_eq!(sent[1]["jobs"][0]["recovered_by"], healed.id.to_string());
    assert_eq!(sent[1]["jobs"][0]["causes"], 2);
    desk.dies().await;
    desk.step().await;
    assert_eq!(desk.states().await, ["firing", "recovered", "firing"]);
}

#[tokio::test]
async fn it_is_sent_again_after_the_repeat_interval() {
    let mut desk = Desk::new(|it| it.repeat = Some(Duration::from_secs(60))).await;
    desk.dies().await;
    desk.step().await;
    desk.bench.pass(Duration::from_secs(59));
    desk.step().await;
    assert_eq!(desk.states().await, ["firing"]);
    desk.bench.pass(TICK);
    desk.step().await;
    desk.step().await;
    assert_eq!(desk.states().await, ["firing", "firing"]);
}

#[tokio::test]
async fn what_is_muted_is_sent_afterwards_if_it_still_fires() {
    let mut desk = Desk::new(|it| it.muted_until = Some(at(60_000))).await;
    desk.dies().await;
    desk.step().await;
    assert!(desk.states().await.is_empty());
    desk.bench.pass_to(at(60_000));
    desk.step().await;
    assert_eq!(desk.states().await, ["firing"]);

    let mut desk = Desk::new(|it| it.muted_until = Some(at(60_000))).await;
    desk.dies().await;
    desk.step().await;
    desk.ends(Verdict::Succeed).await;
    desk.step().await;
    desk.bench.pass_to(at(60_000));
    desk.step().await;
    assert!(desk.states().await.is_empty());
}

#[tokio::test]
async fn a_rule_is_about_what_it_says() {
    let check = async |change: fn(&mut Alert), fires: bool| {
        let mut desk = Desk::new(change).await;
        desk.dies().await;
        desk.step().await;
        assert_eq!(!desk.states().await.is_empty(), fires);
    };
    check(|it| it.condition = Condition::Failed, true).await;
    check(|it| it.condition = Condition::Missed, false).await;
    check(|it| it.enabled = false, false).await;
    let label = |it: &mut Alert| it.scope = Scope::Label("team".to_owned(), "ops".to_owned());
    check(label, false).await;
    check(|it| it.scope = Scope::Owner("somebody".to_owned()), false).await;
    check(|it| it.scope = Scope::Job(it.job), false).await;
}

#[tokio::test]
async fn alerts_of_many_jobs_are_one_delivery() {
    let mut desk = Desk::new(|_| {}).await;
    let other = job_with(3, seconds(1).into(), |def| {
        def.overlap = model::Overlap::Allow;
    });
    let other = desk.bench.put(other).await;
    desk.dies().await;
    let mine = std::mem::replace(&mut desk.job, other);
    desk.dies().await;
    desk.step().await;
    let sent = desk.sent().await;
    assert_eq!(sent.len(), 1);
    let jobs = sent[0]["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    assert!(jobs.iter().any(|it| it["job"] == mine.id.to_string()));
}

#[tokio::test]
async fn a_node_that_does_not_hold_the_first_shard_leaves_it_alone() {
    let mut desk = Desk::new(|_| {}).await;
    desk.dies().await;
    let others = model::shard::ShardSet::default();
    desk.bench.hold(&others).await;
    let mut alerts = desk.bench.alerts();
    let wake = desk.bench.step(&mut alerts).await.unwrap();
    assert_eq!(wake, Wake::At(desk.bench.now().plus(TICK / 2)));
    assert!(desk.states().await.is_empty());
}
