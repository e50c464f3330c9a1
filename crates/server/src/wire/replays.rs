//! Replays in bulk, and backfills: as clients write them, and as we answer them.

use std::collections::BTreeMap;

use model::{Reason, RunMatch, RunState, limits};
use serde::Serialize;
use store::{ReplayWork, RunFilter, RunFind};
use utoipa::ToSchema;

use super::job_in::payload;
use super::job_out::moment;
use super::read::{self, Fields, Path, Read, Shape, Value};
use crate::ops::replays::{self, BackfillDraft, Pace, ReplayDraft};
use crate::ops::{Fault, FieldError};

pub const REPLAY_FIELDS: [&str; 4] = ["filter", "payload", "rate", "limit"];
pub const FILTER_FIELDS: [&str; 8] = [
    "job", "state", "from", "to", "reason", "error", "labels", "target",
];
pub const BACKFILL_FIELDS: [&str; 4] = ["from", "to", "rate", "limit"];

const FILTER: Path<'static> = Path {
    parent: "",
    name: "filter",
};
const LABELS: Path<'static> = Path {
    parent: "filter",
    name: "labels",
};

/// Which runs are to be replayed, and the job that they are to be of, as it was written.
pub fn replay_draft(body: &[u8]) -> Read<(ReplayDraft, Option<String>)> {
    let fields = read::document(body, &REPLAY_FIELDS)?;
    let filter = fields.get("filter", |value, _| filter(value))?;
    let (find, job) = filter.ok_or_else(|| {
        let detail = "filter is missing: {\"from\": …} or {\"job\": …}; {} is every dead run";
        FieldError::new(Fault::Missing, "filter", detail)
    })?;
    let draft = ReplayDraft {
        find,
        payload: fields.get("payload", payload)?,
        pace: pace(&fields, limits::REPLAY_RUNS_MAX)?,
    };
    Ok((draft, job))
}

/// Which slots are to be run after all.
pub fn backfill_draft(body: &[u8]) -> Read<BackfillDraft> {
    let fields = read::document(body, &BACKFILL_FIELDS)?;
    let from = fields.get("from", Value::moment)?.ok_or_else(|| {
        let detail = "from is missing: write the moment of the first slot that is to run";
        FieldError::new(Fault::Missing, "from", detail)
    })?;
    Ok(BackfillDraft {
        from,
        to: fields.get("to", Value::moment)?,
        pace: pace(&fields, limits::BACKFILL_SLOTS_MAX)?,
    })
}

fn pace(fields: &Fields<'_>, most: u64) -> Read<Pace> {
    let fastest = i64::from(limits::REPLAY_RATE_MAX);
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rate = fields.get("rate", |value, path| value.integer(path, 1, fastest))?;
    let limit = fields.get("limit", |value, path| value.integer(path, 1, most))?;
    Ok(Pace {
        rate: rate.map(|rate| rate as u32),
        limit: limit.map(i64::unsigned_abs),
    })
}

fn filter(value: Value<'_>) -> Read<(RunFind, Option<String>)> {
    let fields = Fields::of(value, FILTER, "filter", &FILTER_FIELDS)?;
    let states = RunState::ALL.map(RunState::as_str);
    let reasons = Reason::ALL.map(Reason::as_str);
    let state = |value: Value<'_>, path: Path<'_>| value.choice(path, &states, RunState::parse);
    let reason = |value: Value<'_>, path: Path<'_>| value.choice(path, &reasons, Reason::parse);
    let filter = RunFilter {
        states: fields
            .get("state", |value, path| one_or_more(value, path, state))?
            .unwrap_or_default(),
        from: fields.get("from", Value::moment)?,
        to: fields.get("to", Value::moment)?,
        ..RunFilter::default()
    };
    if let (Some(from), Some(to)) = (filter.from, filter.to)
        && from >= to
    {
        let detail = format!("to, {to}, is not later than from, {from}");
        return Err(FieldError::invalid("filter.to", detail));
    }
    let matches = RunMatch {
        reasons: fields
            .get("reason", |value, path| one_or_more(value, path, reason))?
            .unwrap_or_default(),
        error: fields.get("error", |value, path| {
            bounded(value, path, limits::ERROR_MAX)
        })?,
        labels: fields
            .get("labels", |value, _| labels(value))?
            .unwrap_or_default(),
        target: fields.get("target", |value, path| {
            bounded(value, path, limits::URL_MAX)
        })?,
    };
    let job = fields.get("job", |value, path| {
        bounded(value, path, 2 * limits::NAME_MAX)
    })?;
    Ok((RunFind { filter, matches }, job))
}

/// A value, or a list of some.
fn one_or_more<'a, T>(
    value: Value<'a>,
    path: Path<'_>,
    read: impl Fn(Value<'a>, Path<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    if value.shape() == Shape::List {
        value.list(path, "a list of words", limits::LABELS_MAX, read)
    } else {
        Ok(vec![read(value, path)?])
    }
}

fn bounded(value: Value<'_>, path: Path<'_>, max: usize) -> Read<String> {
    let text = value.text(path)?;
    if text.is_empty() || text.len() > max {
        return Err(path.invalid(format!("1 to {max} bytes: leave it out to keep every run")));
    }
    Ok(text.into_owned())
}

fn labels(value: Value<'_>) -> Read<Vec<(String, String)>> {
    let fields = Fields::any(value.0, "filter.labels", LABELS)?;
    let mut labels = Vec::new();
    for (name, value) in fields.iter() {
        let text = value.text(LABELS)?;
        if name.len().max(text.len()) > limits::NAME_MAX || labels.len() == limits::LABELS_MAX {
            let (most, max) = (limits::LABELS_MAX, limits::NAME_MAX);
            return Err(LABELS.invalid(format!("at most {most} labels of at most {max} bytes")));
        }
        labels.push((name.to_owned(), text.into_owned()));
    }
    Ok(labels)
}

/// Runs that are wanted in bulk, and how far that is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Replay {
    /// Its id.
    #[schema(example = "replay_0192f0c1a2b37def8123456789abcdef")]
    pub id: String,
    /// `replay` of runs that have ended, or `backfill` of slots.
    #[schema(example = "replay")]
    pub kind: &'static str,
    /// Whether it goes on; if not, how it ended.
    #[schema(example = "running")]
    pub state: &'static str,
    /// What it waits for, or why it ended.
    pub note: Option<String>,
    /// Of a replay: which runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<ReplayFilter>,
    /// Of a backfill: the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Of a backfill: slots from this moment on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub from: Option<String>,
    /// Of a backfill: slots before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub to: Option<String>,
    /// Runs a second that it starts.
    pub rate: u32,
    /// Runs that it starts at most.
    pub limit: u64,
    /// Runs or slots that were looked at.
    pub scanned: u64,
    /// Runs that were started.
    pub started: u64,
    /// Wanted and not started: the job is gone, the slot has a run or is not decided yet.
    pub skipped: u64,
    /// Whether its runs get another payload than their own.
    pub has_payload: bool,
    /// Who asked for it.
    pub actor: String,
    /// When it was asked for.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it went on last.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// When it ended.
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
}

/// Which runs are replayed.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplayFilter {
    /// Runs of this job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Runs in one of these states.
    pub state: Vec<&'static str>,
    /// Slots from this moment on, or runs asked for since.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub from: Option<String>,
    /// And before this moment; at the latest when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub to: Option<String>,
    /// Runs that ended for one of these reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reason: Vec<&'static str>,
    /// Runs with this text in the error of their last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Runs of jobs that have these labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Runs of jobs that call this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

/// A page of replays.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReplayList {
    /// Newest first.
    pub items: Vec<Replay>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
}

/// What a backfill comes to.
#[derive(Debug, Serialize, ToSchema)]
pub struct Backfill {
    /// How many slots of the schedule lie there, also those that calendars leave out.
    pub slots: u64,
    /// From this moment on.
    #[schema(format = DateTime)]
    pub from: String,
    /// Up to but not including this one: now at the latest.
    #[schema(format = DateTime)]
    pub to: String,
    /// Its progress; none in a dry run.
    pub replay: Option<Replay>,
    /// Only in a dry run, of which nothing was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

impl Backfill {
    pub fn of(backfill: &replays::Backfill, dry_run: bool) -> Self {
        Self {
            slots: backfill.slots,
            from: moment(&backfill.from),
            to: moment(&backfill.to),
            replay: backfill.replay.as_ref().map(Replay::of),
            dry_run: dry_run.then_some(true),
        }
    }
}

impl ReplayFilter {
    fn of(find: &RunFind) -> Self {
        let RunFind { filter, matches } = find;
        Self {
            job: filter.job.map(|job| job.to_string()),
            state: filter.states.iter().map(|state| state.as_str()).collect(),
            from: filter.from.as_ref().map(moment),
            to: filter.to.as_ref().map(moment),
            reason: matches.reasons.iter().map(|it| it.as_str()).collect(),
            error: matches.error.clone(),
            labels: matches.labels.iter().cloned().collect(),
            target: matches.target.clone(),
        }
    }
}

impl Replay {
    pub fn of(replay: &store::Replay) -> Self {
        let (filter, slots) = match &replay.work {
            ReplayWork::Runs(find, _) => (Some(ReplayFilter::of(find)), None),
            ReplayWork::Slots(job, from, to) => (None, Some((job, from, to))),
        };
        let it = &replay.progress;
        Self {
            id: replay.id.to_string(),
            kind: if slots.is_some() {
                "backfill"
            } else {
                "replay"
            },
            state: it.state.as_str(),
            note: it.note.clone(),
            filter,
            job: slots.map(|(job, _, _)| job.to_string()),
            from: slots.map(|(_, from, _)| moment(from)),
            to: slots.map(|(_, _, to)| moment(to)),
            rate: replay.rate,
            limit: replay.limit,
            scanned: it.scanned,
            started: it.started,
            skipped: it.skipped,
            has_payload: replay.payload().is_some(),
            actor: replay.actor.to_string(),
            created_at: moment(&replay.created_at),
            updated_at: moment(&it.updated_at),
            ended_at: it.ended_at.as_ref().map(moment),
        }
    }
}
