//! How fast clients may call. Each key and each address has a bucket of one second's worth of requests that fills at a
//! steady rate; what a bucket holds is one moment: when it will be full again (the generic cell rate algorithm).
//!
//! What always holds: memory is bounded, whatever clients call themselves; a bucket that is full again is forgotten, which
//! changes nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::KeyId;

/// Buckets of one kind that are remembered.
const BUCKETS_MAX: usize = 65_536;
/// How often buckets that are full again are looked for, when there is no room for more.
const SWEEP_APART: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

/// Requests a second; 0 means that there is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RatesMax {
    pub of_key: u32,
    pub of_address: u32,
    /// Requests without a valid key, from one address.
    pub of_refused: u32,
}

pub struct Rates {
    pub(crate) by_key: Limiter<KeyId>,
    pub(crate) by_address: Limiter<IpAddr>,
    pub(crate) refused: Limiter<IpAddr>,
}

impl Rates {
    pub fn new(max: RatesMax) -> Self {
        Self {
            by_key: Limiter::new("key", max.of_key),
            by_address: Limiter::new("address", max.of_address),
            refused: Limiter::new("refused", max.of_refused),
        }
    }
}

/// Whoever has a network of its own has 2⁶⁴ addresses of the new kind: they are one.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = u128::from(address) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(network))
        }
    }
}

/// How somebody stands to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What is bounded.
    pub name: &'static str,
    /// Requests a second.
    pub max: u32,
    /// Requests that may come at once.
    pub left: u32,
    /// How long until one may.
    pub wait: Duration,
}

impl Standing {
    pub(crate) fn is_spent(&self) -> bool {
        !self.wait.is_zero()
    }
}

pub(crate) struct Limiter<K> {
    name: &'static str,
    max: u32,
    /// In which one request's worth comes back.
    step: Duration,
    buckets: Mutex<Buckets<K>>,
}

struct Buckets<K> {
    /// When each will be full again.
    full_at: BTreeMap<K, Duration>,
    swept_at: Duration,
}

impl<K: Ord + Copy> Limiter<K> {
    fn new(name: &'static str, max: u32) -> Self {
        Self {
            name,
            max,
            step: SECOND / max.max(1),
            buckets: Mutex::new(Buckets {
                full_at: BTreeMap::new(),
                swept_at: Duration::ZERO,
            }),
        }
    }

    /// One more request, if there is room for it. None where nothing is bounded.
    pub(crate) fn take(&self, who: K, now: Duration) -> Option<Standing> {
        if self.max == 0 {
            return None;
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = buckets.full_at.get(&who).copied();
        let after = full_at.map_or(now, |at| at.max(now)) + self.step;
        let wait = after.saturating_sub(now + SECOND);
        if wait.is_zero() {
            buckets.make_room(now);
            buckets.full_at.insert(who, after);
        }
        let free = SECOND.saturating_sub(after.saturating_sub(now));
        let left = free.as_nanos() / self.step.as_nanos().max(1);
        Some(Standing {
            name: self.name,
            max: self.max,
            left: u32::try_from(left).unwrap_or(self.max),
            wait,
        })
    }
}

impl<K: Ord + Copy> Buckets<K> {
    /// Forgets those that are full again; if there are none, or it was just done, any one.
    fn make_room(&mut self, now: Duration) {
        if self.full_at.len() < BUCKETS_MAX {
            return;
        }
        if now.saturating_sub(self.swept_at) >= SWEEP_APART {
            self.swept_at = now;
            self.full_at.retain(|_, at| *at > now);
        }
        if self.full_at.len() >= BUCKETS_MAX {
            self.full_at.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn passes(limiter: &Limiter<u32>, who: u32, at: Duration) -> bool {
        !limiter.take(who, at).unwrap().is_spent()
    }

    #[test]
    fn a_second_s_worth_may_come_at_once_and_then_as_many_as_come_back() {
        let limiter = Limiter::new("key", 10);
        let passed = (0..50).filter(|_| passes(&limiter, 1, ms(5_000))).count();
        assert_eq!(passed, 10);
        let spent = limiter.take(1, ms(5_000)).unwrap();
        assert_eq!((spent.left, spent.wait), (0, ms(100)));
        assert!(passes(&limiter, 2, ms(5_000)), "another has its own");
        assert!(!passes(&limiter, 1, ms(5_099)));
        assert!(passes(&limiter, 1, ms(5_100)));
        assert!(!passes(&limiter, 1, ms(5_100)));
        // Over ten seconds, as many as the rate says, and what was saved up.
        let passed = (0..10_000).filter(|at| passes(&limiter, 3, ms(6_000 + at)));
        assert_eq!(passed.count(), 109);
        let rested = limiter.take(1, ms(60_000)).unwrap();
        assert_eq!((rested.left, rested.wait), (9, ms(0)));
    }

    #[test]
    fn what_is_refused_takes_nothing_and_no_bound_is_none() {
        let limiter = Limiter::new("key", 1);
        assert!(passes(&limiter, 1, ms(0)));
        for _ in 0..3 {
            assert!(!passes(&limiter, 1, ms(0)));
        }
        assert!(passes(&limiter, 1, ms(1_000)));
        assert_eq!(Limiter::new("key", 0).take(1_u32, ms(0)), None);
    }

    #[test]
    fn memory_is_bounded_and_those_who_wait_are_kept_while_others_are_full() {
        let limiter = Limiter::new("address", 1);
        let many = u32::try_from(BUCKETS_MAX).unwrap();
        for who in 0..many {
            assert!(passes(&limiter, who, ms(0)));
        }
        let last = many - 1;
        for who in many..many + 1_000 {
            assert!(passes(&limiter, who, ms(500)));
        }
        assert!(!passes(&limiter, last, ms(500)), "still known");
        let count = || limiter.buckets.lock().unwrap().full_at.len();
        assert_eq!(count(), BUCKETS_MAX);
        assert!(passes(&limiter, many * 2, ms(2_000)));
        assert_eq!(count(), 1, "the others were full again");
    }

    #[test]
    fn an_address_of_the_new_kind_stands_for_its_network() {
        let of = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
    }
}
