//! Trouble: what somebody should look at, as lines in the log. All of it is counted elsewhere; here each job gets one
//! line a minute for each kind of trouble, and all jobs together so many, so that a log shows an outage and is not
//! made of it. What was left out is counted in a line of its own.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::schedule::format_span;
use model::view::PausedJob;
use model::{Attempt, Job, JobId, JobKey, Outcome, Reason, Run, RunId, TenantId, Verdict, limits};
use store::Settlement;
use tracing::warn;

use crate::clock::Clock;
use crate::lock;
use crate::metrics::Metrics;
use crate::run_counts::Over;

/// How long a job has had its say.
const WINDOW: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Dead,
    Lost,
    Skipped,
    Late,
    Long,
    Beyond,
    Paused,
    Quota,
}

impl What {
    fn text(self) -> &'static str {
        match self {
            Self::Dead => "a run is dead",
            Self::Lost => "an attempt was lost",
            Self::Skipped => "slots were skipped",
            Self::Late => "a run starts late",
            Self::Long => "a run takes long",
            Self::Beyond => "a run is left to others",
            Self::Paused => "a job is paused for its failures",
            Self::Quota => {
                "a tenant has had all its runs of the day: its slots are skipped until midnight UTC"
            }
        }
    }
}

/// Whether slots that were skipped for this are anybody's trouble. What was asked for is not logged.
pub(crate) fn is_trouble(reason: Reason) -> bool {
    match reason {
        Reason::Overlap
        | Reason::QueueFull
        | Reason::Missed
        | Reason::AttemptsSpent
        | Reason::Refused
        | Reason::Lost
        | Reason::Poison
        | Reason::Unreadable
        | Reason::Invalid
        | Reason::Overload => true,
        Reason::Paused
        | Reason::Requested
        | Reason::Replaced
        | Reason::JobDeleted
        | Reason::Calendar
        // Its tenant has a line.
        | Reason::Quota => false,
    }
}

/// Whose trouble it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    Job(JobId),
    Tenant(TenantId),
}

/// The lines of one window.
#[derive(Debug, Default)]
struct Lines {
    /// By uptime.
    until: Duration,
    written: BTreeSet<(Whose, What)>,
    left_out: u64,
}

impl Lines {
    /// Begins another window if this one is over. Answers how many lines it left out.
    fn turn(&mut self, uptime: Duration) -> u64 {
        if uptime < self.until {
            return 0;
        }
        self.until = uptime + WINDOW;
        self.written.clear();
        std::mem::take(&mut self.left_out)
    }

    fn admit(&mut self, whose: Whose, what: What) -> bool {
        let admitted =
            self.written.len() < limits::TROUBLE_LINES_MAX && self.written.insert((whose, what));
        self.left_out += u64::from(!admitted);
        admitted
    }
}

pub(crate) struct Trouble {
    node: Arc<str>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    lines: Mutex<Lines>,
}

impl Trouble {
    pub(crate) fn new(node: &str, clock: Arc<dyn Clock>, metrics: Metrics) -> Self {
        Self {
            node: Arc::from(node),
            clock,
            metrics,
            lines: Mutex::default(),
        }
    }

    /// Says how much was left out, when there is something to say.
    pub(crate) fn turn(&self) {
        let uptime = self.clock.uptime();
        let left_out = lock(&self.lines).turn(uptime);
        if left_out > 0 {
            let seconds = WINDOW.as_secs();
            warn!(
                lines = left_out,
                node = &*self.node,
                "there was more of the same trouble in the last {seconds} s"
            );
        }
    }

    /// Of a run that is with this node.
    pub(crate) fn log(&self, what: What, job: &Job, run: RunId, reason: &dyn Display) {
        self.log_of(what, job, run, &self.node, reason);
    }

    fn log_of(&self, what: What, job: &Job, run: RunId, node: &str, reason: &dyn Display) {
        self.turn();
        if lock(&self.lines).admit(Whose::Job(job.id), what) {
            let (key, reason) = (job.key.as_ref().map(JobKey::as_str), reason.to_string());
            warn!(job = %job.id, key, %run, node, reason, "{}", what.text());
        }
    }

    /// A tenant has had all its runs of the day. Answers whether there was room for a line.
    pub(crate) fn log_quota(&self, tenant: TenantId, over: &Over) -> bool {
        self.turn();
        let admitted = lock(&self.lines).admit(Whose::Tenant(tenant), What::Quota);
        if admitted {
            let (tenant, node) = (over.name.as_str(), &*self.node);
            let (limit, used) = (over.exceeded.limit, over.exceeded.used);
            let quota = over.exceeded.quota.as_str();
            warn!(tenant, quota, limit, used, node, "{}", What::Quota.text());
        }
        admitted
    }

    /// The end of a run has paused its job.
    pub(crate) fn observe_paused(&self, run: &Run, paused: &PausedJob) {
        self.metrics.paused.inc();
        self.turn();
        if lock(&self.lines).admit(Whose::Job(run.job), What::Paused) {
            let (job, key) = (run.job, paused.key.as_ref().map(JobKey::as_str));
            let (run, node, reason) = (run.id, &*self.node, &*paused.note);
            warn!(%job, key, %run, node, reason, "{}", What::Paused.text());
        }
    }

    /// What somebody should know of the end of an attempt.
    pub(crate) fn observe_end(&self, job: &Job, settlement: &Settlement) {
        let long_by = settlement.attempt.as_ref().and_then(|it| it.long_by);
        if settlement.verdict == Verdict::Succeed
            && long_by.is_none()
            && settlement.attempt.is_some()
        {
            // Most of them: nothing is to be said.
            return;
        }
        let run = &settlement.run;
        let is_first = |former: &Attempt| former.long_by.is_none();
        if let Some(long_by) = long_by
            && run.attempts.iter().all(is_first)
        {
            self.metrics.long.inc();
            let reason = format!("long by {}", format_span(long_by));
            self.log(What::Long, job, run.id, &reason);
        }
        self.log_end(job, settlement);
    }

    /// The end of an attempt, if it is a bad one.
    fn log_end(&self, job: &Job, settlement: &Settlement) {
        let (run, attempt) = (settlement.run.id, settlement.attempt.as_ref());
        let node = attempt.and_then(|attempt| attempt.node.as_deref());
        let node = node.unwrap_or(&self.node);
        let error = attempt.and_then(|attempt| attempt.error.as_deref());
        if attempt.is_some_and(|attempt| attempt.outcome == Outcome::Lost) {
            let reason = error.unwrap_or_default();
            self.log_of(What::Lost, job, run, node, &reason);
        }
        if let Verdict::Bury(reason) = settlement.verdict {
            let error = error.map_or(String::new(), |error| format!(": {error}"));
            let reason = format!("{}{error}", reason.as_str());
            self.log_of(What::Dead, job, run, node, &reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;

    use super::*;

    fn job(number: u64) -> Whose {
        let mut rest = [0; 10];
        rest[..8].copy_from_slice(&number.to_be_bytes());
        Whose::Job(JobId::new(Timestamp::from_millis(1_700_000_000_000), rest))
    }

    #[test]
    fn a_job_has_one_line_a_minute_for_each_trouble() {
        let mut lines = Lines::default();
        assert_eq!(lines.turn(Duration::from_secs(5)), 0);
        assert!(lines.admit(job(1), What::Dead));
        assert!(!lines.admit(job(1), What::Dead));
        assert!(lines.admit(job(1), What::Lost));
        assert!(lines.admit(job(2), What::Dead));
        assert_eq!(lines.turn(Duration::from_secs(64)), 0);
        assert!(!lines.admit(job(2), What::Dead));
        assert_eq!(lines.turn(Duration::from_secs(65)), 2, "were left out");
        assert!(lines.admit(job(1), What::Dead));
    }

    #[test]
    fn all_jobs_together_have_so_many() {
        let mut lines = Lines::default();
        lines.turn(Duration::ZERO);
        let max = limits::TROUBLE_LINES_MAX as u64;
        for number in 0..max {
            assert!(lines.admit(job(number), What::Skipped));
        }
        assert!(!lines.admit(job(max), What::Skipped));
        assert_eq!(lines.turn(WINDOW), 1);
    }
}
