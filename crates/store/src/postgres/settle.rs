//! Settle: how attempts end, and with them most runs. Ends that mean nothing to anyone else take one statement
//! together; what that leaves over is looked at closely. Jobs whose runs may wait for one another, or that rest, are
//! locked first: fire and start_run hold the job while they look at what lives, so no run can begin to wait for one
//! that has just gone.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Ask, Attempt, AttemptNo, JobId, PresenceId, Reason, Run, RunId, RunState, Timestamp, Verdict,
};
use uuid::Uuid;

use super::fault::{Done, Fault, bad_row};
use super::fire::{ended, ids, live_named};
use super::pool::Conn;
use super::put::{EndedColumns, PlainColumns};
use super::rows::{EndedRow, LiveRow};
use super::scene::{Lock, Scene};
use super::store::PgStore;
use crate::doc;
use crate::{Settled, Settlement, StoreError};

/// It goes on in the live table, or nothing follows from its end.
const DONE: Settled = Settled::Done {
    freed: None,
    due_at: None,
};

/// How a verdict ends a run, if it does.
fn end_of(verdict: Verdict) -> Option<(RunState, Option<Reason>)> {
    match verdict {
        Verdict::Succeed => Some((RunState::Succeeded, None)),
        Verdict::Bury(reason) => Some((RunState::Dead, Some(reason))),
        Verdict::Cancel(reason) => Some((RunState::Cancelled, Some(reason))),
        Verdict::RetryAt(_) | Verdict::Release => None,
    }
}

type Param<'a> = &'a (dyn tokio_postgres::types::ToSql + Sync);

/// Ends by their runs, each with its place among the settlements.
type Rows = BTreeMap<RunId, (usize, EndedRow)>;

/// Those of a batch that a statement has ended.
fn take(rows: &mut Rows, gone: BTreeSet<RunId>) -> Vec<(usize, Settled)> {
    let ended = |id: RunId| rows.remove(&id).map(|(index, _)| (index, DONE));
    gone.into_iter().filter_map(ended).collect()
}

/// What a batch was refused for is found out by a closer look.
fn left_to_others(gone: Done<BTreeSet<RunId>>) -> Result<BTreeSet<RunId>, StoreError> {
    match gone {
        Err(fault) if fault.is_about_data() || fault.is_collision() => Ok(BTreeSet::new()),
        gone => gone.map_err(StoreError::from),
    }
}

impl PgStore {
    pub(super) async fn settle_all(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        self.now();
        let mut done = self.settle_quickly(by, settlements).await?;
        let rest: Vec<(usize, &Settlement)> = settlements
            .iter()
            .enumerate()
            .filter(|(index, _)| !done.contains_key(index))
            .collect();
        if !rest.is_empty() || settlements.is_empty() {
            self.settle_slowly(by, &rest, &mut done).await?;
        }
        let answers = (0..settlements.len()).map(|index| done.remove(&index));
        Ok(answers
            .map(|answer| answer.unwrap_or(Settled::Stale))
            .collect())
    }

    /// One statement for all simple ends of our own, and another for those that it leaves; answers those that they ended.
    async fn settle_quickly(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<BTreeMap<usize, Settled>, StoreError> {
        let mut rows: Rows = BTreeMap::new();
        for (index, settlement) in settlements.iter().enumerate() {
            let ours = settlement.run.claim == Some(by) && settlement.attempt.is_some();
            if let Some((state, reason)) = end_of(settlement.verdict).filter(|_| ours) {
                let run = settlement.ended(state, reason, Timestamp::MIN);
                let row = ended(run)?;
                rows.entry(row.run.id).or_insert((index, row));
            }
        }
        let mut done = BTreeMap::new();
        if rows.is_empty() {
            return Ok(done);
        }
        self.open_days(rows.keys().copied()).await?;
        let gone = left_to_others(self.end_plainly(by, &rows).await)?;
        done.extend(take(&mut rows, gone));
        if !rows.is_empty() {
            let gone = left_to_others(self.end_quickly(by, &rows).await)?;
            done.extend(take(&mut rows, gone));
        }
        Ok(done)
    }

    /// First attempts that succeeded, of jobs to which that means nothing.
    async fn end_plainly(&self, by: PresenceId, rows: &Rows) -> Done<BTreeSet<RunId>> {
        let mut columns = PlainColumns::default();
        for (_, row) in rows.values().filter(|(_, row)| PlainColumns::tell(row)) {
            columns.push(row);
        }
        if columns.id.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut params: Vec<Param<'_>> = vec![&by.0];
        params.extend(columns.params());
        let conn = self.pool.get().await?;
        ids(&conn
            .rows(include_str!("sql/settle_plain.sql"), &params)
            .await?)
    }

    /// Jobs are locked, and then runs end.
    async fn end_quickly(&self, by: PresenceId, rows: &Rows) -> Done<BTreeSet<RunId>> {
        let columns = EndedColumns::new(rows.values().map(|(_, row)| row));
        let names: Vec<Uuid> = rows.keys().map(|id| id.0).collect();
        let mut params = columns.params();
        params.push(&by.0);
        let conn = self.pool.get().await?;
        let lock = conn.prepare(include_str!("sql/settle_lock.sql")).await?;
        let settle = conn.prepare(include_str!("sql/settle.sql")).await?;
        let named: [Param<'_>; 1] = [&names];
        conn.begin()?;
        let (locked, gone) =
            tokio::try_join!(biased; conn.ask(&lock, &named), conn.ask(&settle, &params))?;
        let locked = locked.iter().map(|row| row.try_get(0));
        let locked: BTreeSet<Uuid> = locked.collect::<Result<_, _>>()?;
        let mut ended = BTreeSet::new();
        for row in &gone {
            let (job, exclusive): (Uuid, bool) = (row.try_get(1)?, row.try_get(2)?);
            if exclusive && !locked.contains(&job) {
                // It was edited between the two.
                return Err(Fault::Overtaken);
            }
            ended.insert(RunId(row.try_get(0)?));
        }
        conn.commit().await?;
        Ok(ended)
    }

    /// A batch that PostgreSQL refuses for its data is halved until the bad one stands alone.
    async fn settle_slowly(
        &self,
        by: PresenceId,
        settlements: &[(usize, &Settlement)],
        done: &mut BTreeMap<usize, Settled>,
    ) -> Result<(), StoreError> {
        let mut batches = vec![settlements];
        let mut refused = None;
        while let Some(batch) = batches.pop() {
            let mut tries = 0;
            let settled = loop {
                match self.settle_closely(by, batch).await {
                    Err(fault) if self.again(&fault, tries) => tries += 1,
                    settled => break settled,
                }
            };
            match settled {
                Ok(settled) => {
                    done.extend(batch.iter().map(|(index, _)| *index).zip(settled));
                }
                Err(fault) if fault.is_about_data() && batch.len() > 1 => {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    batches.extend([second, first]);
                }
                // The others are settled first.
                Err(fault) if fault.is_about_data() => refused = Some(fault.into()),
                Err(fault) => return Err(fault.into()),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    async fn settle_closely(
        &self,
        by: PresenceId,
        settlements: &[(usize, &Settlement)],
    ) -> Done<Vec<Settled>> {
        let conn = self.pool.begin().await?;
        let held = self.hold(&conn, by).await?;
        let (_, now) = held.ok_or(StoreError::Barred)?;
        let mut look = Look::load(&conn, by, settlements).await?;
        let mut answers = Vec::with_capacity(settlements.len());
        for (_, settlement) in settlements {
            answers.push(look.settle(settlement, now)?);
        }
        look.scene.writes.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answers)
    }
}

/// Everything that decides a batch.
struct Look {
    scene: Scene,
    by: PresenceId,
    /// Holders that have ended.
    gone: BTreeSet<PresenceId>,
}

impl Look {
    async fn load(conn: &Conn, by: PresenceId, settlements: &[(usize, &Settlement)]) -> Done<Self> {
        let runs = settlements.iter().map(|(_, it)| &it.run);
        let names: Vec<Uuid> = runs.clone().map(|run| run.id.0).collect();
        let live = live_named(conn, &names).await?;
        let exclusive = live.values().filter(|row| row.exclusive);
        let jobs: BTreeSet<Uuid> = exclusive.map(|row| row.run.job.0).collect();
        let jobs: Vec<Uuid> = jobs.into_iter().collect();
        let mut scene = match jobs.is_empty() {
            true => Scene::default(),
            false => Scene::load(conn, &jobs, Lock::Jobs).await?,
        };
        for row in live.into_values().filter(|row| !row.exclusive) {
            if scene.run(row.run.job, row.run.id).is_none() {
                scene.add(row);
            }
        }
        let back = |row: &LiveRow| row.run.ask == Some(Ask::TakeBack);
        let mut full: BTreeSet<Uuid> = scene.resting().into_iter().collect();
        let mut taken = BTreeSet::new();
        for run in runs.clone() {
            let row = scene.run(run.job, run.id).filter(|row| back(row));
            taken.extend(row.map(|row| row.run.job));
        }
        full.extend(taken.iter().map(|job| job.0));
        let full: Vec<Uuid> = full.into_iter().collect();
        scene.read_full(conn, &full).await?;
        let taken: Vec<JobId> = taken.into_iter().collect();
        scene.read_ran_before(conn, &taken).await?;
        let others = runs.filter_map(|run| run.claim).filter(|it| *it != by);
        let others: BTreeSet<Uuid> = others.map(|it| it.0).collect();
        let gone = gone(conn, &others.into_iter().collect::<Vec<_>>()).await?;
        Ok(Self { scene, by, gone })
    }

    fn settle(&mut self, settlement: &Settlement, now: Timestamp) -> Done<Settled> {
        let (job, id) = (settlement.run.job, settlement.run.id);
        let live = self.scene.run(job, id);
        let Some(live) = live.filter(|live| self.may_settle(&live.run, &settlement.run)) else {
            return Ok(Settled::Stale);
        };
        match (settlement.verdict, live.run.ask) {
            (Verdict::Release, None | Some(Ask::TooLate)) => {
                let released = release(live.clone());
                self.scene.change(released);
                return Ok(DONE);
            }
            (Verdict::Release, Some(Ask::TakeBack)) => {
                self.scene.take_back(job, id, now);
                self.scene.rest(job);
            }
            (Verdict::RetryAt(at), None | Some(Ask::TakeBack | Ask::TooLate)) => {
                let retried = retry(live.clone(), settlement, at)?;
                self.scene.change(retried);
                return Ok(DONE);
            }
            (Verdict::Release | Verdict::RetryAt(_), Some(Ask::Cancel(reason))) => {
                self.end(settlement, RunState::Cancelled, Some(reason), now)?;
            }
            (verdict @ (Verdict::Succeed | Verdict::Bury(_) | Verdict::Cancel(_)), _) => {
                if let Some((state, reason)) = end_of(verdict) {
                    self.end(settlement, state, reason, now)?;
                }
            }
        }
        Ok(self.free(job, settlement, now))
    }

    fn free(&mut self, job: JobId, settlement: &Settlement, now: Timestamp) -> Settled {
        let attempt = settlement.attempt.as_ref();
        let ended_at = attempt.map_or(now, |attempt| attempt.settled_at);
        // Of a job that is not here nothing waits, and it does not rest.
        let (freed, due_at) = match self.scene.jobs.contains_key(&job) {
            true => self.scene.free(job, ended_at),
            false => (None, None),
        };
        Settled::Done { freed, due_at }
    }

    /// The claim is the one named, and its holder is `by` or gone.
    fn may_settle(&self, live: &Run, named: &Run) -> bool {
        let token = live.claim == named.claim && live.attempt == named.attempt;
        let holder = live.claim;
        token && holder.is_some_and(|holder| holder == self.by || self.gone.contains(&holder))
    }

    fn end(
        &mut self,
        settlement: &Settlement,
        state: RunState,
        reason: Option<Reason>,
        now: Timestamp,
    ) -> Done<()> {
        let run = &settlement.run;
        self.scene.remove(run.job, run.id);
        let row = ended(settlement.ended(state, reason, now))?;
        self.scene.end(row);
        Ok(())
    }
}

/// Back to waiting for a holder, under the same number.
fn release(mut row: LiveRow) -> LiveRow {
    row.run.claim = None;
    row.run.ask = None;
    row.run.state = match row.run.attempt {
        AttemptNo::FIRST => RunState::Ready,
        AttemptNo(_) => RunState::Retrying,
    };
    // A first attempt that is released was never dispatched.
    let first = row.run.attempt == AttemptNo::FIRST;
    row.run.dispatched_at = row.run.dispatched_at.filter(|_| !first);
    row
}

fn retry(mut row: LiveRow, settlement: &Settlement, at: Timestamp) -> Done<LiveRow> {
    let Settlement { run, attempt, .. } = settlement;
    row.run.attempt = run.attempt.next();
    row.run.state = RunState::Retrying;
    row.run.due_at = at;
    row.run.claim = None;
    row.run.ask = None;
    row.run.dispatched_at = row.run.dispatched_at.or(settlement.dispatched_at());
    row.run.lost = settlement.lost();
    let earlier = attempt.clone().map(Attempt::as_earlier);
    let attempts: Vec<_> = run.attempts.iter().cloned().chain(earlier).collect();
    row.attempts = doc::encode_attempts(&attempts).map_err(|error| bad_row(run.id, &error))?;
    Ok(row)
}

/// Which of these presences have ended.
async fn gone(conn: &Conn, ids: &[Uuid]) -> Done<BTreeSet<PresenceId>> {
    let mut gone = BTreeSet::new();
    if ids.is_empty() {
        return Ok(gone);
    }
    for row in &conn.rows(include_str!("sql/gone.sql"), &[&ids]).await? {
        gone.insert(PresenceId(row.try_get(0)?));
    }
    Ok(gone)
}
