//! Take: runs that others leave go to whoever has hands free. A node that schedules without executing leaves all of
//! its runs, a busy one those that it has no room for; they are taken ahead of their due time, so that they start
//! on the moment wherever they start.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use model::{Job, Lane, Run, Timestamp, limits};
use store::{Settlement, StoreError};

use crate::dispatch::Work;
use crate::duty::{Duty, Wake};
use crate::handle::{Nudge, Shared};
use crate::lock;
use crate::node::Context;

/// How far ahead runs are taken.
const AHEAD: Duration = Duration::from_secs(1);
/// How often to look, without a hint.
const EVERY: Duration = Duration::from_millis(250);
/// How soon to look again while nothing is to be written.
const PAUSE: Duration = Duration::from_millis(5);
/// Runs taken at once: few enough that several nodes share them.
const BATCH: usize = 200;

type Answer = Result<Vec<(Run, Arc<Job>)>, StoreError>;

pub struct Take {
    context: Arc<Context>,
    /// Lanes that had as many as were asked for, the last time.
    full: [bool; Lane::COUNT],
}

impl Take {
    pub fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            full: [true; Lane::COUNT],
        }
    }

    /// Gives what was taken to dispatch. Answers how many of each lane can start here, and what is to be handed back.
    fn accept(
        &self,
        answer: Answer,
    ) -> Result<([usize; Lane::COUNT], Vec<Settlement>), StoreError> {
        let context = &self.context;
        // The wheel's lock is kept until dispatch knows them: settle must not end one of these in between.
        let mut wheel = lock(&context.wheel);
        let ended = wheel.end_taking();
        let taken = match answer {
            Ok(taken) => taken,
            Err(error) => {
                // They may be ours: then the store has them under our name.
                context.shared.nudges.compare.store(true, Ordering::Release);
                context.shared.nudges.watchdog.now();
                return Err(error);
            }
        };
        let mut counts = [0; Lane::COUNT];
        for (run, _) in taken.iter().filter(|(_, job)| context.can_execute(job)) {
            if let Some(count) = counts.get_mut(run.lane.index()) {
                *count += 1;
            }
        }
        let stands = |run: &Run| ended.get(&run.id).is_none_or(|ended| *ended < run.attempt);
        let taken = taken.into_iter().filter(|(run, _)| stands(run));
        let works: Vec<Work> = taken.map(|(run, job)| Work::new(run, job)).collect();
        if works.is_empty() {
            return Ok((counts, Vec::new()));
        }
        let beyond = context.take_claimed(works, context.now());
        context.shared.nudges.dispatch.now();
        Ok((counts, beyond))
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
impl Duty for Take {
    fn name(&self) -> &'static str {
        "take"
    }

    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge {
        &shared.nudges.take
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        let context = Arc::clone(&self.context);
        let left = *lock(&context.left);
        if left.is_empty() || !context.has_heard() || !context.may_start() {
            return Ok(Wake::At(now.plus(limits::SLEEP_MAX)));
        }
        if context.is_pausing() {
            return Ok(Wake::At(now.plus(PAUSE)));
        }
        let asked = shares(context.free().min(BATCH), self.full);
        if asked == [0; Lane::COUNT] {
            return Ok(Wake::At(now.plus(EVERY)));
        }
        // What is beyond this node may stand before what it can execute.
        let beyond = context.beyond.len(context.shared.clock.uptime());
        let room = asked.map(|share| share + beyond);
        let me = context.presence.id;
        lock(&context.wheel).begin_taking();
        let up_to = now.plus(AHEAD);
        let answer = context.store.take(me, &left, up_to, room).await;
        let (counts, beyond) = self.accept(answer)?;
        context.hand_back(beyond).await;
        for ((full, count), asked) in self.full.iter_mut().zip(counts).zip(asked) {
            *full = count >= asked;
        }
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
    fn lanes_share_by_weight_and_those_with_few_ask_for_one() {
        assert_eq!(shares(210, [true; 3]), [160, 40, 10]);
        assert_eq!(shares(200, [false, true, false]), [1, 200, 1]);
        assert_eq!(shares(10, [false; 3]), [1, 1, 1]);
        assert_eq!(shares(0, [true; 3]), [0, 0, 0]);
    }
}
