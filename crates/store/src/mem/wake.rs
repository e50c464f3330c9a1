//! Waiting: runs that wait for something outside of their jobs are woken.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use model::shard::ShardSet;
use model::view::{self, Needs};
use model::{RunId, TenantId, Timestamp, WaitReason};

use super::MemStore;
use super::plan::due_run;
use super::state::State;
use crate::audit::Change;
use crate::{DueRun, StoreError, WaitStore, Woken};

impl State {
    fn wake(&mut self, id: RunId, now: Timestamp) -> Option<DueRun> {
        let run = self.live.runs.get_mut(&id)?;
        view::wake(run, now).then(|| due_run(run))
    }

    fn wake_due(&mut self, shards: &ShardSet, now: Timestamp, limit: usize) -> Vec<DueRun> {
        let ours = self.live.runs.values();
        let ours = ours.filter(|run| run.waits_outside() && shards.contains(run.shard()));
        let until = ours.filter_map(|run| Some((run.wait?.until?, run.id)));
        let due: BTreeSet<_> = until.filter(|(until, _)| *until <= now).collect();
        let due = due.into_iter().take(limit);
        due.filter_map(|(_, id)| self.wake(id, now)).collect()
    }

    fn wake_run(&mut self, tenant: TenantId, id: RunId, now: Timestamp) -> Woken {
        let ended = self.history.get(&id).filter(|run| run.tenant == tenant);
        let Some(job) = self.live.runs.get(&id).or(ended).map(|run| run.job) else {
            return Woken::Missing;
        };
        let mut view = self.view(job);
        let needs = Needs {
            named: Some(id).filter(|_| ended.is_some()),
            ..Needs::default()
        };
        view.history = self.read_history(job, needs);
        let woken = view.wake_run(tenant, id, now);
        self.apply(job, view.effects);
        if matches!(woken, Woken::Done(_)) {
            self.audit(Change::run_woken(tenant, job, id));
        }
        woken
    }
}

#[async_trait]
impl WaitStore for MemStore {
    async fn wake_due(
        &self,
        shards: &ShardSet,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        Ok(self.state().wake_due(shards, now, limit))
    }

    async fn wake(&self, runs: &[RunId], now: Timestamp) -> Result<Vec<DueRun>, StoreError> {
        let mut state = self.state();
        let woken = runs.iter().filter_map(|run| state.wake(*run, now));
        Ok(woken.collect())
    }

    async fn wake_run(
        &self,
        tenant: TenantId,
        run: RunId,
        now: Timestamp,
    ) -> Result<Woken, StoreError> {
        Ok(self.state().wake_run(tenant, run, now))
    }

    async fn count_waiting(&self) -> Result<BTreeMap<WaitReason, u64>, StoreError> {
        let mut counts = BTreeMap::new();
        let state = self.state();
        for run in state.live.runs.values().filter(|run| run.waits_outside()) {
            if let Some(wait) = run.wait {
                *counts.entry(wait.reason).or_default() += 1;
            }
        }
        Ok(counts)
    }
}
