//! Claim due: runs that others leave go to whoever has hands free. A node that schedules without executing leaves all of
//! its runs, a busy one those that it has no room for; they are taken ahead of their due time, so that they start
//! on the moment wherever they start. What is on time goes before the backlog, which still moves while both wait.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{Job, Lane, Run, Timestamp, limits};
use store::{DueRoom, EngineStore, Settlement, StoreError};

use crate::age::{Age, on_time_from};
use crate::board::{Board, Work};
use crate::clock::Clock;
use crate::desk::Endings;
use crate::duty::{Duty, Wake};
use crate::executors::Executors;
use crate::fleet::Fleet;
use crate::nudge::{Nudge, Request};
use crate::presence::Presence;
use crate::shards::Shards;
use crate::status::Status;

/// How far ahead runs are taken.
const AHEAD: Duration = Duration::from_secs(1);
/// How often to look, without a hint.
const EVERY: Duration = Duration::from_millis(250);
/// How soon to look again while nothing is to be written.
const PAUSE: Duration = Duration::from_millis(5);
/// Runs taken at once: few enough that several nodes share them.
const BATCH: usize = 200;
/// While what is on time fills all there is, it goes first so many times for each time that the earliest do.
const ON_TIME_TURNS: u32 = 15;

/// What was claimed and can start here.
#[derive(Default)]
struct Claimed {
    by_lane: [usize; Lane::COUNT],
    has_backlog: bool,
}

type Answer = Result<Vec<(Run, Arc<Job>)>, StoreError>;

pub(crate) struct Ports {
    pub board: Arc<Board>,
    pub store: Arc<dyn EngineStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub fleet: Arc<Fleet>,
    pub status: Arc<Status>,
    pub executors: Arc<Executors>,
    pub endings: Endings,
    /// Claims are to be compared: some may have been made that nobody here knows of.
    pub compare: Request,
    pub nudge: Nudge,
    pub dispatch: Nudge,
}

pub(crate) struct ClaimDue {
    ports: Ports,
    /// Lanes that had as many as were requested, the last time.
    full: [bool; Lane::COUNT],
    /// How many times in a row what is on time has filled all there was.
    turns: u32,
}

impl ClaimDue {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            full: [true; Lane::COUNT],
            turns: 0,
        }
    }

    /// What to claim, and how many of a lane say that it has more; none when nothing more can start here.
    fn compute_room(&self, now: Timestamp) -> Option<([usize; Lane::COUNT], DueRoom)> {
        let Ports {
            status, executors, ..
        } = &self.ports;
        let wanted = |age| shares(status.free(age).min(BATCH), self.full);
        let (on_time, backlog) = (wanted(Age::OnTime), wanted(Age::Backlog));
        if on_time == [0; Lane::COUNT] {
            return None;
        }
        // What is beyond this node may stand before what it can execute.
        let beyond = executors.count_beyond();
        let with_beyond = |share| if share > 0 { share + beyond } else { 0 };
        let up_to = now.plus(AHEAD);
        let room = DueRoom {
            on_time_from: on_time_from(now),
            up_to,
            room: on_time.map(with_beyond),
            backlog: backlog.map(with_beyond),
        };
        if backlog == [0; Lane::COUNT] {
            Some((on_time, room))
        } else if self.turns < ON_TIME_TURNS {
            Some((backlog, room))
        } else {
            Some((backlog, DueRoom::for_earliest(up_to, room.backlog)))
        }
    }

    /// Gives what was taken to dispatch. Answers what can start here, and what is to be handed back.
    fn accept(&self, answer: Answer) -> Result<(Claimed, Vec<Settlement>), StoreError> {
        let Ports {
            board,
            clock,
            executors,
            ..
        } = &self.ports;
        let claimed = match answer {
            Ok(claimed) => claimed,
            Err(error) => {
                board.claimed_due(Vec::new(), Vec::new(), clock.now());
                // They may be ours: then the store has them under our name.
                self.ports.compare.make();
                return Err(error);
            }
        };
        let now = clock.now();
        let works = claimed.into_iter();
        let works = works.map(|(run, job)| Work::new(run, job, now));
        let (works, beyond) = executors.sort(works.collect());
        let mut claimed = Claimed::default();
        for work in &works {
            if let Some(count) = claimed.by_lane.get_mut(work.run.lane.index()) {
                *count += 1;
            }
            claimed.has_backlog |= Age::of(work.run.due_at, now) == Age::Backlog;
        }
        let back = board.claimed_due(works, beyond, now);
        self.ports.dispatch.now();
        Ok((claimed, back))
    }
}

/// How many of each lane: by weight among those that have many, one of each other.
fn shares(room: usize, full: [bool; Lane::COUNT]) -> [usize; Lane::COUNT] {
    let weigh = |(lane, full): (Lane, bool)| if full { lane.weight() as usize } else { 0 };
    let weights = Lane::ALL.into_iter().zip(full).map(weigh);
    let all: usize = weights.clone().sum();
    let mut shares = [usize::from(room > 0); Lane::COUNT];
    for (share, weight) in shares.iter_mut().zip(weights) {
        *share = (*share).max(room * weight / all.max(1));
    }
    shares
}

#[async_trait]
impl Duty for ClaimDue {
    fn name(&self) -> &'static str {
        "claim_due"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let Ports {
            presence, shards, ..
        } = &self.ports;
        let left = shards.left();
        let may_start = self.ports.status.may_start() && presence.is_sure();
        if left.is_empty() || !self.ports.fleet.has_heard(presence.id) || !may_start {
            return Ok(Wake::At(now.plus(limits::SLEEP_MAX)));
        }
        if shards.is_pausing() {
            return Ok(Wake::At(now.plus(PAUSE)));
        }
        let Some((wanted, room)) = self.compute_room(now) else {
            return Ok(Wake::At(now.plus(EVERY)));
        };
        let Ports {
            board,
            store,
            presence,
            ..
        } = &self.ports;
        board.begin_claiming_due();
        let answer = store.claim_due(presence.id, &left, room).await;
        let (claimed, back) = self.accept(answer)?;
        // Settle is gone only with the presence.
        let _gone = self.ports.endings.send_all(back).await;
        for ((full, count), wanted) in self.full.iter_mut().zip(claimed.by_lane).zip(wanted) {
            *full = count >= wanted;
        }
        let is_alone = self.full.contains(&true) && !claimed.has_backlog;
        self.turns = if is_alone { self.turns + 1 } else { 0 };
        let more = self.full.contains(&true);
        Ok(if more {
            Wake::Now
        } else {
            Wake::At(now.plus(EVERY))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_share_by_weight_and_those_with_few_want_one() {
        assert_eq!(shares(210, [true; 3]), [160, 40, 10]);
        assert_eq!(shares(200, [false, true, false]), [1, 200, 1]);
        assert_eq!(shares(10, [false; 3]), [1, 1, 1]);
        assert_eq!(shares(0, [true; 3]), [0, 0, 0]);
    }
}
