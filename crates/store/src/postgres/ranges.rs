//! Days of history: one partition for each day of UTC, made before its first run ends, dropped whole.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{RunId, Timestamp};

use super::fault::{Done, Fault};
use super::pool::Conn;
use super::store::PgStore;
use crate::StoreError;

pub(super) const DAY: i64 = 24 * 3_600 * 1_000;

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
    /// Makes the days that these runs need, each in a transaction of its own.
    pub(super) async fn open_days(&self, runs: impl Iterator<Item = RunId>) -> Done<()> {
        let mut days: BTreeSet<i64> = runs.map(day_of).collect();
        {
            let known = self.days.known();
            days.retain(|day| !known.contains(day));
        }
        for day in days {
            self.open_day(day).await?;
        }
        Ok(())
    }

    async fn open_day(&self, day: i64) -> Done<()> {
        let conn = self.makers.begin().await?;
        let number = i32::try_from(day).unwrap_or(i32::MAX);
        conn.rows(include_str!("sql/range_lock.sql"), &[&number])
            .await?;
        if !has_day(&conn, day).await? {
            conn.run(&sql(include_str!("sql/create_range.sql"), day))
                .await?;
        }
        conn.commit().await?;
        self.days.known().insert(day);
        Ok(())
    }

    /// Days from today on are there before they are needed.
    pub(super) async fn open_ahead(&self, now: Timestamp) -> Done<()> {
        let day = Duration::from_millis(DAY.unsigned_abs());
        let ahead = [now, now.plus(day), now.plus(day * 2)];
        self.open_days(ahead.into_iter().map(RunId::least_at)).await
    }

    /// Drops the days that ended at or before `until`. A day is taken out of the table first, for which nobody who
    /// reads or writes has to wait.
    pub(super) async fn drop_days(&self, until: Timestamp) -> Done<u32> {
        let conn = self.makers.get().await?;
        let mut dropped = 0;
        for row in conn.rows(include_str!("sql/ranges.sql"), &[]).await? {
            let (name, pending): (String, bool) = (row.try_get(0)?, row.try_get(1)?);
            let Some(day) = name
                .strip_prefix("history_")
                .and_then(|day| day.parse().ok())
            else {
                continue;
            };
            if ends_at(day) > until {
                continue;
            }
            self.days.known().remove(&day);
            let detach = match pending {
                true => include_str!("sql/detach_range_again.sql"),
                false => include_str!("sql/detach_range.sql"),
            };
            match conn.run(&sql(detach, day)).await {
                Ok(()) => {}
                // Another node is at it.
                Err(Fault::Sql(error)) if error.code().is_some() => continue,
                Err(fault) => return Err(fault),
            }
            conn.run(&sql(include_str!("sql/drop_range.sql"), day))
                .await?;
            dropped += 1;
        }
        Ok(dropped)
    }
}

async fn has_day(conn: &Conn, day: i64) -> Done<bool> {
    let name = format!("history_{day}");
    let row = conn
        .row(include_str!("sql/has_range.sql"), &[&name])
        .await?;
    let row = row.ok_or_else(|| StoreError::unavailable("no answer"))?;
    Ok(row.try_get(0)?)
}
