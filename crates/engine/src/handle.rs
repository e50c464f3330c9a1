//! What the rest of the process may request from a node. Nudges only shorten waits: everything is correct
//! without them, so a full queue or a dropped nudge costs time and nothing else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::runs_day::Day;
use model::{Job, JobId, Parts, QuotaExceeded, Run, Shard, TenantId, Timestamp, limits};
use store::{Hint, Store, StoreError};

use crate::clock::Clock;
use crate::fleet::{Fleet, Nodes};
use crate::lock;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::offset::Skew;
use crate::origins::{Origins, TargetStatus};
use crate::outside::Outside;
use crate::run_counts::RunCounts;
use crate::tokens::Tokens;
use crate::vault::{KeyRing, MasterKeys, Vault};

/// How a node is. It is ill when something has been due for too long, whatever the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// The age of the oldest slot or run that is due and held by nobody, when last looked at.
    pub oldest_due: Duration,
    /// How long ago that look was; it must be fresh to mean anything.
    pub measured: Duration,
    pub bound: Duration,
    /// How long ago the last beat was answered.
    pub heard: Duration,
    /// Whether the node holds its presence, by its own count.
    pub present: bool,
    /// Whether it has planned at least once, if it plans at all.
    pub planned: bool,
    /// Why it may not fire: its clock is wrong, or the store's is not known well enough.
    pub clock: Option<String>,
    /// Nothing fires here because the operator wants it so.
    pub held: bool,
}

impl Health {
    pub fn is_well(&self) -> bool {
        let oldest = if self.held {
            Duration::ZERO
        } else {
            self.oldest_due
        };
        oldest.max(self.measured) <= self.bound
    }

    pub fn is_ready(&self) -> bool {
        self.present && self.planned && self.clock.is_none()
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HealthRecord {
    pub oldest_due_at: Option<Timestamp>,
    /// By uptime.
    pub measured_at: Duration,
    pub planned: bool,
    pub present: bool,
}

/// What a handle works with.
pub(crate) struct Ports {
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Store>,
    pub metrics: Metrics,
    pub parts: Parts,
    pub fleet: Arc<Fleet>,
    pub offers: Offers,
    pub skew: Skew,
    pub health: Arc<Mutex<HealthRecord>>,
    pub health_bound: Duration,
    pub history_keep: Duration,
    /// Nothing is to fire here, and that is as it should be.
    pub hold: bool,
    pub master_keys: Arc<KeyRing>,
    pub tokens: Arc<Tokens>,
    pub vault: Arc<Vault>,
    pub runs: Arc<RunCounts>,
    pub outside: Arc<Outside>,
    pub beat: Nudge,
    pub rules: Nudge,
    pub replays: Nudge,
    pub keys: Nudge,
    pub claim_due: Nudge,
    pub origins: Arc<Mutex<Option<Arc<Origins>>>>,
}

#[derive(Clone)]
pub struct Handle {
    ports: Arc<Ports>,
}

impl Handle {
    pub(crate) fn new(ports: Ports) -> Self {
        let ports = Arc::new(ports);
        Self { ports }
    }

    /// How long the installation keeps what has ended.
    pub fn history_keep(&self) -> Duration {
        self.ports.history_keep
    }

    /// How this node sees the origins that it calls: those of a tenant's jobs, or all.
    pub fn targets(&self, tenant: Option<TenantId>) -> Vec<TargetStatus> {
        let origins = lock(&self.ports.origins).clone();
        let uptime = self.ports.clock.uptime();
        origins.map_or(Vec::new(), |origins| origins.list(tenant, uptime))
    }

    pub fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.ports.clock
    }

    /// The store as the node calls it: what it takes is counted.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.ports.store)
    }

    pub fn metrics(&self) -> &Metrics {
        &self.ports.metrics
    }

    /// What this node does.
    pub fn parts(&self) -> Parts {
        self.ports.parts
    }

    /// What secrets are sealed under, if this node has it.
    pub fn master_keys(&self) -> Option<Arc<MasterKeys>> {
        self.ports.master_keys.get()
    }

    /// From now on these seal and open. An error means that keys of tokens are not wrapped by them yet: then it is called
    /// again before a key goes.
    pub async fn replace_master_keys(&self, keys: Arc<MasterKeys>) -> Result<(), StoreError> {
        self.ports.master_keys.replace(keys);
        // What was closed may be open now.
        self.ports.vault.forget();
        self.ports.tokens.renew().await
    }

    /// What it knows of secrets.
    pub fn vault(&self) -> &Vault {
        &self.ports.vault
    }

    /// Counts a run that somebody asked for and that is about to be inserted, if its tenant may have another today.
    pub fn begin_run(&self, run: &Run) -> Result<(), QuotaExceeded> {
        let begun = self.ports.runs.begin(run.tenant, Day::of(run.due_at));
        begun.map_err(|over| over.exceeded)
    }

    /// It was not inserted.
    pub fn take_out_run(&self, run: &Run) {
        self.ports.runs.take_out(run.tenant, Day::of(run.due_at));
    }

    /// What those talk to who have handed-over attempts.
    pub fn outside(&self) -> &Outside {
        &self.ports.outside
    }

    /// A job was just written: when it is due within the horizon, plan looks at it at once.
    pub fn offer(&self, job: &Arc<Job>) {
        let horizon = self.now().plus(limits::HORIZON);
        if job.next_due_at().is_none_or(|due_at| due_at > horizon) {
            return;
        }
        self.ports.offers.offer((job.tenant, job.id));
    }

    /// A run of the job was just made ready, or the job changed: plan reads that job and its runs.
    pub fn nudge_plan(&self, tenant: TenantId, job: JobId) {
        self.ports.offers.offer((tenant, job));
        if !self.ports.offers.is_ours(Shard::of(job)) {
            // Or it is among those that this node takes.
            self.ports.claim_due.now();
        }
    }

    /// A calendar was changed: jobs that name it are to be rescheduled.
    pub fn nudge_rules(&self) {
        self.ports.rules.now();
        self.ports.store.hint(&[Hint::Rules]);
    }

    /// A replay was made, or cancelled. Other nodes look once a second.
    pub fn nudge_replays(&self) {
        self.ports.replays.now();
    }

    /// Keys were created or revoked here: the other nodes are to look.
    pub fn hint_keys(&self) {
        self.ports.store.hint(&[Hint::Keys]);
    }

    /// Waits until another node says that keys have changed. It may never say so.
    pub async fn keys_hinted(&self) {
        self.ports.keys.heard().await;
    }

    /// Claims were marked: their holders look at their marks at once.
    pub fn nudge_holder(&self) {
        self.ports.beat.now();
        self.ports.store.hint(&[Hint::Marks]);
    }

    /// Who lives.
    pub fn nodes(&self) -> Nodes {
        self.ports.fleet.nodes(self.ports.clock.uptime())
    }

    pub fn health(&self) -> Health {
        let record = *lock(&self.ports.health);
        let (now, uptime) = (self.ports.clock.now(), self.ports.clock.uptime());
        let heard = self.ports.fleet.silent_for(uptime);
        Health {
            oldest_due: record
                .oldest_due_at
                .map_or(Duration::ZERO, |due_at| now.since(due_at)),
            measured: uptime.saturating_sub(record.measured_at),
            bound: self.ports.health_bound,
            heard,
            present: record.present && heard < limits::PRESENCE_TTL - limits::PRESENCE_MARGIN,
            planned: record.planned || !self.ports.parts.schedule,
            clock: self.ports.skew.unfit(),
            held: self.ports.hold,
        }
    }
}
