//! Attempts of a run as they are stored.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::hex::{from_hex, to_hex};
use model::{Attempt, AttemptNo, Cost, Exchange, Io, Outcome, Times, Timestamp, Trace};
use serde::{Deserialize, Serialize};

use super::DocError;

/// What a trace is behind, in the row of a live run: no JSON begins with it, and nothing that is kept of a last attempt.
const TRACE: u8 = 2;

/// What the row of a live run holds beside its columns: attempts, and before them its trace if it has one.
pub fn encode_live(
    trace: Option<&Trace>,
    attempts: &[Attempt],
) -> Result<Option<Vec<u8>>, DocError> {
    let attempts = encode_attempts(attempts)?;
    let Some(trace) = trace else {
        return Ok(attempts);
    };
    let mut bytes = Vec::with_capacity(1 + Trace::BYTES + attempts.as_ref().map_or(0, Vec::len));
    bytes.push(TRACE);
    bytes.extend(trace.to_bytes());
    bytes.extend(attempts.unwrap_or_default());
    Ok(Some(bytes))
}

/// The trace can be read even where the attempts cannot.
pub fn decode_live(bytes: Option<&[u8]>) -> (Option<Box<Trace>>, Result<Vec<Attempt>, DocError>) {
    let traced = bytes.and_then(|bytes| bytes.strip_prefix(&[TRACE]));
    match traced.and_then(|traced| traced.split_first_chunk()) {
        Some((trace, rest)) => {
            let rest = Some(rest).filter(|rest| !rest.is_empty());
            let trace = Trace::from_bytes(*trace).map(Box::new);
            (trace, decode_attempts(rest))
        }
        None => (None, decode_attempts(bytes)),
    }
}

#[derive(Serialize, Deserialize)]
struct AttemptDoc<'a> {
    no: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dispatched_at: Option<i64>,
    settled_at: i64,
    #[serde(borrow)]
    outcome: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<i32>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    /// Text as text; anything else as hexadecimal digits, since JSON has no bytes.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    output: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    output_hex: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    node: Option<Cow<'a, str>>,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late_by: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    long_by: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    truncated: bool,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    exchange: Option<ExchangeDoc<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<CostDoc>,
}

#[derive(Serialize, Deserialize)]
struct CostDoc {
    /// Microseconds.
    cpu: u64,
    /// Bytes.
    memory_max: u64,
    /// Bytes; both or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    written: Option<u64>,
}

impl CostDoc {
    fn of(cost: Cost) -> Self {
        Self {
            cpu: Times::micros(cost.cpu),
            memory_max: cost.memory_max,
            read: cost.io.map(|io| io.read),
            written: cost.io.map(|io| io.written),
        }
    }

    fn cost(self) -> Cost {
        let io = self.read.zip(self.written);
        Cost {
            cpu: Duration::from_micros(self.cpu),
            memory_max: self.memory_max,
            io: io.map(|(read, written)| Io { read, written }),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct ExchangeDoc<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peer: Option<SocketAddr>,
    /// Microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connect: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_byte: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    note: Option<Cow<'a, str>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !*value
}

fn exchange_doc(exchange: &Exchange) -> ExchangeDoc<'_> {
    let times = exchange.times;
    let headers = exchange.headers.iter();
    ExchangeDoc {
        peer: exchange.peer,
        connect: times.connect.map(Times::micros),
        tls: times.tls.map(Times::micros),
        first_byte: times.first_byte.map(Times::micros),
        total: times.total.map(Times::micros),
        headers: headers
            .map(|(name, value)| (Cow::Borrowed(name.as_str()), Cow::Borrowed(value.as_str())))
            .collect(),
        note: exchange.note.as_deref().map(Cow::Borrowed),
    }
}

fn exchange_of(doc: ExchangeDoc<'_>) -> Exchange {
    let headers = doc.headers.into_iter();
    Exchange {
        peer: doc.peer,
        times: Times {
            connect: doc.connect.map(Duration::from_micros),
            tls: doc.tls.map(Duration::from_micros),
            first_byte: doc.first_byte.map(Duration::from_micros),
            total: doc.total.map(Duration::from_micros),
        },
        headers: headers
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect(),
        note: doc.note.map(Cow::into_owned),
    }
}

/// The stored form of a run's attempts, oldest first; nothing when there are none.
pub fn encode_attempts(attempts: &[Attempt]) -> Result<Option<Vec<u8>>, DocError> {
    if attempts.is_empty() {
        return Ok(None);
    }
    let docs: Vec<_> = attempts.iter().map(attempt_doc).collect();
    Ok(Some(serde_json::to_vec(&docs)?))
}

/// Attempts from their stored form.
pub fn decode_attempts(bytes: Option<&[u8]>) -> Result<Vec<Attempt>, DocError> {
    let Some(bytes) = bytes else {
        return Ok(Vec::new());
    };
    let docs: Vec<AttemptDoc<'_>> = serde_json::from_slice(bytes)?;
    docs.into_iter().map(attempt_of).collect()
}

fn attempt_doc(attempt: &Attempt) -> AttemptDoc<'_> {
    let (output, output_hex) = match std::str::from_utf8(&attempt.output) {
        Ok("") => (None, None),
        Ok(text) => (Some(Cow::Borrowed(text)), None),
        Err(_) => (None, Some(Cow::Owned(to_hex(&attempt.output)))),
    };
    AttemptDoc {
        no: attempt.no.0,
        dispatched_at: attempt.dispatched_at.map(Timestamp::as_millis),
        settled_at: attempt.settled_at.as_millis(),
        outcome: Cow::Borrowed(attempt.outcome.as_str()),
        status: attempt.status,
        error: attempt.error.as_deref().map(Cow::Borrowed),
        output,
        output_hex,
        node: attempt.node.as_deref().map(Cow::Borrowed),
        late_by: attempt.late_by.map(millis),
        long_by: attempt.long_by.map(millis),
        truncated: attempt.truncated,
        exchange: attempt.exchange.as_deref().map(exchange_doc),
        cost: attempt.cost.as_deref().copied().map(CostDoc::of),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn attempt_of(doc: AttemptDoc<'_>) -> Result<Attempt, DocError> {
    let output = match (doc.output, doc.output_hex) {
        (Some(text), _) => Bytes::from(text.into_owned()),
        (None, Some(digits)) => from_hex(&digits)
            .map(Bytes::from)
            .ok_or_else(|| DocError("the output of an attempt is not hexadecimal".to_owned()))?,
        (None, None) => Bytes::new(),
    };
    Ok(Attempt {
        no: AttemptNo(doc.no),
        dispatched_at: doc.dispatched_at.map(Timestamp::from_millis),
        settled_at: Timestamp::from_millis(doc.settled_at),
        outcome: Outcome::parse(&doc.outcome)
            .ok_or_else(|| DocError::unknown("outcome", &doc.outcome))?,
        status: doc.status,
        error: doc.error.map(Cow::into_owned),
        output,
        truncated: doc.truncated,
        exchange: doc.exchange.map(|doc| Box::new(exchange_of(doc))),
        cost: doc.cost.map(|doc| Box::new(doc.cost())),
        node: doc.node.map(Arc::from),
        late_by: doc.late_by.map(Duration::from_millis),
        long_by: doc.long_by.map(Duration::from_millis),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_stands_before_the_attempts_of_a_live_run() {
        let golden = include_str!("golden/attempts.json").trim_end();
        let attempts = || decode_attempts(Some(golden.as_bytes())).unwrap();
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = Trace::parse(text).unwrap();
        let stored = encode_live(Some(&trace), &[]).unwrap().unwrap();
        let golden = "024bf92f3577b34da6a3ce929d0e0e473600f067aa0ba902b701";
        assert_eq!(model::hex::to_hex(&stored), golden);
        assert_eq!(
            decode_live(Some(&stored)),
            (Some(Box::new(trace)), Ok(Vec::new()))
        );
        let with = encode_live(Some(&trace), &attempts()).unwrap().unwrap();
        let (head, rest) = with.split_at(stored.len());
        assert_eq!(
            (head, Some(rest.to_vec())),
            (&stored[..], encode_attempts(&attempts()).unwrap())
        );
        assert_eq!(
            decode_live(Some(&with)),
            (Some(Box::new(trace)), Ok(attempts()))
        );
        // Without one everything is as it was.
        let plain = encode_live(None, &attempts()).unwrap();
        assert_eq!(plain, encode_attempts(&attempts()).unwrap());
        assert_eq!(decode_live(plain.as_deref()), (None, Ok(attempts())));
        assert_eq!(encode_live(None, &[]), Ok(None));
        // A trace that is cut is no attempts either.
        assert!(decode_live(Some(&stored[..9])).1.is_err());
    }
}
