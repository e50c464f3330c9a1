//! What every request is answered from.

use std::sync::Arc;

use engine::Handle;
use store::Store;

use crate::metrics::Metrics;

/// The doors to the store and to the engine, and what the server counts.
pub struct Api {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: Handle,
    pub(crate) metrics: Metrics,
    pub(crate) features: Vec<String>,
}

impl Api {
    pub fn new(store: Arc<dyn Store>, engine: Handle) -> Self {
        let metrics = Metrics::new(engine.metrics());
        Self {
            store,
            engine,
            metrics,
            features: Vec::new(),
        }
    }

    /// What this binary was built with; `/version` shows it.
    pub fn with_features<T: Into<String>>(mut self, features: impl IntoIterator<Item = T>) -> Self {
        self.features = features.into_iter().map(Into::into).collect();
        self
    }
}
