//! Beats: once a second a node shows that it lives and how it is, and hears who else lives, which marks are on its
//! claims, and what time it is. Nothing else is done here, because everything else hangs on it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use model::{Observer, Timestamp, limits};
use store::{Beat, EngineStore, NodeStatus, StoreError};
use tracing::warn;

use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::flaw::Flaw;
use crate::fleet::{Fleet, Marked};
use crate::handle::HealthRecord;
use crate::lock;
use crate::metrics::Metrics;
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::offset::Skew;
use crate::presence::Presence;
use crate::status::Status;

/// A wall clock that moves this much against the other one was stepped.
const STEP_MIN: Duration = Duration::from_millis(500);
/// How long a beat waits for its answer: no longer than until the next one is due, which goes another way to the store.
const ANSWER_MAX: Duration = limits::BEAT_EVERY;

/// Beats that are asked for come no faster than this.
const GAP_MIN: Duration = Duration::from_millis(20);

pub(crate) struct Ports {
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub status: Arc<Status>,
    pub skew: Skew,
    /// What a beat brings, to whoever acts on it.
    pub fleet: Arc<Fleet>,
    pub observer: Arc<Mutex<Observer>>,
    pub marked: Marked,
    pub health: Arc<Mutex<HealthRecord>>,
    pub offers: Offers,
    pub metrics: Metrics,
    pub flaw: Flaw,
    pub nudge: Nudge,
    pub fire: Nudge,
    pub dispatch: Nudge,
    pub hold: Nudge,
    pub marks: Nudge,
    pub beaten: Nudge,
}

pub(crate) struct Beats {
    ports: Ports,
    /// Wall time less uptime, in milliseconds, at the last beat.
    offset: Option<i64>,
    /// When, by uptime, the last beat was sent.
    sent: Option<Duration>,
}

impl Beats {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            offset: None,
            sent: None,
        }
    }

    /// Notices a step of the wall clock: what is due has to be looked at again.
    fn watch_clock(&mut self, now: Timestamp, uptime: Duration) {
        let offset = now.as_millis().saturating_sub(model::time::millis(uptime));
        let before = self.offset.replace(offset).unwrap_or(offset);
        let step = offset.saturating_sub(before);
        if step.unsigned_abs() >= STEP_MIN.as_millis() as u64 {
            warn!(milliseconds = step, "the wall clock was stepped");
            self.ports.metrics.clock_steps.inc();
            self.ports.offers.replan();
            self.ports.fire.now();
            self.ports.dispatch.now();
        }
    }
}

impl Ports {
    /// Sends a beat, and waits for its answer as long as it may take.
    async fn beat(&self, node_status: &NodeStatus) -> Result<Beat, StoreError> {
        tokio::select! {
            biased;
            beat = self.store.beat(self.presence.id, node_status) => beat,
            () = self.clock.sleep(ANSWER_MAX) => {
                Err(StoreError::unavailable("a beat was not answered in time"))
            }
        }
    }

    /// What a beat that was sent at this uptime brought goes to whoever acts on it.
    fn hear(&self, beat: Beat, sent: Duration) {
        let was_sure = self.presence.is_sure();
        self.presence.beaten(sent);
        let received = self.clock.uptime();
        let last = beat.living.iter().map(|peer| (peer.presence, peer.mark));
        lock(&self.observer).observe(sent, received, last);
        if let Some(standing) = self
            .skew
            .observe(sent, received, beat.took, beat.now_micros)
        {
            self.metrics.observe_clock(&standing);
        }
        lock(&self.health).present = true;
        if !was_sure {
            // Whatever waited for the presence goes on.
            self.dispatch.now();
            self.fire.now();
        }
        self.metrics.nodes.set(beat.living.len() as i64);
        *lock(&self.marked) = beat.marks;
        self.fleet.heard(self.presence.id, beat.living, sent);
        self.hold.now();
        self.marks.now();
        self.beaten.now();
    }
}

#[async_trait]
impl Duty for Beats {
    fn name(&self) -> &'static str {
        "beats"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let node_status = self.ports.status.read();
        let sent = self.ports.clock.uptime();
        let since = self
            .sent
            .map_or(GAP_MIN, |before| sent.saturating_sub(before));
        if since < GAP_MIN {
            // Wall time is whole milliseconds: anything less would be now.
            let left = (GAP_MIN - since).max(Duration::from_millis(1));
            return Ok(Wake::At(now.plus(left)));
        }
        self.sent = Some(sent);
        self.watch_clock(now, sent);
        let ports = &self.ports;
        if ports.flaw.skips_renewal() && ports.fleet.has_heard(ports.presence.id) {
            return Ok(Wake::At(now.plus(limits::BEAT_EVERY)));
        }
        let beat = ports.beat(&node_status).await?;
        ports.hear(beat, sent);
        if ports.status.schedules() != node_status.schedules {
            // The first answer sets the clock: others are to hear that shards may fall to this node.
            return Ok(Wake::Now);
        }
        // This beat may have set the clock, and every second is meant, whatever it shows.
        let left = (sent + limits::BEAT_EVERY).saturating_sub(ports.clock.uptime());
        Ok(Wake::At(ports.clock.now().plus(left)))
    }
}
