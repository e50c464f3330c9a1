//! How long somebody waits who failed to log in: not at all at first, then twice as long each time, up to a bound.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Failures that cost nothing.
    pub free: u32,
    pub wait_max: Duration,
}

/// A name: its owner mistypes, and must not be kept out for long by somebody else.
pub const OF_NAME: Backoff = Backoff {
    free: 5,
    wait_max: Duration::from_secs(60),
};
/// An address: several people may share it, and none of them tries many names.
pub const OF_ADDRESS: Backoff = Backoff {
    free: 20,
    wait_max: Duration::from_secs(15 * 60),
};
/// Failures are forgotten after this long without another.
const QUIET: Duration = Duration::from_secs(3600);

impl Backoff {
    /// From the last try to the next, after so many failures.
    pub fn wait(self, failures: u32) -> Duration {
        let Some(over) = failures.checked_sub(self.free) else {
            return Duration::ZERO;
        };
        let doubled = Duration::from_secs(1).saturating_mul(1 << over.min(20));
        doubled.min(self.wait_max)
    }

    /// Whether failures count no more.
    pub fn is_over(self, since_last: Duration) -> bool {
        since_last >= QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_its_bound() {
        let waits =
            |backoff: Backoff| (0..40).map(move |failures| backoff.wait(failures).as_secs());
        let by_name: Vec<u64> = waits(OF_NAME).skip(3).take(10).collect();
        assert_eq!(by_name, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(waits(OF_ADDRESS).max(), Some(900));
        assert!(OF_NAME.is_over(QUIET) && !OF_NAME.is_over(QUIET / 2));
    }
}
