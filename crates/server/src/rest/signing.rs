//! Signing secrets over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::answer::{self, Answer};
use super::extract::{JsonBody, NoParams, SigningPath};
use super::who::Admin;
use crate::api::Api;
use crate::ops::signing;
use crate::wire::{self, schema};

/// Make a signing secret, and have every callback of the tenant signed with it. The answer shows it, once. A second one may
/// stand beside the first: then both sign.
#[utoipa::path(
    post, path = "/v1/signing-secrets", tag = "signing", operation_id = "create_signing_secret",
    request_body = Option<schema::SigningSecretRequest>,
    responses(
        (status = 201, body = wire::SigningSecretMade, description = "Created"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let given = wire::signing_draft(&body)?;
    let made = signing::create(&api, caller.tenant, given).await?;
    answer::json(StatusCode::CREATED, &wire::SigningSecretMade::of(&made))
}

/// List signing secrets, without what they are.
#[utoipa::path(
    get, path = "/v1/signing-secrets", tag = "signing", operation_id = "list_signing_secrets",
    responses(
        (status = 200, body = wire::SigningSecretList, description = "The signing secrets"),
    ),
)]
pub(super) async fn list(State(api): State<Arc<Api>>, Admin(caller): Admin, _: NoParams) -> Answer {
    let found = signing::list(&api, caller.tenant).await?;
    let items = found.iter().map(wire::SigningSecret::of).collect();
    answer::json(StatusCode::OK, &wire::SigningSecretList { items })
}

/// Delete a signing secret. Nothing is signed with it any more; without another one nothing is signed at all.
#[utoipa::path(
    delete, path = "/v1/signing-secrets/{id}", tag = "signing", operation_id = "delete_signing_secret",
    params(("id" = String, Path, description = "The signing secret's id")),
    responses(
        (status = 200, body = wire::SigningSecret, description = "Deleted; as it was"),
    ),
)]
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    SigningPath(id): SigningPath,
    _: NoParams,
) -> Answer {
    let secret = signing::delete(&api, caller.tenant, id).await?;
    answer::json(StatusCode::OK, &wire::SigningSecret::of(&secret))
}
