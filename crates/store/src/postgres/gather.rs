//! Creates from many clients share a write: whoever comes while the writes before are under way is taken along by the
//! next. One of those who wait does the write for all of them; if it is cut off, the others ask again, which is
//! harmless because ids are chosen before the first try.

use std::sync::{Mutex, PoisonError};

use tokio::sync::{Semaphore, oneshot};

use super::store::PgStore;
use crate::{Created, NewJob, StoreError};

/// Writes under way at once.
const DEPTH: usize = 2;
/// Calls with more jobs than this are better off by themselves.
pub(super) const SMALL_MAX: usize = 100;
/// Jobs in one write.
const BATCH_MAX: usize = 1_000;

type Answer = Result<Vec<Created>, StoreError>;

/// A call that waits for its answer.
struct Asked {
    jobs: Vec<NewJob>,
    answer: oneshot::Sender<Answer>,
}

pub(super) struct Gather {
    waiting: Mutex<Vec<Asked>>,
    permits: Semaphore,
}

impl Default for Gather {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            permits: Semaphore::new(DEPTH),
        }
    }
}

impl Gather {
    fn ask(&self, jobs: &[NewJob]) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let asked = Asked {
            jobs: jobs.to_vec(),
            answer,
        };
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(asked);
        answered
    }

    /// Those who wait, as many as fit in one write, in the order they came.
    fn take(&self) -> Vec<Asked> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut jobs = 0;
        let fits = |asked: &Asked| {
            jobs += asked.jobs.len();
            jobs <= BATCH_MAX
        };
        let count = waiting.iter().map(fits).take_while(|fits| *fits).count();
        waiting.drain(..count).collect()
    }
}

impl PgStore {
    /// Writes a few jobs together with those of others.
    pub(super) async fn create_together(&self, jobs: &[NewJob]) -> Answer {
        let mut answered = self.creates.ask(jobs);
        loop {
            let permit = tokio::select! {
                biased;
                answer = &mut answered => match answer {
                    Ok(answer) => return answer,
                    // Whoever wrote for us was cut off.
                    Err(_) => return self.create_now(jobs).await,
                },
                permit = self.creates.permits.acquire() => permit,
            };
            let batch = self.creates.take();
            if batch.is_empty() {
                // Someone else has ours under way.
                drop(permit);
                return match answered.await {
                    Ok(answer) => answer,
                    Err(_) => self.create_now(jobs).await,
                };
            }
            // Those that one statement can write do not wait for a look at what the others name.
            let plain = |asked: &Asked| asked.jobs.iter().all(|new| self.is_plain(new));
            let (plain, others): (Vec<_>, Vec<_>) = batch.into_iter().partition(plain);
            tokio::join!(self.create_for(plain), self.create_for(others));
        }
    }

    async fn create_for(&self, batch: Vec<Asked>) {
        if batch.is_empty() {
            return;
        }
        let all: Vec<NewJob> = batch
            .iter()
            .flat_map(|it| it.jobs.iter().cloned())
            .collect();
        let mut created = match self.create_now(&all).await {
            Ok(created) => created.into_iter(),
            Err(error) => return self.create_each(batch, &error).await,
        };
        for Asked { jobs, answer } in batch {
            // Whoever does not wait any more will ask again, or does not care.
            let _gone = answer.send(Ok(created.by_ref().take(jobs.len()).collect()));
        }
    }

    /// One of them may be at fault: each by itself, unless nobody can be served.
    async fn create_each(&self, batch: Vec<Asked>, error: &StoreError) {
        for Asked { jobs, answer } in batch {
            let alone = match error {
                StoreError::BadRow { .. } => self.create_now(&jobs).await,
                StoreError::Full => Err(StoreError::Full),
                StoreError::Barred => Err(StoreError::Barred),
                StoreError::InUse(why) => Err(StoreError::InUse(why.clone())),
                StoreError::Unusable(why) => Err(StoreError::Unusable(why.clone())),
                StoreError::Unavailable(why) => Err(StoreError::unavailable(why.to_string())),
            };
            let _gone = answer.send(alone);
        }
    }
}
