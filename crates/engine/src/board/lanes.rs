//! Lanes: which of the due runs starts next. Each lane has its own queue; when all have runs
//! waiting they share by weight, so that none waits for ever and the critical one hardly waits. The backlog has lanes of
//! its own: it starts when nothing that is on time waits, and now and then in between.

use std::collections::VecDeque;

use model::Lane;

use crate::age::{Age, ByAge};

/// While both wait, so many on-time runs start for each of the backlog.
const ON_TIME_TURNS: u32 = 15;

#[derive(Debug)]
pub(super) struct Lanes<T> {
    queues: [VecDeque<T>; 3],
    /// What each lane may still start in this round.
    credit: [u32; 3],
    len: usize,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self {
            queues: Default::default(),
            credit: Lane::ALL.map(Lane::weight),
            len: 0,
        }
    }
}

impl<T> Lanes<T> {
    pub(super) fn push(&mut self, lane: Lane, item: T) {
        if let Some(queue) = self.queues.get_mut(lane.index()) {
            queue.push_back(item);
            self.len += 1;
        }
    }

    /// Before all others of its lane.
    pub(super) fn push_front(&mut self, lane: Lane, item: T) {
        if let Some(queue) = self.queues.get_mut(lane.index()) {
            queue.push_front(item);
            self.len += 1;
        }
    }

    /// Keeps only these.
    fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        for queue in &mut self.queues {
            queue.retain(&keeps);
        }
        self.len = self.queues.iter().map(VecDeque::len).sum();
    }

    /// The next of each lane.
    pub(super) fn fronts(&self) -> impl Iterator<Item = &T> {
        self.queues.iter().filter_map(VecDeque::front)
    }

    fn of(&self, lane: Lane) -> Option<&VecDeque<T>> {
        self.queues.get(lane.index())
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next to start: the first lane that has both a run and credit; a new round when none has.
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        for _ in 0..2 {
            for (queue, credit) in self.queues.iter_mut().zip(&mut self.credit) {
                if *credit > 0
                    && let Some(item) = queue.pop_front()
                {
                    *credit -= 1;
                    self.len -= 1;
                    return Some(item);
                }
            }
            self.credit = Lane::ALL.map(Lane::weight);
        }
        None
    }
}

/// Lanes for what is on time, and for the backlog.
#[derive(Debug)]
pub(crate) struct Queues<T> {
    lanes: ByAge<Lanes<T>>,
    /// On-time runs that have started while the backlog waited.
    turns: u32,
}

impl<T> Default for Queues<T> {
    fn default() -> Self {
        Self {
            lanes: ByAge {
                on_time: Lanes::default(),
                backlog: Lanes::default(),
            },
            turns: 0,
        }
    }
}

impl<T> Queues<T> {
    pub(crate) fn push(&mut self, age: Age, lane: Lane, item: T) {
        self.lanes.get_mut(age).push(lane, item);
    }

    pub(super) fn push_front(&mut self, age: Age, lane: Lane, item: T) {
        self.lanes.get_mut(age).push_front(lane, item);
    }

    /// The next of each lane.
    pub(super) fn fronts(&self) -> impl Iterator<Item = &T> {
        let ByAge { on_time, backlog } = &self.lanes;
        on_time.fronts().chain(backlog.fronts())
    }

    /// What waits in one lane: that which is on time, and the backlog.
    pub(super) fn of_lane(&self, lane: Lane) -> impl Iterator<Item = &VecDeque<T>> {
        let ByAge { on_time, backlog } = &self.lanes;
        on_time.of(lane).into_iter().chain(backlog.of(lane))
    }

    /// Keeps only these.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        self.lanes.on_time.retain(&keeps);
        self.lanes.backlog.retain(&keeps);
    }

    pub(super) fn of(&self, age: Age) -> &Lanes<T> {
        self.lanes.get(age)
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.on_time.len() + self.lanes.backlog.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next to start; of the backlog only if it may have more under way.
    pub(crate) fn pop(&mut self, backlog_may: bool) -> Option<(Age, T)> {
        let backlog = &mut self.lanes.backlog;
        let waits = backlog_may && !backlog.is_empty();
        if waits && self.turns >= ON_TIME_TURNS {
            self.turns = 0;
            return backlog.pop().map(|item| (Age::Backlog, item));
        }
        if let Some(item) = self.lanes.on_time.pop() {
            self.turns += u32::from(waits);
            return Some((Age::OnTime, item));
        }
        let next = if waits { backlog.pop() } else { None };
        next.map(|item| (Age::Backlog, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_share_by_weight_and_none_starves() {
        let mut lanes = Lanes::default();
        for _ in 0..100 {
            for lane in Lane::ALL {
                lanes.push(lane, lane);
            }
        }
        let round: Vec<Lane> = (0..21).filter_map(|_| lanes.pop()).collect();
        let count = |lane| round.iter().filter(|popped| **popped == lane).count();
        assert_eq!(
            (
                count(Lane::Critical),
                count(Lane::Standard),
                count(Lane::Batch)
            ),
            (16, 4, 1)
        );
    }

    #[test]
    fn a_lane_alone_gets_everything() {
        let mut lanes = Lanes::default();
        for number in 0..100 {
            lanes.push(Lane::Batch, number);
        }
        assert_eq!(
            (0..100).filter_map(|_| lanes.pop()).collect::<Vec<_>>(),
            (0..100).collect::<Vec<_>>()
        );
        assert_eq!(lanes.pop(), None);
    }

    #[test]
    fn what_is_on_time_starts_before_an_older_backlog_which_still_moves() {
        let mut queues = Queues::default();
        for _ in 0..1_000 {
            queues.push(Age::Backlog, Lane::Critical, Age::Backlog);
            queues.push(Age::OnTime, Lane::Batch, Age::OnTime);
        }
        let popped: Vec<Age> = (0..160)
            .filter_map(|_| queues.pop(true))
            .map(|(age, _)| age)
            .collect();
        let backlog = popped.iter().filter(|age| **age == Age::Backlog).count();
        assert_eq!(popped[0], Age::OnTime);
        assert_eq!(backlog, 10);
    }

    #[test]
    fn a_backlog_that_has_enough_under_way_waits() {
        let mut queues = Queues::default();
        queues.push(Age::Backlog, Lane::Critical, 1);
        assert_eq!(queues.pop(false), None);
        queues.push(Age::OnTime, Lane::Batch, 2);
        assert_eq!(queues.pop(false), Some((Age::OnTime, 2)));
        assert_eq!(queues.pop(true), Some((Age::Backlog, 1)));
        assert!(queues.is_empty());
    }
}
