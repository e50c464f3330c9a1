//! Live log: what a command writes goes to the log of its run while it still runs, so that whoever follows it sees it, at any
//! node.
//!
//! ```text
//!   command ──pipe──▶ what its executor keeps ──twice a second, without secrets──▶ log of the run ──▶ whoever follows
//! ```
//!
//! What always holds: a store that is slow or away holds up no command; then the middle is left out, and a line says how much.
//! What was written last is in the log before the attempt ends, unless the store takes longer than `FLUSH_MAX` for it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use executor::{Progress, Unread};
use model::{AttemptNo, RunId, limits};
use store::{Beaten, LogAppend};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::clock::Clock;
use crate::run_logs::RunLogs;
use crate::vault::{Hidden, Stream};

/// How often what is new is written.
const WRITE_EVERY: Duration = Duration::from_millis(500);
/// How long the end of an attempt waits for its last words.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// One attempt's. Dropped, it writes no more.
pub(crate) struct LiveLog {
    clock: Arc<dyn Clock>,
    ended: CancellationToken,
    task: JoinHandle<()>,
    _dropped: DropGuard,
}

struct Writer {
    of: (RunId, AttemptNo),
    logs: Arc<RunLogs>,
    clock: Arc<dyn Clock>,
    progress: Arc<Progress>,
    stream: Stream,
}

impl LiveLog {
    pub(crate) fn begin(
        of: (RunId, AttemptNo),
        (logs, clock): (Arc<RunLogs>, Arc<dyn Clock>),
        progress: Arc<Progress>,
        hidden: Arc<Hidden>,
    ) -> Self {
        let (ended, dropped) = (CancellationToken::new(), CancellationToken::new());
        let writer = Writer {
            of,
            logs,
            clock: Arc::clone(&clock),
            progress,
            stream: Stream::new(hidden),
        };
        let (is_ended, is_dropped) = (ended.clone(), dropped.clone());
        let task = tokio::spawn(async move {
            tokio::select! {
                biased;
                () = is_dropped.cancelled() => {}
                () = writer.write(&is_ended) => {}
            }
        });
        Self {
            clock,
            ended,
            task,
            _dropped: dropped.drop_guard(),
        }
    }

    /// The attempt is over: what it has said last is written.
    pub(crate) async fn end(self) {
        self.ended.cancel();
        tokio::select! {
            biased;
            _written = self.task => {}
            () = self.clock.sleep(FLUSH_MAX) => {}
        }
    }
}

impl Writer {
    async fn write(mut self, ended: &CancellationToken) {
        let mut left: Vec<u8> = Vec::new();
        loop {
            let is_last = tokio::select! {
                biased;
                () = ended.cancelled() => true,
                () = self.clock.sleep(WRITE_EVERY) => false,
            };
            // While something waits for the store, what is new waits where only so much of it is kept.
            if left.len() < limits::LOG_APPEND_MAX {
                let Unread { head, missed, tail } = self.progress.unread();
                left.extend(self.stream.put(0, &head));
                left.extend(self.stream.put(missed, &tail));
            }
            if is_last {
                left.extend(self.stream.end());
            }
            while !left.is_empty() {
                let part = left.len().min(limits::LOG_APPEND_MAX);
                let bytes = Bytes::copy_from_slice(left.get(..part).unwrap_or_default());
                let (run, attempt) = self.of;
                let append = LogAppend {
                    run,
                    attempt,
                    bytes,
                };
                match self.logs.append(append).await {
                    Ok(Beaten::Done { .. }) => drop(left.drain(..part)),
                    // Somebody else has the run.
                    Ok(Beaten::Ended(_) | Beaten::Missing) => return,
                    Err(_) => break,
                }
            }
            if is_last {
                return;
            }
        }
    }
}
