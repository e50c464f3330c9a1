//! A job as clients write it, in full and in short.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use model::schedule::format_span;
use model::{
    Backoff, CatchUp, CatchUpPolicy, Completion, Delivery, FailuresMax, JobKey, Lane, Overlap,
    limits,
};

use super::read::{self, Fields, Path, Read, Shape, Value, shown};
use super::schedule_in::{calendars, schedule};
use super::sound;
use super::target_in::target;
use crate::ops::{CatchUpDraft, JobDraft, OverlapDraft, Patch, RetryDraft};

pub const JOB_FIELDS: [&str; 20] = [
    "key",
    "owner",
    "schedule",
    "exclude",
    "only",
    "target",
    "payload",
    "retry",
    "timeout",
    "lane",
    "overlap",
    "catch_up",
    "spread",
    "delivery",
    "completion",
    "heartbeat_within",
    "start_within",
    "finish_within",
    "pause_after_failures",
    "labels",
];
pub const RETRY_FIELDS: [&str; 5] = [
    "attempts_max",
    "backoff",
    "delay_first",
    "delay_max",
    "jitter",
];
pub const CATCH_UP_FIELDS: [&str; 3] = ["policy", "window", "max"];
pub const OVERLAP_FIELDS: [&str; 2] = ["policy", "max"];

const OVERLAPS: [&str; 5] = ["skip", "queue_one", "queue_all", "cancel_running", "allow"];
const RETRY: Path<'static> = Path {
    parent: "",
    name: "retry",
};
const CATCH_UP: Path<'static> = Path {
    parent: "",
    name: "catch_up",
};
const OVERLAP: Path<'static> = Path {
    parent: "",
    name: "overlap",
};
const LABELS: Path<'static> = Path {
    parent: "",
    name: "labels",
};

/// Reads the body of a create or of an edit; they differ only in what must be there.
pub fn job_draft(body: &[u8]) -> Read<JobDraft> {
    let fields = read::document(body, &JOB_FIELDS)?;
    Ok(JobDraft {
        key: fields.patch("key", key)?,
        owner: fields.patch("owner", owner)?,
        schedule: fields.patch("schedule", schedule)?,
        exclude: fields.patch("exclude", calendars)?,
        only: fields.patch("only", calendars)?,
        target: fields.patch("target", target)?,
        payload: fields.patch("payload", payload)?,
        retry: fields.patch("retry", |value, _| retry(value))?,
        timeout: fields.patch("timeout", Value::duration)?,
        lane: fields.patch("lane", |value, path| {
            let words = Lane::ALL.map(Lane::as_str);
            value.choice(path, &words, |text| text.parse().ok())
        })?,
        overlap: fields.patch("overlap", overlap)?,
        catch_up: fields.patch("catch_up", catch_up)?,
        spread: fields.patch("spread", Value::duration)?,
        delivery: fields.patch("delivery", |value, path| {
            value.choice(path, &Delivery::ALL.map(Delivery::as_str), Delivery::parse)
        })?,
        callback: fields.patch("completion", |value, path| {
            value.choice(path, &Completion::WORDS, |text| {
                let words = Completion::WORDS.iter();
                words
                    .clone()
                    .any(|word| *word == text)
                    .then_some(text == "callback")
            })
        })?,
        heartbeat_within: fields.patch("heartbeat_within", positive)?,
        start_within: fields.patch("start_within", positive)?,
        finish_within: fields.patch("finish_within", positive)?,
        pause_after_failures: fields.patch("pause_after_failures", failures_max)?,
        labels: fields.patch("labels", |value, _| labels(value))?,
    })
}

fn failures_max(value: Value<'_>, path: Path<'_>) -> Read<FailuresMax> {
    let most = i64::from(limits::FAILURES_MAX);
    let count = value.integer(path, 1, most)?;
    let checked = u32::try_from(count).ok().and_then(FailuresMax::new);
    checked.ok_or_else(|| path.invalid(format!("{count} is out of range: 1 to {most}")))
}

/// Nothing would mean "at once", which no target can keep.
fn positive(value: Value<'_>, path: Path<'_>) -> Read<std::time::Duration> {
    let span = value.duration(path)?;
    if span.is_zero() {
        return Err(path.invalid(format!(
            "{} is out of range: it must be longer",
            format_span(span)
        )));
    }
    Ok(span)
}

pub(super) fn key(value: Value<'_>, path: Path<'_>) -> Read<JobKey> {
    let text = value.text(path)?;
    JobKey::new(&text).map_err(|error| path.invalid(error.to_string()))
}

/// A line of text: it stands in lists and in logs.
fn owner(value: Value<'_>, path: Path<'_>) -> Read<Arc<str>> {
    let text = value.text(path)?;
    let is_line = !text.contains(char::is_control) && text.trim() == text;
    if is_line && (1..=limits::OWNER_MAX).contains(&text.chars().count()) {
        return Ok(Arc::from(&*text));
    }
    let max = limits::OWNER_MAX;
    Err(path.invalid(format!(
        "an owner is a line of text with 1 to {max} characters, and no space before or after it"
    )))
}

/// Kept byte for byte.
pub(super) fn payload(value: Value<'_>, path: Path<'_>) -> Read<Bytes> {
    if value.0.len() > limits::PAYLOAD_MAX {
        let (length, max) = (value.0.len(), limits::PAYLOAD_MAX);
        return Err(path.invalid(format!("the payload is {length} bytes long: at most {max}")));
    }
    sound::check(value.0)
        .map_err(|error| path.invalid(format!("not every reader takes this JSON: {error}")))?;
    Ok(Bytes::copy_from_slice(value.0.as_bytes()))
}

fn retry(value: Value<'_>) -> Read<RetryDraft> {
    let fields = Fields::of(value, RETRY, "retry", &RETRY_FIELDS)?;
    let most = i64::from(limits::ATTEMPTS_MAX);
    Ok(RetryDraft {
        attempts_max: fields.patch("attempts_max", |value, path| {
            Ok(value.integer(path, 1, most)? as u32)
        })?,
        backoff: fields.patch("backoff", |value, path| {
            value.choice(path, &Backoff::ALL.map(Backoff::as_str), Backoff::parse)
        })?,
        delay_first: fields.patch("delay_first", Value::duration)?,
        delay_max: fields.patch("delay_max", Value::duration)?,
        jitter: fields.patch("jitter", |value, path| {
            value.number(path, "a share from 0 to 1")
        })?,
    })
}

fn catch_up(value: Value<'_>, path: Path<'_>) -> Read<CatchUpDraft> {
    let words = CatchUpPolicy::ALL.map(CatchUpPolicy::as_str);
    let policy =
        |value: Value<'_>, path: Path<'_>| value.choice(path, &words, CatchUpPolicy::parse);
    if value.shape() == Shape::Text {
        return Ok(CatchUpDraft {
            policy: Patch::Set(policy(value, path)?),
            ..Default::default()
        });
    }
    let fields = Fields::of(value, CATCH_UP, "catch_up", &CATCH_UP_FIELDS)?;
    let most = i64::from(CatchUp::MAX_MAX);
    Ok(CatchUpDraft {
        policy: fields.patch("policy", policy)?,
        window: fields.patch("window", Value::duration)?,
        max: fields.patch(
            "max",
            |value, path| Ok(value.integer(path, 1, most)? as u32),
        )?,
    })
}

fn overlap(value: Value<'_>, path: Path<'_>) -> Read<OverlapDraft> {
    let policy = |value: Value<'_>, path: Path<'_>| value.choice(path, &OVERLAPS, Overlap::parse);
    if value.shape() != Shape::Object {
        return Ok(OverlapDraft {
            policy: Patch::Set(policy(value, path)?),
            ..Default::default()
        });
    }
    let fields = Fields::of(value, OVERLAP, "overlap", &OVERLAP_FIELDS)?;
    let most = i64::from(Overlap::QUEUE_MAX);
    Ok(OverlapDraft {
        policy: fields.patch("policy", policy)?,
        max: fields.patch(
            "max",
            |value, path| Ok(value.integer(path, 1, most)? as u32),
        )?,
    })
}

fn labels(value: Value<'_>) -> Read<BTreeMap<String, Option<String>>> {
    let fields = Fields::any(value.0, "labels", LABELS)?;
    let mut labels = BTreeMap::new();
    for (name, value) in fields.iter() {
        let name_shown = shown(name);
        let path = Path {
            parent: "labels",
            name: &name_shown,
        };
        check_label_name(name, path)?;
        let text = match value.shape() {
            Shape::Null => None,
            Shape::Bool | Shape::Number | Shape::Text | Shape::List | Shape::Object => {
                Some(check_label_value(&value.text(path)?, path)?)
            }
        };
        labels.insert(name.to_owned(), text);
    }
    Ok(labels)
}

/// A name stands before the equals sign in filters, and on command lines.
pub(super) fn check_label_name(name: &str, path: Path<'_>) -> Read<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    if (1..=limits::NAME_MAX).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    let max = limits::NAME_MAX;
    Err(path.invalid(format!(
        "a label's name has 1 to {max} letters, digits or any of . _ / -"
    )))
}

fn check_label_value(text: &str, path: Path<'_>) -> Read<String> {
    if text.len() <= limits::NAME_MAX && !text.chars().any(char::is_control) {
        return Ok(text.to_owned());
    }
    let max = limits::NAME_MAX;
    Err(path.invalid(format!(
        "a label's value has at most {max} bytes and no control characters"
    )))
}
