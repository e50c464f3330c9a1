//! Alerts over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use model::{AlertName, Scope};

use super::answer::{self, Answer, LIMIT_DEFAULT};
use super::extract::{AlertPath, JsonBody, NoParams, Params, job_id};
use super::who::{Admin, Reader};
use crate::api::Api;
use crate::ops::{FieldError, alerts};
use crate::wire::{self, schema};

/// List alerts by name.
#[utoipa::path(
    get, path = "/v1/alerts", tag = "alerts", operation_id = "list_alerts",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
    ),
    responses(
        (status = 200, body = wire::AlertList, description = "The rules"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit"])?;
    let after: Option<AlertName> = answer::cursor_of(&params)?;
    let limit = answer::limit_of(&params, LIMIT_DEFAULT)?;
    let (items, next) = alerts::list(&api, tenant, after, limit).await?;
    answer::json(
        StatusCode::OK,
        &wire::AlertList {
            items: items.iter().map(wire::Alert::of).collect(),
            next_cursor: next.as_ref().map(answer::cursor),
        },
    )
}

/// Show an alert, and the jobs for which it fires.
#[utoipa::path(
    get, path = "/v1/alerts/{name}", tag = "alerts", operation_id = "get_alert",
    params(("name" = String, Path, description = "The alert's name")),
    responses(
        (status = 200, body = wire::Alert, description = "The rule"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    AlertPath(name): AlertPath,
    _: NoParams,
) -> Answer {
    let shown = alerts::show(&api, tenant, &name).await?;
    answer::json(StatusCode::OK, &wire::Alert::shown(&shown))
}

/// Create an alert, or make it what the body says. Whether it is muted stays as it is.
#[utoipa::path(
    put, path = "/v1/alerts/{name}", tag = "alerts", operation_id = "put_alert",
    params(("name" = String, Path, description = "The alert's name")),
    request_body = schema::AlertRequest,
    responses(
        (status = 200, body = wire::Alert, description = "Changed"),
        (status = 201, body = wire::Alert, description = "Created"),
    ),
)]
pub(super) async fn put(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    AlertPath(name): AlertPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let (mut draft, job) = wire::alert_draft(&body)?;
    if let Some(job) = job {
        let named = job_id(&api, caller.tenant, &job).await?;
        let id = named.map_err(|why| FieldError::invalid("job", why))?;
        // An id is read, and not looked up.
        crate::ops::jobs::get(&api, caller.tenant, id).await?;
        draft.scope = Scope::Job(id);
    }
    let (alert, is_new) = alerts::put(&api, caller, &name, draft).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let mut response = answer::json(status, &wire::Alert::of(&alert))?;
    if is_new {
        let path = format!("/v1/alerts/{name}");
        answer::set(&mut response, header::LOCATION, &path);
    }
    Ok(response)
}

/// Delete an alert. Deliveries of it that wait are cancelled.
#[utoipa::path(
    delete, path = "/v1/alerts/{name}", tag = "alerts", operation_id = "delete_alert",
    params(("name" = String, Path, description = "The alert's name")),
    responses(
        (status = 200, body = wire::Alert, description = "Deleted; as it was"),
    ),
)]
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    AlertPath(name): AlertPath,
    _: NoParams,
) -> Answer {
    let alert = alerts::delete(&api, caller, &name).await?;
    answer::json(StatusCode::OK, &wire::Alert::of(&alert))
}

/// Mute an alert until a moment, or not any more. What fires meanwhile is sent afterwards, if it still does.
#[utoipa::path(
    post, path = "/v1/alerts/{name}/mute", tag = "alerts", operation_id = "mute_alert",
    params(("name" = String, Path, description = "The alert's name")),
    request_body = schema::MuteBody,
    responses(
        (status = 200, body = wire::Alert, description = "As it stands"),
    ),
)]
pub(super) async fn mute(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    AlertPath(name): AlertPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let until = wire::mute(&body)?;
    let alert = alerts::mute(&api, caller.tenant, &name, until).await?;
    answer::json(StatusCode::OK, &wire::Alert::of(&alert))
}

/// Send a test, as an alert would be sent. The run that is answered delivers it.
#[utoipa::path(
    post, path = "/v1/alerts/{name}/test", tag = "alerts", operation_id = "test_alert",
    params(("name" = String, Path, description = "The alert's name")),
    responses(
        (status = 202, body = wire::Run, description = "Begun"),
    ),
)]
pub(super) async fn test(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    AlertPath(name): AlertPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    wire::nothing(&body)?;
    let run = alerts::test(&api, caller.tenant, &name).await?;
    answer::json(StatusCode::ACCEPTED, &wire::Run::of(&run))
}

/// List the deliveries of an alert, newest first: runs of the system, each with its attempts.
#[utoipa::path(
    get, path = "/v1/alerts/{name}/deliveries", tag = "alerts", operation_id = "list_deliveries_of_alert",
    params(
        ("name" = String, Path, description = "The alert's name"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
    ),
    responses(
        (status = 200, body = wire::RunList, description = "A page of runs"),
    ),
)]
pub(super) async fn deliveries(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    AlertPath(name): AlertPath,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit"])?;
    let listed = alerts::deliveries(&api, tenant, &name, answer::page(&params)?).await?;
    answer::json(
        StatusCode::OK,
        &wire::RunList {
            items: listed.items.iter().map(wire::Run::of).collect(),
            next_cursor: listed.next.as_ref().map(answer::cursor),
        },
    )
}
