//! Payloads: those that plan and claims left in the store are read when their attempts start, many in one read. No more
//! of them are in memory than `PAYLOADS_MAX`: an attempt that finds no room waits for it, and the room is free again when
//! the last who has the payload drops it, which an executor does when it is sent. Large answers have room of their own in
//! the same way, from when an attempt ends until its end is written.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use model::{Report, Timestamp, limits};
use store::{EngineStore, PayloadOf, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::board::Work;
use crate::desk::Gone;
use crate::duty::{Duty, Wake};
use crate::lock;
use crate::nudge::Nudge;

/// What attempts that start wait for, and those that end.
pub(crate) struct Payloads {
    room: Arc<Semaphore>,
    outputs: Arc<Semaphore>,
    wanted: Mutex<VecDeque<Wanted>>,
    /// Of whoever reads them.
    nudge: Nudge,
}

impl Payloads {
    pub(crate) fn new(nudge: Nudge) -> Self {
        Self {
            nudge,
            room: Arc::new(Semaphore::new(limits::PAYLOADS_MAX)),
            outputs: Arc::new(Semaphore::new(limits::OUTPUTS_MAX)),
            wanted: Mutex::default(),
        }
    }
}

struct Wanted {
    of: PayloadOf,
    size: u32,
    answer: oneshot::Sender<Option<Bytes>>,
}

/// A payload, and the room that it takes.
struct Held {
    payload: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.payload
    }
}

impl Payloads {
    /// Reads a payload that was left in the store. None when it is not there any more as it was.
    async fn read(&self, of: PayloadOf, size: u32) -> Option<Bytes> {
        // Nobody closes it.
        let room = Arc::clone(&self.room).acquire_many_owned(size).await.ok();
        loop {
            let (answer, answered) = oneshot::channel();
            lock(&self.wanted).push_back(Wanted { of, size, answer });
            self.nudge.now();
            // A read that failed answers nobody: then it is read again.
            if let Ok(read) = answered.await {
                let held = |payload| Held {
                    payload,
                    _room: room,
                };
                return read.map(held).map(Bytes::from_owner);
            }
        }
    }

    /// What one read fetches; those that nobody waits for any more are left out.
    fn next(&self) -> Vec<Wanted> {
        let mut wanted = lock(&self.wanted);
        let (mut next, mut bytes) = (Vec::new(), 0);
        while bytes < limits::PAYLOADS_READ_MAX
            && let Some(one) = wanted.pop_front()
        {
            if !one.answer.is_closed() {
                bytes += one.size as usize;
                next.push(one);
            }
        }
        next
    }
}

impl Work {
    /// Where its payload is and how large, if it was left in the store.
    pub(crate) fn payload_left(&self) -> Option<(PayloadOf, u32)> {
        let (run, job) = (&self.run, &self.job);
        if let Some(size) = run.payload_left {
            return Some((PayloadOf::Run(run.id), size));
        }
        let size = job.payload_left.filter(|_| run.payload.is_none())?;
        Some((PayloadOf::Job(job.id, job.version), size))
    }
}

/// An attempt that did not leave.
pub(crate) enum Unsent {
    /// Its presence is gone.
    Killed,
    /// It is to be cancelled, or its job was edited since it was claimed, and its payload with it.
    HandedBack,
}

impl Payloads {
    /// What is sent with an attempt instead of its job's payload, if anything is.
    pub(crate) async fn payload_of(
        &self,
        work: &Work,
        kill: &CancellationToken,
    ) -> Result<Option<Bytes>, Unsent> {
        let Some((of, size)) = work.payload_left() else {
            return Ok(work.run.payload.clone());
        };
        let read = tokio::select! {
            biased;
            () = kill.cancelled() => return Err(Unsent::Killed),
            () = work.stop.notified() => None,
            read = self.read(of, size) => read,
        };
        if read.is_none() {
            return Err(Unsent::HandedBack);
        }
        Ok(read)
    }

    /// Whether an answer takes room until it is written: small ones take none.
    pub(crate) fn takes_room(report: &Report) -> bool {
        report.output.len() > limits::PAYLOAD_INLINE_MAX
    }

    /// Room for an answer until it is written. Waits for it while much is to be written.
    pub(crate) async fn output_room(
        &self,
        report: &Report,
        kill: &CancellationToken,
    ) -> Result<Option<OwnedSemaphorePermit>, Gone> {
        if !Self::takes_room(report) {
            return Ok(None);
        }
        let size = report.output.len();
        let size = u32::try_from(size.min(limits::OUTPUTS_MAX)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.outputs).acquire_many_owned(size);
        let room = kill.run_until_cancelled(room).await;
        Ok(room.ok_or(Gone)?.ok())
    }
}

/// Reads what attempts wait for.
pub(crate) struct ReadPayloads {
    payloads: Arc<Payloads>,
    store: Arc<dyn EngineStore>,
}

impl ReadPayloads {
    pub(crate) fn new(payloads: Arc<Payloads>, store: Arc<dyn EngineStore>) -> Self {
        Self { payloads, store }
    }
}

#[async_trait]
impl Duty for ReadPayloads {
    fn name(&self) -> &'static str {
        "payloads"
    }

    fn nudge(&self) -> &Nudge {
        &self.payloads.nudge
    }

    async fn step(&mut self, _now: Timestamp) -> Result<Wake, StoreError> {
        let next = self.payloads.next();
        if next.is_empty() {
            return Ok(Wake::Nudged);
        }
        let of: Vec<PayloadOf> = next.iter().map(|wanted| wanted.of).collect();
        let read = self.store.payloads(&of).await?;
        for (wanted, payload) in next.into_iter().zip(read) {
            // Whoever was cancelled meanwhile does not listen.
            let _gone = wanted.answer.send(payload);
        }
        Ok(Wake::Now)
    }
}
