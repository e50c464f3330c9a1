//! Calendars, and the rules that jobs follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::schedule::{Calendars, Zone, tzdb_version};
use model::{Calendar, CalendarName, Job, JobId, JobState, TenantId, Version, limits};

use super::MemStore;
use super::state::{Kept, State};
use crate::audit::Change;
use crate::types::{calendars_of, doubted};
use crate::{CalendarDropped, CalendarPut, CalendarUse, Rule, doc};

/// Jobs named to whoever wants to drop a calendar that is in use.
const NAMED_MAX: usize = 5;

impl MemStore {
    /// What every read of a store on disk does: definitions come from their stored form, by the tables of time zones as they
    /// are now.
    pub fn read_again(&self) {
        self.state().read_again();
    }
}

impl State {
    fn read_again(&mut self) {
        for kept in self.calendars.values_mut() {
            let was = &kept.calendar;
            let form = doc::encode_calendar(was);
            let read = form.and_then(|form| {
                doc::decode_calendar(was.name.clone(), was.version, was.updated_at, &form)
            });
            if let Ok(read) = read {
                kept.calendar = Arc::new(read);
            }
        }
        for job in self.jobs.values_mut() {
            let find = |name: &CalendarName| {
                let kept = self.calendars.get(&(job.tenant, name.clone()))?;
                Some(Arc::clone(&kept.calendar))
            };
            let form = doc::encode_definition(job.id, &job.def);
            let payload = job.def.payload.clone();
            let read = form.and_then(|form| doc::decode_definition(job.id, &form, payload, &find));
            if let Ok(def) = read {
                Arc::make_mut(job).def = Arc::new(def);
            }
        }
    }

    pub(super) fn put_calendar(
        &mut self,
        tenant: TenantId,
        calendar: &Calendar,
        before: Option<Version>,
    ) -> CalendarPut {
        let key = (tenant, calendar.name.clone());
        let stands = self.calendars.get(&key).map(|kept| &kept.calendar);
        if stands.map(|stands| stands.version) != before {
            return CalendarPut::Conflict(stands.cloned());
        }
        let of_tenant = self.calendars.keys().filter(|(owner, _)| *owner == tenant);
        if before.is_none() && of_tenant.count() >= limits::CALENDARS_MAX {
            return CalendarPut::Full;
        }
        let form = |calendar: &Calendar| doc::encode_calendar(calendar).ok();
        let (was, is) = (stands.and_then(|it| form(it)), form(calendar));
        let entered = Change::calendar(tenant, &calendar.name, was.as_deref(), is.as_deref());
        self.audit(entered);
        self.know_zone(calendar.zone_followed());
        let calendar = Arc::new(calendar.clone());
        let kept = self.calendars.entry(key).or_insert_with(|| Kept {
            calendar: Arc::clone(&calendar),
            // No job can have named what was not there.
            applied: calendar.version,
            doubts: 0,
        });
        kept.calendar = Arc::clone(&calendar);
        for job in self.jobs.values_mut() {
            if job.tenant == tenant && names(job, &calendar.name) {
                *job = Arc::new(with_calendar(job, &calendar));
            }
        }
        CalendarPut::Done
    }

    fn use_of(&self, tenant: TenantId, kept: &Kept) -> CalendarUse {
        CalendarUse {
            jobs: self.users(tenant, &kept.calendar.name).count() as u64,
            applied: kept.applied == kept.calendar.version,
            calendar: Arc::clone(&kept.calendar),
        }
    }

    fn users(&self, tenant: TenantId, name: &CalendarName) -> impl Iterator<Item = JobId> {
        let jobs = self.jobs.values();
        jobs.filter(move |job| job.tenant == tenant && names(job, name))
            .map(|job| job.id)
    }

    pub(super) fn get_calendars(
        &self,
        tenant: TenantId,
        names: &[CalendarName],
    ) -> Vec<Option<CalendarUse>> {
        let one = |name: &CalendarName| {
            let kept = self.calendars.get(&(tenant, name.clone()))?;
            Some(self.use_of(tenant, kept))
        };
        names.iter().map(one).collect()
    }

    pub(super) fn list_calendars(
        &self,
        tenant: TenantId,
        after: Option<&CalendarName>,
        limit: usize,
    ) -> Vec<CalendarUse> {
        let ours = self.calendars.iter().filter(|((owner, name), _)| {
            *owner == tenant && after.is_none_or(|after| name > after)
        });
        ours.take(limit)
            .map(|(_, kept)| self.use_of(tenant, kept))
            .collect()
    }

    pub(super) fn drop_calendar(
        &mut self,
        tenant: TenantId,
        name: &CalendarName,
        before: Option<Version>,
    ) -> CalendarDropped {
        let key = (tenant, name.clone());
        let Some(kept) = self.calendars.get(&key) else {
            return CalendarDropped::Missing;
        };
        if before.is_some_and(|before| before != kept.calendar.version) {
            return CalendarDropped::Conflict(Arc::clone(&kept.calendar));
        }
        let users: Vec<JobId> = self.users(tenant, name).collect();
        if !users.is_empty() {
            let count = users.len() as u64;
            return CalendarDropped::InUse(users.into_iter().take(NAMED_MAX).collect(), count);
        }
        let form = doc::encode_calendar(&kept.calendar).unwrap_or_default();
        self.audit(Change::calendar(tenant, name, Some(&form), None));
        self.calendars.remove(&key);
        CalendarDropped::Done
    }

    pub(super) fn rules_changed(&self) -> Vec<Rule> {
        let changed = self
            .calendars
            .iter()
            .filter(|(_, kept)| kept.applied != kept.calendar.version)
            .map(|((tenant, name), kept)| Rule::Calendar {
                tenant: *tenant,
                name: name.clone(),
                version: kept.calendar.version,
                doubts: kept.doubts,
            });
        let zones = self.zones.iter().map(|(name, known)| (name, *known));
        let moved = zones.filter_map(|(name, known)| {
            let digest = Zone::get(name).map_or(0, |zone| zone.digest());
            (digest != known).then(|| Rule::Zone {
                name: name.clone(),
                digest,
                known,
            })
        });
        changed.chain(moved).collect()
    }

    pub(super) fn jobs_under(
        &self,
        rule: &Rule,
        after: Option<JobId>,
        limit: usize,
    ) -> Vec<(TenantId, JobId)> {
        let under = |job: &Job| match rule {
            Rule::Calendar { tenant, name, .. } => job.tenant == *tenant && names(job, name),
            Rule::Zone { name, .. } => job.state != JobState::Deleted && follows(job, name),
        };
        let jobs = self.jobs.values().filter(|job| Some(job.id) > after);
        jobs.filter(|job| under(job))
            .map(|job| (job.tenant, job.id))
            .take(limit)
            .collect()
    }

    pub(super) fn rule_applied(&mut self, rule: &Rule) {
        match rule {
            Rule::Calendar {
                tenant,
                name,
                version,
                doubts,
            } => {
                let kept = self.calendars.get_mut(&(*tenant, name.clone()));
                if let Some(kept) = kept.filter(|kept| kept.doubts == *doubts) {
                    kept.applied = *version;
                }
            }
            Rule::Zone {
                name,
                digest,
                known,
            } => {
                let doubted = self.zones.get(name).is_some_and(|stands| stands != known);
                if !doubted && !self.has_other_tables(tzdb_version()) {
                    self.zones.insert(name.clone(), *digest);
                }
            }
        }
    }

    /// A zone that a job or a calendar follows for the first time is known by the tables of this binary, which compute
    /// slots; while a node with other tables lives, others may follow it by those.
    pub(super) fn know_zone(&mut self, followed: Option<&Zone>) {
        let Some(zone) = followed.filter(|zone| !self.zones.contains_key(zone.name())) else {
            return;
        };
        let digest = zone.digest();
        let others = self.has_other_tables(tzdb_version());
        let digest = if others { doubted(digest) } else { digest };
        self.zones.insert(zone.name().to_owned(), digest);
    }

    /// One that a job names and that is not there; a deleted job names none.
    pub(super) fn calendar_missing(&self, job: &Job) -> Option<CalendarName> {
        let mut named = calendars_of(job).into_keys().cloned();
        named.find(|name| !self.calendars.contains_key(&(job.tenant, name.clone())))
    }

    /// A job that was scheduled by another version of a calendar than the one that stands is to be rescheduled.
    pub(super) fn doubt_calendars(&mut self, job: &Job) {
        for (name, version) in calendars_of(job) {
            let kept = self.calendars.get_mut(&(job.tenant, name.clone()));
            if let Some(kept) = kept.filter(|kept| kept.calendar.version != version) {
                kept.applied = Version(0);
                kept.doubts += 1;
            }
        }
    }

    /// Calendars as they stand, whatever a caller had read.
    pub(super) fn with_calendars(&self, job: Job) -> Job {
        let named = job.def.schedule.calendars.names();
        let keys = named.into_iter().map(|name| (job.tenant, name.clone()));
        let stand: BTreeMap<_, _> = keys
            .filter_map(|key| Some((key.1.clone(), self.calendars.get(&key)?)))
            .collect();
        let mut job = job;
        for kept in stand.values() {
            job = with_calendar(&job, &kept.calendar);
        }
        job
    }
}

/// Whether a zone's tables move a job's slots: by its schedule, or by a calendar.
fn follows(job: &Job, zone: &str) -> bool {
    let Calendars { exclude, only } = &job.def.schedule.calendars;
    let calendars = exclude.iter().chain(only);
    let own = job.def.schedule.zone_followed();
    let all = calendars.filter_map(|it| it.zone_followed()).chain(own);
    all.map(Zone::name).any(|name| name == zone)
}

/// Whether a job names a calendar; a deleted one names none.
fn names(job: &Job, name: &CalendarName) -> bool {
    job.state != JobState::Deleted && job.def.schedule.calendars.names().contains(name)
}

/// The job, with one of its calendars as it is now.
fn with_calendar(job: &Job, calendar: &Arc<Calendar>) -> Job {
    let now = |list: &[Arc<Calendar>]| {
        let one = |it: &Arc<Calendar>| {
            if it.name == calendar.name {
                Arc::clone(calendar)
            } else {
                Arc::clone(it)
            }
        };
        list.iter().map(one).collect()
    };
    let mut job = job.clone();
    let Calendars { exclude, only } = &job.def.schedule.calendars;
    let calendars = Calendars {
        exclude: now(exclude),
        only: now(only),
    };
    Arc::make_mut(&mut job.def).schedule.calendars = calendars;
    job
}
