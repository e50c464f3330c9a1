//! A database that is away at the start, because it restarts as well: it is waited for, and the log says so.

use std::time::Duration;

use engine::{Clock, SystemClock};
use store::StoreError;
use tracing::{info, warn};

use crate::failure::chain;

/// How long, and how often something is tried and said meanwhile.
pub(super) struct Patience {
    whole: Duration,
    between: Duration,
    lines: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            whole: Duration::from_secs(60),
            between: Duration::from_millis(500),
            lines: Duration::from_secs(5),
        }
    }
}

impl Patience {
    /// Tries until it succeeds. What will not pass by itself, such as a wrong password, is not waited for.
    pub(super) async fn wait_for<T>(
        &self,
        attempt: impl AsyncFn() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let begun = SystemClock.uptime();
        let mut said: Option<Duration> = None;
        loop {
            let error = match attempt().await {
                Ok(done) => {
                    if said.is_some() {
                        info!("the database answers");
                    }
                    return Ok(done);
                }
                Err(error) => error,
            };
            let waited = SystemClock.uptime().saturating_sub(begun);
            if !error.is_transient() || waited >= self.whole {
                return Err(error);
            }
            if said.is_none_or(|said| waited.saturating_sub(said) >= self.lines) {
                said = Some(waited);
                let left = self.whole.saturating_sub(waited).as_secs();
                let why = chain(&error);
                warn!("waiting for the database, for {left} s at most: {why}");
            }
            SystemClock.sleep(self.between).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const SHORT: Patience = Patience {
        whole: Duration::from_millis(100),
        between: Duration::from_millis(10),
        lines: Duration::from_millis(30),
    };

    /// What comes of it, and after how many tries, when the first so many fail like this.
    async fn tried(failures: u32, error: fn() -> StoreError) -> (Result<(), StoreError>, u32) {
        let tries = AtomicU32::new(0);
        let done = SHORT.wait_for(async || {
            if tries.fetch_add(1, Ordering::Relaxed) < failures {
                Err(error())
            } else {
                Ok(())
            }
        });
        let done = done.await;
        (done, tries.into_inner())
    }

    #[tokio::test]
    async fn what_may_pass_is_waited_for_and_not_for_ever() {
        let away = || StoreError::unavailable("it is away");
        let (done, tries) = tried(3, away).await;
        assert!(done.is_ok());
        assert_eq!(tries, 4);
        let (done, tries) = tried(u32::MAX, away).await;
        assert!(done.unwrap_err().is_transient());
        assert!((2..=11).contains(&tries), "{tries}");
    }

    #[tokio::test]
    async fn what_will_not_pass_is_said_at_once() {
        let wrong = || StoreError::Unusable("no such database".to_owned());
        let (done, tries) = tried(u32::MAX, wrong).await;
        assert!(matches!(done, Err(StoreError::Unusable(_))));
        assert_eq!(tries, 1);
    }
}
