//! A loop is a step: a duty does bounded, repeatable work and says when to wake it; `keep` owns
//! sleeping, nudges, errors and shutdown, so a test can take one step without waiting.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use model::Timestamp;
use store::StoreError;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::handle::{Nudge, Shared};

/// When a duty wants its next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    Now,
    At(Timestamp),
    /// Only when nudged.
    Nudged,
}

#[async_trait]
pub trait Duty: Send {
    fn name(&self) -> &'static str;

    /// The nudge this duty listens for.
    fn nudge<'a>(&self, shared: &'a Shared) -> &'a Nudge;

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError>;
}

const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Steps a duty until `stop`. Errors that may pass are waited out, ever longer; a barred presence
/// ends the duty, and with it this presence of the node.
pub async fn keep(
    mut duty: Box<dyn Duty>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let mut alarm = shared.clock.alarm().map_err(StoreError::unavailable)?;
    let mut pause = PAUSE_FIRST;
    loop {
        let now = shared.clock.now();
        let stepped = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            stepped = duty.step(now) => stepped,
        };
        let wake = match stepped {
            Ok(wake) => {
                if pause > PAUSE_FIRST {
                    debug!(duty = duty.name(), "works again");
                }
                pause = PAUSE_FIRST;
                wake
            }
            Err(StoreError::Barred) => return Err(StoreError::Barred),
            Err(error) => {
                shared.metrics.store_errors.inc();
                if pause == PAUSE_FIRST {
                    warn!(duty = duty.name(), error = %describe(&error), "waits for the store");
                }
                let span = pause;
                pause = (pause * 2).min(PAUSE_MAX);
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(()),
                    () = shared.clock.sleep(span) => {}
                }
                continue;
            }
        };
        let nudge = duty.nudge(&shared);
        match wake {
            Wake::Now => tokio::task::yield_now().await,
            Wake::At(moment) => tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = nudge.heard() => {}
                () = alarm.wait(moment) => {}
            },
            Wake::Nudged => tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = nudge.heard() => {}
            },
        }
    }
}

/// The same on a thread of its own, which nothing else can keep busy.
pub async fn keep_apart(
    duty: Box<dyn Duty>,
    shared: Arc<Shared>,
    stop: CancellationToken,
) -> Result<(), StoreError> {
    let (ended, end) = tokio::sync::oneshot::channel();
    let body = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let kept = match runtime {
            Ok(runtime) => runtime.block_on(keep(duty, shared, stop)),
            Err(error) => Err(StoreError::unavailable(error)),
        };
        let _nobody_waits = ended.send(kept);
    };
    let thread = std::thread::Builder::new().name("beats".to_owned());
    thread.spawn(body).map_err(StoreError::unavailable)?;
    end.await.unwrap_or(Ok(()))
}

/// An error with what caused it, on one line.
pub fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
