//! Shards: fixed slices of jobs, and which node holds which.

use crate::hash::hash;
use crate::id::{JobId, PresenceId};

/// One of [`Shard::COUNT`] slices of all jobs. A job's shard never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub u8);

impl Shard {
    pub const COUNT: usize = 256;

    pub fn of(job: JobId) -> Self {
        Self((job.hash() >> 56) as u8)
    }

    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// Rendezvous hashing: of the nodes that live, the one that draws highest for this shard.
    /// A node that comes or goes moves only its own share.
    pub fn owner(self, nodes: &[PresenceId]) -> Option<PresenceId> {
        nodes.iter().copied().max_by_key(|node| {
            let (high, low) = node.0.as_u64_pair();
            (hash(u64::from(self.0), &[high, low]), *node)
        })
    }
}

/// A set of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardSet([u64; 4]);

impl ShardSet {
    pub const ALL: Self = Self([u64::MAX; 4]);

    pub fn insert(&mut self, shard: Shard) {
        if let Some(word) = self.0.get_mut(usize::from(shard.0 >> 6)) {
            *word |= 1 << (shard.0 & 63);
        }
    }

    pub fn contains(&self, shard: Shard) -> bool {
        self.0
            .get(usize::from(shard.0 >> 6))
            .is_some_and(|word| word >> (shard.0 & 63) & 1 == 1)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_all(&self) -> bool {
        *self == Self::ALL
    }

    pub fn iter(&self) -> impl Iterator<Item = Shard> + '_ {
        Shard::all().filter(|shard| self.contains(*shard))
    }
}

impl FromIterator<Shard> for ShardSet {
    fn from_iter<I: IntoIterator<Item = Shard>>(shards: I) -> Self {
        let mut set = Self::default();
        for shard in shards {
            set.insert(shard);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn nodes(count: u8) -> Vec<PresenceId> {
        (0..count)
            .map(|n| PresenceId::new(Timestamp::from_millis(1), [n; 10]))
            .collect()
    }

    #[test]
    fn a_lost_node_moves_only_its_share() {
        let (five, four) = (nodes(5), nodes(4));
        for shard in Shard::all() {
            let before = shard.owner(&five);
            if before != five.last().copied() {
                assert_eq!(shard.owner(&four), before);
            }
        }
    }

    #[test]
    fn shares_are_even_enough() {
        let nodes = nodes(4);
        for node in &nodes {
            let share = Shard::all()
                .filter(|shard| shard.owner(&nodes) == Some(*node))
                .count();
            assert!((40..=90).contains(&share), "{share}");
        }
        assert_eq!(Shard(3).owner(&[]), None);
    }

    #[test]
    fn a_shard_set_holds_what_was_put_in() {
        let set: ShardSet = [Shard(0), Shard(63), Shard(64), Shard(255)]
            .into_iter()
            .collect();
        assert_eq!(set.len(), 4);
        assert_eq!(
            set.iter().map(|shard| shard.0).collect::<Vec<_>>(),
            [0, 63, 64, 255]
        );
        assert!(ShardSet::ALL.is_all() && !set.is_all());
    }
}
