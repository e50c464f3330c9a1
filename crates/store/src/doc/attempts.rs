//! Attempts of a run as they are stored.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::{Attempt, AttemptNo, Outcome, Timestamp};
use serde::{Deserialize, Serialize};

use super::DocError;

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
        node: doc.node.map(Arc::from),
        late_by: doc.late_by.map(Duration::from_millis),
        long_by: doc.long_by.map(Duration::from_millis),
    })
}

fn to_hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|value| value as u8))
        .collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    digits
        .chunks(2)
        .map(|pair| Some((pair.first()? << 4) | pair.get(1)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_survive_as_hexadecimal(bytes: Vec<u8>) {
            prop_assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
        }
    }
}
