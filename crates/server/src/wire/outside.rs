//! What whoever has a handed-over attempt says, and what it is answered.

use bytes::Bytes;
use model::schedule::parse_span;
use model::{Handed, LogPart, Outcome, Progress, Report, RetryHint, Verdict, limits};
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;
use super::read::{self, Path, Read, Value};
use super::requests::note;
use crate::ops::{Fault, FieldError};

pub const REPORT_FIELDS: [&str; 4] = ["outcome", "error", "output", "retry"];
pub const HEARTBEAT_FIELDS: [&str; 2] = ["progress", "checkpoint"];
pub const OUTCOMES: [&str; 2] = ["succeeded", "failed"];

/// How an attempt went.
pub fn report(body: &[u8]) -> Read<Report> {
    let fields = read::document(body, &REPORT_FIELDS)?;
    let outcome = fields.get("outcome", |value, path| {
        value.choice(path, &OUTCOMES, |text| {
            Outcome::parse(text).filter(|it| OUTCOMES.contains(&it.as_str()))
        })
    })?;
    let outcome = outcome.ok_or_else(|| {
        let detail = "say how it went: succeeded or failed";
        FieldError::new(Fault::Missing, "outcome", detail)
    })?;
    let mut report = Report::of(outcome);
    report.error = fields.get("error", note)?;
    report.output = fields.get("output", output)?.unwrap_or_default();
    report.retry = fields.get("retry", retry)?.unwrap_or_default();
    Ok(report)
}

fn output(value: Value<'_>, path: Path<'_>) -> Read<Bytes> {
    bytes(value, path, limits::OUTPUT_MAX)
}

fn bytes(value: Value<'_>, path: Path<'_>, max: usize) -> Read<Bytes> {
    let text = value.text(path)?;
    if text.len() > max {
        let length = text.len();
        return Err(path.invalid(format!("it is {length} bytes long: at most {max}")));
    }
    Ok(Bytes::from(text.into_owned()))
}

fn retry(value: Value<'_>, path: Path<'_>) -> Read<RetryHint> {
    let text = value.text(path)?;
    match &*text {
        "usual" => Ok(RetryHint::Usual),
        "never" => Ok(RetryHint::Never),
        span => match parse_span(span) {
            Ok(span) => Ok(RetryHint::After(span)),
            Err(_) => Err(path.invalid(format!(
                "{span:?} is none of usual, never and a span such as 30s"
            ))),
        },
    }
}

/// Whoever has an attempt lives.
pub fn heartbeat(body: &[u8]) -> Read<(Option<Progress>, Option<Bytes>)> {
    if body.is_empty() {
        return Ok((None, None));
    }
    let fields = read::document(body, &HEARTBEAT_FIELDS)?;
    let checkpoint = |value: Value<'_>, path: Path<'_>| bytes(value, path, limits::CHECKPOINT_MAX);
    Ok((
        fields.get("progress", progress)?,
        fields.get("checkpoint", checkpoint)?,
    ))
}

fn progress(value: Value<'_>, path: Path<'_>) -> Read<Progress> {
    if value.0.starts_with('"') {
        let text = value.text(path)?;
        if text.len() > limits::PROGRESS_MAX || text.contains(char::is_control) {
            let max = limits::PROGRESS_MAX;
            return Err(path.invalid(format!("a progress is a line of at most {max} bytes")));
        }
        return Ok(Progress::Text(text.into_owned()));
    }
    let share = value.number(path, "a share from 0 to 1, or a line of text")?;
    if (0.0..=1.0).contains(&share) {
        Ok(Progress::Share(share))
    } else {
        Err(path.invalid(format!("{share} is no share from 0 to 1")))
    }
}

/// A report was taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportAnswer {
    /// As it was reported.
    #[schema(example = "succeeded")]
    pub outcome: &'static str,
    /// It was taken before: nothing was written now.
    pub repeated: bool,
    /// When the next attempt is due, if there is one.
    #[schema(format = DateTime)]
    pub retry_at: Option<String>,
}

impl ReportAnswer {
    pub fn of(outcome: Outcome, taken: &engine::Taken) -> Self {
        let retry_at = match taken.verdict {
            Some(Verdict::RetryAt(at)) => Some(moment(&at)),
            Some(
                Verdict::Succeed
                | Verdict::Bury(_)
                | Verdict::Cancel(_)
                | Verdict::Release
                | Verdict::Wait(_),
            )
            | None => None,
        };
        Self {
            outcome: outcome.as_str(),
            repeated: taken.repeated,
            retry_at,
        }
    }
}

/// What whoever has an attempt hears.
#[derive(Debug, Serialize, ToSchema)]
pub struct HeartbeatAnswer {
    /// The run was cancelled: stop, and report.
    pub cancel: bool,
    /// Up to when nothing needs to be heard. After a cancel it does not move any more.
    #[schema(format = DateTime)]
    pub until: String,
}

impl HeartbeatAnswer {
    pub fn of(heard: &engine::Heard) -> Self {
        Self {
            cancel: heard.cancel,
            until: moment(&heard.until),
        }
    }
}

/// What is known of a run whose attempt a target took over.
#[derive(Debug, Serialize, ToSchema)]
pub struct HandedOver {
    /// When this attempt was dispatched.
    #[schema(format = DateTime)]
    pub dispatched_at: String,
    /// Up to when it is trusted without a heartbeat.
    #[schema(format = DateTime)]
    pub until: Option<String>,
    /// When the last heartbeat came.
    #[schema(format = DateTime)]
    pub heartbeat_at: Option<String>,
    /// How far the work is, as its target says: a share from 0 to 1, or a text.
    pub progress: Option<serde_json::Value>,
    /// It was cancelled, and its target is to stop.
    pub cancel: bool,
}

impl HandedOver {
    pub fn of(handed: &Handed) -> Self {
        let progress = |progress: &Progress| match progress {
            Progress::Share(share) => serde_json::Value::from(*share),
            Progress::Text(text) => serde_json::Value::from(text.as_str()),
        };
        Self {
            dispatched_at: moment(&handed.dispatched_at),
            until: handed.until.as_ref().map(moment),
            heartbeat_at: handed.beaten_at.as_ref().map(moment),
            progress: handed.progress.as_ref().map(progress),
            cancel: handed.cancelled,
        }
    }
}

/// A part of what a run has said of its work.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunLog {
    /// The text. What is not text shows as `\u{fffd}`.
    pub text: String,
    /// The byte at which it begins. Later than was asked for where the middle is not kept.
    pub from: u64,
    /// Where to read on: `?after=` this.
    pub next: u64,
    /// The run has ended: nothing is appended any more.
    pub ended: bool,
}

impl RunLog {
    pub fn of(part: &LogPart, ended: bool) -> Self {
        Self {
            text: String::from_utf8_lossy(&part.bytes).into_owned(),
            from: part.from,
            next: part.next,
            ended,
        }
    }
}
