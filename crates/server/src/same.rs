//! Whether two secrets are the same, or what was made of them. How long that takes says nothing of where they differ.

use subtle::ConstantTimeEq;

pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Duration;

    use engine::{Clock, SystemClock};

    use super::*;

    /// So many bytes that whoever stops at the first that differs is faster by a thousand times than whoever reads them all.
    const BYTES: usize = 1 << 20;
    /// Of all the times the least counts: whatever else the machine does only adds to them.
    const ROUNDS: usize = 20;

    fn timed(one: &[u8], other: &[u8]) -> Duration {
        let begun = SystemClock.uptime();
        assert!(!is_same(black_box(one), black_box(other)));
        SystemClock.uptime().saturating_sub(begun)
    }

    #[test]
    fn how_long_it_takes_does_not_say_where_they_differ() {
        let kept = vec![7; BYTES];
        let mut wrong = [kept.clone(), kept.clone(), kept.clone()];
        for (other, at) in wrong.iter_mut().zip([0, BYTES / 2, BYTES - 1]) {
            other[at] = 8;
        }
        let mut least = [Duration::MAX; 3];
        for _ in 0..ROUNDS {
            for (other, least) in wrong.iter().zip(&mut least) {
                *least = (*least).min(timed(&kept, other));
            }
        }
        let (quick, slow) = (least.iter().min().unwrap(), least.iter().max().unwrap());
        assert!(*slow < *quick * 2, "{least:?}");
        assert!(is_same(&kept, &kept.clone()));
        assert!(!is_same(&kept, &kept[1..]) && !is_same(&[], &kept));
    }
}
