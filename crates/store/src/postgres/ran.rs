//! Slots that have a run: they are not decided again, nor told as skipped, when one after them is taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{Job, JobId, Run, RunId, RunKind, Skip, Slot, Stretch, Timestamp};
use uuid::Uuid;

use super::fault::Done;
use super::fire::ended;
use super::pool::Conn;
use super::scene::Scene;
use crate::code::read_told;

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: i64 = 24 * 3_600 * 1_000;

/// From the first moment up to but not including the second.
type Span = (Timestamp, Timestamp);

/// Slots of some jobs that have an answer in history.
#[derive(Default)]
pub(super) struct Ran {
    /// Their runs have ended.
    ended: BTreeMap<JobId, BTreeSet<Slot>>,
    /// They were passed over, as far as they may be decided anew.
    told: BTreeMap<JobId, BTreeMap<RunId, Stretch>>,
}

impl Ran {
    async fn read(&mut self, conn: &Conn, spans: &[(JobId, Span)]) -> Done<()> {
        if spans.is_empty() {
            return Ok(());
        }
        let (mut jobs, mut first, mut last) = (vec![], vec![], vec![]);
        for (job, span) in spans {
            jobs.push(job.0);
            first.push(RunId::least_at(span.0).0);
            last.push(RunId::least_at(span.1).0);
        }
        let sql = include_str!("sql/ran.sql");
        for row in &conn.rows(sql, &[&jobs, &first, &last]).await? {
            let (job, run): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
            let slots = self.ended.entry(JobId(job)).or_default();
            slots.insert(Slot(RunId(run).at()));
        }
        Ok(())
    }

    /// Reads what was passed over from the first moments of the spans on. Of entries that begin before, only the last
    /// can reach beyond, and none beyond its day.
    async fn read_told(&mut self, conn: &Conn, spans: &[(JobId, Span)]) -> Done<()> {
        if spans.is_empty() {
            return Ok(());
        }
        let (mut jobs, mut first, mut day) = (vec![], vec![], vec![]);
        for (job, (from, _)) in spans {
            jobs.push(job.0);
            first.push(RunId::least_at(*from).0);
            day.push(RunId::least_at(start_of_day(*from)).0);
        }
        let sql = include_str!("sql/told.sql");
        for row in &conn.rows(sql, &[&jobs, &first, &day]).await? {
            let (job, run): (Uuid, Uuid) = (row.try_get(0)?, row.try_get(1)?);
            let slots = read_told(RunId(run), row.try_get(2)?, row.try_get(3)?);
            let told = self.told.entry(JobId(job)).or_default();
            told.insert(RunId(run), slots);
        }
        Ok(())
    }
}

fn start_of_day(at: Timestamp) -> Timestamp {
    let millis = at.as_millis();
    Timestamp::from_millis(millis - millis.rem_euclid(DAY))
}

/// Where slots lie that will not run.
fn span_of(skips: &[Skip]) -> Option<Span> {
    let first = skips.first()?.slots.first.0;
    Some((first, skips.last()?.slots.last.0.plus(MILLISECOND)))
}

impl Scene {
    /// Looks for runs among slots that are to be skipped, each list of one job. Asked after what lives is known: what ends
    /// meanwhile is found in one place or the other.
    pub async fn read_ran_within<'a>(
        &mut self,
        conn: &Conn,
        skips: impl Iterator<Item = (JobId, &'a [Skip])>,
    ) -> Done<()> {
        let spans = skips.filter_map(|(job, skips)| Some((job, span_of(skips)?)));
        let spans: Vec<(JobId, Span)> = spans.collect();
        self.ran.read(conn, &spans).await
    }

    /// Looks for answers to the slots that may be decided anew when runs of these jobs are taken back.
    pub async fn read_ran_before(&mut self, conn: &Conn, jobs: &[JobId]) -> Done<()> {
        let mut spans = Vec::new();
        for id in jobs {
            let Some(job) = self.job(*id) else { continue };
            let runs = self.runs(*id);
            let slots = runs.iter().filter_map(|row| row.run.slot);
            let slots: Vec<Slot> = slots.collect();
            let from = slots.iter().map(|slot| job.decided_before(*slot)).min();
            if let Some((from, last)) = from.zip(slots.iter().max()) {
                spans.push((*id, (from, last.0)));
            }
        }
        self.ran.read(conn, &spans).await?;
        self.ran.read_told(conn, &spans).await
    }

    /// What was passed over after the job's last decided slot is not told any more: it is decided anew.
    pub fn untell(&mut self, job: &Job) {
        let Some(told) = self.ran.told.get_mut(&job.id) else {
            return;
        };
        told.retain(|id, slots| {
            let still = job.still_recorded(*slots);
            if still != Some(*slots) {
                self.writes.untold.insert(*id, still);
            }
            *slots = still.unwrap_or(*slots);
            still.is_some()
        });
    }

    /// The slots of a job from `first` up to but not including `end` that have a run, live or ended, oldest first.
    fn ran(&self, job: JobId, first: Timestamp, end: Timestamp) -> Vec<Slot> {
        let live = self.runs(job).into_iter().map(|row| row.run);
        let live = live.filter(|run| run.kind == RunKind::Slot);
        let ended = self.ran.ended.get(&job).into_iter().flatten().copied();
        let all = live.filter_map(|run| run.slot).chain(ended);
        let within: BTreeSet<Slot> = all.filter(|it| it.0 >= first && it.0 < end).collect();
        within.into_iter().collect()
    }

    /// The slots before that of a run which have one too, as far as they may be decided anew with it.
    pub fn ran_before(&self, job: &Job, slot: Slot) -> Vec<Slot> {
        let first = job.decided_before(slot).plus(MILLISECOND);
        self.ran(job.id, first, slot.0)
    }

    /// Writes slots of `of` that will not run, around those that have a run. `job` is as it is now.
    pub fn skip(&mut self, job: &Job, of: &Job, skips: &[Skip], at: Timestamp) -> Done<()> {
        for skip in skips {
            let end = skip.slots.last.0.plus(MILLISECOND);
            let ran = self.ran(job.id, skip.slots.first.0, end);
            for entry in Run::skipped(job, skip, at).around(&of.def.schedule, &ran) {
                self.end(ended(entry)?);
            }
        }
        Ok(())
    }
}
