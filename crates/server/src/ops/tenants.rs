//! What a client does to tenants.

use std::time::Duration;

use model::runs_day::Day;
use model::{Proxy, Quota, RunState, Tenant, TenantEdit, TenantId, TenantName, Timestamp, Usage};
use store::{JobFilter, Page, RunFilter, TenantCreated, TenantMarked, ValidKeys};

use super::error::{KeyFault, OpError, TenantFault};
use super::{Patch, keys, level, proxies};
use crate::api::Api;

const DAY: Duration = Duration::from_secs(86_400);

/// What a client says of a new tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantDraft {
    pub name: TenantName,
    pub said: TenantEdit,
    pub proxy: Patch<Proxy>,
}

/// What a client says of a tenant that is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TenantPatch {
    pub said: TenantEdit,
    pub proxy: Patch<Proxy>,
}

pub async fn create(api: &Api, draft: TenantDraft) -> Result<Tenant, OpError> {
    level::check_level(api, draft.said.needs_level()).await?;
    let proxy = proxies::check(api, None, draft.proxy).await?;
    let now = api.engine.now();
    let id = TenantId::new(now, rand::random());
    let tenant = Tenant::new(id, draft.name, now).edited(&draft.said);
    let created = api.store.access().create_tenant(&tenant).await;
    match created.map_err(OpError::Write)? {
        // It has no keys yet, so nothing of it is sent before this.
        TenantCreated::Done => proxies::write(api, id, &proxy).await.map(|()| tenant),
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

/// What it has of what its quotas bound, and how many runs it has had today.
pub async fn usage(api: &Api, tenant: &Tenant) -> Result<(Usage, u64), OpError> {
    let access = api.store.access();
    let today = Day::of(api.engine.now());
    let runs = access.runs_of_day(tenant.id, today).await?;
    Ok((access.tenant_use(tenant.id).await?, runs))
}

/// For how many days a tenant sees what has ended: as its quota says, or as long as it is kept.
pub fn history_days_max(api: &Api, tenant: &Tenant) -> u64 {
    let kept = api.engine.history_keep().as_secs().div_ceil(DAY.as_secs());
    tenant.quotas.limit(Quota::HistoryDays).unwrap_or(kept)
}

/// How many days back the oldest lies that has ended and is seen, today being one of them; none if nothing has.
pub async fn history_days(api: &Api, tenant: &Tenant) -> Result<u64, OpError> {
    let (mut least, mut most) = (0, history_days_max(api, tenant));
    while least < most {
        let middle = least.midpoint(most);
        if has_older(api, tenant.id, middle).await? {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    Ok(least)
}

async fn has_older(api: &Api, tenant: TenantId, days: u64) -> Result<bool, OpError> {
    let back = DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX));
    let filter = RunFilter {
        states: RunState::ALL
            .into_iter()
            .filter(|it| !it.is_live())
            .collect(),
        to: Some(api.engine.now().minus(back)),
        ..RunFilter::default()
    };
    let page = Page {
        before: None,
        limit: 1,
    };
    let found = api.store.list_runs(tenant, &filter, page).await?;
    Ok(!found.is_empty())
}

/// From when on a tenant sees what has ended, if it may not see all that is kept.
pub async fn history_from(api: &Api, id: TenantId) -> Result<Option<Timestamp>, OpError> {
    let tenant = api.store.access().get_tenant(id).await?;
    Ok(tenant.and_then(|tenant| tenant.quotas.history_from(api.engine.now())))
}

/// Changes what is said of it.
pub async fn edit(api: &Api, name: &TenantName, patch: TenantPatch) -> Result<Tenant, OpError> {
    let tenant = get(api, name).await?;
    let TenantPatch { said, proxy } = patch;
    level::check_level(api, said.needs_level()).await?;
    let proxy = proxies::check(api, Some(tenant.id), proxy).await?;
    proxies::write(api, tenant.id, &proxy).await?;
    if said == TenantEdit::default() {
        return Ok(tenant);
    }
    let edited = api.store.access().edit_tenant(tenant.id, &said).await;
    let edited = edited.map_err(OpError::Write)?;
    edited.ok_or_else(|| TenantFault::Missing(name.clone()).into())
}

/// It goes with all that it has, which takes a while: from now on its keys open nothing.
pub async fn delete_all(api: &Api, name: &TenantName) -> Result<Tenant, OpError> {
    let tenant = get(api, name).await?;
    if tenant.is_default() {
        return Err(TenantFault::Fixed.into());
    }
    mark(api, tenant, ValidKeys::Revoke).await
}

/// It is marked, and swept from then on: a request that is under way in this very moment leaves nothing that nobody sees.
async fn mark(api: &Api, tenant: Tenant, keys: ValidKeys) -> Result<Tenant, OpError> {
    let now = api.engine.now();
    let marked = api.store.access().delete_tenant(tenant.id, now, keys).await;
    match marked.map_err(OpError::Write)? {
        TenantMarked::Done(tenant) => {
            keys::changed(api).await;
            tracing::info!(tenant = %tenant.name, "a tenant is deleted with all that it has");
            Ok(tenant)
        }
        TenantMarked::Missing => Err(TenantFault::Missing(tenant.name).into()),
        TenantMarked::HasKeys => Err(in_use(&tenant, "keys")),
        TenantMarked::LastRoot => Err(KeyFault::LastRoot.into()),
    }
}

fn in_use(tenant: &Tenant, what: &'static str) -> OpError {
    let name = tenant.name.clone();
    TenantFault::InUse { name, what }.into()
}

/// Only one that has nothing goes, apart from what becomes of requests under way. Answers it as it stands.
pub async fn delete(api: &Api, name: &TenantName) -> Result<Tenant, OpError> {
    let tenant = get(api, name).await?;
    if tenant.deleting_at.is_some() {
        return Ok(tenant);
    }
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
        return Err(in_use(&tenant, "jobs"));
    }
    let calendars = api.store.list_calendars(tenant.id, None, 1).await?;
    if !calendars.is_empty() {
        return Err(in_use(&tenant, "calendars"));
    }
    mark(api, tenant, ValidKeys::Refuse).await
}
