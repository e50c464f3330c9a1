//! Origins as a node sees them.

use engine::TargetStatus;
use model::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;

/// An origin that jobs of one tenant call.
#[derive(Debug, Serialize, ToSchema)]
pub struct Origin {
    /// Scheme, host and port.
    #[schema(example = "https://example.com")]
    pub origin: String,
    /// Whose jobs call it.
    pub tenant: String,
    /// Of its breaker: `closed`, `open` while no calls are made, `half_open` while a probe is under way.
    #[schema(example = "closed")]
    pub state: &'static str,
    /// Calls in a row that it did not answer, or answered with 5xx.
    pub failures: u32,
    /// When the next call is tried, while its breaker is open.
    #[schema(format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_until: Option<String>,
    /// Calls under way.
    pub calls: usize,
    /// How many may be: fewer after 429 and 503, more again with every success.
    pub calls_max: usize,
    /// Runs that wait in the memory of the node for calls to end.
    pub queued: usize,
    /// Runs that this node has made to wait, and that are woken when the breaker closes.
    pub waiting: usize,
}

/// The origins that a node knows of.
#[derive(Debug, Serialize, ToSchema)]
pub struct TargetList {
    /// By tenant, then by origin.
    pub items: Vec<Origin>,
}

impl TargetList {
    pub fn of(targets: &[TargetStatus], now: Timestamp) -> Self {
        let items = targets.iter().map(|target| Origin {
            origin: target.origin.clone(),
            tenant: target.tenant.to_string(),
            state: target.state,
            failures: target.failures,
            open_until: target.open_for.map(|left| moment(&now.plus(left))),
            calls: target.calls,
            calls_max: target.calls_max,
            queued: target.queued,
            waiting: target.waiting,
        });
        Self {
            items: items.collect(),
        }
    }
}
