//! From a draft to a definition that holds: bounds, and what must fit together.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use model::job::Definition;
use model::schedule::{Calendars, format_span};
use model::{CatchUp, Completion, Overlap, RetryPolicy, limits};

use super::Patch;
use super::draft::{CatchUpDraft, JobDraft, OverlapDraft, RetryDraft};
use super::fault::{Fault, FieldError};
use super::schedule::{self, Context};

const MILLISECOND: Duration = Duration::from_millis(1);

impl JobDraft {
    /// A whole definition: what is not said takes its default.
    pub fn define(self, context: Context<'_>) -> Result<Definition, FieldError> {
        let missing = |field: &str, fix: &str| {
            FieldError::new(Fault::Missing, field, format!("{field} is missing: {fix}"))
        };
        let schedule = self.schedule.given().ok_or_else(|| {
            missing(
                "schedule",
                "write \"@daily\", {\"every\": \"15m\"} or {\"at\": \"2030-01-01T00:00:00Z\"}",
            )
        })?;
        let mut schedule = schedule.build(context)?;
        let stands = context.before.map(|before| &before.calendars);
        let said = [&self.exclude, &self.only].map(|list| match list {
            Patch::Keep => &Patch::Reset,
            said @ (Patch::Reset | Patch::Set(_)) => said,
        });
        schedule.calendars = context.calendars(said, stands.unwrap_or(&Calendars::default()))?;
        if context.before != Some(&schedule) {
            schedule::check_ahead(&schedule, context.now)?;
        }
        let target = self.target.given().ok_or_else(|| {
            missing(
                "target",
                "write \"https://example.com/hook\" or {\"http\": {\"url\": …}}",
            )
        })?;
        let def = Definition::new(schedule, target.clone().over(None, context.target)?);
        self.lay_over(def)
    }

    /// What stands, with what is said changed.
    pub fn amend(
        mut self,
        stands: &Definition,
        context: Context<'_>,
    ) -> Result<Definition, FieldError> {
        let mut def = stands.clone();
        match std::mem::take(&mut self.schedule) {
            Patch::Keep => {}
            Patch::Reset => return Err(cannot_go("schedule")),
            Patch::Set(schedule) => def.schedule = schedule.amend(&stands.schedule, context)?,
        }
        let said = [&self.exclude, &self.only];
        def.schedule.calendars = context.calendars(said, &stands.schedule.calendars)?;
        schedule::check_readable(&def.schedule)?;
        if def.schedule != stands.schedule {
            schedule::check_ahead(&def.schedule, context.now)?;
        }
        match std::mem::take(&mut self.target) {
            Patch::Keep => {}
            Patch::Reset => return Err(cannot_go("target")),
            Patch::Set(target) => {
                def.target = target.over(Some(&stands.target), Some(&stands.target))?;
            }
        }
        self.lay_over(def)
    }

    /// Writes everything but schedule and target over a definition, and checks the whole.
    fn lay_over(self, mut def: Definition) -> Result<Definition, FieldError> {
        let wants_defaults = !matches!((&self.overlap, &self.catch_up), (Patch::Keep, Patch::Keep));
        if wants_defaults {
            let default = Definition::new(def.schedule.clone(), def.target.clone());
            lay_overlap(self.overlap, &mut def.overlap, default.overlap)?;
            lay_catch_up(self.catch_up, &mut def.catch_up, default.catch_up);
        }
        self.payload.put_option(&mut def.payload);
        lay_retry(self.retry, &mut def.retry);
        self.timeout
            .put(&mut def.timeout, Definition::TIMEOUT_DEFAULT);
        self.lane.put(&mut def.lane, Default::default());
        self.spread.put(&mut def.spread, Duration::ZERO);
        self.delivery.put(&mut def.delivery, Default::default());
        lay_completion(self.callback, self.heartbeat_within, &mut def)?;
        self.start_within.put_option(&mut def.start_within);
        self.finish_within.put_option(&mut def.finish_within);
        self.pause_after_failures
            .put_option(&mut def.pause_after_failures);
        lay_labels(self.labels, &mut def.labels);
        check(&def)?;
        Ok(def)
    }
}

fn cannot_go(field: &str) -> FieldError {
    let detail =
        format!("a job cannot be without {field}: leave it out to keep it, or give another");
    FieldError::invalid(field, detail)
}

fn lay_retry(draft: Patch<RetryDraft>, retry: &mut RetryPolicy) {
    let default = RetryPolicy::default();
    match draft {
        Patch::Keep => {}
        Patch::Reset => *retry = default,
        Patch::Set(draft) => {
            draft
                .attempts_max
                .put(&mut retry.attempts_max, default.attempts_max);
            draft.backoff.put(&mut retry.backoff, default.backoff);
            draft
                .delay_first
                .put(&mut retry.delay_first, default.delay_first);
            draft.delay_max.put(&mut retry.delay_max, default.delay_max);
            match draft.jitter {
                Patch::Keep => {}
                Patch::Reset => retry.jitter = default.jitter,
                Patch::Set(share) => retry.jitter = thousandths(share),
            }
        }
    }
}

/// A share in thousandths; one that is out of range stays out of range, for `check` to find.
fn thousandths(share: f64) -> u16 {
    let scaled = (share * 1_000.0).round();
    if (0.0..=1_000.0).contains(&scaled) && (0.0..=1.0).contains(&share) {
        scaled as u16
    } else {
        u16::MAX
    }
}

fn lay_overlap(
    draft: Patch<OverlapDraft>,
    overlap: &mut Overlap,
    default: Overlap,
) -> Result<(), FieldError> {
    let draft = match draft {
        Patch::Keep => return Ok(()),
        Patch::Reset => {
            *overlap = default;
            return Ok(());
        }
        Patch::Set(draft) => draft,
    };
    let mut queue_max = match *overlap {
        Overlap::QueueAll { max } => max,
        Overlap::Skip | Overlap::QueueOne | Overlap::CancelRunning | Overlap::Allow => {
            Overlap::QUEUE_MAX
        }
    };
    draft.policy.put(overlap, default);
    let max_given = draft.max.given().is_some();
    draft.max.put(&mut queue_max, Overlap::QUEUE_MAX);
    match overlap {
        Overlap::QueueAll { max } => *max = queue_max,
        Overlap::Skip | Overlap::QueueOne | Overlap::CancelRunning | Overlap::Allow => {
            if max_given {
                let detail = "max belongs to queue_all: leave it out";
                return Err(FieldError::invalid("overlap.max", detail));
            }
        }
    }
    Ok(())
}

/// What completes an attempt, and how long its target may be silent.
fn lay_completion(
    callback: Patch<bool>,
    within: Patch<Duration>,
    def: &mut Definition,
) -> Result<(), FieldError> {
    let mut is_callback = def.completion != Completion::Answer;
    callback.put(&mut is_callback, false);
    if !is_callback {
        if within.given().is_some() {
            let detail = "heartbeat_within belongs to \"completion\": \"callback\": leave it out";
            return Err(FieldError::invalid("heartbeat_within", detail));
        }
        def.completion = Completion::Answer;
        return Ok(());
    }
    let usual = Completion::HEARTBEAT_WITHIN_DEFAULT.min(def.timeout);
    let mut heartbeat_within = def.completion.heartbeat_within().unwrap_or(usual);
    within.put(&mut heartbeat_within, usual);
    def.completion = Completion::Callback { heartbeat_within };
    Ok(())
}

fn lay_catch_up(draft: Patch<CatchUpDraft>, catch_up: &mut CatchUp, default: CatchUp) {
    match draft {
        Patch::Keep => {}
        Patch::Reset => *catch_up = default,
        Patch::Set(draft) => {
            draft.policy.put(&mut catch_up.policy, default.policy);
            draft.window.put(&mut catch_up.window, default.window);
            draft.max.put(&mut catch_up.max, default.max);
        }
    }
}

fn lay_labels(
    draft: Patch<BTreeMap<String, Option<String>>>,
    labels: &mut BTreeMap<String, String>,
) {
    match draft {
        Patch::Keep => {}
        Patch::Reset => labels.clear(),
        Patch::Set(draft) => {
            for (name, value) in draft {
                match value {
                    Some(value) => labels.insert(name, value),
                    None => labels.remove(&name),
                };
            }
        }
    }
}

/// Every bound on a definition that its types do not already keep.
fn check(def: &Definition) -> Result<(), FieldError> {
    let retry = &def.retry;
    if !(1..=limits::ATTEMPTS_MAX).contains(&retry.attempts_max) {
        let detail = format!("attempts_max is 1 to {}", limits::ATTEMPTS_MAX);
        return Err(FieldError::invalid("retry.attempts_max", detail));
    }
    within(
        "retry.delay_first",
        retry.delay_first,
        MILLISECOND..=limits::DELAY_MAX,
    )?;
    within(
        "retry.delay_max",
        retry.delay_max,
        MILLISECOND..=limits::DELAY_MAX,
    )?;
    if retry.delay_first > retry.delay_max {
        let (first, max) = (format_span(retry.delay_first), format_span(retry.delay_max));
        let detail = format!("delay_first is {first}, longer than delay_max, which is {max}");
        return Err(FieldError::invalid("retry.delay_first", detail));
    }
    if retry.jitter > 1_000 {
        return Err(FieldError::invalid(
            "retry.jitter",
            "jitter is a share from 0 to 1",
        ));
    }
    within("timeout", def.timeout, MILLISECOND..=limits::TIMEOUT_MAX)?;
    check_completion(def)?;
    within(
        "catch_up.window",
        def.catch_up.window,
        Duration::ZERO..=limits::HISTORY_KEEP,
    )?;
    if !(1..=CatchUp::MAX_MAX).contains(&def.catch_up.max) {
        let detail = format!("max is 1 to {}", CatchUp::MAX_MAX);
        return Err(FieldError::invalid("catch_up.max", detail));
    }
    for (field, span) in [
        ("start_within", def.start_within),
        ("finish_within", def.finish_within),
    ] {
        within(
            field,
            span.unwrap_or(MILLISECOND),
            MILLISECOND..=limits::HISTORY_KEEP,
        )?;
    }
    if def.pause_after_failures.is_some() && !def.schedule.is_recurring() {
        let detail =
            "a job that is due once is not paused after failures: leave it out, or say null";
        return Err(FieldError::invalid("pause_after_failures", detail));
    }
    if def.labels.len() > limits::LABELS_MAX {
        let detail = format!("a job has at most {} labels", limits::LABELS_MAX);
        return Err(FieldError::invalid("labels", detail));
    }
    check_spread(def)
}

fn within(field: &str, span: Duration, range: RangeInclusive<Duration>) -> Result<(), FieldError> {
    if range.contains(&span) {
        return Ok(());
    }
    let (least, most) = (format_span(*range.start()), format_span(*range.end()));
    let detail = format!(
        "{} is out of range: from {least} to {most}",
        format_span(span)
    );
    Err(FieldError::invalid(field, detail))
}

fn check_completion(def: &Definition) -> Result<(), FieldError> {
    if let (Some(_), Completion::Callback { .. }) = (def.target.program(), def.completion) {
        let detail =
            "a command or a script completes by its exit: leave it out, or write \"answer\"";
        return Err(FieldError::invalid("completion", detail));
    }
    if let Some(silent) = def.completion.heartbeat_within() {
        // An attempt that may be silent for longer than it may take is never found silent.
        let least = Completion::HEARTBEAT_WITHIN_MIN.min(def.timeout);
        within("heartbeat_within", silent, least..=def.timeout)?;
    }
    Ok(())
}

fn check_spread(def: &Definition) -> Result<(), FieldError> {
    if def.spread.is_zero() {
        return Ok(());
    }
    within("spread", def.spread, Duration::ZERO..=limits::DELAY_MAX)?;
    let Some(period) = def.schedule.shortest_period() else {
        return Ok(());
    };
    if def.spread < period {
        return Ok(());
    }
    let (spread, period) = (format_span(def.spread), format_span(period));
    let detail = format!("{spread} is not shorter than the schedule's shortest period, {period}");
    Err(FieldError::invalid("spread", detail))
}
