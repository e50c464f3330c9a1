//! What a filter wants of a run beyond what an index says: its reason, its error, and the labels and the target of its job.

use crate::error_group::error_group;
use crate::job::Job;
use crate::run::{Reason, Run};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunMatch {
    /// One of these; any if there is none.
    pub reasons: Vec<Reason>,
    /// A part of the last attempt's error or of its group's name, in any case: a group is found by its name.
    pub error: Option<String>,
    /// All of these labels, of the job as it stands.
    pub labels: Vec<(String, String)>,
    /// The host that the job as it stands calls, with or without its port.
    pub target: Option<String>,
}

impl RunMatch {
    /// Whether every run will do.
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty() && self.error.is_none() && !self.needs_job()
    }

    /// Whether the job of a run has a say.
    pub fn needs_job(&self) -> bool {
        !self.labels.is_empty() || self.target.is_some()
    }

    pub fn fits_run(&self, run: &Run) -> bool {
        let reason = |reason: &Reason| run.reason == Some(*reason);
        let error = |part: &String| {
            let (error, part) = (run.error().unwrap_or_default(), part.to_lowercase());
            let has = |text: &str| text.to_lowercase().contains(&part);
            has(error) || has(&error_group(error))
        };
        (self.reasons.is_empty() || self.reasons.iter().any(reason))
            && self.error.as_ref().is_none_or(error)
    }

    pub fn fits_job(&self, job: &Job) -> bool {
        let has = |(name, value): &(String, String)| job.def.labels.get(name) == Some(value);
        let calls = |host: &String| job.def.target.is_at(host);
        self.labels.iter().all(has) && self.target.as_ref().is_none_or(calls)
    }
}

impl Run {
    /// What the last attempt said went wrong.
    pub fn error(&self) -> Option<&str> {
        self.attempts.last()?.error.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::{Attempt, AttemptNo, Report};
    use crate::id::{JobId, TenantId};
    use crate::job::Definition;
    use crate::run::RunState;
    use crate::target::Target;
    use crate::time::{Slot, Timestamp};

    fn job() -> Job {
        let now = Timestamp::from_millis(1_000);
        let target = Target::http("https://API.example.com:8443/hook").unwrap();
        let mut def = Definition::new(Slot(now).into(), target);
        def.labels.insert("team".to_owned(), "ops".to_owned());
        Job::new(JobId::new(now, [1; 10]), TenantId::DEFAULT, None, def, now)
    }

    fn dead(error: &str) -> Run {
        let at = Timestamp::from_millis(1_000);
        Run {
            state: RunState::Dead,
            reason: Some(Reason::AttemptsSpent),
            attempts: vec![Attempt::new(
                AttemptNo::FIRST,
                None,
                at,
                Report::failed(error),
            )],
            ..Run::of_slot(&job(), Slot(at))
        }
    }

    #[test]
    fn nothing_wanted_is_everything_wanted() {
        let any = RunMatch::default();
        assert!(any.is_empty() && !any.needs_job());
        assert!(any.fits_run(&dead("no")) && any.fits_job(&job()));
    }

    #[test]
    fn a_run_fits_by_its_reason_and_a_part_of_its_error_in_any_case() {
        let by = |reasons: &[Reason], error: Option<&str>| RunMatch {
            reasons: reasons.to_vec(),
            error: error.map(str::to_owned),
            ..RunMatch::default()
        };
        let run = dead("Connection refused by 10.0.0.1");
        assert!(by(&[Reason::AttemptsSpent], None).fits_run(&run));
        assert!(!by(&[Reason::Refused], None).fits_run(&run));
        assert!(by(&[Reason::Refused, Reason::AttemptsSpent], Some("REFUSED")).fits_run(&run));
        assert!(!by(&[], Some("timeout")).fits_run(&run));
        let group = error_group("Connection refused by 10.0.0.1");
        assert!(group.contains('<') && by(&[], Some(&group)).fits_run(&run));
        assert!(!by(&[], Some(&group)).fits_run(&dead("Connection closed by 10.0.0.1")));
        let silent = Run {
            attempts: Vec::new(),
            ..run
        };
        assert!(!by(&[], Some("refused")).fits_run(&silent));
    }

    #[test]
    fn a_job_fits_by_all_labels_and_by_its_host() {
        let of = |labels: &[(&str, &str)], target: Option<&str>| {
            let labels = labels
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()));
            let wanted = RunMatch {
                labels: labels.collect(),
                target: target.map(str::to_owned),
                ..RunMatch::default()
            };
            assert!(wanted.needs_job());
            wanted.fits_job(&job())
        };
        assert!(of(&[("team", "ops")], Some("api.example.com")));
        assert!(of(&[], Some("Api.Example.com:8443")));
        assert!(!of(&[], Some("api.example.com:443")));
        assert!(!of(&[], Some("example.com")));
        assert!(!of(&[("team", "ops"), ("tier", "1")], None));
    }
}
