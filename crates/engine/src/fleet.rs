//! The fleet: the nodes that live, as this one heard with its last beat.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::shard::{ShardSet, Shares};
use model::{Mark, PresenceId, RunId, Shard};
use store::Peer;

use crate::lock;

/// The nodes that live, for readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    pub peers: Vec<Peer>,
    /// Which of them is this one; none before the first beat.
    pub me: Option<PresenceId>,
    /// How long ago that was.
    pub heard: Duration,
}

/// What the last beat brought of marks on claims of this node.
pub(crate) type Marked = Arc<Mutex<Vec<(RunId, Mark)>>>;

#[derive(Debug, Default)]
struct Heard {
    peers: Vec<Peer>,
    me: Option<PresenceId>,
    /// When the last beat was sent that was answered, by uptime.
    at: Duration,
    /// Beats that were answered, ever.
    beats: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Fleet(Mutex<Heard>);

impl Fleet {
    /// Before anything was heard.
    pub(crate) fn new(uptime: Duration) -> Self {
        Self(Mutex::new(Heard {
            at: uptime,
            ..Heard::default()
        }))
    }

    /// A beat of this presence that was sent at this uptime was answered. What it brings is no newer than that, however late
    /// the answer came.
    pub(crate) fn heard(&self, me: PresenceId, peers: Vec<Peer>, sent: Duration) {
        let mut heard = lock(&self.0);
        let beats = heard.beats + 1;
        *heard = Heard {
            peers,
            me: Some(me),
            at: sent,
            beats,
        };
    }

    /// Whether a beat of this presence has been answered: only then it knows who lives and what time it is.
    pub(crate) fn has_heard(&self, me: PresenceId) -> bool {
        lock(&self.0).me == Some(me)
    }

    pub(crate) fn beats(&self) -> u64 {
        lock(&self.0).beats
    }

    pub(crate) fn peers(&self) -> Vec<Peer> {
        lock(&self.0).peers.clone()
    }

    /// Looks at those that live, without a copy.
    pub(crate) fn with_peers<T>(&self, read: impl FnOnce(&[Peer]) -> T) -> T {
        read(&lock(&self.0).peers)
    }

    fn any_other(&self, me: PresenceId, is_such: impl Fn(&Peer) -> bool) -> bool {
        self.with_peers(|peers| {
            let mut others = peers.iter().filter(|peer| peer.presence != me);
            others.any(is_such)
        })
    }

    /// Whether another node would take what this one leaves.
    pub(crate) fn others_have_room(&self, me: PresenceId) -> bool {
        self.any_other(me, |it| it.node_status.executes && it.node_status.room > 0)
    }

    /// Whether another node would take over the shards of this one.
    pub(crate) fn others_schedule(&self, me: PresenceId) -> bool {
        self.any_other(me, |peer| peer.node_status.schedules)
    }

    pub(crate) fn nodes(&self, uptime: Duration) -> Nodes {
        let heard = lock(&self.0);
        Nodes {
            peers: heard.peers.clone(),
            me: heard.me,
            heard: uptime.saturating_sub(heard.at),
        }
    }

    /// How long ago the last beat was sent that was answered.
    pub(crate) fn silent_for(&self, uptime: Duration) -> Duration {
        uptime.saturating_sub(lock(&self.0).at)
    }
}

/// Who schedules, of those that live.
pub(crate) fn schedulers(peers: &[Peer]) -> Vec<PresenceId> {
    let schedule = peers.iter().filter(|peer| peer.node_status.schedules);
    schedule.map(|peer| peer.presence).collect()
}

/// The shards in which this node ends what the gone leave behind: its own, and its share where nobody schedules.
pub(crate) fn cared_for(peers: &[Peer], me: PresenceId, held: ShardSet) -> ShardSet {
    if !schedulers(peers).is_empty() {
        return held;
    }
    let hands = peers.iter().filter(|peer| peer.node_status.executes);
    let hands: Vec<PresenceId> = hands.map(|peer| peer.presence).collect();
    let shares = Shares::among(&hands);
    Shard::all()
        .filter(|shard| held.contains(*shard) || shares.owner(*shard) == Some(me))
        .collect()
}
