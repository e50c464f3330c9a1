//! A loop is a step: a duty does bounded, repeatable work and says when to wake it; `keep` owns
//! sleeping, nudges, errors, panics and shutdown, so a test can take one step without waiting.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use model::Timestamp;
use store::StoreError;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::clock::{Alarm, Clock};
use crate::metrics::Metrics;
use crate::nudge::Nudge;

/// When a duty wants its next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    Now,
    At(Timestamp),
    /// Only when nudged.
    Nudged,
}

#[async_trait]
pub(crate) trait Duty: Send {
    fn name(&self) -> &'static str;

    /// The nudge this duty listens for.
    fn nudge(&self) -> &Nudge;

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError>;
}

/// How a duty is built: at first, and again after it panicked. What such a one kept in itself may be half changed, so
/// it is not stepped again.
pub(crate) struct Builder {
    build: Box<dyn FnMut() -> Box<dyn Duty> + Send>,
    recover: Box<dyn FnMut() + Send>,
}

impl Builder {
    pub(crate) fn new<D: Duty + 'static>(mut build: impl FnMut() -> D + Send + 'static) -> Self {
        Self {
            build: Box::new(move || Box::new(build())),
            recover: Box::new(|| {}),
        }
    }

    /// What is to be done when one has panicked, before the next is built: what it had taken and not passed on is given
    /// back.
    pub(crate) fn recover(self, recover: impl FnMut() + Send + 'static) -> Self {
        Self {
            recover: Box::new(recover),
            ..self
        }
    }
}

const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A duty that has not panicked for so long is trusted as it was at first.
const TRUST_AFTER: Duration = Duration::from_secs(10);

/// How long a duty waits after it panicked: ever longer, if that happens often.
#[derive(Default)]
struct Panics {
    last: Option<(Duration, Duration)>,
}

impl Panics {
    fn pause(&mut self, uptime: Duration) -> Duration {
        let recent = self
            .last
            .filter(|(at, _)| uptime.saturating_sub(*at) < TRUST_AFTER);
        let pause = recent.map_or(PAUSE_FIRST, |(_, pause)| (pause * 2).min(PAUSE_MAX));
        self.last = Some((uptime, pause));
        pause
    }
}

/// What keeping a duty up takes.
#[derive(Clone)]
pub(crate) struct Keeper {
    pub clock: Arc<dyn Clock>,
    pub metrics: Metrics,
}

/// Steps a duty until `stop`. Errors that may pass are waited out, ever longer; a duty that panics is built again, and
/// nobody else notices; a fenced presence ends the duty, and with it this presence of the node.
pub(crate) async fn keep(
    mut builder: Builder,
    keeper: Keeper,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let Keeper { clock, metrics } = keeper;
    let mut alarm = clock.alarm().map_err(StoreError::unavailable)?;
    let mut duty = (builder.build)();
    let mut pause = PAUSE_FIRST;
    let mut panics = Panics::default();
    loop {
        let (now, began) = (clock.now(), clock.uptime());
        let stepped = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            stepped = AssertUnwindSafe(duty.step(now)).catch_unwind() => stepped,
        };
        let span = match stepped {
            Ok(Ok(wake)) => {
                if pause > PAUSE_FIRST {
                    debug!(duty = duty.name(), "works again");
                }
                pause = PAUSE_FIRST;
                let waited = wait(wake, duty.nudge(), alarm.as_mut());
                if stop.run_until_cancelled(waited).await.is_none() {
                    return Ok(());
                }
                continue;
            }
            Ok(Err(StoreError::Fenced)) => return Err(StoreError::Fenced),
            Ok(Err(error)) => {
                metrics.store_errors.inc();
                if pause == PAUSE_FIRST {
                    warn!(duty = duty.name(), error = %describe(&error), "waits for the store");
                }
                // From try to try: one that took long to fail has waited already.
                let took = clock.uptime().saturating_sub(began);
                let span = pause.saturating_sub(took).max(PAUSE_FIRST);
                pause = (pause * 2).min(PAUSE_MAX);
                span
            }
            Err(panic) => {
                let name = duty.name();
                metrics.duty_panicked(name);
                error!(
                    duty = name,
                    panic = text_of(panic.as_ref()),
                    "a duty panicked and is started again"
                );
                // First of all, what it has under way ends with it.
                drop(duty);
                (builder.recover)();
                duty = (builder.build)();
                panics.pause(clock.uptime())
            }
        };
        let paused = clock.sleep(span);
        if stop.run_until_cancelled(paused).await.is_none() {
            return Ok(());
        }
    }
}

/// Waits until a duty wants its next step.
async fn wait(wake: Wake, nudge: &Nudge, alarm: &mut dyn Alarm) {
    match wake {
        Wake::Now => tokio::task::yield_now().await,
        Wake::At(moment) => tokio::select! {
            biased;
            () = nudge.heard() => {}
            () = alarm.wait(moment) => {}
        },
        Wake::Nudged => nudge.heard().await,
    }
}

/// What a panic says.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a text")
}

/// The same on a thread of its own, which nothing else can keep busy.
pub(crate) async fn keep_apart(
    builder: Builder,
    keeper: Keeper,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let (ended, end) = tokio::sync::oneshot::channel();
    let body = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let kept = match runtime {
            Ok(runtime) => runtime.block_on(keep(builder, keeper, stop)),
            Err(error) => Err(StoreError::unavailable(error)),
        };
        let _nobody_waits = ended.send(kept);
    };
    let thread = std::thread::Builder::new().name("beats".to_owned());
    thread.spawn(body).map_err(StoreError::unavailable)?;
    end.await.unwrap_or(Ok(()))
}

/// An error with what caused it, on one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
