//! From a draft to a schedule that holds: what repeats, its bounds, its calendars, and that it has a slot.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::schedule::{
    Bounds, Calendars, Cron, CronOptions, Every, Found, Kind, ScheduleError, Zone,
};
use model::{Calendar, CalendarName, Job, JobState, Schedule, Slot, Timestamp, limits};

use super::draft::{CronDraft, EveryDraft, KindDraft, Patch, ScheduleDraft};
use super::fault::{Fault, FieldError};

/// The calendars that a request names, as far as they exist.
///
/// They may be older than those that stand when the job is written, which does no harm: a store keeps their
/// names and reads them anew, and whoever changes a calendar has every job under it aimed anew.
#[derive(Debug, Clone, Default)]
pub struct Known(pub BTreeMap<CalendarName, Arc<Calendar>>);

/// What a schedule needs to know of its job.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub now: Timestamp,
    /// The job's own number.
    pub hash: u64,
    /// The schedule that stands: an interval that is said again keeps its anchor.
    pub before: Option<&'a Schedule>,
    pub known: &'a Known,
}

impl Context<'_> {
    /// The calendars that are said, `exclude` and `only`, over those that stand.
    pub fn calendars(
        &self,
        said: [&Patch<Vec<CalendarName>>; 2],
        stands: &Calendars,
    ) -> Result<Calendars, FieldError> {
        let [exclude, only] = said;
        let calendars = Calendars {
            exclude: self.list("exclude", exclude, &stands.exclude)?,
            only: self.list("only", only, &stands.only)?,
        };
        let count = calendars.exclude.len() + calendars.only.len();
        if count > limits::CALENDARS_OF_JOB_MAX {
            let field = if only.given().is_some() {
                "only"
            } else {
                "exclude"
            };
            let max = limits::CALENDARS_OF_JOB_MAX;
            let detail =
                format!("{count} calendars: a job names at most {max}, both lists together");
            return Err(FieldError::invalid(field, detail));
        }
        Ok(calendars)
    }

    fn list(
        &self,
        field: &str,
        said: &Patch<Vec<CalendarName>>,
        stands: &[Arc<Calendar>],
    ) -> Result<Vec<Arc<Calendar>>, FieldError> {
        let names = match said {
            Patch::Keep => return Ok(stands.to_vec()),
            Patch::Reset => return Ok(Vec::new()),
            Patch::Set(names) => names,
        };
        // A definition is the same if it names the same calendars, whatever has become of them since.
        if stands.iter().map(|stands| &stands.name).eq(names) {
            return Ok(stands.to_vec());
        }
        let find = |name: &CalendarName| {
            let known = self.known.0.get(name).map(Arc::clone);
            known.ok_or_else(|| calendar_unknown(field, name))
        };
        names.iter().map(find).collect()
    }
}

fn calendar_unknown(field: &str, name: &CalendarName) -> FieldError {
    let detail = format!("there is no calendar {name}: make it with PUT /v1/calendars/{name}");
    FieldError::new(Fault::Calendar, field, detail)
}

/// A calendar was dropped after the job's definition had been checked.
pub fn calendar_gone(schedule: &Schedule, name: &CalendarName) -> FieldError {
    let mut excluded = schedule.calendars.exclude.iter();
    let field = match excluded.any(|calendar| calendar.name == *name) {
        true => "exclude",
        false => "only",
    };
    calendar_unknown(field, name)
}

impl ScheduleDraft {
    /// The schedule by itself; calendars are the job's to name.
    pub fn build(&self, context: Context<'_>) -> Result<Schedule, FieldError> {
        let refused = |field: &'static str| {
            move |error: ScheduleError| FieldError::new(Fault::Schedule, field, error.to_string())
        };
        let anchor = self.bounds.starts_at.unwrap_or(context.now);
        // What is counted from a given moment needs no other anchor.
        let before = context.before.filter(|_| self.bounds.starts_at.is_none());
        let kind = match &self.kind {
            KindDraft::Text(cron) => {
                let text = cron.texts.first().map_or("", String::as_str);
                Schedule::parse_text(text, cron.options(context.hash), anchor)
                    .map(|schedule| keep_anchor(schedule.kind, before))
                    .map_err(refused("schedule"))?
            }
            KindDraft::Cron(cron) => Cron::parse(&cron.texts, cron.options(context.hash))
                .map(Kind::Cron)
                .map_err(refused("schedule.cron"))?,
            KindDraft::Every(every) => every
                .build(anchor, before)
                .map_err(refused("schedule.every"))?,
            KindDraft::At(moment) => Kind::Once(once(*moment, context.now)?),
            KindDraft::In(span) => {
                let moment = context.now.plus(*span);
                if moment == Timestamp::MAX {
                    let detail = "the moment lies beyond the year 9999";
                    return Err(FieldError::invalid("schedule.in", detail));
                }
                Kind::Once(Slot(moment))
            }
        };
        Ok(Schedule {
            kind,
            bounds: self.bounds,
            calendars: Calendars::default(),
        })
    }
}

/// A one-off that lies a little in the past runs at once; one from long ago is a mistake.
fn once(moment: Timestamp, now: Timestamp) -> Result<Slot, FieldError> {
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
    Ok(Slot(moment))
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
    fn build(&self, anchor: Timestamp, before: Option<&Schedule>) -> Result<Kind, ScheduleError> {
        let zone = self.zone.clone().unwrap_or_else(Zone::utc);
        let anchor_given = self.anchor.is_some();
        let mut every = Every::parse(&self.period, self.anchor.unwrap_or(anchor), zone)?;
        if self.after_completion {
            every = every.after_completion();
        }
        Ok(keep_anchor(
            Kind::Every(every),
            before.filter(|_| !anchor_given),
        ))
    }
}

/// The same interval said again goes on from its old anchor: saying a thing twice changes nothing.
fn keep_anchor(kind: Kind, before: Option<&Schedule>) -> Kind {
    match (kind, before.map(|before| &before.kind)) {
        (Kind::Every(new), Some(Kind::Every(old)))
            if new.period == old.period && new.zone == old.zone =>
        {
            Kind::Every(Every {
                anchor: old.anchor,
                ..new
            })
        }
        (kind, _) => kind,
    }
}

/// Whoever changes a job that cannot be planned has to say when it is due.
pub fn check_readable(schedule: &Schedule) -> Result<(), FieldError> {
    match &schedule.kind {
        Kind::Cron(_) | Kind::Every(_) | Kind::Once(_) => Ok(()),
        Kind::Broken(broken) => {
            let error = &broken.error;
            let detail = format!("the schedule cannot be read any more: {error}; give another");
            Err(FieldError::new(Fault::Schedule, "schedule", detail))
        }
    }
}

/// Refuses a schedule that has no slot left, and one whose calendars leave out every slot.
pub fn check_ahead(schedule: &Schedule, now: Timestamp) -> Result<(), FieldError> {
    let found = match &schedule.kind {
        // One that has just passed is still due.
        Kind::Once(slot) if schedule.keeps(*slot) => Found::Kept(*slot),
        Kind::Once(slot) => Found::LeftOut(*slot),
        Kind::Cron(_) | Kind::Every(_) | Kind::Broken(_) => schedule.find_kept(now),
    };
    let never = |field: &str, detail: String| FieldError::new(Fault::Never, field, detail);
    match found {
        Found::Kept(_) => Ok(()),
        Found::Nothing => Err(never("schedule", no_slot(&schedule.bounds, now))),
        Found::LeftOut(last) => {
            let first = schedule.next_after(now).unwrap_or(last);
            let by = schedule.calendars.look(first, &schedule.zone()).by;
            let name = by.unwrap_or_default();
            let excludes = |calendar: &Arc<Calendar>| calendar.name.as_str() == name;
            let (field, fix) = match schedule.calendars.exclude.iter().any(excludes) {
                true => ("exclude", "take it out, or change its days"),
                false => ("only", "no slot of the schedule lies within it"),
            };
            let detail = format!("calendar {name} leaves out every slot up to {last}: {fix}");
            Err(never(field, detail))
        }
    }
}

/// Refuses to make a one-off of a job that has gone beyond its moment: it would end without a run.
pub fn check_once(job: &Job, now: Timestamp) -> Result<(), FieldError> {
    let slot = match &job.def.schedule.kind {
        Kind::Once(slot) => slot.0,
        Kind::Cron(_) | Kind::Every(_) | Kind::Broken(_) => return Ok(()),
    };
    let never = |detail| Err(FieldError::new(Fault::Never, "schedule", detail));
    match job.slot_last {
        Some(last) if slot <= last => never(format!(
            "{slot} could not run: the job's slots up to {last} are decided; choose a later moment"
        )),
        _ if job.state == JobState::Paused && slot <= now => never(format!(
            "{slot} could not run: the job is paused, and lets pass what has passed; resume it first, or \
             choose a later moment than {now}"
        )),
        Some(_) | None => Ok(()),
    }
}

fn no_slot(bounds: &Bounds, now: Timestamp) -> String {
    match (bounds.starts_at, bounds.ends_at) {
        (Some(start), Some(end)) if end < start => {
            format!("ends_at, {end}, lies before starts_at, {start}: there is no slot between them")
        }
        (start, Some(end)) => {
            let from = start.map_or(now, |start| start.max(now));
            format!("the schedule has no slot from {from} to its end, {end}; it is now {now}")
        }
        (_, None) => format!("the schedule has no slot after {now}"),
    }
}
