//! Handed-over attempts over REST. A request is let in by the attempt's token, in a header: never by a key, and never by
//! anything in its URL.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use model::{RunId, TenantId, limits};

use super::answer::{self, Answer};
use super::events::{self, Pieces};
use super::extract::{JsonBody, NoParams, Params, RawBody, RunPath};
use super::who::Viewer;
use crate::access::Caller;
use crate::api::Api;
use crate::ops::outside;
use crate::ops::watch::{Nudge, Subject, Ticket, Watch};
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

/// Report how an attempt went that its target took over. Reported again with the same outcome, it is answered as before.
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
        (status = 200, body = wire::HeartbeatAnswer, description = "The heartbeat counts; whether the run is to be cancelled"),
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
///
/// With `follow=true` the answer is a stream of server-sent events that goes on until the run has ended: each `log` is a part,
/// and `end`, the last, has none. It may be followed at any node; one that breaks off goes on with `after`, the `next` of
/// the last part.
#[utoipa::path(
    get, path = "/v1/runs/{id}/log", tag = "runs", operation_id = "get_log_of_run",
    params(
        ("id" = String, Path, description = "The run's id"),
        ("after" = Option<u64>, Query, description = "`next` of the part before; 0 by default"),
        ("follow" = Option<bool>, Query, description = "Go on until the run has ended; false by default"),
    ),
    responses(
        (status = 200, description = "The log", content(
            (wire::RunLog = "application/json"),
            (Object = "text/event-stream"),
        )),
    ),
)]
pub(super) async fn log(
    State(api): State<Arc<Api>>,
    Viewer(caller): Viewer,
    RunPath(id): RunPath,
    params: Params,
) -> Answer {
    params.known(&["after", "follow"])?;
    let follow = params.switch("follow")?;
    let after = match params.one("after")? {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            let detail = format!("{text:?} is not a number of bytes");
            Problem::new(Kind::ParameterInvalid, detail).at("after")
        })?,
    };
    if follow {
        let followed = Followed::begin(&api, caller, id, after).await?;
        return Ok(events::stream_of(followed));
    }
    let (part, ended) = outside::log(&api, caller.tenant, id, after).await?;
    answer::json(StatusCode::OK, &wire::RunLog::of(&part, ended))
}

/// A log that is followed.
struct Followed {
    api: Arc<Api>,
    watch: Watch,
    tenant: TenantId,
    run: RunId,
    /// Where to read on; none once its end was sent.
    after: Option<u64>,
    /// Whether there may be more to read without waiting for it.
    is_behind: bool,
}

impl Followed {
    async fn begin(
        api: &Arc<Api>,
        caller: Caller,
        run: RunId,
        after: u64,
    ) -> Result<Self, Problem> {
        let ticket = caller.key.map_or(Ticket::Anyone, Ticket::Key);
        let tenant = caller.tenant;
        let watch = Watch::begin(api, caller, ticket, Subject::Run(tenant, run)).await?;
        Ok(Self {
            api: Arc::clone(api),
            watch,
            tenant,
            run,
            after: Some(after),
            is_behind: false,
        })
    }
}

impl Pieces for Followed {
    /// The next part; none after its end, or when whoever follows may not any more.
    async fn next(&mut self) -> Option<String> {
        let after = self.after?;
        loop {
            if !self.is_behind && self.watch.next().await? == Nudge::Beat {
                return Some(events::BEAT.to_owned());
            }
            let (part, ended) = outside::log(&self.api, self.tenant, self.run, after)
                .await
                .ok()?;
            self.is_behind = !part.bytes.is_empty();
            if self.is_behind {
                self.after = Some(part.next);
                return Some(events::event("log", &wire::RunLog::of(&part, ended)));
            }
            if ended {
                self.after = None;
                return Some(events::event("end", &wire::RunLog::of(&part, ended)));
            }
        }
    }
}
