//! Claim: a run gets a holder for its next attempt.

use crate::id::PresenceId;
use crate::job::Version;
use crate::limits;
use crate::run::{Run, RunEvent, RunState};
use crate::time::Timestamp;

/// What becomes of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// The next attempt is theirs from now on.
    New,
    /// It was theirs already: claimed again, the answer is the same, also when the shard has gone to someone else.
    Again,
    /// Held by someone else, or waiting.
    Stale,
    LeaseLost,
}

/// Claims a run at `now` for a presence that holds the lease of its shard or does not. `version` is that of its job,
/// whose definition the attempt runs.
///
/// Nobody claims a retry so far ahead, unless its due time was set by a clock that has gone back since: it starts now, and
/// its row says so, or whoever finds the claim after a crash would take it for one that was never dispatched.
pub fn claim(run: &mut Run, by: PresenceId, held: bool, version: Version, now: Timestamp) -> Grant {
    match run.claim {
        Some(holder) if holder == by => Grant::Again,
        Some(_) | None if !held => Grant::LeaseLost,
        Some(_) => Grant::Stale,
        None if run.wait.is_some() => Grant::Stale,
        None => {
            let Ok(state) = run.state.after(RunEvent::Claimed) else {
                return Grant::Stale;
            };
            let retries = run.state == RunState::Retrying;
            if retries && run.due_at.since(now) > limits::RETRY_AFTER_MAX {
                run.due_at = now;
            }
            (run.claim, run.state, run.version) = (Some(by), state, version);
            Grant::New
        }
    }
}
