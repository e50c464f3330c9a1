//! Streams of nudges, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream::unfold;
use model::RunId;
use serde::Serialize;

use super::answer::Answer;
use super::extract::{Params, refuse};
use super::who::Viewer;
use crate::api::Api;
use crate::ops::watch::{Nudge, Subject, Ticket, Watch};
use crate::problem::Problem;
use crate::wire;

/// Watch for changes: in how the tenant's jobs fare, as the overview says it, or in a run.
///
/// An event says "look now" and no more; read what it is about as ever. The first comes at once and is called `open`, those after it
/// `changed`, a second apart at least. A comment is sent every ten seconds where nothing changes. The stream ends when the key is
/// revoked or the node stops.
#[utoipa::path(
    get, path = "/v1/events", tag = "overview", operation_id = "watch_events",
    params(
        ("run" = Option<String>, Query, description = "A run to watch; the tenant's jobs as a whole by default"),
        ("events_max" = Option<u32>, Query, description = "End after so many events; the stream goes on by default"),
    ),
    responses(
        (status = 200, body = Object, content_type = "text/event-stream", description = "`open`, then `changed`; the data of each is JSON: `at`, when it was sent, and `run`, if it is about one"),
    ),
)]
pub(super) async fn watch(
    State(api): State<Arc<Api>>,
    Viewer(caller): Viewer,
    params: Params,
) -> Answer {
    params.known(&["run", "events_max"])?;
    let run = params.one("run")?.map(str::parse::<RunId>).transpose();
    let run = run.map_err(|error| refuse("run", error.to_string()))?;
    let most = match params.one("events_max")? {
        None => u32::MAX,
        Some(text) => most(text)?,
    };
    let subject = run.map_or(Subject::Tenant(caller.tenant), |run| {
        Subject::Run(caller.tenant, run)
    });
    let ticket = caller.key.map_or(Ticket::Anyone, Ticket::Key);
    let watch = Watch::begin(&api, caller, ticket, subject).await?;
    Ok(stream(&api, watch, subject, most))
}

fn most(text: &str) -> Result<u32, Problem> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| refuse("events_max", "events_max is a number from 1 on"))
}

/// An answer that goes on for as long as somebody watches.
pub(crate) fn stream(api: &Arc<Api>, watch: Watch, subject: Subject, most: u32) -> Response {
    let of = match subject {
        Subject::Tenant(_) => None,
        Subject::Run(_, run) => Some(run.to_string()),
    };
    let watching = Watching {
        api: Arc::clone(api),
        watch,
        of,
        left: most,
    };
    stream_of(watching)
}

struct Watching {
    api: Arc<Api>,
    watch: Watch,
    of: Option<String>,
    left: u32,
}

impl Pieces for Watching {
    async fn next(&mut self) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        let name = match self.watch.next().await? {
            Nudge::Beat => return Some(BEAT.to_owned()),
            Nudge::Open => "open",
            Nudge::Changed => "changed",
        };
        self.left -= 1;
        let of = wire::Event {
            at: self.api.engine.now().to_string(),
            run: self.of.clone(),
        };
        Some(event(name, &of))
    }
}

/// What shows that the other end is there.
pub(super) const BEAT: &str = ":\n\n";

/// What a stream says, event by event.
pub(super) trait Pieces: Send + 'static {
    /// None when it has ended.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;
}

/// Events as they come, up to the last.
pub(super) fn stream_of(pieces: impl Pieces) -> Response {
    let pieces = unfold(pieces, |mut pieces| async move {
        let piece = pieces.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(piece)), pieces))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    // Proxies that collect answers would hold it back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(super) fn event(name: &str, of: &impl Serialize) -> String {
    let data = serde_json::to_string(of).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
