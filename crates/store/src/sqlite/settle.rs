//! Settle: how attempts end, and with them most runs. One delete and one insert for each; what is
//! written comes from the settlement itself, so nothing is read.

use model::{Ask, Attempt, AttemptNo, JobId, PresenceId, RunId, RunState, Timestamp, Verdict};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};

use super::archive::{Archive, ended};
use super::db::Db;
use super::fault::{Done, bad_row};
use super::history::live_run;
use super::rest::Resting;
use super::rows::{EndedRow, Word};
use super::withdraw::free_waiting;
use crate::doc;
use crate::{Settled, Settlement, StoreError};

/// A settlement, encoded before it reaches the writer.
pub(super) struct SettleRow {
    run: RunId,
    job: JobId,
    claim: Option<PresenceId>,
    attempt: AttemptNo,
    step: Step,
}

enum Step {
    End(Box<EndedRow>),
    /// The whole settlement comes along for the rare case that someone asked for the end instead.
    Retry {
        at: Timestamp,
        lost: u32,
        attempts: Option<Vec<u8>>,
        settlement: Box<Settlement>,
    },
    Release(Box<Settlement>),
}

impl SettleRow {
    /// `now` stands in for the moment of an attempt that never was.
    pub fn new(settlement: &Settlement, now: Timestamp) -> Result<Self, StoreError> {
        let Settlement {
            run,
            verdict,
            attempt,
        } = settlement;
        let bad = |error| bad_row(run.id, &error);
        let end = |state, reason| {
            let ended = settlement.ended(state, reason, now);
            EndedRow::new(ended)
                .map(|row| Step::End(Box::new(row)))
                .map_err(bad)
        };
        let step = match verdict {
            Verdict::Succeed => end(RunState::Succeeded, None)?,
            Verdict::Bury(reason) => end(RunState::Dead, Some(*reason))?,
            Verdict::Cancel(reason) => end(RunState::Cancelled, Some(*reason))?,
            Verdict::RetryAt(at) => {
                let earlier = attempt.clone().map(Attempt::as_earlier);
                let attempts: Vec<_> = run.attempts.iter().cloned().chain(earlier).collect();
                Step::Retry {
                    at: *at,
                    lost: settlement.lost(),
                    attempts: doc::encode_attempts(&attempts).map_err(bad)?,
                    settlement: Box::new(settlement.clone()),
                }
            }
            Verdict::Release => Step::Release(Box::new(settlement.clone())),
        };
        Ok(Self {
            run: run.id,
            job: run.job,
            claim: run.claim,
            attempt: run.attempt,
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
    resting: &'a mut Resting,
    crowded: bool,
}

/// It goes on in the live table: nothing was freed, and nothing is due.
const MOVED: Settled = Settled::Done {
    freed: None,
    due_at: None,
};

impl Db {
    pub fn settle(
        &mut self,
        by: PresenceId,
        rows: &[SettleRow],
        now: Timestamp,
    ) -> Done<Vec<Settled>> {
        let mut answers = Vec::with_capacity(rows.len());
        self.shared.presences().living(by)?;
        let mut token = (None, None);
        while let Some(rest) = rows.get(answers.len()..).filter(|rest| !rest.is_empty()) {
            if let Some((row, no)) = self.settle_quickly(by, rest, &mut token, &mut answers)? {
                let answer = self.settle_slowly(row, no, now)?;
                answers.push(answer);
            }
        }
        if self.crowded {
            self.crowded = self.is_crowded()?;
        }
        Ok(answers)
    }

    /// Ends runs up to the first settlement that is not simply an end, which it answers.
    fn settle_quickly<'r>(
        &mut self,
        by: PresenceId,
        rows: &'r [SettleRow],
        token: &mut (Option<PresenceId>, Option<i64>),
        answers: &mut Vec<Settled>,
    ) -> Done<Option<(&'r SettleRow, i64)>> {
        let Self {
            conn,
            ranges,
            live,
            shared,
            crowded,
            resting,
            ..
        } = self;
        let mut settle = Settle {
            conn,
            remove: conn.prepare_cached(include_str!("sql/settle.sql"))?,
            archive: Archive::new(conn, ranges),
            live,
            resting,
            crowded: *crowded,
        };
        for row in rows {
            if token.0 != row.claim {
                *token = (row.claim, shared.presences().settles(by, row.claim));
            }
            let Some(no) = token.1 else {
                answers.push(Settled::Stale);
                continue;
            };
            match &row.step {
                Step::End(ended) => answers.push(settle.end(row, no, ended)?),
                Step::Retry { .. } | Step::Release(_) => return Ok(Some((row, no))),
            }
        }
        Ok(None)
    }

    fn settle_slowly(&mut self, row: &SettleRow, no: i64, now: Timestamp) -> Done<Settled> {
        let settlement = match &row.step {
            Step::End(_) => return Ok(Settled::Stale),
            Step::Retry {
                at,
                lost,
                attempts,
                settlement,
            } => {
                let mut update = self
                    .conn
                    .prepare_cached(include_str!("sql/settle_retry.sql"))?;
                let moved = update.execute(params![
                    row.run.as_bytes(),
                    no,
                    row.attempt.0,
                    row.attempt.next().0,
                    at.as_millis(),
                    lost,
                    attempts,
                    settlement.dispatched_at().map(Timestamp::as_millis),
                ])?;
                if moved == 1 {
                    return Ok(MOVED);
                }
                settlement
            }
            Step::Release(settlement) => {
                let mut update = self
                    .conn
                    .prepare_cached(include_str!("sql/settle_release.sql"))?;
                let moved = update.execute(params![row.run.as_bytes(), no, row.attempt.0])?;
                if moved == 1 {
                    return Ok(MOVED);
                }
                settlement
            }
        };
        self.settle_as_asked(row, no, settlement, now)
    }

    /// The run could not simply go on: its claim is not the one named, or someone asked for an end.
    fn settle_as_asked(
        &mut self,
        row: &SettleRow,
        no: i64,
        settlement: &Settlement,
        now: Timestamp,
    ) -> Done<Settled> {
        let mut select = self
            .conn
            .prepare_cached(include_str!("sql/settle_ask.sql"))?;
        let ask = select
            .query_row(params![row.run.as_bytes(), no, row.attempt.0], |row| {
                row.get::<_, Option<Word<Ask>>>(0)
            })
            .optional()?;
        drop(select);
        match ask.flatten() {
            Some(Word(Ask::Cancel(reason))) => {
                self.remove_live(row.run)?;
                let run = settlement.ended(RunState::Cancelled, Some(reason), now);
                self.put_ended(&ended(run)?)?;
            }
            Some(Word(Ask::TakeBack)) => {
                let Some(run) = live_run(&self.conn, row.run)? else {
                    return Ok(Settled::Stale);
                };
                self.take_back_alone(&run, now)?;
            }
            Some(Word(Ask::TooLate)) | None => return Ok(Settled::Stale),
        }
        let attempt = settlement.attempt.as_ref();
        let ended_at = attempt.map_or(now, |attempt| attempt.settled_at);
        Ok(Settled::Done {
            freed: self.free_waiting(row.job)?,
            due_at: self.wake(row.job, ended_at)?,
        })
    }
}

impl Settle<'_> {
    fn end(&mut self, row: &SettleRow, no: i64, ended: &EndedRow) -> Done<Settled> {
        let gone = self
            .remove
            .execute(params![row.run.as_bytes(), no, row.attempt.0])?;
        if gone == 0 {
            return Ok(Settled::Stale);
        }
        *self.live = self.live.saturating_sub(1);
        self.archive.put(ended)?;
        let freed = match self.crowded {
            true => free_waiting(self.conn, row.job)?,
            false => None,
        };
        let ended_at = ended.run.settled_at.unwrap_or(ended.run.due_at);
        let due_at = self.resting.wake(self.conn, row.job, ended_at)?;
        Ok(Settled::Done { freed, due_at })
    }
}
