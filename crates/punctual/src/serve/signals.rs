//! The two signals that ask a process to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on these signals do not end the process by themselves.
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::usage(format!("cannot listen for signals: {error}")))
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// The name of the next one.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Somebody asked twice. What was accepted is on disk, so there is nothing to save.
pub(super) fn exit_at_once(signal: &str) -> ! {
    tracing::warn!("{signal} again: stopping at once");
    std::process::exit(130)
}
