//! One hash for names, shards and spreads. It may never change: ids and shards are derived from it,
//! and vectors in the tests pin it.

/// A 64-bit hash of a few words: each is folded in by a full 128-bit multiply.
pub fn hash(seed: u64, words: &[u64]) -> u64 {
    let mut state = fold(seed ^ 0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9);
    for (index, word) in words.iter().enumerate() {
        let position = (index as u64 + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
        state = fold(state ^ word, position | 1) ^ state.rotate_left(23);
    }
    finish(state)
}

/// The same over bytes: length first, then eight at a time.
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = hash(seed, &[bytes.len() as u64]);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(chunk) {
            *to = *from;
        }
        state = hash(state, &[u64::from_le_bytes(word)]);
    }
    state
}

fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    (wide as u64) ^ ((wide >> 64) as u64)
}

fn finish(mut state: u64) -> u64 {
    state ^= state >> 30;
    state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state ^= state >> 27;
    state = state.wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(hash(0, &[]), 2_931_509_567_487_250_656);
        assert_eq!(hash(1, &[2, 3]), 3_345_853_028_078_519_649);
        assert_eq!(hash_bytes(0, b"punctual"), 10_308_848_820_062_243_677);
    }

    #[test]
    fn neighbours_land_far_apart() {
        let mut buckets = [0_u32; 256];
        for word in 0..65_536 {
            buckets[(hash(7, &[word]) % 256) as usize] += 1;
        }
        assert!(
            buckets.iter().all(|count| (180..=340).contains(count)),
            "{buckets:?}"
        );
    }
}
