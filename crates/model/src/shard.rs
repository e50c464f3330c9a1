//! Shards: fixed slices of jobs, and which node holds which.

use std::collections::{BTreeMap, BTreeSet};

use crate::hash::hash;
use crate::id::{JobId, PresenceId, ReplayId};

/// One of [`Shard::COUNT`] slices of all jobs. A job's shard never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub u8);

impl Shard {
    pub const COUNT: usize = 256;

    /// That of a replay: its holder works on it.
    pub fn of_replay(replay: ReplayId) -> Self {
        Self::of(JobId(replay.0))
    }

    pub fn of(job: JobId) -> Self {
        Self((job.hash() >> 56) as u8)
    }

    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map(Self)
    }

    /// What a node weighs for this shard.
    fn weight(self, node: PresenceId) -> u64 {
        let (high, low) = node.0.as_u64_pair();
        hash(u64::from(self.0), &[high, low])
    }
}

/// Who holds which shard: rendezvous hashing, but nobody gets more than a fair share. The pairs that weigh most go first;
/// a node that has its share gets no more. So shares differ by one at most, and when a node comes or goes its own share
/// moves, and little else. Every node answers the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shares(BTreeMap<Shard, PresenceId>);

impl Shares {
    pub fn among(nodes: &[PresenceId]) -> Self {
        let nodes: BTreeSet<PresenceId> = nodes.iter().copied().collect();
        let pairs = nodes
            .iter()
            .flat_map(|node| Shard::all().map(|shard| (shard.weight(*node), shard, *node)));
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort_unstable_by(|one, other| other.cmp(one));
        let share = Shard::COUNT / nodes.len().max(1);
        // As many nodes get one more.
        let mut left_over = Shard::COUNT - share * nodes.len();
        let mut counts: BTreeMap<PresenceId, usize> = BTreeMap::new();
        let mut shares = Self::default();
        for (_, shard, node) in pairs {
            let count = counts.entry(node).or_default();
            let more = *count == share && left_over > 0;
            if (*count < share || more) && !shares.0.contains_key(&shard) {
                left_over -= usize::from(more);
                *count += 1;
                shares.0.insert(shard, node);
            }
        }
        shares
    }

    /// Nobody's, if there are no nodes.
    pub fn owner(&self, shard: Shard) -> Option<PresenceId> {
        self.0.get(&shard).copied()
    }

    pub fn of(&self, node: PresenceId) -> ShardSet {
        let theirs = self.0.iter().filter(|(_, owner)| **owner == node);
        theirs.map(|(shard, _)| *shard).collect()
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

    /// Whether all of the others are in it.
    pub fn covers(&self, others: &Self) -> bool {
        let mut words = self.0.iter().zip(others.0);
        words.all(|(word, other)| other & !word == 0)
    }

    pub fn extend(&mut self, others: &Self) {
        for (word, other) in self.0.iter_mut().zip(others.0) {
            *word |= other;
        }
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
    fn a_lost_node_moves_its_share_and_little_else() {
        for count in [2, 3, 5, 10, 50] {
            let all = nodes(count);
            let (before, after) = (Shares::among(&all), Shares::among(&nodes(count - 1)));
            let moved = Shard::all().filter(|shard| before.owner(*shard) != after.owner(*shard));
            let (moved, share) = (moved.count(), Shard::COUNT / usize::from(count));
            assert!(
                (share..=share * 2 + 20).contains(&moved),
                "{count}: {moved}"
            );
        }
    }

    #[test]
    fn shares_differ_by_one_at_most() {
        for count in [1, 2, 3, 7, 50, 200, 255] {
            let nodes = nodes(count);
            let shares = Shares::among(&nodes);
            let mut all = ShardSet::default();
            for node in &nodes {
                let theirs = shares.of(*node);
                let mean = Shard::COUNT / nodes.len();
                assert!((mean..=mean + 1).contains(&theirs.len()), "{count}");
                theirs.iter().for_each(|shard| all.insert(shard));
            }
            assert!(all.is_all());
        }
        assert_eq!(Shares::among(&[]).owner(Shard(3)), None);
    }

    #[test]
    fn every_node_computes_the_same_owner() {
        let mut nodes = nodes(50);
        let shares = Shares::among(&nodes);
        nodes.reverse();
        assert_eq!(Shares::among(&nodes), shares);
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
