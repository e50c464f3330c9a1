//! A store with jobs and with what became of their slots, written as a node writes it and not in the time that it took.

use std::sync::Arc;
use std::time::Duration;

use model::schedule::tzdb_version;
use model::shard::ShardSet;
use model::{
    Attempt, AttemptNo, Job, JobId, JobKey, Level, Outcome, Reason, Report, RetryHint, Run, Target,
    Timestamp, Verdict,
};
use store::{Fired, Firing, Leases, NodeInfo, Settled, Settlement, Store};

use super::rig;
use crate::failure::Failure;

/// Runs of the job that is due every minute: as many as its map shows, or a tenth of all.
const MINUTES: usize = 14 * 24 * 60;
/// Jobs that have all other runs, one an hour each.
const BUSY: usize = 20_000;
const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);
/// Firings in one batch.
const BATCH: usize = 1_000;
/// Every so many runs one dies.
const DIES: usize = 200;
const ACTOR: &str = "bench";

/// How much is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub jobs: usize,
    pub runs: usize,
}

pub(super) struct Filled {
    pub minutely: JobId,
    pub busy: Vec<JobId>,
    /// Runs that were written.
    pub runs: usize,
}

/// Who writes.
struct Writer<'a> {
    store: &'a dyn Store,
    leases: Leases,
    target: Target,
    actor: Arc<str>,
}

/// Fills a store. Jobs that have no runs are due within a month, and none of them within an hour.
pub(super) async fn fill(
    store: &dyn Store,
    size: Size,
    target: &Target,
    progress: &dyn Fn(u64, u64),
) -> Result<Filled, Failure> {
    let node = NodeInfo {
        name: ACTOR.to_owned(),
        version: String::new(),
        tables: tzdb_version().to_owned(),
        parts: engine::NodeConfig::default().parts,
        level: Level::OURS,
        kinds: vec!["http".to_owned()],
    };
    let presence = store.join(&node).await.map_err(rig::failed)?;
    let leases = store.lease(presence, &ShardSet::ALL).await;
    let writer = Writer {
        store,
        leases: leases.map_err(rig::failed)?,
        target: target.clone(),
        actor: Arc::from(ACTOR),
    };
    let total = (size.jobs + size.runs) as u64;
    let (minutes, busy) = (MINUTES.min(size.runs / 10), BUSY.min(size.jobs / 2).max(1));
    writer
        .idle(size.jobs.saturating_sub(busy + 1), &|done| {
            progress(done, total);
        })
        .await?;
    let done = size.jobs as u64;
    let minutely = writer
        .minutely(minutes, &|more| progress(done + more, total))
        .await?;
    let rounds = size.runs.saturating_sub(minutes) / busy;
    let done = done + minutes as u64;
    let busy = writer
        .busy(busy, rounds, &|more| progress(done + more, total))
        .await?;
    store.leave(presence).await.map_err(rig::failed)?;
    Ok(Filled {
        minutely,
        runs: minutes + rounds * busy.len(),
        busy,
    })
}

impl Writer<'_> {
    /// A job that was created when its first slot was due.
    fn job(&self, number: usize, period: Duration, first: Timestamp) -> Result<Job, Failure> {
        let made = rig::every(period, first, self.target.clone());
        let def = Arc::clone(&made.def);
        let mut def = model::Definition::clone(&def);
        let team = if number.is_multiple_of(5) {
            "ops"
        } else {
            "shop"
        };
        def.labels.extend([("team".to_owned(), team.to_owned())]);
        let at = first.minus(Duration::from_millis(1));
        let id = JobId::new(at, rand::random());
        let mut job = Job::new(id, made.tenant, None, def, at);
        let key = JobKey::new(&format!("order-export-{number}"));
        job.key = Some(key.map_err(rig::failed)?);
        job.owner = Some(Arc::from(if number.is_multiple_of(3) {
            "ann"
        } else {
            "ben"
        }));
        Ok(job)
    }

    async fn idle(&self, count: usize, progress: &dyn Fn(u64)) -> Result<(), Failure> {
        let month = HOUR * 24 * 30;
        let from = rig::now().plus(HOUR * 2);
        let step = month / count.max(1) as u32;
        for part in 0..count.div_ceil(BATCH) {
            let numbers = part * BATCH..((part + 1) * BATCH).min(count);
            let jobs = numbers.map(|number| {
                let job = self.job(number, month, from.plus(step * number as u32));
                job.map(Arc::new)
            });
            rig::load(self.store, &jobs.collect::<Result<Vec<_>, _>>()?).await?;
            progress(((part + 1) * BATCH) as u64);
        }
        Ok(())
    }

    /// The job that is due every minute, up to this one: slot after slot, each when the one before has ended.
    async fn minutely(&self, count: usize, progress: &dyn Fn(u64)) -> Result<JobId, Failure> {
        let now = rig::now().as_millis() / 60_000 * 60_000;
        let first = Timestamp::from_millis(now).minus(MINUTE * count as u32);
        let mut job = self.job(usize::MAX, MINUTE, first)?;
        job.key = Some(JobKey::new("every-minute").map_err(rig::failed)?);
        let mut job = Arc::new(job);
        rig::load(self.store, &[Arc::clone(&job)]).await?;
        for number in 0..count {
            let (firing, settlement, onward) = self.slot(&job, number)?;
            job = onward;
            self.fire(&[firing]).await?;
            self.settle(&[settlement]).await?;
            progress(number as u64);
        }
        Ok(job.id)
    }

    /// Jobs that ran every hour, up to this one.
    async fn busy(
        &self,
        count: usize,
        rounds: usize,
        progress: &dyn Fn(u64),
    ) -> Result<Vec<JobId>, Failure> {
        let from = rig::now().minus(HOUR * rounds as u32);
        let (step, mut ids) = (HOUR / count as u32, Vec::with_capacity(count));
        for part in 0..count.div_ceil(BATCH) {
            let numbers = part * BATCH..((part + 1) * BATCH).min(count);
            let jobs = numbers.map(|number| {
                let first = from.plus(step * number as u32);
                self.job(10_000_000 + number, HOUR, first).map(Arc::new)
            });
            let mut jobs = jobs.collect::<Result<Vec<_>, _>>()?;
            rig::load(self.store, &jobs).await?;
            ids.extend(jobs.iter().map(|job| job.id));
            // The last slot of some would lie in the future.
            for round in 0..rounds {
                let (mut firings, mut settlements) = (Vec::new(), Vec::new());
                for (number, job) in jobs.iter_mut().enumerate() {
                    let (firing, settlement, onward) = self.slot(job, round + number)?;
                    *job = onward;
                    firings.push(firing);
                    settlements.push(settlement);
                }
                self.fire(&firings).await?;
                self.settle(&settlements).await?;
                progress((ids.len().saturating_sub(BATCH) * rounds + (round + 1) * BATCH) as u64);
            }
        }
        Ok(ids)
    }

    /// A job's next slot as it was decided on time, the end of its run, and the job after it.
    fn slot(
        &self,
        job: &Arc<Job>,
        number: usize,
    ) -> Result<(Firing, Settlement, Arc<Job>), Failure> {
        let slot = job.next_slot;
        let slot = slot.ok_or_else(|| Failure::refused("a job of the bench has no next slot"))?;
        let decision = job.decide(slot, slot.0, &self.actor);
        let onward = Arc::new(job.at_standing(job.standing_after(&decision, true)));
        let run = Run {
            claim: Some(self.leases.presence),
            ..Run::of_slot(job, slot)
        };
        let dies = number.is_multiple_of(DIES);
        let (report, verdict) = if dies {
            let report = Report::failed("503 from the shop").with_retry(RetryHint::Never);
            (report, Verdict::Bury(Reason::Refused))
        } else {
            (
                Report::of(Outcome::Succeeded).with_status(200),
                Verdict::Succeed,
            )
        };
        let begun = slot.0.plus(Duration::from_millis(1 + number as u64 % 7));
        let ended = begun.plus(Duration::from_millis(40 + number as u64 % 300));
        let attempt = Attempt::new(AttemptNo::FIRST, Some(begun), ended, report);
        let settlement = Settlement {
            run,
            verdict,
            attempt: Some(attempt.made_by(&self.actor)),
        };
        let firing = Firing {
            job: Arc::clone(job),
            decision,
            claim: true,
            knows: Vec::new(),
        };
        Ok((firing, settlement, onward))
    }

    async fn fire(&self, firings: &[Firing]) -> Result<(), Failure> {
        let answers = self.store.fire(&self.leases, firings).await;
        let answers = answers.map_err(rig::failed)?;
        let mut others = answers.iter().filter(|it| !matches!(it, Fired::Claimed(_)));
        others.next().map_or(Ok(()), |it| Err(not_written(it)))
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<(), Failure> {
        let answers = self.store.settle(self.leases.presence, settlements).await;
        let answers = answers.map_err(rig::failed)?;
        let mut others = answers
            .iter()
            .filter(|it| !matches!(it, Settled::Done { .. }));
        others.next().map_or(Ok(()), |it| Err(not_written(it)))
    }
}

fn not_written(answer: &impl std::fmt::Debug) -> Failure {
    Failure::refused(format!("a slot of the bench was answered {answer:?}"))
}
