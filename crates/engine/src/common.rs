//! What a node has for as long as it runs, whatever its presence; and what of it the rest of the process may use.

use std::sync::{Arc, Mutex, OnceLock};

use executor::Registry;
use model::PresenceId;
use model::shard::ShardSet;
use store::{EngineStore, Store};

use crate::clock::Clock;
use crate::desk::By;
use crate::duty::Keeper;
use crate::fleet::Fleet;
use crate::handle::{self, Handle, HealthRecord};
use crate::lock;
use crate::metrics::Metrics;
use crate::node::NodeConfig;
use crate::nudge::Nudges;
use crate::offers::{Offered, Offers};
use crate::offset::Skew;
use crate::origins::Origins;
use crate::outside::{Followed, Outside};
use crate::run_counts::RunCounts;
use crate::run_logs::RunLogs;
use crate::tokens::Tokens;
use crate::trouble::Trouble;
use crate::vault::{KeyRing, Vault};

#[derive(Clone)]
pub(crate) struct Common {
    pub config: NodeConfig,
    pub clock: Arc<dyn Clock>,
    pub store: Arc<dyn Store>,
    pub registry: Registry,
    pub skew: Skew,
    pub metrics: Metrics,
    pub nudges: Nudges,
    pub fleet: Arc<Fleet>,
    pub health: Arc<Mutex<HealthRecord>>,
    pub offers: Offers,
    pub offered: Offered,
    pub vault: Arc<Vault>,
    /// Those of the presence that there is.
    pub origins: Arc<Mutex<Option<Arc<Origins>>>>,
    pub runs: Arc<RunCounts>,
    /// Under which name this process counts runs: its first presence.
    pub counter: Arc<OnceLock<PresenceId>>,
    pub master_keys: Arc<KeyRing>,
    pub tokens: Arc<Tokens>,
    pub outside: Arc<Outside>,
    pub logs: Arc<RunLogs>,
    pub by: By,
}

impl Common {
    /// Over a store, by a clock whose skew is known.
    pub(crate) fn new(
        config: NodeConfig,
        store: Arc<dyn Store>,
        (clock, skew): (Arc<dyn Clock>, Skew),
        registry: Registry,
        metrics: Metrics,
    ) -> Self {
        let nudges = Nudges::default();
        let (offers, offered) = Offers::new(store.clone(), &nudges.plan);
        let health = HealthRecord {
            measured_at: clock.uptime(),
            ..HealthRecord::default()
        };
        let trouble = Trouble::new(&config.name, Arc::clone(&clock), metrics.clone());
        let by = By {
            node: Arc::from(config.name.as_str()),
            trouble: Arc::new(trouble),
        };
        let ways: (Arc<dyn EngineStore>, _, _) = (store.clone(), Arc::clone(&clock), skew.clone());
        let keys = Arc::new(KeyRing::new(config.master_keys.clone()));
        let tokens = Tokens::new(ways.0.clone(), ways.1.clone(), Arc::clone(&keys));
        let tokens = Arc::new(tokens);
        let followed = Followed {
            offers: offers.clone(),
            metrics: metrics.clone(),
            by: by.clone(),
            claim_due: nudges.claim_due.clone(),
            fire: nudges.fire.clone(),
            beat: nudges.beat.clone(),
        };
        let fleet = Arc::new(Fleet::new(clock.uptime()));
        let vault = Arc::new(Vault::new(Arc::clone(&keys), store.clone()));
        let known = (Arc::clone(&fleet), Arc::clone(&tokens), Arc::clone(&vault));
        let logs = Arc::new(RunLogs::new(store.clone(), Arc::clone(&clock)));
        let outside = Outside::new(ways, known, Arc::clone(&logs), followed, config.seed);
        Self {
            by,
            master_keys: keys,
            tokens,
            outside: Arc::new(outside),
            logs,
            vault,
            runs: Arc::default(),
            counter: Arc::default(),
            fleet,
            health: Arc::new(Mutex::new(health)),
            origins: Arc::default(),
            config,
            clock,
            store,
            registry,
            skew,
            metrics,
            nudges,
            offers,
            offered,
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        Handle::new(handle::Ports {
            clock: Arc::clone(&self.clock),
            store: Arc::clone(&self.store),
            metrics: self.metrics.clone(),
            parts: self.config.parts,
            fleet: Arc::clone(&self.fleet),
            offers: self.offers.clone(),
            skew: self.skew.clone(),
            health: Arc::clone(&self.health),
            health_bound: self.config.health_bound,
            history_keep: self.config.history_keep,
            hold: self.config.hold,
            master_keys: Arc::clone(&self.master_keys),
            tokens: Arc::clone(&self.tokens),
            vault: Arc::clone(&self.vault),
            runs: Arc::clone(&self.runs),
            outside: Arc::clone(&self.outside),
            beat: self.nudges.beat.clone(),
            rules: self.nudges.rules.clone(),
            replays: self.nudges.replays.clone(),
            keys: self.nudges.keys.clone(),
            claim_due: self.nudges.claim_due.clone(),
            origins: Arc::clone(&self.origins),
        })
    }

    pub(crate) fn keeper(&self) -> Keeper {
        Keeper {
            clock: Arc::clone(&self.clock),
            metrics: self.metrics.clone(),
        }
    }

    /// A presence is over: until the next, this node holds nothing.
    pub(crate) fn empty(&self) {
        self.offers.set_ours(ShardSet::default());
        *lock(&self.origins) = None;
        let mut health = lock(&self.health);
        (health.present, health.planned) = (false, false);
    }
}
