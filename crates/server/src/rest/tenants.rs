//! Tenants over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use model::{Tenant, TenantName};

use super::answer::{self, Answer, LIMIT_DEFAULT};
use super::extract::{JsonBody, NoParams, Params, TenantPath};
use super::who::Root;
use crate::api::Api;
use crate::ops::{OpError, proxies, tenants};
use crate::wire::{self, schema};

/// Make a tenant. It has no keys yet: `POST /v1/keys` makes them.
#[utoipa::path(
    post, path = "/v1/tenants", tag = "tenants", operation_id = "create_tenant",
    request_body = schema::TenantRequest,
    responses(
        (status = 201, body = wire::Tenant, description = "Created"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    _: Root,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::tenant_draft(&body)?;
    let tenant = tenants::create(&api, draft).await?;
    let proxy = proxies::shown(&api, tenant.id).await?;
    let body = shown(&api, &tenant).with_proxy(proxy);
    let mut response = answer::json(StatusCode::CREATED, &body)?;
    let path = format!("/v1/tenants/{}", tenant.name);
    answer::set(&mut response, header::LOCATION, &path);
    Ok(response)
}

/// List tenants by name.
#[utoipa::path(
    get, path = "/v1/tenants", tag = "tenants", operation_id = "list_tenants",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
    ),
    responses(
        (status = 200, body = wire::TenantList, description = "A page of tenants"),
    ),
)]
pub(super) async fn list(State(api): State<Arc<Api>>, _: Root, params: Params) -> Answer {
    params.known(&["cursor", "limit"])?;
    let after: Option<TenantName> = answer::cursor_of(&params)?;
    let limit = answer::limit_of(&params, LIMIT_DEFAULT)?;
    let page = tenants::list(&api, after, limit).await?;
    answer::json(
        StatusCode::OK,
        &wire::TenantList {
            items: page.items.iter().map(|it| shown(&api, it)).collect(),
            next_cursor: page.next.as_ref().map(answer::cursor),
        },
    )
}

/// Show a tenant, and what it has of what its quotas bound.
#[utoipa::path(
    get, path = "/v1/tenants/{name}", tag = "tenants", operation_id = "get_tenant",
    params(("name" = String, Path, description = "The tenant's name")),
    responses(
        (status = 200, body = wire::Tenant, description = "The tenant"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    _: Root,
    TenantPath(name): TenantPath,
    _: NoParams,
) -> Answer {
    let tenant = tenants::get(&api, &name).await?;
    answer::json(StatusCode::OK, &used(&api, &tenant).await?)
}

async fn used(api: &Api, tenant: &Tenant) -> Result<wire::Tenant, OpError> {
    let (usage, runs_day) = tenants::usage(api, tenant).await?;
    let proxy = proxies::shown(api, tenant.id).await?;
    let history_days = tenants::history_days(api, tenant).await?;
    Ok(shown(api, tenant)
        .with_proxy(proxy)
        .with_use(usage, history_days, runs_day))
}

fn shown(api: &Api, tenant: &Tenant) -> wire::Tenant {
    wire::Tenant::of(tenant, tenants::history_days_max(api, tenant))
}

/// Change what a tenant is for, how much it may have, and what its callbacks go through: what the body does not mention stays, `null` is the default.
#[utoipa::path(
    patch, path = "/v1/tenants/{name}", tag = "tenants", operation_id = "patch_tenant",
    params(("name" = String, Path, description = "The tenant's name")),
    request_body = schema::TenantPatch,
    responses(
        (status = 200, body = wire::Tenant, description = "The tenant"),
    ),
)]
pub(super) async fn patch(
    State(api): State<Arc<Api>>,
    _: Root,
    TenantPath(name): TenantPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let tenant = tenants::edit(&api, &name, wire::tenant_patch(&body)?).await?;
    answer::json(StatusCode::OK, &used(&api, &tenant).await?)
}

/// Delete a tenant that has no jobs, no calendars and no valid keys; or with everything. It goes in the background.
#[utoipa::path(
    delete, path = "/v1/tenants/{name}", tag = "tenants", operation_id = "delete_tenant",
    params(
        ("name" = String, Path, description = "The tenant's name"),
        ("with_everything" = Option<bool>, Query, description = "Also its jobs, runs, calendars and keys, in the background"),
    ),
    responses(
        (status = 202, body = wire::Tenant, description = "It is being deleted; `used` of the tenant says what is left"),
    ),
)]
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    _: Root,
    TenantPath(name): TenantPath,
    params: Params,
) -> Answer {
    params.known(&["with_everything"])?;
    let tenant = if params.switch("with_everything")? {
        tenants::delete_all(&api, &name).await?
    } else {
        tenants::delete(&api, &name).await?
    };
    answer::json(StatusCode::ACCEPTED, &used(&api, &tenant).await?)
}
