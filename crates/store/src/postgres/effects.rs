//! Effects: what was decided about the jobs of one call is written as one statement for each table.

use futures_util::future::try_join_all;
use model::{Job, Run};

use super::audit::EntryColumns;
use super::fault::{Done, Fault};
use super::handed::change_handed;
use super::pool::Conn;
use super::put::{
    ChangeColumns, EndedColumns, ExclusiveColumns, LiveColumns, Param, PauseColumns, SkipColumns,
    StandingColumns, TokenColumns,
};
use super::rows::text;
use super::store::PgStore;
use super::views::Views;
use crate::Acting;
use crate::audit::Change;
use crate::code::bad_row;
use crate::doc;
use crate::row::EndedRow;

const PUT_JOBS: &str = include_str!("sql/put_jobs.sql");
const DELETE_SKIPS: &str = include_str!("sql/delete_skips.sql");
const SHORTEN_SKIPS: &str = include_str!("sql/shorten_skips.sql");
const CHANGE_LIVE: &str = include_str!("sql/change_live.sql");
const GONE_LIVE: &str = include_str!("sql/gone_live.sql");
const SET_EXCLUSIVE: &str = include_str!("sql/set_exclusive.sql");
const PUT_ENDED: &str = include_str!("sql/put_ended.sql");
const PUT_LIVE: &str = include_str!("sql/put_live.sql");

/// A statement, and what it writes.
struct Write<'a> {
    sql: &'static str,
    params: Vec<Param<'a>>,
    rows: usize,
    /// Someone else may have been faster with a run that was not locked: it is then not as it was read.
    all: bool,
}

#[derive(Default)]
struct Columns<'a> {
    standings: StandingColumns,
    skips: SkipColumns,
    changed: ChangeColumns,
    removed: TokenColumns,
    exclusive: ExclusiveColumns,
    inserted: LiveColumns<'a>,
}

impl Views {
    /// Writes everything in the order of locks, all in flight at once. A day of history that is entered and not there is
    /// made while nothing is locked, and then the call is to be done again.
    pub(super) async fn flush(mut self, store: &PgStore, conn: &Conn) -> Done<()> {
        let entered = self.jobs.values().map(|held| &held.view.effects.history);
        let entered: Vec<_> = entered
            .flat_map(|it| it.values().map(Run::partition))
            .collect();
        if !entered.iter().all(|entry| store.partitions.take(*entry)) {
            conn.rollback().await?;
            store.open_partitions(entered.into_iter()).await?;
            return Err(Fault::Overtaken);
        }
        let ended = self.ended()?;
        let columns = self.columns()?;
        let ended = EndedColumns::new(&ended);
        write_all(conn, &columns.writes(&ended)).await?;
        let jobs = self.jobs.values();
        let handed = jobs.flat_map(|held| &held.view.effects.handed);
        change_handed(conn, handed).await?;
        store.audit(conn, &self.ends()).await?;
        self.write_paused(store, conn).await?;
        for (id, held) in &self.jobs {
            if let Some((why, at)) = &held.view.effects.park {
                let parked = [(*id, text(why).into_owned())];
                store.park_on(conn, &parked, *at).await?;
            }
        }
        Ok(())
    }

    /// Jobs that the system paused: their versions, why, and their entries in the audit log.
    async fn write_paused(&self, store: &PgStore, conn: &Conn) -> Done<()> {
        let effects = self.jobs.values().map(|held| &held.view.effects);
        let paused = effects.filter_map(|it| it.paused.as_deref().zip(it.job.as_ref()));
        let paused: Vec<(&Job, &Job)> = paused.collect();
        if paused.is_empty() {
            return Ok(());
        }
        let (mut columns, mut entries) = (PauseColumns::default(), EntryColumns::default());
        let changes = paused.iter().map(|(was, is)| Change::job_changed(was, is));
        let changes: Vec<Change> = changes.collect();
        let system = Acting::default();
        for ((_, is), change) in paused.iter().zip(&changes) {
            columns.push(is);
            entries.push(change, &system);
        }
        conn.execute(include_str!("sql/pause_jobs.sql"), &columns.params())
            .await?;
        store.enter(conn, &entries).await
    }

    /// What enters history, in the order of ids.
    fn ended(&mut self) -> Done<Vec<EndedRow>> {
        let mut rows = Vec::new();
        for held in self.jobs.values_mut() {
            for (_, run) in std::mem::take(&mut held.view.effects.history) {
                rows.push(EndedRow::new(run)?);
            }
        }
        rows.sort_by_key(|row| row.run.id);
        Ok(rows)
    }

    fn columns(&self) -> Done<Columns<'_>> {
        let mut columns = Columns::default();
        for held in self.jobs.values() {
            let effects = &held.view.effects;
            if let Some(job) = &effects.job {
                columns.standings.push(job);
            }
            for (id, left) in &effects.skips {
                columns.skips.push(*id, *left);
            }
            for run in &effects.remove {
                if let Some(stored) = held.stored.get(&run.id) {
                    columns.removed.push(run, stored);
                }
            }
            for (id, changed) in &effects.change {
                let Some(stored) = held.stored.get(id) else {
                    continue;
                };
                let attempts = if changed.now.attempts == changed.was.attempts {
                    stored.attempts.clone()
                } else {
                    let attempts =
                        doc::encode_live(changed.now.trace.as_deref(), &changed.now.attempts);
                    attempts.map_err(|error| bad_row(id, &error))?
                };
                columns.changed.push(changed, stored, attempts);
            }
            for id in held.view.live.keys() {
                let Some(stored) = held.stored.get(id) else {
                    continue;
                };
                let exclusive = held.exclusive(stored.exclusive);
                if exclusive != stored.exclusive {
                    columns.exclusive.push(*id, exclusive);
                }
            }
            for run in &effects.insert {
                let no = run.claim.and(self.no);
                let attempts = doc::encode_live(run.trace.as_deref(), &run.attempts);
                let attempts = attempts.map_err(|error| bad_row(run.id, &error))?;
                columns
                    .inserted
                    .push(run, no, held.exclusive(true), attempts);
            }
        }
        Ok(columns)
    }
}

impl Columns<'_> {
    /// Skip records are deleted before others are recorded in their place.
    fn writes<'a>(&'a self, ended: &'a EndedColumns<'_>) -> [Write<'a>; 8] {
        let write = |sql, params, rows| Write {
            sql,
            params,
            rows,
            all: false,
        };
        let as_read = |sql, params, rows| Write {
            all: true,
            ..write(sql, params, rows)
        };
        let Self {
            standings,
            skips,
            changed,
            removed,
            exclusive,
            inserted,
        } = self;
        let left: Vec<Param<'_>> = vec![&skips.id, &skips.last, &skips.count];
        [
            write(PUT_JOBS, standings.params(), standings.id.len()),
            write(DELETE_SKIPS, vec![&skips.gone], skips.gone.len()),
            write(SHORTEN_SKIPS, left, skips.id.len()),
            as_read(CHANGE_LIVE, changed.params(), changed.id.len()),
            as_read(GONE_LIVE, removed.params(), removed.id.len()),
            write(SET_EXCLUSIVE, exclusive.params(), exclusive.id.len()),
            write(PUT_ENDED, ended.params(), ended.id.len()),
            write(PUT_LIVE, inserted.params(), inserted.id.len()),
        ]
    }
}

async fn write_all(conn: &Conn, writes: &[Write<'_>]) -> Done<()> {
    let mut calls = Vec::new();
    for write in writes.iter().filter(|write| write.rows > 0) {
        calls.push((conn.prepare(write.sql).await?, write));
    }
    let in_flight = calls
        .iter()
        .map(|(statement, write)| conn.execute_prepared(statement, &write.params));
    let written = try_join_all(in_flight).await?;
    for ((_, write), written) in calls.iter().zip(written) {
        if write.all && write.rows as u64 != written {
            return Err(Fault::Overtaken);
        }
    }
    Ok(())
}
