//! What a replay is to run, as it is stored; payload, pace and progress are columns.

use std::borrow::Cow;
use std::str::FromStr;

use bytes::Bytes;
use model::{JobId, Reason, RunMatch, RunState, Timestamp};
use serde::{Deserialize, Serialize};

use super::DocError;
use crate::{ReplayWork, RunFilter, RunFind};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum WorkDoc<'a> {
    #[serde(borrow)]
    Runs(RunsDoc<'a>),
    #[serde(borrow)]
    Slots(SlotsDoc<'a>),
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RunsDoc<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    job: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    states: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    reasons: Vec<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    target: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlotsDoc<'a> {
    #[serde(borrow)]
    job: Cow<'a, str>,
    from: i64,
    to: i64,
}

pub fn encode_replay(work: &ReplayWork) -> Result<Vec<u8>, DocError> {
    let doc = match work {
        ReplayWork::Runs(RunFind { filter, matches }, _) => {
            let labels = matches.labels.iter();
            let labels = labels.map(|(name, value)| (name.as_str().into(), value.as_str().into()));
            WorkDoc::Runs(RunsDoc {
                job: filter.job.map(|job| job.to_string().into()),
                states: filter.states.iter().map(|it| it.as_str().into()).collect(),
                from: filter.from.map(Timestamp::as_millis),
                to: filter.to.map(Timestamp::as_millis),
                reasons: matches
                    .reasons
                    .iter()
                    .map(|it| it.as_str().into())
                    .collect(),
                error: matches.error.as_deref().map(Into::into),
                labels: labels.collect(),
                target: matches.target.as_deref().map(Into::into),
            })
        }
        ReplayWork::Slots(job, from, to) => WorkDoc::Slots(SlotsDoc {
            job: job.to_string().into(),
            from: from.as_millis(),
            to: to.as_millis(),
        }),
    };
    Ok(serde_json::to_vec(&doc)?)
}

pub fn decode_replay(bytes: &[u8], payload: Option<Bytes>) -> Result<ReplayWork, DocError> {
    let job = |text: &str| JobId::from_str(text).map_err(|error| DocError(error.to_string()));
    match serde_json::from_slice(bytes)? {
        WorkDoc::Runs(doc) => {
            let filter = RunFilter {
                job: doc.job.as_deref().map(job).transpose()?,
                states: words(&doc.states, "state", RunState::parse)?,
                from: doc.from.map(Timestamp::from_millis),
                to: doc.to.map(Timestamp::from_millis),
                // What waits has not ended, and is not replayed.
                ..RunFilter::default()
            };
            let labels = doc.labels.into_iter();
            let labels = labels.map(|(name, value)| (name.into_owned(), value.into_owned()));
            let matches = RunMatch {
                reasons: words(&doc.reasons, "reason", Reason::parse)?,
                error: doc.error.map(Cow::into_owned),
                labels: labels.collect(),
                target: doc.target.map(Cow::into_owned),
            };
            Ok(ReplayWork::Runs(RunFind { filter, matches }, payload))
        }
        WorkDoc::Slots(doc) => {
            let [from, to] = [doc.from, doc.to].map(Timestamp::from_millis);
            Ok(ReplayWork::Slots(job(&doc.job)?, from, to))
        }
    }
}

fn words<T>(
    texts: &[Cow<'_, str>],
    what: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<Vec<T>, DocError> {
    let read = texts.iter();
    let read = read.map(|text| parse(text).ok_or_else(|| DocError::unknown(what, text)));
    read.collect()
}
