//! Days of history: one partition for each day of UTC, made before its first run ends, dropped whole.
//!
//! Making one takes a while, and many take seconds. So nobody makes them within a transaction: what a write needs and is
//! not there is made first, with nothing locked, and then the write is tried again.
//!
//! What is written to a day long after its end is noted before, in the same way: whoever drops days sees the note, if not
//! before it takes the day out of history, then before it drops it; and then puts it back.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Partition, RunId, Timestamp};
use tokio_postgres::error::SqlState;

use super::fault::{Done, Fault};
use super::pool::Conn;
use super::put::Param;
use super::store::PgStore;

pub(super) const DAY: i64 = 24 * 3_600 * 1_000;

/// Days that are made in one transaction. Each takes some of the locks that all sessions of a server share.
const MADE_MAX: usize = 50;

/// The days that are known to have a partition, and from when each is known to be kept. Another node may have dropped
/// one: then the write fails, and all are looked for again.
#[derive(Default)]
pub(super) struct Partitions(Mutex<BTreeMap<Partition, Timestamp>>);

impl Partitions {
    fn known(&self) -> MutexGuard<'_, BTreeMap<Partition, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an entry that keeps a day from that moment on may be written.
    pub(super) fn take(&self, (day, kept_from): (Partition, Timestamp)) -> bool {
        let known = self.known().get(&day).copied();
        known.is_some_and(|known| known >= kept_from)
    }

    pub(super) fn forget(&self) {
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

/// The text of a statement about one day. A day is a number of ours, never a client's text. The last one has no end:
/// there is no moment after it.
fn sql(template: &str, Partition(day): Partition) -> String {
    let bound = |day: i64| {
        let at = Timestamp::from_millis(day.saturating_mul(DAY));
        if day.saturating_mul(DAY) > Timestamp::MAX.as_millis() {
            "MAXVALUE".to_owned()
        } else {
            format!("'{}'", RunId::least_at(at).0)
        }
    };
    template
        .replace("{day}", &day.to_string())
        .replace("{from}", &bound(day))
        .replace("{to}", &bound(day + 1))
}

impl PgStore {
    /// Makes the days that these entries need, and notes from when they are kept. Whoever calls it has no transaction open.
    pub(super) async fn open_partitions(
        &self,
        entries: impl Iterator<Item = (Partition, Timestamp)>,
    ) -> Done<()> {
        let mut days = BTreeMap::new();
        for (day, kept_from) in entries.filter(|entry| !self.partitions.take(*entry)) {
            let kept = days.entry(day).or_insert(kept_from);
            *kept = kept_from.max(*kept);
        }
        let days: Vec<(Partition, Timestamp)> = days.into_iter().collect();
        for some in days.chunks(MADE_MAX) {
            let conn = self.makers.begin().await?;
            make(&conn, some).await?;
            conn.commit().await?;
            self.partitions.known().extend(some.iter().copied());
        }
        Ok(())
    }

    /// Days from today on are there before they are needed.
    pub(super) async fn open_ahead(&self, now: Timestamp) -> Done<()> {
        let day = Duration::from_millis(DAY.unsigned_abs());
        let ahead = [now, now.plus(day), now.plus(day * 2)].map(Partition::at);
        let ahead = ahead.into_iter().map(|day| (day, day.ends_at()));
        self.open_partitions(ahead).await
    }

    /// Drops the days whose end and last entry were at or before `until`. One that somebody reads stays for the next time,
    /// and all after it: whoever has to make a day meanwhile is not to wait.
    pub(super) async fn drop_partitions(&self, until: Timestamp) -> Done<u32> {
        let conn = self.clients.get().await?;
        let mut old = parts(&conn, None).await?;
        let noted = noted(&conn, None).await?;
        drop(conn);
        // What was taken out and not dropped is dropped or put back.
        old.retain(|day, part| *part == Part::Not || kept_from(&noted, *day) <= until);
        if old.is_empty() {
            return Ok(0);
        }
        let conn = self.droppers.get().await?;
        conn.run(&patience("1s", "30s")).await?;
        let mut dropped = 0;
        for (day, part) in old {
            self.partitions.known().remove(&day);
            match drop_partition(&conn, day, part, until).await {
                Ok(Dropped::Gone) => dropped += 1,
                Ok(Dropped::PutBack) => {}
                Ok(Dropped::InUse) => break,
                Err(fault) if is_in_use(&fault) => break,
                // Another node is at it.
                Err(Fault::Sql(error)) if error.code().is_some() => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(dropped)
    }
}

/// What became of a day that was to be dropped.
enum Dropped {
    Gone,
    /// A straggler was faster, or somebody made it again.
    PutBack,
    InUse,
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

/// Makes those of these days that are not there, one node at a time. One that was taken out and not dropped is put back:
/// the entry of another straggler may be in it.
async fn make(conn: &Conn, days: &[(Partition, Timestamp)]) -> Done<()> {
    conn.rows(include_str!("sql/partition_lock.sql"), &[])
        .await?;
    let names: Vec<Partition> = days.iter().map(|(day, _)| *day).collect();
    let there = parts(conn, Some(&names)).await?;
    let several = conn.row(include_str!("sql/has_tenants.sql"), &[]).await?;
    let several = several.map_or(Ok(false), |row| row.try_get(0))?;
    let mut text = String::new();
    for (day, kept_from) in days {
        let steps: &[&str] = match there.get(day) {
            Some(Part::Whole) => &[],
            Some(Part::Leaving) => &[
                include_str!("sql/detach_partition_again.sql"),
                include_str!("sql/attach_partition.sql"),
            ],
            Some(Part::Not) => &[include_str!("sql/attach_partition.sql")],
            None if several => &[
                include_str!("sql/create_partition.sql"),
                include_str!("sql/index_default.sql"),
                include_str!("sql/attach_partition.sql"),
            ],
            None => &[
                include_str!("sql/create_partition.sql"),
                include_str!("sql/attach_partition.sql"),
            ],
        };
        text.extend(steps.iter().map(|step| sql(step, *day)));
        if *kept_from > day.ends_at() {
            let note: [Param<'_>; 2] = [&day.0, &kept_from.as_millis()];
            conn.execute(include_str!("sql/note_straggler.sql"), &note)
                .await?;
        }
    }
    if !text.is_empty() {
        conn.run(&text).await?;
    }
    Ok(())
}

/// The tables of these days, or of all.
async fn parts(conn: &Conn, days: Option<&[Partition]>) -> Done<BTreeMap<Partition, Part>> {
    let name = |day: &Partition| format!("history_{}", day.0);
    let names: Option<Vec<String>> = days.map(|days| days.iter().map(name).collect());
    let mut parts = BTreeMap::new();
    for row in &conn
        .rows(include_str!("sql/partitions.sql"), &[&names])
        .await?
    {
        let (name, pending): (String, Option<bool>) = (row.try_get(0)?, row.try_get(1)?);
        let day = name.strip_prefix("history_");
        if let Some(day) = day.and_then(|day| day.parse().ok()) {
            let part = match pending {
                Some(false) => Part::Whole,
                Some(true) => Part::Leaving,
                None => Part::Not,
            };
            parts.insert(Partition(day), part);
        }
    }
    Ok(parts)
}

/// From when days are kept that stragglers were written to: one, or all.
async fn noted(conn: &Conn, day: Option<Partition>) -> Done<BTreeMap<Partition, Timestamp>> {
    let day = day.map(|day| day.0);
    let mut noted = BTreeMap::new();
    for row in &conn
        .rows(include_str!("sql/stragglers.sql"), &[&day])
        .await?
    {
        let (day, kept_from) = (row.try_get(0)?, row.try_get(1)?);
        noted.insert(Partition(day), Timestamp::from_millis(kept_from));
    }
    Ok(noted)
}

fn kept_from(noted: &BTreeMap<Partition, Timestamp>, day: Partition) -> Timestamp {
    noted.get(&day).copied().unwrap_or_else(|| day.ends_at())
}

/// A day is taken out of the table first, for which nobody who reads or writes has to wait.
async fn drop_partition(
    conn: &Conn,
    day: Partition,
    part: Part,
    until: Timestamp,
) -> Done<Dropped> {
    // What is left half taken out can be neither read nor written.
    if part == Part::Whole && is_read(conn, day).await? {
        return Ok(Dropped::InUse);
    }
    let detach = match part {
        Part::Whole => Some(include_str!("sql/detach_partition.sql")),
        Part::Leaving => Some(include_str!("sql/detach_partition_again.sql")),
        Part::Not => None,
    };
    if let Some(detach) = detach {
        conn.run(&sql(detach, day)).await?;
    }
    conn.begin()?;
    match drop_loose(conn, day, until).await {
        Ok(dropped) => conn.commit().await.map(|()| dropped),
        Err(fault) => {
            conn.rollback().await?;
            Err(fault)
        }
    }
}

async fn is_read(conn: &Conn, Partition(day): Partition) -> Done<bool> {
    let name = format!("history_{day}");
    let row = conn
        .row(include_str!("sql/partition_readers.sql"), &[&name])
        .await?;
    Ok(row.map_or(Ok(false), |row| row.try_get(0))?)
}

/// Whoever makes the same day again has the lock: then it is a part of history again, and not ours. Nobody can write to it
/// any more, and who did has noted it before.
async fn drop_loose(conn: &Conn, day: Partition, until: Timestamp) -> Done<Dropped> {
    conn.rows(include_str!("sql/partition_lock.sql"), &[])
        .await?;
    if parts(conn, Some(&[day])).await?.get(&day) != Some(&Part::Not) {
        return Ok(Dropped::PutBack);
    }
    if kept_from(&noted(conn, Some(day)).await?, day) > until {
        let attach = sql(include_str!("sql/attach_partition.sql"), day);
        conn.run(&attach).await?;
        return Ok(Dropped::PutBack);
    }
    conn.run(&sql(include_str!("sql/drop_partition.sql"), day))
        .await?;
    Ok(Dropped::Gone)
}
