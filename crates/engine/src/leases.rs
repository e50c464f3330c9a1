//! Leases: the shards that fall to this node among those that schedule. A node that comes, goes, or says that it
//! schedules no more moves only its own share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::shard::{ShardSet, Shares};
use model::{PresenceId, Shard, Timestamp, limits};
use store::{Hint, Peer, StoreError};

use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::fleet::{Fleet, schedulers};
use crate::handle::HealthRecord;
use crate::lock;
use crate::nudge::Nudge;
use crate::shards::Leasing;
use crate::status::Status;

/// How often a shard is requested that falls to this node while another still holds it, and for how long; after
/// that, once a beat: whoever holds it is not giving it up but has to lapse.
const REQUEST_EVERY: Duration = Duration::from_millis(50);
const REQUEST_FOR: Duration = Duration::from_secs(5);

pub(crate) struct Ports {
    pub leasing: Arc<Leasing>,
    pub clock: Arc<dyn Clock>,
    pub fleet: Arc<Fleet>,
    pub status: Arc<Status>,
    pub health: Arc<Mutex<HealthRecord>>,
    pub nudge: Nudge,
}

pub(crate) struct Hold {
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
    pub(crate) fn new(ports: Ports) -> Self {
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

    /// When to request shards again that another still holds.
    fn wake(&mut self, now: Timestamp, wanted: &ShardSet, held: &ShardSet) -> Wake {
        if wanted.iter().all(|shard| held.contains(shard)) {
            self.short_since = None;
            return Wake::Nudged;
        }
        let uptime = self.ports.clock.uptime();
        let since = *self.short_since.get_or_insert(uptime);
        if uptime.saturating_sub(since) < REQUEST_FOR {
            Wake::At(now.plus(REQUEST_EVERY))
        } else {
            Wake::Nudged
        }
    }
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
        let is_new = answer.low_water.taken != leases.low_water.taken;
        if is_new || answer.epochs != leases.epochs {
            let before = leases.shards();
            leasing.hold(answer);
            if before.iter().any(|shard| !shards.contains(shard)) {
                leasing.store.hint(&[Hint::Leases]);
            }
        }
        Ok(self.wake(now, &wanted, &shards))
    }
}

const _: () = assert!(REQUEST_EVERY.as_millis() < limits::BEAT_EVERY.as_millis());
