//! Days of history: one partition for each day of UTC, made before its first run ends, dropped whole.
//!
//! Making one takes a while, and many take seconds. So nobody makes them within a transaction: what a write needs and is
//! not there is made first, with nothing locked, and then the write is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{RunId, Timestamp};
use tokio_postgres::error::SqlState;

use super::fault::{Done, Fault};
use super::pool::Conn;
use super::store::PgStore;

pub(super) const DAY: i64 = 24 * 3_600 * 1_000;

/// Days that are made in one transaction. Each takes some of the locks that all sessions of a server share.
const MADE_MAX: usize = 50;

/// The days that are known to have a partition. Another node may have dropped one: then the write fails, and all
/// are looked for again.
#[derive(Default)]
pub(super) struct Days(Mutex<BTreeSet<i64>>);

impl Days {
    fn known(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn forget(&self) {
        self.known().clear();
    }
}

/// How far a day's table is a part of history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    /// Someone has begun to take it out.
    Leaving,
    /// It was taken out, and not dropped.
    Not,
}

/// The day that a run's history belongs to.
pub(super) fn day_of(run: RunId) -> i64 {
    run.at().as_millis().div_euclid(DAY)
}

pub(super) fn ends_at(day: i64) -> Timestamp {
    Timestamp::from_millis(day.saturating_add(1).saturating_mul(DAY))
}

/// The text of a statement about one day. A day is a number of ours, never a client's text. The last one has no end:
/// there is no moment after it.
fn sql(template: &str, day: i64) -> String {
    let bound = |day: i64| {
        let at = Timestamp::from_millis(day.saturating_mul(DAY));
        match day.saturating_mul(DAY) > Timestamp::MAX.as_millis() {
            true => "MAXVALUE".to_owned(),
            false => format!("'{}'", RunId::least_at(at).0),
        }
    };
    template
        .replace("{day}", &day.to_string())
        .replace("{from}", &bound(day))
        .replace("{to}", &bound(day + 1))
}

impl PgStore {
    /// Whether the days that these runs need are there, as far as we know.
    pub(super) fn has_days(&self, mut runs: impl Iterator<Item = RunId>) -> bool {
        let known = self.days.known();
        runs.all(|run| known.contains(&day_of(run)))
    }

    /// Makes the days that these runs need. Whoever calls it has no transaction open.
    pub(super) async fn open_days(&self, runs: impl Iterator<Item = RunId>) -> Done<()> {
        let days: BTreeSet<i64> = {
            let known = self.days.known();
            runs.map(day_of)
                .filter(|day| !known.contains(day))
                .collect()
        };
        let days: Vec<i64> = days.into_iter().collect();
        for some in days.chunks(MADE_MAX) {
            let conn = self.makers.begin().await?;
            make(&conn, some).await?;
            conn.commit().await?;
            self.days.known().extend(some);
        }
        Ok(())
    }

    /// Days from today on are there before they are needed.
    pub(super) async fn open_ahead(&self, now: Timestamp) -> Done<()> {
        let day = Duration::from_millis(DAY.unsigned_abs());
        let ahead = [now, now.plus(day), now.plus(day * 2)];
        self.open_days(ahead.into_iter().map(RunId::least_at)).await
    }

    /// Drops the days that ended at or before `until`. One that somebody reads stays for the next time, and all after
    /// it: whoever has to make a day meanwhile is not to wait.
    pub(super) async fn drop_days(&self, until: Timestamp) -> Done<u32> {
        let conn = self.clients.get().await?;
        let mut old = parts(&conn, None).await?;
        drop(conn);
        old.retain(|day, _| ends_at(*day) <= until);
        if old.is_empty() {
            return Ok(0);
        }
        let conn = self.droppers.get().await?;
        conn.run(&patience("1s", "30s")).await?;
        let mut dropped = 0;
        for (day, part) in old {
            self.days.known().remove(&day);
            match drop_day(&conn, day, part).await {
                Ok(true) => dropped += 1,
                Ok(false) => break,
                Err(fault) if is_in_use(&fault) => break,
                // Another node is at it.
                Err(Fault::Sql(error)) if error.code().is_some() => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(dropped)
    }
}

/// How long statements of a connection wait for what others have locked, and how long they take at most.
pub(super) fn patience(lock: &str, statement: &str) -> String {
    include_str!("sql/patience.sql")
        .replace("{lock}", lock)
        .replace("{statement}", statement)
}

/// Whether a statement gave up waiting for what somebody else has locked.
pub(super) fn is_in_use(fault: &Fault) -> bool {
    match fault {
        Fault::Sql(error) => error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE),
        Fault::Store(_) | Fault::Overtaken => false,
    }
}

/// Makes those of these days that are not there, one node at a time.
async fn make(conn: &Conn, days: &[i64]) -> Done<()> {
    conn.rows(include_str!("sql/range_lock.sql"), &[]).await?;
    let there = parts(conn, Some(days)).await?;
    let mut text = String::new();
    for day in days {
        match there.get(day) {
            Some(Part::Whole) => continue,
            // To drop it as it is would keep everyone from history.
            Some(Part::Leaving) => {
                text.push_str(&sql(include_str!("sql/detach_range_again.sql"), *day));
            }
            Some(Part::Not) | None => {}
        }
        text.push_str(&sql(include_str!("sql/create_range.sql"), *day));
    }
    if !text.is_empty() {
        conn.run(&text).await?;
    }
    Ok(())
}

/// The tables of these days, or of all.
async fn parts(conn: &Conn, days: Option<&[i64]>) -> Done<BTreeMap<i64, Part>> {
    let name = |day: &i64| format!("history_{day}");
    let names: Option<Vec<String>> = days.map(|days| days.iter().map(name).collect());
    let mut parts = BTreeMap::new();
    for row in &conn.rows(include_str!("sql/ranges.sql"), &[&names]).await? {
        let (name, pending): (String, Option<bool>) = (row.try_get(0)?, row.try_get(1)?);
        let day = name.strip_prefix("history_");
        if let Some(day) = day.and_then(|day| day.parse().ok()) {
            let part = match pending {
                Some(false) => Part::Whole,
                Some(true) => Part::Leaving,
                None => Part::Not,
            };
            parts.insert(day, part);
        }
    }
    Ok(parts)
}

/// A day is taken out of the table first, for which nobody who reads or writes has to wait. False if it is in use.
async fn drop_day(conn: &Conn, day: i64, part: Part) -> Done<bool> {
    // What is left half taken out can be neither read nor written.
    if part == Part::Whole && is_read(conn, day).await? {
        return Ok(false);
    }
    let detach = match part {
        Part::Whole => Some(include_str!("sql/detach_range.sql")),
        Part::Leaving => Some(include_str!("sql/detach_range_again.sql")),
        Part::Not => None,
    };
    if let Some(detach) = detach {
        conn.run(&sql(detach, day)).await?;
    }
    conn.begin()?;
    match drop_loose(conn, day).await {
        Ok(()) => conn.commit().await.map(|()| true),
        Err(fault) => {
            conn.rollback().await?;
            Err(fault)
        }
    }
}

async fn is_read(conn: &Conn, day: i64) -> Done<bool> {
    let name = format!("history_{day}");
    let row = conn
        .row(include_str!("sql/range_readers.sql"), &[&name])
        .await?;
    Ok(row.map_or(Ok(false), |row| row.try_get(0))?)
}

/// Whoever makes the same day anew has the lock: then it is a part of history again, and not ours.
async fn drop_loose(conn: &Conn, day: i64) -> Done<()> {
    conn.rows(include_str!("sql/range_lock.sql"), &[]).await?;
    if parts(conn, Some(&[day])).await?.get(&day) == Some(&Part::Not) {
        conn.run(&sql(include_str!("sql/drop_range.sql"), day))
            .await?;
    }
    Ok(())
}
