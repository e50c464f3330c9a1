//! Rules: what slots depend on besides their job. Calendars say by their version whether all of their jobs have
//! followed; zones by a digest of their tables.

use std::collections::BTreeSet;

use model::schedule::{Zone, tzdb_version};
use model::{JobId, TenantId, Version};

use super::fault::Done;
use super::pool::Conn;
use super::presence::Param;
use super::store::{PgStore, limit};
use crate::Rule;
use crate::code::calendar_name;
use crate::row::zone_digest;
use crate::types::doubted;

impl PgStore {
    /// A zone that a job or a calendar follows for the first time is known by the tables of this binary, which compute slots;
    /// while a node with other tables lives, others may follow it by those.
    pub(super) async fn know_zones(
        &self,
        conn: &Conn,
        zones: impl Iterator<Item = &Zone>,
    ) -> Done<Vec<String>> {
        let names = zones.map(|zone| zone.name().to_owned());
        let mut new: BTreeSet<String> = names.collect();
        new.retain(|name| !Self::known(&self.zones).contains(name));
        for name in &new {
            let digest = zone_digest(name);
            let (doubted, digest) = (doubted(digest).cast_signed(), digest.cast_signed());
            let put: [Param<'_>; 4] = [name, &digest, &doubted, &tzdb_version()];
            conn.execute(include_str!("sql/put_zone.sql"), &put).await?;
        }
        Ok(new.into_iter().collect())
    }

    /// These have a row from now on: what wrote them is committed.
    pub(super) fn zones_known(&self, names: Vec<String>) {
        Self::known(&self.zones).extend(names);
    }

    pub(super) async fn try_rules_changed(&self) -> Done<Vec<Rule>> {
        let conn = self.clients.get().await?;
        let mut changed = Vec::new();
        let rows = conn
            .rows(include_str!("sql/rules_changed.sql"), &[])
            .await?;
        for row in &rows {
            let name: String = row.try_get(1)?;
            changed.push(Rule::Calendar {
                tenant: TenantId(row.try_get(0)?),
                name: calendar_name(&name)?,
                version: Version(row.try_get::<_, i32>(2)?.cast_unsigned()),
                doubts: row.try_get::<_, i32>(3)?.cast_unsigned(),
            });
        }
        for row in &conn.rows(include_str!("sql/zones.sql"), &[]).await? {
            let (name, known): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            let (digest, known) = (zone_digest(&name), known.cast_unsigned());
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

    pub(super) async fn try_jobs_under(
        &self,
        rule: &Rule,
        after: Option<JobId>,
        count: usize,
    ) -> Done<Vec<(TenantId, JobId)>> {
        let conn = self.clients.get().await?;
        let (after, count) = (after.map(|after| after.0), limit(count));
        let rows = match rule {
            Rule::Calendar { tenant, name, .. } => {
                let sql = include_str!("sql/jobs_under_calendar.sql");
                let params = [
                    &tenant.0 as _,
                    &name.as_str() as _,
                    &after as _,
                    &count as _,
                ];
                conn.rows(sql, &params).await?
            }
            Rule::Zone { name, .. } => {
                let sql = include_str!("sql/jobs_under_zone.sql");
                conn.rows(sql, &[name, &after, &count]).await?
            }
        };
        let mut jobs = Vec::with_capacity(rows.len());
        for row in &rows {
            jobs.push((TenantId(row.try_get(0)?), JobId(row.try_get(1)?)));
        }
        Ok(jobs)
    }

    pub(super) async fn try_rule_applied(&self, rule: &Rule) -> Done<()> {
        let conn = self.clients.get().await?;
        match rule {
            Rule::Calendar {
                tenant,
                name,
                version,
                doubts,
            } => {
                let sql = include_str!("sql/calendar_applied.sql");
                let (version, doubts) = (version.0.cast_signed(), doubts.cast_signed());
                conn.execute(sql, &[&tenant.0, &name.as_str(), &version, &doubts])
                    .await?;
            }
            Rule::Zone {
                name,
                digest,
                known,
            } => {
                let sql = include_str!("sql/zone_applied.sql");
                let (digest, known) = (digest.cast_signed(), known.cast_signed());
                let applied: [Param<'_>; 4] = [name, &digest, &known, &tzdb_version()];
                conn.execute(sql, &applied).await?;
            }
        }
        Ok(())
    }
}
