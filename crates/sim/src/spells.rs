//! When which node was not at its best, by uptime: what happened then has an excuse, and what happened without one
//! is held against the bounds.

use std::time::Duration;

/// Why a node could not be counted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ill {
    /// It does not run.
    Down,
    /// It stands still, or is cut off.
    Away,
    /// Its way to the store is bad, or it has yet to learn that the store's clock was stepped: it may hold what it
    /// cannot serve.
    Hurt,
    /// Its clock is so wrong that nothing falls to it.
    Unfit,
    /// It stops in good order, or is about to start again after that: nobody should feel it.
    Leaving,
}

#[derive(Debug, Clone, Copy)]
struct Spell {
    ill: Ill,
    from: Duration,
    to: Duration,
    /// Whether it is not the node's own trouble but the store's.
    shared: bool,
}

/// The spells of every node.
#[derive(Debug)]
pub struct Spells {
    nodes: Vec<Vec<Spell>>,
    /// Which of them fire.
    schedule: Vec<bool>,
}

impl Spells {
    /// Nobody runs yet.
    pub fn new(schedule: Vec<bool>) -> Self {
        let down = Spell {
            ill: Ill::Down,
            from: Duration::ZERO,
            to: Duration::MAX,
            shared: false,
        };
        Self {
            nodes: vec![vec![down]; schedule.len()],
            schedule,
        }
    }

    /// The node has a bad time, for ever unless it is said when it ends.
    pub fn begin(&mut self, node: usize, ill: Ill, from: Duration, to: Option<Duration>) {
        if let Some(spells) = self.nodes.get_mut(node) {
            let to = to.unwrap_or(Duration::MAX);
            let shared = false;
            spells.push(Spell {
                ill,
                from,
                to,
                shared,
            });
        }
    }

    /// It is the store that has one, and all feel it.
    pub fn begin_all(&mut self, ill: Ill, from: Duration, to: Duration) {
        let shared = true;
        for spells in &mut self.nodes {
            spells.push(Spell {
                ill,
                from,
                to,
                shared,
            });
        }
    }

    /// The node runs.
    pub fn up(&mut self, node: usize, now: Duration) {
        self.end(node, Ill::Down, now);
        self.end(node, Ill::Leaving, now);
    }

    /// Nothing hurts the node any more.
    pub fn calm(&mut self, node: usize, now: Duration) {
        self.end(node, Ill::Hurt, now);
        self.end(node, Ill::Unfit, now);
    }

    fn end(&mut self, node: usize, ill: Ill, now: Duration) {
        let spells = self.nodes.get_mut(node).into_iter().flatten();
        for spell in spells.filter(|spell| spell.ill == ill && spell.to > now) {
            spell.to = now.max(spell.from);
        }
    }

    /// Every moment at which a spell began or ended, in order.
    pub fn turns(&self) -> Vec<Duration> {
        let spells = self.nodes.iter().flatten();
        let mut turns: Vec<Duration> = spells.flat_map(|spell| [spell.from, spell.to]).collect();
        turns.sort_unstable();
        turns.dedup();
        turns
    }

    /// Since when a node that was well at `from` and stayed so until `to` has been well without a break; the longest
    /// of all nodes that fire. None when nobody was, or when another may have held what it could not serve.
    pub fn well_since(&self, from: Duration, to: Duration) -> Option<Duration> {
        let during = |spell: &&Spell| spell.from < to && spell.to > from;
        let mut spells = self.nodes.iter().flatten().filter(during);
        if spells.any(|spell| spell.ill == Ill::Hurt) {
            return None;
        }
        let of_node = |(spells, schedules): (&Vec<Spell>, &bool)| {
            let well = *schedules && !spells.iter().any(|spell| during(&spell));
            let before = spells.iter().filter(|spell| spell.to <= from);
            well.then(|| before.map(|spell| spell.to).max().unwrap_or_default())
        };
        let nodes = self.nodes.iter().zip(&self.schedule);
        nodes.filter_map(of_node).min()
    }

    /// Whether a node had no trouble of its own from `from` to `to`, whatever the store had.
    pub fn is_sound(&self, node: usize, from: Duration, to: Duration) -> bool {
        let spells = self.nodes.get(node).into_iter().flatten();
        let mut own = spells.filter(|spell| !spell.shared);
        !own.any(|spell| spell.from < to && spell.to > from)
    }

    /// From when on the store has been there for so long without a break, for everyone, after a moment.
    pub fn store_back_by(&self, from: Duration, span: Duration) -> Duration {
        let spells = self.nodes.first().into_iter().flatten();
        let mut outages: Vec<&Spell> = spells
            .filter(|it| it.shared && it.ill == Ill::Away)
            .collect();
        outages.sort_by_key(|outage| outage.from);
        outages.into_iter().fold(from, |back, outage| {
            if outage.from < back + span {
                back.max(outage.to)
            } else {
                back
            }
        })
    }

    /// Whether a node neither stood still nor was cut off from `from` to `to`.
    pub fn is_here(&self, node: usize, from: Duration, to: Duration) -> bool {
        let spells = self.nodes.get(node).into_iter().flatten();
        let mut away = spells.filter(|spell| spell.ill == Ill::Away);
        !away.any(|spell| spell.from < to && spell.to > from)
    }

    /// Whether every node that ran from `from` to `to` could hear and write down what it was called for.
    pub fn can_hear(&self, from: Duration, to: Duration) -> bool {
        let during = |spell: &&Spell| spell.from < to && spell.to > from;
        let mut spells = self.nodes.iter().flatten().filter(during);
        spells.all(|spell| match spell.ill {
            Ill::Down | Ill::Leaving => true,
            Ill::Away | Ill::Hurt | Ill::Unfit => false,
        })
    }

    /// Whether nothing went wrong from `from` to `to`, while one node at the least was there all the time; others may
    /// have left in good order, or come.
    pub fn peace(&self, from: Duration, to: Duration) -> bool {
        let during = |spell: &&Spell| spell.from < to && spell.to > from;
        let mut spells = self.nodes.iter().flatten().filter(during);
        spells.all(|spell| spell.ill == Ill::Leaving) && self.well_since(from, to).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn who_was_well_all_the_while_counts_from_its_last_spell() {
        let mut spells = Spells::new(vec![true; 2]);
        assert_eq!(spells.well_since(secs(1), secs(2)), None);
        spells.up(0, secs(1));
        spells.up(1, secs(2));
        spells.begin(0, Ill::Away, secs(5), Some(secs(8)));
        assert_eq!(spells.well_since(secs(3), secs(4)), Some(secs(1)));
        assert_eq!(spells.well_since(secs(3), secs(9)), Some(secs(2)));
        assert_eq!(spells.well_since(secs(8), secs(9)), Some(secs(2)));
        spells.begin(1, Ill::Down, secs(8), None);
        assert_eq!(spells.well_since(secs(8), secs(9)), Some(secs(8)));
        assert_eq!(spells.well_since(secs(9), secs(12)), Some(secs(8)));
        spells.begin(1, Ill::Hurt, secs(10), None);
        assert_eq!(spells.well_since(secs(9), secs(12)), None);
        spells.calm(1, secs(11));
        assert_eq!(spells.well_since(secs(11), secs(12)), Some(secs(8)));
        assert!(spells.turns().contains(&secs(11)));
    }

    #[test]
    fn a_store_that_is_away_again_at_once_is_not_back() {
        let mut spells = Spells::new(vec![true; 2]);
        for (from, to) in [(1, 2), (15, 16), (4, 8), (10, 12)] {
            spells.begin_all(Ill::Away, secs(from), secs(to));
        }
        spells.begin_all(Ill::Hurt, secs(3), secs(9));
        spells.begin(0, Ill::Away, secs(3), Some(secs(9)));
        assert_eq!(spells.store_back_by(secs(0), secs(1)), secs(0));
        assert_eq!(spells.store_back_by(secs(2), secs(2)), secs(2));
        assert_eq!(spells.store_back_by(secs(2), secs(3)), secs(12));
        assert_eq!(spells.store_back_by(secs(5), secs(2)), secs(8));
        assert_eq!(spells.store_back_by(secs(20), secs(9)), secs(20));
    }

    #[test]
    fn who_leaves_in_good_order_does_not_break_the_peace() {
        let mut spells = Spells::new(vec![true, true, false]);
        for node in 0..3 {
            spells.up(node, secs(1));
        }
        assert!(spells.peace(secs(1), secs(9)));
        spells.begin(0, Ill::Leaving, secs(3), None);
        assert!(spells.peace(secs(1), secs(9)));
        spells.begin(1, Ill::Leaving, secs(5), None);
        assert!(!spells.peace(secs(1), secs(9)), "nobody who fires is left");
        spells.up(1, secs(6));
        assert!(spells.peace(secs(6), secs(9)));
        spells.begin(2, Ill::Away, secs(8), Some(secs(10)));
        assert!(!spells.peace(secs(6), secs(9)));
    }
}
