//! Failures in a row: after so many dead runs a job is paused, if its definition says so.

use std::fmt;

use crate::limits;

/// How many runs in a row may end dead; the last of them pauses the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FailuresMax(u32);

impl FailuresMax {
    /// None beyond 1 to `FAILURES_MAX`.
    pub fn new(count: u32) -> Option<Self> {
        let fits = (1..=limits::FAILURES_MAX).contains(&count);
        fits.then_some(Self(count))
    }

    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for FailuresMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_says_one_to_a_thousand() {
        assert_eq!(FailuresMax::new(0), None);
        assert_eq!(FailuresMax::new(1).map(FailuresMax::get), Some(1));
        assert_eq!(FailuresMax::new(1_000).map(FailuresMax::get), Some(1_000));
        assert_eq!(FailuresMax::new(1_001), None);
    }
}
