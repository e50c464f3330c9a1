//! Slots and their fates as we answer them.

use model::Reason;
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;
use crate::ops::slots::{Entry, Fate};

/// One slot of a job and what became of it; or several in a row that share their fate.
#[derive(Debug, Serialize, ToSchema)]
pub struct SlotEntry {
    /// The nominal moment; of several, the first.
    #[schema(format = DateTime)]
    pub slot: String,
    /// When it is or was due.
    #[schema(format = DateTime)]
    pub due_at: String,
    /// `ran`, `skipped`, `missed` or `planned`. `unknown` means that there is no record of it, which is a defect: please report it.
    #[schema(example = "ran")]
    pub fate: &'static str,
    /// Of what ran, or runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<SlotRun>,
    /// Of what did not run, or will not: `overlap`, `paused`, `missed`, `calendar` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "calendar")]
    pub reason: Option<&'static str>,
    /// With a reason: the calendar's name, or what was said when the job was paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub note: Option<Option<String>>,
    /// With a reason: a node, or whoever changed the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub actor: Option<Option<String>>,
    /// With a reason: when it was written down; none while it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Option<String>>,
    /// The slot has passed and is about to be decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overdue: Option<bool>,
    /// Of several in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub first: Option<String>,
    /// The last of several in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub last: Option<String>,
    /// How many there are in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// A run in short.
#[derive(Debug, Serialize, ToSchema)]
pub struct SlotRun {
    /// The run's id.
    #[schema(example = "run_0192f0c1a2b38def8123456789abcdef")]
    pub id: String,
    /// Where it stands.
    #[schema(example = "succeeded")]
    pub state: &'static str,
    /// The attempt under way or coming next; the last one, once ended.
    pub attempt: u32,
    /// When its first attempt was handed to the target.
    #[schema(format = DateTime)]
    pub dispatched_at: Option<String>,
    /// When it ended.
    #[schema(format = DateTime)]
    pub settled_at: Option<String>,
    /// How the last attempt ended.
    pub outcome: Option<&'static str>,
}

/// A page of slots, each with its fate.
#[derive(Debug, Serialize, ToSchema)]
pub struct SlotList {
    /// Oldest first.
    pub items: Vec<SlotEntry>,
    /// Where the next page begins; none on the last.
    pub next_cursor: Option<String>,
    /// The first moment that is looked at.
    #[schema(format = DateTime)]
    pub from: String,
    /// The first moment that is not looked at any more.
    #[schema(format = DateTime)]
    pub to: String,
    /// What became of slots before this moment is not kept any more.
    #[schema(format = DateTime)]
    pub history_from: String,
}

impl SlotEntry {
    pub fn of(entry: &Entry) -> Self {
        let why = match &entry.fate {
            Fate::Skipped(why) => Some(why),
            Fate::Ran(_) | Fate::Planned { .. } | Fate::Unknown => None,
        };
        let (mut run, mut overdue) = (None, None);
        match &entry.fate {
            Fate::Ran(ran) => run = Some(SlotRun::of(ran)),
            Fate::Planned { overdue: passed } => overdue = passed.then_some(true),
            Fate::Skipped(_) | Fate::Unknown => {}
        }
        let slots = &entry.slots;
        let several = (slots.count > 1).then_some(slots);
        Self {
            slot: slots.first.to_string(),
            due_at: moment(&entry.due_at),
            fate: fate(&entry.fate),
            run,
            reason: why.map(|why| why.reason.as_str()),
            note: why.map(|why| why.note.clone()),
            actor: why.map(|why| why.actor.as_ref().map(ToString::to_string)),
            at: why.map(|why| why.at.as_ref().map(moment)),
            overdue,
            first: several.map(|slots| slots.first.to_string()),
            last: several.map(|slots| slots.last.to_string()),
            count: several.map(|slots| slots.count),
        }
    }
}

pub(super) fn fate(fate: &Fate) -> &'static str {
    match fate {
        Fate::Ran(_) => "ran",
        Fate::Skipped(why) if why.reason == Reason::Missed => "missed",
        Fate::Skipped(_) => "skipped",
        Fate::Planned { .. } => "planned",
        Fate::Unknown => "unknown",
    }
}

impl SlotRun {
    pub fn of(run: &model::Run) -> Self {
        Self {
            id: run.id.to_string(),
            state: run.state.as_str(),
            attempt: run.attempt.0,
            dispatched_at: run.dispatched_at.as_ref().map(moment),
            settled_at: run.settled_at.as_ref().map(moment),
            outcome: run.attempts.last().map(|attempt| attempt.outcome.as_str()),
        }
    }
}
