//! Opening: the schema is made or brought up to date, by one node at a time, under a lock.

use super::fault::{Done, Fault};
use super::pool::{Conn, Pool};
use crate::StoreError;

/// In the order they are run. Forward only.
const MIGRATIONS: [&str; 3] = [
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_time.sql"),
    include_str!("migrations/0003_fleet.sql"),
];

/// Brings the schema up to date. Others that try at the same time wait, and then find nothing to do.
pub(super) async fn migrate(pool: &Pool, schema: &str) -> Result<(), StoreError> {
    let conn = pool.get().await?;
    let begun = include_str!("sql/migrate.sql").replace("{schema}", schema);
    // Up to date already: then no right to make a schema is needed.
    if version(&conn, schema).await? == Some(newest()) {
        return Ok(());
    }
    conn.begin()?;
    conn.run(&begun).await?;
    let stands = version(&conn, schema).await?.unwrap_or(0);
    for (number, sql) in (1..).zip(MIGRATIONS) {
        if number > stands {
            conn.run(sql).await?;
            conn.execute(include_str!("sql/migrated.sql"), &[&number])
                .await?;
        }
    }
    conn.commit().await?;
    Ok(())
}

fn newest() -> i32 {
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
