//! Handed over: attempts whose work is with the outside.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use model::shard::ShardSet;
use model::view::{HandedChange, View};
use model::{
    AttemptNo, Handed, JobId, PresenceId, RunId, RunLog, Shard, TenantId, Timestamp, limits,
};

use super::state::State;
use super::{Flaw, MemStore};
use crate::{
    Appended, Beaten, HandOver, HandedEnd, HandedOver, HandedStore, Heartbeat, Lapse, Lapsing,
    Leases, LogAppend, ReportKey, Reported, StoreError, Whose,
};

#[derive(Default)]
pub(super) struct Outside {
    handed: BTreeMap<RunId, Handed>,
    checkpoints: BTreeMap<RunId, Bytes>,
    logs: BTreeMap<RunId, RunLog>,
    keys: Vec<ReportKey>,
}

impl Outside {
    /// What is decided about handed-over attempts.
    pub(super) fn apply(&mut self, changes: BTreeMap<RunId, HandedChange>) {
        for (run, change) in changes {
            match change {
                HandedChange::Put(handed, checkpoint) => {
                    self.handed.insert(run, *handed);
                    self.checkpoints.extend(checkpoint.map(|it| (run, it)));
                }
                HandedChange::Cancel(now) => {
                    if let Some(handed) = self.handed.get_mut(&run) {
                        handed.cancel(now);
                    }
                }
                HandedChange::Rest => {
                    if let Some(handed) = self.handed.get_mut(&run) {
                        handed.until = None;
                    }
                }
                HandedChange::Gone => {
                    self.handed.remove(&run);
                    self.checkpoints.remove(&run);
                }
            }
        }
    }
}

impl MemStore {
    /// Up to when what the outside has is trusted; for whoever checks the checks.
    pub fn trusted(&self) -> BTreeMap<RunId, Timestamp> {
        let state = self.state();
        let handed = state.outside.handed.values();
        let trusted = handed.filter_map(|it| it.until.map(|until| (it.run, until)));
        trusted.collect()
    }
}

impl State {
    /// A view of the job of a run that the outside says something of.
    fn view_of_run(&self, id: RunId) -> (Option<JobId>, View) {
        let Some(job) = self.live.runs.get(&id).map(|run| run.job) else {
            let mut view = View::default();
            view.history.outside = self.history.get(&id).cloned().map(Box::new);
            return (None, view);
        };
        let mut view = self.view(job);
        let handed = self.outside.handed.get(&id);
        view.handed = handed
            .map(|handed| (id, handed.clone()))
            .into_iter()
            .collect();
        (Some(job), view)
    }

    fn decide<T>(&mut self, run: RunId, decide: impl FnOnce(&mut View) -> T) -> T {
        let (job, mut view) = self.view_of_run(run);
        if let Some(job) = job {
            view.history = self.read_history(job, view.needs_to_pause(self.now));
        }
        let answer = decide(&mut view);
        if let Some(job) = job {
            self.apply(job, view.effects);
        } else {
            self.outside.apply(view.effects.handed);
        }
        answer
    }

    fn lapse(&mut self, leases: &Leases, lapse: &Lapse, now: Timestamp) -> HandedEnd {
        if !self.holds(leases, Shard::of(lapse.job)) {
            return HandedEnd::Stale;
        }
        let handed = self.outside.handed.get(&lapse.run).cloned();
        self.decide(lapse.run, |view| {
            view.handed = handed.map(|it| (lapse.run, it)).into_iter().collect();
            view.lapse(lapse, now)
        })
    }

    fn append(&mut self, append: &LogAppend) -> Appended {
        let (_, view) = self.view_of_run(append.run);
        let answer = view.may_append(append.run, append.attempt);
        if matches!(answer, Beaten::Done { .. }) {
            let log = self.outside.logs.entry(append.run).or_default();
            log.append(&append.bytes);
        }
        answer
    }

    /// What is kept of runs that are over goes: logs with their history, the rest at once.
    pub(super) fn sweep_outside(&mut self, until: Timestamp) {
        let live = &self.live.runs;
        let outside = &mut self.outside;
        outside.handed.retain(|run, _| live.contains_key(run));
        outside.checkpoints.retain(|run, _| live.contains_key(run));
        let least = RunId::least_at(until);
        outside
            .logs
            .retain(|run, _| *run >= least || live.contains_key(run));
    }
}

#[async_trait]
impl HandedStore for MemStore {
    async fn hand_over(
        &self,
        by: PresenceId,
        items: &[HandOver],
        now: Timestamp,
    ) -> Result<Vec<HandedOver>, StoreError> {
        let mut state = self.state();
        state.living(by)?;
        let hand_over = |it: &HandOver| state.decide(it.run, |view| view.hand_over(it, by, now));
        Ok(items.iter().map(hand_over).collect())
    }

    async fn heartbeat(
        &self,
        beats: &[Heartbeat],
        now: Timestamp,
    ) -> Result<Vec<Beaten>, StoreError> {
        let mut state = self.state();
        let beat = |it: &Heartbeat| state.decide(it.run, |view| view.heartbeat(it, now));
        Ok(beats.iter().map(beat).collect())
    }

    async fn report(
        &self,
        reports: &[Reported],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError> {
        let mut state = self.state();
        let flawed = self.flaw == Flaw::SkipTokenCheck;
        let report = |it: &Reported| {
            let live = state.live.runs.get(&it.run).filter(|_| flawed);
            let attempt = live.map_or(it.attempt, |run| run.attempt);
            let it = Reported {
                attempt,
                ..it.clone()
            };
            state.decide(it.run, |view| view.report(&it, now))
        };
        Ok(reports.iter().map(report).collect())
    }

    async fn lapsing(
        &self,
        shards: &ShardSet,
        lapsing: Lapsing,
    ) -> Result<Vec<Handed>, StoreError> {
        let state = self.state();
        let Lapsing { now, watched, .. } = lapsing;
        let handed = state.outside.handed.values();
        let ours = handed.filter(|it| shards.contains(Shard::of(it.job)));
        let due = ours.filter(|it| {
            let place = it.until.map(|until| (until, it.run));
            let may_end = it.has_timed_out(now) || it.within <= watched;
            place.is_some_and(|(until, _)| until <= now)
                && may_end
                && lapsing.after.is_none_or(|after| place > Some(after))
        });
        let mut due: Vec<Handed> = due.cloned().collect();
        due.sort_by_key(|it| (it.until, it.run));
        due.truncate(lapsing.limit);
        Ok(due)
    }

    async fn lapse(
        &self,
        leases: &Leases,
        lapses: &[Lapse],
        now: Timestamp,
    ) -> Result<Vec<HandedEnd>, StoreError> {
        let mut state = self.state();
        state.living(leases.presence)?;
        let lapse = |it: &Lapse| state.lapse(leases, it, now);
        Ok(lapses.iter().map(lapse).collect())
    }

    async fn get_handed(&self, runs: &[RunId]) -> Result<Vec<Option<Handed>>, StoreError> {
        let state = self.state();
        let kept = runs
            .iter()
            .map(|run| state.outside.handed.get(run).cloned());
        Ok(kept.collect())
    }

    async fn whose(&self, runs: &[RunId]) -> Result<Vec<Option<Whose>>, StoreError> {
        let state = self.state();
        let live = runs.iter().map(|run| state.live.runs.get(run));
        Ok(live.map(|run| run.map(Whose::of)).collect())
    }

    async fn get_checkpoint(&self, run: RunId) -> Result<Option<Bytes>, StoreError> {
        Ok(self.state().outside.checkpoints.get(&run).cloned())
    }

    async fn is_current(&self, run: RunId, attempt: AttemptNo) -> Result<bool, StoreError> {
        let state = self.state();
        let live = state.live.runs.get(&run);
        Ok(live.is_some_and(|run| run.attempt == attempt && run.claim.is_some()))
    }

    async fn append_log(&self, appends: &[LogAppend]) -> Result<Vec<Appended>, StoreError> {
        let mut state = self.state();
        Ok(appends.iter().map(|it| state.append(it)).collect())
    }

    async fn get_log(&self, tenant: TenantId, run: RunId) -> Result<Option<RunLog>, StoreError> {
        let state = self.state();
        let theirs = state.get_run(tenant, run).is_some();
        Ok(state.outside.logs.get(&run).filter(|_| theirs).cloned())
    }

    async fn report_keys(&self) -> Result<Vec<ReportKey>, StoreError> {
        Ok(self.state().outside.keys.clone())
    }

    async fn put_report_key(&self, key: &ReportKey) -> Result<(), StoreError> {
        let keys = &mut self.state().outside.keys;
        keys.retain(|it| it.id != key.id);
        keys.push(key.clone());
        keys.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        keys.truncate(limits::REPORT_KEYS_MAX);
        Ok(())
    }
}
