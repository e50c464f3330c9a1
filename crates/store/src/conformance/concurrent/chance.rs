//! Chance that a seed repeats.

/// SplitMix64: small, and good enough to pick with.
pub(super) struct Chance(pub u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).cloned()
    }

    /// At most so many, each once, in no order.
    pub(super) fn some<T: Clone>(&mut self, from: &[T], most: usize) -> Vec<T> {
        let mut from = from.to_vec();
        let mut some = Vec::new();
        while !from.is_empty() && some.len() < most {
            some.push(from.swap_remove(self.below(from.len())));
        }
        some
    }
}
