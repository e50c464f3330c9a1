//! Time's one door: only this file reads clocks or sleeps; everyone else is passed `now`.
//!
//! The system clock keeps one absolute `timerfd` per alarm under `AsyncFd`: it wakes within a tenth
//! of a millisecond where the runtime's own wheel rounds up to the next one. No wait is longer than
//! `SLEEP_MAX` without reading the clock again, so a clock that is stepped, or a machine that slept,
//! is noticed within a second.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::{Timestamp, limits};
use nix::errno::Errno;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId as Source, clock_gettime};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[async_trait]
pub trait Clock: Send + Sync + 'static {
    /// Wall time.
    fn now(&self) -> Timestamp;

    /// Microseconds since the epoch, for measuring lateness finer than moments are kept.
    fn now_micros(&self) -> i64 {
        self.now().as_millis().saturating_mul(1_000)
    }

    /// Time that only grows, also while the machine sleeps: timeouts, presences and leases use it.
    fn uptime(&self) -> Duration;

    /// Waits for a while; about a millisecond exact.
    async fn sleep(&self, span: Duration);

    /// Something that waits for an exact moment.
    fn alarm(&self) -> io::Result<Box<dyn Alarm>>;
}

#[async_trait]
pub trait Alarm: Send {
    /// Waits until the clock reads `moment`, in microseconds, or for `SLEEP_MAX`, or until the clock
    /// was stepped, whichever comes first; the caller reads the clock again.
    async fn wait_micros(&mut self, moment: i64);

    async fn wait(&mut self, moment: Timestamp) {
        self.wait_micros(moment.as_millis().saturating_mul(1_000))
            .await;
    }
}

const SLEEP_MAX_MICROS: i64 = limits::SLEEP_MAX.as_micros() as i64;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    fn read(source: Source) -> TimeSpec {
        // These clocks exist on every Linux we build for; zero would only delay, never fire early.
        clock_gettime(source).unwrap_or_else(|_| TimeSpec::nanoseconds(0))
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(Self::read(Source::CLOCK_REALTIME).num_milliseconds())
    }

    fn now_micros(&self) -> i64 {
        Self::read(Source::CLOCK_REALTIME).num_microseconds()
    }

    fn uptime(&self) -> Duration {
        Duration::from(Self::read(Source::CLOCK_BOOTTIME))
    }

    async fn sleep(&self, span: Duration) {
        #[expect(clippy::disallowed_methods, reason = "this is the one door")]
        tokio::time::sleep(span).await;
    }

    fn alarm(&self) -> io::Result<Box<dyn Alarm>> {
        let timer = TimerFd::new(
            ClockId::CLOCK_REALTIME,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )?;
        #[expect(
            unsafe_code,
            reason = "the timer's file descriptor, watched by the runtime"
        )]
        // SAFETY: `Timer` owns its descriptor, always answers the same one, and nobody replaces or
        // closes it before the `AsyncFd` that owns the timer is dropped.
        let timer = unsafe { AsyncFd::register_with_interest(Timer(timer), Interest::READABLE)? };
        Ok(Box::new(SystemAlarm { timer }))
    }
}

impl store::StoreClock for SystemClock {
    fn now(&self) -> Timestamp {
        Clock::now(self)
    }

    fn now_micros(&self) -> i64 {
        Clock::now_micros(self)
    }

    fn uptime(&self) -> Duration {
        Clock::uptime(self)
    }
}

/// A clock that executors measure by.
pub(crate) struct Measure(pub(crate) Arc<dyn Clock>);

impl executor::Stopwatch for Measure {
    fn uptime(&self) -> Duration {
        self.0.uptime()
    }
}

/// A timerfd that `AsyncFd` can watch.
struct Timer(TimerFd);

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

struct SystemAlarm {
    timer: AsyncFd<Timer>,
}

impl SystemAlarm {
    /// Sets the timer and waits for it. `ECANCELED` from a read means that the clock was stepped.
    async fn ring(&self, expiration: Expiration, flags: TimerSetTimeFlags) -> Result<(), Errno> {
        let Timer(timer) = self.timer.get_ref();
        timer.set(expiration, flags)?;
        loop {
            let mut guard = self.timer.readable().await.map_err(|_| Errno::EIO)?;
            match timer.wait() {
                Ok(()) | Err(Errno::ECANCELED) => return Ok(()),
                Err(Errno::EAGAIN) => guard.clear_ready(),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl Alarm for SystemAlarm {
    async fn wait_micros(&mut self, moment: i64) {
        let now = SystemClock.now_micros();
        if moment <= now {
            return;
        }
        let until = moment.min(now.saturating_add(SLEEP_MAX_MICROS));
        let absolute = Expiration::OneShot(TimeSpec::microseconds(until));
        let flags =
            TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
        // The backstop holds whatever the wall clock does: an absolute timer may never ring when
        // the clock it was set by is not the one the kernel reads.
        let span = Duration::from_micros(until.saturating_sub(now).unsigned_abs());
        let backstop = SystemClock.sleep(span + Duration::from_millis(20));
        tokio::select! {
            biased;
            rung = self.ring(absolute, flags) => {
                if rung.is_err() {
                    SystemClock.sleep(Duration::from_millis(1)).await;
                } else if SystemClock.now_micros() < until {
                    // Rang early: the clock was stepped back, or runs apart from the kernel's.
                    SystemClock.sleep(Duration::from_millis(1)).await;
                }
            }
            () = backstop => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_alarm_rings_at_its_moment_and_not_before() {
        let clock = SystemClock;
        let mut alarm = clock.alarm().unwrap();
        for ahead in [1, 3, 20] {
            let moment = Clock::now(&clock).plus(Duration::from_millis(ahead));
            while Clock::now(&clock) < moment {
                alarm.wait(moment).await;
            }
            assert!(clock.now_micros() >= moment.as_millis() * 1_000);
        }
    }

    #[tokio::test]
    async fn a_moment_in_the_past_is_not_waited_for() {
        let mut alarm = SystemClock.alarm().unwrap();
        alarm.wait(Timestamp::MIN).await;
    }

    #[tokio::test]
    async fn no_wait_is_longer_than_its_bound() {
        let clock = SystemClock;
        let before = Clock::uptime(&clock);
        clock.alarm().unwrap().wait(Timestamp::MAX).await;
        let waited = Clock::uptime(&clock) - before;
        assert!(
            waited >= limits::SLEEP_MAX - Duration::from_millis(50),
            "{waited:?}"
        );
        assert!(waited < limits::SLEEP_MAX * 3, "{waited:?}");
    }
}
