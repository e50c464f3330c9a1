//! When a schedule would be due, without a job; and what another schedule means for the slots ahead.

use std::sync::Arc;

use model::schedule::Kind;
use model::{CalendarName, Job, Schedule, Slot, TenantId, Timestamp};

use super::Patch;
use super::ahead::{MILLISECOND, Part, Walk};
use super::calendars;
use super::draft::{KindDraft, ScheduleDraft};
use super::error::OpError;
use super::schedule::Context;
use crate::api::Api;
use crate::permit::Permit;

/// What is to be previewed: a schedule, the calendars that it goes by, and how much of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewRequest {
    pub schedule: ScheduleDraft,
    pub exclude: Vec<CalendarName>,
    pub only: Vec<CalendarName>,
    /// Now, unless it is said.
    pub from: Option<Timestamp>,
    pub count: usize,
}

/// The slots ahead, and what people should know about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Those that calendars keep.
    pub slots: Vec<Slot>,
    /// The first that they leave out between those shown, and who does.
    pub excluded: Vec<(Slot, String)>,
    pub words: String,
    pub notes: Vec<String>,
}

/// Slots that are named as left out.
const EXCLUDED_MAX: usize = 20;

/// `count` slots strictly after `from`. Without a job there is no number to choose `H` by: zero stands for it.
pub async fn preview(
    api: &Api,
    tenant: TenantId,
    request: PreviewRequest,
) -> Result<Preview, OpError> {
    let now = api.engine.now();
    let from = request.from.unwrap_or(now);
    // An interval without an anchor is counted from where the preview begins.
    let repeats = request
        .schedule
        .kind
        .as_ref()
        .is_some_and(KindDraft::repeats);
    let start = if repeats { from } else { now };
    let names = request.exclude.iter().chain(&request.only);
    let known = calendars::known(api, tenant, names).await?;
    let context = Context {
        now: start,
        hash: 0,
        before: None,
        target: None,
        known: &known,
    };
    let mut schedule = request.schedule.build(context)?;
    let said = [request.exclude, request.only].map(Patch::Set);
    let [exclude, only] = &said;
    schedule.calendars = context.calendars([exclude, only], &schedule.calendars)?;
    let permit = api.permit().await?;
    permit
        .work(move || read_ahead(&schedule, from, request.count))
        .await
}

/// The same for a job that stands: what is not said is as the job has it.
pub async fn of_edit(api: &Api, job: &Job, request: PreviewRequest) -> Result<Preview, OpError> {
    let names = request.exclude.iter().chain(&request.only);
    let known = calendars::known(api, job.tenant, names).await?;
    let (now, stands) = (api.engine.now(), &job.def.schedule);
    let context = Context {
        now,
        hash: job.id.hash(),
        before: None,
        target: None,
        known: &known,
    };
    let mut schedule = request.schedule.amend(stands, context)?;
    let said = [request.exclude, request.only].map(Patch::Set);
    let [exclude, only] = &said;
    schedule.calendars = context.calendars([exclude, only], &stands.calendars)?;
    let left = job.runs_left().map_or(usize::MAX, |left| left as usize);
    let (from, count) = (request.from.unwrap_or(now), request.count.min(left));
    let permit = api.permit().await?;
    permit
        .work(move || read_ahead(&schedule, from, count))
        .await
}

fn read_ahead(schedule: &Schedule, from: Timestamp, count: usize) -> Preview {
    let count = schedule
        .bounds
        .runs_max
        .map_or(count, |max| count.min(max as usize));
    let mut walk = Walk::new(schedule, from, Timestamp::MAX);
    let (mut slots, mut excluded) = (Vec::new(), Vec::new());
    while slots.len() < count {
        match walk.next() {
            Some(Part::Kept(slot)) => slots.push(slot),
            Some(Part::LeftOut { first, end, by }) => {
                let next = |slot: &Slot| schedule.next_after(slot.0).filter(|slot| slot.0 <= end);
                let left = std::iter::successors(Some(first), next).map(|slot| (slot, by.clone()));
                excluded.extend(left.take(EXCLUDED_MAX.saturating_sub(excluded.len())));
            }
            None => break,
        }
    }
    let mut notes = schedule.notes(from);
    match walk.stopped_at() {
        Some(slot) if slots.is_empty() => {
            notes.push(format!("calendars leave out every slot before {slot}"));
        }
        Some(slot) if slots.len() < count => {
            notes.push(format!(
                "calendars leave out too much to look beyond {slot}"
            ));
        }
        None if slots.is_empty() && !excluded.is_empty() => {
            notes.push("calendars leave out every slot".to_owned());
        }
        Some(_) | None => {}
    }
    if schedule.after_completion() {
        notes.push(
            "each slot follows the end of the run before it: these are for runs that take no time"
                .to_owned(),
        );
    }
    Preview {
        slots,
        excluded,
        words: schedule.words(),
        notes,
    }
}

/// Slots named of each side of a difference.
const NAMED_MAX: usize = 20;
/// Slots looked at to find them: two schedules may agree for long.
const READ_MAX: usize = 1_000;

/// What another schedule means for the slots ahead: the first that go, the first that come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub removed: Vec<Slot>,
    pub added: Vec<Slot>,
}

/// A change that is about to be written, with a permit if there will be something to compare: whoever cannot
/// have one is refused before anything is written.
pub struct Compared {
    before: Arc<Job>,
    after: Arc<Job>,
    permit: Option<Permit>,
}

impl Compared {
    pub async fn new(api: &Api, before: &Arc<Job>, after: &Arc<Job>) -> Result<Self, OpError> {
        let permit = if before.def.schedule == after.def.schedule {
            None
        } else {
            Some(api.permit().await?)
        };
        Ok(Self {
            before: Arc::clone(before),
            after: Arc::clone(after),
            permit,
        })
    }

    pub async fn difference(self) -> Result<Option<Difference>, OpError> {
        let Some(permit) = self.permit else {
            return Ok(None);
        };
        let (before, after) = (self.before, self.after);
        permit
            .work(move || difference(&before, &after, after.updated_at))
            .await
    }
}

/// Nothing where the slots ahead are the same, as far as one looks.
fn difference(before: &Job, after: &Job, from: Timestamp) -> Option<Difference> {
    if before.def.schedule == after.def.schedule {
        return None;
    }
    let (before, after) = (Ahead::of(before, from), Ahead::of(after, from));
    let difference = Difference {
        removed: before.without(&after),
        added: after.without(&before),
    };
    let none = difference.removed.is_empty() && difference.added.is_empty();
    (!none).then_some(difference)
}

/// What a new job means: all of its slots come.
pub async fn of_new(api: &Api, job: &Arc<Job>) -> Result<Difference, OpError> {
    let job = Arc::clone(job);
    api.permit().await?.work(move || all_added(&job)).await
}

fn all_added(job: &Job) -> Difference {
    let mut added = Ahead::of(job, job.created_at).slots;
    added.truncate(NAMED_MAX);
    Difference {
        removed: Vec::new(),
        added,
    }
}

/// The slots of a job that calendars keep and that would run, as far as one looks.
struct Ahead<'a> {
    schedule: &'a Schedule,
    slots: Vec<Slot>,
    /// Whether these are all there are.
    all: bool,
}

impl<'a> Ahead<'a> {
    fn of(job: &'a Job, from: Timestamp) -> Self {
        let schedule = &job.def.schedule;
        let left = job.runs_left().map_or(usize::MAX, |left| left as usize);
        let mut walk = Walk::new(schedule, from, Timestamp::MAX);
        let slots: Vec<Slot> = match &schedule.kind {
            // One that has passed may still be due.
            Kind::Once(slot) => {
                let comes = slot.0 > from || job.next_slot == Some(*slot);
                comes.then_some(*slot).into_iter().collect()
            }
            // The others are set by the ends of runs that have not begun.
            Kind::Every(every) if every.after_completion => job.next_slot.into_iter().collect(),
            Kind::Cron(_) | Kind::Every(_) | Kind::Broken(_) => {
                walk.kept().take(left.min(READ_MAX)).collect()
            }
        };
        let all = slots.len() < READ_MAX && walk.stopped_at().is_none();
        Self {
            schedule,
            slots,
            all,
        }
    }

    /// The first of its slots that another has not.
    fn without(&self, other: &Self) -> Vec<Slot> {
        let gone = self.slots.iter().filter(|slot| !other.has(**slot));
        gone.take(NAMED_MAX).copied().collect()
    }

    fn has(&self, slot: Slot) -> bool {
        let is_read = self.slots.last().is_some_and(|last| slot <= *last);
        if is_read || self.all {
            return self.slots.binary_search(&slot).is_ok();
        }
        let just_before = slot.0.minus(MILLISECOND);
        self.schedule.next_after(just_before) == Some(slot) && self.schedule.keeps(slot)
    }
}

#[cfg(test)]
#[path = "preview_tests.rs"]
mod tests;
