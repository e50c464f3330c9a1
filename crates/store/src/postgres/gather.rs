//! Creates from many clients share a write: whoever comes while the writes before are under way is taken along by the
//! next. One of those who wait does the write for all of them; if it is cut off, the others call again, which is
//! harmless because ids are chosen before the first try.

use std::sync::{Arc, Mutex, PoisonError};

use model::limits;
use tokio::sync::{Semaphore, oneshot};

use super::create::{Create, for_now};
use super::store::PgStore;
use crate::budget::{Budget, Held};
use crate::{Acting, Created, NewJob, StoreError};

/// Writes under way at once.
const DEPTH: usize = 2;
/// Calls with more jobs than this are better off by themselves.
pub(super) const SMALL_MAX: usize = 100;
/// Jobs in one write; a call that has more goes alone.
const BATCH_MAX: usize = 1_000;

pub(super) type Answer = Result<Vec<Created>, StoreError>;

/// A call that waits for its answer.
pub(super) struct Call {
    jobs: Vec<NewJob>,
    acting: Arc<Acting>,
    answer: oneshot::Sender<Answer>,
    /// Given back once it is answered.
    _held: Held,
}

pub(super) struct Gather {
    /// What all creates that wait may hold, those that share no write among them.
    pub(super) budget: Budget,
    waiting: Mutex<Vec<Call>>,
    permits: Semaphore,
}

impl Default for Gather {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            waiting: Mutex::default(),
            permits: Semaphore::new(DEPTH),
        }
    }
}

impl Gather {
    pub(super) fn request(&self, jobs: &[NewJob], held: Held) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let call = Call {
            jobs: jobs.to_vec(),
            acting: Acting::now(),
            answer,
            _held: held,
        };
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
        answered
    }

    /// Those who wait, as many as fit in one write, in the order they came.
    pub(super) fn take(&self) -> Vec<Call> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut jobs, mut bytes) = (0, 0);
        let fits = |call: &Call| {
            let is_first = jobs == 0;
            jobs += call.jobs.len();
            bytes += call.jobs.iter().map(payload).sum::<usize>();
            is_first || (jobs <= BATCH_MAX && bytes <= limits::SHARED_WRITE_BYTES_MAX)
        };
        let count = waiting.iter().map(fits).take_while(|fits| *fits).count();
        waiting.drain(..count).collect()
    }
}

fn payload(new: &NewJob) -> usize {
    new.job.def.payload.as_ref().map_or(0, |it| it.len())
}

impl PgStore {
    /// Writes a few jobs together with those of others.
    pub(super) async fn create_together(&self, jobs: &[NewJob], held: Held) -> Answer {
        let mut answered = self.creates.request(jobs, held);
        loop {
            let permit = tokio::select! {
                biased;
                answer = &mut answered => match answer {
                    Ok(answer) => return answer,
                    // Whoever wrote for us was cut off.
                    Err(_) => return self.create_now(&for_now(jobs)).await,
                },
                permit = self.creates.permits.acquire() => permit,
            };
            let batch = self.creates.take();
            if batch.is_empty() {
                // Someone else has ours under way.
                drop(permit);
                return match answered.await {
                    Ok(answer) => answer,
                    Err(_) => self.create_now(&for_now(jobs)).await,
                };
            }
            // Those that one statement can write do not wait for a look at what the others name.
            let plain = |call: &Call| call.jobs.iter().all(|new| self.is_plain(new));
            let (plain, others): (Vec<_>, Vec<_>) = batch.into_iter().partition(plain);
            tokio::join!(self.create_for(plain), self.create_for(others));
        }
    }

    async fn create_for(&self, batch: Vec<Call>) {
        if batch.is_empty() {
            return;
        }
        let all: Vec<Create<'_>> = batch
            .iter()
            .flat_map(|it| it.jobs.iter().map(|new| Create::new(new, &it.acting)))
            .collect();
        let mut created = match self.create_now(&all).await {
            Ok(created) => created.into_iter(),
            Err(error) => return fail(batch, &error),
        };
        for Call { jobs, answer, .. } in batch {
            // Whoever does not wait any more will call again, or does not care.
            let _gone = answer.send(Ok(created.by_ref().take(jobs.len()).collect()));
        }
    }
}

/// The write failed for all of them: a job that is refused fails nobody else.
fn fail(batch: Vec<Call>, error: &StoreError) {
    for Call { answer, .. } in batch {
        let same = match error {
            StoreError::Unavailable(why) => StoreError::unavailable(why.to_string()),
            StoreError::Full => StoreError::Full,
            StoreError::Slow(why) => StoreError::Slow(why.clone()),
            StoreError::Overloaded => StoreError::Overloaded,
            StoreError::InUse(why) => StoreError::InUse(why.clone()),
            StoreError::Unusable(why) => StoreError::Unusable(why.clone()),
            StoreError::Fenced => StoreError::Fenced,
            StoreError::BadRow(bad) => StoreError::BadRow(bad.clone()),
        };
        let _gone = answer.send(Err(same));
    }
}
