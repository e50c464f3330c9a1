//! Overviews as we answer them.

use std::collections::BTreeMap;
use std::time::Duration;

use model::rollup::Histogram;
use model::{Lane, Reason, Rollup, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::NodeList;
use super::job_out::moment;
use super::node_out::Node;
use crate::ops::overview::{self, LaneDepth};

/// How a tenant's jobs fare.
#[derive(Debug, Serialize, ToSchema)]
pub struct Overview {
    /// What was asked for.
    #[schema(example = "1h")]
    pub span: &'static str,
    /// When this was. What the last two seconds or so brought may not be counted yet.
    #[schema(format = DateTime)]
    pub as_of: String,
    /// The beginning of the first point.
    #[schema(format = DateTime)]
    pub from: String,
    /// The end of the last point, which is still going on.
    #[schema(format = DateTime)]
    pub to: String,
    /// How long a point is.
    #[schema(example = 60)]
    pub point_seconds: u64,
    /// Everything from `from` until now.
    pub total: OverviewCounts,
    /// Slots that became runs, for each second from `from` until now.
    #[schema(example = 12.5)]
    pub fired_per_second: f64,
    /// Every point, oldest first, also those in which nothing happened.
    pub points: Vec<OverviewPoint>,
    /// Runs that have not ended.
    pub live: OverviewLive,
    /// Jobs by state; deleted ones are not among them.
    pub jobs: OverviewJobs,
    /// The nodes that live; for root keys only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<Node>>,
    /// What somebody should look at; empty if all is well.
    pub attention: Vec<OverviewAttention>,
}

/// What happened.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverviewCounts {
    /// Slots that became runs.
    pub fired: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that will not be tried again.
    pub dead: u64,
    /// Runs that were cancelled.
    pub cancelled: u64,
    /// Attempts that failed and whose run is tried again.
    pub retried: u64,
    /// Runs that started after their job's `start_within`.
    pub late: u64,
    /// Slots that will not run, for any reason.
    pub skipped: u64,
    /// Of these, those that no node could fire in time.
    pub missed: u64,
    /// Of these, how many for which reason.
    #[schema(example = json!({"missed": 3, "overlap": 1}))]
    pub skipped_by_reason: BTreeMap<&'static str, u64>,
    /// Of the runs that succeeded or are dead, the share that succeeded; none if there are none.
    #[schema(example = 0.998)]
    pub success_ratio: Option<f64>,
    /// From when attempts were due to their dispatch. Slots that were missed and caught up are not in it.
    pub lateness: OverviewSpans,
    /// From the dispatch of attempts to their end.
    pub duration: OverviewSpans,
}

/// How long something took, about: a percentile is known to within a factor of 1.41.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverviewSpans {
    /// How many there were.
    pub count: u64,
    /// Half of them took no longer, in milliseconds; none if there were none.
    #[schema(example = 1.2)]
    pub p50_ms: Option<f64>,
    /// Nine of ten took no longer.
    #[schema(example = 2.9)]
    pub p90_ms: Option<f64>,
    /// All but one of a hundred took no longer.
    #[schema(example = 8.4)]
    pub p99_ms: Option<f64>,
}

/// What happened from a moment on, for `point_seconds`.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverviewPoint {
    /// When it begins.
    #[schema(format = DateTime)]
    pub at: String,
    #[serde(flatten)]
    pub counts: OverviewCounts,
}

/// Runs that have not ended, each counted once.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverviewLive {
    /// All of them.
    pub live: u64,
    /// Due, or claimed and about to start; also those under way for less than a second.
    pub ready: u64,
    /// Under way.
    pub running: u64,
    /// A failed attempt is behind them, and they wait for the next.
    pub retrying: u64,
    /// They may not start yet.
    pub waiting: u64,
    /// The same by lane, critical first.
    pub lanes: Vec<OverviewLane>,
    /// False if there are so many live runs in this installation that not all were counted: then there are at least so many.
    pub complete: bool,
}

/// Live runs of a lane.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverviewLane {
    /// The class of service.
    #[schema(example = "standard")]
    pub lane: &'static str,
    /// All of them: the lane's depth.
    pub live: u64,
    /// Due, or claimed and about to start.
    pub ready: u64,
    /// Under way.
    pub running: u64,
    /// They wait for their next attempt.
    pub retrying: u64,
    /// They may not start yet.
    pub waiting: u64,
}

/// Jobs by state.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverviewJobs {
    /// All of them, exactly.
    pub total: u64,
    /// Those that are due some time.
    pub active: u64,
    /// Those that somebody paused.
    pub paused: u64,
    /// Those that will not be due again.
    pub finished: u64,
    /// Those that cannot be planned any more.
    pub invalid: u64,
    /// False if there are so many jobs in this installation that are not active that not all were counted: then some of
    /// them are counted as active.
    pub complete: bool,
}

/// Something that somebody should look at.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverviewAttention {
    /// What it is, for programs.
    #[schema(example = "dead-runs")]
    pub code: &'static str,
    /// How many.
    pub count: u64,
    /// What it is, for people.
    pub text: String,
    /// Where there is more about it.
    #[schema(example = "/v1/runs?state=dead")]
    pub link: String,
}

impl Overview {
    pub fn of(overview: &overview::Overview) -> Self {
        let overview::Overview {
            span, as_of, from, ..
        } = overview;
        let elapsed = as_of.since(*from).as_secs_f64().max(1.0);
        let point = |(at, rollup): &(Timestamp, Rollup)| OverviewPoint {
            at: moment(at),
            counts: OverviewCounts::of(rollup),
        };
        let nodes = overview.nodes.as_ref();
        Self {
            span: span.as_str(),
            as_of: moment(as_of),
            from: moment(from),
            to: moment(&overview.to),
            point_seconds: span.point().as_secs(),
            total: OverviewCounts::of(&overview.total),
            fired_per_second: rounded(overview.total.fired as f64 / elapsed),
            points: overview.points.iter().map(point).collect(),
            live: OverviewLive::of(&overview.live),
            jobs: OverviewJobs::of(&overview.jobs),
            nodes: nodes.map(|nodes| NodeList::of(nodes).items),
            attention: overview
                .attention
                .iter()
                .map(OverviewAttention::of)
                .collect(),
        }
    }
}

impl OverviewCounts {
    pub(super) fn of(rollup: &Rollup) -> Self {
        let by_reason = rollup.skipped();
        Self {
            fired: rollup.fired,
            succeeded: rollup.succeeded,
            dead: rollup.dead,
            cancelled: rollup.cancelled,
            retried: rollup.retried,
            late: rollup.late,
            skipped: rollup.skipped_total(),
            missed: rollup.skipped_for(Reason::Missed),
            skipped_by_reason: by_reason
                .map(|(reason, count)| (reason.as_str(), count))
                .collect(),
            success_ratio: rollup.success_ratio(),
            lateness: OverviewSpans::of(&rollup.lateness),
            duration: OverviewSpans::of(&rollup.duration),
        }
    }
}

impl OverviewSpans {
    fn of(histogram: &Histogram) -> Self {
        let percentile = |share| histogram.percentile(share).map(millis);
        Self {
            count: histogram.count(),
            p50_ms: percentile(0.5),
            p90_ms: percentile(0.9),
            p99_ms: percentile(0.99),
        }
    }
}

fn millis(span: Duration) -> f64 {
    rounded(span.as_secs_f64() * 1_000.0)
}

/// To three places.
fn rounded(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

impl OverviewLive {
    fn of(live: &overview::Live) -> Self {
        let total = live.total();
        let lanes = Lane::ALL.into_iter().zip(live.lanes);
        let lane = |(lane, depth): (Lane, LaneDepth)| OverviewLane {
            lane: lane.as_str(),
            live: depth.live(),
            ready: depth.ready,
            running: depth.running,
            retrying: depth.retrying,
            waiting: depth.waiting,
        };
        Self {
            live: total.live(),
            ready: total.ready,
            running: total.running,
            retrying: total.retrying,
            waiting: total.waiting,
            lanes: lanes.map(lane).collect(),
            complete: live.complete,
        }
    }
}

impl OverviewJobs {
    fn of(jobs: &overview::Jobs) -> Self {
        Self {
            total: jobs.total,
            active: jobs.active,
            paused: jobs.paused,
            finished: jobs.finished,
            invalid: jobs.invalid,
            complete: jobs.complete,
        }
    }
}

impl OverviewAttention {
    fn of(attention: &overview::Attention) -> Self {
        Self {
            code: attention.code,
            count: attention.count,
            text: attention.text.clone(),
            link: attention.link.clone(),
        }
    }
}
