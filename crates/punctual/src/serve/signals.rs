//! The signals that end a process. SIGHUP is one of them only when the terminal is gone that the process was started from:
//! else it means that files are to be read again.

use std::fs;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Whether a terminal that goes ends it: there is one, and nobody said otherwise (`nohup`).
    ends_with_terminal: bool,
}

fn has_terminal() -> bool {
    fs::File::open("/dev/tty").is_ok()
}

/// Whether whoever started the process had it ignore SIGHUP.
fn ignores_hangup() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

impl Signals {
    /// From now on these signals do not end the process by themselves.
    pub(super) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::usage(format!("cannot listen for signals: {error}")))
        };
        let ends_with_terminal = has_terminal() && !ignores_hangup();
        Ok(Self {
            ends_with_terminal,
            hangup: listen(SignalKind::hangup())?,
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// The name of the next one.
    pub(super) async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                biased;
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hangup.recv() => {
                    if self.ends_with_terminal && !has_terminal() {
                        return "SIGHUP";
                    }
                }
            }
        }
    }
}

/// The signal came twice. What was accepted is on disk, so there is nothing to save.
pub(super) fn exit_at_once(signal: &str) -> ! {
    tracing::warn!("{signal} again: stopping at once");
    std::process::exit(130)
}
