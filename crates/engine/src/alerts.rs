//! Alerts: ends that were noted become alerts, alerts that are due become runs of the jobs that deliver them, and alerts whose
//! job has succeeded since have recovered. One node does it, the one that holds the first shard; where two think that they
//! do, each write names the one before it, and one of them is stale.
//!
//! What always holds: nothing is kept here. A cause is forgotten in the write that makes it an alert, and an alert is sent in the
//! write that inserts the run which delivers it: whoever comes after a crash finds either the one or the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::limits::{ALERT_BATCH_MAX, ALERT_GROUP_MAX, ALERTS_MAX};
use model::view::QueueRun;
use model::{
    Alert, AlertMove, AlertName, AlertState, Cause, Condition, Job, JobId, Run, RunId, RunKind,
    Shard, TenantId, Timestamp, alert,
};
use store::{
    AlertKey, AlertMoves, AlertStore, AlertsMoved, ClientStore, Found, Page, RunFilter, StoreError,
};
use tracing::{debug, warn};

use crate::alert_message::message;
use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::presence::Presence;
use crate::shards::Shards;

/// How often it is looked for causes and for what is due, and how often for jobs that have recovered.
const EVERY: Duration = Duration::from_millis(500);
const RECOVERED_EVERY: Duration = Duration::from_secs(1);
/// Jobs that are read at once: they come with their payloads.
const JOBS_AT_ONCE: usize = 32;
/// When a rule is tried again that has as many deliveries under way as may be.
const FULL_AGAIN: Duration = Duration::from_secs(10);

pub(crate) struct Ports {
    pub store: Arc<dyn ClientStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub offers: Offers,
    /// A held node sends nothing.
    pub hold: bool,
    pub nudge: Nudge,
}

pub(crate) struct Alerts {
    ports: Ports,
    /// When it was last looked for jobs that have recovered, by uptime, and up to which alert.
    checked: Option<Duration>,
    after: Option<AlertKey>,
}

fn key(state: &AlertState) -> AlertKey {
    (state.tenant, state.alert.clone(), state.job)
}

impl Alerts {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            checked: None,
            after: None,
        }
    }

    fn alerts(&self) -> &dyn AlertStore {
        self.ports.store.alerts()
    }

    async fn write(&self, moves: AlertMoves) -> Result<AlertsMoved, StoreError> {
        let moved = self.alerts().move_alerts(&moves).await?;
        if moved == AlertsMoved::Stale {
            debug!("somebody else has moved these alerts");
        }
        Ok(moved)
    }

    /// The jobs of these ids that are there and can be read.
    async fn jobs(
        &self,
        ids: &BTreeSet<(TenantId, JobId)>,
    ) -> Result<BTreeMap<JobId, Job>, StoreError> {
        let ids: Vec<_> = ids.iter().copied().collect();
        let mut jobs = BTreeMap::new();
        for some in ids.chunks(JOBS_AT_ONCE) {
            let found: Vec<Found<Job>> = self.ports.store.get_jobs(some).await?;
            let found = found.into_iter().filter_map(|job| job.ok().flatten());
            jobs.extend(found.map(|job| (job.id, job)));
        }
        Ok(jobs)
    }

    /// Ends that were noted become alerts. Answers whether there may be more of them.
    async fn consider(&self, now: Timestamp) -> Result<bool, StoreError> {
        let causes = self.alerts().alert_causes(ALERT_BATCH_MAX).await?;
        if causes.is_empty() {
            return Ok(false);
        }
        let fits = self.fits(&causes).await?;
        let keys: BTreeSet<AlertKey> = fits
            .iter()
            .map(|(rule, cause)| (rule.tenant, rule.name.clone(), cause.job))
            .collect();
        let keys: Vec<AlertKey> = keys.into_iter().collect();
        let stand = self.alerts().alert_states(&keys).await?;
        let before: BTreeMap<AlertKey, Option<AlertState>> = keys.into_iter().zip(stand).collect();
        let mut after = before.clone();
        for (rule, cause) in &fits {
            if let Some(state) = after.get_mut(&(rule.tenant, rule.name.clone(), cause.job)) {
                *state = Some(AlertState::after(state.take(), rule, cause, now));
            }
        }
        let changed = after
            .into_iter()
            .filter(|(key, state)| before.get(key) != Some(state));
        let moves = changed.filter_map(|(_, state)| state.map(AlertMove::to));
        self.write(AlertMoves {
            causes: causes.iter().map(|cause| cause.no).collect(),
            moves: moves.collect(),
            run: None,
        })
        .await?;
        Ok(causes.len() == ALERT_BATCH_MAX)
    }

    /// Which rules each cause is one for, in the order of causes.
    async fn fits<'a>(
        &self,
        causes: &'a [Cause],
    ) -> Result<Vec<(Arc<Alert>, &'a Cause)>, StoreError> {
        let tenants: BTreeSet<TenantId> = causes.iter().map(|cause| cause.tenant).collect();
        let mut rules: BTreeMap<TenantId, Vec<Arc<Alert>>> = BTreeMap::new();
        for tenant in tenants {
            let all = self.alerts().list_alerts(tenant, None, ALERTS_MAX).await?;
            let on = all.into_iter().filter(|rule| rule.enabled).map(Arc::new);
            rules.insert(tenant, on.collect());
        }
        let mut fits = Vec::new();
        for cause in causes {
            let rules = rules.get(&cause.tenant).into_iter().flatten();
            let fit = rules.filter(|rule| rule.condition.fits(cause));
            fits.extend(fit.map(|rule| (Arc::clone(rule), cause)));
        }
        let needed = fits.iter().filter(|(rule, _)| rule.scope.needs_job());
        let needed = needed.map(|(_, cause)| (cause.tenant, cause.job)).collect();
        let jobs = self.jobs(&needed).await?;
        fits.retain(|(rule, cause)| rule.scope.covers(cause.job, jobs.get(&cause.job)));
        let mut in_row = Vec::with_capacity(fits.len());
        for (rule, cause) in fits {
            let fires = match rule.condition {
                Condition::Failed | Condition::Dead | Condition::Missed => true,
                Condition::Skipped(count) => self.is_skipped(cause, count).await?,
            };
            in_row.extend(fires.then_some((rule, cause)));
        }
        Ok(in_row)
    }

    /// Whether so many slots of the job in a row were skipped by now.
    async fn is_skipped(&self, cause: &Cause, count: u32) -> Result<bool, StoreError> {
        let filter = RunFilter {
            job: Some(cause.job),
            ..RunFilter::default()
        };
        let page = Page {
            before: None,
            // Runs under way, and slots that somebody wanted left out, stand between them.
            limit: 2 * count as usize + 10,
        };
        let runs = self.ports.store.list_runs(cause.tenant, &filter, page);
        Ok(alert::skipped_in_row(&runs.await?) >= u64::from(count))
    }

    /// Alerts that are due become runs of the jobs that deliver them. Answers whether there may be more of them.
    async fn send(&self, now: Timestamp) -> Result<bool, StoreError> {
        let due = self.alerts().due_alerts(now, ALERT_BATCH_MAX).await?;
        let is_full = due.len() == ALERT_BATCH_MAX;
        let mut groups: BTreeMap<(TenantId, AlertName, bool), Vec<AlertState>> = BTreeMap::new();
        for state in due {
            let group = (state.tenant, state.alert.clone(), state.firing);
            groups.entry(group).or_default().push(state);
        }
        for ((tenant, name, _), states) in groups {
            let rule = self.alerts().get_alert(tenant, &name).await?;
            for some in states.chunks(ALERT_GROUP_MAX) {
                self.send_some(rule.as_ref(), some, now).await?;
            }
        }
        Ok(is_full)
    }

    async fn send_some(
        &self,
        rule: Option<&Alert>,
        states: &[AlertState],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(rule) = rule.filter(|rule| rule.enabled) else {
            // Nobody is to hear of it any more.
            return self.end(states).await;
        };
        if let Some(until) = rule.muted(now) {
            return self.postpone(states, until).await;
        }
        let channel = (TenantId::SYSTEM, rule.job);
        let mut named: BTreeSet<_> = states.iter().map(|it| (it.tenant, it.job)).collect();
        named.insert(channel);
        let jobs = self.jobs(&named).await?;
        let Some(job) = jobs.get(&rule.job) else {
            warn!(alert = %rule.name, job = %rule.job, "an alert cannot be sent: the job that delivers it is gone");
            return self.end(states).await;
        };
        let id = RunId::of_delivery(job.id, now, states.iter());
        let run = Run {
            payload: Some(message(rule, states, &jobs, now)),
            ..Run::of_request(job, id, RunKind::Manual, now)
        };
        let sent = states.iter().map(|state| {
            let after = state.clone().after_sent(rule, now);
            AlertMove::between(state.clone(), after)
        });
        let moves = AlertMoves {
            causes: Vec::new(),
            moves: sent.collect(),
            run: Some(QueueRun::alone(run)),
        };
        match self.write(moves).await? {
            AlertsMoved::Done => self.ports.offers.offer(channel),
            AlertsMoved::Stale => {}
            AlertsMoved::Full => {
                warn!(alert = %rule.name, "an alert waits: too many of its deliveries are under way");
                return self.postpone(states, now.plus(FULL_AGAIN)).await;
            }
            AlertsMoved::Missing => return self.end(states).await,
        }
        Ok(())
    }

    async fn end(&self, states: &[AlertState]) -> Result<(), StoreError> {
        let moves = states.iter().cloned().map(AlertMove::end).collect();
        self.write(AlertMoves {
            moves,
            ..AlertMoves::default()
        })
        .await?;
        Ok(())
    }

    async fn postpone(&self, states: &[AlertState], until: Timestamp) -> Result<(), StoreError> {
        let later = states.iter().map(|state| {
            AlertMove::to(AlertState {
                send_at: Some(until),
                ..state.clone()
            })
        });
        self.write(AlertMoves {
            moves: later.collect(),
            ..AlertMoves::default()
        })
        .await?;
        Ok(())
    }

    /// Alerts whose job has succeeded since have recovered. What is about to be sent for the first time is sent before.
    async fn recover(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let after = self.after.take();
        let page = self
            .alerts()
            .firing_alerts(after.as_ref(), ALERT_BATCH_MAX)
            .await?;
        let last = page.last().filter(|_| page.len() == ALERT_BATCH_MAX);
        self.after = last.map(|(state, _)| key(state));
        let mut rules: BTreeMap<(TenantId, AlertName), Option<Alert>> = BTreeMap::new();
        let mut moves = Vec::new();
        for (state, by) in page {
            let Some(by) = by.filter(|_| !state.is_new(now)) else {
                continue;
            };
            let name = (state.tenant, state.alert.clone());
            if !rules.contains_key(&name) {
                let rule = self.alerts().get_alert(name.0, &name.1).await?;
                rules.insert(name.clone(), rule);
            }
            let rule = rules.get(&name).and_then(Option::as_ref);
            let over = state.clone().recovered(rule, by, now);
            moves.push(AlertMove::between(state, over));
        }
        if !moves.is_empty() {
            self.write(AlertMoves {
                moves,
                ..AlertMoves::default()
            })
            .await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Duty for Alerts {
    fn name(&self) -> &'static str {
        "alerts"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let later = Wake::At(now.plus(EVERY));
        let holds = self.ports.shards.leases().epoch(Shard(0)).is_some();
        if self.ports.hold || !self.ports.presence.is_sure() || !holds {
            return Ok(later);
        }
        let mut more = self.consider(now).await?;
        let uptime = self.ports.clock.uptime();
        if self
            .checked
            .is_none_or(|at| uptime.saturating_sub(at) >= RECOVERED_EVERY)
        {
            self.recover(now).await?;
            self.checked = Some(uptime);
        }
        more |= self.send(now).await?;
        Ok(if more { Wake::Now } else { later })
    }
}
