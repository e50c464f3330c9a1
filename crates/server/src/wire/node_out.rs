//! Nodes as we answer them.

use model::Timestamp;
use model::schedule::format_span;
use serde::Serialize;
use store::{Offset, Peer};
use utoipa::ToSchema;

use super::job_out::moment;
use crate::ops::nodes::NodesHeard;

/// A clock that is known no better than this, in microseconds, is not known.
const UNKNOWN: i64 = 1_000_000_000_000_000;

/// One running process, as of its last beat.
#[derive(Debug, Serialize, ToSchema)]
pub struct Node {
    /// Of this start of it; after a restart it has another.
    #[schema(example = "presence_0192f0c1a2b37def8123456789abcdef")]
    pub id: String,
    /// What it calls itself.
    #[schema(example = "host-1:7710")]
    pub name: String,
    /// Of its binary.
    pub version: String,
    /// The release of its time zone tables.
    pub tzdb: String,
    /// Of `api`, `schedule` and `execute`, what it is there for.
    #[schema(example = json!(["api", "schedule", "execute"]))]
    pub parts: Vec<&'static str>,
    /// Whether shards may fall to it; not while it stops, or while its clock is off.
    pub schedules: bool,
    /// Whether it starts attempts.
    pub executes: bool,
    /// How many shards it holds.
    pub shards: u16,
    /// How many more attempts it could have under way.
    pub room: u32,
    /// How late the oldest run is that it holds and has not handed to its target.
    #[schema(example = "0s")]
    pub lateness: String,
    /// What its clock is ahead of the store's; none if the store goes by its clock, or it is not known yet.
    #[schema(example = "-0.042ms")]
    pub clock_offset: Option<String>,
    /// How wrong that may be, either way.
    #[schema(example = "0.310ms")]
    pub clock_uncertainty: Option<String>,
    /// When it joined.
    #[schema(format = DateTime)]
    pub joined_at: String,
    /// Its last beat.
    #[schema(format = DateTime)]
    pub beaten_at: String,
    /// Whether this is the node that answers.
    #[serde(rename = "self")]
    pub is_self: bool,
}

/// The nodes that live.
#[derive(Debug, Serialize, ToSchema)]
pub struct NodeList {
    /// By name, then by id.
    pub items: Vec<Node>,
    /// When the answering node heard of them; none if it never has.
    #[schema(format = DateTime)]
    pub heard_at: Option<String>,
    /// How long ago that was: about a second at most, unless the store is away.
    #[schema(example = "0s")]
    pub heard_age: String,
}

impl NodeList {
    pub fn of(heard: &NodesHeard) -> Self {
        let NodesHeard { nodes, heard_at } = heard;
        let node = |peer: &Peer| {
            let at = heard_at.unwrap_or(peer.joined_at);
            Node::of(peer, at, nodes.me == Some(peer.presence))
        };
        Self {
            items: nodes.peers.iter().map(node).collect(),
            heard_at: heard_at.as_ref().map(moment),
            heard_age: format_span(nodes.heard),
        }
    }
}

impl Node {
    fn of(peer: &Peer, heard_at: Timestamp, is_self: bool) -> Self {
        let Peer {
            node, node_status, ..
        } = peer;
        let clock = node_status
            .offset
            .filter(|clock| clock.uncertainty < UNKNOWN);
        let shown = |micros: fn(&Offset) -> i64| clock.as_ref().map(micros).map(millis);
        Self {
            id: peer.presence.to_string(),
            name: node.name.clone(),
            version: node.version.clone(),
            tzdb: node.tables.clone(),
            parts: node.parts.names(),
            schedules: node_status.schedules,
            executes: node_status.executes,
            shards: peer.shards,
            room: node_status.room,
            lateness: format_span(std::time::Duration::from_millis(
                node_status.lateness.into(),
            )),
            clock_offset: shown(|clock| clock.ahead),
            clock_uncertainty: shown(|clock| clock.uncertainty),
            joined_at: moment(&peer.joined_at),
            beaten_at: moment(&heard_at.minus(peer.beaten)),
            is_self,
        }
    }
}

/// Clocks are closer to each other than a span of ours can say, and may be behind.
fn millis(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let micros = micros.unsigned_abs();
    format!("{sign}{}.{:03}ms", micros / 1_000, micros % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_compared_to_the_microsecond() {
        let check = |micros: i64, expected: &str| assert_eq!(millis(micros), expected);
        check(0, "0.000ms");
        check(42, "0.042ms");
        check(-1_042, "-1.042ms");
        check(30_000_000, "30000.000ms");
    }
}
