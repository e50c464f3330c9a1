//! Calls are made, and answers written down so that those of two stores can be compared: presences by the
//! order they joined in, and without what each store may say in its own words.

use std::sync::Arc;
use std::time::Duration;

use model::shard::ShardSet;
use model::{Job, JobId, JobState, PresenceId, RunId, Schedule, Slot, TenantId, Timestamp};

use super::calls::{Call, JobCall, PresenceCall};
use super::people::key;
use super::world::{STRANGER, World};
use crate::conformance::node;
use crate::{
    Claimed, DueSpan, Fired, Firing, JobChanged, JobFilter, Leases, NodeInfo, Orphan, Page,
    PayloadOf, RunFilter,
};

impl World {
    /// Every fourth is of another release.
    fn newcomer(&self) -> NodeInfo {
        let mut some = node("some");
        if self.joined.len() % 4 == 2 {
            some.tables = "2019a".to_owned();
        }
        some
    }

    /// Makes a call. `learn`: whether the answer arrives.
    pub(super) async fn make(&mut self, call: &Call, learn: bool) -> String {
        let store = self.store.clone();
        match call {
            Call::Nothing => String::new(),
            Call::Join => {
                let joined = store.join(&self.newcomer()).await;
                self.joined.extend(joined.as_ref().ok());
                if let (Ok(presence), true) = (&joined, learn) {
                    // Few are remembered, so that most calls are made by the living.
                    self.presences.truncate(2);
                    self.presences.insert(0, Leases::none(*presence));
                }
                self.show(joined)
            }
            Call::Presence(by, call) => self.make_as(*by, call, learn).await,
            Call::Job(call) => self.make_job(call, learn).await,
            Call::Rule(call) => self.make_rule(call).await,
            Call::Outside(call) => self.make_outside(call, learn).await,
            Call::Fire(leases, firings) => self.make_fire(leases, firings, learn).await,
            Call::Claim(leases, ids) => {
                let claimed = store.claim(leases, ids).await;
                let ours = |claimed: &Claimed| match claimed {
                    Claimed::Ours(run, _) => Some(run.id),
                    Claimed::Stale | Claimed::LeaseLost => None,
                };
                let runs: Vec<_> = claimed.iter().flatten().filter_map(ours).collect();
                self.learn_runs(&runs, learn).await;
                self.show(claimed.map(|all| all.into_iter().map(seen).collect::<Vec<_>>()))
            }
            Call::Start(start) => {
                let started = store.start_run(start).await;
                self.learn_runs(&[start.run.id], learn).await;
                self.show(started)
            }
            Call::Cancel(tenant, run, now) => {
                self.show(store.cancel_run(*tenant, *run, *now).await)
            }
            Call::WakeDue(shards, now, limit) => {
                // In which order is a store's own affair where several have waited until the same moment.
                let mut woken = store.wake_due(shards, *now, *limit).await;
                woken
                    .iter_mut()
                    .for_each(|it| it.sort_by_key(|due| due.run));
                self.show(woken)
            }
            Call::Wake(runs, now) => {
                let mut woken = store.wake(runs, *now).await;
                woken
                    .iter_mut()
                    .for_each(|it| it.sort_by_key(|due| due.run));
                self.show(woken)
            }
            Call::WakeRun(tenant, run, now) => self.show(store.wake_run(*tenant, *run, *now).await),
            Call::Slots(tenant, job, from, to, limit) => {
                self.show(store.list_slots(*tenant, *job, *from, *to, *limit).await)
            }
        }
    }

    async fn make_fire(&mut self, leases: &Leases, firings: &[Firing], learn: bool) -> String {
        let mut fired = self.store.fire(leases, firings).await;
        let mut runs = Vec::new();
        for fired in fired.iter_mut().flatten() {
            match fired {
                Fired::Claimed(run) | Fired::Ready(run) | Fired::Waiting(run) => {
                    runs.push(*run);
                }
                Fired::Refused(why) => why.clear(),
                Fired::Skipped(_)
                | Fired::Decided
                | Fired::Early(_)
                | Fired::Stale
                | Fired::LeaseLost => {}
            }
        }
        self.learn_runs(&runs, learn).await;
        self.show(fired)
    }

    async fn make_as(&mut self, by: PresenceId, call: &PresenceCall, learn: bool) -> String {
        let store = self.store.clone();
        match call {
            PresenceCall::Beat(node_status) => {
                let mut beat = store.beat(by, node_status).await;
                if let Ok(beat) = &mut beat {
                    self.in_order(&mut beat.living, |peer| peer.presence);
                    let last = beat.living.iter().map(|peer| (peer.presence, peer.mark));
                    self.heard = last.collect();
                }
                self.show(beat)
            }
            PresenceCall::Lease(wanted) => {
                let leased = store.lease(by, wanted).await;
                if let (Ok(leases), true) = (&leased, learn) {
                    for it in self.presences.iter_mut().filter(|it| it.presence == by) {
                        *it = leases.clone();
                    }
                }
                self.show(leased)
            }
            PresenceCall::Leave => self.show(store.leave(by).await),
            PresenceCall::Fence(lapsed) => {
                let mut fenced = store.fence(by, lapsed).await;
                if let Ok(fenced) = &mut fenced {
                    self.in_order(fenced, |id| *id);
                }
                self.show(fenced)
            }
            PresenceCall::ClaimDue(shards, room) => {
                let taken = store.claim_due(by, shards, *room).await;
                let runs: Vec<_> = taken.iter().flatten().map(|(run, _)| run.id).collect();
                self.learn_runs(&runs, learn).await;
                let whole = |(run, job): (_, Arc<Job>)| (run, nameless(&job));
                self.show(taken.map(|all| all.into_iter().map(whole).collect::<Vec<_>>()))
            }
            PresenceCall::Mark(runs) => self.show(store.mark_running(by, runs).await),
            PresenceCall::Withdraw(answers, now) => {
                self.show(store.withdraw(by, answers, *now).await)
            }
            PresenceCall::Settle(settlements) => self.show(store.settle(by, settlements).await),
            PresenceCall::HandOver(items, now) => {
                self.show(store.handed().hand_over(by, items, *now).await)
            }
        }
    }

    async fn make_job(&mut self, call: &JobCall, learn: bool) -> String {
        let store = self.store.clone();
        match call {
            JobCall::Create(jobs) => self.show(store.create_jobs(jobs).await),
            JobCall::Change(change) => {
                let changed = store.change_job(change).await;
                if let (Ok(JobChanged::Done { job, .. }), true) = (&changed, learn) {
                    self.learn_job(job);
                }
                self.show(changed)
            }
            JobCall::Park(job, now) => {
                self.show(store.park(&[(*job, "it is odd".to_owned())], *now).await)
            }
            JobCall::Retain(keep) => {
                // How many partitions there were to drop, and in how many steps, is a store's own affair.
                let mut jobs = 0;
                let retained = loop {
                    let step = store.retain(keep).await;
                    jobs += step.as_ref().map_or(0, |step| step.jobs);
                    if !step.as_ref().is_ok_and(|step| step.more) {
                        break step.map(|_| jobs);
                    }
                };
                self.show(retained)
            }
        }
    }

    pub(super) async fn learn_runs(&mut self, ids: &[RunId], learn: bool) {
        for id in ids.iter().filter(|_| learn) {
            if let Some(run) = self.read(*id).await {
                // As its holder knows it.
                self.runs.insert(*id, run.without_large_payload());
            }
        }
    }

    fn learn_job(&mut self, job: &Job) {
        for known in self.jobs.values_mut().filter(|known| known.id == job.id) {
            *known = Arc::new(job.clone());
        }
    }

    fn in_order<T>(&self, them: &mut [T], id: impl Fn(&T) -> PresenceId) {
        them.sort_by_key(|it| self.joined.iter().position(|joined| *joined == id(it)));
    }

    pub(super) fn show(&self, answer: impl std::fmt::Debug) -> String {
        let mut text = format!("{answer:?}");
        for (number, presence) in self.joined.iter().enumerate() {
            text = text.replace(&presence.to_string(), &format!("presence {number}"));
        }
        text
    }

    /// Everything a reader can see.
    pub(super) async fn dump(&self) -> Vec<String> {
        let store = &self.store;
        let mut all = Vec::new();
        let states = JobFilter {
            states: JobState::ALL.to_vec(),
            ..JobFilter::default()
        };
        for tenant in [TenantId::DEFAULT, STRANGER] {
            let page = Page {
                before: None,
                limit: 10_000,
            };
            let jobs = store.list_jobs(tenant, &states, page).await.unwrap();
            all.extend(jobs.iter().map(|job| self.show(nameless(job))));
            self.dump_slots(&jobs, &mut all).await;
            let page = Page {
                before: None,
                limit: 10_000,
            };
            let runs = store
                .list_runs(tenant, &RunFilter::default(), page)
                .await
                .unwrap();
            for run in &runs {
                assert_eq!(
                    store.get_run(tenant, run.id).await.unwrap().as_ref(),
                    Some(run)
                );
            }
            all.extend(runs.iter().map(|run| self.show(run)));
            for number in 0..3 {
                let found = store.find_job(tenant, &key(number)).await.unwrap();
                all.push(self.show(found.map(|job| job.id)));
            }
        }
        let shards = ShardSet::ALL;
        self.dump_due(&mut all).await;
        let orphans = store.orphans(&shards, 10_000).await.unwrap();
        let orphans = orphans.into_iter().map(|orphan| Orphan {
            job: Arc::new(nameless(&orphan.job)),
            ..orphan
        });
        all.push(self.show(orphans.collect::<Vec<_>>()));
        for presence in &self.joined {
            all.push(self.show(store.claims(*presence, None, 10_000).await));
        }
        all.push(
            self.show(
                store
                    .oldest_due(&ShardSet::ALL, Timestamp::MIN, Timestamp::MAX)
                    .await,
            ),
        );
        all.push(self.show(store.count_live().await));
        let counts = store.count_jobs(None, 10_000).await.unwrap();
        all.push(self.show(counts.counts));
        self.dump_rules(&mut all).await;
        self.dump_outside(&mut all).await;
        all
    }

    /// What plan reads.
    async fn dump_due(&self, all: &mut Vec<String>) {
        let (store, shards, last) = (&self.store, ShardSet::ALL, Timestamp::MAX);
        let due = store.due_jobs(&shards, last, None, 10_000).await.unwrap();
        all.push(self.show(store.due_runs(&shards, last, None, 10_000).await));
        let ids: Vec<JobId> = due.jobs.iter().map(|job| job.id).collect();
        all.push(self.show(store.due_of(&ids, last).await));
        let jobs = due.jobs.iter();
        let payloads = jobs.map(|job| PayloadOf::Job(job.id, job.version));
        let payloads: Vec<PayloadOf> = payloads.collect();
        all.push(self.show(store.payloads(&payloads).await));
        all.push(self.show((due.jobs, due.unreadable)));
        let half = DueSpan {
            after: None,
            up_to: last,
            sample: DueSpan::ALL / 2,
        };
        let listed = store.access().list_due(TenantId::DEFAULT, &half, 10_000);
        all.push(self.show(listed.await.unwrap()));
    }

    /// What came of every slot, and what is recorded from the middle of each entry on.
    async fn dump_slots(&self, jobs: &[Job], all: &mut Vec<String>) {
        let (first, last) = (Timestamp::MIN, Timestamp::MAX);
        for job in jobs {
            let (tenant, id) = (job.tenant, job.id);
            let list = async |from, limit| {
                let slots = self.store.list_slots(tenant, id, from, last, limit);
                slots.await.unwrap()
            };
            let slots = list(first, 10_000).await;
            for run in &slots {
                let later = run.id.at().plus(Duration::from_millis(1));
                all.push(self.show(list(later, 2).await));
            }
            all.push(self.show(slots));
        }
    }
}

/// A deleted job names no calendar, so what it once named may be gone; and whether that can still be known
/// is a store's own affair.
fn nameless(job: &Job) -> Job {
    let mut job = job.clone();
    if job.state == JobState::Deleted {
        Arc::make_mut(&mut job.def).schedule = Schedule::from(Slot(job.created_at));
    }
    job
}

fn seen(claimed: Claimed) -> Claimed {
    match claimed {
        Claimed::Ours(run, job) => Claimed::Ours(run, Arc::new(nameless(&job))),
        Claimed::Stale | Claimed::LeaseLost => claimed,
    }
}
