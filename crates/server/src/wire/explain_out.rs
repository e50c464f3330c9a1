//! Explanations as we answer them.

use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;
use super::slots_out::{self, SlotEntry, SlotRun};
use crate::ops::explain;
use crate::ops::slots::{Entry, Fate};

/// Why a job is, was or will be due at a moment, or why not.
#[derive(Debug, Serialize, ToSchema)]
pub struct Explained {
    /// None where the clocks skip the time that was asked for.
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// By the clock on the wall, in `zone`.
    #[schema(example = "2026-03-29T02:30:00")]
    pub local: String,
    /// The zone of the job.
    #[schema(example = "Europe/Berlin")]
    pub zone: String,
    /// Whether it is, was or will be a slot of the job; none where that is not known, since the schedule of
    /// then is not kept.
    pub slot: Option<bool>,
    /// As in a list of slots; none of what is no slot, or may be none.
    #[schema(example = "planned")]
    pub fate: Option<&'static str>,
    /// The job, bounds, schedule, daylight saving, calendars, spread, then what became of it.
    pub steps: Vec<ExplainedStep>,
    /// The run, or the entry that says why there is none, or that covers the moment.
    pub run: Option<ExplainedRun>,
}

/// One step of the way from a moment to its run.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplainedStep {
    /// What is looked at.
    #[schema(example = "calendars")]
    pub step: &'static str,
    /// Whether it lets the moment be a slot that runs.
    pub holds: bool,
    /// Why, in words.
    pub says: String,
}

/// A run in short, or a slot's entry that says why there is none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ExplainedRun {
    Ran(SlotRun),
    Skipped(Box<SlotEntry>),
}

impl Explained {
    pub fn of(explained: &explain::Explained) -> Self {
        let found = &explained.found;
        let step = |step: &explain::Step| ExplainedStep {
            step: step.step,
            holds: step.holds,
            says: step.says.clone(),
        };
        Self {
            at: explained.at.as_ref().map(moment),
            local: explained.local.clone(),
            zone: explained.zone.clone(),
            slot: explained.slot,
            fate: found.slot().map(|entry| slots_out::fate(&entry.fate)),
            steps: explained.steps.iter().map(step).collect(),
            run: found.entry().and_then(ExplainedRun::of),
        }
    }
}

impl ExplainedRun {
    fn of(entry: &Entry) -> Option<Self> {
        match &entry.fate {
            Fate::Ran(run) => Some(Self::Ran(SlotRun::of(run))),
            Fate::Skipped(_) => Some(Self::Skipped(Box::new(SlotEntry::of(entry)))),
            Fate::Planned { .. } | Fate::Unknown => None,
        }
    }
}
