//! Keys over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};

use super::answer::{self, Answer};
use super::extract::{AccessKeyPath, JsonBody, NoParams, Params};
use super::who::Admin;
use crate::api::Api;
use crate::ops::keys;
use crate::wire::{self, schema};

/// Make a key. The answer is the only place where it can be read.
#[utoipa::path(
    post, path = "/v1/keys", tag = "keys", operation_id = "create_key",
    request_body = schema::KeyRequest,
    responses(
        (status = 201, body = wire::NewAccessKey, description = "Created"),
    ),
)]
pub async fn create(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::key_draft(&body, api.engine.now())?;
    let minted = keys::create(&api, caller, draft).await?;
    let path = format!("/v1/keys/{}", minted.key.id);
    let mut response = answer::json(StatusCode::CREATED, &wire::NewAccessKey::of(&minted))?;
    answer::set(&mut response, header::LOCATION, &path);
    Ok(response)
}

/// List keys, newest first; those that ended stay for 30 days.
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys", operation_id = "list_keys",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
    ),
    responses(
        (status = 200, body = wire::AccessKeyList, description = "As asked"),
    ),
)]
pub async fn list(State(api): State<Arc<Api>>, Admin(caller): Admin, params: Params) -> Answer {
    params.known(&["cursor", "limit"])?;
    let listed = keys::list(&api, caller.tenant, answer::page(&params)?).await?;
    answer::json(
        StatusCode::OK,
        &wire::AccessKeyList {
            items: listed.items.iter().map(wire::AccessKey::of).collect(),
            next_cursor: listed.next.as_ref().map(answer::cursor),
        },
    )
}

/// Show a key, without what it is made of.
#[utoipa::path(
    get, path = "/v1/keys/{id}", tag = "keys", operation_id = "get_key",
    params(("id" = String, Path, description = "The key's id")),
    responses(
        (status = 200, body = wire::AccessKey, description = "As asked"),
    ),
)]
pub async fn show(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    AccessKeyPath(id): AccessKeyPath,
    _: NoParams,
) -> Answer {
    let key = keys::get(&api, caller.tenant, id).await?;
    answer::json(StatusCode::OK, &wire::AccessKey::of(&key))
}

/// Revoke a key: it opens nothing any more, on any node within a second.
#[utoipa::path(
    delete, path = "/v1/keys/{id}", tag = "keys", operation_id = "revoke_key",
    params(("id" = String, Path, description = "The key's id")),
    responses(
        (status = 200, body = wire::AccessKey, description = "Revoked, now or before"),
    ),
)]
pub async fn revoke(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    AccessKeyPath(id): AccessKeyPath,
    _: NoParams,
) -> Answer {
    let key = keys::revoke(&api, caller, id).await?;
    answer::json(StatusCode::OK, &wire::AccessKey::of(&key))
}
