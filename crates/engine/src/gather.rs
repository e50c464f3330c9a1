//! Gather: requests that come while a write is under way share the next one.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use model::{RunId, limits};
use store::StoreError;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot};

use crate::clock::Clock;
use crate::lock;

type Waiting<Q, A> = (Q, oneshot::Sender<Result<A, StoreError>>);

/// Those who wait for a write, and how many bytes they bring.
struct Line<Q, A> {
    requests: Vec<Waiting<Q, A>>,
    bytes: usize,
}

/// Requests of one kind.
pub(crate) struct Gather<Q, A> {
    line: Mutex<Line<Q, A>>,
    permits: Semaphore,
    /// How long after a write the next one begins, at least.
    apart: Duration,
    /// When a write last began, by uptime.
    last: Mutex<Option<Duration>>,
}

/// What a request is about, and what it takes.
pub(crate) trait About: Clone {
    fn run(&self) -> RunId;
    fn bytes(&self) -> usize;
}

impl<Q: About, A> Gather<Q, A> {
    pub(crate) fn new(depth: usize, apart: Duration) -> Self {
        Self {
            line: Mutex::new(Line {
                requests: Vec::new(),
                bytes: 0,
            }),
            permits: Semaphore::new(depth),
            apart,
            last: Mutex::default(),
        }
    }

    /// Waits until the next write may begin: whoever comes meanwhile shares it. One that is full need not wait.
    async fn pace(&self, clock: &dyn Clock) {
        if self.apart.is_zero() {
            return;
        }
        let now = clock.uptime();
        if lock(&self.line).requests.len() >= limits::HANDED_BATCH_MAX {
            *lock(&self.last) = Some(now);
            return;
        }
        let next = lock(&self.last).map_or(now, |last| last + self.apart);
        let early = next.saturating_sub(now);
        if !early.is_zero() {
            clock.sleep(early).await;
        }
        *lock(&self.last) = Some(now + early);
    }

    fn enter(&self, request: &Q) -> Result<oneshot::Receiver<Result<A, StoreError>>, StoreError> {
        let (answer, answered) = oneshot::channel();
        let mut line = lock(&self.line);
        let is_full = line.requests.len() >= limits::HANDED_CALLS_MAX;
        if is_full || line.bytes > limits::HANDED_BYTES_MAX {
            return Err(StoreError::Slow("too many reports wait".to_owned()));
        }
        line.bytes += request.bytes();
        line.requests.push((request.clone(), answer));
        Ok(answered)
    }

    /// Those who wait, in the order they came: as many as fit in one write, and of each run one.
    fn take(&self) -> Vec<Waiting<Q, A>> {
        let mut line = lock(&self.line);
        let (mut runs, mut taken, mut left) = (BTreeSet::new(), Vec::new(), Vec::new());
        for it in line.requests.drain(..) {
            // A client that is gone may have been heard: its request is done all the same.
            if taken.len() < limits::HANDED_BATCH_MAX && runs.insert(it.0.run()) {
                taken.push(it);
            } else {
                left.push(it);
            }
        }
        line.bytes = left.iter().map(|(it, _)| it.bytes()).sum();
        line.requests = left;
        taken
    }

    /// Makes a request, together with those of others. If whoever writes for us is cut off, we call again.
    pub(crate) async fn call<W, F>(
        &self,
        clock: &dyn Clock,
        request: Q,
        write: W,
    ) -> Result<A, StoreError>
    where
        W: Fn(Vec<Q>) -> F,
        F: Future<Output = Result<Vec<A>, StoreError>>,
    {
        let mut answered = self.enter(&request)?;
        loop {
            let permit = tokio::select! {
                biased;
                answer = &mut answered => match answer {
                    Ok(answer) => return answer,
                    Err(_) => {
                        answered = self.enter(&request)?;
                        continue;
                    }
                },
                permit = self.permits.acquire() => permit,
            };
            self.pace(clock).await;
            let (requests, callers): (Vec<Q>, Vec<_>) = self.take().into_iter().unzip();
            if requests.is_empty() {
                // Another writes for us: to look for more to write until that is done would be all that this task does.
                drop(permit);
                match (&mut answered).await {
                    Ok(answer) => return answer,
                    Err(_) => answered = self.enter(&request)?,
                }
                continue;
            }
            answer(callers, write(requests).await);
            drop(permit);
            match answered.try_recv() {
                Ok(answer) => return answer,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Closed) => answered = self.enter(&request)?,
            }
        }
    }
}

fn answer<A>(
    callers: Vec<oneshot::Sender<Result<A, StoreError>>>,
    answers: Result<Vec<A>, StoreError>,
) {
    match answers {
        Ok(answers) => {
            for (caller, answer) in callers.into_iter().zip(answers) {
                let _gone = caller.send(Ok(answer));
            }
        }
        Err(error) => {
            let why = error.to_string();
            for caller in callers {
                let _gone = caller.send(Err(StoreError::unavailable(why.clone())));
            }
        }
    }
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
