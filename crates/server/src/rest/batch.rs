//! Many jobs in one request: NDJSON in, one line of answer for each line, both as streams.
//!
//! ```text
//!   body ─▶ split ─▶ decode ─▶ chunk (≤ 1,000) ─▶ store, two calls in flight ─▶ answers, in order
//! ```
//!
//! Chunks are natural: what has arrived goes as soon as a call is free. What waits in memory is two
//! calls, one chunk and the answers that the client has not read yet, all of them bounded; a client
//! that is slow to read is read from at its pace.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use model::limits;
use store::Acting;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tracing::Instrument;

use super::answer::Answer;
use super::extract::{NoParams, check_media_type, idempotency, idempotency_key};
use super::split::{Line, Splitter};
use super::who::{Admin, unauthorized};
use crate::access::Caller;
use crate::api::{Api, BATCHES_MAX};
use crate::ops::jobs::{self, Built};
use crate::problem::{Kind, Problem};
use crate::wire::{self, schema};

/// Lines of one call to the store.
const CHUNK_MAX: usize = 1_000;
/// Bytes of one call to the store.
const CHUNK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Calls under way at once: some are written while others are made ready.
const FLYING_MAX: usize = 3;
/// Answers of calls that the client has not read. Many clients send everything before they read
/// anything: this is enough for a hundred thousand lines of them.
const ANSWERS_MAX: usize = 128;
/// How long the body may stand still.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Lines decoded before others get their turn.
const TURN_MAX: u64 = 64;

const NDJSON: &str = "application/x-ndjson";

/// Create many jobs: one JSON object a line in, one line of answer for each, in order. Blank lines at the
/// end are ignored. With an `Idempotency-Key` the whole batch can be repeated.
#[utoipa::path(
    post, path = "/v1/jobs/batch", tag = "jobs", operation_id = "create_jobs",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes every line repeatable for 24 hours")),
    request_body(content = schema::JobRequest, content_type = "application/x-ndjson"),
    responses(
        (status = 200, body = schema::BatchLine, content_type = "application/x-ndjson", description = "What became of each line"),
    ),
)]
pub(super) async fn create(
    State(api): State<Arc<Api>>,
    Admin(caller): Admin,
    _: NoParams,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    check_media_type(&parts.headers, NDJSON)?;
    let key = idempotency_key(&parts.headers)?.map(str::to_owned);
    let permit = Arc::clone(&api.batches).try_acquire_owned().map_err(|_| {
        let detail = format!("{BATCHES_MAX} batches are under way: send this one a little later");
        Problem::new(Kind::Overloaded, detail).retry_after(1)
    })?;
    let (answers, receiver) = mpsc::channel(ANSWERS_MAX);
    let batch = Batch {
        owner: api.access.name(caller),
        api,
        caller,
        key,
        line: 0,
        blank: 0,
        chunk: Chunk::default(),
        flying: FuturesOrdered::new(),
        answers,
        _permit: permit,
    };
    // A task of its own: reading goes on while the client is busy sending.
    let run = batch.run(body.into_data_stream()).in_current_span();
    tokio::spawn(Acting::now().during(run));
    let answers = ReceiverStream::new(receiver).map(Ok::<_, std::convert::Infallible>);
    let mut response = Response::new(Body::from_stream(answers));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    Ok(response)
}

/// The client went away; what it sent and got no answer to is written or not.
struct Gone;

/// Lines that go to the store together.
#[derive(Default)]
struct Chunk {
    lines: Vec<(u64, Option<Problem>)>,
    /// One for each line without a problem.
    news: Vec<Built>,
    bytes: usize,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.lines.len() >= CHUNK_MAX || self.bytes >= CHUNK_BYTES_MAX
    }
}

struct Batch {
    api: Arc<Api>,
    caller: Caller,
    /// What the caller is called.
    owner: Arc<str>,
    key: Option<String>,
    /// The number of the line read last.
    line: u64,
    /// Blank lines since the last that was not: at the end they mean nothing.
    blank: u64,
    chunk: Chunk,
    flying: FuturesOrdered<BoxFuture<'static, Bytes>>,
    answers: mpsc::Sender<Bytes>,
    _permit: OwnedSemaphorePermit,
}

impl Batch {
    async fn run(mut self, body: BodyDataStream) {
        if self.read(body).await.is_err() {
            tracing::debug!(line = self.line, "the client of a batch went away");
        }
    }

    async fn read(&mut self, mut body: BodyDataStream) -> Result<(), Gone> {
        let mut splitter = Splitter::default();
        let clock = Arc::clone(self.api.engine.clock());
        loop {
            let frame = tokio::select! {
                biased;
                Some(answer) = self.flying.next() => {
                    self.send(answer).await?;
                    self.submit();
                    continue;
                }
                frame = body.next() => frame,
                () = clock.sleep(IDLE_MAX) => Some(Err(axum::Error::new("it stood still"))),
            };
            match frame {
                None => break,
                Some(Err(error)) => {
                    let detail = format!("the body broke off after line {}: {error}", self.line);
                    self.line += 1;
                    self.refuse(self.line, Problem::new(Kind::BodySlow, detail));
                    return self.finish().await;
                }
                Some(Ok(frame)) => {
                    splitter.feed(frame);
                    while let Some(line) = splitter.next() {
                        self.take(line).await?;
                    }
                    self.submit();
                }
            }
        }
        if let Some(line) = splitter.last() {
            self.take(line).await?;
        }
        self.finish().await
    }

    /// Decodes a line into the chunk; waits for a call to end when there is no room.
    async fn take(&mut self, line: Line) -> Result<(), Gone> {
        self.line += 1;
        if self.line.is_multiple_of(TURN_MAX) {
            tokio::task::yield_now().await;
        }
        match line {
            Line::Whole(text) if text.trim_ascii().is_empty() => {
                self.blank += 1;
                return Ok(());
            }
            Line::Whole(text) => {
                self.refuse_blank().await?;
                match self.decode(&text) {
                    Ok(new) => {
                        self.chunk.bytes += text.len();
                        self.chunk.news.push(new);
                        self.chunk.lines.push((self.line, None));
                    }
                    Err(problem) => self.refuse(self.line, problem),
                }
            }
            Line::TooLong => {
                self.refuse_blank().await?;
                let detail = format!("a line has at most {} bytes", limits::LINE_MAX);
                self.refuse(self.line, Problem::new(Kind::BodyTooLarge, detail));
            }
        }
        self.make_room().await
    }

    fn decode(&self, text: &[u8]) -> Result<Built, Problem> {
        let draft = wire::job_draft(text)?;
        let idempotency = self
            .key
            .as_ref()
            .map(|key| idempotency(format!("{key}#{}", self.line), text));
        Ok(Built::of(
            self.caller.tenant,
            &self.owner,
            draft,
            idempotency,
            self.api.engine.now(),
        )?)
    }

    fn refuse(&mut self, line: u64, problem: Problem) {
        self.chunk.lines.push((line, Some(problem)));
    }

    /// A blank line that others follow was meant to be something.
    async fn refuse_blank(&mut self) -> Result<(), Gone> {
        let first = self.line - self.blank;
        self.blank = 0;
        for line in first..self.line {
            self.refuse(
                line,
                Problem::new(
                    Kind::BodyUnreadable,
                    "the line is empty: send a JSON object",
                ),
            );
            self.make_room().await?;
        }
        Ok(())
    }

    async fn make_room(&mut self) -> Result<(), Gone> {
        while self.chunk.is_full() {
            if self.flying.len() >= FLYING_MAX
                && let Some(answer) = self.flying.next().await
            {
                self.send(answer).await?;
            }
            self.submit();
        }
        Ok(())
    }

    /// Sends the chunk to the store, if a call is free.
    fn submit(&mut self) {
        if self.flying.len() >= FLYING_MAX || self.chunk.lines.is_empty() {
            return;
        }
        let chunk = std::mem::take(&mut self.chunk);
        let lines: Vec<u64> = chunk.lines.iter().map(|(line, _)| *line).collect();
        // A task of its own: lines are decoded on one core while others are written from another.
        let written =
            tokio::spawn(Acting::now().during(write(Arc::clone(&self.api), self.caller, chunk)));
        let answer = written.map(move |text| text.unwrap_or_else(|_| unwritten(&lines)));
        self.flying.push_back(answer.boxed());
    }

    async fn finish(&mut self) -> Result<(), Gone> {
        self.submit();
        while let Some(answer) = self.flying.next().await {
            self.send(answer).await?;
            self.submit();
        }
        Ok(())
    }

    async fn send(&mut self, answer: Bytes) -> Result<(), Gone> {
        self.answers.send(answer).await.map_err(|_| Gone)
    }
}

/// Writes a chunk, and what came of each of its lines.
async fn write(api: Arc<Api>, caller: Caller, chunk: Chunk) -> Bytes {
    let mut text = String::with_capacity(chunk.lines.len() * 80);
    // A batch may take long, and its key be revoked meanwhile.
    let written = if api.access.is_still_valid(caller, api.engine.now()) {
        let made = jobs::create_many(&api, caller.tenant, chunk.news).await;
        made.map_err(Problem::from)
    } else {
        Err(unauthorized())
    };
    let (mut made, failed) = match written {
        Ok(made) => (made.into_iter(), None),
        Err(problem) => (Vec::new().into_iter(), Some(problem)),
    };
    for (line, problem) in chunk.lines {
        let outcome = match (problem, &failed) {
            (Some(problem), _) => Err(problem),
            (None, Some(problem)) => Err(problem.clone()),
            (None, None) => match made.next() {
                Some(made) => made.map_err(Problem::from),
                None => Err(Problem::new(Kind::Internal, "the line was not answered")),
            },
        };
        write_line(&mut text, line, outcome);
    }
    Bytes::from(text)
}

/// The answer when whoever wrote them broke down.
fn unwritten(lines: &[u64]) -> Bytes {
    let mut text = String::new();
    for line in lines {
        let problem = Problem::new(Kind::Internal, "the line may or may not have been written");
        write_line(&mut text, *line, Err(problem));
    }
    Bytes::from(text)
}

fn write_line(text: &mut String, line: u64, outcome: Result<(model::JobId, bool), Problem>) {
    // Writing to a string cannot fail.
    let _ = match outcome {
        Ok((id, false)) => writeln!(text, r#"{{"line":{line},"status":201,"id":"{id}"}}"#),
        Ok((id, true)) => {
            writeln!(
                text,
                r#"{{"line":{line},"status":201,"id":"{id}","replayed":true}}"#
            )
        }
        Err(problem) => {
            let status = problem.kind.status().as_u16();
            let error = serde_json::to_string(&problem).unwrap_or_default();
            writeln!(
                text,
                r#"{{"line":{line},"status":{status},"error":{error}}}"#
            )
        }
    };
}
