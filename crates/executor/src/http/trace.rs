//! Trace context, as W3C has it: what targets do for a run is found under one trace.
//!
//! The id of the trace is that of the run, so that either is found by the other; each attempt is a span of its own.

use std::fmt;

use model::hash::hash;
use model::{AttemptNo, RunId};

/// Keeps spans apart from whatever else is derived from ids.
const SEED: u64 = 0x7472_6163_6570_6172;

/// The value of `traceparent`. It says that the trace is recorded: a target that samples by it would record nothing otherwise.
pub(super) struct TraceParent {
    pub(super) run: RunId,
    pub(super) attempt: AttemptNo,
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, low) = self.run.0.as_u64_pair();
        // Zero would be no span.
        let span = hash(SEED, &[high, low, u64::from(self.attempt.0)]).max(1);
        write!(f, "00-{high:016x}{low:016x}-{span:016x}-01")
    }
}

#[cfg(test)]
mod tests {
    use model::{JobId, Slot, Timestamp};

    use super::*;

    #[test]
    fn attempts_of_a_run_share_a_trace_and_have_spans_of_their_own() {
        let slot = Slot(Timestamp::from_millis(1_700_000_000_000));
        let run = RunId::for_slot(JobId::new(slot.0, [7; 10]), slot);
        let parent = |attempt| {
            let attempt = AttemptNo(attempt);
            TraceParent { run, attempt }.to_string()
        };
        let (first, second) = (parent(1), parent(2));
        let id = run.to_string();
        let id = id.strip_prefix("run_").unwrap();
        for text in [&first, &second] {
            assert_eq!(text.len(), 55);
            assert!(
                text.starts_with(&format!("00-{id}-")) && text.ends_with("-01"),
                "{text}"
            );
        }
        assert_ne!(first, second);
        assert_eq!(first, parent(1));
    }
}
