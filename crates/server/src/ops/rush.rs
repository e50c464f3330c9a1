//! One second ahead: which jobs are due in it, and what a spread would make of that. Nothing is written here: whoever likes what
//! is shown edits each job with the version that is named.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::{Job, TenantId, Timestamp, limits};
use store::{DueCursor, DueSpan};

use super::error::OpError;
use super::forecast::{self, REACH};
use super::forecast_count::{due_within, may_spread};
use crate::access::Caller;
use crate::api::Api;

/// Jobs that are shown of one second.
pub const JOBS_MAX: usize = 200;
/// Jobs due before it that are looked at, since they may be due in it as well.
const EARLIER_MAX: usize = 10_000;
const READS_MAX: usize = 500_000;
/// What is proposed unless another is wanted.
pub const SPREAD: Duration = Duration::from_secs(60);

/// The jobs of one second.
#[derive(Debug, Clone, PartialEq)]
pub struct Rush {
    pub at: Timestamp,
    /// The spread that was wanted.
    pub spread: Duration,
    /// The most slots of these jobs in one second around it, as things are and with what is proposed.
    pub peak_before: u64,
    pub peak_after: u64,
    pub jobs: Vec<RushJob>,
    /// Whether these are all.
    pub complete: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RushJob {
    pub job: Arc<Job>,
    /// None where it is not to be spread.
    pub proposed: Option<Duration>,
}

fn second_of(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis().div_euclid(1_000) * 1_000)
}

/// What is wrong with a request, and where.
pub fn fault(now: Timestamp, at: Timestamp, spread: Duration) -> Option<(&'static str, String)> {
    let at = second_of(at);
    if at < second_of(now) || at > now.plus(REACH) {
        return Some(("at", format!("{at} is not within the next 24 hours")));
    }
    let most = limits::DELAY_MAX;
    let fits = (Duration::from_secs(1)..=most).contains(&spread);
    let most = model::schedule::format_span(most);
    (!fits).then(|| ("spread", format!("a spread is from 1s to {most}")))
}

/// The jobs that are due in the second of `at`, with a spread of at most `spread` for each that may have one.
pub async fn rush(
    api: &Api,
    caller: Caller,
    at: Timestamp,
    spread: Duration,
) -> Result<Rush, OpError> {
    let at = second_of(at);
    let (jobs, read_all) = candidates(api, caller.tenant, at).await?;
    let work = move || shown(jobs, read_all, at, spread);
    api.permit().await?.work(work).await
}

/// Jobs that may be due in that second, and whether there are no others.
async fn candidates(
    api: &Api,
    tenant: TenantId,
    at: Timestamp,
) -> Result<(Vec<Arc<Job>>, bool), OpError> {
    if forecast::is_small(api, tenant).await? {
        return Ok((forecast::all_planned(api, tenant).await?, true));
    }
    let span = |after, up_to| DueSpan {
        after,
        up_to,
        sample: DueSpan::ALL,
    };
    let before = at.minus(Duration::from_millis(1));
    let last = at.plus(Duration::from_millis(999));
    // Those whose next slot it is stand together.
    let last_before = DueCursor::later_than(before);
    let most = (JOBS_MAX + 1, READS_MAX);
    let (mut jobs, next_until) =
        forecast::due(api, tenant, span(Some(last_before), last), most).await?;
    let most = (EARLIER_MAX, READS_MAX);
    let (earlier, earlier_until) = forecast::due(api, tenant, span(None, before), most).await?;
    jobs.extend(earlier);
    Ok((jobs, next_until == last && earlier_until == before))
}

/// The longest spread that is usual, not longer than wanted and shorter than the time between two slots.
fn proposed(job: &Job, wanted: Duration) -> Option<Duration> {
    const USUAL: [u64; 9] = [3_600, 1_800, 600, 300, 60, 30, 10, 5, 2];
    if !may_spread(job) {
        return None;
    }
    let period = job.def.schedule.shortest_period();
    let fits =
        |spread: &Duration| *spread <= wanted && period.is_none_or(|period| *spread < period);
    let usual = USUAL.into_iter().map(Duration::from_secs);
    [wanted].into_iter().chain(usual).find(fits)
}

fn shown(jobs: Vec<Arc<Job>>, read_all: bool, at: Timestamp, spread: Duration) -> Rush {
    let end = at.plus(Duration::from_secs(1));
    let (mut before, mut after) = (BTreeMap::<i64, u64>::new(), BTreeMap::<i64, u64>::new());
    let mut shown = Vec::new();
    let mut complete = read_all;
    for job in jobs {
        let mut due = Vec::new();
        due_within(&job, at, end, |due_at| due.push(due_at));
        if due.is_empty() {
            continue;
        }
        if shown.len() == JOBS_MAX {
            complete = false;
            break;
        }
        let proposed = proposed(&job, spread);
        let offset = proposed.map_or(Duration::ZERO, |spread| job.id.offset_within(spread));
        for due_at in due {
            *before.entry(due_at.as_millis() / 1_000).or_default() += 1;
            let moved = due_at.plus(offset);
            *after.entry(moved.as_millis() / 1_000).or_default() += 1;
        }
        shown.push(RushJob { job, proposed });
    }
    let peak = |counts: &BTreeMap<i64, u64>| counts.values().copied().max().unwrap_or(0);
    Rush {
        at,
        spread,
        peak_before: peak(&before),
        peak_after: peak(&after),
        jobs: shown,
        complete,
    }
}
