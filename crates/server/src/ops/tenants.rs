//! What a client does to tenants.

use model::{Tenant, TenantId, TenantName};
use store::{JobFilter, Page, TenantCreated, TenantDropped};

use super::error::{OpError, TenantFault};
use crate::api::Api;

/// What a client says of a new tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantDraft {
    pub name: TenantName,
    pub note: Option<String>,
}

pub async fn create(api: &Api, draft: TenantDraft) -> Result<Tenant, OpError> {
    let now = api.engine.now();
    let tenant = Tenant {
        id: TenantId::new(now, rand::random()),
        name: draft.name,
        note: draft.note,
        created_at: now,
    };
    let created = api.store.access().create_tenant(&tenant).await;
    match created.map_err(OpError::Write)? {
        TenantCreated::Done => Ok(tenant),
        TenantCreated::Exists => Err(TenantFault::Exists(tenant.name).into()),
        TenantCreated::Full => Err(TenantFault::Full.into()),
    }
}

pub async fn get(api: &Api, name: &TenantName) -> Result<Tenant, OpError> {
    let found = api.store.access().find_tenant(name).await?;
    found.ok_or_else(|| TenantFault::Missing(name.clone()).into())
}

/// Tenants by name, and the name after which the next page begins.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantPage {
    pub items: Vec<Tenant>,
    pub next: Option<TenantName>,
}

pub async fn list(
    api: &Api,
    after: Option<TenantName>,
    limit: usize,
) -> Result<TenantPage, OpError> {
    // One more than wanted shows whether there is a next page.
    let access = api.store.access();
    let mut items = access.list_tenants(after.as_ref(), limit + 1).await?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| has_more);
    let next = last.map(|tenant| tenant.name.clone());
    Ok(TenantPage { items, next })
}

/// Says what it is for.
pub async fn note(api: &Api, name: &TenantName, note: Option<&str>) -> Result<Tenant, OpError> {
    let id = get(api, name).await?.id;
    let noted = api.store.access().note_tenant(id, note).await;
    let noted = noted.map_err(OpError::Write)?;
    noted.ok_or_else(|| TenantFault::Missing(name.clone()).into())
}

/// Only one that has nothing goes. Answers it as it was.
pub async fn delete(api: &Api, name: &TenantName) -> Result<Tenant, OpError> {
    let tenant = get(api, name).await?;
    let in_use = |what| TenantFault::InUse {
        name: name.clone(),
        what,
    };
    if tenant.is_default() {
        return Err(TenantFault::Fixed.into());
    }
    let one = Page {
        before: None,
        limit: 1,
    };
    let any = JobFilter::default();
    let jobs = api.store.list_jobs(tenant.id, &any, one).await?;
    if !jobs.is_empty() {
        return Err(in_use("jobs").into());
    }
    let calendars = api.store.list_calendars(tenant.id, None, 1).await?;
    if !calendars.is_empty() {
        return Err(in_use("calendars").into());
    }
    let now = api.engine.now();
    let dropped = api.store.access().drop_tenant(tenant.id, now).await;
    match dropped.map_err(OpError::Write)? {
        TenantDropped::Done => Ok(tenant),
        TenantDropped::Missing => Err(TenantFault::Missing(name.clone()).into()),
        TenantDropped::HasKeys => Err(in_use("keys").into()),
    }
}
