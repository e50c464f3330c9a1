//! Alerts: rules, ends that were noted, and where each alert stands.

use std::collections::BTreeMap;

use async_trait::async_trait;
use model::{
    Alert, AlertName, AlertState, Cause, JobId, Run, RunId, RunState, TenantId, Timestamp, Version,
    limits,
};

use super::MemStore;
use super::state::State;
use crate::audit::Change;
use crate::types::swept;
use crate::{
    AlertKey, AlertMoves, AlertPut, AlertStore, AlertsMoved, FiringAlert, QueueRun, Queued,
    StoreError,
};

#[derive(Default)]
pub(super) struct Alerts {
    rules: BTreeMap<(TenantId, AlertName), Alert>,
    states: BTreeMap<AlertKey, AlertState>,
    no: u64,
    causes: BTreeMap<u64, Cause>,
}

impl Alerts {
    /// Notes an end if a rule may be about it.
    pub(super) fn note(&mut self, run: &Run) {
        let about = |rule: &Alert| {
            rule.tenant == run.tenant && rule.scope.only_job().is_none_or(|job| job == run.job)
        };
        if let Some(cause) = Cause::of(run).filter(|_| self.rules.values().any(about)) {
            self.no += 1;
            let no = self.no;
            self.causes.insert(no, Cause { no, ..cause });
        }
    }

    fn drop_all(&mut self, tenant: TenantId) {
        self.rules.retain(|(owner, _), _| *owner != tenant);
        self.states.retain(|(owner, ..), _| *owner != tenant);
        self.causes.retain(|_, cause| cause.tenant != tenant);
    }
}

fn key(state: &AlertState) -> AlertKey {
    (state.tenant, state.alert.clone(), state.job)
}

impl State {
    fn put_alert(&mut self, alert: &Alert, before: Option<Version>) -> AlertPut {
        let tenant = self.access.tenant(alert.tenant);
        if tenant.is_none_or(|tenant| tenant.deleting_at.is_some()) {
            return AlertPut::NoTenant;
        }
        let place = (alert.tenant, alert.name.clone());
        let stands = self.alerts.rules.get(&place).cloned();
        if stands.as_ref().map(|stands| stands.version) != before {
            return AlertPut::Conflict;
        }
        let theirs = self.alerts.rules.keys();
        let theirs = theirs.filter(|(tenant, _)| *tenant == alert.tenant);
        if stands.is_none() && theirs.count() >= limits::ALERTS_MAX {
            return AlertPut::Full;
        }
        self.alerts.rules.insert(place, alert.clone());
        self.audit(Change::alert(stands.as_ref(), Some(alert)));
        AlertPut::Done
    }

    fn drop_alert(&mut self, tenant: TenantId, name: &AlertName, before: Version) -> bool {
        let place = (tenant, name.clone());
        let stands = self.alerts.rules.get(&place).cloned();
        let Some(stands) = stands.filter(|alert| alert.version == before) else {
            return false;
        };
        self.alerts.rules.remove(&place);
        let of_it = |(owner, alert, _): &AlertKey| *owner == tenant && alert == name;
        self.alerts.states.retain(|key, _| !of_it(key));
        self.audit(Change::alert(Some(&stands), None));
        true
    }

    fn move_alerts(&mut self, moves: &AlertMoves) -> AlertsMoved {
        let all = &self.alerts;
        let step = |state: &AlertState| all.states.get(&key(state)).map_or(0, |it| it.step);
        let is_current = moves.causes.iter().all(|no| all.causes.contains_key(no))
            && moves.moves.iter().all(|it| step(&it.state) == it.before());
        if !is_current {
            return AlertsMoved::Stale;
        }
        if let Some(run) = &moves.run {
            match self.deliver(run) {
                Queued::Ready(_) | Queued::Waiting(_) | Queued::Repeated => {}
                Queued::Full => return AlertsMoved::Full,
                Queued::Undecided | Queued::Undivided | Queued::Missing => {
                    return AlertsMoved::Missing;
                }
            }
        }
        for no in &moves.causes {
            self.alerts.causes.remove(no);
        }
        for it in &moves.moves {
            if it.is_over {
                self.alerts.states.remove(&key(&it.state));
            } else {
                self.alerts.states.insert(key(&it.state), it.state.clone());
            }
        }
        AlertsMoved::Done
    }

    fn deliver(&mut self, run: &QueueRun) -> Queued {
        let mut view = self.view(run.run.job);
        let has_ended = self.history.contains_key(&run.run.id);
        view.history.ended.extend(has_ended.then_some(run.run.id));
        let queued = view.queue(run);
        self.apply(run.run.job, view.effects);
        queued
    }

    fn recovered(&self, state: &AlertState) -> Option<(RunId, Timestamp)> {
        let after = (
            std::ops::Bound::Excluded(state.run),
            std::ops::Bound::Unbounded,
        );
        let later = self.history.range(after).map(|(_, run)| run);
        let mut ended =
            later.filter(|run| run.job == state.job && run.state == RunState::Succeeded);
        ended.find_map(|run| Some((run.id, run.settled_at.filter(|at| *at >= state.at)?)))
    }

    /// Those of a tenant that goes, and the jobs that deliver them.
    pub(super) fn drop_alerts_of(&mut self, tenant: TenantId, now: Timestamp) {
        let rules = self.alerts.rules.values();
        let channels = rules.filter(|rule| rule.tenant == tenant);
        for channel in channels.map(|rule| rule.job).collect::<Vec<_>>() {
            if let Some(job) = self.get_job(TenantId::SYSTEM, channel) {
                self.change_job(&swept(job, now));
            }
        }
        self.alerts.drop_all(tenant);
    }
}

#[async_trait]
impl AlertStore for MemStore {
    async fn put_alert(
        &self,
        alert: &Alert,
        before: Option<Version>,
    ) -> Result<AlertPut, StoreError> {
        Ok(self.state().put_alert(alert, before))
    }

    async fn get_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
    ) -> Result<Option<Alert>, StoreError> {
        let state = self.state();
        Ok(state.alerts.rules.get(&(tenant, name.clone())).cloned())
    }

    async fn list_alerts(
        &self,
        tenant: TenantId,
        after: Option<&AlertName>,
        limit: usize,
    ) -> Result<Vec<Alert>, StoreError> {
        let state = self.state();
        let theirs = state.alerts.rules.values();
        let theirs = theirs.filter(|it| it.tenant == tenant && Some(&it.name) > after);
        Ok(theirs.take(limit).cloned().collect())
    }

    async fn drop_alert(
        &self,
        tenant: TenantId,
        name: &AlertName,
        before: Version,
    ) -> Result<bool, StoreError> {
        Ok(self.state().drop_alert(tenant, name, before))
    }

    async fn alert_causes(&self, limit: usize) -> Result<Vec<Cause>, StoreError> {
        let state = self.state();
        Ok(state.alerts.causes.values().take(limit).cloned().collect())
    }

    async fn alert_states(&self, keys: &[AlertKey]) -> Result<Vec<Option<AlertState>>, StoreError> {
        let state = self.state();
        let found = keys.iter().map(|key| state.alerts.states.get(key).cloned());
        Ok(found.collect())
    }

    async fn alerts_of(
        &self,
        tenant: TenantId,
        name: &AlertName,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<AlertState>, StoreError> {
        let state = self.state();
        let all = state.alerts.states.values();
        let of_it =
            all.filter(|it| it.tenant == tenant && it.alert == *name && Some(it.job) > after);
        Ok(of_it.take(limit).cloned().collect())
    }

    async fn due_alerts(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<AlertState>, StoreError> {
        let state = self.state();
        let all = state.alerts.states.values();
        let mut due: Vec<AlertState> = all
            .filter(|it| it.send_at.is_some_and(|at| at <= now))
            .cloned()
            .collect();
        due.sort_by_key(|it| (it.send_at, key(it)));
        due.truncate(limit);
        Ok(due)
    }

    async fn firing_alerts(
        &self,
        after: Option<&AlertKey>,
        limit: usize,
    ) -> Result<Vec<FiringAlert>, StoreError> {
        let state = self.state();
        let firing = state.alerts.states.iter();
        let firing = firing.filter(|(key, it)| it.firing && Some(*key) > after);
        let firing = firing.map(|(_, it)| (it.clone(), state.recovered(it)));
        Ok(firing.take(limit).collect())
    }

    async fn move_alerts(&self, moves: &AlertMoves) -> Result<AlertsMoved, StoreError> {
        Ok(self.state().move_alerts(moves))
    }
}
