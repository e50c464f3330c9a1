//! From an answer to a report: what is kept of it, and what it means.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, LOCATION};
use hyper::http::response::Parts;
use model::redirect::NotFollowed;
use model::target::HttpTarget;
use model::{Exchange, Outcome, Report, RetryHint, Success};

use super::body::{End, Read};
use super::gzip::Decoded;
use super::{gzip, retry_after, success};

/// Characters of a `Location` that an error shows.
const LOCATION_MAX: usize = 256;

/// Bytes of an answer that are of use, to be kept or to be looked into.
fn bytes_wanted(target: &HttpTarget) -> usize {
    let read = target.success.as_ref().map_or(0, Success::reads);
    target.output_max.max(read)
}

/// Bytes of an answer that are read for them.
pub(super) fn bytes_read(headers: &HeaderMap, target: &HttpTarget) -> usize {
    let packed = gzip::is_in(headers);
    bytes_wanted(target) + if packed { gzip::OVERHEAD_MAX } else { 0 }
}

/// A body as it was meant: unpacked if it came packed.
struct Meant {
    bytes: Bytes,
    is_all: bool,
    note: Option<&'static str>,
}

impl Meant {
    fn of(headers: &HeaderMap, body: Read, target: &HttpTarget) -> Self {
        let is_all = body.is_all();
        let plain = |bytes, note| Self {
            bytes,
            is_all,
            note,
        };
        if !gzip::is_in(headers) || body.bytes.is_empty() {
            return plain(body.bytes, None);
        }
        match gzip::decode(&body.bytes, is_all, bytes_wanted(target)) {
            Some(Decoded {
                bytes,
                is_all,
                note,
            }) => Self {
                bytes,
                is_all,
                note,
            },
            None => plain(
                body.bytes,
                Some(
                    "the answer says that it is gzip and is not, or is damaged: it is kept as it came",
                ),
            ),
        }
    }
}

/// What an answer means for the attempt.
pub(super) fn report(
    head: &Parts,
    body: Read,
    target: &HttpTarget,
    mut exchange: Exchange,
) -> Report {
    let (status, end) = (head.status, body.end);
    let meant = Meant::of(&head.headers, body, target);
    exchange.note = meant.note.map(str::to_owned);
    let mut report = if !is_success(status, target) {
        Report::failed(error(status, &head.headers)).with_retry(retry(status, &head.headers))
    } else if end == End::Cut {
        Report::failed("the connection broke in the middle of the answer")
    } else {
        let rule = target.success.as_ref();
        match rule.and_then(|rule| success::refusal(rule, &meant.bytes, meant.is_all)) {
            Some(why) => Report::failed(why),
            None => Report::of(Outcome::Succeeded),
        }
    };
    for name in &target.keep_headers {
        if let Some(value) = head.headers.get(name) {
            exchange.keep_header(name.as_str(), value.as_bytes());
        }
    }
    report.truncated = !meant.is_all || meant.bytes.len() > target.output_max;
    report
        .with_status(i32::from(status.as_u16()))
        .with_output(head_of(meant.bytes, target.output_max))
        .with_exchange(exchange)
}

pub(super) fn is_success(status: StatusCode, target: &HttpTarget) -> bool {
    match &target.success {
        Some(rule) => rule.has_status(status.as_u16()),
        None => status.is_success(),
    }
}

/// Its own bytes, so that what is not kept takes no room.
fn head_of(bytes: Bytes, most: usize) -> Bytes {
    match bytes.get(..most) {
        Some(head) if head.len() < bytes.len() => Bytes::copy_from_slice(head),
        Some(_) | None => bytes,
    }
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

/// A redirect that was not followed, although others are.
pub(super) fn not_followed(status: StatusCode, why: &NotFollowed) -> String {
    format!(
        "{}, a redirect that is not followed: {why}",
        answered(status)
    )
}

fn answered(status: StatusCode) -> String {
    let known = status.canonical_reason().unwrap_or_default();
    let answered = format!("the target answered {} {known}", status.as_u16());
    answered.trim_end().to_owned()
}

fn error(status: StatusCode, headers: &HeaderMap) -> String {
    let answered = answered(status);
    if !status.is_redirection() {
        return answered;
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
