//! Beats: once a second a node shows that it lives and how it is, and hears who else lives, what is asked of its
//! claims, and what time it is. Nothing else is done here, because everything else hangs on it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use model::{Mark, RunId, Timestamp, limits};
use store::{NodeStatus, Offset, StoreError};
use tracing::warn;

use crate::duty::{Duty, Wake};
use crate::flaw::Flaw;
use crate::handle::{Nudge, Shared};
use crate::lock;
use crate::node::Context;

/// A wall clock that moves this much against the other one was stepped.
const STEP_MIN: Duration = Duration::from_millis(500);
/// How long a beat waits for its answer: no longer than until the next one is due, which goes another way to the store.
const ANSWER_MAX: Duration = limits::BEAT_EVERY;

/// Beats that are asked for come no faster than this.
const GAP_MIN: Duration = Duration::from_millis(20);

/// What the last beat brought for others to act on.
#[derive(Debug, Default)]
pub struct Heard {
    /// Beats that were answered, ever.
    pub beats: u64,
    pub marks: Vec<(RunId, Mark)>,
}

pub struct Beats {
    context: Arc<Context>,
    /// Wall time less uptime, in milliseconds, at the last beat.
    offset: Option<i64>,
    /// When, by uptime, the last beat was sent.
    sent: Option<Duration>,
}

impl Beats {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
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
            let shared = &self.context.shared;
            shared.metrics.clock_steps.inc();
            shared.nudges.replan.store(true, Ordering::Release);
            shared.nudges.plan.now();
            shared.nudges.fire.now();
            shared.nudges.dispatch.now();
        }
    }
}

impl Context {
    /// How this node is.
    pub fn node_status(&self) -> NodeStatus {
        let (parts, shared) = (self.config.parts, &self.shared);
        let closed = self.dispatch.is_closed();
        let micros = |seconds: f64| (seconds.clamp(-1e12, 1e12) * 1e6) as i64;
        let standing = shared.offset.as_ref().map(|offset| offset.standing());
        NodeStatus {
            schedules: parts.schedule && !self.is_stopping() && shared.unfit().is_none(),
            executes: parts.execute && !closed,
            room: u32::try_from(self.free()).unwrap_or(u32::MAX),
            lag: u32::try_from(self.dispatch.lag(self.now()).as_millis()).unwrap_or(u32::MAX),
            offset: standing.map(|standing| Offset {
                ahead: micros(standing.wall),
                uncertainty: micros(standing.uncertainty),
            }),
        }
    }
}

#[async_trait]
impl Duty for Beats {
    fn name(&self) -> &'static str {
        "beats"
    }

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.beat
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let context = Arc::clone(&self.context);
        let shared = &context.shared;
        let node_status = context.node_status();
        let sent = shared.clock.uptime();
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
        if context.config.flaw == Flaw::SkipRenewal && lock(&context.heard).beats > 0 {
            return Ok(Wake::At(now.plus(limits::BEAT_EVERY)));
        }
        let was_present = context.is_present();
        let beat = tokio::select! {
            biased;
            beat = context.store.beat(context.presence.id, &node_status) => beat?,
            () = shared.clock.sleep(ANSWER_MAX) => {
                return Err(StoreError::unavailable("a beat was not answered in time"));
            }
        };
        context.presence.beaten(sent);
        let received = shared.clock.uptime();
        let last = beat.living.iter().map(|peer| (peer.presence, peer.mark));
        lock(&context.observer).observe(sent, received, last);
        if let Some(offset) = &shared.offset {
            offset.observe(sent, received, beat.took, beat.now_micros);
            shared.metrics.observe_clock(&offset.standing());
        }
        lock(&shared.health).present = true;
        if !was_present {
            // Whatever waited for the presence goes on.
            shared.nudges.dispatch.now();
            shared.nudges.fire.now();
        }
        shared.metrics.nodes.set(beat.living.len() as i64);
        shared.heard_of(context.presence.id, beat.living);
        {
            let mut heard = lock(&context.heard);
            heard.beats += 1;
            heard.marks = beat.marks;
        }
        shared.nudges.hold.now();
        shared.nudges.marks.now();
        shared.nudges.beaten.now();
        if context.node_status().schedules != node_status.schedules {
            // The first answer has told the time: others are to hear that shards may fall to this node.
            return Ok(Wake::Now);
        }
        // This beat may have set the clock, and every second is meant, whatever it shows.
        let left = (sent + limits::BEAT_EVERY).saturating_sub(shared.clock.uptime());
        Ok(Wake::At(context.now().plus(left)))
    }
}
