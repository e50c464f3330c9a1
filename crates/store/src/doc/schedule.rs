//! A job's schedule as it is stored: by itself, so that one that cannot be read any more hides nothing else.

use std::borrow::Cow;
use std::sync::Arc;

use model::schedule::{
    Bounds, Broken, Calendars, Cron, CronOptions, Dialect, DstGap, DstOverlap, Every, Kind, Period,
    ScheduleError, Zone,
};
use model::{Calendar, CalendarName, JobId, Schedule, Slot, Timestamp};
use serde::{Deserialize, Serialize};

use super::DocError;
use super::definition::{named, other};

type Find<'a> = &'a dyn Fn(&CalendarName) -> Option<Arc<Calendar>>;

/// What is needed of a schedule that cannot be read.
#[derive(Deserialize)]
struct WhichKind {
    at: Option<i64>,
}

/// Exactly one of `at`, `cron` and `every` is there.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleDoc<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<Cow<'a, [String]>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    every: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    anchor: Option<i64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    zone: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    dialect: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    dst_gap: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    dst_overlap: Option<Cow<'a, str>>,
    /// Only when it is not the job's own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_completion: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    starts_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runs_max: Option<u32>,
    /// Calendars by name; what they hold is stored with them.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    only: Vec<Cow<'a, str>>,
}

fn refused(error: ScheduleError) -> DocError {
    DocError(error.to_string())
}

fn moment(stored: i64) -> Result<Timestamp, DocError> {
    Timestamp::checked(stored)
        .ok_or_else(|| DocError(format!("the moment {stored} is out of range")))
}

impl<'a> ScheduleDoc<'a> {
    pub(super) fn of(job: JobId, schedule: &'a Schedule) -> Self {
        let names = |list: &'a [Arc<Calendar>]| {
            let names = list.iter().map(|it| Cow::Borrowed(it.name.as_str()));
            names.collect()
        };
        let Bounds {
            starts_at,
            ends_at,
            runs_max,
        } = schedule.bounds;
        Self {
            starts_at: starts_at.map(Timestamp::as_millis),
            ends_at: ends_at.map(Timestamp::as_millis),
            runs_max,
            exclude: names(&schedule.calendars.exclude),
            only: names(&schedule.calendars.only),
            ..Self::of_kind(job, &schedule.kind)
        }
    }

    fn of_kind(job: JobId, kind: &'a Kind) -> Self {
        let zone_doc =
            |zone: &Zone| other(Cow::Owned(zone.name().to_owned()), Cow::Borrowed("UTC"));
        match kind {
            Kind::Once(slot) => Self {
                at: Some(slot.0.as_millis()),
                ..Self::default()
            },
            Kind::Cron(cron) => Self {
                cron: Some(Cow::Borrowed(cron.texts())),
                zone: zone_doc(cron.zone()),
                dialect: match cron.dialect() {
                    Dialect::Unix => None,
                    Dialect::Quartz => Some(Cow::Borrowed("quartz")),
                },
                dst_gap: match cron.dst_gap() {
                    DstGap::RunAfter => None,
                    DstGap::Skip => Some(Cow::Borrowed("skip")),
                },
                dst_overlap: match cron.dst_overlap() {
                    DstOverlap::First => None,
                    DstOverlap::Both => Some(Cow::Borrowed("both")),
                },
                hash: other(cron.hash(), job.hash()),
                ..Self::default()
            },
            Kind::Every(every) => Self {
                every: Some(Cow::Owned(every.period.text())),
                anchor: Some(every.anchor.as_millis()),
                zone: zone_doc(&every.zone),
                after_completion: other(every.after_completion, false),
                ..Self::default()
            },
            // Whoever stores one stores what it was read from.
            Kind::Broken(_) => Self::default(),
        }
    }

    /// The schedule, or what is left of it. Only text that is not ours at all is refused.
    pub(super) fn read(job: JobId, text: &'a str, find: Find<'_>) -> Result<Schedule, DocError> {
        let read = serde_json::from_str(text).map_err(DocError::from);
        match read.and_then(|doc: Self| doc.schedule(job, find)) {
            Ok(schedule) => Ok(schedule),
            Err(error) => Ok(Kind::Broken(Arc::new(Broken {
                stored: text.to_owned(),
                error: error.0,
                recurring: serde_json::from_str::<WhichKind>(text)?.at.is_none(),
            }))
            .into()),
        }
    }

    fn schedule(mut self, job: JobId, find: Find<'_>) -> Result<Schedule, DocError> {
        let found = |names: &[Cow<'_, str>]| -> Result<Vec<Arc<Calendar>>, DocError> {
            let one = |name: &Cow<'_, str>| {
                let known = CalendarName::new(name).ok().and_then(|name| find(&name));
                known.ok_or_else(|| {
                    DocError(format!("the calendar {name:?} does not exist any more"))
                })
            };
            names.iter().map(one).collect()
        };
        let calendars = Calendars {
            exclude: found(&self.exclude)?,
            only: found(&self.only)?,
        };
        let bounds = Bounds {
            starts_at: self.starts_at.map(moment).transpose()?,
            ends_at: self.ends_at.map(moment).transpose()?,
            runs_max: self.runs_max,
        };
        let kind = match (self.at.take(), self.cron.take(), self.every.take()) {
            (Some(at), None, None) => Kind::Once(Slot(moment(at)?)),
            (None, Some(texts), None) => Kind::Cron(self.cron(job, &texts)?),
            (None, None, Some(period)) => Kind::Every(self.every(&period)?),
            (_, _, _) => {
                let error = "the schedule is none of at, cron and every";
                return Err(DocError(error.to_owned()));
            }
        };
        Ok(Schedule {
            kind,
            bounds,
            calendars,
        })
    }

    fn zone(&self) -> Result<Zone, DocError> {
        match &self.zone {
            None => Ok(Zone::utc()),
            Some(name) => Zone::get(name).map_err(refused),
        }
    }

    fn cron(self, job: JobId, texts: &[String]) -> Result<Cron, DocError> {
        let options = CronOptions {
            zone: Some(self.zone()?),
            dialect: named("dialect", self.dialect, Dialect::Unix, |text| {
                (text == "quartz").then_some(Dialect::Quartz)
            })?,
            dst_gap: named("dst_gap", self.dst_gap, DstGap::RunAfter, |text| {
                (text == "skip").then_some(DstGap::Skip)
            })?,
            dst_overlap: named("dst_overlap", self.dst_overlap, DstOverlap::First, |text| {
                (text == "both").then_some(DstOverlap::Both)
            })?,
            hash: self.hash.unwrap_or_else(|| job.hash()),
        };
        Cron::parse(texts, options).map_err(refused)
    }

    fn every(self, period: &str) -> Result<Every, DocError> {
        let anchor = self.anchor.and_then(Timestamp::checked);
        let anchor = anchor.ok_or_else(|| DocError("the interval has no anchor".to_owned()))?;
        let period = Period::parse(period).map_err(refused)?;
        let every = Every::new(period, anchor, self.zone()?).map_err(refused)?;
        Ok(Every {
            after_completion: self.after_completion.unwrap_or(false),
            ..every
        })
    }
}
