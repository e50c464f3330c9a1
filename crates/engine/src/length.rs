//! Length: how long an attempt takes, and what is said of one that takes too long.

use std::convert::Infallible;

use executor::Progress;
use model::rollup::Count;
use model::schedule::format_span;
use model::{Job, Outcome, Report, Target, Timestamp};

use crate::attempt::Attempts;
use crate::board::Work;
use crate::trouble::What;

/// Says so when a run starts later than its job wants.
pub(crate) fn watch_start(attempts: &Attempts, work: &Work, dispatched_at: Timestamp) {
    let Work { run, job, .. } = work;
    if let Some(late_by) = job.late_by(run, dispatched_at) {
        attempts.metrics.late.inc();
        let count = (run.tenant, Count::Late);
        attempts.metrics.rollups.count(dispatched_at, &[count]);
        let late_by = format!("late by {}", format_span(late_by));
        attempts.by.trouble.log(What::Late, job, run.id, &late_by);
    }
}

/// Says so when a run takes longer than its job wants, while it still does. Its end is not waited for here.
pub(crate) async fn watch_length(
    attempts: &Attempts,
    work: &Work,
    dispatched_at: Timestamp,
) -> Infallible {
    let Work { run, job, .. } = work;
    if let Some(bound) = job.def.finish_within {
        let begun = run.dispatched_at.unwrap_or(dispatched_at);
        let left = bound.saturating_sub(attempts.clock.now().since(begun));
        attempts.clock.sleep(left).await;
        let reason = format!("has not ended within {}", format_span(bound));
        attempts.by.trouble.log(What::Long, job, run.id, &reason);
    }
    std::future::pending().await
}

/// The time of an attempt is up.
pub(crate) fn timed_out(job: &Job, progress: &Progress) -> Report {
    let (target, timeout) = (&job.def.target, job.def.timeout);
    let mut report = Report::of(Outcome::TimedOut);
    let span = format_span(timeout);
    let mut error = match target {
        Target::Http(_) => format!("no answer within {span}"),
        Target::Shell(_) | Target::Python(_) => {
            format!("it had not ended within {span}, and was ended")
        }
    };
    if let Some(proxy) = progress.proxy() {
        error = format!("{error}: the proxy {proxy} did not open the way");
    }
    report.error = Some(error);
    progress.lay_into(report)
}
