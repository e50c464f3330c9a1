//! Secrets over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use model::{SecretName, TenantId};

use super::answer::{self, Answer, LIMIT_DEFAULT};
use super::extract::{JsonBody, NoParams, Params, SecretPath};
use super::who::{Admin, Root};
use crate::api::Api;
use crate::ops::secrets;
use crate::wire::{self, schema};

fn created(secret: &model::Secret) -> Answer {
    let mut response = answer::json(StatusCode::CREATED, &wire::Secret::of(secret))?;
    let path = format!("/v1/secrets/{}", secret.name);
    answer::set(&mut response, header::LOCATION, &path);
    Ok(response)
}

/// Make a secret. No answer holds its value.
#[utoipa::path(
    post, path = "/v1/secrets", tag = "secrets", operation_id = "create_secret",
    request_body = schema::SecretRequest,
    responses(
        (status = 201, body = wire::Secret, description = "Created"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::secret_draft(&body)?;
    let name = wire::secret_name_of(&draft)?;
    created(&secrets::create(&api, caller.tenant, &name, &draft).await?)
}

/// List secrets by name, without their values.
#[utoipa::path(
    get, path = "/v1/secrets", tag = "secrets", operation_id = "list_secrets",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
    ),
    responses(
        (status = 200, body = wire::SecretList, description = "A page of secrets"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit"])?;
    let after: Option<SecretName> = answer::cursor_of(&params)?;
    let limit = answer::limit_of(&params, LIMIT_DEFAULT)?;
    let page = secrets::list(&api, caller.tenant, after, limit).await?;
    answer::json(
        StatusCode::OK,
        &wire::SecretList {
            items: page.items.iter().map(wire::Secret::of).collect(),
            next_cursor: page.next.as_ref().map(answer::cursor),
        },
    )
}

/// Show a secret, without its value.
#[utoipa::path(
    get, path = "/v1/secrets/{name}", tag = "secrets", operation_id = "get_secret",
    params(("name" = String, Path, description = "The secret's name")),
    responses(
        (status = 200, body = wire::Secret, description = "The secret, without its value"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    SecretPath(name): SecretPath,
    _: NoParams,
) -> Answer {
    let secret = secrets::get(&api, caller.tenant, &name).await?;
    answer::json(StatusCode::OK, &wire::Secret::of(&secret))
}

/// Make a secret, or change it. What is left out stays as it is. Attempts send the new value within a second.
#[utoipa::path(
    put, path = "/v1/secrets/{name}", tag = "secrets", operation_id = "put_secret",
    params(("name" = String, Path, description = "The secret's name")),
    request_body = schema::SecretPatch,
    responses(
        (status = 200, body = wire::Secret, description = "Changed"),
        (status = 201, body = wire::Secret, description = "Created"),
    ),
)]
pub(super) async fn put(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    SecretPath(name): SecretPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::secret_draft(&body)?;
    let written = secrets::put(&api, caller.tenant, &name, &draft).await?;
    if written.created {
        return created(&written.secret);
    }
    answer::json(StatusCode::OK, &wire::Secret::of(&written.secret))
}

/// Delete a secret. Attempts that need it fail from then on, and send nothing.
#[utoipa::path(
    delete, path = "/v1/secrets/{name}", tag = "secrets", operation_id = "delete_secret",
    params(("name" = String, Path, description = "The secret's name")),
    responses(
        (status = 200, body = wire::Secret, description = "Deleted; as it was"),
    ),
)]
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    SecretPath(name): SecretPath,
    _: NoParams,
) -> Answer {
    let secret = secrets::delete(&api, caller.tenant, &name).await?;
    answer::json(StatusCode::OK, &wire::Secret::of(&secret))
}

/// Seal secrets of all tenants under the current master key, up to 200 at once.
#[utoipa::path(
    post, path = "/v1/secrets/rewrap", tag = "secrets", operation_id = "rewrap_secrets",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the step before"),
    ),
    responses(
        (status = 200, body = wire::RewrapAnswer, description = "What this step came to"),
    ),
)]
pub(super) async fn rewrap(
    State(api): State<Arc<Api>>,
    _: Root,
    params: Params,
    JsonBody(body): JsonBody,
) -> Answer {
    params.known(&["cursor"])?;
    wire::nothing(&body)?;
    let after: Option<(TenantId, SecretName)> = answer::cursor_of(&params)?;
    let step = secrets::rewrap(&api, after).await?;
    let next = step.next.as_ref().map(answer::cursor);
    answer::json(StatusCode::OK, &wire::RewrapAnswer::of(&step, next))
}
