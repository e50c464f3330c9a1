//! What every request is answered from.

use std::sync::Arc;
use std::time::Duration;

use engine::Handle;
use executor::egress::Egress;
use executor::shell::{Commands, Scripts};
use model::limits;
use store::ClientStore;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::console::SharedPages;
use crate::lockouts::Lockouts;
use crate::metrics::Metrics;
use crate::ops::Changing;
use crate::ops::forecast::Forecasts;
use crate::ops::overview::Standings;
use crate::ops::watch::Watched;
use crate::passwords::Passwords;
use crate::permit::PERMITS_MAX;
use crate::rates::{Rates, RatesMax};

/// The doors to the store and to the engine, and what the server counts.
pub struct Api {
    pub(crate) store: Arc<dyn ClientStore>,
    pub(crate) engine: Handle,
    pub(crate) access: Arc<Access>,
    /// Whom jobs may call.
    pub(crate) egress: Arc<Egress>,
    /// What they may start.
    pub(crate) commands: Arc<Commands>,
    pub(crate) scripts: Arc<Scripts>,
    /// How fast clients may call.
    pub(crate) rates: Rates,
    /// Whether metrics are shown without a key.
    pub(crate) metrics_open: bool,
    pub(crate) metrics: Metrics,
    pub(crate) features: Vec<String>,
    /// How long history stays: what came of older slots is not known any more.
    pub(crate) history_keep: Duration,
    /// The node is about to end: whoever shares out requests is to send them elsewhere.
    pub(crate) stopping: CancellationToken,
    pub(crate) changing: Changing,
    /// Room for batches; each needs memory of its own.
    pub(crate) batches: Arc<Semaphore>,
    /// Room for exports of the audit log.
    pub(crate) exports: Arc<Semaphore>,
    /// How fast people may try to log in.
    pub(crate) lockouts: Lockouts,
    pub(crate) passwords: Passwords,
    /// What there is now, as it was counted last.
    pub(crate) standings: Standings,
    /// What comes, as it was counted last.
    pub(crate) forecasts: Forecasts,
    /// Streams that are open.
    pub(crate) watched: Watched,
    /// What pages that follow were shown last.
    pub(crate) shared_pages: SharedPages,
    /// Room for what only computes.
    pub(crate) permits: Arc<Semaphore>,
}

/// Exports of the audit log under way at once.
pub(crate) const EXPORTS_MAX: usize = 4;
/// Batches under way at once.
pub(crate) const BATCHES_MAX: usize = 16;

impl Api {
    pub fn new(store: Arc<dyn ClientStore>, engine: Handle, access: Arc<Access>) -> Self {
        let metrics = Metrics::new(engine.metrics());
        Self {
            store,
            engine,
            access,
            egress: Arc::default(),
            commands: Arc::default(),
            scripts: Arc::default(),
            rates: Rates::new(RatesMax::default()),
            metrics_open: false,
            metrics,
            features: Vec::new(),
            history_keep: limits::HISTORY_KEEP,
            stopping: CancellationToken::new(),
            changing: Changing::default(),
            batches: Arc::new(Semaphore::new(BATCHES_MAX)),
            exports: Arc::new(Semaphore::new(EXPORTS_MAX)),
            lockouts: Lockouts::new(),
            passwords: Passwords::new(),
            standings: Standings::default(),
            forecasts: Forecasts::default(),
            watched: Watched::default(),
            shared_pages: SharedPages::default(),
            permits: Arc::new(Semaphore::new(PERMITS_MAX)),
        }
    }

    /// What this binary was built with; `/version` shows it.
    pub fn with_features<T: Into<String>>(mut self, features: impl IntoIterator<Item = T>) -> Self {
        self.features = features.into_iter().map(Into::into).collect();
        self
    }

    /// Whom jobs may call; without this, public addresses.
    pub fn with_egress(mut self, egress: Arc<Egress>) -> Self {
        self.egress = egress;
        self
    }

    /// What jobs may start; without this, nothing.
    pub fn with_commands(mut self, commands: Arc<Commands>) -> Self {
        self.commands = commands;
        self
    }

    /// What scripts may be run with, and whether they can be; without this, none.
    pub fn with_scripts(mut self, scripts: Arc<Scripts>) -> Self {
        self.scripts = scripts;
        self
    }

    /// How fast clients may call; without this, as fast as they can.
    pub fn with_rates(mut self, max: RatesMax) -> Self {
        self.rates = Rates::new(max);
        self
    }

    /// Shows metrics also to those who have no key.
    pub fn with_metrics_open(mut self, open: bool) -> Self {
        self.metrics_open = open;
        self
    }

    /// How long the node keeps history, if not for as long as it does by default.
    pub fn with_history_keep(mut self, keep: Duration) -> Self {
        self.history_keep = keep;
        self
    }

    /// Cancelled when the node begins to stop; `/readyz` says so from then on.
    pub fn with_stopping(mut self, stopping: CancellationToken) -> Self {
        self.stopping = stopping;
        self
    }
}
