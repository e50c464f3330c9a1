//! Keys over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use model::{Tenant, TenantName};

use super::answer::{self, Answer};
use super::extract::{AccessKeyPath, JsonBody, NoParams, Params, refuse};
use super::who::Admin;
use crate::access::Caller;
use crate::api::Api;
use crate::ops::keys;
use crate::problem::Problem;
use crate::wire::{self, schema};

/// The tenant that the parameter names, or the caller's.
async fn tenant(api: &Api, caller: Caller, params: &Params) -> Result<Tenant, Problem> {
    let name = params.one("tenant")?.map(TenantName::new).transpose();
    let name = name.map_err(|error| refuse("tenant", error.to_string()))?;
    Ok(keys::tenant(api, caller, name.as_ref()).await?)
}

/// Make a key. The answer is the only place where it can be read.
#[utoipa::path(
    post, path = "/v1/keys", tag = "keys", operation_id = "create_key",
    request_body = schema::KeyRequest,
    responses(
        (status = 201, body = wire::NewAccessKey, description = "Created"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::key_draft(&body, api.engine.now())?;
    let tenant = keys::tenant(&api, caller, draft.tenant.as_ref()).await?;
    let minted = keys::create(&api, caller, &tenant, draft).await?;
    let path = format!("/v1/keys/{}", minted.key.id);
    let mut response = answer::json(
        StatusCode::CREATED,
        &wire::NewAccessKey::of(&minted, &tenant),
    )?;
    answer::set(&mut response, header::LOCATION, &path);
    Ok(response)
}

/// List keys, newest first; those that ended stay for 30 days.
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys", operation_id = "list_keys",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
        ("tenant" = Option<String>, Query, description = "Whose, by name; any but its own is found by root only"),
    ),
    responses(
        (status = 200, body = wire::AccessKeyList, description = "A page of keys"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit", "tenant"])?;
    let tenant = tenant(&api, caller, &params).await?;
    let listed = keys::list(&api, &tenant, answer::page(&params)?).await?;
    answer::json(
        StatusCode::OK,
        &wire::AccessKeyList {
            items: listed
                .items
                .iter()
                .map(|key| wire::AccessKey::of(key, &tenant))
                .collect(),
            next_cursor: listed.next.as_ref().map(answer::cursor),
        },
    )
}

/// Show a key, without what it is made of.
#[utoipa::path(
    get, path = "/v1/keys/{id}", tag = "keys", operation_id = "get_key",
    params(
        ("id" = String, Path, description = "The key's id"),
        ("tenant" = Option<String>, Query, description = "Whose, by name; any but its own is found by root only"),
    ),
    responses(
        (status = 200, body = wire::AccessKey, description = "The key"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    AccessKeyPath(id): AccessKeyPath,
    params: Params,
) -> Answer {
    params.known(&["tenant"])?;
    let tenant = tenant(&api, caller, &params).await?;
    let key = keys::get(&api, &tenant, id).await?;
    answer::json(StatusCode::OK, &wire::AccessKey::of(&key, &tenant))
}

/// Revoke a key: it opens nothing any more, on any node within a second.
#[utoipa::path(
    delete, path = "/v1/keys/{id}", tag = "keys", operation_id = "revoke_key",
    params(
        ("id" = String, Path, description = "The key's id"),
        ("tenant" = Option<String>, Query, description = "Whose, by name; any but its own is found by root only"),
    ),
    responses(
        (status = 200, body = wire::AccessKey, description = "Revoked, now or before"),
    ),
)]
pub(super) async fn revoke(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    AccessKeyPath(id): AccessKeyPath,
    params: Params,
) -> Answer {
    params.known(&["tenant"])?;
    let tenant = tenant(&api, caller, &params).await?;
    let key = keys::revoke(&api, caller, &tenant, id).await?;
    answer::json(StatusCode::OK, &wire::AccessKey::of(&key, &tenant))
}
