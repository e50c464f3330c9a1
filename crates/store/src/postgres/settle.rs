//! Settle: how attempts end, and with them most runs. Ends that mean nothing to anyone else take one statement together
//! (the fast path); what that leaves over takes the slow path. Jobs whose runs may wait for one another, or that rest, are
//! locked first: fire and start_run hold the job while they look at what lives, so no run can begin to wait for one that
//! has just gone.
//!
//! And withdrawal: runs that end before an end of their own. Only the holder of a claim knows what it dispatched, so what
//! is held is marked, and its holder answers.

use std::collections::{BTreeMap, BTreeSet};

use model::view::View;
use model::{Mark, PresenceId, RunId, TenantId, Timestamp};
use uuid::Uuid;

use super::batch::{Answers, fast, left, merged};
use super::fault::{Done, Fault};
use super::fire::{ids, live_named};
use super::pool::Conn;
use super::put::{EndedColumns, Param, PlainEndColumns};
use super::rows::text;
use super::store::PgStore;
use super::views::{Lock, Views, ended_named};
use crate::audit::Change;
use crate::row::{EndedRow, Payloads};
use crate::{Cancelled, Settled, Settlement, StoreError, Withdrawal};

/// Ends by their runs, each with its place among the settlements.
type Rows = BTreeMap<RunId, (usize, EndedRow)>;

/// Those of a batch that a statement has ended.
fn take(rows: &mut Rows, gone: BTreeSet<RunId>) -> Vec<(usize, Settled)> {
    let ended = |id: RunId| rows.remove(&id).map(|(index, _)| (index, Settled::DONE));
    gone.into_iter().filter_map(ended).collect()
}

impl PgStore {
    pub(super) async fn settle_all(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        self.now();
        let done = self.settle_fast_path(by, settlements).await?;
        let rest = left(settlements, &done);
        if rest.is_empty() && !settlements.is_empty() {
            return Ok(done.into_values().collect());
        }
        let slow = |batch| self.settle_slow_path(by, batch);
        let slow = self.in_halves(&rest, slow, Settled::Refused).await?;
        Ok(merged(settlements.len(), done, slow))
    }

    /// One statement for all simple ends of our own, and another for those that it leaves; answers those that they ended.
    async fn settle_fast_path(
        &self,
        by: PresenceId,
        settlements: &[Settlement],
    ) -> Result<Answers<Settled>, StoreError> {
        let mut rows: Rows = BTreeMap::new();
        let taken = settlements.iter().enumerate();
        for (index, settlement) in taken.filter(|_| self.fast_paths.are_on) {
            let ours = settlement.run.claim == Some(by) && settlement.attempt.is_some();
            if let Some((state, reason)) = settlement.end().filter(|_| ours) {
                let run = settlement.ended(state, reason, Timestamp::MIN);
                // The slow path makes days, and notes stragglers that end. One that cannot be encoded is refused there.
                let known = self.partitions.take(run.partition());
                if let Some(row) = EndedRow::new(run).ok().filter(|_| known) {
                    rows.entry(row.run.id).or_insert((index, row));
                }
            }
        }
        let mut done = Answers::new();
        if rows.is_empty() {
            return Ok(done);
        }
        let gone = fast(self.end_plain(by, &rows).await)?;
        self.fast_paths.wrote("settle_plain", gone.len());
        done.extend(take(&mut rows, gone));
        if !rows.is_empty() {
            let gone = fast(self.end_locked(by, &rows).await)?;
            self.fast_paths.wrote("settle", gone.len());
            done.extend(take(&mut rows, gone));
        }
        Ok(done)
    }

    /// First attempts that succeeded, of jobs to which that means nothing.
    async fn end_plain(&self, by: PresenceId, rows: &Rows) -> Done<BTreeSet<RunId>> {
        let mut columns = PlainEndColumns::default();
        // Attempts that end together were made by one node, but for those of a claim that was taken over.
        let actor = rows.values().find_map(|(_, row)| row.actor());
        let plain = rows.values().map(|(_, row)| row);
        for row in plain.filter(|row| PlainEndColumns::hold(row, actor)) {
            columns.push(row);
        }
        if columns.id.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut params: Vec<Param<'_>> = vec![&by.0];
        params.extend(columns.params());
        let name = actor.map(text);
        params.push(&name);
        let conn = self.pool.get().await?;
        ids(&conn
            .rows(include_str!("sql/settle_plain.sql"), &params)
            .await?)
    }

    /// Jobs are locked, and then runs end.
    async fn end_locked(&self, by: PresenceId, rows: &Rows) -> Done<BTreeSet<RunId>> {
        let columns = EndedColumns::new(rows.values().map(|(_, row)| row));
        let names: Vec<Uuid> = rows.keys().map(|id| id.0).collect();
        let mut params = columns.params();
        params.push(&by.0);
        let conn = self.pool.get().await?;
        let lock = conn.prepare(include_str!("sql/settle_lock.sql")).await?;
        let settle = conn.prepare(include_str!("sql/settle.sql")).await?;
        let named: [Param<'_>; 1] = [&names];
        conn.begin()?;
        let (locked, gone) = tokio::try_join!(biased; conn.query_prepared(&lock, &named), conn.query_prepared(&settle, &params))?;
        let locked = locked.iter().map(|row| row.try_get(0));
        let locked: BTreeSet<Uuid> = locked.collect::<Result<_, _>>()?;
        let mut ended = BTreeSet::new();
        for row in &gone {
            let (job, exclusive): (Uuid, bool) = (row.try_get(1)?, row.try_get(2)?);
            if exclusive && !locked.contains(&job) {
                // It began to mean something between the two.
                return Err(Fault::Overtaken);
            }
            ended.insert(RunId(row.try_get(0)?));
        }
        conn.commit().await?;
        Ok(ended)
    }

    async fn settle_slow_path(
        &self,
        by: PresenceId,
        settlements: &[&Settlement],
    ) -> Done<Vec<Settled>> {
        let conn = self.pool.begin().await?;
        let held = self.hold(&conn, by).await?;
        let (_, now) = held.ok_or(StoreError::Fenced)?;
        let mut views = views(&conn, settlements, now).await?;
        let others = settlements.iter().filter_map(|it| it.run.claim);
        let others: BTreeSet<Uuid> = others.filter(|it| *it != by).map(|it| it.0).collect();
        let gone = gone(&conn, &others.into_iter().collect::<Vec<_>>()).await?;
        let settled = settlements.iter().map(|settlement| {
            let view = views.view(settlement.run.job);
            view.settle(settlement, by, |holder| gone.contains(&holder), now)
        });
        let answers = settled.collect();
        views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(answers)
    }
}

/// What decides a batch. Only the run itself is read where its end means nothing to others and nobody wants it back: if
/// that changes meanwhile, the row is not as it was read.
async fn views(conn: &Conn, settlements: &[&Settlement], now: Timestamp) -> Done<Views> {
    let names: Vec<Uuid> = settlements.iter().map(|it| it.run.id.0).collect();
    let live = live_named(conn, &names, Payloads::All).await?;
    let matter = live
        .iter()
        .filter(|row| row.exclusive || row.run.mark.is_some());
    let jobs: BTreeSet<Uuid> = matter.map(|row| row.run.job.0).collect();
    let jobs: Vec<Uuid> = jobs.into_iter().collect();
    let mut views = if jobs.is_empty() {
        Views::default()
    } else {
        Views::load(conn, &jobs, Lock::Jobs).await?
    };
    for row in live {
        if jobs.binary_search(&row.run.job.0).is_err() {
            views.add(row)?;
        }
    }
    views.read_concerned(conn).await?;
    let marked = settlements.iter().filter(|it| {
        let live = views.run(it.run.job, it.run.id);
        live.is_some_and(|run| run.mark == Some(Mark::TakeBack))
    });
    let marked: BTreeSet<Uuid> = marked.map(|it| it.run.job.0).collect();
    let marked: Vec<Uuid> = marked.into_iter().collect();
    views.read_jobs(conn, &marked, Payloads::Small).await?;
    let needs: Vec<_> = settlements
        .iter()
        .map(|it| (it.run.job, views.view(it.run.job).needs_to_settle(it, now)))
        .collect();
    views.read_history(conn, &needs).await?;
    Ok(views)
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

impl PgStore {
    pub(super) async fn try_cancel_run(
        &self,
        tenant: TenantId,
        id: RunId,
        now: Timestamp,
    ) -> Done<Cancelled> {
        let conn = self.clients.begin().await?;
        let live = live_named(&conn, &[id.0], Payloads::Small).await?;
        if let Some(job) = live.first().map(|row| row.run.job) {
            let mut views = Views::load(&conn, &[job.0], Lock::JobsAndRuns).await?;
            if views.run(job, id).is_some() {
                views.read_concerned(&conn).await?;
                let answer = views.view(job).cancel_run(tenant, id, now);
                views.flush(self, &conn).await?;
                if matches!(answer, Cancelled::Done(_) | Cancelled::Marked) {
                    let change = Change::run_cancelled(tenant, job, id);
                    self.audit(&conn, &[change]).await?;
                }
                conn.commit().await?;
                return Ok(answer);
            }
        }
        let ended = ended_named(&conn, &[id.0]).await?.remove(&id);
        let mut view = View::default();
        view.history.named = ended.filter(|(of, _)| *of == tenant).map(|(_, how)| how);
        Ok(view.cancel_run(tenant, id, now))
    }

    pub(super) async fn try_withdraw(
        &self,
        presence: PresenceId,
        answers: &[Withdrawal],
        now: Timestamp,
    ) -> Done<()> {
        let conn = self.pool.begin().await?;
        self.hold(&conn, presence)
            .await?
            .ok_or(StoreError::Fenced)?;
        let names: Vec<Uuid> = answers.iter().map(|answer| answer.run.0).collect();
        let live = live_named(&conn, &names, Payloads::Small).await?;
        let marked = live
            .iter()
            .filter(|row| row.run.claim == Some(presence) && row.run.mark.is_some());
        let jobs: BTreeSet<Uuid> = marked.map(|row| row.run.job.0).collect();
        let jobs: Vec<Uuid> = jobs.into_iter().collect();
        if jobs.is_empty() {
            return Ok(());
        }
        let mut views = Views::load(&conn, &jobs, Lock::JobsAndRuns).await?;
        views.read_jobs(&conn, &jobs, Payloads::Small).await?;
        let needs = views.jobs.iter();
        let needs = needs.map(|(job, held)| (*job, held.view.needs_to_take_back()));
        let needs: Vec<_> = needs.collect();
        views.read_history(&conn, &needs).await?;
        for answer in answers {
            let job = live.iter().find(|row| row.run.id == answer.run);
            if let Some(job) = job.map(|row| row.run.job) {
                views.view(job).withdraw(*answer, presence, now);
            }
        }
        views.flush(self, &conn).await?;
        conn.commit().await?;
        Ok(())
    }
}
