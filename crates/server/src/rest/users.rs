//! Users over REST, and links that log in to the console.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use model::UserName;

use super::answer::{self, Answer, LIMIT_DEFAULT};
use super::extract::{JsonBody, NoParams, Params, UserPath};
use super::who::{Admin, Viewer};
use crate::api::Api;
use crate::ops::{UserFault, sessions, users};
use crate::problem::{Kind, Problem};
use crate::wire::{self, schema};

/// Make a user: somebody who logs in to the console.
#[utoipa::path(
    post, path = "/v1/users", tag = "users", operation_id = "create_user",
    request_body = schema::UserRequest,
    responses(
        (status = 201, body = wire::User, description = "Created"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::user_draft(&body)?;
    let user = users::create(&api, caller, draft).await?;
    let mut response = answer::json(StatusCode::CREATED, &wire::User::of(&user))?;
    let path = format!("/v1/users/{}", user.user.name);
    answer::set(&mut response, header::LOCATION, &path);
    Ok(response)
}

/// List users by name: of the caller's tenant, and as root all.
#[utoipa::path(
    get, path = "/v1/users", tag = "users", operation_id = "list_users",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
    ),
    responses(
        (status = 200, body = wire::UserList, description = "A page of users"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit"])?;
    let after: Option<UserName> = answer::cursor_of(&params)?;
    let limit = answer::limit_of(&params, LIMIT_DEFAULT)?;
    let page = users::list(&api, caller, after, limit).await?;
    answer::json(
        StatusCode::OK,
        &wire::UserList {
            items: page.items.iter().map(wire::User::of).collect(),
            next_cursor: page.next.as_ref().map(answer::cursor),
        },
    )
}

/// Show a user, without its password.
#[utoipa::path(
    get, path = "/v1/users/{name}", tag = "users", operation_id = "get_user",
    params(("name" = String, Path, description = "The user's name")),
    responses(
        (status = 200, body = wire::User, description = "The user"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    UserPath(name): UserPath,
    _: NoParams,
) -> Answer {
    let user = users::get(&api, caller, &name).await?;
    answer::json(StatusCode::OK, &wire::User::of(&user))
}

/// Change a user's password or its roles: what the body does not mention stays.
#[utoipa::path(
    patch, path = "/v1/users/{name}", tag = "users", operation_id = "patch_user",
    params(("name" = String, Path, description = "The user's name")),
    request_body = schema::UserPatch,
    responses(
        (status = 200, body = wire::User, description = "The user"),
    ),
)]
pub(super) async fn patch(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    UserPath(name): UserPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::user_draft(&body)?;
    let user = users::edit(&api, caller, &name, draft).await?;
    answer::json(StatusCode::OK, &wire::User::of(&user))
}

/// Delete a user: its sessions end.
#[utoipa::path(
    delete, path = "/v1/users/{name}", tag = "users", operation_id = "delete_user",
    params(("name" = String, Path, description = "The user's name")),
    responses(
        (status = 200, body = wire::User, description = "Deleted; as it was"),
    ),
)]
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    UserPath(name): UserPath,
    _: NoParams,
) -> Answer {
    let user = users::delete(&api, caller, &name).await?;
    answer::json(StatusCode::OK, &wire::User::of(&user))
}

/// Make a link that logs in to the console, once and within a minute, as the holder of this key.
#[utoipa::path(
    post, path = "/v1/console/links", tag = "users", operation_id = "create_console_link",
    responses(
        (status = 201, body = wire::ConsoleLink, description = "Created"),
    ),
)]
pub(super) async fn link(
    State(api): State<Arc<Api>>,
    Viewer(caller): Viewer,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    wire::nothing(&body)?;
    let link = match sessions::link(&api, caller).await? {
        Some((token, expires_at)) => {
            let path = format!("/login/link?token={}", token.as_str());
            wire::ConsoleLink::of(path, Some(expires_at))
        }
        None => wire::ConsoleLink::of("/".to_owned(), None),
    };
    answer::json(StatusCode::CREATED, &link)
}

impl From<UserFault> for Problem {
    fn from(fault: UserFault) -> Self {
        let detail = fault.to_string();
        match fault {
            UserFault::Missing(_) => Self::new(Kind::UserNotFound, detail).at("name"),
            UserFault::Exists(name) => {
                let detail = format!("{detail}: PATCH /v1/users/{name} changes it");
                Self::new(Kind::UserExists, detail).at("name")
            }
            UserFault::Full => Self::new(Kind::UsersFull, format!("{detail}: delete one")),
            UserFault::Elsewhere(_) => Self::new(Kind::RoleInsufficient, detail),
        }
    }
}
