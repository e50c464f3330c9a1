//! Who failed to log in, and how long it waits: by the name that was given, and by the address that it came from. The rule is
//! `model::lockout`; a node counts for itself.
//!
//! What always holds: a try is counted before it is looked at, so that many at once are many; memory is bounded.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::limits;
use model::lockout::{Backoff, OF_ADDRESS, OF_NAME};

pub(crate) struct Lockouts {
    by_name: Tries<String>,
    by_address: Tries<IpAddr>,
}

impl Lockouts {
    pub(crate) fn new() -> Self {
        Self {
            by_name: Tries::new(OF_NAME),
            by_address: Tries::new(OF_ADDRESS),
        }
    }

    /// One more try; how long to wait if it comes too soon.
    pub(crate) fn begin(
        &self,
        name: &str,
        address: Option<IpAddr>,
        now: Duration,
    ) -> Result<(), Duration> {
        self.begin_at(address, now)?;
        self.by_name.begin(bounded(name), now)
    }

    /// One more try by something that has no name.
    pub(crate) fn begin_at(&self, address: Option<IpAddr>, now: Duration) -> Result<(), Duration> {
        address.map_or(Ok(()), |address| self.by_address.begin(address, now))
    }

    /// It was the right password: the name starts again.
    pub(crate) fn end(&self, name: &str, address: Option<IpAddr>) {
        self.by_name.forget(&bounded(name));
        self.end_at(address);
    }

    /// That try was no failure. What else the address tried stays: whoever has one password may guess at others.
    pub(crate) fn end_at(&self, address: Option<IpAddr>) {
        if let Some(address) = address {
            self.by_address.take_back(&address);
        }
    }
}

/// A name that is too long is nobody's.
fn bounded(name: &str) -> String {
    name.chars().take(limits::USER_NAME_MAX).collect()
}

struct Tries<K> {
    backoff: Backoff,
    of: Mutex<BTreeMap<K, Failed>>,
}

#[derive(Clone, Copy)]
struct Failed {
    tries: u32,
    last: Duration,
}

impl<K: Ord> Tries<K> {
    fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            of: Mutex::new(BTreeMap::new()),
        }
    }

    fn begin(&self, who: K, now: Duration) -> Result<(), Duration> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let before = of
            .get(&who)
            .copied()
            .filter(|failed| !self.backoff.is_over(now.saturating_sub(failed.last)));
        let before = before.unwrap_or(Failed {
            tries: 0,
            last: now,
        });
        let next = before.last + self.backoff.wait(before.tries);
        if next > now {
            return Err(next - now);
        }
        if of.len() >= limits::LOCKOUTS_MAX && !of.contains_key(&who) {
            of.retain(|_, failed| !self.backoff.is_over(now.saturating_sub(failed.last)));
            if of.len() >= limits::LOCKOUTS_MAX {
                of.pop_first();
            }
        }
        let tries = before.tries.saturating_add(1);
        of.insert(who, Failed { tries, last: now });
        Ok(())
    }

    fn take_back(&self, who: &K) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failed) = of.get_mut(who) {
            failed.tries = failed.tries.saturating_sub(1);
        }
    }

    fn forget(&self, who: &K) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        of.remove(who);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn after_some_failures_a_name_waits_longer_and_longer_and_a_right_password_ends_it() {
        let lockouts = Lockouts::new();
        let mut now = secs(100);
        for _ in 0..OF_NAME.free {
            lockouts.begin("ada", None, now).unwrap();
        }
        let mut waits = Vec::new();
        for _ in 0..4 {
            let wait = lockouts.begin("ada", None, now).unwrap_err();
            waits.push(wait.as_secs());
            now += wait;
            lockouts.begin("ada", None, now).unwrap();
        }
        assert_eq!(waits, [1, 2, 4, 8]);
        lockouts.begin("bob", None, now).unwrap();
        lockouts.end("ada", None);
        lockouts.begin("ada", None, now).unwrap();
    }

    #[test]
    fn a_right_password_takes_back_its_own_try_and_no_other_of_its_address() {
        let lockouts = Lockouts::new();
        let here = Some(IpAddr::from([192, 0, 2, 1]));
        let mut tried = 0;
        // Names of others, and now and then its own.
        let refused = (0..100).find(|number| {
            let own = number % 10 == 9;
            let name = if own {
                "own".to_owned()
            } else {
                format!("user-{number}")
            };
            let begun = lockouts.begin(&name, here, secs(5));
            if begun.is_ok() && own {
                lockouts.end(&name, here);
            } else if begun.is_ok() {
                tried += 1;
            }
            begun.is_err()
        });
        assert!(refused.is_some());
        assert_eq!(tried, OF_ADDRESS.free);
    }

    #[test]
    fn what_has_no_name_is_counted_by_its_address() {
        let lockouts = Lockouts::new();
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
        for _ in 0..OF_ADDRESS.free {
            lockouts.begin_at(address(1), secs(5)).unwrap();
        }
        lockouts.begin_at(address(1), secs(5)).unwrap_err();
        lockouts.begin_at(address(2), secs(5)).unwrap();
        lockouts.begin("", address(3), secs(5)).unwrap();
    }

    #[test]
    fn an_address_that_tries_many_names_waits_too_and_memory_is_bounded() {
        let lockouts = Lockouts::new();
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let tried = (0..100).take_while(|number| {
            let name = format!("user-{number}");
            lockouts.begin(&name, Some(address(1)), secs(5)).is_ok()
        });
        assert_eq!(tried.count() as u32, OF_ADDRESS.free);
        lockouts.begin("ada", Some(address(2)), secs(5)).unwrap();
        for number in 0..limits::LOCKOUTS_MAX + 10 {
            let _refused = lockouts.begin(&format!("n{number}"), None, secs(6));
        }
        assert!(lockouts.by_name.of.lock().unwrap().len() <= limits::LOCKOUTS_MAX);
    }
}
