//! Why a job is, was or will be due at a moment, or why not: step by step, from the job's life over its
//! schedule to what became of the slot.

use std::sync::Arc;

use model::schedule::{Point, format_span};
use model::{Job, JobId, JobState, Reason, Run, Slot, Stretch, TenantId, Timestamp, Version};

use super::ahead::MILLISECOND;
use super::error::OpError;
use super::jobs;
use super::slots::{self, Entry, Fate, Range, Why};
use super::tenants;
use crate::access::ANONYMOUS;
use crate::api::Api;

/// One step of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub step: &'static str,
    /// Whether it lets the moment be a slot that runs.
    pub holds: bool,
    pub says: String,
}

impl Step {
    fn new(step: &'static str, holds: bool, says: impl Into<String>) -> Self {
        Self {
            step,
            holds,
            says: says.into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// None where the clocks skip the time that was asked for, and nothing runs in its place.
    pub at: Option<Timestamp>,
    /// By the clock on the wall of the job's zone.
    pub local: String,
    pub zone: String,
    /// Whether it is, was or will be a slot of the job. None where that is not known: the schedule of then
    /// is not kept.
    pub slot: Option<bool>,
    pub steps: Vec<Step>,
    pub found: Found,
}

/// What is known of a moment.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// It is a slot, and this became of it.
    Slot(Entry),
    /// It lies between the first and the last slot of an entry that another schedule decided.
    Within(Entry),
    Nothing,
}

impl Found {
    /// What became of the moment, if it is known to be a slot.
    pub fn slot(&self) -> Option<&Entry> {
        match self {
            Self::Slot(entry) => Some(entry),
            Self::Within(_) | Self::Nothing => None,
        }
    }

    pub fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Slot(entry) | Self::Within(entry) => Some(entry),
            Self::Nothing => None,
        }
    }
}

pub async fn explain(
    api: &Api,
    tenant: TenantId,
    id: JobId,
    point: &Point,
) -> Result<Explained, OpError> {
    let job = Arc::new(jobs::get(api, tenant, id).await?);
    let (of, point) = (Arc::clone(&job), *point);
    let permit = api.permit().await?;
    let explanation = permit.work(move || of.def.schedule.explain(&point)).await?;
    let first = explanation.moments.first().copied();
    let at = explanation.slot.map(|slot| slot.0).or(first);
    let seen_from = tenants::history_from(api, tenant).await?;
    let seen_from = seen_from.unwrap_or(Timestamp::MIN);
    let found = match at {
        Some(at) if at >= seen_from => find(api, &job, at).await?,
        Some(_) | None => Found::Nothing,
    };
    let now = api.engine.now();
    let view = View {
        job: &job,
        now,
        history_from: now.minus(api.history_keep).max(seen_from),
        at,
        said: explanation.slot.is_some(),
        found: &found,
    };
    let (alive, life) = view.life();
    let slot = view.slot(alive);
    let mut steps = vec![life];
    let of_schedule = explanation.steps.into_iter();
    steps.extend(of_schedule.filter_map(|it| view.of_schedule(it)));
    steps.extend(view.rest(slot, alive));
    Ok(Explained {
        at,
        local: explanation.local,
        zone: explanation.zone,
        slot,
        steps,
        found,
    })
}

/// Whether the schedule has a slot at a moment, whatever calendars say of it.
fn is_slot(job: &Job, at: Timestamp) -> bool {
    let next = job.def.schedule.next_after(at.minus(MILLISECOND));
    next.is_some_and(|slot| slot.0 == at)
}

/// What became of the slot at a moment, or will.
async fn find(api: &Api, job: &Job, at: Timestamp) -> Result<Found, OpError> {
    let range = Range {
        from: at,
        to: at.plus(MILLISECOND),
        cursor: None,
        limit: 2,
    };
    let page = slots::list(api, job.tenant, job.id, range).await?;
    let found = page.entries.into_iter().map(|entry| {
        let Stretch { first, last, count } = entry.slots;
        if first.0 == at || last.0 == at {
            return Found::Slot(entry);
        }
        // A stretch covers moments between its slots too.
        let is_of = entry.is_of(&job.def.schedule);
        if is_of && is_slot(job, at) {
            Found::Slot(entry)
        } else if !is_of && count > 2 {
            Found::Within(entry)
        } else {
            Found::Nothing
        }
    });
    let mut found = found.filter(|found| *found != Found::Nothing);
    Ok(found.next().unwrap_or(Found::Nothing))
}

/// A job, and the moment that is to be explained.
struct View<'a> {
    job: &'a Job,
    now: Timestamp,
    history_from: Timestamp,
    at: Option<Timestamp>,
    /// Whether the schedule as it stands has a slot there.
    said: bool,
    found: &'a Found,
}

impl View<'_> {
    /// Whether the job could have slots at the moment at all, and how it stood then.
    fn life(&self) -> (bool, Step) {
        let job = self.job;
        let at = self.at.unwrap_or(self.now);
        let since = format!("created {}, version {}", job.created_at, job.version);
        let step = |holds, says: String| Step::new("job", holds, says);
        let recurring = job.def.schedule.is_recurring();
        let before = at < job.created_at || recurring && at == job.created_at;
        if before && self.found.entry().is_none() {
            let created = job.created_at;
            let says = format!("the job was created {created}: its slots come after that");
            return (false, step(false, says));
        }
        let state_at = job.state_at;
        // What was decided by then is not the state's to say.
        let later = at > job.slot_last.map_or(state_at, |last| last.min(state_at));
        let decided = self.found.entry().is_some_and(Entry::is_decided);
        match job.state {
            JobState::Deleted if at > state_at => (
                false,
                step(false, format!("the job was deleted {state_at}")),
            ),
            JobState::Finished if later && !decided => (
                false,
                step(false, format!("the job is finished since {state_at}")),
            ),
            JobState::Paused if later && !decided => {
                let by = job.paused_by.as_deref().unwrap_or("someone");
                let why = job.note.as_deref().map(|note| format!(": {note}"));
                let why = why.unwrap_or_default();
                let says = format!("{since}; paused {state_at} by {by}{why}");
                (true, step(false, says))
            }
            JobState::Invalid if later && !decided => {
                let why = job.note.as_deref().unwrap_or("it cannot be planned");
                let says = format!("{since}; invalid since {state_at}: {why}");
                (true, step(false, says))
            }
            JobState::Active
            | JobState::Paused
            | JobState::Finished
            | JobState::Invalid
            | JobState::Deleted => (true, step(true, self.alive(&since))),
        }
    }

    /// Whether the moment is a slot, as far as that is known.
    fn slot(&self, alive: bool) -> Option<bool> {
        match self.found {
            Found::Slot(_) => return Some(true),
            Found::Within(_) => return None,
            Found::Nothing => {}
        }
        if !alive || self.spent() {
            return Some(false);
        }
        match self.at.filter(|at| *at <= self.now) {
            Some(at) if at >= self.history_from => Some(false),
            Some(at) if self.is_of_older(at) => None,
            Some(_) | None => Some(self.said),
        }
    }

    /// Whether another definition may have stood at a moment.
    fn is_of_older(&self, at: Timestamp) -> bool {
        self.job.version > Version::FIRST && at <= self.job.updated_at
    }

    /// Whether all runs that the job may make are made before the moment.
    fn spent(&self) -> bool {
        let ahead = self.at.is_some_and(|at| at > self.now);
        ahead && self.found.slot().is_none() && self.job.runs_left().is_some()
    }

    /// A step of the schedule, which does not know of slots that runs have set.
    fn of_schedule(&self, step: model::schedule::Step) -> Option<Step> {
        let set = self.job.def.schedule.after_completion() && self.found.slot().is_some();
        match step.step {
            "schedule" => Some(Step::new(step.step, step.holds || set, step.says)),
            "nearest" if set => None,
            name => Some(Step::new(name, step.holds, step.says)),
        }
    }

    /// Which version stood at the moment, as far as that is known.
    fn alive(&self, since: &str) -> String {
        let job = self.job;
        let updated_at = job.updated_at;
        let ran = self.found.slot().and_then(|entry| match &entry.fate {
            Fate::Ran(run) => Some(run.version),
            Fate::Skipped(_) | Fate::Planned { .. } | Fate::Unknown => None,
        });
        let state = job.state;
        match (ran, self.at) {
            (Some(version), _) if version != job.version => {
                format!("{since}; it was at version {version} then, the steps are those of now")
            }
            (_, Some(at)) if job.version > Version::FIRST && at < updated_at => {
                format!("{since} since {updated_at}; the steps are those of now, not of then")
            }
            _ => format!("{since}, {state}"),
        }
    }

    /// What follows once the schedule has spoken.
    fn rest(&self, slot: Option<bool>, alive: bool) -> Vec<Step> {
        let outcome = |holds, says: String| Step::new("outcome", holds, says);
        let Some(at) = self.at.filter(|_| slot == Some(true)) else {
            let says = match slot {
                None => self.unrecorded(),
                Some(_) => self.no_slot(alive),
            };
            return vec![outcome(false, says)];
        };
        let mut steps = vec![self.spread(at)];
        match self.found.slot().map(|entry| &entry.fate) {
            Some(Fate::Ran(run)) => {
                steps.push(self.overlap(true, "nothing stood in the way of a run"));
                steps.push(outcome(true, ran(run)));
            }
            Some(Fate::Skipped(why)) => {
                steps.extend(self.skipped_by(why));
                steps.push(outcome(false, self.skipped(why)));
            }
            Some(Fate::Planned { overdue }) => {
                let says = if *overdue {
                    "it is overdue: a node is about to decide about it"
                } else {
                    "it is planned"
                };
                steps.push(outcome(true, says.to_owned()));
            }
            Some(Fate::Unknown) => {
                let says = "it should have been decided and was not; this is a fault of ours";
                steps.push(outcome(false, says.to_owned()));
            }
            None => steps.push(outcome(false, self.nothing(at))),
        }
        steps
    }

    /// Why nothing is due.
    fn no_slot(&self, alive: bool) -> String {
        if self.spent() {
            let left = self.job.runs_left().unwrap_or(0);
            return format!("the job will be finished before: {left} runs are left");
        }
        let passed = self.at.is_some_and(|at| at <= self.now);
        if self.said && alive && passed {
            let updated_at = self.job.updated_at;
            format!("the job was changed {updated_at}: it was no slot then")
        } else {
            "it is no slot: nothing is due".to_owned()
        }
    }

    /// Why it is not known whether the moment was a slot.
    fn unrecorded(&self) -> String {
        let Some(Entry { slots, fate, .. }) = self.found.entry() else {
            let kept = self.history_from;
            return format!(
                "what came of slots before {kept} is not kept any more, nor is the schedule of then: \
                 whether it was one is not known"
            );
        };
        let Stretch { first, last, count } = slots;
        let became = match fate {
            Fate::Skipped(why) => self.skipped(why),
            Fate::Ran(_) | Fate::Planned { .. } | Fate::Unknown => "decided".to_owned(),
        };
        format!(
            "it lies within a stretch of {count} slots from {first} to {last} ({became}); the schedule of \
             then is not kept, so whether this very moment was one of them is not known"
        )
    }

    fn spread(&self, at: Timestamp) -> Step {
        let due_at = self
            .found
            .slot()
            .filter(|entry| entry.slots.first.0 == at)
            .map_or(self.job.due_at(Slot(at)), |entry| entry.due_at);
        let spread = self.job.def.spread;
        let says = if spread.is_zero() {
            format!("no spread: due {due_at}")
        } else {
            let (offset, spread) = (format_span(due_at.since(at)), format_span(spread));
            format!("due {due_at}, {offset} later, within a spread of {spread}")
        };
        Step::new("spread", true, says)
    }

    fn overlap(&self, holds: bool, says: &str) -> Step {
        let policy = self.job.def.overlap.as_str();
        Step::new("overlap", holds, format!("overlap is {policy}: {says}"))
    }

    /// The policy that had a slot skipped, if it was one.
    fn skipped_by(&self, why: &Why) -> Option<Step> {
        match why.reason {
            Reason::Overlap => Some(self.overlap(false, "a run before it was still alive")),
            Reason::QueueFull => {
                Some(self.overlap(false, "as many runs as allowed waited already"))
            }
            Reason::Overload => Some(self.overlap(
                false,
                "the system was late, and as many slots as may wait for their turn did",
            )),
            Reason::Quota => Some(Step::new(
                "quota",
                false,
                "the tenant had had all its runs of the day (runs_day_max)".to_owned(),
            )),
            Reason::Missed if self.by_change(why) => None,
            Reason::Missed => {
                let catch_up = &self.job.def.catch_up;
                let (policy, window) = (catch_up.policy.as_str(), format_span(catch_up.window));
                let says = format!(
                    "no node could fire it in time; catch_up is {policy}, within {window}: it was skipped"
                );
                Some(Step::new("catch_up", false, says))
            }
            Reason::Paused
            | Reason::AttemptsSpent
            | Reason::Refused
            | Reason::Lost
            | Reason::Poison
            | Reason::Requested
            | Reason::Replaced
            | Reason::JobDeleted
            | Reason::Unreadable
            | Reason::Calendar
            | Reason::Invalid => None,
        }
    }

    /// Why nothing is known of a slot.
    fn nothing(&self, at: Timestamp) -> String {
        if at < self.history_from {
            let kept = self.history_from;
            return format!("what came of slots before {kept} is not kept any more");
        }
        "the end of a run sets the next slot: it is not known yet".to_owned()
    }

    /// Whether a slot was dropped by a change of the job, and not missed by a node.
    fn by_change(&self, why: &Why) -> bool {
        let is_client = |by: &str| {
            by == &**ANONYMOUS || by.starts_with("key_") || Some(by) == self.job.owner.as_deref()
        };
        let by_client = why.actor.as_deref().is_some_and(is_client);
        let edited = self.job.version > Version::FIRST && why.at == Some(self.job.updated_at);
        why.reason == Reason::Missed && (by_client || edited)
    }

    /// What became of a slot that did not run.
    fn skipped(&self, why: &Why) -> String {
        let mut says = if why.reason != Reason::Missed {
            format!("skipped: {}", why.reason.as_str())
        } else if self.by_change(why) {
            "missed: it passed undecided when the job was changed".to_owned()
        } else {
            "missed".to_owned()
        };
        if let Some(note) = &why.note {
            says.push_str(&format!(" ({note})"));
        }
        if let Some(by) = &why.actor {
            says.push_str(&format!(", by {by}"));
        }
        if let Some(at) = why.at {
            says.push_str(&format!(", written down {at}"));
        }
        says
    }
}

fn ran(run: &Run) -> String {
    let (state, attempt) = (run.state, run.attempt.0);
    let ended = run.settled_at.map(|at| format!(" {at}"));
    let ended = ended.unwrap_or_default();
    format!("{} is {state}{ended}, attempt {attempt}", run.id)
}
