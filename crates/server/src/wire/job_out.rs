//! Jobs as we answer them: in full, every default written out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::schedule::{self, Broken, Dialect, DstGap, DstOverlap, Kind, format_span};
use model::{Calendar, FailuresMax, Overlap as OverlapPolicy, RunId, Slot, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::http_out::Target;
use crate::ops::Withdrawn;
use crate::ops::preview::Difference;

/// A job: what its author said about it, every default written out, and where it stands.
#[derive(Debug, Serialize, ToSchema)]
pub struct Job {
    /// Its id, for ever.
    #[schema(example = "job_0192f0c1a2b37def8123456789abcdef")]
    pub id: String,
    /// Its author's own name for it.
    pub key: Option<String>,
    /// Where it stands.
    #[schema(example = "active")]
    pub state: &'static str,
    /// Counts edits; what `If-Match` names.
    pub version: u32,
    /// The next nominal moment that calendars keep; none unless the job is active.
    #[schema(format = DateTime)]
    pub next_slot: Option<String>,
    /// When that slot is due: the slot and the job's own offset within `spread`.
    #[schema(format = DateTime)]
    pub due_at: Option<String>,
    /// Its run has not ended: the end of it sets the next slot.
    pub resting: bool,
    /// Runs of slots that are still to come; none unless `runs_max` bounds them.
    pub runs_left: Option<u32>,
    /// What should be looked at, such as calendars that leave nothing over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// When it is due.
    pub schedule: Schedule,
    /// Calendars whose times are left out.
    pub exclude: Vec<String>,
    /// Calendars outside of whose times everything is left out.
    pub only: Vec<String>,
    /// Where its runs go.
    pub target: Target,
    /// JSON as it was sent.
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<Box<RawValue>>,
    /// When a failed attempt is tried again, and how often.
    pub retry: Retry,
    /// How long one attempt may take.
    #[schema(example = "5m")]
    pub timeout: String,
    /// The class of service.
    #[schema(example = "standard")]
    pub lane: &'static str,
    /// What becomes of a slot that is due while a run of the job lives.
    pub overlap: Overlap,
    /// Which slots run that passed while no node could fire them.
    pub catch_up: CatchUp,
    /// The span within which the job has a fixed offset of its own.
    #[schema(example = "0s")]
    pub spread: String,
    /// Whether an attempt whose fate is unknown is made again.
    #[schema(example = "at_least_once")]
    pub delivery: &'static str,
    /// What completes an attempt: the target's answer, or a report that follows a 202.
    #[schema(example = "answer")]
    pub completion: &'static str,
    /// How long a target that took an attempt over may be silent; only with `callback`.
    pub heartbeat_within: Option<String>,
    /// A run that starts later than this after it was due is marked and counted.
    pub start_within: Option<String>,
    /// A run that takes longer than this is marked and counted.
    pub finish_within: Option<String>,
    /// It is paused after so many runs in a row that ended dead.
    pub pause_after_failures: Option<u32>,
    /// Names and values of its author's own.
    pub labels: BTreeMap<String, String>,
    /// Why it is in its state, if someone said so.
    pub note: Option<String>,
    /// Who it belongs to: whoever made it, unless it was given to another. None if that was before owners were kept.
    pub owner: Option<String>,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// When it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

/// A job after a change, and what became of runs that were claimed before it.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobAnswer {
    #[serde(flatten)]
    pub job: Job,
    /// Runs that were claimed before the change.
    pub runs: Runs,
    /// Only where slots ahead are others than before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<Slots>,
    /// Nothing was written: this is how it would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// What another schedule means for the slots ahead: the first few of each.
#[derive(Debug, Serialize, ToSchema)]
pub struct Slots {
    /// Slots that are none any more.
    pub removed: Vec<String>,
    /// Slots that were none before.
    pub added: Vec<String>,
}

/// Runs that a change met on their way.
#[derive(Debug, Serialize, ToSchema)]
pub struct Runs {
    /// They did not, and will not, reach their target.
    pub withdrawn: Vec<String>,
    /// They were on their way before the change came.
    pub dispatched: Vec<String>,
    /// Their holder has not answered in time.
    pub unconfirmed: Vec<String>,
}

/// A page of jobs.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobList {
    /// Newest first.
    pub items: Vec<Job>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}

/// When a job is due: `cron`, `every` or `at`, whichever it is; `broken` if it cannot be read any more.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Schedule {
    /// One cron expression, or several: their union.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<Expressions>,
    /// The period of an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// Slot 0 of an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub anchor: Option<String>,
    /// The moment of a one-off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// An IANA name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// How the expression is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<&'static str>,
    /// What becomes of a fixed time that the clocks skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<&'static str>,
    /// What becomes of a fixed time that comes twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst_overlap: Option<&'static str>,
    /// Of an interval: whether slots are counted from the ends of runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_completion: Option<bool>,
    /// There is no slot before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub starts_at: Option<String>,
    /// There is no slot after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub ends_at: Option<String>,
    /// After so many runs of its slots the job is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_max: Option<u32>,
    /// The schedule as it was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub broken: Option<Box<RawValue>>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One cron expression, or several: their union.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Expressions {
    One(String),
    Several(Vec<String>),
}

/// When a failed attempt is tried again, and how often.
#[derive(Debug, Serialize, ToSchema)]
pub struct Retry {
    /// Attempts in all, the first included.
    pub attempts_max: u32,
    /// How the wait grows from one attempt to the next.
    #[schema(example = "exponential")]
    pub backoff: &'static str,
    /// The wait after the first attempt.
    #[schema(example = "1s")]
    pub delay_first: String,
    /// No wait is longer.
    #[schema(example = "5m")]
    pub delay_max: String,
    /// The share of a delay that chance may add.
    #[schema(example = 0.3)]
    pub jitter: f64,
}

/// A policy's name; with its bound where it has one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Overlap {
    Plain(&'static str),
    Bounded {
        /// The policy's name.
        policy: &'static str,
        /// How many runs may wait.
        max: u32,
    },
}

/// Which slots run that passed while no node could fire them.
#[derive(Debug, Serialize, ToSchema)]
pub struct CatchUp {
    /// Which missed slots run.
    #[schema(example = "latest")]
    pub policy: &'static str,
    /// How old a missed slot may be and still run.
    #[schema(example = "1h")]
    pub window: String,
    /// How many missed slots `all` runs at most: the newest.
    pub max: u32,
}

impl Job {
    pub fn of(job: &model::Job) -> Self {
        let def = &job.def;
        let calendars = &def.schedule.calendars;
        // A slot that calendars leave out is next only where they leave out all that was looked at.
        let left_out = job.next_slot.filter(|slot| !def.schedule.keeps(*slot));
        let next = job.next_slot.filter(|_| left_out.is_none());
        Self {
            id: job.id.to_string(),
            key: job.key.as_ref().map(ToString::to_string),
            state: job.state.as_str(),
            version: job.version.0,
            next_slot: next.map(|slot| slot.to_string()),
            due_at: next.map(|slot| moment(&job.due_at(slot))),
            resting: job.is_resting(),
            runs_left: job.runs_left(),
            warning: left_out.map(|slot| {
                format!("calendars leave out every slot up to {slot}: it will not run until then")
            }),
            schedule: Schedule::of(&def.schedule),
            exclude: names(&calendars.exclude),
            only: names(&calendars.only),
            target: Target::of(&def.target),
            payload: def.payload.as_ref().and_then(raw),
            retry: Retry {
                attempts_max: def.retry.attempts_max,
                backoff: def.retry.backoff.as_str(),
                delay_first: format_span(def.retry.delay_first),
                delay_max: format_span(def.retry.delay_max),
                jitter: f64::from(def.retry.jitter) / 1_000.0,
            },
            timeout: format_span(def.timeout),
            lane: def.lane.as_str(),
            overlap: Overlap::of(def.overlap),
            catch_up: CatchUp {
                policy: def.catch_up.policy.as_str(),
                window: format_span(def.catch_up.window),
                max: def.catch_up.max,
            },
            spread: format_span(def.spread),
            delivery: def.delivery.as_str(),
            completion: def.completion.as_str(),
            heartbeat_within: def.completion.heartbeat_within().map(span),
            start_within: def.start_within.map(span),
            finish_within: def.finish_within.map(span),
            pause_after_failures: def.pause_after_failures.map(FailuresMax::get),
            labels: def.labels.clone(),
            note: job.note.clone(),
            owner: job.owner.as_ref().map(ToString::to_string),
            paused_by: job.paused_by.as_ref().map(ToString::to_string),
            created_at: moment(&job.created_at),
            updated_at: moment(&job.updated_at),
        }
    }
}

impl Slots {
    pub fn of(slots: &Difference) -> Self {
        let texts = |slots: &[Slot]| slots.iter().map(ToString::to_string).collect();
        Self {
            removed: texts(&slots.removed),
            added: texts(&slots.added),
        }
    }
}

impl Runs {
    pub fn of(runs: &Withdrawn) -> Self {
        let names = |runs: &[RunId]| runs.iter().map(ToString::to_string).collect();
        Self {
            withdrawn: names(&runs.withdrawn),
            dispatched: names(&runs.dispatched),
            unconfirmed: names(&runs.unconfirmed),
        }
    }
}

impl Schedule {
    pub fn of(schedule: &model::Schedule) -> Self {
        let bounds = &schedule.bounds;
        Self {
            starts_at: bounds.starts_at.as_ref().map(moment),
            ends_at: bounds.ends_at.as_ref().map(moment),
            runs_max: bounds.runs_max,
            ..Self::of_kind(&schedule.kind)
        }
    }

    fn of_kind(kind: &Kind) -> Self {
        match kind {
            Kind::Cron(cron) => Self::of_cron(cron),
            Kind::Every(every) => Self {
                every: Some(every.period.text()),
                anchor: Some(moment(&every.anchor)),
                timezone: Some(every.zone.name().to_owned()),
                after_completion: Some(every.after_completion),
                ..Self::default()
            },
            Kind::Once(slot) => Self {
                at: Some(slot.to_string()),
                ..Self::default()
            },
            Kind::Broken(broken) => Self {
                broken: stored(broken),
                error: Some(broken.error.clone()),
                ..Self::default()
            },
        }
    }

    fn of_cron(cron: &schedule::Cron) -> Self {
        let cron_text = match cron.texts() {
            [one] => Expressions::One(one.clone()),
            several => Expressions::Several(several.to_vec()),
        };
        Self {
            cron: Some(cron_text),
            timezone: Some(cron.zone().name().to_owned()),
            dialect: Some(match cron.dialect() {
                Dialect::Unix => "unix",
                Dialect::Quartz => "quartz",
            }),
            dst_gap: Some(match cron.dst_gap() {
                DstGap::RunAfter => "run_after",
                DstGap::Skip => "skip",
            }),
            dst_overlap: Some(match cron.dst_overlap() {
                DstOverlap::First => "first",
                DstOverlap::Both => "both",
            }),
            ..Self::default()
        }
    }
}

impl Overlap {
    fn of(overlap: OverlapPolicy) -> Self {
        let policy = overlap.as_str();
        match overlap {
            OverlapPolicy::QueueAll { max } if max != OverlapPolicy::QUEUE_MAX => {
                Self::Bounded { policy, max }
            }
            OverlapPolicy::Skip
            | OverlapPolicy::QueueOne
            | OverlapPolicy::QueueAll { .. }
            | OverlapPolicy::CancelRunning
            | OverlapPolicy::Allow => Self::Plain(policy),
        }
    }
}

pub(super) fn moment(moment: &Timestamp) -> String {
    moment.to_string()
}

pub(super) fn span(span: Duration) -> String {
    format_span(span)
}

/// A stored payload was JSON when it was taken; one that is not any more is not shown.
fn raw(payload: &Bytes) -> Option<Box<RawValue>> {
    let text = str::from_utf8(payload).ok()?;
    RawValue::from_string(text.to_owned()).ok()
}

/// A stored schedule is JSON; what is not, is shown as the text that it is.
fn stored(broken: &Broken) -> Option<Box<RawValue>> {
    let text = RawValue::from_string(broken.stored.clone());
    text.or_else(|_| serde_json::value::to_raw_value(&broken.stored))
        .ok()
}

fn names(calendars: &[Arc<Calendar>]) -> Vec<String> {
    calendars.iter().map(|it| it.name.to_string()).collect()
}
