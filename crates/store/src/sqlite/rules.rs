//! Rules: what slots depend on besides their job. Calendars say by their version whether all of their
//! jobs have followed; zones by a digest of their tables.

use std::collections::BTreeSet;

use model::schedule::tzdb_version;
use model::{CalendarName, JobId, TenantId, Version};
use rusqlite::{Connection, Row, params};

use super::db::{Db, Shared};
use super::fault::Done;
use super::rows::Tenant;
use crate::Rule;
use crate::code::calendar_name;
use crate::row::zone_digest;
use crate::types::doubted;

/// The zones that have a row, known by heart.
#[derive(Default)]
pub(super) struct Zones(BTreeSet<String>);

impl Zones {
    pub(super) fn read(conn: &Connection) -> Done<Self> {
        let zones = zones(conn)?.into_iter().map(|(name, _)| name);
        Ok(Self(zones.collect()))
    }

    /// A zone that a job or a calendar follows for the first time is known by the tables of this binary, which compute slots;
    /// while a node with other tables lives, others may follow it by those.
    pub(super) fn know(
        &mut self,
        conn: &Connection,
        zone: Option<&str>,
        shared: &Shared,
    ) -> Done<()> {
        let Some(name) = zone.filter(|name| !self.0.contains(*name)) else {
            return Ok(());
        };
        let digest = zone_digest(name);
        let others = shared.presences().has_other_tables(tzdb_version());
        let digest = if others { doubted(digest) } else { digest };
        let mut insert = conn.prepare_cached(include_str!("sql/create_jobs_zone.sql"))?;
        insert.execute(params![name, digest.cast_signed()])?;
        self.0.insert(name.to_owned());
        Ok(())
    }
}

fn zones(conn: &Connection) -> Done<Vec<(String, u64)>> {
    let mut select = conn.prepare_cached(include_str!("sql/zones.sql"))?;
    let zones = select.query_map([], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned()))
    })?;
    Ok(zones.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn rules_changed(conn: &Connection) -> Done<Vec<Rule>> {
    let mut changed = Vec::new();
    let mut select = conn.prepare_cached(include_str!("sql/rules_changed.sql"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        changed.push(Rule::Calendar {
            tenant: row.get::<_, Tenant>(0)?.0,
            name: calendar_name(&name)?,
            version: Version(row.get(2)?),
            doubts: row.get(3)?,
        });
    }
    for (name, known) in zones(conn)? {
        let digest = zone_digest(&name);
        if digest != known {
            changed.push(Rule::Zone {
                name,
                digest,
                known,
            });
        }
    }
    Ok(changed)
}

pub(super) fn jobs_under(
    conn: &Connection,
    rule: &Rule,
    after: Option<JobId>,
    limit: usize,
) -> Done<Vec<(TenantId, JobId)>> {
    match rule {
        Rule::Calendar { tenant, name, .. } => jobs_naming(conn, *tenant, name, after, limit),
        Rule::Zone { name, .. } => {
            // A page of each, of which the first page of all is made.
            let mut jobs = jobs_following(conn, name, after, limit)?;
            for (tenant, calendar) in calendars_in(conn, name)? {
                jobs.extend(jobs_naming(conn, tenant, &calendar, after, limit)?);
            }
            jobs.sort_unstable_by_key(|(_, job)| *job);
            jobs.dedup();
            jobs.truncate(limit);
            Ok(jobs)
        }
    }
}

/// Jobs whose schedule follows a zone, by id.
fn jobs_following(
    conn: &Connection,
    zone: &str,
    after: Option<JobId>,
    limit: usize,
) -> Done<Vec<(TenantId, JobId)>> {
    let mut select = conn.prepare_cached(include_str!("sql/jobs_under_zone.sql"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let jobs = select.query_map(params![zone, bytes(after), limit], owned)?;
    Ok(jobs.collect::<rusqlite::Result<_>>()?)
}

fn calendars_in(conn: &Connection, zone: &str) -> Done<Vec<(TenantId, CalendarName)>> {
    let mut select = conn.prepare_cached(include_str!("sql/calendars_in_zone.sql"))?;
    let mut rows = select.query([zone])?;
    let mut calendars = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(1)?;
        let named = calendar_name(&name)?;
        calendars.push((row.get::<_, Tenant>(0)?.0, named));
    }
    Ok(calendars)
}

/// Jobs that name a calendar, by id.
pub(super) fn jobs_naming(
    conn: &Connection,
    tenant: TenantId,
    name: &CalendarName,
    after: Option<JobId>,
    limit: usize,
) -> Done<Vec<(TenantId, JobId)>> {
    let mut select = conn.prepare_cached(include_str!("sql/jobs_under_calendar.sql"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let tenant = Tenant(tenant);
    let jobs = select.query_map(params![tenant, name.as_str(), bytes(after), limit], owned)?;
    Ok(jobs.collect::<rusqlite::Result<_>>()?)
}

/// Every id is greater than no bytes at all.
fn bytes(after: Option<JobId>) -> Vec<u8> {
    after.map_or(Vec::new(), |after| after.as_bytes().to_vec())
}

fn owned(row: &Row<'_>) -> rusqlite::Result<(TenantId, JobId)> {
    Ok((row.get::<_, Tenant>(0)?.0, JobId::from_bytes(row.get(1)?)))
}

impl Db {
    pub(super) fn rule_applied(&mut self, rule: &Rule) -> Done<()> {
        match rule {
            Rule::Calendar {
                tenant,
                name,
                version,
                doubts,
            } => {
                let mut update = self
                    .conn
                    .prepare_cached(include_str!("sql/calendar_applied.sql"))?;
                update.execute(params![Tenant(*tenant), name.as_str(), version.0, doubts])?;
            }
            Rule::Zone {
                name,
                digest,
                known,
            } => {
                if self.shared.presences().has_other_tables(tzdb_version()) {
                    return Ok(());
                }
                let mut upsert = self
                    .conn
                    .prepare_cached(include_str!("sql/zone_applied.sql"))?;
                upsert.execute(params![name, digest.cast_signed(), known.cast_signed()])?;
                self.zones.0.insert(name.clone());
            }
        }
        Ok(())
    }
}
