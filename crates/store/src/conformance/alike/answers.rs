//! Calls are made, and answers written down so that those of two stores can be compared: presences by the
//! order they joined in, and without what each store may say in its own words.

use std::sync::Arc;

use model::shard::ShardSet;
use model::{Job, JobState, PresenceId, TenantId, Timestamp};

use super::calls::Call;
use super::people::key;
use super::world::{STRANGER, World};
use crate::{
    Claimed, Fired, JobChanged, JobFilter, Leases, NodeName, Page, Retained, RunFilter, Started,
    StoreError,
};

impl World {
    /// Makes a call. `learn`: whether the answer arrives.
    pub(super) async fn make(&mut self, call: &Call, learn: bool) -> String {
        let store = self.store.clone();
        match call {
            Call::Nothing => String::new(),
            Call::Join => {
                let joined = store.join(&NodeName("some".to_owned())).await;
                if let Ok(presence) = joined {
                    self.joined.push(presence);
                    if learn {
                        // Few are remembered, so that most questions are asked by the living.
                        self.presences.truncate(2);
                        self.presences.insert(0, Leases { presence, epochs: Default::default() });
                    }
                }
                self.show(joined)
            }
            Call::Beat(by) => {
                let mut beat = store.beat(*by).await;
                if let Ok(beat) = &mut beat {
                    self.in_order(&mut beat.living);
                }
                self.show(beat)
            }
            Call::Lease(by, wanted) => {
                let leased = store.lease(*by, wanted).await;
                if matches!(leased, Err(StoreError::Barred)) && learn {
                    let ours = self.presences.iter_mut().filter(|it| it.presence == *by);
                    ours.for_each(|it| it.epochs.clear());
                }
                if let Ok(leases) = &leased
                    && learn
                {
                    let ours = self.presences.iter_mut().filter(|it| it.presence == *by);
                    ours.for_each(|it| *it = leases.clone());
                }
                self.show(leased)
            }
            Call::Leave(by) => self.show(store.leave(*by).await),
            Call::Bar(by) => {
                let mut barred = store.bar_lapsed(*by).await;
                if let Ok(barred) = &mut barred {
                    self.in_order(barred);
                }
                self.show(barred)
            }
            Call::Create(jobs) => self.show(store.create_jobs(jobs).await),
            Call::Change(change) => {
                let changed = store.change_job(change).await;
                if let Ok(JobChanged::Done { job, .. }) = &changed
                    && learn
                {
                    self.learn_job(job);
                }
                self.show(changed)
            }
            Call::Park(job, now) => {
                self.show(store.park(&[(*job, "it is odd".to_owned())], *now).await)
            }
            Call::Fire(..) | Call::Claim(..) | Call::Start(_) => self.make_run(call, learn).await,
            Call::Mark(by, runs) => self.show(store.mark_running(*by, runs).await),
            Call::Cancel(tenant, run, now) => {
                self.show(store.cancel_run(*tenant, *run, *now).await)
            }
            Call::Withdraw(by, answers, now) => {
                self.show(store.withdraw(*by, answers, *now).await)
            }
            Call::Settle(by, settlements) => self.show(store.settle(*by, settlements).await),
            Call::Retain(keep) => {
                // How many ranges there were to drop is a store's own affair.
                let retained = store.retain(keep).await;
                self.show(retained.map(|retained| Retained { ranges: 0, ..retained }))
            }
        }
    }

    /// The calls that bring runs to life, or to someone.
    async fn make_run(&mut self, call: &Call, learn: bool) -> String {
        let store = self.store.clone();
        let mut runs = Vec::new();
        let text = match call {
            Call::Fire(leases, firings) => {
                let mut fired = store.fire(leases, firings).await;
                for fired in fired.iter_mut().flatten() {
                    match fired {
                        Fired::Claimed(run) | Fired::Ready(run) | Fired::Waiting(run) => {
                            runs.push(*run);
                        }
                        Fired::Refused(why) => why.clear(),
                        Fired::Skipped(_) | Fired::Stale | Fired::LeaseLost => {}
                    }
                }
                self.show(fired)
            }
            Call::Claim(leases, ids) => {
                let claimed = store.claim(leases, ids).await;
                for claimed in claimed.iter().flatten() {
                    match claimed {
                        Claimed::Ours(run, _) => runs.push(run.id),
                        Claimed::Stale | Claimed::LeaseLost => {}
                    }
                }
                self.show(claimed)
            }
            Call::Start(start) => {
                let started = store.start_run(start).await;
                if matches!(started, Ok(Started::Ready | Started::Waiting)) {
                    runs.push(start.run.id);
                }
                self.show(started)
            }
            other => unreachable!("{other:?}"),
        };
        for id in runs.into_iter().filter(|_| learn) {
            if let Some(run) = self.read(id).await {
                self.runs.insert(id, run);
            }
        }
        text
    }

    fn learn_job(&mut self, job: &Job) {
        for known in self.jobs.values_mut().filter(|known| known.id == job.id) {
            *known = Arc::new(job.clone());
        }
    }

    fn in_order(&self, presences: &mut [PresenceId]) {
        presences.sort_by_key(|id| self.joined.iter().position(|joined| joined == id));
    }

    fn show(&self, answer: impl std::fmt::Debug) -> String {
        let mut text = format!("{answer:?}");
        for (number, presence) in self.joined.iter().enumerate() {
            text = text.replace(&presence.to_string(), &format!("presence {number}"));
        }
        text
    }

    /// Everything a reader can see.
    pub async fn dump(&self) -> Vec<String> {
        let store = &self.store;
        let mut all = Vec::new();
        let states = JobFilter { states: JobState::ALL.to_vec(), ..JobFilter::default() };
        for tenant in [TenantId::DEFAULT, STRANGER] {
            let page = Page { before: None, limit: 10_000 };
            let jobs = store.list_jobs(tenant, &states, page).await.unwrap();
            all.extend(jobs.iter().map(|job| self.show(job)));
            let page = Page { before: None, limit: 10_000 };
            let runs = store.list_runs(tenant, &RunFilter::default(), page).await.unwrap();
            for run in &runs {
                assert_eq!(store.get_run(tenant, run.id).await.unwrap().as_ref(), Some(run));
            }
            all.extend(runs.iter().map(|run| self.show(run)));
            for number in 0..3 {
                let found = store.find_job(tenant, &key(number)).await.unwrap();
                all.push(self.show(found.map(|job| job.id)));
            }
        }
        let (shards, last) = (ShardSet::ALL, Timestamp::MAX);
        let due = store.due_jobs(&shards, last, None, 10_000).await.unwrap();
        all.push(self.show((due.jobs, due.unreadable)));
        all.push(self.show(store.due_runs(&shards, last, None, 10_000).await));
        all.push(self.show(store.orphans(&shards, 10_000).await));
        for presence in &self.joined {
            all.push(self.show(store.claims(*presence, None, 10_000).await));
        }
        all.push(self.show(store.pulse().await));
        all
    }
}
