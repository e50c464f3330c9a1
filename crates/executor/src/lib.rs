//! How work reaches the outside: one trait, every executor, and the registry that finds the right one.
//!
//! An executor delivers one attempt and reports how it ended. It reads no clock and keeps no
//! deadline: whoever calls it drops the future when the attempt's time is up or it was cancelled,
//! and dropping must end the delivery (close the connection, kill the process group).

#![deny(unreachable_pub)]

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod egress;
#[cfg(feature = "http")]
pub mod http;
mod identity;
mod progress;
pub mod shell;
pub mod sign;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http_types::uri::PathAndQuery;
use http_types::{HeaderName, HeaderValue};
use model::{AttemptNo, Job, Proxy, Report, RunId, Slot, Timestamp, Trace};

pub use identity::Identity;
pub use progress::{PartialOutput, Progress, Stopwatch, Unread};
pub use sign::Signer;

/// One attempt to deliver.
#[derive(Debug, Clone)]
pub struct WorkOrder {
    pub run: RunId,
    pub attempt: AttemptNo,
    /// None for a manual run.
    pub slot: Option<Slot>,
    /// The definition that this attempt runs.
    pub job: Arc<Job>,
    /// The run's own payload, or a large one of its job; else the one in the job. Whoever keeps it keeps room in memory that
    /// others may wait for.
    pub payload: Option<Bytes>,
    /// What is called instead of the path and the query of the target's own address, where those are a template.
    pub path: Option<PathAndQuery>,
    /// What is sent instead of the target's own headers, where those are templates.
    pub headers: Option<Vec<(HeaderName, HeaderValue)>>,
    /// A command's own variables, where those are templates.
    pub env: Option<Vec<(String, String)>>,
    /// Whose trace it goes on with, where whoever started its run said so.
    pub trace: Option<Trace>,
    /// When it is sent: what signatures say.
    pub sent_at: Timestamp,
    /// What it is signed with, if it is to be signed.
    pub signer: Option<Arc<Signer>>,
    /// Certificates that its target names.
    pub identity: Option<Arc<Identity>>,
    /// What its tenant's callbacks go through, if anything.
    pub proxy: Option<Arc<Proxy>>,
    /// Only where the target may report later.
    pub callback: Option<Callback>,
    /// The name of the node that delivers.
    pub node: Arc<str>,
    /// What becomes known of it on the way, for whoever ends it early.
    pub progress: Arc<Progress>,
}

/// How a target reports that takes an attempt over.
#[derive(Clone)]
pub struct Callback {
    /// The right to report. It is in no log.
    pub token: String,
    pub report_url: String,
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Callback({})", self.report_url)
    }
}

impl WorkOrder {
    /// What is sent: the run's own payload, or the job's.
    pub fn payload(&self) -> Option<&Bytes> {
        self.payload.as_ref().or(self.job.def.payload.as_ref())
    }
}

#[async_trait]
pub trait Executor: Send + Sync + 'static {
    /// Delivers the attempt. Never panics; whatever goes wrong is a `Report`.
    async fn execute(&self, order: WorkOrder) -> Report;
}

/// Executors by the kind of target they serve.
#[derive(Clone, Default)]
pub struct Registry {
    by_kind: BTreeMap<&'static str, Arc<dyn Executor>>,
}

impl Registry {
    pub fn with(mut self, kind: &'static str, executor: Arc<dyn Executor>) -> Self {
        self.by_kind.insert(kind, executor);
        self
    }

    /// The kinds of targets that it has executors for.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        self.by_kind.keys().copied()
    }

    /// The executor for a job's target; none when this node has no such executor.
    pub fn get(&self, kind: &str) -> Option<&Arc<dyn Executor>> {
        self.by_kind.get(kind)
    }
}
