//! From a draft to a definition that holds: bounds, and what must fit together.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use model::job::Definition;
use model::schedule::{Cron, CronOptions, Every, ScheduleError, Zone, format_span};
use model::{CatchUp, RetryPolicy, Schedule, Slot, Timestamp, limits};

use super::Patch;
use super::draft::{CatchUpDraft, CronDraft, EveryDraft, JobDraft, RetryDraft, ScheduleDraft};
use super::fault::{Fault, FieldError};

const MILLISECOND: Duration = Duration::from_millis(1);

/// What a schedule needs to know of its job.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub now: Timestamp,
    /// The job's own number.
    pub hash: u64,
    /// The schedule that stands: an interval that is said again keeps its anchor.
    pub before: Option<&'a Schedule>,
}

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
        let schedule = schedule.build(context)?;
        let target = self.target.given().ok_or_else(|| {
            missing(
                "target",
                "write \"https://example.com/hook\" or {\"http\": {\"url\": …}}",
            )
        })?;
        let def = Definition::new(schedule, target.clone());
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
            Patch::Set(schedule) => {
                let context = Context {
                    before: Some(&stands.schedule),
                    ..context
                };
                def.schedule = schedule.build(context)?;
            }
        }
        match std::mem::take(&mut self.target) {
            Patch::Keep => {}
            Patch::Reset => return Err(cannot_go("target")),
            Patch::Set(target) => def.target = target,
        }
        self.lay_over(def)
    }

    /// Writes everything but schedule and target over a definition, and checks the whole.
    fn lay_over(self, mut def: Definition) -> Result<Definition, FieldError> {
        let wants_defaults = matches!(self.overlap, Patch::Reset)
            || matches!(self.catch_up, Patch::Reset | Patch::Set(_));
        if wants_defaults {
            let default = Definition::new(def.schedule.clone(), def.target.clone());
            self.overlap.put(&mut def.overlap, default.overlap);
            lay_catch_up(self.catch_up, &mut def.catch_up, default.catch_up);
        } else {
            let stands = def.overlap;
            self.overlap.put(&mut def.overlap, stands);
        }
        self.payload.put_option(&mut def.payload);
        lay_retry(self.retry, &mut def.retry);
        self.timeout
            .put(&mut def.timeout, Definition::TIMEOUT_DEFAULT);
        self.lane.put(&mut def.lane, Default::default());
        self.spread.put(&mut def.spread, Duration::ZERO);
        self.delivery.put(&mut def.delivery, Default::default());
        self.start_within.put_option(&mut def.start_within);
        self.finish_within.put_option(&mut def.finish_within);
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

impl ScheduleDraft {
    pub fn build(&self, context: Context<'_>) -> Result<Schedule, FieldError> {
        let refused = |field: &'static str| {
            move |error: ScheduleError| FieldError::new(Fault::Schedule, field, error.to_string())
        };
        match self {
            Self::Text(cron) => {
                let text = cron.texts.first().map_or("", String::as_str);
                Schedule::parse_text(text, cron.options(context.hash), context.now)
                    .map(|schedule| keep_anchor(schedule, context.before))
                    .map_err(refused("schedule"))
            }
            Self::Cron(cron) => Cron::parse(&cron.texts, cron.options(context.hash))
                .map(Schedule::Cron)
                .map_err(refused("schedule.cron")),
            Self::Every(every) => every.build(context).map_err(refused("schedule.every")),
            Self::At(moment) => once(*moment, context.now),
            Self::In(span) => {
                let moment = context.now.plus(*span);
                if moment == Timestamp::MAX {
                    return Err(FieldError::invalid(
                        "schedule.in",
                        "the moment lies beyond the year 9999",
                    ));
                }
                Ok(Schedule::Once(Slot(moment)))
            }
        }
    }
}

/// A one-off that lies a little in the past runs at once; one from long ago is a mistake.
fn once(moment: Timestamp, now: Timestamp) -> Result<Schedule, FieldError> {
    let ago = now.since(moment);
    if ago > limits::PAST_TOLERANCE {
        let tolerance = limits::PAST_TOLERANCE.as_secs() / 3_600;
        let hours = ago.as_secs() / 3_600;
        let detail = format!(
            "{moment} was {hours} hours ago: a one-off runs at once up to {tolerance} hours after \
             its moment, an older one is refused; it is now {now}"
        );
        return Err(FieldError::new(Fault::Past, "schedule.at", detail));
    }
    Ok(Schedule::Once(Slot(moment)))
}

impl CronDraft {
    fn options(&self, hash: u64) -> CronOptions {
        CronOptions {
            zone: self.zone.clone(),
            dialect: self.dialect.unwrap_or_default(),
            dst_gap: self.dst_gap.unwrap_or_default(),
            dst_overlap: self.dst_overlap.unwrap_or_default(),
            hash,
        }
    }
}

impl EveryDraft {
    fn build(&self, context: Context<'_>) -> Result<Schedule, ScheduleError> {
        let zone = self.zone.clone().unwrap_or_else(Zone::utc);
        let anchor = self.anchor.unwrap_or(context.now);
        let schedule = Schedule::Every(Every::parse(&self.period, anchor, zone)?);
        Ok(if self.anchor.is_some() {
            schedule
        } else {
            keep_anchor(schedule, context.before)
        })
    }
}

/// The same interval said again goes on from its old anchor: saying a thing twice changes nothing.
fn keep_anchor(schedule: Schedule, before: Option<&Schedule>) -> Schedule {
    match (&schedule, before) {
        (Schedule::Every(new), Some(Schedule::Every(old)))
            if new.period == old.period && new.zone == old.zone =>
        {
            Schedule::Every(old.clone())
        }
        (Schedule::Every(_) | Schedule::Cron(_) | Schedule::Once(_), _) => schedule,
    }
}
