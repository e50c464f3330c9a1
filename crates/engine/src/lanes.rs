//! Lanes: which of the due runs starts next. Each lane has its own queue; when all have runs
//! waiting they share by weight, so that none waits for ever and the critical one hardly waits.

use std::collections::VecDeque;

use model::Lane;

#[derive(Debug)]
pub struct Lanes<T> {
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
    pub fn push(&mut self, lane: Lane, item: T) {
        if let Some(queue) = self.queues.get_mut(lane.index()) {
            queue.push_back(item);
            self.len += 1;
        }
    }

    /// The next of each lane.
    pub fn fronts(&self) -> impl Iterator<Item = &T> {
        self.queues.iter().filter_map(VecDeque::front)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The next to start: the first lane that has both a run and credit; a new round when none has.
    pub fn pop(&mut self) -> Option<T> {
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
}
