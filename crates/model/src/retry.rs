//! Retries: from an outcome to a verdict. Time and chance are arguments.

use std::time::Duration;

use crate::attempt::{AttemptNo, Outcome, Report, RetryHint};
use crate::limits;
use crate::policy::Delivery;
use crate::run::{Reason, RunState};
use crate::time::Timestamp;
use crate::wait::Wait;

/// What becomes of a run after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Succeed,
    /// The next attempt, not before this moment.
    RetryAt(Timestamp),
    /// Dead: it will not be tried again.
    Bury(Reason),
    Cancel(Reason),
    /// The attempt never left its holder: the run is anyone's again, under the same number.
    Release,
    /// The same, and it may not start yet.
    Wait(Wait),
}

impl Verdict {
    /// How it ends the run, if it does.
    pub fn end(self) -> Option<(RunState, Option<Reason>)> {
        match self {
            Self::Succeed => Some((RunState::Succeeded, None)),
            Self::Bury(reason) => Some((RunState::Dead, Some(reason))),
            Self::Cancel(reason) => Some((RunState::Cancelled, Some(reason))),
            Self::RetryAt(_) | Self::Release | Self::Wait(_) => None,
        }
    }

    /// Whether the attempt never left its holder.
    pub fn is_release(self) -> bool {
        match self {
            Self::Release | Self::Wait(_) => true,
            Self::Succeed | Self::RetryAt(_) | Self::Bury(_) | Self::Cancel(_) => false,
        }
    }
}

/// How the wait grows from one attempt to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backoff {
    #[default]
    Exponential,
    Linear,
    Fixed,
}

impl Backoff {
    pub const ALL: [Self; 3] = [Self::Exponential, Self::Linear, Self::Fixed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Linear => "linear",
            Self::Fixed => "fixed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|backoff| backoff.as_str() == text)
    }
}

/// How often and how soon a run is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    pub attempts_max: u32,
    pub backoff: Backoff,
    pub delay_first: Duration,
    pub delay_max: Duration,
    /// The share of a delay that chance may add, in thousandths.
    pub jitter: u16,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 4,
            backoff: Backoff::Exponential,
            delay_first: Duration::from_secs(1),
            delay_max: Duration::from_secs(300),
            jitter: 300,
        }
    }
}

/// What the verdict on a lost attempt depends on.
#[derive(Debug, Clone, Copy)]
pub struct LostClaim {
    pub attempt: AttemptNo,
    /// How often an attempt of this run was lost before.
    pub lost: u32,
    pub due_at: Timestamp,
    /// From when on it could have been dispatched: later than due, if it waited for something outside of its job.
    pub from: Timestamp,
    /// When the holder's presence ended.
    pub ended_at: Timestamp,
    /// Whether it is known to have left us: what has begun is tried again however late it is.
    pub dispatched: bool,
    pub delivery: Delivery,
    /// How late a first attempt may still be.
    pub window: Duration,
}

impl RetryPolicy {
    /// From how attempt `attempt` ended to what becomes of its run. `chance` lies in 0..1.
    /// `lost` attempts do not count: `attempts_max` is about what the target saw and refused.
    pub fn verdict(
        &self,
        attempt: AttemptNo,
        lost: u32,
        report: &Report,
        now: Timestamp,
        chance: f64,
    ) -> Verdict {
        match report.outcome {
            Outcome::Succeeded => Verdict::Succeed,
            Outcome::Cancelled => Verdict::Cancel(Reason::Requested),
            Outcome::Failed | Outcome::TimedOut | Outcome::Lost => {
                let tried = attempt.0.saturating_sub(lost).max(1);
                match report.retry {
                    RetryHint::Never => Verdict::Bury(Reason::Refused),
                    RetryHint::Usual | RetryHint::After(_) if tried >= self.attempts_max => {
                        Verdict::Bury(Reason::AttemptsSpent)
                    }
                    RetryHint::Always if tried >= limits::ATTEMPTS_MAX => {
                        Verdict::Bury(Reason::AttemptsSpent)
                    }
                    RetryHint::Usual | RetryHint::Always => {
                        Verdict::RetryAt(now.plus(self.delay(tried, chance)))
                    }
                    RetryHint::After(requested) => {
                        let wait = self
                            .delay(tried, chance)
                            .max(requested)
                            .min(self.delay_bound());
                        Verdict::RetryAt(now.plus(wait))
                    }
                }
            }
        }
    }

    /// The longest that a retry of this policy ever waits.
    pub fn delay_bound(&self) -> Duration {
        self.delay_max.max(limits::RETRY_AFTER_MAX)
    }

    /// The wait after `tried` attempts. Chance only ever adds, and the sum stays within
    /// `delay_max`: the cap is taken before the jitter, so that capped retries do not march in step.
    fn delay(&self, tried: u32, chance: f64) -> Duration {
        let first = self.delay_first.as_secs_f64();
        let steps = tried.saturating_sub(1);
        let grown = match self.backoff {
            Backoff::Exponential => first * 2_f64.powi(steps.min(63) as i32),
            Backoff::Linear => first * f64::from(steps + 1),
            Backoff::Fixed => first,
        };
        let jitter = f64::from(self.jitter) / 1_000.0;
        let capped = grown.min(self.delay_max.as_secs_f64() / (1.0 + jitter));
        let delayed = capped * (1.0 + jitter * chance.clamp(0.0, 1.0));
        Duration::try_from_secs_f64(delayed)
            .unwrap_or(self.delay_max)
            .min(self.delay_max)
    }
}

impl LostClaim {
    /// A claim whose holder is gone. It does not use up `attempts_max`; it has a bound of its own.
    pub fn verdict(&self, now: Timestamp) -> Verdict {
        if self.due_at > self.ended_at {
            return Verdict::Release;
        }
        match self.delivery {
            Delivery::AtMostOnce => return Verdict::Bury(Reason::Lost),
            Delivery::AtLeastOnce => {}
        }
        if self.lost + 1 >= limits::LOST_MAX {
            return Verdict::Bury(Reason::Poison);
        }
        let window = self.window.max(limits::LATE_MAX);
        let is_late = now.since(self.from) > window;
        if self.attempt == AttemptNo::FIRST && !self.dispatched && is_late {
            return Verdict::Bury(Reason::Missed);
        }
        Verdict::RetryAt(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn failed() -> Report {
        Report::failed("no")
    }

    fn wait(policy: &RetryPolicy, attempt: u32, chance: f64) -> Duration {
        let verdict = policy.verdict(AttemptNo(attempt), 0, &failed(), NOW, chance);
        let Verdict::RetryAt(at) = verdict else {
            panic!("{verdict:?}")
        };
        at.since(NOW)
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let policy = RetryPolicy {
            attempts_max: 100,
            ..RetryPolicy::default()
        };
        assert_eq!(wait(&policy, 1, 0.0), Duration::from_secs(1));
        assert_eq!(wait(&policy, 2, 0.0), Duration::from_secs(2));
        assert_eq!(wait(&policy, 4, 0.0), Duration::from_secs(8));
        assert!(wait(&policy, 90, 0.0) < policy.delay_max);
        assert!(wait(&policy, 90, 0.999) <= policy.delay_max);
        assert!(wait(&policy, 90, 0.999) > wait(&policy, 90, 0.1));
    }

    #[test]
    fn the_last_attempt_is_the_end() {
        let policy = RetryPolicy::default();
        let verdict = policy.verdict(AttemptNo(4), 0, &failed(), NOW, 0.5);
        assert_eq!(verdict, Verdict::Bury(Reason::AttemptsSpent));
        let verdict = policy.verdict(AttemptNo(4), 1, &failed(), NOW, 0.5);
        assert!(
            matches!(verdict, Verdict::RetryAt(_)),
            "a lost attempt does not count"
        );
    }

    #[test]
    fn a_refusal_is_final_and_a_wish_is_obeyed_within_a_cap() {
        let policy = RetryPolicy::default();
        let never = failed().with_retry(RetryHint::Never);
        assert_eq!(
            policy.verdict(AttemptNo(1), 0, &never, NOW, 0.0),
            Verdict::Bury(Reason::Refused)
        );
        let wish = |secs| failed().with_retry(RetryHint::After(Duration::from_secs(secs)));
        let at = |secs| Verdict::RetryAt(NOW.plus(Duration::from_secs(secs)));
        assert_eq!(policy.verdict(AttemptNo(1), 0, &wish(60), NOW, 0.0), at(60));
        assert_eq!(policy.verdict(AttemptNo(1), 0, &wish(0), NOW, 0.0), at(1));
        assert_eq!(
            policy.verdict(AttemptNo(1), 0, &wish(u64::MAX), NOW, 0.0),
            at(3_600)
        );
    }

    #[test]
    fn what_wants_another_attempt_gets_it_beyond_the_last_up_to_a_bound() {
        let policy = RetryPolicy {
            attempts_max: 1,
            ..RetryPolicy::default()
        };
        let again = failed().with_retry(RetryHint::Always);
        let verdict = |attempt| policy.verdict(AttemptNo(attempt), 0, &again, NOW, 0.0);
        let after = |secs| Verdict::RetryAt(NOW.plus(Duration::from_secs(secs)));
        assert_eq!(
            (verdict(1), verdict(2), verdict(3)),
            (after(1), after(2), after(4))
        );
        assert!(matches!(
            verdict(limits::ATTEMPTS_MAX - 1),
            Verdict::RetryAt(_)
        ));
        let end = Verdict::Bury(Reason::AttemptsSpent);
        assert_eq!(verdict(limits::ATTEMPTS_MAX), end);
        // Any other failure counts all attempts.
        assert_eq!(policy.verdict(AttemptNo(2), 0, &failed(), NOW, 0.0), end);
    }

    #[test]
    fn a_lost_claim_is_tried_again_within_bounds() {
        let claim = LostClaim {
            attempt: AttemptNo(1),
            lost: 0,
            due_at: NOW,
            from: NOW,
            ended_at: NOW,
            dispatched: false,
            delivery: Delivery::AtLeastOnce,
            window: Duration::from_secs(3_600),
        };
        let soon = NOW.plus(Duration::from_secs(5));
        assert_eq!(claim.verdict(soon), Verdict::RetryAt(soon));
        let late = NOW.plus(Duration::from_secs(7_200));
        assert_eq!(claim.verdict(late), Verdict::Bury(Reason::Missed));
        let woken = LostClaim {
            from: late,
            ..claim
        };
        assert_eq!(woken.verdict(late), Verdict::RetryAt(late), "it waited");
        let begun = LostClaim {
            dispatched: true,
            ..claim
        };
        assert_eq!(begun.verdict(late), Verdict::RetryAt(late));
        let again = LostClaim {
            attempt: AttemptNo(2),
            ..claim
        };
        assert_eq!(again.verdict(late), Verdict::RetryAt(late));
        let poison = LostClaim { lost: 4, ..again };
        assert_eq!(poison.verdict(soon), Verdict::Bury(Reason::Poison));
        let once = LostClaim {
            delivery: Delivery::AtMostOnce,
            ..claim
        };
        assert_eq!(once.verdict(soon), Verdict::Bury(Reason::Lost));
        let ahead = LostClaim {
            due_at: NOW.plus(Duration::from_millis(1)),
            ..once
        };
        assert_eq!(ahead.verdict(soon), Verdict::Release);
    }
}
