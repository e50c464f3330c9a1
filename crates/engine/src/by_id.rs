//! Maps by id. Ids end in 62 random bits, so those bits are the hash: no second one is worked out.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type MapById<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;
pub(crate) type SetById<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

/// Takes the last eight bytes it is given.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(tail) = bytes.last_chunk() {
            // The variant's two bits are the same in every id: turned to the middle they do no harm.
            self.0 = u64::from_be_bytes(*tail).rotate_left(32);
        }
    }

    /// The length that comes before the bytes says nothing.
    fn write_usize(&mut self, _length: usize) {}
}

#[cfg(test)]
mod tests {
    use model::{JobId, Timestamp};

    use super::*;

    #[test]
    fn ids_spread_over_the_map() {
        let mut set = SetById::default();
        let mut low = HashSet::new();
        for number in 0..1_000_u64 {
            let mut chance = [0; 10];
            chance[2..].copy_from_slice(&model::hash::hash(1, &[number]).to_be_bytes());
            let id = JobId::new(Timestamp::MIN, chance);
            assert!(set.insert(id));
            let mut hasher = IdHasher::default();
            std::hash::Hash::hash(&id, &mut hasher);
            low.insert(hasher.finish() % 1_024);
        }
        assert_eq!(set.len(), 1_000);
        assert!(low.len() > 550, "{}", low.len());
    }
}
