//! Forecasts as we answer them.

use model::schedule::format_span;
use model::{Lane, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::job_out::moment;
use crate::ops::forecast::{self, Reach};
use crate::ops::rush;

/// Slots per second ahead.
#[derive(Debug, Serialize, ToSchema)]
pub struct Forecast {
    /// How far ahead it looks.
    #[schema(example = "24h")]
    pub reach: &'static str,
    /// When this was counted.
    #[schema(format = DateTime)]
    pub as_of: String,
    /// The beginning of the first point.
    #[schema(format = DateTime)]
    pub from: String,
    /// Up to there every slot of every job is counted.
    #[schema(format = DateTime)]
    pub exact_until: String,
    /// Up to there something is known: jobs that are next due later were not looked at. It is before the end of the reach only where
    /// very many jobs are due before.
    #[schema(format = DateTime)]
    pub to: String,
    /// Whether some of the points are estimates from a sample of the jobs.
    pub sampled: bool,
    /// The share of all jobs that was sampled for what is after `exact_until`; 1 if it is all of them.
    #[schema(example = 0.01)]
    pub sample_share: f64,
    /// How long a point is.
    #[schema(example = 300)]
    pub point_seconds: u32,
    /// Every point, oldest first.
    pub points: Vec<ForecastPoint>,
    /// A second with so many slots is hot: ten times as many as one has on average, and ten at least.
    #[schema(example = 40)]
    pub hot_above: f64,
    /// The hottest seconds of the next 24 hours, hottest first.
    pub hot: Vec<HotSecond>,
}

/// What is due from a moment on, for `point_seconds`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForecastPoint {
    /// When it begins.
    #[schema(format = DateTime)]
    pub at: String,
    /// Slots that are due, in all lanes.
    #[schema(example = 312)]
    pub slots: f64,
    /// The same for each second, on average.
    #[schema(example = 1.04)]
    pub per_second: f64,
    /// For each second on average, by lane, critical first.
    pub lanes: Vec<ForecastLane>,
    /// The slots of its busiest second.
    #[schema(example = 60)]
    pub peak: f64,
    /// Which second that is.
    #[schema(format = DateTime)]
    pub peak_at: String,
    /// Whether it is an estimate from a sample of the jobs.
    pub sampled: bool,
}

/// What is due in a lane.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForecastLane {
    /// The class of service.
    #[schema(example = "standard")]
    pub lane: &'static str,
    /// Slots for each second, on average.
    #[schema(example = 0.8)]
    pub per_second: f64,
}

/// A second in which many slots are due.
#[derive(Debug, Serialize, ToSchema)]
pub struct HotSecond {
    /// When it begins.
    #[schema(format = DateTime)]
    pub at: String,
    /// How many.
    #[schema(example = 1200)]
    pub slots: f64,
    /// Of them, those of jobs that repeat and have no `spread` yet.
    #[schema(example = 1100)]
    pub may_spread: f64,
    /// Whether it is an estimate from a sample of the jobs.
    pub sampled: bool,
}

/// The jobs that are due in one second, and what a spread would make of it. Nothing is changed by this.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForecastSecond {
    /// When it begins.
    #[schema(format = DateTime)]
    pub at: String,
    /// The longest spread that is proposed.
    #[schema(example = "60s")]
    pub spread: String,
    /// The most slots of these jobs in one second, as things are.
    pub peak_before: u64,
    /// The same, if each job had the spread that is proposed for it.
    pub peak_after: u64,
    /// False if there are more jobs, or may be.
    pub complete: bool,
    /// The jobs, at most 200.
    pub items: Vec<ForecastJob>,
}

/// A job that is due in that second.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForecastJob {
    /// The job.
    #[schema(example = "job_01944f0d6a5c7b3e8f21c0a4d5e6f708")]
    pub id: String,
    /// Its own key.
    pub key: Option<String>,
    /// Its version: send it as `If-Match` with the edit.
    #[schema(example = 3)]
    pub version: u32,
    /// What its schedule says.
    #[schema(example = "every day at 00:00")]
    pub words: String,
    /// The class of service.
    #[schema(example = "standard")]
    pub lane: &'static str,
    /// The spread that it has.
    #[schema(example = "0s")]
    pub spread: String,
    /// The spread that is proposed; none where it has one, happens only once, or every second or two.
    #[schema(example = "60s")]
    pub proposed: Option<String>,
}

/// To three places.
fn rounded(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

impl Forecast {
    pub fn of(forecast: &forecast::Forecast, reach: Reach) -> Self {
        let points = forecast.points(reach);
        let hot = |hot: &forecast::Hot| HotSecond {
            at: moment(&hot.at),
            slots: hot.slots.round(),
            may_spread: hot.movable.round(),
            sampled: hot.is_sampled,
        };
        let (point_seconds, _) = reach.points();
        Self {
            reach: reach.as_str(),
            as_of: moment(&forecast.as_of),
            from: moment(&forecast.from),
            exact_until: moment(&forecast.exact_until),
            to: moment(&end(forecast, reach)),
            sampled: points.iter().any(|point| point.is_sampled),
            sample_share: forecast.share,
            point_seconds,
            points: points
                .iter()
                .map(|point| ForecastPoint::of(point, point_seconds))
                .collect(),
            hot_above: forecast.hot_above,
            hot: forecast.hot.iter().map(hot).collect(),
        }
    }
}

fn end(forecast: &forecast::Forecast, reach: Reach) -> Timestamp {
    let (length, count) = reach.points();
    let span = std::time::Duration::from_secs(u64::from(length) * u64::from(count));
    forecast.to.min(forecast.from.plus(span))
}

impl ForecastPoint {
    fn of(point: &forecast::Point, seconds: u32) -> Self {
        let slots: f64 = point.lanes.iter().sum();
        let mean = |slots: f64| rounded(slots / f64::from(seconds.max(1)));
        let lanes = Lane::ALL.into_iter().zip(point.lanes);
        let lane = |(lane, slots): (Lane, f64)| ForecastLane {
            lane: lane.as_str(),
            per_second: mean(slots),
        };
        Self {
            at: moment(&point.at),
            slots: slots.round(),
            per_second: mean(slots),
            lanes: lanes.map(lane).collect(),
            peak: point.peak.round(),
            peak_at: moment(&point.peak_at),
            sampled: point.is_sampled,
        }
    }
}

impl ForecastSecond {
    pub fn of(rush: &rush::Rush) -> Self {
        let item = |it: &rush::RushJob| ForecastJob {
            id: it.job.id.to_string(),
            key: it.job.key.as_ref().map(ToString::to_string),
            version: it.job.version.0,
            words: it.job.def.schedule.words(),
            lane: it.job.def.lane.as_str(),
            spread: format_span(it.job.def.spread),
            proposed: it.proposed.map(format_span),
        };
        Self {
            at: moment(&rush.at),
            spread: format_span(rush.spread),
            peak_before: rush.peak_before,
            peak_after: rush.peak_after,
            complete: rush.complete,
            items: rush.jobs.iter().map(item).collect(),
        }
    }
}
