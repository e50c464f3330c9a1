//! How a tenant's jobs fare: counts over a span, what there is now, and what somebody should look at. Nothing here grows with
//! history: counts are read from rollups, and what there is now is counted up to a bound, once for all callers.

use std::sync::Arc;
use std::time::Duration;

use model::rollup::{Step, floor};
use model::{JobState, Lane, Reason, Role, Rollup, RunState, TenantId, Timestamp, limits};
use store::StandingCounts;
use tokio::sync::Mutex;

use super::error::OpError;
use super::nodes::{self, NodesHeard};
use crate::access::Caller;
use crate::api::Api;

/// What was counted of what there is now answers for so long.
const STANDING_FOR: Duration = Duration::from_secs(1);

/// A span of time that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Hour,
    SixHours,
    Day,
    Week,
}

impl Span {
    pub const ALL: [Self; 4] = [Self::Hour, Self::SixHours, Self::Day, Self::Week];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::SixHours => "6h",
            Self::Day => "24h",
            Self::Week => "7d",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|span| span.as_str() == text)
    }

    /// How many points it is shown in, how long each is, and the step that they are read from.
    fn points(self) -> (u32, Duration, Step) {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        match self {
            Self::Hour => (60, minutes(1), Step::Minute),
            Self::SixHours => (72, minutes(5), Step::Minute),
            Self::Day => (96, minutes(15), Step::Quarter),
            Self::Week => (168, minutes(60), Step::Quarter),
        }
    }

    /// How long a point is.
    pub fn point(self) -> Duration {
        self.points().1
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    pub span: Span,
    pub as_of: Timestamp,
    /// The first point's beginning and the last one's end, which is not before `as_of`.
    pub from: Timestamp,
    pub to: Timestamp,
    /// Everything in the span.
    pub total: Rollup,
    /// Every point of the span, oldest first.
    pub points: Vec<(Timestamp, Rollup)>,
    pub live: Live,
    pub jobs: Jobs,
    /// For whoever sees to the installation.
    pub nodes: Option<NodesHeard>,
    pub attention: Vec<Attention>,
}

/// Runs that live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// By `Lane::ALL`.
    pub lanes: [LaneDepth; Lane::COUNT],
    /// Whether all of them were counted.
    pub complete: bool,
}

impl Live {
    pub fn total(&self) -> LaneDepth {
        let mut total = LaneDepth::default();
        for lane in &self.lanes {
            total.ready += lane.ready;
            total.running += lane.running;
            total.retrying += lane.retrying;
            total.waiting += lane.waiting;
        }
        total
    }
}

/// Live runs of a lane, each counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneDepth {
    pub ready: u64,
    pub running: u64,
    pub retrying: u64,
    /// They may not start yet.
    pub waiting: u64,
}

impl LaneDepth {
    pub fn live(&self) -> u64 {
        self.ready + self.running + self.retrying + self.waiting
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Jobs {
    pub total: u64,
    pub active: u64,
    pub paused: u64,
    pub finished: u64,
    pub invalid: u64,
    /// Whether all of them were counted. If not, some of the active ones are not.
    pub complete: bool,
}

/// Something that somebody should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attention {
    pub code: &'static str,
    pub count: u64,
    pub text: String,
    /// Where in the API there is more about it.
    pub link: String,
}

impl Attention {
    pub(super) fn new(code: &'static str, count: u64, text: String, link: &str) -> Self {
        Self {
            code,
            count,
            text,
            link: link.to_owned(),
        }
    }
}

/// What there is now, as it was counted last.
#[derive(Debug, Default)]
pub(crate) struct Standings(Mutex<Option<(Duration, Arc<StandingCounts>)>>);

impl Standings {
    /// Whoever comes while it is being counted waits for that count.
    async fn get(&self, api: &Api) -> Result<Arc<StandingCounts>, OpError> {
        let mut last = self.0.lock().await;
        let uptime = api.engine.clock().uptime();
        let fresh = last.as_ref().filter(|(at, _)| uptime < *at + STANDING_FOR);
        if let Some((_, counts)) = fresh {
            return Ok(Arc::clone(counts));
        }
        let counts = api.store.access().count_standing(limits::STANDING_MAX);
        let counts = Arc::new(counts.await?);
        *last = Some((api.engine.clock().uptime(), Arc::clone(&counts)));
        Ok(counts)
    }
}

pub async fn overview(api: &Api, caller: Caller, span: Span) -> Result<Overview, OpError> {
    let (tenant, as_of) = (caller.tenant, api.engine.now());
    let (count, point, step) = span.points();
    let last = floor(as_of, point);
    let (from, to) = (last.minus(point * (count - 1)), last.plus(point));
    let store = api.store.access();
    let counted = store.read_rollups(tenant, step, from, to).await?;
    let standing = api.standings.get(api).await?;
    let used = store.tenant_use(tenant).await?;
    let mut total = Rollup::default();
    counted.iter().for_each(|(_, rollup)| total.add(rollup));
    let jobs = jobs_of(&standing, tenant, used.jobs);
    let nodes = caller.role.allows(Role::Root).then(|| nodes::list(api));
    let mut attention = attention_to(&total, &jobs, span);
    attention.extend(nodes.iter().flat_map(attention_to_nodes));
    Ok(Overview {
        span,
        as_of,
        from,
        to,
        points: points(&counted, from, (count, point)),
        total,
        live: live_of(&standing, tenant),
        jobs,
        nodes,
        attention,
    })
}

/// Steps put together to points; those in which nothing happened are there too.
fn points(
    counted: &[(Timestamp, Rollup)],
    from: Timestamp,
    (count, point): (u32, Duration),
) -> Vec<(Timestamp, Rollup)> {
    let begins = (0..count).map(|number| from.plus(point * number));
    let mut points: Vec<_> = begins.map(|at| (at, Rollup::default())).collect();
    for (at, rollup) in counted {
        let number = at.since(from).as_millis() / point.as_millis().max(1);
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        if let Some((_, sum)) = points.get_mut(number) {
            sum.add(rollup);
        }
    }
    points
}

fn live_of(standing: &StandingCounts, tenant: TenantId) -> Live {
    let mut lanes = [LaneDepth::default(); Lane::COUNT];
    for count in standing.live.iter().filter(|it| it.tenant == tenant) {
        let Some(lane) = lanes.get_mut(count.lane.index()) else {
            continue;
        };
        let place = match count.state {
            RunState::Ready | RunState::Running | RunState::Retrying if count.waiting => {
                &mut lane.waiting
            }
            RunState::Ready => &mut lane.ready,
            RunState::Running => &mut lane.running,
            RunState::Retrying => &mut lane.retrying,
            // They do not live.
            RunState::Succeeded | RunState::Dead | RunState::Cancelled | RunState::Skipped => {
                continue;
            }
        };
        *place += count.runs;
    }
    Live {
        lanes,
        complete: standing.live_complete,
    }
}

fn jobs_of(standing: &StandingCounts, tenant: TenantId, total: u64) -> Jobs {
    let of = |state: JobState| {
        let counts = standing.jobs.iter();
        let counts = counts.filter(|(of, it, _)| (*of, *it) == (tenant, state));
        counts.map(|(_, _, count)| *count).sum::<u64>()
    };
    let (paused, finished, invalid) = (
        of(JobState::Paused),
        of(JobState::Finished),
        of(JobState::Invalid),
    );
    let others = paused + finished + invalid;
    // What was counted a moment apart may differ.
    let total = total.max(others);
    Jobs {
        total,
        active: total - others,
        paused,
        finished,
        invalid,
        complete: standing.jobs_complete,
    }
}

fn plural<'t>(count: u64, one: &'t str, many: &'t str) -> &'t str {
    if count == 1 { one } else { many }
}

fn attention_to(total: &Rollup, jobs: &Jobs, span: Span) -> Vec<Attention> {
    let last = span.as_str();
    let mut all = Vec::new();
    let (dead, missed) = (total.dead, total.skipped_for(Reason::Missed));
    if dead > 0 {
        let runs = plural(dead, "run is", "runs are");
        let text = format!("{dead} {runs} dead since {last} ago: see why, and replay what matters");
        all.push(Attention::new(
            "dead-runs",
            dead,
            text,
            "/v1/runs?state=dead",
        ));
    }
    if missed > 0 {
        let slots = plural(missed, "slot was", "slots were");
        let text = format!("{missed} {slots} missed since {last} ago: no node could fire in time");
        let link = "/v1/runs?state=skipped";
        all.push(Attention::new("missed-slots", missed, text, link));
    }
    let overload = total.skipped_for(Reason::Overload) + total.skipped_for(Reason::QueueFull);
    if overload > 0 {
        let slots = plural(overload, "slot was", "slots were");
        let text = format!(
            "{overload} {slots} skipped since {last} ago, because as many of their job as may wait were waiting"
        );
        let link = "/v1/runs?state=skipped";
        all.push(Attention::new("slots-overloaded", overload, text, link));
    }
    if total.late > 0 {
        let late = total.late;
        let runs = plural(late, "run", "runs");
        let text = format!("{late} {runs} started after start_within since {last} ago");
        all.push(Attention::new("late-runs", late, text, "/v1/runs"));
    }
    if jobs.invalid > 0 {
        let invalid = jobs.invalid;
        let text = format!(
            "{invalid} {} cannot be planned any more: the note says why",
            plural(invalid, "job", "jobs")
        );
        let link = "/v1/jobs?state=invalid";
        all.push(Attention::new("invalid-jobs", invalid, text, link));
    }
    all
}

/// A node that was not heard of for so long, while it should be each second.
const SILENT: Duration = limits::BEAT_EVERY.saturating_mul(2);
/// A clock that is off the store's by more, in microseconds: nodes correct for it, but other programs on that machine do not.
const CLOCK_OFF: i64 = 1_000_000;

fn attention_to_nodes(heard: &NodesHeard) -> Vec<Attention> {
    let mut all = Vec::new();
    let (nodes, link) = (&heard.nodes, "/v1/nodes");
    if nodes.heard >= limits::PRESENCE_TTL {
        let text =
            "this node hears nothing from the store: what it says of nodes is old".to_owned();
        all.push(Attention::new("store-silent", 1, text, link));
    }
    let names = |is: &dyn Fn(&store::Peer) -> bool| {
        let named = nodes.peers.iter().filter(|peer| is(peer));
        named.map(|peer| peer.node.name.clone()).collect::<Vec<_>>()
    };
    let silent = names(&|peer| peer.beaten >= SILENT);
    if !silent.is_empty() {
        let text = format!("not heard of for a while: {}", some(&silent));
        let count = silent.len() as u64;
        all.push(Attention::new("silent-nodes", count, text, link));
    }
    let is_off = |peer: &store::Peer| {
        let offset = peer.node_status.offset;
        offset.is_some_and(|it| it.ahead.abs() >= CLOCK_OFF && it.uncertainty < CLOCK_OFF)
    };
    let off = names(&is_off);
    if !off.is_empty() {
        let text = format!(
            "clocks that are off the store's by a second or more: {}",
            some(&off)
        );
        let count = off.len() as u64;
        all.push(Attention::new("clocks-off", count, text, link));
    }
    all
}

/// A few of many names.
fn some(names: &[String]) -> String {
    const FEW: usize = 5;
    let few = names.iter().take(FEW).cloned().collect::<Vec<_>>();
    let more = names.len().saturating_sub(FEW);
    if more > 0 {
        format!("{} and {more} more", few.join(", "))
    } else {
        few.join(", ")
    }
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;
