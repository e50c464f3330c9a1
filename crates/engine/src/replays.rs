//! Replays: what somebody wants run in bulk is started bit by bit, at the pace that was asked for. A replay is worked on by
//! the node that holds its shard.
//!
//! What always holds: progress is written after the runs it counts, over the step before it. Whoever comes after a crash does
//! the last bit again, in which every run has the same name and is there already; where two nodes work on one replay for a
//! moment, one of them gets the answer that its step is stale.
//!
//! Runs of a replay are runs of the day. One whose tenant has had all of them waits for the next day, and says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use model::runs_day::Day;
use model::{
    Job, JobId, QuotaExceeded, ReplayId, Run, RunId, RunKind, Shard, Slot, TenantId, Timestamp,
    limits,
};
use store::{
    Acting, ClientStore, Finder, Found, Page, Progress, QueueRun, Queued, Replay, ReplayState,
    ReplayWork, RunFind, StoreError,
};
use tracing::info;

use crate::clock::Clock;
use crate::duty::{Duty, Wake};
use crate::nudge::Nudge;
use crate::offers::Offers;
use crate::presence::Presence;
use crate::run_counts::RunCounts;
use crate::shards::Shards;

/// How often replays are looked for without a nudge, and how often one that is under way is worked on.
const EVERY: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);
/// Replays of all tenants that are worked on at once.
const RUNNING_MAX: usize = 256;
/// Runs that are read at once, and pages of them that one step looks at.
const READ: usize = 100;
const PAGES_MAX: usize = 10;
/// Jobs that are read at once: they come with their payloads.
const JOBS_AT_ONCE: usize = 32;
/// Slots that one step looks at, and how far apart they lie: what became of all that lies between is read.
const SLOTS_MAX: usize = 1_000;
const SLOTS_SPAN: Duration = Duration::from_secs(600);
/// A backfill begins so long after it was asked for. A run that ended before that differs from one
/// that it started itself by when it ended, and clocks of nodes differ by less.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

pub(crate) struct Ports {
    pub store: Arc<dyn ClientStore>,
    pub clock: Arc<dyn Clock>,
    pub presence: Arc<Presence>,
    pub shards: Arc<Shards>,
    pub offers: Offers,
    pub runs: Arc<RunCounts>,
    /// A held node starts nothing.
    pub hold: bool,
    pub nudge: Nudge,
}

pub(crate) struct Replays {
    ports: Ports,
    pace: BTreeMap<ReplayId, Pace>,
}

/// How many runs may be started by now, and when that was counted last, by uptime.
#[derive(Clone, Copy)]
struct Pace {
    credit: f64,
    at: Duration,
}

/// One bit of a replay: the runs that it wants, and what to make of their answers.
struct Bit {
    progress: Progress,
    /// Every run or slot that was looked at, and its run if it is wanted and can be made.
    examined: Vec<(RunId, Examined)>,
    /// Whether there is nothing behind them.
    is_last: bool,
}

enum Examined {
    Wanted(Box<QueueRun>),
    /// Wanted, and cannot be made.
    Gone,
    Unwanted,
}

impl Replays {
    pub(crate) fn new(ports: Ports) -> Self {
        Self {
            ports,
            pace: BTreeMap::new(),
        }
    }

    /// Runs that may be started now. What was not used does not pile up beyond a second's worth.
    fn allowance(&mut self, replay: &Replay) -> usize {
        let uptime = self.ports.clock.uptime();
        let rate = f64::from(replay.rate.max(1));
        let pace = self.pace.entry(replay.id).or_insert(Pace {
            credit: 1.0,
            at: uptime,
        });
        let passed = uptime.saturating_sub(pace.at).as_secs_f64();
        pace.credit = (pace.credit + passed * rate).min(rate.max(1.0));
        pace.at = uptime;
        let left = replay.limit.saturating_sub(replay.progress.started);
        (pace.credit as usize)
            .min(limits::REPLAY_BATCH_MAX)
            .min(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// One bit of a replay, and its progress. Answers whether there may be more to do soon.
    async fn work(&mut self, replay: &Replay, now: Timestamp) -> Result<bool, StoreError> {
        let over = self.ports.runs.over(replay.tenant, Day::of(now));
        let bit = match over.filter(|_| replay.progress.started < replay.limit) {
            Some(over) => Some(Bit::over(replay, ReplayState::Running, Some(&wait(&over)))),
            None => self.next_bit(replay, now).await?,
        };
        if let Some(bit) = bit {
            self.do_bit(replay, bit, now).await?;
        }
        Ok(over.is_none())
    }

    /// What comes next, if it may begin by now.
    async fn next_bit(
        &mut self,
        replay: &Replay,
        now: Timestamp,
    ) -> Result<Option<Bit>, StoreError> {
        let allowed = self.allowance(replay);
        let is_full = replay.progress.started >= replay.limit;
        if allowed == 0 && !is_full {
            return Ok(None);
        }
        let bit = match &replay.work {
            _ if is_full => Bit::over(replay, ReplayState::Done, None),
            ReplayWork::Runs(find, payload) => {
                self.runs(replay, find, payload.as_ref(), allowed, now)
                    .await?
            }
            ReplayWork::Slots(..) if now.since(replay.created_at) < SETTLED_AFTER => {
                return Ok(None);
            }
            ReplayWork::Slots(job, from, to) => {
                self.slots(replay, *job, (*from, *to), allowed, now).await?
            }
        };
        Ok(Some(bit))
    }

    async fn do_bit(
        &mut self,
        replay: &Replay,
        bit: Bit,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let progress = self.start(replay, bit, Day::of(now)).await?;
        let started = progress.started.saturating_sub(replay.progress.started);
        if let Some(pace) = self.pace.get_mut(&replay.id) {
            pace.credit -= started as f64;
        }
        let nothing = Progress {
            note: progress.note.clone(),
            ..replay.progress.clone()
        } == progress;
        if nothing && progress.note == replay.progress.note {
            // It waits, and has said so.
            return Ok(());
        }
        let moved = replay.clone().moved(progress, now);
        if self.ports.store.replays().move_replay(&moved).await? {
            log_end(&moved);
        }
        Ok(())
    }

    /// How many of so many runs the tenant may have today, all of which are counted; and what is to be said if that is not all.
    fn admit(&self, tenant: TenantId, day: Day, wanted: usize) -> (usize, Option<String>) {
        for admitted in 0..wanted {
            if let Err(over) = self.ports.runs.begin(tenant, day) {
                return (admitted, Some(wait(&over.exceeded)));
            }
        }
        (wanted, None)
    }

    /// Starts runs for whoever wants the replay. What is not inserted is taken out of the day's count.
    async fn queue(
        &self,
        replay: &Replay,
        runs: &[QueueRun],
        day: Day,
    ) -> Result<Vec<Queued>, StoreError> {
        let acting = Arc::new(Acting {
            name: Arc::clone(&replay.actor),
            ..Acting::default()
        });
        let replays = self.ports.store.replays();
        let queued = acting.during(replays.queue_runs(runs)).await;
        let is_new = |it: &&Queued| matches!(it, Queued::Ready(_) | Queued::Waiting(_));
        let inserted = queued
            .as_ref()
            .map_or(0, |it| it.iter().filter(is_new).count());
        for _ in inserted..runs.len() {
            self.ports.runs.take_out(replay.tenant, day);
        }
        queued
    }

    /// Starts what a bit wants, up to the first that has to wait: for others to end, or for the next day.
    async fn start(&self, replay: &Replay, bit: Bit, day: Day) -> Result<Progress, StoreError> {
        let Bit {
            mut progress,
            examined,
            is_last,
        } = bit;
        let wanted = examined.iter().filter_map(|(_, it)| match it {
            Examined::Wanted(run) => Some(QueueRun::clone(run)),
            Examined::Gone | Examined::Unwanted => None,
        });
        let mut wanted: Vec<QueueRun> = wanted.collect();
        let (admitted, over) = self.admit(replay.tenant, day, wanted.len());
        wanted.truncate(admitted);
        let queued = self.queue(replay, &wanted, day).await?;
        for job in wanted.iter().map(|it| (it.run.tenant, it.run.job)) {
            self.ports.offers.offer(job);
        }
        let mut queued = queued.into_iter();
        for (id, examined) in examined {
            match examined {
                Examined::Wanted(run) => match queued.next() {
                    Some(Queued::Full) => {
                        let job = run.run.job;
                        progress.note = Some(format!("waits for runs of {job} to end"));
                        return Ok(progress);
                    }
                    None => {
                        progress.note = over;
                        return Ok(progress);
                    }
                    Some(answer) => count(&mut progress, answer, &run),
                },
                Examined::Gone => progress.skipped += 1,
                Examined::Unwanted => {}
            }
            progress.scanned += 1;
            progress.cursor = Some(id);
        }
        if is_last {
            progress.state = ReplayState::Done;
        }
        Ok(progress)
    }
}

/// Why a replay waits. It says the same all day.
fn wait(exceeded: &QuotaExceeded) -> String {
    let (quota, limit) = (exceeded.quota.as_str(), exceeded.limit);
    format!("waits for the next day (UTC): the tenant has had its {limit} runs of today ({quota})")
}

fn count(progress: &mut Progress, answer: Queued, run: &QueueRun) {
    match answer {
        Queued::Ready(_) | Queued::Waiting(_) => progress.started += 1,
        // A replay's name is its own, so it was started before a crash. Of a slot nobody knows whose run it is.
        Queued::Repeated if run.run.kind == RunKind::Replay => progress.started += 1,
        Queued::Repeated
        | Queued::Undecided
        | Queued::Undivided
        | Queued::Missing
        | Queued::Full => progress.skipped += 1,
    }
}

impl Bit {
    /// Nothing more is started.
    fn over(replay: &Replay, state: ReplayState, note: Option<&str>) -> Self {
        let progress = Progress {
            state,
            note: note.map(str::to_owned),
            ..replay.progress.clone()
        };
        Self {
            progress,
            examined: Vec::new(),
            is_last: false,
        }
    }

    fn of(replay: &Replay) -> Self {
        Self::over(replay, ReplayState::Running, None)
    }
}

impl Replays {
    /// The next runs that have ended, as far as `allowed` of them are wanted.
    async fn runs(
        &self,
        replay: &Replay,
        find: &RunFind,
        payload: Option<&Bytes>,
        allowed: usize,
        now: Timestamp,
    ) -> Result<Bit, StoreError> {
        let finder = Finder::new(&*self.ports.store, replay.tenant, find);
        let (mut found, mut wanted) = (Vec::new(), 0);
        let mut bit = Bit::of(replay);
        let mut before = replay.progress.cursor;
        for _ in 0..PAGES_MAX {
            let page = Page {
                before,
                limit: READ,
            };
            let read = finder.read(page).await?;
            bit.is_last = read.len() < READ;
            for (run, is_wanted) in read {
                if is_wanted && wanted == allowed {
                    bit.is_last = false;
                    break;
                }
                wanted += usize::from(is_wanted);
                before = Some(run.id);
                found.push((run, is_wanted));
            }
            if bit.is_last || wanted == allowed {
                break;
            }
        }
        let jobs = self.jobs(&found, replay).await?;
        let examined = found.into_iter().map(|(run, is_wanted)| {
            let examined = match jobs.get(&run.job).filter(|_| is_wanted) {
                Some(job) => Examined::Wanted(Box::new(again(replay, job, &run, payload, now))),
                None if is_wanted => Examined::Gone,
                None => Examined::Unwanted,
            };
            (run.id, examined)
        });
        bit.examined = examined.collect();
        Ok(bit)
    }

    /// The jobs of runs that are wanted; those that are gone are left out.
    async fn jobs(
        &self,
        runs: &[(Run, bool)],
        replay: &Replay,
    ) -> Result<BTreeMap<JobId, Job>, StoreError> {
        let wanted = runs.iter().filter(|(_, is_wanted)| *is_wanted);
        let mut ids: Vec<JobId> = wanted.map(|(run, _)| run.job).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut jobs = BTreeMap::new();
        for some in ids.chunks(JOBS_AT_ONCE) {
            let named: Vec<_> = some.iter().map(|id| (replay.tenant, *id)).collect();
            let found: Vec<Found<Job>> = self.ports.store.get_jobs(&named).await?;
            let found = found.into_iter().filter_map(|job| job.ok().flatten());
            jobs.extend(found.map(|job| (job.id, job)));
        }
        Ok(jobs)
    }

    /// The next slots of a job that its calendars keep.
    async fn slots(
        &self,
        replay: &Replay,
        job: JobId,
        (from, to): (Timestamp, Timestamp),
        allowed: usize,
        now: Timestamp,
    ) -> Result<Bit, StoreError> {
        let Some(job) = self.ports.store.get_job(replay.tenant, job).await? else {
            let why = "the job was deleted";
            return Ok(Bit::over(replay, ReplayState::Failed, Some(why)));
        };
        let schedule = &job.def.schedule;
        let before_first = from.minus(Duration::from_millis(1));
        let mut after = replay.progress.cursor.map_or(before_first, RunId::at);
        let mut bit = Bit::of(replay);
        let (mut first, mut wanted) = (None::<Slot>, 0);
        for _ in 0..SLOTS_MAX {
            let Some(slot) = schedule.next_after(after).filter(|slot| slot.0 < to) else {
                bit.is_last = true;
                break;
            };
            let is_kept = schedule.keeps(slot);
            let is_far = first.is_some_and(|first| slot.0.since(first.0) > SLOTS_SPAN);
            if is_kept && (wanted == allowed || is_far) {
                break;
            }
            let run = Run {
                slot: Some(slot),
                ..Run::of_request(&job, RunId::for_slot(job.id, slot), RunKind::Slot, now)
            };
            let id = run.id;
            let examined = if is_kept {
                (first, wanted) = (first.or(Some(slot)), wanted + 1);
                Examined::Wanted(Box::new(queue_run(replay, run)))
            } else {
                Examined::Unwanted
            };
            bit.examined.push((id, examined));
            after = slot.0;
        }
        Ok(bit)
    }
}

fn queue_run(replay: &Replay, run: Run) -> QueueRun {
    QueueRun {
        run,
        replay: replay.id,
        since: replay.created_at,
    }
}

/// A new run made from one that has ended. Its name follows from that one and the replay.
fn again(
    replay: &Replay,
    job: &Job,
    old: &Run,
    payload: Option<&Bytes>,
    now: Timestamp,
) -> QueueRun {
    let id = RunId::replayed(job.id, replay.created_at, replay.id, old.id);
    let run = Run {
        slot: old.slot,
        replay_of: Some(old.id),
        payload: payload.or(old.payload.as_ref()).cloned(),
        ..Run::of_request(job, id, RunKind::Replay, now)
    };
    queue_run(replay, run)
}

fn log_end(replay: &Replay) {
    let Progress {
        state,
        started,
        skipped,
        ..
    } = &replay.progress;
    if *state != ReplayState::Running {
        let (id, state) = (replay.id, state.as_str());
        info!(replay = %id, state, started, skipped, "a replay has ended");
    }
}

#[async_trait]
impl Duty for Replays {
    fn name(&self) -> &'static str {
        "replays"
    }

    fn nudge(&self) -> &Nudge {
        &self.ports.nudge
    }

    async fn step(&mut self, now: Timestamp) -> Result<Wake, StoreError> {
        if self.ports.hold || !self.ports.presence.is_sure() {
            return Ok(Wake::At(now.plus(EVERY)));
        }
        let store = Arc::clone(&self.ports.store);
        let mut running = store.replays().running_replays(RUNNING_MAX).await?;
        let leases = self.ports.shards.leases();
        running.retain(|replay| leases.epoch(Shard::of_replay(replay.id)).is_some());
        self.pace
            .retain(|id, _| running.iter().any(|replay| replay.id == *id));
        let mut moves = false;
        for replay in &running {
            match self.work(replay, now).await {
                // What cannot be read stops this one, and no other.
                Err(StoreError::BadRow(bad)) => {
                    let why = format!("{} cannot be read: {}", bad.what, bad.detail);
                    let over = Bit::over(replay, ReplayState::Failed, Some(&why)).progress;
                    let moved = replay.clone().moved(over, now);
                    store.replays().move_replay(&moved).await?;
                }
                worked => moves |= worked?,
            }
        }
        let next = if moves { TICK } else { EVERY };
        Ok(Wake::At(now.plus(next)))
    }
}
