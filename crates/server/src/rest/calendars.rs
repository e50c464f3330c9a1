//! Calendars over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use model::CalendarName;
use store::CalendarUse;

use super::answer::{self, Answer, LIMIT_DEFAULT};
use super::extract::{CalendarPath, JsonBody, NoParams, Params, expect};
use super::who::{Admin, Reader};
use crate::api::Api;
use crate::ops::calendars::{self, CalendarWritten};
use crate::wire::{self, schema};

fn answered(status: StatusCode, used: &CalendarUse) -> Answer {
    let calendar = &used.calendar;
    let path = format!("/v1/calendars/{}", calendar.name);
    answer::versioned(status, calendar.version, &path, &wire::Calendar::of(used))
}

fn written(written: &CalendarWritten) -> Answer {
    let status = if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    answered(status, &written.used)
}

/// Create a calendar.
#[utoipa::path(
    post, path = "/v1/calendars", tag = "calendars", operation_id = "create_calendar",
    request_body = schema::CalendarRequest,
    responses(
        (status = 201, body = wire::Calendar, description = "Created"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let draft = wire::calendar_draft(&body)?;
    let name = wire::name_of(&draft)?;
    written(&calendars::create(&api, caller.tenant, name, draft).await?)
}

/// List calendars by name.
#[utoipa::path(
    get, path = "/v1/calendars", tag = "calendars", operation_id = "list_calendars",
    params(
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 1000; 50 by default"),
    ),
    responses(
        (status = 200, body = wire::CalendarList, description = "A page of calendars"),
    ),
)]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    params: Params,
) -> Answer {
    params.known(&["cursor", "limit"])?;
    let after: Option<CalendarName> = answer::cursor_of(&params)?;
    let limit = answer::limit_of(&params, LIMIT_DEFAULT)?;
    let page = calendars::list(&api, tenant, after, limit).await?;
    answer::json(
        StatusCode::OK,
        &wire::CalendarList {
            items: page.items.iter().map(wire::Calendar::of).collect(),
            next_cursor: page.next.as_ref().map(answer::cursor),
        },
    )
}

/// Show a calendar.
#[utoipa::path(
    get, path = "/v1/calendars/{name}", tag = "calendars", operation_id = "get_calendar",
    params(("name" = String, Path, description = "The calendar's name")),
    responses(
        (status = 200, body = wire::Calendar, description = "The calendar"),
    ),
)]
pub(super) async fn show(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    CalendarPath(name): CalendarPath,
) -> Answer {
    answered(StatusCode::OK, &calendars::get(&api, tenant, &name).await?)
}

/// Create a calendar, or make it what the body says. Jobs that name it follow at once.
#[utoipa::path(
    put, path = "/v1/calendars/{name}", tag = "calendars", operation_id = "put_calendar",
    params(
        ("name" = String, Path, description = "The calendar's name"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be changed"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only create"),
    ),
    request_body = schema::CalendarRequest,
    responses(
        (status = 200, body = wire::Calendar, description = "Changed, or already so"),
        (status = 201, body = wire::Calendar, description = "Created"),
    ),
)]
pub(super) async fn put(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    CalendarPath(name): CalendarPath,
    _: NoParams,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Answer {
    let expect = expect(&headers)?;
    let draft = wire::calendar_draft(&body)?;
    written(&calendars::put(&api, caller.tenant, &name, draft, &expect).await?)
}

/// Delete a calendar that no job names.
#[utoipa::path(
    delete, path = "/v1/calendars/{name}", tag = "calendars", operation_id = "delete_calendar",
    params(
        ("name" = String, Path, description = "The calendar's name"),
        ("If-Match" = Option<String>, Header, description = "The version that is to be deleted"),
    ),
    responses(
        (status = 200, body = wire::Calendar, description = "Deleted; as it was"),
    ),
)]
pub(super) async fn delete(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    CalendarPath(name): CalendarPath,
    _: NoParams,
    headers: HeaderMap,
) -> Answer {
    let expect = expect(&headers)?;
    let used = calendars::delete(&api, caller.tenant, &name, &expect).await?;
    answer::json(StatusCode::OK, &wire::Calendar::of(&used))
}
