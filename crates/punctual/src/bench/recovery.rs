//! Recovery: a node comes back to a backlog while other jobs are on time. How late those are meanwhile, and how fast the
//! backlog goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use executor::{Executor, Registry, WorkOrder};
use model::policy::CatchUp;
use model::{CatchUpPolicy, Job, JobId, Lane, Report, Slot, Timestamp};

use super::figures::{Bar, Figures, percentile};
use super::rig::{self, Base, Notes, Place};
use super::workloads;
use crate::failure::Failure;

/// Slots to catch up with: half of them are one-offs.
const COUNT: usize = ONE_OFFS + RECURRING * MISSED;
const ONE_OFFS: usize = 100_000;
/// The others are those that recurring jobs have missed, so many each.
const RECURRING: usize = 1_000;
const MISSED: usize = 100;
const PERIOD: Duration = Duration::from_secs(60);
/// The first of the one-offs was due so long ago, and the last so much later; so was the last slot of each other job.
const AGO: Duration = Duration::from_secs(30);
const SPAN: Duration = Duration::from_secs(25);
/// Jobs due every second, of each lane that is measured, two milliseconds apart.
const ON_TIME: usize = 500;
const APART: Duration = Duration::from_millis(2);
/// When the first of them is due, from when they are written.
const AHEAD: Duration = Duration::from_millis(300);
/// What on-time slots are held to, and the backlog beside a drain.
const LATE_MAX: f64 = 250.0;
const RATIO_MIN: f64 = 0.7;

pub(super) async fn recovery(base: &Base) -> Result<Figures, Failure> {
    let before = drain(base).await?;
    let place = Place::new(base)?;
    let seen = catch_up(&place).await?;
    place.end().await?;
    let drain = (before + drain(base).await?) / 2.0;
    let mut figures = Figures::new("recovery")
        .with("backlog", seen.rate, "/s")
        .with("drain", drain, "/s");
    let names = [
        "critical p50",
        "critical p99",
        "standard p50",
        "standard p99",
    ];
    let mut bars = Vec::new();
    for (mut late, names) in seen.late.into_iter().zip(names.chunks(2)) {
        let (middle, high) = (percentile(&mut late, 50.0), percentile(&mut late, 99.0));
        for (name, value) in names.iter().zip([middle, high]) {
            figures = figures.with(name, value, " ms");
        }
        let text = names.last().copied().unwrap_or_default();
        bars.push(Bar::at_most(&format!("{text} ms"), high, LATE_MAX));
    }
    let ratio = seen.rate / drain;
    figures = figures
        .with("on time", seen.count as f64, " slots")
        .with("missed", seen.missed as f64, "")
        .bar(Bar::at_least("ratio to drain", ratio, RATIO_MIN))
        .bar(Bar::at_most("missed", seen.missed as f64, 0.0));
    Ok(bars.into_iter().fold(figures, Figures::bar))
}

/// How fast a drain is that nothing else goes on beside.
async fn drain(base: &Base) -> Result<f64, Failure> {
    let place = Place::new(base)?;
    let jobs = rig::overdue(workloads::COUNT, &rig::no_op());
    let drained = workloads::drain(&place, jobs).await?;
    place.end().await?;
    Ok(drained.rate)
}

/// What was seen while the backlog went.
struct Seen {
    /// Runs of the backlog a second.
    rate: f64,
    /// How late on-time slots were, in milliseconds: critical ones, standard ones.
    late: [Vec<f64>; 2],
    /// How many there were, and how many of them did not run.
    count: usize,
    missed: usize,
}

fn with_lane(job: &Job, lane: Lane) -> Arc<Job> {
    let mut job = Job::clone(job);
    Arc::make_mut(&mut job.def).lane = lane;
    Arc::new(job)
}

/// A backlog in all lanes.
fn backlog() -> Vec<Arc<Job>> {
    let jobs = rig::overdue_since(ONE_OFFS, AGO, SPAN, &rig::no_op());
    let from = rig::now().minus(AGO);
    let step = SPAN / RECURRING as u32;
    let recurring = (0..RECURRING as u32).map(|n| missed_often(from.plus(step * n)));
    let lanes = Lane::ALL.into_iter().cycle();
    let all = jobs.into_iter().chain(recurring).zip(lanes);
    all.map(|(job, lane)| with_lane(&job, lane)).collect()
}

/// A recurring job that has missed all of its slots and is to run each of them; this is the last.
fn missed_often(last: Timestamp) -> Arc<Job> {
    let first = last.minus(PERIOD * (MISSED as u32 - 1));
    let mut job = Job::clone(&rig::every(PERIOD, first, rig::no_op()));
    let def = Arc::make_mut(&mut job.def);
    def.schedule.bounds.ends_at = Some(last);
    def.catch_up = CatchUp {
        policy: CatchUpPolicy::All,
        window: PERIOD * 2 * MISSED as u32,
        max: MISSED as u32,
    };
    job.next_slot = Some(Slot(first));
    Arc::new(job)
}

/// Jobs that are due every second from `anchor` on.
fn on_time(lane: Lane, anchor: Timestamp) -> impl Iterator<Item = (JobId, Arc<Job>, Timestamp)> {
    (0..ON_TIME as u32).map(move |n| {
        let first = anchor.plus(APART * n);
        let job = rig::every(Duration::from_secs(1), first, rig::no_op());
        (job.id, with_lane(&job, lane), first)
    })
}

/// Takes notes of the backlog, and of what is on time apart from it.
struct Target {
    backlog: Notes,
    on_time: Notes,
    /// Which lane each of those on time is in, and when its first slot is due.
    firsts: Arc<BTreeMap<JobId, (usize, Timestamp)>>,
}

#[async_trait]
impl Executor for Target {
    async fn execute(&self, order: WorkOrder) -> Report {
        if self.firsts.contains_key(&order.job.id) {
            self.on_time.execute(order).await
        } else {
            self.backlog.execute(order).await
        }
    }
}

async fn catch_up(place: &Place) -> Result<Seen, Failure> {
    let store = place.open().await?;
    rig::load(&*store, &backlog()).await?;
    drop(store);
    place.rest().await?;
    let store = place.open().await?;
    let anchor = rig::now().plus(AHEAD);
    let lanes = [Lane::Critical, Lane::Standard];
    let mut jobs = Vec::new();
    let mut firsts = BTreeMap::new();
    for (index, lane) in lanes.into_iter().enumerate() {
        for (id, job, first) in on_time(lane, anchor) {
            jobs.push(job);
            firsts.insert(id, (index, first));
        }
    }
    rig::load(&*store, &jobs).await?;
    let firsts = Arc::new(firsts);
    let (backlog, on_time) = (Notes::new(COUNT), Notes::new(COUNT));
    let target = Target {
        backlog: backlog.clone(),
        on_time: on_time.clone(),
        firsts: Arc::clone(&firsts),
    };
    let registry = Registry::default().with("http", Arc::new(target));
    let begun = rig::uptime();
    let node = rig::start(place, &store, registry).await?;
    rig::wait("the backlog", async || {
        backlog.count() >= COUNT && rig::has_settled_but(&*store, jobs.len()).await
    })
    .await?;
    let took = rig::uptime().saturating_sub(begun);
    let end = rig::now();
    // What was due by then and is late has a moment to come.
    rig::pause(Duration::from_secs(3)).await;
    node.stop(Duration::from_secs(5)).await;
    let mut late = [Vec::new(), Vec::new()];
    for (job, slot, at) in on_time.take() {
        let of_lane = firsts.get(&job).filter(|_| slot <= end);
        let Some(late) = of_lane.and_then(|(index, _)| late.get_mut(*index)) else {
            continue;
        };
        late.push((at - slot.as_millis() * 1_000) as f64 / 1e3);
    }
    let slots = |first: &Timestamp| {
        if *first <= end {
            end.since(*first).as_secs() as usize + 1
        } else {
            0
        }
    };
    let count: usize = firsts.values().map(|(_, first)| slots(first)).sum();
    let ran: usize = late.iter().map(Vec::len).sum();
    Ok(Seen {
        rate: COUNT as f64 / took.as_secs_f64(),
        late,
        count,
        missed: count.saturating_sub(ran),
    })
}
