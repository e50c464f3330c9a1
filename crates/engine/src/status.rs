//! How this node is, as it says with every beat.

use std::sync::Arc;

use model::Parts;
use store::{NodeStatus, Offset};

use crate::age::Age;
use crate::board::Board;
use crate::clock::Clock;
use crate::offset::Skew;
use crate::presence::Presence;
use crate::shards::Shards;

pub(crate) struct Status {
    pub parts: Parts,
    pub presence: Arc<Presence>,
    pub board: Arc<Board>,
    pub shards: Arc<Shards>,
    pub clock: Arc<dyn Clock>,
    pub skew: Skew,
}

impl Status {
    /// Whether shards may fall to it.
    pub(crate) fn schedules(&self) -> bool {
        self.parts.schedule && !self.presence.is_stopping() && self.skew.unfit().is_none()
    }

    /// Whether attempts may start here.
    pub(crate) fn may_start(&self) -> bool {
        self.parts.execute && !self.presence.is_stopping()
    }

    /// How many more attempts of an age could start here.
    pub(crate) fn free(&self, age: Age) -> usize {
        if self.may_start() {
            self.board.free(age)
        } else {
            0
        }
    }

    /// What is said of it with a beat.
    pub(crate) fn read(&self) -> NodeStatus {
        let micros = |seconds: f64| (seconds.clamp(-1e12, 1e12) * 1e6) as i64;
        let lateness = self.board.lateness(self.clock.now());
        NodeStatus {
            schedules: self.schedules(),
            executes: self.parts.execute && !self.board.is_closed(),
            room: u32::try_from(self.free(Age::OnTime)).unwrap_or(u32::MAX),
            lateness: u32::try_from(lateness.as_millis()).unwrap_or(u32::MAX),
            offset: self.skew.standing().map(|standing| Offset {
                ahead: micros(standing.wall),
                uncertainty: micros(standing.uncertainty),
            }),
            low_water: Some(self.shards.low_water()),
        }
    }
}
