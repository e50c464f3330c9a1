//! From a draft to a schedule that holds: what repeats, its bounds, its calendars, and that it has a slot.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::schedule::{
    Bounds, Calendars, Cron, CronOptions, Every, Found, Kind, ScheduleError, Zone, names_zone,
};
use model::{Calendar, CalendarName, Job, JobState, Schedule, Slot, Target, Timestamp, limits};

use super::draft::{KindDraft, Patch, ScheduleDraft};
use super::fault::{Fault, FieldError};

/// The calendars that a request names, as far as they exist.
///
/// They may be older than those that stand when the job is written, which does no harm: a store keeps their
/// names and reads them again, and whoever changes a calendar has every job under it rescheduled.
#[derive(Debug, Clone, Default)]
pub struct Known(pub BTreeMap<CalendarName, Arc<Calendar>>);

/// What a schedule needs to know of its job.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub now: Timestamp,
    /// The job's own number.
    pub hash: u64,
    /// The schedule that is replaced: an interval that is said again keeps its anchor.
    pub before: Option<&'a Schedule>,
    /// The target that is replaced: a masked value that is said again stays.
    pub target: Option<&'a Target>,
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
pub(super) fn calendar_gone(schedule: &Schedule, name: &CalendarName) -> FieldError {
    let mut excluded = schedule.calendars.exclude.iter();
    let field = if excluded.any(|calendar| calendar.name == *name) {
        "exclude"
    } else {
        "only"
    };
    calendar_unknown(field, name)
}

impl KindDraft {
    /// Whether it can have more than one slot, so that bounds mean something to it.
    pub fn repeats(&self) -> bool {
        match self {
            Self::Text(_) | Self::Cron(_) | Self::Every(_) => true,
            Self::At(_) | Self::In(_) => false,
        }
    }

    fn uses(&self) -> Uses {
        match self {
            // It may turn out to be either.
            Self::Text(_) => Uses::Both,
            Self::Cron(_) => Uses::Cron,
            Self::Every(_) => Uses::Every,
            Self::At(_) | Self::In(_) => Uses::Nothing,
        }
    }

    /// What stands, said again.
    fn of(kind: &Kind) -> Option<Self> {
        match kind {
            Kind::Cron(cron) => Some(Self::Cron(cron.texts().to_vec())),
            Kind::Every(every) => Some(Self::Every(every.period.text())),
            Kind::Once(_) | Kind::Broken(_) => None,
        }
    }

    /// Whether its expressions bring a zone of their own.
    fn names_zone(&self) -> bool {
        match self {
            Self::Text(text) => names_zone(text),
            Self::Cron(texts) => texts.iter().any(|text| names_zone(text)),
            Self::Every(_) | Self::At(_) | Self::In(_) => false,
        }
    }
}

/// Which of the fields beside it a kind of schedule has a use for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uses {
    Both,
    Cron,
    Every,
    Nothing,
}

/// A field that means nothing to the schedule it stands in, and what it belongs to.
pub(super) type Misfit = (&'static str, &'static str);

impl ScheduleDraft {
    /// The first field that is given and means nothing to a kind of schedule.
    pub fn misfit(&self, kind: &KindDraft) -> Option<Misfit> {
        self.misfit_of(kind.uses())
    }

    fn misfit_of(&self, uses: Uses) -> Option<Misfit> {
        let cron = matches!(uses, Uses::Both | Uses::Cron);
        let every = matches!(uses, Uses::Both | Uses::Every);
        let both = (cron || every, "cron and every");
        let (cron, every) = ((cron, "cron"), (every, "every"));
        let fields = [
            (self.dialect.given().is_some(), "dialect", cron),
            (self.dst_gap.given().is_some(), "dst_gap", cron),
            (self.dst_overlap.given().is_some(), "dst_overlap", cron),
            (self.anchor.given().is_some(), "anchor", every),
            (
                self.after_completion.given().is_some(),
                "after_completion",
                every,
            ),
            (self.zone.given().is_some(), "timezone", both),
            (self.starts_at.given().is_some(), "starts_at", both),
            (self.ends_at.given().is_some(), "ends_at", both),
            (self.runs_max.given().is_some(), "runs_max", both),
        ];
        let misfit = |(given, _, (used, _)): &(bool, _, (bool, _))| *given && !used;
        fields
            .into_iter()
            .find(misfit)
            .map(|(_, name, (_, kind))| (name, kind))
    }

    /// What stands, with what is said changed. What is not said stays, as far as the kind that is said has a use for it.
    pub fn amend(self, stands: &Schedule, context: Context<'_>) -> Result<Schedule, FieldError> {
        if self.kind.is_none() {
            check_readable(stands)?;
            let uses = KindDraft::of(&stands.kind).map_or(Uses::Nothing, |kind| kind.uses());
            if let Some(misfit) = self.misfit_of(uses) {
                return Err(refuse_misfit(misfit));
            }
            if uses == Uses::Nothing {
                return Ok(stands.clone());
            }
        }
        self.over(stands).build(context)
    }

    fn over(mut self, stands: &Schedule) -> Self {
        // An interval that is said together with its start is counted from there.
        let recounted = self.kind.is_some() && self.starts_at.given().is_some();
        let kind = self.kind.take().or_else(|| KindDraft::of(&stands.kind));
        if kind.as_ref().is_some_and(KindDraft::repeats) {
            let zoned = kind.as_ref().is_some_and(KindDraft::names_zone);
            let zone = match &stands.kind {
                Kind::Cron(cron) => Some(cron.zone().clone()),
                Kind::Every(every) => Some(every.zone.clone()),
                Kind::Once(_) | Kind::Broken(_) => None,
            };
            self.zone = self.zone.or_keep(|| zone.filter(|_| !zoned));
            self.starts_at = self.starts_at.or_keep(|| stands.bounds.starts_at);
            self.ends_at = self.ends_at.or_keep(|| stands.bounds.ends_at);
            self.runs_max = self.runs_max.or_keep(|| stands.bounds.runs_max);
        }
        match &stands.kind {
            Kind::Cron(cron) => {
                self.dialect = self.dialect.or_keep(|| Some(cron.dialect()));
                self.dst_gap = self.dst_gap.or_keep(|| Some(cron.dst_gap()));
                self.dst_overlap = self.dst_overlap.or_keep(|| Some(cron.dst_overlap()));
            }
            Kind::Every(every) => {
                self.anchor = self
                    .anchor
                    .or_keep(|| Some(every.anchor).filter(|_| !recounted));
                let after = every.after_completion;
                self.after_completion = self.after_completion.or_keep(|| Some(after));
            }
            Kind::Once(_) | Kind::Broken(_) => {}
        }
        Self { kind, ..self }
    }

    /// The schedule by itself; calendars are the job's to name. Fields that the kind has no use for are left out.
    pub fn build(&self, context: Context<'_>) -> Result<Schedule, FieldError> {
        let refused = |field: &'static str| {
            move |error: ScheduleError| FieldError::new(Fault::Schedule, field, error.to_string())
        };
        let kind = self.kind.as_ref().ok_or_else(kind_missing)?;
        let anchor = self.anchor(context);
        let kind = match kind {
            KindDraft::Text(text) => Schedule::parse_text(text, self.options(context.hash), anchor)
                .map(|schedule| self.finish(schedule.kind, context))
                .map_err(refused("schedule"))?,
            KindDraft::Cron(texts) => Cron::parse(texts, self.options(context.hash))
                .map(Kind::Cron)
                .map_err(refused("schedule.cron"))?,
            KindDraft::Every(period) => {
                let zone = self.zone.given().cloned().unwrap_or_else(Zone::utc);
                Every::parse(period, anchor, zone)
                    .map(|every| self.finish(Kind::Every(every), context))
                    .map_err(refused("schedule.every"))?
            }
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
        let repeats = self.kind.as_ref().is_some_and(KindDraft::repeats);
        let bounds = Bounds {
            starts_at: self.starts_at.given().copied(),
            ends_at: self.ends_at.given().copied(),
            runs_max: self.runs_max.given().copied(),
        };
        Ok(Schedule {
            kind,
            bounds: if repeats { bounds } else { Bounds::default() },
            calendars: Calendars::default(),
        })
    }

    fn options(&self, hash: u64) -> CronOptions {
        CronOptions {
            zone: self.zone.given().cloned(),
            dialect: self.dialect.given().copied().unwrap_or_default(),
            dst_gap: self.dst_gap.given().copied().unwrap_or_default(),
            dst_overlap: self.dst_overlap.given().copied().unwrap_or_default(),
            hash,
        }
    }

    /// What an interval is counted from.
    fn anchor(&self, context: Context<'_>) -> Timestamp {
        let given = self.anchor.given().or(self.starts_at.given());
        given.copied().unwrap_or(context.now)
    }

    /// What an interval has beside its period. The same interval said again goes on from its old anchor: saying a thing
    /// twice changes nothing.
    fn finish(&self, kind: Kind, context: Context<'_>) -> Kind {
        let mut every = match kind {
            Kind::Every(every) => every,
            kind @ (Kind::Cron(_) | Kind::Once(_) | Kind::Broken(_)) => return kind,
        };
        every.after_completion = self.after_completion.given().copied().unwrap_or(false);
        let counted = self.anchor.given().is_some() || self.starts_at.given().is_some();
        match context.before.map(|before| &before.kind) {
            Some(Kind::Every(old))
                if !counted && every.period == old.period && every.zone == old.zone =>
            {
                every.anchor = old.anchor;
            }
            Some(Kind::Every(_) | Kind::Cron(_) | Kind::Once(_) | Kind::Broken(_)) | None => {}
        }
        Kind::Every(every)
    }
}

pub fn refuse_misfit((field, kind): Misfit) -> FieldError {
    FieldError::invalid(
        format!("schedule.{field}"),
        format!("{field} belongs to {kind}: leave it out"),
    )
}

pub fn kind_missing() -> FieldError {
    let detail = "a schedule has exactly one of cron, every, at, in";
    FieldError::new(Fault::Missing, "schedule", detail)
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

/// Whoever changes a job that cannot be planned has to say when it is due.
pub(super) fn check_readable(schedule: &Schedule) -> Result<(), FieldError> {
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
pub(super) fn check_ahead(schedule: &Schedule, now: Timestamp) -> Result<(), FieldError> {
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
            let by = schedule.calendars.exclusion(first, &schedule.zone()).by;
            let name = by.unwrap_or_default();
            let excludes = |calendar: &Arc<Calendar>| calendar.name.as_str() == name;
            let (field, fix) = if schedule.calendars.exclude.iter().any(excludes) {
                ("exclude", "take it out, or change its days")
            } else {
                ("only", "no slot of the schedule lies within it")
            };
            let detail = format!("calendar {name} leaves out every slot up to {last}: {fix}");
            Err(never(field, detail))
        }
    }
}

/// Refuses to make a one-off of a job that has gone beyond its moment: it would end without a run.
pub(super) fn check_once(job: &Job, now: Timestamp) -> Result<(), FieldError> {
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
