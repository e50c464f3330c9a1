//! What a client does to calendars.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{Calendar, CalendarName, TenantId, Version, limits};
use store::{CalendarDropped, CalendarPut, CalendarUse};

use super::change::Expect;
use super::draft::CalendarDraft;
use super::error::{CalendarFault, OpError};
use super::fault::FieldError;
use super::schedule::Known;
use crate::api::Api;

/// How often a write looks again when others change the same calendar.
const TRIES_MAX: u32 = 8;
/// Calendars read from the store at once.
const READ_MAX: usize = 50;
/// A page ends early when its calendars hold so many entries.
const ENTRIES_MAX: usize = 50_000;

/// The calendars of these names, as far as they exist; each is read once.
pub async fn known(
    api: &Api,
    tenant: TenantId,
    names: impl Iterator<Item = &CalendarName>,
) -> Result<Known, OpError> {
    let names: Vec<CalendarName> = names
        .collect::<BTreeSet<_>>()
        .into_iter()
        .cloned()
        .collect();
    if names.is_empty() {
        return Ok(Known::default());
    }
    let found = api.store.get_calendars(tenant, &names).await?;
    let entry = |used: CalendarUse| (used.calendar.name.clone(), used.calendar);
    let found: BTreeMap<_, _> = found.into_iter().flatten().map(entry).collect();
    Ok(Known(found))
}

async fn find(
    api: &Api,
    tenant: TenantId,
    name: &CalendarName,
) -> Result<Option<CalendarUse>, OpError> {
    let names = std::slice::from_ref(name);
    let found = api.store.get_calendars(tenant, names).await?;
    Ok(found.into_iter().next().flatten())
}

pub async fn get(api: &Api, tenant: TenantId, name: &CalendarName) -> Result<CalendarUse, OpError> {
    find(api, tenant, name)
        .await?
        .ok_or_else(|| CalendarFault::Missing(name.clone()).into())
}

/// Calendars by name, and the name after which the next page begins.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarPage {
    pub items: Vec<CalendarUse>,
    pub next: Option<CalendarName>,
}

/// A page holds `limit` calendars or fewer: large ones fill it sooner.
pub async fn list(
    api: &Api,
    tenant: TenantId,
    after: Option<CalendarName>,
    limit: usize,
) -> Result<CalendarPage, OpError> {
    let mut items: Vec<CalendarUse> = Vec::new();
    let mut entries = 0;
    let mut least = 1;
    loop {
        let last = items.last().map(|used| &used.calendar.name);
        // One more than wanted shows whether there is a next page.
        let wanted = (limit + 1 - items.len()).min(READ_MAX).max(least);
        let last = last.or(after.as_ref()).cloned();
        let read = api
            .store
            .list_calendars(tenant, last.as_ref(), wanted)
            .await?;
        // A store leaves out what it cannot read: nothing is the end only if more than there can be was
        // asked for.
        least = if !read.is_empty() {
            1
        } else if wanted >= limits::CALENDARS_MAX {
            return Ok(CalendarPage { items, next: None });
        } else if wanted >= READ_MAX {
            limits::CALENDARS_MAX
        } else {
            READ_MAX
        };
        for used in read {
            if items.len() == limit || entries > ENTRIES_MAX {
                let next = items.last().map(|used| used.calendar.name.clone());
                return Ok(CalendarPage { items, next });
            }
            entries += used.calendar.len();
            items.push(used);
        }
    }
}

impl CalendarDraft {
    fn into_calendar(self, name: CalendarName, api: &Api) -> Calendar {
        Calendar {
            note: self.note,
            zone: self.zone,
            dates: self.dates,
            yearly: self.yearly,
            weekly: self.weekly,
            ranges: self.ranges,
            ..Calendar::new(name, api.engine.now())
        }
    }
}

/// A calendar as it stands after a write.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarWritten {
    pub used: CalendarUse,
    /// False when it was there before.
    pub created: bool,
}

/// A new calendar; there must be none of that name.
pub async fn create(
    api: &Api,
    tenant: TenantId,
    name: CalendarName,
    draft: CalendarDraft,
) -> Result<CalendarWritten, OpError> {
    let calendar = draft.into_calendar(name, api);
    let put = api.store.put_calendar(tenant, &calendar, None).await;
    match put.map_err(OpError::Write)? {
        CalendarPut::Done => Ok(written(calendar)),
        CalendarPut::Conflict(_) => Err(CalendarFault::Exists(calendar.name).into()),
        CalendarPut::Full => Err(CalendarFault::Full.into()),
    }
}

/// Nothing can hang on what was not there before.
fn written(calendar: Calendar) -> CalendarWritten {
    CalendarWritten {
        used: CalendarUse {
            calendar: Arc::new(calendar),
            jobs: 0,
            applied: true,
        },
        created: true,
    }
}

/// The calendar of that name becomes what the draft says, whether it was there or not. Saying what is so
/// already writes nothing.
pub async fn put(
    api: &Api,
    tenant: TenantId,
    name: &CalendarName,
    draft: CalendarDraft,
    expect: &Expect,
) -> Result<CalendarWritten, OpError> {
    if let Some(given) = draft.name.as_ref().filter(|given| *given != name) {
        let detail = format!("the body says {given}, the path says {name}: leave it out here");
        return Err(FieldError::invalid("name", detail).into());
    }
    let mut calendar = draft.into_calendar(name.clone(), api);
    for _ in 0..TRIES_MAX {
        let stands = find(api, tenant, name).await?;
        let before = stands.as_ref().map(|used| used.calendar.version);
        check(expect, name, before)?;
        if let Some(used) = stands.filter(|used| same(&used.calendar, &calendar)) {
            return Ok(CalendarWritten {
                used,
                created: false,
            });
        }
        calendar.version = before.map_or(Version::FIRST, Version::next);
        let put = api.store.put_calendar(tenant, &calendar, before).await;
        match put.map_err(OpError::Write)? {
            CalendarPut::Done if before.is_none() => return Ok(written(calendar)),
            CalendarPut::Done => {
                api.engine.nudge_rules();
                return Ok(CalendarWritten {
                    used: get(api, tenant, name).await?,
                    created: false,
                });
            }
            // Someone was faster: look again at what stands now.
            CalendarPut::Conflict(_) => {}
            CalendarPut::Full => return Err(CalendarFault::Full.into()),
        }
    }
    Err(OpError::Contended)
}

fn same(stands: &Calendar, said: &Calendar) -> bool {
    stands.same_times(said) && stands.note == said.note
}

fn check(
    expect: &Expect,
    name: &CalendarName,
    stands: Option<Version>,
) -> Result<(), CalendarFault> {
    match (expect, stands) {
        (Expect::Anything, _) | (Expect::Existing, Some(_)) | (Expect::Absent, None) => Ok(()),
        (Expect::OneOf(versions), Some(found)) if versions.contains(&found) => Ok(()),
        (Expect::OneOf(_), Some(found)) => Err(CalendarFault::VersionConflict(found)),
        (Expect::OneOf(_) | Expect::Existing, None) => {
            Err(CalendarFault::NothingToMatch(name.clone()))
        }
        (Expect::Absent, Some(found)) => Err(CalendarFault::Stands(found)),
    }
}

/// Only one that no job names goes. Answers it as it was.
pub async fn delete(
    api: &Api,
    tenant: TenantId,
    name: &CalendarName,
    expect: &Expect,
) -> Result<CalendarUse, OpError> {
    for _ in 0..TRIES_MAX {
        let used = get(api, tenant, name).await?;
        let version = used.calendar.version;
        check(expect, name, Some(version))?;
        let dropped = api.store.drop_calendar(tenant, name, Some(version)).await;
        match dropped.map_err(OpError::Write)? {
            CalendarDropped::Done => return Ok(used),
            CalendarDropped::InUse(jobs, count) => {
                let name = name.clone();
                return Err(CalendarFault::InUse { name, jobs, count }.into());
            }
            CalendarDropped::Conflict(_) => {}
            CalendarDropped::Missing => return Err(CalendarFault::Missing(name.clone()).into()),
        }
    }
    Err(OpError::Contended)
}

const _: () = assert!(limits::PAGE_MAX >= READ_MAX && limits::CALENDARS_MAX >= READ_MAX);
