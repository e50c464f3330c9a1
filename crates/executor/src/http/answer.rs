//! From an answer to a report: how much of it is read, what is kept, and what its status means.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Incoming};
use hyper::header::{HeaderMap, LOCATION};
use hyper::http::response::Parts;
use model::{Outcome, Report, RetryHint};

use super::retry_after;

/// Bytes read beyond those that are kept, so that a slightly longer answer does not cost its link.
const SPARE_MAX: usize = 16 * 1024;
/// Characters of a `Location` that an error shows.
const LOCATION_MAX: usize = 256;

/// The head of an answer's body, and whether more would have followed.
pub(super) struct Kept {
    output: Bytes,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It was read to its end.
    Whole,
    /// It was longer than we read.
    Left,
    /// It broke off.
    Cut,
}

impl Kept {
    /// Whether the link has nothing of this answer left in it.
    pub(super) fn is_whole(&self) -> bool {
        self.end == End::Whole
    }
}

/// Reads a body until its end, but no further than a little beyond `output_max`.
pub(super) async fn read(mut body: Incoming, output_max: usize) -> Kept {
    let read_max = output_max.saturating_add(SPARE_MAX);
    // An announced length that goes too far is not worth reading beyond what is kept.
    let far = body.size_hint().lower() > read_max as u64;
    let stop_at = if far { output_max } else { read_max };
    let mut output = BytesMut::new();
    let mut read = 0_usize;
    let end = loop {
        if body.is_end_stream() {
            break End::Whole;
        }
        if read >= stop_at {
            break End::Left;
        }
        match body.frame().await {
            None => break End::Whole,
            Some(Err(_)) => break End::Cut,
            Some(Ok(frame)) => {
                // Trailers are not kept, and an answer has them once at most.
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                let room = output_max.saturating_sub(output.len()).min(data.len());
                // Copied, because a piece of the link's own buffer would hold on to all of it.
                output.extend_from_slice(data.get(..room).unwrap_or_default());
                read = read.saturating_add(data.len());
            }
        }
    };
    Kept {
        output: output.freeze(),
        end,
    }
}

/// What an answer means for the attempt.
pub(super) fn report(head: &Parts, kept: Kept) -> Report {
    let (status, Kept { output, end }) = (head.status, kept);
    let report = if status.is_success() {
        match end {
            End::Whole | End::Left => Report::of(Outcome::Succeeded),
            End::Cut => Report::failed("the connection broke in the middle of the answer"),
        }
    } else {
        Report::failed(error(status, &head.headers)).with_retry(retry(status, &head.headers))
    };
    report
        .with_status(i32::from(status.as_u16()))
        .with_output(output)
}

/// Whether another attempt can help: not when the target understood and said no.
fn retry(status: StatusCode, headers: &HeaderMap) -> RetryHint {
    match status.as_u16() {
        408 | 425 | 429 | 500..=599 => retry_after::hint(headers),
        300..=499 => RetryHint::Never,
        // No status that HTTP knows: the answer of something broken, as any other garbage.
        _ => RetryHint::Usual,
    }
}

fn error(status: StatusCode, headers: &HeaderMap) -> String {
    let known = status.canonical_reason().unwrap_or_default();
    let answered = format!("the target answered {} {known}", status.as_u16());
    let answered = answered.trim_end();
    if !status.is_redirection() {
        return answered.to_owned();
    }
    let location = headers
        .get(LOCATION)
        .and_then(|location| location.to_str().ok());
    match location {
        Some(location) => {
            let shown: String = location.chars().take(LOCATION_MAX).collect();
            format!("{answered} to {shown}: redirects are not followed")
        }
        None => format!("{answered}: redirects are not followed"),
    }
}
