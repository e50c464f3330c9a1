//! Turns: changes of one job are made one after another. Each is decided from what stands and written if nobody was
//! faster; of many that are made at once all but one would be decided again, and again.
//!
//! This orders the requests of one node. Those of others are met by the store, as before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::JobId;
use tokio::sync::OwnedMutexGuard;

type Turns = BTreeMap<JobId, Arc<tokio::sync::Mutex<()>>>;

/// Jobs that are being changed here.
#[derive(Debug, Default, Clone)]
pub struct Changing {
    turns: Arc<Mutex<Turns>>,
}

/// While this lives, it is one's turn.
#[derive(Debug)]
pub struct Turn {
    job: JobId,
    changing: Changing,
    held: Option<OwnedMutexGuard<()>>,
    /// Whether others were first: what was read before is likely out of date.
    pub waited: bool,
}

impl Changing {
    fn turns(&self) -> std::sync::MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for one's turn at a job, in the order of arrival.
    pub async fn turn(&self, job: JobId) -> Turn {
        let turn = Arc::clone(self.turns().entry(job).or_default());
        let mut mine = Turn {
            job,
            changing: self.clone(),
            held: None,
            waited: false,
        };
        match Arc::clone(&turn).try_lock_owned() {
            Ok(held) => mine.held = Some(held),
            Err(_) => {
                mine.waited = true;
                mine.held = Some(turn.lock_owned().await);
            }
        }
        mine
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.held.take());
        let mut turns = self.changing.turns();
        // The entry itself, and nobody who holds it or waits for it.
        if turns
            .get(&self.job)
            .is_some_and(|turn| Arc::strong_count(turn) == 1)
        {
            turns.remove(&self.job);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;

    use super::*;

    #[tokio::test]
    async fn one_at_a_time_for_each_job_and_nothing_is_kept_afterwards() {
        let changing = Changing::default();
        let [one, other] = [1, 2].map(|byte| JobId::new(Timestamp::from_millis(1), [byte; 10]));
        let first = changing.turn(one).await;
        assert!(!first.waited);
        assert!(!changing.turn(other).await.waited);
        let next = tokio::spawn({
            let changing = changing.clone();
            async move { changing.turn(one).await.waited }
        });
        let given_up = tokio::spawn({
            let changing = changing.clone();
            async move { changing.turn(one).await.waited }
        });
        tokio::task::yield_now().await;
        assert!(!next.is_finished());
        given_up.abort();
        assert!(given_up.await.is_err());
        drop(first);
        assert!(next.await.unwrap());
        assert!(changing.turns().is_empty());
    }
}
