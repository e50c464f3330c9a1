//! The breaker of an origin (scheme, host and port), and how many calls to it may be under way. Time and chance are
//! arguments; moments are uptimes, which no clock step moves.
//!
//! ```text
//!            FAILURES in a row                    its time has come
//!   Closed ────────────────────▶ Open (until) ────────────────────▶ HalfOpen: one probe
//!     ▲                            ▲                                   │          │
//!     │                            └────── it fails: twice as long ────┘          │
//!     └──────────────────── any call succeeds ────────────────────────────────────┘
//! ```
//!
//! What always holds: while it is open nothing starts, and while it is half open one call at a time does.

use std::time::Duration;

use crate::attempt::{Outcome, Report};

/// Failures in a row that open it.
pub const FAILURES: u32 = 5;
/// How long it is open at first, and at the most.
pub const OPEN_FIRST: Duration = Duration::from_secs(1);
pub const OPEN_MAX: Duration = Duration::from_secs(60);
/// The share of that which chance may take off, so that nodes do not probe in step.
const JITTER: f64 = 0.3;
/// A probe that says nothing for so long does not keep another from being made.
pub const PROBE_MAX: Duration = Duration::from_secs(60);
/// Calls that may be under way when it has just closed: whoever has just come back is not to be run over.
const CALLS_AFTER_CLOSE: usize = 16;

/// What the end of an attempt says about its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// It answered, whatever it said.
    Well,
    /// It could not be reached, broke off, did not answer in time, or answered 5xx.
    Unwell,
    /// It answered 429 or 503: fewer calls at once, please.
    Busy,
}

impl Signal {
    /// Nothing for an attempt that says nothing about its origin: one that was cancelled, or failed before it left.
    pub fn of(report: &Report) -> Option<Self> {
        match (report.outcome, report.status) {
            (Outcome::Succeeded, _) => Some(Self::Well),
            (Outcome::TimedOut, _) => Some(Self::Unwell),
            (Outcome::Failed, Some(429 | 503)) => Some(Self::Busy),
            (Outcome::Failed, Some(500..=599)) => Some(Self::Unwell),
            (Outcome::Failed, Some(_)) => Some(Self::Well),
            (Outcome::Failed, None) => report.unreached.then_some(Self::Unwell),
            (Outcome::Lost | Outcome::Cancelled, _) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Closed,
    /// Nothing starts before this uptime.
    Open {
        until: Duration,
    },
    /// A probe has been under way since this uptime.
    HalfOpen {
        since: Duration,
    },
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen { .. } => "half_open",
        }
    }
}

/// Whether a call may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admit {
    Go,
    /// It may, and its end decides.
    Probe,
    /// Not before this uptime.
    Not(Duration),
}

/// What became of the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turned {
    Opened,
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    state: State,
    /// In a row.
    failures: u32,
    /// How long it is open the next time.
    open_for: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            state: State::Closed,
            failures: 0,
            open_for: OPEN_FIRST,
        }
    }
}

impl Breaker {
    pub fn state(&self) -> State {
        self.state
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    pub fn admit(&mut self, now: Duration) -> Admit {
        let again = match self.state {
            State::Closed => return Admit::Go,
            State::Open { until } => until,
            State::HalfOpen { since } => since + PROBE_MAX,
        };
        if now < again {
            return Admit::Not(again);
        }
        self.state = State::HalfOpen { since: now };
        Admit::Probe
    }

    /// A call ended. `chance` lies in 0..1.
    pub fn observe(
        &mut self,
        signal: Option<Signal>,
        is_probe: bool,
        now: Duration,
        chance: f64,
    ) -> Option<Turned> {
        match (signal, self.state) {
            (Some(Signal::Well), state) => {
                *self = Self::default();
                (state != State::Closed).then_some(Turned::Closed)
            }
            (Some(Signal::Unwell), State::Closed) => {
                self.failures = self.failures.saturating_add(1);
                (self.failures >= FAILURES).then(|| self.open(now, chance))
            }
            (Some(Signal::Unwell | Signal::Busy), State::HalfOpen { .. }) if is_probe => {
                self.failures = self.failures.saturating_add(1);
                Some(self.open(now, chance))
            }
            (None, State::HalfOpen { .. }) if is_probe => {
                // It said nothing: the next call is the probe.
                self.state = State::Open { until: now };
                None
            }
            // Of calls that began before it opened only a success says something new.
            (Some(Signal::Unwell | Signal::Busy) | None, _) => None,
        }
    }

    fn open(&mut self, now: Duration, chance: f64) -> Turned {
        let off = JITTER * chance.clamp(0.0, 1.0);
        let until = now + self.open_for.mul_f64(1.0 - off);
        self.state = State::Open { until };
        self.open_for = (self.open_for * 2).min(OPEN_MAX);
        Turned::Opened
    }
}

/// How many calls may be under way: halved when the origin wants fewer, one more with each success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calls {
    pub under_way: usize,
    pub bound: usize,
    max: usize,
}

impl Calls {
    pub fn new(max: usize) -> Self {
        Self {
            under_way: 0,
            bound: max,
            max,
        }
    }

    pub fn has_room(&self) -> bool {
        self.under_way < self.bound
    }

    /// A call ended. Answers what it says to the breaker: an origin that wants fewer calls than one at a time is unwell.
    pub fn observe(&mut self, signal: Option<Signal>) -> Option<Signal> {
        self.under_way = self.under_way.saturating_sub(1);
        match signal {
            Some(Signal::Well) => self.bound = (self.bound + 1).min(self.max),
            Some(Signal::Busy) if self.bound == 1 => return Some(Signal::Unwell),
            Some(Signal::Busy) => self.bound = (self.bound / 2).max(1),
            Some(Signal::Unwell) | None => {}
        }
        signal
    }

    /// Its breaker has closed.
    pub fn begin_again(&mut self) {
        self.bound = self.bound.min(CALLS_AFTER_CLOSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn fail(breaker: &mut Breaker, now: Duration) -> Option<Turned> {
        breaker.observe(Some(Signal::Unwell), false, now, 0.0)
    }

    fn opened(now: Duration) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 1..FAILURES {
            assert_eq!(fail(&mut breaker, now), None);
        }
        assert_eq!(fail(&mut breaker, now), Some(Turned::Opened));
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_in_between_does_not() {
        let mut breaker = Breaker::default();
        for _ in 0..FAILURES * 3 {
            for _ in 1..FAILURES {
                assert_eq!(fail(&mut breaker, SECOND), None);
            }
            breaker.observe(Some(Signal::Well), false, SECOND, 0.0);
        }
        assert_eq!(breaker.admit(SECOND), Admit::Go);
        assert_eq!(
            opened(SECOND).admit(SECOND),
            Admit::Not(SECOND + OPEN_FIRST)
        );
    }

    #[test]
    fn one_probe_at_a_time_decides_and_what_was_under_way_before_does_not() {
        let mut breaker = opened(SECOND);
        let due = SECOND + OPEN_FIRST;
        assert_eq!(breaker.admit(due), Admit::Probe);
        assert_eq!(breaker.admit(due), Admit::Not(due + PROBE_MAX));
        assert_eq!(fail(&mut breaker, due), None, "it began before");
        let probe = breaker.observe(Some(Signal::Unwell), true, due, 0.0);
        assert_eq!(probe, Some(Turned::Opened));
        assert_eq!(breaker.admit(due), Admit::Not(due + OPEN_FIRST * 2));
        let later = due + OPEN_FIRST * 2;
        assert_eq!(breaker.admit(later), Admit::Probe);
        let probe = breaker.observe(Some(Signal::Well), true, later, 0.0);
        assert_eq!(probe, Some(Turned::Closed));
        assert_eq!((breaker.admit(later), breaker.failures()), (Admit::Go, 0));
    }

    #[test]
    fn it_is_open_for_longer_and_longer_up_to_a_bound_less_what_chance_takes_off() {
        let mut breaker = opened(SECOND);
        let (mut now, mut last) = (SECOND, Duration::ZERO);
        for _ in 0..10 {
            let Admit::Not(until) = breaker.admit(now) else {
                panic!("open")
            };
            assert!(until - now >= last && until - now <= OPEN_MAX);
            (last, now) = (until - now, until);
            assert_eq!(breaker.admit(now), Admit::Probe);
            breaker.observe(Some(Signal::Unwell), true, now, 0.0);
        }
        assert_eq!(last, OPEN_MAX);
        assert_eq!(breaker.admit(now + OPEN_MAX), Admit::Probe);
        breaker.observe(Some(Signal::Unwell), true, now, 1.0);
        assert_eq!(breaker.admit(now), Admit::Not(now + OPEN_MAX.mul_f64(0.7)));
    }

    #[test]
    fn a_probe_that_says_nothing_is_made_again() {
        let mut breaker = opened(SECOND);
        let due = SECOND + OPEN_FIRST;
        assert_eq!(breaker.admit(due), Admit::Probe);
        assert_eq!(breaker.observe(None, true, due, 0.0), None);
        assert_eq!(breaker.admit(due), Admit::Probe);
        assert_eq!(breaker.admit(due + PROBE_MAX), Admit::Probe, "it hangs");
    }

    #[test]
    fn what_an_end_says_about_the_origin() {
        let failed = |status| Report::failed("no").with_status(status);
        for (report, expected) in [
            (Report::succeeded(), Some(Signal::Well)),
            (failed(404), Some(Signal::Well)),
            (failed(500), Some(Signal::Unwell)),
            (failed(502), Some(Signal::Unwell)),
            (failed(429), Some(Signal::Busy)),
            (failed(503), Some(Signal::Busy)),
            (Report::of(Outcome::TimedOut), Some(Signal::Unwell)),
            (
                Report::failed("no such host").unreached(),
                Some(Signal::Unwell),
            ),
            (Report::failed("no such secret"), None),
            (Report::of(Outcome::Cancelled), None),
        ] {
            assert_eq!(Signal::of(&report), expected, "{report:?}");
        }
    }

    #[test]
    fn fewer_calls_are_made_of_who_wants_fewer_and_more_again_one_by_one() {
        let mut calls = Calls::new(8);
        for expected in [4, 2, 1] {
            assert_eq!(calls.observe(Some(Signal::Busy)), Some(Signal::Busy));
            assert_eq!(calls.bound, expected);
        }
        assert_eq!(calls.observe(Some(Signal::Busy)), Some(Signal::Unwell));
        for expected in [2, 3, 4, 5, 6, 7, 8, 8] {
            calls.observe(Some(Signal::Well));
            assert_eq!(calls.bound, expected);
        }
    }
}
