//! Settle: how attempts end, and with them most runs. The fast path writes what comes from the settlement itself, so
//! nothing is read. All others are decided on a view.

use model::{JobId, PresenceId, RunState, Timestamp, Verdict, Wait, WaitReason};
use rusqlite::{CachedStatement, Connection, params};

use super::archive::Archive;
use super::counting::{Counting, has_failures};
use super::db::Db;
use super::fault::Done;
use super::rest::Resting;
use crate::code::{Code, bad_row};
use crate::row::EndedRow;
use crate::{Settled, Settlement, StoreError, doc};

/// A settlement, encoded before it reaches the writer.
pub(super) struct SettleRow {
    settlement: Settlement,
    step: Step,
}

/// What the fast path writes.
enum Step {
    End(Box<EndedRow>),
    Retry {
        at: Timestamp,
        attempts: Option<Vec<u8>>,
    },
    /// It may have to wait.
    Release(Option<Wait>),
}

impl Step {
    fn name(&self) -> &'static str {
        match self {
            Self::End(_) => "settle",
            Self::Retry { .. } => "settle_retry",
            Self::Release(_) => "settle_release",
        }
    }
}

impl SettleRow {
    /// Those that can be written, and the places of those that cannot.
    pub(super) fn all(
        settlements: &[Settlement],
        now: Timestamp,
    ) -> (Vec<Self>, Vec<(usize, Settled)>) {
        let (mut rows, mut refused) = (Vec::with_capacity(settlements.len()), Vec::new());
        for (index, settlement) in settlements.iter().enumerate() {
            match Self::new(settlement, now) {
                Ok(row) => rows.push(row),
                Err(error) => refused.push((index, Settled::Refused(error.to_string()))),
            }
        }
        (rows, refused)
    }

    /// `now` stands in for the moment of an attempt that never was.
    fn new(settlement: &Settlement, now: Timestamp) -> Result<Self, StoreError> {
        let step = if let Some((state, reason)) = settlement.end() {
            let ended = settlement.ended(state, reason, now);
            Step::End(Box::new(EndedRow::new(ended)?))
        } else if let Verdict::RetryAt(at) = settlement.verdict {
            let attempts =
                doc::encode_live(settlement.run.trace.as_deref(), &settlement.attempts())
                    .map_err(|error| bad_row(settlement.run.id, &error))?;
            Step::Retry { at, attempts }
        } else if let Verdict::Wait(wait) = settlement.verdict {
            Step::Release(Some(wait))
        } else {
            Step::Release(None)
        };
        Ok(Self {
            settlement: settlement.clone(),
            step,
        })
    }
}

/// The statements of one call.
struct Settle<'a> {
    conn: &'a Connection,
    remove: CachedStatement<'a>,
    archive: Archive<'a>,
    live: &'a mut u64,
    resting: &'a Resting,
    counting: &'a Counting,
    crowded: bool,
}

impl Db {
    pub(super) fn settle(
        &mut self,
        by: PresenceId,
        rows: &[SettleRow],
        now: Timestamp,
    ) -> Done<Vec<Settled>> {
        let mut answers = Vec::with_capacity(rows.len());
        self.shared.presences().living(by)?;
        while let Some(rest) = rows.get(answers.len()..).filter(|rest| !rest.is_empty()) {
            if let Some(row) = self.settle_fast_path(by, rest, &mut answers)? {
                answers.push(self.settle_slow_path(by, &row.settlement, now)?);
            }
        }
        if self.crowded {
            self.crowded = self.is_crowded()?;
        }
        Ok(answers)
    }

    /// Settles up to the first one that takes a view to decide, which it answers.
    fn settle_fast_path<'r>(
        &mut self,
        by: PresenceId,
        rows: &'r [SettleRow],
        answers: &mut Vec<Settled>,
    ) -> Done<Option<&'r SettleRow>> {
        let conn = &self.conn;
        let mut settle = Settle {
            conn,
            remove: conn.prepare_cached(include_str!("sql/settle.sql"))?,
            archive: Archive::new(conn, &mut self.partitions, &self.watched),
            live: &mut self.live,
            resting: &self.resting,
            counting: &self.counting,
            crowded: self.crowded,
        };
        let mut token = (None, None);
        for row in rows {
            let claim = row.settlement.run.claim;
            if token.0 != claim {
                token = (claim, self.shared.presences().settles(by, claim));
            }
            let settled = match token.1 {
                Some(no) if self.fast_paths.are_on => settle.one(row, no)?,
                Some(_) => None,
                None => Some(Settled::Stale),
            };
            match settled {
                Some(settled) => {
                    let count = usize::from(settled == Settled::DONE);
                    self.fast_paths.wrote(row.step.name(), count);
                    answers.push(settled);
                }
                None => return Ok(Some(row)),
            }
        }
        Ok(None)
    }

    /// The job matters only if it rests or counts its failures, or to a run that is marked.
    fn settle_slow_path(
        &mut self,
        by: PresenceId,
        settlement: &Settlement,
        now: Timestamp,
    ) -> Done<Settled> {
        let (job, id) = (settlement.run.job, settlement.run.id);
        let mut view = self.view_of_runs(job)?;
        let marked = view.live.get(&id).is_some_and(|run| run.mark.is_some());
        if marked || self.resting.contains(job) || self.counting.contains(job) {
            self.read_job(job, &mut view)?;
        }
        view.history = self.read_history(job, view.needs_to_settle(settlement, now))?;
        let has_ended = |holder| self.shared.presences().living(holder).is_err();
        let settled = view.settle(settlement, by, has_ended, now);
        self.apply(job, view.effects)?;
        Ok(settled)
    }
}

impl Settle<'_> {
    /// Takes an end in the views in which nothing follows from it: no run of the job waits, and the job neither rests nor
    /// counts it as a failure or after one.
    /// Takes a retry and a release in those in which the run is not marked. Changes nothing in any other.
    fn one(&mut self, row: &SettleRow, no: i64) -> Done<Option<Settled>> {
        let SettleRow { settlement, step } = row;
        let run = &settlement.run;
        match step {
            // What its holder left in the store is read on the slow path.
            Step::End(_) if run.payload_left.is_some() => Ok(None),
            Step::End(ended) => {
                if self.resting.contains(run.job)
                    || self.counts(ended)?
                    || self.crowded && self.has_waiting(run.job)?
                {
                    return Ok(None);
                }
                let token = params![run.id.as_bytes(), no, run.attempt.0];
                if self.remove.execute(token)? == 0 {
                    return Ok(Some(Settled::Stale));
                }
                *self.live = self.live.saturating_sub(1);
                self.archive.put(ended)?;
                Ok(Some(Settled::DONE))
            }
            Step::Retry { at, attempts } => {
                let sql = include_str!("sql/settle_retry.sql");
                let moved = self.conn.prepare_cached(sql)?.execute(params![
                    run.id.as_bytes(),
                    no,
                    run.attempt.0,
                    run.attempt.next().0,
                    at.as_millis(),
                    settlement.lost(),
                    attempts,
                    settlement.dispatched_at().map(Timestamp::as_millis),
                ])?;
                Ok((moved == 1).then_some(Settled::DONE))
            }
            // One that is to wait for its turn would have others to look at.
            Step::Release(wait) if wait.is_some_and(|wait| wait.reason == WaitReason::Turn) => {
                Ok(None)
            }
            Step::Release(wait) => {
                let sql = include_str!("sql/settle_release.sql");
                let reason = wait.map(|wait| wait.reason.code());
                let until = wait.and_then(|wait| wait.until).map(Timestamp::as_millis);
                let token = params![run.id.as_bytes(), no, run.attempt.0, reason, until];
                let moved = self.conn.prepare_cached(sql)?.execute(token)?;
                Ok((moved == 1).then_some(Settled::DONE))
            }
        }
    }

    /// Whether its job's count of failures may change with it.
    fn counts(&self, ended: &EndedRow) -> Done<bool> {
        let run = &ended.run;
        Ok(self.counting.contains(run.job)
            && (run.state == RunState::Dead || has_failures(self.conn, run.job)?))
    }

    fn has_waiting(&self, job: JobId) -> Done<bool> {
        let sql = include_str!("sql/has_waiting.sql");
        Ok(self.conn.prepare_cached(sql)?.exists([job.as_bytes()])?)
    }
}
