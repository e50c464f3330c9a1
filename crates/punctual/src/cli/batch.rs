//! `punctual job create --batch`: a file of jobs, one to a line, streamed to the server while its answers
//! stream back. Memory does not grow with the file.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use indicatif::ProgressBar;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::{output, view};
use crate::client::{Client, refusal_text};
use crate::failure::Failure;

/// Refusals that are shown one by one; the rest is counted.
const SHOWN_MAX: u64 = 20;
/// A longer line is not one of our server's.
const LINE_MAX: usize = 4 * 1024 * 1024;

pub(super) async fn execute(path: &Path, client: &Client, json: bool) -> Result<(), Failure> {
    let refused = |error: std::io::Error| {
        Failure::usage(format!("{} cannot be read: {error}", path.display()))
    };
    let (input, size): (Box<dyn AsyncRead + Send + Unpin>, Option<u64>) = if path == Path::new("-")
    {
        (Box::new(tokio::io::stdin()), None)
    } else {
        let file = tokio::fs::File::open(path).await.map_err(refused)?;
        let size = file.metadata().await.map_err(refused)?.len();
        (Box::new(file), Some(size))
    };
    let bar = output::progress(size, "bytes");
    let sent = bar.clone();
    let body = ReaderStream::with_capacity(input, 64 * 1024).map_ok(move |chunk: Bytes| {
        sent.inc(chunk.len() as u64);
        Frame::data(chunk)
    });
    let answer = client
        .stream(
            "/v1/jobs/batch",
            "application/x-ndjson",
            StreamBody::new(body),
        )
        .await?;
    let mut tally = Tally {
        bar,
        json,
        created: 0,
        refused: 0,
    };
    let mut rest = BytesMut::new();
    let mut answer = answer.into_body();
    while let Some(frame) = answer.frame().await {
        let frame = frame.map_err(|error| client.silent(&format!("broke off: {error}")))?;
        if let Ok(data) = frame.into_data() {
            rest.extend_from_slice(&data);
        }
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            tally.take(&rest.split_to(end + 1))?;
        }
        if rest.len() > LINE_MAX {
            return Err(Failure::refused(
                "the server's answer has no lines: is this a Punctual server?",
            ));
        }
    }
    if !rest.is_empty() {
        tally.take(&rest)?;
    }
    tally.finish()
}

struct Tally {
    bar: ProgressBar,
    json: bool,
    created: u64,
    refused: u64,
}

impl Tally {
    /// One line of the answer: what became of one line of the file.
    fn take(&mut self, line: &[u8]) -> Result<(), Failure> {
        let answer = view::parse(line)?;
        let problem = &answer["error"];
        if problem.is_null() {
            self.created += 1;
        } else {
            self.refused += 1;
        }
        if self.json {
            return self.bar.suspend(|| output::json(line));
        }
        if !problem.is_null() && self.refused <= SHOWN_MAX {
            let why = refusal_text(problem, true).unwrap_or_default();
            let text = format!("line {}: {why}", view::text(&answer["line"]));
            self.bar.suspend(|| output::warning(&text));
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        if !self.json {
            output::line(&format!(
                "{} created, {} refused",
                self.created, self.refused
            ))?;
        }
        match self.refused {
            0 => Ok(()),
            count => Err(Failure::refused(format!("{count} lines were refused"))),
        }
    }
}
