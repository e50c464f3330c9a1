//! What waits for a write holds memory. Beyond a budget of bytes calls are refused, so that a slow disk or a database that is
//! away costs clients a moment, not the node its memory.

use std::sync::Arc;

use model::{Job, limits};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{NewJob, StoreError};

/// Bytes that may still wait.
pub(crate) struct Budget(Arc<Semaphore>);

/// Bytes that wait; given back when dropped. It goes along with what waits: whoever made the call may be gone before.
pub(crate) type Held = OwnedSemaphorePermit;

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(limits::WRITES_BYTES_MAX)))
    }
}

impl Budget {
    /// A call that is larger than all of it is let in when nothing else waits.
    pub(crate) fn hold(&self, bytes: usize) -> Result<Held, StoreError> {
        let bytes = bytes.min(limits::WRITES_BYTES_MAX);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let held = Arc::clone(&self.0).try_acquire_many_owned(bytes);
        held.map_err(|_| StoreError::Overloaded)
    }

    pub(crate) fn hold_jobs(&self, jobs: &[NewJob]) -> Result<Held, StoreError> {
        self.hold(jobs.iter().map(|new| bytes_of(&new.job)).sum())
    }
}

/// A job with its payload, about.
pub(crate) fn bytes_of(job: &Job) -> usize {
    let payload = job.def.payload.as_ref().map_or(0, |it| it.len());
    limits::WRITE_BYTES_MIN + payload
}
