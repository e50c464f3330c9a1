//! Handed-over attempts over REST. A request is let in by the attempt's token, in a header: never by a key, and never by
//! anything in its URL.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use model::limits;

use super::answer::{self, Answer};
use super::extract::{JsonBody, NoParams, Params, RawBody, RunPath};
use super::who::Reader;
use crate::api::Api;
use crate::ops::outside;
use crate::problem::{Kind, Problem};
use crate::wire::{self, schema};

const TOKEN: HeaderName = HeaderName::from_static("punctual-token");

/// Whether a request is let in by a token, and no key is asked for.
pub(super) fn is_by_token(request: &Request) -> bool {
    let path = request.uri().path();
    let Some((_, last)) = path
        .strip_prefix("/v1/runs/")
        .and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    match *request.method() {
        Method::POST => ["report", "heartbeat", "log"].contains(&last),
        Method::GET | Method::HEAD => last == "checkpoint",
        _ => false,
    }
}

/// The same whatever is wrong: no token, one of another run, one that nobody made.
pub(crate) fn refused() -> Problem {
    let detail =
        "send the token of the attempt, as it came with its request, in the header Punctual-Token";
    Problem::new(Kind::Unauthorized, detail).at("Punctual-Token")
}

/// The one token that a request carries. Two are none.
pub(super) struct Token(String);

impl FromRequestParts<Arc<Api>> for Token {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Api>) -> Result<Self, Problem> {
        let mut all = parts.headers.get_all(TOKEN).iter();
        let one = all.next().filter(|_| all.next().is_none());
        let text = one.and_then(|value| value.to_str().ok());
        text.map(|text| Self(text.to_owned())).ok_or_else(refused)
    }
}

/// Report how an attempt went that its target took over. Asked again with the same outcome, it is answered as before.
#[utoipa::path(
    post, path = "/v1/runs/{id}/report", tag = "runs", operation_id = "report_run",
    params(
        ("id" = String, Path, description = "The run's id"),
        ("Punctual-Token" = String, Header, description = "The token of the attempt"),
    ),
    request_body(content = schema::ReportBody),
    responses(
        (status = 200, body = wire::ReportAnswer, description = "Taken"),
    ),
)]
pub(super) async fn report(
    State(api): State<Arc<Api>>,
    Token(token): Token,
    RunPath(id): RunPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let report = wire::report(&body)?;
    let outcome = report.outcome;
    let taken = outside::report(&api, id, &token, report).await?;
    answer::json(StatusCode::OK, &wire::ReportAnswer::of(outcome, &taken))
}

/// Say that the work goes on. The answer says whether it is to stop.
#[utoipa::path(
    post, path = "/v1/runs/{id}/heartbeat", tag = "runs", operation_id = "heartbeat_run",
    params(
        ("id" = String, Path, description = "The run's id"),
        ("Punctual-Token" = String, Header, description = "The token of the attempt"),
    ),
    request_body(content = Option<schema::HeartbeatBody>),
    responses(
        (status = 200, body = wire::HeartbeatAnswer, description = "Heard"),
    ),
)]
pub(super) async fn heartbeat(
    State(api): State<Arc<Api>>,
    Token(token): Token,
    RunPath(id): RunPath,
    _: NoParams,
    JsonBody(body): JsonBody,
) -> Answer {
    let said = wire::heartbeat(&body)?;
    let heard = outside::heartbeat(&api, id, &token, said).await?;
    answer::json(StatusCode::OK, &wire::HeartbeatAnswer::of(&heard))
}

/// Append to what a run says of its work. The head and the tail are kept. It is no heartbeat.
#[utoipa::path(
    post, path = "/v1/runs/{id}/log", tag = "runs", operation_id = "append_log_of_run",
    params(
        ("id" = String, Path, description = "The run's id"),
        ("Punctual-Token" = String, Header, description = "The token of the attempt"),
    ),
    request_body(content = String, content_type = "text/plain"),
    responses(
        (status = 200, body = wire::HeartbeatAnswer, description = "Appended"),
    ),
)]
pub(super) async fn append_log(
    State(api): State<Arc<Api>>,
    Token(token): Token,
    RunPath(id): RunPath,
    _: NoParams,
    RawBody(body): RawBody,
) -> Answer {
    if body.len() > limits::LOG_APPEND_MAX {
        let max = limits::LOG_APPEND_MAX;
        let detail = format!("one request appends at most {max} bytes: send several");
        return Err(Problem::new(Kind::BodyTooLarge, detail));
    }
    let heard = outside::append_log(&api, id, &token, body).await?;
    answer::json(StatusCode::OK, &wire::HeartbeatAnswer::of(&heard))
}

/// The last checkpoint of a run: where an attempt goes on after one that was lost.
#[utoipa::path(
    get, path = "/v1/runs/{id}/checkpoint", tag = "runs", operation_id = "get_checkpoint_of_run",
    params(
        ("id" = String, Path, description = "The run's id"),
        ("Punctual-Token" = String, Header, description = "The token of the attempt"),
    ),
    responses(
        (status = 200, body = String, content_type = "application/octet-stream", description = "As it was sent"),
        (status = 204, description = "There is none"),
    ),
)]
pub(super) async fn checkpoint(
    State(api): State<Arc<Api>>,
    Token(token): Token,
    RunPath(id): RunPath,
    _: NoParams,
) -> Answer {
    let checkpoint = outside::checkpoint(&api, id, &token).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Some(checkpoint) = checkpoint {
        response = Response::new(Body::from(checkpoint));
        let octets = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(header::CONTENT_TYPE, octets);
    }
    Ok(response)
}

/// Read what a run has said of its work.
#[utoipa::path(
    get, path = "/v1/runs/{id}/log", tag = "runs", operation_id = "get_log_of_run",
    params(
        ("id" = String, Path, description = "The run's id"),
        ("after" = Option<u64>, Query, description = "`next` of the part before; 0 by default"),
    ),
    responses(
        (status = 200, body = wire::RunLog, description = "As asked"),
    ),
)]
pub(super) async fn log(
    State(api): State<Arc<Api>>,
    Reader(tenant): Reader,
    RunPath(id): RunPath,
    params: Params,
) -> Answer {
    params.known(&["after"])?;
    let after = match params.one("after")? {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            let detail = format!("{text:?} is not a number of bytes");
            Problem::new(Kind::ParameterInvalid, detail).at("after")
        })?,
    };
    let (part, ended) = outside::log(&api, tenant, id, after).await?;
    answer::json(StatusCode::OK, &wire::RunLog::of(&part, ended))
}
