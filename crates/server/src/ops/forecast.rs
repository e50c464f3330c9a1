//! What comes: slots per second ahead, by lane. All of a tenant's planned jobs are walked as far as they can be read and walked in
//! bounded time, at least for the next hour unless they are very many; a sample of them stands for the rest.
//!
//! What always holds: so many jobs are read and no more, and what was counted answers every request for some seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::{JobState, Lane, TenantId, Timestamp};
use store::{DuePage, DueSpan, JobFilter, Page};
use tokio::sync::Mutex;

use super::error::OpError;
use super::forecast_count::{Read, Seconds};
use crate::access::Caller;
use crate::api::Api;

/// How far ahead it reaches.
pub(super) const REACH: Duration = Duration::from_secs(86_400);
/// How far every job is read.
const EXACT_FOR: Duration = Duration::from_secs(3_600);
/// Of a tenant with fewer jobs all are read by its own index, however many others there are.
const FEW_JOBS: u64 = 2_000;
/// Jobs that are read for the exact part, and about so many for the sample.
const EXACT_JOBS_MAX: usize = 20_000;
const SAMPLE_JOBS: u64 = 10_000;
/// Planned jobs of all tenants looked at in one read, and in all.
const READS: usize = 5_000;
const READS_MAX: usize = 1_000_000;
const PAGE: usize = 100;

/// How long whoever is in a hurry waits.
const SOON: Duration = Duration::from_millis(300);
/// A count answers for so long, and for ten times as long as it took.
const KEEP_MIN: Duration = Duration::from_secs(5);
const KEEP_FACTOR: u32 = 10;
/// Tenants whose forecasts are kept.
const KEPT_MAX: usize = 64;

/// A second is hot with so many slots, if they are also ten times as many as in a second on average.
const HOT_MIN: f64 = 10.0;
const HOT_FACTOR: f64 = 10.0;
/// Of a sample, so many slots of one second were found at least.
const HOT_FOUND_MIN: f64 = 4.0;
/// The hottest that are named.
pub const HOT_MAX: usize = 12;

/// How far ahead one looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Hour,
    Day,
}

impl Reach {
    pub const ALL: [Self; 2] = [Self::Hour, Self::Day];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// How long a point is, in seconds, and how many there are.
    pub fn points(self) -> (u32, u32) {
        match self {
            Self::Hour => (60, 60),
            Self::Day => (300, 288),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    pub as_of: Timestamp,
    /// The second that goes on.
    pub from: Timestamp,
    /// Up to there every slot is counted.
    pub exact_until: Timestamp,
    /// Up to there something is known.
    pub to: Timestamp,
    /// The share of jobs that stand for all behind `exact_until`.
    pub share: f64,
    /// Of the day and of the hour, by `Reach`.
    pub hour: Vec<Point>,
    pub day: Vec<Point>,
    /// Seconds with more are hot.
    pub hot_above: f64,
    /// The hottest first.
    pub hot: Vec<Hot>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub at: Timestamp,
    /// By `Lane::ALL`.
    pub lanes: [f64; Lane::COUNT],
    /// Its busiest second.
    pub peak_at: Timestamp,
    pub peak: f64,
    pub is_sampled: bool,
}

/// A second with many slots.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hot {
    pub at: Timestamp,
    pub slots: f64,
    /// Of jobs that may be spread.
    pub movable: f64,
    pub is_sampled: bool,
}

impl Forecast {
    pub fn points(&self, reach: Reach) -> &[Point] {
        match reach {
            Reach::Hour => &self.hour,
            Reach::Day => &self.day,
        }
    }

    fn of(seconds: &Seconds, as_of: Timestamp) -> Self {
        let mut forecast = Self {
            as_of,
            from: seconds.from,
            exact_until: seconds.exact_until,
            to: seconds.until,
            share: seconds.share,
            hour: points(seconds, Reach::Hour),
            day: points(seconds, Reach::Day),
            hot_above: 0.0,
            hot: Vec::new(),
        };
        forecast.find_hot(seconds);
        forecast
    }

    fn find_hot(&mut self, seconds: &Seconds) {
        let sums = sums(seconds);
        let mean = sums.iter().sum::<f64>() / sums.len().max(1) as f64;
        self.hot_above = (mean * HOT_FACTOR).max(HOT_MIN).ceil();
        let mut hot: Vec<Hot> = Vec::new();
        for (place, slots) in sums.iter().enumerate() {
            let at = seconds.from.plus(Duration::from_secs(place as u64));
            let is_sampled = at >= seconds.exact_until;
            let found = if is_sampled {
                slots * seconds.share
            } else {
                *slots
            };
            if *slots < self.hot_above || found < HOT_FOUND_MIN {
                continue;
            }
            let movable = seconds.movable.get(place).copied();
            let movable = movable.map_or(0.0, f64::from);
            hot.push(Hot {
                at,
                slots: *slots,
                movable,
                is_sampled,
            });
        }
        // The first of those that are equally hot.
        hot.sort_by(|one, other| other.slots.total_cmp(&one.slots));
        hot.truncate(HOT_MAX);
        self.hot = hot;
    }
}

fn sums(seconds: &Seconds) -> Vec<f64> {
    let len = seconds.movable.len();
    let of = |place: usize| {
        let all = seconds.lanes.iter().filter_map(|lane| lane.get(place));
        all.map(|count| f64::from(*count)).sum()
    };
    (0..len).map(of).collect()
}

fn points(seconds: &Seconds, reach: Reach) -> Vec<Point> {
    let (length, count) = reach.points();
    let point = |number: u32| {
        let first = (number * length) as usize;
        let at = seconds.from.plus(Duration::from_secs(first as u64));
        let mut point = Point {
            at,
            lanes: [0.0; Lane::COUNT],
            peak_at: at,
            peak: 0.0,
            is_sampled: at.plus(Duration::from_secs(u64::from(length))) > seconds.exact_until,
        };
        for place in first..first + length as usize {
            let mut sum = 0.0;
            for (total, lane) in point.lanes.iter_mut().zip(&seconds.lanes) {
                let slots = lane.get(place).copied().map_or(0.0, f64::from);
                *total += slots;
                sum += slots;
            }
            if sum > point.peak {
                point.peak = sum;
                point.peak_at = seconds.from.plus(Duration::from_secs(place as u64));
            }
        }
        point
    };
    let all = (0..count).map(point);
    all.take_while(|point| point.at < seconds.until).collect()
}

/// When something was counted, how long it is good for, and what it is.
type Kept = (Duration, Duration, Arc<Forecast>);

/// What was forecast last, by tenant.
#[derive(Debug, Default)]
pub(crate) struct Forecasts(std::sync::Mutex<BTreeMap<TenantId, Arc<Mutex<Option<Kept>>>>>);

impl Forecasts {
    fn place(&self, tenant: TenantId) -> Arc<Mutex<Option<Kept>>> {
        let mut all = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if all.len() >= KEPT_MAX && !all.contains_key(&tenant) {
            // Those that nobody counts just now: what is forgotten is counted again.
            all.retain(|_, place| Arc::strong_count(place) > 1);
        }
        Arc::clone(all.entry(tenant).or_default())
    }
}

/// Whoever comes while it is being counted waits for that count.
pub async fn forecast(api: &Api, caller: Caller) -> Result<Arc<Forecast>, OpError> {
    let tenant = caller.tenant;
    let place = api.forecasts.place(tenant);
    let mut last = place.lock().await;
    let begun = api.engine.clock().uptime();
    let fresh = last.as_ref().filter(|(at, keep, _)| begun < *at + *keep);
    if let Some((.., found)) = fresh {
        return Ok(Arc::clone(found));
    }
    let now = api.engine.now();
    let read = read(api, tenant, now).await?;
    let count = move || Forecast::of(&Seconds::count(&read, now, now.plus(REACH)), now);
    let found = Arc::new(api.permit().await?.work(count).await?);
    let ended = api.engine.clock().uptime();
    let keep = (ended.saturating_sub(begun) * KEEP_FACTOR).max(KEEP_MIN);
    *last = Some((ended, keep, Arc::clone(&found)));
    Ok(found)
}

/// The same for whoever does not wait: nothing while it takes longer than a moment. It is counted all the same, for the next.
pub async fn soon(api: &Arc<Api>, caller: Caller) -> Result<Option<Arc<Forecast>>, OpError> {
    let counting = tokio::spawn({
        let api = Arc::clone(api);
        async move { forecast(&api, caller).await }
    });
    tokio::select! {
        biased;
        counted = counting => match counted {
            Ok(counted) => counted.map(Some),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process is going down.
                Err(_) => Ok(None),
            },
        },
        () = api.engine.clock().sleep(SOON) => Ok(None),
    }
}

/// Whether all of a tenant's jobs are few enough to be read by its own index.
pub(super) async fn is_small(api: &Api, tenant: TenantId) -> Result<bool, OpError> {
    Ok(api.store.access().tenant_use(tenant).await?.jobs <= FEW_JOBS)
}

async fn read(api: &Api, tenant: TenantId, now: Timestamp) -> Result<Read, OpError> {
    let jobs = api.store.access().tenant_use(tenant).await?.jobs;
    let to = now.plus(REACH);
    if jobs <= FEW_JOBS {
        return Ok(Read {
            whole: all_planned(api, tenant).await?,
            whole_until: to,
            sample: None,
            until: to,
        });
    }
    // Jobs by now due may have slots all along.
    let is_small = jobs <= SAMPLE_JOBS;
    let reach = if is_small { REACH } else { EXACT_FOR };
    let span = |up_to, sample| DueSpan {
        after: None,
        up_to,
        sample,
    };
    let most = (EXACT_JOBS_MAX, READS_MAX / 2);
    let (whole, whole_until) = due(api, tenant, span(now.plus(reach), DueSpan::ALL), most).await?;
    if is_small {
        return Ok(Read {
            whole,
            whole_until,
            sample: None,
            until: whole_until,
        });
    }
    let sample = u64::from(DueSpan::ALL) * SAMPLE_JOBS / jobs;
    let sample = u32::try_from(sample).unwrap_or(DueSpan::ALL).max(1);
    let most = (2 * EXACT_JOBS_MAX, READS_MAX);
    let (sampled, until) = due(api, tenant, span(to, sample), most).await?;
    Ok(Read {
        whole,
        whole_until,
        sample: Some((sampled, sample)),
        until,
    })
}

/// Every job of a tenant with few that is planned.
pub(super) async fn all_planned(
    api: &Api,
    tenant: TenantId,
) -> Result<Vec<Arc<model::Job>>, OpError> {
    let filter = JobFilter {
        states: vec![JobState::Active],
        ..JobFilter::default()
    };
    let (mut jobs, mut before) = (Vec::new(), None);
    loop {
        let page = Page {
            before,
            limit: PAGE,
        };
        let found = api.store.list_jobs(tenant, &filter, page).await?;
        before = found.last().map(|job| job.id);
        let is_last = found.len() < PAGE;
        let planned = found.into_iter().filter(|job| job.next_slot.is_some());
        jobs.extend(planned.map(|mut job| {
            // Nobody reads it here, and all of them together may be large.
            Arc::make_mut(&mut job.def).payload = None;
            Arc::new(job)
        }));
        if is_last || jobs.len() > 2 * FEW_JOBS as usize {
            return Ok(jobs);
        }
    }
}

/// Jobs that are due in a span, and how far all of them were looked at.
pub(super) async fn due(
    api: &Api,
    tenant: TenantId,
    mut span: DueSpan,
    (jobs_max, reads_max): (usize, usize),
) -> Result<(Vec<Arc<model::Job>>, Timestamp), OpError> {
    let (mut all, mut so_far) = (Vec::new(), 0);
    loop {
        let read = api.store.access().list_due(tenant, &span, READS);
        let DuePage { jobs, next } = read.await?;
        all.extend(jobs);
        so_far += READS;
        let Some((due_at, _)) = next.and_then(|next| next.last) else {
            return Ok((all, span.up_to));
        };
        if all.len() >= jobs_max || so_far >= reads_max {
            // Within 64 ms pages may come in any order.
            let whole = due_at.as_millis() & !63;
            return Ok((all, Timestamp::from_millis(whole)));
        }
        span.after = next;
    }
}
