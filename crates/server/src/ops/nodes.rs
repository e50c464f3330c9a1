//! Who does the work.

use engine::Nodes;
use model::Timestamp;

use crate::api::Api;

/// The nodes that live, as the answering one heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodesHeard {
    /// By name, then by presence.
    pub nodes: Nodes,
    /// When that was; none before the first beat was answered.
    pub heard_at: Option<Timestamp>,
}

/// Reads memory alone, so it answers while the store is away, too.
pub fn list(api: &Api) -> NodesHeard {
    let mut nodes = api.engine.nodes();
    nodes.peers.sort_by(|one, other| {
        (&one.node.name, one.presence).cmp(&(&other.node.name, other.presence))
    });
    let heard_at = nodes.me.map(|_| api.engine.now().minus(nodes.heard));
    NodesHeard { nodes, heard_at }
}
