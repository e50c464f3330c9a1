//! Run logs: text that is appended to what a run says of its work, by whoever has its attempt: somebody outside, or this node.

use std::sync::Arc;
use std::time::Duration;

use model::RunId;
use store::{Beaten, EngineStore, LogAppend, StoreError};

use crate::clock::Clock;
use crate::gather::{About, Gather};

/// Writes under way at once.
const DEPTH: usize = 2;

pub(crate) struct RunLogs {
    store: Arc<dyn EngineStore>,
    clock: Arc<dyn Clock>,
    appends: Gather<LogAppend, Beaten>,
}

impl About for LogAppend {
    fn run(&self) -> RunId {
        self.run
    }

    fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl RunLogs {
    pub(crate) fn new(store: Arc<dyn EngineStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            appends: Gather::new(DEPTH, Duration::ZERO),
        }
    }

    /// One by one of the same attempt: texts that are on their way at the same time may change places.
    pub(crate) async fn append(&self, append: LogAppend) -> Result<Beaten, StoreError> {
        let write =
            |appends: Vec<LogAppend>| async move { self.store.handed().append_log(&appends).await };
        self.appends.call(&*self.clock, append, write).await
    }
}
