//! Fire: slots become runs. One compare-and-swap and one insert for each, and nothing is looked up
//! for jobs whose runs may overlap.

use std::sync::Arc;

use model::job::Decision;
use model::policy::{Admission, Living};
use model::{
    Ask, AttemptNo, Job, JobId, JobState, Overlap, PresenceId, Reason, Run, RunId, RunState, Shard,
    Skip, Timestamp, Version,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::archive::{Archive, Ranges, ended};
use super::db::{Birth, Db, insert_live};
use super::fault::{Done, bad_row};
use super::history::{ended_run, live_run};
use super::presence::LeaseTable;
use super::ran::put_skipped;
use super::rest::Resting;
use super::rows::{EndedRow, LiveRow};
use crate::code::Code;
use crate::{Fired, Firing, Leases, StoreError};

/// A firing, worked out before it reaches the writer.
pub(super) struct FiringRow {
    job: JobId,
    shard: Shard,
    version: u32,
    /// What plan saw; nothing never matches.
    slot: Option<i64>,
    onward: Onward,
    /// If what starts is not born after all, and that makes a difference.
    unborn: Option<Onward>,
    overlap: Overlap,
    claim: bool,
    run: Option<LiveRow>,
    passed: Vec<EndedRow>,
    decision: Decision,
    /// As planned. If its runs are numbered, how many were made may have changed since.
    planned: Arc<Job>,
}

/// Where a firing leaves its job, as columns.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Onward {
    next_slot: Option<i64>,
    due_at: Option<i64>,
    /// Stays as it is when nothing was decided.
    slot_last: Option<i64>,
    state: i16,
    /// Only when it has finished.
    state_at: Option<i64>,
    runs_made: u32,
}

impl Onward {
    fn new(job: &Job, decision: &Decision, born: bool) -> Self {
        let stands = job.standing_after(decision, born);
        let finished = stands.state == JobState::Finished;
        let due_at = stands.next_slot.map(|slot| job.due_at(slot).as_millis());
        Self {
            next_slot: stands.next_slot.map(|slot| slot.0.as_millis()),
            due_at,
            slot_last: decision.slot_last().map(Timestamp::as_millis),
            state: stands.state.code(),
            state_at: finished.then_some(stands.state_at.as_millis()),
            runs_made: stands.runs_made,
        }
    }

    /// Whether only the end of its run sets its next slot.
    fn rests(&self) -> bool {
        self.state == JobState::Active.code() && self.next_slot.is_none()
    }
}

impl FiringRow {
    pub fn new(firing: &Firing) -> Result<Self, StoreError> {
        let Firing {
            job,
            decision,
            claim,
        } = firing;
        let bad = |error| bad_row(job.id, &error);
        let starts = decision.start.is_some();
        let onward = Onward::new(job, decision, starts);
        let unborn = starts.then(|| Onward::new(job, decision, false));
        let skipped = |skip: &Skip| EndedRow::new(Run::skipped(job, skip, decision.at));
        let passed = decision.passed.iter().map(skipped);
        Ok(Self {
            job: job.id,
            shard: job.shard(),
            version: job.version.0,
            slot: job.next_slot.map(|slot| slot.0.as_millis()),
            onward,
            unborn: unborn.filter(|unborn| *unborn != onward),
            overlap: job.def.overlap,
            claim: *claim,
            run: decision
                .start
                .map(|slot| LiveRow::new(Run::of_slot(job, slot)))
                .transpose()
                .map_err(bad)?,
            passed: passed.collect::<Result<_, _>>().map_err(bad)?,
            decision: decision.clone(),
            planned: Arc::clone(job),
        })
    }

    /// Where the job goes on, as far as plan could know.
    fn onward(&self, born: bool) -> Onward {
        match self.unborn {
            Some(unborn) if !born => unborn,
            Some(_) | None => self.onward,
        }
    }
}

/// How far the quick way got with a firing.
enum Step {
    Fired(Fired),
    /// Living runs have to give way first.
    Replace,
}

/// The statements of one call.
struct Fire<'a> {
    conn: &'a Connection,
    swap: CachedStatement<'a>,
    born: CachedStatement<'a>,
    archive: Archive<'a>,
    live: &'a mut u64,
    resting: &'a mut Resting,
    presence: PresenceId,
    no: i64,
}

impl Db {
    pub fn fire(&mut self, leases: &Leases, rows: &[FiringRow]) -> Done<Vec<Fired>> {
        let mut answers = Vec::with_capacity(rows.len());
        let Ok(no) = self.shared.presences().living(leases.presence) else {
            return Ok(rows.iter().map(|_| Fired::LeaseLost).collect());
        };
        while let Some(rest) = rows.get(answers.len()..).filter(|rest| !rest.is_empty()) {
            if let Some(row) = self.fire_quickly(leases, no, rest, &mut answers)? {
                self.replace(row)?;
                let answer = self.fire_after_replace(row, leases.presence, no)?;
                answers.push(answer);
            }
        }
        self.crowded |= answers
            .iter()
            .any(|answer| matches!(answer, Fired::Waiting(_)));
        Ok(answers)
    }

    /// Fires up to the first one that others have to give way to, which it answers.
    fn fire_quickly<'r>(
        &mut self,
        leases: &Leases,
        no: i64,
        rows: &'r [FiringRow],
        answers: &mut Vec<Fired>,
    ) -> Done<Option<&'r FiringRow>> {
        let (table, mut fire) = self.firing(leases.presence, no)?;
        for row in rows {
            if !table.holds(no, leases, row.shard) {
                answers.push(Fired::LeaseLost);
                continue;
            }
            match fire.one(row)? {
                Step::Fired(answer) => answers.push(answer),
                Step::Replace => return Ok(Some(row)),
            }
        }
        Ok(None)
    }

    /// What a firing looks at, and what it writes with.
    fn firing(&mut self, presence: PresenceId, no: i64) -> Done<(&LeaseTable, Fire<'_>)> {
        let Self {
            conn,
            leases,
            ranges,
            live,
            resting,
            ..
        } = self;
        let fire = Fire {
            conn,
            swap: conn.prepare_cached(include_str!("sql/fire.sql"))?,
            born: conn.prepare_cached(include_str!("sql/put_live.sql"))?,
            archive: Archive::new(conn, ranges),
            live,
            resting,
            presence,
            no,
        };
        Ok((leases, fire))
    }

    /// Waiting runs and those that nobody holds end here; the others are asked to.
    pub fn replace_runs(&mut self, job: JobId, due_at: Timestamp) -> Done<Living> {
        let mut left = Living::default();
        for run in self.live_of_job(job)? {
            match run.claim {
                None => {
                    self.cancel(run, Reason::Replaced, due_at)?;
                }
                Some(_) => {
                    self.ask(&run, Ask::Cancel(Reason::Replaced))?;
                    left.moving += 1;
                }
            }
        }
        self.wake(job, due_at)?;
        Ok(left)
    }

    fn replace(&mut self, row: &FiringRow) -> Done<()> {
        if let Some(run) = &row.run {
            self.replace_runs(row.job, run.run.due_at)?;
        }
        Ok(())
    }

    /// The compare-and-swap is known to match, and the name to be free.
    fn fire_after_replace(
        &mut self,
        row: &FiringRow,
        presence: PresenceId,
        no: i64,
    ) -> Done<Fired> {
        let (_, mut fire) = self.firing(presence, no)?;
        let claim = row.claim.then_some(no);
        let Some(run) = &row.run else {
            return Ok(Fired::Stale);
        };
        match fire.living(row.job)?.moving {
            0 => fire.bear(row, run, Birth::moving(claim)),
            _ => fire.bear(row, run, Birth::WAITING),
        }
    }
}

impl Fire<'_> {
    fn one(&mut self, row: &FiringRow) -> Done<Step> {
        let Some(run) = &row.run else {
            return self.pass_over(row).map(Step::Fired);
        };
        if row.version > Version::FIRST.0 && self.was_decided(run.run.id)? && self.stands(row)? {
            self.swapped(row, false)?;
            return Ok(Step::Fired(Fired::Decided));
        }
        let moving = Birth::moving(row.claim.then_some(self.no));
        if row.overlap == Overlap::Allow {
            return self.bear(row, run, moving).map(Step::Fired);
        }
        let living = self.living(row.job)?;
        if living != Living::default() {
            if !self.stands(row)? {
                return fired_before(self.conn, self.archive.ranges(), self.presence, row)
                    .map(Step::Fired);
            }
            if live_run(self.conn, run.run.id)?.is_some() {
                return Ok(Step::Fired(refused(run.run.id)));
            }
        }
        let admission = row.overlap.admit(living);
        if admission.is_said_when_due() && row.decision.at < run.run.due_at {
            return Ok(Step::Fired(Fired::Early));
        }
        let fired = match admission {
            Admission::Start => self.bear(row, run, moving)?,
            Admission::Wait => self.bear(row, run, Birth::WAITING)?,
            Admission::Skip(reason) => self.skip(row, run, reason)?,
            Admission::Replace => return Ok(Step::Replace),
        };
        Ok(Step::Fired(fired))
    }

    /// An edit may have taken back an earlier slot than one that was dispatched: whoever has a run,
    /// alive or ended, is not decided again.
    fn was_decided(&self, run: RunId) -> Done<bool> {
        let ended = ended_run(self.conn, self.archive.ranges(), run)?;
        Ok(live_run(self.conn, run)?.is_some()
            || ended.is_some_and(|run| run.state != RunState::Skipped))
    }

    /// The run first, then the job: a run of that name that is alive already is seen before anything
    /// has changed, so nothing has to be undone but, after a lost answer, the insert itself.
    fn bear(&mut self, row: &FiringRow, run: &LiveRow, birth: Birth) -> Done<Fired> {
        let id = run.run.id;
        if !insert_live(&mut self.born, run, birth)? {
            return if self.stands(row)? {
                Ok(refused(id))
            } else {
                self.before(row)
            };
        }
        if !self.swapped(row, true)? {
            let mut remove = self
                .conn
                .prepare_cached(include_str!("sql/remove_live.sql"))?;
            remove.execute([id.as_bytes()])?;
            return self.before(row);
        }
        *self.live += 1;
        Ok(match birth {
            Birth { waiting: true, .. } => Fired::Waiting(id),
            Birth { claim: Some(_), .. } => Fired::Claimed(id),
            Birth { claim: None, .. } => Fired::Ready(id),
        })
    }

    fn skip(&mut self, row: &FiringRow, run: &LiveRow, reason: Reason) -> Done<Fired> {
        if !self.swapped(row, false)? {
            return self.before(row);
        }
        let entry = Run {
            state: RunState::Skipped,
            reason: Some(reason),
            settled_at: Some(row.decision.at),
            by: Some(Arc::clone(&row.decision.by)),
            ..run.run.clone()
        };
        self.archive.put(&ended(entry)?)?;
        Ok(Fired::Skipped(reason))
    }

    fn pass_over(&mut self, row: &FiringRow) -> Done<Fired> {
        if !self.swapped(row, false)? {
            return self.before(row);
        }
        Ok(match row.decision.passed.last() {
            Some(skip) => Fired::Skipped(skip.reason),
            None => Fired::Decided,
        })
    }

    /// Moves the job onward, and writes down what it passed over; false if it is not where plan saw it.
    fn swapped(&mut self, row: &FiringRow, born: bool) -> Done<bool> {
        let onward = self.onward(row, born)?;
        let swapped = self.swap.execute(params![
            onward.next_slot,
            onward.due_at,
            onward.slot_last,
            onward.state,
            onward.state_at,
            onward.runs_made,
            row.job.as_bytes(),
            row.version,
            row.slot,
        ])? == 1;
        if !swapped {
            return Ok(false);
        }
        if onward.rests() {
            self.resting.insert(row.job);
        }
        let edited = row.version > Version::FIRST.0;
        for entry in &row.passed {
            match edited {
                // Some of its slots may have been dispatched before an edit could take them back.
                true => put_skipped(&mut self.archive, entry, &row.planned)?,
                false => self.archive.put(entry)?,
            }
        }
        Ok(true)
    }

    /// Where the job goes on. A run that was taken back since plan looked has left one more to come.
    fn onward(&self, row: &FiringRow, born: bool) -> Done<Onward> {
        let planned = &row.planned;
        if planned.runs_left().is_none() {
            return Ok(row.onward(born));
        }
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/fire_made.sql"))?;
        let made = select.query_row([row.job.as_bytes()], |row| row.get(0));
        let runs_made: u32 = made.optional()?.unwrap_or(planned.runs_made);
        if runs_made == planned.runs_made {
            return Ok(row.onward(born));
        }
        let job = Job {
            runs_made,
            ..Job::clone(planned)
        };
        Ok(Onward::new(&job, &row.decision, born))
    }

    fn stands(&self, row: &FiringRow) -> Done<bool> {
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/fire_stands.sql"))?;
        Ok(select.exists(params![row.job.as_bytes(), row.version, row.slot])?)
    }

    fn living(&self, job: JobId) -> Done<Living> {
        living(self.conn, job)
    }

    fn before(&self, row: &FiringRow) -> Done<Fired> {
        fired_before(self.conn, self.archive.ranges(), self.presence, row)
    }
}

pub(super) fn living(conn: &Connection, job: JobId) -> Done<Living> {
    let mut select = conn.prepare_cached(include_str!("sql/living.sql"))?;
    Ok(select.query_row([job.as_bytes()], |row| {
        Ok(Living {
            moving: row.get(0)?,
            waiting: row.get(1)?,
        })
    })?)
}

fn refused(id: RunId) -> Fired {
    Fired::Refused(format!("{id} is alive already"))
}

/// The job is not where the firing saw it: either someone moved it, or this very firing did and its
/// answer was lost.
fn fired_before(
    conn: &Connection,
    ranges: &Ranges,
    presence: PresenceId,
    row: &FiringRow,
) -> Done<Fired> {
    let Decision { passed, start, .. } = &row.decision;
    let last = passed.last();
    let Some(slot) = start.or(last.map(|skip| skip.slots.first)) else {
        return Ok(Fired::Stale);
    };
    let id = RunId::for_slot(row.job, slot);
    if start.is_some()
        && let Some(run) = live_run(conn, id)?.filter(|run| run.attempt == AttemptNo::FIRST)
    {
        return Ok(match run.claim {
            Some(holder) if holder == presence => Fired::Claimed(id),
            None if run.state == RunState::Ready && run.waiting => Fired::Waiting(id),
            None if run.state == RunState::Ready => Fired::Ready(id),
            Some(_) | None => Fired::Stale,
        });
    }
    let skipped = ended_run(conn, ranges, id)?.filter(|run| run.state == RunState::Skipped);
    Ok(match skipped.and_then(|run| run.reason) {
        Some(reason) if start.is_some() || last.is_some_and(|skip| skip.reason == reason) => {
            Fired::Skipped(reason)
        }
        Some(_) | None => Fired::Stale,
    })
}
