//! Replays in bulk, and backfills.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{JobId, ReplayId, TenantId, Timestamp, limits};

use super::MemStore;
use super::state::State;
use crate::audit::Change;
use crate::{Page, QueueRun, Queued, Replay, ReplayCreated, ReplayState, ReplayStore, StoreError};

fn is_running(replay: &&Replay) -> bool {
    replay.progress.state == ReplayState::Running
}

impl State {
    fn create_replay(&mut self, replay: &Replay) -> ReplayCreated {
        let tenant = self.access.tenant(replay.tenant);
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return ReplayCreated::NoTenant;
        }
        if self.replays.contains_key(&replay.id) {
            return ReplayCreated::Done;
        }
        let running = self.replays.values().filter(is_running);
        let running = running.filter(|other| other.tenant == replay.tenant);
        if running.count() >= limits::REPLAYS_MAX {
            return ReplayCreated::Full;
        }
        self.replays.insert(replay.id, replay.clone());
        self.audit(Change::replay_created(replay));
        ReplayCreated::Done
    }

    fn move_replay(&mut self, replay: &Replay) -> bool {
        let Some(stands) = self.replays.get_mut(&replay.id) else {
            return false;
        };
        let before = (stands.progress.step.wrapping_add(1), stands.progress.state);
        if before != (replay.progress.step, ReplayState::Running) {
            return false;
        }
        stands.progress = replay.progress.clone();
        if replay.progress.state != ReplayState::Running {
            self.audit(Change::replay_ended(replay));
        }
        true
    }

    fn cancel_replay(&mut self, tenant: TenantId, id: ReplayId, now: Timestamp) -> Option<Replay> {
        let stands = self.replays.get(&id).filter(|it| it.tenant == tenant)?;
        if !is_running(&stands) {
            return Some(stands.clone());
        }
        let cancelled = stands.clone().cancelled(now);
        self.replays.insert(id, cancelled.clone());
        self.audit(Change::replay_ended(&cancelled));
        Some(cancelled)
    }

    /// Runs of one job.
    fn queue(&mut self, job: JobId, runs: &[&QueueRun]) -> Vec<Queued> {
        let mut view = self.view(job);
        let needs = QueueRun::needs(runs.iter().copied());
        let ended = needs.names.into_iter();
        view.history.ended = ended.filter(|id| self.history.contains_key(id)).collect();
        if let (Some((from, to)), Some(tenant)) =
            (needs.slots, runs.first().map(|it| it.run.tenant))
        {
            let slots = self
                .list_slots(tenant, job, from, to, usize::MAX)
                .into_iter();
            let slots = slots.filter(|run| !run.state.is_live());
            view.history.slots = slots.map(|run| (run.id, run)).collect();
        }
        let queued = runs.iter().map(|it| view.queue(it)).collect();
        let started: Vec<Change> = view
            .effects
            .insert
            .iter()
            .map(Change::run_started)
            .collect();
        self.apply(job, view.effects);
        started.into_iter().for_each(|change| self.audit(change));
        queued
    }

    /// What ended long enough ago.
    pub(super) fn drop_replays(&mut self, ended: Timestamp) {
        let kept = |replay: &Replay| replay.progress.ended_at.is_none_or(|at| at > ended);
        self.replays.retain(|_, replay| kept(replay));
    }

    /// Those of a tenant that goes.
    pub(super) fn drop_replays_of(&mut self, tenant: TenantId) {
        self.replays.retain(|_, replay| replay.tenant != tenant);
    }
}

impl MemStore {
    /// For tests: what was started stays, and the progress that says so is lost.
    pub fn forget_replay_steps(&self, id: ReplayId) {
        if let Some(replay) = self.state().replays.get_mut(&id) {
            replay.progress = crate::Progress {
                updated_at: replay.created_at,
                ..crate::Progress::default()
            };
        }
    }
}

#[async_trait]
impl ReplayStore for MemStore {
    async fn create_replay(&self, replay: &Replay) -> Result<ReplayCreated, StoreError> {
        Ok(self.state().create_replay(replay))
    }

    async fn get_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
    ) -> Result<Option<Replay>, StoreError> {
        let state = self.state();
        let found = state.replays.get(&id).filter(|it| it.tenant == tenant);
        Ok(found.cloned())
    }

    async fn list_replays(
        &self,
        tenant: TenantId,
        page: Page<ReplayId>,
    ) -> Result<Vec<Replay>, StoreError> {
        let state = self.state();
        let theirs = state
            .replays
            .values()
            .rev()
            .filter(|it| it.tenant == tenant);
        let before = theirs.filter(|it| page.before.is_none_or(|before| it.id < before));
        Ok(before.take(page.limit).cloned().collect())
    }

    async fn running_replays(&self, limit: usize) -> Result<Vec<Replay>, StoreError> {
        let state = self.state();
        let running = state.replays.values().filter(is_running);
        Ok(running.take(limit).cloned().collect())
    }

    async fn move_replay(&self, replay: &Replay) -> Result<bool, StoreError> {
        Ok(self.state().move_replay(replay))
    }

    async fn cancel_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
        now: Timestamp,
    ) -> Result<Option<Replay>, StoreError> {
        Ok(self.state().cancel_replay(tenant, id, now))
    }

    async fn queue_runs(&self, runs: &[QueueRun]) -> Result<Vec<Queued>, StoreError> {
        let mut state = self.state();
        let mut answers = BTreeMap::new();
        for (job, batch) in crate::by_job(runs) {
            let items: Vec<&QueueRun> = batch.iter().map(|(_, run)| *run).collect();
            let queued = state.queue(job, &items);
            answers.extend(batch.iter().map(|(index, _)| *index).zip(queued));
        }
        Ok(answers.into_values().collect())
    }
}
