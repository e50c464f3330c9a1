//! Migrations: the schema is made or brought up to date, by one node at a time, while nodes of the version before go on.
//!
//! A schema that is new is made in one transaction. In one that is there, each migration is a transaction, and what it
//! locks it waits for only half a second at a time: whoever comes after somebody that waits for a table waits too, and a
//! presence does not live long without its beat. Then it lets go, says in the log whom it waits for, and tries again.
//!
//! What takes time stands apart, at the end of a migration's file after the line `-- Apart.`: indexes on tables that may
//! be large, each made by a statement of its own while everyone goes on (`CREATE INDEX CONCURRENTLY`), and after it the one
//! that it replaces (`DROP INDEX CONCURRENTLY`). Only what makes things faster may stand there: a node starts without it if it cannot be made, and the next start tries again. That it
//! is still to be made is a row of its own, the migration's number below zero. One whose name has `{day}` in it is made for
//! every day of history, and becomes a part of the index that is named without it: of all days at once none can be made while
//! everyone goes on.

use std::time::Duration;

use super::fault::{Done, Fault, detail};
use super::partitions::{is_in_use, patience};
use super::pool::{Conn, Pool};
use crate::StoreError;

/// In the order they are run. Forward only.
const MIGRATIONS: [&str; 32] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_time.sql"),
    include_str!("migrations/0003_fleet.sql"),
    include_str!("migrations/0004_late.sql"),
    include_str!("migrations/0005_calendar_zones.sql"),
    include_str!("migrations/0006_retention.sql"),
    include_str!("migrations/0007_levels.sql"),
    include_str!("migrations/0008_manual_runs.sql"),
    include_str!("migrations/0009_keys.sql"),
    include_str!("migrations/0010_tenants.sql"),
    include_str!("migrations/0011_audit.sql"),
    include_str!("migrations/0012_secrets.sql"),
    include_str!("migrations/0013_owner.sql"),
    include_str!("migrations/0014_quotas.sql"),
    include_str!("migrations/0015_tenant_delete.sql"),
    include_str!("migrations/0016_job_versions.sql"),
    include_str!("migrations/0017_worker_keys.sql"),
    include_str!("migrations/0018_waiting.sql"),
    include_str!("migrations/0019_runs_day.sql"),
    include_str!("migrations/0020_replays.sql"),
    include_str!("migrations/0021_users.sql"),
    include_str!("migrations/0022_rollups.sql"),
    include_str!("migrations/0023_handed.sql"),
    include_str!("migrations/0024_failures.sql"),
    include_str!("migrations/0025_tenant_runs.sql"),
    include_str!("migrations/0026_default_tenant.sql"),
    include_str!("migrations/0027_steps.sql"),
    include_str!("migrations/0028_open_jobs.sql"),
    include_str!("migrations/0029_alerts.sql"),
    include_str!("migrations/0030_once.sql"),
    include_str!("migrations/0031_owners.sql"),
    include_str!("migrations/0032_low_water.sql"),
];

/// The line after which a migration goes on apart.
const APART: &str = "\n-- Apart.\n";
const CONCURRENTLY: &str = "CREATE INDEX CONCURRENTLY ";
const REPLACED: &str = "DROP INDEX CONCURRENTLY ";
/// Stands for a day of history in the name of an index.
const OF_DAY: &str = "{day}";

/// For another node that is at it, and for whoever is in the way of an index: nobody waits behind who waits for these.
const LONG: &str = "60s";
/// For a table: everyone does.
const SHORT: &str = "500ms";

/// Tries to lock what a migration changes, each with a pause after it that is several times as long.
const TRIES_MAX: u32 = 48;
const PAUSE: Duration = Duration::from_secs(2);

/// Brings the schema up to date. Others that try at the same time wait, and then find nothing to do.
pub(super) async fn migrate(pool: &Pool, schema: &str) -> Result<(), StoreError> {
    let conn = pool.get().await?;
    check_encoding(&conn).await?;
    // Up to date already: then no right to make a schema is needed.
    if version(&conn, schema).await? == Some(newest()) && unmade(&conn).await?.is_empty() {
        return Ok(());
    }
    let done = bring_up(&conn, schema, TRIES_MAX).await;
    // It is set up otherwise than others, and its locks go with it.
    conn.forget();
    done
}

/// The same on a connection of one's own, with so many tries.
pub(super) async fn bring_up(conn: &Conn, schema: &str, tries: u32) -> Result<(), StoreError> {
    let about = |text: &str| text.replace("{schema}", schema);
    conn.run(&patience(LONG, "0")).await?;
    match version(conn, schema).await? {
        Some(stands) if stands == newest() => {
            // Who has the lock makes them.
            return if try_lock(conn, schema).await? {
                make_apart(conn).await
            } else {
                Ok(())
            };
        }
        Some(_) | None => {}
    }
    match conn.run(&about(include_str!("sql/migrate_lock.sql"))).await {
        Err(fault) if is_in_use(&fault) => {
            let other = "another node has been bringing the schema up to date for a minute";
            return Err(StoreError::unavailable(other));
        }
        locked => locked?,
    }
    match version(conn, schema).await?.unwrap_or(0) {
        0 => make_all(conn, &about(include_str!("sql/migrate.sql"))).await?,
        stands => {
            conn.run(&patience(SHORT, "0")).await?;
            for (number, text) in (1..).zip(MIGRATIONS) {
                if number > stands {
                    step_in_time(conn, schema, (number, text), tries).await?;
                }
            }
            conn.run(&patience(LONG, "0")).await?;
        }
    }
    make_apart(conn).await
}

/// A schema that nobody knows of yet: nothing in it is large, and nobody waits for it.
async fn make_all(conn: &Conn, schema: &str) -> Done<()> {
    conn.begin()?;
    conn.run(schema).await?;
    for (number, text) in (1_i32..).zip(MIGRATIONS) {
        let (within, apart) = parts(text);
        conn.run(within).await?;
        // There is no day of history yet.
        for (_, statement) in indexes(apart).filter(|(name, _)| !name.contains(OF_DAY)) {
            conn.run(&statement.replace(CONCURRENTLY, "CREATE INDEX "))
                .await?;
        }
        for name in replaced(apart) {
            conn.run(&format!("DROP INDEX {name}")).await?;
        }
        conn.execute(include_str!("sql/migrated.sql"), &[&number])
            .await?;
    }
    conn.commit().await
}

/// One migration, tried until nobody is in its way.
#[expect(clippy::disallowed_methods, reason = "nothing is decided by this wait")]
async fn step_in_time(
    conn: &Conn,
    schema: &str,
    migration: (i32, &str),
    tries: u32,
) -> Result<(), StoreError> {
    for tried in 1.. {
        let Err(fault) = step(conn, migration).await else {
            break;
        };
        conn.rollback().await?;
        if !is_in_use(&fault) && !fault.is_collision() {
            return Err(fault.into());
        }
        let whom = waits_for(conn, schema).await?;
        let number = migration.0;
        if tried >= tries {
            return Err(StoreError::Unusable(format!(
                "the schema {schema} cannot be brought up to date (to number {number}) because its tables are in use: {whom}"
            )));
        }
        tracing::warn!(
            schema,
            number,
            whom,
            "the schema is in use; tries again to change it"
        );
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

async fn step(conn: &Conn, (number, text): (i32, &str)) -> Done<()> {
    let (within, apart) = parts(text);
    conn.begin()?;
    conn.run(within).await?;
    let migrated = include_str!("sql/migrated.sql");
    conn.execute(migrated, &[&number]).await?;
    if !apart.is_empty() {
        conn.execute(migrated, &[&-number]).await?;
    }
    conn.commit().await
}

/// What a migration does in its transaction, and what it does apart.
fn parts(text: &str) -> (&str, &str) {
    text.split_once(APART).unwrap_or((text, ""))
}

/// The indexes that stand apart: names and statements.
fn indexes(apart: &str) -> impl Iterator<Item = (&str, &str)> {
    apart.split(';').filter_map(|statement| {
        let (_, definition) = statement.split_once(CONCURRENTLY)?;
        Some((definition.split_whitespace().next()?, statement))
    })
}

/// The names of indexes that others have replaced, once these are made.
fn replaced(apart: &str) -> impl Iterator<Item = &str> {
    apart
        .split(';')
        .filter_map(|statement| Some(statement.split_once(REPLACED)?.1.trim()))
}

/// Makes what stands apart and is not there yet. If that cannot be done now, things are slower and nothing is wrong.
async fn make_apart(conn: &Conn) -> Result<(), StoreError> {
    for number in unmade(conn).await? {
        let text = (1..).zip(MIGRATIONS).find(|(it, _)| *it == number);
        let (_, apart) = text.map_or(("", ""), |(_, text)| parts(text));
        match make_indexes(conn, apart).await {
            Ok(()) => {
                let sql = include_str!("sql/migrated_apart.sql");
                conn.execute(sql, &[&-number]).await?;
            }
            Err(Fault::Sql(error)) if error.code().is_some() => {
                let why = detail(&error);
                tracing::warn!(
                    number,
                    why,
                    "an index is still to be made: the next start tries again"
                );
            }
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(())
}

async fn make_indexes(conn: &Conn, apart: &str) -> Done<()> {
    for (name, statement) in indexes(apart) {
        if name.contains(OF_DAY) {
            make_of_days(conn, name, statement).await?;
        } else {
            make_index(conn, name, statement).await?;
        }
    }
    for name in replaced(apart) {
        drop_index(conn, name).await?;
    }
    Ok(())
}

async fn drop_index(conn: &Conn, name: &str) -> Done<()> {
    conn.run(&include_str!("sql/drop_index.sql").replace("{name}", name))
        .await
}

/// What another try has left half made goes first.
async fn make_index(conn: &Conn, name: &str, statement: &str) -> Done<()> {
    let row = conn
        .row(include_str!("sql/has_index.sql"), &[&name])
        .await?;
    match row.map(|row| row.try_get(0)).transpose()? {
        Some(true) => return Ok(()),
        Some(false) => {
            drop_index(conn, name).await?;
        }
        None => {}
    }
    tracing::info!(index = name, "makes an index; everyone goes on meanwhile");
    conn.run(statement).await
}

/// Days that come meanwhile get theirs when they become a part of history.
async fn make_of_days(conn: &Conn, name: &str, statement: &str) -> Done<()> {
    let all = name.replace("{day}_", "");
    let sql = include_str!("sql/unindexed_partitions.sql");
    for row in &conn.rows(sql, &[&all]).await? {
        let day = row.try_get::<_, i64>(0)?.to_string();
        let name = name.replace(OF_DAY, &day);
        make_index(conn, &name, &statement.replace(OF_DAY, &day)).await?;
        // Whoever comes after somebody that waits for an index waits too.
        conn.run(&patience(SHORT, "0")).await?;
        let attach = include_str!("sql/attach_index.sql");
        let attach = attach.replace("{all}", &all).replace("{name}", &name);
        let attached = conn.run(&attach).await;
        conn.run(&patience(LONG, "0")).await?;
        attached?;
    }
    Ok(())
}

async fn try_lock(conn: &Conn, schema: &str) -> Done<bool> {
    let sql = include_str!("sql/migrate_try_lock.sql");
    let row = conn.row(sql, &[&schema]).await?;
    Ok(row.map_or(Ok(false), |row| row.try_get(0))?)
}

/// Migrations of which something is still to be made.
async fn unmade(conn: &Conn) -> Done<Vec<i32>> {
    let rows = conn.rows(include_str!("sql/unmade.sql"), &[]).await?;
    let numbers = rows.iter().map(|row| row.try_get(0));
    Ok(numbers.collect::<Result<_, _>>()?)
}

/// Who has something of ours locked, whoever began first first.
async fn waits_for(conn: &Conn, schema: &str) -> Done<String> {
    let sql = include_str!("sql/waits_for.sql");
    let row = conn.row(sql, &[&schema]).await?;
    Ok(row.map_or(Ok(String::new()), |row| row.try_get(0))?)
}

pub(super) fn newest() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// The number of the last migration; none if there is no such schema.
async fn version(conn: &Conn, schema: &str) -> Done<Option<i32>> {
    let there = conn
        .row(include_str!("sql/has_schema.sql"), &[&schema])
        .await?;
    let there: Option<bool> = there.map(|row| row.get(0));
    if there != Some(true) {
        return Ok(None);
    }
    let row = conn.row(include_str!("sql/version.sql"), &[]).await?;
    let stands: Option<i32> = row.and_then(|row| row.get(0));
    match stands.unwrap_or(0) {
        stands if stands > newest() => Err(Fault::Store(newer(schema, stands))),
        stands => Ok(Some(stands)),
    }
}

fn newer(schema: &str, stands: i32) -> StoreError {
    StoreError::Unusable(format!(
        "the schema {schema} was written by a newer version of Punctual (its number is {stands}, this one knows {}): \
         use that version",
        newest()
    ))
}

/// Texts of clients and targets are any Unicode, and ours are not all ASCII. What converts them refuses rows for a
/// character; what takes bytes as they are holds them all.
async fn check_encoding(conn: &Conn) -> Result<(), StoreError> {
    let row = conn.row(include_str!("sql/encoding.sql"), &[]).await?;
    let encoding: String = row.map_or_else(String::new, |row| row.get(0));
    match encoding.as_str() {
        "UTF8" | "SQL_ASCII" => Ok(()),
        _ => Err(StoreError::Unusable(format!(
            "the database is encoded in {encoding}, which cannot hold every text: make one with ENCODING 'UTF8'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_indexes_stand_apart_and_nothing_that_takes_time_stands_elsewhere() {
        for text in MIGRATIONS {
            let (within, apart) = parts(text);
            assert!(!within.contains("CONCURRENTLY"), "{within}");
            let code: String = apart
                .lines()
                .filter(|line| !line.starts_with("--"))
                .collect();
            let statements = code.split(';').filter(|it| !it.trim().is_empty());
            let known = indexes(apart).count() + replaced(apart).count();
            assert_eq!(statements.count(), known, "{apart}");
        }
        let (_, apart) = parts(MIGRATIONS[2]);
        let names: Vec<&str> = indexes(apart).map(|(name, _)| name).collect();
        assert_eq!(names, ["live_lane"]);
    }
}
