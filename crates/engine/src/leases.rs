//! Leases: the shards that fall to this node among those that schedule. A node that comes, goes, or says that it
//! schedules no more moves only its own share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::shard::{ShardSet, Shares};
use model::{PresenceId, Shard, Timestamp, limits};
use store::{Hint, Leases, Peer, Store, StoreError};
use tracing::info;

use crate::beats::Status;
use crate::board::Board;
use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::fleet::Fleet;
use crate::handle::HealthRecord;
use crate::lock;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::presence::Presence;
use crate::shards::Shards;

/// How often a shard is asked for that falls to this node while another still holds it, and for how long; after
/// that, once a beat: whoever holds it is not giving it up but has to lapse.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASK_FOR: Duration = Duration::from_secs(5);

pub struct Ports {
    pub leasing: Arc<Leasing>,
    pub clock: Arc<dyn Clock>,
    pub fleet: Arc<Fleet>,
    pub status: Arc<Status>,
    pub health: Arc<Mutex<HealthRecord>>,
    pub nudge: Nudge,
}

pub struct Hold {
    ports: Ports,
    /// Since when, by uptime, shards are missing.
    short_since: Option<Duration>,
    /// The store may have it otherwise than memory: an answer was lost.
    doubtful: bool,
    /// Who schedules, and what falls to each: counted again when they change.
    schedulers: Vec<PresenceId>,
    shares: Shares,
}

impl Hold {
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            short_since: None,
            doubtful: false,
            schedulers: Vec::new(),
            shares: Shares::default(),
        }
    }

    fn shares(&mut self, peers: &[Peer]) -> &Shares {
        let schedulers = schedulers(peers);
        if schedulers != self.schedulers {
            self.shares = Shares::among(&schedulers);
            self.schedulers = schedulers;
        }
        &self.shares
    }

    /// When to ask again for shards that another still holds.
    fn wake(&mut self, now: Timestamp, wanted: &ShardSet, held: &ShardSet) -> Wake {
        if wanted.iter().all(|shard| held.contains(shard)) {
            self.short_since = None;
            return Wake::Nudged;
        }
        let uptime = self.ports.clock.uptime();
        let since = *self.short_since.get_or_insert(uptime);
        if uptime.saturating_sub(since) < ASK_FOR {
            Wake::At(now.plus(ASK_EVERY))
        } else {
            Wake::Nudged
        }
    }
}

/// Asks for shards and gives them up: when they fall to a node, and when it stops.
pub struct Leasing {
    pub shards: Arc<Shards>,
    pub presence: Arc<Presence>,
    pub board: Arc<Board>,
    pub store: Arc<dyn Store>,
    pub offers: Offers,
    pub fire: Nudge,
    pub watchdog: Nudge,
    /// One call at a time; nothing else is written meanwhile.
    pub one: tokio::sync::Mutex<()>,
}

/// While it lives, no write that relies on leases begins. It ends also when the call is given up, or panics.
struct Pause<'a>(&'a Leasing);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.shards.set_pausing(false);
        self.0.fire.now();
    }
}

impl Leasing {
    /// Asks for shards, and gives up all others. Writes that rely on leases are over before the store answers; so that
    /// it does not wait for ever new ones, none begin meanwhile.
    pub async fn lease(&self, wanted: &ShardSet) -> Result<Leases, StoreError> {
        self.shards.set_pausing(true);
        let _pause = Pause(self);
        self.store.lease(self.presence.id, wanted).await
    }

    /// Takes note of the shards that are held from now on.
    pub fn hold(&self, leases: Leases) {
        let shards = leases.shards();
        info!(shards = shards.len(), "holds shards");
        self.shards.set_leases(leases);
        self.offers.set_ours(shards);
        self.board.keep_shards(&shards);
        self.offers.replan();
        self.watchdog.now();
    }
}

/// Who schedules, of those that live.
pub fn schedulers(peers: &[Peer]) -> Vec<PresenceId> {
    let schedule = peers.iter().filter(|peer| peer.node_status.schedules);
    schedule.map(|peer| peer.presence).collect()
}

/// The shards in which this node ends what the gone leave behind: its own, and its share where nobody schedules.
pub fn cared_for(peers: &[Peer], me: PresenceId, held: ShardSet) -> ShardSet {
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

/// The shards whose runs others leave: nobody schedules them, or whoever does has no hands free, or lacks an executor that
/// this node has.
fn left(peers: &[Peer], shares: &Shares, me: PresenceId) -> ShardSet {
    let peer = |id: PresenceId| peers.iter().find(|peer| peer.presence == id);
    let kinds = peer(me).map_or(&[][..], |me| &me.node.kinds);
    let has_hands = |id: PresenceId| {
        let able = |peer: &Peer| kinds.iter().all(|kind| peer.node.kinds.contains(kind));
        peer(id).is_some_and(|it| it.node_status.executes && it.node_status.room > 0 && able(it))
    };
    Shard::all()
        .filter(|shard| match shares.owner(*shard) {
            Some(owner) => owner != me && !has_hands(owner),
            None => true,
        })
        .collect()
}

#[async_trait]
impl Duty for Hold {
    fn name(&self) -> &'static str {
        "leases"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let leasing = Arc::clone(&self.ports.leasing);
        let Leasing {
            shards: held,
            presence,
            ..
        } = &*leasing;
        let me = presence.id;
        // What was heard as another presence is not about this one.
        if !self.ports.fleet.has_heard(me) || presence.is_stopping() {
            return Ok(Wake::Nudged);
        }
        let peers = self.ports.fleet.peers();
        let shares = self.shares(&peers);
        let wanted = shares.of(me);
        held.set_left(left(&peers, shares, me));
        let leases = held.leases();
        let doubtful = held.doubt.take() || self.doubtful;
        if leases.shards() == wanted && !doubtful {
            self.short_since = None;
            // One to whom nothing falls has nothing to plan. The first beat cannot know the time, and says that it
            // does not schedule: only when others have heard how this node is, nothing fell to it.
            let schedules = self.ports.status.schedules();
            let heard =
                |peer: &Peer| peer.presence == me && peer.node_status.schedules == schedules;
            let nothing = wanted.is_empty() && peers.iter().any(heard);
            lock(&self.ports.health).planned |= nothing;
            return Ok(Wake::Nudged);
        }
        let _one = leasing.one.lock().await;
        if presence.is_stopping() {
            return Ok(Wake::Nudged);
        }
        self.doubtful = true;
        let answer = leasing.lease(&wanted).await?;
        self.doubtful = false;
        let shards = answer.shards();
        if answer != *leases {
            let before = leases.shards();
            leasing.hold(answer);
            if before.iter().any(|shard| !shards.contains(shard)) {
                leasing.store.hint(&[Hint::Leases]);
            }
        }
        Ok(self.wake(now, &wanted, &shards))
    }
}

const _: () = assert!(ASK_EVERY.as_millis() < limits::BEAT_EVERY.as_millis());
